"""``conda list`` in its four dresses, and ``environment.yml``."""

from __future__ import annotations

import json

import pytest

from bisect_env.errors import BadInput
from bisect_env.snapshots.reading import read_text
from bisect_env.snapshots.records import Snapshot, Target
from tests.snapshots.posted import CONDA


def pins(snapshot: Snapshot) -> set[tuple[str, str | None, str]]:
    return {(each.name, each.version, each.manager) for each in snapshot.distributions}


HERE = {
    ("_libgcc_mutex", "0.1", "conda"),
    ("ca-certificates", "2025.2.25", "conda"),
    ("numpy", "1.26.4", "conda"),
    ("numpy", "2.1.2", "pip"),
    ("openssl", "1.1.1w", "conda"),
    ("torch", "2.1.0", "conda"),
    ("mine", "0.1.dev3", "pip"),
    ("torch-scatter", "2.1.2+pt21cu121", "pip"),
}


def test_the_table() -> None:
    found = read_text(CONDA, "x")
    assert found.form == "conda list" and pins(found) == HERE
    assert (found.python, found.cuda, found.unread, found.partial) == ("3.11.8", "cu121", (), False)
    assert "conda build py3.11_cuda12.1_cudnn8.9.2_0" in found.of("torch")[0].note
    assert "editable" in found.of("mine")[0].note
    assert found.of("openssl")[0].note == "conda build h7f8727e_0"


def test_what_both_have_in_one_version_is_there_once() -> None:
    found = read_text(CONDA.replace("2.1.2                    pypi_0", "1.26.4                   pypi_0"), "x")
    assert [each.manager for each in found.of("numpy")] == ["conda"]


def test_without_its_header() -> None:
    assert pins(read_text("\n".join(CONDA.split("\n")[4:]), "x")) == HERE


def test_as_mamba_draws_it() -> None:
    text = """\
List of packages in environment: "/opt/mamba/envs/train"

  Name           Version       Build                   Channel
──────────────────────────────────────────────────────────────────
  numpy          1.26.4        py311h64a7726_0         conda-forge
  python         3.11.8        hab00c5b_0_cpython      conda-forge
  pytorch        2.5.1         cuda126_py311h0d5_300   conda-forge
  tzdata         2025b         h78e105d_0              conda-forge
"""
    found = read_text(text, "x")
    assert pins(found) == {("numpy", "1.26.4", "conda"), ("torch", "2.5.1", "conda"), ("tzdata", "2025b", "conda")}
    assert (found.cuda, found.unread) == ("cu126", ())


def test_json() -> None:
    rows = [line.split() for line in CONDA.split("\n")[4:] if line]
    entries = [
        {"name": name, "version": version, "build_string": build, "channel": (channel or ["defaults"])[0],
         "platform": "pypi" if channel == ["pypi"] else "linux-64"}
        for name, version, build, *channel in rows
    ]  # fmt: skip
    found = read_text(json.dumps(entries, indent=2), "x")
    assert pins(found) == HERE and found.platform == "linux-64"
    with pytest.raises(BadInput, match="line"):
        read_text(json.dumps(entries, indent=2)[:-40], "x")
    odd = read_text(json.dumps([*entries, 7, {"name": "a b", "version": "1", "build_string": "", "channel": ""}]), "x")
    assert pins(odd) == HERE and len(odd.unread) == 2


def test_export() -> None:
    text = "# This file may be used to create an environment using:\n# $ conda create --name <env> --file <this file>\n"
    text += "# platform: linux-64\n_libgcc_mutex=0.1=main\nnumpy=1.26.4=py311h64a7726_0\npython=3.11.8=hab00_0\n"
    text += "torch=2.7.0=pypi_0\n"
    found = read_text(text, "x")
    assert pins(found) == {
        ("_libgcc_mutex", "0.1", "conda"),
        ("numpy", "1.26.4", "conda"),
        ("torch", "2.7.0", "pip"),
    }
    assert (found.python, found.platform, found.unread) == ("3.11.8", "linux-64", ())


def test_explicit_hides_a_token() -> None:
    text = "# platform: linux-64\n@EXPLICIT\nhttps://conda.anaconda.org/t/tk-123-geheim/pytorch/linux-64/"
    text += "pytorch-2.1.0-py3.11_cuda12.1_cudnn8.9.2_0.tar.bz2#0123\nhttps://repo/t/tk-123-geheim/main/odd.txt\n"
    found = read_text(text, "x")
    assert pins(found) == {("torch", "2.1.0", "conda")} and found.cuda == "cu121"
    assert len(found.unread) == 1 and "geheim" not in repr(found)
    assert any("pip" in sentence for sentence in found.missing)


def test_two_environments_in_one_text() -> None:
    with pytest.raises(BadInput, match=r"openssl 3\.0\.1, and openssl 1\.1\.1w at line"):
        read_text(CONDA + CONDA.replace("1.1.1w", "3.0.1"), "x")
    with pytest.raises(BadInput, match=r"Python 3\.12\.0, and 3\.11\.8 before"):
        read_text(CONDA + "python                    3.12.0          hab00c5b_0_cpython    conda-forge\n", "x")


EXPORTED = """\
name: train
channels:
  - pytorch
  - defaults
dependencies:
  - _libgcc_mutex=0.1=main
  - numpy=1.26.4=py311h64a7726_0
  - pytorch::pytorch=2.1.0=py3.11_cuda12.1_cudnn8.9.2_0
  - python=3.11.8=hab00c5b_0_cpython
  - pip:
      - --extra-index-url https://me:geheim@wheels.example.com/simple
      - numpy==2.1.2
      - torch-scatter==2.1.2+pt21cu121
      - uvicorn[standard]==0.30.1
      - mine @ git+https://me:geheim@example.com/mine.git@0123456789012345678901234567890123456789
      - only-there==1.0 ; sys_platform == 'win32'
      - einops>=0.7
variables:
  OMP_NUM_THREADS: 4
  HF_TOKEN: hf_geheim
prefix: /opt/conda/envs/train
"""


def test_environment_yml_exported() -> None:
    found = read_text(EXPORTED, "x", Target("3.11.8", "linux", "x86_64"))
    assert found.form == "conda's environment.yml"
    assert pins(found) == {
        ("_libgcc_mutex", "0.1", "conda"),
        ("numpy", "1.26.4", "conda"),
        ("numpy", "2.1.2", "pip"),
        ("torch", "2.1.0", "conda"),
        ("torch-scatter", "2.1.2+pt21cu121", "pip"),
        ("uvicorn", "0.30.1", "pip"),
        ("mine", None, "pip"),
    }
    assert found.ranges == ("einops>=0.7",) and found.unread == ()
    assert (found.python, found.cuda, found.partial) == ("3.11.8", "cu121", False)
    assert found.variables == (("HF_TOKEN", "***"), ("OMP_NUM_THREADS", "4"))
    assert found.covered == ("HF_TOKEN", "OMP_NUM_THREADS")
    assert "geheim" not in repr(found)


def test_an_export_without_builds_is_exact_by_its_prefix() -> None:
    text = "dependencies:\n  - numpy=1.26.4\n  - openssl=3.0.1\nprefix: /x\n"
    assert pins(read_text(text, "x")) == {("numpy", "1.26.4", "conda"), ("openssl", "3.0.1", "conda")}


def test_one_written_by_hand_has_ranges_of_condas() -> None:
    text = "dependencies:\n  - python=3.11\n  - numpy=1.26\n  - scipy==1.13.0\n"
    text += "  - pip:\n    - torch==2.7.0\n    - einops==0.8\n"
    found = read_text(text, "x")
    assert pins(found) == {("scipy", "1.13.0", "conda"), ("torch", "2.7.0", "pip"), ("einops", "0.8", "pip")}
    assert (found.python, found.partial) == ("3.11", True)
    assert [(each.line, each.text) for each in found.unread] == [(3, "numpy=1.26")]
    with pytest.raises(BadInput, match="conda list"):
        read_text("dependencies:\n  - numpy\n  - pandas>=2\n  - scipy=1.13\n", "x")


@pytest.mark.parametrize(
    "text",
    [
        "dependencies:\n  - numpy=1\n    - a: [\n",
        "dependencies:\n  - " + "[" * 5000,
        "dependencies:\n  - numpy=1.0=a_0\ndependencies:\n  - numpy=1.1=a_0\n",
        "dependencies:\n  - numpy=1.0=a_0\n---\ndependencies:\n  - numpy=1.1=a_0\n",
        "dependencies:\n  - numpy=1.0=a_0\n  - numpy=1.1=a_0\n",
        "dependencies:\n  - &a [*a]\n",
        "dependencies:\n  - pip:\n    - &x [a, b]\n    - ? {a: b}\n",
    ],
)  # fmt: skip
def test_no_environment(text: str) -> None:
    with pytest.raises(BadInput):
        read_text(text, "x")

"""``transformers env`` and its kin."""

from __future__ import annotations

import pytest

from bisect_env.errors import BadInput
from bisect_env.snapshots.reading import read_text
from tests.snapshots.posted import TRANSFORMERS


def test_a_report() -> None:
    found = read_text(TRANSFORMERS, "x")
    assert found.form == "transformers env"
    assert {each.name: each.version for each in found.distributions} == {
        "accelerate": "1.7.0",
        "huggingface-hub": "0.32.0",
        "safetensors": "0.5.3",
        "torch": "2.6.0+cu124",
        "transformers": "4.52.1",
    }
    assert (found.python, found.cuda, found.gpus) == ("3.12.3", "cu124", ("NVIDIA H100 80GB HBM3",))
    assert found.platform == "Linux-6.8.0-57-generic-x86_64-with-glibc2.35"
    assert found.partial and found.unread == () and found.variables is None


def test_as_it_is_since_version_5() -> None:
    text = TRANSFORMERS.replace("(GPU?): 2.6.0+cu124 (True)", "(accelerator?): 2.11.0 (CUDA)")
    found = read_text(text, "x")
    assert found.of("torch")[0].version == "2.11.0"
    assert found.cuda is None  # No label: that CUDA is there does not say which.


@pytest.mark.parametrize("mark", ["", "* ", "> - ", "  - "])
def test_pasted_with_other_bullets(mark: str) -> None:
    lines = [line.removeprefix("- ") for line in TRANSFORMERS.replace("`", "").split("\n") if not line.startswith("\t")]
    found = read_text("\n".join(mark + line if ":" in line else line for line in lines), "x")
    assert found.distributions == read_text(TRANSFORMERS, "x").distributions
    assert found.unread == ()


def test_accelerates_report() -> None:
    text = """\
- `Accelerate` version: 1.0.1
- Platform: Linux-5.15
- `accelerate` bash location: /opt/venv/bin/accelerate
- Python version: 3.10.12
- Numpy version: 1.26.4
- PyTorch version (GPU?): 2.4.1+cu121 (True)
- PyTorch XPU available: False
- System RAM: 1007.58 GB
- GPU type: NVIDIA A100
- `Accelerate` default config:
\tNot found
"""
    found = read_text(text, "x")
    assert {each.name for each in found.distributions} == {"accelerate", "numpy", "torch"}
    assert found.unread == ()


def test_what_is_no_version_is_listed() -> None:
    text = TRANSFORMERS.replace("4.52.1", "main, of last week").replace("- Platform", "The crash is new.\n- Platform")
    found = read_text(text, "x")
    assert found.of("transformers") == ()
    assert [(each.line, each.why) for each in found.unread] == [(3, "no version"), (4, "no line of this report")]


def test_two_reports() -> None:
    with pytest.raises(BadInput, match=r"x#2 for the one at line \d+ \(version: 5.8.1\)"):
        read_text(TRANSFORMERS + TRANSFORMERS.replace("4.52.1", "5.8.1"), "x")


def test_nothing_in_it() -> None:
    with pytest.raises(BadInput):
        read_text("- `transformers` version: not installed\n", "x")

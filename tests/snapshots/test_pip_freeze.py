from __future__ import annotations

import pytest

from tests.snapshots.reads import only, pins, read, refusal

BUILD = "work"
"""The folder of a conda build."""
COMMIT = "0123456789abcdef0123456789abcdef01234567"

PLAIN = """\
accelerate==1.2.0
flash_attn==2.8.0
torch==2.11.0+cu130
Triton==3.6.0
"""

QUIRKS = f"""\
(train) me@gpu3:~/runs/dflash$ pip freeze
WARNING: The directory '/home/me/.cache/pip' or its parent directory is not owned or is not writable.
DEPRECATION: Loading egg at /usr/lib/python3.11/site-packages/x.egg is deprecated.
absl-py @ file:///croot/absl-py_1666362920735/work
certifi @ file:///croot/certifi_1700501669400/{BUILD}/certifi
numpy @ file:///croot/numpy_and_numpy_base_1701295038894/{BUILD}/dist/numpy-1.26.2-cp311-cp311-linux_x86_64.whl#sha256=ab
old-ci @ file:///{BUILD}/ci_py311/old-ci_1676823305797/{BUILD}
six @ file:///home/conda/feedstock_root/build_artifacts/six_1620240208055/work
win-inet-pton @ file:///D:/bld/win_inet_pton_1667051142467/work
flash_attn @ https://host.example/wheels/flash_attn-2.8.0%2Bcu12torch2.7-cp311-cp311-linux_x86_64.whl#sha256=cd
local-ops @ file:///C:/Users/me/wheels/local_ops-0.3-py3-none-any.whl
renamed @ file:///srv/wheels/other-0.3-py3-none-any.whl
archive @ https://github.com/a/archive/archive/refs/tags/v2.1.zip
transformers @ git+https://me:s3cr3t@github.com/huggingface/transformers.git@{COMMIT}
peft @ git+ssh://git@github.com/huggingface/peft.git@main
-e git+https://github.com/a/dflash.git@{COMMIT}#egg=DFlash_Train&subdirectory=python
# Editable install with no version control (kernels==0.0.1)
-e c:\\users\\me me\\kernels
# Editable Git install with no remote (recipes==1.0.dev0)
-e /home/me/recipes
distro-info==1.1+ubuntu0.2
python-apt===2.4.0ubuntu4
torch_scatter==2.1.2+pt27cu126
torch==2.9.0a0+git46e9aac
broken==0+unknown

[notice] A new release of pip is available: 24.0 -> 26.1
[notice] To update, run: pip install --upgrade pip
"""


def test_plain_lines_and_their_names_normalised() -> None:
    snapshot = read(PLAIN)
    assert snapshot.form == "pip freeze"
    assert snapshot.origin == "given.txt"
    assert pins(snapshot) == {"accelerate": "1.2.0", "flash-attn": "2.8.0", "torch": "2.11.0+cu130", "triton": "3.6.0"}
    assert [each.name for each in snapshot.distributions] == sorted(pins(snapshot))
    assert snapshot.cuda == "cu130"
    assert snapshot.python is None
    assert snapshot.variables is None
    assert snapshot.cache is None
    assert not snapshot.unread
    assert not snapshot.partial
    assert any("Python" in sentence for sentence in snapshot.missing)


def test_every_quirk_is_read_or_said_to_be_unknown() -> None:
    snapshot = read(QUIRKS)
    assert not snapshot.unread
    assert pins(snapshot) == {
        "absl-py": None,
        "certifi": None,
        "numpy": "1.26.2",
        "six": None,
        "old-ci": None,
        "win-inet-pton": None,
        "flash-attn": "2.8.0+cu12torch2.7",
        "local-ops": "0.3",
        "renamed": None,
        "archive": None,
        "transformers": None,
        "peft": None,
        "dflash-train": None,
        "kernels": "0.0.1",
        "recipes": "1.0.dev0",
        "distro-info": "1.1+ubuntu0.2",
        "python-apt": "2.4.0ubuntu4",
        "torch-scatter": "2.1.2+pt27cu126",
        "torch": "2.9.0a0+git46e9aac",
        "broken": "0+unknown",
    }
    for each in snapshot.distributions:
        assert each.version is not None or each.note, f"{each.name}: why is its version unknown?"
    conda = {each.name for each in snapshot.distributions if each.manager == "conda"}
    assert conda == {"absl-py", "certifi", "numpy", "old-ci", "six", "win-inet-pton"}
    assert all("croot" not in each.source for each in snapshot.distributions)
    assert snapshot.cuda is None


def test_a_folder_of_one_s_own_is_not_conda_s() -> None:
    snapshot = read("torch==2.11.0\nlocal-ops @ file:///home/me/bld/ci_3/local_ops\n")
    assert only(snapshot, "local-ops").manager == "pip"
    assert only(snapshot, "local-ops").source == "file:///home/me/bld/ci_3/local_ops"


def test_sources_keep_the_commit_and_lose_the_credentials() -> None:
    snapshot = read(QUIRKS)
    assert only(snapshot, "transformers").source == f"git+https://github.com/huggingface/transformers.git@{COMMIT}"
    assert only(snapshot, "peft").source == "git+ssh://git@github.com/huggingface/peft.git@main"
    assert "neither is the commit" in only(snapshot, "peft").note
    assert only(snapshot, "dflash-train").source == f"git+https://github.com/a/dflash.git@{COMMIT}#subdirectory=python"
    assert only(snapshot, "kernels").source == "c:\\users\\me me\\kernels"
    assert "s3cr3t" not in repr(snapshot)


def test_an_invalid_version_is_kept_as_it_is_and_said_to_be_none() -> None:
    assert "no valid version" in only(read(QUIRKS), "python-apt").note
    assert not only(read(QUIRKS), "distro-info").note


def test_an_editable_installation_without_a_name_is_listed() -> None:
    snapshot = read("torch==2.11.0\nnumpy==2.1.0\n-e file:///home/me/kernels\n# a comment\n-e /home/me/other\n")
    assert [(each.line, each.text) for each in snapshot.unread] == [
        (3, "-e file:///home/me/kernels"),
        (5, "-e /home/me/other"),
    ]


def test_a_name_in_a_comment_belongs_to_the_next_line_only() -> None:
    told = "# Editable install with no version control (kernels==0.0.1)\n"
    snapshot = read(f"{told}torch==2.11.0\n-e /home/me/other\n")
    assert pins(snapshot) == {"torch": "2.11.0"}
    assert len(snapshot.unread) == 1


def test_what_pip_warns_of_an_unreadable_distribution_is_listed() -> None:
    snapshot = read(f"WARNING: Ignoring invalid distribution ~orch (/opt/venv/lib)\n{PLAIN}")
    (left,) = snapshot.unread
    assert (left.line, "~orch" in left.text) == (1, True)


def test_a_foreign_line_is_listed_with_its_number_and_without_its_credentials() -> None:
    snapshot = read(f"{PLAIN}see https://me:s3cr3t@host.example/log for the rest of it\n")
    (left,) = snapshot.unread
    assert left.line == 5
    assert "s3cr3t" not in left.text


def test_a_password_is_not_shown_even_of_a_url_that_is_none() -> None:
    for text in ("see ://me:s3cr3t@host.example/x", "//s3cr3t@host.example y", "scp me:s3cr3t@host.example:x y"):
        assert "s3cr3t" not in repr(read(f"{PLAIN}{text}\n").unread)


def test_two_environments_in_one_file_are_refused() -> None:
    error = refusal(f"{PLAIN}\n$ pip freeze\n{PLAIN.replace('2.11.0+cu130', '2.10.0')}")
    assert error.place == "line 9"
    assert "2.11.0+cu130" in error.found
    assert "line 3" in error.found


def test_the_same_line_twice_is_no_contradiction() -> None:
    assert pins(read(PLAIN + PLAIN)) == pins(read(PLAIN))


def test_pip_and_conda_that_disagree_are_both_there() -> None:
    built = f"numpy @ file:///croot/numpy_1/{BUILD}/dist/numpy-1.26.2-cp311-cp311-linux_x86_64.whl"
    snapshot = read(f"torch==2.11.0\n{built}\nnumpy==2.1.0\n")
    assert [(each.manager, each.version) for each in snapshot.of("NumPy")] == [("conda", "1.26.2"), ("pip", "2.1.0")]
    agreed = read(f"torch==2.11.0\n{built}\nnumpy==1.26.2\n")
    assert [each.manager for each in agreed.of("numpy")] == ["conda"]


def test_more_foreign_than_own_lines_are_refused_with_the_first() -> None:
    error = refusal("torch==2.11.0\nsome words of mine\nand more of them\n")
    assert "no form" in error.found or "line 2" in error.place


def test_uv_s_words_above_the_list_tell_python() -> None:
    assert read(f"Using Python 3.12.1 environment at: /opt/venv\n{PLAIN}").python == "3.12.1"


def test_cuda_is_read_from_the_runtime_when_torch_s_version_has_no_label() -> None:
    assert read("torch==2.9.1\nnvidia-cuda-runtime-cu12==12.8.90\n").cuda == "cu128"
    assert read("torch==2.9.1\nnumpy==2.1.0\n").cuda is None
    assert read("torch==2.9.1+cpu\nnumpy==2.1.0\n").cuda == "cpu"
    assert read("torch==2.9.1+rocm6.2\n").cuda == "rocm6.2"


def test_a_list_without_an_end_may_be_cut_off() -> None:
    assert any("cut off" in sentence for sentence in read(PLAIN + "zipp==3.2").missing)
    assert not any("cut off" in sentence for sentence in read(PLAIN).missing)


@pytest.mark.parametrize(
    "prompt",
    [
        "$ pip freeze",
        "% pip freeze",
        "(venv) $ python -m pip freeze",
        "root@3f2a9c:/workspace# pip freeze",
        "[me@login2 runs]$ uv pip freeze",
        "me@mac ~ % pip freeze",
        "(venv) PS C:\\Users\\me> pip freeze",
        "C:\\Users\\me me>pip freeze",
        ">>> ",
        "!pip freeze",
        "+ pip freeze",
        "pip freeze",
        "root@3f2a9c:/workspace#",
        "```text",
        "\x1b[33mWARNING: You are using pip version 21.2; however, version 26.1 is available.\x1b[0m",
        "You should consider upgrading via the 'pip install --upgrade pip' command.",
    ],
)
def test_what_a_terminal_or_a_page_adds_is_passed_over(prompt: str) -> None:
    snapshot = read(f"{prompt}\n{PLAIN}{prompt}\n")
    assert pins(snapshot) == pins(read(PLAIN))
    assert not snapshot.unread


def test_lines_that_look_like_a_prompt_are_not_passed_over() -> None:
    snapshot = read("pkg@https://host.example/a.zip # mine\npip==26.1\ntorch==2.11.0\npython-dateutil==2.9.0\n")
    assert {"pip", "torch", "python-dateutil", "pkg"} == set(pins(snapshot))


def test_only_what_it_does_not_list_is_told_to_be_left_out() -> None:
    def said(*names: str) -> str:
        return " ".join(read("".join(f"{name}==1.0\n" for name in ("torch", *names))).missing)

    assert "It does not list pip, setuptools and wheel" in said()
    assert "It does not list pip and wheel" in said("setuptools")
    assert "does not list" not in said("pip", "setuptools", "wheel")

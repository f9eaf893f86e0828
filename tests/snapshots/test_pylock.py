from __future__ import annotations

import pytest

from bisect_env.snapshots.records import Target
from tests.snapshots.reads import LINUX, WINDOWS, only, pins, read, refusal

LOCK = """\
lock-version = "1.0"
environments = ["sys_platform == 'linux'", "sys_platform == 'win32'"]
requires-python = ">=3.10"
extras = ["cuda"]
dependency-groups = ["dev", "lint"]
default-groups = ["dev"]
created-by = "a tool"

[[packages]]
name = "torch"
version = "2.9.1"
marker = "sys_platform == 'win32'"
index = "https://pypi.org/simple"
wheels = [{url = "https://host.example/torch-2.9.1-cp312-cp312-win_amd64.whl", hashes = {sha256 = "aa"}}]

[[packages]]
name = "torch"
version = "2.9.1+cu128"
marker = "sys_platform == 'linux'"
wheels = [{url = "https://host.example/torch-2.9.1%2Bcu128-cp312-cp312-linux_x86_64.whl", hashes = {sha256 = "ab"}}]

[[packages]]
name = "triton"
marker = "'cuda' in extras"
wheels = [{path = "wheels/triton-3.5.1-py3-none-any.whl", hashes = {sha256 = "ac"}}]

[[packages]]
name = "pytest"
version = "8.0"
marker = "'dev' in dependency_groups"
sdist = {name = "pytest-8.0.tar.gz", url = "https://host.example/pytest-8.0.tar.gz", hashes = {sha256 = "ad"}}

[[packages]]
name = "ruff"
version = "0.9.0"
marker = "'lint' in dependency_groups"
sdist = {name = "ruff-0.9.0.tar.gz", url = "https://host.example/ruff-0.9.0.tar.gz", hashes = {sha256 = "ae"}}

[[packages]]
name = "peft"
[packages.vcs]
type = "git"
url = "https://me:s3cr3t@github.com/huggingface/peft.git"
requested-revision = "main"
commit-id = "0123456789abcdef0123456789abcdef01234567"

[[packages]]
name = "kernels"
[packages.directory]
path = "packages/kernels"
editable = true

[[packages]]
name = "flash-attn"
[packages.archive]
url = "https://host.example/flash_attn-2.8.0-cp312-cp312-linux_x86_64.whl"
hashes = {sha256 = "af"}
"""


def test_what_is_installed_on_the_host() -> None:
    snapshot = read(LOCK)
    assert snapshot.form == "pylock.toml"
    assert pins(snapshot) == {
        "torch": "2.9.1+cu128",
        "pytest": "8.0",
        "peft": None,
        "kernels": None,
        "flash-attn": "2.8.0",
    }
    assert snapshot.cuda == "cu128"
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert only(snapshot, "peft").source == f"git+https://github.com/huggingface/peft.git@{commit}"
    assert only(snapshot, "kernels").source == "packages/kernels"
    assert "s3cr3t" not in repr(snapshot)
    assert any(
        "group dev; not counted" in sentence and "extra cuda, group lint" in sentence for sentence in snapshot.missing
    )
    assert not snapshot.unread


def test_extras_groups_and_platforms_choose() -> None:
    chosen = LINUX.choosing("cuda,lint,-dev")
    assert {"triton": "3.5.1", "ruff": "0.9.0"}.items() <= pins(read(LOCK, chosen)).items()
    assert "pytest" not in pins(read(LOCK, chosen))
    assert pins(read(LOCK, WINDOWS))["torch"] == "2.9.1"


def test_what_it_does_not_offer_cannot_be_chosen() -> None:
    assert "cuda" in refusal(LOCK, LINUX.choosing("cuda128")).wanted


def test_a_lock_for_other_hosts_is_refused() -> None:
    error = refusal(LOCK, Target("3.12.1", "darwin", "arm64"))
    assert error.place == "environments"
    assert "darwin" in error.wanted


def test_a_python_that_it_is_not_for_is_replaced_by_the_lowest_and_that_is_said() -> None:
    snapshot = read(LOCK, Target("3.9.2", "linux", "x86_64"))
    assert any("Python 3.10" in sentence and "3.9.2 is none" in sentence for sentence in snapshot.missing)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('lock-version = "1.0"', 'lock-version = "9.0"'), "lock-version"),
        (('created-by = "a tool"', ""), "created-by"),
        (('name = "triton"\n', ""), "name"),
        (("marker = \"sys_platform == 'win32'\"", 'marker = "sys_platform is it"'), "marker"),
        (('requires-python = ">=3.10"', 'requires-python = "new"'), "requires-python"),
        (('requires-python = ">=3.10"', 'requires-python = "<3"'), "no Python 3"),
    ],
)
def test_what_pep_751_does_not_allow_is_refused_with_its_place(change: tuple[str, str], words: str) -> None:
    error = refusal(LOCK.replace(*change))
    assert words in str(error)


def test_one_that_is_cut_off_says_where() -> None:
    assert refusal(LOCK[:900]).place.startswith("line ")


def test_two_entries_that_both_hold_are_a_contradiction() -> None:
    error = refusal(LOCK.replace("marker = \"sys_platform == 'win32'\"", "marker = \"os_name == 'posix'\""), LINUX)
    assert "torch 2.9.1" in error.found

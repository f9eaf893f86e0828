"""uv.lock where uv itself cannot be asked: other hosts, other sources, damage."""

from __future__ import annotations

import re

import pytest

from bisect_env.snapshots.records import Target
from tests.snapshots.reads import LINUX, WINDOWS, only, pins, read, refusal

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PYPI = '{ registry = "https://pypi.org/simple" }'
CUDA = '{ registry = "https://download.pytorch.org/whl/cu128" }'

LOCK = (
    """\
version = 1
revision = 3
requires-python = ">=3.11"
resolution-markers = [
    "python_full_version >= '3.13' and sys_platform == 'linux'",
    "python_full_version < '3.13' and sys_platform == 'linux'",
    "sys_platform != 'linux'",
]

[[package]]
name = "flash-attn"
version = "2.8.0"
source = { url = "https://me:s3cr3t@host.example/flash_attn-2.8.0-py3-none-any.whl" }

[[package]]
name = "kernels"
source = { directory = "../kernels" }

[[package]]
name = "peft"
version = "0.14.0"
source = { git = "https://me:s3cr3t@github.com/huggingface/peft?rev=main&subdirectory=lib#COMMIT" }

[[package]]
name = "private-ops"
version = "1.0"
source = { registry = "https://me:s3cr3t@wheels.example/simple" }

[[package]]
name = "torch"
version = "2.9.1"
source = PYPI
resolution-markers = [
    "sys_platform != 'linux'",
]

[[package]]
name = "torch"
version = "2.9.1+cu128"
source = CUDA
resolution-markers = [
    "python_full_version >= '3.13' and sys_platform == 'linux'",
    "python_full_version < '3.13' and sys_platform == 'linux'",
]
dependencies = [
    { name = "triton", marker = "platform_machine == 'x86_64'" },
]

[[package]]
name = "training"
version = "0.1.0"
source = { virtual = "." }
dependencies = [
    { name = "flash-attn" },
    { name = "kernels" },
    { name = "peft" },
    { name = "private-ops" },
    { name = "torch", version = "2.9.1", source = PYPI, marker = "sys_platform != 'linux'" },
    { name = "torch", version = "2.9.1+cu128", source = CUDA, marker = "sys_platform == 'linux'" },
]

[package.optional-dependencies]
plots = [
    { name = "unused" },
]

[[package]]
name = "triton"
version = "3.5.1"
source = PYPI

[[package]]
name = "unused"
version = "1.0"
source = PYPI
""".replace("COMMIT", COMMIT)
    .replace("PYPI", PYPI)
    .replace("CUDA", CUDA)
)


def test_the_entry_of_torch_follows_the_host() -> None:
    assert pins(read(LOCK))["torch"] == "2.9.1+cu128"
    assert read(LOCK).cuda == "cu128"
    assert pins(read(LOCK, WINDOWS))["torch"] == "2.9.1"
    assert "triton" in pins(read(LOCK))
    assert "triton" not in pins(read(LOCK, Target("3.12", "linux", "aarch64")))


def test_the_project_itself_is_none_of_them_and_what_it_does_not_need_is_named() -> None:
    snapshot = read(LOCK)
    assert snapshot.form == "uv.lock"
    assert set(pins(snapshot)) == {"flash-attn", "kernels", "peft", "private-ops", "torch", "triton"}
    (counted,) = [sentence for sentence in snapshot.missing if sentence.startswith("Counted")]
    assert counted.endswith(": extra plots.")
    assert any("not installed" in sentence and "unused" in sentence for sentence in snapshot.missing)
    assert pins(read(LOCK, LINUX.choosing("plots")))["unused"] == "1.0"


def test_what_it_does_not_offer_cannot_be_chosen() -> None:
    assert "plots (the nearest known one)" in refusal(LOCK, LINUX.choosing("plot")).wanted
    assert "plots" in refusal(LOCK, LINUX.choosing("-dev")).wanted


def test_sources_keep_the_commit_and_lose_the_credentials() -> None:
    snapshot = read(LOCK)
    assert only(snapshot, "peft").source == f"git+https://github.com/huggingface/peft@{COMMIT}#subdirectory=lib"
    assert only(snapshot, "flash-attn").source == "https://host.example/flash_attn-2.8.0-py3-none-any.whl"
    assert only(snapshot, "private-ops").note == "from https://wheels.example/simple"
    assert (only(snapshot, "kernels").version, only(snapshot, "kernels").source) == (None, "../kernels")
    assert only(snapshot, "kernels").note
    assert "s3cr3t" not in repr(snapshot)


def test_a_python_that_it_is_not_for_is_replaced_by_the_lowest_and_that_is_said() -> None:
    snapshot = read(LOCK, Target("3.9.2", "linux", "x86_64"))
    assert any("Python 3.11" in sentence and "3.9.2 is none" in sentence for sentence in snapshot.missing)
    assert pins(snapshot) == pins(read(LOCK))


def test_entries_between_which_nothing_decides_are_listed() -> None:
    undecided = LOCK.replace('{ name = "peft" }', '{ name = "peft" },\n    { name = "twice" }') + "".join(
        f'\n[[package]]\nname = "twice"\nversion = "{version}"\nsource = {{ registry = "https://pypi.org/simple" }}\n'
        for version in (1, 2)
    )
    snapshot = read(undecided)
    assert "twice" not in pins(snapshot)
    (left,) = snapshot.unread
    assert "several" in left.why


def test_a_marker_that_cannot_be_decided_is_listed() -> None:
    snapshot = read(LOCK.replace('{ name = "peft" }', '{ name = "peft", marker = "platform_version == \'5\'" }'))
    assert "peft" not in pins(snapshot)
    assert [each.text for each in snapshot.unread] == ["peft"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("version = 1\n", "version = 2\n"), "version"),
        (('requires-python = ">=3.11"', 'requires-python = "new"'), "requires-python"),
        (('requires-python = ">=3.11"', "requires-python = 3"), "requires-python"),
        (('name = "kernels"\nsource', "source"), "package[1].name"),
        (('source = { directory = "../kernels" }', ""), "package[1].source"),
        (('version = "0.14.0"', "version = 0.14"), "package[2].version"),
        (('source = { virtual = "." }', 'source = { registry = "https://pypi.org/simple" }'), "package"),
        (('[[package]]\nname = "triton"', '[[package]]\nname = "tritonn"'), "package"),
        (('plots = [\n    { name = "unused" },\n]', "plots = 3"), "package[6].optional-dependencies.plots"),
        (
            ("resolution-markers = [\n    \"sys_platform != 'linux'\",\n]\n\n", "resolution-markers = [1]\n\n"),
            "package[4]",
        ),
    ],
)
def test_damage_is_refused_with_its_place(change: tuple[str, str], place: str) -> None:
    assert change[0] in LOCK
    assert refusal(LOCK.replace(*change, 1), WINDOWS if "tritonn" not in change[1] else LINUX).place.startswith(place)


def test_one_that_is_cut_off_anywhere_is_refused() -> None:
    for end in range(200, len(LOCK) - 140, 37):
        refusal(LOCK[:end])


def test_one_made_for_other_platforms_is_refused() -> None:
    supported = LOCK.replace(
        "requires-python", "supported-markers = [\n    \"sys_platform == 'linux'\",\n]\nrequires-python"
    )
    assert pins(read(supported)) == pins(read(LOCK))
    assert refusal(supported, WINDOWS).place == "supported-markers"


def test_a_prompt_above_it_is_passed_over() -> None:
    assert pins(read(f"$ cat uv.lock\n{LOCK}")) == pins(read(LOCK))


def test_one_version_of_two_indexes_is_told_apart_by_its_source() -> None:
    same = LOCK.replace("2.9.1+cu128", "2.9.1")
    assert "download.pytorch.org" in only(read(same), "torch").note
    assert not only(read(same, WINDOWS), "torch").note
    unforked = re.sub(r'resolution-markers = \[\n    "(?:sys|python)[^\]]*\]\n', "", same)
    assert "download.pytorch.org" in only(read(unforked), "torch").note

"""Lightning's ``collect_env_details``: all packages, and which report is meant when several were posted."""

from __future__ import annotations

import re

import pytest

from bisect_env.errors import BadInput
from bisect_env.snapshots.reading import read_text
from tests.snapshots.posted import LIGHTNING, OLD_LIGHTNING


def test_a_report() -> None:
    found = read_text(LIGHTNING, "x")
    assert found.form == "Lightning's collect_env_details"
    assert {each.name: each.version for each in found.distributions} == {
        "absl-py": "2.0.0",
        "autorom-accept-rom-license": "0.6.1",
        "broken": None,
        "lightning-utilities": "0.14.2",
        "raytorch": "0.1.0+aeaaf25",
        "torch": "2.7.1+cu128",
        "torchmetrics": "1.7.0",
        "transformers": "4.52.1",
    }
    assert found.of("broken")[0].note
    assert (found.python, found.platform, found.cuda) == ("3.11.5", "Linux 5.15.0-91-generic", "cu128")
    assert found.gpus == ("NVIDIA GeForce RTX 4090",) * 2
    assert not found.partial and found.unread == ()


def test_an_old_one_lists_a_handful() -> None:
    found = read_text(OLD_LIGHTNING, "x")
    assert {each.name: each.version for each in found.distributions} == {
        "numpy": "1.18.1",
        "pytorch-lightning": "1.0.4",
        "torch": "1.7.0",
    }
    assert found.partial and found.gpus == () and found.cuda is None and found.unread == ()


def test_one_that_was_cut_off_may_lack_packages() -> None:
    found = read_text(LIGHTNING[: LIGHTNING.index("* System")], "x")
    assert found.partial and any("may be cut off" in sentence for sentence in found.missing)


@pytest.mark.parametrize(
    "pasted",
    [
        LIGHTNING.replace("\t", "        "),
        LIGHTNING.replace("\t", ""),
        re.sub(r"(?m)^\s*[-*] ", "", LIGHTNING),
        "\n".join(f"> {line}" for line in LIGHTNING.split("\n")),
    ],
    ids=["spaces", "flat", "without bullets", "quoted"],
)
def test_pasted(pasted: str) -> None:
    plain, found = read_text(LIGHTNING, "x"), read_text(pasted, "x")
    assert (found.distributions, found.gpus, found.python) == (plain.distributions, plain.gpus, plain.python)
    assert found.unread == ()


def test_good_and_bad_in_one_post() -> None:
    with pytest.raises(BadInput, match="2 reports in one text") as error:
        read_text(LIGHTNING + LIGHTNING.replace("2.7.1+cu128", "2.8.0+cu128"), "post.md")
    assert "post.md#1 for the one at line 4 (torch: 2.7.1+cu128)" in str(error.value)
    assert "post.md#2 for the one at line 37 (torch: 2.8.0+cu128)" in str(error.value)


def test_sections_that_contradict_each_other() -> None:
    with pytest.raises(BadInput, match=r"torch 2.7.1\+cu128, and torch 2.8.0 at line 12"):
        read_text(LIGHTNING.replace("2.7.1+cu128", "2.8.0", 1), "x")


def test_what_is_no_version_is_listed() -> None:
    found = read_text(LIGHTNING.replace("2.0.0", "git main of May"), "x")
    assert [(each.line, each.why) for each in found.unread] == [(15, "no version")]

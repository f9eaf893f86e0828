"""``bisect-env diff`` as a user runs it: real processes, a real index on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.index import Index
from tests.support.wheels import Wheels


def diff(folder: Path, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bisect_env", "diff", *args],
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def sides(tmp_path: Path, wheels: Wheels, index: Index) -> Path:
    for torch, triton in (("2.8.0", "3.4.0"), ("2.11.0", "3.6.0")):
        index.add(wheels.wheel("torch", torch, requires=[f"triton=={triton}"]))
        index.add(wheels.wheel("triton", triton))
    for version in ("4.52.4", "5.8.1"):
        index.add(wheels.wheel("transformers", version))
    (tmp_path / "good.txt").write_text("torch==2.8.0\ntriton==3.4.0\ntransformers==4.52.4\nprivate==1\nsix==1\n")
    (tmp_path / "bad.txt").write_text("torch==2.11.0\ntriton==3.6.0\ntransformers==5.8.1\nprivate==2\nsix==1\n")
    return tmp_path


def test_the_table_names_factors_groups_and_what_is_held(sides: Path, index: Index) -> None:
    told = diff(sides, "good.txt", "bad.txt", "--index", index.url)
    assert (told.returncode, told.stderr) == (0, "")
    lines = [line.split() for line in told.stdout.splitlines()]
    assert ["torch", "distribution", "2.8.0", "2.11.0", "triton"] in lines
    assert ["transformers", "distribution", "4.52.4", "5.8.1"] in lines
    assert "  torch: torch 2.8.0 -> 2.11.0, triton 3.4.0 -> 3.6.0" in told.stdout.splitlines()
    assert "  private 1 -> 2: no index or folder that is used here has private" in told.stdout.splitlines()
    assert "six" not in told.stdout


def test_json_says_the_same(sides: Path, index: Index) -> None:
    told = diff(sides, "good.txt", "-", "--json", "--index", index.url, stdin=(sides / "bad.txt").read_text())
    document = json.loads(told.stdout)
    assert told.returncode == 0
    assert document["bad"] == {"origin": "-", "form": "pip freeze"}
    assert [factor["name"] for factor in document["factors"]] == ["torch", "transformers"]
    assert document["factors"][0]["members"][1] == {
        "name": "triton",
        "good": "3.4.0",
        "bad": "3.6.0",
        "good_source": "",
        "bad_source": "",
    }
    assert [held["name"] for held in document["held"]] == ["private"]


def test_nothing_to_compare_has_its_own_exit_code(sides: Path, index: Index) -> None:
    told = diff(sides, "good.txt", "good.txt", "--index", index.url)
    assert told.returncode == 4
    assert "no factor that can be changed here" in told.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [(("good.txt", "none.txt"), "none.txt: there is no such file"), (("-", "-"), "standard input for both")],
)
def test_what_cannot_be_read_is_named(sides: Path, args: tuple[str, str], words: str) -> None:
    told = diff(sides, *args, "--offline")
    assert told.returncode == 2
    assert words in told.stderr
    assert told.stdout == ""


def test_credentials_of_an_index_are_not_shown(sides: Path) -> None:
    told = diff(sides, "good.txt", "bad.txt", "--index", "http://me:hidden@127.0.0.1:9/simple")
    assert told.returncode == 0
    assert "hidden" not in told.stdout + told.stderr

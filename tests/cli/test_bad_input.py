"""Bad input through the command line: exit 2, the file and the place named, and nothing written, not even a folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from bisect_env.cli.main import main
from tests.support.index import Index
from tests.support.racing import World
from tests.support.wheels import Wheels

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
THOUSANDS = "axes: {" + ", ".join(f"P{number}: [{', '.join(map(str, range(10)))}]" for number in range(4)) + "}\n"

REST = "reproducer: compile_race\n"

CASES = {
    "unknown key": ("axis: {torch: [2.11.0]}\n", ["line 1, column 1 (axis)", "unknown key 'axis'", "axes"]),
    "wrong type": ("axes: {torch: 2.11.0}\ntrials: many\n", ["line 2, column 1 (trials)", "'many'", "a whole number"]),
    "empty axis": ("axes: {torch: []}\n", ["line 1, column 8 (axes.torch)", "an empty axis", "at least one level"]),
    "typo in a version": (
        "axes:\n  torch: [2.1l.0]\n",
        ["line 2, column 11 (axes.torch[0])", "'2.1l.0' is no version"],
    ),
    "range without a release": (
        'axes: {torch: ">=9"}\nindex: {urls: [INDEX]}\n',
        ["line 1, column 8 (axes.torch)", "no release", ">=9"],
    ),
    "duplicate cells": (
        "axes: {torch: 2.11.0}\ninclude: [{torch: 2.12.0}, {torch: 2.12.0}]\n",
        ["line 2, column 28 (include[1])", "two cells are the same: torch 2.12.0"],
    ),
    "ten thousand cells": (THOUSANDS, ["line 1, column 1 (axes)", "10000 cells", "limits"]),
    "no mapping": (b"- torch\n- transformers\n", ["line 1, column 1", "a list", "a mapping"]),
    "anchor bomb": (BOMB, ["line ", "anchors", "fewer values"]),
    "no YAML": ("axes: {torch: [2.11.0\ntrials: 3\n", ["line 2"]),
    "no text": (b"axes: \xff\xfe\n", ["UTF-8"]),
}


def refused(args: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The message of a command that ends with 2, on standard error alone."""
    with pytest.raises(SystemExit) as ended:
        main(list(args))
    said = capsys.readouterr()
    assert ended.value.code == 2, said.err
    assert said.out == "" and "Traceback" not in said.err
    return said.err


@pytest.mark.parametrize("name", CASES)
def test_bad_matrix_files(
    name: str,
    tmp_path: Path,
    index: Index,
    wheels: Wheels,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, words = CASES[name]
    index.add(wheels.wheel("torch", "2.11.0"))
    monkeypatch.chdir(tmp_path)
    data = (text.replace("INDEX", index.url) + REST).encode() if isinstance(text, str) else text
    (tmp_path / "bad.yaml").write_bytes(data)
    before = sorted(tmp_path.rglob("*"))
    message = refused(["matrix", "bad.yaml"], capsys)
    assert message.startswith("bisect-env: bad.yaml: ") and "\n  wanted: " in message
    for word in words:
        assert word in message
    assert len(message) < 2000
    assert sorted(tmp_path.rglob("*")) == before, "something was written"


def test_files_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    assert "nowhere.yaml: no such file" in refused(["matrix", "nowhere.yaml"], capsys)
    for name in ("folder.yaml", "loop.yaml"):
        assert refused(["matrix", name], capsys).startswith(f"bisect-env: {name}: ")
    if os.getuid():
        (tmp_path / "secret.yaml").touch(mode=0)
        assert "secret.yaml: " in refused(["matrix", "secret.yaml"], capsys)
    assert not (tmp_path / ".bisect-env").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--format", "fancy"], ["--format", "'fancy' is not a table format", "github"]),
        (["--fail-on", "race,rase"], ["--fail-on", "'rase' is not a verdict", "race"]),
        (["--cell", "tensorflow*"], ["--cell", "no cell matches tensorflow*", "torch-2.11.0"]),
        (["--gpus", "41"], ["--gpus", "'41'"]),
        (["--trials", "0"], ["--trials", "0 is not in the range"]),
        (["--max-race-rate", "0"], ["--max-race-rate"]),
        (["--frech"], ["No such option", "--fresh"]),
    ],
)
def test_bad_options(
    args: list[str],
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "matrix.yaml").write_text("axes: {torch: 2.11.0}\nreproducer: compile_race\n")
    message = refused(["matrix", "matrix.yaml", *args], capsys)
    for word in words:
        assert word in message
    assert not (tmp_path / ".bisect-env").exists()


def test_show_and_clean_without_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (["show", "abc"], ["clean"], ["clean", "--dry-run"]):
        assert "--store: .bisect-env: there is no store" in refused(command, capsys)
    assert list(tmp_path.iterdir()) == []


def test_as_a_process_of_its_own(world: World) -> None:
    (world.folder / "bad.yaml").write_text(f"axes:\n  torch: [2.11.0]\n  transfomers: [5.8.1]\n{REST}")
    finished = world.run("matrix", "bad.yaml")
    assert finished.returncode == 2 and finished.stdout == ""
    assert finished.stderr.startswith("bisect-env: bad.yaml: line 3, column 3 (axes.transfomers): unknown name")
    assert not world.store.exists()


def test_a_version_is_kept_as_it_is_written(world: World) -> None:
    # As a number 2.10 would be 2.1, and another release.
    world.torch("2.1")
    world.torch("2.10")
    world.transformers("5.0")
    world.matrix("axes: {torch: [2.10], transformers: [5.0]}\ntrials: 1\ncontrols: 1\n")
    (cell,) = world.document("matrix.yaml")["cells"]
    assert cell["levels"] == {"torch": "2.10", "transformers": "5.0"} and cell["environment"]["pins"]["torch"] == "2.10"


@pytest.mark.parametrize(
    "args",
    [
        ["matrix", "m.yaml", "--max-race-rate", "nan"],
        ["bisect", "--good", "a", "--bad", "b", "--confidence", "nan", "--", "true"],
        ["simulate", "--fail-rate", "nan"],
        ["simulate", "--confidence", "nan"],
    ],
)
def test_nan_is_no_number(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """No comparison finds it outside of a range: it must be refused as what it is."""
    assert "no number" in refused(args, capsys)

"""A file that could not be written in the end is refused before anything is done, by every command that writes one."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click
import pytest

from bisect_env.cli.main import cli
from tests.cli.test_bad_input import refused

COMMANDS: dict[tuple[str, ...], list[str]] = {
    ("matrix",): ["no.yaml"],
    ("report",): ["no.yaml"],
    ("bisect",): ["--good", "no.txt", "--bad", "no.txt"],
    ("bisect", "resume"): [],
    ("bisect", "replay"): ["no.jsonl"],
    ("simulate",): ["--factors", "60", "--fail-rate", "0.1", "--runs", "100000"],
    ("inventory",): [],
    ("gate",): ["--baseline", "no.txt", "--candidate", "no.txt"],
    ("history",): [],
    ("capture",): ["--", "sleep", "60"],
    ("explain",): ["torch=9", "no.yaml"],
    ("inspect",): ["no.name", "--in", "no==1"],
}
"""Each command that writes a file, and what else it is given: what it would take long for, or refuse later."""
FILES = {"--json", "--output", "--html", "--junit"}


def writers(command: click.Command, name: tuple[str, ...] = ()) -> dict[tuple[str, ...], list[str]]:
    """The commands below this one that take the name of a file to write, and their options for it."""
    found = {}
    paths = [each for each in command.params if isinstance(each.type, click.Path) and each.type.file_okay]
    own = [option for each in paths for option in each.opts if option in FILES]
    if own:
        found[name] = own
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            each = command.get_command(context, below)
            assert each is not None
            found |= writers(each, (*name, below))
    return found


CASES = [(name, option) for name, options in writers(cli).items() for option in options]
NAMES = [" ".join([*name, option]) for name, option in CASES]


def test_all_of_them_are_tried() -> None:
    assert set(writers(cli)) == set(COMMANDS)


@pytest.mark.parametrize(("name", "option"), CASES, ids=NAMES)
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere/x", "there is no folder nowhere"),
        ("file/x", "there is no folder file"),
        ("x" * 300, "File name too long"),
    ],
)
def test_refused_at_once(
    name: tuple[str, ...],
    option: str,
    path: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    began = time.monotonic()
    message = refused([*name, option, path, *COMMANDS[name]], capsys)
    assert time.monotonic() - began < 10
    assert message.startswith(f"bisect-env: {option}: {path}: ")
    assert said in message and "\n  wanted: a file" in message
    assert [each.name for each in tmp_path.iterdir()] == ["file"], "something was written"


@pytest.mark.parametrize("name", [name for name, option in CASES if option == "--json"], ids=" ".join)
def test_no_name_is_refused_at_once(
    name: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "--json: no file is named" in refused([*name, "--json", "", *COMMANDS[name]], capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize(("name", "option"), CASES, ids=NAMES)
def test_refused_without_the_right_to_write(
    name: tuple[str, ...],
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "no permission to write it" in refused([*name, option, "locked/x", *COMMANDS[name]], capsys)


@pytest.mark.parametrize("option", ["-o", "--json", "--html", "--junit"])
@pytest.mark.parametrize(
    "words",
    [
        ["matrix", "input"],
        ["gate", "--baseline", "input", "--candidate", "no.txt", "--", "true"],
        ["gate", "--baseline", "no.txt", "--upgrade", "x==1", "--", "python", "input"],
        ["gate", "--baseline", "no.txt", "--requirements", "./input", "--", "true"],
    ],
)
def test_what_is_read_is_not_written_over(
    words: list[str], option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").write_text("torch==2.11.0\n")
    at = words.index("--") if "--" in words else len(words)
    message = refused([*words[:at], option, "input", *words[at:]], capsys)
    assert "names as an input too" in message
    assert (tmp_path / "input").read_text() == "torch==2.11.0\n"

"""Every command that can tell what it would do writes that as a document and into a file, as it does its report."""

from __future__ import annotations

import importlib
import json

import click
import pytest

from bisect_env.cli.main import COMMANDS
from tests.support.racing import World
from tests.support.schemas import matching

SIDES = ("--index", "{url}", "--", "python", "race.py")
ASKED = {
    "matrix --dry-run": ("matrix-plan", ("matrix.yaml",), ()),
    "matrix --static": ("matrix-plan", ("matrix.yaml",), ()),
    "bisect --dry-run": ("bisect-plan", ("--good", "a.txt", "--bad", "b.txt"), SIDES),
    "gate --dry-run": ("gate", ("--baseline", "a.txt", "--candidate", "b.txt"), SIDES),
    "explain --dry-run": ("explain-plan", ("torch-2.11.0", "matrix.yaml"), ()),
}
"""Command and option: name of the schema, words before and behind those of the test."""
TELLING = ("--dry-run", "--static")


def test_none_is_missing_here() -> None:
    found = set()
    for name, module in COMMANDS.items():
        command: click.Command = importlib.import_module(module).command
        options = {option for param in command.params for option in param.opts}
        if "--json" in options:
            found |= {f"{name} {option}" for option in TELLING if option in options}
    assert found == set(ASKED)


@pytest.mark.parametrize("asked", ASKED)
def test_what_would_be_done_is_written_too(world: World, asked: str) -> None:
    for version in ("2.11.0", "2.14.1"):
        world.torch(version)
    world.matrix("axes: {torch: [2.11.0, 2.14.1]}\ntrials: 1\ncontrols: 1\n")
    for name, version in (("a.txt", "2.11.0"), ("b.txt", "2.14.1")):
        (world.folder / name).write_text(f"torch=={version}\n")
    schema, before, behind = ASKED[asked]
    end = [word.format(url=world.index.url) for word in behind]
    done = world.run(*asked.split(), *before, "--json", "plan.json", "-o", "plan.txt", "--html", "plan.html", *end)
    assert done.returncode == 0, done.stderr
    matching(schema, json.loads((world.folder / "plan.json").read_text()))
    assert (world.folder / "plan.txt").read_text() == done.stdout
    assert "--html: nothing was tried, so that file is not written" in done.stderr
    assert not (world.folder / "plan.html").exists()
    printed = world.run(*asked.split(), *before, "--json", "-", *end)
    matching(schema, json.loads(printed.stdout))
    assert not world.trials(counted=False) and not (world.store / "environments").exists()

"""``bisect-env gate --upgrade`` and ``--requirements`` given what cannot be had, what is ignored, and nonsense."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import IndexChoice
from tests.cli.test_bad_input import refused
from tests.support.gating import Gates, answers
from tests.support.racing import World


@pytest.fixture
def gates(world: World) -> Gates:
    found = Gates(world)
    for version in ("1.0", "1.1"):
        found.offer(version)
    found.library("beta", "1.0")
    found.freeze("now.txt", engine="1.0", beta="1.0")
    return found


@pytest.mark.parametrize("wanted", ["nosuchthing", "engine>=9", "engine @ file:///nowhere/engine-1.1-py3-none-any.whl"])
def test_a_change_without_a_version_that_does_not_resolve_fails(gates: Gates, wanted: str) -> None:
    done, found = gates.run("--baseline", "now.txt", "--upgrade", wanted)
    assert done.returncode == 1, f"4 would say that nothing changes: {done.stdout}{done.stderr}"
    assert answers(found)["environment"] == "fail" and "the candidate does not" in done.stdout


def test_a_candidate_of_ranges_that_does_not_resolve_fails(gates: Gates) -> None:
    (gates.world.folder / "ranges.txt").write_text("engine==1.0\nbeta>=9\n")
    done, found = gates.run("--baseline", "now.txt", "--candidate", "ranges.txt")
    assert done.returncode == 1 and answers(found)["environment"] == "fail", done.stdout + done.stderr


def test_an_index_that_a_requirements_file_names_is_told_not_to_be_used(gates: Gates) -> None:
    (gates.world.folder / "new.txt").write_text("--index-url https://packages.example/simple\nengine==1.1\n")
    done = gates.world.run(*gates.words("--baseline", "now.txt", "--requirements", "new.txt", "--dry-run"))
    told = " ".join(done.stdout.split())
    assert done.returncode == 0 and "options about where packages come from are not applied" in told, done.stdout
    assert "https://packages.example/simple" in told


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--upgrade", "engine=1.1"], ["--upgrade: engine=1.1", "NAME==VERSION"]),
        (["--upgrade", "-r new.txt"], ["--upgrade: -r new.txt", "--requirements FILE"]),
        (["--upgrade", "engine", "--trials", "1000000000"], ["--trials: 1000000000", "at most 10000 trials"]),
        (["--upgrade", "engine", "--max-race-rate", "1e-9"], ["--max-race-rate: 1e-09", "at most 10000 trials"]),
        (["--upgrade", "engine", "--no-worse", "0.1", "--trials", "100000"], ["--trials: 100000", "at most 2000"]),
    ],
)
def test_bad_changes_and_amounts_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, args: list[str],
    words: list[str],
) -> None:  # fmt: skip
    (tmp_path / "now.txt").write_text("engine==1.0\n")
    monkeypatch.chdir(tmp_path)
    said = refused(["gate", "--baseline", "now.txt", *args, "--", "true"], capsys)
    assert all(word in said for word in words), said


def test_what_a_base_does_not_tell_is_said_once(gates: Gates, uv: Uv) -> None:
    base = gates.world.folder / "host" / "bin" / "python"
    uv.run(["venv", "--quiet", str(base.parent.parent)])
    installed = uv.run(
        ["pip", "install", "--quiet", "-p", str(base), "engine==1.0"], index=IndexChoice(urls=(gates.world.index.url,))
    )
    assert installed.ok, installed.stderr
    done = gates.world.run(*gates.words("--base", str(base), "--upgrade", "engine==1.1", "--dry-run"))
    told = " ".join(done.stdout.split()).count("Distributions without a source")
    assert done.returncode == 0 and told == 1, done.stdout + done.stderr

"""Names and files that ``bisect`` takes: what means nothing is refused before anything is built."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_bad_input import refused
from tests.support.bisecting import Suspects
from tests.support.git_server import serving
from tests.support.racing import World


@pytest.fixture
def suspects(world: World) -> Suspects:
    """Three that differ, of which nothing fails."""
    found = Suspects(world)
    for name in ("alpha", "beta", "some-thing"):
        world.index.add(world.wheels.wheel(name, "1.0"))
        world.index.add(world.wheels.wheel(name, "2.0"))
    for file, version in (("good.txt", "1.0"), ("bad.txt", "2.0")):
        found.freeze(file, **{"alpha": version, "beta": version, "some-thing": version, "same": "3.0"})
    return found


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--along", "nothing"], ["--along", "'nothing'", "alpha, beta, some-thing"]),
        (["--along", "same"], ["--along", "that differs"]),
        (["--along", "alfa"], ["alpha is the nearest"]),
        (["--without", "nothing"], ["--without", "'nothing'", "alpha, beta, same, some-thing"]),
        (["--without", "alpha", "--along", "alpha"], ["--along", "beta, some-thing"]),
        (["--source", "nothing=."], ["--source", "'nothing'", "alpha"]),
        (["--source", "alpha=nowhere"], ["--source", "nowhere: no such folder"]),
        (["--source", "alpha=https://me:hidden@host/x.git"], ["--source", "credentials in the URL", ".netrc"]),
        (["--signature", " "], ["--signature", "--any-failure"]),
        (["--json", "out", "-o", "./out"], ["--json and --output", "out for both"]),
    ],
)
def test_refused_with_a_plan_or_without(
    suspects: Suspects,
    args: list[str],
    words: list[str],
    dry: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(suspects.world.folder)
    sides = ["--good", "good.txt", "--bad", "bad.txt", "--offline", "--find-links", str(suspects.world.wheels.folder)]
    message = refused(["bisect", *sides, *args, *dry, "--", "true"], capsys)
    for word in words:
        assert word in message
    assert "hidden" not in message
    assert not suspects.world.store.exists(), "nothing was written"


def test_a_repository_that_cannot_be_read_is_refused_before_anything_is_built(
    suspects: Suspects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = suspects.world
    monkeypatch.chdir(world.folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    sides = ["--good", "good.txt", "--bad", "bad.txt", "--index", world.index.url, "--without", "same"]
    (tmp_path / "folder").mkdir()
    with serving(tmp_path, "me", "hidden") as server:
        for source, words in (
            (server.url("x"), "terminal prompts disabled"),
            (server.url("x").replace("//", "//me:hidden@"), "credentials in the URL"),
            ("file:///nowhere/at/all.git", "does not appear to be a git repository"),
            (str(tmp_path / "folder"), "not a git repository"),
            ("http://127.0.0.1:9/x.git", "unable to access"),
        ):
            message = refused(["bisect", *sides, "--source", f"alpha={source}", "--", "true"], capsys)
            assert message.startswith("bisect-env: --source") and words in message, message
            assert "hidden" not in message and "\n  wanted: " in message
    assert not world.store.exists(), "nothing was written"


def test_what_is_left_out_is_no_suspect_and_names_are_taken_as_pip_does(suspects: Suspects) -> None:
    world = suspects.world
    sides = ("--good", "good.txt", "--bad", "bad.txt", "--offline", "--find-links", str(world.wheels.folder))

    def plan(*options: str) -> tuple[int, list[str]]:
        done = world.run("bisect", *sides, *options, "--dry-run", "--json", "plan.json", "--", "true")
        assert "Traceback" not in done.stderr, done.stderr
        found = json.loads(Path(world.folder / "plan.json").read_text())
        return done.returncode, [factor["name"] for factor in found["factors"]]

    everything = ("--without", "same")
    assert plan(*everything) == (0, ["alpha", "beta", "some-thing"])
    assert plan(*everything, "--without", "Some_Thing") == (0, ["alpha", "beta"])
    assert plan(*everything, "--along", "Some_Thing")[0] == 0
    nothing = plan(*everything, "--without", "alpha", "--without", "beta", "--without", "some-thing")
    assert nothing == (4, [])

"""``bisect-env bisect`` as a user runs it: tiny wheels in real environments, interrupted, killed, given nonsense."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_bad_input import refused
from tests.support.bisecting import Suspects
from tests.support.racing import World
from tests.support.schemas import matching

RATE = 0.9


@pytest.fixture
def suspects(world: World) -> Suspects:
    """alpha fails from 1.2 on, beta and gamma never do."""
    found = Suspects(world)
    found.offer("alpha", {"1.0": 0.0, "1.1": 0.0, "1.2": RATE, "1.3": RATE})
    found.offer("beta", {"1.0": 0.0, "2.0": 0.0})
    found.offer("gamma", {"1.0": 0.0, "2.0": 0.0})
    found.freeze("good.txt", alpha="1.0", beta="1.0", gamma="1.0")
    found.freeze("bad.txt", alpha="1.3", beta="2.0", gamma="2.0")
    return found


def asked(suspects: Suspects, *options: str) -> list[str]:
    """The command line of the bisection, as far as the reproducer's command."""
    sides = ["bisect", "--good", "good.txt", "--bad", "bad.txt", "--index", suspects.world.index.url]
    return [*sides, *options, "--", *suspects.command("alpha", "beta", "gamma")]


def document(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text())
    return matching("bisect-plan" if "mixes" in found else "bisect", found)


def answer(found: dict[str, Any]) -> tuple[Any, ...]:
    """What two runs of one bisection must agree in."""
    names = [factor["name"] for factor in found["factors"]]
    versions = found["versions"] and (found["versions"]["last_good"], found["versions"]["first_bad"])
    counts = [(seen["stage"], seen["point"], seen["failures"], seen["passes"]) for seen in found["observations"]]
    return found["answer"], names, versions, found["probability"], counts


def test_the_culprit_and_its_version(suspects: Suspects) -> None:
    folder = suspects.world.folder
    done = suspects.world.run(*asked(suspects, "--json", "out.json", "-o", "out.md"))
    assert done.returncode == 0, done.stderr
    found = document(folder / "out.json")
    assert found["answer"] == "culprit" and [each["name"] for each in found["factors"]] == ["alpha"]
    assert (found["versions"]["last_good"], found["versions"]["first_bad"]) == ("1.1", "1.2")
    assert found["probability"] >= 0.95 and found["confirmation"]["confirmed"]
    assert "RuntimeError: tracing flag was set" in found["signature"]
    assert found["sentence"] in " ".join(done.stdout.split())
    assert "Confirmed on fresh trials" in done.stdout and "alpha" in done.stdout
    markdown = (folder / "out.md").read_text()
    assert markdown.startswith(found["sentence"][:20]) and "## Confirmed on fresh trials" in markdown
    assert "versions were tried" in found["tried"]
    for text in (done.stdout, markdown):
        assert found["tried"] in " ".join(text.split())
    (bisection,) = (suspects.world.store / "bisections").iterdir()
    good, bad = ((bisection / f"{side}.lock.txt").read_text() for side in ("good", "bad"))
    assert "alpha==1.1" in good and "alpha==1.2" in bad and "--hash=sha256:" in bad
    assert str(bisection / "good.lock.txt") in done.stdout.replace("\n", "")
    assert "Traceback" not in done.stderr and "suspects: alpha" in done.stderr


def test_the_same_command_again_prints_the_report_at_once(suspects: Suspects) -> None:
    first = suspects.world.run(*asked(suspects, "--json", "1.json"))
    trials = suspects.world.trials(counted=False)
    again = suspects.world.run(*asked(suspects, "--json", "2.json"))
    resumed = suspects.world.run("bisect", "resume", "--json", "3.json")
    assert first.returncode == again.returncode == resumed.returncode == 0, again.stderr + resumed.stderr
    assert suspects.world.trials(counted=False) == trials, "nothing was tried again"
    found = [answer(document(suspects.world.folder / f"{number}.json")) for number in (1, 2, 3)]
    assert found[0] == found[1] == found[2]
    assert again.stdout == first.stdout == resumed.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_gone_on(suspects: Suspects, number: signal.Signals) -> None:
    options = ["--env", "SLEEP=0.2"]
    process = suspects.world.start(*asked(suspects, *options))
    wait_for_trials(suspects, 3)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in stderr, stderr
    assert "Interrupted. What was measured is kept" in stderr
    assert "bisect-env bisect resume" in stderr
    assert stdout.strip(), "what is known so far"
    finished = suspects.world.run(*asked(suspects, *options, "--json", "out.json"))
    assert finished.returncode == 0, finished.stderr
    assert document(suspects.world.folder / "out.json")["versions"]["first_bad"] == "1.2"


def test_killed_at_any_moment_the_answer_is_that_of_an_undisturbed_run(suspects: Suspects) -> None:
    options = ["--env", "SLEEP=0.1"]
    whole = suspects.world.run(*asked(suspects, *options, "--json", "whole.json", "--store", "undisturbed"))
    assert whole.returncode == 0, whole.stderr
    for seconds in (1.0, 2.0, 1.5):
        process = suspects.world.start(*asked(suspects, *options))
        time.sleep(seconds)
        process.kill()
        process.communicate()
    finished = suspects.world.run(*asked(suspects, *options, "--json", "killed.json"))
    assert finished.returncode == 0, finished.stderr
    found = [document(suspects.world.folder / name) for name in ("whole.json", "killed.json")]
    assert answer(found[0]) == answer(found[1])


def test_log_undo_resume_and_replay(suspects: Suspects) -> None:
    world = suspects.world
    done = world.run(*asked(suspects, "--json", "out.json"))
    assert done.returncode == 0, done.stderr
    log = world.run("bisect", "log")
    assert log.returncode == 0 and "the bad end: " in log.stdout and "alpha 1.0 -> 1.3" in log.stdout
    file = next((world.store / "bisections").iterdir()) / "log.jsonl"
    assert str(file) in log.stdout
    before = file.read_bytes()
    undone = world.run("bisect", "undo")
    assert undone.returncode == 0 and "undone: " in undone.stdout and "bisect-env bisect resume" in undone.stdout
    assert len(world.run("bisect", "log").stdout.splitlines()) < len(log.stdout.splitlines())
    resumed = world.run("bisect", "resume", "--json", "again.json")
    assert resumed.returncode == 0, resumed.stderr
    assert answer(document(world.folder / "again.json"))[:3] == answer(document(world.folder / "out.json"))[:3]
    # Damaged ones are bad input, and nothing is taken over from them.
    lines = before.splitlines(keepends=True)
    damaged = {
        "doubled.jsonl": b"".join(lines[:2] + lines[1:]),
        "seed.jsonl": before.replace(b'"seed": ', b'"seed": "x", "": ', 1).replace(b'"seed":', b'"seed": "x", "": ', 1),
    }
    for name, data in damaged.items():
        (world.folder / name).write_bytes(data)
        refused = world.run("bisect", "replay", name, "--store", "third")
        assert refused.returncode == 2 and name in refused.stderr and "Traceback" not in refused.stderr, refused.stderr
        assert not list((world.folder / "third").glob("bisections/*"))
    # Of another host, and cut off in the middle of a line.
    elsewhere = world.folder / "elsewhere.jsonl"
    elsewhere.write_bytes(before[: len(before) * 2 // 3])
    replayed = world.run("bisect", "replay", "elsewhere.jsonl", "--store", "other", "--json", "replayed.json")
    assert replayed.returncode == 0, replayed.stderr
    assert answer(document(world.folder / "replayed.json"))[:3] == answer(document(world.folder / "out.json"))[:3]


def test_a_variable_is_a_suspect_like_a_package(suspects: Suspects) -> None:
    suspects.freeze("bad.txt", alpha="1.1", beta="2.0", gamma="1.0")
    done = suspects.world.run(*asked(suspects, "--bad-env", f"OMP_RATE={RATE}", "--json", "out.json"))
    assert done.returncode == 0, done.stderr
    found = document(suspects.world.folder / "out.json")
    assert [each["name"] for each in found["factors"]] == ["OMP_RATE"] and "OMP_RATE" in done.stdout


def test_a_plan_builds_and_runs_nothing(suspects: Suspects) -> None:
    done = suspects.world.run(*asked(suspects, "--dry-run", "--json", "plan.json"))
    assert done.returncode == 0, done.stderr
    plan = document(suspects.world.folder / "plan.json")
    assert [factor["name"] for factor in plan["factors"]] == ["alpha", "beta", "gamma"]
    assert "3 suspects" in done.stdout and "Expected" in done.stdout
    assert not suspects.world.trials(counted=False) and not list(suspects.world.store.glob("environments/*"))
    assert not list(suspects.world.store.glob("bisections/*"))


def test_exit_codes(suspects: Suspects) -> None:
    world = suspects.world
    command = suspects.command("alpha", "beta", "gamma")
    suspects.freeze("same.txt", alpha="1.0", beta="1.0", gamma="1.0")
    suspects.freeze("harmless.txt", alpha="1.1", beta="1.0", gamma="1.0")

    def run(good: str, bad: str, *options: str) -> Any:
        return world.run("bisect", "--good", good, "--bad", bad, "--index", world.index.url, *options, "--", *command)

    nothing = run("good.txt", "same.txt")
    assert nothing.returncode == 4 and "do not differ" in nothing.stdout
    unreproduced = run("good.txt", "harmless.txt")
    assert unreproduced.returncode == 1 and "Traceback" not in unreproduced.stderr, unreproduced.stderr
    both = run("bad.txt", "harmless.txt")
    assert both.returncode == 1, "the good side fails"
    short = run("good.txt", "bad.txt", "--budget", "6 trials")
    assert short.returncode == 3 and "6 trials" in short.stdout, short.stdout + short.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], ["--good: not given", "pip freeze", "cell:ID"]),
        (["good.txt", "bad.txt"], ["'good.txt'", "--good SOURCE --bad SOURCE", "log, undo, resume, replay"]),
        (["--good", "good.txt"], ["--bad: not given"]),
        (["--good", "good.txt", "--bad", "bad.txt"], ["--reproducer", "compile_race, dflash", "-- python train.py"]),
        (["--good", "nowhere.txt", "--bad", "bad.txt", "--", "true"], ["nowhere.txt", "no such file"]),
        (["--good", "-", "--bad", "-", "--", "true"], ["standard input for both"]),
        (["--good", "good.txt", "--bad", "bad.txt", "-o", "no/out.md", "--", "true"], ["there is no folder no"]),
        (["--good", "good.txt", "--bad", "bad.txt", "--confidence", "1", "--", "true"], ["--confidence"]),
        (["--frob"], ["No such option", "--help"]),
        (["log"], ["no bisection has been begun", "--good and --bad"]),
        (["undo"], ["no bisection has been begun"]),
        (["resume", "abc"], ["no bisection has been begun"]),
        (["replay", "nowhere.jsonl"], ["nowhere.jsonl"]),
        (["replay", "good.txt"], ["good.txt", "log"]),
    ],
)
def test_wrong_input(
    suspects: Suspects,
    args: list[str],
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(suspects.world.folder)
    message = refused(["bisect", *args], capsys)
    assert len(message) < 2000
    for word in words:
        assert word in message
    assert not suspects.world.store.exists(), "nothing was written"


def test_wrong_input_to_a_process(world: World) -> None:
    done = world.run("bisect", "--good", "nowhere.txt", "--bad", "nowhere.txt", "--", "true")
    assert done.returncode == 2 and done.stdout == "" and "nowhere.txt: there is no such file" in done.stderr


def test_help_teaches(world: World) -> None:
    done = world.run("bisect", "--help")
    assert done.returncode == 0
    for word in ("--good SOURCE", "-- python train.py", "Exit codes", "undo", "cache=cold"):
        assert word in done.stdout
    for name in ("log", "undo", "resume", "replay"):
        assert world.run("bisect", name, "--help").returncode == 0


def wait_for_trials(suspects: Suspects, number: int) -> None:
    deadline = time.monotonic() + 60
    while len(suspects.world.trials(counted=False)) < number:
        assert time.monotonic() < deadline, "no trial was run"
        time.sleep(0.05)

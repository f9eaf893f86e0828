"""``bisect-env gate`` as a user runs it: tiny wheels in real environments, judged, stopped, killed, given nonsense."""

from __future__ import annotations

import json
import shlex
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import IndexChoice
from tests.cli.test_bad_input import refused
from tests.support.gating import CLEAN_TRIALS, PAIRS, Gates, answers
from tests.support.racing import World
from tests.support.schemas import matching

FULL: dict[str, Any] = {"tokens": 1000, "peak": 10**9, "dense": 0, "error": 0.001}


@pytest.fixture
def gates(world: World) -> Gates:
    """``engine`` 1.0 is the baseline; each later version is worse in another way."""
    found = Gates(world)
    for version, worse in (
        ("1.0", {}),
        ("1.1", {}),
        ("1.2", {"race": 1.0}),
        ("1.3", {"tokens": 800}),
        ("1.4", {"peak": 2 * 10**9, "dense": 40, "error": 0.5}),
    ):
        found.offer(version, **FULL | worse)
    found.library("beta", "1.0", "2.0")
    found.freeze("now.txt", engine="1.0", beta="1.0")
    return found


def counted(gates: Gates) -> list[tuple[str, str, int]]:
    """Cell, side and block of every stored trial that counts."""
    return [(cell, side, block) for _, cell, side, block, _ in gates.world.trials()]


def test_an_equal_candidate_passes_every_question(gates: Gates) -> None:
    gates.freeze("new.txt", engine="1.1", beta="2.0")
    done, found = gates.run("--baseline", "now.txt", "--candidate", "new.txt", "-o", "out.md")
    assert done.returncode == 0, done.stderr
    assert set(answers(found).values()) == {"pass"} and found["decision"] == "pass"
    assert done.stdout.startswith("PASS on environment, races, throughput, memory, attention and numbers: candidate")
    assert (gates.world.folder / "out.md").read_text().startswith("PASS on environment")
    assert "## Question by question" in (gates.world.folder / "out.md").read_text()
    said = done.stderr.index(f"{CLEAN_TRIALS} clean threaded trials")
    assert said < done.stderr.index(" threads: clean"), "announced before the first trial"
    assert "How often a candidate passes that races at a rate of" in done.stderr[: done.stderr.index(" threads: clean")]
    first = [line for line in done.stderr.splitlines() if " threads: clean" in line]
    turns = ["baseline" if "baseline" in line else "candidate" for line in first]
    assert len(turns) == 2 * PAIRS
    assert all(turns[at] == turns[at + 3] != turns[at + 1] == turns[at + 2] for at in range(0, 16, 4)), "A B B A"
    again, same = gates.run("--baseline", "now.txt", "--candidate", "new.txt")
    assert again.returncode == 0 and same["id"] == found["id"] and same["lines"] == found["lines"]
    assert " threads: " not in again.stderr, "nothing was tried again"


def test_a_racing_candidate_fails_and_the_offered_bisection_finds_it(gates: Gates) -> None:
    gates.freeze("new.txt", engine="1.2", beta="2.0")
    done, found = gates.run("--baseline", "now.txt", "--candidate", "new.txt")
    assert done.returncode == 1 and answers(found)["races"] == "fail", done.stdout
    assert "tracing flag was set" in done.stdout and found["bisect_command"] in done.stdout
    assert len([1 for _, side, _ in counted(gates) if side == "threads"]) < 2 * CLEAN_TRIALS, "a certain fail ends it"
    assert "the gate ended when it had failed the race question" in " ".join(done.stdout.split())
    words = shlex.split(found["bisect_command"])
    assert words[:2] == ["bisect-env", "bisect"]
    culprit = gates.world.run(*words[1:])
    assert culprit.returncode == 0 and "engine 1.2" in " ".join(culprit.stdout.split()), culprit.stdout + culprit.stderr


def test_a_slower_candidate_fails_by_rounds_in_turn_and_is_found(gates: Gates) -> None:
    done, found = gates.run(
        "--baseline", "now.txt", "--upgrade", "engine==1.3", "--option", "rounds=3", "--pairs", "24"
    )
    assert done.returncode == 1, done.stdout
    assert answers(found) | {"throughput": ""} == dict.fromkeys(answers(found), "pass") | {"throughput": ""}
    (line,) = (line for line in found["lines"] if line["question"] == "throughput")
    assert line["decision"] == "fail" and 0.75 < line["figures"]["ratio"] < 0.85 and line["figures"]["sessions"] >= 8
    assert "throughput<" in found["bisect_command"] and "candidate.json" in found["bisect_command"]
    culprit = gates.world.run(*shlex.split(found["bisect_command"])[1:])
    assert culprit.returncode == 0 and "engine" in culprit.stdout, culprit.stdout + culprit.stderr


def test_memory_attention_and_numbers_fail_by_themselves(gates: Gates) -> None:
    done, found = gates.run("--baseline", "now.txt", "--upgrade", "engine==1.4")
    assert done.returncode == 1, done.stderr
    assert [answers(found)[name] for name in ("environment", "races", "memory", "attention", "numbers")] == [
        "pass", "pass", "fail", "fail", "fail",
    ]  # fmt: skip


def test_nothing_changed(gates: Gates) -> None:
    gates.freeze("same.txt", engine="1.0", beta="1.0")
    done, _ = gates.run("--baseline", "now.txt", "--candidate", "same.txt")
    assert done.returncode == 4 and "do not differ" in done.stdout
    assert not gates.world.store.exists(), "nothing was written"
    # A change that asks for what is there already.
    upgrade, _ = gates.run("--baseline", "now.txt", "--upgrade", "engine==1.0")
    assert upgrade.returncode == 4


def test_a_candidate_that_cannot_be_had_fails_in_uvs_words(gates: Gates) -> None:
    gates.offer("2.0", requires="beta>=2", **FULL)
    gates.freeze("impossible.txt", engine="2.0", beta="1.0")
    done, found = gates.run("--baseline", "now.txt", "--candidate", "impossible.txt")
    assert done.returncode == 1 and answers(found)["environment"] == "fail", done.stderr
    assert "engine>=2.0 depends on beta>=2" in " ".join(done.stdout.split())
    assert set(answers(found).values()) == {"fail", "not asked"} and not found["bisect_command"]
    gone, found = gates.run("--baseline", "now.txt", "--upgrade", "engine==9")
    assert gone.returncode == 1 and "engine==9" in gone.stdout and not gates.world.trials()
    # What the upgrade forces along is part of the candidate.
    forced, found = gates.run("--baseline", "now.txt", "--upgrade", "engine==2.0")
    assert forced.returncode == 0, forced.stdout
    assert found["candidate"]["distributions"] == {"engine": "2.0", "beta": "2.0"}


def test_a_candidate_that_cannot_be_imported_fails_and_one_that_cannot_be_tried_decides_nothing(gates: Gates) -> None:
    gates.offer("3.0", fails="libcudart.so.13: cannot open shared object file", **FULL)
    done, found = gates.run("--baseline", "now.txt", "--upgrade", "engine==3.0")
    assert done.returncode == 1 and answers(found)["environment"] == "fail" and "libcudart.so.13" in done.stdout
    gates.offer("4.0", skips=True, **FULL)
    skipped, found = gates.run("--baseline", "now.txt", "--upgrade", "engine==4.0")
    assert skipped.returncode == 3 and "no flex attention here" in skipped.stdout, skipped.stdout
    gates.freeze("skips.txt", engine="4.0", beta="1.0")
    refused, _ = gates.run("--baseline", "skips.txt", "--candidate", "now.txt")
    assert refused.returncode == 2 and "baseline's trials cannot run here" in refused.stderr


def test_a_baseline_that_cannot_be_had_is_bad_input(gates: Gates) -> None:
    gates.freeze("gone.txt", engine="0.1", beta="1.0")
    done, _ = gates.run("--baseline", "gone.txt", "--candidate", "now.txt")
    assert done.returncode == 2 and "gone.txt: the baseline has no environment here" in done.stderr
    upgrade, _ = gates.run("--baseline", "gone.txt", "--upgrade", "beta==2.0")
    assert upgrade.returncode == 2 and "the baseline has no environment here" in upgrade.stderr


def test_a_baseline_whose_pins_contradict_each_other_is_taken_as_it_was_installed(gates: Gates) -> None:
    gates.offer("6.0", requires="beta>=3")
    gates.freeze("forced.txt", engine="6.0", beta="1.0")
    gates.freeze("newer.txt", engine="6.0", beta="2.0")
    done, found = gates.run("--baseline", "forced.txt", "--candidate", "newer.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the baseline's own pins contradict each other" in " ".join(done.stdout.split())
    assert found["baseline"]["environment"]["pins"] == {"beta": "1.0", "engine": "6.0"}
    assert found["candidate"]["environment"]["pins"] == {"beta": "2.0", "engine": "6.0"}


def test_a_racing_baseline_is_told_and_a_margin_asks_whether_it_gets_worse(gates: Gates) -> None:
    gates.offer("5.0", race=0.5)
    gates.offer("5.1", race=0.5)
    gates.freeze("racing.txt", engine="5.0", beta="1.0")
    told, found = gates.run("--baseline", "racing.txt", "--upgrade", "engine==5.1", "--max-race-rate", "0.1")
    assert told.returncode in (1, 3) and "the baseline races too" in " ".join(told.stdout.split()), told.stdout
    options = ("--no-worse", "0.9", "--trials", "6")
    done, found = gates.run("--baseline", "racing.txt", "--upgrade", "engine==5.1", *options)
    assert done.returncode == 0, done.stdout
    (line,) = (line for line in found["lines"] if line["question"] == "races")
    assert line["figures"]["margin"] == 0.9 and line["figures"]["baseline_trials"] == 6
    assert "by less than 90 %" in " ".join(done.stdout.split())


def test_a_requirements_file_is_a_change_too(gates: Gates) -> None:
    (gates.world.folder / "new.txt").write_text("engine==1.1\nbeta>=2\n")
    done, found = gates.run("--baseline", "now.txt", "--requirements", "new.txt")
    assert done.returncode == 0, done.stderr
    assert found["candidate"]["distributions"] == {"engine": "1.1", "beta": "2.0"}


def test_a_budget_ends_it_undecided_and_a_larger_one_goes_on(gates: Gates) -> None:
    gates.offer("1.0.1", seconds=0.6)
    gates.offer("1.1.1", seconds=0.6)
    gates.freeze("slow.txt", engine="1.0.1", beta="1.0")
    sides = ("--baseline", "slow.txt", "--upgrade", "engine==1.1.1")
    done, found = gates.run(*sides, "--budget", "5s")
    assert done.returncode == 3 and answers(found)["races"] == "inconclusive", done.stdout
    assert "What it would take to decide" in done.stdout and "still to come" in " ".join(done.stdout.split())
    assert "Within 5 s" in done.stderr and found["announcement"]["within_budget"] != []
    before = counted(gates)
    assert 0 < len(before) < 2 * CLEAN_TRIALS
    more, found = gates.run(*sides, "--budget", "1h")
    assert more.returncode == 0 and answers(found)["races"] == "pass", more.stdout
    after = counted(gates)
    assert after[: len(before)] == before and len(after) == len(set(after)) == 2 * CLEAN_TRIALS


def test_killed_at_any_moment_it_goes_on_and_counts_nothing_twice(gates: Gates) -> None:
    gates.offer("1.1.2", seconds=0.2, **FULL)
    sides = ("--baseline", "now.txt", "--upgrade", "engine==1.1.2")
    for seconds in (1.5, 3.0, 5.0):
        process = gates.world.start(*gates.words(*sides))
        time.sleep(seconds)
        process.kill()
        process.communicate()
    done, found = gates.run(*sides)
    assert done.returncode == 0 and set(answers(found).values()) == {"pass"}, done.stdout + done.stderr
    trials = counted(gates)
    assert len(trials) == len(set(trials))
    assert len(list((gates.world.store / "gates").iterdir())) == 1, "one gate, gone on with"
    assert found["trials"] == len(trials)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_tells_what_it_knows(gates: Gates, number: signal.Signals) -> None:
    gates.offer("1.1.2", seconds=0.3, **FULL)
    sides = ("--baseline", "now.txt", "--upgrade", "engine==1.1.2")
    process = gates.world.start(*gates.words(*sides))
    deadline = time.monotonic() + 60
    while len(gates.world.trials()) < 3:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130 and "Interrupted. What was measured is kept" in stderr, stderr
    assert stdout.startswith("INCONCLUSIVE on ") and "it was interrupted" in stdout and "Traceback" not in stderr
    assert not gates.world.processes("trial.py")
    done, _ = gates.run(*sides)
    assert done.returncode == 0, done.stdout


def test_the_baselines_trials_are_kept_for_the_next_gate(gates: Gates) -> None:
    gates.offer("1.0.1")
    gates.offer("1.1.1")
    gates.offer("1.1.2")
    gates.freeze("plain.txt", engine="1.0.1", beta="1.0")
    first, _ = gates.run("--baseline", "plain.txt", "--upgrade", "engine==1.1.1")
    assert first.returncode == 0, first.stdout
    before = len(counted(gates))
    done, found = gates.run("--baseline", "plain.txt", "--upgrade", "engine==1.1.2", "--baseline-store")
    assert done.returncode == 0, done.stdout
    assert len(counted(gates)) - before == CLEAN_TRIALS + 1, "of the baseline the first block alone"
    (line,) = (line for line in found["lines"] if line["question"] == "races")
    assert line["figures"]["baseline_trials"] == CLEAN_TRIALS
    assert f"{CLEAN_TRIALS} trials of the baseline in earlier gates count" in done.stdout
    anew, found = gates.run("--baseline", "plain.txt", "--upgrade", "engine==1.1.2")
    assert anew.returncode == 0 and found["trials"] == 2 * CLEAN_TRIALS, "unless they are asked for they do not"


def test_trials_side_by_side(gates: Gates) -> None:
    done, found = gates.run("--baseline", "now.txt", "--upgrade", "engine==1.1", "--at-once", "2")
    assert done.returncode in (0, 3) and answers(found)["races"] == "pass", done.stdout + done.stderr
    trials = counted(gates)
    assert len(trials) == len(set(trials))


def test_side_by_side_a_certain_fail_begins_no_further_trial(gates: Gates) -> None:
    gates.offer("1.2.1", **FULL | {"race": 1.0, "seconds": 0.2})
    sides = ("--baseline", "now.txt", "--upgrade", "engine==1.2.1", "--at-once", "2")
    done, found = gates.run(*sides, "--max-race-rate", "0.05")
    assert done.returncode == 1 and answers(found)["races"] == "fail", done.stdout + done.stderr
    # 59 would be wanted, and 2 of the first 2 are a fail; beside it run one that was begun, and the baseline's turns.
    assert len([1 for _, side, _ in counted(gates) if side == "threads"]) <= 12


def test_a_base_stands_as_it_is_and_the_change_is_laid_over_it(gates: Gates, uv: Uv) -> None:
    base = gates.world.folder / "host" / "bin" / "python"
    uv.run(["venv", "--quiet", str(base.parent.parent)])
    index = IndexChoice(urls=(gates.world.index.url,))
    # What the host has built itself is on no index.
    own = gates.world.wheels.wheel("own", "1.0", files={"own/__init__.py": ""})
    installed = uv.run(["pip", "install", "--quiet", "-p", str(base), "engine==1.0", str(own)], index=index)
    assert installed.ok, installed.stderr
    done, found = gates.run("--base", str(base), "--upgrade", "engine==1.1", "-o", "out.md")
    assert done.returncode == 0 and found["decision"] == "pass", done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "the base itself" in said and "1 distribution over the base" in said and "not in its lock" not in said
    racing, found = gates.run("--base", str(base), "--upgrade", "engine==1.2")
    assert racing.returncode == 1 and answers(found)["races"] == "fail" and not found["bisect_command"]
    assert "no bisection stands on a base" in racing.stdout
    alike, _ = gates.run("--base", str(base), "--upgrade", "engine==1.0")
    assert alike.returncode == 4, alike.stdout + alike.stderr
    impossible, found = gates.run("--base", str(base), "--upgrade", "engine==9")
    assert impossible.returncode == 1 and answers(found)["environment"] == "fail", impossible.stderr


def test_fresh_begins_anew(gates: Gates) -> None:
    gates.offer("1.1.1")
    gates.freeze("plain.txt", engine="1.1.1", beta="1.0")
    sides = ("--baseline", "plain.txt", "--upgrade", "beta==2.0")
    _, first = gates.run(*sides)
    done, second = gates.run(*sides, "--fresh")
    assert done.returncode == 0 and first["id"] != second["id"] and second["trials"] == 2 * CLEAN_TRIALS


def test_a_dry_run_tells_what_it_takes_and_runs_nothing(gates: Gates) -> None:
    done = gates.world.run(*gates.words("--baseline", "now.txt", "--upgrade", "engine==1.1", "--dry-run"))
    assert done.returncode == 0 and f"{CLEAN_TRIALS} clean threaded trials" in done.stdout, done.stderr
    assert "engine" in done.stdout and "1.0 -> 1.1" in done.stdout
    assert not gates.world.trials(counted=False) and not list(gates.world.store.glob("environments/*/marker*"))
    assert not (gates.world.store / "gates").exists()


def test_a_dry_run_is_a_document_too(gates: Gates) -> None:
    sides = ("--baseline", "now.txt", "--upgrade", "engine==1.1", "--dry-run")
    files = ("--json", "plan.json", "-o", "plan.md", "--html", "plan.html", "--junit", "plan.xml")
    done = gates.world.run(*gates.words(*sides, *files))
    assert done.returncode == 0, done.stderr
    plan = matching("gate", json.loads((gates.world.folder / "plan.json").read_text()))
    assert (plan["decision"], plan["trials"]) == ("inconclusive", 0) and plan["announcement"]["sentences"]
    assert "## What it takes" in (gates.world.folder / "plan.md").read_text() and "## " not in done.stdout
    for option in ("html", "junit"):
        assert f"--{option}: nothing was tried, so that file is not written" in done.stderr
        assert not list(gates.world.folder.glob("plan.[hx]*ml"))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], ["--baseline: not given", "cell:ID"]),
        (["--baseline", "now.txt"], ["--candidate: not given", "--upgrade NAME==VERSION"]),
        (["--baseline", "now.txt", "--candidate", "b", "--upgrade", "x==1"], ["b, and --upgrade x==1 as well"]),
        (["--baseline", "-", "--candidate", "-", "--", "true"], ["standard input for both"]),
        (["--baseline", "nowhere.txt", "--candidate", "now.txt", "--", "true"], ["nowhere.txt", "no such file"]),
        (["--baseline", "now.txt", "--candidate", "now.txt"], ["--reproducer", "compile_race, dflash"]),
        (["--baseline", "now.txt", "--candidate", "now.txt", "-o", "no/out.md", "--", "true"], ["no folder no"]),
        (["--baseline", "now.txt", "--candidate", "now.txt", "--budget", "5", "--", "true"], ["--budget", "20m"]),
        (["--baseline", "now.txt", "--candidate", "now.txt", "--budget", "0s", "--", "true"], ["budget of nothing"]),
        (["--baseline", "now.txt", "--candidate", "now.txt", "--timeout", "soon", "--", "true"], ["--timeout", "90s"]),
        (
            ["--baseline", "now.txt", "--candidate", "now.txt", "--max-race-rate", "0", "--", "true"],
            ["--max-race-rate"],
        ),
        (["--baseline", "now.txt", "--candidate", "now.txt", "--max-memory", "0.9", "--", "true"], ["--max-memory"]),
        (["--base", "python3", "--baseline", "now.txt", "--", "true"], ["--base", "--baseline now.txt as well"]),
        (["--baseline", "now.txt", "--candidate", "b", "--no-worse", "nan", "--", "true"], ["nan", "no number"]),
        (["--baseline", "now.txt", "--candidate", "b", "--confidence", "nan", "--", "true"], ["nan", "no number"]),
        (["--base", "no-python", "--upgrade", "x==1", "--", "true"], ["--base", "no such program"]),
        (["--base", "python3", "--", "true"], ["--candidate: not given"]),
        (["now.txt", "new.txt", "--", "true"], ["unexpected extra argument"]),
    ],
)
def test_wrong_input(
    gates: Gates,
    args: list[str],
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(gates.world.folder)
    message = refused(["gate", *args], capsys)
    for word in words:
        assert word in message
    assert not gates.world.store.exists(), "nothing was written"


def test_credentials_are_nowhere(gates: Gates) -> None:
    url = gates.world.index.url.replace("://", "://ci:hunter2hunter2@")
    gates.freeze("new.txt", engine="1.2", beta="2.0")
    words = [
        "--baseline",
        "now.txt",
        "--candidate",
        "new.txt",
        "--max-race-rate",
        "0.4",
        "-o",
        "out.txt",
        "--json",
        "o.json",
    ]
    done = gates.world.run("gate", "--index", url, *words, "--", "python", "trial.py")
    assert done.returncode == 1, done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    files = [path for path in Path(gates.world.folder).rglob("*") if path.is_file()]
    assert not [path for path in files if b"hunter2" in path.read_bytes()]


def test_help_teaches(world: World) -> None:
    done = world.run("gate", "--help")
    assert done.returncode == 0
    for word in ("--upgrade", "A B B A", "Exit codes", "--baseline-store", "-- python train.py", "--no-worse"):
        assert word in done.stdout

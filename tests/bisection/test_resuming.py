"""Killed, stopped, undone and taken over: a bisection goes on from its log and its store."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bisect_env.bisection import driver, log
from bisect_env.bisection.records import Answer, Finding, Levels, Observation, Specification, Stage
from bisect_env.store.codec import encode
from bisect_env.store.database import Store
from tests.bisection.world import Bisections, Listener, Rules

ROOT = Path(__file__).parents[2]


class Interrupts(Listener):
    """Presses Ctrl-C at the end of a batch."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def batch_started(self, stage: Stage, point: Levels, size: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


@pytest.fixture
def asked(bisections: Bisections) -> Specification:
    """A culprit among three, along five versions."""
    return question(bisections)


def question(bisections: Bisections) -> Specification:
    bisections.offer("alpha", *(f"{number}.0" for number in range(1, 6)))
    for name in ("beta", "gamma"):
        bisections.offer(name, "1.0", "2.0")
    rules: Rules = [{"when": {"alpha": ">=4.0"}, "rate": 0.9, "says": "race"}]
    return bisections.specification(
        {"alpha": "1.0", "beta": "1.0", "gamma": "1.0"}, {"alpha": "5.0", "beta": "2.0", "gamma": "2.0"}, rules
    )


def start(bisections: Bisections, asked: Specification) -> subprocess.Popen[str]:
    bisections.root.mkdir(parents=True, exist_ok=True)
    file = bisections.folder / "specification.json"
    file.write_text(encode(asked))
    arguments = [str(bisections.root), str(bisections.uv_cache), str(file)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.bisection.killable", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def batches(found: Finding) -> list[tuple[Stage, Levels, int, int, int]]:
    """What was asked, and what it came to."""
    return [(seen.stage, seen.point, seen.failures, seen.passes, seen.other) for seen in found.observations]


def test_killed_at_random_moments_it_asks_the_same_and_finds_the_same(bisections: Bisections, tmp_path: Path) -> None:
    whole = bisections.found(question(bisections))
    assert whole.answer is Answer.CULPRIT and whole.versions is not None, whole.sentence
    assert (whole.versions.last_good, whole.versions.first_bad) == ("3.0", "4.0")
    moments = random.Random(11)
    for number in range(2):
        project = replace(bisections, folder=tmp_path / f"killed{number}")
        asked = question(project)
        killed_it_finds_the_same(project, asked, whole, (moments.uniform(0.8, 3.0) for _ in range(4)))


def killed_it_finds_the_same(
    project: Bisections, asked: Specification, whole: Finding, moments: Iterable[float]
) -> None:
    """Begin it, kill it after so many seconds, begin it again, and so on; at last let it come to its end."""
    kills = 0
    for seconds in moments:
        process = start(project, asked)
        try:
            process.wait(seconds)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
        finally:
            process.communicate()
    found = project.found(asked)
    assert kills >= 2
    assert batches(found) == batches(whole)
    assert (found.answer, found.sentence, found.versions) == (whole.answer, whole.sentence, whole.versions)
    assert (found.probability, found.suspects) == (whole.probability, whole.suspects)
    only_once(project, found)


def only_once(project: Bisections, found: Finding) -> None:
    """No place was filled twice, no confirming trial is one that the search has seen, and nothing is left running."""
    with Store(project.root / "store.sqlite") as store:
        stored = [store.trial(name) for seen in found.observations for name in seen.trials]
    assert all(trial is not None and trial.run_id == found.id for trial in stored)
    places = Counter((trial.record.environment, trial.record.condition, trial.block) for trial in stored if trial)
    assert set(places.values()) == {1}
    assert len(list((project.root / "bisections").iterdir())) == 1
    left = [p for p in psutil.process_iter(["cmdline"]) if str(project.root) in " ".join(p.info["cmdline"] or ())]
    assert not left


def test_ctrl_c_keeps_what_was_tried(bisections: Bisections, asked: Specification) -> None:
    with pytest.raises(KeyboardInterrupt):
        bisections.found(asked, Interrupts(after=3))
    (path,) = log.bisections(bisections.root)
    before = log.read(path)
    found = bisections.found(asked)
    told = [seen for answer in before.answers if isinstance(answer, log.Told) for seen in answer.observations]
    assert told and list(found.observations[: len(told)]) == told
    assert found.answer is Answer.CULPRIT


def test_a_finished_one_is_told_again_without_a_trial(bisections: Bisections, asked: Specification) -> None:
    found = bisections.found(asked)
    began = time.monotonic()
    again = bisections.found(asked)
    assert time.monotonic() - began < 10
    assert (again.sentence, again.observations, again.locks) == (found.sentence, found.observations, found.locks)


def test_undoing_lets_the_last_batch_be_tried_anew(bisections: Bisections, asked: Specification) -> None:
    found = bisections.found(asked)
    (path,) = log.bisections(bisections.root)
    gone = log.undo(path)
    assert gone == found.observations[-len(gone) :]
    again = bisections.found(asked)
    assert again.answer is Answer.CULPRIT
    fresh: tuple[Observation, ...] = again.observations[len(found.observations) - len(gone) :]
    assert not {name for seen in fresh for name in seen.trials} & {name for seen in gone for name in seen.trials}


def test_a_log_taken_over_answers_the_same(bisections: Bisections, asked: Specification, tmp_path: Path) -> None:
    found = bisections.found(asked)
    (path,) = log.bisections(bisections.root)
    # As it looked when it was killed while it wrote: the last line is torn, and lines before it are missing.
    lines = path.read_bytes().splitlines(keepends=True)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(b"".join(lines[:5]) + lines[5][: len(lines[5]) // 2])
    other = Bisections(tmp_path / "elsewhere", bisections.index, bisections.wheels, bisections.uv_cache)
    other.root.mkdir(parents=True)
    with Store(other.root / "store.sqlite") as store:
        place = other.place(store)
        taken = driver.adopt(copy, place)
        again = driver.resume(taken, place, asked.index)
    assert again.answer is Answer.CULPRIT and again.id != found.id
    assert again.versions == found.versions or again.versions is not None
    assert again.observations[:2] == found.observations[:2]

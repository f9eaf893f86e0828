"""``--budget`` with real trials: never a trial more, and of time at most what was under way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.bisecting import Suspects
from tests.support.racing import World

SLEEP = 0.4
SLACK = 2.0
"""Seconds that a trial's process takes besides, or that a busy machine needs for anything else."""


@pytest.fixture
def suspects(world: World) -> Suspects:
    """alpha fails from 1.2 on, beta never does."""
    found = Suspects(world)
    found.offer("alpha", {"1.0": 0.0, "1.1": 0.0, "1.2": 0.9, "1.3": 0.9})
    found.offer("beta", {"1.0": 0.0, "2.0": 0.0})
    found.freeze("good.txt", alpha="1.0", beta="1.0")
    found.freeze("bad.txt", alpha="1.3", beta="2.0")
    return found


def run(suspects: Suspects, *options: str) -> tuple[int, str, dict[str, Any]]:
    """Exit code, sentence and document of the bisection with these options."""
    world = suspects.world
    sides = ["--good", "good.txt", "--bad", "bad.txt", "--index", world.index.url]
    done = world.run("bisect", *sides, *options, "--json", "out.json", "--", *suspects.command("alpha", "beta"))
    assert done.returncode in (0, 3), done.stderr
    found = json.loads((world.folder / "out.json").read_text())
    return done.returncode, found["sentence"], found


def test_one_trial_is_too_few_for_the_first_step(suspects: Suspects) -> None:
    code, sentence, found = run(suspects, "--budget", "1 trial")
    assert code == 3 and found["trials"] == 0
    assert "the budget is 1 trial, and the next step takes at least 2: one in each of 2 environments" in sentence
    assert not suspects.world.trials(counted=False) and not list(suspects.world.store.glob("environments/*"))


def test_never_a_trial_more_and_more_budget_goes_on(suspects: Suspects) -> None:
    for budget in (3, 13):
        code, sentence, found = run(suspects, "--budget", f"{budget} trials")
        spent = len(suspects.world.trials(counted=False))
        assert found["trials"] == spent <= budget
        if code == 0:
            break
        assert spent > budget - 4, "what is left is less than the next step takes"
        assert f"the budget of {budget} trials" in sentence
        if spent < budget:
            left = budget - spent
            assert f"{left} of the budget of {budget} trials {'is' if left == 1 else 'are'} left" in sentence
            assert "the next step takes at least" in sentence
    code, _, found = run(suspects)
    assert code == 0 and found["versions"]["first_bad"] == "1.2"


def test_time_is_overrun_by_no_more_than_a_trial(suspects: Suspects) -> None:
    # The first batch alone is 8 trials of more than SLEEP: it must be cut short.
    budget = 3 * SLEEP
    code, sentence, found = run(suspects, "--env", f"SLEEP={SLEEP}", "--budget", f"{budget}s")
    assert code == 3 and f"the budget of {budget:g} s is spent" in sentence
    assert found["seconds"] < budget + SLEEP + SLACK
    assert found["trials"] == len(suspects.world.trials(counted=False)) < 8
    code, _, found = run(suspects, "--env", f"SLEEP={SLEEP}", "--budget", "10m")
    assert code == 0 and found["versions"]["first_bad"] == "1.2", "it goes on from there"


def test_time_that_is_over_before_the_first_trial(suspects: Suspects) -> None:
    code, sentence, found = run(suspects, "--budget", "0.01s")
    assert code == 3 and "the budget of 0.01 s is spent" in sentence
    assert found["trials"] == found["builds"] == 0 and not suspects.world.trials(counted=False)


def test_trials_side_by_side_keep_to_both(suspects: Suspects) -> None:
    options = ["--env", f"SLEEP={SLEEP}", "--at-once", "2"]
    code, _, found = run(suspects, *options, "--budget", f"5 trials, {3 * SLEEP}s")
    assert code == 3 and found["trials"] <= 5
    assert found["seconds"] < 4 * SLEEP + SLACK

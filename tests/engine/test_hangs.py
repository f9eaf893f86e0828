"""Hangs: confirmed under three times the limit before they count."""

from __future__ import annotations

from tests.support.racing import World

BODY = """\
axes: {{torch: [{torch}], transformers: [5.8.1]}}
trials: 4
controls: 4
limits: {{silence: 0.7, first_silence: 5}}
"""


def test_a_hang_is_confirmed_and_then_counts(world: World) -> None:
    world.torch("2.11.0", hang=1.0)
    world.transformers("5.8.1")
    world.matrix(BODY.format(torch="2.11.0"))
    finished = world.run("matrix", "matrix.yaml")
    assert finished.returncode == 0, finished.stderr
    assert "HANG 4/4" in finished.stdout
    assert finished.stderr.count("hung; tried again with three times the limit") == 1
    outcomes = [outcome for _, _, side, _, outcome in world.trials(counted=False) if side == "threads"]
    assert outcomes == ["infra", "hang", "hang", "hang", "hang"]
    hung = next(trial for trial in world.trials() if trial[4] == "hang")
    assert "Stacks before the kill" in world.run("show", hung[0]).stdout
    assert not world.processes()


def test_a_slow_trial_that_the_first_limit_cuts_short_is_no_hang(world: World) -> None:
    world.torch("2.14.1", pause=1.0)
    world.transformers("5.8.1")
    world.matrix(BODY.format(torch="2.14.1"))
    finished = world.run("matrix", "matrix.yaml", "--trials", "1")
    assert finished.returncode == 0, finished.stderr
    assert "FULL" in finished.stdout and "HANG" not in finished.stdout
    outcomes = [outcome for _, _, side, _, outcome in world.trials(counted=False) if side == "threads"]
    assert outcomes == ["infra", "clean"]


def test_one_that_goes_on_until_its_whole_time_is_up_hangs_at_once(world: World) -> None:
    """Three times the limit for silence would not help it: there was no silence."""
    world.torch("2.11.0", crawl=1.0)
    world.transformers("5.8.1")
    world.matrix(BODY.format(torch="2.11.0").replace("limits: {", "limits: {trial: 3, "))
    finished = world.run("matrix", "matrix.yaml", "--trials", "1")
    assert finished.returncode == 0, finished.stderr
    outcomes = [outcome for _, _, side, _, outcome in world.trials(counted=False) if side == "threads"]
    assert outcomes == ["hang"] and "tried again" not in finished.stderr
    hung = next(trial for trial in world.trials() if trial[4] == "hang")
    assert "still running after 3 s (limits.trial)" in world.run("show", hung[0]).stdout

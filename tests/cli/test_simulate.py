"""``bisect-env simulate``: figures of the shipped search, and messages for what makes no sense."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bisect_env.cli.main import main
from bisect_env.cli.simulate import one_at_a_time
from bisect_env.search.records import Status
from bisect_env.search.simulated_subsets import FactorRun
from tests.support.schemas import matching


def ended(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["simulate", *args])
    out, err = capsys.readouterr()
    return int(str(stopped.value.code)), out, err


def figures(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    code, out, err = ended(capsys, *args, "--json")
    assert (code, err) == (0, "")
    return matching("simulate", json.loads(out))


def test_versions_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(capsys, "--candidates", "8", "--fail-rate", "0.9", "--runs", "60", "--seed", "1")
    assert 4 < found["mean_trials"] < 20
    assert found["mean_trials"] <= found["p95_trials"]
    assert 2 <= found["mean_environments"] <= 8
    assert 0 <= found["wrong_low"] <= found["wrong"] <= found["wrong_high"] <= 1
    assert found["wrong"] <= 0.1 and found["undecided"] <= 0.1
    assert found["mean_seconds"] == pytest.approx(10 * (found["mean_trials"] + found["mean_environments"]))
    assert found["world"]["candidates"] == 8


def test_two_factors_that_must_be_there_together(capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(capsys, "--factors", "16", "--culprits", "2", "--fail-rate", "0.5", "--runs", "30", "--seed", "1")
    assert found["mean_trials"] <= 65
    assert found["mean_environments"] <= 25
    assert found["wrong"] <= 0.1 and found["undecided"] <= 0.1
    assert found["stated"] > 0.95


def test_the_same_seed_gives_the_same_figures_and_another_one_others(capsys: pytest.CaptureFixture[str]) -> None:
    args = ("--factors", "6", "--fail-rate", "0.5", "--runs", "10")
    first, again, other = (figures(capsys, *args, "--seed", seed) for seed in ("3", "3", "4"))
    assert first == again
    assert first["mean_trials"] != other["mean_trials"]


def test_dear_builds_make_fewer_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    args = ("--factors", "12", "--fail-rate", "0.5", "--runs", "12", "--trial-seconds", "1")
    free, dear = (figures(capsys, *args, "--build-seconds", seconds) for seconds in ("0", "60"))
    assert dear["mean_environments"] < 0.7 * free["mean_environments"]


def test_a_low_fail_rate_takes_longer(capsys: pytest.CaptureFixture[str]) -> None:
    often, seldom = (figures(capsys, "--factors", "6", "--fail-rate", rate, "--runs", "10") for rate in ("0.9", "0.2"))
    assert seldom["mean_trials"] > 2 * often["mean_trials"]


def test_the_table_says_the_same_as_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "figures.json"
    args = ("--factors", "5", "--fail-rate", "0.8", "--runs", "10", "--json", str(path))
    code, out, _ = ended(capsys, *args)
    found = json.loads(path.read_text(encoding="utf-8"))
    assert code == 0
    assert f"Trials         {found['mean_trials']:.1f} on average" in out
    assert f"Undecided      {found['undecided']:.1%}" in out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "--candidates, --factors: neither is given"),
        (("--candidates", "8", "--factors", "8"), "both are given"),
        (("--candidates", "8", "--culprits", "2"), "--culprits: 2 of one version"),
        (("--factors", "1", "--culprits", "2"), "--factors 2 or more"),
        (("--factors", "4", "--fail-rate", "0.1", "--false-rate", "0.2"), "less than the fail rate, 0.1"),
        (("--factors", "4", "--batch", "some"), "auto, or a number of trials from 1"),
        (("--factors", "4", "--batch", "0"), "auto, or a number of trials from 1"),
        (("--factors", "0"), "0 is not in the range"),
        (("--factors", "4", "--confidence", "1"), "not in the range"),
    ],
)
def test_what_makes_no_sense(capsys: pytest.CaptureFixture[str], args: tuple[str, ...], said: str) -> None:
    code, out, err = ended(capsys, *args)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


def test_wrong_and_undecided_are_shares_of_all_runs() -> None:
    def run(truth: tuple[int, ...], *answers: tuple[int, ...], status: Status = Status.CONFIDENT) -> FactorRun:
        return FactorRun(truth, answers if status is Status.CONFIDENT else None, 0.96, status, 10, 4)

    found = one_at_a_time(
        [run((1,), (1,)), run((1,), (2,)), run((1,)), run((1,), (1,), (1, 2)), run((1,), status=Status.EXHAUSTED)], 2, 1
    )
    assert (found.wrong, found.undecided) == (0.4, pytest.approx(0.2))
    assert (found.mean_trials, found.mean_environments, found.mean_seconds) == (10, 4, 18)
    assert found.wrong_low < 0.4 < found.wrong_high


def test_what_a_prior_from_reading_saves_and_costs(capsys: pytest.CaptureFixture[str]) -> None:
    args = ("--candidates", "32", "--fail-rate", "0.9", "--build-seconds", "0", "--runs", "60", "--seed", "1")
    none, right, misleading = (figures(capsys, *args, "--prior", prior) for prior in ("none", "right", "misleading"))
    assert right["mean_trials"] <= 0.8 * none["mean_trials"]
    assert none["mean_trials"] < misleading["mean_trials"] <= 1.2 * none["mean_trials"]
    assert none["world"]["prior"] is None
    assert right["world"]["prior"] == {"right": True, "marked": 5, "weight": 8.0}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--factors", "4", "--prior", "right"), "--candidates: versions are what is read"),
        (("--candidates", "4", "--prior", "right", "--parallel", "2"), "--parallel: 2, with --prior right"),
        (("--candidates", "4", "--prior", "misleading", "--prior-marked", "4"), "at most 3, where it is misleading"),
    ],
)
def test_a_prior_that_makes_no_sense(capsys: pytest.CaptureFixture[str], args: tuple[str, ...], words: str) -> None:
    code, _, err = ended(capsys, *args)
    assert code == 2 and words in err


@pytest.mark.parametrize("world", [("--candidates", "16"), ("--factors", "6")], ids=["versions", "factors"])
def test_several_batches_at_a_time_beside_one(capsys: pytest.CaptureFixture[str], world: tuple[str, ...]) -> None:
    args = (*world, "--fail-rate", "0.5", "--runs", "12", "--seed", "2")
    one, four = figures(capsys, *args), figures(capsys, *args, "--parallel", "4")
    beside = four["parallel"]
    assert one["parallel"] is None and beside["batches"] == 4
    assert beside["one"] == {key: one[key] for key in beside["one"]}
    assert beside["times_as_fast"] == pytest.approx(one["mean_seconds"] / four["mean_seconds"])
    assert beside["times_as_many_trials"] == pytest.approx(four["mean_trials"] / one["mean_trials"])
    assert 1.5 < beside["times_as_fast"] <= 4
    assert beside["as_free"]["mean_seconds"] < one["mean_seconds"]
    code, out, _ = ended(capsys, *args, "--parallel", "4")
    assert code == 0
    assert "on average, in rounds of 4 batches; 95 of 100 take at most" in out
    assert f"the rounds are {beside['times_as_fast']:.1f} times as fast" in out

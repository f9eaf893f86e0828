from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bisect_env.environments.records import Environment
from bisect_env.report import show
from bisect_env.store.runs import StoredRun
from bisect_env.trials.records import Device, Outcome, Round, Side, Utilisation
from bisect_env.verdicts.samples import Placed
from bisect_env.verdicts.verdict import judge
from tests.report.build import SIX, laptop, lock, row
from tests.verdicts.build import FX, SUBGRAPH, failure, paths, record

TRIAL = """\
Trial t1: threads failed, exit status 1
why

Run
  environment      env
  reproducer       hash
  seed             7
  started          2026-11-29T12:00:00+00:00
  seconds          12.3
  longest silence  4.0 s
  cores            0, 1

Condition
  cache    cold
  device   cpu
  pattern  hot
  threads  2

Versions as imported
  torch  2.11.0

Measured
  compile windows  3
  peak memory      5.00 GiB (predicted: fused 5.00, dense 21.00)
  exposures        9
  compile cache    2 hits, 0 misses
  attention w0     10 calls; unfused by math_attention 3
  error of out     0.0001 (tolerance 0.001)

Failure in w0 in f:1: RuntimeError: Detected that you are using FX to symbolically trace (torch._dynamo.eval_frame)
  Traceback (most recent call last):
    File "x.py", line 1
  RuntimeError: Detected that you are using FX to symbolically trace

Stacks before the kill (deadlock)
  Thread 1

Devices
  H200, GPU-1, driver 580.1

Host
  load  0.5

Variables it got
  HOME  /t

Withheld from it (names only)
  LD_PRELOAD

Said by the reproducer
  note  n

Output, last 60 lines
  line 40
"""


def test_a_trial_in_full() -> None:
    found = record(
        Side.THREADS,
        Outcome.FAILED,
        id="t1",
        seed=7,
        exit_status=1,
        message="why",
        started=1795953600.0,
        seconds=12.34,
        longest_silence=4.0,
        cores=(0, 1),
        versions=(("torch", "2.11.0"),),
        windows=3,
        peak_bytes=5 * 2**30,
        predicted_bytes=(("fused", 5 * 2**30), ("dense", 21 * 2**30)),
        exposures=9,
        cache_hits=2,
        paths=paths(("w0", 10, {"math_attention": 3})),
        numbers=(("out", 1e-4, 1e-3),),
        stacks="Thread 1",
        hang_kind="deadlock",
        devices=(Device("GPU-1", "H200", 0, 1, "580.1"),),
        host=(("load", "0.5"),),
        environment_variables=(("HOME", "/t"),),
        withheld=("LD_PRELOAD",),
        extra=(("note", "n"),),
        output="\n".join(f"line {i}" for i in range(100)),
    )
    text = show.trial(found)
    assert text.startswith(TRIAL) and text.endswith("line 99") and "line 39\n" not in text
    text = show.trial(found, lock())
    assert "lock.txt)\n  torch==2.14.1" in text and "sha256" not in text


def test_a_trial_of_timed_rounds() -> None:
    text = show.trial(
        record(
            Side.ROUNDS,
            rounds=(Round(0, 4000, 2.0, 5.0), Round(1, 100, 0.0, 6.0)),
            utilisation=(Utilisation("attention", 2e12, 1.0, 4e12), Utilisation("step", 1e12, 0.0, 4e12)),
        )
    )
    assert "round 0                 4000 tokens in 2.000 s, 2.0k tokens/s" in text
    assert "round 1                 100 tokens in 0.000 s\n" in text
    assert "utilisation, attention  2e+12 operations in 1 s, of 4e+12 a second at most (50 %)" in text
    assert "utilisation, step       1e+12 operations in 0 s, of 4e+12 a second at most\n" in text + "\n"


def test_what_decides_whether_a_trial_counts() -> None:
    odd = record(Side.THREADS, Outcome.FAILED, id="t1", resets=2, phase="backward", at_once=10)
    text = show.trial(odd)
    assert "side by side     at most 10 trials" in text
    assert "resets           2 of the compiled state, before its end" in text
    assert "failed in        backward" in text
    again = record(Side.THREADS, only_repeat=2)
    assert "only repeat      2" in show.trial(again)
    shown = laptop()[0]
    lines = show.cell(replace(shown, samples=[Placed(odd, 0), Placed(again, 0)])).splitlines()
    assert any("t1  after 2 resets, in backward  RuntimeError" in line for line in lines)
    assert any(line.endswith("repeat 2 alone") for line in lines)


def test_utilisation_and_exposures_of_a_cell() -> None:
    used = (Utilisation("attention", 2e12, 1.0, 4e12),)
    shown = row("2.11.0", "4.52.4", "F.....", exposures=30)
    timed = record(Side.ROUNDS, utilisation=used, rounds=(Round(0, 4000, 2.0, 5.0), Round(1, 4200, 2.0, 7.0)))
    text = show.cell(replace(shown, verdict=judge([*shown.samples, Placed(timed, 0)], SIX)))
    assert "exposures               180 calls while another thread compiled, 30 a trial, 180 a failure" in text
    assert "utilisation, attention  50 % of the measured matrix-product ceiling" in text
    assert "2 rounds in 1 session)" in text


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (
            {"trials": 12, "controls": 6, "solo": 0, "stop_early": False},
            "12 threaded, 6 serial, 0 solo trials a cell, no",
        ),
        ({"trials": 12, "controls": 6}, "12 threaded, 6 serial, 6 solo trials a cell\n"),
        ({}, "unknown\n"),
    ],
)
def test_a_run_says_what_it_planned(plan: dict[str, Any], text: str) -> None:
    assert f"planned       {text}" in show.run(StoredRun("r1", "m", "m.yaml", (), 0, (), 1.0, **plan)) + "\n"


@pytest.mark.parametrize(("kind", "words"), [("bisection", "bisect-env bisect log r1"), ("gate", "the same command")])
def test_a_run_that_is_no_matrixs_says_where_its_report_is(kind: str, words: str) -> None:
    told = show.run(StoredRun("r1", kind, "a against b", (), 0, (), 1.0))
    assert words in told and "planned" not in told


CELL = """\
RACE 5/6: 5 of 6 threaded trials and 0 of 6 serial controls failed (one-sided exact test, p = 0.014, limit 0.015, look \
at 4 blocks); most often RuntimeError: Detected that you are using FX to symbolically trace

Levels
  torch         2.11.0
  cuda          cpu
  transformers  5.8.1
  pattern       hot

Condition
  cache    cold
  device   cpu
  pattern  hot
  threads  2

Figures
  threads     5/6 (36-100 %)
  serial      0/6 (0-46 %)
  solo        0/6 (0-46 %)
  went wrong  5 threaded failed
  p           0.0143 (one-sided exact test, threads against serial)
  race rate   at most 99 % (one-sided, 95 %)
  RuntimeError: Detected that you are using FX to symbolically trace (torch._dynamo.eval_frame): 5 threaded, 0 serial, \
0 solo trials

Trials
    1  threads  failed            0.0 s  threads-1  RuntimeError: Detected that you are using FX to symbolically trace \
(torch._dynamo.eval_frame)
    1  serial   clean             0.0 s  serial-1
    1  solo     clean             0.0 s  solo-1
    2  threads  failed"""


def test_a_cell_in_full() -> None:
    shown = laptop()[1]
    head, _, text = show.cell(shown).partition("\n")
    assert head == f"{shown.cell.id}  (cell {shown.cell.key[:8]}, key {shown.cell.key})"
    assert text.startswith(CELL)
    assert text.endswith("lock.txt)\n  torch==2.14.1")


def test_the_first_failure_of_each_signature_is_shown_once() -> None:
    shown = row("2.11.0", "4.52.4", "FFFF", "....", failures=(failure(FX, "w0"), failure(SUBGRAPH, "w1")))
    text = show.cell(shown)
    assert text.count("Traceback (most recent call last)") == 2
    assert "Failure in w1 in f:1: InductorError" in text and "(trial threads-1, threads)" in text


def test_hangs_speeds_and_paths_of_a_cell() -> None:
    dense = show.cell(laptop()[3])
    assert "ratio" in dense and "0.200 (0.200-0.200 at 95 %) to the reference cell" in dense
    assert "threads w1: 31 % of 600 calls unfused (library_choice 31 %, math_attention 31 %)" in dense
    hung = show.cell(row("2.14.1", "5.8.1", "HHHH", "....", stacks="Thread 7", hang_kind="spin"))
    assert "Hang (spin), stacks of trial threads-1\n  Thread 7" in hung


def test_versions_that_do_not_agree_are_both_shown() -> None:
    shown = laptop()[0]
    first, second, *rest = shown.samples
    samples = [
        replace(first, record=replace(first.record, versions=(("torch", "2.11.0"),))),
        replace(second, record=replace(second.record, versions=(("torch", "2.11.1"),))),
        *rest,
    ]
    assert "torch  2.11.0 and 2.11.1" in show.cell(replace(shown, samples=samples))


def test_the_freeze_of_a_built_environment() -> None:
    built = Environment(lock(), Path("/e"), Path("/e/python"), "torch==2.14.1\nnumpy==2.0\n", 1.0)
    assert show.cell(laptop()[0], built).endswith("uv pip freeze\n  torch==2.14.1\n  numpy==2.0")

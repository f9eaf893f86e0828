"""Findings and plans for the tests of the bisection's reports, made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bisect_env.bisection.records import (
    Answer,
    Arm,
    CommitRange,
    Confirmation,
    Eliminated,
    Finding,
    Link,
    Observation,
    Plan,
    Stage,
    Unresolvable,
    VersionRange,
)
from bisect_env.matrix.cells import Condition
from bisect_env.snapshots.factors import Change, Factor, Held, Kind
from bisect_env.verdicts.records import Interval

FX = "RuntimeError: Detected that you are using FX to symbolically trace a dynamo-optimized function"
TORCH = Factor(
    "torch",
    Kind.DISTRIBUTION,
    "2.14.1",
    "2.11.0",
    (Change("torch", "2.14.1", "2.11.0", "", ""), Change("triton", "3.7.0", "3.4.0", "", "")),
)
CACHE = Factor("cache", Kind.CACHE, "warm", "cold", ())
GOOD_LOCK = "torch==2.14.1 \\\n    --hash=sha256:00\ntriton==3.7.0 \\\n    --hash=sha256:11\nnumpy==2.3.0\n"
BAD_LOCK = "torch==2.11.0 \\\n    --hash=sha256:22\ntriton==3.4.0 \\\n    --hash=sha256:33\nnumpy==2.3.0\n"
BATCH = Observation(
    stage=Stage.FACTORS,
    batch=3,
    point=(("torch", "bad"),),
    cell_key="c" * 16,
    environment="e" * 16,
    failures=3,
    passes=1,
    other=1,
    signatures=((FX, 3), ("MemoryError: other", 1)),
    trial_seconds=2.0,
    trials=("t1", "t2", "t3", "t4", "t5"),
)
SKIPPED = replace(BATCH, batch=4, point=(("numpy", "bad"),), failures=0, passes=0, other=0, skipped="no matching wheel")


def culprit(**more: Any) -> Finding:
    """torch is to blame, along its versions too, confirmed in both directions."""
    arms = (
        Arm("the bad end with torch good", (), False, Interval(0, 20, 0.0, 0.168), "a" * 16),
        Arm("the bad end", (), True, Interval(13, 20, 0.408, 0.846), "b" * 16),
        Arm("the good end with torch bad", (), True, Interval(12, 20, 0.361, 0.809), "c" * 16),
    )
    found = Finding(
        id="20261130-abcdef",
        answer=Answer.CULPRIT,
        sentence="torch 2.11.0 is to blame (97 %): 13 of 20 fresh trials fail with it, and 0 of 20 with 2.14.1.",
        probability=0.97,
        factors=(TORCH,),
        suspects=(("torch", 0.97), ("numpy", 0.02), ("none of these", 0.01)),
        versions=VersionRange("torch", "2.12.0", "2.11.0", ("2.11.0",), "bad", 0.996),
        signature=FX,
        confirmation=Confirmation(arms[0].rate, arms[1].rate, "bad", 8.3e-06, arms, True),
        eliminated=(
            Eliminated("numpy", 0.004, "2 of 12 fail with it at its good level"),
            Eliminated("jinja2", 0.001, "2 of 12 fail with it at its good level"),
        ),
        held=(Held("driver", "550.54", "570.10", "a driver belongs to the host"),),
        skipped=(("numpy bad, the rest good", "no wheel of numpy 1.9 for Python 3.12"),),
        other_signatures=(("MemoryError: other", 2),),
        locks=(GOOD_LOCK, BAD_LOCK),
        variables=((), (("HF_TOKEN", "hf_secret"),)),
        conditions=(Condition.of({"threads": 2, "cache": "warm"}), Condition.of({"threads": 2, "cache": "cold"})),
        commands=("bisect-env show good", "bisect-env show bad"),
        links=(Link("compare", "https://github.com/pytorch/pytorch/compare/v2.12.0...v2.11.0"),),
        notes=("conda and pip disagree about numpy",),
        observations=(BATCH, SKIPPED),
        trials=61,
        builds=7,
        seconds=754.0,
    )
    return replace(found, **more)


def unfinished(**more: Any) -> Finding:
    """The budget ended first."""
    found = Finding(
        id="20261130-abcdef",
        answer=Answer.INCONCLUSIVE,
        sentence="No answer within the budget: torch is the likeliest (61 %).",
        probability=0.61,
        suspects=(("torch", 0.61), *((f"package{number}", 0.02) for number in range(19)), ("none of these", 0.01)),
        signature=FX,
        trials=12,
        builds=1,
        seconds=30.0,
    )
    return replace(found, **more)


def commits(*candidates: str) -> CommitRange:
    """The commits that may be the first bad one."""
    return CommitRange("transformers", "../transformers", "0" * 40, candidates[0], candidates, "Faster masks", 0.98)


def plan(**more: Any) -> Plan:
    """Two suspects, one of them a group, and one mix that cannot be resolved."""
    found = Plan(
        factors=(TORCH, CACHE),
        held=(Held("driver", "550.54", "570.10", "a driver belongs to the host"),),
        mixes=6,
        unresolvable=(Unresolvable((("torch", "bad"),), "Because a==1\n  depends on b==2"),),
        trials=24.6,
        trials_95=51.0,
        environments=5.2,
        seconds=None,
        download_bytes=1_200_000_000,
        versions=(("torch", 9),),
        notes=("pip and conda disagree about numpy",),
    )
    return replace(found, **more)

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.environments.records import Reason, Unavailable
from bisect_env.matrix.cells import Condition
from bisect_env.trials.records import Outcome, PathCount, Round, Side, StepTime, TrialRecord, Utilisation
from bisect_env.verdicts.looks import Design, looks
from bisect_env.verdicts.records import Ends, Headline
from bisect_env.verdicts.samples import Placed
from bisect_env.verdicts.verdict import judge, without_environment
from tests.verdicts.build import FX, LETTERS, SUBGRAPH, cell, failure, paths, rates, record, side

SIX = Design(6, 6)
ONE_LOOK = Design(12, 6, solo=0, stop_early=False)
CLEAN = "......"


@pytest.mark.parametrize(
    ("threads", "serial", "solo", "text"),
    [
        ("", "", "", "NOT RUN"),
        ("XX", "X", "", "NOT RUN"),
        ("", "...", "", "NOT RUN"),
        ("KK", "K", "", "SKIPPED"),
        ("KK", "...", "", "SKIPPED"),
        ("I", "I", "I", "IMPORT-FAILED"),
        ("", "II", "", "IMPORT-FAILED"),
        ("FFFF", "....", "....", "RACE 4/4"),
        ("FFFFF.", CLEAN, CLEAN, "RACE 5/6"),
        ("IIIIII", CLEAN, CLEAN, "RACE 6/6"),
        ("SSSSSS", "FFFFFF", CLEAN, "RACE 6/6"),
        ("HHHHH.", CLEAN, CLEAN, "HANG 5/6"),
        ("HHHFFF", CLEAN, CLEAN, "RACE 6/6, 3 hung"),
        ("HHHHFF", CLEAN, CLEAN, "HANG 6/6, 2 failed"),
        ("HFFF..", CLEAN, CLEAN, "RACE 4/6, 1 hung"),
        ("FFFFFF", "HHHHHH", CLEAN, "RACE 6/6"),
        ("HHHHHH", "FFFFFF", CLEAN, "HANG 6/6"),
        ("FFFHHH", "HHHHHH", CLEAN, "BROKEN 6/6, 3 hung"),
        ("H.....", "H.....", CLEAN, "BROKEN 1/6"),
        ("OOFFHH", CLEAN, CLEAN, "RACE 4/6, 2 hung"),
        ("FFF...", "FF....", CLEAN, "BROKEN 3/6"),
        ("FF....", CLEAN, "F.....", "BROKEN 2/6"),
        ("FFFF", "FFFF", "FFFF", "BROKEN 4/4"),
        (CLEAN, "F.....", CLEAN, "BROKEN 0/6"),
        ("FFF", "FFF", "...", "UNSURE"),
        ("OO....", CLEAN, CLEAN, "OOM 2/6"),
        ("W.....", CLEAN, CLEAN, "WRONG 1/6"),
        ("FF....", CLEAN, CLEAN, "UNSURE"),
        ("F", "", "", "UNSURE"),
        ("FFFFFF", "", "", "UNSURE"),
        (CLEAN, CLEAN, CLEAN, "FULL"),
        ("..", "..", "..", "FULL"),
        ("XX......", CLEAN, CLEAN, "FULL"),
    ],
)
def test_headlines(threads: str, serial: str, solo: str, text: str) -> None:
    found = judge(cell(threads, serial, solo), SIX)
    assert found.text == text
    assert found.reason
    assert found.infra == threads.count("X") + serial.count("X")


def test_a_race_says_what_it_rests_on() -> None:
    found = judge(cell("FFFF", "....", "...."), SIX)
    assert found.reason == (
        "4 of 4 threaded trials and 0 of 4 serial controls failed (one-sided exact test, p = 0.014, limit 0.015, look "
        "at 4 blocks); most often RuntimeError: Detected that you are using FX to symbolically trace; "
        "stopped early, after 4 blocks"
    )
    assert found.stopped_early and found.stopped_at == 4
    assert found.threads is not None and found.serial is not None
    assert (found.threads.k, found.threads.n, found.serial.k, found.serial.n) == (4, 4, 0, 4)


def test_what_failed_and_what_hung_is_one_finding_and_told_apart() -> None:
    hung = side(Side.THREADS, "HHHH", hang_kind="deadlock")
    found = judge(side(Side.THREADS, "FFFFFFFF") + hung + side(Side.SERIAL, CLEAN), ONE_LOOK)
    assert found.text == "RACE 12/12, 4 hung"
    assert found.reason == (
        "12 of 12 threaded trials and 0 of 6 serial controls failed or hung (one-sided exact test, p = 5.4e-05, limit "
        "0.046, look at 12 blocks); of the threaded trials 8 failed and 4 hung; deadlock 4 times; most often "
        "RuntimeError: Detected that you are using FX to symbolically trace"
    )
    assert (found.ends_threads, found.ends_serial, found.ends_solo) == (Ends(8, 4), Ends(), Ends())
    assert found.threads is not None and (found.threads.k, found.threads.n, found.bound) == (12, 12, 1.0)
    few = judge(cell("FFFHHH", "...."), Design(6, 4, solo=0, stop_early=False))
    assert few.text == "RACE 6/6, 3 hung" and few.p_value == pytest.approx(1 / 210)


def test_a_way_that_the_control_does_not_go_wrong_in_is_noted() -> None:
    found = judge(cell("HHHHHH", "FFFFFF", CLEAN), SIX)
    assert found.reason.startswith(
        "the control goes wrong too, but not in this way: 6 of 6 threaded trials and 0 of 6 serial controls hung "
    )
    assert found.marks == (found.reason,)
    assert found.serial is not None and found.serial.k == 6


def test_a_race_by_signature_says_so() -> None:
    found = judge(cell("SSSSSS", "FFFFFF", CLEAN), SIX)
    assert found.reason.startswith("the control goes wrong too, but not in this way: InductorError")
    assert {(item.signature, item.threads, item.serial) for item in found.signatures} == {(SUBGRAPH, 6, 0), (FX, 0, 6)}


def test_the_signatures_of_all_threads_count_once_a_trial() -> None:
    both = (failure(FX, "w0"), failure(FX, "w1"), failure(SUBGRAPH, "w2"))
    records = side(Side.THREADS, "FFFF", failures=both) + side(Side.SERIAL, "....")
    assert [(item.signature, item.threads) for item in judge(records, SIX).signatures] == [(SUBGRAPH, 4), (FX, 4)]


def test_full_says_what_its_clean_trials_support() -> None:
    found = judge(cell("." * 20, "." * 20, "." * 20), Design(20, 20))
    assert found.headline is Headline.FULL and found.missing == 39
    assert found.bound == pytest.approx(0.139, abs=5e-4)
    assert found.reason == ("0/20: a race rate below 14 % at 95 %; 39 more clean trials would show it to be below 5 %")
    assert judge(cell("." * 59, "." * 59), Design(59, 59)).missing == 0


def test_unsure_says_how_many_more_would_tell() -> None:
    found = judge(cell("FFF...", CLEAN, CLEAN), SIX)
    assert found.headline is Headline.UNSURE and found.missing > 0
    assert f"{found.missing} more trials of each side would tell" in found.reason
    assert (
        "and 0 of 6 serial controls failed, which chance can explain (one-sided exact test, p = 0.091" in found.reason
    )
    running = judge(cell("F..", "...", "..."), SIX)
    assert running.missing == 3 and "not finished: 3 of 6 threaded" in running.reason


def test_unsure_says_what_is_missing() -> None:
    alone = judge(cell("FFFFFF", ""), Design(6, 0))
    assert alone.reason == (
        "6 of 6 threaded trials failed; a race cannot be told from a broken environment without a trial of the serial "
        "control"
    )
    near = judge(cell("....FFFF", "." * 8, "." * 8), Design(8, 8))
    assert near.headline is Headline.UNSURE
    assert (
        "failed, which is rare by chance, but not enough so (one-sided exact test, p = 0.038, limit 0.02" in near.reason
    )
    assert "more trials of each side would tell" in near.reason
    hung = judge(cell("FH....", CLEAN, CLEAN), SIX).reason
    assert "serial controls failed or hung; of the threaded trials 1 failed and 1 hung, which chance can exp" in hung
    rare = judge(cell("F" + "." * 299, "." * 3), Design(300, 3, solo=0))
    assert rare.reason.endswith("; at these rates 1000 more trials of each side would not tell")


@given(st.text("FHSI.", min_size=1, max_size=14), st.integers(0, 14), st.booleans())
def test_chance_is_blamed_only_where_it_can_explain_what_was_seen(threads: str, controls: int, early: bool) -> None:
    design = Design(len(threads), controls, solo=0, stop_early=early)
    found = judge(cell(threads, "." * controls), design)
    if found.headline is Headline.UNSURE and found.p_value is not None:
        assert found.p_value > looks(design)[-1].limit
        assert ("which chance can explain" in found.reason) is (found.p_value > 0.05)
    if controls >= 4 and not set(threads) & set(".") and len(threads) >= 4:
        assert found.headline in (Headline.RACE, Headline.HANG)


def dense(share: float, *signs: str) -> tuple[PathCount, ...]:
    return paths(("w0", 100, dict.fromkeys(signs, 0)), ("w1", 100, dict.fromkeys(signs, round(100 * share))))


def test_dense_and_doubtful() -> None:
    sure = judge(cell(CLEAN, CLEAN, CLEAN, paths=dense(0.31, "math_attention", "library_choice")), SIX)
    assert sure.text == "DENSE 31 %" and not sure.doubtful
    doubtful = judge(cell(CLEAN, CLEAN, CLEAN, paths=dense(0.31, "math_attention")), SIX)
    assert doubtful.text == "DENSE? 31 %"
    racing = judge(cell("FFFFFF", CLEAN, CLEAN, paths=dense(0.31, "math_attention")), SIX)
    assert racing.text == "RACE 6/6" and racing.dense[1].share == pytest.approx(0.31)


def test_slow_needs_the_whole_interval_below() -> None:
    reference = rates([1000, 1010, 990, 1000, 1005, 995])
    slow, noisy = rates([600, 610, 590, 605, 595, 600]), rates([600, 1100, 700, 1200, 900, 800])
    found = judge(slow, SIX, reference)
    assert found.text == "SLOW 0.60" and "paired by block" in found.reason
    assert judge(noisy, SIX, reference).headline is Headline.FULL
    assert judge(slow, SIX).headline is Headline.FULL


def test_wrong_losses_are_compared_by_seed() -> None:
    good, bad = (("w0", (10.0, 9.0)),), (("w0", (10.0, 5.0)),)
    serial = [record(Side.SERIAL, seed=seed, losses=good) for seed in range(6)]
    threads = [record(Side.THREADS, seed=seed, losses=bad if seed == 4 else good) for seed in range(6)]
    found = judge(threads + serial, SIX)
    assert found.text == "WRONG 1/6" and "loss 5 at step 1" in found.reason
    elsewhere = [replace(item, seed=item.seed + 100) for item in threads]
    assert judge(elsewhere + serial, SIX).headline is Headline.FULL


def test_marks() -> None:
    warm = Condition.of({"cache": "warm"})
    two = Design(2, 2)
    found = judge(cell("..", "..", "..", condition=warm, cache_misses=3, exposures=0), two)
    assert [mark.split(":")[0] for mark in found.marks] == [
        "the compile cache was not warm",
        "no call was made while another thread compiled",
    ]
    assert judge(cell("..", "..", "..", exposures=4), two).marks == ()


def test_a_full_cell_that_is_not_finished_says_so() -> None:
    found = judge(cell("..", "..", ".."), SIX)
    assert found.headline is Headline.FULL
    assert found.marks == ("not finished: 2 of 6 threaded, 2 of 6 serial, 2 of 6 solo trials are in",)
    assert judge(cell("..", "..", exposures=4), SIX).exposures == 8


def test_what_is_still_to_come_is_named_rightly() -> None:
    found = judge(cell("FF....", "..", "......"), SIX)
    assert found.headline is Headline.UNSURE and found.missing == 0
    assert found.reason.endswith("; not finished: 2 of 6 serial trials are in")


def test_exposures_are_summed_and_put_in_proportion() -> None:
    found = judge(cell("F...", "....", exposures=30), SIX)
    assert (found.exposures, found.exposures_per_trial, found.exposures_per_failure) == (120, 30, 120)
    clean = judge(cell("....", "....", exposures=30), SIX)
    assert (clean.exposures, clean.exposures_per_failure) == (120, None)
    silent = judge(cell("F...", "...."), SIX)
    assert (silent.exposures, silent.exposures_per_trial, silent.exposures_per_failure) == (None, None, None)


def test_timed_rounds_are_seen_and_never_counted() -> None:
    counted = cell(CLEAN, CLEAN, CLEAN)
    used = (Utilisation("attention", 2e12, 1.0, 4e12), Utilisation("step", 1e12, 0.0, 4e12))
    timed = [
        record(Side.ROUNDS, utilisation=used, peak_bytes=7, numbers=(("out of w1", 0.5, 0.01),)),
        record(Side.ROUNDS, utilisation=(Utilisation("attention", 1e12, 1.0, 4e12),)),
        record(Side.ROUNDS, Outcome.FAILED),
    ]
    found = judge(counted + timed, SIX)
    assert found.headline is Headline.FULL and found.threads == judge(counted, SIX).threads
    assert found.utilisation == (("attention", pytest.approx(0.375)),)
    assert found.peak_bytes == 7
    assert found.marks == (
        "wrong numbers in the timed rounds, which are not counted: out of w1: relative error 0.5, tolerance 0.01",
        "1 of 3 processes of timed rounds failed, which are not counted: RuntimeError: Detected that you are using FX "
        "to symbolically trace",
    )


def test_what_became_of_failures_after_a_reset_is_marked() -> None:
    doubted = side(Side.THREADS, "FFF", resets=2) + side(Side.SERIAL, "F", resets=2)
    again = side(Side.THREADS, "F..", only_repeat=2)
    found = judge(side(Side.THREADS, "...") + doubted + again + side(Side.SERIAL, CLEAN), Design(6, 6, solo=0))
    assert found.threads is not None and (found.threads.k, found.threads.n) == (1, 6)
    assert found.marks == (
        "3 threaded trials failed only after a reset, which is not counted; the same repeat alone in a fresh process, "
        "which counts instead, failed in 1 of 3",
    )


def test_trials_side_by_side_are_marked() -> None:
    assert judge(cell("......", "......", "......", at_once=10), SIX).marks == ("trials ran 10 at a time",)


def test_misses_in_a_stale_cache_are_no_surprise() -> None:
    stale = Condition.of({"cache": "stale"})
    assert judge(cell(CLEAN, CLEAN, CLEAN, condition=stale, cache_misses=3, exposures=4), SIX).marks == ()


def test_without_solo_controls_a_cell_is_whole() -> None:
    found = judge(cell(CLEAN, CLEAN), Design(6, 6, solo=0))
    assert found.headline is Headline.FULL and found.marks == ()
    assert judge(cell("F.....", CLEAN), Design(6, 6, solo=0)).reason.count("solo") == 0


@pytest.mark.parametrize(
    ("stage", "reason", "headline"),
    [
        ("resolve", Reason.CONFLICT, Headline.UNRESOLVABLE),
        ("build", Reason.BUILD, Headline.BUILD_FAILED),
        ("import", Reason.IMPORT, Headline.IMPORT_FAILED),
    ],
)
def test_without_environment(stage: str, reason: Reason, headline: Headline) -> None:
    found = without_environment(Unavailable(stage, reason, "because a needs b<2\n"))
    assert found.headline is headline and found.reason == f"{reason.value}: because a needs b<2"


# Laws, over records that may be as odd as they come.

FLOAT = st.floats(allow_nan=True, allow_infinity=True)
SMALL = st.integers(-3, 200)


@st.composite
def odd_records(draw: st.DrawFn) -> TrialRecord:
    name = st.sampled_from(["w0", "w1", ""])
    return record(
        draw(st.sampled_from(list(Side))),
        draw(st.sampled_from(list(Outcome))),
        seed=draw(st.integers(0, 2)),
        failures=tuple(failure(draw(st.sampled_from([FX, SUBGRAPH]))) for _ in range(draw(st.integers(0, 2)))),
        paths=paths(*draw(st.lists(st.tuples(name, SMALL, st.dictionaries(st.sampled_from(["a", "kernels"]), SMALL))))),
        steps=tuple(StepTime(*draw(st.tuples(name, SMALL, FLOAT, FLOAT, st.booleans()))) for _ in range(2)),
        rounds=tuple(Round(*draw(st.tuples(SMALL, SMALL, FLOAT, FLOAT))) for _ in range(draw(st.integers(0, 2)))),
        utilisation=tuple(Utilisation("step", *draw(st.tuples(FLOAT, FLOAT, FLOAT))) for _ in range(2)),
        at_once=draw(st.sampled_from([1, 4])),
        resets=draw(st.sampled_from([0, 2])),
        peak_bytes=draw(st.none() | SMALL),
        predicted_bytes=tuple(draw(st.dictionaries(st.sampled_from(["fused", "dense"]), SMALL)).items()),
        losses=tuple(draw(st.lists(st.tuples(name, st.lists(FLOAT, max_size=3).map(tuple)), max_size=2))),
        numbers=tuple(draw(st.lists(st.tuples(name, FLOAT, FLOAT), max_size=2))),
        exposures=draw(st.none() | SMALL),
        cache_misses=draw(st.none() | SMALL),
        hang_kind=draw(st.sampled_from(["", "deadlock"])),
        message=draw(st.sampled_from(["", "why"])),
    )


@given(st.lists(odd_records(), max_size=12), st.lists(odd_records(), max_size=4), st.integers(1, 6), st.integers(0, 6))
@settings(max_examples=80, deadline=None)
def test_it_never_raises(records: list[TrialRecord], other: list[TrialRecord], trials: int, controls: int) -> None:
    found = judge(records, Design(trials, controls), other, other)
    assert found.text and found.reason
    assert found.stopped_early is False or found.stopped_at is not None


LETTER = st.sampled_from(sorted(LETTERS))
SIDE = st.text(LETTER, max_size=8)


@given(SIDE, SIDE, SIDE, st.randoms(use_true_random=False))
def test_order_within_a_block_does_not_matter(threads: str, serial: str, solo: str, rng: random.Random) -> None:
    placed = [
        Placed(item, block)
        for letters, which in ((threads, Side.THREADS), (serial, Side.SERIAL), (solo, Side.SOLO))
        for block, item in enumerate(side(which, letters))
    ]
    shuffled = list(placed)
    rng.shuffle(shuffled)
    assert judge(shuffled, SIX) == judge(placed, SIX)


@given(SIDE, SIDE, SIDE, st.lists(st.sampled_from(list(Side)), min_size=1, max_size=5), st.randoms())
def test_infrastructure_failures_never_change_the_headline(
    threads: str, serial: str, solo: str, more: list[Side], rng: random.Random
) -> None:
    records = cell(threads, serial, solo)
    with_infra = list(records)
    for which in more:
        with_infra.insert(rng.randint(0, len(with_infra)), record(which, Outcome.INFRA))
    before, after = judge(records, SIX), judge(with_infra, SIX)
    assert after.headline is before.headline
    assert after.infra >= before.infra
    assert replace(after, infra=0, reason="") == replace(before, infra=0, reason="")


@given(SIDE, st.text(LETTER, min_size=1, max_size=8), st.sampled_from("FSHI"), st.data())
@settings(max_examples=400)
def test_more_controls_that_go_wrong_never_make_a_race(
    threads: str, serial: str, worse: str, data: st.DataObject
) -> None:
    clean = [i for i, letter in enumerate(serial) if letter == "."]
    if not clean:
        return
    at = data.draw(st.sampled_from(clean))
    failing = serial[:at] + worse + serial[at + 1 :]
    before, after = judge(cell(threads, serial), SIX), judge(cell(threads, failing), SIX)
    if before.headline not in (Headline.RACE, Headline.HANG):
        assert after.headline not in (Headline.RACE, Headline.HANG)

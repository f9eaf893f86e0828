"""Which trials of a cell count together: laws over any trials, and what is said."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.trials.records import Device, Outcome, Side
from bisect_env.verdicts import hardware
from bisect_env.verdicts.hardware import Hardware
from bisect_env.verdicts.samples import Placed, counts
from tests.verdicts.build import record

H200 = Device("GPU-1", "NVIDIA H200", 0, 1 << 37, "580.1")
OTHER_H200 = Device("GPU-2", "NVIDIA H200", 1, 1 << 37, "580.1")
H200_NEWER = Device("GPU-1", "NVIDIA H200", 0, 1 << 37, "590.2")
A2 = Device("GPU-3", "NVIDIA A2", 0, 1 << 34, "580.1")

leases = st.sampled_from([(), (H200,), (OTHER_H200,), (H200, OTHER_H200), (H200_NEWER,), (A2,), (H200, A2)])


def on(devices: st.SearchStrategy[tuple[Device, ...]]) -> st.SearchStrategy[Placed]:
    return st.builds(
        lambda side, outcome, devices, started, block: Placed(
            record(side, outcome, devices=devices, started=float(started)), block
        ),
        st.sampled_from(list(Side)),
        st.sampled_from(list(Outcome)),
        devices,
        st.integers(0, 5),
        st.integers(0, 3),
    )


trials = on(leases)
some = st.lists(trials, max_size=12)


def of(outcome: Outcome = Outcome.CLEAN, *devices: Device, started: float = 0.0, side: Side = Side.THREADS) -> Placed:
    return Placed(record(side, outcome, devices=devices, started=started), 0)


@given(some)
def test_every_trial_is_on_one_side_and_what_counts_is_of_one_hardware(samples: list[Placed]) -> None:
    for judged in (hardware.most(samples), Hardware.of([A2]), None):
        own, others = hardware.apart(samples, judged)
        assert sorted(map(id, (*own, *others))) == sorted(map(id, samples))
        assert [s for s in samples if s in own] == list(own), "the order stays"
        if judged is not None:
            assert {hardware.ran_on(s.record) for s in own if counts(s.record)} <= {judged}
            assert not [s for s in others if hardware.ran_on(s.record) == judged]


@given(some)
def test_the_judged_group_has_the_most_that_count(samples: list[Placed]) -> None:
    judged = hardware.most(samples)
    if judged is None:
        assert all(sample.record.outcome is Outcome.INFRA for sample in samples)
        return

    def number(own: Hardware) -> int:
        return sum(counts(s.record) and hardware.ran_on(s.record) == own for s in samples)

    assert all(number(judged) >= number(hardware.ran_on(sample.record)) for sample in samples)


@given(some, st.lists(st.sampled_from([Outcome.CLEAN, Outcome.FAILED, Outcome.HANG, Outcome.OOM]), min_size=12))
def test_what_the_trials_show_does_not_decide_which_are_judged(samples: list[Placed], outcomes: list[Outcome]) -> None:
    counted = [s for s in samples if counts(s.record)]
    shown = [
        replace(s, record=replace(s.record, outcome=outcome)) for s, outcome in zip(counted, outcomes, strict=False)
    ]
    assert hardware.most(counted) == hardware.most(shown)


@given(st.lists(trials, max_size=4))
def test_the_order_in_which_trials_are_read_does_not_decide(samples: list[Placed]) -> None:
    assert len({hardware.most(order) for order in permutations(samples)}) <= 1


@given(st.lists(on(st.sampled_from([(H200,), (OTHER_H200,)])), max_size=12))
def test_where_all_hardware_is_the_same_nothing_changes(samples: list[Placed]) -> None:
    judged = hardware.most(samples)
    assert hardware.apart(samples, judged) == (tuple(samples), ()) and hardware.marks(judged, ()) == ()


def test_hosts_and_places_of_gpus_do_not_matter_models_and_drivers_do() -> None:
    assert Hardware.of([H200]) == Hardware.of([OTHER_H200]) == Hardware.of([H200, OTHER_H200])
    assert len({Hardware.of(each) for each in ([], [H200], [H200_NEWER], [A2], [H200, A2])}) == 5


def test_of_several_groups_with_as_many_trials_that_count_the_latest() -> None:
    lost, profiled = of(Outcome.INFRA, A2), of(Outcome.CLEAN, A2, side=Side.PROFILE)
    samples = [lost, profiled, of(Outcome.CLEAN, H200, started=1.0), of(Outcome.CLEAN, H200_NEWER, started=2.0)]
    assert hardware.most(samples) == Hardware.of([H200_NEWER])
    assert hardware.most([*samples, of(Outcome.FAILED, H200, started=0.5)]) == Hardware.of([H200])
    assert hardware.most([lost]) is None


def test_a_trial_that_the_machine_lost_before_it_had_a_gpu_is_nobody_elses() -> None:
    lost = of(Outcome.INFRA)
    assert hardware.apart([lost], Hardware.of([H200])) == ((lost,), ())
    on_another = of(Outcome.INFRA, A2)
    assert hardware.apart([on_another], Hardware.of([H200])) == ((), (on_another,))


def test_what_a_further_trial_can_run_on() -> None:
    both = Hardware.of([H200, A2])
    for devices, here, can in (
        ((A2,), both, True),
        ((H200, A2), both, True),
        ((H200_NEWER,), both, False),
        ((), both, False),
        ((A2,), Hardware(), False),
        ((), Hardware(), True),
        ((A2,), None, True),
    ):
        assert hardware.possible(of(Outcome.CLEAN, *devices).record, here) is can
    assert hardware.possible(of(Outcome.INFRA).record, both)


def test_words() -> None:
    newer, older, small = (Hardware.of([each]) for each in (H200_NEWER, H200, A2))
    assert hardware.marks(older, [of(Outcome.CLEAN, A2), of(Outcome.FAILED, A2), of(Outcome.INFRA, A2)]) == (
        "2 trials on NVIDIA A2 are there too, and not pooled with those on NVIDIA H200",
    )
    assert hardware.marks(older, [of(Outcome.CLEAN, H200_NEWER)]) == (
        "1 trial on NVIDIA H200, driver 590.2 is there too, and not pooled with those on NVIDIA H200, driver 580.1",
    )
    assert hardware.marks(older, [of()]) == (
        "1 trial on no GPU is there too, and not pooled with those on NVIDIA H200",
    )
    assert hardware.told(small, [small, newer]) == "NVIDIA A2, driver 580.1"
    assert hardware.why_not(of(Outcome.CLEAN, A2).record, newer) == (
        "it ran on NVIDIA A2, driver 580.1; this cell's trials are of NVIDIA H200, driver 590.2"
    )
    assert str(Hardware()) == "no GPU" and str(Hardware((("Tesla", ""),))) == "Tesla"

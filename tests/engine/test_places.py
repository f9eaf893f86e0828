"""Places: cores are nobody's twice, GPUs go to the least loaded in turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.engine.places import Place, Places, alike, split
from bisect_env.engine.trialing import narrowed
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.trials.records import Device
from bisect_env.verdicts.hardware import Hardware

DEVICES = tuple(Device(f"GPU-{index}", "pretended", index, 1, "1") for index in range(2))


@given(st.integers(1, 200), st.integers(1, 200))
def test_cores_are_disjoint_and_of_one_size_or_too_few(count: int, at_once: int) -> None:
    cores = range(100, 100 + count)
    if at_once > count:
        with pytest.raises(BadInput, match=f"{at_once} trials at once, and this process may use {count} CPU cores"):
            split(cores, at_once)
        return
    sets = split(cores, at_once)
    assert len(sets) == at_once and {len(each) for each in sets} == {count // at_once}
    given_away = [core for each in sets for core in each]
    assert len(set(given_away)) == len(given_away) and set(given_away) <= set(cores)


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 11)), max_size=60))
def test_whoever_comes_and_goes_places_differ_and_gpus_are_evenly_loaded(
    at_once: int, moves: list[tuple[int, int]]
) -> None:
    places, taken = Places(range(32), at_once, DEVICES), []
    for gpus, leaves in moves:
        if places.free:
            taken.append(places.take(gpus))
        elif taken:
            places.give_back(taken.pop(leaves % len(taken)))
        assert len(taken) <= at_once and len({place.number for place in taken}) == len(taken)
        cores = [core for place in taken for core in place.cores]
        assert len(set(cores)) == len(cores)
        if taken and all(len(place.devices or ()) == 1 for place in taken) and not any(g > 1 for g, _ in moves):
            loads = [sum(device in (place.devices or ()) for place in taken) for device in DEVICES]
            assert max(loads) - min(loads) <= at_once


def test_one_after_the_other_they_take_turns() -> None:
    places = Places(range(8), 4, DEVICES)
    first = [places.take(1) for _ in range(4)]
    assert [place.devices for place in first] == [(DEVICES[0],), (DEVICES[1],)] * 2
    places.give_back(first[1])
    assert places.take(1).devices == (DEVICES[1],), "the least loaded"
    assert not places.free
    places.give_back(first[0])
    assert places.take(2) == Place(0, (0, 1), (DEVICES[0], DEVICES[1]))


def test_without_gpus_of_the_run_a_trial_leases_its_own() -> None:
    assert Places(range(2), 1).take(1) == Place(0, (0, 1), None)


def test_more_gpus_than_there_are() -> None:
    with pytest.raises(InfrastructureError, match="needs 3 GPUs at a time, and 2 can be used"):
        Places(range(2), 1, DEVICES).take(3)
    slices = tuple(Device(f"MIG-{index}", "slice", 0, 1, "1") for index in range(2))
    with pytest.raises(InfrastructureError, match="needs 2 GPUs at a time, and 0 can be used"):
        Places(range(2), 1, slices).take(2)
    assert Places(range(2), 1, slices).take(1).devices == slices[:1]


def test_of_several_kinds_of_gpus_a_cell_gets_those_that_it_is_measured_on() -> None:
    big = [Device(f"GPU-a{n}", "A100", n, 1, "1") for n in range(2)]
    small = [Device(f"GPU-b{n}", "A2", 2 + n, 1, "1") for n in range(3)]
    every, on_big = (*big, *small), Hardware.of(big)
    assert alike(every, on_big, 1) == tuple(big) and alike(every, None, 1) == every
    assert alike(every, on_big, 3) == every, "rather on others than not at all: those do not count"
    places = Places(range(8), 4, every)
    taken = [places.take(1, on_big) for _ in range(3)]
    assert {place.devices[0].name for place in taken if place.devices} == {"A100"}
    assert places.take(1).devices == (small[0],)
    assert narrowed("0,1,2", every[:3], on_big, 1) == "GPU-a0,GPU-a1"
    assert narrowed("0,1", big, on_big, 1) == "0,1" and narrowed(None, every, None, 1) is None

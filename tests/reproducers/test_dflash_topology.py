"""Which GPU does what."""

from __future__ import annotations

import pytest
from dflash_topology import Topology, topology
from hypothesis import given
from hypothesis import strategies as st

some = st.integers(1, 64)


@given(some, some)
def test_drafters_take_the_devices_in_turn(threads: int, devices: int) -> None:
    laid = topology("drafters", threads, devices)
    assert laid == Topology(tuple(thread % devices for thread in range(threads)))
    assert set(laid.drafters) == set(range(min(threads, devices)))


def test_the_incident_itself() -> None:
    laid = topology("incident", 3, 8)
    assert laid.drafters == (5, 6, 7)
    assert laid.targets == (0, 1, 2, 3, 4)
    assert laid.sources == ((0, 3), (1, 4), (2,))


@pytest.mark.parametrize(
    ("devices", "targets", "drafters"),
    [(1, 1, 1), (2, 1, 1), (3, 2, 1), (4, 3, 1), (5, 3, 2), (6, 4, 2), (7, 4, 3), (8, 5, 3), (16, 10, 6)],
)
def test_the_incident_scaled(devices: int, targets: int, drafters: int) -> None:
    laid = topology("incident", 6, devices)
    assert (len(laid.targets), len(set(laid.drafters))) == (targets, drafters)


@given(some, some)
def test_roles_share_a_device_only_where_there_is_one(threads: int, devices: int) -> None:
    laid = topology("incident", threads, devices)
    assert len(laid.drafters) == threads
    used = set(laid.targets) | set(laid.drafters)
    assert used == set(range(devices))
    assert not set(laid.targets) & set(laid.drafters) or devices == 1
    assert len(set(laid.targets)) == len(laid.targets)
    # Drafters are on the last devices, and no device has two more of them than another.
    assert min(laid.drafters) > max(laid.targets) or devices == 1
    loads = [laid.drafters.count(device) for device in set(laid.drafters)]
    assert max(loads) - min(loads) <= 1


@given(some, some)
def test_about_three_eighths_of_the_devices_draft(threads: int, devices: int) -> None:
    drafting = len(set(topology("incident", threads, devices).drafters))
    if drafting < threads:
        assert abs(drafting - devices * 3 / 8) <= 0.5 or drafting == 1


@given(some, some)
def test_every_target_feeds_and_every_drafter_is_fed(threads: int, devices: int) -> None:
    laid = topology("incident", threads, devices)
    assert len(laid.sources) == threads
    assert all(laid.sources)
    fed = [target for sources in laid.sources for target in sources]
    assert set(fed) == set(range(len(laid.targets)))
    # No target feeds two where another thread waits for one: the larger side is dealt out once.
    assert len(fed) == max(threads, len(laid.targets))


@pytest.mark.parametrize(
    ("kind", "threads", "devices"), [("drafters", 0, 1), ("incident", 1, 0), ("ring", 1, 1), ("", 2, 2)]
)
def test_what_is_no_topology_is_refused(kind: str, threads: int, devices: int) -> None:
    with pytest.raises(ValueError, match="topology"):
        topology(kind, threads, devices)

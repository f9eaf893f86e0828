"""A candidate told as a change, resolved by the real uv on tiny wheels: what moves, what that forces, what stays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from bisect_env.environments import locks
from bisect_env.environments.records import Lock, Reason
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput
from bisect_env.gate.candidates import Settled, changed, settled
from bisect_env.gate.sides import cells
from bisect_env.matrix.cells import IndexChoice
from bisect_env.snapshots.records import Snapshot
from tests.gate.build import asked, side
from tests.support.index import Index
from tests.support.wheels import Wheels

Change = Callable[..., Settled]


@pytest.fixture
def upgrade(index: Index, wheels: Wheels, uv: Uv) -> Change:
    """``upgrade(baseline, *lines)`` over an index with a library, what it needs, and a bystander."""
    for version, needs in (("1.0", "hub<1"), ("2.0", "hub>=1,<3")):
        index.add(wheels.wheel("library", version, requires=[needs]))
    for version in ("0.5", "0.6", "1.0", "2.0", "3.0"):
        index.add(wheels.wheel("hub", version))
    for version in ("1.0", "2.0", "3.0.dev1"):
        index.add(wheels.wheel("bystander", version))
    index.add(wheels.wheel("unlisted", "1.0"))
    index.add(wheels.wheel("alone", "1.0", requires=["unlisted"]))

    def change(baseline: Snapshot, *lines: str) -> Settled:
        specification = asked(baseline, baseline, index=IndexChoice(urls=(index.url,)))
        cell = cells(specification)[0]
        lock = locks.resolve(cell.request, uv)
        assert isinstance(lock, Lock), lock
        before, found = changed(baseline, lock, cell.request, lines, uv, threading.Event())
        assert {each.name: each.version for each in before.distributions} == dict(lock.pins)
        return found

    return change


def versions(found: Settled) -> dict[str, str | None]:
    assert found.unavailable is None, found.unavailable
    return {each.name: each.version for each in found.snapshot.distributions}


def test_what_was_named_moves_and_what_that_forces(upgrade: Change) -> None:
    baseline = side("now.txt", library="1.0", hub="0.5", bystander="1.0")
    found = upgrade(baseline, "library==2.0")
    assert versions(found) == {"library": "2.0", "hub": "2.0", "bystander": "1.0"}
    assert found.snapshot.origin == "now.txt with library==2.0"


def test_nothing_else_moves_though_it_is_old(upgrade: Change) -> None:
    found = upgrade(side("now.txt", library="1.0", hub="0.5", bystander="1.0"), "bystander==2.0")
    assert versions(found) == {"library": "1.0", "hub": "0.5", "bystander": "2.0"}


def test_a_name_alone_moves_to_its_newest_release(upgrade: Change) -> None:
    assert versions(upgrade(side("now.txt", bystander="1.0", hub="0.5"), "bystander"))["bystander"] == "2.0"


def test_something_new_is_added_with_what_it_requires(upgrade: Change) -> None:
    found = versions(upgrade(side("now.txt", bystander="1.0"), "alone"))
    assert found == {"bystander": "1.0", "alone": "1.0", "unlisted": "1.0"}


def test_a_pre_release_that_is_installed_stays(upgrade: Change) -> None:
    found = versions(upgrade(side("now.txt", bystander="3.0.dev1", hub="0.5"), "hub==1.0"))
    assert found == {"bystander": "3.0.dev1", "hub": "1.0"}


def test_what_the_baselines_form_does_not_list_is_there_before_and_after(upgrade: Change) -> None:
    found = versions(upgrade(side("now.txt", alone="1.0", hub="0.5"), "hub==1.0"))
    assert found == {"alone": "1.0", "hub": "1.0", "unlisted": "1.0"}, "as in the baseline's lock"


def test_what_cannot_be_had_is_told_with_what_was_asked_for(upgrade: Change) -> None:
    found = upgrade(side("now.txt", library="1.0", hub="0.5"), "library==9.0")
    assert found.unavailable is not None and found.unavailable.reason is Reason.NO_SUCH_VERSION
    assert {each.name: each.version for each in found.snapshot.distributions} == {"library": "9.0", "hub": "0.5"}
    conflict = upgrade(side("now.txt", library="1.0", hub="0.5"), "library==2.0", "hub==3.0")
    assert conflict.unavailable is not None and conflict.unavailable.reason is Reason.CONFLICT


@pytest.mark.parametrize("line", ["library = 2", "library @ https://me:secret@host/library.whl"])
def test_what_is_no_requirement_is_refused(upgrade: Change, line: str) -> None:
    with pytest.raises(BadInput) as refused:
        upgrade(side("now.txt", library="1.0", hub="0.5"), line)
    assert "secret" not in str(refused.value)


def test_what_is_asked_for_on_another_python_alone_stays(upgrade: Change) -> None:
    baseline = side("now.txt", library="1.0", hub="0.5", bystander="1.0")
    found = upgrade(baseline, "bystander==2.0; python_version < '3'", "hub==0.6; python_version > '3'")
    assert versions(found) == {"library": "1.0", "hub": "0.6", "bystander": "1.0"}, "ignored, and not uninstalled"


def test_ranges_become_what_is_installed_from_them(upgrade: Change, index: Index, uv: Uv) -> None:
    snapshot = replace(side("requirements.txt", ranges=("library>=1",), hub="1.0"), partial=True)
    specification = asked(snapshot, snapshot, index=IndexChoice(urls=(index.url,)))
    found = settled(snapshot, cells(specification)[0].request, uv, threading.Event())
    assert versions(found) == {"library": "2.0", "hub": "1.0"}
    assert not found.snapshot.ranges and not found.snapshot.partial
    same = side("now.txt", hub="1.0")
    assert settled(same, cells(specification)[0].request, uv, threading.Event()) == Settled(same)

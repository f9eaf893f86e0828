from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.bisection import lookups, releases
from bisect_env.bisection.mixes import Mixes
from bisect_env.bisection.records import Specification, Stage
from bisect_env.bisection.wants import Lookup
from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.records import Interpreter
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import IndexChoice
from bisect_env.snapshots.changes import Change
from bisect_env.snapshots.factors import Difference, Kind, of_members
from bisect_env.snapshots.records import Snapshot
from tests.bisection.simulated import factor, specification
from tests.support.index import Index, refusing_url
from tests.support.wheels import Wheels

PYTHON = Interpreter(Path("python"), "3.11.4", "cpython", "linux-x86_64")


def test_versions_days_and_what_does_not_fit(wheels: Wheels, index: Index) -> None:
    index.add(wheels.wheel("x", "1.0"), uploaded="2026-01-05T10:00:00Z")
    index.add(wheels.wheel("x", "1.1", tag="cp312-cp312-linux_x86_64"), uploaded="2026-02-05T23:59:00Z")
    index.add(wheels.wheel("x", "1.2"), uploaded="2026-03-05T10:00:00Z", requires_python=">=3.12")
    index.add(wheels.wheel("x", "1.3", tag="cp312-cp312-linux_x86_64"), uploaded="2026-04-05T10:00:00Z")
    index.add(wheels.sdist("x", "1.3"), uploaded="2026-04-06T10:00:00Z")
    index.add(wheels.wheel("x", "1.4"), yanked="broken")
    index.add(wheels.wheel("x", "1.5rc1"))
    index.add(wheels.wheel("x", "2.0"), uploaded=None)
    found = releases.between("x", "1.0", "2.0", IndexChoice(None, (index.url,)), SimpleIndex(), (PYTHON,))
    assert [(step.version, step.as_of) for step in found.steps] == [
        ("1.0", "2026-01-05"),
        ("1.1", "2026-02-05"),
        ("1.2", "2026-03-05"),
        ("1.3", "2026-04-06"),
        ("2.0", None),
    ]
    assert [step.unusable for step in found.steps] == [
        "",
        "it has no wheel for Python 3.11.4 on linux-x86_64, and no source",
        "it requires Python >=3.12, not 3.11.4",
        "",
        "",
    ]
    assert found.notes == ("x 1.4 was yanked, and is left out", "1 pre-release is left out of the versions of x")


def test_what_fits_one_of_two_pythons_is_usable(wheels: Wheels, index: Index) -> None:
    index.add(wheels.wheel("x", "1.0"))
    index.add(wheels.wheel("x", "1.1", tag="cp312-cp312-linux_x86_64"))
    index.add(wheels.wheel("x", "1.2", tag="cp310-cp310-linux_x86_64"))
    index.add(wheels.wheel("x", "2.0"))
    newer = replace(PYTHON, version="3.12.1")
    found = releases.between("x", "1.0", "2.0", IndexChoice(None, (index.url,)), SimpleIndex(), (PYTHON, newer))
    assert [bool(step.unusable) for step in found.steps] == [False, False, True, False]


def test_a_lookup_tells_which_candidates_cannot_be_had(wheels: Wheels, index: Index) -> None:
    for version in ("1.0", "2.0"):
        index.add(wheels.wheel("x", version))
    for version in ("1.1", "1.2"):
        index.add(wheels.wheel("x", version, tag="cp27-cp27m-linux_x86_64"))
    asked = replace(specification([factor("x", "1.0", "2.0")]), index=IndexChoice(None, (index.url,)))
    pythons = lookups.pythons_of(Mixes(asked, asked.difference.factors))
    (own,) = pythons
    assert own.version.startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    found = lookups.versions(Lookup(Stage.VERSIONS, "x", "1.0", "2.0"), asked, SimpleIndex(), pythons)
    why = f"it has no wheel for Python {own.version} on {own.platform}, and no source"
    assert found.names == ("1.0", "1.1", "1.2", "2.0")
    assert found.unusable == (("1.1", why), ("1.2", why))
    assert found.notes == (f"x 1.1, 1.2 cannot be tried here: {why}",)


def test_the_pythons_of_a_bisection_are_those_of_both_sides_where_it_is_a_suspect() -> None:
    def asked(*pythons: str) -> Specification:
        sides = [Snapshot("x", "x", (), python=python) for python in pythons]
        difference = Difference((of_members((Change("python", *pythons),), Kind.PYTHON),))
        return replace(specification([]), good=sides[0], bad=sides[1], difference=difference)

    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for pythons, count in (((own, own), 1), ((own, "3.99"), 0)):
        mixes = Mixes(asked(*pythons), asked(*pythons).difference.factors)
        assert len(lookups.pythons_of(mixes)) == count


def test_an_index_that_does_not_answer_is_no_empty_one() -> None:
    with pytest.raises(InfrastructureError, match="the releases of x are not known"):
        releases.between("x", "1", "2", IndexChoice(None, (refusing_url(),)), SimpleIndex(1.0))


def test_pure_is_what_has_wheels_for_any_machine_alone(wheels: Wheels, index: Index) -> None:
    index.add(wheels.wheel("x", "1"))
    index.add(wheels.wheel("x", "2"))
    index.add(wheels.wheel("x", "2", tag="cp311-cp311-linux_x86_64"))
    index.add(wheels.sdist("x", "3"))
    choice, simple = IndexChoice(None, (index.url,)), SimpleIndex()
    assert [releases.is_pure("x", version, choice, simple) for version in ("1", "2", "3", "4")] == [
        True,
        False,
        False,
        False,
    ]


def test_a_torch_that_changes_its_cuda_with_its_version_is_noted(wheels: Wheels, index: Index) -> None:
    for version, runtime in (
        ("2.9.0", "nvidia-cuda-runtime-cu12==12.8.90; platform_system == 'Linux'"),
        ("2.10.0", "nvidia-cuda-runtime-cu12==12.8.93"),
        ("2.11.0", "cuda-toolkit[cudart,nvrtc]==13.0.2; platform_system == 'Linux'"),
        ("2.12.0", "cuda-toolkit[cudart]==13.0.3"),
        ("2.13.0", "cuda-bindings<14"),
    ):
        index.add(wheels.wheel("torch", version, requires=["filelock", runtime]))
    choice = IndexChoice(None, (index.url,))
    found = releases.between("torch", "2.9.0", "2.13.0", choice, SimpleIndex())
    assert [note.partition(", each")[0] for note in found.notes] == [
        "torch 2.10.0 is built for cu128 and torch 2.11.0 for cu130",
        "torch 2.12.0 is built for cu130 and torch 2.13.0 for no CUDA",
    ]
    assert releases.between("torch", "2.11.0", "2.12.0", choice, SimpleIndex()).notes == ()

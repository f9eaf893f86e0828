"""From levels to cells: pins, overrides, variables, conditions."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.bisection.mixes import Mixes, condition_factors, levels
from bisect_env.bisection.records import BAD, GOOD, Specification
from bisect_env.matrix.cells import Condition, EnvironmentRequest, ReproducerChoice
from bisect_env.snapshots.factors import difference
from bisect_env.snapshots.records import Distribution, Snapshot

GOOD_SIDE = {"torch": "2.11.0", "triton": "3.6.0", "numpy": "2.0", "only-good": "1.0", "same": "1.0"}
BAD_SIDE = {"torch": "2.14.1", "triton": "3.8.0", "numpy": "2.1", "only-bad": "1.0", "same": "1.0"}


def snapshot(origin: str, versions: dict[str, str], **facts: object) -> Snapshot:
    every = tuple(Distribution(name, version) for name, version in sorted(versions.items()))
    return Snapshot(origin, "pip freeze", every, **facts)  # type: ignore[arg-type]


def mixes(good: Snapshot, bad: Snapshot, **options: object) -> Mixes:
    compared = difference(good, bad)
    specification = Specification(
        good,
        bad,
        compared,
        Condition.of({"threads": 2, "cache": "cold"}),
        Condition.of({"threads": 3, "cache": "cold"}),
        ReproducerChoice("x", ("true",)),
    )
    specification = replace(specification, **options)  # type: ignore[arg-type]
    conditions = condition_factors(specification.condition_good, specification.condition_bad)
    return Mixes(specification, (*compared.factors, *conditions))


def plain() -> Mixes:
    return mixes(snapshot("good.txt", GOOD_SIDE), snapshot("bad.txt", BAD_SIDE))


def pins(request: EnvironmentRequest) -> dict[str, str]:
    return dict(line.split("==") for line in request.requirements)


def test_the_ends_are_the_sides() -> None:
    mixed = plain()
    every = levels({factor.name: BAD for factor in mixed.factors})
    assert pins(mixed.cell(()).request) == GOOD_SIDE
    assert pins(mixed.cell(every).request) == BAD_SIDE
    assert [mixed.cell(point).condition.threads for point in ((), every)] == [2, 3]
    assert [mixed.cell(point).id for point in ((), every)] == [GOOD, BAD]
    assert not mixed.cell(()).request.overrides


@given(st.sets(st.sampled_from([factor.name for factor in plain().factors])))
def test_every_mix_has_each_factor_at_one_level(bad: set[str]) -> None:
    mixed = plain()
    cell = mixed.cell(levels(dict.fromkeys(bad, BAD)))
    found = pins(cell.request)
    for factor in mixed.factors:
        side = BAD_SIDE if factor.name in bad else GOOD_SIDE
        for change in factor.members:
            assert found.get(change.name) == side.get(change.name)
    assert found["same"] == "1.0"
    assert cell.condition.threads == (3 if "threads" in bad else 2)


def test_what_follows_a_version_between_is_left_to_it() -> None:
    cell = plain().cell(levels({"torch": "2.12.0", "numpy": BAD}))
    found = pins(cell.request)
    assert found["torch"] == "2.12.0"
    assert "triton" not in found
    assert found["numpy"] == "2.1"
    assert cell.request.as_of == "release"


def test_a_group_taken_apart_overrides_its_pins() -> None:
    cell = plain().cell(levels({"torch/torch": BAD, "torch/triton": GOOD}))
    assert pins(cell.request)["triton"] == "3.6.0"
    assert cell.request.overrides == ("torch==2.14.1", "triton==3.6.0")


def test_a_member_that_is_absent_is_kept_out_whoever_requires_it() -> None:
    good = snapshot("good.txt", {"torch": "2.11.0"})
    bad = snapshot("bad.txt", {"torch": "2.14.1", "triton": "3.8.0"})
    cell = mixes(good, bad).cell(levels({"torch/torch": BAD, "torch/triton": GOOD}))
    assert cell.request.requirements == ("torch==2.14.1",)
    assert cell.request.overrides == ("torch==2.14.1", "triton ; python_version < '0'")


def test_no_two_mixes_share_a_name() -> None:
    mixed = plain()
    names = [factor.name for factor in mixed.factors]
    points = [levels({name: BAD for at, name in enumerate(names) if mask >> at & 1}) for mask in range(1 << len(names))]
    points += [levels({"torch": version}) for version in ("2.12.0", "2.13.0")]
    assert len({mixed.cell(point).id for point in points}) == len(points)


def test_variables_of_both_sides_are_set_and_those_of_a_host_are_not() -> None:
    common = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "3", "TORCH_HOME": "/data", "TOKEN": "***"}
    good = snapshot("good.txt", {}, variables=tuple({**common, "TORCH_LOGS": "a"}.items()))
    bad = snapshot("bad.txt", {}, variables=tuple(common.items()))
    mixed = mixes(good, bad)
    assert mixed.cell(()).variables == (("OMP_NUM_THREADS", "1"), ("TORCH_LOGS", "a"))
    assert mixed.cell((("TORCH_LOGS", BAD),)).variables == (("OMP_NUM_THREADS", "1"),)


def test_what_this_host_cannot_install_is_left_out_when_asked() -> None:
    mixed = mixes(snapshot("a", GOOD_SIDE), snapshot("b", BAD_SIDE), without=("Same",))
    assert "same" not in pins(mixed.cell(()).request)


def test_python_that_is_no_suspect_is_any_release_of_its_minor_version() -> None:
    one = mixes(snapshot("a", GOOD_SIDE, python="3.12.1"), snapshot("b", BAD_SIDE, python="3.12.1"))
    assert one.cell(()).request.python == "3.12"
    two = mixes(snapshot("a", GOOD_SIDE, python="3.11.4"), snapshot("b", BAD_SIDE, python="3.12.1"))
    assert two.cell((("Python", BAD),)).request.python == "3.12.1"

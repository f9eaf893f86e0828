"""The two cells of a gate: each side as it is, and what one does not cover as on the other."""

from __future__ import annotations

from dataclasses import replace

from bisect_env.gate.sides import cells
from bisect_env.matrix.cells import Condition
from bisect_env.snapshots.records import CompileCache
from tests.gate.build import asked, side


def test_every_distribution_is_pinned_on_its_own_side() -> None:
    baseline, candidate = cells(asked(side("a", torch="2.11.0", numpy="2.0"), side("b", torch="2.12.0", click="8.1")))
    assert baseline.request.requirements == ("numpy==2.0", "torch==2.11.0")
    assert candidate.request.requirements == ("click==8.1", "torch==2.12.0")
    assert (baseline.id, candidate.id) == ("baseline", "candidate")
    assert baseline.condition == candidate.condition and baseline.key != candidate.key


def test_what_no_side_moves_by_itself_is_there_all_the_same() -> None:
    # In a bisection a distribution that several require follows them; a side of a gate has what it has.
    candidate = cells(asked(side("a", torch="1"), side("b", torch="2", filelock="3", rich="1")))[1]
    assert candidate.request.requirements == ("filelock==3", "rich==1", "torch==2")


def test_ranges_are_asked_for_as_they_are() -> None:
    baseline = cells(asked(side("a", ranges=("numpy>=2",), torch="1"), side("b", torch="2")))[0]
    assert baseline.request.requirements == ("numpy>=2", "torch==1")


def test_the_very_python_is_asked_for_only_where_it_differs() -> None:
    one, other = replace(side("a", torch="1"), python="3.11.2"), replace(side("b", torch="2"), python="3.11.2")
    assert [cell.request.python for cell in cells(asked(one, other))] == ["3.11", "3.11"]
    assert [cell.request.python for cell in cells(asked(one, replace(other, python="3.12.1")))] == ["3.11.2", "3.12.1"]
    assert [cell.request.python for cell in cells(asked(one, replace(other, python=None)))] == ["3.11", "3.11"]


def test_variables_that_the_candidate_does_not_cover_stay() -> None:
    variables = (("CUDA_VISIBLE_DEVICES", "3"), ("OMP_NUM_THREADS", "4"), ("TORCHINDUCTOR_CACHE_DIR", "/c"))
    baseline = replace(side("a", torch="1"), variables=variables)
    candidate = side("b", torch="2")
    found = [cell.variables for cell in cells(asked(baseline, candidate))]
    assert found == [(("OMP_NUM_THREADS", "4"),)] * 2, "places and GPUs are each host's own"
    unset = replace(candidate, variables=())
    assert [cell.variables for cell in cells(asked(baseline, unset))] == [(("OMP_NUM_THREADS", "4"),), ()]
    of_its_own = replace(candidate, variables=(("TRITON_X", "1"),), covered=("TRITON*",))
    covered = [cell.variables for cell in cells(asked(baseline, of_its_own))]
    assert covered[1] == (("OMP_NUM_THREADS", "4"), ("TRITON_X", "1"))


def test_each_side_has_its_compile_cache() -> None:
    warm = replace(side("a", torch="1"), cache=CompileCache("/c", 100, 10**6))
    cold = replace(side("b", torch="2"), cache=CompileCache("/c", 0, 0))
    found = [cell.condition.cache for cell in cells(asked(warm, cold))]
    assert found == ["warm", "cold"]
    told = asked(warm, cold, condition_good=Condition.of({"threads": 2}), condition_bad=Condition.of({"threads": 2}))
    assert [cell.condition.cache for cell in cells(told)] == ["warm", "cold"]


def test_pins_override_where_the_baseline_was_installed_against_its_metadata() -> None:
    loose = cells(asked(side("a", torch="1"), side("b", torch="2")), as_installed=True)
    assert [cell.request.overrides for cell in loose] == [("torch==1",), ("torch==2",)]

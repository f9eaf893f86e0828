"""All factors of a bisection: those of the snapshots, and those of the conditions, each under one name."""

from __future__ import annotations

from dataclasses import replace

from bisect_env.bisection.driver import suspects
from bisect_env.bisection.mixes import Mixes
from bisect_env.bisection.records import BAD, Specification
from bisect_env.matrix.cells import Condition, ReproducerChoice
from bisect_env.snapshots.factors import Kind, difference
from bisect_env.snapshots.records import CompileCache, Snapshot


def specification(good: int, bad: int, conditions: tuple[str, str]) -> Specification:
    """Of two sides whose compile caches have so many entries, and whose conditions say this of theirs."""
    sides = [Snapshot("x", "x", (), cache=CompileCache("/cache", entries, entries)) for entries in (good, bad)]
    asked = [Condition.of({"cache": state}) for state in conditions]
    return Specification(
        sides[0], sides[1], difference(sides[0], sides[1]), asked[0], asked[1], ReproducerChoice("x", ("true",))
    )


def test_the_compile_cache_has_one_name_wherever_it_is_known_from() -> None:
    told = suspects(specification(5, 0, ("cold", "cold")))
    asked = suspects(specification(0, 0, ("warm", "cold")))
    assert [(each.name, each.kind, each.good, each.bad) for each in told] == [("cache", Kind.CACHE, "warm", "cold")]
    assert [replace(each, members=()) for each in told] == list(asked)


def test_what_the_conditions_say_of_it_counts() -> None:
    both = specification(5, 0, ("cold", "warm"))
    (only,) = suspects(both)
    assert (only.good, only.bad) == ("cold", "warm")


def test_a_cache_that_only_the_snapshots_tell_is_flipped_in_the_trials() -> None:
    told = specification(5, 0, ("cold", "cold"))
    mixes = Mixes(told, suspects(told))
    assert [mixes.cell(point).condition.cache for point in ((), (("cache", BAD),))] == ["warm", "cold"]

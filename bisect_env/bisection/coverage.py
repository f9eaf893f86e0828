"""How much of a line of versions or commits was tried, and what is assumed of the rest, in a sentence. Pure.

A search along a line asks where it tells most, and leaves most of a long line alone. That everything on the good side
of the change that it names does not fail, and everything on its bad side does, is its model; a line that broke, was
repaired and broke again where no trial went has one of its breaks named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bisect_env.bisection.counting import pooled
from bisect_env.bisection.records import Observation
from bisect_env.search.records import Tally

NAMED = 6
"""Of those that were tried beyond the change, so many are named."""


def coverage(
    distribution: str,
    line: Sequence[str],
    last_good: str,
    first_bad: str,
    observations: Iterable[Observation],
    what: str = "versions",
    shown: Callable[[str], str] = str,
) -> str:
    """``6 of 31 versions were tried; ...``; empty where there is nothing between the two ends of the line.

    Args:
        distribution: whose line it is.
        line: from the good end to the bad one, both included.
        last_good: the last of them that is good, by the answer.
        first_bad: the first that is bad; what is between the two cannot be told apart.
        observations: of the search along this line; its ends were tried before.
        what: the line is made of.
        shown: one of them for people.
    """
    if len(line) < 3:
        return ""
    tallies = _tallies(distribution, line, observations)
    tried = [at for at in range(len(line)) if at in (0, len(line) - 1) or tallies[at].counted]
    low, high = line.index(last_good), line.index(first_bad)
    if len(tried) == len(line):
        return f"All {len(line)} {what} were tried."
    good_end, bad_end = (shown(line[at]) for at in (0, -1))
    assumed = []
    if any(at not in tried for at in range(1, low)):
        assumed.append(f"between the good end {good_end} and {shown(last_good)} none fails")
    beyond = range(high + 1, len(line) - 1)
    if any(at not in tried for at in beyond):
        assumed.append(f"between {shown(first_bad)} and the bad end {bad_end} all fail")
    said = f"{len(tried)} of {len(line)} {what} were tried"
    if not assumed:
        return f"{said}."
    said += f"; that {' and that '.join(assumed)} is assumed where none was"
    seen = [(shown(line[at]), tallies[at]) for at in beyond if at in tried]
    return f"{said}.{_beyond(seen, shown(first_bad), bad_end, len(beyond))}"


def _beyond(seen: Sequence[tuple[str, Tally]], first_bad: str, bad_end: str, count: int) -> str:
    """What was tried where the failure is said to stay."""
    if not count:
        return ""
    where = f" Of the {count} between {first_bad} and {bad_end},"
    if not seen:
        return f"{where} none was."
    failed = [name for name, tally in seen if tally.failures]
    passed = [f"{name} (0 of {tally.counted})" for name, tally in seen if not tally.failures]
    parts = [f"{_listed(failed)} failed"] if failed else []
    parts += [f"{_listed(passed)} did not"] if passed else []
    return f"{where} {len(seen)} {'was' if len(seen) == 1 else 'were'}: {', '.join(parts)}."


def _tallies(distribution: str, line: Sequence[str], observations: Iterable[Observation]) -> list[Tally]:
    """Of each position, by the level that the distribution, or it as a member of its group, has in a mix."""
    told: dict[str, list[Observation]] = {}
    for seen in observations:
        for name, level in seen.point:
            if name.rpartition("/")[2] == distribution:
                told.setdefault(level, []).append(seen)
    return [pooled(told.get(level, ())) for level in line]


def _listed(names: Sequence[str]) -> str:
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

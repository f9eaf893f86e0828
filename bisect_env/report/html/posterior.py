"""How likely each suspect was, batch after batch: a bisection's log replayed, as lines over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bisect_env.bisection.log import History
from bisect_env.bisection.records import Observation, Stage
from bisect_env.bisection.stages import Course
from bisect_env.bisection.state import Belief
from bisect_env.report.bisection_words import outcome, place, probability
from bisect_env.report.grid import Column
from bisect_env.report.live import STAGES
from bisect_env.report.pieces import Grid
from bisect_env.words import counted

NAMED = 6
"""Suspects with a line of their own; the others share one."""
TOP, HEIGHT = 10.0, 180.0
"""Pixels above the line of 100 %, and from there down to 0 %."""
NUMBERS = 12
"""Most batches whose number stands below the lines."""


@dataclass(frozen=True)
class Point:
    """One suspect after one batch."""

    x: float
    """Percent of the width."""
    y: float
    """Pixels."""
    text: str
    """The batch, what it came to, and the suspect's probability."""


@dataclass(frozen=True)
class Series:
    """One suspect."""

    number: int
    """From 1: its colour, dashes and mark."""
    name: str
    last: str
    """Its probability in the end."""
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    """One search from its first batch to its last."""

    title: str
    series: tuple[Series, ...]
    """The likeliest in the end first."""
    ticks: tuple[tuple[float, str], ...]
    """Percent of the width, and the batch's number."""
    asked: float
    """Pixels of the confidence at which the search ends."""
    confidence: str
    text: str
    """The drawing in a sentence."""
    figures: Grid


def panels(history: History) -> tuple[Panel, ...]:
    """A panel for each search of a bisection, in their order.

    Raises:
        ValueError: the log's answers are not in the order in which a bisection wrote them.
    """
    header = history.header
    course = Course(header.specification, header.factors)
    for answer in history.answers:
        course.give(answer)
    names = [factor.name for factor in header.factors]
    return tuple(panel(beliefs, course.observations, names, course.confidence) for beliefs in searches(course.beliefs))


def searches(beliefs: Iterable[Belief]) -> list[list[Belief]]:
    """Taken apart by search. Each begins without a batch of its own."""
    found: list[list[Belief]] = []
    for belief in beliefs:
        last = found[-1][-1] if found else None
        same = last is not None and (last.stage, last.searched) == (belief.stage, belief.searched)
        if last is not None and same and belief.seen > last.seen:
            found[-1].append(belief)
        else:
            found.append([belief])
    return found


def panel(
    beliefs: Sequence[Belief], observations: Sequence[Observation], names: Sequence[str], confidence: float
) -> Panel:
    """One search as lines.

    Args:
        beliefs: before its first batch, and after each.
        observations: every batch of the bisection.
        names: of all factors.
        confidence: at which it ends.
    """
    stage = beliefs[0].stage
    chances = [dict(belief.suspects) for belief in beliefs]
    highest: dict[str, float] = {}
    for chance in chances:
        for name, value in chance.items():
            highest[name] = max(value, highest.get(name, 0.0))
    chosen = sorted(highest, key=lambda name: (-highest[name], name))[:NAMED]
    chosen.sort(key=lambda name: -chances[-1].get(name, 0.0))
    lines = {name: [chance.get(name, 0.0) for chance in chances] for name in chosen}
    others = len(highest) - len(chosen)
    if others:
        lines[f"the other {others} together"] = [
            sum(value for name, value in chance.items() if name not in chosen) for chance in chances
        ]
    batches = [None, *(observations[belief.seen - 1] for belief in beliefs[1:])]
    told = [_told(seen, stage, names) for seen in batches]
    width = max(1, len(beliefs) - 1)
    series = tuple(
        Series(
            NAMED + 1 if others and number > len(chosen) else number,
            name,
            probability(values[-1]),
            tuple(
                Point(
                    round(100 * index / width, 2),
                    _height(value),
                    f"{told[index][0]}, {': '.join(told[index][1:])}; {name} {probability(value)}",
                )
                for index, value in enumerate(values)
            ),
        )
        for number, (name, values) in enumerate(lines.items(), 1)
    )
    numbers = tuple((round(100 * index / width, 2), _number(seen)) for index, seen in enumerate(batches))
    every = -(-len(numbers) // NUMBERS)
    first = f"{series[0].name} {series[0].last}" if series else "no suspect"
    after = counted(len(beliefs) - 1, "batch", "batches")
    return Panel(
        title=STAGES[stage],
        series=series,
        ticks=numbers[::every],
        asked=_height(confidence),
        confidence=f"{100 * confidence:.3g} %",
        text=f"{STAGES[stage]}: probability of each suspect over {after}; in the end {first}",
        figures=_figures(told, lines),
    )


def _told(seen: Observation | None, stage: Stage, names: Sequence[str]) -> tuple[str, str, str]:
    """The batch's name, its environment, and what it came to."""
    if seen is None:
        return "before the first batch", "-", "what the ends have shown"
    return f"batch {seen.batch}", place(stage, seen.point, names), outcome(seen)


def _number(seen: Observation | None) -> str:
    return "start" if seen is None else str(seen.batch)


def _height(chance: float) -> float:
    return round(TOP + (1 - chance) * HEIGHT, 1)


def _figures(told: Sequence[tuple[str, str, str]], lines: dict[str, list[float]]) -> Grid:
    heads = ("after", "environment", "came to")
    columns = [Column(head, tuple(each[at] for each in told)) for at, head in enumerate(heads)]
    columns += [Column(name, tuple(map(probability, values))) for name, values in lines.items()]
    return Grid(tuple(columns))

"""Which cells time their rounds together, and in which order they take their turns: pure.

A *session* is a set of processes that are alive together and compute one at a time. Cells that are to be compared
belong into one session, with the cell they are compared with, their *baseline*.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from bisect_env.engine.attempt import Prepared
from bisect_env.environments.records import Environment
from bisect_env.matrix.cells import Cell, Condition, Matrix
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Side
from bisect_env.verdicts.hardware import Hardware, most
from bisect_env.verdicts.samples import counts
from bisect_env.verdicts.throughput import was_warmed

Process = TypeVar("Process")

UNKNOWN = 4
"""Most processes of a session in which the memory of one is not known."""
CONTEXT_BYTES = 1 << 30
"""A process's CUDA context with its loaded kernels and libraries: half a GiB to one, beside what torch allocates."""
MARGIN = 1.3
"""Reserved over allocated memory: the allocator's cache is not seen by the peak of a trial's timed steps."""
USABLE = 0.95
"""Share of a GPU's memory that may be planned for."""
HOPELESS = 0.75
"""From this share of failing threaded trials on, two cold starts would more likely fail than not."""


@dataclass(frozen=True)
class Entrant:
    """A cell that may take part, with its environment and all its stored trials."""

    cell: Cell
    environment: Environment
    samples: tuple[StoredTrial, ...]
    prepared: Prepared | None = None
    """What its compile cache starts from, when it is there."""

    @property
    def bytes(self) -> int | None:
        """GPU memory to plan for its process, on each of its GPUs; None when no trial has told."""
        peaks = [sample.record.peak_bytes for sample in self.samples if sample.record.peak_bytes is not None]
        return int(max(peaks) * MARGIN) + CONTEXT_BYTES if peaks else None

    def after(self, samples: Sequence[StoredTrial]) -> Entrant:
        """The same with further trials."""
        return replace(self, samples=(*self.samples, *samples))


@dataclass(frozen=True)
class Session:
    """Cells whose processes are alive together. ``baseline`` takes its turns between the others."""

    baseline: Entrant | None
    """None where the cell to compare with has no environment."""
    others: tuple[Entrant, ...]

    @property
    def entrants(self) -> tuple[Entrant, ...]:
        """All of them, the baseline first."""
        return (self.baseline, *self.others) if self.baseline else self.others


def needs_rounds(cell: Cell, samples: Sequence[StoredTrial]) -> bool:
    """Whether rounds of this cell are still to be timed.

    True when its reproducer has rounds (an option of that name, which then is in the condition), none were timed or
    tried, and some trial of the cell came through: what fails on every side would fail here too.

    Args:
        samples: what the store holds of the cell for its present environment and reproducer.
    """
    if "rounds" not in cell.condition.as_dict():
        return False
    own = [sample.record for sample in samples if sample.record.side is not Side.WITNESS]
    counted = [record for record in own if record.outcome is not Outcome.INFRA]
    tried = any(record.side is Side.ROUNDS for record in counted)
    through = any(record.outcome in (Outcome.CLEAN, Outcome.WRONG) for record in counted)
    return through and not tried


def baseline_of(matrix: Matrix, cell: Cell) -> Cell | None:
    """The cell whose throughput this one's is compared with; None for a baseline, or when there is none.

    The reference cell of its condition. For a mitigation without one, or whose reference this is, the same environment
    without a mitigation: the ratio then says what the mitigation costs.
    """
    reference = matrix.reference_of(cell)
    if reference in (None, cell) and cell.condition.get("mitigation", "none") != "none":
        plain = Condition.of({**cell.condition.as_dict(), "mitigation": "none"})
        like = (cell.request.key, plain, cell.variables)
        reference = next((c for c in matrix.cells if (c.request.key, c.condition, c.variables) == like), None)
    return None if reference == cell else reference


def plan(
    matrix: Matrix, entrants: Sequence[Entrant], most: int, memory: int | None
) -> tuple[tuple[Session, ...], tuple[Entrant, ...]]:
    """The sessions that time the rounds of all entrants that need some.

    Args:
        entrants: every cell of the matrix that has an environment.
        most: processes of one session.
        memory: bytes of the smallest GPU; None where the cells use none.

    Returns:
        The sessions, and the entrants that fit on no GPU together with their baseline.
    """
    by_key = {entrant.cell.key: entrant for entrant in entrants}
    groups: dict[str, list[Entrant]] = {}
    for entrant in entrants:
        if needs_rounds(entrant.cell, entrant.samples):
            baseline = baseline_of(matrix, entrant.cell)
            group = groups.setdefault((baseline or entrant.cell).key, [])
            if baseline is not None:
                group.append(entrant)
    found: list[Session] = []
    left: list[Entrant] = []
    for key, others in groups.items():
        sessions, without = _split(by_key.get(key), others, most, memory)
        found += sessions
        left += without
    return tuple(found), tuple(left)


def by_hardware(matrix: Matrix, entrants: Sequence[Entrant]) -> tuple[tuple[Hardware | None, tuple[Entrant, ...]], ...]:
    """Entrants that need rounds, those that are measured on one hardware together, with what they are compared with."""
    by_key = {entrant.cell.key: entrant for entrant in entrants}
    groups: dict[Hardware | None, dict[str, Entrant]] = {}
    for entrant in entrants:
        if not needs_rounds(entrant.cell, entrant.samples):
            continue
        group = groups.setdefault(most(entrant.samples), {})
        baseline = baseline_of(matrix, entrant.cell)
        for cell in (entrant.cell, baseline):
            if cell is not None and cell.key in by_key:
                group.setdefault(cell.key, by_key[cell.key])
    return tuple((judged, tuple(group.values())) for judged, group in groups.items())


def _split(
    baseline: Entrant | None, others: Sequence[Entrant], most: int, memory: int | None
) -> tuple[list[Session], list[Entrant]]:
    """The fewest sessions of nearly equal size that all fit; what fits in none even alone."""
    if not others:
        return [Session(baseline, ())], []
    for count in range(1, len(others) + 1):
        sessions = _even(baseline, others, count)
        if all(fits(session, most, memory) for session in sessions):
            return sessions, []
    fitting = [fits(session, most, memory) for session in sessions]
    together = [session for session, fit in zip(sessions, fitting, strict=True) if fit]
    return together, [session.others[0] for session, fit in zip(sessions, fitting, strict=True) if not fit]


def halves(session: Session) -> tuple[Session, ...]:
    """The session in two, each with the baseline; as it is when it has a single other cell."""
    return tuple(_even(session.baseline, session.others, min(2, max(1, len(session.others)))))


def _even(baseline: Entrant | None, others: Sequence[Entrant], count: int) -> list[Session]:
    bounds = [len(others) * number // count for number in range(count + 1)]
    return [Session(baseline, tuple(others[a:b])) for a, b in pairwise(bounds)]


def fits(session: Session, most: int, memory: int | None) -> bool:
    """Whether a session has at most so many processes, and GPU memory of so many bytes is enough for them."""
    count = len(session.entrants)
    if memory is None:
        return count <= most
    wanted = [entrant.bytes for entrant in session.entrants]
    known = [size for size in wanted if size is not None]
    if len(known) < count:
        most = min(most, UNKNOWN)
    return count <= most and sum(known) <= USABLE * memory


def waves(sessions: Sequence[Session], places: int, most: int) -> Iterator[tuple[Session, ...]]:
    """Sessions that start together: at most ``places``, with at most ``most`` processes in all if not one has more."""
    wave: list[Session] = []
    for session in sessions:
        count = sum(len(each.entrants) for each in (*wave, session))
        if wave and (len(wave) == places or count > most):
            yield tuple(wave)
            wave = []
        wave.append(session)
    if wave:
        yield tuple(wave)


def turns(baseline: Process | None, others: Sequence[Process], rounds: int, seed: int) -> Iterator[tuple[Process, ...]]:
    """Whose turn it is, for each round number one sequence: every other process once, a baseline's round beside it.

    As ``a B c  d B e``: each other process has its round immediately before or after one of the baseline's, the order
    is drawn anew for every second number, and the one in between is its mirror image. A machine that drifts steadily
    therefore favours a process in one round by what it takes from it in the next.
    """
    draw = random.Random(seed)
    cycle: list[Process] = []
    for number in range(rounds):
        cycle = cycle[::-1] if number % 2 else _between(baseline, draw.sample(list(others), len(others)))
        yield tuple(cycle)


def _between(baseline: Process | None, others: Sequence[Process]) -> list[Process]:
    if baseline is None:
        return list(others)
    if not others:
        return [baseline]
    return [item for at in range(0, len(others), 2) for item in (others[at], baseline, *others[at + 1 : at + 2])]


def starts(entrant: Entrant) -> tuple[bool, ...]:
    """How its process is started, try after try, until it gets to its rounds: True for a single-threaded warm-up.

    A cell that races may fail at its start; what is timed is the steady state, which a warm-up leads to as well. It is
    a mitigation, so that it cannot stand in for another one. What needed one in an earlier session needs one again.
    """
    if entrant.cell.condition.get("mitigation", "") != "none":
        return (False, False)
    if any(was_warmed(sample.record) for sample in entrant.samples):
        return (True, True)
    threads = [sample.record for sample in entrant.samples if sample.record.side is Side.THREADS]
    counted = [record.outcome for record in threads if counts(record)]
    bad = sum(outcome in (Outcome.FAILED, Outcome.HANG) for outcome in counted)
    return (True, True) if counted and bad >= HOPELESS * len(counted) else (False, False, True)

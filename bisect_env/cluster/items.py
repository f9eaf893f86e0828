"""What becomes of each attempt that was handed out: pure, whatever order its jobs' ends and results are seen in.

An item waits, lies in a job, and ends exactly once: its result was seen, it was given up after so many lost jobs, or it
was cancelled. A job that is gone without an item's result sends it back to wait, to be tried elsewhere. Its result may
still be seen later, since file systems of clusters show a file when they please: it is taken while the item is open,
and dropped otherwise. So nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from enum import StrEnum

TRIES = 3
"""Jobs that an item is given before it is given up."""


class State(StrEnum):
    """Where an item stands."""

    WAITING = "waiting"
    SUBMITTED = "submitted"
    """In a job that Slurm has, or in one that is just being handed to it."""
    DONE = "done"
    GIVEN_UP = "given up"
    CANCELLED = "cancelled"


OPEN = frozenset({State.WAITING, State.SUBMITTED})


@dataclass
class _Item:
    group: Hashable
    state: State = State.WAITING
    job: str = ""
    losses: list[str] = field(default_factory=list)
    avoid: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Waiting:
    """An item to be put into a job."""

    item: str
    group: Hashable
    """Items of one group may share a job."""
    avoid: frozenset[str]
    """Nodes on which it was lost."""


@dataclass(frozen=True)
class GivenUp:
    """An item that no job brought to a result."""

    item: str
    losses: tuple[str, ...]
    """Why each of its jobs was lost, in order."""


class Items:
    """The items of a run."""

    def __init__(self) -> None:
        self._open: dict[str, _Item] = {}
        """In the order in which they came. Every look of the run goes through these, not through all that ever were."""
        self._ended: dict[str, State] = {}

    def add(self, item: str, group: Hashable) -> None:
        """A new item waits for a job."""
        assert item not in self._open and item not in self._ended, "every attempt is an item of its own"
        self._open[item] = _Item(group)

    def waiting(self) -> tuple[Waiting, ...]:
        """The items that wait, in the order in which they came."""
        return tuple(
            Waiting(name, item.group, item.avoid) for name, item in self._open.items() if item.state is State.WAITING
        )

    def submitted(self, job: str, items: Collection[str]) -> None:
        """They were put into a job; what is no longer waiting stays as it is."""
        for name in items:
            item = self._open.get(name)
            if item is not None and item.state is State.WAITING:
                item.state, item.job = State.SUBMITTED, job

    def returned(self, job: str) -> None:
        """The job was never taken by Slurm: its items wait as before, which is no loss of theirs."""
        for name in self.of(job):
            self._open[name].state, self._open[name].job = State.WAITING, ""

    def result(self, item: str) -> bool:
        """A result of the item was seen, of whichever of its jobs. True: it is the one that is taken."""
        if item not in self._open:
            return False
        self._end(item, State.DONE)
        return True

    def gone(self, job: str, why: str, node: str = "", final: bool = False) -> tuple[GivenUp, ...]:
        """The job has ended, and no further result of it is expected; those of its items that are given up.

        Args:
            why: what every item of it is told.
            node: where it ran, to be avoided; empty when it never started.
            final: no other job would do better.
        """
        given_up = []
        for name in self.of(job):
            item = self._open[name]
            item.losses.append(why)
            item.avoid |= {node} - {""}
            item.state, item.job = State.WAITING, ""
            if final or len(item.losses) >= TRIES:
                self._end(name, State.GIVEN_UP)
                given_up.append(GivenUp(name, tuple(item.losses)))
        return tuple(given_up)

    def cancel(self) -> tuple[str, ...]:
        """Nothing further is wanted; the items that were open."""
        names = tuple(self._open)
        for name in names:
            self._end(name, State.CANCELLED)
        return names

    def state(self, item: str) -> State:
        """Where the item stands."""
        return self._open[item].state if item in self._open else self._ended[item]

    def of(self, job: str) -> tuple[str, ...]:
        """The items whose present job it is."""
        return tuple(n for n, item in self._open.items() if item.state is State.SUBMITTED and item.job == job)

    def _end(self, item: str, state: State) -> None:
        del self._open[item]
        self._ended[item] = state

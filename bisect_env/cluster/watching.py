"""Jobs in flight, seen by the files that they leave and by one `squeue` for all of them.

Files decide: a result that lies there is one, whatever the queue says, and a job that has left its last word is over.
The queue tells of the jobs that ended in another way. Slurm forgets a job minutes after its end, and a network file
system shows a file some seconds late; so a job without its last word is only taken for lost when it has been out of the
queue for a while and its folder was looked at anew.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Protocol

from bisect_env.cluster import job
from bisect_env.cluster.job import Ended, ItemResult
from bisect_env.cluster.queue import NEVER, Seen, why
from bisect_env.cluster.submitting import LOG, WITHOUT_PYTHON, Refused
from bisect_env.store.codec import without_credentials

SETTLE = 5.0
"""Seconds that a job is out of the queue before it is taken for lost."""
CERTAIN = 30.0
"""Seconds until a reason for which Slurm would never start a job is believed: nodes that boot may lack features."""
SOON, LATE = 2.0, 15.0
"""Seconds between two looks at the queue: at first, and when nothing has changed for long."""
SLOWER = 1.3
TAIL = 300
"""Characters of a lost job's log that are told."""


class Queue(Protocol):
    """What is asked of Slurm while jobs run; :class:`~bisect_env.cluster.submitting.Cluster` answers it."""

    def look(self, tokens: Collection[str]) -> tuple[Seen, ...]:
        """The jobs of these arrays. Raises Refused."""


@dataclass
class Job:
    """One in flight."""

    token: str
    index: int
    folder: Path
    since: float
    """Monotonic clock: when it was submitted, or found again."""
    seen: Seen | None = None
    node: str = ""
    """Where it runs or ran; empty before it was seen there."""
    out_since: float | None = None
    """Monotonic clock: since when the queue holds it no longer."""
    doomed: str = ""
    """Why it will never be started and is being cancelled, if so: another job like it would do no better."""
    read: set[str] = field(default_factory=set)
    """Items whose results were handed out."""

    @property
    def key(self) -> str:
        """Name of its folder."""
        return f"{self.token}-{self.index}"


@dataclass(frozen=True)
class Over:
    """A job has ended, and nothing further is expected of it."""

    job: Job
    ended: Ended | None
    """Its last word; None: its end came from outside."""
    results: tuple[ItemResult, ...]
    """All that it has left, also what was handed out before."""
    why: str
    """In words, where it ended before its time; empty otherwise."""
    by_itself: bool = False
    """What ran in it may have ended it: nobody cancelled it, and its node did not fail."""
    blind: bool = False
    """Nothing of it began on its node: the node does not see its folder, or has no Python there."""


class Watch:
    """Jobs in flight.

    Args:
        queue: Slurm's.
        limit: minutes of a job.
        patience: seconds that a job may wait to be started.
    """

    def __init__(self, queue: Queue, limit: int, patience: float) -> None:
        self._queue, self._limit, self._patience = queue, limit, patience
        self._jobs: dict[str, Job] = {}
        self._lost: dict[str, Job] = {}
        """Jobs that were taken for lost: a result of theirs may still be seen."""
        self._next_look, self._pause = 0.0, SOON
        self.silent = ""
        """What Slurm says instead of an answer; empty while it answers."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Those in flight."""
        return tuple(self._jobs.values())

    @property
    def tokens(self) -> frozenset[str]:
        """Of the arrays in flight."""
        return frozenset(each.token for each in self._jobs.values())

    def add(self, token: str, index: int, folder: Path) -> None:
        """A job that Slurm has, or may have."""
        found = Job(token, index, folder, time.monotonic())
        self._jobs[found.key] = found
        self.soon()

    def drop(self, token: str) -> None:
        """An array never came into the queue."""
        self._jobs = {key: each for key, each in self._jobs.items() if each.token != token}

    def soon(self) -> None:
        """Something happened: the queue is looked at again before long."""
        self._pause = SOON
        self._next_look = min(self._next_look, time.monotonic() + SOON)

    def look(self, now: bool = False) -> bool:
        """Ask the queue, if it is time for it or if it is to be ``now``; whether it answered."""
        clock = time.monotonic()
        if not self._jobs or (clock < self._next_look and not now):
            return False
        before = {key: each.seen for key, each in self._jobs.items()}
        try:
            answer = {_key(seen): seen for seen in self._queue.look(self.tokens)}
        except Refused as error:
            self.silent, self._pause, self._next_look = str(error), LATE, clock + LATE
            return False
        self.silent = ""
        for key, each in self._jobs.items():
            self._told(each, answer.get(key), time.monotonic())
        changed = before != {key: each.seen for key, each in self._jobs.items()}
        self._pause = SOON if changed else min(LATE, self._pause * SLOWER)
        self._next_look = clock + self._pause
        return True

    def _told(self, each: Job, seen: Seen | None, clock: float) -> None:
        each.seen = seen or each.seen
        if seen is not None and seen.node:
            each.node = seen.node
        if seen is not None and seen.alive:
            each.out_since = None
            if not each.doomed and seen.coming:
                each.doomed = self._doom(each, seen, clock)
        elif each.out_since is None:
            each.out_since = clock

    def _doom(self, each: Job, seen: Seen, clock: float) -> str:
        if seen.reason in NEVER and clock - each.since >= CERTAIN:
            shows = "`sinfo -o '%P %D %c %m %G %f %l'` shows what there is"
            return f"Slurm would never start the job: {NEVER[seen.reason]} ({seen.reason}); {shows}"
        if clock - each.since > self._patience:
            reason = f", the last reason was {seen.reason}" if seen.reason else ""
            return f"the job was not started within {self._patience / 60:.0f} minutes (`patience`{reason})"
        return ""

    def doomed(self) -> tuple[str, ...]:
        """Slurm's numbers of waiting jobs that are to be cancelled."""
        return tuple(each.seen.job for each in self._jobs.values() if each.doomed and each.seen and each.seen.coming)

    def fresh(self) -> Iterator[tuple[Job, ItemResult]]:
        """Results that were not there at the last look.

        Raises:
            InfrastructureError, BadInput: a file cannot be read, or another version wrote it.
        """
        for each in (*self._jobs.values(), *self._lost.values()):
            if _names(each.folder) - each.read:
                for name, result in job.results(each.folder).items():
                    if name not in each.read:
                        each.read.add(name)
                        yield each, result

    def forget(self, key: str) -> None:
        """No result of this lost job is of use any more."""
        self._lost.pop(key, None)

    def over(self, settle: float | None = None) -> Iterator[Over]:
        """Jobs that have ended since the last look; they are no longer in flight.

        Args:
            settle: seconds that a job which has run is out of the queue before it is taken for lost; None: ``SETTLE``.

        Raises:
            As :meth:`fresh`.
        """
        settle = SETTLE if settle is None else settle
        for each in self.jobs:
            # Its last word is written after its last result, so it is read before them.
            said = job.ended(each.folder)
            finished = said is not None and not said.stopped
            out = each.out_since is not None and time.monotonic() - each.out_since >= (settle if each.node else 0)
            if not finished and out:
                _refresh(each.folder)
                said = job.ended(each.folder)
                finished = said is not None and not said.stopped
            if finished or out:
                del self._jobs[each.key]
                if not finished:
                    self._lost[each.key] = each
                results = tuple(job.results(each.folder).values())
                why_lost = "" if finished else self._why(each)
                yield Over(
                    each, said, results, why_lost, not finished and _by_itself(each), not finished and _blind(each)
                )

    def _why(self, each: Job) -> str:
        if each.doomed:
            return each.doomed
        ended = each.seen if each.seen is not None and not each.seen.alive else None
        log = (
            _tail(each.folder / LOG) if each.node and (ended is None or ended.state in ("FAILED", "COMPLETED")) else ""
        )
        text = why(ended, self._limit)
        if _blind(each) and not log:
            text += (
                f"; it left no log: the node does not see {each.folder}, which has to be on a file system of all nodes"
            )
        return f"{text}; its log ends: {log}" if log else text


def _by_itself(each: Job) -> bool:
    return each.seen is not None and each.seen.state in ("FAILED", "OUT_OF_MEMORY", "TIMEOUT")


def _blind(each: Job) -> bool:
    log = each.folder / LOG
    failed = each.seen is not None and each.seen.state == "FAILED"
    return failed and (not log.exists() or WITHOUT_PYTHON in log.read_text(errors="replace"))


def _key(seen: Seen) -> str:
    _, _, token = seen.name.rpartition("-")
    _, _, index = seen.job.partition("_")
    return f"{token}-{index}"


def _names(folder: Path) -> set[str]:
    try:
        return {path.stem for path in (folder / job.RESULTS).iterdir() if not path.name.startswith(".")}
    except OSError:  # A network file system may show the folder late, too.
        return set()


def _refresh(folder: Path) -> None:
    """Make a network file system read the folder anew: what is written there ends what it remembers of it."""
    for place in (folder, folder / job.RESULTS):
        path = place / f".look-{token_hex(4)}"
        with suppress(OSError):
            path.touch()
            path.unlink()


def _tail(log: Path) -> str:
    try:
        text = log.read_text(errors="replace")
    except OSError:
        return ""
    return without_credentials(" / ".join(line.strip() for line in text.splitlines() if line.strip()))[-TAIL:]

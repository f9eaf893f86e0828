"""What a command has handed out: waiting work is put into jobs, and comes back as results or as given up."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from bisect_env.cluster.asking import Work, placed
from bisect_env.cluster.items import OPEN, Items
from bisect_env.cluster.job import Ended, ItemResult
from bisect_env.cluster.pending import Pending
from bisect_env.cluster.queue import told
from bisect_env.cluster.sending import Sender
from bisect_env.cluster.settings import SlurmSettings
from bisect_env.cluster.submitting import Cluster, Refused, cancelling
from bisect_env.cluster.watching import Job, Over, Watch
from bisect_env.environments.records import Unavailable
from bisect_env.words import counted

TELL = 15.0
"""Seconds between two lines of progress."""
QUICK, SLOW = 0.25, 2.0
"""Seconds between two looks at the jobs' folders: at first, and when nothing has come for long."""
SLOWER = 1.5
ENDING = 3.0
"""Seconds that a job has to end by itself after its last result."""
BLIND = 2
"""Jobs of which nothing begins on a node before it is left out: it fails each at once, and would draw them all."""
END = 60.0
"""Seconds that cancelled jobs have to end: Slurm gives them 30 of its own before it kills them."""


@dataclass(frozen=True)
class Finished:
    """What came of a unit of work."""

    unit: str
    results: tuple[ItemResult, ...] = ()
    ended: Ended | None = None
    """The last word of a job that it filled alone, or of the one that was lost last."""
    losses: tuple[str, ...] = ()
    """Why each of its jobs was lost, where it was given up."""


class Flight:
    """All work of one command that is on its way. Used by one thread.

    Results lie in their job's folder until the next call: whoever is killed before it has stored them finds them there.

    Args:
        settings: of the cluster.
        cluster: Slurm, whose scripts lie in the folder of ``pending``.
        pending: what is in Slurm's hands, for the next command; jobs that stand there already are watched.
        tell: gets lines for whoever watches.
    """

    def __init__(
        self, settings: SlurmSettings, cluster: Cluster, pending: Pending, tell: Callable[[str], None]
    ) -> None:
        self._cluster, self._pending, self.tell = cluster, pending, tell
        self.watch = Watch(cluster, settings.time, settings.patience * 60)
        self._items, self._works = Items(), dict[str, Work]()
        self._sender = Sender(
            settings, cluster, pending, self.watch, self._items, self._works, lambda text: self.tell(text)
        )
        self._blind: Counter[str] = Counter()
        """By the node the jobs of which nothing began there."""
        self._lost: dict[str, tuple[str, ...]] = {}
        """Of jobs taken for lost the units that they had not done."""
        self._over: list[tuple[Job, bool]] = []
        """Jobs that ended since the last call, and whether their folder is to stay."""
        self._said, self._said_at = "", 0.0
        for array in pending.arrays:
            for index in array.open:
                self.watch.add(array.token, index, pending.folder / f"{array.token}-{index}")

    def add(self, work: Work) -> str:
        """Hand out a unit; it is submitted at the next step. Its name, which its item in a job has too."""
        unit = f"u{len(self._works)}"
        self._works[unit] = work
        self._items.add(unit, work.group)
        return unit

    def step(self, more: bool = False) -> list[Finished]:
        """Submit what waits, look once at everything, and give what has ended.

        Args:
            more: whether further work will be added as soon as some has ended.

        Raises:
            InfrastructureError: Slurm refuses the jobs, no node is left, or a file cannot be read or written.
        """
        self.clean()
        self._sender.send(more)
        if self.look():
            self._sender.queue_answered()
        found = self.read()
        self.progress()
        return found

    def look(self) -> bool:
        """Ask the queue, if it is time for it, and cancel jobs that will not be started; whether it answered."""
        if not self.watch.look():
            return False
        if doomed := self.watch.doomed():
            with suppress(Refused):  # They are as doomed at the next look.
                self._cluster.cancel_jobs(doomed)
        return True

    # From jobs to results

    def read(self) -> list[Finished]:
        """What has ended, without a question to Slurm."""
        found = list(self._taken(result for _, result in self.watch.fresh()))
        for over in self.watch.over():
            found += self._ended(over)
        return found

    def _taken(self, results: Iterable[ItemResult]) -> Iterator[Finished]:
        """Results of attempts, each as soon as it is seen, of whichever job; those of work that is over are dropped."""
        for result in results:
            self._sender.saw(result.sample.record)
            work = self._works.get(result.item)
            if work is not None and work.attempt is not None and self._items.result(result.item):
                yield Finished(result.item, (result,))

    def _done_alone(self, over: Over) -> Iterator[Finished]:
        """The work that this job was all of, where it was done, or where it is the work's own fault that it was not."""
        said, trouble = over.ended, over.ended.trouble if over.ended else None
        own_fault = trouble is not None and trouble.whose == "cell" and said is not None and bool(said.environments)
        if over.why or not (trouble is None or own_fault):
            return
        for result in over.results:
            self._sender.saw(result.sample.record)
        results = tuple(replace(r, sample=placed(r.sample, over.job.key)) for r in over.results)
        for unit in self._items.of(over.job.key):
            if self._works[unit].attempt is None and self._items.result(unit):
                yield Finished(unit, results, said)

    def _ended(self, over: Over) -> Iterator[Finished]:
        yield from self._taken(over.results)
        yield from self._done_alone(over)
        key, said = over.job.key, over.ended
        trouble = said.trouble if said else None
        node = over.job.node or (said.host if said else "")
        # What one environment meets on a node says nothing of the others.
        of_environment = said is not None and any(isinstance(e, Unavailable) for e in said.environments)
        if trouble and trouble.whose == "node" and node not in self._sender.bad and not of_environment:
            self._sender.bad[node] = trouble.message
            self.tell(f"the node {node} is left out from now on: {trouble.message}")
        if over.blind and node:
            self._blind[node] += 1
            if self._blind[node] >= BLIND and node not in self._sender.bad:
                self._sender.bad[node] = over.why
                self.tell(f"the node {node} is left out from now on: {BLIND} jobs could not even begin there")
        message = over.why or (trouble.message if trouble else "the job ended without its result")
        lost = self._items.of(key)
        if lost:
            self._lost[key] = lost
            self.tell(f"a job was lost{f' on {node}' if node else ''}: {message}; what it left is in {over.job.folder}")
        own_fault = trouble is not None and trouble.whose == "cell"
        groups = {self._works[unit].group for unit in lost}
        # Which of them it was (that filled the job's memory, say) shows when each has a job of its own.
        if len(groups) > 1 and (own_fault or over.by_itself):
            self._sender.apart |= groups
        final = bool(over.job.doomed) or (own_fault and len(groups) == 1)
        for given_up in self._items.gone(key, message, node, final):
            yield Finished(given_up.item, (), said, given_up.losses)
        self._over.append((over.job, bool(lost)))
        self.watch.soon()

    def clean(self) -> None:
        """What has been handed out so far is stored: nobody needs those jobs any more."""
        over, self._over = self._over, []
        if over:
            self._pending.ended((each.token, each.index) for each, _ in over)
        for each, stays in over:
            if not stays:
                shutil.rmtree(each.folder, ignore_errors=True)
            if each.token not in self.watch.tokens:
                (self._pending.folder / f"{each.token}.sh").unlink(missing_ok=True)
        for key, units in list(self._lost.items()):
            if not any(self._items.state(unit) in OPEN for unit in units):
                self.watch.forget(key)
                del self._lost[key]
        if not self.watch.jobs:
            with suppress(OSError):
                self._pending.folder.rmdir()  # Unless something of a lost job lies there.

    def forget(self, job: Job) -> None:
        """A job of an earlier command, of which everything is stored."""
        self._over.append((job, False))
        self.clean()

    # For whoever watches

    def progress(self) -> None:
        """Say how the jobs stand, where that has changed and not too often."""
        waiting = self._items.waiting()
        what = "trial" if any(self._works[each.item].attempt for each in waiting) else "other job"
        text = told((j.seen for j in self.watch.jobs if j.seen is not None), len(waiting), what)
        if self.watch.silent:
            text = f"Slurm does not answer ({self.watch.silent.splitlines()[0]}); the jobs go on meanwhile"
        now = time.monotonic()
        if text and text != self._said and now - self._said_at >= TELL:
            self._said, self._said_at = text, now
            self.tell(text)

    def described(self) -> str:
        """What is in flight, in words."""
        return told((j.seen for j in self.watch.jobs if j.seen is not None), 0) or counted(len(self.watch.jobs), "job")

    # Its end

    def settle(self) -> list[Finished]:
        """Nothing further is wanted: jobs that are just ending may do so, and the others are cancelled."""
        deadline = time.monotonic() + ENDING
        found = self.read()
        while self.watch.jobs and time.monotonic() < deadline:
            time.sleep(QUICK)
            found += self.read()
        return found + (self.cancel() if self.watch.jobs else [])

    def cancel(self) -> list[Finished]:
        """Cancel all jobs, and give what had ended before; jobs that could not be cancelled are named."""
        deadline = time.monotonic() + END
        found: list[Finished] = []
        told_to = False
        try:
            while self.watch.jobs and time.monotonic() < deadline:
                told_to = told_to or self._told_to_cancel()
                self.watch.look(now=True)
                found += self._taken(result for _, result in self.watch.fresh())
                for over in self.watch.over(settle=0.0 if told_to else None):
                    found += [*self._taken(over.results), *self._done_alone(over)]
                    self._over.append((over.job, False))
                if self.watch.jobs:
                    time.sleep(QUICK)
        finally:
            if self.watch.jobs:
                self.tell(f"{counted(len(self.watch.jobs), 'job')} may still run; this cancels them: {self._command()}")
        self._items.cancel()
        return found

    def _told_to_cancel(self) -> bool:
        try:
            self._cluster.cancel(self._pending.arrays)
        except Refused as error:
            self.tell(f"the jobs cannot be cancelled yet: {error}")
            time.sleep(SLOW)
            return False
        return True

    def left_running(self) -> str:
        """A sentence about jobs that go on without this command."""
        return (
            f"left in Slurm's hands: {self.described()}. The same command takes in what they come to, and waits for "
            f"the rest; to cancel them: {self._command()}"
        )

    def _command(self) -> str:
        return "; ".join(" ".join(words) for words in cancelling(self._pending.arrays))

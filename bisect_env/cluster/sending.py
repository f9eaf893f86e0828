"""From waiting work to jobs: folders are written, arrays submitted, and refusals answered."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from secrets import token_hex

from bisect_env.cluster import job
from bisect_env.cluster.asking import Group, Work, kin
from bisect_env.cluster.batches import Batch, batches
from bisect_env.cluster.credentials import Vault
from bisect_env.cluster.items import Items
from bisect_env.cluster.node import NODE
from bisect_env.cluster.pending import Array, Pending
from bisect_env.cluster.refusals import no_node, passing, refusal, too_long, too_many
from bisect_env.cluster.settings import SlurmSettings
from bisect_env.cluster.submitting import Ask, Cluster, Refused
from bisect_env.cluster.watching import Watch
from bisect_env.errors import InfrastructureError
from bisect_env.trials.records import TrialRecord
from bisect_env.verdicts.hardware import Hardware, ran_on, says_of_hardware

AGAIN = 30.0
"""Seconds until a cluster that takes no more jobs is asked again."""


class Sender:
    """Puts waiting work into jobs. Used by one thread.

    Args:
        settings: of the cluster.
        cluster: Slurm, whose scripts lie in the folder of ``pending``.
        pending: gets every array before Slurm does.
        watch: gets every job.
        items: what waits; changed as it is submitted.
        works: by the name of an item.
        tell: gets lines for whoever watches.
    """

    def __init__(
        self,
        settings: SlurmSettings,
        cluster: Cluster,
        pending: Pending,
        watch: Watch,
        items: Items,
        works: Mapping[str, Work],
        tell: Callable[[str], None],
    ) -> None:
        self._settings, self._cluster, self._pending = settings, cluster, pending
        self._watch, self._items, self._works, self._tell = watch, items, works, tell
        self._vault = Vault()
        self.bad: dict[str, str] = {}
        """Nodes that can run nothing of this, and why."""
        self.apart: set[Group] = set()
        """Groups that share no job any more."""
        self._hardware: defaultdict[str, set[Hardware]] = defaultdict(set)
        """By the node what trials ran on there."""
        self._anywhere = False
        """There is no other node: what was lost on one is tried there again."""
        self._at_once = settings.jobs
        """Jobs of an array at most: a cluster may take fewer."""
        self._not_before = 0.0
        self._doubtful: set[str] = set()
        """Arrays that may not have arrived."""

    def send(self, more: bool) -> None:
        """Submit what waits, as far as there is room for further jobs.

        Args:
            more: whether work that does not wait yet will follow.

        Raises:
            InfrastructureError: Slurm refuses what is asked of it, no node is left, or a file cannot be written.
        """
        share = 0 if more else self._settings.jobs
        while self._may_send:
            free = self._settings.jobs - len(self._watch.jobs)
            by_ask: defaultdict[Ask, list[Batch]] = defaultdict(list)
            for batch in batches(self._items.waiting(), free, self._settings.batch, self._kin, share):
                by_ask[self._ask(batch)].append(batch)
            if not by_ask:
                return
            ask, found = next(iter(by_ask.items()))
            self._send_array(ask, found[: self._at_once])

    @property
    def _may_send(self) -> bool:
        return not self._doubtful and time.monotonic() >= self._not_before

    def _kin(self, group: Hashable) -> Hashable:
        return group if group in self.apart else kin(group)

    def _ask(self, batch: Batch) -> Ask:
        assert isinstance(batch.group, Group)
        avoid = frozenset[str]() if self._anywhere else batch.avoid | self._other_than(batch.group.hardware)
        return Ask(batch.group.partition, batch.group.gpus, avoid | frozenset(self.bad))

    def _other_than(self, judged: Hardware | None) -> frozenset[str]:
        """Nodes that have other GPUs, or another driver, than these trials are of."""
        if judged is None:
            return frozenset()
        return frozenset(node for node, found in self._hardware.items() if judged not in found)

    def saw(self, record: TrialRecord) -> None:
        """Remember what the node of a trial has."""
        node = dict(record.host).get(NODE)
        if node is not None and says_of_hardware(record):
            self._hardware[node].add(ran_on(record))

    def _send_array(self, ask: Ask, found: Sequence[Batch]) -> None:
        token = token_hex(4)
        for index, batch in enumerate(found):
            folder = self._pending.folder / f"{token}-{index}"
            works = [self._works[unit] for unit in batch.items]
            named = [(unit, w.attempt) for unit, w in zip(batch.items, works, strict=True) if w.attempt is not None]
            job.write(works[0].spec(folder.name, named), folder, self._vault)
        self._pending.add(Array(token, tuple(range(len(found)))))
        for index, batch in enumerate(found):
            self._watch.add(token, index, self._pending.folder / f"{token}-{index}")
            self._items.submitted(f"{token}-{index}", batch.items)
        try:
            number = self._cluster.submit(ask, token, len(found), self._vault.variables())
        except Refused as error:
            self._refused(str(error), ask, token, len(found))
        else:
            self._pending.numbered(token, number)
            self._at_once = min(self._settings.jobs, 2 * self._at_once)

    def _refused(self, text: str, ask: Ask, token: str, count: int) -> None:
        if passing(text):
            self._doubtful.add(token)
            self._tell(f"Slurm does not answer ({text.splitlines()[0]}): asked again until it does")
            return
        self._never_arrived(token)
        if count > 1 and (too_many(text) or too_long(text)):
            self._at_once = count // 2
        elif too_many(text):
            self._not_before = time.monotonic() + AGAIN
            self._tell(f"the cluster takes no more jobs of yours now ({' '.join(text.split())}): asked again soon")
        elif no_node(text) and ask.exclude > frozenset(self.bad):
            self._anywhere = True
        elif no_node(text) and self.bad:
            nodes = "\n".join(f"  {node}: {why}" for node, why in sorted(self.bad.items()))
            raise InfrastructureError(f"no node is left for a job; these could run nothing:\n{nodes}")
        else:
            raise refusal(text, self._settings, ask.partition)

    def _never_arrived(self, token: str) -> None:
        indices = [each.index for each in self._watch.jobs if each.token == token]
        self._watch.drop(token)
        self._pending.ended((token, index) for index in indices)
        for index in indices:
            self._items.returned(f"{token}-{index}")
            shutil.rmtree(self._pending.folder / f"{token}-{index}", ignore_errors=True)
        (self._pending.folder / f"{token}.sh").unlink(missing_ok=True)

    def queue_answered(self) -> None:
        """An array that is not in the queue now has never arrived."""
        seen = {each.token: each.seen for each in self._watch.jobs if each.seen is not None}
        for token in self._doubtful:
            if token in seen:
                self._pending.numbered(token, seen[token].job.partition("_")[0])
            else:
                self._never_arrived(token)
        self._doubtful.clear()

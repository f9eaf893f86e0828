"""The incident's other half: targets whose hidden states the drafters train on, made on some GPUs for the others.

A target is a few plain layers, uncompiled and without gradients. On the threaded sides each has a thread that works
ahead; in the controls a drafter's thread makes its own batch when it needs it. What is in a batch depends on the seed,
the drafter and the batch's number only, so the losses of both can be compared.
"""

from __future__ import annotations

import queue
import random
import threading
from typing import Any

import dflash_plan as plan
import torch
from dflash_lanes import Lane
from dflash_topology import Topology
from protocol import THREADED, Trial, Worker
from torch.nn import functional

AHEAD = 2
"""Batches that wait for a drafter at most."""
POLL_SECONDS = 0.1

Handed = tuple[torch.Tensor, Any]
"""Hidden states and the event after which they are there (None on a CPU)."""


class Target:
    """Random layers: the hidden states after each are a batch."""

    def __init__(self, size: plan.Size, seed: int, lane: Lane, dtype: torch.dtype) -> None:
        self.size, self.lane, self.dtype = size, lane, dtype
        generator = torch.Generator(lane.device).manual_seed(seed)

        def weight(rows: int, columns: int) -> torch.Tensor:
            drawn = torch.randn(rows, columns, generator=generator, device=lane.device, dtype=dtype)
            return drawn / rows**0.5

        hidden, inner = size.hidden, size.mlp
        self.layers = [
            [weight(hidden, 3 * hidden), weight(hidden, hidden), weight(hidden, inner), weight(inner, hidden)]
            for _ in range(size.targets)
        ]

    @torch.no_grad()
    def make(self, seed: int) -> Handed:
        """The batch of that seed, [batch, length, targets x hidden]: the calling thread's work in the target's lane."""
        size = self.size
        with self.lane.placed():
            generator = torch.Generator(self.lane.device).manual_seed(seed)
            shape = (size.batch, size.length, size.hidden)
            x = torch.randn(shape, generator=generator, device=self.lane.device, dtype=self.dtype)
            found = []
            for mixing, out, up, down in self.layers:
                normed = functional.rms_norm(x, (size.hidden,))
                query, key, value = (normed @ mixing).view(*shape[:2], 3, size.hidden).unbind(2)
                heads = [part.unflatten(-1, (size.hidden // size.head_dim, -1)).transpose(1, 2)
                         for part in (query, key, value)]  # fmt: skip
                mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
                x = x + mixed.transpose(1, 2).flatten(2) @ out
                x = x + functional.silu(functional.rms_norm(x, (size.hidden,)) @ up) @ down
                found.append(functional.rms_norm(x, (size.hidden,)))
            return torch.cat(found, dim=-1), self.lane.record()


class Targets:
    """All targets of a repeat. ``start`` before the drafters begin, ``close`` when they are done."""

    def __init__(
        self, trial: Trial, size: plan.Size, layout: Topology, lanes: list[Lane], dtype: torch.dtype, repeat: int
    ) -> None:
        self.trial, self.layout, self.repeat = trial, layout, repeat
        # One target, as often as there are GPUs for it: a batch is the same whoever makes it.
        self.targets = [Target(size, trial.seed, lane, dtype) for lane in lanes]
        drafters = range(len(layout.drafters))
        self._made = [0 for _ in drafters]
        self._queues: dict[tuple[int, int], queue.Queue[Handed]] = {
            (drafter, target): queue.Queue(AHEAD) for drafter in drafters for target in layout.sources[drafter]
        }
        self._room = [threading.Event() for _ in self.targets]
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(index,), name=f"t{index}", daemon=True)
            for index in range(len(self.targets))
        ]

    def start(self) -> None:
        """Let the targets work ahead, where threads do."""
        if self.trial.side in THREADED:
            for thread in self._threads:
                thread.start()

    def close(self) -> None:
        """End the targets' threads, which never compile anything: see ``Trial.work`` for those that do."""
        self._closed.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def take(self, worker: Worker, drafter: int, lane: Lane) -> torch.Tensor:
        """The drafter's next batch, on its own device; to be called in its thread and lane."""
        number = self._made[drafter]
        self._made[drafter] += 1
        sources = self.layout.sources[drafter]
        source = sources[number % len(sources)]
        if self.trial.side not in THREADED:
            return lane.receive(*self.targets[source].make(self._seed(drafter, number)))
        while True:
            worker.go_on()
            try:
                handed = self._queues[drafter, source].get(timeout=POLL_SECONDS)
            except queue.Empty:
                continue
            self._room[source].set()
            return lane.receive(*handed)

    def _seed(self, drafter: int, number: int) -> int:
        # Mixed, not added up: a matrix gives seeds of up to 31 bits, and a generator takes 64.
        return random.Random(f"{self.trial.seed} {self.repeat} {drafter} {number}").getrandbits(63)

    def _run(self, index: int) -> None:
        sources, room = self.layout.sources, self._room[index]
        try:
            done = {drafter: feeding.index(index) for drafter, feeding in enumerate(sources) if index in feeding}
            while not self._over():
                room.clear()
                # Whoever has room: a drafter may pause, waiting for the one that would be starved by it.
                hungry = [drafter for drafter in done if not self._queues[drafter, index].full()]
                for drafter in hungry:
                    handed = self.targets[index].make(self._seed(drafter, done[drafter]))
                    done[drafter] += len(sources[drafter])
                    self._queues[drafter, index].put_nowait(handed)
                if not hungry:
                    room.wait(POLL_SECONDS)
        except BaseException as error:  # noqa: BLE001 - as of any other thread of the trial
            self.trial.fail(f"t{index}", error, "target")

    def _over(self) -> bool:
        return self._closed.is_set() or self.trial.stop.is_set()

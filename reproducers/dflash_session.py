"""What a trial's repeats share: the shared attention's signs, the lanes, the mitigation, and how each is prepared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dflash_attention as attention
import dflash_lanes as lanes
import dflash_mitigations as mitigations
import dflash_patterns as patterns
import dflash_plan as plan
import torch
from dflash_repeats import CompiledState
from dflash_rounds import Turns
from dflash_targets import Targets
from dflash_topology import Topology
from dflash_worker import Thread
from protocol import Trial, Worker


class Session:
    """A trial's threads and targets, made anew for each repeat. Used in the main thread only.

    Raises:
        CannotRunHere: this torch lacks what the mitigation changes.
    """

    def __init__(self, trial: Trial, size: plan.Size, layout: Topology, device: str, repeats: Sequence[int]) -> None:
        self.trial, self.size, self.layout, self.device = trial, size, layout, device
        self.condition = trial.condition
        mitigations.install(trial)
        trial.windows.follow()
        self.signs = attention.Signs(self.condition["backend"], self.condition["attention"])
        self.state = CompiledState(repeats)
        self.turns = Turns(trial.events, self.condition["rounds"])
        self.drafter_lanes = [lanes.Lane.on(device, index) for index in layout.drafters]
        self.target_lanes = [lanes.Lane.on(device, index) for index in layout.targets]
        if device == "cuda":
            lanes.name_backward_threads(self.drafter_lanes)
        self.threads: list[Thread] = []
        self.targets: Targets | None = None
        self._first = True

    def pieces(self, repeat: int) -> list[Callable[[Worker], None]]:
        """Each thread's work in that repeat. All but the first begin with a reset of the compiled state."""
        self.threads, self.targets = [], None
        if not self._first:
            self.state.reset()
        self._first = False
        self.trial.events.emit("repeat", index=repeat, resets=self.state.resets)
        call, cuda = self._call(), self.device == "cuda"
        if self.layout.targets:
            dtype = torch.bfloat16 if cuda else torch.float32
            self.targets = Targets(self.trial, self.size, self.layout, self.target_lanes, dtype, repeat)
        count = 1 if self.trial.side == "solo" else self.condition["threads"]
        self.threads = [
            Thread(self.trial, index, self.size, call, self.signs, self.drafter_lanes[index], repeat, self.targets)
            for index in range(count)
        ]
        made = patterns.pieces(self.threads, self.turns)
        if cuda:  # what was made here, in default streams, is there before another stream uses it
            for lane in {lane.device: lane for lane in self.drafter_lanes + self.target_lanes}.values():
                torch.cuda.synchronize(lane.device)
        if self.targets is not None:
            self.targets.start()
        return made

    def close(self) -> None:
        """End the targets of a repeat."""
        if self.targets is not None:
            self.targets.close()

    def _call(self) -> attention.Call:
        backend, mitigation = self.condition["backend"], self.condition["mitigation"]
        if self.condition["attention"] == "torch":
            return attention.through_torch(backend, mitigation)
        return attention.through_transformers(backend, mitigation, self.device)


def cache_counters() -> tuple[int, int]:
    """Hits and misses of inductor's cache of compiled graphs; a graph that cannot be cached is a miss."""
    counters: Any = torch._dynamo.utils.counters["inductor"]
    return counters["fxgraph_cache_hit"], counters["fxgraph_cache_miss"] + counters["fxgraph_cache_bypass"]

"""One thread's drafter: a training step, its attention, its check against the reference, what it did and met."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dflash_model as model
import dflash_operations as operations
import dflash_plan as plan
import torch
from dflash_attention import Attention, Call, Signs, uncompiled
from dflash_lanes import Lane
from dflash_mitigations import lock
from dflash_targets import Targets
from protocol import Trial, Worker

LEARNING_RATE = 1e-4
PLANTED = 1
"""Index of the thread that is dense on purpose with the option `planted`."""


class Thread:
    """Model, optimizer and data of one worker. Made in the main thread, one after another, anew for every repeat."""

    def __init__(
        self,
        trial: Trial,
        index: int,
        size: plan.Size,
        call: Call,
        signs: Signs,
        lane: Lane,
        repeat: int,
        targets: Targets | None,
    ) -> None:
        self.trial, self.index, self.size, self.call, self.signs = trial, index, size, call, signs
        self.lane, self.repeat, self.targets = lane, repeat, targets
        self.condition = trial.condition
        cuda = lane.stream is not None
        self.dtype = torch.bfloat16 if cuda else torch.float32
        # Flex attention has no backward on a CPU: its inputs then get no gradient, everything else does.
        self.without_gradients = not cuda
        seed = (trial.seed + 10**6 * repeat) * 1000 + index
        torch.manual_seed(seed)
        parts = model.own_parts if self.condition["attention"] == "torch" else model.transformers_parts
        with lane.device:
            self.model = model.Drafter(size, parts(size), self.condition["window"], self.condition["checkpointing"])
        for parameter in self.model.parameters():  # not .to(dtype): it would round the rotary frequencies too
            parameter.data = parameter.data.to(self.dtype)
        self.data = model.Source(seed, lane.device, self.dtype)
        self.spare = model.Source(seed + 500, lane.device, self.dtype)  # of laps and checks: never of the losses
        self.head = self.data.normal(size.vocab, size.hidden) * 0.02
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=LEARNING_RATE, fused=cuda)
        constant = self.condition["mitigation"] == "constant-shapes"
        self.widths = plan.widths(size, index, "constant" if constant else "varying")
        self.cold_steps = max(self.condition["warm_steps"], len(self.widths))
        self.attention: Attention | None = None
        self.losses: list[float] = []
        self.done: list[tuple[int, operations.Anchors]] = []
        """Width and anchors of each step since they were last taken."""
        self.peak = 0

    def step(
        self, worker: Worker, width: int, *, warm: bool = False, lap: bool = False, attend: Attention | None = None
    ) -> None:
        """One training step. A lap does all but the update, with data of its own: the losses do not depend on it."""
        began = time.perf_counter()
        source, hidden = (self.spare, None) if lap else (self.data, None)
        if self.targets is not None and not lap:
            hidden = self.targets.take(worker, self.index, self.lane)
        batch = model.make_batch(self.size, width, source, self.head, self.condition["window"], hidden)
        with lock(self.condition["mitigation"], "lock-all"):
            loss = model.loss_of(self.model, batch, self.head, attend or self.attending(worker))
            loss.backward()
        if not lap:
            self.optimizer.step()
        self.optimizer.zero_grad()
        value = loss.item()
        self.lane.synchronize()
        if not lap:
            self.losses.append(value)
        self.done.append((width, batch.anchors))
        worker.step(self.size.tokens, time.perf_counter() - began, warm)

    def attending(self, worker: Worker) -> Attention:
        """The attention of this thread; ``worker`` is told of its calls."""
        if self.attention is None:
            self.attention = self.counted(worker, self.call)
        return self.attention

    def counted(self, worker: Worker, call: Call) -> Attention:
        """A way to the attention that tells ``worker`` of its calls."""
        return Attention(call, self.signs, worker.calling, self.condition["mitigation"], self.without_gradients)

    def cold(self, worker: Worker) -> None:
        """The first steps: every width at least once, in this thread's order. A planted thread is dense after them."""
        for index in range(self.cold_steps):
            if worker.stopping:
                return
            self.step(worker, self.widths[index % len(self.widths)])
        if self.condition["planted"] == "dense" and self.index == PLANTED:
            self.attending(worker).call = uncompiled

    def laps(self, worker: Worker, until: Callable[[], bool]) -> None:
        """Warm steps while another thread compiles, until told that it is done."""
        index = 0
        while not until() and not worker.stopping:
            self.step(worker, self.widths[index % len(self.widths)], lap=True)
            index += 1

    def steps(self, worker: Worker) -> None:
        """The condition's number of warm steps, all done by the device when it returns."""
        for index in range(self.condition["steps"]):
            if worker.stopping:
                return
            self.step(worker, self.widths[index % len(self.widths)], warm=True)

    def timed(self, worker: Worker) -> None:
        """The steps that memory and the kernels are read from. All threads begin and end together."""
        cuda = self.lane.stream is not None
        if cuda:
            torch.cuda.reset_peak_memory_stats(self.lane.device)
            if self.trial.side == "profile":
                self.attending(worker).restart()
                for _ in range(self.index + 1):
                    torch.cuda._sleep(1000)
        worker.meet()
        self.steps(worker)
        worker.meet()
        if cuda:
            self.peak = torch.cuda.max_memory_allocated(self.lane.device)
        worker.meet()

    def operations_done(self) -> int:
        """Operations of the steps since this was last asked."""
        windows = operations.layer_windows(self.size, self.condition["window"])
        backward = not self.without_gradients
        done, self.done = self.done, []
        return sum(operations.step_operations(self.size, width, anchors, windows, backward) for width, anchors in done)

    def check(self, worker: Worker) -> None:
        """Compare the attention that just ran with the float64 reference, in this thread."""
        for layer in {layer.sliding: layer for layer in self.model.layers}.values():
            found = model.check_attention(
                self.size, self.widths[-1], self.spare, self.attending(worker), layer, self.head,
                self.condition["window"],
            )  # fmt: skip
            for what, error, tolerance in found:
                sliding = ", sliding" if layer.sliding else ""
                self.trial.events.emit(
                    "numbers", what=f"{worker.name} {what}{sliding}", error=error, tolerance=tolerance
                )

    def report_losses(self, worker: Worker) -> None:
        """Losses of every side's same steps. A repeat has data, and so a name, of its own."""
        if self.losses:
            name = f"{worker.name} repeat {self.repeat}" if self.repeat else worker.name
            self.trial.events.emit("losses", thread=name, values=self.losses)

    def report_path(self, signs: dict[str, Any]) -> None:
        """How the attention ran; ``signs`` are added to this thread's own."""
        attention = self.attention
        if attention is not None and attention.calls:
            self.trial.events.emit(
                "path", thread=f"w{self.index}", calls=attention.calls, signs={**attention.unfused, **signs}
            )

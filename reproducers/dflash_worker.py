"""One thread's drafter at work: cold steps, laps beside a compiling thread, timed steps, and the checks after them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import dflash_model as model
import dflash_plan as plan
import protocol
import torch
from dflash_attention import TURN, Attention, Call, Signs, fresh
from protocol import THREADED, Trial, Worker

LEARNING_RATE = 1e-4


class Meeting:
    """What the threads know of each other: who is still in its cold steps, and whether the hot thread is done."""

    def __init__(self, cold: int) -> None:
        self._lock, self._cold, self.hot_done = threading.Lock(), cold, threading.Event()

    def warmed(self) -> None:
        """One thread ended its cold steps."""
        with self._lock:
            self._cold -= 1

    def all_warm(self) -> bool:
        """Whether every thread did."""
        return self._cold <= 0


class Thread:
    """Model, optimizer, data and stream of one worker. Made in the main thread, one after another."""

    def __init__(self, trial: Trial, index: int, size: plan.Size, call: Call, signs: Signs, device: str) -> None:
        self.trial, self.index, self.size, self.call, self.signs = trial, index, size, call, signs
        self.condition = trial.condition
        cuda = device == "cuda"
        self.device = torch.device("cuda", index % torch.cuda.device_count()) if cuda else torch.device("cpu")
        self.dtype = torch.bfloat16 if cuda else torch.float32
        # Flex attention has no backward on a CPU: its inputs then get no gradient, everything else does.
        self.without_gradients = not cuda
        seed = trial.seed * 1000 + index
        torch.manual_seed(seed)
        parts = model.own_parts if self.condition["attention"] == "torch" else model.transformers_parts
        with self.device:
            self.model = model.Drafter(size, parts(size), self.condition["window"], self.condition["checkpointing"])
        for parameter in self.model.parameters():  # not .to(dtype): it would round the rotary frequencies too
            parameter.data = parameter.data.to(self.dtype)
        self.data = model.Source(seed, self.device, self.dtype)
        self.spare = model.Source(seed + 500, self.device, self.dtype)  # of laps and checks: never of the losses
        self.head = self.data.normal(size.vocab, size.hidden) * 0.02
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=LEARNING_RATE, fused=cuda)
        self.stream = torch.cuda.Stream(self.device) if cuda else None
        self.widths = plan.widths(size, index, self.condition["shapes"])
        self.cold_steps = max(self.condition["warm_steps"], len(self.widths))
        self.attention: Attention | None = None
        self.losses: list[float] = []
        self.peak = 0

    @contextmanager
    def placed(self) -> Iterator[None]:
        """With this worker's device and stream current in the calling thread."""
        if self.stream is None:
            torch.set_num_threads(1)  # of this thread: several pools of OpenMP threads would fight over the cores
            yield
            return
        torch.cuda.set_device(self.device)
        with torch.cuda.stream(self.stream):
            yield

    def step(
        self, worker: Worker, width: int, *, warm: bool = False, lap: bool = False, attend: Attention | None = None
    ) -> None:
        """One training step. A lap does all but the update, with data of its own: the losses do not depend on it."""
        began = time.perf_counter()
        batch = model.make_batch(
            self.size, width, self.spare if lap else self.data, self.head, self.condition["window"]
        )
        with TURN if self.condition["mitigation"] == "lock-all" else nullcontext():
            loss = model.loss_of(self.model, batch, self.head, attend or self.attending(worker))
            loss.backward()
        if not lap:
            self.optimizer.step()
        self.optimizer.zero_grad()
        value = loss.item()
        if self.stream is not None:
            self.stream.synchronize()
        if not lap:
            self.losses.append(value)
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
        """The first steps: every width at least once, in this thread's order."""
        for index in range(self.cold_steps):
            if worker.stopping:
                return
            self.step(worker, self.widths[index % len(self.widths)])

    def laps(self, worker: Worker, until: Callable[[], bool]) -> None:
        """Warm calls while another thread compiles, until told that it is done."""
        index = 0
        while not until() and not worker.stopping:
            self.step(worker, self.widths[index % len(self.widths)], lap=True)
            index += 1

    def compile_fresh(self, worker: Worker) -> None:
        """The hot thread: one new compile of the attention a step, each for a width of its own."""
        for number, width in enumerate(plan.fresh_widths(self.size, self.condition["fresh"])):
            if worker.stopping:
                return
            call = fresh(self.index * 1000 + number, self.condition["backend"])
            self.step(worker, width, attend=self.counted(worker, call))

    def timed(self, worker: Worker) -> None:
        """The steps that throughput, memory and the kernels are read from. All threads begin and end together."""
        if self.stream is not None:
            torch.cuda.reset_peak_memory_stats(self.device)
            if self.trial.side == "profile":
                self.attending(worker).restart()
                for _ in range(self.index + 1):
                    torch.cuda._sleep(1000)
        worker.meet()
        for index in range(self.condition["steps"]):
            if worker.stopping:
                return
            self.step(worker, self.widths[index % len(self.widths)], warm=True)
        worker.meet()
        if self.stream is not None:
            self.peak = torch.cuda.max_memory_allocated(self.device)
        worker.meet()

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


def all_work(thread: Thread, threads: list[Thread], meeting: Meeting) -> Callable[[Worker], None]:
    """A worker's piece: what its thread, one of ``threads``, does from start to end."""
    condition, threaded = thread.condition, thread.trial.side in THREADED
    pattern, warmed = condition["pattern"], condition["mitigation"] == "warmup"

    def warm_up(worker: Worker) -> None:
        for each in threads:
            with each.placed():
                each.cold(worker)

    def before_timing(worker: Worker) -> None:
        if pattern == "staggered" and threaded:
            thread.trial.stop.wait(thread.index * condition["stagger"])
        if not warmed:
            # In the hot pattern the cold steps are not the question: one thread at a time.
            with thread.trial.alone if pattern == "hot" else nullcontext():
                thread.cold(worker)
        meeting.warmed()
        if threaded and pattern != "hot":
            thread.laps(worker, meeting.all_warm)
        worker.meet()
        if pattern == "hot" and thread.index == 0:
            thread.compile_fresh(worker)
            meeting.hot_done.set()
        elif pattern == "hot" and threaded:
            thread.laps(worker, meeting.hot_done.is_set)
        worker.meet()

    def piece(worker: Worker) -> None:
        # The mitigation: every shape, forward and backward, in w0 alone. Not in a thread of its own, which would have
        # to end before the others start (see Trial.work).
        if warmed and thread.index == 0:
            warm_up(worker)
        worker.meet()
        with thread.placed():
            try:
                before_timing(worker)
                if thread.trial.side != "warmup":
                    thread.timed(worker)
                    thread.check(worker)
            finally:
                if thread.losses:
                    thread.trial.events.emit("losses", thread=worker.name, values=thread.losses)

    return piece


def name_autograd_threads(threads: list[Thread]) -> None:
    """Let the compile windows of autograd's own threads carry the name of the worker whose backward it is.

    Autograd runs a node in the stream of its forward, and each worker has a stream of its own.
    """
    names = {(thread.stream.device_index, thread.stream.cuda_stream): f"w{thread.index}" for thread in threads}
    plain = protocol.thread_name

    def thread_name() -> str:
        name = plain()
        if name != "autograd":
            return name
        stream = torch.cuda.current_stream()
        return names.get((stream.device_index, stream.cuda_stream), name)

    protocol.thread_name = thread_name


def summed_cache_counters() -> tuple[int, int]:
    """Hits and misses of inductor's cache of compiled graphs; a graph that cannot be cached is a miss."""
    counters: Any = torch._dynamo.utils.counters["inductor"]
    return counters["fxgraph_cache_hit"], counters["fxgraph_cache_miss"] + counters["fxgraph_cache_bypass"]

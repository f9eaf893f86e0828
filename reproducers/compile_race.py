"""Threads and torch.compile, on any machine: does a compile in one thread harm the calls of another?

  hot          w0 compiles new functions (forward + backward), the others only call a warm one of their own
  barrier      all threads are released together on a function that is new to all of them, and go on calling it
  separate     each thread compiles functions of its own and goes on calling each
  flex-choice  w0 compiles as in hot, the others call transformers' compile_friendly_flex_attention (forward only);
               counted per thread: how often it ran unfused, by two signs that do not depend on each other

The options fix the number of compiles and the least number of calls, so that the controls do the same work and losses
can be compared between the sides. The side `solo` is one compiling thread's work, and for hot and flex-choice, where
the others are the ones that may be harmed, one calling thread's, its own first call included.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from condition import CannotRunHere
from flex_signs import Signs, flex_library
from protocol import Trial, Worker

OPTIONS: dict[str, dict[str, Any]] = {
    "threads": {"default": 2, "min": 2, "max": 64, "help": "worker threads"},
    "pattern": {
        "default": "hot",
        "choices": ["hot", "barrier", "separate", "flex-choice"],
        "help": "who compiles and who calls, see above",
    },
    "backend": {"default": "aot_eager", "choices": ["aot_eager", "inductor"], "help": "backend of torch.compile"},
    "device": {"default": "auto", "choices": ["auto", "cpu", "cuda"], "help": "where the tensors are"},
    "functions": {"default": 8, "min": 1, "max": 100000, "help": "functions that a compiling thread compiles"},
    "calls": {"default": 100, "min": 1, "max": 1000000, "help": "fewest warm calls of a function"},
}

LAYERS = 4
"""Of a compiled function. Tracing it must take longer than Python's switch interval (5 ms), or no other thread runs
meanwhile; at this size it takes some ten times that."""
ROWS, WIDTH, RATE = 16, 16, 0.01
TOKENS, HEADS, HEAD_DIM = 128, 2, 16
MOST_LOSSES = 200
"""Reported of a thread: its first ones."""

Function = Callable[..., Any]


def new_function(name: str) -> Function:
    """A small network with a code object of its own: dynamo's recompile limit counts per code object."""
    body = "".join(f"    x = (x @ w).tanh() + {index} * x.sigmoid()\n" for index in range(LAYERS))
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(f"def {name}(x, w):\n{body}    return (x * x).mean()\n", space)
    function: Function = space[name]
    return function


def causal(batch: Any, head: Any, query: Any, key: Any) -> Any:
    """The mask of `flex-choice`."""
    return query >= key


class Learner:
    """One thread's parameters and data; the same seed and thread give the same losses on every side."""

    def __init__(self, torch: Any, worker: Worker, device: str) -> None:
        self._torch, self._worker = torch, worker
        generator = torch.Generator().manual_seed(worker.trial.seed * 1000 + int(worker.name[1:]))
        self._w = (torch.randn(WIDTH, WIDTH, generator=generator) / WIDTH).to(device).requires_grad_()
        self._x = torch.randn(ROWS, WIDTH, generator=generator).to(device)
        self._losses: list[float] = []

    def step(self, function: Function, warm: bool) -> None:
        """Forward, backward and a step of plain gradient descent."""
        self._worker.calling()
        start = time.perf_counter()
        loss = function(self._x, self._w)
        loss.backward()
        with self._torch.no_grad():
            self._w -= RATE * self._w.grad
        self._w.grad = None
        if len(self._losses) < MOST_LOSSES:
            self._losses.append(loss.item())
        self._worker.step(ROWS, time.perf_counter() - start, warm)

    def report(self, steps: int) -> None:
        """Emit the losses of the first ``steps`` steps, those that every side makes."""
        self._worker.trial.events.emit("losses", thread=self._worker.name, values=self._losses[:steps])


class Race:
    """The patterns: for each, the pieces of work of its threads."""

    def __init__(self, trial: Trial, torch: Any, device: str) -> None:
        self._trial, self._torch, self._device = trial, torch, device
        self._backend: str = trial.condition["backend"]
        self._functions: int = trial.condition["functions"]
        self._calls: int = trial.condition["calls"]
        self._compiling = threading.Event()

    def _compiled(self, name: str) -> Function:
        function: Function = self._torch.compile(new_function(name), backend=self._backend)
        return function

    def _learner(self, worker: Worker) -> Learner:
        self._torch.set_num_threads(1)  # a core a thread and sums in one order; holds for the calling thread
        return Learner(self._torch, worker, self._device)

    def compiler(self, worker: Worker) -> None:
        """Compile functions one after the other, once the callers are warm."""
        learner = self._learner(worker)
        self._compiling.set()
        try:
            worker.meet()
            for index in range(self._functions):
                if worker.stopping:
                    return
                learner.step(self._compiled(f"{worker.name}_{index}"), warm=False)
        finally:
            self._compiling.clear()
        learner.report(self._functions)

    def _more_calls(self, worker: Worker) -> Iterator[int]:
        """Calls to make: at least the option's number, and as long as another thread compiles."""
        done = 0
        while not worker.stopping and (done < self._calls or self._compiling.is_set()):
            yield done
            done += 1

    def caller(self, worker: Worker) -> None:
        """Compile one function alone, then only call it."""
        learner = self._learner(worker)
        function = self._compiled(f"{worker.name}_warm")
        with self._trial.alone:
            learner.step(function, warm=False)
        worker.meet()
        for _ in self._more_calls(worker):
            learner.step(function, warm=True)
        learner.report(1 + self._calls)

    def _cold_then_warm(self, learner: Learner, function: Function) -> None:
        learner.step(function, warm=False)
        for _ in range(self._calls):
            learner.step(function, warm=True)

    def separate(self, worker: Worker) -> None:
        """Compile functions of one's own and go on calling each."""
        learner = self._learner(worker)
        worker.meet()
        for index in range(self._functions):
            if worker.stopping:
                return
            self._cold_then_warm(learner, self._compiled(f"{worker.name}_{index}"))
        learner.report(self._functions * (1 + self._calls))

    def together(self, shared: list[Function], worker: Worker) -> None:
        """Call functions that are new to all threads, released together on each, and go on calling each."""
        learner = self._learner(worker)
        for function in shared:
            worker.meet()
            if worker.stopping:
                return
            self._cold_then_warm(learner, function)
        learner.report(self._functions * (1 + self._calls))

    def attention(self, signs: Signs, worker: Worker) -> None:
        """Call the library's flex attention without gradients, and count how it ran after the first call."""
        torch = self._torch
        torch.set_num_threads(1)
        create_block_mask = importlib.import_module("torch.nn.attention.flex_attention").create_block_mask
        generator = torch.Generator().manual_seed(self._trial.seed * 1000 + int(worker.name[1:]))
        shape = (3, 1, HEADS, TOKENS, HEAD_DIM)
        query, key, value = torch.randn(shape, generator=generator).to(self._device)
        with torch.no_grad():
            with self._trial.alone:
                # Built before the exposure: on torch 2.14 `create_block_mask` has a race of its own.
                mask = create_block_mask(causal, None, None, TOKENS, TOKENS, device=self._device)
                start = time.perf_counter()
                signs.attention(query, key, value, block_mask=mask)
                worker.step(TOKENS, time.perf_counter() - start, warm=False)
            worker.meet()
            calls, unfused = 0, dict.fromkeys(signs.names, 0)
            try:
                for _ in self._more_calls(worker):
                    worker.calling()
                    before, start = signs.counts(), time.perf_counter()
                    signs.attention(query, key, value, block_mask=mask)
                    worker.step(TOKENS, time.perf_counter() - start, warm=True)
                    calls, after = calls + 1, signs.counts()
                    for name in signs.names:
                        unfused[name] += after[name] > before[name]
            finally:
                self._trial.events.emit("path", thread=worker.name, calls=calls, signs=unfused)

    def pieces(self, signs: Signs | None) -> Sequence[Callable[[Worker], None]]:
        """The work of w0, w1, ..."""
        count, pattern = self._trial.condition["threads"], self._trial.condition["pattern"]
        if pattern == "separate":
            return [self.separate] * count
        if pattern == "barrier":
            shared = [self._compiled(f"shared_{index}") for index in range(self._functions)]
            return [functools.partial(self.together, shared)] * count
        caller = functools.partial(self.attention, signs) if signs else self.caller
        return [self.compiler] + [caller] * (count - 1)


def main() -> int:
    """Run one trial; the exit status."""
    trial = Trial.begin(OPTIONS, __doc__)
    pattern = trial.condition["pattern"]
    with trial.importing():
        import torch

        trial.windows.follow()
        library = flex_library() if pattern == "flex-choice" else None
    trial.ready()
    race = Race(trial, torch, trial.device())
    try:
        signs = Signs(torch, library, trial.condition["backend"]) if library else None
    except CannotRunHere as error:
        trial.skip(str(error))
    trial.work(race.pieces(signs), solo=1 if pattern in ("hot", "flex-choice") else 0)
    return trial.finish()


if __name__ == "__main__":
    sys.exit(main())

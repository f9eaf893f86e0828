"""Where a thread's work goes: a device, and on CUDA a stream of the thread's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import trial_windows


@dataclass(frozen=True)
class Lane:
    """A device and a stream on it (None on a CPU). Kept for the whole process: memory is cached by stream."""

    device: torch.device
    stream: Any = None

    @classmethod
    def on(cls, device: str, index: int) -> Lane:
        """A new lane on ``cuda`` device ``index``, or on the CPU."""
        if device != "cuda":
            return cls(torch.device("cpu"))
        place = torch.device("cuda", index)
        return cls(place, torch.cuda.Stream(place))

    @contextmanager
    def placed(self) -> Iterator[None]:
        """With this device and stream current in the calling thread."""
        if self.stream is None:
            torch.set_num_threads(1)  # of this thread: several pools of OpenMP threads would fight over the cores
            yield
            return
        with torch.cuda.device(self.device), torch.cuda.stream(self.stream):
            yield

    def synchronize(self) -> None:
        """Wait until the stream has done all its work."""
        if self.stream is not None:
            self.stream.synchronize()

    def record(self) -> Any:
        """An event at the end of what the stream has to do now; None on a CPU."""
        return None if self.stream is None else self.stream.record_event()

    def receive(self, given: torch.Tensor, ready: Any) -> torch.Tensor:
        """``given``, made in another lane, on this device, to be used in this lane once ``ready``.

        The calling thread must be placed in this lane. The giver's memory is not reused before this lane is done.
        """
        if self.stream is None:
            return given
        if given.device == self.device:
            self.stream.wait_event(ready)
            given.record_stream(self.stream)
            return given
        # A copy between devices runs in the current stream of the giving device; torch lets it and the current stream
        # of this device wait for each other.
        with torch.cuda.device(given.device):
            there = torch.cuda.current_stream(given.device)
            there.wait_event(ready)
        given.record_stream(there)
        return given.to(self.device, non_blocking=True)


def name_backward_threads(lanes: list[Lane]) -> None:
    """Let the compile windows of autograd's own threads carry the name of the worker whose backward it is.

    Autograd runs a node in the stream of its forward, and each worker has a stream of its own.
    """
    names = {(lane.stream.device_index, lane.stream.cuda_stream): f"w{index}" for index, lane in enumerate(lanes)}
    plain = trial_windows.thread_name

    def thread_name() -> str:
        name = plain()
        if name != "autograd":
            return name
        stream = torch.cuda.current_stream()
        return names.get((stream.device_index, stream.cuda_stream), name)

    trial_windows.thread_name = thread_name

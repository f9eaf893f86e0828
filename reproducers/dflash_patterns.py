"""What each thread does from start to end: the patterns, the timed steps or rounds, and the checks after them."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext

import dflash_ceiling as ceiling
import dflash_mitigations as mitigations
import dflash_plan as plan
from dflash_attention import fresh
from dflash_hammer import Fresh, Hammer
from dflash_rounds import Turns
from dflash_worker import Thread
from protocol import THREADED, Worker

USUAL_SWITCH_SECONDS, SWITCH_SECONDS = sys.getswitchinterval(), 0.0005
"""How long a thread keeps Python to itself while another wants it: usually (5 ms), and while hammering. A call needs it
many times, and a compiling thread gives it away only then."""


class Meeting:
    """What the threads of a repeat know of each other: who is still in its cold steps, whose turn is over."""

    def __init__(self, threads: int) -> None:
        self._lock, self._cold = threading.Lock(), threads
        self.turn_over = [threading.Event() for _ in range(threads)]
        self.more_rounds = True

    def warmed(self) -> None:
        """One thread ended its cold steps."""
        with self._lock:
            self._cold -= 1

    def all_warm(self) -> bool:
        """Whether every thread did."""
        return self._cold <= 0


class Piece:
    """The work of one thread, one of ``threads``, in a repeat. Called with its worker."""

    def __init__(self, thread: Thread, threads: list[Thread], meeting: Meeting, turns: Turns) -> None:
        self.thread, self.threads, self.meeting, self.turns = thread, threads, meeting, turns
        self.condition, self.side = thread.condition, thread.trial.side
        self.threaded = self.side in THREADED
        self.pattern: str = self.condition["pattern"]
        self.warmed = self.condition["mitigation"] == "warmup"
        count = self.condition["fresh"] if self.pattern == "mixed" and self.side != "rounds" else 0
        self.fresh = [Fresh(number, thread) for number in range(count)]
        self.others: list[Piece] = []
        """All pieces of the repeat, this one included."""

    def __call__(self, worker: Worker) -> None:
        """Do it."""
        thread = self.thread
        with thread.lane.placed():
            mitigations.in_thread(thread.trial, worker.name, thread.lane.device)
        # The mitigation: every shape, forward and backward, in w0 alone. Not in a thread of its own, which would have
        # to end before the others start (see Trial.work).
        if self.warmed and thread.index == 0:
            worker.phase = "warm-up"
            for piece in self.others:
                with piece.thread.lane.placed():
                    piece.thread.cold(worker)
                    for new in piece.fresh:
                        new.call(worker)
        worker.meet()
        with thread.lane.placed():
            try:
                self._cold(worker)
                if self.side == "rounds":
                    self._rounds(worker)
                else:
                    self._compile_beside_callers(worker)
                if self.side not in ("warmup", "rounds"):
                    worker.phase = "timed"
                    thread.timed(worker)
                if self.side != "warmup":
                    worker.phase = "check"
                    thread.check(worker)
            finally:
                if self.side != "rounds":
                    thread.report_losses(worker)

    def _cold(self, worker: Worker) -> None:
        worker.phase = "barrier" if self.pattern == "mixed" else self.pattern
        thread, hot = self.thread, self.pattern == "hot"
        if self.pattern == "staggered" and self.threaded:
            thread.trial.stop.wait(thread.index * self.condition["stagger"])
        if not self.warmed:
            # In the hot pattern the cold steps are not the question: one thread at a time.
            with thread.trial.alone if hot else nullcontext():
                thread.cold(worker)
        self.meeting.warmed()
        if self.threaded and not hot:
            thread.laps(worker, self.meeting.all_warm)
        worker.meet()

    def _compile_beside_callers(self, worker: Worker) -> None:
        if self.pattern == "hot":
            worker.phase = "hot"
            self._hot(worker)
        elif self.pattern == "mixed":
            worker.phase = "hammer"
            self._hammer(worker)

    def _hot(self, worker: Worker) -> None:
        """w0 makes one new compile of the attention a step, each for a width of its own; the others do laps."""
        thread, over = self.thread, self.meeting.turn_over[0]
        if thread.index == 0:
            for number, width in enumerate(plan.fresh_widths(thread.size, self.condition["fresh"])):
                if worker.stopping:
                    break
                call = fresh(number, self.condition["backend"])
                thread.step(worker, width, attend=thread.counted(worker, call))
            over.set()
        elif self.threaded:
            thread.laps(worker, over.is_set)
        worker.meet()

    def _hammer(self, worker: Worker) -> None:
        """Each thread in turn compiles its fresh functions, while all others call their warm attention."""
        hammer = Hammer(self.thread, worker)
        hammer.strike(lambda: True)
        worker.meet()
        sys.setswitchinterval(SWITCH_SECONDS)
        for turn in range(len(self.threads)):
            over = self.meeting.turn_over[turn]
            if turn == self.thread.index:
                for new in self.fresh:
                    if worker.stopping:
                        break
                    new.call(worker)
                over.set()
            elif self.threaded:
                hammer.strike(over.is_set)
            worker.meet()
        sys.setswitchinterval(USUAL_SWITCH_SECONDS)
        worker.meet()

    def _rounds(self, worker: Worker) -> None:
        """Timed rounds from a common start to all devices synchronised, then what share of the ceiling that was."""
        worker.phase = "rounds"
        thread, meeting, first = self.thread, self.meeting, self.thread.index == 0
        timed: list[tuple[int, float]] = []
        for each in self.threads if first else []:
            each.operations_done()
        for index in itertools.count():
            if first:
                meeting.more_rounds = self.turns.begins(index, lambda: worker.stopping)
            worker.meet()
            if not meeting.more_rounds:
                break
            began = time.perf_counter()
            thread.steps(worker)
            worker.meet()
            if first:
                seconds = time.perf_counter() - began
                tokens = thread.size.tokens * self.condition["steps"] * len(self.threads)
                thread.trial.events.emit("round", index=index, tokens=tokens, seconds=seconds)
                timed.append((sum(each.operations_done() for each in self.threads), seconds))
        worker.phase = "utilisation"
        if first:
            devices = {each.lane.device for each in self.threads}
            layer = thread.model.layers[-1]
            for values in ceiling.utilisation(
                thread.size, thread.widths[0], thread.spare, thread.attending(worker), layer, thread.head,
                self.condition["window"], timed, len(devices),
            ):  # fmt: skip
                thread.trial.events.emit("utilisation", **values)
            if thread.without_gradients:
                thread.trial.events.emit("note", key="utilisation", value=ceiling.ON_CPU)
        worker.meet()


def pieces(threads: list[Thread], turns: Turns) -> list[Callable[[Worker], None]]:
    """The work of all threads in a repeat."""
    meeting = Meeting(len(threads))
    made = [Piece(thread, threads, meeting, turns) for thread in threads]
    for piece in made:
        piece.others = made
    return list(made)

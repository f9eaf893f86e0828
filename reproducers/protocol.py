"""What the shipped reproducers share: the condition, the events, worker threads, compile windows, the exit status.

Standard library only, and torch is never imported from here on import: a reproducer says `start` before it imports
torch, so that a slow or broken import can be told from a slow start. A reproducer is written like this:

    trial = protocol.Trial.begin(OPTIONS, __doc__)
    with trial.importing():
        import torch
    trial.ready()
    trial.work([piece, piece])      # each piece is called with its Worker
    sys.exit(trial.finish())

With BISECT_ENV_CONDITION and BISECT_ENV_EVENTS set it speaks the event protocol of docs/architecture.md; without them
the condition comes from the command line and a summary is printed at the end.
"""

from __future__ import annotations

import faulthandler
import json
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

from condition import CannotRunHere, Options, checked, command_line, summary
from trial_events import Events, describe
from trial_windows import Windows

CLEAN, FAILED, USAGE, CANNOT_RUN, INTERRUPTED = 0, 1, 2, 125, 130
THREADED = ("threads", "profile", "rounds")
AFTER_FAILURE_SECONDS = 10.0
"""What the other threads have to come to their end once one has failed: the trial is decided, and they may be stuck."""
FLUSH_SECONDS = 0.1
"""Least time between two `step` events of a thread."""


class _Stopped(Exception):
    """Another thread failed, so this one has nothing more to do."""


class Worker:
    """One thread's work as its piece sees it. In the controls several take their turns in one real thread.

    ``phase`` is what the piece calls the part of its work that it is in; a failure tells it.
    """

    def __init__(self, trial: Trial, name: str) -> None:
        self.trial, self.name, self.phase = trial, name, ""
        self._tokens = self._count = 0
        self._start, self._end, self._warm = 0.0, 0.0, False
        self._alive = 0.0

    @property
    def stopping(self) -> bool:
        """True once any thread failed: the trial is decided."""
        return self.trial.stop.is_set()

    def meet(self) -> None:
        """Wait until all threads are here. Ends this worker's work when another one failed."""
        try:
            self.trial.barrier.wait()
        except threading.BrokenBarrierError:
            raise _Stopped from None

    def go_on(self) -> None:
        """Go on, or end this worker's work when another one failed."""
        if self.stopping:
            raise _Stopped

    def calling(self) -> None:
        """Say that a call is about to be made: it is an exposure when another thread is compiling."""
        if self.trial.windows.open_elsewhere():
            with self.trial.lock:
                self.trial.exposures += 1

    def step(self, tokens: int, seconds: float, warm: bool) -> None:
        """Report work that ended just now; several steps become one event, some ten a second at most."""
        now = time.time()
        if self._count and warm != self._warm:
            self.flush()
        if not self._count:
            self._start, self._warm = now - seconds, warm
        self._tokens, self._count, self._end = self._tokens + tokens, self._count + 1, now
        if now - self._start >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the steps not yet written."""
        if self._count:
            self.trial.events.emit("step", t=self._end, thread=self.name, tokens=self._tokens,
                                   seconds=self._end - self._start, warm=self._warm, count=self._count)  # fmt: skip
        self._tokens = self._count = 0

    def alive(self) -> None:
        """Report progress without a result, once a second at most."""
        now = time.time()
        if now - self._alive >= 1:
            self._alive = now
            self.trial.events.emit("alive", thread=self.name)


def _interrupted(number: int, frame: object) -> NoReturn:
    """Ctrl-C by hand: neither a failure (1) nor a wait for workers that may be deep in a compiler."""
    print("interrupted", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)


Piece = Callable[[Worker], None]
"""What one thread does."""
Share = list[tuple[str, Piece]]
"""What one real thread does in turn, by the names of the threads whose work it is."""


class Trial:
    """One run of a reproducer. ``alone`` is for sections that only one thread may be in at a time."""

    def __init__(self, condition: dict[str, Any], events: Events) -> None:
        self.condition, self.events, self.windows = condition, events, Windows(events)
        self.side: str = condition["side"]
        self.seed: int = condition["seed"]
        self.stop, self.lock, self.alone = threading.Event(), threading.Lock(), threading.Lock()
        self.barrier = self._gate = threading.Barrier(1)
        self.exposures, self.status = 0, CLEAN
        self._busy: set[str] = set()
        self._finished = threading.Event()

    @classmethod
    def begin(cls, options: Options, description: str) -> Trial:
        """Read the condition, make stacks available on SIGUSR1, and say `start`."""
        faulthandler.enable()
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        path = os.environ.get("BISECT_ENV_CONDITION")
        # In the background a shell has it ignored, and so it stays.
        if not path and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupted)
        given = json.loads(Path(path).read_text()) if path else command_line(options, description)
        events = Events(os.environ.get("BISECT_ENV_EVENTS"))
        events.emit("start", pid=os.getpid())
        try:
            return cls(checked(options, given), events)
        except ValueError as error:
            print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
            sys.exit(USAGE)
        except CannotRunHere as error:
            cls({"side": "threads", "seed": 0}, events).skip(str(error))

    def skip(self, reason: str) -> NoReturn:
        """End the process: this condition cannot run here."""
        self._cannot(reason)
        sys.exit(CANNOT_RUN)

    def _cannot(self, reason: str) -> None:
        self.events.emit("note", key="skipped", value=reason)
        print(f"cannot run here: {reason}", file=sys.stderr)
        self.status = CANNOT_RUN

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Round the imports: what they raise is reported as `import_failed`, and the process ends with 1."""
        try:
            yield
        except CannotRunHere as error:
            self.skip(str(error))
        except Exception as error:  # noqa: BLE001 - a broken package raises anything
            told = describe(error)
            self.events.emit("import_failed", **{key: told[key] for key in ("type", "message", "traceback")})
            print(told["traceback"], file=sys.stderr)
            sys.exit(FAILED)

    def ready(self) -> None:
        """Report the versions as imported and the devices."""
        torch: Any = sys.modules["torch"]
        versions = {"python": platform.python_version(), "torch": torch.__version__}
        versions["torch.version.cuda"] = torch.version.cuda
        for name in ("triton", "transformers"):
            try:
                versions[name] = getattr(sys.modules.get(name), "__version__", None) or metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        driver = Path("/sys/module/nvidia/version")
        versions["driver"] = driver.read_text().strip() if driver.exists() else None
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        devices = [torch.cuda.get_device_name(index) for index in range(count)] or ["cpu"]
        self.events.emit("ready", versions={k: v for k, v in versions.items() if v}, devices=devices)

    def device(self) -> str:
        """``cuda`` or ``cpu`` for the condition's ``device``; ends the process when cuda is asked for and absent."""
        available = bool(sys.modules["torch"].cuda.is_available())
        if self.condition["device"] == "cuda" and not available:
            self.skip("device=cuda, and torch sees no CUDA device")
        return "cuda" if available and self.condition["device"] != "cpu" else "cpu"

    def work(
        self,
        pieces: Sequence[Piece] | Callable[[int], Sequence[Piece]],
        solo: int = 0,
        repeats: Sequence[int] = (0,),
        after: Callable[[], None] = lambda: None,
    ) -> None:
        """Do the work of threads w0, w1, ... as the side says, and return when all of it has ended.

        ``threads``: a thread each, at the same time. ``serial``: in turn, in one worker thread. ``solo``: only the
        piece of that number, in one worker thread.

        With ``repeats`` (their numbers, in order) the work is done that often, by the same threads; ``pieces`` may then
        be a function that gives a repeat's. It is called in the main thread, before the repeat, and ``after`` at the
        repeat's end, while all worker threads wait: nothing runs beside them. A failure ends the repeats.

        No thread ends before all have done their work, or faults would appear that are no fault of the packages'
        combination: without the main thread compiles raise "can't register atexit after shutdown", and the CUDA build
        of torch 2.11 without a GPU crashes once the thread that compiled first has ended (it owns the device guard).
        That is also why a repeat gets no new threads.
        """
        shares: list[Share] = []
        threads: list[threading.Thread] = []
        for repeat in repeats:
            shares.clear()  # what the repeat before had is free when this one's is made
            try:
                shares += self._shared_out(pieces(repeat) if callable(pieces) else pieces, solo)
            except CannotRunHere as error:
                self._cannot(str(error))
                break
            except Exception as error:  # noqa: BLE001 - no memory for the data, or a reset that fails
                self.fail("main", error, "preparing")
                break
            if not threads:
                self.barrier, self._gate = threading.Barrier(len(shares)), threading.Barrier(len(shares) + 1)
                threads = [
                    threading.Thread(target=self._repeat, args=(shares, index), daemon=True)
                    for index in range(len(shares))
                ]
                for thread in threads:
                    thread.start()
            self._gate.wait()  # all begin
            self._gate.wait()  # all are done
            after()
            if self.stop.is_set():
                break
        shares.clear()
        if threads:
            self._gate.wait()
        for thread in threads:
            thread.join()

    def _shared_out(self, pieces: Sequence[Piece], solo: int) -> list[Share]:
        named = [(f"w{index}", piece) for index, piece in enumerate(pieces)]
        if self.side in THREADED:
            return [[item] for item in named]
        return [[named[solo]] if self.side == "solo" else named]

    def _repeat(self, shares: list[Share], index: int) -> None:
        while True:
            self._gate.wait()
            if not shares:
                return
            self._share(shares[index])
            self._gate.wait()

    def _share(self, share: Share) -> None:
        for name, piece in share:
            threading.current_thread().name = name
            worker = Worker(self, name)
            self._busy.add(name)
            try:
                if not self.stop.is_set():
                    piece(worker)
            except _Stopped:
                pass
            except CannotRunHere as error:
                self._give_up()
                self._cannot(str(error))
            except BaseException as error:  # noqa: BLE001 - whatever ends a thread is what the trial is about
                self.fail(name, error, worker.phase)
            finally:
                worker.flush()
                self._busy.discard(name)

    def fail(self, name: str, error: BaseException, phase: str = "") -> None:
        """Report that a thread failed, and end the others' work; the process, where they do not come to its end."""
        self.events.emit("failure", thread=name, **describe(error), **({"phase": phase} if phase else {}))
        self.status = FAILED
        self._give_up()
        threading.Thread(target=self._end_without, daemon=True).start()

    def _end_without(self) -> None:
        """End the process without the threads that are stuck; where, stands in the output."""
        if self._finished.wait(AFTER_FAILURE_SECONDS):
            return
        faulthandler.dump_traceback(all_threads=True)
        self.events.emit("note", key="stuck_after_failure", value=", ".join(sorted(self._busy)) or "the end")
        self.finish()
        sys.stdout.flush()
        os._exit(self.status)

    def _give_up(self) -> None:
        self.stop.set()
        self.barrier.abort()

    def finish(self) -> int:
        """Report exposures and the end, print the summary when run by hand, and return the exit status."""
        self._finished.set()
        self.events.emit("exposures", count=self.exposures)
        self.events.emit("done")
        if self.events.seen:
            print(summary(self.events.seen, self.condition))
        return self.status

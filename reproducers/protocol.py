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
import importlib
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

CLEAN, FAILED, USAGE, CANNOT_RUN, INTERRUPTED = 0, 1, 2, 125, 130
THREADED = ("threads", "profile")
FLUSH_SECONDS = 0.1
"""Least time between two `step` events of a thread."""


class _Stopped(Exception):
    """Another thread failed, so this one has nothing more to do."""


class Windows:
    """Which threads are compiling right now, from dynamo's own bracket round every compile."""

    def __init__(self, events: Events) -> None:
        self._events, self._lock = events, threading.Lock()
        self._open: dict[int, int] = {}

    def follow(self) -> None:
        """Start following; torch must be importable. Without the bracket (torch before 2.7) a `note` says so."""
        handler = importlib.import_module("torch._dynamo.callback").callback_handler
        bracket = getattr(handler, "install_callbacks", None)
        if bracket is None:
            self._events.emit("note", key="windows", value="this torch does not tell when a compile begins and ends")
            return

        # The handler's public callbacks only fire for the outermost compile of the whole process, whichever thread
        # it is in; the bracket itself is entered by every compiling thread, forward and lazy backward alike.
        @contextmanager
        def followed(*args: Any, **kwargs: Any) -> Iterator[None]:
            what = getattr(args[0], "name", "compile").lower() if args else "compile"
            self._change(1, "begin", what)
            try:
                with bracket(*args, **kwargs):
                    yield
            finally:
                self._change(-1, "end", what)

        handler.install_callbacks = followed

    def _change(self, by: int, phase: str, what: str) -> None:
        ident = threading.get_ident()
        with self._lock:
            depth = self._open.pop(ident, 0)
            if depth + by:
                self._open[ident] = depth + by
        if min(depth, depth + by) == 0:
            self._events.emit("window", thread=thread_name(), phase=phase, what=what)

    def open_elsewhere(self) -> bool:
        """Whether a thread other than the caller's is compiling."""
        with self._lock:
            return bool(self._open.keys() - {threading.get_ident()})


def thread_name() -> str:
    """Whose work this thread does: a worker's name, or ``autograd`` for a thread that Python did not start."""
    thread = threading.current_thread()
    return "autograd" if isinstance(thread, threading._DummyThread) else thread.name


class Worker:
    """One thread's work as its piece sees it. In the controls several take their turns in one real thread."""

    def __init__(self, trial: Trial, name: str) -> None:
        self.trial, self.name = trial, name
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


class Trial:
    """One run of a reproducer. ``alone`` is for sections that only one thread may be in at a time."""

    def __init__(self, condition: dict[str, Any], events: Events) -> None:
        self.condition, self.events, self.windows = condition, events, Windows(events)
        self.side: str = condition["side"]
        self.seed: int = condition["seed"]
        self.stop, self.lock, self.alone = threading.Event(), threading.Lock(), threading.Lock()
        self.barrier = self._leaving = threading.Barrier(1)
        self.exposures, self.status = 0, CLEAN

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

    def work(self, pieces: Sequence[Callable[[Worker], None]], solo: int = 0) -> None:
        """Do the work of threads w0, w1, ... as the side says, and return when all of it has ended.

        ``threads``: a thread each, at the same time. ``serial``: in turn, in one worker thread. ``solo``: only the
        piece of that number, in one worker thread.

        No thread ends before all have done their work, or faults would appear that are no fault of the packages'
        combination: without the main thread compiles raise "can't register atexit after shutdown", and the CUDA build
        of torch 2.11 without a GPU crashes once the thread that compiled first has ended (it owns the device guard).
        """
        named = [(f"w{index}", piece) for index, piece in enumerate(pieces)]
        threaded = self.side in THREADED
        shares = [[item] for item in named] if threaded else [[named[solo]] if self.side == "solo" else named]
        self.barrier, self._leaving = threading.Barrier(len(shares)), threading.Barrier(len(shares))
        threads = [threading.Thread(target=self._share, args=(share,), daemon=True) for share in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _share(self, share: Sequence[tuple[str, Callable[[Worker], None]]]) -> None:
        for name, piece in share:
            threading.current_thread().name = name
            worker = Worker(self, name)
            try:
                if not self.stop.is_set():
                    piece(worker)
            except _Stopped:
                pass
            except CannotRunHere as error:
                self._give_up()
                self._cannot(str(error))
            except BaseException as error:  # noqa: BLE001 - whatever ends a thread is what the trial is about
                self.events.emit("failure", thread=name, **describe(error))
                self.status = FAILED
                self._give_up()
            finally:
                worker.flush()
        self._leaving.wait()

    def _give_up(self) -> None:
        self.stop.set()
        self.barrier.abort()

    def finish(self) -> int:
        """Report exposures and the end, print the summary when run by hand, and return the exit status."""
        self.events.emit("exposures", count=self.exposures)
        self.events.emit("done")
        if self.events.seen:
            print(summary(self.events.seen, self.condition))
        return self.status

"""Logs as a witness writes them, told event by event, and the trials that they are of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bisect_env.explanation.records import Action, Event, Frame, State, Unknown, Watched, WitnessLog
from bisect_env.matrix.cells import Condition
from bisect_env.trials.records import Failure, Outcome, Side, Signature, StepTime, TrialRecord

START = 1_800_000_000.0
FX = "Detected that you are using FX to symbolically trace a dynamo-optimized function. This is not supported."
TRACING = (
    Frame("torch/fx/_symbolic_trace.py", 781, "trace"),
    Frame("torch/fx/experimental/proxy_tensor.py", 1401, "dispatch_trace"),
    Frame("torch/_functorch/_aot_autograd/graph_capture.py", 177, "aot_dispatch_autograd_graph"),
)
COMPILING = (
    Frame("torch/_dynamo/eval_frame.py", 1024, "compile_wrapper"),
    Frame("race.py", 70, "compiler"),
    Frame("python3.11/threading.py", 1002, "_bootstrap"),
)
READING = (Frame("torch/_dynamo/eval_frame.py", 845, "compile_wrapper"), Frame("race.py", 88, "caller"))


@dataclass
class Story:
    """Events in their order, each a millisecond after the last one."""

    torch: str = "2.11.0"
    unknown: tuple[State, ...] = ()
    events: list[Event] = field(default_factory=list)
    now: float = START

    def does(self, thread: str, state: State, action: Action, value: str = "", stack: tuple[Frame, ...] = ()) -> Event:
        self.now += 0.001
        event = Event(self.now, thread, state, action, value, stack)
        self.events.append(event)
        return event

    def enters(self, thread: str, state: State, value: str = "", stack: tuple[Frame, ...] = ()) -> Event:
        return self.does(thread, state, Action.ENTER, value, stack)

    def leaves(self, thread: str, state: State) -> Event:
        return self.does(thread, state, Action.LEAVE)

    def traces(self, thread: str, saved: bool = False) -> Callable[[], None]:
        """Begin a trace; what is given back ends it, and puts back what was saved."""
        self.enters(thread, State.TRACE, stack=TRACING)
        self.does(thread, State.TRACING, Action.SET, "True", TRACING)

        def end() -> None:
            self.does(thread, State.TRACING, Action.SET if saved else Action.CLEAR, str(saved), TRACING)
            self.leaves(thread, State.TRACE)

        return end

    def obeys(self, thread: str, state: State = State.TRACING, value: str = "raised") -> Event:
        return self.does(thread, state, Action.OBEYED, value, READING)

    def passes(self, seconds: float) -> None:
        self.now += seconds

    @property
    def log(self) -> WitnessLog:
        known = [state for state in State if state not in self.unknown]
        return WitnessLog(
            torch=self.torch,
            python="3.11.9",
            started=START,
            threads=tuple(dict.fromkeys(event.thread for event in self.events)),
            watched=tuple(Watched(state, "somewhere", "stores and loads") for state in known),
            unknown=tuple(Unknown(state, "it has no such name") for state in self.unknown),
            events=tuple(self.events),
        )


def failure(thread: str, t: float, message: str = FX, traceback: str = "", type_: str = "RuntimeError") -> Failure:
    signature = Signature(type_, message[:30], "torch._dynamo.eval_frame")
    return Failure(thread, signature, message, "compile_wrapper:845", traceback, t)


def trial(
    *failures: Failure,
    name: str = "t1",
    outcome: Outcome | None = None,
    side: Side = Side.THREADS,
    warm: tuple[str, float] | None = None,
    stacks: str = "",
    hang_kind: str = "",
) -> TrialRecord:
    """A trial; ``warm``: thread and time of a warm step."""
    return TrialRecord(
        id=name,
        environment="aaaa1111",
        reproducer="hash",
        condition=Condition.of({"threads": 2}),
        side=side,
        seed=1,
        outcome=outcome or (Outcome.FAILED if failures else Outcome.CLEAN),
        failures=failures,
        steps=() if warm is None else (StepTime(warm[0], 16, 0.001, warm[1], True),),
        started=START,
        seconds=9.0,
        stacks=stacks,
        hang_kind=hang_kind,
    )


def race(torch: str = "2.11.0", value: str = "forward") -> tuple[Story, Failure]:
    """w0 compiles and traces, w1's warm call meets the flag and fails."""
    story = Story(torch)
    story.enters("w1", State.COMPILE, "forward")
    story.leaves("w1", State.COMPILE)
    story.passes(1)
    story.does("w0", State.LOCK, Action.ACQUIRE, stack=COMPILING)
    story.enters("w0", State.COMPILE, value)
    end = story.traces("w0")
    met = story.obeys("w1")
    end()
    story.leaves("w0", State.COMPILE)
    story.does("w0", State.LOCK, Action.RELEASE)
    return story, failure("w1", met.t + 0.002)

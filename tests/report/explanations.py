"""Explanations for the tests of their reports: trials of three threads as a witness tells them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bisect_env.explanation.records import (
    Account,
    Action,
    Collision,
    Consequence,
    Event,
    Explanation,
    Frame,
    Hypothesis,
    Mechanism,
    Standing,
    State,
    Unknown,
    Watched,
    Window,
    WitnessLog,
)

START = 1_800_000_000.0
THREADS = ("MainThread", "worker-0", "worker-1", "worker-2")
MESSAGE = "RuntimeError: Detected that you are using FX to symbolically trace a dynamo-optimized function."
SETTING = (
    Frame("torch/fx/_symbolic_trace.py", 801, "trace"),
    Frame("torch/fx/experimental/proxy_tensor.py", 1401, "dispatch_trace"),
    Frame("torch/_functorch/_aot_autograd/graph_capture.py", 177, "aot_dispatch_autograd_graph"),
    Frame("torch/_dynamo/output_graph.py", 2230, "call_user_compiler"),
    Frame("compile_race.py", 212, "compile_new"),
)
READING = (
    Frame("torch/_dynamo/eval_frame.py", 845, "compile_wrapper"),
    Frame("compile_race.py", 188, "call_warm"),
)


def event(at: float, thread: str, state: State, action: Action, value: str = "", *stack: Frame) -> Event:
    """So many seconds after the start."""
    return Event(START + at, thread, state, action, value, stack)


def window(state: State, thread: str, start: float, end: float | None, value: str = "", *stack: Frame) -> Window:
    """From and to so many seconds after the start."""
    opens, closes = {
        State.TRACING: (Action.SET, Action.CLEAR),
        State.COMPILING: (Action.SET, Action.CLEAR),
        State.LOCK: (Action.ACQUIRE, Action.RELEASE),
    }.get(state, (Action.ENTER, Action.LEAVE))
    first = event(start, thread, state, opens, value, *stack)
    last = None if end is None else event(end, thread, state, closes)
    return Window(state, thread, first.t, None if last is None else last.t, first, last)


def compiles(thread: str, start: float, length: float) -> tuple[Window, ...]:
    """One compile with all that opens in it."""
    steps = (
        (State.LOCK, 0.0, 1.0, ""),
        (State.COMPILE, 0.03, 0.97, "forward"),
        (State.TRACE, 0.3, 0.8, ""),
        (State.TRACING, 0.31, 0.79, "True"),
    )
    return tuple(
        window(state, thread, start + first * length, start + last * length, value, *SETTING)
        for state, first, last, value in steps
    )


def log(windows: tuple[Window, ...], *events: Event, **more: Any) -> WitnessLog:
    """With the windows' own events."""
    own = [each for found in windows for each in (found.opened, found.closed) if each is not None]
    watched = (
        Watched(State.TRACING, "torch/fx/_symbolic_trace.py: _is_fx_tracing_flag", "the module's dictionary"),
        Watched(State.TRACE, "torch/fx/_symbolic_trace.py: Tracer.trace", "wrapped"),
        Watched(State.LOCK, "torch/_dynamo/eval_frame.py: compile_lock", "a lock that tells"),
    )
    unknown = (Unknown(State.KERNEL, "inductor was not imported"),)
    every = tuple(sorted([*own, *events], key=lambda each: each.t))
    return replace(
        WitnessLog(
            "2.11.0",
            "3.11.9",
            START,
            THREADS,
            watched,
            unknown,
            every,
            (("worker-1", State.TRACING, Action.READ, 5201),),
        ),
        **more,
    )


def raced(trial: str = "3f2a91c0", shift: float = 0.0) -> Account:
    """Worker 0 compiles again and again; worker 1 calls a warm function while it traces, and fails."""
    windows = tuple(each for at in (0.4, 0.9, 1.4, 1.9) for each in compiles("worker-0", at + shift, 0.06))
    met = event(1.9281 + shift, "worker-1", State.TRACING, Action.READ, "True", *READING)
    obeyed = event(1.9282 + shift, "worker-1", State.TRACING, Action.OBEYED, "raised", *READING)
    waits = (
        event(1.91 + shift, "worker-2", State.LOCK, Action.WAIT),
        event(1.961 + shift, "worker-2", State.LOCK, Action.ACQUIRE),
    )
    held = window(State.LOCK, "worker-2", 1.961 + shift, 1.97 + shift)
    (culprit,) = [each for each in windows if each.state is State.TRACING and each.start < met.t < (each.end or 0)]
    collision = Collision(
        Mechanism.FOREIGN_TRACE,
        Consequence.FAILED,
        "worker-1",
        met,
        "worker-0",
        culprit,
        obeyed.t + 0.0001,
        MESSAGE,
    )
    sentences = (
        f"Thread worker-0 set the FX tracing flag {culprit.start - START:.4f} s after the start: it traced.",
        f"Thread worker-1 called a warm function and read the flag as set {met.t - START:.4f} s after the start.",
        "The call failed: it was taken for one under tracing.",
    )
    seen = log((*windows, held), met, obeyed, *waits)
    return Account(trial, "failed", seen, (*windows, held), (collision,), sentences)


def stuck(trial: str = "77be0d12") -> Account:
    """A flag that worker 0 leaves set; every later call of worker 1 fails."""
    flag = window(State.TRACING, "worker-0", 0.5, None, "True", *SETTING)
    windows = (*compiles("worker-0", 0.2, 0.1), flag)
    reads = [event(0.8 + 0.1 * at, "worker-1", State.TRACING, Action.OBEYED, "raised", *READING) for at in range(40)]
    collision = Collision(
        Mechanism.STUCK_FLAG, Consequence.FAILED, "worker-1", reads[0], "worker-0", flag, reads[0].t, MESSAGE, 40
    )
    return Account(trial, "failed", log(windows, *reads), windows, (collision,), ("The flag stays set.",))


def eager(trial: str = "90aa11ef") -> Account:
    """Worker 0 compiles, worker 1 takes the path meant for compiling: nothing fails."""
    flag = window(State.COMPILING, "worker-0", 1.0, 1.9, "True", *SETTING)
    met = event(1.5, "worker-1", State.COMPILING, Action.READ, "True", *READING)
    dense = event(1.5003, "worker-1", State.UNFUSED, Action.CALL, "flex_attention", *READING)
    collision = Collision(
        Mechanism.FOREIGN_COMPILE, Consequence.EAGER, "worker-1", met, "worker-0", flag, dense.t, count=31
    )
    return Account(trial, "clean", log((flag,), met, dense, torch="2.14.1"), (flag,), (collision,), ("It ran dense.",))


def hung(trial: str = "5d0c44b1") -> Account:
    """Two threads that wait for each other; the process was stopped, so that its log has no end."""
    windows = (window(State.LOCK, "worker-0", 1.0, None), window(State.BACKWARD, "worker-1", 1.1, None))
    met = event(1.2, "worker-1", State.LOCK, Action.WAIT, "", *READING)
    collision = Collision(Mechanism.LOCK_CYCLE, Consequence.HUNG, "worker-1", met, "worker-0", windows[0], START + 31.2)
    seen = log(windows, met, complete=False, dropped=12)
    return Account(trial, "hang", seen, windows, (collision,), ("They stood still.",))


def silent(trial: str = "00c0ffee") -> Account:
    """The witness did not start."""
    return Account(trial, "failed", None, (), (), ("The witness did not start.",))


def busy(threads: int = 12, compiled: int = 3000) -> Account:
    """A long trial: every thread compiles all the time, and reads."""
    base = raced()
    names = tuple(f"worker-{number}" for number in range(threads))
    windows = tuple(each for at in range(compiled) for each in compiles(names[at % threads], 3 + 0.02 * at, 0.019))
    reads = [
        event(3 + 0.003 * at, names[at % threads], State.TRACING, Action.READ, "True") for at in range(4 * compiled)
    ]
    assert base.log is not None
    seen = log((*base.windows, *windows), *base.log.events, *reads, threads=names)
    return replace(base, log=seen, windows=(*base.windows, *windows))


def explanation(*accounts: Account, **more: Any) -> Explanation:
    """Of these trials, or of three of which two raced."""
    accounts = accounts or (silent(), raced(), raced("41d0aa37", 0.35))
    hypotheses = (
        Hypothesis(
            "recompile limit",
            "A recompile limit of the thread's own is reached, and its calls run eagerly.",
            Standing.ELIMINATED,
            ("0 of 4 threads reached it, in 2 trials.", "No call ran eagerly in 5,201 looks at one."),
        ),
        Hypothesis(
            "another thread's trace",
            "A call is taken for one under tracing, since another thread traces.",
            Standing.KEPT,
            (
                "2 of 2 failures lie in a window of another thread, and the thread itself had none open.",
                "Windows are open for 6 % of the time: chance would put 0.1 of 2 failures there.",
            ),
        ),
        Hypothesis(
            "kernel load",
            "A kernel is run while another thread loads it.",
            Standing.UNTESTED,
            ("Inductor was not used.",),
        ),
        Hypothesis("stuck flag", "The flag stays set after all traces.", Standing.UNDECIDED, ("1 read of 40 fits.",)),
    )
    found = Explanation(
        "torch-2.11.0_transformers-5.8.1_hot",
        "a" * 16,
        accounts,
        hypotheses,
        sum(each.outcome != "clean" for each in accounts),
        4,
        4,
        cost="Calls took 1.04 times as long as without it, over 2 trials each.",
    )
    return replace(found, **more)

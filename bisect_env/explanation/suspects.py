"""What another thread may have left in a failing one's way, as hypotheses that are tested in the same manner. Data."""

from __future__ import annotations

from dataclasses import dataclass

from bisect_env.explanation.records import Action, Mechanism, State


@dataclass(frozen=True)
class Suspect:
    """A piece of state that another thread may have left in the victim's way."""

    name: str
    statement: str
    state: State
    """Whose window of another thread has to be open at the moment."""
    mechanisms: tuple[Mechanism, ...]
    looked_at: tuple[Action, ...]
    """What is counted to say how much was looked at."""
    unit: str
    would_tell: str


SUSPECTS = (
    Suspect(
        "another thread's trace",
        "Another thread was tracing with FX when the call failed, and the call was taken for one under that trace.",
        State.TRACE,
        (Mechanism.FOREIGN_TRACE, Mechanism.FOREIGN_BACKWARD),
        (Action.ENTER,),
        "traces",
        "a call that obeys the tracing flag while no other thread traces, or one that fails without reading it",
    ),
    Suspect(
        "is_compiling() of another thread",
        "torch.compiler.is_compiling() was true in a thread that compiled nothing, since another thread compiled.",
        State.COMPILING,
        (Mechanism.FOREIGN_COMPILE,),
        (Action.SET,),
        "settings of the flag",
        "calls that read is_compiling() and act on it, with and without another thread's compile",
    ),
    Suspect(
        "FX annotations",
        "FX annotations of another thread went onto what this one traced, or were changed while it used them.",
        State.ANNOTATION,
        (Mechanism.ANNOTATION,),
        (Action.ENTER,),
        "annotated pieces of work",
        "a failure raised in torch/fx/traceback.py, or none in many more trials with annotations of two threads open",
    ),
    Suspect(
        "FX's patches",
        "Two threads traced at once, and the one that ended first took the other one's patches off their one stack.",
        State.PATCHER,
        (Mechanism.PATCHER,),
        (Action.ENTER,),
        "traces with patches",
        "a failure raised where a trace ends, or none in many more trials with traces of two threads open",
    ),
    Suspect(
        "dynamo's metrics",
        "Two threads compiled at once, and dynamo's metrics of both went into one place, which takes each value once.",
        State.METRICS,
        (Mechanism.METRICS,),
        (Action.ENTER,),
        "compiles with metrics",
        "a failure raised in torch/_dynamo/metrics_context.py, or none in many more trials with compiles of two threads"
        " open",
    ),
    Suspect(
        "inductor's kernel load",
        "A kernel was launched or tuned while another thread was loading or tuning it, or had unloaded it.",
        State.KERNEL,
        (Mechanism.KERNEL,),
        (Action.ENTER, Action.CALL),
        "loads, tunings and unloads",
        "a failure raised in inductor's launcher, or none in many more trials with kernels loaded by two threads",
    ),
)
"""In the order of the ledger."""

"""What follows from an explanation for whoever has the failure: per mechanism, and nothing that was not measured."""

from __future__ import annotations

from bisect_env.explanation.records import Explanation, Mechanism
from bisect_env.report.explanation_words import primary

STATIC = "`bisect-env matrix FILE --static` tells which"
WARM_UP = "running every shape forward and backward in one thread before the others start"
_FLAG = (
    f"a torch whose tracing flag is a thread's own ({STATIC}), or {WARM_UP}, so that nothing is left to trace beside"
    " them"
)
REMEDIES = {
    Mechanism.FOREIGN_TRACE: _FLAG,
    Mechanism.FOREIGN_BACKWARD: _FLAG,
    Mechanism.STUCK_FLAG: (
        f"a torch whose tracing flag is a thread's own ({STATIC}), or {WARM_UP}: only a trace that begins beside"
        " another one puts a stale True back"
    ),
    Mechanism.FOREIGN_COMPILE: (
        f"a torch whose compiles do not set is_compiling() for all threads ({STATIC}), or {WARM_UP}, so that nothing is"
        " left to compile beside them"
    ),
    Mechanism.LOCK_CYCLE: f"{WARM_UP}, so that no backward has to be compiled while another thread holds the lock",
    Mechanism.RECOMPILE_LIMIT: (
        "a higher limit, set in each thread that calls, or fewer different shapes or functions in one thread"
    ),
    Mechanism.ANNOTATION: (
        f"{WARM_UP}, so that nothing is left to trace beside them, or writing annotations (creating block masks does)"
        " only while no other thread writes any or traces"
    ),
    Mechanism.PATCHER: f"{WARM_UP}, so that no two threads trace at once",
    Mechanism.METRICS: f"{WARM_UP}, so that no two threads compile at once",
    Mechanism.KERNEL: f"{WARM_UP}, so that every kernel is loaded and tuned",
}
"""What would take the window away, by what is known of it."""


def follows(explanation: Explanation) -> str:
    """One sentence on what to try next, below the answer; empty where nothing went wrong."""
    account = primary(explanation)
    if account is None or not account.collisions:
        return ""
    remedy = REMEDIES.get(account.collisions[0].mechanism)
    if remedy is None:
        return (
            "What now: the ledger says what would tell; `bisect-env bisect` finds since which version, or by which"
            " difference between two environments, it fails."
        )
    return (
        f"What would take this away, as far as the mechanism goes: {remedy}. It was not measured here;"
        " `bisect-env gate` shows whether it does, and what it costs."
    )

"""What the reports of an explanation say in the same words: the answer, moments, frames, collisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

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
    Window,
)
from bisect_env.report.rows import cut
from bisect_env.words import counted

MESSAGE = 300
"""Most characters of a failure's text."""
OPEN = {
    State.TRACING: "the FX tracing flag set",
    State.COMPILING: "is_compiling() true",
    State.TRACE: "a trace open",
    State.COMPILE: "a compile open",
    State.LOCK: "the compile lock held",
    State.CONFIG: "dynamo's configuration changed",
    State.RECOMPILE_LIMIT: "the recompile limit reached",
    State.ANNOTATION: "FX annotations open",
    State.PATCHER: "a trace's patches on",
    State.METRICS: "the metrics of a compile open",
    State.KERNEL: "a kernel being loaded or tuned",
    State.BACKWARD: "a compiled backward running",
    State.UNFUSED: "unfused attention running",
    State.UNCAUGHT: "an exception",
}
"""A window of that state, after "while thread A had"."""
_ENDED = {
    State.ANNOTATION: "ended FX annotations of its own",
    State.PATCHER: "ended a trace and taken patches off",
    State.METRICS: "counted a compile in the same place",
    State.KERNEL: "loaded or tuned the kernel",
}
"""What a window of that state came to, where its end is what was met."""
_NOUNS = {Consequence.FAILED: "failure", Consequence.EAGER: "eager call", Consequence.HUNG: "hang"}
_DID = {
    Action.SET: "set",
    Action.CLEAR: "cleared",
    Action.READ: "read",
    Action.OBEYED: "obeyed",
    Action.ENTER: "entered",
    Action.LEAVE: "left",
    Action.WAIT: "waited for",
    Action.ACQUIRE: "acquired",
    Action.RELEASE: "released",
    Action.CALL: "called",
    Action.SEEN: "stood",
    Action.RAISED: "raised",
}


def primary(explanation: Explanation) -> Account | None:
    """The account that is told in full; None where no trial was witnessed.

    The first of the known mechanism that explains the most failed trials, else the most of all; else one with a
    collision, else one that went wrong, else the first.
    """
    known = [each for each in explanation.accounts if _mechanism(each) not in (None, Mechanism.UNKNOWN)]
    failed = [each for each in known if each.collisions[0].consequence is not Consequence.EAGER]
    among = failed or known
    if among:
        often = Counter(map(_mechanism, among)).most_common(1)[0][0]
        return next(each for each in among if _mechanism(each) is often)
    return min(explanation.accounts, key=lambda each: (not each.collisions, each.outcome == "clean"), default=None)


def _mechanism(account: Account) -> Mechanism | None:
    """What explains its outcome; None where nothing went wrong that was seen."""
    return account.collisions[0].mechanism if account.collisions else None


def headline(explanation: Explanation) -> str:
    """The answer in one or two sentences."""
    cell, witnessed = explanation.cell, counted(len(explanation.accounts), "witnessed trial")
    account = primary(explanation)
    if account is None:
        return f"{cell}: no trial was witnessed."
    wrong = f"{explanation.failed} of {witnessed} went wrong"
    if not account.collisions:
        if explanation.failed and all(each.log is None for each in explanation.accounts):
            return f"{cell}: {wrong}, and nothing tells why: the witness did not start."
        if explanation.failed:
            return f"{cell}: {wrong}, and no collision between threads was seen that would explain it."
        return f"{cell}: {wrong}: there is nothing to explain."
    first = account.collisions[0]
    if first.mechanism is Mechanism.UNKNOWN:
        return f"{cell}: {wrong}, by none of the known mechanisms. Trial {account.trial}: {told(first)}."
    alike = sum(
        bool(each.collisions) and each.collisions[0].mechanism is first.mechanism for each in others(explanation)
    )
    seen = f"seen in {alike + 1} of {witnessed}{_further(explanation, first, alike + 1)}"
    return f"{cell}: {first.mechanism}, {seen}. {capital(told(first))}."


def _further(explanation: Explanation, first: Collision, alike: int) -> str:
    """What explains the trials that the first mechanism does not: ``; another thread's trace in 2; 8 went wrong``."""
    kinds = Counter(each.collisions[0].mechanism for each in explanation.accounts if each.collisions)
    del kinds[first.mechanism]
    unknown = kinds.pop(Mechanism.UNKNOWN, 0)
    parts = [f"; {mechanism} in {number}" for mechanism, number in kinds.most_common()]
    parts += [f"; none of the known ones in {unknown}"] if unknown else []
    if explanation.failed > alike + kinds.total() + unknown:
        parts.append(f"; {explanation.failed} went wrong")
    return "".join(parts)


def _cause(culprit: str, window: Window, collision: Collision) -> str:
    """What the other thread had to do with it: open at that moment, or left behind."""
    if window.opened.action is Action.CALL:
        return f" after thread {culprit} had unloaded the kernel"
    if window.state is State.ANNOTATION and window.opened.action is Action.SET:
        return f" after thread {culprit} had replaced FX annotations"
    met = collision.at if collision.met is None else collision.met.t
    if window.end is not None and window.end < met:
        if window.state is State.ANNOTATION and collision.obeyed is not None:
            return f" for FX annotations that thread {culprit} had left behind"
        if window.state in _ENDED:
            return f" after thread {culprit} had {_ENDED[window.state]}"
    if culprit == collision.victim:
        return f" while it had {OPEN[window.state]} itself"
    return f" while thread {culprit} had {OPEN[window.state]}"


def others(explanation: Explanation) -> tuple[Account, ...]:
    """All accounts but the primary one, in their order."""
    account = primary(explanation)
    return tuple(each for each in explanation.accounts if each is not account)


def told(collision: Collision) -> str:
    """A collision as half a sentence: ``in thread w1 the call failed while thread w0 had a trace open``."""
    if collision.culprit and collision.window is not None:
        cause = _cause(collision.culprit, collision.window, collision)
    else:
        cause = f", beside thread {collision.culprit}" if collision.culprit else ""
    times = f", {collision.count} times" if collision.count > 1 else ""
    return f"in thread {collision.victim} {collision.consequence}{cause}{times}"


def noun(collision: Collision) -> str:
    """What to call it: a collision only where there are two."""
    return "collision" if collision.culprit else _NOUNS[collision.consequence]


def proofs(collision: Collision) -> str:
    """A title of its stacks."""
    title = (
        "The stacks that prove it" if collision.mechanism is not Mechanism.UNKNOWN else "The last that was seen of it"
    )
    return f"{title}, innermost frame first"


def did(event: Event) -> str:
    """An event without its thread and its moment: ``read fx-tracing (True)``."""
    return f"{_DID[event.action]} {event.state}{f' ({event.value})' if event.value else ''}"


def opened(window: Window) -> str:
    """A window without its thread: ``fx-tracing (True)``."""
    return f"{window.state}{f' ({window.opened.value})' if window.opened.value else ''}"


def frames(stack: Iterable[Frame]) -> str:
    """A stack, a line a frame, the innermost first."""
    return "\n".join(f"{frame.path}:{frame.line} {frame.function}" for frame in stack)


def stacks(collision: Collision, start: float) -> tuple[tuple[str, str], ...]:
    """The stacks that prove a collision, each with what it stands for: the culprit's first."""
    opened = None if collision.window is None else collision.window.opened
    return tuple(
        (
            f"Thread {event.thread} {did(event)} at {moment(event.t - start)}",
            frames(event.stack) or "(no stack was taken)",
        )
        for event in (opened, collision.met, collision.obeyed)
        if event is not None
    )


def begin(account: Account) -> float:
    """Unix time that moments of a trial are counted from, in its sentences too: the witness's start."""
    if account.log is not None:
        return min([account.log.started, *(event.t for event in account.log.events[:1])])
    return min([window.start for window in account.windows] + [each.at for each in account.collisions], default=0.0)


def moment(seconds: float) -> str:
    """A time after the start, to the tenth of a millisecond: ``1.2345 s``."""
    return f"{seconds:.4f} s"


def lasting(seconds: float) -> str:
    """A length of time in the unit that suits it, to three digits: ``12.4 ms``, ``830 us``, ``2.05 s``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= size or unit == "us":
            value = seconds / size
            digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
            return f"{value:.{digits}f} {unit}"
    raise AssertionError


def line(account: Account) -> str:
    """What became of a trial, on one line."""
    if account.log is None:
        return f"{account.outcome}; the witness did not start"
    if not account.collisions:
        return f"{account.outcome}; no collision was seen"
    first = account.collisions[0]
    at = moment(first.at - begin(account))
    return f"{account.outcome} at {at}: {first.mechanism}; {told(first)}"


def fault(collision: Collision) -> str:
    """Its failure's text; empty where there is none."""
    return cut(collision.message, MESSAGE)


def unknown(explanation: Explanation) -> tuple[str, ...]:
    """What could not be watched, and what the logs lack: a sentence each."""
    logs = [account.log for account in explanation.accounts if account.log is not None]
    found = dict.fromkeys(f"{each.state}: {each.why}" for log in logs for each in log.unknown)
    dropped = [log.dropped for log in logs if log.dropped]
    torn = sum(not log.complete for log in logs)
    said = list(found)
    if dropped:
        said.append(
            f"No room was left for {counted(sum(dropped), 'event')}, in {counted(len(dropped), 'trial')}: a read or a "
            "window may be missing."
        )
    if torn:
        said.append(
            f"The log of {counted(torn, 'trial')} has no end, since the process was stopped or died: what was not yet "
            "written is missing."
        )
    return tuple(said)


def evidence(hypothesis: Hypothesis) -> tuple[str, ...]:
    """What is to be said of a hypothesis: what it states, and all evidence."""
    return (hypothesis.statement, *hypothesis.evidence)


ORDER = (Standing.KEPT, Standing.UNDECIDED, Standing.ELIMINATED, Standing.UNTESTED)


def ledger(explanation: Explanation) -> tuple[Hypothesis, ...]:
    """The hypotheses: kept ones first, then undecided, eliminated and untested ones."""
    return tuple(sorted(explanation.hypotheses, key=lambda each: ORDER.index(each.standing)))


def capital(text: str) -> str:
    """With a capital at the beginning."""
    return text[:1].upper() + text[1:]

"""Hypotheses that more than one piece of state decides: where traces come from, and what the failing call was. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from bisect_env.explanation.cases import Case, Cases
from bisect_env.explanation.records import Action, Consequence, Event, Frame, Hypothesis, Mechanism, Standing, State
from bisect_env.explanation.windows import holds
from bisect_env.verdicts.statistics import fisher_greater
from bisect_env.words import counted

ALPHA = 0.05
"""One-sided error of the comparison with the serial control."""
MASK = "create_block_mask"
BOTTOM = ("_bootstrap", "<module>")
"""The first function of a thread that Python started, and of the main one."""


def block_mask(cases: Cases) -> Hypothesis:
    """A plausible one: it is called beside flex attention every step, and its source shows no tracing.

    Reading its source cannot tell what the functions do that it calls. Stacks of traces that really ran can.
    """
    name = f"{MASK} traces"
    statement = f"{MASK}, called beside compiled attention, runs an FX trace of its own and so sets the flag."
    traces = [(case, event) for case in cases.logged for event in _traces(case)]
    if not any(event.stack for _, event in traces):
        return Hypothesis(name, statement, Standing.UNTESTED, ("No trace with a stack was seen.",))
    under = sum(_under_mask(case, event) for case, event in traces)
    whole = sum(_to_the_bottom(case, event) for case, event in traces)
    evidence = [
        f"{under} of {len(traces)} traces ran under it; of {whole} every caller down to the thread's first was seen."
    ]
    in_the_way = [(case, event) for case in cases.bad if (event := _culprits_trace(case)) is not None]
    blamed = sum(_under_mask(case, event) for case, event in in_the_way)
    if blamed:
        evidence.append(f"Such a trace was in the way at {blamed} of {cases.numbered(len(cases.bad))}.")
        return Hypothesis(name, statement, Standing.KEPT, tuple(evidence))
    unseen = sum(not _to_the_bottom(case, event) for case, event in in_the_way)
    called = any(_names_mask(event) for case in cases.logged for event in _all(case))
    if cases.bad and not unseen:
        origins = sorted({event.stack[-1].function for _, event in in_the_way if event.stack})
        if origins:
            evidence.append(f"What traced instead when a call went wrong: {', '.join(origins[:3])}.")
        if whole == len(traces):
            evidence.append("Whether the trials call it or not, no trace of theirs is its.")
        if called or whole == len(traces):
            return Hypothesis(name, statement, Standing.ELIMINATED, tuple(evidence))
    if not called and whole < len(traces):
        evidence.append(
            f"No event came from under it, and of {counted(len(traces) - whole, 'trace')} not all callers were seen:"
            " whether the trials call it at all is not known. What would tell: trials that do."
        )
        return Hypothesis(name, statement, Standing.UNTESTED, tuple(evidence))
    if unseen:
        evidence.append(f"Of {counted(unseen, 'trace')} that {_was(unseen)} in the way not all callers were seen.")
    evidence.append("What would tell: a call that goes wrong while a trace, seen with all its callers, is open.")
    return Hypothesis(name, statement, Standing.UNDECIDED, tuple(evidence))


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def its_own_trace(cases: Cases) -> Hypothesis:
    """Whether the error's own words hold: that the failing thread itself was tracing."""
    name = "the thread's own trace"
    statement = "The failing thread itself was tracing, as the message says."
    read = [
        case
        for case in cases.bad
        if case.primary is not None and case.primary.met is not None and case.primary.met.state is State.TRACING
    ]
    if not any(case.watched(State.TRACE) for case in cases.logged):
        return Hypothesis(name, statement, Standing.UNTESTED, ("Traces could not be watched.",))
    if not read:
        text = f"No call went wrong for the tracing flag, in {counted(len(cases.logged), 'witnessed trial')}."
        standing = Standing.ELIMINATED if cases.bad else Standing.UNDECIDED
        return Hypothesis(name, statement, standing, (text,))
    own = [case for case in read if case.own(State.TRACE) is not None]
    text = f"The thread that read the flag had a trace of its own open at {len(own)} of {cases.numbered(len(read))}."
    return Hypothesis(name, statement, Standing.KEPT if own else Standing.ELIMINATED, (text,))


def waiting_for_each_other(cases: Cases) -> Hypothesis:
    """Whether threads stood still in a circle."""
    name = "the compile lock and autograd's thread"
    statement = "One thread holds dynamo's lock and waits for autograd's thread, which waits for that lock."
    hung = [case for case in cases.bad if case.primary is not None and case.primary.consequence is Consequence.HUNG]
    waits = cases.total(lambda case: case.happened(State.LOCK, Action.WAIT))
    looked = f"{waits} waits for the lock were seen in {counted(len(cases.logged), 'witnessed trial')}."
    if not any(case.watched(State.LOCK) for case in cases.logged):
        return Hypothesis(name, statement, Standing.UNTESTED, ("The lock could not be watched.",))
    if not hung:
        return Hypothesis(
            name,
            statement,
            Standing.ELIMINATED if cases.bad else Standing.UNDECIDED,
            (looked, f"None of {len(cases.logged)} trials hung."),
        )
    circles = len(cases.explained_by(Mechanism.LOCK_CYCLE))
    text = f"{circles} of {len(hung)} hangs are a circle of waits."
    if circles:
        return Hypothesis(name, statement, Standing.KEPT, (looked, text))
    would = "What would tell: a hang whose stacks, taken before the kill, show the lock's holder inside autograd."
    return Hypothesis(name, statement, Standing.UNDECIDED, (looked, text, would))


def needs_two_threads(cases: Cases, threads: tuple[int, int], serial: tuple[int, int]) -> Hypothesis:
    """Whether one thread alone does not fail: by the stored serial control, never by the witness.

    The one-sided exact test of two proportions (Fisher) at 5 %.
    """
    name = "the failure needs two threads"
    statement = "The same work in one thread does not fail."
    (failed, n), (alone, controls) = threads, serial
    if not controls:
        would = "The store has no serial control of this cell: `bisect-env explain CELL --controls N` runs it."
        return Hypothesis(name, statement, Standing.UNTESTED, (would,))
    evidence = [f"Serial control: {alone} of {controls} failed. With threads and no witness: {failed} of {n}."]
    witnessed = len(cases.bad), len(cases.logged)
    if not n:
        evidence.append(f"No trial without a witness is stored; of those with one {witnessed[0]} of {witnessed[1]}.")
        failed, n = witnessed
    chance = fisher_greater(failed, n, alone, controls)
    evidence.append(f"By chance alone this or more has a probability of {chance:.2g} (one-sided exact test).")
    if chance <= ALPHA:
        return Hypothesis(name, statement, Standing.KEPT, tuple(evidence))
    if alone and not any(case.record.versions for case in cases.every):
        # Only a reproducer that speaks the protocol names what it imported.
        evidence.append(
            "A command that does not read its side runs with all its threads as its own control, and then fails alike"
            " (docs/reproducers.md). What would tell: one that reads it."
        )
        return Hypothesis(name, statement, Standing.UNDECIDED, tuple(evidence))
    if alone and alone / controls >= failed / max(1, n):
        return Hypothesis(name, statement, Standing.ELIMINATED, tuple(evidence))
    evidence.append("What would tell: more trials of both sides (`bisect-env matrix --trials N`, or `--controls N`).")
    return Hypothesis(name, statement, Standing.UNDECIDED, tuple(evidence))


def failing_call_was_warm(cases: Cases) -> Hypothesis:
    """Whether threads fail that have nothing to compile any more."""
    name = "failing calls were warm"
    statement = "The call that went wrong had nothing to compile: its thread had come to warm work."
    told = [case for case in cases.bad if case.primary is not None and case.primary.met is not None]
    if not told or not any(case.watched(State.COMPILE) for case in told):
        return Hypothesis(name, statement, Standing.UNTESTED, ("No call that went wrong was seen with its compiles.",))
    if not any(case.record.steps for case in told):
        return Hypothesis(name, statement, Standing.UNTESTED, ("The reproducer reports no steps, warm or cold.",))
    warm = [case for case in told if _was_warm(case)]
    compiling = [case for case in told if case.own(State.COMPILE) is not None]
    evidence = (
        f"{len(warm)} of {len(told)} had done warm steps since their thread's last compile, and"
        f" {len(compiling)} were inside a compile of their own.",
    )
    if len(warm) == len(told):
        return Hypothesis(name, statement, Standing.KEPT, evidence)
    if not warm:
        return Hypothesis(name, statement, Standing.ELIMINATED, evidence)
    would = "Both kinds of calls go wrong; more trials would only tell how often each does."
    return Hypothesis(name, statement, Standing.UNDECIDED, (*evidence, would))


def _was_warm(case: Case) -> bool:
    """Whether a warm step of the victim ended between its last compile and the moment."""
    primary = case.primary
    assert primary is not None, "only of a trial that went wrong"
    compiles = [w for w in case.account.windows if w.state is State.COMPILE and w.thread == primary.victim]
    before = [window for window in compiles if window.start <= case.moment]
    if any(window.end is None or window.end > case.moment for window in before):
        return False
    last = max((window.end or 0.0 for window in before), default=0.0)
    steps = (step for step in case.record.steps if step.thread == primary.victim and step.warm)
    return any(step.t > last and step.t - step.seconds <= case.moment for step in steps)


def _all(case: Case) -> tuple[Event, ...]:
    return case.account.log.events if case.account.log is not None else ()


def _traces(case: Case) -> list[Event]:
    """The beginnings of its traces."""
    return [event for event in _all(case) if event.state is State.TRACE and event.action is Action.ENTER]


def _callers(case: Case, event: Event) -> Iterator[Frame]:
    """Frames under which an event happened: its own, and those of what its thread had open then.

    A stack is short, but the compile that a trace belongs to, and the lock that it holds, have theirs from further out.
    """
    yield from event.stack
    for window in case.account.windows:
        if window.thread == event.thread and holds(window, event.t):
            yield from window.opened.stack


def _names_mask(event: Event) -> bool:
    return any(frame.function == MASK for frame in event.stack)


def _under_mask(case: Case, event: Event) -> bool:
    return any(frame.function == MASK for frame in _callers(case, event))


def _to_the_bottom(case: Case, event: Event) -> bool:
    """Whether the callers of an event are known down to the first function of its thread."""
    return any(frame.function in BOTTOM for frame in _callers(case, event))


def _culprits_trace(case: Case) -> Event | None:
    """The beginning of the culprit's trace that was open when the tracing flag was obeyed."""
    primary = case.primary
    if primary is None or not primary.culprit or primary.met is None or primary.met.state is not State.TRACING:
        return None
    traces = (w for w in case.account.windows if w.state is State.TRACE and w.thread == primary.culprit)
    return next((window.opened for window in traces if holds(window, case.moment)), None)

"""The ledger: every known explanation, tested on all witnessed trials of a cell, kept or eliminated by counts. Pure.

A null result is evidence as far as was looked, so each says how much that was. An explanation is eliminated only by
trials that went wrong while what it needs was watched and absent.
"""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.explanation.cases import Case, Cases
from bisect_env.explanation.collisions import is_backward
from bisect_env.explanation.records import Account, Action, Hypothesis, Mechanism, Standing, State
from bisect_env.explanation.suspects import SUSPECTS, Suspect
from bisect_env.explanation.suspicions import (
    block_mask,
    failing_call_was_warm,
    its_own_trace,
    needs_two_threads,
    waiting_for_each_other,
)
from bisect_env.trials.records import TrialRecord
from bisect_env.words import counted

NOT_ENOUGH = "A witnessed trial that goes wrong would tell."


def hypotheses_of(
    records: Sequence[TrialRecord], accounts: Sequence[Account], threads: tuple[int, int], serial: tuple[int, int]
) -> tuple[Hypothesis, ...]:
    """The ledger of a cell.

    Args:
        records: witnessed trials.
        accounts: theirs, in the same order.
        threads: failed and all trials with threads that ran without a witness.
        serial: failed and all trials of the serial control.
    """
    cases = Cases.of(records, accounts)
    trace, compiling, annotations, patches, metrics, kernel = (_suspect(each, cases) for each in SUSPECTS)
    return (
        trace,
        _lazy_backward(cases),
        _stuck(cases),
        compiling,
        _compile_itself(cases),
        block_mask(cases),
        its_own_trace(cases),
        _recompile_limit(cases),
        annotations,
        patches,
        metrics,
        kernel,
        waiting_for_each_other(cases),
        needs_two_threads(cases, threads, serial),
        failing_call_was_warm(cases),
    )


def _suspect(suspect: Suspect, cases: Cases) -> Hypothesis:
    """Kept where it explains a collision, eliminated where nothing of it was open or something else was obeyed."""
    untested = _untested(suspect.state, cases)
    name, statement = suspect.name, suspect.statement
    if untested:
        return Hypothesis(name, statement, Standing.UNTESTED, (untested,))
    looked = cases.total(lambda case: case.happened(suspect.state, *suspect.looked_at))
    evidence = [f"{looked} {suspect.unit} were seen in {counted(len(cases.logged), 'witnessed trial')}."]
    compiles = cases.total(lambda case: case.happened(State.COMPILE, Action.ENTER))
    if suspect.state is State.COMPILING and not looked and compiles:
        evidence.append(f"{counted(compiles, 'compile')} ran in them: this torch does not set it round compiles.")
    if not cases.bad:
        return Hypothesis(name, statement, Standing.UNDECIDED, (*evidence, f"Nothing went wrong. {NOT_ENOUGH}"))
    explained = cases.explained_by(*suspect.mechanisms)
    beside = [case for case in cases.bad if case.foreign(suspect.state) is not None]
    evidence.append(
        f"It was open in another thread at {len(beside)} of {cases.numbered(len(cases.bad))}, and explains"
        f" {len(explained)} of them."
    )
    if suspect.state is State.ANNOTATION and (written := _written_in(explained)):
        evidence.append(f"They were written in {', '.join(written)}.")
    elsewhere = cases.anywhere(*suspect.mechanisms)
    if elsewhere > len(explained):
        evidence.append(f"Of all collisions, calls that went on eagerly included, it explains {elsewhere}.")
    if explained or elsewhere:
        return Hypothesis(name, statement, Standing.KEPT, tuple(evidence))
    open_and_unknown = [case for case in beside if case in cases.explained_by(Mechanism.UNKNOWN)]
    if open_and_unknown:
        evidence.append(f"It was open at {len(open_and_unknown)} that nothing else explains: chance is not excluded.")
        evidence.append(f"What would tell: {suspect.would_tell}.")
        return Hypothesis(name, statement, Standing.UNDECIDED, tuple(evidence))
    if beside:
        evidence.append("What those calls obeyed was something else each time.")
    return Hypothesis(name, statement, Standing.ELIMINATED, tuple(evidence))


def _written_in(explained: Sequence[Case]) -> list[str]:
    """The functions that wrote the annotations which were in the way, each with its file."""
    windows = [case.primary.window for case in explained if case.primary is not None]
    stacks = [window.opened.stack for window in windows if window is not None]
    outside = [[f for f in stack if not f.path.endswith(("fx/traceback.py", "contextlib.py"))] for stack in stacks]
    return sorted({f"{frames[0].function} ({frames[0].path})" for frames in outside if frames})


def _lazy_backward(cases: Cases) -> Hypothesis:
    name = "a lazy backward did the tracing"
    statement = "The trace that was in the way was that of a backward, which is compiled on its first use."
    untested = _untested(State.TRACE, cases) or _untested(State.COMPILE, cases)
    if untested:
        return Hypothesis(name, statement, Standing.UNTESTED, (untested,))
    traced = cases.explained_by(Mechanism.FOREIGN_TRACE, Mechanism.FOREIGN_BACKWARD)
    backward = cases.explained_by(Mechanism.FOREIGN_BACKWARD)
    compiles = [w for case in cases.logged for w in case.account.windows if w.state is State.COMPILE]
    lazy = sum(is_backward(window) for window in compiles)
    evidence = [f"{lazy} of {len(compiles)} compiles were those of a backward."]
    if not traced:
        evidence.append(f"No call failed for another thread's trace. {NOT_ENOUGH if not cases.bad else ''}".strip())
        standing = Standing.ELIMINATED if cases.bad else Standing.UNDECIDED
        return Hypothesis(name, statement, standing, tuple(evidence))
    evidence.append(
        f"Of {cases.numbered(len(traced))} for another thread's trace, {len(backward)} were for that of a backward,"
        f" {len(traced) - len(backward)} for that of a forward or of no compile."
    )
    return Hypothesis(name, statement, Standing.KEPT if backward else Standing.ELIMINATED, tuple(evidence))


def _stuck(cases: Cases) -> Hypothesis:
    name = "the tracing flag sticks"
    statement = "A thread put a stale True back, so that the flag stayed set with no trace open in any thread."
    untested = _untested(State.TRACING, cases)
    if untested:
        return Hypothesis(name, statement, Standing.UNTESTED, (untested,))
    traces = cases.total(lambda case: case.happened(State.TRACE, Action.ENTER))
    sets = cases.total(lambda case: case.happened(State.TRACING, Action.SET))
    evidence = [
        f"The flag was set {counted(sets, 'time')}, round {counted(traces, 'trace')}, in"
        f" {counted(len(cases.logged), 'witnessed trial')}."
    ]
    explained = len(cases.explained_by(Mechanism.STUCK_FLAG))
    if cases.bad:
        evidence.append(f"It was stuck at {explained} of {cases.numbered(len(cases.bad))}.")
    calls = cases.anywhere(Mechanism.STUCK_FLAG)
    if calls > explained:
        evidence.append(f"Of all collisions, calls that went on eagerly included, it explains {calls}.")
    if calls:
        return Hypothesis(name, statement, Standing.KEPT, tuple(evidence))
    if not cases.bad:
        return Hypothesis(name, statement, Standing.UNDECIDED, (*evidence, f"Nothing went wrong. {NOT_ENOUGH}"))
    return Hypothesis(name, statement, Standing.ELIMINATED, tuple(evidence))


def _compile_itself(cases: Cases) -> Hypothesis:
    """Whether the culprit's trace belongs to a compile, and not to somebody's make_fx outside of one."""
    name = "torch.compile itself does it"
    statement = "What the other thread was in was part of its own torch.compile, not a trace of somebody's own."
    untested = _untested(State.COMPILE, cases)
    if untested:
        return Hypothesis(name, statement, Standing.UNTESTED, (untested,))
    foreign = [case for case in cases.bad if case.primary is not None and case.primary.culprit]
    compiles = cases.total(lambda case: case.happened(State.COMPILE, Action.ENTER))
    evidence = [f"{compiles} compiles were seen in {counted(len(cases.logged), 'witnessed trial')}."]
    if not foreign:
        wanted = "No thread could be named that was in the way" if cases.bad else f"Nothing went wrong. {NOT_ENOUGH}"
        return Hypothesis(name, statement, Standing.UNDECIDED, (*evidence, wanted.rstrip(".") + "."))
    inside = [case for case in foreign if _culprit_compiled(case)]
    evidence.append(f"In {len(inside)} of {cases.numbered(len(foreign))} the thread in the way was in its own compile.")
    standing = Standing.KEPT if inside else Standing.ELIMINATED
    return Hypothesis(name, statement, standing, tuple(evidence))


def _culprit_compiled(case: Case) -> bool:
    """Whether the culprit compiled between opening what was in the way and the moment that it was met.

    Of what had ended by then, until its end; of what takes no time, at that moment.
    """
    primary = case.primary
    assert primary is not None and primary.window is not None, "a culprit has a window"
    since, end = primary.window.start, primary.window.end
    until = case.moment if end is None else min(end, case.moment)
    if primary.window.opened.action is Action.CALL:
        until = since
    return any(
        window.state is State.COMPILE
        and window.thread == primary.culprit
        and window.start <= until
        and (window.end is None or since <= window.end)
        for window in case.account.windows
    )


def _recompile_limit(cases: Cases) -> Hypothesis:
    name = "a recompile limit"
    statement = "Calls ran eagerly past the recompile limit, which is each thread's own where the configuration is."
    untested = _untested(State.RECOMPILE_LIMIT, cases)
    if untested:
        return Hypothesis(name, statement, Standing.UNTESTED, (untested,))
    hits = cases.total(lambda case: case.happened(State.RECOMPILE_LIMIT, *Action))
    evidence = [f"A thread hit the limit {counted(hits, 'time')} in {counted(len(cases.logged), 'witnessed trial')}."]
    differing = [text for case in cases.logged if (text := _differing(case))]
    evidence.append(
        f"Threads of one process had different limits in {counted(len(differing), 'trial')}: {differing[0]}."
        if differing
        else "No two threads of a process were seen with different limits."
    )
    if cases.anywhere(Mechanism.RECOMPILE_LIMIT):
        evidence.append(f"It explains {counted(cases.anywhere(Mechanism.RECOMPILE_LIMIT), 'call')}.")
        return Hypothesis(name, statement, Standing.KEPT, tuple(evidence))
    if cases.bad and not hits:
        return Hypothesis(name, statement, Standing.ELIMINATED, tuple(evidence))
    wanted = "What would tell: a call that goes wrong behind a hit."
    if not cases.bad:
        wanted = f"Nothing went wrong. {NOT_ENOUGH}"
    return Hypothesis(name, statement, Standing.UNDECIDED, (*evidence, wanted))


def _differing(case: Case) -> str:
    """``w0 recompile_limit=8, main recompile_limit=64``; empty where all threads saw the same."""
    assert case.account.log is not None, "only of trials with a log"
    last = {
        (event.value.partition("=")[0], event.thread): event.value
        for event in case.account.log.events
        if event.state is State.CONFIG and "limit" in event.value.partition("=")[0]
    }
    for key in sorted({key for key, _ in last}):
        values = {thread: value for (each, thread), value in last.items() if each == key}
        if len(set(values.values())) > 1:
            return ", ".join(f"{thread} {value}" for thread, value in values.items())
    return ""


def _untested(state: State, cases: Cases) -> str:
    """Why a state tells nothing here; empty where it was watched."""
    if any(case.watched(state) for case in cases.logged):
        return ""
    if not cases.logged:
        return "No witness wrote anything."
    if not any(case.account.log and case.account.log.torch for case in cases.logged):
        return "It could not be watched: the witnessed process did not import torch."
    why = next(
        (text for case in cases.logged if (text := case.why_not(state))),
        "no trial imported a module that has it, or their witness was an earlier one that did not look for it",
    )
    return f"It could not be watched: {why}."

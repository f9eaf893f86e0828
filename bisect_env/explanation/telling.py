"""An account in sentences, to be read aloud: who set what when and from where, who met it, and what came of it. Pure.

Times are seconds since the witness began, as in the pictures.
"""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.explanation.collisions import is_backward
from bisect_env.explanation.noted import annotated
from bisect_env.explanation.phrases import NAMES, Clock, cut, place, took
from bisect_env.explanation.records import Action, Collision, Consequence, Mechanism, State, Window
from bisect_env.explanation.seen import Seen
from bisect_env.explanation.waiting import AUTOGRAD, cycle, waits
from bisect_env.explanation.windows import FLAGS, Stuck
from bisect_env.trials.records import Outcome, TrialRecord
from bisect_env.words import counted


def sentences_of(seen: Seen, collisions: Sequence[Collision], trial: TrialRecord) -> tuple[str, ...]:
    """The account of one trial.

    Args:
        seen: the log, its windows, and when a flag was stuck.
        collisions: as :func:`bisect_env.explanation.collisions.collisions_of` gives them.
        trial: whose they are.
    """
    clock = Clock(seen.log)
    told: list[str] = []
    for collision in collisions:
        told += _collision(seen, clock, collision, trial, _alike(collisions, collision))
    if not collisions:
        told.append(_nothing(seen, trial))
    if not any(each.mechanism is Mechanism.STUCK_FLAG for each in collisions):
        told += [_sticking(clock, each) for each in seen.stuck if each.until is None]
    if seen.log.dropped:
        told.append(
            f"The witness had no room for {seen.log.dropped} events: what it does not tell may have happened all the"
            " same."
        )
    if not seen.log.complete:
        told.append("The process ended before the witness closed its log: its last moments may be missing.")
    return tuple(told)


def _alike(collisions: Sequence[Collision], each: Collision) -> bool:
    """Whether calls of other threads came to the same: which of them autograd's thread worked for is not seen."""
    if each.obeyed is None or not each.obeyed.thread.startswith(AUTOGRAD):
        return False
    same = [other for other in collisions if other.obeyed is not None and other.obeyed.value == each.obeyed.value]
    return any(other.victim != each.victim and other.consequence is each.consequence for other in same)


def _collision(seen: Seen, clock: Clock, each: Collision, trial: TrialRecord, alike: bool) -> list[str]:
    if each.consequence is Consequence.HUNG:
        return _hang(seen, clock, each, trial)
    if each.mechanism is Mechanism.UNKNOWN:
        return [_unknown(seen, clock, each)]
    assert each.met is not None, "what is explained is explained by what was met"
    if each.mechanism is Mechanism.RECOMPILE_LIMIT:
        return [_limited(clock, each)]
    assert each.window is not None, "only a window makes a culprit"
    told = []
    if each.mechanism is Mechanism.STUCK_FLAG:
        stuck = seen.stuck_at(State.TRACING, each.met.t)
        assert stuck is not None, "it was found by it"
        told.append(_sticking(clock, stuck))
        later = f"{took(each.met.t - stuck.put_back.t)} after it was put back"
        told.append(f"Thread {_read(clock, each, later)}{_end(each)}")
        return told
    window = each.window
    compile_ = seen.own(State.COMPILE, window.thread, each.met.t)
    while_ = _while(clock, compile_)
    later = f"{took(each.met.t - window.start)} later"
    read = _read(clock, each, later) + _obeyed(clock, each, alike)
    told.append(f"Thread {window.thread} {_opened(clock, window)}{while_}; {read}{_end(each)}")
    if window.opened.action not in (Action.CALL, Action.SET) or window.state in FLAGS:
        told.append(_until(clock, window) + _put_back(seen, clock, each))
    return told


def _opened(clock: Clock, window: Window) -> str:
    verb = {
        State.TRACING: "set the tracing flag",
        State.COMPILING: "set the flag behind is_compiling()",
        State.METRICS: "went into the one place of all compiles' metrics",
    }.get(window.state, f"began {NAMES[window.state]}")
    where = place(window.opened.stack)
    if window.state is State.KERNEL and window.opened.action is Action.CALL:
        verb = f"unloaded {window.opened.value.removesuffix(' unloaded')}"
    what = ", ".join(annotated(window.opened)) if window.state is State.ANNOTATION else ""
    if window.state is State.ANNOTATION and window.opened.action is Action.SET:
        verb = "replaced what FX notes for all threads"
        what = window.opened.value
    if window.state is State.KERNEL and window.opened.action is Action.ENTER:
        what = window.opened.value
    return f"{verb}{f' ({what})' if what else ''} at {clock.at(window.start)}{f' from {where}' if where else ''}"


def _while(clock: Clock, compile_: Window | None) -> str:
    if compile_ is None:
        return ""
    what = "a lazy backward" if is_backward(compile_) else "a forward"
    return f", for the compile of {what} that it began at {clock.at(compile_.start)}"


def _read(clock: Clock, each: Collision, later: str) -> str:
    """``w1 read it at 3.2041 s in compile_wrapper (...), 0.1 ms later``."""
    met = each.met
    assert met is not None
    verb = "read it" if met.action in (Action.OBEYED, Action.READ) else "was in the same"
    if met.state is State.KERNEL and met.action is Action.CALL:
        verb = "launched it"
    if met.state is State.ANNOTATION and met.action is not Action.READ:
        verb = "was in annotations of its own"
    if met.state is State.METRICS:
        verb = "went there too" if met.action is Action.ENTER else "had been there before it, and left"
    where = place(met.stack)
    who = met.thread if met.thread == each.victim else f"{met.thread}, working for {each.victim},"
    if each.obeyed is not None:
        verb = "took it onto what it traced"
        if met.thread not in (each.victim, each.obeyed.thread):
            who = f"{met.thread}, whose graph {each.victim} called,"
    return f"{who} {verb} at {clock.at(met.t)}{f' in {where}' if where else ''}, {later}"


def _obeyed(clock: Clock, each: Collision, alike: bool) -> str:
    """``; autograd, working for w1, obeyed it (fallback_to_eager: flex_attention_backward) at 3.9041 s in ...``."""
    event = each.obeyed
    if event is None:
        return ""
    who = event.thread
    if who != each.victim:
        who += f", working for {each.victim}{' or another one that failed so' * alike},"
    where = place(event.stack)
    return f"; {who} obeyed it ({event.value}) at {clock.at(event.t)}{f' in {where}' if where else ''}"


def _put_back(seen: Seen, clock: Clock, each: Collision) -> str:
    """That what had ended when it was met was still there, and why."""
    if each.obeyed is None or each.window is None or each.met is None:
        return ""
    if each.window.end is None or each.met.t <= each.window.end:
        return ""
    left = seen.noted.left_behind(each.obeyed.value.partition(": ")[0], each.met.t)
    if left is None:
        return " It was still there when it was met."
    return (
        f" It had come to stay: {left.wrote.thread} began one at {clock.at(left.wrote.t)}, {left.met.thread} met it at"
        f" {clock.at(left.met.t)} and put it back at {clock.at(left.put_back.t)}, when it was over. It was still there"
        f" when {each.met.thread} traced."
    )


def _end(each: Collision) -> str:
    if each.consequence is Consequence.FAILED:
        return f"; {each.consequence}: {cut(each.message)}"
    if each.obeyed is not None:
        were = "was" if each.count == 2 else "were"
        more = f", and so {were} {counted(each.count - 1, 'more operation')}" if each.count > 1 else ""
        return f"; it was compiled to run eagerly{more}."
    what = f" ({each.met.value})" if each.met is not None and each.met.value else ""
    times = f", and so did {each.count - 1} more calls" if each.count > 2 else ", and so did one more call"
    return f"; {each.consequence}{what}{times if each.count > 1 else ''}."


def _until(clock: Clock, window: Window) -> str:
    flag = window.state in (State.TRACING, State.COMPILING)
    name, ended, was = ("The flag", "was cleared", "set") if flag else ("It", "ended", "open")
    if window.end is None or window.closed is None:
        return f"{name} {'was not cleared any more' if flag else 'had no end in this log'}."
    by = "" if window.closed.thread == window.thread else f" by {window.closed.thread}"
    lasted = took(window.end - window.start)
    if window.state is State.METRICS:
        return f"Thread {window.thread} left it{by} at {clock.at(window.end)}, after {lasted}."
    return f"{name} {ended}{by} at {clock.at(window.end)}, after it had been {was} for {lasted}."


def _sticking(clock: Clock, stuck: Stuck) -> str:
    """Who saved True, who put it back, that nothing was open any more, and how it was handed on."""
    first, back = stuck.first, stuck.first.put_back
    saved = ""
    if first.saved is not None:
        where = place(first.saved.stack)
        saved = (
            f" had met {NAMES[stuck.state]} set by {first.saved_from} at {clock.at(first.saved.t)}"
            f"{f' in {where}' if where else ''}, and"
        )
    where = place(back.stack)
    text = f"Thread {back.thread}{saved} put True back at {clock.at(back.t)}{f' in {where}' if where else ''}"
    what = "no trace" if stuck.state is State.TRACING else "no compile"
    text += f"; from {clock.at(first.since)} on {what} was open in any thread, and the flag was still set"
    if stuck.handed_on:
        text += (
            f". It was met so, cleared or saved, and put back {stuck.handed_on} more time{'s' * (stuck.handed_on > 1)},"
            f" the last time by {stuck.put_back.thread} at {clock.at(stuck.put_back.t)}"
        )
    return f"{text}, {'for good' if stuck.until is None else f'until {clock.at(stuck.until)}'}."


def _limited(clock: Clock, each: Collision) -> str:
    assert each.met is not None
    limit = f" ({each.met.value})" if each.met.value else ""
    where = place(each.met.stack)
    at = f"{clock.at(each.met.t)}{f' in {where}' if where else ''}"
    return f"Thread {each.victim} hit the recompile limit{limit} at {at}{_end(each)}"


def _unknown(seen: Seen, clock: Clock, each: Collision) -> str:
    """What is known of a failure that nothing in the log explains: where the victim and the others were."""
    when = each.at if each.met is None else each.met.t
    told = f"Thread {each.victim}, at {clock.at(each.at)}{_end(each)}"
    if each.met is not None:
        where = place(each.met.stack)
        if each.met.state is State.UNCAUGHT:
            told += f" It was raised in {where}." if where else ""
        else:
            told += (
                f" The last that the witness saw{_of_it(each)} was {NAMES[each.met.state]} ({each.met.action}"
                f"{f', {each.met.value}' if each.met.value else ''}) at {clock.at(when)}"
                f"{f' in {where}' if where else ''}."
            )
    open_ = [
        f"{window.thread} {_had(window.state)} since {clock.at(window.start)}"
        for window in seen.windows
        if window.thread != each.victim and window.start <= when and (window.end is None or when <= window.end)
    ]
    told += f" At that moment {', '.join(open_)}." if open_ else " At that moment no other thread had anything open."
    return told + " None of the known mechanisms fits."


def _of_it(each: Collision) -> str:
    """Of the victim; or of another thread, which is named."""
    assert each.met is not None, "only of what was seen"
    return " of it" if each.met.thread == each.victim else f" to fail, in thread {each.met.thread},"


def _had(state: State) -> str:
    """``held the compile lock``, ``had the tracing flag set``, ``had a trace open``."""
    if state is State.LOCK:
        return f"held {NAMES[state]}"
    return f"had {NAMES[state]} {'set' if state in FLAGS else 'open'}"


def _hang(seen: Seen, clock: Clock, each: Collision, trial: TrialRecord) -> list[str]:
    waiting = waits(seen.log, seen.windows, trial.stacks)
    circle = cycle(waiting)
    told = []
    for one in circle or waiting:
        where = place(one.since.stack)
        since = f"since {clock.at(one.since.t)}{f' in {where}' if where else ''}"
        other = place(one.window.opened.stack)
        its = f"since {clock.at(one.window.start)}{f' from {other}' if other else ''}"
        if one.window.state is State.LOCK:
            told.append(f"Thread {one.thread} waited for the compile lock {since}; {one.on} held it {its}.")
        else:
            stood = one.since.state is State.STANDING
            so = f"stood at {clock.at(one.since.t)} in {where}" if stood else f"of which nothing was seen {since}"
            told.append(
                f"Thread {one.thread}, {'which ' * stood}{so}, waited for autograd's thread {one.on}, which was in a"
                f" backward {its}."
            )
    kind = f" ({trial.hang_kind})" if trial.hang_kind else ""
    if circle:
        told.append(f"So each waits for the other, and {each.consequence}{kind}.")
    elif waiting:
        told.append(f"{each.consequence.capitalize()}{kind}; no circle of waits is seen: what {waiting[0].on} waits"
                    " for is not in the log.")  # fmt: skip
    else:
        told.append(f"{each.consequence.capitalize()}{kind}; no thread waits for the compile lock.")
    return told


def _nothing(seen: Seen, trial: TrialRecord) -> str:
    log = seen.log
    number = len(log.events) + sum(number for *_, number in log.counts)
    if trial.outcome is Outcome.CLEAN:
        calls = sum(event.state is State.UNFUSED for event in log.events)
        eager = (
            f"{counted(calls, 'call')} ran eagerly that met no other thread's state" if calls else "no call ran eagerly"
        )
        return f"Nothing failed and {eager}, in {counted(number, 'event')} of {counted(len(log.threads), 'thread')}."
    return f"The trial ended as {trial.outcome}, and no thread's failure was reported: {trial.message or 'no message'}."

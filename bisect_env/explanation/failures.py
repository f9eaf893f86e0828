"""Which threads of a trial failed, and when: by the reproducer, else by the witness, else by what was printed. Pure.

Of a command that does not speak the protocol only the end is known: its last traceback, an exit status, at a time that
may be long after the call that failed, in no thread. What ended its threads the witness has seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bisect_env.explanation.records import Action, Event, Frame, WitnessLog
from bisect_env.trials.records import Failure, Signature, TrialRecord
from bisect_env.trials.signature import headline_of

MAIN = "main"
AT_THE_END = 1.0
"""Seconds before a trial's end from which on a failure of the main thread may be no more than that end."""
LINK = " <- "
"""Between an exception and what it came from, in the witness's words."""
_EXIT = re.compile(r"exit \d+")
_GROUP = re.compile(r"(?:Base)?ExceptionGroup\b")
_ABORT = "SIGABRT"
FX_ERROR = "symbolically trace"
"""In the message of a call that obeyed the tracing flag."""
_NAMED = re.compile(r"^Exception in thread (.+):$", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):"


@dataclass(frozen=True)
class Fell:
    """One failure, and what is known of it."""

    failure: Failure
    """Its thread is empty where it is not known."""
    when: bool
    """Whether its time is about that at which it was raised; else it was raised at any time before."""
    raised: Event | None = None
    """The exception that ended the thread, as the witness saw it."""
    silent: bool = False
    """Whether the program ended itself, by a status or an abort, without a traceback."""
    printed: str = ""
    """What it wrote then."""

    @property
    def text(self) -> str:
        """All that tells what it was."""
        return "\n".join((self.failure.message, self.raised.value if self.raised else "", self.printed))

    @property
    def why(self) -> str:
        """Of a silent end behind a call that failed: what was printed of that, or that nothing was."""
        kind = self.failure.signature.type
        line = next((line.strip() for line in self.printed.splitlines() if FX_ERROR in line), "")
        return line or f"no message was printed, and the process ended with {kind}"


def failures_of(log: WitnessLog, trial: TrialRecord) -> tuple[Fell, ...]:
    """The failures of a trial in the order of their times, those that only the witness has seen included."""
    reported = [failure for failure in trial.failures if not _is_end(trial, failure)]
    if reported:
        return tuple(Fell(failure, when=True) for failure in reported)
    found = [_seen(event, trial.failures) for event in log.events if event.action is Action.RAISED]
    for failure in trial.failures:
        known = any(_same(each.raised, failure) for each in found if each.raised is not None)
        # An exit status is what the exceptions came to; a signal, or another traceback, is something else.
        if not known and not (found and _EXIT.fullmatch(failure.signature.type)):
            found.append(_end(failure, trial.output, log.complete))
    return tuple(found)


def _is_end(trial: TrialRecord, failure: Failure) -> bool:
    """Whether all that a failure says is how the process ended."""
    ended = trial.started + trial.seconds
    return len(trial.failures) == 1 and failure.thread == MAIN and failure.t >= ended - AT_THE_END


def _seen(event: Event, failures: Sequence[Failure]) -> Fell:
    """An exception that the witness has seen, with the traceback that was printed of it."""
    printed = next((failure for failure in failures if _same(event, failure)), None)
    if printed is not None:
        return Fell(replace(printed, thread=event.thread, t=event.t), when=True, raised=event)
    kind, _, message = event.value.partition(LINK)[0].partition(": ")
    lines = "\n".join(f'File "{frame.path}", line {frame.line}, in {frame.function}' for frame in event.stack)
    where = f"{event.stack[0].function}:{event.stack[0].line}" if event.stack else ""
    failure = Failure(event.thread, Signature(kind, "", ""), message, where, lines, event.t)
    return Fell(failure, when=True, raised=event)


def _same(event: Event | None, failure: Failure) -> bool:
    """Whether a traceback that was printed is that of an exception which the witness has seen."""
    if event is None:
        return False
    links = event.value.split(LINK)
    # Of a group the last one in it is printed last.
    if not _GROUP.match(links[0]):
        links = links[:1]
    kind, said = failure.signature.type.rpartition(".")[2], headline_of(failure.message)
    told = [message.rstrip() for each, _, message in (link.partition(": ") for link in links) if each == kind]
    return any(said.removeprefix(f"{kind}: ").startswith(message) for message in told)


def _end(failure: Failure, output: str, complete: bool) -> Fell:
    """The end of a process of which nobody saw an exception: one that was caught, or a witness that was cut off."""
    kind = failure.signature.type
    # The log has its end only where Python code called for the abort, and no library that had a reason of its own.
    if (_EXIT.fullmatch(kind) and not failure.traceback) or (kind == _ABORT and complete):
        return Fell(replace(failure, thread=""), when=False, silent=True, printed=output)
    return Fell(replace(failure, thread=_thread_of(output) if failure.traceback else ""), when=False)


def _thread_of(output: str) -> str:
    """The thread whose traceback is the last one of an output; empty where it says none."""
    before, found, _ = output.rpartition(_TRACEBACK)
    named = _NAMED.findall(before) if found else []
    return str(named[-1]) if named and before.rstrip().endswith(f"Exception in thread {named[-1]}:") else ""


def shown(frames: Sequence[Frame], text: str) -> bool:
    """Whether a traceback has the innermost of these frames."""
    if not frames:
        return False
    frame = frames[0]
    return f'{frame.path}", line {frame.line}, in {frame.function}' in text

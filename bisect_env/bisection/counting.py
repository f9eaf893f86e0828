"""What trials say of the question: failures, passes, and what counts for neither side. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bisect_env.bisection.records import Levels, Measure, Observation, Question
from bisect_env.search.records import Tally
from bisect_env.trials.records import Outcome, TrialRecord

HUNG = "hang"
"""Stands for the signature of a trial that hung."""


def pooled(observations: Iterable[Observation], point: Levels | None = None) -> Tally:
    """Counts of these observations together, or of those at one point."""
    total = Tally()
    for seen in observations:
        if point is None or seen.point == point:
            total += Tally(seen.failures, seen.passes, seen.other)
    return total


def signatures(record: TrialRecord) -> tuple[str, ...]:
    """What a trial that went wrong shows, each once, in any of its threads."""
    if record.outcome is Outcome.HANG:
        return (HUNG,)
    if record.outcome in (Outcome.CLEAN, Outcome.SKIPPED, Outcome.INFRA):
        return ()
    shown = tuple(dict.fromkeys(str(failure.signature) for failure in record.failures))
    return shown or (record.outcome.value,)


def tracebacks(records: Iterable[TrialRecord], signature: str | None) -> tuple[str, ...]:
    """Of the failures with this signature, or of all where none is asked for; each text once."""
    failures = (failure for record in records for failure in record.failures)
    wanted = (each for each in failures if signature is None or signature in str(each.signature))
    return tuple(dict.fromkeys(each.traceback for each in wanted))


def cannot_import(record: TrialRecord) -> bool:
    """Whether a trial went wrong by an import."""
    broken = any(text.startswith(("ImportError", "ModuleNotFoundError")) for text in signatures(record))
    return broken or record.outcome is Outcome.IMPORT_FAILED


def verdict(record: TrialRecord, question: Question, signature: str | None) -> str:
    """``failure``, ``pass`` or ``other`` (counts for neither side).

    Args:
        record: the trial.
        question: what is asked.
        signature: what the question's failures show; None while that is not known: then every failure counts.
    """
    if record.outcome is Outcome.HANG and question.hang != "bad":
        return "pass" if question.hang == "good" else "other"
    if question.measure is not Measure.FAILURE:
        return _measured(record, question)
    shown = signatures(record)
    if record.outcome is Outcome.CLEAN:
        return "pass"
    if not shown:
        return "other"
    wanted = signature is None or question.any_failure or any(signature in text for text in shown)
    return "failure" if wanted else "other"


def _measured(record: TrialRecord, question: Question) -> str:
    """One that did not come to its end has no figure to compare."""
    if record.outcome is not Outcome.CLEAN:
        return "other"
    if question.measure is Measure.THROUGHPUT_BELOW:
        speed = record.tokens_per_second
        return "other" if speed is None else "failure" if speed < question.threshold else "pass"
    peak = record.peak_bytes
    return "other" if peak is None else "failure" if peak > question.threshold else "pass"


def untestable(records: Sequence[TrialRecord], question: Question, counted: int) -> str:
    """Why a mix cannot be tested, by its trials; empty when it can.

    Args:
        records: all its trials.
        question: what is asked.
        counted: how many of them count for one side or the other: where any does, it can.
    """
    if counted or not records:
        return ""
    outcomes = {record.outcome for record in records}
    if question.measure in UNTOLD and Outcome.CLEAN in outcomes:
        return UNTOLD[question.measure]
    if outcomes == {Outcome.IMPORT_FAILED}:
        return f"the imports fail: {records[0].message.splitlines()[0]}" if records[0].message else "the imports fail"
    if outcomes == {Outcome.SKIPPED}:
        return records[0].message or "the reproducer skips it"
    if len(records) >= ONLY_OTHERS:
        shown = Counter(text for record in records for text in signatures(record))
        most = shown.most_common(1)
        return f"only other failures: {most[0][0]}" if most else "no trial of it says anything"
    return ""


UNTOLD = {
    Measure.MEMORY_ABOVE: "no trial told its peak memory: this needs a GPU, or a reproducer that reports it (`memory`)",
    Measure.THROUGHPUT_BELOW: "no trial told its speed: this needs a reproducer that reports warm steps (`step`)",
}
"""Why clean trials do not count where a figure is asked for."""
ONLY_OTHERS = 4
"""So many trials of a mix that all ended by another signature, and none counted, make it a skip."""


def recounted(seen: Observation, question: Question, signature: str | None) -> Observation:
    """An observation of a time when every failure counted, by what is known to be the question's signature now."""
    if signature is None or question.any_failure or question.measure is not Measure.FAILURE:
        return seen
    failures = dict(seen.signatures).get(signature, 0)
    return replace(seen, failures=failures, other=seen.other + seen.failures - failures)


def signature_of(good: Iterable[Observation], bad: Iterable[Observation]) -> str | None:
    """The signature that the bad end shows most, less what the good end shows of it; None without any failure."""
    shown: Counter[str] = Counter()
    seen_at_bad: Counter[str] = Counter()
    for seen in bad:
        shown.update(dict(seen.signatures))
        seen_at_bad.update(dict(seen.signatures))
    for seen in good:
        shown.subtract(dict(seen.signatures))
    candidates = [text for text, count in seen_at_bad.items() if count]
    return max(candidates, key=lambda text: (shown[text], seen_at_bad[text], text), default=None)

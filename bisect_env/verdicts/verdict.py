"""The verdict of a cell: the first headline that is established, with every figure beside it.

The order and the meaning of the headlines are those of docs/verdicts.md. Nothing here raises on odd records: a store
holds what really happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from bisect_env.environments.records import Unavailable
from bisect_env.trials.records import Outcome, Side, Signature
from bisect_env.verdicts.facts import BAD, Facts, gather
from bisect_env.verdicts.looks import FAILED, FAILED_OR_HUNG, HUNG, MOST_FURTHER, Design, further_needed, looks
from bisect_env.verdicts.records import Headline, Verdict, percent
from bisect_env.verdicts.samples import Records
from bisect_env.verdicts.statistics import clean_trials_needed
from bisect_env.words import counted

STAGES = {
    "resolve": Headline.UNRESOLVABLE,
    "build": Headline.BUILD_FAILED,
    "import": Headline.IMPORT_FAILED,
    "delivery": Headline.NOT_RUN,
}


def without_environment(reason: Unavailable) -> Verdict:
    """The verdict of a cell that has no environment, with the tool's own message."""
    headline = STAGES.get(reason.stage, Headline.BUILD_FAILED)
    return Verdict(headline, reason=f"{reason.reason.value}: {reason.message.strip()}")


def judge(records: Records, design: Design, reference: Records | None = None, warmed: Records | None = None) -> Verdict:
    """Judge a cell from all its trials.

    Args:
        records: the cell's trials of every side, as stored samples, or as bare records in the order of their blocks.
        design: what was fixed beforehand.
        reference: the reference cell's trials; None when throughput is not compared, or for that cell itself.
        warmed: the trials of the same cell under its warmed-up condition, for its throughput where all of its own
            failed.
    """
    facts = gather(records, design, reference, warmed)
    for rule in _RULES:
        verdict = rule(facts)
        if verdict is not None:
            return verdict
    return _full(facts)


def _nothing_counted(facts: Facts) -> Verdict | None:
    """NOT RUN or SKIPPED: no threaded trial says anything."""
    if facts.threads:
        return None
    skipped = [sample.record for sample in facts.sides.scored if sample.record.outcome is Outcome.SKIPPED]
    if skipped and (facts.sides.threads or not facts.scored):
        return replace(facts.base, headline=Headline.SKIPPED, reason=skipped[0].message or "the reproducer skipped it")
    if facts.scored and all(record.outcome is Outcome.IMPORT_FAILED for record in facts.scored):
        return None
    reason = "no threaded trial was run yet" if facts.scored else "no trial was run yet"
    if facts.base.infra:
        reason += f"; {counted(facts.base.infra, 'trial')} said nothing about the cell"
    return replace(facts.base, headline=Headline.NOT_RUN, missing=facts.design.trials, reason=reason)


def _import_failed(facts: Facts) -> Verdict | None:
    if not all(record.outcome is Outcome.IMPORT_FAILED for record in facts.scored):
        return None
    first = facts.scored[0]
    message = f"{first.failures[0].signature.type}: {first.failures[0].message}" if first.failures else first.message
    return replace(facts.base, headline=Headline.IMPORT_FAILED, reason=message or "the reproducer's imports failed")


def _race_or_hang(facts: Facts) -> Verdict | None:
    found = facts.found
    if found is None:
        return None
    verdict = facts.counting(lambda record: record.outcome in FAILED_OR_HUNG)
    if found.signature is not None:
        count = next(item for item in verdict.signatures if item.signature == found.signature)
        text = f"{found.signature} in {count.threads} threaded trials and {count.serial} serial controls"
    elif found.further:
        alike = facts.counting(lambda record: record.outcome in found.outcomes)
        text = f"{_sides(alike)} {'hung' if found.outcomes == HUNG else 'failed'}"
    else:
        text = f"{_sides(verdict)} {_went(verdict)}"
    text += f" (one-sided exact test, p = {found.p_value:.2g}, limit {found.limit:.2g}"
    text += f", look at {found.look.blocks} blocks)"
    if found.further:
        # The counts of the table cannot show it: they are the same on both sides.
        text = f"the control goes wrong too, but not in this way: {text}"
        verdict = replace(verdict, marks=(text, *verdict.marks))
    else:
        text += _split(verdict)
    kinds = Counter(r.hang_kind for r in facts.threads if r.outcome in HUNG and r.hang_kind)
    if found.signature is None and found.outcomes != FAILED:
        text += "".join(f"; {kind} {_times(count)}" for kind, count in sorted(kinds.items()))
    if found.signature is None and found.outcomes != HUNG and verdict.signatures:
        text += f"; most often {_short(verdict.signatures[0].signature)}"
    return replace(verdict, headline=found.headline, p_value=found.p_value, reason=text + _early(facts))


def _broken(facts: Facts) -> Verdict | None:
    bad = [record for record in facts.serial + facts.solo if record.outcome in FAILED_OR_HUNG]
    if not bad or not facts.finished:
        return None
    verdict = facts.counting(lambda record: record.outcome in FAILED_OR_HUNG)
    solo = f", {verdict.solo.k} of {verdict.solo.n} solo controls" if verdict.solo is not None else ""
    text = f"the control goes wrong too: {_sides(verdict)}{solo} {_went(verdict)}{_split(verdict)}"
    first = next((record.failures[0].signature for record in bad if record.failures), None)
    text += f"; {_short(first)}" if first is not None else ""
    return replace(verdict, headline=Headline.BROKEN, reason=text + _early(facts))


def _oom(facts: Facts) -> Verdict | None:
    if not any(record.outcome is Outcome.OOM for record in facts.scored):
        return None
    verdict = facts.counting(lambda record: record.outcome is Outcome.OOM)
    text = f"{_sides(verdict)} ran out of device memory"
    if verdict.peak_bytes is not None:
        text += f"; highest peak {verdict.peak_bytes / 2**30:.1f} GiB"
    return replace(verdict, headline=Headline.OOM, reason=text + _early(facts))


def _wrong(facts: Facts) -> Verdict | None:
    if not facts.wrong:
        return None
    verdict = facts.counting(lambda record: record.id in facts.wrong)
    first = next(record for record in facts.scored if record.id in facts.wrong)
    text = f"{_sides(verdict)} computed wrong numbers; {facts.wrong[first.id]}"
    return replace(verdict, headline=Headline.WRONG, reason=text)


def _dense(facts: Facts) -> Verdict | None:
    path = facts.attention
    if not path.dense:
        return None
    return replace(facts.base, headline=Headline.DENSE, doubtful=path.doubtful, reason=path.reason)


def _slow(facts: Facts) -> Verdict | None:
    speed = facts.base.throughput
    if speed is None or speed.ratio_high is None or speed.ratio_high >= facts.design.slow_below:
        return None
    pair = "round" if speed.sessions else "block"
    text = (
        f"{speed.ratio:.2f} of the reference's tokens/s ({speed.ratio_low:.2f}-{speed.ratio_high:.2f} at "
        f"{percent(facts.design.confidence)}, paired by {pair}), slow below {facts.design.slow_below:g}"
    )
    return replace(facts.base, headline=Headline.SLOW, reason=text)


def _unsure(facts: Facts) -> Verdict | None:
    base = facts.base
    failing = [record for record in facts.scored if record.outcome in BAD]
    if not failing or base.threads is None:
        return None
    text = f"{_sides(base)} {_went(base)}{_split(base)}"
    if not facts.finished:
        missing = max(facts.design.trials - len(facts.sides.threads), 0)
        text += f"; not finished: {_to_come(facts)}"
        return replace(base, headline=Headline.UNSURE, missing=missing, reason=text)
    # A control that failed would have made it BROKEN, so all that is left is that threads fail, too rarely or against
    # too few controls.
    if base.serial is None or base.p_value is None:
        text += "; a race cannot be told from a broken environment without a trial of the serial control"
        return replace(base, headline=Headline.UNSURE, reason=text)
    limit, chance = looks(facts.design)[-1].limit, 1 - facts.design.confidence
    why = "which chance can explain" if base.p_value > chance else "which is rare by chance, but not enough so"
    text += f", {why} (one-sided exact test, p = {base.p_value:.2g}, limit {limit:.2g})"
    more = further_needed(base.threads.k, base.threads.n, base.serial.k, base.serial.n, facts.design)
    further = counted(more or MOST_FURTHER, "more trial")
    text += f"; at these rates {further} of each side would {'' if more else 'not '}tell"
    return replace(base, headline=Headline.UNSURE, missing=more or 0, reason=text)


def _full(facts: Facts) -> Verdict:
    base, design = facts.base, facts.design
    n = len(facts.threads)
    missing = max(0, clean_trials_needed(design.max_race_rate, design.confidence) - n)
    path = facts.attention
    text = f"0/{n}: a race rate below {percent(base.bound or 0.0)} at {percent(design.confidence)}"
    if path.fused_by:
        text += f"; attention fused in every thread, by {', '.join(path.fused_by)}"
    if missing:
        text += f"; {missing} more clean trials would show it to be below {percent(design.max_race_rate)}"
    marks = (*base.marks, *path.marks)
    if not facts.finished:
        marks = (*marks, f"not finished: {_to_come(facts)}")
    return replace(base, missing=missing, reason=text, marks=marks)


_RULES: tuple[Callable[[Facts], Verdict | None], ...] = (
    _nothing_counted,
    _import_failed,
    _race_or_hang,
    _broken,
    _oom,
    _wrong,
    _dense,
    _slow,
    _unsure,
)


def _to_come(facts: Facts) -> str:
    design, sides = facts.design, facts.sides
    counts = (
        ("threaded", len(sides.threads), design.planned(Side.THREADS)),
        ("serial", len(sides.serial), design.planned(Side.SERIAL)),
        ("solo", len(sides.solo), design.planned(Side.SOLO)),
    )
    listed = ", ".join(f"{done} of {planned} {side}" for side, done, planned in counts if done < planned)
    return f"{listed} trials are in"


def _sides(verdict: Verdict) -> str:
    threads, serial = verdict.threads, verdict.serial
    text = f"{threads.k} of {threads.n} threaded trials" if threads else "no threaded trial"
    return f"{text} and {serial.k} of {serial.n} serial controls" if serial else text


def _early(facts: Facts) -> str:
    return f"; stopped early, after {facts.stopped} blocks" if facts.base.stopped_early else ""


def _short(signature: Signature, width: int = 100) -> str:
    text = " ".join(str(signature).split())
    return text if len(text) <= width else text[: width - 3] + "..."


def _went(verdict: Verdict) -> str:
    """How threaded trials and serial controls that did not come through ended."""
    sides = [verdict.ends_threads, verdict.ends_serial, verdict.ends_solo]
    failed, hung = sum(side.failed for side in sides), sum(side.hung for side in sides)
    if failed and hung:
        return "failed or hung"
    return "hung" if hung else "failed"


def _split(verdict: Verdict) -> str:
    """How many threaded trials ended in which way, where both occur."""
    failed, hung = verdict.ends_threads.failed, verdict.ends_threads.hung
    return f"; of the threaded trials {failed} failed and {hung} hung" if failed and hung else ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"

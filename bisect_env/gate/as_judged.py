"""Memory, attention and numbers: what the verdicts find in each side's trials, and what a gate makes of it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bisect_env.gate.records import Decision, Line, Question, Rules
from bisect_env.trials.records import TrialRecord
from bisect_env.verdicts.facts import Facts
from bisect_env.verdicts.records import percent
from bisect_env.words import counted

GIB = 2**30


def so_far(line: Line, own: int, blocks: int, more: str) -> Line:
    """A pass by a part of the trials is none yet; a fail stays one."""
    if line.decision is not Decision.PASS:
        return line
    return replace(
        line,
        decision=Decision.INCONCLUSIVE,
        sentence=f"so far, after {own} of {counted(blocks, 'threaded trial')}: {line.sentence}",
        more=more,
    )


def memory_line(rules: Rules, baseline: Facts, candidate: Facts) -> Line:
    """Highest peak of the candidate's threaded trials and rounds beside the baseline's: a ratio, without a test."""

    def told(side: Facts) -> str:
        return f"{side.base.peak_bytes / GIB:.2f} GiB" if side.base.peak_bytes else ""

    other, own = baseline.base.peak_bytes, candidate.base.peak_bytes
    if not other or not own:
        return _unreported(Question.MEMORY, baseline, candidate, told)
    ratio = own / other
    passes = ratio <= rules.max_memory
    return Line(
        Question.MEMORY,
        Decision.PASS if passes else Decision.FAIL,
        f"the candidate's highest peak is {ratio:.3f} of the baseline's, "
        f"{'within' if passes else 'above'} {rules.max_memory:g}",
        told(baseline),
        told(candidate),
        (
            ("baseline_bytes", float(other)),
            ("candidate_bytes", float(own)),
            ("ratio", ratio),
            ("limit", rules.max_memory),
        ),
        trials=(*_at(baseline, other), *_at(candidate, own)),
    )


def attention_line(baseline: Facts, candidate: Facts) -> Line:
    """Whether attention runs unfused in the candidate where it does not in the baseline, by the verdicts' rules."""

    def told(side: Facts) -> str:
        path = side.attention
        if not any(item.signs for item in path.threads):
            return ""
        return f"{'dense' if path.dense else 'fused'}{'?' if path.doubtful else ''} ({percent(_share(side))} unfused)"

    own, other = candidate.attention, baseline.attention
    if not told(baseline) or not told(candidate):
        return _unreported(Question.ATTENTION, baseline, candidate, told)
    decision, more = Decision.PASS, ""
    if not own.dense:
        sentence = "attention ran fused in every thread" + (f", by {', '.join(own.fused_by)}" if own.fused_by else "")
        sentence = "; ".join((sentence, *own.marks))
    elif other.dense and not other.doubtful:
        sentence = f"attention runs unfused, and in the baseline as well: {own.reason}"
    elif own.doubtful or other.dense:
        decision, sentence = Decision.INCONCLUSIVE, f"attention may run unfused: {own.reason}"
        sentence += f"; so it may in the baseline: {other.reason}" if other.dense else "; not in the baseline"
        more = "a second sign that agrees would tell: on a GPU, trials under the profiler see the kernels"
    else:
        decision, sentence = Decision.FAIL, f"attention runs unfused, and not in the baseline: {own.reason}"
    return Line(
        Question.ATTENTION,
        decision,
        sentence,
        told(baseline),
        told(candidate),
        (("baseline_share", _share(baseline)), ("candidate_share", _share(candidate))),
        more,
        tuple(record.id for record in candidate.threads if record.paths),
    )


def numbers_line(baseline: Facts, candidate: Facts) -> Line:
    """Whether any trial of the candidate computed wrong numbers: one is enough, whatever the baseline does."""

    def told(side: Facts) -> str:
        return f"{len(side.wrong)} of {len(_checked(side))} wrong" if _checked(side) else ""

    # Wrong ones are a fail also where the baseline has none to compare with.
    if not candidate.wrong and not (told(baseline) and told(candidate)):
        return _unreported(Question.NUMBERS, baseline, candidate, told)
    count = len(_checked(candidate))
    sentence = f"the numbers of {counted(count, 'trial')} are right"
    if candidate.wrong:
        sentence = (
            f"{len(candidate.wrong)} of {count} trials computed wrong numbers; {next(iter(candidate.wrong.values()))}"
        )
        sentence += "; the baseline's are wrong as well" if baseline.wrong else ""
    return Line(
        Question.NUMBERS,
        Decision.FAIL if candidate.wrong else Decision.PASS,
        sentence,
        told(baseline),
        told(candidate),
        (
            ("baseline_wrong", float(len(baseline.wrong))),
            ("baseline_checked", float(len(_checked(baseline)))),
            ("candidate_wrong", float(len(candidate.wrong))),
            ("candidate_checked", float(count)),
        ),
        trials=tuple(candidate.wrong) or tuple(record.id for record in _checked(candidate)),
    )


def _unreported(question: Question, baseline: Facts, candidate: Facts, told: Callable[[Facts], str]) -> Line:
    """The answer where a side says nothing: not asked where neither does, else open."""
    texts = told(baseline), told(candidate)
    if not any(texts):
        ran = candidate.scored or baseline.scored
        why = "the reproducer does not report it here" if ran else "no trial was run"
        return Line(question, Decision.NOT_ASKED, why, "", "")
    silent, other = ("baseline", "candidate") if texts[1] else ("candidate", "baseline")
    sentence = f"the {other} reports it, and no trial of the {silent} does"
    more = f"trials of the {silent} that get far enough to report it"
    return Line(question, Decision.INCONCLUSIVE, sentence, *texts, more=more)


def _share(side: Facts) -> float:
    return max((item.share for item in side.attention.threads), default=0.0)


def _checked(side: Facts) -> list[TrialRecord]:
    """Counted trials that have numbers to check, or were found wrong."""
    return [record for record in side.scored if record.numbers or record.losses or record.id in side.wrong]


def _at(side: Facts, peak: int) -> tuple[str, ...]:
    """The first trial with that peak."""
    timed = [sample.record for sample in side.sides.rounds]
    return tuple(record.id for record in side.threads + timed if record.peak_bytes == peak)[:1]

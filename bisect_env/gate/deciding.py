"""Each question's line from what both sides' trials show, and the gate's decision. Pure: records in, lines out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from bisect_env import words
from bisect_env.gate import margin, races
from bisect_env.gate import throughput as speed
from bisect_env.gate.as_judged import attention_line, memory_line, numbers_line, so_far
from bisect_env.gate.needed import share
from bisect_env.gate.records import Announcement, Decision, Line, Question, Rules
from bisect_env.trials.records import Outcome, TrialRecord
from bisect_env.verdicts.facts import BAD, gather
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.samples import Records, by_side, counted
from bisect_env.verdicts.throughput import sessions

GO_ON = "the same command goes on where this one ended"
OPEN = "nothing in this gate: no throughput is measured for a candidate whose race question stays open"
CANNOT = "nothing: the candidate cannot be run"
ENDED = "nothing: the gate ended when it had failed the race question"


def lines(
    rules: Rules, announcement: Announcement, environment: Line, baseline: Records, candidate: Records
) -> tuple[Line, ...]:
    """A line for every question, in their order.

    Args:
        rules: as fixed before the run.
        announcement: the one that was made of them; it says how many trials count.
        environment: the first line. Where it fails and there are no trials, the others are not asked.
        baseline: its trials of every side, those that earlier gates left included: stored samples.
        candidate: the candidate's, of this gate only.
    """
    if environment.decision is Decision.FAIL and not counted(by_side(candidate).threads):
        why = "the candidate cannot be run"
        return (
            environment,
            *(Line(q, Decision.NOT_ASKED, why, "", "") for q in Question if q is not environment.question),
        )
    design = Design(max(1, announcement.blocks), announcement.blocks, confidence=rules.confidence)
    facts = [gather(records, design, None, None) for records in (baseline, candidate)]
    raced, timed = (
        races_line(rules, announcement, baseline, candidate),
        throughput_line(rules, announcement, baseline, candidate),
    )
    if raced.decision is Decision.FAIL and timed.more.endswith(GO_ON):
        timed = replace(timed, more=ENDED)
    own = threaded(candidate)
    by_trials = not any(int(record.condition.get("rounds", 0)) for record in own[:1])
    at_the_end = raced.decision is Decision.INCONCLUSIVE and len(own) >= announcement.blocks
    if by_trials and at_the_end and timed.more.endswith(GO_ON):
        timed = replace(timed, more=OPEN)
    if environment.decision is Decision.FAIL:
        raced, timed = (replace(line, more="" if not line.more else CANNOT) for line in (raced, timed))
    judged: tuple[Line, ...] = (memory_line(rules, *facts), attention_line(*facts), numbers_line(*facts))
    if len(own) < announcement.blocks:
        # What the trials that are missing would show can only take a pass away.
        come = next((line.more for line in (raced, timed) if line.more in (ENDED, CANNOT)), GO_ON)
        come = CANNOT if environment.decision is Decision.FAIL else come
        judged = tuple(so_far(line, len(own), announcement.blocks, come) for line in judged)
    found = (environment, raced, timed, *judged)
    return tuple(sorted(found, key=lambda line: list(Question).index(line.question)))


def decision(found: Sequence[Line]) -> Decision:
    """FAIL with one fail, PASS if every question that was asked passes, else INCONCLUSIVE."""
    asked = {line.decision for line in found} - {Decision.NOT_ASKED}
    if Decision.FAIL in asked:
        return Decision.FAIL
    return Decision.PASS if asked == {Decision.PASS} else Decision.INCONCLUSIVE


def threaded(records: Records) -> list[TrialRecord]:
    """The trials that the race question counts, in the order of their blocks."""
    return counted(by_side(records).threads)


def certain_fail(rules: Rules, announcement: Announcement, baseline: Records, candidate: Records) -> bool:
    """Whether the candidate has failed the race question already, whatever is still to come: the only early stop."""
    own, other = ([record.outcome in BAD for record in threaded(records)] for records in (candidate, baseline))
    return _judged(rules, announcement, own, other).decision is Decision.FAIL


def races_line(rules: Rules, announcement: Announcement, baseline: Records, candidate: Records) -> Line:
    """The race question; or, with a margin, whether the candidate races more than the baseline does."""
    own, other = threaded(candidate), threaded(baseline)
    if not own:
        why = "no threaded trial of the candidate counts yet"
        return Line(Question.RACES, Decision.INCONCLUSIVE, why, _rate(other), "", more=GO_ON)
    bad, beside = ([record.outcome in BAD for record in side] for side in (own, other))
    judged = _judged(rules, announcement, bad, beside)
    other = other[: announcement.baseline_trials]
    if rules.no_worse is None:
        sentence = _against_limit(rules, announcement, judged)
    else:
        sentence = _against_baseline(rules.no_worse, rules, judged, other)
    gone = [record for record in own[: judged.trials] if record.outcome in BAD]
    if gone:
        sentence += _most_often(gone)
    beside_bad = sum(record.outcome in BAD for record in other)
    if beside_bad and rules.no_worse is None:
        sentence += f"; the baseline races too: {_rate(other)}"
    more = "" if judged.decision is not Decision.INCONCLUSIVE else _more(rules, announcement, judged, other)
    low, high = races.bound(judged.bad, judged.trials, rules.confidence)
    return Line(
        Question.RACES,
        judged.decision,
        sentence,
        _rate(other),
        _rate(own[: judged.trials]),
        (
            ("candidate_bad", float(judged.bad)),
            ("candidate_trials", float(judged.trials)),
            ("candidate_lower", low),
            ("candidate_upper", high),
            ("baseline_bad", float(beside_bad)),
            ("baseline_trials", float(len(other))),
            *((("margin", rules.no_worse),) if rules.no_worse is not None else (("limit", rules.max_race_rate),)),
            ("confidence", rules.confidence),
        ),
        more,
        tuple(record.id for record in gone or own[: judged.trials]),
    )


def throughput_line(rules: Rules, announcement: Announcement, baseline: Records, candidate: Records) -> Line:
    """The throughput question. Only what was measured beside each other in one run is compared.

    It has no answer before all the pairs are in that the announcement fixed, or their noise asks for: a gate that could
    be ended when it happens to look well would let more bad candidates through than it says.
    """
    own, other = by_side(candidate), by_side(baseline)
    pairs = sessions(own, other)
    judged = speed.judge(rules, pairs)
    most = speed.MOST_PAIRS if announcement.most_pairs is None else announcement.most_pairs
    missing = speed.sessions_wanted(rules, pairs, max(map(len, pairs), default=1), most) - len(pairs)
    if missing > 0:
        judged = replace(judged, decision=Decision.INCONCLUSIVE)
    if judged.ratio is None:
        measured = [
            any(s.record.rounds or s.record.tokens_per_second for s in (*side.rounds, *side.threads))
            for side in (other, own)
        ]
        why = ""
        if any(measured):
            one, beside = ("baseline", "candidate") if measured[0] else ("candidate", "baseline")
            why = f"the {one}'s throughput was measured, and the {beside}'s beside it was not"
        elif announcement.pairs is not None and other.threads and own.threads and not (other.rounds or own.rounds):
            # Announced and not begun, as where the time was over first: to leave it out would let the gate pass.
            why = f"of {words.counted(announcement.pairs, 'pair')} of rounds that were announced none was timed"
        if why:
            return Line(Question.THROUGHPUT, Decision.INCONCLUSIVE, why, "", "", more=GO_ON)
        return Line(Question.THROUGHPUT, Decision.NOT_ASKED, "no throughput was measured", "", "")
    flat = [pair for session in pairs for pair in session]
    middles = [sorted(values)[len(flat) // 2] for values in zip(*flat, strict=True)]
    starts = f"{words.counted(judged.pairs, 'pair')} from {words.counted(judged.units, 'start')} of both"
    if judged.low is None or judged.high is None:
        sentence = f"{judged.ratio:.3f} of the baseline's tokens/s; one start of both says nothing of the noise"
    else:
        sentence = f"{judged.ratio:.3f} of the baseline's tokens/s, pair by pair, "
        sentence += {
            Decision.PASS: f"at least {judged.low:.3f}",
            Decision.FAIL: f"at most {judged.high:.3f}",
        }.get(judged.decision, f"between {judged.low:.3f} and {judged.high:.3f}")
        sentence += f" at {share(_level(rules, judged.decision))}; the limit is {rules.min_throughput:g} ({starts})"
    figures = [("ratio", judged.ratio)]
    figures += [("lower", judged.low)] if judged.low is not None else []
    figures += [("upper", judged.high)] if judged.high is not None else []
    figures += [("limit", rules.min_throughput), ("pairs", float(judged.pairs)), ("sessions", float(judged.units))]
    more = ""
    if judged.decision is Decision.INCONCLUSIVE:
        tells = speed.pairs_to_tell(rules, pairs)
        more = (
            "the ratio seen is too near the limit for any practical number of pairs to tell"
            if tells is None
            else f"with the ratio and the noise seen here, a new gate with --pairs {tells[0]} would "
            f"{tells[1].value} with a chance of {share(races.WANTED)}"
        )
        if missing > 0:
            more = f"{words.counted(missing, 'more start')} of both, as their noise asks for: {GO_ON}"
        elif judged.low is None:
            more = GO_ON
    timed = [sample.record for sample in own.rounds if sample.record.rounds] or [
        sample.record for sample in own.threads if sample.record.tokens_per_second
    ]
    return Line(
        Question.THROUGHPUT,
        judged.decision,
        sentence,
        _speed(middles[1]),
        _speed(middles[0]),
        tuple(figures),
        more,
        tuple(record.id for record in timed),
    )


def _speed(value: float) -> str:
    return f"median {value:,.0f} tokens/s" if value >= 100 else f"median {value:.3g} tokens/s"


def _judged(rules: Rules, announcement: Announcement, own: Sequence[bool], other: Sequence[bool]) -> races.Judged:
    if rules.no_worse is None:
        design = races.design_of(announcement.blocks, rules.max_race_rate, rules.confidence)
        return races.judge(design, own)
    pair = margin.margin_design(announcement.blocks, announcement.baseline_trials, rules.no_worse, rules.confidence)
    return margin.judge(pair, own, other)


def _level(rules: Rules, found: Decision) -> float:
    """The confidence of a bound: a fail's is the stricter."""
    return 1 - (1 - rules.confidence) / (races.STATISTICAL if found is Decision.FAIL else 1)


def _against_limit(rules: Rules, announcement: Announcement, judged: races.Judged) -> str:
    went = f"{judged.bad} of {judged.trials} threaded trials went wrong"
    limit = share(rules.max_race_rate)
    if judged.decision is Decision.PASS:
        high = share(races.bound(judged.bad, judged.trials, rules.confidence)[1])
        return f"{went}: a race rate below {high} at {share(rules.confidence)}, and the limit is {limit}"
    if judged.decision is Decision.FAIL:
        chance = share(1 - _level(rules, Decision.FAIL))
        return f"{went}: a candidate that races at no more than {limit} comes to a fail in at most {chance} of gates"
    if judged.trials < announcement.blocks:
        return f"{went}, of {announcement.blocks} that were fixed"
    return f"{went}: neither below {limit} nor above is shown at {share(rules.confidence)}"


def _against_baseline(by: float, rules: Rules, judged: races.Judged, other: Sequence[TrialRecord]) -> str:
    went = f"{judged.bad} of {judged.trials} threaded trials went wrong, of the baseline's {_rate(other) or 'none'}"
    shown = {
        Decision.PASS: f": the rate exceeds the baseline's by less than {share(by)}",
        Decision.FAIL: f": the rate exceeds the baseline's by more than {share(by)}",
    }.get(judged.decision)
    if shown is None:
        return f"{went}: whether the rate exceeds the baseline's by {share(by)} is not shown either way"
    return f"{went}{shown} at {share(_level(rules, judged.decision))}"


def _more(rules: Rules, announcement: Announcement, judged: races.Judged, other: Sequence[TrialRecord]) -> str:
    missing = max(announcement.blocks - judged.trials, 0)
    if rules.no_worse is not None:
        waiting = max(announcement.baseline_trials - len(other), 0)
        if missing or waiting:
            own = words.counted(missing, "trial")
            return f"{own} of the candidate and {waiting} of the baseline are still to come: {GO_ON}"
        # To the nearest percent: what was seen tells it no better, and neighbouring rates take hardly other numbers.
        rate = round((judged.bad + sum(record.outcome in BAD for record in other)) / (judged.trials + len(other)), 2)
        count = margin.margin_trials(rules.no_worse, rules.confidence, rate)
        if count is None or count <= judged.trials:
            return "more trials (--trials) or a wider margin"
        return (
            f"if both race at {share(rate)}, a new gate with --trials {count} would pass with a chance of "
            f"{share(races.WANTED)}"
        )
    if announcement.allowed < 0:
        return f"a gate can pass with --trials {announcement.clean_trials}, all clean"
    if missing:
        lost = "; it cannot pass any more, and may still fail" if judged.bad > announcement.allowed else ""
        come = f"{words.counted(missing, 'trial')} of the candidate {'is' if missing == 1 else 'are'} still to come"
        return f"{come}: {GO_ON}{lost}"
    tells = races.trials_to_tell(judged.bad, judged.trials, rules.max_race_rate, rules.confidence)
    seen = share(judged.bad / judged.trials)
    if tells is None:
        limit = share(rules.max_race_rate)
        return f"the rate seen, {seen}, is so near {limit} that {races.MOST_TRIALS} trials would not tell"
    count, answer = tells
    return (
        f"a candidate of the rate seen, {seen}, would {answer.value} a new gate with --trials {count} with a chance of "
        f"{share(races.WANTED)}"
    )


def _rate(side: Sequence[TrialRecord]) -> str:
    """``5 of 59 (8.47 %)``; empty without trials."""
    bad = sum(record.outcome in BAD for record in side)
    return f"{bad} of {len(side)} ({share(bad / len(side))})" if side else ""


def _most_often(gone: Sequence[TrialRecord]) -> str:
    shown = Counter(str(record.failures[0].signature) for record in gone if record.failures)
    shown.update("it hung" for record in gone if record.outcome is Outcome.HANG and not record.failures)
    shown.update("out of memory" for record in gone if record.outcome is Outcome.OOM and not record.failures)
    if not shown:
        return ""
    text = " ".join(shown.most_common(1)[0][0].split())
    return f"; most often {text if len(text) <= 100 else text[:97] + '...'}"

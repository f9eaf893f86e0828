"""From the state of a course to its finding: the sentence, the figures, and what each of them rests on. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bisect_env.bisection.confirming import disagreement
from bisect_env.bisection.counting import pooled
from bisect_env.bisection.coverage import coverage
from bisect_env.bisection.log import Candidates
from bisect_env.bisection.records import (
    BAD,
    GOOD,
    Answer,
    CommitRange,
    Confirmation,
    Eliminated,
    Finding,
    Levels,
    Specification,
    Stage,
    VersionRange,
)
from bisect_env.bisection.stages import Course
from bisect_env.search.records import Tally
from bisect_env.snapshots.factors import Factor, Kind, shown
from bisect_env.verdicts.records import percent
from bisect_env.verdicts.statistics import clopper_pearson, fisher_greater, upper_bound

SURE = 0.05
"""A factor with less probability left than this is said to be eliminated."""


def conclude(
    course: Course, bisection: str, seconds: float, why_open: str = "", lines: Sequence[Candidates] = ()
) -> Finding:
    """What is known of a course that has come to its end, or that ends here.

    Args:
        course: where it stands.
        bisection: its id.
        seconds: wall time of all of it.
        why_open: why it ends before its end (``the budget of 200 trials is spent``); empty when it does not.
        lines: the versions and commits that were looked up on the way.
    """
    answer = _answer(course, why_open)
    found = answer in (Answer.CULPRIT, Answer.PAIR, Answer.RANGE)
    return Finding(
        id=bisection,
        answer=answer,
        sentence=_sentence(course, answer, why_open),
        probability=course.probability if found else 0.0,
        factors=tuple(culprit.itself for culprit in course.culprits),
        suspects=course.suspects,
        versions=course.versions,
        commits=course.commits,
        signature=course.signature,
        confirmation=course.confirmation,
        eliminated=_eliminated(course),
        held=course.specification.difference.held,
        skipped=_skipped(course),
        other_signatures=_other_signatures(course),
        notes=(*course.specification.difference.notes, *course.notes, *_notes(course)),
        observations=tuple(course.observations),
        trials=sum(seen.counted + seen.other for seen in course.observations),
        builds=sum(seen.build_seconds is not None for seen in course.observations),
        seconds=seconds,
        second_versions=course.ranges[1] if len(course.ranges) > 1 else None,
        perhaps_with=course.blame.perhaps_with,
        tried=" ".join(filter(None, _tried(course, lines))),
        readings=tuple(each.reading for each in lines if each.reading is not None),
    )


def _tried(course: Course, lines: Sequence[Candidates]) -> Iterator[str]:
    """Of each line that was searched, how much of it was tried."""
    found: list[VersionRange | CommitRange] = [*course.ranges, *([course.commits] if course.commits else [])]
    for along in found:
        stage = Stage.COMMITS if isinstance(along, CommitRange) else Stage.VERSIONS
        line = next((each for each in lines if (each.stage, each.distribution) == (stage, along.distribution)), None)
        if line is None:
            continue
        own = [seen for seen in course.observations if seen.stage is stage]
        of = (along.distribution, line.names, along.last_good, along.first_bad, own)
        said = coverage(*of) if stage is Stage.VERSIONS else coverage(*of, "commits", _short)
        yield f"{along.distribution}: {said}" if said and len(found) > 1 else said


def _answer(course: Course, why_open: str) -> Answer:
    if course.ended is not None:
        return course.ended
    confirmed = course.confirmation is not None and course.confirmation.confirmed
    if why_open or not course.culprits or not confirmed:
        return Answer.INCONCLUSIVE
    if course.blame.one_of_several:
        return Answer.RANGE
    if course.blame.pair:
        return Answer.PAIR
    left = [found.candidates for found in course.ranges] + ([course.commits.candidates] if course.commits else [])
    return Answer.RANGE if any(len(candidates) > 1 for candidates in left) else Answer.CULPRIT


def _sentence(course: Course, answer: Answer, why_open: str) -> str:
    good, bad = (course.tally(end) for end in course.both_ends)
    if answer is Answer.NOT_REPRODUCED:
        bound = percent(upper_bound(bad.failures, bad.counted))
        return f"The bad end does not fail: {_of(bad)}, so that its failure rate is below {bound} at 95 %."
    if answer is Answer.GOOD_FAILS:
        hint = _exchanged(course, good, bad)
        return f"The good end fails as well: {_of(good)}, where the bad end fails in {_of(bad)}.{hint}"
    if answer is Answer.NONE and course.words:
        return course.words
    if answer is Answer.NONE:
        held = ", ".join(each.name for each in course.specification.difference.held)
        tail = f" What differs and cannot be changed here is held, not cleared: {held}." if held else ""
        return f"Nothing that differs and can be changed here makes the difference between the two ends.{tail}"
    if answer is Answer.MISFIT:
        return course.words
    if answer in (Answer.CULPRIT, Answer.PAIR, Answer.RANGE):
        return _blame(course)
    return _open(course, why_open)


def _exchanged(course: Course, good: Tally, bad: Tally) -> str:
    """What to do when it is the other end that fails."""
    if fisher_greater(good.failures, good.counted, bad.failures, bad.counted) > 1 - course.specification.confidence:
        return ""
    older = " With --find-fix, --bad is the older one." if course.specification.find_fix else ""
    return f" It is the good end that fails more often: exchange --good and --bad.{older}"


def _blame(course: Course) -> str:
    words = _culprit(course)
    confirmation = course.confirmation
    assert confirmation is not None
    bad, good = confirmation.bad, confirmation.good
    # A repair is what the good side has.
    repaired = course.specification.find_fix and (course.versions is not None or course.commits is not None)
    with_it, without = ("before it", "with it") if repaired else ("with it", "without")
    return (
        f"{words} ({_chance(course.probability)}): on fresh trials with nothing else changed {bad.k} of {bad.n} fail "
        f"{with_it}, and {good.k} of {good.n} {without}{_other_direction(confirmation, course.specification)}."
    )


def _other_direction(confirmation: Confirmation, specification: Specification) -> str:
    if confirmation.other is None:
        return ""
    good, bad = confirmation.other
    side = GOOD if confirmation.background == BAD else BAD
    said = f"with everything else at {side} {bad.k} of {bad.n}, and {good.k} of {good.n}"
    why = disagreement(confirmation, specification.confidence)
    return f". The two directions disagree: {said}; {why}" if why else f"; {said}"


def _culprit(course: Course) -> str:
    factors = [culprit.itself for culprit in course.culprits]
    if course.blame.one_of_several:
        return f"One of {_listed([factor.name for factor in factors], 'and')}, which cannot be told apart here"
    if course.blame.pair:
        changed = [culprit.change.name if culprit.change is not None else "" for culprit in course.culprits]
        walked = {each.distribution: _versions(each, course.specification.find_fix) for each in course.ranges}
        said = [walked.get(name, _change(factor)) for name, factor in zip(changed, factors, strict=True)]
        return f"{_listed(said, 'and')}: only both together fail"
    together = [_change(factor) for factor in course.blame.perhaps_with]
    return _alone(course, factors[0]) + (f", perhaps only together with {_listed(together, 'or')}" if together else "")


def _alone(course: Course, factor: Factor) -> str:
    if course.commits is not None:
        commits = course.commits
        short = _short(commits.first_bad)
        if len(commits.candidates) > 1:
            return f"{commits.distribution}, {len(commits.candidates)} commits up to {short} that cannot be told apart"
        return f"{commits.distribution} commit {short} ({commits.subject})"
    if course.versions is not None:
        return _versions(course.versions, course.specification.find_fix)
    return _change(factor)


def _versions(found: VersionRange, find_fix: bool) -> str:
    name = found.distribution
    if len(found.candidates) > 1:
        what = "was repaired" if find_fix else "broke"
        return f"{name} {what} between {found.last_good} and {found.first_bad}: those between cannot be told apart"
    if find_fix:
        return f"{name} {found.last_good} repaired it ({found.first_bad} is the last version that fails)"
    return f"{name} {found.first_bad} ({found.last_good} is the last good version)"


def _change(factor: Factor) -> str:
    name = "the compile cache" if factor.kind is Kind.CACHE else factor.name
    return f"{name} {shown(factor.good, factor.kind)} -> {shown(factor.bad, factor.kind)}"


def _open(course: Course, why_open: str) -> str:
    reason = why_open or course.words
    if course.culprits:
        confirmation = course.confirmation
        if confirmation is None:
            tail = "not confirmed on fresh trials" + (f": {reason}" if reason else "")
        else:
            bad, good = confirmation.bad, confirmation.good
            tail = (
                f"but fresh trials do not establish it: {bad.k} of {bad.n} fail with it, {good.k} of {good.n} without"
                + (f" ({reason})" if reason else "")
            )
        return f"Likely {_culprit(course)} ({_chance(course.probability)}), {tail}."
    likeliest = [f"{name} ({_chance(chance)})" for name, chance in course.suspects[:3]]
    known = f" Likeliest so far: {', '.join(likeliest)}." if likeliest else ""
    return f"Not decided: {reason.rstrip('.') or 'there is nothing left to ask'}.{known}"


def _eliminated(course: Course) -> tuple[Eliminated, ...]:
    found = []
    for name, left in course.cleared.items():
        if left <= SURE:
            found.append(Eliminated(name, left, _evidence(course, name)))
    return tuple(sorted(found, key=lambda each: (each.probability, each.factor)))


def _evidence(course: Course, name: str) -> str:
    """What speaks for a factor: where it is back at good the failure stays, and where it is at bad there is none."""
    without, within = Tally(), Tally()
    for seen in course.observations:
        level = _level(seen.point, name)
        tally = pooled([seen])
        if level == GOOD and seen.failures:
            without += tally
        elif level == BAD and not seen.failures:
            within += tally
    said = []
    if without.failures:
        said.append(f"{without.failures} of {without.counted} fail with it at its good level")
    if within.counted:
        said.append(f"0 of {within.counted} fail with it at its bad level")
    return "; ".join(said) or "little speaks for it"


def _level(point: Levels, name: str) -> str:
    for key, level in point:
        if key == name or key.endswith(f"/{name}"):
            return level
    return GOOD


def _skipped(course: Course) -> tuple[tuple[str, str], ...]:
    found = {point_text(point): reason for point, reason in course.unresolvable.items()}
    found |= {point_text(seen.point): seen.skipped for seen in course.observations if seen.skipped}
    return tuple(found.items())


def point_text(point: Levels) -> str:
    """A mix for people: ``torch=bad, triton=3.4.0``; the good end is named so."""
    return ", ".join(f"{name}={level}" for name, level in point) or "the good end"


def _other_signatures(course: Course) -> tuple[tuple[str, int], ...]:
    if course.signature is None:
        return ()
    shown: dict[str, int] = {}
    for seen in course.observations:
        for text, count in seen.signatures:
            if course.signature not in text:
                shown[text] = shown.get(text, 0) + count
    return tuple(sorted(shown.items(), key=lambda each: -each[1]))


def _notes(course: Course) -> tuple[str, ...]:
    found: list[str] = []
    confirmation = course.confirmation
    if confirmation is not None and not confirmation.confirmed:
        found += [text for text in [disagreement(confirmation, course.specification.confidence)] if text]
    if any(seen.off_pin for seen in course.observations):
        found.append(
            "some mixed environments break pins between distributions, and say so: what they show is a pointer, and no "
            "environment to use"
        )
    return tuple(found)


def _chance(value: float) -> str:
    """A probability as text, never as certain."""
    return "over 99 %" if value > 0.99 else percent(value)


def _of(tally: Tally) -> str:
    interval = clopper_pearson(tally.failures, tally.counted)
    return f"{tally.failures} of {tally.counted} trials ({percent(interval.low)} to {percent(interval.high)})"


def _listed(words: Sequence[str], last: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _short(commit: str) -> str:
    return commit.rpartition("@")[2].partition("#")[0][:12]

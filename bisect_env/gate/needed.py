"""What a gate takes and can tell, said before its first trial: numbers, boundaries, chances, time. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, inf

from bisect_env.gate import margin, races
from bisect_env.gate.records import Announcement, Chance, Question, Rules
from bisect_env.gate.throughput import FIRST_PAIRS, FIRST_SESSIONS, MOST_PAIRS
from bisect_env.verdicts.statistics import clean_trials_needed, upper_bound
from bisect_env.words import counted, lasting

SHARES = (0.0, 0.02, 0.2, 0.6, 1.0, 2.0, 4.0)
"""Rates whose chances are told, as parts of the limit."""
BOTH = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Rates of both sides whose chances are told with a margin."""
ROUNDS = 8
"""Pairs a session where nothing else is known: the shipped reproducer's rounds."""


def needed(
    rules: Rules,
    *,
    asked: Sequence[Question] = tuple(Question),
    rounds: int = ROUNDS,
    baseline_kept: int = 0,
    baseline_rate: float = 0.0,
    seconds_per_trial: float | None = None,
    seconds_per_pair: float | None = None,
    controls: int = 0,
    before: float = 0.0,
) -> Announcement:
    """What is announced, and what the gate then keeps to.

    Args:
        rules: what was asked for.
        asked: questions that the reproducer can answer here.
        rounds: pairs that one session has; 1 where throughput comes from the trials themselves.
        baseline_kept: threaded trials of the baseline that earlier gates have left, and that count.
        baseline_rate: the rate that these show, for the number of trials that a margin takes.
        seconds_per_trial: of the machine, for one trial (those side by side share it); None: not known.
        seconds_per_pair: the same for a pair of rounds, its part of the processes' start included. 0 where throughput
            comes from the trials themselves.
        controls: other trials, of both sides together: serial controls, profiled ones.
        before: seconds that resolving and building take.
    """
    clean = clean_trials_needed(rules.max_race_rate, rules.confidence)
    compared = rules.no_worse is not None
    blocks = margin.planned(rules, baseline_rate) if compared else rules.trials or clean
    baseline = max(blocks, baseline_kept)
    if rules.no_worse is not None:
        pair = margin.margin_design(blocks, baseline, rules.no_worse, rules.confidence)
        chances = tuple(margin.chance(pair, rate, rate) for rate in BOTH if rate + rules.no_worse <= 1)
        allowed, fails_at = pair.passes[0], 0
        said = list(_of_margin(rules, pair, chances, baseline_rate))
    else:
        design = races.race_design(rules)
        rates = [min(1.0, share * rules.max_race_rate) for share in SHARES]
        chances = tuple(races.chance(design, rate) for rate in dict.fromkeys(rates))
        allowed, fails_at = design.allowed, design.fails[-1] if design.fails[-1] <= blocks else 0
        said = list(_of_races(rules, design, chances))
    pairs = None
    if Question.THROUGHPUT in asked:
        sessions = max(FIRST_SESSIONS, ceil(FIRST_PAIRS / rounds))
        pairs = sessions * rounds if rules.pairs is None else ceil(rules.pairs / rounds) * rounds
        if seconds_per_pair == 0:
            pairs = max(pairs, blocks)  # Every block of trials is a pair, whether it was asked for or not.
    trials = blocks + max(0, blocks - baseline_kept) + controls
    time = _Time(rules, asked, trials, pairs, seconds_per_trial, seconds_per_pair, before)
    most = time.most_pairs
    if pairs is not None:
        said += _of_throughput(rules, pairs, most, "trials" if seconds_per_pair == 0 else "rounds")
    said += time.sentences(blocks)
    return Announcement(
        clean_trials=clean,
        blocks=blocks,
        chances=chances,
        pairs=pairs,
        seconds=time.total,
        within_budget=time.within,
        sentences=tuple(said),
        baseline_trials=baseline,
        allowed=allowed,
        fails_at=fails_at,
        most_pairs=None if pairs is None else most,
    )


class _Time:
    """What fits into the budget: races first, then throughput in what they leave."""

    def __init__(
        self,
        rules: Rules,
        asked: Sequence[Question],
        trials: int,
        pairs: int | None,
        a_trial: float | None,
        a_pair: float | None,
        before: float,
    ) -> None:
        self._rules, self._trials, self._before = rules, trials, before
        self._a_trial = a_trial
        self._a_pair = a_pair if pairs is not None else 0.0
        self.total: float | None = None
        if a_trial is not None and self._a_pair is not None:
            self.total = before + trials * a_trial + (pairs or 0) * self._a_pair
        budget = inf if rules.budget_seconds is None else rules.budget_seconds
        self._known = budget == inf or self.total is not None
        left = budget - before
        of_trials, of_pairs = trials * (a_trial or 0.0), (pairs or 0) * (self._a_pair or 0.0)
        one_block = 2 * (a_trial or 0.0)
        fits = set(asked) if self._known else set()
        if self._known and left < of_trials:
            fits.discard(Question.RACES)
        used = of_trials if Question.RACES in fits else one_block
        if self._known and left < used + of_pairs:
            fits.discard(Question.THROUGHPUT)
        if self._known and left < one_block:
            fits.clear()
        self.within = tuple(question for question in Question if question in fits)
        self._out = [question for question in Question if question in asked and question not in fits]
        self._left = left
        at_most = floor(max(0.0, left - used) / self._a_pair) if self._known and self._a_pair and left < inf else inf
        fixed = rules.pairs if rules.pairs is not None else MOST_PAIRS
        self.most_pairs = int(min(max(fixed, pairs or 0), at_most))

    def sentences(self, blocks: int) -> Iterator[str]:
        if self.total is None:
            yield "How long that takes is not known before the first trials have run."
        else:
            yield f"It takes about {lasting(self.total)}, {self._trials} trials in all."
        if self._rules.budget_seconds is None:
            return
        budget = lasting(self._rules.budget_seconds)
        if not self._known:
            yield f"What can be decided within {budget} is said as soon as a trial has told how long it takes."
            return
        if not self._out:
            yield f"All of it can be decided within {budget}."
            return
        can = f"only {_listed(self.within)}" if self.within else "nothing"
        yield f"Within {budget} {can} can be decided, not {_listed(self._out)}."
        if Question.RACES in self._out and self._a_trial:
            fit = max(0, min(blocks, int(self._left / (self._trials / blocks) / self._a_trial)))
            if fit:
                shown = upper_bound(0, fit, self._rules.confidence)
                yield (
                    f"Spent on races alone it is enough for {fit} of {blocks} threaded trials of the candidate: "
                    f"all clean, they would show a rate below {share(shown)} "
                    f"(--max-race-rate {ceil(shown * 1000) / 1000:g})."
                )


def _of_races(rules: Rules, design: races.RaceDesign, chances: Sequence[Chance]) -> Iterator[str]:
    limit, sure = share(rules.max_race_rate), share(rules.confidence)
    clean = clean_trials_needed(rules.max_race_rate, rules.confidence)
    yield (
        f"{clean} clean threaded trials of the candidate, each a process of its own, show a race rate below {limit} at "
        f"{sure}."
    )
    if design.allowed < 0:
        yield f"With --trials {design.trials} no candidate can pass the race question: {clean} are the fewest."
    elif design.trials != clean or design.allowed:
        yield f"Of {design.trials} trials {design.allowed} may go wrong."
    steps = [(n, k) for n, k in enumerate(design.fails, 1) if k <= n]
    last = {k: n for n, k in steps}
    told = ", ".join(f"{k} of the first {n}" for k, n in last.items())
    if told:
        yield f"It fails as soon as this many have gone wrong: {told}. In between it is inconclusive."
    if design.allowed >= 0:
        listed = ", ".join(f"{share(each.rate)} in {share(each.passes)} of gates" for each in chances)
        yield f"How often a candidate passes that races at a rate of: {listed}."


def _of_margin(
    rules: Rules, design: margin.MarginDesign, chances: Sequence[Chance], baseline_rate: float
) -> Iterator[str]:
    by, sure = share(design.margin), share(rules.confidence)
    yield (
        f"{design.candidate} threaded trials of the candidate and {design.baseline} of the baseline tell whether the "
        f"candidate's race rate exceeds the baseline's by less than {by}, or by more, at {sure}."
    )
    if design.passes[0] < 0:
        yield "With so few no candidate passes unless the baseline races."
    else:
        yield (
            f"Beside a clean baseline it passes with at most {design.passes[0]} bad ones and fails with "
            f"{design.fails[0]} or more."
        )
    listed = ", ".join(f"{share(each.rate)} in {share(each.passes)} of gates" for each in chances)
    yield f"How often an unchanged candidate passes where both race at a rate of: {listed}."
    if rules.trials is None and margin.margin_trials(design.margin, rules.confidence, baseline_rate) is None:
        yield (
            f"At the baseline's {share(baseline_rate)} no {races.MOST_TRIALS} trials a side would pass an unchanged "
            f"candidate in {share(races.WANTED)} of gates: ask for a wider margin."
        )


def _of_throughput(rules: Rules, pairs: int, most: int, of: str) -> Iterator[str]:
    asked = f"{rules.min_throughput:g} of the baseline's throughput at {share(rules.confidence)}"
    further = "" if rules.pairs is not None else f", and then as many as their noise asks for, at most {most}"
    yield f"At least {asked}: {counted(pairs, 'pair')} of {of}{further}."


def share(value: float) -> str:
    """A share in percent, with three figures: ``4.95 %``."""
    if 0 < value < 1e-4:
        return "under 0.01 %"
    return f"{100 * value:.3g} %" if 0 < value < 0.9995 else f"{100 * value:.0f} %"


def _listed(questions: Sequence[Question]) -> str:
    words = [question.value for question in questions]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

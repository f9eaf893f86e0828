"""What a gate measures, in which order, and until when: announced first, then trials in turn, then timed rounds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf

from bisect_env.engine.plan import seed_of
from bisect_env.engine.state import CellState
from bisect_env.errors import BadInput
from bisect_env.gate import deciding, earlier, pace, throughput
from bisect_env.gate.needed import needed
from bisect_env.gate.records import BASELINE, Announcement, Decision, Question
from bisect_env.gate.specification import Gate
from bisect_env.gate.turns import Place, Turns
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Reproducer
from bisect_env.verdicts.facts import BAD
from bisect_env.verdicts.hardware import apart, most, possible
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.records import Verdict
from bisect_env.verdicts.samples import by_side, counts
from bisect_env.verdicts.throughput import sessions
from bisect_env.verdicts.verdict import judge, without_environment
from bisect_env.words import counted

HOPELESS = (Outcome.IMPORT_FAILED, Outcome.SKIPPED)
"""Two trials of a side that all ended so, and none otherwise: the next one would as well."""

IN_VAIN = 3
"""Sessions without a usable pair after which no further one is tried."""


class Measured:
    """The trials of both sides, and what was said before them.

    Args:
        gate: what is asked.
        place: where.
        reproducer: ready to run.
        sides: baseline and candidate; :meth:`run` needs their environments.
    """

    def __init__(self, gate: Gate, place: Place, reproducer: Reproducer, sides: tuple[CellState, CellState]) -> None:
        self._gate, self._place, self._reproducer, self._sides = gate, place, reproducer, sides
        self._earlier: list[StoredTrial] = []
        """Of the baseline, from earlier gates."""
        condition = gate.asked.condition_good
        self._rounds = int(condition.get("rounds", 0))
        self._places = place.settings.executor.capacity(gate.asked.at_once)
        self._deadline, self._told = inf, False
        self.announcement: Announcement = needed(gate.rules)
        self.notes: list[str] = []

    @property
    def samples(self) -> tuple[list[StoredTrial], list[StoredTrial]]:
        """Of baseline and candidate; the baseline's of earlier gates, as far as they count, first."""
        baseline, candidate = (state.samples for state in self._sides)
        return earlier.together(self._earlier, baseline), list(candidate)

    def verdict(self, at: int) -> Verdict | None:
        """A side's verdict by itself; None while there is nothing to judge."""
        state = self._sides[at]
        if state.unavailable is not None:
            return without_environment(state.unavailable)
        return judge(self.samples[at], self._design) if self.samples[at] else None

    def announce(self, before: float) -> None:
        """Fix and tell what the gate takes, by the trials that the store has of the two sides.

        Args:
            before: seconds that went into everything but trials.
        """
        gate, known = self._gate, self._known()
        beside = [sample.record.outcome in BAD for sample in self._earlier]
        asked = pace.asked(self._reproducer.protocol, self._rounds, known)
        said = self.announcement
        self.announcement = needed(
            gate.rules,
            asked=asked,
            rounds=self._rounds or 1,
            baseline_kept=len(self._earlier),
            baseline_rate=sum(beside) / len(beside) if beside else 0.0,
            seconds_per_trial=pace.per_trial(known, self._places),
            seconds_per_pair=pace.per_pair(known) if self._rounds else 0.0,
            controls=2 * self._controls(known),
            before=before,
        )
        if self.announcement.sentences != said.sentences or not self._told:
            self._place.reporter.announced(self.announcement)
        self._told = True

    def run(self, run_id: str, baseline_runs: Sequence[str], began: float) -> None:
        """Announce, and run what is missing.

        Args:
            run_id: of the gate.
            baseline_runs: earlier gates whose trials of the baseline count.
            began: on the clock of ``time.monotonic``: when the gate began, as if it had never been interrupted.

        Raises:
            BadInput: the baseline's trials cannot run here.
            InfrastructureError, KeyboardInterrupt: in every case what had ended is in the store.
        """
        gate = self._gate
        budget = gate.rules.budget_seconds
        self._deadline = inf if budget is None else began + budget
        self._load_earlier(run_id, baseline_runs)
        turns = self._turns(run_id, self._controls(self._known()))
        turns.load()
        measured = sum(sample.record.seconds for state in self._sides for sample in state.samples)
        before = max(0.0, time.monotonic() - began - measured / self._places)
        self.announce(before)
        if not all(state.samples for state in self._sides):
            turns.run(1, self._enough)
            self.announce(before)
            turns = self._turns(run_id, self._controls(self._known()))
        blocks = self.announcement.blocks
        turns.run(blocks, self._enough, self._left_out(blocks))
        self._refuse()
        if not self._enough():
            turns.profile()
        if self._rounds:
            self._time(turns)
        else:
            self._go_on_for_throughput(turns)

    def _turns(self, run_id: str, controls: int) -> Turns:
        place, blocks = self._place, self.announcement.blocks
        return Turns(run_id, self._gate, self._reproducer, place, self._sides, blocks, controls, self._deadline)

    def _time(self, turns: Turns) -> None:
        """Rounds, session by session, until there are as many as their own noise asks for."""
        in_vain = 0
        while not self._enough() and (done := self._sessions()) < self._wanted() and in_vain < IN_VAIN:
            if not turns.session():
                self.notes.append("no rounds were timed: a process of each side do not fit on a GPU together")
                return
            in_vain = in_vain + 1 if self._sessions() == done else 0
        if in_vain == IN_VAIN:
            self.notes.append(f"rounds: {IN_VAIN} sessions one after the other in which a side did not come to them")

    def _go_on_for_throughput(self, turns: Turns) -> None:
        """Where throughput comes from the trials themselves, further blocks, until there are enough pairs of them.

        Not for a candidate that has not passed the race question: it cannot pass the gate any more, and a trial that
        goes wrong makes no pair.
        """
        if deciding.races_line(self._gate.rules, self.announcement, *self.samples).decision is not Decision.PASS:
            return
        while not self._enough() and 0 < (done := self._sessions()) < (wanted := self._wanted()):
            blocks = len(by_side(self._sides[1].samples).threads)
            self._place.reporter.note(
                f"throughput: {counted(wanted - done, 'more pair')} of trials, as their noise asks for"
            )
            turns.run(blocks + wanted - done, self._enough)
            if self._sessions() == done:
                return

    def _sessions(self) -> int:
        return len(sessions(by_side(self._sides[1].samples), by_side(self._sides[0].samples)))

    def _wanted(self) -> int:
        pairs = sessions(by_side(self._sides[1].samples), by_side(self._sides[0].samples))
        most = throughput.MOST_PAIRS if self.announcement.most_pairs is None else self.announcement.most_pairs
        return throughput.sessions_wanted(self._gate.rules, pairs, self._rounds or 1, most)

    def _enough(self) -> bool:
        """Whether no further trial is to be begun: the time is over, the fail is certain, or a side cannot be tried."""
        if time.monotonic() >= self._deadline or any(_hopeless(state) for state in self._sides):
            return True
        return deciding.certain_fail(self._gate.rules, self.announcement, *self.samples)

    def _refuse(self) -> None:
        baseline, candidate = (_hopeless(state) for state in self._sides)
        if baseline:
            wanted = "a baseline in which the reproducer runs; by hand, `bisect-env show` has a trial's output"
            raise BadInput(
                self._gate.asked.good.origin, "", f"the baseline's trials cannot run here: {baseline}", wanted
            )
        if candidate:
            self.notes.append(f"the candidate's trials cannot run here: {candidate}")

    def _load_earlier(self, run_id: str, runs: Sequence[str]) -> None:
        """Trials of the baseline that count, and with them what both sides are measured on: what this gate has begun
        with, else what earlier ones used, if that can be had here.
        """
        state, settings = self._sides[0], self._place.settings
        assert state.address is not None
        stored = self._place.store.trials(state.cell.key, state.address, self._reproducer.content_hash)
        here = settings.executor.available(state.cell, settings.gpus).hardware
        found = [sample for sample in earlier.countable(stored, set(runs)) if possible(sample.record, here)]
        judged = most([sample for sample in self._known() if sample.run_id == run_id]) or most(found)
        self._earlier = list(apart(found, judged)[0])
        for side in self._sides:
            side.hardware = judged
        if self._earlier:
            self.notes.append(
                f"{counted(len(self._earlier), 'trial')} of the {BASELINE} in earlier gates "
                f"count{'s' if len(self._earlier) == 1 else ''} for the race question"
            )

    def _left_out(self, blocks: int) -> frozenset[int]:
        """Blocks without a trial of the baseline: earlier gates have run it, and its own would time nothing."""
        by_trials = not self._rounds and Question.THROUGHPUT in pace.asked(False, 0, self._known())
        if by_trials or not self._earlier:
            return frozenset()
        seeds = [seed_of(self._gate.asked.seed, self._sides[0].cell, block) for block in range(blocks)]
        return earlier.left_out(self._earlier, seeds, max(1, self._controls(self._known())))

    def _controls(self, known: Sequence[StoredTrial]) -> int:
        """Controls a side: none for a command that reports nothing that they could be compared in."""
        compared = {Question.ATTENTION, Question.NUMBERS}
        reports = compared & set(pace.asked(self._reproducer.protocol, self._rounds, known))
        return min(self._gate.controls, self.announcement.blocks) if reports else 0

    def _known(self) -> list[StoredTrial]:
        """Trials of both sides, of any run that the store has."""
        found = []
        for state in self._sides:
            if state.address is not None:
                store = self._place.store
                found += store.trials(state.cell.key, state.address, self._reproducer.content_hash)
        return found

    @property
    def _design(self) -> Design:
        rules, blocks = self._gate.rules, max(1, self.announcement.blocks)
        return Design(
            blocks, min(self._gate.controls, blocks), max_race_rate=rules.max_race_rate, solo=0, stop_early=False
        )


def _hopeless(state: CellState) -> str:
    """Why no trial of a side can run, in its first trial's words; empty where one can, or too few have been tried."""
    found = [sample.record for sample in state.samples if counts(sample.record)]
    outcomes = {record.outcome for record in found}
    if len(found) < 2 or len(outcomes) > 1 or not outcomes <= set(HOPELESS):
        return ""
    shown = str(found[0].failures[0].signature) if found[0].failures else found[0].message
    return f"{found[0].outcome}: {shown}".removesuffix(": ")

"""Witnessed trials as hypotheses are held against them: a trial, its account, what was open at its failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bisect_env.explanation.records import Account, Action, Collision, Consequence, Mechanism, State, Window
from bisect_env.explanation.windows import holds
from bisect_env.trials.records import TrialRecord


@dataclass(frozen=True)
class Case:
    """One witnessed trial."""

    record: TrialRecord
    account: Account

    @property
    def primary(self) -> Collision | None:
        """What explains its outcome; None where nothing failed and no call ran eagerly."""
        return self.account.collisions[0] if self.account.collisions else None

    @property
    def moment(self) -> float:
        """When its victim met what decided, by the witness's clock."""
        assert self.primary is not None, "only of a trial that went wrong"
        return self.primary.met.t if self.primary.met is not None else self.primary.at

    def foreign(self, state: State) -> Window | None:
        """A window of another thread than the victim that was open at that moment.

        Of metrics one of the same object as the victim's: threads may each have their own.
        """
        assert self.primary is not None, "only of a trial that went wrong"
        mine = {self.primary.victim, self.primary.met.thread if self.primary.met is not None else ""}
        every = [window for window in self.account.windows if window.state is state]
        others = [window for window in every if window.thread not in mine]
        if state is State.METRICS:
            shared = {window.opened.value for window in every if window.thread in mine}
            others = [window for window in others if window.opened.value in shared]
        return next((window for window in others if holds(window, self.moment)), None)

    def own(self, state: State) -> Window | None:
        """A window of the thread itself that met it."""
        assert self.primary is not None, "only of a trial that went wrong"
        reader = self.primary.met.thread if self.primary.met is not None else self.primary.victim
        windows = (w for w in self.account.windows if w.state is state and w.thread == reader)
        return next((window for window in windows if holds(window, self.moment)), None)

    def watched(self, state: State) -> bool:
        """Whether the witness watched a state here."""
        log = self.account.log
        return log is not None and (
            any(each.state is state for each in log.watched) or any(event.state is state for event in log.events)
        )

    def why_not(self, state: State) -> str:
        """Why it could not be watched, in the witness's words; empty where nothing is said."""
        log = self.account.log
        return next((each.why for each in log.unknown if each.state is state), "") if log is not None else ""

    def happened(self, state: State, *actions: Action) -> int:
        """How often something happened, counted without an event of its own included."""
        log = self.account.log
        if log is None:
            return 0
        events = sum(event.state is state and event.action in actions for event in log.events)
        return events + sum(n for _, each, action, n in log.counts if each is state and action in actions)


@dataclass(frozen=True)
class Cases:
    """All witnessed trials of a cell."""

    every: tuple[Case, ...]

    @classmethod
    def of(cls, records: Sequence[TrialRecord], accounts: Sequence[Account]) -> Cases:
        """Of trials and their accounts, in the same order."""
        return cls(tuple(Case(record, account) for record, account in zip(records, accounts, strict=True)))

    @property
    def logged(self) -> tuple[Case, ...]:
        """Those whose witness wrote something."""
        return tuple(case for case in self.every if case.account.log is not None)

    @property
    def bad(self) -> tuple[Case, ...]:
        """Those that went wrong under a witness that wrote something."""
        return tuple(case for case in self.logged if case.primary is not None)

    @property
    def what(self) -> str:
        """What a bad trial is here: ``failures``, ``hangs``, ``trials with eager calls``, or all of them."""
        kinds = {case.primary.consequence for case in self.bad if case.primary is not None}
        if kinds == {Consequence.FAILED}:
            return "failures"
        if kinds == {Consequence.HUNG}:
            return "hangs"
        return "trials with eager calls" if kinds == {Consequence.EAGER} else "trials that went wrong"

    def numbered(self, number: int) -> str:
        """So many of what bad trials are here: ``1 failure``, ``2 trials with eager calls``."""
        return f"{number} {self.what if number != 1 else re.sub('s( |$)', lambda end: end[1], self.what, count=1)}"

    def explained_by(self, *mechanisms: Mechanism) -> tuple[Case, ...]:
        """The bad trials whose primary collision is one of these."""
        return tuple(case for case in self.bad if case.primary is not None and case.primary.mechanism in mechanisms)

    def anywhere(self, *mechanisms: Mechanism) -> int:
        """Collisions of these mechanisms in all trials, equal ones with their number."""
        return sum(
            collision.count
            for case in self.logged
            for collision in case.account.collisions
            if collision.mechanism in mechanisms
        )

    def total(self, count: Callable[[Case], int], cases: Iterable[Case] | None = None) -> int:
        """A sum over trials: all with a log, or these."""
        return sum(count(case) for case in (self.logged if cases is None else cases))

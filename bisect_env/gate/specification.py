"""What a gate is asked: two snapshots, how trials run in them, and the rules that were fixed before the run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

from bisect_env.bisection.records import Specification
from bisect_env.gate.records import Rules
from bisect_env.gate.sides import cells
from bisect_env.matrix.cells import digest
from bisect_env.snapshots.records import Snapshot

CONTROLS = 6
"""Serial controls a side: what attention and numbers are compared with."""


@dataclass(frozen=True)
class Gate:
    """A gate as it was asked for. ``asked.good`` is the baseline and ``asked.bad`` the candidate.

    How trials run, where packages come from, limits and seed are those of a bisection, whose command line a gate that
    fails offers; its search is not used.
    """

    asked: Specification
    rules: Rules = field(default_factory=Rules)
    controls: int = CONTROLS
    baseline_store: bool = False
    """Trials of the baseline in earlier gates count for the race question."""
    sources: tuple[str, str] = ("", "")
    """The two as they were written on the command line, for another command; empty: not to be read a second time."""
    words: tuple[str, ...] = ()
    """The options of a bisection that asks the same of the two sides, the reproducer's command included."""

    @property
    def sides(self) -> tuple[Snapshot, Snapshot]:
        """Baseline and candidate."""
        return self.asked.good, self.asked.bad

    def question(self) -> str:
        """Identifies all that matters to what is measured and decided: how the snapshots were told is no part of it.

        With another budget it is the same gate: to allow more is to go on.
        """
        asked, rules = self.asked, replace(self.rules, budget_seconds=None)
        trials = (asked.seed, asked.at_once, asdict(asked.limits), asked.pass_env, self.controls, self.baseline_store)
        return digest([[cell.key for cell in cells(asked)], asdict(rules), trials], 32)

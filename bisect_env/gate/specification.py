"""What a gate is asked: two snapshots, how trials run in them, and the rules that were fixed before the run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bisect_env.bisection.records import Specification
from bisect_env.gate.records import Rules
from bisect_env.snapshots.records import Snapshot
from bisect_env.store.codec import encode

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
        """All that matters to what is measured and decided, as text and without credentials.

        With another budget it is the same gate: to allow more is to go on.
        """
        plain = replace(self, asked=replace(self.asked, good=_bare(self.asked.good), bad=_bare(self.asked.bad)))
        return encode(replace(plain, rules=replace(self.rules, budget_seconds=None), sources=("", ""), words=()))


def _bare(snapshot: Snapshot) -> Snapshot:
    """Without what a host may say otherwise a minute later, and that no trial depends on."""
    return replace(snapshot, cache=None, missing=(), unread=())

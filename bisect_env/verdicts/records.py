"""The verdict of a cell, with the figures that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bisect_env.trials.records import Signature


def percent(share: float) -> str:
    """A share as text: ``31 %``, and ``0.4 %`` below one."""
    value = 100 * share
    return f"{value:.1f} %" if 0.05 <= value < 0.95 else f"{value:.0f} %"


PROCESS = "process"
"""Stands for the thread where only the process's memory says that attention ran unfused."""


class Headline(StrEnum):
    """The first of these that is established is the cell's headline."""

    UNRESOLVABLE = "UNRESOLVABLE"
    BUILD_FAILED = "BUILD-FAILED"
    IMPORT_FAILED = "IMPORT-FAILED"
    RACE = "RACE"
    HANG = "HANG"
    BROKEN = "BROKEN"
    OOM = "OOM"
    WRONG = "WRONG"
    DENSE = "DENSE"
    SLOW = "SLOW"
    UNSURE = "UNSURE"
    FULL = "FULL"
    SKIPPED = "SKIPPED"
    """The reproducer cannot run this condition here."""
    NOT_RUN = "NOT RUN"


@dataclass(frozen=True)
class Interval:
    """A proportion k/n with its two-sided Clopper-Pearson interval."""

    k: int
    n: int
    low: float
    high: float
    confidence: float = 0.95


@dataclass(frozen=True)
class Ends:
    """In how many trials of a side something went wrong, by how it ended."""

    failed: int = 0
    """Raised, crashed, or failed to import where others did import."""
    hung: int = 0


@dataclass(frozen=True)
class SignatureCount:
    """In how many trials of each side a signature was seen (in any thread)."""

    signature: Signature
    threads: int
    serial: int
    solo: int


@dataclass(frozen=True)
class DenseShare:
    """Attention of one thread that ran unfused, summed over the trials."""

    thread: str
    share: float
    calls: int
    signs: tuple[tuple[str, float], ...]
    """Share by each sign that was available."""


@dataclass(frozen=True)
class Throughput:
    """Tokens a second over timed rounds; where there are none, over the threaded trials that did not fail."""

    median: float
    low: float
    high: float
    """Quartiles."""
    n: int
    """Rounds, or trials."""
    ratio: float | None = None
    """To the reference cell's."""
    ratio_low: float | None = None
    ratio_high: float | None = None
    """95 % interval of the ratio, paired by round or by block."""
    warmed: bool = False
    """True when it comes from the warmed-up condition because every trial of this one failed, or from rounds that were
    reached by a single-threaded warm-up because the cell failed at its start."""
    sessions: int = 0
    """Sessions of timed rounds that it comes from; 0: from trials."""


@dataclass(frozen=True)
class Verdict:
    """A cell's verdict. ``headline`` summarises; every measured fact stays beside it."""

    headline: Headline
    doubtful: bool = False
    """True for ``DENSE?``: one sign only."""
    threads: Interval | None = None
    """Threaded trials that failed or hung, the control's likewise. Under OOM those that ran out of memory, under WRONG
    those with wrong numbers; under the other headlines any that failed, hung or ran out of memory."""
    serial: Interval | None = None
    solo: Interval | None = None
    p_value: float | None = None
    """One-sided exact test of threads against the serial control."""
    bound: float | None = None
    """One-sided 95 % upper bound on the rate of threaded trials that fail, hang or run out of memory (0/20: 0.14)."""
    signatures: tuple[SignatureCount, ...] = ()
    """Most frequent first."""
    dense: tuple[DenseShare, ...] = ()
    throughput: Throughput | None = None
    peak_bytes: int | None = None
    exposures: int | None = None
    """Calls made while another thread compiled, over the threaded trials."""
    stopped_early: bool = False
    missing: int = 0
    """Further clean (or, for UNSURE, further) trials that would settle it."""
    reason: str = ""
    """The tool's own message, or one sentence on what the headline rests on."""
    infra: int = 0
    """Trials not counted."""
    marks: tuple[str, ...] = ()
    """What the table must say beside the cell."""
    dense_controls: tuple[DenseShare, ...] = ()
    """As ``dense``, over the serial and solo controls."""
    stopped_at: int | None = None
    """The fixed look, in blocks, at which RACE, HANG, BROKEN or OOM was certain; None for the others."""

    exposures_per_trial: float | None = None
    """Over the threaded trials that counted them."""
    exposures_per_failure: float | None = None
    """Exposures of all threaded trials for each that failed; None where none failed."""
    utilisation: tuple[tuple[str, float], ...] = ()
    """``attention`` and ``step``: share of the measured matrix-product ceiling, median over the ROUNDS trials."""
    ends_threads: Ends = Ends()
    """How the threaded trials went wrong that ``threads`` counts together."""
    ends_serial: Ends = Ends()
    ends_solo: Ends = Ends()

    @property
    def text(self) -> str:
        """The headline as the table shows it, ``RACE 5/6``, ``RACE 12/12, 4 hung``, ``DENSE? 31 %``, ``FULL``."""
        head = self.headline.value
        if self.headline in (Headline.RACE, Headline.HANG, Headline.BROKEN) and self.threads:
            return f"{head} {self.threads.k}/{self.threads.n}{self._others}"
        if self.headline in (Headline.OOM, Headline.WRONG):
            return f"{head} {self.threads.k}/{self.threads.n}" if self.threads else head
        if self.headline is Headline.DENSE:
            shares = [item.share for item in self.dense if item.thread != PROCESS]
            worst = max(shares, default=0.0)
            # Of which share it was, a peak of memory alone says nothing.
            shown = f" {percent(worst)}" if len(shares) == len(self.dense) else ""
            return f"{head}{'?' if self.doubtful else ''}{shown}"
        if self.headline is Headline.SLOW and self.throughput and self.throughput.ratio is not None:
            return f"{head} {self.throughput.ratio:.2f}"
        return head

    @property
    def _others(self) -> str:
        """Those of the threaded trials that went wrong in the other way than the headline's name says."""
        failed, hung = self.ends_threads.failed, self.ends_threads.hung
        if not (failed and hung):
            return ""
        return f", {failed} failed" if self.headline is Headline.HANG else f", {hung} hung"

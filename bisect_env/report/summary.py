"""The last line: what to use, what to avoid, what is not yet known."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.report.rows import Row, label, varying
from bisect_env.verdicts.records import Headline, percent
from bisect_env.verdicts.statistics import clean_trials_needed

MOST = 4
"""Cells named in each part; the table has the rest."""
AVOIDED = (
    Headline.RACE,
    Headline.HANG,
    Headline.BROKEN,
    Headline.OOM,
    Headline.WRONG,
    Headline.SLOW,
)
IMPOSSIBLE = (Headline.UNRESOLVABLE, Headline.BUILD_FAILED, Headline.IMPORT_FAILED, Headline.SKIPPED)


def sentence(rows: Sequence[Row], max_race_rate: float) -> str:
    """One line on all cells: the :func:`sentences` one after the other."""
    return " ".join(sentences(rows, max_race_rate))


def sentences(rows: Sequence[Row], max_race_rate: float) -> list[str]:
    """What to use, what to avoid, what is not yet known: a sentence each, where there is something to say.

    A cell is recommended only when the upper bound of its own race rate is at most ``max_race_rate``. They are listed
    in the table's order and none is called the best: the luckiest of many cells is not a finding.
    """
    if not rows:
        return ["No cell, so nothing to say."]
    names = list(dict(pair for row in rows for pair in row.cell.levels))
    shown = varying(rows, names)
    use, avoid, dense, unknown, impossible, not_run = [], [], [], [], [], []
    for row in rows:
        name, verdict = label(row, shown), row.verdict
        if recommended(row, max_race_rate):
            use.append(name)
        elif verdict.headline in AVOIDED:
            avoid.append(f"{name} ({verdict.text})")
        elif verdict.headline is Headline.DENSE:
            dense.append(f"{name} ({verdict.text})")
        elif verdict.headline in IMPOSSIBLE:
            impossible.append(f"{name} ({verdict.text})")
        elif verdict.headline is Headline.NOT_RUN:
            not_run.append(name)
        else:
            unknown.append(f"{name} ({_missing(row)})")
    parts = []
    if use:
        alone = ", each by itself" if len(use) > 1 else ""
        parts.append(f"Use {_listed(use)}: race rate below {percent(max_race_rate)} at 95 %{alone}.")
    else:
        parts.append(
            f"No cell can be recommended yet: that takes {clean_trials_needed(max_race_rate)} clean trials, which show "
            f"a race rate below {percent(max_race_rate)} (--trials, --max-race-rate)."
        )
    if avoid:
        parts.append(f"Avoid {_listed(avoid)}.")
    if dense:
        parts.append(f"Dense, which raises no error and is slow: {_listed(dense)}.")
    if unknown:
        parts.append(f"Not yet known: {_listed(unknown)}.")
    if not_run:
        parts.append(f"Not run: {_listed(not_run)}.")
    if impossible:
        parts.append(f"Cannot run: {_listed(impossible)}.")
    return parts


def recommended(row: Row, max_race_rate: float) -> bool:
    """Whether the cell is at full throughput and its race rate is shown to be at most ``max_race_rate``.

    Trials in which no call met another thread's compile do not show that.
    """
    verdict = row.verdict
    exposed = verdict.exposures is None or verdict.exposures > 0
    return (
        verdict.headline is Headline.FULL and exposed and verdict.bound is not None and verdict.bound <= max_race_rate
    )


def _missing(row: Row) -> str:
    verdict = row.verdict
    if verdict.headline is not Headline.FULL or verdict.threads is None or verdict.bound is None:
        trials = "trial" if verdict.missing == 1 else "trials"
        more = f", {verdict.missing} more {trials} needed" if verdict.missing else ""
        return verdict.text + more
    text = f"{verdict.text} {verdict.threads.k}/{verdict.threads.n}, below {percent(verdict.bound)}"
    if verdict.missing:
        return f"{text}; {verdict.missing} clean trials missing"
    return f"{text}; no call met another thread's compile"


def _listed(items: Sequence[str]) -> str:
    more = len(items) - MOST
    return ", ".join(items[:MOST]) + (f" and {more} more" if more > 0 else "")

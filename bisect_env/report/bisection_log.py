"""The log of a bisection as text: what was asked, every batch, and where the file is that ``replay`` takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bisect_env.bisection.log import Answer, Candidates, Checked, History, Told
from bisect_env.report.bisection import batch_line
from bisect_env.report.bisection_words import change, point
from bisect_env.report.live import STAGES
from bisect_env.report.rows import cut
from bisect_env.words import counted, lasting


def describe(history: History, path: Path) -> str:
    """The whole log, as it counts now: what was undone is left out."""
    header = history.header
    asked = header.specification
    lines = [
        f"bisection {header.id}, begun by bisect-env {header.version}",
        f"good: {asked.good.origin} ({asked.good.form}); bad: {asked.bad.origin} ({asked.bad.form})",
        f"suspects: {'; '.join(f'{factor.name} {change(factor)}' for factor in header.factors) or 'none'}",
        f"seed {asked.seed}, confidence {asked.confidence:g}, reproducer {asked.reproducer.name}",
        "",
    ]
    names = [factor.name for factor in header.factors]
    for answer in history.answers:
        lines += _entry(answer, names)
    told = [seen for answer in history.answers if isinstance(answer, Told) for seen in answer.observations]
    trials = sum(seen.counted + seen.other for seen in told)
    lines += ["", f"{counted(len(told), 'batch', 'batches')}, {counted(trials, 'trial')}, {lasting(history.seconds)}"]
    lines.append(f"file, for bisect-env bisect replay: {path}")
    return "\n".join(lines)


def _entry(answer: Answer, names: Sequence[str]) -> list[str]:
    if isinstance(answer, Told):
        lines = []
        for seen in answer.observations:
            lines.append(batch_line(seen, names))
            lines += [f"      {cut(text, 100)}: {counted(count, 'trial')}" for text, count in seen.signatures]
            lines += [f"      trials {', '.join(seen.trials)}"] if seen.trials else []
        return lines
    if isinstance(answer, Checked):
        impossible = [f"      {point(each.point, names)}: {cut(each.reason, 200)}" for each in answer.unresolvable]
        resolved = counted(answer.mixes, "mixed environment")
        return [f"      {answer.stage:8}  {resolved} resolved, {len(impossible)} impossible", *impossible]
    assert isinstance(answer, Candidates)
    names = answer.names if len(answer.names) < 8 else (*answer.names[:3], "...", *answer.names[-3:])
    return [f"      {answer.stage:8}  {answer.distribution}: {len(answer.names)} from good to bad: {', '.join(names)}"]


def short(history: History, path: Path) -> str:
    """A bisection on a line, where several are listed."""
    asked = history.header.specification
    stages = [answer.observations[-1].stage for answer in history.answers if isinstance(answer, Told)]
    at = STAGES[stages[-1]] if stages else "nothing tried yet"
    return f"{history.header.id}  {asked.good.origin} -> {asked.bad.origin}: {at}"

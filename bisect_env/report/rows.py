"""What every report is made from, and how cells and figures are written in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bisect_env.environments.records import Lock
from bisect_env.matrix.cells import Cell
from bisect_env.trials.records import Signature
from bisect_env.verdicts.attention import DENSE_FROM, KERNELS
from bisect_env.verdicts.hardware import Hardware, most
from bisect_env.verdicts.records import PROCESS, Headline, Interval, Throughput, Verdict, percent
from bisect_env.verdicts.samples import Sample
from bisect_env.words import counted


class Row(Protocol):
    """A cell with its verdict and the evidence behind it: a result of the engine."""

    @property
    def cell(self) -> Cell:
        """The cell."""

    @property
    def verdict(self) -> Verdict:
        """What its trials show."""

    @property
    def lock(self) -> Lock | None:
        """None where there is none."""

    @property
    def samples(self) -> Sequence[Sample]:
        """All its trials on one GPU model and driver, INFRA included."""

    @property
    def elsewhere(self) -> Sequence[Sample]:
        """Its trials on others, which are not counted."""


ID_LENGTH = 8
"""Characters of a cell's key that the table shows, and that ``bisect-env show`` takes."""


def short_id(cell: Cell) -> str:
    """The cell's id in tables."""
    return cell.key[:ID_LENGTH]


def measured_on(row: Row) -> Hardware | None:
    """What its trials ran on; None where there is none."""
    return most(row.samples)


def together(rows: Sequence[Row]) -> list[Row]:
    """Rows that were measured on one GPU model and driver stand together, the others as they come, unmeasured last."""
    groups: dict[Hardware | None, list[Row]] = {}
    for row in rows:
        groups.setdefault(measured_on(row), []).append(row)
    if sum(found is not None and bool(found.gpus) for found in groups) < 2:
        return list(rows)
    unmeasured = groups.pop(None, [])
    return [row for group in (*groups.values(), unmeasured) for row in group]


def level(row: Row, axis: str) -> str:
    """The cell's level of an axis; empty where an ``include`` gave it none."""
    return dict(row.cell.levels).get(axis, "")


def varying(rows: Sequence[Row], axes: Sequence[str]) -> tuple[str, ...]:
    """The axes in which the rows differ; all of them when they differ in none."""
    return tuple(axis for axis in axes if len({level(row, axis) for row in rows}) > 1) or tuple(axes)


def label(row: Row, axes: Sequence[str]) -> str:
    """A cell in a sentence, by those axes: ``torch 2.14.1 transformers 4.52.4``."""
    return " ".join(f"{axis} {level(row, axis)}" for axis in axes if level(row, axis)) or row.cell.id


def interval(found: Interval | None) -> str:
    """``5/6 (36-100 %)``, empty for None."""
    if found is None:
        return ""
    return f"{found.k}/{found.n} ({100 * found.low:.0f}-{percent(found.high)})"


def tokens(rate: float) -> str:
    """Tokens a second in a narrow column: ``950``, ``21.5k``, ``480k``, ``1.2M``."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.1f}{unit}" if rate < 100 * size else f"{rate / size:.0f}{unit}"
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"


def speed(found: Throughput | None) -> str:
    """Its median, empty for None."""
    return tokens(found.median) if found is not None else ""


def ratio(found: Throughput | None, spread: bool = False) -> str:
    """Its ratio to the cell that it was compared with, empty where there is none; with ``spread`` its 95 % interval."""
    if found is None or found.ratio is None:
        return ""
    known = spread and found.ratio_low is not None and found.ratio_high is not None
    return f"{found.ratio:.2f}" + (f" ({found.ratio_low:.2f}-{found.ratio_high:.2f})" if known else "")


def below(bound: float | None) -> str:
    """An upper bound, ``<39 %``."""
    return "" if bound is None else f"<{percent(bound)}"


def gigabytes(size: int | None) -> str:
    """``5.8 GB`` (1 GB is 10**9 bytes), empty for None."""
    return "" if size is None else f"{size / 1e9:.1f} GB"


def is_dense(verdict: Verdict) -> bool:
    """Whether attention ran unfused in some thread, whatever the headline is."""
    return any(item.share >= DENSE_FROM for item in verdict.dense)


def path(verdict: Verdict, share: bool = False, brief: bool = False) -> str:
    """How attention ran, and how many independent signs say so: ``fused (2 signs)``, ``dense 31 % (1 sign)``.

    Of the thread with the largest unfused share; for fused, the signs that every thread had; ``unknown`` without one.

    Args:
        verdict: of the cell.
        share: False leaves the share out where the headline shows it.
        brief: the signs' number alone, ``fused (2)``.
    """
    if not verdict.dense:
        return ""
    if not is_dense(verdict):
        common = set.intersection(*({sign for sign, _ in item.signs} for item in verdict.dense))
        return f"fused ({_signs(len(common), brief)})" if common else "unknown"
    worst = max(verdict.dense, key=lambda item: item.share)
    signs = {sign for sign, found in worst.signs if found >= DENSE_FROM}
    # As the verdict has it: profiled trials are others, in which another thread may have been the dense one.
    signs |= {KERNELS} & {sign for item in verdict.dense for sign, found in item.signs if found >= DENSE_FROM}
    told = worst.thread != PROCESS and (share or verdict.headline is not Headline.DENSE)
    return f"dense{f' {percent(worst.share)}' if told else ''} ({_signs(len(signs), brief)})"


def _signs(count: int, brief: bool) -> str:
    if brief:
        return str(count)
    return counted(count, "sign")


def fault(signature: Signature) -> str:
    """A signature on one line, with the module that raised it."""
    text = " ".join(str(signature).split())
    return f"{text} ({signature.module})" if signature.module else text


def cut(text: str, width: int) -> str:
    """``text`` on one line, at most ``width`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3].rstrip() + "..."

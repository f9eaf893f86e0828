"""What the torch of each cell shares between threads, as a table made before anything is built."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.inspection.facts import Fact, Facts
from bisect_env.inspection.inspected import Cost
from bisect_env.inspection.records import Scope
from bisect_env.report.grid import Column, draw
from bisect_env.report.inspection import cost
from bisect_env.report.pieces import Points, Section, Words, text

SHARED = {
    Scope.PROCESS: "process-wide",
    Scope.THREAD: "per thread",
    Scope.CONTEXT: "per thread (context)",
    Scope.ABSENT: "not there",
}
UNKNOWN = "unknown"
LEGEND = (
    "tracing flag, process-wide: while one thread traces, a call in another may be taken for a traced one. "
    "is_compiling, process-wide in compiles: it may be true in a thread that compiles nothing. dynamo config, per "
    "thread: a value set in one thread is the default again in a new one."
)


def table(cells: Sequence[tuple[str, str, Facts]], spent: Cost, width: int) -> str:
    """The facts by cell, as read from the source: no cell was built and none was run.

    Args:
        cells: id, the torch that the cell would get, and its facts.
        spent: what reading them cost.
        width: characters a line.
    """
    numbers: dict[str, int] = {}
    for _, _, found in cells:
        for fact in (found.tracing, found.compiling, found.config):
            if fact.scope is None:
                numbers.setdefault(fact.why, len(numbers) + 1)
    grid = draw(
        [
            Column("cell", tuple(cell for cell, _, _ in cells)),
            Column("torch", tuple(torch for _, torch, _ in cells)),
            Column("tracing flag", tuple(_word(found.tracing, numbers) for _, _, found in cells)),
            Column("is_compiling", tuple(_compiling(found.compiling, numbers) for _, _, found in cells)),
            Column("dynamo config", tuple(_word(found.config, numbers) for _, _, found in cells)),
        ],
        "simple",
    )
    unknown = tuple(f"[{number}] {why}" for why, number in numbers.items())
    parts = (Points(unknown), Words(LEGEND), Words(f"Read: {cost(spent)}"))
    return f"{grid}\n\n{text([Section('', parts)], width)}"


def _word(fact: Fact, numbers: dict[str, int]) -> str:
    return f"{UNKNOWN} [{numbers[fact.why]}]" if fact.scope is None else SHARED[fact.scope]


def _compiling(fact: Fact, numbers: dict[str, int]) -> str:
    if fact.held is None:
        return _word(fact, numbers)
    return f"{SHARED[Scope.PROCESS]} in compiles" if fact.held else "not set by compiles"

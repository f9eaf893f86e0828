"""Everything known about a cell or a trial, as text to read."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from bisect_env.environments.records import Environment, Lock
from bisect_env.report import evidence
from bisect_env.report.rows import Row, short_id, tokens
from bisect_env.store.runs import StoredRun
from bisect_env.trials.records import Failure, TrialRecord
from bisect_env.verdicts.records import percent
from bisect_env.verdicts.samples import Sample

REPORTED = {
    "bisection": "`bisect-env bisect resume {0}` prints it again, `bisect-env bisect log {0}` every batch",
    "gate": "the same command prints it again, without a further trial",
}
"""Of runs that are no matrix's: where what they came to is told."""
TAIL = 60
"""Lines of a trial's output."""


def cell(row: Row, environment: Environment | None = None, earlier: int = 0) -> str:
    """A cell: verdict with all figures, environment, every trial on a line, first failure of each signature in full.

    Args:
        row: the cell with its trials.
        environment: as built, for its ``uv pip freeze``; None when it is not there any more.
        earlier: trials of the cell that are kept but do not count any more.
    """
    kept = f"{earlier} earlier trials are kept and not counted: of another lock, reproducer or GPU, or before --fresh"
    records = [sample.record for sample in row.samples]
    parts = [
        f"{row.cell.id}  (cell {short_id(row.cell)}, key {row.cell.key})\n{row.verdict.text}: {row.verdict.reason}",
        _section("Levels", _pairs(row.cell.levels)),
        _section("Condition", _pairs(row.cell.condition.values)),
        _section("Variables of its trials", _pairs(row.cell.variables)),
        _section("Figures", [*_pairs(evidence.figures(row)), *evidence.signatures(row.verdict)]),
        _section("Attention", evidence.attention(row.verdict)),
        _section("Marks", evidence.marks(row)),
        _section("Versions as imported", _pairs(evidence.versions(records))),
        _section("Trials", [*_trials(row.samples), *([kept] if earlier else [])]),
        *_failures(records),
        *_lock(row.lock),
    ]
    if environment is not None:
        parts.append(_section("uv pip freeze", environment.freeze.splitlines()))
    return "\n\n".join(part for part in parts if part)


def trial(record: TrialRecord, lock: Lock | None = None) -> str:
    """A trial with all its evidence; with its environment's lock where that is known."""
    status = "" if record.exit_status is None else f", exit status {record.exit_status}"
    parts = [
        f"Trial {record.id}: {record.side} {record.outcome}{status}"
        + (f"\n{record.message}" if record.message else ""),
        _section("Run", _run(record)),
        _section("Condition", _pairs(record.condition.values)),
        _section("Versions as imported", _pairs(record.versions)),
        _section("Measured", _measured(record)),
        *(_failure(failure) for failure in record.failures),
        _section(f"Stacks before the kill ({record.hang_kind or 'hang'})", record.stacks.splitlines()),
        _section("Devices", [f"{device.name}, {device.uuid}, driver {device.driver}" for device in record.devices]),
        _section("Host", _pairs(record.host)),
        _section("Variables it got", _pairs(record.environment_variables)),
        _section("Withheld from it (names only)", record.withheld),
        _section("Said by the reproducer", _pairs(record.extra)),
        _section(f"Output, last {TAIL} lines", record.output.splitlines()[-TAIL:]),
        *_lock(lock),
    ]
    return "\n\n".join(part for part in parts if part)


def environment(found: Environment) -> str:
    """A built environment: where it lies, its lock, and what is really installed."""
    parts = [
        f"Environment {found.lock.address}\n{found.folder}, built in {found.build_seconds:.1f} s",
        *_lock(found.lock),
        _section("uv pip freeze", found.freeze.splitlines()),
    ]
    return "\n\n".join(part for part in parts if part)


def run(found: StoredRun) -> str:
    """One call of a command that ran trials."""
    lines = [
        ("matrix", f"{found.matrix_name} ({found.matrix_path})"),
        ("command line", " ".join(found.argv)),
        ("seed", found.seed),
        ("started", _when(found.started)),
        ("ended", _when(found.ended) if found.ended is not None else "not ended"),
        ("status", found.status or "running, or killed"),
        *((("planned", _plan(found)),) if found.matrix_name not in REPORTED else ()),
        *found.versions,
        *((("report", REPORTED[found.matrix_name].format(found.id)),) if found.matrix_name in REPORTED else ()),
    ]
    return "\n\n".join([f"Run {found.id}", _section("Run", _pairs(lines))])


def _plan(found: StoredRun) -> str:
    if not found.trials:
        return "unknown"
    solo = found.controls if found.solo is None else found.solo
    early = "" if found.stop_early else ", none stopped early"
    return f"{found.trials} threaded, {found.controls} serial, {solo} solo trials a cell{early}"


def _when(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).isoformat(timespec="seconds")


def _section(title: str, lines: Iterable[str]) -> str:
    body = "\n".join(lines)
    return f"{title}\n{textwrap.indent(body, '  ')}" if body else ""


def _pairs(pairs: Iterable[tuple[str, object]]) -> list[str]:
    found = [(str(key), str(value)) for key, value in pairs]
    width = max((len(key) for key, _ in found), default=0)
    return [f"{key:<{width}}  {value}".rstrip() for key, value in found]


def _run(record: TrialRecord) -> list[str]:
    started = _when(record.started) if record.started else "unknown"
    return _pairs(
        [
            ("environment", record.environment),
            ("reproducer", record.reproducer),
            ("seed", record.seed),
            ("started", started),
            ("seconds", f"{record.seconds:.1f}"),
            ("longest silence", f"{record.longest_silence:.1f} s"),
            ("cores", ", ".join(map(str, record.cores)) or "all"),
            *([("side by side", f"at most {record.at_once} trials")] if record.at_once > 1 else []),
            *([("only repeat", record.only_repeat)] if record.only_repeat is not None else []),
            *([("resets", f"{record.resets} of the compiled state, before its end")] if record.resets else []),
            *([("failed in", record.phase)] if record.phase else []),
        ]
    )


def _measured(record: TrialRecord) -> list[str]:
    figures: list[tuple[str, object]] = [("compile windows", record.windows)]
    if record.tokens_per_second is not None:
        figures.append(("tokens/s", tokens(record.tokens_per_second)))
    if record.peak_bytes is not None:
        predicted = ", ".join(f"{name} {size / 2**30:.2f}" for name, size in record.predicted_bytes)
        text = f"{record.peak_bytes / 2**30:.2f} GiB" + (f" (predicted: {predicted})" if predicted else "")
        figures.append(("peak memory", text))
    if record.exposures is not None:
        figures.append(("exposures", record.exposures))
    if record.cache_hits is not None or record.cache_misses is not None:
        figures.append(("compile cache", f"{record.cache_hits or 0} hits, {record.cache_misses or 0} misses"))
    for path in record.paths:
        signs = ", ".join(f"{sign} {count}" for sign, count in path.signs)
        figures.append((f"attention {path.thread}", f"{path.calls} calls; unfused by {signs or 'no sign available'}"))
    for item in record.rounds:
        speed = f", {tokens(item.tokens / item.seconds)} tokens/s" if item.seconds > 0 else ""
        figures.append((f"round {item.index}", f"{item.tokens} tokens in {item.seconds:.3f} s{speed}"))
    for used in record.utilisation:
        share = f" ({percent(used.share)})" if used.seconds > 0 < used.ceiling else ""
        rate = f"{used.operations:.4g} operations in {used.seconds:.4g} s"
        figures.append((f"utilisation, {used.what}", f"{rate}, of {used.ceiling:.4g} a second at most{share}"))
    for what, error, tolerance in record.numbers:
        figures.append((f"error of {what}", f"{error:.3g} (tolerance {tolerance:.3g})"))
    return _pairs(figures)


def _trials(samples: Sequence[Sample]) -> list[str]:
    lines = []
    for sample in evidence.in_order(samples):
        record = sample.record
        line = f"{sample.block + 1:>3}  {record.side:<8} {record.outcome:<13} {record.seconds:>7.1f} s  {record.id}"
        lines.append("  ".join([line, *evidence.said(record)]))
    return lines


def _failures(records: Sequence[TrialRecord]) -> list[str]:
    """The first failure of each signature in full, and every hang's stacks once a kind."""
    failures = [
        f"{_failure(failure)}\n  (trial {record.id}, {record.side})"
        for record, failure in evidence.first_failures(records)
    ]
    hangs = evidence.first_hangs(records)
    return [*failures, *(_section(evidence.hang_title(record), record.stacks.splitlines()) for record in hangs)]


def _failure(failure: Failure) -> str:
    body = (failure.traceback or failure.message).splitlines()
    return _section(evidence.failure_title(failure), body or [failure.message or "-"])


def _lock(lock: Lock | None) -> list[str]:
    if lock is None:
        return []
    return [
        _section("Environment", [*_pairs(evidence.environment(lock)), *lock.notes]),
        _section("Lock (with its hashes in environments/ADDRESS/lock.txt)", evidence.pins(lock)),
    ]

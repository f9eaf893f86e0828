"""Everything known about a cell or a trial, as text to read."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from bisect_env.environments.records import Environment, Lock
from bisect_env.report.rows import Row, fault, interval, short_id, tokens
from bisect_env.store.runs import StoredRun
from bisect_env.trials.records import Failure, Outcome, Side, Signature, TrialRecord
from bisect_env.verdicts.records import DenseShare, Verdict, percent
from bisect_env.verdicts.samples import Sample

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
        _section("Figures", _figures(row)),
        _section(
            "Attention", [*_shares("threads", row.verdict.dense), *_shares("controls", row.verdict.dense_controls)]
        ),
        _section("Marks", [*(row.lock.marks if row.lock else ()), *row.verdict.marks]),
        _section("Versions as imported", _versions(records)),
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
        ("planned", _plan(found)),
        *found.versions,
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


def _figures(row: Row) -> list[str]:
    verdict, speed = row.verdict, row.verdict.throughput
    figures: list[tuple[str, str]] = [
        ("threads", interval(verdict.threads)),
        ("serial", interval(verdict.serial)),
        ("solo", interval(verdict.solo)),
        ("went wrong", _ends(verdict)),
        (
            "p",
            "" if verdict.p_value is None else f"{verdict.p_value:.3g} (one-sided exact test, threads against serial)",
        ),
        ("race rate", "" if verdict.bound is None else f"at most {percent(verdict.bound)} (one-sided, 95 %)"),
    ]
    if speed is not None:
        sessions = f"{speed.n} rounds in {speed.sessions} session{'s' if speed.sessions > 1 else ''}"
        unit = sessions if speed.sessions else f"{speed.n} trials"
        spread = f"quartiles {tokens(speed.low)}-{tokens(speed.high)}, {unit}"
        figures.append(("tokens/s", f"{tokens(speed.median)} ({spread})" + (", warmed up" if speed.warmed else "")))
        if speed.ratio is not None:
            limits = "" if speed.ratio_low is None else f" ({speed.ratio_low:.3f}-{speed.ratio_high:.3f} at 95 %)"
            figures.append(("ratio", f"{speed.ratio:.3f}{limits} to the reference cell"))
    if verdict.peak_bytes is not None:
        figures.append(("peak memory", f"{verdict.peak_bytes / 2**30:.2f} GiB"))
    if verdict.exposures is not None:
        each = "" if verdict.exposures_per_trial is None else f", {verdict.exposures_per_trial:.0f} a trial"
        each += "" if verdict.exposures_per_failure is None else f", {verdict.exposures_per_failure:.0f} a failure"
        figures.append(("exposures", f"{verdict.exposures} calls while another thread compiled{each}"))
    for what, share in verdict.utilisation:
        figures.append((f"utilisation, {what}", f"{percent(share)} of the measured matrix-product ceiling"))
    if verdict.infra:
        figures.append(("not counted", f"{verdict.infra} (infrastructure)"))
    counts = [
        f"{fault(item.signature)}: {item.threads} threaded, {item.serial} serial, {item.solo} solo trials"
        for item in verdict.signatures
    ]
    return _pairs((name, value) for name, value in figures if value) + counts


def _ends(verdict: Verdict) -> str:
    """``8 threaded failed, 4 threaded hung``: each that occurs."""
    sides = (("threaded", verdict.ends_threads), ("serial", verdict.ends_serial), ("solo", verdict.ends_solo))
    counts = [(ends.failed, side, "failed") for side, ends in sides] + [
        (ends.hung, side, "hung") for side, ends in sides
    ]
    return ", ".join(f"{count} {side} {way}" for count, side, way in counts if count)


def _shares(where: str, shares: Sequence[DenseShare]) -> list[str]:
    return [
        f"{where} {item.thread}: {percent(item.share)} of {item.calls} calls unfused ("
        + ", ".join(f"{sign} {percent(share)}" for sign, share in item.signs)
        + ")"
        for item in shares
    ]


def _versions(records: Sequence[TrialRecord]) -> list[str]:
    """Each version that was imported; several in one line when the trials do not agree, which they should."""
    seen: dict[str, dict[str, None]] = {}
    for record in records:
        for name, version in record.versions:
            seen.setdefault(name, {})[version] = None
    return _pairs((name, " and ".join(versions)) for name, versions in seen.items())


def _trials(samples: Sequence[Sample]) -> list[str]:
    lines = []
    for sample in sorted(
        samples, key=lambda item: (item.block, list(Side).index(item.record.side), item.record.started)
    ):
        record = sample.record
        what = fault(record.failures[0].signature) if record.failures else record.message
        speed = record.tokens_per_second
        line = f"{sample.block + 1:>3}  {record.side:<8} {record.outcome:<13} {record.seconds:>7.1f} s  {record.id}"
        said = [f"{tokens(speed)} tokens/s" if speed else "", _circumstances(record), what]
        lines.append("  ".join([line, *filter(None, said)]))
    return lines


def _circumstances(record: TrialRecord) -> str:
    """What decides whether and for what a trial counts, where it is out of the ordinary."""
    found = [
        f"{len(record.rounds)} rounds" if record.rounds else "",
        f"after {record.resets} resets" if record.resets else "",
        f"repeat {record.only_repeat} alone" if record.only_repeat is not None else "",
        f"in {record.phase}" if record.phase else "",
    ]
    return ", ".join(filter(None, found))


def _failures(records: Sequence[TrialRecord]) -> list[str]:
    """The first failure of each signature in full, and every hang's stacks once a kind."""
    first: dict[Signature, tuple[TrialRecord, Failure]] = {}
    hung: dict[str, TrialRecord] = {}
    for record in records:
        for failure in record.failures:
            first.setdefault(failure.signature, (record, failure))
        if record.outcome is Outcome.HANG and record.stacks:
            hung.setdefault(record.hang_kind, record)
    parts = [f"{_failure(failure)}\n  (trial {record.id}, {record.side})" for record, failure in first.values()]
    for kind, record in hung.items():
        parts.append(
            _section(f"Hang ({kind or 'unknown kind'}), stacks of trial {record.id}", record.stacks.splitlines())
        )
    return parts


def _failure(failure: Failure) -> str:
    where = f" in {failure.where}" if failure.where else ""
    body = (failure.traceback or failure.message).splitlines()
    return _section(f"Failure in {failure.thread}{where}: {fault(failure.signature)}", body or [failure.message or "-"])


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


def _pins(lock: Lock) -> list[str]:
    """The lock's lines without their hashes, which take a screen a package."""
    return [line.rstrip(" \\") for line in lock.text.splitlines() if not line.lstrip().startswith("--hash")]


def _lock(lock: Lock | None) -> list[str]:
    if lock is None:
        return []
    facts: list[tuple[str, object]] = [
        ("address", lock.address),
        ("python", f"{lock.interpreter.implementation} {lock.interpreter.version}, {lock.interpreter.platform}"),
        ("CUDA variant", lock.cuda or "none"),
    ]
    if lock.base:
        facts.append(("stands on", lock.base))
    return [
        _section("Environment", [*_pairs(facts), *lock.notes]),
        _section("Lock (with its hashes in environments/ADDRESS/lock.txt)", _pins(lock)),
    ]

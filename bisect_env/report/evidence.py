"""What a cell's verdict rests on, as names and texts: ``show`` prints it, and the HTML report opens it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bisect_env.environments.records import Lock
from bisect_env.report.rows import Row, fault, interval, tokens
from bisect_env.trials.records import Failure, Outcome, Side, Signature, TrialRecord
from bisect_env.verdicts.records import DenseShare, Verdict, percent
from bisect_env.verdicts.samples import Sample

Pairs = list[tuple[str, str]]
"""Names, and what is to be said of each."""


def figures(row: Row) -> Pairs:
    """Every figure of a cell's verdict that there is."""
    verdict, speed = row.verdict, row.verdict.throughput
    found: Pairs = [
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
        found.append(("tokens/s", f"{tokens(speed.median)} ({spread})" + (", warmed up" if speed.warmed else "")))
        if speed.ratio is not None:
            limits = "" if speed.ratio_low is None else f" ({speed.ratio_low:.3f}-{speed.ratio_high:.3f} at 95 %)"
            found.append(("ratio", f"{speed.ratio:.3f}{limits} to the reference cell"))
    if verdict.peak_bytes is not None:
        found.append(("peak memory", f"{verdict.peak_bytes / 2**30:.2f} GiB"))
    if verdict.exposures is not None:
        each = "" if verdict.exposures_per_trial is None else f", {verdict.exposures_per_trial:.0f} a trial"
        each += "" if verdict.exposures_per_failure is None else f", {verdict.exposures_per_failure:.0f} a failure"
        found.append(("exposures", f"{verdict.exposures} calls while another thread compiled{each}"))
    for what, share in verdict.utilisation:
        found.append((f"utilisation, {what}", f"{percent(share)} of the measured matrix-product ceiling"))
    if verdict.infra:
        found.append(("not counted", f"{verdict.infra} (infrastructure)"))
    return [(name, value) for name, value in found if value]


def signatures(verdict: Verdict) -> list[str]:
    """Each signature with the trials of each side in which it was seen, the most frequent first."""
    return [
        f"{fault(item.signature)}: {item.threads} threaded, {item.serial} serial, {item.solo} solo trials"
        for item in verdict.signatures
    ]


def attention(verdict: Verdict) -> list[str]:
    """How much of each thread's attention ran unfused, by which signs; the controls' below."""
    return [*_shares("threads", verdict.dense), *_shares("controls", verdict.dense_controls)]


def marks(row: Row) -> list[str]:
    """What must be said beside the cell: of its lock, then of its trials."""
    return [*(row.lock.marks if row.lock else ()), *row.verdict.marks]


def versions(records: Sequence[TrialRecord]) -> Pairs:
    """Each version that was imported; several in one text when the trials do not agree, which they should."""
    seen: dict[str, dict[str, None]] = {}
    for record in records:
        for name, version in record.versions:
            seen.setdefault(name, {})[version] = None
    return [(name, " and ".join(found)) for name, found in seen.items()]


def in_order(samples: Iterable[Sample]) -> list[Sample]:
    """By block, the sides of each in their order, and each side's trials by the time they started."""
    sides = list(Side)
    return sorted(samples, key=lambda item: (item.block, sides.index(item.record.side), item.record.started))


def said(record: TrialRecord) -> list[str]:
    """What a trial has to say beside its outcome: speed, circumstances, and what failed or why it does not count."""
    speed = record.tokens_per_second
    what = fault(record.failures[0].signature) if record.failures else record.message
    return list(filter(None, [f"{tokens(speed)} tokens/s" if speed else "", _circumstances(record), what]))


def first_failures(records: Sequence[TrialRecord]) -> list[tuple[TrialRecord, Failure]]:
    """The first failure of each signature, with its trial."""
    first: dict[Signature, tuple[TrialRecord, Failure]] = {}
    for record in records:
        for failure in record.failures:
            first.setdefault(failure.signature, (record, failure))
    return list(first.values())


def first_hangs(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The first hang of each kind whose stacks were taken."""
    first: dict[str, TrialRecord] = {}
    for record in records:
        if record.outcome is Outcome.HANG and record.stacks:
            first.setdefault(record.hang_kind, record)
    return list(first.values())


def failure_title(failure: Failure) -> str:
    """Where a thread failed, and with what."""
    where = f" in {failure.where}" if failure.where else ""
    return f"Failure in {failure.thread}{where}: {fault(failure.signature)}"


def hang_title(record: TrialRecord) -> str:
    """Of the stacks that were taken of a hang."""
    return f"Hang ({record.hang_kind or 'unknown kind'}), stacks of trial {record.id}"


def environment(lock: Lock) -> Pairs:
    """What an environment is, without its packages."""
    facts = [
        ("address", lock.address),
        ("python", f"{lock.interpreter.implementation} {lock.interpreter.version}, {lock.interpreter.platform}"),
        ("CUDA variant", lock.cuda or "none"),
    ]
    return [*facts, ("stands on", lock.base)] if lock.base else facts


def pins(lock: Lock) -> list[str]:
    """The lock's lines without their hashes, which take a screen a package."""
    return [line.rstrip(" \\") for line in lock.text.splitlines() if not line.lstrip().startswith("--hash")]


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


def _circumstances(record: TrialRecord) -> str:
    """What decides whether and for what a trial counts, where it is out of the ordinary."""
    found = [
        f"{len(record.rounds)} rounds" if record.rounds else "",
        f"after {record.resets} resets" if record.resets else "",
        f"repeat {record.only_repeat} alone" if record.only_repeat is not None else "",
        f"in {record.phase}" if record.phase else "",
    ]
    return ", ".join(filter(None, found))

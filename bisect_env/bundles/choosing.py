"""Which wheels of a bundle go into parts, and which are left out since the target has them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from bisect_env.bundles import layout
from bisect_env.bundles.having import Having
from bisect_env.bundles.records import Locked, Manifest, Piece
from bisect_env.bundles.resolving import Resolved
from bisect_env.bundles.sources import Source


def in_need(resolved: Iterable[Resolved]) -> tuple[Source, ...]:
    """The wheels of all locks, each once, in the order in which the cells need them."""
    return tuple({source.sha256: source for each in resolved for source in each.sources}.values())


@dataclass(frozen=True)
class Choice:
    """What has to be done for each wheel."""

    absorbed: frozenset[str]
    """SHA-256 of those that the target has as wheels: nothing."""
    kept: Mapping[str, tuple[Piece, ...]]
    """Those whose parts are there from an earlier bundle: nothing."""
    proved: Mapping[str, str]
    """RECORD of those that an earlier bundle here left out, and that are installed on the target still."""
    to_fetch: tuple[Source, ...]
    """All others: to be looked into, or cut into parts."""


def choose(
    sources: Iterable[Source], having: Having, kept: Mapping[str, tuple[Piece, ...]], earlier: Manifest | None
) -> Choice:
    """``kept`` as :func:`layout.kept` has it. What the target has installed is not looked for in parts."""
    wheels = () if earlier is None else earlier.wheels
    records = {wheel.sha256: wheel.record for wheel in wheels if wheel.installed}
    absorbed, used, proved, rest = set(), {}, {}, []
    for source in sources:
        record = records.get(source.sha256)
        if source.sha256 in having.absorbed:
            absorbed.add(source.sha256)
        elif record is not None and having.has(source.name, source.version, record):
            proved[source.sha256] = record
        elif source.sha256 in kept and not having.may_have(source.name, source.version):
            used[source.sha256] = kept[source.sha256]
        else:
            rest.append(source)
    return Choice(frozenset(absorbed), used, proved, tuple(rest))


def merged(new: Manifest, earlier: Manifest | None, kept: Mapping[str, tuple[Piece, ...]]) -> Manifest:
    """``new`` with the requests of an earlier manifest of this folder that it lacks, as far as they are still whole.

    ``kept`` are the wheels of ``earlier`` whose parts are all there.
    """
    if earlier is None:
        return new
    wheels = {wheel.sha256: wheel for wheel in new.wheels}
    keys = {locked.request_key for locked in new.locked}
    # Those without parts were left out on purpose: the target has them.
    usable = {wheel.sha256: wheel for wheel in earlier.wheels if not wheel.pieces or wheel.sha256 in kept}
    locked: list[Locked] = list(new.locked)
    for each in earlier.locked:
        if each.request_key not in keys and all(sha256 in wheels or sha256 in usable for sha256 in each.wheels):
            locked.append(each)
            for sha256 in each.wheels:
                wheels.setdefault(sha256, usable.get(sha256) or wheels[sha256])
    sizes = dict((*earlier.part_bytes, *new.part_bytes))
    parts = tuple((part, sizes[part]) for part in layout.in_order(tuple(wheels.values())))
    return replace(new, part_bytes=parts, wheels=tuple(wheels.values()), locked=tuple(locked))

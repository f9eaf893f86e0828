"""What of a bundle has arrived and what has not, cell by cell. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from bisect_env.bundles import spans
from bisect_env.bundles.records import Locked, Manifest, Wheel
from bisect_env.bundles.spans import Spans
from bisect_env.errors import BadInput


@dataclass(frozen=True)
class Standing:
    """A manifest with what is there of it."""

    manifest: Manifest
    held: frozenset[str]
    """SHA-256 (the locks' own) of the wheels that are complete."""
    spans: Mapping[str, Spans]
    """Which bytes are there of the others; a wheel of which there is nothing may be left out."""

    @property
    def cells(self) -> tuple[str, ...]:
        """Ids of the cells whose environments can be built now."""
        return tuple(cell for locked in self.complete() for cell in locked.cells)

    def complete(self) -> tuple[Locked, ...]:
        """The locks all of whose wheels are there."""
        locks = (locked for locked in self.manifest.locked if locked.lock is not None)
        return tuple(locked for locked in locks if self.held.issuperset(locked.wheels))

    def incomplete(self) -> tuple[Locked, ...]:
        """The locks that lack a wheel."""
        complete = set(self.complete())
        return tuple(locked for locked in self.manifest.locked if locked.lock is not None and locked not in complete)

    def lacking(self, shas: Iterable[str] | None = None) -> tuple[Wheel, ...]:
        """The wheels that are not complete, of these or of all."""
        wanted = None if shas is None else set(shas)
        return tuple(
            wheel
            for wheel in self.manifest.wheels
            if wheel.sha256 not in self.held and (wanted is None or wheel.sha256 in wanted)
        )

    def missing_parts(self, wheels: Iterable[Wheel] | None = None) -> tuple[str, ...]:
        """The parts that would complete these wheels (or all), in the order in which they help first."""
        found = {
            part
            for wheel in (self.lacking() if wheels is None else wheels)
            if wheel.sha256 not in self.held
            for part in _needed(wheel, self.spans.get(wheel.sha256, ()))
        }
        order = {part: place for place, (part, _) in enumerate(self.manifest.part_bytes)}
        return tuple(sorted(found, key=lambda part: (order.get(part, len(order)), part)))

    def without_parts(self) -> tuple[Wheel, ...]:
        """The wheels that are not complete and that no part brings: they were said to be installed here."""
        return tuple(wheel for wheel in self.lacking() if not wheel.pieces)


def _needed(wheel: Wheel, there: Spans) -> Iterable[str]:
    """Of a wheel that two deliveries cut differently, the parts of the first cut that has what is missing."""
    for piece in wheel.pieces:
        start, end = piece.wheel_offset, piece.wheel_offset + piece.length
        if spans.gaps(there, start, end):
            there = spans.add(there, start, end)
            yield piece.part


def parts_of(wheels: Collection[Wheel]) -> dict[str, list[Wheel]]:
    """The wheels that each part has bytes of."""
    found: dict[str, list[Wheel]] = {}
    for wheel in wheels:
        for part in dict.fromkeys(piece.part for piece in wheel.pieces):
            found.setdefault(part, []).append(wheel)
    return found


def merged(new: Manifest, old: Manifest | None) -> Manifest:
    """Two deliveries' manifests as one; where both speak of a thing, the new one has the word.

    A wheel that both have in parts keeps the pieces of either cut, the new one's first: whatever arrives is of use.

    Raises:
        BadInput: they are for different targets, or have different wheels of one name.
    """
    if old is None:
        return new
    advice = "another folder for it (--into)"
    if new.target != old.target:
        found = f"it is for Python {new.target.python} on {new.target.platform}, what is there for {old.target.python}"
        raise BadInput("manifest.json", "target", f"{found} on {old.target.platform}", advice)
    earlier = {wheel.sha256: wheel for wheel in old.wheels}
    names = {wheel.filename: wheel.sha256 for wheel in old.wheels}
    for wheel in new.wheels:
        if names.get(wheel.filename, wheel.sha256) != wheel.sha256:
            raise BadInput("manifest.json", wheel.filename, "another wheel of that name is there already", advice)
    wheels = {wheel.sha256: _of_both(wheel, earlier.get(wheel.sha256, wheel)) for wheel in new.wheels}
    keys = {locked.request_key for locked in new.locked}
    return replace(
        new,
        part_bytes=tuple(dict((*new.part_bytes, *old.part_bytes)).items()),
        wheels=(*wheels.values(), *(wheel for wheel in old.wheels if wheel.sha256 not in wheels)),
        locked=(*new.locked, *(locked for locked in old.locked if locked.request_key not in keys)),
    )


def _of_both(new: Wheel, old: Wheel) -> Wheel:
    return replace(
        new,
        pieces=tuple(dict.fromkeys((*new.pieces, *old.pieces))),
        installed=new.installed or (old.installed and not new.pieces),
        record=new.record or old.record,
    )

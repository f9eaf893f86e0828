"""Deliveries taken in: parts checked, their bytes put where they belong, and wheels checked as they become whole.

A part may be deleted as soon as :func:`absorb` returns. Whatever kills it, what was taken in stays, and nothing half
written is ever believed: bytes are on the disk before they are said to be there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from bisect_env.bundles import hosts, manifest, spans, standing
from bisect_env.bundles.destination import Destination, replace_durably
from bisect_env.bundles.records import MANIFEST, PARTS, SUFFIX, Manifest, Piece, Wheel
from bisect_env.bundles.repack import Differs, repack
from bisect_env.bundles.room import FULL
from bisect_env.bundles.standing import Standing
from bisect_env.environments import trees
from bisect_env.errors import BadInput, InfrastructureError

NAME = re.compile(r"[0-9a-f]{64}\.part")
WANTED = f"a folder that a bundle or parts of it were copied to, *{SUFFIX} files, or a {MANIFEST}"
CHUNK = 1 << 20
PACKERS = 8
"""Wheels that are packed at once, at most; hashing leaves Python's lock, and a disk in memory is fast."""
LARGE = 50_000_000
"""Bytes of a wheel from which on packing it takes seconds."""

Say = Callable[[str], None]


@dataclass
class Absorbed:
    """What a delivery came to."""

    standing: Standing | None = None
    """Of the folder now; None before the first manifest."""
    parts: list[str] = field(default_factory=list)
    """SHA-256 of the parts taken in."""
    known: int = 0
    """Parts of the delivery that were there already."""
    early: list[str] = field(default_factory=list)
    """Parts that no manifest names yet: kept."""
    damaged: list[str] = field(default_factory=list)
    """What was delivered and cannot be used, each with the reason."""
    packed: list[Wheel] = field(default_factory=list)
    """Wheels made of installed distributions."""
    differing: dict[str, str] = field(default_factory=dict)
    """Of wheels (SHA-256) that were said to be installed here, why they are not."""


@dataclass(frozen=True)
class _Sources:
    manifests: tuple[Path, ...]
    parts: tuple[Path, ...]


def absorb(sources: Sequence[Path], folder: Path, pythons: Sequence[Path], say: Say) -> Absorbed:
    """Takes in whatever parts and manifest ``sources`` have: files, bundle folders, or folders of parts.

    Args:
        sources: what was delivered; only read.
        folder: where it all goes; made when it is not there.
        pythons: interpreters whose installed distributions stand for wheels that the bundle left out.
        say: told of what takes time.

    Raises:
        BadInput: a source is not there, nothing of a bundle is in any, or a manifest does not go with what is in the
            folder.
        InfrastructureError: the disk is full. What was taken in before is kept.
    """
    found = _found(sources)
    destination = Destination(folder)
    if not (found.manifests or found.parts) and not (folder / MANIFEST).exists():
        names = ", ".join(map(str, sources))
        raise BadInput("SRC", "", f"in {names} is nothing of a bundle, and nothing has arrived before", WANTED)
    with _full_disk_in_words(folder):
        destination.prepare()
        with destination.alone(lambda: say(f"waiting: another unbundle writes into {folder}")):
            destination.sweep()
            return _Absorption(destination, pythons, say).run(found)


def standing_of(destination: Destination, manifest: Manifest) -> Standing:
    """What the folder has of a manifest."""
    held = frozenset(wheel.sha256 for wheel in manifest.wheels if destination.held(wheel))
    others = (wheel.sha256 for wheel in manifest.wheels if wheel.sha256 not in held)
    return Standing(manifest, held, {sha256: destination.spans(sha256) for sha256 in others})


def _found(sources: Iterable[Path]) -> _Sources:
    manifests: list[Path] = []
    parts: list[Path] = []
    for source in sources:
        if source.is_dir():
            manifests += [source / MANIFEST] if (source / MANIFEST).is_file() else []
            parts += sorted((*source.glob(f"*{SUFFIX}"), *(source / PARTS).glob(f"*{SUFFIX}")))
        elif source.suffix == SUFFIX and source.is_file():
            parts.append(source)
        elif source.name == MANIFEST and source.is_file():
            manifests.append(source)
        else:
            found = f"{source} is nothing of a bundle" if source.exists() else f"there is no {source}"
            raise BadInput("SRC", "", found, WANTED)
    return _Sources(tuple(manifests), tuple(parts))


class _Absorption:
    def __init__(self, destination: Destination, pythons: Sequence[Path], say: Say) -> None:
        self.destination, self.pythons, self.say = destination, pythons, say
        self.result = Absorbed()
        self.manifest = destination.manifest()
        self.held: set[str] = set()
        self.wheels: dict[str, list[Wheel]] = {}

    def run(self, sources: _Sources) -> Absorbed:
        self._take_manifests(sources.manifests)
        if self.manifest is not None:
            self.held = {wheel.sha256 for wheel in self.manifest.wheels if self.destination.held(wheel)}
            self.wheels = standing.parts_of(self.manifest.wheels)
            # A kill may have come between a wheel's last byte and its name.
            for wheel in self.manifest.wheels:
                self._finish(wheel)
        # By first need: what is interrupted has done the most useful ones.
        order = {part: place for place, (part, _) in enumerate(self.manifest.part_bytes if self.manifest else ())}
        waiting = [path for path in self.destination.early("x").parent.glob(f"*{SUFFIX}") if path.stem in self.wheels]
        paths = sorted((*waiting, *sources.parts), key=lambda path: order.get(path.stem, len(order)))
        for number, path in enumerate(paths, start=1):
            self._take_part(path)
            if path in waiting:
                path.unlink()
            if number % 10 == 0 and number < len(paths):
                self.say(f"{number} of {len(paths)} parts")
        if self.manifest is not None:
            self._pack()
            self.result.standing = standing_of(self.destination, self.manifest)
        return self.result

    def _take_manifests(self, paths: Iterable[Path]) -> None:
        for path in paths:
            try:
                # Not what a source's folder holds a moment later: it may be replaced meanwhile.
                delivered = manifest.decode(path.read_bytes(), path)
            except OSError as error:
                self.result.damaged.append(f"{path}: it cannot be read: {error.strerror}")
                continue
            except BadInput as error:
                # The parts beside it are taken in all the same: their source may be deleted afterwards.
                place = f"{error.place}: " if error.place else ""
                self.result.damaged.append(f"{path}: {place}{error.found}; wanted: {error.wanted}")
                continue
            both = standing.merged(delivered, self.manifest)
            if both != self.manifest:
                self.destination.put_manifest(both)
            self.manifest = both

    def _take_part(self, path: Path) -> None:
        if not NAME.fullmatch(path.name):
            self.result.damaged.append(f"{path.name}: no part has such a name; it was renamed on its way")
            return
        wheels = [wheel for wheel in self.wheels.get(path.stem, ()) if wheel.sha256 not in self.held]
        there = {wheel.sha256: self.destination.spans(wheel.sha256) for wheel in wheels}
        wanted = [
            (wheel, piece, gap)
            for wheel in wheels
            for piece in wheel.pieces
            if piece.part == path.stem
            for gap in spans.gaps(there[wheel.sha256], piece.wheel_offset, piece.wheel_offset + piece.length)
        ]
        if path.stem in self.wheels and not wanted:
            self.result.known += 1
            return
        try:
            file = path.open("rb")
        except OSError as error:
            self.result.damaged.append(f"{path.name}: it cannot be read: {error.strerror}")
            return
        with file:
            good = self._spread(file, path.stem, wanted) if wanted else self._keep_early(file, path.stem)
        if not good:
            self.result.damaged.append(f"{path.name}: its content is not what its name says; it has to come again")
            return
        if not wanted:
            self.result.early.append(path.stem)
            return
        for wheel in wheels:
            now = there[wheel.sha256]
            for owner, _, (start, end) in wanted:
                now = spans.add(now, start, end) if owner is wheel else now
            self.destination.put_spans(wheel.sha256, now)
            self._finish(wheel)
        self.result.parts.append(path.stem)

    def _spread(self, file: IO[bytes], part: str, wanted: Sequence[tuple[Wheel, Piece, tuple[int, int]]]) -> bool:
        """Writes a part's bytes into the holes of its wheels; True when it was the right part.

        Only into holes: what a damaged part leaves there is not said to be there, and is written over.
        """
        total, at = hashlib.sha256(), 0
        targets = {wheel.sha256: wheel for wheel, _, _ in wanted}
        descriptors = {}
        try:
            for sha256 in targets:
                path = self.destination.unfinished(sha256)
                descriptors[sha256] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            while chunk := file.read(CHUNK):
                total.update(chunk)
                for wheel, piece, (start, end) in wanted:
                    # The hole, as bytes of the part, as far as this chunk has them.
                    shift = piece.part_offset - piece.wheel_offset
                    low, high = max(start + shift, at), min(end + shift, at + len(chunk))
                    if low < high:
                        _write(descriptors[wheel.sha256], chunk[low - at : high - at], low - shift)
                at += len(chunk)
            if total.hexdigest() != part or any(p.part_offset + p.length > at for _, p, _ in wanted):
                return False
            for descriptor in descriptors.values():
                os.fsync(descriptor)
        finally:
            for descriptor in descriptors.values():
                os.close(descriptor)
        trees.sync_folder(self.destination.unfinished("x").parent)
        return True

    def _keep_early(self, file: IO[bytes], part: str) -> bool:
        """Copies a part that no manifest names yet; True when it is what its name says."""
        aside = self.destination.aside(part)
        total = hashlib.sha256()
        with aside.open("wb") as copy:
            while chunk := file.read(CHUNK):
                total.update(chunk)
                copy.write(chunk)
            copy.flush()
            os.fsync(copy.fileno())
        if total.hexdigest() != part:
            aside.unlink()
            return False
        aside.replace(self.destination.early(part))
        trees.sync_folder(self.destination.early(part).parent)
        return True

    def _finish(self, wheel: Wheel) -> None:
        """Shows a wheel all of whose bytes are there, after its hash was checked."""
        if wheel.sha256 in self.held:
            return
        if self.destination.spans(wheel.sha256) != ((0, wheel.size),):
            return
        path = self.destination.unfinished(wheel.sha256)
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != wheel.sha256 or path.stat().st_size != wheel.size:
            self.destination.forget(wheel.sha256)
            words = "its parts are as they were sent, and together not the wheel: all of them have to come again"
            self.result.damaged.append(f"{wheel.filename}: {words}")
            return
        self.destination.show(wheel, path, wheel.sha256)
        self.held.add(wheel.sha256)

    def _pack(self) -> None:
        """Makes wheels of installed distributions, where the bundle left them out for that."""
        assert self.manifest is not None
        wanted = [wheel for wheel in self.manifest.wheels if wheel.installed and wheel.sha256 not in self.held]
        if not wanted:
            return
        here = hosts.installed(self.pythons)
        with ThreadPoolExecutor(min(PACKERS, os.cpu_count() or 1)) as pool:
            # The largest first: the others fill the time it takes.
            largest = sorted(wanted, key=lambda wheel: -wheel.size)
            for wheel, said in zip(largest, pool.map(lambda wheel: self._packed(wheel, here), largest), strict=True):
                if said:
                    self.result.differing[wheel.sha256] = said
                else:
                    self.held.add(wheel.sha256)
                    self.result.packed.append(wheel)

    def _packed(self, wheel: Wheel, here: Mapping[tuple[str, str], hosts.Installed]) -> str:
        """Packs one wheel; says why not where that cannot be done."""
        there = here.get((wheel.name, wheel.version))
        if there is None:
            return f"{wheel.name} {wheel.version} is not installed for {' or '.join(map(str, self.pythons))}"
        known = self._known_difference(wheel, there.location)
        if known is not None:
            return known.what
        if wheel.size >= LARGE:
            self.say(f"making {wheel.filename} of the files in {there.location}")
        path = self.destination.aside(f"{wheel.sha256}.packed")
        made = repack(wheel, there.location, path)
        if isinstance(made, Differs):
            path.unlink(missing_ok=True)
            replace_durably(self.destination.differs(wheel.sha256), made.encode())
            return made.what
        self.destination.show(wheel, path, made)
        return ""

    def _known_difference(self, wheel: Wheel, location: Path) -> Differs | None:
        """A difference found earlier, where the file is still as it was: gigabytes are not read again for it."""
        with suppress(OSError, ValueError, LookupError, TypeError):
            differs = Differs.decode(self.destination.differs(wheel.sha256).read_text(encoding="utf-8"))
            return differs if differs.still and Path(differs.path).is_relative_to(location) else None
        return None


def _write(descriptor: int, data: bytes, offset: int) -> None:
    """All of it: a disk that fills up takes a part of a write, and refuses the next one."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


@contextmanager
def _full_disk_in_words(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise InfrastructureError(
            f"{folder}: the disk is full ({error.strerror}). Nothing that was taken in is lost: make room, and give "
            f"the same command again; {shutil.disk_usage(folder).free / 1e6:.0f} MB are free now"
        ) from error

"""Making a bundle: resolve, fetch, leave out, cut, write; the manifest last."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from bisect_env import __version__
from bisect_env.bundles import choosing, fetching, having, layout, manifest, parts, project, readme, resolving, tool
from bisect_env.bundles.fetching import Place
from bisect_env.bundles.having import Having
from bisect_env.bundles.progress import Reporter
from bisect_env.bundles.records import (
    MANIFEST,
    PARTS,
    PROJECT,
    TOOL,
    VERSION,
    Manifest,
    Piece,
    Target,
    Wheel,
)
from bisect_env.bundles.resolving import Resolved
from bisect_env.bundles.room import enough_room, make_folder, room_errors
from bisect_env.bundles.sources import Source
from bisect_env.bundles.stamps import Stamps
from bisect_env.environments.records import Reason
from bisect_env.environments.scratch import scratch
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.matrix.cells import Matrix

PASSING = (Reason.INDEX_UNREACHABLE, Reason.CREDENTIALS, Reason.OFFLINE, Reason.UV)
"""Troubles of this machine: a bundle that lacks a cell for one of them would be carried in vain."""
STAMPS = "stamps.json"
LOCK = ".lock"


@dataclass(frozen=True)
class Order:
    """What is to be bundled, and where to."""

    matrix: Matrix
    target: Target
    folder: Path
    """The bundle's."""
    wheels: Path
    """Fetched wheels, kept for the next bundle."""
    part_bytes: int
    having: Having


@dataclass(frozen=True)
class Bundle:
    """What came of it."""

    manifest: Manifest
    resolved: tuple[Resolved, ...]
    fetched_bytes: int
    new_parts: int
    new_bytes: int
    tool_bytes: int
    notes: tuple[str, ...]


def bundle(order: Order, uv: Uv, reporter: Reporter, stop: threading.Event) -> Bundle:
    """Makes the bundle, or adds to the one that is in the folder.

    Raises:
        BadInput: the matrix stands on a base, or the folder has a bundle for another target.
        InfrastructureError: no room, no answer from an index, or another bundle is being made in one of the folders.
    """
    _refuse_base(order.matrix)
    with _held(order.folder, "--output"), _held(order.wheels, "--store"), scratch() as aside:
        return _Bundling(order, uv, reporter, stop).make(aside)


def _refuse_base(matrix: Matrix) -> None:
    base = next((cell.request.base for cell in matrix.cells if cell.request.base is not None), None)
    if base is not None:
        found = f"base {base}: what it lacks can be told only on the host that has it"
        raise BadInput(matrix.path, "base", found, "a matrix without base; --have leaves out what the target has")


@contextmanager
def _held(folder: Path, option: str) -> Iterator[None]:
    with room_errors(folder, "its folders"):
        make_folder(folder, option)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InfrastructureError(f"another `bisect-env bundle` writes into {folder}: wait for its end") from None
    try:
        yield
    finally:
        lock.release()


class _Bundling:
    def __init__(self, order: Order, uv: Uv, reporter: Reporter, stop: threading.Event) -> None:
        self.order, self.uv, self.reporter, self.stop = order, uv, reporter, stop
        self.parts = order.folder / PARTS
        self.stamps = Stamps(order.wheels / STAMPS)
        self.place = Place(order.wheels, self.stamps)
        self.earlier = self._earlier()
        self.notes: list[str] = []

    def _earlier(self) -> Manifest | None:
        if not (self.order.folder / MANIFEST).exists():
            return None
        found, asked = manifest.load(self.order.folder), self.order.target
        if found.target != asked:
            words = f"it has a bundle for Python {found.target.python} on {found.target.platform}"
            wanted = f"another folder for Python {asked.python} on {asked.platform}"
            raise BadInput("--output", str(self.order.folder), words, wanted)
        return found

    def make(self, aside: Path) -> Bundle:
        resolved, own = self._resolve(aside)
        try:
            return self._made(resolved, own)
        finally:
            self.stamps.save()

    def _resolve(self, aside: Path) -> tuple[tuple[Resolved, ...], Resolved]:
        cells, target = self.order.matrix.cells, self.order.target
        self.reporter.phase("resolve", len({cell.request.key for cell in cells}), 0)
        resolved = resolving.resolve_all(cells, target, self.uv, self.stop, self.reporter.resolved)
        reasons = [each.locked.unavailable for each in resolved if each.locked.unavailable is not None]
        trouble = next((why for why in reasons if why.reason in PASSING), None)
        if trouble is not None:
            raise InfrastructureError(
                f"a cell could not be resolved: {trouble.reason}: {trouble.message}\n"
                "  Put that right and give the same command again; --cell bundles some cells only."
            )
        if len(reasons) == len(resolved):
            first = f"no cell can be resolved for the target; the first: {reasons[0].message}"
            raise BadInput(self.order.matrix.path, "", first, "versions that have wheels for it")
        own = resolving.resolve(tool.request(tool.own_wheel(aside, self.uv)), (), target, self.uv, self.stop)
        if own.locked.unavailable is not None:
            raise InfrastructureError(f"bisect-env itself has no lock for it: {own.locked.unavailable.message}")
        return resolved, own

    def _made(self, resolved: tuple[Resolved, ...], own: Resolved) -> Bundle:
        order = self.order
        self.parts.mkdir(parents=True, exist_ok=True)
        parts.sweep(self.parts)
        sources = choosing.in_need(resolved)
        known = {} if self.earlier is None else dict(self.earlier.part_bytes)
        there = parts.present(known, self.parts, self.stamps)
        parts.remove(known.keys() - there.keys(), self.parts)
        earlier = () if self.earlier is None else self.earlier.wheels
        kept = layout.kept(earlier, there, order.part_bytes)
        choice = choosing.choose(sources, order.having, kept, self.earlier)
        tool_new = [each for each in own.sources if not (order.folder / TOOL / each.filename).exists()]
        written_bytes = sum(each.size or 0 for each in (*choice.to_fetch, *tool_new))
        fetched = self._fetch((*choice.to_fetch, *own.sources), written_bytes)
        records = dict(choice.proved)
        for source in choice.to_fetch:
            if order.having.may_have(source.name, source.version):
                record = having.record_of(self.place.path(source))
                if record is not None and order.having.has(source.name, source.version, record):
                    records[source.sha256] = record
        used = {
            source.sha256: kept[source.sha256]
            for source in sources
            if source.sha256 in kept and source.sha256 not in choice.absorbed
        }
        to_cut = [each for each in choice.to_fetch if each.sha256 not in records and each.sha256 not in used]
        written, new = self._cut(to_cut)
        pieces = {**used, **layout.pieces(written)}
        wheels = tuple(
            self._wheel(source, () if source.sha256 in records else pieces.get(source.sha256, ()), records)
            for source in sources
        )
        sizes = {**there, **{part: sum(run.length for run in content) for part, content in written}}
        made = Manifest(
            version=VERSION,
            tool_version=__version__,
            matrix=str(project.place_of(order.matrix)),
            target=order.target,
            part_bytes=tuple((part, sizes[part]) for part in layout.in_order(wheels)),
            wheels=wheels,
            locked=tuple(each.locked for each in resolved),
            tool=self._tool(own),
        )
        made = choosing.merged(made, self.earlier, kept)
        with room_errors(order.folder, "the project's files"):
            self.notes += project.write(order.matrix, order.folder / PROJECT)
            (order.folder / "README.txt").write_text(readme.readme(made), encoding="utf-8")
            (order.folder / "SHA256SUMS").write_text(readme.sums(made), encoding="utf-8")
            manifest.save(made, order.folder)
        tool_bytes = sum(self.place.path(source).stat().st_size for source in own.sources)
        return Bundle(made, resolved, fetched, len(new), sum(new.values()), tool_bytes, tuple(self.notes))

    def _fetch(self, sources: Sequence[Source], written_bytes: int) -> int:
        # The tool and the matrix may need the same ones.
        each = {source.sha256: source for source in sources}.values()
        missing = [source for source in each if not self.place.has(source)]
        to_fetch = self.place.missing_bytes(missing)
        enough_room({self.order.wheels: to_fetch, self.order.folder: written_bytes})
        if not missing:
            return 0
        self.reporter.phase("fetch", len(missing), to_fetch)
        indexes = [cell.request.index for cell in self.order.matrix.cells[:1]]
        with room_errors(self.order.wheels, f"{to_fetch / 1e9:.1f} GB of wheels"):
            fetching.fetch_all(missing, self.place, indexes, self.stop, self.reporter.arrived, self.reporter.fetched)
        return to_fetch

    def _cut(self, sources: Sequence[Source]) -> tuple[list[tuple[str, layout.Content]], dict[str, int]]:
        """The parts with their contents, and those of them that were not there."""
        paths = {source.sha256: self.place.path(source) for source in sources}
        sizes = {sha256: path.stat().st_size for sha256, path in paths.items()}
        contents = layout.cut(sizes.items(), self.order.part_bytes)
        before = {path.name for path in self.parts.iterdir()}
        written: list[tuple[str, layout.Content]] = []
        new: dict[str, int] = {}
        if contents:
            self.reporter.phase("write", len(contents), sum(sizes.values()))
        with room_errors(self.order.folder, f"{sum(sizes.values()) / 1e9:.1f} GB of parts"):
            for content in contents:
                part, size = parts.write(content, paths, self.parts, self.stamps, self.reporter.arrived)
                written.append((part, content))
                self.reporter.wrote(size)
                if parts.path_of(part, self.parts).name not in before:
                    new[part] = size
        return written, new

    def _wheel(self, source: Source, pieces: tuple[Piece, ...], records: Mapping[str, str]) -> Wheel:
        size = sum(piece.length for piece in pieces) or source.size or 0
        record = records.get(source.sha256, "")
        return Wheel(source.filename, source.name, source.version, source.sha256, size, pieces, record != "", record)

    def _tool(self, own: Resolved) -> tuple[tuple[str, str], ...]:
        """Puts the tool's wheels in their folder, and nothing else."""
        folder = self.order.folder / TOOL
        with room_errors(self.order.folder, "the tool's own wheels"):
            folder.mkdir(exist_ok=True)
            wanted = {source.filename: source for source in own.sources}
            for path in folder.iterdir():
                source = wanted.get(path.name)
                if source is None or self.stamps.sha256(path) != source.sha256:
                    path.unlink()
            for name, source in wanted.items():
                if not (folder / name).exists():
                    unfinished = folder / f".{name}-{os.getpid()}"
                    shutil.copyfile(self.place.path(source), unfinished)
                    unfinished.replace(folder / name)
                    self.stamps.learnt(folder / name, source.sha256)
        return tuple((name, wanted[name].sha256) for name in sorted(wanted))

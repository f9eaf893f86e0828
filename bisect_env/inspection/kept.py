"""What was read of wheels and indexes, kept in the project's folder: a second command needs no network.

Below ``ROOT/inspected/``:

    pages/KEY.json           the files of a distribution on an index, and when it was asked
    wheels/KEY/START-END-SIZE-CRC
                             bytes of a wheel, as they came, with the size of the whole and their own CRC-32

The key of a wheel is its SHA-256, or that of its URL without credentials where the index tells none. Nothing is ever
changed: a file is written beside its place and moved there, so that processes may share the folder. Whatever cannot be
read or written counts as not kept.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from bisect_env.environments import trees
from bisect_env.environments.index import File
from bisect_env.environments.ranges import Pieces, Span
from bisect_env.matrix.urls import stripped

FOLDER = "inspected"
_PIECE = re.compile(r"(\d+)-(\d+)-(\d+)-([0-9a-f]{8})")
_KEY = re.compile(r"[0-9a-f]{64}")
_UNFINISHED = ".tmp-"


class KeptPieces(Pieces):
    """What was read of a wheel, on disk."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._paths: dict[Span, Path] = {}
        self._proved: set[Span] = set()
        with suppress(OSError):
            for path in sorted(folder.iterdir()):
                self._found(path)

    def _found(self, path: Path) -> None:
        match = _PIECE.fullmatch(path.name)
        if match is None:
            return
        start, end, size = (int(number) for number in match.groups()[:3])
        # Of pieces that lie over one another, as two processes may have left them, the first one serves.
        if start < end <= size and self.size in (None, size) and self.missing(start, end) == [(start, end)]:
            self.size = size
            self._paths[start, end] = path
            self._spans.append((start, end))
            self._spans.sort()

    def _keep(self, span: Span, data: bytes) -> None:
        path = self._folder / f"{span[0]}-{span[1]}-{self.size}-{zlib.crc32(data):08x}"
        try:
            write(path, data)
        except OSError:
            self._kept[span] = data
        else:
            self._paths[span] = path
            self._proved.add(span)

    def _get(self, span: Span, start: int, end: int) -> bytes | None:
        """None, too, for what is not as it was written: a damaged disk, a meddler, `clean` in another process."""
        if span in self._kept:
            return super()._get(span, start, end)
        path = self._paths.pop(span)
        try:
            # Proved once: a piece may hold hundreds of modules, which are read one by one.
            if span not in self._proved and not _as_written(path, span):
                path.unlink()
                return None
            with path.open("rb") as file:
                file.seek(start - span[0])
                data = file.read(end - start)
        except OSError:
            return None
        if len(data) != end - start:
            return None
        self._proved.add(span)
        self._paths[span] = path
        return data


def _as_written(path: Path, span: Span) -> bool:
    data = path.read_bytes()
    return len(data) == span[1] - span[0] and f"{zlib.crc32(data):08x}" == path.name[-8:]


def pieces(root: Path, file: File) -> KeptPieces:
    """What is kept of a wheel; ``root`` is the project's folder."""
    key = file.sha256 or hashlib.sha256(stripped(file.url).encode()).hexdigest()
    return KeptPieces(root / FOLDER / "wheels" / key)


def load_page(root: Path, urls: tuple[str, ...], name: str) -> tuple[datetime, tuple[File, ...]] | None:
    """When indexes were asked for a distribution, and what they had; None when they were not."""
    try:
        value = json.loads(_page(root, urls, name).read_text(encoding="utf-8"))
        files = []
        for each in value["files"]:
            uploaded = each["uploaded"]
            file = File(**{**each, "uploaded": uploaded and datetime.fromisoformat(uploaded)})
            files.append(file)
        return datetime.fromisoformat(value["asked"]), tuple(files)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_page(root: Path, urls: tuple[str, ...], name: str, files: tuple[File, ...]) -> None:
    """Keep what indexes have of a distribution, without credentials. Not kept where URLs cannot be without a query."""
    if any("?" in file.url for file in files):
        return
    rows = [asdict(replace(file, url=stripped(file.url))) for file in files]
    for row in rows:
        row["uploaded"] = row["uploaded"] and row["uploaded"].isoformat()
    text = json.dumps({"asked": datetime.now(UTC).isoformat(), "files": rows})
    with suppress(OSError):
        write(_page(root, urls, name), text.encode())


def kept_bytes(root: Path) -> int:
    """What all that is kept takes."""
    return sum(path.stat().st_size for path in _files(root))


def forget(root: Path) -> int:
    """Remove what is kept; gives the bytes. A process that reads at this moment fetches again what it misses."""
    freed = 0
    for path in _files(root):
        with suppress(OSError):
            size = path.stat().st_size
            path.unlink()
            freed += size
    # The user's own files may lie there: ``--store .`` makes any folder the project's.
    for folder in (*(root / FOLDER).glob("wheels/*"), *(root / FOLDER).glob("*"), root / FOLDER):
        with suppress(OSError):
            folder.rmdir()
    return freed


def write(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    trees.replace(path, data, prefix=_UNFINISHED)


def _files(root: Path) -> list[Path]:
    ours = [path for path in (root / FOLDER).glob("pages/*.json") if _KEY.fullmatch(path.stem)]
    for folder in (root / FOLDER).glob("wheels/*"):
        if _KEY.fullmatch(folder.name):
            ours += [path for path in folder.iterdir() if _PIECE.fullmatch(path.name)]
    unfinished = [path for path in (root / FOLDER).rglob(_UNFINISHED + "*") if path.is_file()]
    return [*ours, *unfinished]


def _page(root: Path, urls: tuple[str, ...], name: str) -> Path:
    key = hashlib.sha256("\n".join((*(stripped(url) for url in urls), name)).encode()).hexdigest()
    return root / FOLDER / "pages" / f"{key}.json"

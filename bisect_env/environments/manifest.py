"""Proof that a built environment is still what its lock says: by stat at every use, by content where that differs.

Hard links write through: a file that was changed in place in one environment is changed in uv's cache and in every
environment that shares it. :func:`quarantine` therefore takes all of them out of use and the packages out of the cache.
"""

from __future__ import annotations

import contextlib
import json
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bisect_env.environments import distributions, trees
from bisect_env.environments.distributions import Recorded, sha256_of
from bisect_env.environments.places import LOCK, MANIFEST, MARKER, QUARANTINE, VENV, built, environments_folder
from bisect_env.environments.records import Environment
from bisect_env.environments.trees import FileStat
from bisect_env.environments.uv import Uv
from bisect_env.errors import InfrastructureError

UNTRACKED = frozenset({".lock"})
"""uv locks an environment with this file; it says nothing of what is installed."""

NOT_LISTED = Recorded("", "", "", "")

LATE = 60 * 10**9
"""Nanoseconds. uv unpacks a wheel's files one after another, its metadata among the last; a file changed this much
later than its distribution's METADATA may have been changed by hand, through a hard link, and is read whole."""


class Entry(NamedTuple):
    """A file as it was when the environment was built. A tuple, since an environment has tens of thousands."""

    stat: FileStat
    sha256: str
    """As :func:`distributions.sha256_of` writes it."""
    owner: str
    """Normalised name of the distribution that lists it; empty for the virtual environment's own files."""


@dataclass(frozen=True)
class Manifest:
    """Every file of an environment, by its path in ``venv/``; and what it stands on."""

    files: dict[str, Entry]
    base_folders: tuple[str, ...] = ()
    """Folders of the base, whose digest is the lock's ``base_manifest``."""

    def save(self, path: Path) -> None:
        """Writes it in one step: a reader finds the old one or the new one.

        Not forced to the disk: what a power cut leaves cannot be read, and the environment is built anew.
        """
        value = {
            "base_folders": self.base_folders,
            "files": {name: [*entry.stat, entry.sha256, entry.owner] for name, entry in self.files.items()},
        }
        # The speed of json.dump with an indent, or of dump to a file, is a tenth of this.
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        trees.replace(path, text.encode(errors="surrogateescape"))

    @classmethod
    def load(cls, path: Path) -> Manifest:
        """Reads what :meth:`save` wrote. Raises OSError or ValueError."""
        value = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
        files = {name: Entry(FileStat(*line[:4]), line[4], line[5]) for name, line in value["files"].items()}
        return cls(files, tuple(value["base_folders"]))


@dataclass(frozen=True)
class Difference:
    """One file that is not what it was."""

    path: str
    what: str
    """``changed``, ``missing`` or ``extra``."""
    owner: str = ""

    def __str__(self) -> str:
        if self.what == "extra" and self.path.endswith(".pth"):
            return f"extra: {self.path} (Python runs it at every start)"
        return f"{self.what}: {self.path}"


def take(venv: Path, base_folders: tuple[str, ...] = ()) -> tuple[Manifest, tuple[Difference, ...]]:
    """The manifest of an environment just built, and the files in it whose content is not what their RECORD says.

    A file that RECORD names and that is not there is no sign of anything: some wheels name too many.

    Content is read only where RECORD gives no hash, another size, or where the file is suspiciously new (``LATE``);
    for the others RECORD's hash is taken, as uv unpacked them from an archive whose hash it had checked.
    """
    files = trees.walk(venv)
    listed = {line.path: line for line in distributions.records(venv)}
    unpacked = {
        line.owner: files[path].mtime_ns
        for path, line in listed.items()
        if path.endswith(".dist-info/METADATA") and path in files
    }
    entries: dict[str, Entry] = {}
    wrong = []
    for path, found in files.items():
        if path in UNTRACKED:
            continue
        _, owner, sha256, size = listed.get(path, NOT_LISTED)
        late = found.mtime_ns > unpacked.get(owner, 0) + LATE
        if not sha256 or late or size != str(found.size):
            actual = sha256_of(venv / path)
            if sha256 and sha256 != actual:
                wrong.append(Difference(path, "changed", owner))
            sha256 = actual
        entries[path] = Entry(found, sha256, owner)
    return Manifest(entries, base_folders), tuple(wrong)


def compare(venv: Path, manifest: Manifest) -> tuple[Manifest, tuple[Difference, ...]]:
    """What differs, and the manifest with the new stat of those files whose content is as it was."""
    files = trees.walk(venv)
    renewed: dict[str, Entry] = {}
    found = []
    for path, entry in manifest.files.items():
        now = files.get(path)
        if now is None:
            found.append(Difference(path, "missing", entry.owner))
        elif now != entry.stat:
            # Permissions alone do not make another file; a link in the place of a file does.
            same = stat.S_IFMT(now.mode) == stat.S_IFMT(entry.stat.mode) and now.size == entry.stat.size
            if same and sha256_of(venv / path) == entry.sha256:
                renewed[path] = Entry(now, entry.sha256, entry.owner)
            else:
                found.append(Difference(path, "changed", entry.owner))
    found += [Difference(path, "extra") for path in files.keys() - manifest.files.keys() - UNTRACKED]
    if renewed:
        manifest = Manifest(manifest.files | renewed, manifest.base_folders)
    return manifest, tuple(sorted(found, key=lambda difference: (difference.what, difference.path)))


def verify(environment: Environment) -> tuple[str, ...]:
    """How the environment differs from what was built from its lock, one line a file; empty when it does not.

    Stat of every file, and of the base's where it stands on one; a file with another stat is read and compared by
    its SHA-256, and remembered with the new stat when it is the same. ``__pycache__`` is left out: trials do not
    read it.
    """
    folder = environment.folder
    lines = []
    if not (folder / MARKER).is_file():
        lines.append("the marker is missing: the build did not come to its end")
    try:
        if (folder / LOCK).read_text(encoding="utf-8") != environment.lock.text:
            lines.append(f"{LOCK} is not the lock that was asked for")
        manifest = Manifest.load(folder / MANIFEST)
        renewed, found = compare(folder / VENV, manifest)
        if renewed is not manifest:
            renewed.save(folder / MANIFEST)
    except (OSError, ValueError, LookupError, TypeError) as error:
        return (*lines, f"it cannot be read: {error}")
    lines += [str(difference) for difference in found]
    if environment.lock.base is not None:
        try:
            now = trees.digest(Path(name) for name in manifest.base_folders)
        except OSError as error:
            return (*lines, f"its base cannot be read: {error}")
        if now != environment.lock.base_manifest:
            lines.append(f"the packages of its base {environment.lock.base} changed")
    return tuple(lines)


@dataclass(frozen=True)
class Quarantined:
    """What :func:`quarantine` did."""

    folders: tuple[Path, ...]
    """Where the environments lie now."""
    packages: tuple[str, ...]
    """Taken out of uv's cache: they are fetched anew."""


def quarantine(environment: Environment, root: Path, uv: Uv) -> Quarantined:
    """Takes an environment out of use, and with it every one under ``root`` that shares a file changed in it.

    A file changed through a hard link is changed in uv's cache too: its packages are removed there, so that the
    next build unpacks them from the index again. A file that was replaced (not written in place) concerns this
    environment alone. Nothing is deleted but what is in the cache: somebody may want to see the changes.

    Raises InfrastructureError when uv cannot clean its cache; the environments are out of use by then.
    """
    venv = environment.folder / VENV
    packages: set[str] = set()
    shared: set[tuple[int, int]] = set()
    # Without a manifest nothing tells what was changed; the environment is out of use all the same.
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        for difference in compare(venv, Manifest.load(environment.folder / MANIFEST))[1]:
            if difference.what != "changed":
                continue
            info = (venv / difference.path).lstat()
            if info.st_nlink > 1:
                shared.add((info.st_dev, info.st_ino))
                packages |= {difference.owner} - {""}
    folders = [_set_aside(environment.folder, root)]
    folders += [_set_aside(other, root) for other in built(root) if _has_any(other / VENV, shared)]
    if packages:
        finished = uv.run(["cache", "clean", *sorted(packages)])
        if not finished.ok:
            raise InfrastructureError(
                f"uv's cache holds changed files of {', '.join(sorted(packages))} and could not be cleaned: "
                f"{finished.stderr.strip()}\n  run `uv cache clean {' '.join(sorted(packages))}` by hand"
            )
    return Quarantined(tuple(folder for folder in folders if folder is not None), tuple(sorted(packages)))


def _has_any(venv: Path, files: set[tuple[int, int]]) -> bool:
    """Whether one of these files (device and inode) has a name in ``venv``."""
    if not files:
        return False
    inodes = {inode for _, inode in files}
    try:
        candidates = [path for path, info in trees.walk(venv).items() if info.inode in inodes]
        return any(((info := (venv / path).lstat()).st_dev, info.st_ino) in files for path in candidates)
    except OSError:
        return False


def _set_aside(folder: Path, root: Path) -> Path | None:
    target = environments_folder(root) / QUARANTINE / f"{folder.name}-{time.time_ns()}"
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        return folder.rename(target)
    except FileNotFoundError:
        return None  # another process was faster

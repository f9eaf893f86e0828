"""A wheel's modules, read out of the archive: of a file, or of one on a server that is fetched in parts."""

from __future__ import annotations

import re
import struct
import threading
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.inspection.installed import decoded, digest
from bisect_env.inspection.layout import Folder, Modules, module_path
from bisect_env.inspection.records import Held, Source, Sources

LARGEST = 2**25
"""Bytes of a module's text above which it is not read: no source that people write has as many."""
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, struct.error)
"""What zipfile raises for an archive that is cut short, damaged, encrypted, or packed in a way it does not know."""

_INSTALLED_ELSEWHERE = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")
_NOT_INSTALLED = re.compile(r"[^/]+\.(?:data|dist-info)/")

Ahead = Callable[[Sequence[zipfile.ZipInfo]], None]


class WheelSources:
    """The modules of one wheel; what :class:`Sources` promises. May be asked by several threads.

    Args:
        label: column heading.
        archive: open for reading.
        beneath: what a module that the wheel lacks is looked for in: the standard library.
        ahead: told of members that will be read next.
        named: what the wheel is called in messages; tells it from another place with the same label.
    """

    def __init__(
        self, label: str, archive: zipfile.ZipFile, beneath: Sources, named: str, ahead: Ahead = lambda _: None
    ) -> None:
        self.label, self.place = label, named
        self._archive, self._beneath, self._ahead = archive, beneath, ahead
        self._members = _members(archive)
        self._modules = Modules(("",), _looker(self._members))
        self._texts: dict[str, Source] = {}
        self._lock = threading.Lock()

    def module(self, name: str) -> Source | None:
        """As promised. Read once in the object's life."""
        if name in self._texts:
            return self._texts[name]
        place = self._modules.place(name)
        if place.held is Held.ABSENT and not self._own(name):
            return self._beneath.module(name)
        if place.held is not Held.SOURCE:
            return None
        if not place.file:
            return Source(name, "", "", True)  # a package without __init__
        source = decoded(self._read(place.file), name, module_path(name, place.package), place.package)
        return self._texts.setdefault(name, source)

    def holds(self, name: str) -> Held:
        """As promised; of the standard library too."""
        held = self._modules.place(name).held
        return self._beneath.holds(name) if held is Held.ABSENT and not self._own(name) else held

    def submodules(self, package: str) -> tuple[str, ...]:
        """As promised."""
        own = self._modules.below(package)
        if package and self._own(package):
            return own
        return tuple(sorted({*own, *self._beneath.submodules(package)}))

    def digests(self) -> Mapping[str, str]:
        """CRC-32 and size of each file, from the archive's directory."""
        return {path: digest(info.CRC, info.file_size) for path, info in self._members.items() if path.endswith(".py")}

    def fetch(self, names: Iterable[str]) -> None:
        """Have these modules at hand, several at a time, before they are asked for one by one."""
        places = [self._modules.place(name) for name in names if name not in self._texts]
        self._look_ahead([self._members[place.file] for place in places if place.file])

    def _own(self, name: str) -> bool:
        return self._modules.place(name.partition(".")[0]).held is not Held.ABSENT

    def _look_ahead(self, infos: Sequence[zipfile.ZipInfo]) -> None:
        try:
            self._ahead(infos)
        except OSError as error:
            raise self._trouble(error) from error

    def _read(self, path: str) -> bytes:
        info = self._members[path]
        if info.file_size > LARGEST:
            raise InfrastructureError(f"{path} in {self.place} says that it has {info.file_size} bytes: not read")
        try:
            self._look_ahead([info])
            with self._lock:
                return self._archive.read(info)
        except (OSError, *DAMAGE) as error:
            raise self._trouble(error, path) from error

    def _trouble(self, error: Exception, path: str = "") -> InfrastructureError:
        where = f"{path} in {self.place}" if path else self.place
        if isinstance(error, OSError):
            return InfrastructureError(f"{where} cannot be read: {error.strerror or error}")
        return InfrastructureError(f"{where} is damaged: {error}")


def fetch_ahead(sources: Sources, names: Iterable[str]) -> None:
    """Tell a place which modules will be asked for; one that has them at hand anyway does nothing.

    Raises:
        InfrastructureError: they cannot be had.
    """
    if isinstance(sources, WheelSources):
        sources.fetch(names)


def open_wheel(path: Path, beneath: Sources) -> WheelSources:
    """A wheel on this machine, told by its distribution and version.

    Raises:
        BadInput: it is not there, or no wheel.
        InfrastructureError: it is damaged.
    """
    label = wheel_label(path.name)
    if label is None:
        raise BadInput(path, "", "not the name of a wheel", "a file such as torch-2.11.0-cp312-cp312-linux_x86_64.whl")
    try:
        archive = zipfile.ZipFile(path)
    except FileNotFoundError:
        raise BadInput(path, "", "there is no such file", "a wheel") from None
    except OSError as error:
        raise BadInput(path, "", f"cannot be read: {error.strerror}", "a wheel") from error
    except DAMAGE as error:
        wanted = "a wheel; was it copied or downloaded to its end?"
        raise BadInput(path, "", f"not a whole wheel: {error}", wanted) from error
    return WheelSources(label, archive, beneath, str(path))


def wheel_label(filename: str) -> str | None:
    """``torch 2.11.0`` of a wheel's file name; None where it is no wheel's."""
    try:
        name, version, _, _ = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return None
    return f"{name} {version}"


def module_spans(archive: zipfile.ZipFile) -> Callable[[Iterable[zipfile.ZipInfo]], list[tuple[int, int]]]:
    """Gives the part of the file that each member takes: up to where the next one begins."""
    starts = sorted({info.header_offset for info in archive.infolist()} | {archive.start_dir})
    ends = dict(pairwise(starts))
    return lambda infos: [(info.header_offset, ends.get(info.header_offset, archive.start_dir)) for info in infos]


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """What a wheel installs in the folder of packages, by the path there."""
    found = {}
    for info in archive.infolist():
        path = _INSTALLED_ELSEWHERE.sub("", info.filename, count=1)
        if not info.is_dir() and not _NOT_INSTALLED.match(path):
            found[path] = info
    return found


def _looker(paths: Iterable[str]) -> Callable[[str], Folder]:
    files: dict[str, set[str]] = defaultdict(set)
    folders: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        folder, _, name = path.rpartition("/")
        files[folder].add(name)
        while folder:
            folder, _, name = folder.rpartition("/")
            if name in folders[folder]:
                break
            folders[folder].add(name)
    known = {
        folder: Folder(frozenset(files.get(folder, ())), frozenset(folders.get(folder, ())))
        for folder in files.keys() | folders.keys()
    }
    return lambda folder: known.get(folder, Folder())

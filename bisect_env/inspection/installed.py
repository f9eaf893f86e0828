"""An environment's modules, read where they lie. Its interpreter is asked once where that is; nothing is imported."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import sysconfig
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bisect_env.environments.places import VENV
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.inspection.layout import Folder, Modules, Place, module_path
from bisect_env.inspection.records import Held, Source

PATIENCE = 60.0
"""Seconds that an interpreter may take to describe itself; its file system may be a slow one."""

ASK = """
import importlib.metadata, json, os, platform, sys, sysconfig
wanted = sys.argv[1]
version, files = None, []
try:
    one = importlib.metadata.distribution(wanted) if wanted else None
except importlib.metadata.PackageNotFoundError:
    one = None
if one is not None:
    version = one.version
    files = [str(file) for file in one.files or () if file.suffix == ".py" and ".." not in file.parts]
elsewhere = {}
for name, module in list(sys.modules.items()):
    if name.startswith("__editable__"):
        elsewhere.update(getattr(module, "MAPPING", {}))
standard = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
standard |= {os.path.join(path, "lib-dynload") for path in standard}
print()
print(json.dumps({
    "python": platform.python_version(), "prefix": sys.prefix, "version": version, "files": files,
    "paths": [path for path in sys.path if os.path.isdir(path)], "standard": sorted(standard),
    "built_in": sys.builtin_module_names, "elsewhere": {name: str(path) for name, path in elsewhere.items()},
}))
"""
"""Run with ``-I``: neither its user's packages nor PYTHONPATH are part of it, as in a trial."""


@dataclass(frozen=True)
class Told:
    """What an interpreter says of itself."""

    python: str
    """``3.12.1``"""
    prefix: str
    version: str | None
    """Of the distribution that was asked for; None where it is not installed."""
    files: tuple[str, ...]
    """Its ``.py`` files, relative to the folder of packages; empty for an editable install."""
    paths: tuple[str, ...]
    """Folders that modules are looked for in, in Python's order, the standard library's among them."""
    standard: tuple[str, ...]
    """Folders of the standard library."""
    built_in: tuple[str, ...]
    elsewhere: Mapping[str, str]
    """Top-level modules that an editable install's finder leads to, with the paths."""


class Installed:
    """The modules that an interpreter would import; what :class:`Sources` promises."""

    def __init__(self, label: str, told: Told, place: str) -> None:
        self.label, self.told = label, told
        self.place = place
        """What tells it from another place with the same label."""
        self._modules = Modules(told.paths, look, told.elsewhere, told.built_in)
        self._digests: dict[str, str] | None = None

    def module(self, name: str) -> Source | None:
        """As promised."""
        return read(self._modules.place(name), name, self.label)

    def holds(self, name: str) -> Held:
        """As promised; of the standard library too."""
        return self._modules.place(name).held

    def submodules(self, package: str) -> tuple[str, ...]:
        """As promised."""
        return self._modules.below(package)

    def digests(self) -> Mapping[str, str]:
        """CRC-32 and size, as a wheel's directory has them, of the asked distribution's files; of all without one.

        The files are read (2,500 of torch in half a second) and RECORD's hashes are not taken: they could not be
        compared with a wheel's, and know nothing of a file that was changed since.
        """
        if self._digests is None:
            self._digests = dict(self._digested())
        return self._digests

    def _digested(self) -> list[tuple[str, str]]:
        own = [path for path in self.told.paths if path not in self.told.standard]
        result: dict[str, str] = {}
        for file in self.told.files or ():
            for folder in own:
                path = Path(folder) / file
                if path.is_file():
                    result.setdefault(file, _digest(path))
        if not self.told.files:
            roots = [(Path(folder), "") for folder in own]
            roots += [(Path(path), f"{name}/") for name, path in self.told.elsewhere.items()]
            for root, prefix in roots:
                for place, folders, names in os.walk(root):
                    folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
                    for name in names:
                        if name.endswith(".py"):
                            path = Path(place) / name
                            result.setdefault(prefix + path.relative_to(root).as_posix(), _digest(path))
        return sorted(result.items())


def installed(word: str, distribution: str = "") -> Installed:
    """The environment of an interpreter, or of a folder with one in it.

    Raises:
        BadInput: there is no Python.
    """
    python = interpreter(word)
    told = _ask(python, word, distribution)
    place = environment_name(python)
    return Installed(place if told.version is None else f"{distribution} {told.version}", told, place)


def running_standard_library() -> Installed:
    """The standard library of the Python that runs this: what a wheel's modules find beside them."""
    folders = dict.fromkeys(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    paths = tuple(path for folder in folders for path in (folder, str(Path(folder) / "lib-dynload")))
    python = platform.python_version()
    told = Told(python, sys.prefix, None, (), paths, paths, tuple(sys.builtin_module_names), {})
    return Installed(f"Python {python}", told, sys.prefix)


def interpreter(word: str) -> Path:
    """The Python of an environment's folder; ``word`` itself where it is one. Links are kept: they make a venv one.

    Raises:
        BadInput: there is none.
    """
    path = Path(word).expanduser().absolute()
    if path.is_dir():
        for candidate in (path / "bin" / "python", path / VENV / "bin" / "python", path / "bin" / "python3"):
            if candidate.exists():
                return candidate
        raise BadInput(word, "", "a folder without bin/python", "an environment's folder, or its interpreter")
    if not path.exists():
        raise BadInput(word, "", "there is no such file or folder", "an environment's folder, or its interpreter")
    return path


def environment_name(python: Path) -> str:
    """What an environment is called: its folder's name; that of the folder around one named ``venv`` or ``.venv``."""
    folder = python.parent.parent if python.parent.name == "bin" else python
    if folder.name in (VENV, ".venv") and folder.parent.name:
        folder = folder.parent
    return folder.name or str(python)


def look(folder: str) -> Folder:
    """What lies in a folder on disk."""
    files: set[str] = set()
    folders: set[str] = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):  # a link that leads in a circle
                    if entry.is_dir():
                        folders.add(entry.name)
                    elif entry.is_file():
                        files.add(entry.name)
    except OSError:
        return Folder()  # as Python does with a folder that it may not read
    return Folder(frozenset(files), frozenset(folders))


def read(place: Place, name: str, label: str) -> Source | None:
    """A module's text, of a file on disk.

    Raises:
        InfrastructureError: it is there and cannot be read.
    """
    if place.held is not Held.SOURCE:
        return None
    if not place.file:
        return Source(name, "", "", True)
    try:
        data = Path(place.file).read_bytes()
    except OSError as error:
        raise InfrastructureError(f"{name} of {label} cannot be read: {place.file}: {error.strerror}") from error
    return decoded(data, name, module_path(name, place.package), place.package)


def decoded(data: bytes, name: str, path: str, package: bool) -> Source:
    """A module by its file's bytes, in the encoding that they name; with an error where they are no text of that."""
    try:
        return Source(name, path, importlib.util.decode_source(data), package)
    except (SyntaxError, UnicodeDecodeError) as error:
        return Source(name, path, "", package, f"no text of the encoding that it names: {error}")


def digest(checksum: int, size: int) -> str:
    """How a file's content is told by :meth:`Sources.digests`, everywhere: CRC-32 and bytes."""
    return f"crc32:{checksum:08x}:{size}"


def _digest(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InfrastructureError(f"{path} cannot be read: {error.strerror}") from error
    return digest(zlib.crc32(data), len(data))


def _ask(python: Path, word: str, distribution: str) -> Told:
    wanted = "an environment's folder, or its interpreter"
    command: list[str | Path] = [python, "-I", "-B", "-c", ASK, distribution]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise InfrastructureError(f"{word} did not say where its modules are within {PATIENCE:g} s") from error
    except OSError as error:
        raise BadInput(word, "", f"not a Python that runs: {error.strerror}", wanted) from error
    try:
        # What a .pth or a sitecustomize prints at every start comes first.
        value = json.loads(asked.stdout.strip().rpartition("\n")[2])
        return Told(
            value["python"],
            value["prefix"],
            value["version"],
            tuple(value["files"]),
            tuple(value["paths"]),
            tuple(value["standard"]),
            tuple(value["built_in"]),
            value["elsewhere"],
        )
    except (ValueError, KeyError, TypeError) as error:
        words = (asked.stderr.strip().splitlines() or [f"it printed {asked.stdout[:80]!r}"])[-1]
        raise BadInput(word, "", f"not a Python that can be asked for its modules: {words}", wanted) from error

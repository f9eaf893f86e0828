"""Which modules a tree of files holds, by the rules of Python's own import. Pure: what lies where is asked for.

Folders are named by strings that only :data:`Look` understands: paths on disk, or names within a wheel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bisect_env.inspection.records import Held

_EXTENSION = re.compile(r"([^.]+)\.(?:(?:cpython-|cp\d|pypy|abi3|graalpy)[^.]*\.)?(?:so|pyd)")
_TAGGED = re.compile(r"[^.]+\.(?:cpython-|cp\d|pypy|abi3|graalpy)[^.]*\.(?:so|pyd)")
DEEPEST = 8
"""Levels of folders without an ``__init__`` that are looked through for a module: what lies deeper is data."""


@dataclass(frozen=True)
class Folder:
    """What lies in a folder: names alone."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()


Look = Callable[[str], Folder]
"""What lies in a folder; an empty :class:`Folder` where there is none."""


@dataclass(frozen=True)
class Place:
    """Where a module is."""

    held: Held
    file: str = ""
    """Of a source, in the words of the tree; empty for a package without ``__init__``."""
    package: bool = False
    folders: tuple[str, ...] = ()
    """Of a package: where its submodules are looked for, in this order."""


ABSENT = Place(Held.ABSENT)


def module_name(path: str) -> str | None:
    """The dotted name of the module that a ``.py`` file is, by its path in a wheel; None where it can be none."""
    parts = path.removesuffix(".py").split("/")
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts) if path.endswith(".py") and parts and all(map(str.isidentifier, parts)) else None


def module_path(name: str, package: bool) -> str:
    """The path that a module's source has in a wheel."""
    return name.replace(".", "/") + ("/__init__.py" if package else ".py")


class Modules:
    """The modules below some folders. Answers are kept: the tree must not change.

    Args:
        roots: where top-level modules are looked for, in this order.
        look: tells what lies in a folder.
        elsewhere: top-level modules that lie at a path of their own (editable installs), by name; the path is that of
            a package's folder, or of a module's file. They come after the roots.
        built_in: top-level modules without a file.
    """

    def __init__(
        self,
        roots: Sequence[str],
        look: Look,
        elsewhere: Mapping[str, str] | None = None,
        built_in: Sequence[str] = (),
    ) -> None:
        self._roots, self._look = tuple(roots), look
        self._elsewhere, self._built_in = dict(elsewhere or {}), frozenset(built_in)
        self._places: dict[str, Place] = {}

    def place(self, name: str) -> Place:
        """Where a module is; :data:`ABSENT` where there is none."""
        if name not in self._places:
            self._places[name] = self._find(name)
        return self._places[name]

    def below(self, package: str) -> tuple[str, ...]:
        """Last parts of the names of the modules right below a package, sorted; of the top-level ones for ``""``."""
        folders = self.place(package).folders if package else self._roots
        names: set[str] = set() if package else {*self._elsewhere, *self._built_in}
        for folder in folders:
            inside = self._look(folder)
            names |= {stem for file in inside.files if (stem := _stem(file))} | set(inside.folders)
        prefix = package + "." if package else ""
        possible = (name for name in names if name.isidentifier() and name not in ("__init__", "__pycache__"))
        return tuple(sorted(name for name in possible if self.place(prefix + name).held is not Held.ABSENT))

    def _find(self, name: str) -> Place:
        parent, _, last = name.rpartition(".")
        if not last.isidentifier():
            return ABSENT
        if parent:
            above = self.place(parent)
            return self._among(above.folders, last, regular=bool(above.file)) if above.package else ABSENT
        if last in self._built_in:
            return Place(Held.EXTENSION)
        found = self._among(self._roots, last, regular=True)
        if found is ABSENT and last in self._elsewhere:
            folder, _, file = self._elsewhere[last].rpartition("/")
            return self._among((folder,), file.removesuffix(".py"), regular=True)
        return found

    def _among(self, folders: Sequence[str], last: str, regular: bool) -> Place:
        """The module in the first folder that has it; folders without ``__init__`` make one package together.

        ``regular``: in such a folder every ``.so`` is taken for a module, elsewhere libraries lie about as well.
        """
        portions = []
        for folder in folders:
            inside, path = self._look(folder), _join(folder, last)
            if last in inside.folders:
                files = self._look(path).files
                held, file = _best(files, "__init__", True)
                if held is not Held.ABSENT:
                    return Place(held, _join(path, file) if held is Held.SOURCE else "", True, (path,))
            held, file = _best(inside.files, last, regular)
            if held is not Held.ABSENT:
                return Place(held, _join(folder, file) if held is Held.SOURCE else "")
            if last in inside.folders and self._has_modules(path, DEEPEST):
                portions.append(path)
        return Place(Held.SOURCE, "", True, tuple(portions)) if portions else ABSENT

    def _has_modules(self, folder: str, levels: int) -> bool:
        inside = self._look(folder)
        if any(file.endswith((".py", ".pyc")) or _TAGGED.fullmatch(file) for file in inside.files):
            return True
        below = (name for name in inside.folders if name.isidentifier() and name != "__pycache__")
        return levels > 0 and any(self._has_modules(_join(folder, name), levels - 1) for name in below)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _best(files: frozenset[str], stem: str, regular: bool) -> tuple[Held, str]:
    """How a folder has a module, and the file: compiled code comes first, as for Python."""
    if any(file.startswith(stem + ".") and (_EXTENSION if regular else _TAGGED).fullmatch(file) for file in files):
        return Held.EXTENSION, ""
    if stem + ".py" in files:
        return Held.SOURCE, stem + ".py"
    return (Held.EXTENSION, "") if stem + ".pyc" in files else (Held.ABSENT, "")


def _stem(file: str) -> str:
    if file.endswith((".py", ".pyc")):
        return file.rpartition(".")[0]
    found = _EXTENSION.fullmatch(file)
    return found[1] if found else ""

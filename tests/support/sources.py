"""Sources held as text in a dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent

from bisect_env.inspection.records import Held, Source


class Texts:
    """Modules by dotted name; a name with modules below it is a package. ``reads`` counts what was asked for."""

    def __init__(self, modules: Mapping[str, str], compiled: tuple[str, ...] = (), label: str = "texts") -> None:
        self.modules = {name: dedent(text) for name, text in modules.items()}
        for name in list(self.modules):
            while "." in name:
                name = name.rpartition(".")[0]
                self.modules.setdefault(name, "")
        self.compiled, self._label = compiled, label
        self.reads: list[str] = []

    @property
    def label(self) -> str:
        return self._label

    def module(self, name: str) -> Source | None:
        if name not in self.modules:
            return None
        self.reads.append(name)
        package = any(other.startswith(f"{name}.") for other in (*self.modules, *self.compiled))
        path = name.replace(".", "/") + ("/__init__.py" if package else ".py")
        return Source(name, path, self.modules[name], package)

    def holds(self, name: str) -> Held:
        if name in self.modules:
            return Held.SOURCE
        return Held.EXTENSION if name in self.compiled else Held.ABSENT

    def submodules(self, package: str) -> tuple[str, ...]:
        before = f"{package}." if package else ""
        names = [name[len(before) :] for name in (*self.modules, *self.compiled) if name.startswith(before)]
        return tuple(sorted({name for name in names if "." not in name}))

    def digests(self) -> Mapping[str, str]:
        return {}

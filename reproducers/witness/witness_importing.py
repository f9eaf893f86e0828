"""Begins the witness: rewrites the watched modules of torch and transformers while they are imported.

Only source files are touched, and only in memory: nothing is written beside them, byte code included.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from witness_endings import Endings
from witness_hooks import Hooks, own_codes
from witness_lanes import Lanes
from witness_log import Log
from witness_rewriting import Rewritten, rewrite
from witness_targets import MODULES, Function, Guard, Key, Module

_GUARDED = "torch._dynamo.eval_frame"
"""Dynamo begins in this module: from here on it can be told what to leave alone."""
_NOTHING = Module()


def begin(path: str) -> None:
    """Witness this process from now on, and write the log to ``path``. torch must not be imported yet.

    Raises:
        OSError: the log cannot be written.
    """
    lanes = Lanes()
    log = Log(path, lanes)
    sys.meta_path.insert(0, Finder(log, Hooks(lanes)))
    log.begin()
    Endings(lanes, log).begin()


class Finder:
    """Finds what the other finders find, and gives watched modules a loader that rewrites them."""

    def __init__(self, log: Log, hooks: Hooks) -> None:
        self.log, self.hooks = log, hooks
        self.flags: dict[str, str] = {}
        self._words = re.compile(rb"(?!)")
        self._told = False
        self._here = threading.local()
        """``names`` of modules that this thread is looking for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As every finder's."""
        top = fullname.partition(".")[0]
        if top != "torch" and fullname not in MODULES:
            return None
        names: set[str] = self._here.__dict__.setdefault("names", set())
        if fullname in names:
            return None  # a finder of the program's own asks the others, as this one does
        names.add(fullname)
        try:
            return self._found(fullname, path, target)
        finally:
            names.discard(fullname)

    def _found(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        spec = None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None:
                spec = find(fullname, path, target)
                if spec is not None:
                    break
        if spec is None or spec.origin is None:
            return spec
        if fullname == "torch" and not self._told:
            self._told = True
            self._discover(Path(spec.origin).parent)
        if type(spec.loader) is not SourceFileLoader:
            if fullname in MODULES:
                self._unwatched(fullname, f"{fullname} is not loaded from a source file")
            return spec
        if fullname in MODULES or self._mentions(spec.origin):
            spec.loader = Loader(fullname, spec.origin, self)
        return spec

    def _mentions(self, origin: str) -> bool:
        with suppress(OSError), open(origin, "rb") as file:  # noqa: PTH123 - a thousand files in an import
            return self._words.search(file.read()) is not None
        return False

    def _discover(self, root: Path) -> None:
        """Which global flags this torch has: they are reached from modules that come before their own."""
        with suppress(OSError):
            found = re.search(r"^__version__ = ['\"]([^'\"]+)", (root / "version.py").read_text(), re.MULTILINE)
            self.log.say(torch=found[1] if found else "")
        for name, module in MODULES.items():
            if not name.startswith("torch."):
                continue
            file = _file(root, name)
            if not file.is_file():
                if not (module.instead and _file(root, module.instead).is_file()):
                    self._unwatched(name, f"this torch has no {name}")
            elif module.flags:
                with suppress(OSError, SyntaxError):
                    self.flags.update(rewrite(file.read_bytes(), name, module, {}).flags)
        if self.flags:
            self._words = re.compile("|".join(map(re.escape, self.flags)).encode())

    def _unwatched(self, name: str, why: str) -> None:
        module = MODULES[name]
        states = [state for state, _ in (*module.flags, *module.objects, *module.locks)]
        items: tuple[Function | Guard | Key, ...] = (*module.functions, *module.guards, *module.keys)
        for state in dict.fromkeys([*states, *(item.state for item in items)]):
            self.log.say(unknown=state, why=why)

    def rewritten(self, name: str, origin: str, data: bytes) -> Rewritten | None:
        """The module's new tree; None to leave it as it is, which the log then says."""
        try:
            found = rewrite(data, _short(origin), MODULES.get(name, _NOTHING), self.flags)
        except (SyntaxError, RecursionError, ValueError) as error:
            if name in MODULES:
                self._unwatched(name, f"{name} cannot be rewritten: {error}")
            return None
        for item in found.found:
            self.log.say(watched=item.state, where=item.where, how=item.how)
        for state, what in found.missing:
            self.log.say(unknown=state, why=f"{_short(origin)} has no {what}")
        return found


class Loader(SourceFileLoader):
    """Loads a module from rewritten source. It reads and writes no byte code."""

    def __init__(self, fullname: str, path: str, finder: Finder) -> None:
        super().__init__(fullname, path)
        self._finder = finder

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code, with its hooks among its globals."""
        path = self.get_filename(self.name)
        data = self.get_data(path)
        new = self._finder.rewritten(self.name, path, data)
        if new is None or not new.hooks:
            super().exec_module(module)
            return
        space: dict[str, Any] = module.__dict__
        for hook in new.hooks:
            space[hook.name] = self._finder.hooks.make(hook, space)
        exec(compile(new.tree, path, "exec", dont_inherit=True), space)
        skip_code = space.get("skip_code")
        if self.name == _GUARDED and skip_code is not None:
            for code in own_codes():
                skip_code(code)


def _file(root: Path, name: str) -> Path:
    place = root.joinpath(*name.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _short(path: str) -> str:
    parts = Path(path).parts
    for place in range(len(parts) - 1, -1, -1):
        if parts[place] in ("site-packages", "dist-packages"):
            return "/".join(parts[place + 1 :])
    return "/".join(parts[-3:])

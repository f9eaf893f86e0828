"""Finding the Python that a cell asks for: on PATH, under pyenv, or among those uv manages. Nothing is downloaded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from bisect_env.environments.records import Interpreter, Reason, Unavailable

QUESTION = """\
import json, os, platform, sys, sysconfig
print(json.dumps({
    "path": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
    "version": platform.python_version(),
    "implementation": sys.implementation.name,
    "platform": sysconfig.get_platform(),
}))
"""
"""Answered by the interpreter itself; inside a virtual environment it names the interpreter beneath."""

NAME = re.compile(r"python(3(\.\d+)?)?")
REQUEST = re.compile(r"(?:cpython|python)?[-@]?(\d+(?:\.\d+){0,2})(?:\.\*)?")
PATIENCE = 10.0
"""Seconds an interpreter may take to answer."""


def find(request: str | None) -> Interpreter | Unavailable:
    """The interpreter for a request: ``3.12``, ``3.12.1``, a path, or None for the one that runs the tool.

    Of several the tool's own wins, then PATH in its order, then pyenv's and uv's with the highest version.
    """
    if request is None:
        return _own()
    if "/" in request:
        return _at(Path(request).expanduser())
    match = REQUEST.fullmatch(request.strip())
    if match is None:
        return _refusal(f"{request!r} is no request for a Python: write a version such as 3.12, or a path", ())
    wanted = match[1]
    seen: list[Interpreter] = []
    for interpreter in _all():
        if interpreter.implementation == "cpython" and f"{interpreter.version}.".startswith(f"{wanted}."):
            return interpreter
        seen.append(interpreter)
    return _refusal(f"no Python {wanted} on this machine: install it (or name its path)", seen)


def _at(path: Path) -> Interpreter | Unavailable:
    return _ask(path) or _refusal(f"{path} is no Python that runs", ())


def _own() -> Interpreter:
    own = _ask(Path(sys.executable))
    if own is None:
        raise RuntimeError(f"{sys.executable} runs this program and does not answer")
    return own


def _refusal(message: str, seen: Iterable[Interpreter]) -> Unavailable:
    found = sorted({f"{each.version} ({each.path})" for each in seen})
    tail = f"; found {', '.join(found)}" if found else ""
    return Unavailable("resolve", Reason.INTERPRETER, message + tail)


def _all() -> Iterator[Interpreter]:
    yield _own()
    for path in (*on_path(os.environ), *under_pyenv(os.environ), *managed_by_uv(os.environ)):
        interpreter = _ask(path)
        if interpreter is not None:
            yield interpreter


def on_path(environment: Mapping[str, str]) -> Iterator[Path]:
    """Pythons on PATH, without pyenv's shims: an inactive one does not run, and the active ones are found below."""
    for entry in environment.get("PATH", "").split(os.pathsep):
        folder = Path(entry)
        if not entry or folder.name == "shims" or not folder.is_dir():
            continue
        names = (path.name for path in folder.glob("python*") if NAME.fullmatch(path.name))
        # python3 before python3.12: what the user gets by typing it comes first.
        yield from (folder / name for name in sorted(names, key=lambda name: (name.count("."), name)))


def under_pyenv(environment: Mapping[str, str]) -> Iterator[Path]:
    """Pythons that pyenv has installed, the highest version first."""
    root = environment.get("PYENV_ROOT") or str(Path.home() / ".pyenv")
    yield from _installations(Path(root) / "versions")


def managed_by_uv(environment: Mapping[str, str]) -> Iterator[Path]:
    """Pythons that uv has installed, the highest version first."""
    data = environment.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    yield from _installations(Path(environment.get("UV_PYTHON_INSTALL_DIR") or f"{data}/uv/python"))


def _installations(root: Path) -> Iterator[Path]:
    if not root.is_dir():
        return
    folders = [folder for folder in root.iterdir() if (folder / "bin" / "python3").exists()]
    yield from (folder / "bin" / "python3" for folder in sorted(folders, key=_numbers, reverse=True))


def _numbers(folder: Path) -> tuple[tuple[int, ...], str]:
    return tuple(int(number) for number in re.findall(r"\d+", folder.name)), folder.name


def _ask(path: Path) -> Interpreter | None:
    try:
        # An upgrade in place has another time: nothing stale is remembered.
        return _answer(path, path.stat().st_mtime_ns)
    except OSError:
        return None


@lru_cache(maxsize=256)
def _answer(path: Path, _changed: int) -> Interpreter | None:
    try:
        answer = subprocess.run(
            [path, "-I", "-c", QUESTION], capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        # What a sitecustomize prints at every start comes first.
        told = json.loads(answer.stdout.strip().rpartition("\n")[2])
        return Interpreter(Path(told["path"]), told["version"], told["implementation"], told["platform"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return None

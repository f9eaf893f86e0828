"""Where a snapshot comes from: a file, a revision of one, standard input, a stored cell, an environment, a host.

=================================  ==================================================================================
``good.txt``                       a file in any of the forms; ``good.txt#2`` the second of several reports in it
``-``                              standard input
``main:uv.lock``                   a file as of a git revision, of the repository that the working folder is in
``cell:ID``                        a cell of the store, or one of its environments or trials, by the beginning of an id
``env:PATH``, or the path alone    a built environment: its folder, or its interpreter
``host:PREFIX``                    a host, through a command prefix (:mod:`bisect_env.snapshots.hosts`)
=================================  ==================================================================================
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

from bisect_env.errors import BadInput
from bisect_env.matrix.urls import without_credentials
from bisect_env.snapshots import git, hosts, measured, pasted, several
from bisect_env.snapshots.forms import collect_env, lightning_env, transformers_env, vllm_env
from bisect_env.snapshots.forms.requirements import Beside
from bisect_env.snapshots.reading import read_text
from bisect_env.snapshots.records import Snapshot, Target, this_host
from bisect_env.store.database import Store

STDIN = "-"
_NUMBERED = re.compile(r"(?P<source>.+)#(?P<number>\d{1,6})")
_REVISION = re.compile(r"(?P<revision>[^:-][^:]*):(?P<path>[^:]+)")
_CHOSEN = re.compile(r"(?P<source>.+[^\s])\[(?P<names>[A-Za-z0-9._, -]+)\]")
_WANTED = "a file, `-`, REVISION:FILE of git, cell:ID, env:FOLDER, or host:COMMAND (host:ssh gpu3)"
_OPENINGS = (vllm_env.SECTIONED, collect_env.OPENING, vllm_env.PLAIN, transformers_env.OPENING, lightning_env.OPENING)


def snapshot(
    spec: str, store: Store | None = None, host: Target | None = None, timeout: float = hosts.TIMEOUT
) -> Snapshot:
    """The snapshot that ``spec`` names, with ``spec`` (without secrets) as its origin.

    Args:
        spec: one of the sources above. A file that exists wins over what its name could mean otherwise.
        store: for ``cell:``.
        host: for markers, where a file has any; None: this one.
        timeout: seconds a host or an interpreter may take.

    Raises:
        BadInput: there is no such thing, it is of no known form, or a host does not answer as one.
        InfrastructureError: a host, a disk or the store does not answer.
    """
    kind, _, rest = spec.partition(":")
    chosen = _CHOSEN.fullmatch(spec)
    if chosen is not None and kind not in ("host", "cell", "env") and not os.path.lexists(Path(spec).expanduser()):
        found = snapshot(chosen["source"], store, (host or this_host()).choosing(chosen["names"]), timeout)
        return replace(found, origin=without_credentials(spec))
    if kind == "host":
        return _captured(hosts.route(rest, hosts.shown(spec)), hosts.shown(spec), host, timeout)
    if kind == "cell":
        return measured.snapshot(rest.strip(), store, spec)
    if kind == "env":
        return _environment(Path(rest).expanduser(), spec, host, timeout)
    if spec == STDIN or (spec.startswith(f"{STDIN}#") and not Path(spec).exists()):
        number = _NUMBERED.fullmatch(spec)
        return _text(pasted.decode(_standard_input(), STDIN), STDIN, number, host, None)
    path = Path(spec).expanduser()
    if not os.path.lexists(path) and (number := _NUMBERED.fullmatch(spec)):
        return _file(number["source"], number, host, timeout)
    return _file(spec, None, host, timeout)


def _file(name: str, number: re.Match[str] | None, host: Target | None, timeout: float) -> Snapshot:
    path = Path(name).expanduser()
    if path.is_dir() or _is_python(path):
        return _environment(path, name, host, timeout)
    if os.path.lexists(path):
        return _text(pasted.decode(_read(path, name), name), name, number, host, _beside(path))
    revision = _REVISION.fullmatch(name)
    if revision is None:
        raise BadInput(without_credentials(name), "", "there is no such file", _WANTED)
    origin = without_credentials(name)
    where = git.Place(revision["revision"], revision["path"], Path.cwd())
    return _text(pasted.decode(git.read(where, origin, pasted.LARGEST + 1), origin), origin, number, host, where.beside)


def _text(text: str, origin: str, number: re.Match[str] | None, host: Target | None, beside: Beside | None) -> Snapshot:
    if number is not None:
        text = several.pick(text, int(number["number"]), _OPENINGS, origin)
        return replace(read_text(text, origin, host, beside), origin=number[0])
    return read_text(text, origin, host, beside)


def _read(path: Path, origin: str) -> bytes:
    try:
        if path.stat().st_size == 0 and not path.is_file():
            raise BadInput(origin, "", "no regular file", _WANTED)  # A device may never end.
        with path.open("rb") as file:
            return file.read(pasted.LARGEST + 1)
    except OSError as error:
        raise BadInput(origin, "", f"it cannot be read: {error.strerror}", _WANTED) from None


def _standard_input() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise BadInput(STDIN, "", "standard input is a terminal", f"a pipe (pip freeze | bisect-env ...), or {_WANTED}")
    return sys.stdin.buffer.read(pasted.LARGEST + 1)


def _beside(path: Path) -> Beside:
    """Files named in a requirements file, relative to it."""

    def text(name: str) -> str | None:
        other = path.parent / name
        return pasted.decode(_read(other, str(other)), str(other)) if other.is_file() else None

    return text


def _is_python(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK) and re.fullmatch(r"python[\d.]*", path.name) is not None


def environment_of(spec: str) -> Path | None:
    """The interpreter of the built environment that ``spec`` names; None for any other source."""
    path = Path(spec.removeprefix("env:")).expanduser()
    return _interpreter(path) if spec.startswith("env:") or path.is_dir() or _is_python(path) else None


def _interpreter(path: Path) -> Path | None:
    """Of an interpreter itself, a virtual or conda environment, or an environment's folder in the store."""
    candidates = (path, *(path / name for name in ("bin/python", "venv/bin/python", ".venv/bin/python")))
    return next((each for each in candidates if each.is_file() and os.access(each, os.X_OK)), None)


def _environment(path: Path, origin: str, host: Target | None, timeout: float) -> Snapshot:
    python = _interpreter(path)
    if python is not None:
        return _captured(hosts.Route((str(python.absolute()), "-B", "-"), python=True), origin, host, timeout)
    found = "no environment: there is no bin/python in it" if path.is_dir() else "no folder or interpreter"
    raise BadInput(origin, "", found, "the folder of a virtual environment, or its bin/python")


def _captured(way: hosts.Route, origin: str, host: Target | None, timeout: float) -> Snapshot:
    return read_text(hosts.ask(way, origin, timeout), origin, host)

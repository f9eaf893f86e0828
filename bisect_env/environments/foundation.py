"""An existing environment that others stand on: what Python it is, what it holds, and how another one sees it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from bisect_env.environments import distributions, trees
from bisect_env.environments.distributions import Pin
from bisect_env.environments.records import Interpreter, Reason, Unavailable

LINE = "_bisect_env_base.pth"
PATIENCE = 60.0
"""Seconds that the base's interpreter may take to describe itself; its file system may be a slow one."""

ASK = """
import importlib.metadata, json, os, platform, site, sys, sysconfig
found = {}
for one in importlib.metadata.distributions():
    name = one.metadata["Name"]
    if name and name not in found:
        found[name] = [name, one.version, str(one._path), list(one.requires or ())]
own = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
own |= {os.path.join(path, "lib-dynload") for path in own}
paths = [path for path in sys.path if os.path.isdir(path) and os.path.realpath(path) not in own]
print(json.dumps({
    "version": platform.python_version(),
    "implementation": sys.implementation.name,
    "platform": sysconfig.get_platform(),
    "sites": [path for path in site.getsitepackages() if os.path.isdir(path)],
    "paths": paths,
    "distributions": list(found.values()),
}))
"""
"""Run by the base with ``-I``: neither its user's packages nor PYTHONPATH are part of it, as in a trial."""


@dataclass(frozen=True)
class Found:
    """A distribution of the base."""

    name: str
    """Normalised."""
    version: str
    metadata: str
    """Path of its ``.dist-info`` or ``.egg-info``."""
    requires: tuple[str, ...]


@dataclass(frozen=True)
class Base:
    """An existing environment."""

    interpreter: Interpreter
    sites: tuple[str, ...]
    """Its folders of packages, in Python's order."""
    paths: tuple[str, ...]
    """All that Python imports from there, the standard library apart: ``sites`` and what their ``.pth`` add."""
    distributions: tuple[Found, ...]
    """The first of each name, as Python finds it."""

    @property
    def manifest(self) -> str:
        """Digest of the packages by stat; 60,000 files take about half a second. Raises OSError."""
        return trees.digest(Path(path) for path in self.paths)

    @property
    def markers(self) -> dict[str, str]:
        """What markers are evaluated with, as far as it may differ from this process; no extra is asked for."""
        version = self.interpreter.version
        return {"extra": "", "python_full_version": version, "python_version": ".".join(version.split(".")[:2])}

    @property
    def versions(self) -> dict[str, str]:
        """Version by normalised name."""
        return {found.name: found.version for found in self.distributions}

    @property
    def cuda(self) -> str | None:
        """Variant of its torch (``cu130``, ``cpu``), read from torch's own ``version.py``; None without torch."""
        for path in self.paths:
            try:
                text = (Path(path) / "torch" / "version.py").read_text(encoding="utf-8")
            except OSError:
                continue
            stated = re.search(r"^cuda(?:: [^=]*)? = '(\d+)\.(\d+)", text, re.MULTILINE)
            return f"cu{stated[1]}{stated[2]}" if stated else "cpu"
        return None


def inspect(python: str) -> Base | Unavailable:
    """Asks the interpreter of an existing environment what it is. Nothing is written there."""
    # The path is not resolved: a link to the real interpreter is what makes a virtual environment one.
    path = Path(python).absolute()
    try:
        asked = subprocess.run(
            [path, "-I", "-B", "-c", ASK], capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Unavailable("resolve", Reason.BASE, f"the base {python} is not a Python that runs: {error}")
    if asked.returncode:
        words = (asked.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return Unavailable("resolve", Reason.BASE, f"the base {python} cannot be asked what it holds: {words}")
    try:
        # What a .pth or a sitecustomize of the base prints at every start comes first.
        value = json.loads(asked.stdout.strip().rpartition("\n")[2])
    except ValueError:
        words = f"the base {python} is not a Python: it printed {asked.stdout[:80]!r}"
        return Unavailable("resolve", Reason.BASE, words)
    found: dict[str, Found] = {}
    for name, version, metadata, requires in value["distributions"]:
        one = Found(canonicalize_name(name), version, metadata, tuple(requires))
        found.setdefault(one.name, one)
    return Base(
        Interpreter(path, value["version"], value["implementation"], value["platform"]),
        tuple(value["sites"]),
        outermost(value["paths"]),
        tuple(found.values()),
    )


def outermost(paths: Sequence[str]) -> tuple[str, ...]:
    """``paths`` in order, without doubles and without those that lie in another one: each file is walked once."""
    kept: list[str] = []
    for path in dict.fromkeys(paths):
        if not any(Path(path).is_relative_to(other) for other in paths if other != path):
            kept.append(path)
    return tuple(kept)


def stand_on(base: Base, venv: Path) -> None:
    """Lets a virtual environment see the base's packages, after its own.

    A plain path in a ``.pth`` would not have the base's own ``.pth`` files read (editable installs, a base that
    stands on another): ``site.addsitedir`` does that.
    """
    lines = [f"import site; site.addsitedir({site!r})" for site in base.sites]
    (distributions.site_packages(venv) / LINE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def seen(base: Base, venv: Path) -> tuple[Pin, ...]:
    """What Python finds in ``venv`` that stands on ``base``: its own first."""
    own = dict(distributions.installed([distributions.site_packages(venv)]))
    return tuple(sorted((base.versions | own).items()))


def freeze(base: Base, venv: Path) -> str:
    """As ``uv pip freeze`` writes it, for a virtual environment that stands on ``base``; uv sees the overlay only."""
    return "".join(f"{name}=={version}\n" for name, version in seen(base, venv))

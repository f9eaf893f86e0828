"""What differs between two snapshots besides distributions: Python, variables, compile cache, driver, GPUs."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from bisect_env.matrix.urls import names_secret
from bisect_env.snapshots.changes import Change
from bisect_env.snapshots.records import CompileCache, Snapshot

VARIABLE = re.compile(r"(TORCH|TRITON|CUDA|NCCL|PYTORCH|OMP)[A-Z0-9_]*")
"""Environment variables that are suspects."""
ALLOCATION = frozenset({"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"})
"""Say which of a host's GPUs are used: each host has its own."""
CACHE = "cache"
"""The state of the compile cache, by the name that it has as a condition of trials."""
COLD, WARM = "cold", "warm"

_PLACE = re.compile(r"\w*_(DIR|PATH|HOME|ROOT|FILE|FOLDER|IFNAME|HCA|PORT|ADDR|HOST)|CUDA_(HOME|PATH)\w*")
_PATH = re.compile(r"~?/|[A-Za-z]:\\|file:")
_SYSTEM = re.compile(r"linux|ubuntu|debian|centos|red hat|rhel|rocky|alma|fedora|suse|windows|win|mac|darwin", re.I)
_SYSTEMS = {"windows": "Windows", "win": "Windows", "mac": "macOS", "darwin": "macOS"}
_MACHINE = re.compile(r"x86_64|amd64|aarch64|arm64", re.I)
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def python(good: Snapshot, bad: Snapshot) -> Change | None:
    """The Python, where both sides tell it and as far as both do: ``3.12`` and ``3.12.1`` are no difference."""
    if good.python is None or bad.python is None:
        return None
    one, other = good.python.split("."), bad.python.split(".")
    known = min(len(one), len(other))
    return Change("Python", good.python, bad.python) if one[:known] != other[:known] else None


def variables(good: Snapshot, bad: Snapshot) -> tuple[tuple[Change, ...], tuple[Change, ...], tuple[str, ...]]:
    """The variables that differ: those that can be set here, those that belong to a host, and notes on the rest.

    A variable that only names a place is no level by itself: the place is another one on every host.
    """
    if good.variables is None or bad.variables is None:
        return (), (), ()
    ours, theirs = dict(good.variables), dict(bad.variables)
    levels, hosts, notes = [], [], []
    for name in sorted(ours.keys() | theirs.keys()):
        one, other = ours.get(name), theirs.get(name)
        if one == other or VARIABLE.fullmatch(name) is None:
            continue
        if not all(name in side or _covers(snapshot, name) for side, snapshot in ((ours, good), (theirs, bad))):
            here, there = (good, bad) if name in ours else (bad, good)
            notes.append(f"{name} is set in {here.origin}; whether it is in {there.origin} is not told")
        elif names_secret(name):
            notes.append(f"{name} differs; by its name it holds a secret, and is not compared")
        elif name in ALLOCATION:
            hosts.append(Change(name, one, other))
        elif names_place(name, one, other):
            notes.append(f"{name} differs and only names a place: {one or 'not set'} and {other or 'not set'}")
        else:
            levels.append(Change(name, one, other))
    return tuple(levels), tuple(hosts), tuple(notes)


def _covers(snapshot: Snapshot, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in snapshot.covered)


def names_place(name: str, *values: str | None) -> bool:
    """Whether a variable only says where something is, by its name or by all of its values."""
    return bool(_PLACE.fullmatch(name)) or all(value is None or _PATH.match(value) for value in values)


def cache(good: Snapshot, bad: Snapshot) -> tuple[Change | None, Change | None]:
    """The compile cache: cold against warm, or two warm ones that are not the same. At most one of the two is there.

    The second cannot be changed here: what is in a cache is not known from its size, and a deleted one is gone.
    """
    if good.cache is None or bad.cache is None:
        return None, None
    one, other = (WARM if each.entries else COLD for each in (good.cache, bad.cache))
    if one != other:
        return Change(CACHE, one, other), None
    if (good.cache.entries, good.cache.bytes) == (bad.cache.entries, bad.cache.bytes):
        return None, None
    return None, Change("cache's content", _size(good.cache), _size(bad.cache))


def _size(found: CompileCache) -> str:
    return f"{found.entries} entries, {found.bytes / 1e6:.0f} MB"


def machine(good: Snapshot, bad: Snapshot) -> tuple[Change, ...]:
    """Driver, GPU models and platform, where both sides tell them."""
    pairs = [
        ("driver", good.driver, bad.driver),
        ("GPUs", _models(good.gpus), _models(bad.gpus)),
        ("platform", *_platforms(good, bad)),
    ]
    return tuple(
        Change(name, one, other) for name, one, other in pairs if one is not None and other is not None and one != other
    )


def _models(gpus: tuple[str, ...]) -> str | None:
    """``8 x NVIDIA H200``; None where none are told."""
    counts = {model: gpus.count(model) for model in sorted(gpus)}
    return ", ".join(f"{count} x {model}" for model, count in counts.items()) or None


def _platforms(good: Snapshot, bad: Snapshot) -> tuple[str | None, str | None]:
    """As written where the forms are the same; forms write it differently, so else as far as both can be read."""
    if good.platform is None or bad.platform is None or good.form == bad.form:
        return good.platform, bad.platform
    one, other = _read_platform(good.platform), _read_platform(bad.platform)
    common = [(here, there) for here, there in zip(one, other, strict=True) if here and there]
    return " ".join(here for here, _ in common) or None, " ".join(there for _, there in common) or None


def _read_platform(text: str) -> tuple[str, str]:
    """System and machine, each empty where it is not told."""
    system, machine = _SYSTEM.search(text), _MACHINE.search(text)
    return (
        "" if system is None else _SYSTEMS.get(system[0].lower(), "Linux"),
        "" if machine is None else _MACHINES.get(machine[0].lower(), machine[0].lower()),
    )

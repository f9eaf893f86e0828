"""A candidate that is told as a change of the baseline, and what is still to be resolved of either: exact snapshots.

The change is resolved as an installer would do it on the host: what was named moves, what that forces moves along, and
everything else stays at the baseline's versions.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bisect_env.environments import dating, interpreters, locks, requirements
from bisect_env.environments.compiling import Compiler
from bisect_env.environments.records import Interpreter, Lock, Unavailable
from bisect_env.environments.requirements import exact, lines_of
from bisect_env.environments.scratch import scratch
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import EnvironmentRequest
from bisect_env.snapshots.records import Distribution, Snapshot, in_order

FORM = "change of the baseline"


@dataclass(frozen=True)
class Settled:
    """A snapshot in which every version is exact, or why it cannot be had."""

    snapshot: Snapshot
    """Where it cannot be had: as far as it is known."""
    unavailable: Unavailable | None = None


def settled(snapshot: Snapshot, request: EnvironmentRequest, uv: Uv, stop: threading.Event) -> Settled:
    """The snapshot with its ranges resolved: what would be installed from it today, or on the request's day.

    Raises:
        BadInput: a requirement is none.
        InfrastructureError: the disk is full, or uv failed.
    """
    if not snapshot.ranges:
        return Settled(snapshot)
    lock = locks.resolve(request, uv, stop=stop)
    if isinstance(lock, Unavailable):
        return Settled(snapshot, lock)
    return Settled(replace(snapshot, distributions=_of(lock, snapshot), ranges=(), cuda=lock.cuda, partial=False))


def changed(
    baseline: Snapshot, lock: Lock, request: EnvironmentRequest, wanted: Sequence[str], uv: Uv, stop: threading.Event
) -> tuple[Snapshot, Settled]:
    """The baseline as its lock completes it, and what it is after ``wanted`` was installed into it.

    Args:
        baseline: exact.
        lock: the baseline's. What it has and the snapshot's form does not list moves or stays like the rest.
        request: of its cell.
        wanted: requirement lines: ``transformers==5.8.1``, or a name alone for its newest version.

    Raises:
        BadInput: one of the lines is no requirement, or holds credentials.
        InfrastructureError: the disk is full, or uv failed.
    """
    parsed = requirements.parse(wanted)
    listed = {each.name for each in baseline.distributions}
    if not baseline.partial and all(name in listed for name, _ in lock.pins):
        before = baseline
    else:
        unlisted = (each for each in _of(lock, baseline) if each.name not in listed)
        everything = in_order((*baseline.distributions, *unlisted))
        before = replace(baseline, distributions=everything, cuda=baseline.cuda or lock.cuda, partial=False)
    told = replace(
        before,
        origin=f"{baseline.origin} with {', '.join(map(str, parsed))}",
        form=FORM,
        missing=(),
        unread=(),
        distributions=_named(before, parsed),
    )
    moved = _moved(lock, request, parsed, uv, stop)
    if isinstance(moved, Unavailable):
        return before, Settled(told, moved)
    # Of what has no version that could be asked for nothing is known, before and after.
    kept = tuple(each for each in before.distributions if each.version is None and not each.source)
    after = in_order((*_of(moved, before), *kept))
    return before, Settled(replace(told, distributions=after, cuda=moved.cuda))


def laid_over(
    baseline: Snapshot, request: EnvironmentRequest, wanted: Sequence[str], uv: Uv, stop: threading.Event
) -> Settled:
    """What the baseline is with ``wanted`` laid over it, where it is an environment that stands (``request.base``).

    Raises:
        BadInput: one of the lines is no requirement, or holds credentials.
        InfrastructureError: the disk is full, or uv failed.
    """
    parsed = requirements.parse(wanted)
    told = replace(
        baseline,
        origin=f"{baseline.origin} with {', '.join(map(str, parsed))}",
        form=FORM,
        missing=(),
        unread=(),
        distributions=_named(baseline, parsed),
    )
    lock = locks.resolve(replace(request, requirements=tuple(map(str, parsed))), uv, stop=stop)
    if isinstance(lock, Unavailable):
        return Settled(told, lock)
    moved = _of(lock, baseline)
    names = {each.name for each in moved}
    kept = (each for each in baseline.distributions if each.name not in names)
    return Settled(replace(told, distributions=in_order((*kept, *moved))))


def _moved(
    lock: Lock, request: EnvironmentRequest, wanted: Sequence[Requirement], uv: Uv, stop: threading.Event
) -> Lock | Unavailable:
    """The lock of what the baseline has, by name, and of what is wanted, with the baseline's versions preferred.

    uv takes the pins of an output file that is there already as preferences: it leaves one only where it must.
    """
    python = interpreters.find(request.python)
    if isinstance(python, Unavailable):
        return python
    # What is asked for on another Python or platform alone stays as it is: an installer ignores such a line.
    names = {canonicalize_name(each.name) for each in wanted if _holds(each, python)}
    stays = [line for line in lines_of(lock.text) if line.name not in names]
    lines = [f"{line.name} @ {line.url}" if line.url else _any(line.name, line.version or "") for line in stays]
    dated = dating.cutoff(request.as_of, wanted, request.index, uv.simple)
    if isinstance(dated, Unavailable):
        return dated
    with scratch() as folder:
        preferred = folder / "preferred.txt"
        pins = [(line.name, line.version) for line in stays if line.version]
        preferred.write_text(requirements.constraints(pins), encoding="utf-8")
        # The overrides of a baseline whose pins contradict each other hold no longer: what is resolved is consistent.
        compiler = Compiler(
            replace(request, overrides=()), python, uv, stop, dated.before, ("--output-file", str(preferred))
        )
        return compiler.lock([*lines, *map(str, wanted)], lock.torch_backend)


def _holds(wanted: Requirement, python: Interpreter) -> bool:
    """Whether a requirement's marker, if it has one, is true here."""
    short = ".".join(python.version.split(".")[:2])
    here = {"python_full_version": python.version, "python_version": short, "extra": ""}
    return wanted.marker is None or wanted.marker.evaluate(here)


def _any(name: str, version: str) -> str:
    """Any version of it; where it is a pre-release, uv takes one only if it is asked for."""
    try:
        return f"{name}>={version}" if Version(version).is_prerelease else name
    except InvalidVersion:
        return name


def _named(baseline: Snapshot, wanted: Sequence[Requirement]) -> tuple[Distribution, ...]:
    """The baseline with nothing but the named ones moved: what is told of a change that cannot be resolved."""
    lines = {canonicalize_name(each.name): each for each in wanted}
    moved = tuple(
        Distribution(name, exact(each), each.url or "", note="" if exact(each) else f"asked for as {each}")
        for name, each in lines.items()
    )
    return in_order((*(each for each in baseline.distributions if each.name not in lines), *moved))


def _of(lock: Lock, before: Snapshot) -> tuple[Distribution, ...]:
    """What a lock installs; what was there before, as it was written."""
    known = {(each.name, each.version): each for each in before.distributions}
    urls = {line.name: line.url for line in lines_of(lock.text) if line.url}
    return in_order(
        known.get((name, version), Distribution(name, version, urls.get(name, ""))) for name, version in lock.pins
    )

"""From cells to environments: locks from the store or uv, then builds, several at once and before any trial."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bisect_env.bundles.offline import Offline
from bisect_env.engine import disk
from bisect_env.engine.progress import Reporter
from bisect_env.environments import building, locks, manifest, probe
from bisect_env.environments.claims import Claims
from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.environments.side_by_side import side_by_side
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import Cell, EnvironmentRequest, Limits
from bisect_env.store.database import Store

RESOLVERS = 4
BUILDERS = 2
"""A build is bound by the network and the disk; more at once gain nothing and make a slow disk slower."""


def label_of(cells: Sequence[Cell], request: EnvironmentRequest) -> str:
    """A short name of a request, from the levels that its cells have in common."""
    own = [cell for cell in cells if cell.request == request]
    common = set.intersection(*(set(cell.levels) for cell in own))
    names = [f"{axis} {level}" for axis, level in own[0].levels if (axis, level) in common]
    return ", ".join(names) or request.key


def resolve(
    cells: Sequence[Cell],
    store: Store,
    uv: Uv,
    reporter: Reporter,
    stop: threading.Event,
    fresh: bool,
    bundle: Offline | None = None,
) -> dict[str, Lock | Unavailable]:
    """The lock of every request, by the request's key; from the store when it was resolved before.

    With a ``bundle`` from there, always: a later delivery may have another one.
    """
    requests = {cell.request.key: cell.request for cell in cells}
    if bundle is not None:
        brought = {key: bundle.resolve(request) for key, request in requests.items()}
        for key, result in brought.items():
            store.put_lock(key, result, 0.0)
        return brought
    found: dict[str, Lock | Unavailable] = {}
    for key, request in requests.items():
        known = None if fresh or _may_have_changed(request) else store.lock(key, retry_transient=True)
        if known is not None:
            found[key] = known
    missing = [key for key in requests if key not in found]
    if not missing:
        return found
    reporter.phase("resolve", len(missing))

    def one(key: str) -> tuple[str, Lock | Unavailable]:
        label = label_of(cells, requests[key])
        reporter.resolving(label)
        began = time.monotonic()
        result = locks.resolve(requests[key], uv, stop=stop)
        seconds = time.monotonic() - began
        if not stop.is_set():
            store.put_lock(key, result, seconds)
        reporter.resolved(label, result, seconds)
        return key, result

    found.update(side_by_side(one, missing, RESOLVERS, stop))
    return found


def build(
    wanted: Mapping[str, tuple[Lock, EnvironmentRequest, str]],
    root: Path,
    store: Store,
    uv: Uv,
    reporter: Reporter,
    stop: threading.Event,
    limits: Limits,
    bundle: Offline | None = None,
    claims: Claims | None = None,
) -> dict[str, Environment | Unavailable]:
    """An environment for each address in ``wanted`` (lock, request, label), proved against its lock.

    With a ``bundle`` of its wheels alone; one that lacks some of them is not built. ``claims`` are for a ``root`` that
    several hosts share.

    Raises:
        InfrastructureError: what is to be built does not fit on the disk.
    """
    ready: dict[str, Environment | Unavailable] = {}
    for address, (lock, _, label) in wanted.items():
        environment = building.find(address, lock, root, claims)
        if environment is None:
            continue
        differences = manifest.verify(environment)
        if differences:
            reporter.note(
                f"{label}: the environment is no longer what its lock says ({'; '.join(differences[:3])}): "
                "it is set aside and built anew"
            )
            manifest.quarantine(environment, root, uv)
        else:
            ready[address] = environment
    wheelhouse = None
    if bundle is not None:
        for address, (_, request, label) in wanted.items():
            lacking = None if address in ready else bundle.lacking(request)
            if lacking is not None:
                ready[address] = lacking
                reporter.built(label, lacking, 0.0)
        wheelhouse = bundle.wheelhouse()
    missing = [address for address in wanted if address not in ready]
    if missing:
        to_build = [wanted[address][0] for address in missing]
        disk.refuse_if_full(root, to_build)
        reporter.phase("build", len(missing))
        download = f"up to {disk.size(disk.download_bytes(to_build))} to download, less what uv has cached"
        source = download if bundle is None else f"wheels from {bundle.folder}, no network"
        reporter.note(f"{source}; at most {disk.size(disk.needed_bytes(to_build))} on the disk")

    def one(address: str) -> tuple[str, Environment | Unavailable]:
        lock, request, label = wanted[address]
        reporter.building(label, lock)
        began = time.monotonic()
        result = building.build(lock, request, root, uv, limits.build, stop, wheelhouse, claims)
        seconds = time.monotonic() - began
        if isinstance(result, Environment):
            store.put_environment(result, seconds)
        reporter.built(label, result, seconds)
        return address, result

    ready.update(side_by_side(one, missing, BUILDERS, stop))
    # Imports are probed one at a time: torch's takes seconds of CPU, and side by side they would time out for nothing.
    for address, result in list(ready.items()):
        if isinstance(result, Environment) and not stop.is_set():
            failed = probe.probe(result, wanted[address][1], limits)
            if failed is not None:
                ready[address] = failed
                reporter.built(wanted[address][2], failed, 0.0)
    return ready


def _may_have_changed(request: EnvironmentRequest) -> bool:
    """Whether the lock rests on something outside the index that nobody tells us about: a base, a local tree."""
    return request.base is not None or any("file://" in line for line in request.requirements)

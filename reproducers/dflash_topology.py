"""Which GPU does what: drafters alone, or the incident's layout, targets on some GPUs and drafters on the others.

Pure arithmetic, standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass

INCIDENT_DRAFTERS, INCIDENT_DEVICES = 3, 8
"""The incident's host: of 8 GPUs 0-4 ran the target, 5, 6 and 7 one drafter thread each, in one process."""


@dataclass(frozen=True)
class Topology:
    """Devices by role; a device is its index in the process, from 0."""

    drafters: tuple[int, ...]
    """Device of each drafter thread, in the threads' order."""
    targets: tuple[int, ...] = ()
    """Device of each target; empty: every drafter makes its hidden states itself, on its own device."""
    sources: tuple[tuple[int, ...], ...] = ()
    """For each drafter thread the targets that feed it, as indices into ``targets``, to be asked in turn; empty where
    there are no targets."""


def topology(kind: str, threads: int, devices: int) -> Topology:
    """The layout of ``threads`` drafters on that many devices (1 on a CPU).

    ``drafters``: thread i is on device i modulo their number. ``incident``: drafters on the last 3/8 of the devices,
    rounded, at least one and never more devices than threads; one target on each of the others. One device has both.

    Raises:
        ValueError: fewer than one thread or device, or another kind.
    """
    if threads < 1 or devices < 1:
        raise ValueError(f"a topology needs at least one thread and one device, not {threads} and {devices}")
    if kind == "drafters":
        return Topology(tuple(thread % devices for thread in range(threads)))
    if kind != "incident":
        raise ValueError(f"unknown topology {kind!r}: drafters or incident")
    # Rounded half down: of four devices one or two would do, and more targets than drafters is what the incident had.
    share = (2 * INCIDENT_DRAFTERS * devices + INCIDENT_DEVICES - 1) // (2 * INCIDENT_DEVICES)
    own = min(max(1, share), threads)
    first = devices - own
    drafters = tuple(first + thread % own for thread in range(threads))
    targets = tuple(range(first)) or (0,)
    return Topology(drafters, targets, _dealt(len(targets), threads))


def _dealt(targets: int, threads: int) -> tuple[tuple[int, ...], ...]:
    """Targets dealt out to the threads in turn: each feeds at least one, and each thread has at least one."""
    pairs = {(deal % threads, deal % targets) for deal in range(max(targets, threads))}
    return tuple(tuple(sorted(target for thread, target in pairs if thread == each)) for each in range(threads))

"""Which entries of a uv.lock are installed on a host: its graph walked from the project, markers decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name

from bisect_env.snapshots.markers import Undecided, applies
from bisect_env.snapshots.records import Target


@dataclass(frozen=True)
class Edge:
    """One dependency."""

    name: str
    version: str | None
    source: str | None
    """The text of its source, where the lock has several entries of the name."""
    marker: str | None
    extras: tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """One ``[[package]]``."""

    at: int
    """Its index in the file, from 0."""
    name: str
    version: str | None
    source: tuple[tuple[str, str], ...]
    """Kind (``registry``, ``git``, ``editable``, ...) and value, as written."""
    forks: tuple[str, ...]
    """Markers, of which one must hold; empty: always."""
    dependencies: tuple[Edge, ...]
    extras: tuple[tuple[str, tuple[Edge, ...]], ...]
    groups: tuple[tuple[str, tuple[Edge, ...]], ...]

    @property
    def local(self) -> str | None:
        """The folder of a project or member of the workspace, None for another package."""
        return next((place for kind, place in self.source if kind in ("virtual", "editable")), None)


@dataclass
class Walk:
    """What was reached, and what could not be decided."""

    reached: dict[int, Node] = field(default_factory=dict)
    """By index."""
    undecided: list[tuple[str, str]] = field(default_factory=list)
    """Name of a distribution, and why it is not known whether, or which of its entries, is installed."""
    absent: list[str] = field(default_factory=list)
    """Names that something depends on, and of which the lock has no entry that fits."""
    active: set[str] = field(default_factory=set)
    """Extras and groups in uv's own encoding, which markers of conflicting extras ask for."""


def roots(nodes: tuple[Node, ...], members: Iterable[str]) -> tuple[Node, ...]:
    """What ``uv sync`` starts from: the project in the lock's own folder, else all members of the workspace."""
    own = tuple(node for node in nodes if node.local == ".")
    if own:
        return own
    names = {canonicalize_name(member) for member in members}
    named = tuple(node for node in nodes if node.name in names)
    return named or tuple(node for node in nodes if node.local is not None)


@dataclass(frozen=True)
class Choice:
    """What was installed of the projects' extras and groups."""

    extras: frozenset[str]
    groups: frozenset[str]


def walk(
    nodes: tuple[Node, ...], start: tuple[Node, ...], edges: tuple[Edge, ...], host: Target, choice: Choice
) -> Walk:
    """What is installed from ``start``, by a choice, and from requirements of the lock itself (``edges``).

    Extras that a dependency asks for can decide markers elsewhere, so it is walked until nothing is added.
    """
    by_name: dict[str, list[Node]] = {}
    for node in nodes:
        by_name.setdefault(node.name, []).append(node)
    active = set[str]()
    while True:
        found = _once(by_name, (start, choice), edges, host, active)
        if found.active <= active:
            return found
        active |= found.active


def _once(
    by_name: dict[str, list[Node]],
    chosen: tuple[tuple[Node, ...], Choice],
    edges: tuple[Edge, ...],
    host: Target,
    active: set[str],
) -> Walk:
    found = Walk(active=set(active))
    start, choice = chosen
    waiting: list[tuple[Node, str | None]] = []
    seen: set[tuple[int, str | None]] = set()

    def follow(edge: Edge) -> None:
        node = _chosen(edge, by_name, host, found)
        if node is not None:
            waiting.append((node, None))
            for extra in edge.extras:
                found.active.add(encoded("extra", node.name, extra))
                waiting.append((node, extra))

    for node in start:
        waiting.append((node, None))
        for kind, names, offers in (("extra", choice.extras, node.extras), ("group", choice.groups, node.groups)):
            for name, dependencies in offers:
                if name in names:
                    found.active.add(encoded(kind, node.name, name))
                    for edge in dependencies:
                        follow(edge)
    for edge in edges:
        follow(edge)
    while waiting:
        node, extra = waiting.pop()
        if (node.at, extra) in seen:
            continue
        seen.add((node.at, extra))
        found.reached[node.at] = node
        for edge in node.dependencies if extra is None else dict(node.extras).get(extra, ()):
            follow(edge)
    return found


def encoded(kind: str, package: str, name: str) -> str:
    """An extra or group as uv writes it into markers when some of them exclude each other."""
    return f"{kind}-{len(package)}-{package}-{name}"


def _chosen(edge: Edge, by_name: dict[str, list[Node]], host: Target, found: Walk) -> Node | None:
    """The entry that a dependency means on the host; None: none, or (then it is noted) it cannot be said which."""
    try:
        # Of an extra that excludes others uv asks for itself: it is there as soon as this dependency asks for it.
        active = found.active | {encoded("extra", edge.name, extra) for extra in edge.extras}
        if edge.marker is not None and not applies(edge.marker, host, active):
            return None
        candidates = [node for node in by_name.get(edge.name, []) if _meant(edge, node)]
        if len(candidates) > 1:
            candidates = [node for node in candidates if holds(node.forks, host, found.active)]
    except Undecided as error:
        found.undecided.append((edge.name, str(error)))
        return None
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        found.undecided.append((edge.name, "several of its entries fit"))
    else:
        found.absent.append(edge.name)
    return None


def _meant(edge: Edge, node: Node) -> bool:
    same_version = edge.version is None or edge.version == node.version
    return same_version and (edge.source is None or edge.source == repr(sorted(node.source)))


def holds(markers: tuple[str, ...], host: Target, active: Iterable[str]) -> bool:
    """Whether one of the markers holds, or there are none. Raises Undecided."""
    chosen = frozenset(active)
    return not markers or any(applies(marker, host, chosen) for marker in markers)


def offered(start: Iterable[Node]) -> Iterator[tuple[str, str]]:
    """Kind (``extra``, ``group``) and name of everything that the projects let one choose."""
    for node in start:
        for name, _ in node.extras:
            yield "extra", name
        for name, _ in node.groups:
            yield "group", name

"""uv.lock: what ``uv sync`` installs of it on the host."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import parse_qs, urlsplit

from packaging.utils import canonicalize_name

from bisect_env.errors import BadInput
from bisect_env.snapshots import documents, markers, uv_graph
from bisect_env.snapshots.documents import Table
from bisect_env.snapshots.markers import fitting
from bisect_env.snapshots.pieces import (
    HOST_NOT_TOLD,
    Gathering,
    cuda_of,
    public,
    require_some,
    shortened,
    unread,
    versioned,
)
from bisect_env.snapshots.pieces import (
    NAME as PROJECT,
)
from bisect_env.snapshots.records import Distribution, Snapshot, Target
from bisect_env.snapshots.uv_graph import Choice, Edge, Node

NAME = "uv.lock"

_FORMAT = 1
_DEFAULT_GROUPS = frozenset({"dev"})
"""What ``uv sync`` installs unless the project's pyproject.toml says otherwise."""
_PYPI = "https://pypi.org/simple"
_WANTED = "a uv.lock as uv wrote it"
_HEAD = re.compile(r"(?m)\A(?:#.*\n|[ \t]*\n)*version\s*=\s*\d+[ \t]*$")
_OWN = re.compile(r"(?m)^(?:requires-python\s*=|resolution-markers\s*=|revision\s*=|source\s*=\s*\{)")
_PACKAGES = re.compile(r"(?m)^\[\[package\]\]")


def recognise(text: str) -> float:
    """By its version at the beginning and keys that other locks with ``[[package]]`` (Poetry's, Cargo's) have not."""
    marks = (_OWN.search(text) is not None) + (_PACKAGES.search(text) is not None)
    if re.search(r"(?m)^version\s*=\s*\d+[ \t]*$", text) is None and _HEAD.match(text) is None:
        return 0.0
    return (0.0, 0.6, 1.0)[marks]


def read(text: str, origin: str, host: Target) -> Snapshot:
    """The distributions that the project needs on ``host``; the project itself is none of them.

    Raises BadInput: no TOML, another format, entries without what every one has, or a lock not made for the host.
    """
    document = documents.parse(text, origin, NAME)
    version = documents.value(document, "version", int, origin, "")
    if version != _FORMAT:
        raise BadInput(origin, "version", "nothing" if version is None else f"format {version}", f"format {_FORMAT}")
    try:
        target, decided = fitting(documents.value(document, "requires-python", str, origin, ""), host)
    except ValueError as error:
        raise BadInput(origin, "requires-python", shortened(str(error)), "for example >=3.11") from None
    nodes = tuple(
        _node(at, table, origin) for at, table in enumerate(documents.tables(document, "package", origin, ""))
    )
    manifest = documents.value(document, "manifest", dict, origin, "") or {}
    start = uv_graph.roots(nodes, documents.texts(manifest, "members", origin, "manifest."))
    edges = _edges(documents.tables(manifest, "requirements", origin, "manifest."), origin, "manifest.requirements")
    if nodes and not start and not edges:
        raise BadInput(origin, "package", "no entry that is the project itself (virtual or editable)", _WANTED)
    _check_forks(document, origin, target)
    offered = frozenset(uv_graph.offered(start))
    extras, groups = (frozenset(name for kind, name in offered if kind == which) for which in ("extra", "group"))
    choice = Choice(*markers.choice(origin, target, extras, groups, _DEFAULT_GROUPS))
    found = uv_graph.walk(nodes, start, edges, target, choice)
    if found.absent:
        words = f"no entry for {shortened(', '.join(dict.fromkeys(found.absent)))}, which others depend on"
        raise BadInput(origin, "package", f"{words}: was it cut off?", _WANTED)
    gathering = Gathering(origin)
    own = {node.at for node in start}
    for at, node in sorted(found.reached.items()):
        if at not in own:
            gathering.add(_distribution(node), f"package[{at}] ({node.name})")
    distributions = gathering.distributions()
    names = {each.name for each in distributions}
    left = tuple(
        unread(0, name, f"whether or which of it is installed cannot be said: {why}")
        for name, why in dict.fromkeys(found.undecided)
        if name not in names
    )
    missing = [HOST_NOT_TOLD, decided]
    if offered:
        missing.append(markers.counted(choice.extras, choice.groups, offered))
    others = sorted({node.name for node in nodes} - names - {node.name for node in start})
    if others:
        more = f" and {len(others) - 20} more" if len(others) > 20 else ""
        missing.append(f"In the lock, and not installed on such a host by this choice: {', '.join(others[:20])}{more}.")
    snapshot = Snapshot(
        origin,
        NAME,
        distributions,
        cuda=cuda_of(distributions),
        missing=tuple(missing),
        unread=left,
    )
    return require_some(snapshot, f"packages for {target.platform} {target.machine}, Python {target.python}")


def _node(at: int, table: Table, origin: str) -> Node:
    place = f"package[{at}]."
    name = documents.value(table, "name", str, origin, place)
    if name is None or re.fullmatch(PROJECT, name) is None:
        raise BadInput(origin, f"{place}name", shortened(repr(name), 60), "the name of a distribution")
    source = documents.value(table, "source", dict, origin, place)
    if source is None:
        raise BadInput(origin, f"{place}source", f"nothing ({shortened(name, 60)})", _WANTED)
    return Node(
        at,
        canonicalize_name(name),
        documents.value(table, "version", str, origin, place),
        _pairs(source),
        tuple(documents.texts(table, "resolution-markers", origin, place)),
        _edges(documents.tables(table, "dependencies", origin, place), origin, f"{place}dependencies"),
        _named(table, "optional-dependencies", origin, place),
        _named(table, "dev-dependencies", origin, place),
    )


def _named(table: Table, key: str, origin: str, place: str) -> tuple[tuple[str, tuple[Edge, ...]], ...]:
    """The dependencies of each extra or group."""
    part: Table = documents.value(table, key, dict, origin, place) or {}
    where = f"{place}{key}."
    return tuple(
        (canonicalize_name(name), _edges(documents.tables(part, name, origin, where), origin, where + name))
        for name in part
    )


def _edges(found: Iterable[Table], origin: str, place: str) -> tuple[Edge, ...]:
    edges = []
    for at, table in enumerate(found):
        where = f"{place}[{at}]."
        name = documents.value(table, "name", str, origin, where)
        if name is None:
            raise BadInput(origin, f"{where}name", "nothing", "the name of a distribution")
        source = documents.value(table, "source", dict, origin, where)
        # A script's requirements call it ``extras``.
        extras = documents.texts(table, "extra", origin, where) + documents.texts(table, "extras", origin, where)
        edges.append(
            Edge(
                canonicalize_name(name),
                documents.value(table, "version", str, origin, where),
                None if source is None else repr(sorted(_pairs(source))),
                documents.value(table, "marker", str, origin, where) or None,
                tuple(canonicalize_name(extra) for extra in extras),
            )
        )
    return tuple(edges)


def _pairs(source: Table) -> tuple[tuple[str, str], ...]:
    return tuple((str(kind), str(place)) for kind, place in source.items())


def _check_forks(document: Table, origin: str, target: Target) -> None:
    """Refuses a lock that was made for other platforms only."""
    supported = tuple(documents.texts(document, "supported-markers", origin, ""))
    markers.check_made_for(
        supported, lambda marker: markers.applies(marker, target), target, (origin, "supported-markers", _WANTED)
    )


def _distribution(node: Node) -> Distribution:
    kind, place = next(iter(node.source), ("", ""))
    if kind == "registry":
        if node.version is None:
            return Distribution(node.name, None, note="the lock does not tell its version")
        plain = versioned(node.name, node.version)
        note = "" if place.rstrip("/") == _PYPI else f"from {public(place)}"
        return Distribution(plain.name, plain.version, note="; ".join(each for each in (plain.note, note) if each))
    source = _git(place) if kind == "git" else place
    if node.version is None:
        return Distribution(node.name, None, public(source), note="its version is made when it is built")
    return versioned(node.name, node.version, source=source)


def _git(place: str) -> str:
    """pip's way of writing it, of uv's ``URL?rev=main&subdirectory=lib#commit``."""
    parts = urlsplit(place)
    plain = parts._replace(query="", fragment="").geturl()
    folder = parse_qs(parts.query).get("subdirectory", [""])[0]
    return f"git+{plain}@{parts.fragment}" + (f"#subdirectory={folder}" if folder else "")

"""A YAML file as plain data with places: every scalar stays the text that was written.

YAML's own guessing would turn an unquoted ``2.10`` into 2.1, ``no`` into False and ``2026-01-15`` into a date, so
none of it happens here. The file is read event by event, never through YAML's composer: an alias is followed only while
the count of values stays within bounds, which makes an anchor bomb an error and not a memory problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bisect_env.errors import BadInput
from bisect_env.matrix.problems import Unfit, shown
from bisect_env.matrix.urls import without_credentials

Loc = tuple[str | int, ...]
"""Keys and list positions from the top of the file, ``("axes", "torch", 1)``."""

MOST_BYTES = 128 * 1024
"""Largest file that is read: far above any matrix written by hand."""
MOST_VALUES = 20_000
"""Most values a file may hold once its aliases are followed."""
MOST_DEPTH = 12
"""Deepest nesting; the schema needs four."""

_NOTHING = ("", "~", "null", "Null", "NULL")


@dataclass
class Document:
    """The data of one file, and where each value stands. Lookups treat ``-`` and ``_`` in keys alike."""

    source: Path
    data: dict[str, Any]
    """Nested dicts and lists of text; None where nothing or ``null`` was written."""
    places: dict[Loc, tuple[int, int, str]] = field(default_factory=dict)
    """Line and column, from 1, and the path as written."""

    def place(self, path: Loc) -> str:
        """``line 4, column 3 (axes.torch[1])`` of the value, or of the nearest one above that was written."""
        wanted = _alike(path)
        while wanted and wanted not in self.places:
            wanted = wanted[:-1]
        if wanted not in self.places:
            return ""
        line, column, written = self.places[wanted]
        return f"line {line}, column {column}" + (f" ({written})" if written else "")

    def bad(self, path: Loc, found: str, wanted: str) -> BadInput:
        """The error for the value at ``path``."""
        return BadInput(self.source, self.place(path), found, wanted)

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Within it, :class:`Unfit` becomes :class:`BadInput` at ``path``."""
        try:
            yield
        except Unfit as problem:
            raise self.bad(path, problem.found, problem.wanted) from problem

    def lift(self, path: Loc) -> None:
        """Move the entries of the mapping at ``path`` one level up, in its place and order.

        Raises:
            BadInput: it is not a mapping, or a key of it stands one level up as well.
        """
        parent: Any = self.data
        for key in path[:-1]:
            parent = parent[key]
        name = str(path[-1])
        inner = parent[name]
        if not isinstance(inner, dict):
            raise self.bad(path, f"{name} is {shown(inner)}", "a mapping of names to values")
        for key in inner:
            if key in parent:
                raise self.bad((*path, key), f"{key} stands here and one level up", "the key once")
        lifted = [pair for key, value in parent.items() for pair in (inner.items() if key == name else [(key, value)])]
        parent.clear()
        parent.update(lifted)
        inside, above = _alike(path), _alike(path[:-1])
        for old in [place for place in self.places if place[: len(inside)] == inside and len(place) > len(inside)]:
            self.places[above + old[len(inside) :]] = self.places.pop(old)


def read(path: Path) -> Document:
    """Read and parse a file.

    Raises:
        BadInput: it cannot be read, is too large, is not text, is not YAML, holds something other than one mapping,
            repeats a key, or grows without bound through its anchors.
    """
    return parse(_text(path), path)


def parse(text: str, source: Path) -> Document:
    """As :func:`read`, for text already at hand; ``source`` names it in messages."""
    document = Document(source, {})
    try:
        _Builder(document).build(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        wanted = (
            'valid YAML; a version range needs quotes (">=2.11,<2.15"), and so does text that begins with * & ! % @'
        )
        raise BadInput(source, place, f"not valid YAML: {error.problem or error.context}", wanted) from error
    except yaml.YAMLError as error:
        first = str(error).splitlines()[0]
        raise BadInput(source, "", f"not valid YAML: {first}", "printable text in UTF-8") from error
    return document


def _text(path: Path) -> str:
    wanted = "a matrix file (YAML, UTF-8 text)"
    try:
        if path.is_dir():
            raise BadInput(path, "", "a folder", wanted)
        # One byte more than allowed: a pipe or a device has no size to ask for.
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise BadInput(path, "", "no such file", wanted) from error
    except OSError as error:
        raise BadInput(path, "", f"cannot be read: {error.strerror}", "a file that this user may read") from error
    if len(content) > MOST_BYTES:
        limit = f"at most {MOST_BYTES // 1024} KiB; long lists of versions can be written as ranges"
        raise BadInput(path, "", f"larger than {MOST_BYTES // 1024} KiB", limit)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(path, f"line {line}", f"not UTF-8 text (byte {error.start})", wanted) from error


class _Builder:
    """Turns YAML events into data. An anchored value is kept as its events and replayed where an alias names it."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.anchors: dict[str, list[yaml.NodeEvent | yaml.CollectionEndEvent]] = {}
        self.values = 0

    def build(self, text: str) -> None:
        events: list[yaml.NodeEvent | yaml.CollectionEndEvent] = []
        depth = 0
        for event in yaml.parse(text, Loader=yaml.BaseLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_DEPTH:
                raise self._bad(event, f"nested more than {MOST_DEPTH} deep", "the flat keys of a matrix file")
            if isinstance(event, yaml.DocumentStartEvent) and events:
                raise self._bad(event, "a second document ('---')", "one matrix a file")
            if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                events.append(event)
        if not events:
            raise BadInput(self.document.source, "", "an empty file", "a mapping with at least the key 'reproducer'")
        data, _ = self._value(events, 0, (), "", 0)
        if not isinstance(data, dict):
            raise self._bad(events[0], f"{shown(data)} where the file's keys should be", "a mapping (key: value lines)")
        self.document.data = data

    def _bad(self, event: yaml.Event, found: str, wanted: str, written: str = "") -> BadInput:
        line, column = _position(event)
        place = f"line {line}, column {column}" + (f" ({written})" if written else "")
        return BadInput(self.document.source, place, found, wanted)

    def _value(
        self, events: list[yaml.NodeEvent | yaml.CollectionEndEvent], at: int, path: Loc, written: str, depth: int
    ) -> tuple[Any, int]:
        """The value that begins with event ``at``, and the position after it."""
        event = events[at]
        assert isinstance(event, yaml.NodeEvent)  # an end is consumed by the loop of its beginning
        self.values += 1
        if self.values > MOST_VALUES:
            wanted = "fewer values; anchors (&name, *name) may not multiply one another"
            raise self._bad(event, f"more than {MOST_VALUES} values once anchors are followed", wanted, written)
        if depth > MOST_DEPTH:
            raise self._bad(event, f"nested more than {MOST_DEPTH} deep", "the flat keys of a matrix file", written)
        self.document.places.setdefault(path, (*_position(event), written))
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                found = f"*{event.anchor} stands for nothing, or for a value that holds it"
                raise self._bad(event, found, f"&{event.anchor} before it, at a value without this alias", written)
            return self._value(self.anchors[event.anchor], 0, path, written, depth + 1)[0], at + 1
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            raise self._bad(event, f"the tag {tag!r}", "plain values; quote text that begins with '!'", written)
        if isinstance(event, yaml.ScalarEvent):
            value: Any = None if event.style is None and event.value in _NOTHING else event.value
            after = at + 1
        elif isinstance(event, yaml.SequenceStartEvent):
            value, after = self._sequence(events, at + 1, path, written, depth)
        else:
            value, after = self._mapping(events, at + 1, path, written, depth)
        # Only once it is whole: a value cannot hold itself.
        if event.anchor is not None:
            self.anchors[event.anchor] = events[at:after]
        return value, after

    def _sequence(
        self, events: list[yaml.NodeEvent | yaml.CollectionEndEvent], at: int, path: Loc, written: str, depth: int
    ) -> tuple[list[Any], int]:
        items: list[Any] = []
        while not isinstance(events[at], yaml.SequenceEndEvent):
            where = f"{written}[{len(items)}]"
            item, at = self._value(events, at, (*path, len(items)), where, depth + 1)
            items.append(item)
        return items, at + 1

    def _mapping(
        self, events: list[yaml.NodeEvent | yaml.CollectionEndEvent], at: int, path: Loc, written: str, depth: int
    ) -> tuple[dict[str, Any], int]:
        entries: dict[str, Any] = {}
        seen: dict[str, int] = {}
        while not isinstance(events[at], yaml.MappingEndEvent):
            key = events[at]
            if not isinstance(key, yaml.ScalarEvent) or key.tag not in (None, "!"):
                raise self._bad(key, "a key that is not plain text", "text as a key", written)
            alike, (line, column) = _alike_key(key.value), _position(key)
            if alike in seen:
                found = f"the key {shown(key.value)} a second time (first on line {seen[alike]})"
                raise self._bad(key, found, "each key once; - and _ are the same in keys", written)
            seen[alike] = line
            here = (*path, alike)
            where = without_credentials(f"{written}.{key.value}" if written else key.value)
            # A key's own place: that of an empty value would be the next line.
            self.document.places[here] = (line, column, where)
            entries[key.value], at = self._value(events, at + 1, here, where, depth + 1)
        return entries, at + 1


def _position(event: yaml.Event) -> tuple[int, int]:
    """Line and column from 1; PyYAML's Python parser marks every event."""
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _alike_key(key: str) -> str:
    return key.replace("-", "_")


def _alike(path: Loc) -> Loc:
    return tuple(_alike_key(part) if isinstance(part, str) else part for part in path)

"""The sections of a checked file that name levels, read into axes, ``include``, ``exclude`` and ``reference``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bisect_env.matrix import versions
from bisect_env.matrix.cells import IndexChoice, Scalar
from bisect_env.matrix.document import Document, Loc
from bisect_env.matrix.expansion import Axis, Level
from bisect_env.matrix.problems import Unfit, one_of, shown
from bisect_env.matrix.schema import MatrixFile
from bisect_env.matrix.versions import ReleaseSource
from bisect_env.matrix.vocabulary import Kind, Vocabulary

Entry = dict[str, Level]


@dataclass
class Levels:
    """Reads levels of one file; collects on the way what the user should be told."""

    document: Document
    file: MatrixFile
    words: Vocabulary
    index: IndexChoice
    releases: ReleaseSource | None
    notes: list[str] = field(default_factory=list)
    ranged: set[str] = field(default_factory=set)
    """Axes with a range: which levels they have is not the file's to know."""

    def axes(self) -> tuple[Axis, ...]:
        """The axes of ``axes`` in their order, then the lists under ``conditions``.

        Raises:
            BadInput: a name or level that is none, an empty axis, a level twice, a range without a release.
        """
        axes: list[Axis] = []
        for written, texts in self.file.axes.items():
            with self.document.at("axes", written):
                if self.words.kind(written) is Kind.CONDITION:
                    wanted = f"conditions: {{{written}: [...]}}; a list there is an axis"
                    raise Unfit(f"{shown(written)} is a condition and not something to install", wanted)
                name = self.words.name(written)
                if any(axis.name == name for axis in axes):
                    raise Unfit(f"the axis {name} a second time", "one list with all its levels")
            axes.append(Axis(name, self._axis(("axes", written), name, texts)))
        for written, texts in self.file.conditions.items():
            if isinstance(self.document.data["conditions"][written], list):
                name = self._condition_key(written)
                levels = self._axis(("conditions", written), name, texts)
                axes.append(Axis(name, levels, condition=True))
        return tuple(axes)

    def fixed_conditions(self) -> dict[str, Scalar]:
        """The conditions with a single value.

        Raises:
            BadInput: a key that the reproducer does not have, or a value that it does not take.
        """
        fixed: dict[str, Scalar] = {}
        for written, texts in self.file.conditions.items():
            if not isinstance(self.document.data["conditions"][written], list):
                name = self._condition_key(written)
                with self.document.at("conditions", written):
                    fixed[name] = self.words.condition_value(name, texts[0])
        return fixed

    def include(self) -> list[Entry]:
        """The ``include`` entries. They may name axes, conditions, variables and further distributions.

        Raises:
            BadInput: an empty entry, or a name or level that is none.
        """
        return [self._entry(("include", at), entry) for at, entry in enumerate(self.file.include)]

    def exclude(self, axes: Sequence[Axis]) -> list[Entry]:
        """The ``exclude`` entries. They may name axes only, and levels that these have.

        Raises:
            BadInput: an entry that is empty or could never match: most likely a typo.
        """
        entries = [self._entry(("exclude", at), entry) for at, entry in enumerate(self.file.exclude)]
        known = {axis.name: axis.levels for axis in axes}
        for at, entry in enumerate(entries):
            for (name, level), written in zip(entry.items(), self.file.exclude[at], strict=True):
                with self.document.at("exclude", at, written):
                    if name not in known:
                        raise Unfit(f"{shown(written)} is no axis of this matrix", one_of(known, written))
                    if name not in self.ranged and not any(level.same(other) for other in known[name]):
                        levels = [other.text for other in known[name]]
                        raise Unfit(f"{shown(level.text)} is no level of {name}", one_of(levels, level.text))
        return entries

    def reference(self) -> Entry:
        """The levels under ``reference``; empty when there are none.

        Raises:
            BadInput: a name or level that is none.
        """
        return self._entry(("reference",), self.file.reference) if self.file.reference else {}

    def _condition_key(self, written: str) -> str:
        with self.document.at("conditions", written):
            return self.words.condition_key(written)

    def _entry(self, path: Loc, entry: Mapping[str, str | None]) -> Entry:
        with self.document.at(*path):
            if not entry:
                raise Unfit("an empty entry", "{axis: level, ...}")
        levels: Entry = {}
        for written, text in entry.items():
            with self.document.at(*path, written):
                name = self.words.name(written)
                if name in levels:
                    raise Unfit(f"{name} a second time", "each name once")
                levels[name] = self.words.level(name, text)
        return levels

    def _axis(self, path: Loc, name: str, texts: Sequence[str | None]) -> tuple[Level, ...]:
        found: dict[str, Level] = {}
        with self.document.at(*path):
            if not texts:
                raise Unfit("an empty axis", "at least one level, or the key left out")
        by_range: set[str] = set()
        for at, text in enumerate(texts):
            with self.document.at(*path, at):
                if text is not None and self.words.kind(name) is Kind.PACKAGE and versions.is_range(text):
                    if at and text.startswith("<") and _lower_bound_only(texts[at - 1]):
                        wanted = f'the two as one level in quotes: "{texts[at - 1]},{text}"'
                        raise Unfit(f"the range {shown(text)} after {shown(texts[at - 1])}: together, every", wanted)
                    for level in self._released(name, text):
                        by_range.add(level.key)
                        found.setdefault(level.key, level)
                    continue
                level = self.words.level(name, text)
                if level.key in found and level.key not in by_range:
                    same = found[level.key].text
                    raise Unfit(f"{shown(text)} a second time (as {shown(same)})", f"each level of {name} once")
                found.setdefault(level.key, level)
        return tuple(found.values())

    def _released(self, name: str, text: str) -> list[Level]:
        """The levels that a range stands for."""
        specifiers = versions.parse_range(text)
        if self.releases is None:
            raise Unfit(f"the range {shown(text)}, and no index to look releases up in", "a list of versions")
        releases = self.releases.releases(name, self.index)
        before = _moment(self.file.as_of)
        found = versions.expand(specifiers, releases, before)
        if not found:
            when = "" if before is None else f" as of {self.file.as_of}"
            newest = versions.newest(releases, before)
            if newest is not None:
                wanted = f"a range that holds a release; the newest{when} is {newest}"
            elif releases and before is not None:
                wanted = f"a later as_of: every release of {name} is newer"
            else:
                wanted = f"a name that exists: {name}"
            raise Unfit(f"no released version of {name} in {shown(text)}{when}", wanted)
        self.ranged.add(name)
        self.notes.append(f"{name} {text} stands for {', '.join(found)}")
        return [self.words.level(name, version) for version in found]


def _lower_bound_only(text: str | None) -> bool:
    return text is not None and text.startswith(">") and "," not in text


def _moment(as_of: str | None) -> datetime | None:
    """The end of ``as_of``: a date stands for the whole day, as it does for uv."""
    if as_of is None or as_of == "release":
        return None
    moment = datetime.fromisoformat(as_of)
    if len(as_of) == len("2026-01-01"):
        moment = moment.replace(hour=23, minute=59, second=59)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

"""Version levels and ranges: what an axis level says, and which released versions a range stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from bisect_env.matrix.cells import IndexChoice
from bisect_env.matrix.problems import Unfit, shown

WANTED = 'a version (2.11.0), a range in quotes (">=2.11,<2.15"), a git URL (git+https://...@ref) or a path (./tree)'
_RANGE_STARTS = ("<", ">", "=", "!", "~=")
_LOOKALIKES = str.maketrans({"l": "1", "I": "1", "o": "0", "O": "0", ",": "."})


@dataclass(frozen=True)
class Release:
    """One version of a distribution as an index lists it."""

    version: str
    uploaded: datetime | None
    """None where the index does not say (PyTorch's do not)."""
    yanked: bool


class ReleaseSource(Protocol):
    """Where a range's releases are looked up; the only thing in this layer that may touch the network."""

    def releases(self, name: str, index: IndexChoice) -> Sequence[Release]:
        """All releases of ``name``, in any order; empty when the index does not know it."""
        ...


def is_range(text: str) -> bool:
    """True when ``text`` is written as a range and not as one version."""
    return text.startswith(_RANGE_STARTS)


def parse_version(text: str) -> Version:
    """The version that ``text`` says.

    Raises:
        Unfit: it is none; a typo that looks like a version is put right in the message.
    """
    try:
        return Version(text)
    except ValueError:  # InvalidVersion, or a number longer than Python converts.
        pass
    repaired = re.sub(r"\.{2,}", ".", text.translate(_LOOKALIKES)).strip(".")
    try:
        Version(repaired)
    except ValueError:
        raise Unfit(f"{shown(text)} is no version", WANTED) from None
    raise Unfit(f"{shown(text)} is no version", f"{repaired}, if that is what was meant; else {WANTED}")


def parse_range(text: str) -> SpecifierSet:
    """The range that ``text`` says.

    Raises:
        Unfit: a clause of it is not valid.
    """
    try:
        return _specifiers(text)
    except ValueError:
        pass
    for clause in text.split(","):
        try:
            _specifiers(clause)
        except ValueError:
            wanted = 'clauses such as ">=2.11,<2.15", "~=5.6.0" or "==2.11.*"'
            raise Unfit(f"{shown(clause.strip())} is no clause of a version range", wanted) from None
    raise Unfit(f"{shown(text)} is no version range", 'for example ">=2.11,<2.15"')


def _specifiers(text: str) -> SpecifierSet:
    """As ``SpecifierSet``, which reads its versions only when it is asked about one. Raises ValueError."""
    specifiers = SpecifierSet(text)
    specifiers.contains("0")
    return specifiers


def expand(specifiers: SpecifierSet, releases: Iterable[Release], before: datetime | None = None) -> tuple[str, ...]:
    """The released versions in a range, oldest first.

    Left out are pre-releases, development releases, yanked ones, names that are no version, and, when ``before`` is
    given, releases that are known to have been uploaded after it. Builds of one version for several CUDA variants
    (``2.11.0+cu128``, ``2.11.0+cu130``) are one version: the variant is asked for by the ``cuda`` axis.
    """
    found: set[Version] = set()
    for release in releases:
        try:
            version = Version(release.version)
        except InvalidVersion:
            continue
        late = before is not None and release.uploaded is not None and release.uploaded > before
        if release.yanked or version.is_prerelease or late:
            continue
        public = Version(version.public)
        if specifiers.contains(public, prereleases=False):
            found.add(public)
    return tuple(str(version) for version in sorted(found))


def newest(releases: Iterable[Release], before: datetime | None = None) -> str | None:
    """The newest final version that :func:`expand` can give, to be named in a message; None when there is none."""
    versions = expand(SpecifierSet(), releases, before)
    return versions[-1] if versions else None

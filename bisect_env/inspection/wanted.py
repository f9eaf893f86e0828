"""Which released versions a word asks for, and which of a version's wheels is read. Pure.

A word is ``NAME==VERSION``; ``NAME==A..B`` for the newest patch of each minor version from A to B; ``NAME==A...B`` for
all versions from A to B. An end stands for all that begins with it: ``2.15`` is reached by 2.15.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from bisect_env.environments.index import File
from bisect_env.environments.variants import label_of
from bisect_env.errors import BadInput
from bisect_env.matrix.versions import Release, expand

MOST = 60
"""Versions that one word may stand for."""
WANTED = "NAME==2.11.0, NAME==2.8..2.15 (the newest patch of each minor), or NAME==2.8...2.15 (all)"
_WORD = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*==\s*(.+?)\s*")
_RANGE = re.compile(r"(.+?)\s*(\.\.\.?)\s*([^.].*)")


@dataclass(frozen=True)
class Wanted:
    """What a word asks an index for."""

    name: str
    first: Version
    last: Version | None = None
    """None: ``first`` alone."""
    every: bool = False
    """Of a range: not the newest patch of each minor version only."""


def parse(word: str) -> Wanted | None:
    """What a word asks for; None where it is not ``NAME==...``.

    Raises:
        BadInput: it is, and no version or range stands there.
    """
    match = _WORD.fullmatch(word)
    if match is None:
        return None
    name, text = match.groups()
    between = _RANGE.fullmatch(text)
    try:
        if between is None:
            return Wanted(name, Version(text))
        found = Wanted(name, Version(between[1]), Version(between[3]), between[2] == "...")
    except InvalidVersion as error:
        raise BadInput(word, "", str(error), WANTED) from error
    if found.last is not None and found.last < found.first:
        raise BadInput(word, "", f"{found.last} comes before {found.first}", f"{name}=={found.last}..{found.first}")
    return found


def versions(wanted: Wanted, releases: Iterable[Release]) -> tuple[str, ...]:
    """The released versions of a range, oldest first; yanked ones and pre-releases are left out.

    Raises:
        BadInput: there are none, or more than :data:`MOST`.
    """
    if wanted.last is None:
        return (str(wanted.first),)
    known = [Version(text) for text in expand(SpecifierSet(), releases)]
    found = [version for version in known if version >= wanted.first and not _exceeds(version, wanted.last)]
    if not wanted.every:
        found = list({(version.epoch, version.release[:2]): version for version in found}.values())
    asked = f"{wanted.name}=={wanted.first}{'...' if wanted.every else '..'}{wanted.last}"
    if not found:
        raise BadInput(asked, "", "no version was released between the two", near(wanted.first, map(str, known)))
    if len(found) > MOST:
        raise BadInput(asked, "", f"{len(found)} versions", f"at most {MOST} in one word")
    return tuple(map(str, found))


def released(files: Iterable[File]) -> tuple[Release, ...]:
    """The releases that files make; one is yanked when all its files are."""
    by_version: dict[str, list[File]] = {}
    for file in files:
        by_version.setdefault(file.version, []).append(file)
    return tuple(Release(text, None, all(file.yanked for file in own)) for text, own in by_version.items())


def near(version: Version, released: Iterable[str]) -> str:
    """The released versions next to one that is not: what to write instead."""
    known = sorted({found for text in released if (found := _version(text)) is not None})
    below = [each for each in known if each <= version]
    above = [each for each in known if each > version]
    nearest = [str(each) for each in (*below[-1:], *above[:1])]
    if not known:
        return "another distribution: this one has no version there"
    newest = f"; the newest is {known[-1]}" if str(known[-1]) not in nearest else ""
    return f"{' or '.join(nearest)}, which {'is' if len(nearest) == 1 else 'are'} next to it{newest}"


def of_version(files: Sequence[File], version: Version) -> list[File]:
    """The files of a version; without a local label all of its builds."""
    exact = [file for file in files if _version(file.version) == version]
    if exact or version.local is not None:
        return exact
    return [file for file in files if (found := _version(file.version)) is not None and found.public == version.public]


def best_wheel(files: Sequence[File], order: Mapping[Tag, int]) -> tuple[File, bool] | None:
    """The wheel to be read of a version's, and whether it fits the target; None where there is no wheel.

    One that fits comes first, by the order of the tags. The text of modules hardly differs between platforms: else
    one for the target's platform, then the smallest. Of several builds, one without a label or for CPU; built
    again, the last one.
    """
    ranked = []
    target = {tag.platform for tag in order} - {"any"}
    for file in files:
        try:
            _, _, number, tags = parse_wheel_filename(file.name) if file.wheel else ("", None, (), frozenset())
        except InvalidWheelFilename:
            continue
        if tags:
            place = min((order[tag] for tag in tags if tag in order), default=len(order))
            platforms = {tag.platform for tag in tags}
            away = 0 if platforms & target else 1 if any("linux" in each for each in platforms) else 2
            labelled = label_of(file.version) not in (None, "cpu")
            again = -number[0] if number else 1
            ranked.append(((place, away, labelled, again, file.size or 0, file.name), file))
    if not ranked:
        return None
    (place, *_), file = min(ranked, key=lambda each: each[0])
    return file, place < len(order)


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _exceeds(version: Version, last: Version) -> bool:
    """Whether it comes after all that begins with ``last``."""
    length = len(last.release)
    padded = (*version.release, *([0] * length))[:length]
    return (version.epoch, padded) > (last.epoch, last.release)

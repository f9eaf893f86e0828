"""The grammar of requirements files as pip reads them: continuations, comments, options, and what a line asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from bisect_env.snapshots import pasted
from bisect_env.snapshots.pieces import editable, versioned
from bisect_env.snapshots.records import Distribution

INCLUDES = {"-r": False, "--requirement": False, "-c": True, "--constraint": True}
"""Options that name another file; True: of constraints."""
EDITABLES = ("-e", "--editable")
PLACES = ("-i", "--index-url", "--pypi-url", "--extra-index-url", "--no-index", "-f", "--find-links")
CHOICES = ("--pre", "--no-binary", "--only-binary", "--prefer-binary")
HARMLESS = ("--require-hashes", "--trusted-host", "--use-feature")
"""They decide nothing about which version of what is installed."""

_OPTION = re.compile(r"(--[A-Za-z-]+|-[A-Za-z])(?:\s*=\s*|\s+)?(.*)")
_COMMENT = re.compile(r"(?:^|\s+)#.*$")
_OF_ONE = re.compile(r"\s--?(?:hash|global-option|config-settings?|install-option|C)\b.*$")
"""Options of a single requirement, at its end."""
_PLACE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|\.{0,2}[/\\]")


def logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, each with the number of its first one; comments stay."""
    start, parts, size = 0, list[str](), 0
    for number, line in pasted.numbered(text):
        start = start if parts else number
        comment = line.lstrip().startswith("#")
        parts.append(line.removesuffix("\\"))
        size += len(line)
        if not line.endswith("\\") or comment or size > 50 * pasted.LONGEST_LINE:
            yield start, " ".join(parts).strip()
            parts, size = [], 0
    if parts:
        yield start, " ".join(parts).strip()


def plain(line: str) -> str:
    """A logical line without its comment, its hashes and what else is said about building this one."""
    return _OF_ONE.sub("", _COMMENT.sub("", line)).strip()


def option(line: str) -> tuple[str, str]:
    """Name and value of an option: ``-r base.txt``, ``-rbase.txt``, ``--requirement=base.txt``."""
    match = _OPTION.fullmatch(line)
    return (match[1], match[2].strip().strip("\"'")) if match is not None else (line, "")


def plausible(line: str) -> bool:
    """Whether pip could read a logical line in a requirements file."""
    line = plain(line)
    if len(line) > pasted.LONGEST_LINE:
        return False
    if line.startswith("-"):
        return option(line)[0] in (*INCLUDES, *EDITABLES, *PLACES, *CHOICES, *HARMLESS)
    return not line or requirement(line) is not None or bare(line) is not None


def requirement(line: str) -> Requirement | None:
    """The requirement of PEP 508 that a line is, None for another line."""
    try:
        return Requirement(line) if len(line) <= pasted.LONGEST_LINE else None
    except (InvalidRequirement, ValueError, RecursionError):
        return None


def bare(line: str) -> Distribution | None:
    """The distribution of a line that is only a URL or path: of a wheel, or with ``#egg=name``; None for another."""
    if len(line) > pasted.LONGEST_LINE or (_PLACE.match(line) is None and not line.endswith(".whl")):
        return None
    place = line.partition(" ;")[0].strip()
    file = re.split(r"[/\\]", place.partition("#")[0].partition("?")[0])[-1]
    if not file.endswith(".whl"):
        return editable(f"-e {place}") if "egg=" in place else None
    try:
        name, version = parse_wheel_filename(file.replace("%2B", "+").replace("%2b", "+"))[:2]
    except (InvalidWheelFilename, ValueError):
        return None
    return versioned(name, str(version), source=place)


def exact(asked: Requirement) -> str | None:
    """The version of a ``==`` without a wildcard, when the other clauses allow it; None: no such clause."""
    for each in asked.specifier:
        if each.operator in ("==", "===") and not each.version.endswith(".*"):
            return each.version if allows(asked.specifier, each.version) else None
    return None


def allows(specifier: SpecifierSet, version: str) -> bool:
    """Whether a version, valid or not, is in a range."""
    try:
        return specifier.contains(version, prereleases=True)
    except (InvalidSpecifier, ValueError):
        return False

"""What several forms are made of: a distribution written as ``name==version`` or ``name @ source``, and all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote, urlsplit

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from bisect_env.environments import variants
from bisect_env.errors import BadInput
from bisect_env.matrix.urls import has_credentials, stripped, without_credentials
from bisect_env.snapshots.records import Distribution, Snapshot, Unread, in_order

NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
"""A distribution's name (PEP 508), as part of a regular expression."""
VERSION: Final = r"[A-Za-z0-9][A-Za-z0-9.+_!-]*"
"""A version as it is met: valid (PEP 440) or not."""
MOST = 50_000
"""Distributions above which no list of them is believed."""
HOST_NOT_TOLD = "Python, platform, GPUs, driver, environment variables and compile cache are not in it."

_PINNED = re.compile(rf"({NAME})\s*={{2,3}}\s*({VERSION})")
_SOURCED = re.compile(rf"({NAME})\s*(?:\[[^\]]*\])?\s*@\s*(\S.*)")
_CONDA = re.compile(
    r"/croot/|/feedstock_root/|/conda-bld/|/tmp/build/80754af9/|/b/abs_\w+/|/perseverance-python-buildout/"
    r"|/(?:bld|ci_(?:py)?\d+)/[^/]+_\d{10,}/"
)
"""Folders of the machines that conda's packages are built on."""
_EDITABLE = re.compile(r"(?:-e|--editable)[\s=]+(\S.*)")
_EDITABLE_ABOVE = re.compile(rf"#+ !? ?Editable [^()]*\(({NAME})==({VERSION})\)")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_LOGIN = re.compile(r"(?<=:)[^\s/:@]+(?=@)|(?<=//)[^\s/:@*]+(?=@)")
"""What may be a password or a token in a URL that is none: what cannot be read may be damaged."""
_COMMIT = re.compile(r"@[0-9a-f]{40}\b")


def pinned(line: str, manager: str = "pip") -> Distribution | None:
    """The distribution that ``name==version`` says (``===`` for versions that are none); None for another line."""
    match = _PINNED.fullmatch(line.strip())
    return None if match is None else versioned(match[1], match[2], manager)


def versioned(name: str, version: str, manager: str = "pip", source: str = "") -> Distribution:
    """A distribution whose version is told, as it was written."""
    invalid = f"{shortened(version, 60)} is no valid version (PEP 440): it can be compared, not asked of an index"
    note = "" if _valid(version) else invalid
    return Distribution(canonicalize_name(name), version, public(source), manager, note)


def _valid(version: str) -> bool:
    try:
        Version(version)
    except ValueError:  # InvalidVersion, or a number longer than Python converts.
        return False
    return True


def sourced(line: str) -> Distribution | None:
    """The distribution that ``name @ URL`` says; None for another line.

    The version is known when the URL ends in a wheel or source distribution of that name, whose file names have it.
    """
    match = _SOURCED.fullmatch(line.strip())
    if match is None or not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", match[2]):
        return None
    name, url = canonicalize_name(match[1]), match[2].strip()
    version = version_in(url, name)
    if _CONDA.search(url):
        note = "built by conda" if version is not None else "built by conda, and the path does not tell its version"
        return Distribution(name, version, manager="conda", note=note)
    if version is not None:
        return versioned(name, version, source=url)
    if url.startswith(("git+", "hg+", "svn+", "bzr+")):
        note = "" if _COMMIT.search(url) else ", and neither is the commit"
        return Distribution(name, None, public(url), note=f"from version control: the version is not told{note}")
    return Distribution(name, None, public(url), note="the place it was installed from does not tell the version")


def editable(line: str, told: tuple[str, str] | None = None) -> Distribution | None:
    """The distribution that ``-e SOURCE`` says; None when neither the line nor ``told`` has its name.

    ``told`` is the name and version in the comment that pip writes above some of these.
    """
    match = _EDITABLE.fullmatch(line.strip())
    if match is None:
        return None
    source, egg = match[1].strip(), _EGG.search(match[1])
    if egg is None and told is None:
        return None
    name = egg[1] if egg is not None else told[0] if told is not None else ""
    plain = public(re.sub(r"#$", "", re.sub(r"([#&])egg=[^&]*&?", r"\1", source)).rstrip("&"))
    if told is not None and canonicalize_name(told[0]) == canonicalize_name(name):
        return versioned(name, told[1], source=plain)
    return Distribution(canonicalize_name(name), None, plain, note="an editable installation: the version is not told")


def told_above(comment: str) -> tuple[str, str] | None:
    """Name and version in the comment that pip writes above an editable installation; None for another line."""
    match = _EDITABLE_ABOVE.match(comment.strip())
    return None if match is None else (match[1], match[2])


def version_in(url: str, name: str) -> str | None:
    """The version in the name of the wheel or source distribution that a URL or path ends in, None without one."""
    try:
        file = unquote(urlsplit(url.replace("\\", "/")).path).rsplit("/", 1)[-1]
        if file.endswith(".whl"):
            found, version = parse_wheel_filename(file)[:2]
        elif file.endswith((".tar.gz", ".zip")):
            found, version = parse_sdist_filename(file)
        else:
            return None
    except (InvalidSdistFilename, InvalidVersion, InvalidWheelFilename, ValueError):
        return None
    return str(version) if found == canonicalize_name(name) else None


def public(source: str) -> str:
    """A source without credentials; the bare user of an ssh URL (``git@``) is none, and stays."""
    return stripped(source) if has_credentials(source) else source


def unread(line: int, text: str, why: str) -> Unread:
    """A piece that could not be read, as it may be shown."""
    return Unread(line, shortened(text), why)


def shortened(text: str, most: int = 120) -> str:
    """``text`` on one line, short, without credentials."""
    text = " ".join(_LOGIN.sub("***", without_credentials(text[:2000])).split())
    return text if len(text) <= most else f"{text[:most]}..."


class Gathering:
    """The distributions of one environment as they are read, each with its place.

    Two that differ under one name are a contradiction and not a choice to be made: two environments in one file.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._found: dict[tuple[str, str], tuple[Distribution, str]] = {}

    def add(self, distribution: Distribution, place: str) -> None:
        """Raises BadInput: it was there already and differs; or there are more than any environment has."""
        key = (distribution.name, distribution.manager)
        before, where = self._found.setdefault(key, (distribution, place))
        if (before.version, before.source) != (distribution.version, distribution.source):
            found = f"{_said(distribution)}, and {_said(before)} at {where}"
            wanted = "one version of each: if these are two environments, put each into a file of its own"
            raise BadInput(self._origin, place, found, wanted)
        if len(self._found) > MOST:
            raise BadInput(self._origin, place, f"more than {MOST:,} distributions", "what one environment has")

    def distributions(self) -> tuple[Distribution, ...]:
        """All of them, in order. What pip says of a distribution that conda has in the same version is left out."""
        kept = []
        for (name, manager), (distribution, _) in self._found.items():
            other = self._found.get((name, "conda"))
            agrees = manager == "pip" and other is not None and other[0].version == distribution.version
            if not agrees:
                kept.append(distribution)
        return in_order(kept)


def _said(distribution: Distribution) -> str:
    words = [distribution.name, distribution.version or "", f"@ {distribution.source}" if distribution.source else ""]
    return " ".join(word for word in words if word)


def cuda_of(distributions: Iterable[Distribution]) -> str | None:
    """The variant that torch was built for (``cu128``, ``cpu``), None where it is not told or two disagree.

    Of torch's local version, else of NVIDIA's runtime beside it. That there is none does not make it ``cpu``: it may
    not be listed.
    """
    pins = [(each.name, each.version) for each in distributions if each.version is not None and _valid(each.version)]
    torch = {version for name, version in pins if name == "torch"}
    if len(torch) != 1:
        return None
    found = variants.cuda_of(pins)
    return None if found == "cpu" and variants.label_of(torch.pop()) != "cpu" else found


def cut_off(text: str) -> tuple[str, ...]:
    """A sentence when the last line of a list has no end: only then can a part of it be missing unnoticed."""
    if text.endswith("\n"):
        return ()
    return (f"The last line ({shortened(text[text.rfind(chr(10)) + 1 :], 60)!r}) has no line end: was it cut off?",)


def require_some(snapshot: Snapshot, wanted: str) -> Snapshot:
    """The snapshot. Raises BadInput when nothing is in it, or when more of the input could not be read than could."""
    read = len(snapshot.distributions) + len(snapshot.ranges)
    if read == 0 or len(snapshot.unread) > read:
        first = snapshot.unread[0] if snapshot.unread else None
        place = f"line {first.line}" if first and first.line else ""
        found = f"{first.text!r}: {first.why}" if first else "nothing that is installed"
        if read and first:
            found = f"more lines that could not be read ({len(snapshot.unread)}) than were ({read}); the first: {found}"
        raise BadInput(snapshot.origin, place, found, wanted)
    return snapshot

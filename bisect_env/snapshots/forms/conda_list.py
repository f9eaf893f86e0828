"""``conda list`` (mamba's and micromamba's too): the table, ``--json``, ``--export`` and ``--explicit``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from packaging.utils import canonicalize_name

from bisect_env.errors import BadInput
from bisect_env.snapshots import pasted
from bisect_env.snapshots.pieces import NAME as NAME_PATTERN
from bisect_env.snapshots.pieces import Gathering, cuda_of, require_some, unread, versioned
from bisect_env.snapshots.records import Distribution, Snapshot, Target, Unread

NAME = "conda list"
NOT_TOLD = "GPUs, driver, environment variables and compile cache are not in it."
PYTHON_NAMES = {"pytorch": "torch"}
"""What Python calls a package of conda's: the same files under two names."""
OF_PIP = frozenset({"pypi", "<pip>", "<develop>"})
"""Channels that stand for: pip installed it."""

_ROW = re.compile(rf"(_?{NAME_PATTERN})\s+(\S+)(?:\s+(\S+))?(?:\s+(\S+))?")
_BUILD = re.compile(r"\S*_\d+(?:_\w+)?|main|<pip>")
"""What most builds look like: enough to tell a table of conda's from one of pip's."""
_EXPORTED = re.compile(rf"(_?{NAME_PATTERN})=([^=\s]+)=([^=\s]+)")
_EXPLICIT = re.compile(r"(?:https?|file)://\S+?/([\w-]+)/([^/\s]+?)(?:\.tar\.bz2|\.conda)(?:#\S*)?")
_TOKEN = re.compile(r"(?<=/t/)[^/\s]+")
_HEADER = re.compile(r"#?\s*Name\s+Version\s+Build(?:\s+Channel)?\s*")
_TITLE = re.compile(r"#\s*packages in environment at|\s*List of packages in environment:")
_RULE = re.compile(r"\s*[─━=-]{6,}\s*")
_CUDA_BUILD = re.compile(r"(?:^|_)cuda_?(\d+)\.?(\d)?(?=[._]|$)")
_WANTED = "what `conda list` prints, whole"


def recognise(text: str) -> float:
    """By conda's headers; a table or an export without them by its rows."""
    if re.search(r"(?m)^@EXPLICIT\s*$", text) or _TITLE.search(text[:20_000]):
        return 1.0
    if text.lstrip().startswith("["):
        return 1.0 if '"build_string"' in text or '"dist_name"' in text else 0.0
    lines = pasted.sample(text)
    if any(_HEADER.fullmatch(line.strip()) for line in text[:20_000].split("\n")):
        return 1.0
    rows = sum(
        _EXPORTED.fullmatch(line[: pasted.LONGEST_LINE].strip()) is not None or _has_build(line) for line in lines
    )
    return 0.9 * rows / len(lines) if lines else 0.0


def read(text: str, origin: str, host: Target) -> Snapshot:
    """The snapshot. Raises BadInput: damaged JSON, two environments in one, or nothing in it."""
    if text.lstrip().startswith("["):
        rows: list[tuple[int, str, Row | None]] = list(_json(text, origin))
    else:
        rows = [(number, line, _row(line)) for number, line in pasted.numbered(text) if not _is_frame(line)]
    gathering, missed, python, variant = Gathering(origin), list[Unread](), None, None
    for number, line, row in rows:
        place = f"line {number}" if number else "the list"
        if row is None:
            missed.append(unread(number, _TOKEN.sub("***", line), "no row of conda's list"))
        elif row.name == "python":
            if python not in (None, row.version):
                raise BadInput(origin, place, f"Python {row.version}, and {python} before", "one environment's list")
            python = row.version
        else:
            gathering.add(row.distribution(), place)
            variant = variant or (variant_of(row.build) if row.name in ("pytorch", "libtorch") else None)
    distributions = gathering.distributions()
    return require_some(
        Snapshot(
            origin,
            NAME,
            distributions,
            python=python,
            platform=_platform(text),
            cuda=cuda_of(distributions) or variant,
            missing=(NOT_TOLD, *(_pip_is_left_out(text))),
            unread=tuple(missed),
        ),
        _WANTED,
    )


class Row:
    """A line of the list."""

    def __init__(self, name: str, version: str, build: str = "", channel: str = "") -> None:
        self.name, self.version, self.build, self.channel = name, version, build, channel

    def distribution(self) -> Distribution:
        """What is installed. Of one version conda has several builds: which it is stands in the note."""
        if self.channel in OF_PIP or self.build in ("pypi_0", "<pip>"):
            found = versioned(self.name, self.version)
            editable = "editable: the version does not tell what its folder holds"
            return replace(found, note=editable) if self.channel == "<develop>" else found
        # conda's names and versions follow no PEP: that one is not valid says nothing.
        name = PYTHON_NAMES.get(self.name) or (self.name if self.name[0] == "_" else canonicalize_name(self.name))
        notes = [f"conda's {self.name}" if name == "torch" else "", f"conda build {self.build}" if self.build else ""]
        return Distribution(name, self.version, manager="conda", note=", ".join(filter(None, notes)))


def table_row(line: str) -> Row | None:
    """A row of the table: ``name version build channel``, of which the last two may be missing."""
    match = _ROW.fullmatch(line.strip())
    if match is None or not re.match(r"\d|[a-z]*\d", match[2]):
        return None
    return Row(match[1], match[2], match[3] or "", match[4] or "")


def variant_of(build: str) -> str | None:
    """The CUDA variant in the name of a build of pytorch: ``py3.10_cuda12.1_cudnn8.9.2_0``, ``cuda126_mkl_py311_0``."""
    match = _CUDA_BUILD.search(build)
    if match is not None:
        digits = match[1] + (match[2] or "")
        return f"cu{digits}" if len(digits) >= 3 else None
    return "cpu" if re.search(r"(?:^|_)cpu(?:_|$)", build) else None


def _has_build(line: str) -> bool:
    row = table_row(line[: pasted.LONGEST_LINE])
    return row is not None and _BUILD.fullmatch(row.build) is not None


def _row(line: str) -> Row | None:
    line = line.strip()
    if len(line) > pasted.LONGEST_LINE:
        return None
    exported = _EXPORTED.fullmatch(line)
    if exported is not None:
        return Row(*exported.groups())
    explicit = _EXPLICIT.fullmatch(line)
    if explicit is not None:
        parts = explicit[2].rsplit("-", 2)
        return Row(*parts) if len(parts) == 3 else None
    return table_row(line)


def _is_frame(line: str) -> bool:
    line = line.strip()
    return (
        line.startswith("#")
        or line == "@EXPLICIT"
        or any(pattern.match(line) for pattern in (_TITLE, _RULE))
        or _HEADER.fullmatch(line) is not None
    )


def _json(text: str, origin: str) -> Iterator[tuple[int, str, Row | None]]:
    try:
        entries = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(origin, f"line {error.lineno}, column {error.colno}", error.msg, _WANTED) from None
    except (RecursionError, ValueError) as error:
        raise BadInput(origin, "", f"no JSON: {error}"[:200], _WANTED) from None
    for entry in entries:
        yield 0, json.dumps(entry)[:300], _entry(entry) if isinstance(entry, Mapping) else None


def _entry(entry: Mapping[str, Any]) -> Row | None:
    values = [entry.get(key, "") for key in ("name", "version", "build_string", "channel")]
    if not all(isinstance(value, str) for value in values):
        return None
    matches = re.fullmatch(f"_?{NAME_PATTERN}", values[0]) and re.fullmatch(r"\S{1,200}", values[1])
    return Row(*values) if matches else None


def _platform(text: str) -> str | None:
    for pattern in (
        r"(?m)^#\s*platform:\s*(\S+)",
        r'"platform":\s*"((?!noarch|pypi)[\w-]+)"',
        r"(?m)^https?://\S+/((?:linux|osx|win)-\w+)/\S+\.(?:conda|tar\.bz2)",
    ):
        match = re.search(pattern, text)
        if match is not None:
            return match[1]
    return None


def _pip_is_left_out(text: str) -> tuple[str, ...]:
    if "@EXPLICIT" not in text:
        return ()
    return ("What pip installed is not in it: `conda list --explicit` leaves that out.",)

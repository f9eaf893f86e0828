"""``pip list`` and ``uv pip list``: the table with two, three or more columns, and ``--format=json``."""

from __future__ import annotations

import json
import re
from itertools import pairwise

from packaging.utils import canonicalize_name

from bisect_env.errors import BadInput
from bisect_env.snapshots import pasted
from bisect_env.snapshots.pieces import (
    HOST_NOT_TOLD,
    VERSION,
    Gathering,
    cuda_of,
    cut_off,
    require_some,
    shortened,
    unread,
    versioned,
)
from bisect_env.snapshots.pieces import (
    NAME as PROJECT,
)
from bisect_env.snapshots.records import Snapshot, Target, Unread

NAME = "pip list"

_HEADER = re.compile(r"\s*Package\s+Version(?:\s+(?:Editable|Location|Installer|Latest|Type|Build)\b.*)?\s*")
_RULE = re.compile(r"\s*-{3,}(?:\s+-{3,})+\s*")
_ROW = re.compile(rf"\s*({PROJECT})\s+({VERSION})(?:\s+(\S.*))?\s*")
_NUMBERED = re.compile(rf"\s*{PROJECT}[ \t]+v?\d[A-Za-z0-9.+_!-]*(?:[ \t]+(?:[A-Za-z]:\\|/|~).*)?\s*")
"""A row that is one even without a header above it: a version begins with a digit, a third column with a path."""
_JSON = re.compile(r"""\[\s*(?:\{\s*"(?:name|version|editable_project_location|location|installer)"\s*:|\]\s*$)""")
_WANTED = "the output of pip list, or of pip list --format=json"


def recognise(text: str) -> float:
    """1 with a table's header and rule, or with the beginning of the JSON list; else the share of rows."""
    lines = pasted.sample(text)
    if not lines:
        return 0.0
    if _JSON.match("\n".join(lines[:3])[:2000].lstrip()) is not None:
        return 1.0
    if any(_HEADER.fullmatch(one[:300]) and _RULE.fullmatch(two[:300]) for one, two in pairwise(lines)):
        return 1.0
    return 0.8 * sum(_NUMBERED.fullmatch(line[: pasted.LONGEST_LINE]) is not None for line in lines) / len(lines)


def read(text: str, origin: str, host: Target) -> Snapshot:
    """The rows. Raises BadInput: JSON that is damaged, a distribution in two versions, or nothing that can be read."""
    first = next((line for _, line in pasted.numbered(text)), "").lstrip()
    found, left, missing = Gathering(origin), list[Unread](), [HOST_NOT_TOLD]
    if first.startswith("["):
        outdated = _read_json(text, origin, found, left)
    else:
        outdated = _read_table(text, found, left)
        missing += cut_off(text)
    if outdated:
        missing.append("It lists only what could be upgraded (pip list --outdated).")
    distributions = found.distributions()
    snapshot = Snapshot(
        origin,
        NAME,
        distributions,
        pasted.told_python(text),
        cuda=cuda_of(distributions),
        missing=tuple(missing),
        unread=tuple(left),
        partial=outdated,
    )
    return require_some(snapshot, _WANTED)


def _read_table(text: str, found: Gathering, left: list[Unread]) -> bool:
    """Reads the rows; True when the table lists only what is outdated."""
    header, cuts, outdated = "", list[int](), False
    for number, line in pasted.numbered(text):
        if line.lstrip().startswith("#"):
            continue
        if _HEADER.fullmatch(line[:300]) is not None:
            header, cuts = line, []
            outdated = outdated or "Latest" in line.split()
            continue
        if _RULE.fullmatch(line[:300]) is not None:
            cuts = [match.start() for match in re.finditer(r"-+", line)]
            continue
        row = _ROW.fullmatch(line) if len(line) <= pasted.LONGEST_LINE else None
        if row is None or not (header or _NUMBERED.fullmatch(line)):
            left.append(unread(number, line, "no row of pip list"))
            continue
        cells = _cells(header, cuts, line, row[3] or "")
        if not header:
            cells["Editable project location"] = row[3] or ""
        manager = "conda" if cells.get("Installer") == "conda" else "pip"
        source = cells.get("Editable project location", "")
        found.add(versioned(row[1], row[2], manager, source), f"line {number}")
    return outdated


def _cells(header: str, cuts: list[int], line: str, rest: str) -> dict[str, str]:
    """The columns after the second by their titles: cut where the rule's are, or all of the rest when there is one."""
    titles = [header[start:end].strip() for start, end in zip(cuts, [*cuts[1:], None], strict=False)]
    if len(titles) == 3 or (not cuts and "Editable" in header):
        return {"Editable project location" if not cuts else titles[2]: rest.strip()}
    straight = all(line[cut - 1 : cut].isspace() for cut in cuts[1:] if cut < len(line))
    if not straight:
        return {}
    ends = [*cuts[1:], len(line)]
    return {title: line[start:end].strip() for title, start, end in zip(titles, cuts, ends, strict=False)}


def _read_json(text: str, origin: str, found: Gathering, left: list[Unread]) -> bool:
    """Reads the entries; True when the list holds only what is outdated."""
    lines = dict(pasted.numbered(text))
    last = max(lines)
    plain = "\n".join(lines.get(number, "") for number in range(1, last + 1))
    try:
        entries, end = json.JSONDecoder().raw_decode(plain, len(plain) - len(plain.lstrip()))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise BadInput(origin, place, f"JSON that ends or breaks there ({error.msg})", _WANTED) from None
    except (ValueError, RecursionError):
        raise BadInput(origin, "", "JSON with numbers or nesting that no list of packages has", _WANTED) from None
    if not isinstance(entries, list):
        raise BadInput(origin, "", "JSON that is no list", _WANTED)
    if plain[end:].strip():
        line = plain.count("\n", 0, len(plain) - len(plain[end:].lstrip())) + 1
        left.append(unread(line, plain[end:], "what follows the list"))
    for index, entry in enumerate(entries):
        name, version = (entry.get("name"), entry.get("version")) if isinstance(entry, dict) else (None, None)
        place = f"entry {index + 1}"
        if not (isinstance(name, str) and isinstance(version, str) and re.fullmatch(PROJECT, name) and version.strip()):
            left.append(unread(0, f"{place}: {json.dumps(entry)[:200]}", "no name and version"))
            continue
        manager = "conda" if entry.get("installer") == "conda" else "pip"
        source = entry.get("editable_project_location")
        shown = version.strip() if len(version) <= 200 else shortened(version, 200)
        found.add(versioned(canonicalize_name(name), shown, manager, source if isinstance(source, str) else ""), place)
    return any(isinstance(entry, dict) and "latest_version" in entry for entry in entries)

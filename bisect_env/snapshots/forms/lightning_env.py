"""Lightning's ``collect_env_details.py``: sections ``CUDA``, ``Lightning``, ``Packages`` and ``System``, of any age."""

from __future__ import annotations

import re

from bisect_env.errors import BadInput
from bisect_env.snapshots import pasted, several
from bisect_env.snapshots.pieces import NAME as NAME_PATTERN
from bisect_env.snapshots.pieces import VERSION, Gathering, cuda_of, require_some, unread, versioned
from bisect_env.snapshots.records import Distribution, Snapshot, Target, Unread

NAME = "Lightning's collect_env_details"
OPENING = re.compile(r"[>\s*-]*CUDA:\s*$", re.IGNORECASE)
MARKS = re.compile(r"(?:torch|pyTorch_version):\s*\S+")

_SECTION = re.compile(r"[*\s-]*(CUDA|Lightning|Packages|System):\s*", re.IGNORECASE)
_ITEM = re.compile(rf"(?:[-*•]\s*)?({NAME_PATTERN}):(?:\s+(\S.*))?")
_PLAIN = re.compile(r"(?:[-*•]\s*)?(\S.*)")
_CHATTER = re.compile(r"</?\w+|Current environment|#+ ")
_WANTED = "what Lightning's collect_env_details.py prints, whole"


def recognise(text: str) -> float:
    """By its sections."""
    names = {
        match[1].lower() for line in text[:400_000].split("\n") if (match := _SECTION.fullmatch(line.lstrip("> ")))
    }
    if not names & {"packages", "lightning"}:
        return 0.0
    return {1: 0.3, 2: 0.9}.get(len(names), 1.0)


def read(text: str, origin: str, host: Target) -> Snapshot:
    """The snapshot. Raises BadInput: several reports, a version that is told twice and differs, or nothing in it."""
    several.only(text, OPENING, origin, MARKS)
    reading = _Reading(origin)
    for number, line in pasted.unquoted(text):
        if not _CHATTER.match(line):
            reading.take(number, line)
    return require_some(reading.snapshot(), _WANTED)


class _Reading:
    """Where in the report one is, and what has been read so far."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._gathering = Gathering(origin)
        self._unread: list[Unread] = []
        self._facts: dict[tuple[str, str], str] = {}
        self._gpus: list[str] = []
        self._sections: set[str] = set()
        self._section = self._list = ""

    def take(self, number: int, line: str) -> None:
        section = _SECTION.fullmatch(line)
        item = _ITEM.fullmatch(line) if len(line) <= pasted.LONGEST_LINE else None
        if section is not None:
            self._section, self._list = section[1].lower(), ""
            self._sections.add(self._section)
        elif item is not None and self._section in ("packages", "lightning"):
            self._package(number, item[1], (item[2] or "").strip(), line)
        elif item is not None and self._section in ("cuda", "system") and not self._is_gpu(line):
            self._fact(number, item[1].lower(), (item[2] or "").strip())
        elif self._list == "gpu" and (plain := _PLAIN.fullmatch(line)):
            self._gpus.append(plain[1])
        elif self._list != "architecture":
            self._unread.append(unread(number, line, "no line of this report"))

    def _is_gpu(self, line: str) -> bool:
        """The model of a GPU may have a colon in it; the keys of its section are known."""
        return self._list == "gpu" and not re.match(r"(?:[-*•]\s*)?(?:GPU|available|version):", line, re.IGNORECASE)

    def _fact(self, number: int, key: str, value: str) -> None:
        before = self._facts.setdefault((self._section, key), value)
        if before != value:
            raise BadInput(self._origin, f"line {number}", f"{key}: {value}, and {before} before"[:200], "one report")
        self._list = "" if value else key
        if key == "gpu" and value not in ("", "None"):
            self._gpus.append(value)

    def _package(self, number: int, name: str, version: str, line: str) -> None:
        if name.lower() == "pytorch_debug":
            return
        name = "torch" if name.lower() == "pytorch_version" else name
        if version == "None":
            note = "the script could not tell its version"
            self._gathering.add(Distribution(versioned(name, "0").name, None, note=note), f"line {number}")
        elif re.fullmatch(VERSION, version):
            self._gathering.add(versioned(name, version), f"line {number}")
        else:
            self._unread.append(unread(number, line, "no version"))

    def snapshot(self) -> Snapshot:
        distributions = self._gathering.distributions()
        system, release = self._facts.get(("system", "os")), self._facts.get(("system", "release"))
        missing = ["Driver, environment variables, compile cache and where packages came from are not in it."]
        # A section for Lightning came when all packages came into theirs; the system's stands last.
        whole = {"packages", "lightning", "system"} <= self._sections
        if "system" not in self._sections:
            missing.append("It ends before its section System: its list of packages may be cut off.")
        elif not whole:
            missing.append("It is of an old Lightning, which lists a handful of packages.")
        return Snapshot(
            self._origin,
            NAME,
            distributions,
            python=self._facts.get(("system", "python")) or None,
            platform=" ".join(part for part in (system, release) if part) or None,
            cuda=self._variant() or cuda_of(distributions),
            gpus=tuple(self._gpus),
            missing=tuple(missing),
            unread=tuple(self._unread),
            partial=not whole,
        )

    def _variant(self) -> str | None:
        version = self._facts.get(("cuda", "version"), "")
        if version == "None":
            return None  # ROCm's builds say so too.
        return "cu" + "".join(version.split(".")[:2]) if re.fullmatch(r"\d+\.\d+(?:\.\d+)*", version) else None

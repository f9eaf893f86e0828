"""``as_of``: up to which moment an index's files count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from bisect_env.environments import requirements
from bisect_env.environments.index import File, SimpleIndex
from bisect_env.environments.records import Reason, Unavailable
from bisect_env.matrix.cells import IndexChoice

RELEASE = "release"


@dataclass(frozen=True)
class Cutoff:
    """``before`` for uv's ``--exclude-newer``; None: everything counts."""

    before: str | None = None
    notes: tuple[str, ...] = ()


def cutoff(
    as_of: str | None, parsed: Sequence[Requirement], index: IndexChoice, simple: SimpleIndex
) -> Cutoff | Unavailable:
    """What a request's ``as_of`` stands for.

    ``release`` is the end of the day (UTC) on which the newest of the exactly pinned requirements was uploaded, with
    all of its files. Its days are those of the package index: PyTorch's publish none.
    """
    if as_of is None:
        return Cutoff()
    if as_of != RELEASE:
        return Cutoff(requirements.cutoff(as_of))
    days = []
    for name, version in requirements.pinned(parsed).items():
        files = simple.files(name, index)
        if isinstance(files, Unavailable):
            if files.reason is Reason.OFFLINE:
                words = f"{files.message}: `as_of: release` needs its upload dates; offline, write the date itself"
                return Unavailable("resolve", Reason.OFFLINE, words)
            return files
        days += _uploads(files, version)
    if not days:
        return Cutoff(None, ("as_of: release has no effect: no pinned requirement has an upload date on its index",))
    return Cutoff(requirements.cutoff(max(days)))


def _uploads(files: Sequence[File], version: str) -> list[datetime]:
    """Upload times of a version's files, its label apart."""
    times = []
    for file in files:
        try:
            same = Version(file.version).public == Version(version).public
        except InvalidVersion:
            continue
        if same and file.uploaded is not None:
            times.append(file.uploaded)
    return times

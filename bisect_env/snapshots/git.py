"""A file as of a revision of the git repository that a folder is in."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path

from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.snapshots import pasted
from bisect_env.snapshots.git_command import git

TIMEOUT = 60.0
"""Seconds: a partial clone fetches the file."""


@dataclass(frozen=True)
class Place:
    """A path in a revision."""

    revision: str
    """``main``, ``HEAD~3``, a commit."""
    path: str
    """From the top of the repository, or from the folder when it is not there."""
    folder: Path

    def beside(self, name: str) -> str | None:
        """The text of a file by its path relative to this one; None where the revision has none."""
        other = Place(
            self.revision, posixpath.normpath(posixpath.join(posixpath.dirname(self.path), name)), self.folder
        )
        origin = f"{other.revision}:{other.path}"
        found, _ = _show(other, origin, pasted.LARGEST + 1)
        return None if found is None else pasted.decode(found, origin)


def read(place: Place, origin: str, most: int) -> bytes:
    """The file's content, of a longer one the first ``most`` bytes.

    Raises:
        BadInput: no repository, no such revision, no such file in it; in git's words.
        InfrastructureError: git is missing, or does not answer.
    """
    found, why = _show(place, origin, most)
    if found is None:
        wanted = "a file that exists, or REVISION:FILE with a revision and a file of the repository here"
        raise BadInput(origin, "", why or "git has no such file", wanted)
    return found


def _show(place: Place, origin: str, most: int) -> tuple[bytes | None, str]:
    if place.revision.startswith("-"):
        return None, "no revision begins with -"
    why = ""
    relative = place.path if place.path.startswith(("./", "../")) else f"./{place.path}"
    for path in dict.fromkeys((place.path, relative)):
        content, words = _blob(f"{place.revision}:{path}", place.folder, origin, most)
        if content is not None:
            return content, ""
        why = why or words
    return None, why


def _blob(name: str, folder: Path, origin: str, most: int) -> tuple[bytes | None, str]:
    """Content, or None and why there is none, in git's words."""
    try:
        said = git(folder, ["cat-file", "blob", name], TIMEOUT)
    except InfrastructureError as error:
        raise InfrastructureError(f"{origin}: {error}") from None
    return (None, said.words) if said.status else (said.output[:most], "")

"""A file as of a revision of the git repository that a folder is in."""

from __future__ import annotations

import os
import posixpath
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.matrix.urls import without_credentials
from bisect_env.snapshots import pasted

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
    """Content, or None and git's last words."""
    variables = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        told = subprocess.run(
            ["git", "cat-file", "blob", name],  # noqa: S607 - the user's own git
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=variables,
            timeout=TIMEOUT,
            check=False,
        )
    except FileNotFoundError:
        raise InfrastructureError(f"{origin}: git was not found; it is needed for REVISION:FILE") from None
    except subprocess.TimeoutExpired:
        raise InfrastructureError(f"{origin}: git did not answer within {TIMEOUT:g} s") from None
    if told.returncode == 0:
        return told.stdout[:most], ""
    lines = without_credentials(told.stderr.decode("utf-8", "replace")).strip().splitlines()
    return None, lines[0].removeprefix("fatal: ") if lines else f"git ended with status {told.returncode}"

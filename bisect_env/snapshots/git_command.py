"""The user's own git, asked so that it never asks back: no prompt, no pager, an end in time, no credentials told."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bisect_env.errors import InfrastructureError
from bisect_env.matrix.urls import without_credentials

_ELSEWHERE = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_PREFIX"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
    }
)
"""Set where a hook runs, they would mean its repository and not the one that is asked for."""
_SILENT = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_OPTIONAL_LOCKS": "0",
}
"""What needs a password fails; helpers that know it (``credential.helper``, ``~/.netrc``, ssh's agent) are asked."""


@dataclass(frozen=True)
class Said:
    """What a git command came to."""

    status: int
    output: bytes
    words: str
    """Why it failed, in git's words and without credentials; empty where it did not."""


def git(folder: Path, args: Sequence[str], patience: float, stdin: bytes = b"") -> Said:
    """Run one git command in a folder.

    It runs in a session of its own: without a terminal neither git nor ssh can ask for anything, and what does not come
    to an end is ended with all that it has started.

    Args:
        folder: where.
        args: of git, the subcommand first.
        patience: seconds.
        stdin: what it reads.

    Raises:
        InfrastructureError: git is missing, or did not come to an end in time.
    """
    try:
        process = subprocess.Popen(
            ["git", "--no-pager", *args],  # noqa: S607 - the user's own git
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(os.environ),
            start_new_session=True,
        )
    except FileNotFoundError as error:
        missing = "git was not found on PATH" if error.filename == "git" else f"{folder}: there is no such folder"
        raise InfrastructureError(f"{missing}; it is needed for git {args[0]}") from None
    with process:
        try:
            output, errors = process.communicate(stdin, timeout=patience)
        except BaseException as error:
            # On Ctrl-C as well. What git has started goes with it: it would hold the pipes. After an end of its own
            # there may be a daemon that keeps credentials, which stays.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise InfrastructureError(f"git {args[0]} did not come to an end within {patience:g} s") from None
            raise
    return Said(process.returncode, output, _words(errors, process.returncode) if process.returncode else "")


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of a git that is not to ask, out of a process's own."""
    return {name: value for name, value in variables.items() if name not in _ELSEWHERE} | _SILENT


def _words(errors: bytes, status: int) -> str:
    """The line that says why: the first one that git marks as such, else the first one."""
    lines = [line.strip() for line in without_credentials(errors.decode("utf-8", "replace")).splitlines()]
    marked = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    why = next(iter(marked or filter(None, lines)), f"git ended with status {status}")
    return why.removeprefix("fatal: ").removeprefix("error: ")

"""Asking a host what it has, this one or another through any command prefix: ``ssh gpu3``, ``docker exec -i NAME``.

Nothing is quoted for the way there. The prefix gets one more word, ``sh``, whatever number of shells take it apart, and
all else travels over standard input: a few lines for that shell, with the program for Python inside them. A prefix that
already ends in a Python gets the program itself.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from bisect_env.errors import BadInput, BisectEnvError, InfrastructureError
from bisect_env.snapshots import capture, host_shell, host_words

TIMEOUT = 180.0
"""Seconds for everything: connecting, starting in a container, reading the packages from a slow disk."""
GRACE = 2.0
"""Seconds between the polite and the final signal."""
LAST = 20_000
"""Characters of what a command said that are looked at for its meaning."""
MOST_BYTES = 64 << 20
"""Of an answer: a host with a thousand distributions sends a fifth of a megabyte."""

_WANTED = f"{host_words.WANTED}; `@VENV` last activates one"
_PYTHON = re.compile(r"""(?:^|[\s/'"&;|])python[\d.]*(?:\s+-)?['"\s]*$""")

shown = host_words.shown


@dataclass(frozen=True)
class Route:
    """How a host is reached, and what of it is asked."""

    prefix: tuple[str, ...] = ()
    """The words of the command; none: this host."""
    venv: str = ""
    """Activated there before Python is looked for: a folder with ``bin/activate``, or a file to be sourced."""
    python: bool = False
    """The prefix ends in a Python: no shell is needed."""
    interpreter: str = ""
    """Path of the Python to be asked, instead of the one that is found."""
    pid: int = 0
    """The process to be looked at; 0: none."""


def route(text: str, origin: str) -> Route:
    """``ssh gpu3``, ``ssh root@10.0.0.1 pct exec 200 -- bash -c @/srv/venv``, ``ssh gpu3 /srv/venv/bin/python``.

    Words are split as a shell does. A last word ``@PLACE`` names what is to be activated.

    Raises:
        BadInput: there is no command in it, a quote is not closed, or a secret stands in it.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadInput(origin, "", f"the words cannot be told apart: {error}", _WANTED) from None
    venv = words.pop()[1:] if words and words[-1].startswith("@") else ""
    if not words or not words[0]:
        raise BadInput(origin, "", "there is no command", _WANTED)
    return through(words, origin, venv=venv)


def through(words: Sequence[str], origin: str, venv: str = "", interpreter: str = "", pid: int = 0) -> Route:
    """The route through a prefix whose words are told apart already; no words: this host.

    Raises:
        BadInput: a secret stands in the words, or they end in a Python and another one is asked for.
    """
    text = " ".join(words)
    if host_words.open_secret(text):
        wanted = (
            "it in the environment of this command instead: `sshpass -e`, `docker exec -e NAME` (without a value), "
            "a kubeconfig, ~/.ssh/config"
        )
        found = "a secret in the command: every user of this machine could read it in the list of processes"
        raise BadInput(origin, "", found, wanted)
    python = _PYTHON.search(text) is not None
    if python and (venv or interpreter):
        found = "the command ends in a Python, and another one is asked for"
        raise BadInput(origin, "", found, "either the Python, or what is to be activated")
    first = [os.path.expanduser(word) for word in words[:1]]  # noqa: PTH111 - a command's name is no path
    return Route((*first, *words[1:]), venv, python, interpreter, pid)


def ask(way: Route, origin: str, timeout: float = TIMEOUT) -> str:
    """The document of :mod:`capture` that the host printed, between its marks.

    Args:
        way: how it is reached.
        origin: how the user called it, for messages.
        timeout: seconds; then the command and all that it started here are ended, and what runs there ends itself.

    Raises:
        BadInput: it cannot be started, answers nothing, or fails; with its own last words, and what to do.
        InfrastructureError: it cannot be reached, drops the connection, or did not answer in time.
    """
    command = [*way.prefix] if way.python else [*way.prefix, "sh"]
    program = capture.program(timeout, way.pid)
    given_text = program if way.python else host_shell.lines(program, way.venv, way.interpreter, way.pid)
    # Files, no pipes: a connection that ssh keeps open in the background would hold the end of a pipe for minutes.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as words:
        given.write(given_text.encode())
        given.seek(0)
        try:
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=answer,
                stderr=words,
                env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"},  # No window that waits for a password either.
                start_new_session=True,  # All that it started can be ended; nothing can ask at the terminal.
            )
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
            raise BadInput(origin, "", f"{shown(command[0])} cannot be started: {reason}", _WANTED) from None
        try:
            ended = _wait(process, answer, timeout)
        finally:
            _end(process)
        said, complaints = _text(answer), _text(words)
    last = host_words.last_words(complaints) or host_words.last_words(said)
    if not ended:
        raise InfrastructureError(
            f"{origin}: no answer within {timeout:g} s{last}\n"
            "  Does it wait for a password, a confirmation, a host that is down? Try the command by hand, with `true` "
            "as its last word; `ssh -o BatchMode=yes -o ConnectTimeout=10` asks nothing and gives up soon"
        )
    if capture.end() in said:
        return _document(said)
    if capture.begin() in said:
        raise InfrastructureError(
            f"{origin}: the answer ends in its middle (status {process.returncode}){last}\n"
            "  The connection was dropped, or what ran there was killed. Give the same command again"
        )
    raise _failed(command, process.returncode, (complaints or said)[-LAST:], last, origin)


def _failed(command: Sequence[str], status: int, said: str, last: str, origin: str) -> BisectEnvError:
    if status == 0:
        return BadInput(origin, "", f"it ended well and answered nothing{last}", host_words.silent(command))
    own = host_words.own_complaint(said)
    if own:
        return BadInput(origin, "", own, "the environment that is meant: --python, --activate, or `@VENV` last")
    failure = host_words.meaning(said)
    if failure is None:
        return BadInput(origin, "", f"it ended with status {status}{last}", _WANTED)
    found = f"{failure.meaning} (status {status}){last}"
    if failure.machine:
        return InfrastructureError(f"{origin}: {found}\n  What to do: {failure.advice}")
    return BadInput(origin, "", found, failure.advice)


def _wait(process: subprocess.Popen[bytes], answer: IO[bytes], timeout: float) -> bool:
    """False when the time was up. More than any answer is taken for none."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(0.5, timeout))
            return True
        if os.fstat(answer.fileno()).st_size > MOST_BYTES:
            return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
    process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MOST_BYTES).decode("utf-8", "replace")


def _document(said: str) -> str:
    """Without a login's greetings, which may hold anything. Two answers, of two nodes, are the reader's to refuse."""
    return said[said.index(capture.begin()) : said.rindex(capture.end()) + len(capture.end())]

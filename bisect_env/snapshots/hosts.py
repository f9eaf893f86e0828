"""Asking another host what it has, through any command prefix: ``ssh gpu3``, ``docker exec -i NAME``, and nested ones.

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
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.matrix.urls import names_secret, secret_values, without_credentials
from bisect_env.snapshots import capture

TIMEOUT = 180.0
"""Seconds for everything: connecting, starting in a container, reading the packages from a slow disk."""
GRACE = 2.0
"""Seconds between the polite and the final signal."""
MOST_BYTES = 64 << 20
"""Of an answer: a host with a thousand distributions sends a fifth of a megabyte."""

_WANTED = "a command that runs another one on the host: `ssh gpu3`, `docker exec -i NAME`; `@VENV` last activates one"
_PYTHON = re.compile(r"""(?:^|[\s/'"&;|])python[\d.]*(?:\s+-)?['"\s]*$""")
_ASSIGNED = re.compile(r"(?P<name>\b[A-Za-z_]\w*)=(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"']+)")
_PASSED = re.compile(r"(sshpass\s+-p\s*|--?(?:password|passwd|token|secret|api-?key)[=\s]+)(\"[^\"]*\"|'[^']*'|\S+)")


@dataclass(frozen=True)
class Route:
    """How a host is reached."""

    prefix: tuple[str, ...]
    """The words of the command."""
    venv: str = ""
    """Activated there before Python is looked for: a folder with ``bin/activate``, or a file to be sourced."""
    python: bool = False
    """The prefix ends in a Python: no shell is needed."""


def route(text: str, origin: str) -> Route:
    """``ssh gpu3``, ``ssh root@10.0.0.1 pct exec 200 -- bash -c @/srv/venv``, ``ssh gpu3 /srv/venv/bin/python``.

    Words are split as a shell does. A last word ``@PLACE`` names what is to be activated.

    Raises:
        BadInput: there is no command in it, or a quote is not closed.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadInput(origin, "", f"the words cannot be told apart: {error}", _WANTED) from None
    venv = words.pop()[1:] if words and words[-1].startswith("@") else ""
    if not words or not words[0]:
        raise BadInput(origin, "", "there is no command", _WANTED)
    words[0] = os.path.expanduser(words[0])  # noqa: PTH111 - a command's name is no path
    return Route(tuple(words), venv, _PYTHON.search(text) is not None)


def shown(text: str) -> str:
    """A command line, without the secrets that may stand in it."""

    def assigned(match: re.Match[str]) -> str:
        return f"{match['name']}=***" if names_secret(match["name"]) else match[0]

    text = _PASSED.sub(r"\1***", _ASSIGNED.sub(assigned, without_credentials(text)))
    return _without_own_secrets(text)


def ask(way: Route, origin: str, timeout: float = TIMEOUT) -> str:
    """The document of :mod:`capture` that the host printed, between its marks.

    Args:
        way: how it is reached.
        origin: how the user called it, for messages.
        timeout: seconds; then the command and all that it started here are ended, and what runs there ends itself.

    Raises:
        BadInput: it cannot be started, answers nothing, or fails; with its own last words.
        InfrastructureError: it did not answer in time.
    """
    command = list(way.prefix) if way.python else [*way.prefix, "sh"]
    program = capture.program(timeout)
    # Files, no pipes: a connection that ssh keeps open in the background would hold the end of a pipe for minutes.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as words:
        given.write((program if way.python else _for_shell(program, way.venv)).encode())
        given.seek(0)
        try:
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=answer,
                stderr=words,
                start_new_session=True,  # All that it started can be ended; nothing can ask for a password.
            )
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
            raise BadInput(origin, "", f"{command[0]} cannot be started: {reason}", _WANTED) from None
        try:
            ended = _wait(process, answer, timeout)
        finally:
            _end(process)
        said = _text(answer)
        last = _last_words(_text(words)) or _last_words(said)
    if ended and capture.begin() in said:
        return _document(said)
    if ended:
        raise BadInput(origin, "", *_silence(process.returncode, last))
    raise InfrastructureError(
        f"{origin}: no answer within {timeout:g} s{last}\n"
        "  Does it wait for a password or a confirmation? Try the command by hand, with `true` as its last word"
    )


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
    end = said.rfind(capture.end())
    return said[said.index(capture.begin()) : len(said) if end < 0 else end + len(capture.end())]


def _silence(status: int, last: str) -> tuple[str, str]:
    """What was found and what is wanted, when there was no document."""
    if status == 0:
        return f"it ended well and answered nothing{last}", "a command that passes its input on: docker exec -i"
    return f"it ended with status {status}{last}", _WANTED


def _last_words(text: str) -> str:
    told = _without_own_secrets(without_credentials(text[-4000:]))
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return ": " + " / ".join(line[:300] for line in lines[-2:]) if lines else ""


def _without_own_secrets(text: str) -> str:
    for secret in secret_values(os.environ):
        text = text.replace(secret, "***")
    return text


def _for_shell(program: str, venv: str) -> str:
    """For any POSIX shell. The program is an argument: for a here-document shells need a /tmp that can be written."""
    found = "python=$(command -v python3 || command -v python)"
    lines = []
    if venv:
        home, _, rest = venv.partition("/")
        place = '"$HOME"/' + shlex.quote(rest) if home == "~" else shlex.quote(venv)
        lines = [
            f"venv={place}",
            '[ -d "$venv" ] && venv="$venv/bin/activate"',
            'case "$venv" in */*) ;; *) venv="./$venv" ;; esac',
            _unless('[ -r "$venv" ]', "there is no $venv to activate"),
            _unless('. "$venv" </dev/null', "$venv could not be activated"),
        ]
        # An environment that may be moved does not know in every shell where it is: its own Python does.
        found = f'if [ -x "${{venv%/*}}/python" ]; then python="${{venv%/*}}/python"; else {found}; fi'
    lines += [
        found,
        _unless('[ -n "$python" ]', "there is no python3 on PATH: end the command with the path of one, or with @VENV"),
        f'"$python" -c {shlex.quote(program)} </dev/null',
        "exit $?",
    ]
    return "\n".join(lines) + "\n"


def _unless(condition: str, complaint: str) -> str:
    return f'{condition} || {{ echo "bisect-env: {complaint}" >&2; exit 9; }}'

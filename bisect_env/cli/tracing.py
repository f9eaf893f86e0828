"""Running a script under the interpreter of an environment, to see which functions call which."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from secrets import token_hex

from bisect_env.cli.common import complain
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.inspection.inspected import Traced
from bisect_env.inspection.records import Call
from bisect_env.matrix.shipped import reproducers_folder
from bisect_env.matrix.urls import secret_values, without_credentials
from bisect_env.trials.capture import Capture
from bisect_env.trials.isolation import MARKER, redact
from bisect_env.trials.process import CannotStart, Process, SupervisorLost

MOST_CALLS = 200_000
"""Distinct calls that are kept: a training script makes some ten thousand."""
TAIL = 12
"""Lines of a script's traceback that a message shows."""
TRACEBACK = "Traceback (most recent call last):"
HOOK = "observe_calls.py"
_WITHHELD = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT")
"""Variables by which this process's own Python would reach into the script's."""


def trace(python: Path, script: Path, arguments: Sequence[str], timeout: float, package: str) -> Traced:
    """Run the script in the working folder until it ends, ``timeout`` seconds are over, or Ctrl-C.

    What it started is ended with it.

    Args:
        python: interpreter of the environment.
        script: that the user names.
        arguments: of the script.
        timeout: seconds.
        package: top-level one that is inspected.

    Raises:
        BadInput: there is no such script, or it failed before it called anything of the package.
        InfrastructureError: the process cannot be started or was lost.
    """
    if not script.is_file():
        raise BadInput("--trace", "", f"{script}: there is no such file", "a Python script; its arguments go after --")
    capture, began, ended = Capture(), time.monotonic(), True
    with tempfile.TemporaryDirectory(prefix="bisect-env-trace-") as folder:
        calls = Path(folder) / "calls"
        command = [str(python), "-B", str(reproducers_folder() / HOOK), str(calls), str(MOST_CALLS), str(script)]
        variables = {name: value for name, value in os.environ.items() if name not in _WITHHELD}
        variables[MARKER] = f"trace-{token_hex(8)}"
        try:
            with Process([*command, *arguments], Path.cwd(), variables, capture) as process:
                ended = process.wait(timeout)
                status = process.status
        except (CannotStart, SupervisorLost) as error:
            raise InfrastructureError(f"--trace: {python}: {error}") from error
        seconds = time.monotonic() - began
        found, more = read(calls.read_text("utf-8").splitlines() if calls.exists() else [])
    if status != 0:
        said = f"{script} ended with status {status}" if ended else f"{script} was still running after {timeout:g} s"
        text = without_credentials(redact(capture.text(), secret_values(variables)))
        tail = "\n    ".join([said, *_error(text)])
        if not any(_of(package, call) for call in found):
            wanted = "a script that runs in this environment" if ended else "more time: --timeout SECONDS"
            raise BadInput("--trace", "", f"no call of {package} was seen: {tail}", wanted)
        complain(tail)
    return Traced(str(script), found, more, seconds, status if ended else None)


def _error(text: str) -> list[str]:
    """The end of the last traceback. Nothing else is shown: a script may print its variables, or a password."""
    _, found, after = text.rpartition(TRACEBACK)
    return [TRACEBACK, *after.strip("\n").splitlines()[-TAIL:]] if found else []


def _of(package: str, call: Call) -> bool:
    return any(name.partition(":")[0].partition(".")[0] == package for name in (call.caller, call.callee))


def read(lines: Iterable[str]) -> tuple[tuple[Call, ...], int]:
    """The distinct calls that the hook wrote, and how many it had no room for. A torn last line is left out."""
    found: dict[Call, None] = {}
    more = 0
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, list):
            found[Call(*record)] = None
        else:
            more = int(record["more"])
    return tuple(found), more

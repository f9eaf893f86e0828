"""What can differ between two hosts, captured by the host's own Python, or by that of a process which runs there.

Standard library alone, for any Python 3.8 or later: :func:`program` is one text for a host that has nothing else.
Nothing is imported from the packages that are looked at, nothing is written, and credentials do not leave the host.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Mapping  # noqa: UP035 - Python 3.8 evaluates the alias below

from bisect_env.snapshots import host_parts, interpreter_parts, process_parts

NEEDS = (
    "bisect_env.matrix.urls",
    "bisect_env.snapshots.interpreter_parts",
    "bisect_env.snapshots.host_parts",
    "bisect_env.snapshots.process_parts",
    "bisect_env.snapshots.capture",
)
"""In the order in which they import each other."""
FORMAT = 1
"""Version of the document. A key that is added does not change it."""
KEY = "bisect_env_capture"
MARK = "bisect-env-capture"
"""Lines of :func:`begin` and :func:`end` stand around the document: a login's greetings do not confuse its reader."""
PROCESS, SHELL, UNKNOWN = "process", "shell", "unknown"
"""Where a part of the document was seen: in the process that was asked for, in what the shell gave, or neither."""
_STARTS = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX",
           "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONSAFEPATH")  # fmt: skip
"""Variables of a process that decide where its interpreter finds packages. No other is given to a second one: a preload
library or a coverage hook would write its files."""

Document = Dict[str, Any]  # noqa: UP006


def begin() -> str:
    """The line before the document. Put together: a terminal that echoes the program does not print it."""
    return f"-----BEGIN {MARK}-----"


def end() -> str:
    """The line after it."""
    return f"-----END {MARK}-----"


def program(limit: float, pid: int = 0) -> str:
    """The program to send: ``python3 - < PROGRAM`` prints the document and ends after ``limit`` seconds at the latest.

    With ``pid`` the document is that of this process. A Python older than 3.8, Python 2 included, says so instead of
    failing at the syntax.
    """
    sources = {"bisect_env": "", "bisect_env.matrix": "", "bisect_env.snapshots": ""}
    packages = Path(__file__).parents[2]
    for name in NEEDS:
        sources[name] = (packages / (name.replace(".", "/") + ".py")).read_text(encoding="utf-8")
    return _text(sources, f"main({limit!r}, SOURCES, {pid!r})")


def _text(sources: Mapping[str, str], call: str) -> str:
    """Modules and what is called of this one, in lines no longer than a terminal takes in one piece, none blank."""
    listed = "\n".join(
        f"({name!r},\n" + "\n".join(ascii(line) for line in text.splitlines(keepends=True) or [""]) + "),"
        for name, text in sources.items()
    )
    return f"""\
# What can differ between two hosts, as JSON:  ssh HOST python3 - < THIS > host.json   (bisect-env reads it)
import sys
import types
sys.dont_write_bytecode = True
if sys.version_info < (3, 8): sys.exit("bisect-env: %s is Python %s; 3.8 or later is needed: name the one of the environment to be captured" % (sys.executable, sys.version.split()[0]))

SOURCES = [
{listed}
]
for name, text in SOURCES:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
    parent, _, last = name.rpartition(".")
    if parent: setattr(sys.modules[parent], last, module)

sys.exit(sys.modules["bisect_env.snapshots.capture"].{call})
"""  # noqa: E501


def main(limit: float, sources: list[tuple[str, str]], pid: int = 0) -> int:
    """The program: prints the document between its marks."""
    _end_after(limit)
    try:
        document = _of_process(pid, limit, dict(sources)) if pid else _of_shell()
    except process_parts.Unseen as error:
        document = {"problem": {"found": error.found, "wanted": error.wanted}}
    _print({KEY: FORMAT, **document})
    return 0


def interpreter_main(limit: float) -> int:
    """What a second interpreter is started for: prints what it knows of itself."""
    _end_after(limit)
    _print(interpreter_parts.interpreter())
    return 0


def _end_after(limit: float) -> None:
    if hasattr(signal, "alarm"):
        # Whoever asked may be gone, and its kill does not reach through ssh.
        signal.alarm(max(1, int(limit)))


def _print(document: Document) -> None:
    sys.stdout.write(f"\n{begin()}\n{json.dumps(document, indent=1)}\n{end()}\n")
    sys.stdout.flush()


def _of_shell() -> Document:
    """What :mod:`bisect_env.snapshots.forms.captured` reads, of the interpreter and the variables that this one has."""
    driver, gpus = host_parts.gpus()
    found = interpreter_parts.interpreter()
    parts = ["python", "platform", "distributions", "torch", "venv", "variables", "cache"]
    return {
        **found,
        "system": platform.platform(),
        "driver": driver,
        "gpus": gpus,
        "variables": host_parts.variables(os.environ),
        "cache": host_parts.cache(os.environ),
        "libraries": None,
        "seen": {**dict.fromkeys(parts, SHELL), **_seen_gpus(driver, gpus)},
        "remarks": _other_venv(os.environ, found, "the shell's"),
    }


def _seen_gpus(driver: str | None, gpus: list[str]) -> dict[str, str]:
    return {"driver": SHELL if driver else UNKNOWN, "gpus": SHELL if gpus else UNKNOWN}


def _other_venv(given: Mapping[str, str], found: Document, whose: str) -> list[str]:
    """An environment is activated, and the interpreter belongs to another one: what is imported is the latter's."""
    active = given.get("VIRTUAL_ENV") or given.get("CONDA_PREFIX")
    if not active or os.path.realpath(active) == os.path.realpath(found["venv"] or ""):
        return []
    return [f"Activated is {active} by {whose} variables, but the interpreter is {found['executable']}."]


def _of_process(pid: int, limit: float, sources: Mapping[str, str]) -> Document:
    process = process_parts.process(pid)
    given = process.variables or {}
    found = _asked(process, limit, sources)
    driver, gpus = host_parts.gpus()
    # A service may have a /tmp of its own: its cache is counted as it sees it, where that is allowed.
    root = process.root if os.access(process.root + "/", os.R_OK | os.X_OK) else ""
    cache = None if process.variables is None else host_parts.cache(given, process.owner, root)
    own = PROCESS if process.checked else UNKNOWN
    told = UNKNOWN if process.variables is None else PROCESS
    seen = {**dict.fromkeys(("python", "platform", "distributions", "torch", "venv"), own), "variables": told}
    seen.update(cache=told, libraries=UNKNOWN if process.libraries is None else PROCESS, **_seen_gpus(driver, gpus))
    remarks = [*process.remarks, *_other_venv(given, found, "the process's")]
    return {
        **found,
        "system": platform.platform(),
        "driver": driver,
        "gpus": gpus,
        "variables": None if process.variables is None else host_parts.variables(given),
        "cache": cache,
        "libraries": process.libraries,
        "seen": seen,
        "remarks": remarks,
    }


def _asked(process: process_parts.Process, limit: float, sources: Mapping[str, str]) -> Document:
    """What the process's interpreter says of itself, started a second time with the variables that it goes by."""
    seconds = max(1.0, limit - 1.0)
    given = os.environ if process.variables is None else process.variables
    try:
        told = subprocess.run(
            [process.interpreter, "-B", "-"],
            input=_text(sources, f"interpreter_main({seconds!r})").encode(),
            capture_output=True,
            env={name: given[name] for name in _STARTS if name in given},
            cwd=process.folder,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or type(error).__name__
        raise process_parts.Unseen(f"its interpreter {process.interpreter} cannot be started: {why}", "") from None
    body = told.stdout.decode("utf-8", "replace").partition(begin())[2].partition(end())[0]
    if not body:
        words = told.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        last = words[0][:300].replace("bisect-env: ", "") if words else f"it ended with status {told.returncode}"
        raise process_parts.Unseen(f"its interpreter {process.interpreter} does not answer: {last}", "")
    found: Document = json.loads(body)
    return found

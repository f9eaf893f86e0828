"""Whether torch can be imported in a built environment, and whether it is the variant that was asked for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bisect_env.environments import trees
from bisect_env.environments.places import BYTE_CODE, PROBE
from bisect_env.environments.records import Environment, Reason, Unavailable
from bisect_env.matrix.cells import EnvironmentRequest, Limits

ASK = """
import importlib.util, json
answer = {"torch": None, "cuda": None, "hip": None}
if importlib.util.find_spec("torch") is not None:
    import torch
    answer = {"torch": torch.__version__, "cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None)}
print("\\n" + json.dumps(answer))
"""


@dataclass(frozen=True)
class Imported:
    """What torch says of itself, or why it could not be imported."""

    torch: str | None = None
    """``torch.__version__``; None when there is no torch, or when it could not be imported."""
    cuda: str | None = None
    """``torch.version.cuda``"""
    hip: str | None = None
    """``torch.version.hip``: a build for AMD is neither a CUDA variant nor a CPU build."""
    error: str = ""


def probe(environment: Environment, request: EnvironmentRequest, limits: Limits) -> Unavailable | None:
    """Imports torch in the environment, in a process of its own; None when all is as it should be.

    The time limit is ``limits.import_time``. What torch said is remembered beside the environment's marker, an
    exception of its import too; a time-out or a crash is not, since the machine may have been the cause.
    """
    names = {name for name, _ in environment.lock.pins}
    if "torch" not in names and environment.lock.base is None:
        return None
    imported = _remembered(environment)
    if imported is None:
        imported = _import(environment, limits.import_time)
    if imported.error:
        return Unavailable("import", Reason.IMPORT, imported.error)
    return _wrong_variant(imported, request.cuda)


def _wrong_variant(imported: Imported, wanted: str | None) -> Unavailable | None:
    if wanted is None or imported.torch is None:
        return None
    if imported.hip is not None:
        found = f"rocm {imported.hip}"
    else:
        # "13.0" is cu130. A patch level, should there ever be one, is no part of a variant's name.
        found = "cpu" if imported.cuda is None else "cu" + "".join(imported.cuda.split(".")[:2])
    if found == wanted:
        return None
    words = f"torch {imported.torch} was built for {found} (torch.version.cuda is {imported.cuda}), not for {wanted}"
    return Unavailable("import", Reason.VARIANT, words)


def _remembered(environment: Environment) -> Imported | None:
    try:
        return Imported(**json.loads((environment.folder / PROBE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _import(environment: Environment, timeout: float) -> Imported:
    # Beside the environment: what a kill leaves of it goes when the environment does.
    with tempfile.TemporaryDirectory(prefix="probe-", dir=environment.folder) as home:
        # -I: no user site, no PYTHON* variable, no current folder. The venv itself gets no byte code.
        prefix = f"pycache_prefix={environment.folder / BYTE_CODE}"
        command: list[str | Path] = [environment.python, "-I", "-X", prefix, "-c", ASK]
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=_variables(home),
            cwd=home,
            start_new_session=True,
        ) as process:
            try:
                stdout, stderr = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                return Imported(error=f"importing torch took longer than {timeout:g} s (limits: import_time)")
            finally:
                # Also what the import may have started, and when an exception such as Ctrl-C arrives here.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        return Imported(error=f"importing torch ended with {name}: {_last_line(stderr)}".rstrip(": "))
    if process.returncode:
        result = Imported(error=_last_line(stderr) or f"importing torch ended with status {process.returncode}")
    else:
        result = Imported(**json.loads(stdout.splitlines()[-1]))
    trees.write_durably(environment.folder / PROBE, json.dumps(result.__dict__))
    return result


def _variables(home: str) -> dict[str, str]:
    """All that the process gets: nothing of the parent's."""
    return {"PATH": os.defpath, "HOME": home, "TMPDIR": home, "XDG_CACHE_HOME": home, "LANG": "C.UTF-8"}


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""

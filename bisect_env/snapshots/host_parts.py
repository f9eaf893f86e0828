"""What a host has besides a Python: GPUs and their driver, variables that can change what torch does, a compile cache.

Runs on the captured host (:mod:`capture`): standard library alone, Python 3.8 or later, nothing written. The variables
are given, since they may be those of another process.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import stat
import subprocess
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Dict, Mapping  # noqa: UP035 - Python 3.8 evaluates the alias below

from bisect_env.matrix.urls import names_secret, secret_values, without_credentials

VARIABLES = (
    "TORCH*", "PYTORCH*", "TRITON*", "INDUCTOR*", "AOT_*", "CUDA*", "CUBLAS*", "CUDNN*", "NVIDIA*", "NCCL*", "GLOO_*",
    "UCX_*", "NVTE_*", "XLA_*", "OMP_*", "KMP_*", "GOMP_*", "MKL_*", "OPENBLAS*", "NUMEXPR*", "FLASH*", "HF_*",
    "HUGGING*", "TRANSFORMERS*", "ACCELERATE*", "DEEPSPEED*", "VLLM_*", "TOKENIZERS_*", "SAFETENSORS_*", "MALLOC_*",
    "GLIBC_TUNABLES", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHON*", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS",
)  # fmt: skip
"""Those that can change what torch does. What only names a place (HOME, VIRTUAL_ENV) differs always."""

MOST_FILES = 500_000
"""Of a compile cache: what lies beyond is not counted, and the document says so."""
SCAN_SECONDS = 20.0
PATIENCE = 20.0
"""Seconds nvidia-smi may take: it waits for a driver that hangs."""

Document = Dict[str, Any]  # noqa: UP006


def gpus() -> tuple[str | None, list[str]]:
    """The driver's version and the model of each GPU; nothing where there is none, or none that answers."""
    tool = shutil.which("nvidia-smi")
    if tool is not None:
        try:
            told = subprocess.run(
                [tool, "--query-gpu=driver_version,name", "--format=csv,noheader"],
                stdin=subprocess.DEVNULL,  # The rest of this program may still be there.
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=PATIENCE,
                check=True,
            ).stdout.decode("utf-8", "replace")
            rows = [line.partition(", ") for line in told.splitlines() if ", " in line]
            if rows:
                return rows[0][0].strip(), [row[2].strip() for row in rows]
        except (OSError, subprocess.SubprocessError):
            pass
    driver = re.search(r"Kernel Module[^\n]*?\s(\d+\.\d[\d.]*)", _text(Path("/proc/driver/nvidia/version")))
    models = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        model = re.search(r"^Model:\s*(.+)$", _text(path), re.MULTILINE)
        models += [model[1].strip()] if model else []
    return driver[1] if driver else None, models


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def variables(given: Mapping[str, str]) -> list[list[str]]:
    """Name and value of each that matters, by name. Of one that is named like a secret only that it is set."""
    secrets = secret_values(given)
    found = []
    for name, value in sorted(given.items()):
        if any(fnmatchcase(name, wanted) for wanted in VARIABLES):
            shown = "***" if names_secret(name) else without_credentials(value)
            for secret in secrets:
                shown = shown.replace(secret, "***")
            found.append([name, shown.encode("utf-8", "replace").decode()])
    return found


def cache(given: Mapping[str, str], user: str = "", root: str = "") -> Document:
    """Inductor's cache, by the rules that inductor itself follows.

    Args:
        given: the variables.
        user: to whom a process belongs that has none of the variables that say so; empty: whoever runs this.
        root: what stands before a path of this process to see it as another process does (``/proc/PID/root``).
    """
    named = given.get("TORCHINDUCTOR_CACHE_DIR")
    if not named:
        told = next((given[name] for name in ("LOGNAME", "USER", "LNAME", "USERNAME") if given.get(name)), user)
        named = os.path.join(_temporary(given, root), "torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", told or _user()))  # noqa: PTH118
    return _scan(named, root, MOST_FILES, SCAN_SECONDS)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, ImportError, OSError):
        return f"uid_{os.getuid()}"


def _temporary(given: Mapping[str, str], root: str) -> str:
    """As ``tempfile.gettempdir``, which would write a file to learn whether it can."""
    told = [given[name] for name in ("TMPDIR", "TEMP", "TMP") if given.get(name)]
    return next((each for each in (*told, "/tmp", "/var/tmp", "/usr/tmp") if os.path.isdir(root + each)), "/tmp")  # noqa: PTH112, S108


def _scan(folder: str, root: str, most: int, seconds: float) -> Document:
    """Files in the cache and their bytes; ``complete`` is false when a bound ended the counting."""
    deadline = time.monotonic() + seconds
    entries = size = 0
    refused: list[OSError] = []
    for place, _, names in os.walk(root + folder, onerror=refused.append):
        for name in names:
            try:
                info = os.lstat(os.path.join(place, name))  # noqa: PTH118 - half a million Paths take seconds
            except OSError:
                continue
            if stat.S_ISREG(info.st_mode):
                entries, size = entries + 1, size + info.st_size
        if entries >= most or time.monotonic() > deadline:
            return {"path": folder, "entries": entries, "bytes": size, "complete": False}
    # That there is no such folder is an answer: nothing is cached.
    readable = all(isinstance(error, FileNotFoundError) for error in refused)
    return {"path": folder, "entries": entries, "bytes": size, "complete": readable}

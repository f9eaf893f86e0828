"""What can differ between two hosts, captured by the host's own Python: distributions, variables, GPUs, compile cache.

Standard library alone, for any Python 3.8 or later: :func:`program` is one text for a host that has nothing else.
Nothing is imported from the packages that are looked at, and credentials do not leave the host.
"""

from __future__ import annotations

import getpass
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Dict  # noqa: UP035 - Python 3.8 evaluates the alias below

from bisect_env.matrix.urls import has_credentials, names_secret, secret_values, stripped, without_credentials

NEEDS = ("bisect_env.matrix.urls", "bisect_env.snapshots.capture")
FORMAT = 1
"""Version of the document."""
KEY = "bisect_env_capture"
MARK = "bisect-env-capture"
"""Lines of :func:`begin` and :func:`end` stand around the document: a login's greetings do not confuse its reader."""

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
_OWNED = re.compile(r"(?:.*/)?([^/]+?)-([^/-]+?)(?:-py[\d.]+)?\.(?:dist-info|egg-info)(?:/.*)?")
_TOLD = re.compile(r"^(__version__|cuda|hip)\b[^=\n]*=\s*(?:'([^'\n]*)'|\"([^\"\n]*)\"|None)", re.MULTILINE)

Document = Dict[str, Any]  # noqa: UP006


def begin() -> str:
    """The line before the document. Put together: a terminal that echoes the program does not print it."""
    return f"-----BEGIN {MARK}-----"


def end() -> str:
    """The line after it."""
    return f"-----END {MARK}-----"


def program(limit: float) -> str:
    """The program to send: ``python3 - < PROGRAM`` prints the document and ends after ``limit`` seconds at the latest.

    A Python older than 3.8, Python 2 included, says so instead of failing at the syntax.
    """
    sources = {"bisect_env": "", "bisect_env.matrix": "", "bisect_env.snapshots": ""}
    packages = Path(__file__).parents[2]
    for name in NEEDS:
        sources[name] = (packages / (name.replace(".", "/") + ".py")).read_text(encoding="utf-8")
    listed = "\n".join(
        f"({name!r},\n" + "\n".join(ascii(line) for line in text.splitlines(keepends=True) or [""]) + "),"
        for name, text in sources.items()
    )
    # No line is longer than a terminal takes in one piece, and none is blank.
    return f"""\
# What can differ between two hosts, as JSON:  ssh HOST python3 - < THIS > host.json   (bisect-env reads it)
import sys
import types
if sys.version_info < (3, 8): sys.exit("bisect-env: %s is Python %s; 3.8 or later is needed: name the one of the environment to be captured" % (sys.executable, sys.version.split()[0]))

SOURCES = [
{listed}
]
for name, text in SOURCES: sys.modules[name] = types.ModuleType(name); exec(compile(text, name, "exec"), sys.modules[name].__dict__)

sys.exit(sys.modules["bisect_env.snapshots.capture"].main({limit!r}))
"""  # noqa: E501


def main(limit: float) -> int:
    """The program: prints the document between its marks."""
    if hasattr(signal, "alarm"):
        # Whoever asked may be gone, and its kill does not reach through ssh.
        signal.alarm(max(1, int(limit)))
    text = json.dumps(capture(), indent=1)
    sys.stdout.write(f"\n{begin()}\n{text}\n{end()}\n")
    sys.stdout.flush()
    return 0


def capture() -> Document:
    """The document: what :mod:`bisect_env.snapshots.forms.captured` reads."""
    found, unread = _installed()
    driver, gpus = _gpus()
    folder = _cache_folder()
    return {
        KEY: FORMAT,
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "executable": sys.executable,
        "platform": sysconfig.get_platform(),
        "system": platform.platform(),
        "distributions": found + _of_conda(found),
        "unread": unread,
        "torch": _torch(),
        "driver": driver,
        "gpus": gpus,
        "variables": _variables(),
        "cache": _scan(folder, MOST_FILES, SCAN_SECONDS),
    }


def _folders() -> list[str]:
    """Where this interpreter finds packages, without the folder that the program happened to be started in."""
    return sys.path[1:] if sys.path[:1] == [""] else list(sys.path)


def _installed() -> tuple[list[Document], list[Document]]:
    """What can be imported, and what could not be read. Of a distribution in several folders the first counts."""
    found: dict[str, Document] = {}
    unread = []
    for distribution in importlib.metadata.distributions(path=_folders()):
        try:
            metadata = distribution.metadata
            name, version = metadata["Name"], metadata["Version"]
            if not name or not version:
                raise ValueError("its metadata has no name or no version")
            entry: Document = {
                "name": _normalised(name),
                "version": version,
                "source": "",
                "editable": False,
                "manager": "pip",
            }
            entry.update(_source(distribution.read_text("direct_url.json")))
            if (distribution.read_text("INSTALLER") or "").strip() == "conda":
                entry["manager"] = "conda"
        except Exception as error:  # noqa: BLE001 - whatever a broken installation raises, it is listed
            place = str(getattr(distribution, "_path", "") or "a distribution")
            unread.append({"path": place, "why": without_credentials(f"{type(error).__name__}: {error}")})
            continue
        found.setdefault(entry["name"], entry)
    return [found[name] for name in sorted(found)], unread


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _source(told: str | None) -> Document:
    """Of direct_url.json (PEP 610): where it was installed from, when that was no index."""
    if not told:
        return {}
    direct = json.loads(told)
    url = str(direct["url"])
    url = stripped(url) if has_credentials(url) else url
    if "vcs_info" in direct:
        url = f"{direct['vcs_info']['vcs']}+{url}@{direct['vcs_info']['commit_id']}"
    if direct.get("subdirectory"):
        url += f"#subdirectory={direct['subdirectory']}"
    return {"source": url, "editable": bool(direct.get("dir_info", {}).get("editable"))}


def _of_conda(found: list[Document]) -> list[Document]:
    """What conda says it installed and Python does not see: no Python package, or one that pip has replaced since.

    What it installed and Python sees gets its build: of one version conda has several.
    """
    seen = {(entry["name"], entry["version"]): entry for entry in found}
    for path in sorted(Path(sys.prefix, "conda-meta").glob("*.json")):
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            own = (_normalised(told["name"]), str(told["version"]))
            build, matches = str(told["build"]), (_OWNED.fullmatch(file) for file in told["files"] if "-info" in file)
            owned = {(_normalised(match[1]), match[2]) for match in matches if match} or {own}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue
        for pin in sorted(owned):
            entry = seen.setdefault(pin, {"name": pin[0], "version": pin[1], "source": "", "editable": False})
            entry.update(manager="conda", build=build)
    here = {id(entry) for entry in found}
    return [entry for entry in seen.values() if id(entry) not in here]


def _torch() -> Document | None:
    """What torch was built for, as its version.py has it: importing it takes seconds, and may touch a GPU."""
    for folder in _folders():
        path = Path(folder, "torch", "version.py")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
        told = {match[1]: match[2] or match[3] for match in _TOLD.finditer(text)}
        return {"version": told.get("__version__"), "cuda": told.get("cuda"), "hip": told.get("hip")}
    return None


def _gpus() -> tuple[str | None, list[str]]:
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


def _variables() -> list[list[str]]:
    """Name and value of each that matters, by name. Of one that is named like a secret only that it is set."""
    secrets = secret_values(os.environ)
    found = []
    for name, value in sorted(os.environ.items()):
        if any(fnmatchcase(name, wanted) for wanted in VARIABLES):
            shown = "***" if names_secret(name) else without_credentials(value)
            for secret in secrets:
                shown = shown.replace(secret, "***")
            found.append([name, shown.encode("utf-8", "replace").decode()])
    return found


def _cache_folder() -> str:
    """Inductor's cache, by the rules that inductor itself follows."""
    named = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if named:
        return named
    try:
        user = getpass.getuser()
    except (KeyError, ImportError, OSError):
        user = f"uid_{os.getuid()}"
    return str(Path(tempfile.gettempdir(), "torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user)))


def _scan(folder: str, most: int, seconds: float) -> Document:
    """Files in the cache and their bytes; ``complete`` is false when a bound ended the counting."""
    deadline = time.monotonic() + seconds
    entries = size = 0
    refused: list[OSError] = []
    for place, _, names in os.walk(folder, onerror=refused.append):
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

"""What a trial sees of its parent's environment: an allow-list, folders of its own, and what was asked for by name.

Everything that is not listed is withheld, so that a variable nobody thought of cannot reach a trial. The list of names
that matter serves only to tell the user what was withheld.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from bisect_env.matrix.shipped import reproducers_folder
from bisect_env.matrix.urls import names_secret, secret_values, without_query_secrets
from bisect_env.trials.records import Side, TrialSpec

MARKER = "BISECT_ENV_TRIAL"
"""Holds the trial's id in all of its processes: how leftovers are found when their supervisor was killed."""
CONDITION, EVENTS, TURNS = "BISECT_ENV_CONDITION", "BISECT_ENV_EVENTS", "BISECT_ENV_TURNS"
WITNESS = "BISECT_ENV_WITNESS"
"""Names the witness's log; its folder then stands first on PYTHONPATH."""

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
COMPILERS = ("g++", "gcc", "c++", "cc", "clang++", "clang")
"""What inductor, and triton's launcher, look for to compile for the CPU."""

MATTERS = (
    "PYTHON*", "LD_*", "CONDA*", "VIRTUAL_ENV", "TORCH*", "PYTORCH*", "TRITON*", "INDUCTOR*", "CUDA*", "CUBLAS*",
    "CUDNN*", "NVIDIA*", "NCCL*", "HF_*", "HUGGINGFACE*", "TRANSFORMERS*", "OMP_*", "KMP_*", "GOMP_*", "MKL_*",
    "OPENBLAS*", "NUMEXPR*", "MALLOC_*", "GLIBC_TUNABLES", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CPATH",
    "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "XDG_CACHE_HOME", "TMPDIR",
)  # fmt: skip

_USER_IN_URL = re.compile(r"(?<=://)[^/\s@]+@")


@dataclass(frozen=True)
class Folders:
    """The places of a trial, all inside its own folder."""

    root: Path

    @property
    def work(self) -> Path:
        """Where the process starts, with the user's files."""
        return self.root / "work"

    @property
    def home(self) -> Path:
        """HOME."""
        return self.root / "home"

    @property
    def tmp(self) -> Path:
        """TMPDIR."""
        return self.root / "tmp"

    @property
    def cache(self) -> Path:
        """XDG_CACHE_HOME: caches that are not compile caches."""
        return self.root / "cache"

    @property
    def compiled(self) -> Path:
        """The compile caches: ``inductor``, ``triton`` and ``cuda`` in it."""
        return self.root / "compile-cache"

    @property
    def driver(self) -> Path:
        """Links to the GPU driver's libraries, where the system's loader does not find them itself."""
        return self.root / "driver"

    @property
    def condition(self) -> Path:
        """The condition, as JSON."""
        return self.root / "condition.json"

    @property
    def events(self) -> Path:
        """What the reproducer says."""
        return self.root / "events.jsonl"

    @property
    def witness(self) -> Path:
        """What the witness in its process says."""
        return self.root / "witness.jsonl"

    def create(self) -> None:
        """Create them all. Raises OSError, FileExistsError when the trial's folder is there already."""
        self.root.mkdir(parents=True)
        for folder in (self.work, self.home, self.tmp, self.cache, self.compiled):
            folder.mkdir()
        for name in ("inductor", "triton", "cuda"):
            (self.compiled / name).mkdir()


@dataclass(frozen=True)
class Isolation:
    """A trial's variables, what the record may show of them, and what was kept from it."""

    variables: dict[str, str]
    shown: tuple[tuple[str, str], ...]
    """The variables in order, secrets in them replaced."""
    secrets: tuple[str, ...]
    """Values that must not be kept, should the trial print them."""
    withheld: tuple[str, ...]
    """Names of the parent's variables that it did not get and that could have mattered."""


def isolate(
    spec: TrialSpec, parent: Mapping[str, str], compiler_folders: Sequence[str] = (), driver: Path | None = None
) -> Isolation:
    """The variables of a trial.

    Args:
        spec: the trial.
        parent: the variables of this process.
        compiler_folders: folders outside the system's that hold the compiler found on the parent's PATH.
        driver: folder with the GPU driver's libraries, when the loader does not find them itself.
    """
    folders = Folders(spec.folder)
    own = {
        "PATH": os.pathsep.join([str(spec.python.parent), *SYSTEM_FOLDERS, *compiler_folders]),
        "LANG": "C.UTF-8",
        "HOME": str(folders.home),
        "TMPDIR": str(folders.tmp),
        "XDG_CACHE_HOME": str(folders.cache),
        "TORCHINDUCTOR_CACHE_DIR": str(folders.compiled / "inductor"),
        "TRITON_CACHE_DIR": str(folders.compiled / "triton"),
        "CUDA_CACHE_PATH": str(folders.compiled / "cuda"),
        "PYTHONNOUSERSITE": "1",
        "PYTHONPYCACHEPREFIX": str(spec.pycache),
        "PYTHONFAULTHANDLER": "1",
        "PYTHONHASHSEED": str(spec.seed % 2**32),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    passed = {
        name: value for name, value in parent.items() if any(fnmatchcase(name, wanted) for wanted in spec.pass_env)
    }
    variables = own | passed | dict(spec.variables)
    if driver is not None:
        asked = variables.get("LD_LIBRARY_PATH")
        variables["LD_LIBRARY_PATH"] = f"{asked}{os.pathsep}{driver}" if asked else str(driver)
    # Last, since nothing may move a trial to other GPUs than its lease, or its events to another file.
    variables |= {
        "CUDA_VISIBLE_DEVICES": ",".join(device.uuid for device in spec.devices),
        CONDITION: str(folders.condition),
        EVENTS: str(folders.events),
        MARKER: spec.id,
    }
    # Where nobody gives turns, a reproducer would wait for ever for one that was passed on by mistake.
    variables.pop(TURNS, None)
    if spec.turns is not None:
        variables[TURNS] = str(spec.turns)
    variables.pop(WITNESS, None)
    if spec.side is Side.WITNESS:
        variables[WITNESS] = str(folders.witness)
        words = [str(reproducers_folder() / "witness"), variables.get("PYTHONPATH", "")]
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, words))
    shown = tuple((name, _show(name, value)) for name, value in sorted(variables.items()))
    withheld = tuple(
        sorted(
            name
            for name in parent
            if any(fnmatchcase(name, known) for known in MATTERS)
            and name not in passed
            and variables.get(name) != parent[name]
        )
    )
    return Isolation(variables, shown, secret_values(variables), withheld)


def _show(name: str, value: str) -> str:
    if value and names_secret(name):
        return "<secret>"
    return without_query_secrets(_USER_IN_URL.sub("<secret>@", value))


def redact(text: str, secrets: Sequence[str]) -> str:
    """``text`` without the secrets."""
    for secret in secrets:
        text = text.replace(secret, "<secret>")
    return text


def compiler_folders(path: str) -> tuple[str, ...]:
    """Folders to add to a trial's PATH so that it finds the compiler on ``path``; none when the system has one."""
    if any(shutil.which(name, path=os.pathsep.join(SYSTEM_FOLDERS)) for name in COMPILERS):
        return ()
    found = [shutil.which(name, path=path) for name in COMPILERS]
    return tuple(dict.fromkeys(str(Path(place).parent) for place in found if place))


def driver_folder(parent: Mapping[str, str], destination: Path) -> Path | None:
    """Where a trial finds the GPU driver's libraries: None when the system's loader does by itself.

    In containers libcuda.so.1 is often reachable only by the parent's LD_LIBRARY_PATH. Passing that on would let any
    library of the folder in, so ``destination`` is filled with links to the driver's own libraries only. Also None
    when there is no driver at all.
    """
    if _loader_finds_driver():
        return None
    for place in parent.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        folder = Path(place)
        if not place or not (folder / "libcuda.so.1").exists():
            continue
        destination.mkdir(parents=True, exist_ok=True)
        for pattern in ("libcuda.so*", "libnvidia-*.so*"):
            for library in folder.glob(pattern):
                (destination / library.name).symlink_to(library.resolve())
        return destination
    return None


@functools.cache
def _loader_finds_driver() -> bool:
    folders = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
    if any((Path(folder) / "libcuda.so.1").exists() for folder in folders):
        return True
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")
    if ldconfig is None:
        return False
    try:
        listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "libcuda.so.1 " in listed

"""What the target already has, as ``bisect-env inventory`` printed it there; and the RECORD by which it is proved."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from bisect_env.bundles import recorded
from bisect_env.bundles.records import Target
from bisect_env.errors import BadInput, InfrastructureError

ADVICE = "what `bisect-env inventory` printed on the target, whole"


@dataclass(frozen=True)
class Having:
    """Of a target of which nothing is known: nothing."""

    installed: frozenset[tuple[str, str, str]] = frozenset()
    """Normalised name, version and :func:`recorded.digest` of each installed distribution."""
    absorbed: frozenset[str] = frozenset()
    """SHA-256 of the wheels of earlier bundles that are complete there."""

    def may_have(self, name: str, version: str) -> bool:
        """Whether a distribution of that name and version is installed; it may still be another build."""
        return any((name, version) == entry[:2] for entry in self.installed)

    def has(self, name: str, version: str, record: str) -> bool:
        """Whether exactly the wheel with this RECORD is installed."""
        return (name, version, recorded.digest(record)) in self.installed


def load(path: Path, target: Target) -> Having:
    """The inventory in a file.

    Raises:
        BadInput: it is none, or that of another Python or another machine than the target's.
    """
    try:
        value = json.loads(path.read_bytes())
        python, machine, libc = str(value["python"]), str(value["platform"]), str(value["libc"])
        installed = frozenset((str(e["name"]), str(e["version"]), str(e["record"])) for e in value["installed"])
        having = Having(installed, frozenset(map(str, value["wheels"])))
    except OSError as error:
        raise BadInput("--have", str(path), f"it cannot be read: {error.strerror}", ADVICE) from error
    except (ValueError, LookupError, TypeError) as error:
        raise BadInput("--have", str(path), f"it is no inventory ({type(error).__name__}: {error})", ADVICE) from error
    if not f"{python}.".startswith(f"{target.python}."):
        wanted = f"an inventory of the target's Python, or --python {'.'.join(python.split('.')[:2])}"
        raise BadInput("--have", str(path), f"it is of Python {python}, the bundle for {target.python}", wanted)
    wanted = f"an inventory of a host that takes {target.platform}, or the --platform of this one"
    if machine.rpartition("-")[2] != target.platform.partition("-")[0]:
        raise BadInput("--have", str(path), f"it is of {machine}, the bundle for {target.platform}", wanted)
    glibc = re.fullmatch(r"glibc (\d+)\.(\d+).*", libc)
    if glibc is not None and (int(glibc[1]), int(glibc[2])) < _glibc(target):
        raise BadInput("--have", str(path), f"that host has {libc}, older than the bundle's {target.platform}", wanted)
    return having


def _glibc(target: Target) -> tuple[int, int]:
    major, minor = target.platform.split("_")[-2:]
    return int(major), int(minor)


def record_of(path: Path) -> str | None:
    """The RECORD of a wheel by which its installation can be proved; None where a ``.data`` folder has more files.

    Raises InfrastructureError for a file that is no wheel.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if any(name.partition("/")[0].endswith(".data") for name in names):
                return None
            [record] = [name for name in names if name.endswith(".dist-info/RECORD") and name.count("/") == 1]
            return archive.read(record).decode("utf-8")
    except (zipfile.BadZipFile, ValueError) as error:
        raise InfrastructureError(f"{path} is no wheel, although its hash is the index's: {error}") from error

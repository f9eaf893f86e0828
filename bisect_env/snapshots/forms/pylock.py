"""pylock.toml (PEP 751): what is installed on the host, its markers decided."""

from __future__ import annotations

import re

from packaging.pylock import Package, Pylock, PylockUnsupportedVersionError, PylockValidationError

from bisect_env.errors import BadInput
from bisect_env.snapshots import documents, markers
from bisect_env.snapshots.markers import Undecided, applies_to_lock, fitting
from bisect_env.snapshots.pieces import (
    HOST_NOT_TOLD,
    Gathering,
    cuda_of,
    public,
    require_some,
    shortened,
    unread,
    version_in,
    versioned,
)
from bisect_env.snapshots.records import Distribution, Snapshot, Target, Unread

NAME = "pylock.toml"

_WANTED = "a pylock.toml as PEP 751 has it"
_VERSION = re.compile(r"(?m)^lock-version\s*=")
_PACKAGES = re.compile(r"(?m)^\[\[packages\]\]|^packages\s*=")


def recognise(text: str) -> float:
    """By two keys that it must have: ``lock-version`` at its beginning, and its packages."""
    marks = (_VERSION.search(text) is not None) + (_PACKAGES.search(text) is not None)
    return (0.0, 0.6, 1.0)[marks]


def read(text: str, origin: str, host: Target) -> Snapshot:
    """The packages whose markers hold. Raises BadInput: no TOML, not PEP 751, or nothing of it is for the host."""
    document = documents.parse(text, origin, NAME)
    try:
        lock = Pylock.from_dict(document)
        requires = None if lock.requires_python is None else str(lock.requires_python)
        target, decided = fitting(requires, host)
    except PylockUnsupportedVersionError as error:
        raise BadInput(origin, "lock-version", shortened(str(error)), "1.0") from None
    except PylockValidationError as error:
        raise BadInput(origin, shortened(str(error.context or "")), shortened(error.message), _WANTED) from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(origin, "", shortened(str(error)), _WANTED) from None
    offered = {
        *(("extra", name) for name in lock.extras or ()),
        *(("group", name) for name in lock.dependency_groups or ()),
    }
    extras, groups = markers.choice(
        origin, target, lock.extras or (), lock.dependency_groups or (), lock.default_groups or ()
    )
    _check_environments(lock, target, origin)
    found, left, outside = Gathering(origin), list[Unread](), 0
    for at, package in enumerate(lock.packages):
        place = f"packages[{at}] ({package.name})"
        try:
            if package.marker is not None and not applies_to_lock(str(package.marker), target, extras, groups):
                outside += 1
                continue
        except Undecided as error:
            left.append(unread(0, f"{place}: {package.marker}", str(error)))
            continue
        found.add(_distribution(package), place)
    distributions = found.distributions()
    missing = [HOST_NOT_TOLD, decided]
    if offered:
        missing.append(markers.counted(extras, groups, offered))
    if outside:
        missing.append(f"{outside} of its {len(lock.packages)} packages are for other hosts or another choice.")
    snapshot = Snapshot(
        origin,
        NAME,
        distributions,
        cuda=cuda_of(distributions),
        missing=tuple(missing),
        unread=tuple(left),
    )
    return require_some(snapshot, f"packages for {target.platform} {target.machine}, Python {target.python}")


def _check_environments(lock: Pylock, target: Target, origin: str) -> None:
    allowed = [str(marker) for marker in lock.environments or ()]
    markers.check_made_for(
        allowed, lambda marker: applies_to_lock(marker, target, (), ()), target, (origin, "environments", _WANTED)
    )


def _distribution(package: Package) -> Distribution:
    source = _source(package)
    if package.version is not None:
        return versioned(package.name, str(package.version), source=source)
    files = [source, *((wheel.name or wheel.url or wheel.path or "") for wheel in package.wheels or ())]
    version = next((found for file in files if (found := version_in(file, package.name)) is not None), None)
    if version is not None:
        return versioned(package.name, version, source=source)
    return Distribution(package.name, None, public(source), note="the lock does not tell the version of what is built")


def _source(package: Package) -> str:
    """Where it is installed from when that is no index."""
    if package.vcs is not None:
        part = f"#subdirectory={package.vcs.subdirectory}" if package.vcs.subdirectory else ""
        return f"{package.vcs.type}+{package.vcs.url or package.vcs.path}@{package.vcs.commit_id}{part}"
    if package.archive is not None:
        return package.archive.url or package.archive.path or ""
    if package.directory is not None:
        return package.directory.path
    return ""

"""A matrix on a host without a network: locks, releases and wheels from what was unbundled there."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.utils import canonicalize_name

from bisect_env.bundles.absorb import standing_of
from bisect_env.bundles.destination import opened
from bisect_env.bundles.records import Locked, Manifest, Target, key_of
from bisect_env.environments import interpreters, sizes
from bisect_env.environments.compiling import address_of
from bisect_env.environments.records import Interpreter, Lock, Reason, Unavailable
from bisect_env.environments.wheelhouse import Wheelhouse
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice
from bisect_env.matrix.versions import Release


@dataclass(frozen=True)
class Offline:
    """An unbundled folder as the only source of a run. Also a release source."""

    folder: Path
    manifest: Manifest

    @classmethod
    def open(cls, folder: Path) -> Offline:
        """The folder, with the manifest that it has now.

        Raises:
            BadInput: nothing was unbundled into it.
        """
        # One spelling of the path: uv's cache is keyed by it.
        return cls(folder.resolve(), opened(folder)[1])

    def releases(self, name: str, index: IndexChoice) -> Sequence[Release]:
        """The versions of ``name`` that the bundle's environments have: what a range stands for here."""
        wanted = canonicalize_name(name)
        found = {
            version
            for locked in self.manifest.locked
            if locked.lock is not None
            for pin, version in locked.lock.pins
            if pin == wanted
        }
        return tuple(Release(version, None, yanked=False) for version in sorted(found))

    def resolve(self, request: EnvironmentRequest) -> Lock | Unavailable:
        """The lock of a request, for the interpreter of this host; or why there is none."""
        locked = self._locked(request)
        if locked is None:
            words = (
                f"the bundle in {self.folder} has no environment for this: bundle the matrix file as it is now, where "
                "there is a network (bisect-env bundle FILE -o DIR), and unbundle what that writes here"
            )
            return Unavailable("resolve", Reason.OFFLINE, words)
        if locked.lock is None:
            assert locked.unavailable is not None
            return locked.unavailable
        interpreter = interpreter_for(self.manifest.target, request.python)
        if isinstance(interpreter, Unavailable):
            return interpreter
        lock = locked.lock
        return replace(lock, interpreter=interpreter, address=address_of(lock.text, lock.build_text, interpreter))

    def lacking(self, request: EnvironmentRequest) -> Unavailable | None:
        """Why the request's environment cannot be built yet; None when all of its wheels have arrived."""
        # Read anew: parts may have arrived since the run began.
        destination, manifest = opened(self.folder)
        standing = standing_of(destination, manifest)
        locked = self._locked(request)
        wheels = standing.lacking(() if locked is None else locked.wheels)
        if not wheels:
            return None
        parts = standing.missing_parts(wheels)
        unbundle = f"bisect-env unbundle SRC --into {shlex.quote(str(self.folder))}"
        if parts:
            names = ", ".join(f"{part[:12]}….part" for part in parts[:3]) + (", …" if len(parts) > 3 else "")
            count = "1 part of its bundle is" if len(parts) == 1 else f"{len(parts)} parts of its bundle are"
            words = f"{count} missing ({names}): deliver them, {unbundle}, and give this command again"
        else:
            names = ", ".join(f"{wheel.name} {wheel.version}" for wheel in wheels)
            words = f"of its bundle {names} is missing, which no part brings: {unbundle} says why"
        return Unavailable("delivery", Reason.UNDELIVERED, words)

    def wheelhouse(self) -> Wheelhouse:
        """The folder of wheels, as it is now."""
        destination, manifest = opened(self.folder)
        held = {wheel.sha256: destination.held(wheel) for wheel in manifest.wheels}
        also = {sha256: file.sha256 for sha256, file in held.items() if file is not None and file.sha256 != sha256}
        return Wheelhouse(destination.wheels, also)

    def _locked(self, request: EnvironmentRequest) -> Locked | None:
        key = key_of(request)
        return next((locked for locked in self.manifest.locked if locked.request_key == key), None)


def interpreter_for(target: Target, request: str | None) -> Interpreter | Unavailable:
    """This host's interpreter for a bundle's target; ``request`` as in :attr:`EnvironmentRequest.python`."""
    found = interpreters.find(request or target.python)
    if isinstance(found, Unavailable):
        return found
    made_for = f"the bundle is for Python {target.python} on {target.platform}"
    if not f"{found.version}.".startswith(f"{target.python}."):
        words = f"{made_for}, and the cell asks for Python {request}, which is {found.version} here"
        return Unavailable("resolve", Reason.INTERPRETER, words)
    if not _fits(target.platform, found):
        words = f"{made_for}, and {found.path} is for {found.platform}, or its C library is older: bundle for this host"
        return Unavailable("resolve", Reason.INTERPRETER, words)
    return found


def _fits(platform: str, interpreter: Interpreter) -> bool:
    """Whether the interpreter, on this host, takes the newest wheels of the platform."""
    wanted = sizes.platforms_of(platform)
    here = {tag.platform for tag in sizes.tags_of(interpreter)}
    return wanted is not None and wanted[0] in here

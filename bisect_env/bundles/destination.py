"""The folder on the target that deliveries are unbundled into, and what of them is there.

On disk::

    manifest.json             of all deliveries so far
    wheels/NAME.whl           complete and checked: what uv is given
    held/SHA256               of each of these: which file it is, by the hash that the locks have for the wheel
    unfinished/SHA256.whl     a wheel whose parts arrive, with holes; SHA256.spans: which of its bytes are there
    unfinished/SHA256.differs why an installed distribution could not be made a wheel again
    early/SHA256.part         parts that came before the manifest that names them
    lock                      held by whoever writes into the folder

Any reader finds a state that was right at some moment, whoever is killed when: content first, then what speaks of it,
each by renaming; a wheel's name in ``wheels/`` last of all.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from bisect_env.bundles import manifest as manifests
from bisect_env.bundles.records import MANIFEST, PARTS, SUFFIX, TOOL, Manifest, Wheel
from bisect_env.bundles.room import make_folder
from bisect_env.bundles.spans import Spans
from bisect_env.environments import trees
from bisect_env.errors import BadInput

WHEELS, HELD, UNFINISHED, EARLY, LOCK = "wheels", "held", "unfinished", "early", "lock"
ASIDE = ".new-"
"""Prefix of what is being written."""


@dataclass(frozen=True)
class Held:
    """A wheel's file in ``wheels/``."""

    filename: str
    sha256: str
    """Of the file: the wheel's own, or another where it was packed again from installed files."""
    size: int


@dataclass(frozen=True)
class Destination:
    """The folder. It need not exist to be read."""

    folder: Path

    @property
    def wheels(self) -> Path:
        """Complete wheels, and nothing else."""
        return self.folder / WHEELS

    def prepare(self) -> None:
        """Makes the folders.

        Raises:
            InfrastructureError: they cannot be made, for another reason than a full disk.
        """
        for name in (WHEELS, HELD, UNFINISHED, EARLY):
            make_folder(self.folder / name, "--into")

    def manifest(self) -> Manifest | None:
        """Of all deliveries so far; None before the first that had one.

        Raises:
            BadInput: it is damaged, or of a newer format.
        """
        if not (self.folder / MANIFEST).exists():
            return None
        try:
            return manifests.load(self.folder)
        except BadInput as error:
            # What is here is of all deliveries: the manifest of one bundle in its place would forget the others.
            advice = (
                "a manifest.json that `bisect-env unbundle` wrote: remove this one, and give `bisect-env unbundle` "
                f"the manifest.json of each bundle that was delivered; what has arrived stays in {self.folder}"
            )
            raise BadInput(error.source, error.place, error.found, advice) from error

    def put_manifest(self, manifest: Manifest) -> None:
        """Replaces the manifest in one step."""
        replace_durably(self.folder / MANIFEST, manifests.encode(manifest))

    def held(self, wheel: Wheel) -> Held | None:
        """The wheel's file, None when it is not complete."""
        try:
            found = Held(**json.loads((self.folder / HELD / wheel.sha256).read_text(encoding="utf-8")))
            return found if (self.wheels / found.filename).stat().st_size == found.size else None
        except (OSError, ValueError, TypeError):
            return None

    def show(self, wheel: Wheel, path: Path, sha256: str) -> None:
        """Makes a checked file (on the disk already) the wheel's own."""
        held = Held(wheel.filename, sha256, path.stat().st_size)
        replace_durably(self.folder / HELD / wheel.sha256, json.dumps(held.__dict__))
        path.replace(self.wheels / wheel.filename)
        trees.sync_folder(self.wheels)
        self.forget(wheel.sha256)

    def unfinished(self, sha256: str) -> Path:
        """Where the wheel's bytes are gathered."""
        return self.folder / UNFINISHED / f"{sha256}.whl"

    def spans(self, sha256: str) -> Spans:
        """Which bytes of an unfinished wheel are there."""
        try:
            text = (self.folder / UNFINISHED / f"{sha256}.spans").read_text(encoding="utf-8")
            # Without the bytes they say nothing.
            self.unfinished(sha256).stat()
            return tuple((int(start), int(end)) for start, end in json.loads(text))
        except (OSError, ValueError, TypeError):
            return ()

    def put_spans(self, sha256: str, spans: Spans) -> None:
        """To be called when these bytes are on the disk."""
        replace_durably(self.folder / UNFINISHED / f"{sha256}.spans", json.dumps(spans))

    def differs(self, sha256: str) -> Path:
        """Where it is kept why an installed distribution is not its wheel."""
        return self.folder / UNFINISHED / f"{sha256}.differs"

    def forget(self, sha256: str) -> None:
        """Removes what was gathered of a wheel: first what speaks of it."""
        for path in (self.folder / UNFINISHED / f"{sha256}.spans", self.differs(sha256), self.unfinished(sha256)):
            path.unlink(missing_ok=True)

    def early(self, part: str) -> Path:
        """Where a part waits for its manifest."""
        return self.folder / EARLY / f"{part}{SUFFIX}"

    def aside(self, name: str) -> Path:
        """A file of this process's own; what a killed one leaves, :meth:`sweep` removes."""
        return self.folder / UNFINISHED / f"{ASIDE}{name}"

    def sweep(self) -> None:
        """Removes what killed writers left. Only for who holds the folder."""
        for folder in (self.folder, self.folder / HELD, self.folder / UNFINISHED, self.folder / EARLY):
            for path in folder.glob(f"{ASIDE}*"):
                path.unlink(missing_ok=True)

    @contextmanager
    def alone(self, waiting: Callable[[], None]) -> Iterator[None]:
        """Holds the folder against other writers; ``waiting`` is called once when another has it.

        The system lets go of the lock when its holder dies.
        """
        lock = FileLock(self.folder / LOCK)
        with suppress(Timeout):
            lock.acquire(timeout=0)
        if not lock.is_locked:
            waiting()
            lock.acquire()
        try:
            yield
        finally:
            lock.release()


def opened(folder: Path) -> tuple[Destination, Manifest]:
    """A folder that something was unbundled into, and its manifest.

    Raises:
        BadInput: it is none; a bundle's own folder, which nothing was unbundled into, is none either.
    """
    destination = Destination(folder)
    if not (folder / HELD).is_dir() and any((folder / name).is_dir() for name in (PARTS, TOOL)):
        wanted = f"`bisect-env unbundle {shlex.quote(str(folder))} --into OTHER` first, then --bundle OTHER"
        raise BadInput("--bundle", "", f"{folder} is a bundle as it was delivered", wanted)
    manifest = destination.manifest()
    if manifest is None:
        wanted = "a folder that `bisect-env unbundle ... --into` wrote, once the bundle's manifest.json was among it"
        raise BadInput("--bundle", "", f"{folder} has no {MANIFEST}", wanted)
    return destination, manifest


def replace_durably(path: Path, text: str) -> None:
    """Writes a file of the destination in one step, on the disk when this returns."""
    trees.replace(path, text.encode(), prefix=ASIDE, durably=True)

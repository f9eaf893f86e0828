"""Building an environment from its lock: aside, renamed when whole, marked last."""

from __future__ import annotations

import errno
import json
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from packaging.utils import canonicalize_name

from bisect_env.environments import distributions, foundation, holding, local, manifest, trees
from bisect_env.environments.claims import Claims
from bisect_env.environments.foundation import Base
from bisect_env.environments.places import (
    BROUGHT_LOCK,
    BUILD_LOCK,
    BYTE_CODE,
    LOCK,
    MANIFEST,
    MARKER,
    UNFINISHED,
    VENV,
    environments_folder,
)
from bisect_env.environments.reasons import explain, message
from bisect_env.environments.records import Environment, Lock, Reason, Unavailable
from bisect_env.environments.uv import Finished, Uv
from bisect_env.environments.wheelhouse import Wheelhouse
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice


class _Stopped(Exception):
    """The build cannot go on; ``result`` is what the caller gets."""

    def __init__(self, result: Unavailable) -> None:
        self.result = result


@dataclass(frozen=True)
class _Uv:
    """uv within the time of one build."""

    uv: Uv
    deadline: float
    stop: threading.Event | None
    wheelhouse: Wheelhouse | None

    def run(self, args: Sequence[str | Path], index: IndexChoice | None = None) -> Finished:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise self._too_late("")
        finished = self.uv.run(args, index=index, timeout=left, stop=self.stop)
        if finished.ok:
            return finished
        raise self._too_late(finished.stderr) if finished.ended == "timeout" else _Stopped(explain(finished, "build"))

    @staticmethod
    def _too_late(stderr: str) -> _Stopped:
        words = "the build took longer than it may (limits: build): allow more, or see what uv waited for"
        return _Stopped(Unavailable("build", Reason.BUILD, f"{words}\n{message(stderr)}".rstrip()))


def find(address: str, lock: Lock, root: Path, claims: Claims | None = None) -> Environment | None:
    """The environment at ``address``, or None when it was not built.

    What lies there without a marker is the remains of a killed build: it is never repaired, but removed (unless a
    builder holds the address, who is then about to write the marker).
    """
    environment = _finished(lock, environments_folder(root) / address)
    if environment is None and (environments_folder(root) / address).exists():
        with holding.held(root, address, claims=claims) as free:
            if free:
                environment = _finished(lock, environments_folder(root) / address)
                if environment is None:
                    _discard(root, address)
    return environment


def build(
    lock: Lock,
    request: EnvironmentRequest,
    root: Path,
    uv: Uv,
    timeout: float,
    stop: threading.Event | None = None,
    wheelhouse: Wheelhouse | None = None,
    claims: Claims | None = None,
) -> Environment | Unavailable:
    """Builds the environment of ``lock`` under ``root``, or finds it built, also by another process meanwhile.

    ``timeout`` is in seconds, for the build itself, and once more for waiting while another process builds the same.
    With a ``wheelhouse`` nothing but its wheels is installed, and no index is known. ``claims`` are for a ``root`` that
    several hosts share.

    Raises:
        InfrastructureError: the disk is full, uv was killed, ``stop`` was set, or as :func:`holding.held`.
    """
    try:
        environments_folder(root).mkdir(parents=True, exist_ok=True)
        with holding.held(root, lock.address, timeout, stop, claims) as mine:
            if not mine and stop is not None and stop.is_set():
                raise InfrastructureError("stopped while another process was building the same environment")
            if not mine:
                return Unavailable(
                    "build", Reason.BUILD, "another process builds the same environment and did not come to its end"
                )
            found = find_held(lock, root)
            if found is not None:
                return found
            holding.sweep(root, own=lock.address, claims=claims)
            return _build(lock, request, root, _Uv(uv, time.monotonic() + timeout, stop, wheelhouse))
    except _Stopped as stopped:
        return stopped.result
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InfrastructureError(f"the disk is full: an environment could not be built ({error})") from error
        raise


def find_held(lock: Lock, root: Path) -> Environment | None:
    """As :func:`find`, for the holder of the address."""
    environment = _finished(lock, environments_folder(root) / lock.address)
    if environment is None:
        _discard(root, lock.address)
    return environment


def build_settings(request: EnvironmentRequest, pins: Sequence[tuple[str, str]]) -> str | None:
    """uv's configuration for distributions that need more to be built than they declare; None when none does.

    A requirement without a version that the lock pins is built against that very version. uv installs these into the
    build's own environment, never into the one under test, and keeps the result in its cache by them: what was built
    against one torch does not serve another.
    """
    if not request.build_requirements:
        return None
    versions = dict(pins)

    def pinned(line: str) -> str:
        version = versions.get(canonicalize_name(line))
        return line if version is None else f"{line}=={version}"

    # JSON's strings and lists are TOML's.
    lines = [
        f"{json.dumps(canonicalize_name(name))} = {json.dumps([pinned(line) for line in extra])}"
        for name, extra in request.build_requirements
    ]
    return "\n".join(["[extra-build-dependencies]", *lines, ""])


def _finished(lock: Lock, folder: Path) -> Environment | None:
    try:
        value = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        took = float(value.get("seconds", 0.0))
        return Environment(lock, folder, folder / VENV / "bin" / "python", str(value["freeze"]), 0.0, took)
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _discard(root: Path, address: str) -> None:
    """Removes what lies at an address that the caller holds; the name is free at once."""
    folder = environments_folder(root) / address
    if os.path.lexists(folder):
        aside = Path(tempfile.mkdtemp(prefix=f"{UNFINISHED}{address}-{os.getpid()}-", dir=folder.parent))
        folder.rename(aside / "remains")
        trees.remove(aside)


def _build(lock: Lock, request: EnvironmentRequest, root: Path, uv: _Uv) -> Environment:
    began = time.monotonic()
    parent = environments_folder(root)
    place = parent / lock.address
    aside = Path(tempfile.mkdtemp(prefix=f"{UNFINISHED}{lock.address}-{os.getpid()}-", dir=parent))
    try:
        aside.chmod(0o755)
        (aside / LOCK).write_text(lock.text, encoding="utf-8")
        (aside / BYTE_CODE).mkdir()
        below = _foundation(lock)
        taken = _proved(lock, request, root, uv, aside, below)
        freeze = _freeze(uv, aside / VENV, below)
        taken.save(aside / MANIFEST)
        aside.rename(place)
        trees.sync_folder(parent)
        marker = {"freeze": freeze, "seconds": round(time.monotonic() - began, 3)}
        trees.write_durably(place / MARKER, json.dumps(marker))
    finally:
        trees.remove(aside)
    environment = _finished(lock, place)
    if environment is None:
        raise InfrastructureError(f"{place}: an environment just built cannot be read")
    return replace(environment, build_seconds=time.monotonic() - began)


def _proved(
    lock: Lock, request: EnvironmentRequest, root: Path, uv: _Uv, aside: Path, below: Base | None
) -> manifest.Manifest:
    """Installs, and once more with the packages fetched anew when their files are not what their RECORD says.

    That is how a file looks that was changed in uv's cache, through a hard link in any environment of this machine.
    What is still not as its RECORD says is the wheel's own fault: uv had checked the archive's hash.
    """
    paths = below.paths if below is not None else ()
    _install(lock, request, root, uv, aside, below)
    taken, wrong = manifest.take(aside / VENV, paths)
    if wrong:
        packages = sorted({difference.owner for difference in wrong})
        uv.run(["cache", "clean", *packages])
        trees.remove(aside / VENV)
        try:
            _install(lock, request, root, uv, aside, below)
        except _Stopped as stopped:
            words = f"uv's cache held changed files of {', '.join(packages)}, which could not be fetched anew:\n"
            raise _Stopped(replace(stopped.result, message=words + stopped.result.message)) from None
        taken, _ = manifest.take(aside / VENV, paths)
    return taken


def _install(lock: Lock, request: EnvironmentRequest, root: Path, uv: _Uv, aside: Path, below: Base | None) -> None:
    venv = aside / VENV
    interpreter = lock.interpreter.path
    uv.run(["venv", "--quiet", "--relocatable", "--no-project", "--python", interpreter, venv])
    args: list[str | Path] = ["pip", "sync", "--quiet", "--allow-empty-requirements", "--no-compile-bytecode"]
    args += ["--python", venv / "bin" / "python", "--link-mode", _link_mode(root, uv)]
    if _every_line_has_a_hash(lock.text):
        args.append("--require-hashes")
    settings = build_settings(request, lock.pins)
    if settings is not None:
        (aside / "uv.toml").write_text(settings, encoding="utf-8")
        args += ["--config-file", aside / "uv.toml"]
    if lock.build_text:
        (aside / BUILD_LOCK).write_text(lock.build_text, encoding="utf-8")
        args += ["--build-constraints", aside / BUILD_LOCK]
    for name, path, content in lock.trees:
        if local.content_hash(Path(path)) != content:
            words = f"{name}: {path} changed since the lock was resolved: resolve it again"
            raise _Stopped(Unavailable("build", Reason.BUILD, words))
        # uv's cache is keyed by path and by few files' times: it cannot tell that a tree's files have changed.
        # (--reinstall-package builds it again, as --refresh-package does, which uv refuses together with offline.)
        args += ["--reinstall-package", name]
    if uv.wheelhouse is None:
        _from_cache_or_index(uv, [*args, aside / LOCK], replace(request.index, torch_backend=lock.torch_backend))
    else:
        (aside / BROUGHT_LOCK).write_text(uv.wheelhouse.accepting(lock.text), encoding="utf-8")
        uv.run([*args, "--no-index", aside / BROUGHT_LOCK], uv.wheelhouse.index)
    if below is not None:
        foundation.stand_on(below, venv)
    found = distributions.installed([distributions.site_packages(venv)])
    differences = distributions.differences(found, lock.pins)
    if differences:
        words = "uv installed something else than the lock says: " + "; ".join(differences)
        raise _Stopped(Unavailable("build", Reason.BUILD, words))


def _foundation(lock: Lock) -> Base | None:
    """The base as it is now; it must still be the one that the lock was resolved on."""
    if lock.base is None:
        return None
    below = foundation.inspect(lock.base)
    if isinstance(below, Unavailable):
        raise _Stopped(below)
    if below.manifest != lock.base_manifest:
        words = f"the packages of the base {lock.base} changed since the lock was resolved on it: resolve it again"
        raise _Stopped(Unavailable("build", Reason.BASE, words))
    return below


def _from_cache_or_index(uv: _Uv, args: Sequence[str | Path], index: IndexChoice) -> None:
    """Asks the indexes only when uv's cache lacks something: the lock's hashes say what is right, wherever it is from.

    So a further environment does not wait for the network, and one whose packages are all there needs none.
    """
    try:
        uv.run(args, replace(index, offline=True))
    except _Stopped as stopped:
        if index.offline or stopped.result.reason is not Reason.OFFLINE:
            raise
        uv.run(args, index)


def _freeze(uv: _Uv, venv: Path, below: Base | None) -> str:
    if below is None:
        return uv.run(["pip", "freeze", "--python", venv / "bin" / "python"]).stdout
    return foundation.freeze(below, venv)


def _every_line_has_a_hash(text: str) -> bool:
    """Git and local requirements have none; with one of them uv can check the others only."""
    requirements = text.replace("\\\n", " ").splitlines()
    return all("--hash=" in line for line in requirements if line.strip() and not line.lstrip().startswith("#"))


def _link_mode(root: Path, uv: _Uv) -> str:
    """``hardlink`` where a file of uv's cache can have a second name under ``root``, else ``copy``.

    Tried, not guessed: file systems that are one by number may still refuse (bind mounts, some network ones), and
    uv's own fallback warns at every build.
    """
    cache = _cache_folder(uv.uv)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix=".link-", dir=cache) as file:
        name = environments_folder(root) / f".link-{os.getpid()}-{threading.get_ident()}"
        try:
            os.link(file.name, name)
        except OSError:
            return "copy"
        name.unlink()
    return "hardlink"


@lru_cache(maxsize=8)
def _cache_folder(uv: Uv) -> Path:
    finished = uv.run(["cache", "dir"], timeout=60)
    if not finished.ok:
        raise InfrastructureError(f"uv does not tell where its cache is: {finished.stderr.strip()}")
    return Path(finished.stdout.strip())

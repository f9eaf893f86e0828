"""One resolution by uv: lines in, a lock out."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bisect_env.environments import distributions, local, reasons, requirements, sizes, variants
from bisect_env.environments.building import build_settings
from bisect_env.environments.distributions import Pin
from bisect_env.environments.records import Interpreter, Lock, Unavailable
from bisect_env.environments.requirements import LockedLine
from bisect_env.environments.scratch import scratch
from bisect_env.environments.uv import Finished, Uv
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice, digest

TIMEOUT = 900.0
"""Seconds for one call of uv: a source distribution may have to be built to learn what it requires."""

NETWORK = {"UV_HTTP_TIMEOUT": "15", "UV_HTTP_RETRIES": "1"}
"""Resolving reads small files from an index that has just answered: longer silence is a fault, and is told soon."""

FORMAT = ("--generate-hashes", "--no-header", "--no-annotate")


def address_of(text: str, build_text: str, interpreter: Interpreter) -> str:
    """Names the environment that is built from a lock: equal addresses, equal environments."""
    python = (str(interpreter.path), interpreter.version, interpreter.implementation, interpreter.platform)
    return digest([text, build_text, python], 24)


class _Failed(Exception):
    def __init__(self, result: Unavailable) -> None:
        self.result = result


@dataclass(frozen=True)
class Compiler:
    """Resolves lines for a request, as often as the rules for variants need it."""

    request: EnvironmentRequest
    interpreter: Interpreter
    uv: Uv
    stop: threading.Event | None
    before: str | None
    """For ``--exclude-newer``, None for no limit."""
    options: tuple[str, ...] = ()
    """Further options for uv's resolver."""
    elsewhere: bool = False
    """``interpreter`` is one of another host, its ``platform`` as uv's ``--python-platform``. Nothing can be built
    there: wheels only."""

    def lock(self, lines: Sequence[str], torch_backend: str | None = None) -> Lock | Unavailable:
        """The lock of the lines, against the request's indexes and, for torch, PyTorch's of ``torch_backend``.

        Raises InfrastructureError as :func:`reasons.explain` does.
        """
        index = replace(self.request.index, torch_backend=torch_backend)
        with scratch() as folder:
            try:
                return _Compilation(self, index, folder).lock(lines)
            except _Failed as failed:
                return failed.result

    def pylock(self, lock: Lock) -> str | Unavailable:
        """uv's ``pylock.toml`` of a lock that this has made: where the files of its pins are, and their hashes.

        Answered from the cache that the resolution has filled. Raises InfrastructureError as :meth:`lock` does.
        """
        index = replace(self.request.index, torch_backend=lock.torch_backend)
        with scratch() as folder:
            finished = _Compilation(self, index, folder).pylock(lock.pins)
        return finished.stdout if finished.ok else reasons.explain(finished)


class _Compilation:
    def __init__(self, compiler: Compiler, index: IndexChoice, folder: Path) -> None:
        self.compiler, self.index, self.folder = compiler, index, folder
        self.request, self.interpreter = compiler.request, compiler.interpreter
        self.undated: list[str] = []

    def lock(self, lines: Sequence[str]) -> Lock:
        parsed = requirements.parse(lines)
        paths = [requirements.local_path(requirement.url) for requirement in parsed]
        # uv's cache is keyed by path and cannot tell that a tree's files have changed; offline it refuses to refresh.
        refreshed = [
            option
            for requirement, path in zip(parsed, paths, strict=True)
            if path is not None and not self.index.offline
            for option in ("--refresh-package", requirement.name)
        ]
        settings = build_settings(self.request, tuple(requirements.pinned(parsed).items()))
        if settings is not None:
            config = self.folder / "uv.toml"
            config.write_text(settings, encoding="utf-8")
            refreshed += ["--config-file", str(config)]
        if self.request.overrides:
            overrides = self.folder / "overrides.txt"
            overrides.write_text("\n".join(self.request.overrides), encoding="utf-8")
            refreshed += ["--overrides", str(overrides)]
        text = self._dated([*FORMAT, *refreshed], "\n".join(lines))
        locked = requirements.lines_of(text)
        pins = self._pins(locked)
        found = tuple((line.name, str(line.path), local.content_hash(line.path)) for line in locked if line.path)
        text = requirements.with_content(text, {path: content for _, path, content in found})
        build_text = self._build_text(pins)
        return Lock(
            text=text,
            interpreter=self.interpreter,
            pins=pins,
            cuda=variants.cuda_of(pins),
            address=address_of(text, build_text, self.interpreter),
            notes=self._notes(),
            downloads=self._downloads(pins, locked),
            torch_backend=self.index.torch_backend,
            build_text=build_text,
            trees=found,
        )

    def _dated(self, options: Sequence[str], lines: str) -> str:
        """Compiles, and lifts the date limit for what has no upload date, package by package as uv comes to them."""
        while True:
            finished = self._compile(options, lines)
            if finished.ok:
                return finished.stdout
            names = [name for name in requirements.undated(finished.stderr) if name not in self.undated]
            if self.compiler.before is None or not names:
                raise _Failed(reasons.explain(finished))
            self.undated += names

    def _compile(self, options: Sequence[str], lines: str, offline: bool = False) -> Finished:
        arguments = ["pip", "compile", "-", *self._python(), *options, *self.compiler.options]
        if self.compiler.before is not None:
            arguments += ["--exclude-newer", self.compiler.before]
        for name in self.undated:
            arguments += ["--exclude-newer-package", f"{name}=false"]
        index = replace(self.index, offline=True) if offline else self.index
        return self.compiler.uv.run(
            arguments,
            index=index,
            timeout=TIMEOUT,
            defaults=NETWORK,
            cwd=self.folder,
            stop=self.compiler.stop,
            stdin=lines,
        )

    def _python(self) -> tuple[str, ...]:
        if not self.compiler.elsewhere:
            return ("--python", str(self.interpreter.path))
        there = ("--python-version", self.interpreter.version, "--python-platform", self.interpreter.platform)
        return ("--python", sys.executable, *there, "--only-binary", ":all:")

    def _pins(self, locked: Sequence[LockedLine]) -> tuple[Pin, ...]:
        """Name and version of each line. A git or local one is installed aside to learn its version."""
        versions = {line.name: line.version for line in locked if line.version is not None}
        by_url = [f"{line.name} @ {line.url}" for line in locked if line.url is not None]
        if by_url:
            target = self.folder / "versions"
            arguments = ["pip", "install", "--no-deps", "--target", str(target), "--python", str(self.interpreter.path)]
            config = self.folder / "uv.toml"
            if config.exists():
                arguments += ["--config-file", str(config)]
            finished = self.compiler.uv.run(
                [*arguments, *by_url], index=self.index, timeout=TIMEOUT, cwd=self.folder, stop=self.compiler.stop
            )
            if not finished.ok:
                raise _Failed(reasons.explain(finished, "build"))
            versions |= dict(distributions.installed([target]))
        return tuple(sorted(versions.items()))

    def _build_text(self, pins: Sequence[Pin]) -> str:
        """The build requirements, pinned: with what the lock has, and as of the same date."""
        if not self.request.build_requirements:
            return ""
        constraints = self.folder / "pins.txt"
        constraints.write_text(requirements.constraints(pins), encoding="utf-8")
        lines = sorted({line for _, extra in self.request.build_requirements for line in extra})
        return self._dated([*FORMAT, "--constraints", str(constraints)], "\n".join(lines))

    def _notes(self) -> tuple[str, ...]:
        if not self.undated:
            return ()
        names = ", ".join(sorted(self.undated))
        return (f"as_of does not hold for {names}: the index publishes no upload dates for it",)

    def _downloads(self, pins: Sequence[Pin], locked: Sequence[LockedLine]) -> tuple[tuple[str, int], ...] | None:
        """One more call, answered from the cache that the resolution has just filled. Not knowing is no failure."""
        indexed = {line.name for line in locked if line.version is not None}
        finished = self.pylock([pin for pin in pins if pin[0] in indexed])
        with suppress(ValueError):
            return sizes.downloads(finished.stdout, sizes.tags_of(self.interpreter)) if finished.ok else None
        return None

    def pylock(self, pins: Sequence[Pin]) -> Finished:
        return self._compile(["--no-deps", "--format", "pylock.toml"], requirements.constraints(pins), offline=True)

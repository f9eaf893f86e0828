"""What a finding has besides figures: the smallest difference as two locks, commands that show it, and what to read."""

from __future__ import annotations

import shlex
from dataclasses import replace

from bisect_env.bisection import commits, links
from bisect_env.bisection.batches import Batches, Place
from bisect_env.bisection.mixes import Mixes
from bisect_env.bisection.records import Finding, Link
from bisect_env.bisection.stages import Course
from bisect_env.environments.metadata import MetadataSource
from bisect_env.environments.places import VENV, environments_folder
from bisect_env.environments.records import Lock
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import Cell
from bisect_env.trials import reproducers

CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Where a command run by hand finds its compile cache."""


class Closing:
    """The end of one bisection."""

    def __init__(self, course: Course, mixes: Mixes, batches: Batches, place: Place) -> None:
        self._course, self._mixes, self._batches, self._place = course, mixes, batches, place

    def complete(self, finding: Finding) -> Finding:
        """The finding with the two sides of the smallest difference. What is not to be had is left out."""
        if not self._course.culprits:
            return finding
        good, bad = self._course.minimal
        try:
            resolved = self._batches.resolve((good, bad))
        except InfrastructureError as error:
            return replace(finding, notes=(*finding.notes, f"the two locks are left out: {error}"))
        (good_cell, good_lock), (bad_cell, bad_lock) = resolved[good], resolved[bad]
        finding = replace(
            finding,
            variables=(good_cell.variables, bad_cell.variables),
            conditions=(good_cell.condition, bad_cell.condition),
            links=self._links(finding),
        )
        if not isinstance(good_lock, Lock) or not isinstance(bad_lock, Lock):
            return finding
        commands = (self._command(good_cell, good_lock), self._command(bad_cell, bad_lock))
        return replace(finding, locks=(good_lock.text, bad_lock.text), commands=commands)

    def _command(self, cell: Cell, lock: Lock) -> str:
        """One trial by hand, in the environment as it was built here."""
        python = str(environments_folder(self._place.settings.root) / lock.address / VENV / "bin" / "python")
        reproducer = reproducers.prepare(self._mixes.specification.reproducer)
        words = [python if word == "python" else word for word in reproducer.command]
        settings = [f"{name}={value}" for name, value in cell.variables]
        cache = cell.condition.cache
        if cache == "cold":
            settings += [f"{name}=$(mktemp -d)" for name in CACHES]
        elif "/" in cache:
            settings.append(f"{CACHES[0]}={cache}")
        if reproducer.protocol:
            for key, value in cell.condition.values:
                words += [] if key == "cache" else [f"--{key}", str(value)]
        shown = [_assignment(text) for text in settings]
        return " ".join([*(["env", *shown] if shown else []), shlex.join(words)])

    def _links(self, finding: Finding) -> tuple[Link, ...]:
        """What the culprit's own metadata names: release notes, the comparison of its two versions."""
        found = finding.versions
        if found is None:
            return ()
        index = self._mixes.specification.index
        metadata = MetadataSource(self._place.uv.simple, index).of(found.distribution, found.first_bad)
        if metadata is None:
            return ()
        source = links.repository(metadata.urls)
        tags = commits.remote_tags(source.clone) if source is not None and not index.offline else ()
        return links.links(found.distribution, metadata.urls, found.last_good, found.first_bad, tags)


def _assignment(text: str) -> str:
    """A variable for the shell; what the shell is to make itself is not quoted."""
    return text if text.endswith("=$(mktemp -d)") else shlex.quote(text)

"""What a finding has besides figures: the smallest difference as two locks, commands that show it, and what to read."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bisect_env.bisection import commits, links
from bisect_env.bisection.batches import Batches, Place
from bisect_env.bisection.mixes import Mixes
from bisect_env.bisection.records import Finding, Link
from bisect_env.bisection.stages import Course
from bisect_env.environments.metadata import MetadataSource
from bisect_env.environments.places import VENV, environments_folder
from bisect_env.environments.records import Lock
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import ENGINE_KEYS, Cell
from bisect_env.trials import reproducers
from bisect_env.trials.isolation import CONDITION, EVENTS
from bisect_env.trials.records import Side

CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Where a command run by hand finds its compile cache."""
WARM = "warm"


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
        if reproducer.protocol:
            return shipped_command(cell, words)
        return own_command(cell, words, reproducer.files, Path(python).parent)

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


def shipped_command(cell: Cell, words: Sequence[str]) -> str:
    """One trial of a shipped reproducer, for a shell: what is asked of it are its options.

    Under a warm compile cache the trial that fills it comes first.
    """
    asked = [(key, value) for key, value in cell.condition.values if key not in ENGINE_KEYS]
    options = [text for key, value in asked for text in (f"--{key}", str(value))]
    if cell.condition.cache != WARM:
        return _with_settings(cell, dict.fromkeys(CACHES, "$(mktemp -d)"), [*words, *options])
    own = {name: f"$caches/{name.lower()}" for name in CACHES}
    filled = _with_settings(cell, own, [*words, *options, "--side", Side.WARMUP.value])
    return _together(["caches=$(mktemp -d)", filled, _with_settings(cell, own, [*words, *options])])


def own_command(cell: Cell, words: Sequence[str], files: Sequence[Path], programs: Path) -> str:
    """One trial of a user's own command, for a shell: in a fresh folder with the files that it needs, as a trial is.

    What a command may read of its trial is there as well: the condition, with another seed each second, and a file for
    events. The environment's ``programs`` come first on PATH, since a script may name its Python without the command
    doing so. Under a warm compile cache the trial that fills it comes first.
    """
    path = f'PATH={shlex.quote(str(programs))}:"$PATH"'
    steps = ['cd "$(mktemp -d)"']
    if files:
        steps.append(f"cp -r {shlex.join(map(str, files))} .")
    own = {name: f"$PWD/{name.lower()}" for name in CACHES} | {
        EVENTS: "$PWD/events.jsonl",
        CONDITION: "$PWD/condition.json",
    }
    steps.append(f"mkdir {' '.join(name.lower() for name in CACHES)}")
    for side in (Side.WARMUP, Side.THREADS) if cell.condition.cache == WARM else (Side.THREADS,):
        told = json.dumps({**cell.condition.as_dict(), "side": side.value}, sort_keys=True)[:-1].replace("%", "%%")
        written = shlex.quote(f'{told}, "seed": %s}}')
        steps += [f'printf {written} "$(date +%s)" > condition.json', _with_settings(cell, own, words, path)]
    return _together(steps)


def _with_settings(cell: Cell, own: Mapping[str, str], words: Sequence[str], *more: str) -> str:
    """The command under the cell's variables; ``own`` are this module's, which the shell is to fill in."""
    cache = cell.condition.cache
    if "/" in cache:
        own = {**own, CACHES[0]: shlex.quote(cache)}
    shown = [shlex.quote(f"{name}={value}") for name, value in cell.variables]
    shown += [f'{name}="{value}"' if "$" in value else f"{name}={value}" for name, value in own.items()]
    return " ".join(["env", *more, *shown, shlex.join(words)])


def _together(steps: Sequence[str]) -> str:
    """Steps of a subshell: whoever pastes them stays where they are."""
    return "(" + " &&\n ".join(steps) + ")"

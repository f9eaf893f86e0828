"""The records a matrix file expands to: cells, their conditions, and what all cells of a run have in common."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from packaging.version import InvalidVersion, Version

from bisect_env.matrix.executor import ExecutorChoice
from bisect_env.matrix.urls import stripped

Scalar = str | int | float | bool
_TORCH = re.compile(r"torch(?![A-Za-z0-9._-])", re.IGNORECASE)
"""Beginning of a requirement of torch, and of no distribution whose name begins so."""

THREAD_KEYS = ("threads", "pattern", "cache", "mitigation", "checkpointing", "device", "partition")
"""Condition keys with a meaning of their own; any other key is an option of the reproducer."""
ENGINE_KEYS = ("cache", "partition")
"""Condition keys that say how and where a trial is run: no reproducer has to know them as options."""


def digest(value: object, length: int = 16) -> str:
    """Hexadecimal prefix of the SHA-256 of ``value`` as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


@dataclass(frozen=True)
class Condition:
    """How the trials of a cell run. Counts are never pooled over conditions.

    ``values`` holds every key in a fixed order: ``threads`` (worker threads on the threaded side), ``cache``
    (``cold``, ``warm``, ``stale`` or a folder), ``device`` (``auto``, ``cpu``, ``cuda``), on a cluster that has
    several ``partition``, and the reproducer's own options.
    """

    values: tuple[tuple[str, Scalar], ...]

    @classmethod
    def of(cls, values: Mapping[str, Scalar]) -> Condition:
        """The condition with these values, in canonical order."""
        return cls(tuple(sorted(values.items())))

    def get(self, key: str, default: Scalar) -> Scalar:
        """The value of ``key``, or ``default``."""
        return dict(self.values).get(key, default)

    @property
    def threads(self) -> int:
        """Worker threads of the threaded side."""
        return int(self.get("threads", 2))

    @property
    def cache(self) -> str:
        """``cold``, ``warm``, ``stale``, or the folder of a supplied compile cache."""
        return str(self.get("cache", "cold"))

    @property
    def device(self) -> str:
        """``auto``, ``cpu`` or ``cuda``."""
        return str(self.get("device", "auto"))

    @property
    def partition(self) -> str | None:
        """The cluster's partition in which trials run; None: whichever the executor is set to."""
        value = dict(self.values).get("partition")
        return None if value is None else str(value)

    def as_dict(self) -> dict[str, Scalar]:
        """The values as the reproducer receives them."""
        return dict(self.values)


@dataclass(frozen=True)
class IndexChoice:
    """Where packages come from. ``urls`` may hold credentials: they go to uv by environment, never into a record."""

    torch_backend: str | None = None
    """``auto``: the variant each cell's ``cuda`` asks for, from PyTorch's own indexes; None: the indexes as given."""
    urls: tuple[str, ...] = field(default=(), repr=False)
    find_links: tuple[str, ...] = field(default=(), repr=False)
    offline: bool = False
    torch_fallback: bool = False
    """With ``torch_backend`` ``cpu``: where PyTorch's CPU index does not answer, the package index's build serves,
    whatever its variant, and the cell notes which it was."""


@dataclass(frozen=True)
class EnvironmentRequest:
    """What a cell asks of its environment. Cells with equal requests share one lock and one environment."""

    requirements: tuple[str, ...]
    """PEP 508 lines, axis levels as exact pins (``torch==2.11.0``), in a stable order."""
    cuda: str | None = None
    """``cu128``, ``cu130``, ..., ``cpu``; None when the matrix does not ask for a variant."""
    python: str | None = None
    """A version request such as ``3.12``; None takes the interpreter that runs the tool."""
    index: IndexChoice = IndexChoice()
    as_of: str | None = None
    """RFC 3339 date or timestamp for ``--exclude-newer``, ``release``, or None."""
    base: str | None = None
    """Path of the interpreter of an existing environment that this one stands on."""
    accept: tuple[str, ...] = ()
    """Distributions whose deviation from the base (or from its pins) the matrix accepts; the table marks the cell."""
    build_requirements: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """For source distributions: distribution name and what must be installed to build it."""
    overrides: tuple[str, ...] = ()
    """Requirement lines that hold whatever any distribution requires: for mixes that break an exact pin."""

    @cached_property
    def key(self) -> str:
        """Identifies the request: equal requests share a lock. A credential that changed makes no other request."""
        return digest(self._identity())

    @property
    def torch(self) -> tuple[tuple[str, ...], str | None]:
        """What is asked of torch: its requirements, and the CUDA variant."""
        return tuple(line for line in self.requirements if _TORCH.match(line)), self.cuda

    def _identity(self) -> dict[str, object]:
        identity = asdict(self)
        for name in ("urls", "find_links"):
            identity["index"][name] = [stripped(url) for url in getattr(self.index, name)]
        if not self.overrides:
            # Requests had none once: what is stored of those must still be found.
            del identity["overrides"]
        return identity


@dataclass(frozen=True)
class Cell:
    """One combination of levels, its environment's request and its condition."""

    id: str
    """Readable and unique in the matrix, for example ``torch-2.11.0+cu130_transformers-5.6.0_hot``."""
    levels: tuple[tuple[str, str], ...]
    """Axis and level, in the order of the file; conditions that are axes included."""
    request: EnvironmentRequest
    condition: Condition
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables of the trials, from ``env`` and from axes."""
    tags: tuple[str, ...] = ()

    @cached_property
    def condition_key(self) -> str:
        """Identifies how the trials run, apart from the packages: cells that differ in it are never compared."""
        return digest([self.condition.values, self.variables])

    @cached_property
    def key(self) -> str:
        """Identifies the cell's content (not its name), so that a renamed axis does not lose its trials."""
        return digest([self.request.key, self.condition.values, self.variables])


@dataclass(frozen=True)
class ReproducerChoice:
    """A shipped reproducer by name, or a command of the user's own with the files it needs."""

    name: str
    command: tuple[str, ...] = ()
    """Empty for a shipped reproducer. ``python`` as its first word means the environment's interpreter."""
    files: tuple[Path, ...] = ()
    """Absolute paths; copied into the trial's working folder, and part of the content hash."""
    fail_pattern: str | None = None
    skip_pattern: str | None = None


@dataclass(frozen=True)
class Limits:
    """Bounds of a run. Seconds unless said otherwise."""

    trial: float = 900.0
    """Longest a single trial may take in all."""
    silence: float = 60.0
    """Floor of the time without an event after which a trial hangs."""
    first_silence: float = 300.0
    """The same while no serial control of the cell has been seen."""
    import_time: float = 120.0
    """Longest the reproducer's imports may take."""
    build: float = 3600.0
    cells: int = 256
    """Most cells a matrix may expand to."""


@dataclass(frozen=True)
class Matrix:
    """A checked and expanded matrix file."""

    name: str
    path: Path
    cells: tuple[Cell, ...]
    axes: tuple[str, ...]
    """Names of the axes in order, conditions with several levels included: the columns of the table."""
    reproducer: ReproducerChoice
    trials: int = 12
    controls: int = 12
    """Trials of each control (``solo`` and ``serial``)."""
    reference: tuple[tuple[str, str], ...] = ()
    """Levels that mark the reference cell of each condition; empty when throughput is not compared."""
    slow_below: float = 0.95
    limits: Limits = field(default_factory=Limits)
    pass_env: tuple[str, ...] = ()
    """Variables of the parent that the trials may see."""
    solo: int | None = None
    """Trials of the ``solo`` control, where they are not ``controls`` as well."""
    at_once: int = 1
    """Counted trials that run side by side; throughput is measured in rounds of its own."""
    stop_early: bool = True
    """Whether a cell ends at an earlier look at which its headline is certain."""
    notes: tuple[str, ...] = ()
    """What the expansion wants the user to know, for example which releases a range stood for."""
    left_out: tuple[Cell, ...] = ()
    """Cells that the command line left out: not measured, but one of them may have to fill a stale cache."""
    executor: ExecutorChoice = field(default_factory=ExecutorChoice)
    """Where the trials are to run, unless the command line says otherwise."""

    def reference_of(self, cell: Cell) -> Cell | None:
        """The reference cell for ``cell``'s condition, or None when the matrix names none."""
        if not self.reference:
            return None
        wanted = dict(self.reference).items()
        for other in self.cells:
            if other.condition_key == cell.condition_key and wanted <= dict(other.levels).items():
                return other
        return None

    def stale_source_of(self, cell: Cell) -> Cell | None:
        """The cell whose environment fills the stale compile cache of ``cell``, or None when there is none.

        It has another torch, or torch for another CUDA variant, and of those with that the most levels in common. Of
        several the one with the nearest earlier torch, else the nearest later: an upgrade is what leaves a stale cache.
        """
        levels = set(cell.levels)
        others = [other for other in (*self.cells, *self.left_out) if other.request.torch != cell.request.torch]
        most = max((len(levels & set(other.levels)) for other in others), default=0)
        # By name among equals, so that it does not matter which cells a command line selects.
        alike = sorted((o for o in others if len(levels & set(o.levels)) == most), key=lambda other: other.id)
        earlier = [other for other in alike if _age(other) < _age(cell)]
        return max(earlier, key=_age) if earlier else min(alike, key=_age, default=None)


def _age(cell: Cell) -> tuple[Version, str]:
    """Release of torch and its CUDA variant, to be compared; what is no release counts as the oldest."""
    lines, cuda = cell.request.torch
    try:
        return Version(lines[0].partition("==")[2]), cuda or ""
    except (IndexError, InvalidVersion):
        return Version("0"), cuda or ""

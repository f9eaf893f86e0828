"""What a user says of the cluster: the mapping under ``executor: {slurm: ...}``, and the command line's options.

Every key is a parameter of sbatch under a plainer name, or bounds what this program asks of the cluster.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from bisect_env.errors import BadInput
from bisect_env.matrix.problems import Unfit, shown
from bisect_env.matrix.schema import Section

SHARED = "shared"
"""Environments lie in the project's folder, which every node sees."""
_MEMORY = re.compile(r"\d+[KMGT]?B?", re.IGNORECASE)
_GPUS = re.compile(r"([A-Za-z0-9_.-]+:)?\d+")
_PARAMETER = re.compile(r"[a-z][a-z0-9-]*")
OWN = frozenset(
    {"array", "chdir", "error", "exclude", "export", "export-file", "input", "job-name", "nodes", "ntasks", "open-mode"}
    | {"output", "parsable", "requeue", "no-requeue", "wait", "wrap"}
)
"""Parameters of sbatch that this program sets itself, or that would break what it relies on."""
NAMED = frozenset(
    {"partition", "account", "qos", "constraint", "gpus", "gpus-per-node", "cpus-per-task", "mem", "time"}
)
"""Parameters of sbatch that have a key of their own here."""


def _refused(found: str, wanted: str) -> PydanticCustomError:
    problem = Unfit(found, wanted)
    return PydanticCustomError("unfit", "{found}", {"found": problem.found, "wanted": problem.wanted})


def _line(value: Any) -> Any:
    """A text that is one word to sbatch: it stands on a line of a script."""
    if isinstance(value, str) and (not value or not value.isprintable()):
        raise _refused(f"{shown(value)}", "some text on one line")
    return value


def _partitions(value: Any) -> Any:
    """One partition, several as sbatch takes them (``a,b``: whichever is free first), or a list of them."""
    return _line(",".join(map(str, value)) if isinstance(value, list | tuple) and value else value)


def minutes(value: Any) -> Any:
    """Minutes of a time as Slurm writes it: ``90``, ``1:30:00``, ``1-12``; any other value as it came."""
    if not isinstance(value, str) or value.isdigit():
        return value
    days, dash, rest = value.rpartition("-")
    parts = rest.split(":")
    fit = len(parts) <= 3 and all(part.isdigit() for part in (*parts, *([days] if dash else [])))
    if not fit:
        raise _refused(f"{shown(value)} is no time", "minutes (90), or as Slurm writes it: 1:30:00, 1-12 (days-hours)")
    numbers = [int(part) for part in parts]
    if dash:
        hours, mins, seconds = (*numbers, 0, 0)[:3]
    else:
        hours, mins, seconds = (0, *numbers) if len(numbers) == 2 else (*numbers,)[:3]
    return int(days or 0) * 24 * 60 + hours * 60 + mins + math.ceil(seconds / 60)


def _matching(pattern: re.Pattern[str], wanted: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, str) and not pattern.fullmatch(value):
            raise _refused(shown(value), wanted)
        return value

    return BeforeValidator(check)


def _folder(value: Any) -> Any:
    if isinstance(value, str) and value != SHARED and not (value.startswith("$") or PurePosixPath(value).is_absolute()):
        wanted = (
            f"{SHARED} (in the project's folder), or a folder that each node has for itself: an absolute path, or one "
            "that begins with a variable of the node ($SLURM_TMPDIR/environments)"
        )
        raise _refused(shown(value), wanted)
    return value


def _extra(value: Any) -> Any:
    """Parameters by the name that sbatch gives them, without the dashes; ``true`` and nothing are a bare flag."""
    if not isinstance(value, Mapping):
        return value
    named = {str(name).removeprefix("--").replace("_", "-"): text for name, text in value.items()}
    for name, text in named.items():
        if not _PARAMETER.fullmatch(name):
            wanted = "its long name without dashes, such as reservation"
            raise _refused(f"{shown(name)} as a parameter of sbatch", wanted)
        if name in OWN:
            raise _refused(f"{name}, which bisect-env sets itself", "another parameter of sbatch")
        if name in NAMED:
            raise _refused(f"{name} among the further parameters", "the key of that meaning beside extra")
        if text is not None:
            _line(text)
    return tuple(
        sorted((name, None if text in (None, True, "true", "") else str(text)) for name, text in named.items())
    )


Text = Annotated[str, BeforeValidator(_line)]


class SlurmSettings(Section):
    """How jobs are asked of Slurm. What is None is left to the cluster's own default."""

    title: ClassVar[str] = " under executor.slurm"

    partition: Annotated[str | None, BeforeValidator(_partitions)] = None
    """Of the cells whose condition names none. Several, with commas: whichever is free first."""
    account: Text | None = None
    qos: Text | None = None
    constraint: Text | None = None
    """Features that a node must have, as sbatch's ``--constraint``."""
    gpus: Annotated[str | None, _matching(_GPUS, "a number of GPUs, with or without their type: 2, a100:2")] = None
    """GPUs of a job, ``2`` or ``a100:2``; None: as many as its cells' condition ``gpus`` says, none on a CPU."""
    cpus: Annotated[int, Field(ge=1)] | None = None
    memory: Annotated[str | None, _matching(_MEMORY, "an amount of memory, 32G")] = None
    time: Annotated[int, Field(ge=1), BeforeValidator(minutes)] = 60
    """Minutes of a job, in which its environment is built, if need be, and its trials run."""
    jobs: Annotated[int, Field(ge=1)] = 8
    """Jobs in flight at most, waiting ones included."""
    batch: Annotated[int, Field(ge=1)] = 4
    """Trials of a job at most."""
    environments: Annotated[str, BeforeValidator(_folder)] = SHARED
    """``shared``, or a folder of each node's own; ``$VARIABLES`` in it are the node's."""
    patience: Annotated[int, Field(ge=1), BeforeValidator(minutes)] = 24 * 60
    """Minutes that a job may wait to be started before it is given up."""
    extra: Annotated[tuple[tuple[str, str | None], ...], BeforeValidator(_extra)] = ()
    """Further parameters of sbatch by their long names; None: a flag without a value."""

    @property
    def node_folder(self) -> str | None:
        """Folder of environments that each node has for itself; None where they are shared."""
        return None if self.environments == SHARED else self.environments


def slurm_settings(values: Mapping[str, Any], source: str = "executor") -> SlurmSettings:
    """The settings that a mapping of keys means; every value may be a text.

    Args:
        values: by the name of a field; ``-`` and ``_`` are the same.
        source: named in messages: the matrix file, or the command line.

    Raises:
        BadInput: an unknown key, or a value that does not fit; the first of them, with its key as place.
    """
    try:
        return SlurmSettings.model_validate(dict(values))
    except ValidationError as error:
        raise _bad(source, error.errors(include_url=False)[0]) from None


_WANTED = {"int_parsing": "a whole number", "int_type": "a whole number", "string_type": "a single value"}


def _bad(source: str, error: ErrorDetails) -> BadInput:
    context = error.get("ctx", {})
    loc = [*map(str, error["loc"]), *([context["key"]] if "key" in context else [])]
    place = ".".join(["slurm", *loc[:1]])
    if error["type"] == "unfit":
        return BadInput(source, place, context["found"], context["wanted"])
    if error["type"] == "greater_than_equal":
        return BadInput(source, place, shown(error["input"]), f"at least {context['ge']}")
    return BadInput(source, place, shown(error["input"]), _WANTED.get(error["type"], error["msg"]))

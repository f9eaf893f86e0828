"""Where a matrix asks its trials to run: on this host, or as jobs of a cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bisect_env.matrix.problems import Unfit, one_of, shown

LOCAL, SLURM = "local", "slurm"
KINDS = (LOCAL, SLURM)


@dataclass(frozen=True)
class ExecutorChoice:
    """What stands under ``executor``."""

    kind: str = LOCAL
    """``local`` or ``slurm``."""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Of Slurm, as written; what they mean is checked where they are used."""


def written(value: Any) -> Any:
    """The forms of the key as one: ``{kind: settings}``. ``slurm`` alone is Slurm as the cluster sets it up.

    Raises:
        Unfit: no kind, an unknown one, several, or settings that are no mapping.
    """
    if isinstance(value, str):
        value = {value: None}
    if not isinstance(value, Mapping) or len(value) != 1:
        raise Unfit(f"executor is {shown(value)}", f"{LOCAL}, {SLURM}, or {{{SLURM}: {{partition: ..., ...}}}}")
    ((kind, settings),) = value.items()
    if kind not in KINDS:
        raise Unfit(f"executor {shown(kind)}", one_of(KINDS, kind))
    if settings is None:
        settings = {}
    if not isinstance(settings, Mapping):
        raise Unfit(f"executor: {kind} is {shown(settings)}", "a mapping (key: value)")
    if kind == LOCAL and settings:
        wanted = "executor: local alone; at_once says how many trials run side by side, --gpus on which GPUs"
        raise Unfit(f"settings of the executor {LOCAL}, which has none", wanted)
    return {kind: dict(settings)}


def choice(section: Mapping[str, Mapping[str, Any]]) -> ExecutorChoice:
    """The choice in the form that :func:`written` gives; this host where there is none."""
    for kind, settings in section.items():
        return ExecutorChoice(kind, dict(settings))
    return ExecutorChoice()

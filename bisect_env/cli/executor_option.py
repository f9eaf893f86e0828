"""``--executor`` and its companions: where environments are built and trials run."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, cast

import click

from bisect_env.cli.amounts import assignment
from bisect_env.cli.asked import named_option
from bisect_env.cli.common import Command, complain
from bisect_env.cli.option_parts import added
from bisect_env.engine.executor import Executor
from bisect_env.engine.local import Local
from bisect_env.errors import BadInput
from bisect_env.matrix.cells import Condition
from bisect_env.matrix.executor import KINDS, LOCAL, SLURM, ExecutorChoice
from bisect_env.trials import gpu

EXTRA = "extra"
"""Key of the mapping of sbatch's own parameters; ``extra.NAME`` is one of them."""
CANCEL, LEAVE = "cancel", "leave"
PATIENCE = 30.0
"""Seconds to wait for an answer at an interruption; none is a no."""


@dataclass(frozen=True)
class Elsewhere:
    """The options as they were written."""

    executor: str | None = None
    """None: as the matrix file says, else this host."""
    partition: str | None = None
    jobs: int | None = None
    slurm: tuple[str, ...] = ()
    on_interrupt: str | None = None
    """None: asked on a terminal, else cancelled."""

    @property
    def words(self) -> tuple[str, ...]:
        """The same options for another command line."""
        found: list[str] = []
        for option, value in (
            ("--executor", self.executor),
            ("--partition", self.partition),
            ("--jobs", self.jobs),
            ("--on-interrupt", self.on_interrupt),
        ):
            found += [] if value is None else [option, str(value)]
        return (*found, *(word for text in self.slurm for word in ("--slurm", text)))


def executor_options(function: Command) -> Command:
    """Adds them; they arrive as one ``elsewhere``."""

    @wraps(function)
    def gathered(*args: Any, **given: Any) -> object:
        names = ("executor", "partition", "jobs", "slurm", "on_interrupt")
        return function(*args, elsewhere=Elsewhere(**{name: given.pop(name) for name in names}), **given)

    return added(
        cast("Command", gathered),
        (
            click.option(
                "--executor",
                type=click.Choice(KINDS),
                help="Where environments are built and trials run: this host, or jobs of a cluster under Slurm. "
                "Default: as the matrix file says, else local.",
            ),
            click.option("--partition", metavar="NAME", help="Slurm: of the jobs whose cells name none."),
            click.option("--jobs", type=click.IntRange(1), help="Slurm: jobs in flight at most, waiting ones too."),
            click.option(
                "--slurm",
                metavar="KEY=VALUE",
                multiple=True,
                help="Slurm: another setting, as under executor in a matrix file (account=lab, time=2:00:00, gpus=1); "
                f"{EXTRA}.NAME=VALUE is sbatch's own --NAME; repeatable.",
            ),
            click.option(
                "--on-interrupt",
                type=click.Choice((CANCEL, LEAVE)),
                help="Slurm: what becomes of the jobs in flight at Ctrl-C. Default: asked on a terminal, else cancel.",
            ),
        ),
    )


def chosen(elsewhere: Elsewhere, file: ExecutorChoice) -> ExecutorChoice:
    """What the file and the command line come to; the command line comes first, key by key.

    Args:
        file: as the matrix file says; the default without one.

    Raises:
        BadInput: options of Slurm where that is not the executor, or one that is no setting.
    """
    kind = elsewhere.executor or file.kind
    given: dict[str, Any] = {}
    if elsewhere.partition is not None:
        given["partition"] = elsewhere.partition
    if elsewhere.jobs is not None:
        given["jobs"] = str(elsewhere.jobs)
    extra: dict[str, str] = {}
    for text in elsewhere.slurm:
        with named_option("--slurm"):
            key, value = assignment(text, "KEY=VALUE, for example account=lab")
        part, dot, name = key.partition(".")
        key = key if dot else key.replace("-", "_")
        if (dot and part != EXTRA) or key in given or name in extra:
            found = f"{key} a second time" if key in given or name in extra else f"{key}, which is no setting"
            raise BadInput("--slurm", "", found, f"each key once; {EXTRA}.NAME=VALUE for sbatch's own parameters")
        (extra if dot else given)[name if dot else key] = value
    if kind != SLURM:
        used = replace(elsewhere, executor=None).words
        if used:
            raise BadInput(used[0], "", f"given, and the executor is {kind}", f"--executor {SLURM} beside it")
        return ExecutorChoice(kind)
    settings = dict(file.settings) if file.kind == SLURM else {}
    if extra:
        own = settings.get(EXTRA)
        given[EXTRA] = {**(own if isinstance(own, dict) else {}), **extra}
    return ExecutorChoice(kind, {**{key.replace("-", "_"): value for key, value in settings.items()}, **given})


def executor(
    choice: ExecutorChoice,
    elsewhere: Elsewhere,
    conditions: Iterable[Condition],
    gpus: str | None,
    source: Path | str,
) -> Executor:
    """The executor. Nothing is started or written.

    Args:
        choice: of :func:`chosen`.
        conditions: of the cells.
        gpus: ``--gpus``.
        source: the matrix file, or what else the conditions come from, for messages.

    Raises:
        BadInput: a selection of GPUs that cannot be, a partition on this host, or a setting that does not fit.
    """
    partition = next((each.partition for each in conditions if each.partition is not None), None)
    if choice.kind == LOCAL:
        gpu.devices(gpus)  # Says now what is wrong with the selection.
        if partition is not None:
            wanted = f"executor: {SLURM} in the file, or --executor {SLURM}; or the key left out"
            raise BadInput(source, "partition", f"{partition!r}, and trials run on this host, which has none", wanted)
        return Local()
    if gpus is not None:
        found = f"{gpus}, and trials run on other hosts"
        raise BadInput("--gpus", "", found, "left out; --slurm gpus=2 or gpus=a100:2 says what a job asks for")
    # Only now: whoever stays on one host needs nothing of it.
    from bisect_env.cluster.settings import slurm_settings
    from bisect_env.cluster.slurm import Slurm

    return Slurm(slurm_settings(choice.settings, str(source)), partial(_leaves, elsewhere.on_interrupt), partition)


def ready(choice: ExecutorChoice) -> None:
    """Say it before anything is written where this host can send no jobs.

    Raises:
        BadInput: it has no Slurm, or there is no submitit.
    """
    if choice.kind == SLURM:
        from bisect_env.cluster import submitting

        submitting.check()


def _leaves(said: str | None, in_flight: str) -> bool:
    """Whether jobs in flight stay in Slurm's hands; where it was not said, whoever sits at the terminal is asked."""
    if said is not None or not sys.stdin.isatty():
        return said == LEAVE
    complain(f"Interrupted, with {in_flight}. Leave them to Slurm, for the same command to go on with? [y/N] ")
    try:
        answered, _, _ = select.select([sys.stdin], [], [], PATIENCE)
        return bool(answered) and sys.stdin.readline().strip().lower() in ("y", "yes")
    except KeyboardInterrupt:
        return False

"""From what the engine asks to what a job is told: pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bisect_env.cluster.job import JobSpec, Wanted, item, lighter, part_of
from bisect_env.cluster.settings import SlurmSettings
from bisect_env.engine.attempt import Attempt
from bisect_env.engine.grouping import Entrant, Session, baseline_of, needs_rounds
from bisect_env.engine.plan import seed_of
from bisect_env.engine.trialing import Bench
from bisect_env.environments.records import Lock
from bisect_env.matrix.cells import Cell, EnvironmentRequest, Limits, Matrix, ReproducerChoice
from bisect_env.store.ids import new_trial_id
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Reproducer, Side, TrialRecord
from bisect_env.verdicts.hardware import Hardware, most

Known = Mapping[str, tuple[EnvironmentRequest, str]]
"""By the address of an environment one of its requests and its label."""
_SESSIONS = 20
"""Bits for the sessions of a job, and for its number in its array."""


@dataclass(frozen=True)
class Group:
    """Work of equal groups belongs into one job."""

    what: str
    """Address of an environment; of work that fills a job alone, something of its own."""
    partition: str | None
    gpus: str | None
    hardware: Hardware | None = None
    """What its cells are measured on: nodes that have something else are left out; None: any node will do."""
    alone: bool = False
    """It shares a job with no other group: it is all of the job, or a node would build further environments for it."""


@dataclass(frozen=True)
class Work:
    """A unit of work: an attempt, or what fills a job alone."""

    group: Group
    spec: Callable[[str, Sequence[tuple[str, Attempt]]], JobSpec]
    """The job of such work, by its name and, where it consists of attempts, their names in it and they themselves."""
    attempt: Attempt | None = None
    """None: it fills a job alone, and is done when that has ended."""


def kin(group: Hashable) -> Hashable:
    """What groups have in common that may share a job when there are too few for all."""
    assert isinstance(group, Group)
    return group if group.alone else (group.partition, group.gpus, group.hardware)


def gpus_of(settings: SlurmSettings, cell: Cell) -> str | None:
    """GPUs of a job of the cell, as sbatch takes them; None: it asks for none."""
    if cell.condition.device == "cpu":
        return None
    asked = settings.gpus if settings.gpus is not None else str(cell.condition.get("gpus", 1))
    return asked if _some(asked) else None


def _some(gpus: str) -> bool:
    return int(gpus.rpartition(":")[2]) > 0


def partition_of(settings: SlurmSettings, cell: Cell) -> str | None:
    """The partition of a job of the cell: its condition's, or everybody's."""
    return cell.condition.partition or settings.partition


def attempt_work(bench: Bench, settings: SlurmSettings, known: Known, attempt: Attempt) -> Work:
    """An attempt: it shares a job with others that ask for the same, best in its own environment."""
    cell, address = attempt.slot.cell, attempt.environment.lock.address

    def spec(name: str, named: Sequence[tuple[str, Attempt]]) -> JobSpec:
        attempts = [attempt for _, attempt in named]
        cells = {each.slot.cell.key: each.slot.cell for each in attempts}
        locks = {each.environment.lock.address: (each.environment.lock, each.slot.cell) for each in attempts}
        wanted = tuple(_wanted(known, lock, cell) for lock, cell in locks.values())
        items = tuple(item(unit, attempt) for unit, attempt in named)
        return replace(_common(bench, settings, name, tuple(cells.values())), wanted=wanted, items=items)

    alone = settings.node_folder is not None
    group = Group(address, partition_of(settings, cell), gpus_of(settings, cell), attempt.hardware, alone)
    return Work(group, spec, attempt)


def build_work(
    settings: SlurmSettings, partition: str | None, root: Path, wanted: Wanted, limits: Limits, bundle: Path | None
) -> Work:
    """An environment, built and proved on a node and nothing else; in ``partition`` where the settings name none."""
    matrix = Matrix("build", root, (), (), ReproducerChoice(""), limits=limits)

    def spec(name: str, _: Sequence[tuple[str, Attempt]]) -> JobSpec:
        nothing = Reproducer("", (), (), "", protocol=False)
        return JobSpec(name, "", root, matrix, nothing, (wanted,), bundle=bundle, node_folder=settings.node_folder)

    asked = settings.gpus if settings.gpus is not None and _some(settings.gpus) else None
    return Work(Group(f"build {wanted.lock.address}", settings.partition or partition, asked, alone=True), spec)


def rounds_work(
    bench: Bench, settings: SlurmSettings, known: Known, entrants: Sequence[Entrant], session: Session | None = None
) -> Work:
    """The rounds of these entrants as one job, which plans them itself unless they are one ``session``."""
    cells = tuple(entrant.cell for entrant in entrants)
    locks = {e.environment.lock.address: _wanted(known, e.environment.lock, e.cell) for e in entrants}

    def spec(name: str, _: Sequence[tuple[str, Attempt]]) -> JobSpec:
        common = replace(_common(bench, settings, name, cells), wanted=tuple(locks.values()))
        if session is None:
            return replace(common, entrants=tuple(map(lighter, entrants)))
        light = Session(session.baseline and lighter(session.baseline), tuple(map(lighter, session.others)))
        return replace(common, session=light)

    first = cells[0]
    # The last one is compared with the first, which has its turns beside it wherever its own trials ran.
    judged = most(entrants[-1].samples)
    group = Group(f"rounds {new_trial_id()}", partition_of(settings, first), gpus_of(settings, first), judged, True)
    return Work(group, spec)


def comparable(matrix: Matrix, settings: SlurmSettings, entrants: Sequence[Entrant]) -> tuple[tuple[Entrant, ...], ...]:
    """Entrants whose rounds belong on one node: those that need some, and what each of them is compared with.

    Those in one group have the same baseline, ask for the same partition and GPUs, and are measured on the same
    hardware; the baseline itself may be measured on another.
    """
    by_key = {entrant.cell.key: entrant for entrant in entrants}
    groups: dict[tuple[str, str | None, str | None, Hardware | None], dict[str, Entrant]] = {}
    for entrant in entrants:
        cell = entrant.cell
        if not needs_rounds(cell, entrant.samples):
            continue
        baseline = baseline_of(matrix, cell) or cell
        place = (baseline.key, partition_of(settings, cell), gpus_of(settings, cell), most(entrant.samples))
        group = groups.setdefault(place, {})
        if baseline.key in by_key:
            group.setdefault(baseline.key, by_key[baseline.key])
        group[cell.key] = entrant
    return tuple(tuple(group.values()) for group in groups.values())


def placed(sample: StoredTrial, job: str) -> StoredTrial:
    """A job's record with a session's number that no other job of the run has: nodes count theirs from the same one.

    Args:
        job: ``TOKEN-INDEX``, where TOKEN is hexadecimal.
    """
    if sample.record.side is not Side.ROUNDS:
        return sample
    token, _, index = job.partition("-")
    return replace(sample, block=(int(token, 16) << _SESSIONS) + (int(index) << _SESSIONS // 2) + sample.block)


def given_up(bench: Bench, attempt: Attempt, losses: Sequence[str]) -> TrialRecord:
    """The record of an attempt that no job brought to a result: it is never counted, and not asked for again."""
    cell, index = attempt.slot.cell, attempt.slot.index
    return TrialRecord(
        id=new_trial_id(),
        environment=attempt.environment.lock.address,
        reproducer=bench.reproducer.content_hash,
        condition=cell.condition,
        side=attempt.slot.side,
        seed=seed_of(bench.settings.seed, cell, index),
        outcome=Outcome.INFRA,
        message=lost(losses),
        started=time.time(),
        only_repeat=attempt.only_repeat,
        aborted=True,
    )


def lost(losses: Sequence[str]) -> str:
    """Why something was given up, in a sentence."""
    if len(set(losses)) == 1:
        return losses[0] if len(losses) == 1 else f"{losses[0]} (each of {len(losses)} jobs)"
    return f"{len(losses)} jobs were lost: " + "; ".join(f"{number}. {why}" for number, why in enumerate(losses, 1))


def _wanted(known: Known, lock: Lock, cell: Cell) -> Wanted:
    request, label = known.get(lock.address, (cell.request, cell.id))
    return Wanted(lock, request, label)


def _common(bench: Bench, settings: SlurmSettings, name: str, cells: tuple[Cell, ...]) -> JobSpec:
    run = bench.settings
    return JobSpec(
        name=name,
        run_id=bench.run_id,
        root=run.root,
        matrix=part_of(bench.matrix, cells),
        reproducer=bench.reproducer,
        wanted=(),
        seed=run.seed,
        allow_busy=run.allow_busy,
        gpus=run.gpus,
        bundle=None if run.bundle is None else run.bundle.folder,
        node_folder=settings.node_folder,
    )

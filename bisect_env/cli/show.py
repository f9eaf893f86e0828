"""``bisect-env show``: everything known about one cell, trial, environment or run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from bisect_env.cli.common import root_option, say, stored
from bisect_env.engine.past import design_of
from bisect_env.engine.results import Result
from bisect_env.environments.records import Lock, Unavailable
from bisect_env.errors import BadInput
from bisect_env.report import show
from bisect_env.store.cells import Match
from bisect_env.store.database import Store
from bisect_env.store.trials import StoredTrial
from bisect_env.verdicts import hardware
from bisect_env.verdicts.verdict import judge, without_environment

MOST = 20
"""Things listed when an id fits several."""


@click.command("show", short_help="Everything known about a cell or a trial.")
@click.argument("name", metavar="ID")
@root_option
def command(name: str, root: Path) -> None:
    """Print everything known about ID: a cell's id or the id in a table, a trial, an environment, a run.

    The beginning of an id is enough as long as it fits one thing only.

    \b
    bisect-env show 3f2a91c0
    bisect-env show torch-2.11.0_transformers-5.8.1
    """
    with stored(root) as store:
        say(_text(store, _only(store.find(name), name)))


def _only(matches: list[Match], name: str) -> Match:
    if not matches:
        raise BadInput("ID", "", f"nothing is called {name!r}", "an id from a table, `trials:` of a cell, or its start")
    if len(matches) > 1:
        listed = "\n    ".join(f"{match.id}  {match.about}" for match in matches[:MOST])
        listed += f"\n    and {len(matches) - MOST} more" if len(matches) > MOST else ""
        raise BadInput("ID", "", f"{len(matches)} things begin with {name!r}", f"one of\n    {listed}")
    return matches[0]


def _text(store: Store, match: Match) -> str:
    if match.kind == "trial":
        stored = store.trial(match.id)
        assert stored is not None
        environment = store.environment(stored.record.environment)
        return show.trial(stored.record, environment.lock if environment else None)
    if match.kind == "cell":
        return _cell(store, match.id)
    if match.kind == "environment":
        environment = store.environment(match.id)
        assert environment is not None
        return show.environment(environment)
    run = store.run(match.id)
    assert run is not None
    return show.run(run)


def _cell(store: Store, key: str) -> str:
    """The cell judged by itself, without its matrix's reference: on the trials that a further run would count.

    Those are of its lock, of the reproducer that it was measured with last, and of what the last run measured it on.
    """
    cell = store.cells(key)[0].cell
    lock = store.lock(cell.request.key)
    if isinstance(lock, Unavailable):
        return show.cell(Result(cell, without_environment(lock), None, ()))
    every = store.trials_of_cell(key)
    stored = _stored(store, key, lock, every)
    measured_on = hardware.most(sample for sample in stored if sample.run_id == stored[-1].run_id)
    samples, others = hardware.apart(stored, measured_on)
    failed = store.unavailable(key, lock.address if lock else None)
    run = store.run(samples[-1].run_id) if samples else None
    if failed:
        verdict = without_environment(failed)
    else:
        verdict = judge(samples, design_of(run, samples))
        verdict = replace(verdict, marks=(*verdict.marks, *hardware.marks(measured_on, others)))
    environment = store.environment(lock.address) if lock else None
    return show.cell(Result(cell, verdict, lock, samples), environment, earlier=len(every) - len(samples))


def _stored(store: Store, key: str, lock: Lock | None, every: Sequence[StoredTrial]) -> list[StoredTrial]:
    """Of a cell's trials those of its lock, and of the reproducer that it was measured with last."""
    if lock is None or not every:
        return []
    return store.trials(key, lock.address, every[-1].record.reproducer)

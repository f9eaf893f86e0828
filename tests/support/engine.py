"""The engine in this process, for tests that have to pretend something to it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

from bisect_env.engine.progress import Reporter
from bisect_env.engine.results import Result
from bisect_env.engine.run import Engine
from bisect_env.engine.settings import Settings
from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import Cell
from bisect_env.matrix.loading import load
from bisect_env.store.database import Store
from bisect_env.trials import reproducers
from bisect_env.trials.records import Side, TrialRecord
from tests.support.racing import World


@dataclass
class Listener(Reporter):
    """Remembers what it is told, and by which threads."""

    notes: list[str] = field(default_factory=list)
    told: list[tuple[str, str, str]] = field(default_factory=list)
    """``started`` or ``ended``, cell's id and side."""
    threads: set[int] = field(default_factory=set)

    def note(self, text: str) -> None:
        self.notes.append(text)
        self.threads.add(threading.get_ident())

    def trial_started(self, cell: Cell, side: Side, number: int, of: int) -> None:
        self.told.append(("started", cell.id, side.value))
        self.threads.add(threading.get_ident())

    def trial_ended(self, cell: Cell, record: TrialRecord, note: str) -> None:
        self.told.append(("ended", cell.id, record.side.value))
        self.threads.add(threading.get_ident())

    @property
    def most_at_once(self) -> int:
        """Trials in flight at most."""
        running = most = 0
        for what, _, _ in self.told:
            running += 1 if what == "started" else -1
            most = max(most, running)
        return most


def measured(
    world: World, protocol: bool = False, stop: threading.Event | None = None, **settings: object
) -> tuple[tuple[Result, ...], Listener]:
    """Run the world's matrix here and give its results; with ``protocol`` its command is taken for a shipped one."""
    matrix = load(world.folder / "matrix.yaml", SimpleIndex())
    listener = Listener()
    chosen = Settings(world.store, **settings)  # type: ignore[arg-type]
    with Store(world.store / "store.sqlite") as store:
        reproducer = replace(reproducers.prepare(matrix.reproducer), protocol=protocol)
        engine = Engine(matrix, reproducer, chosen, store, Uv(world.uv_cache), listener, stop or threading.Event())
        run_id = store.start_run(matrix.name, matrix.path, (), 0, {}, matrix.trials, matrix.controls)
        engine.run(run_id)
        return engine.results(), listener

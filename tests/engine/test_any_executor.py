"""What is found does not depend on the executor: not on the order of answers, on what was lost, or on how many run."""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.engine import judging
from bisect_env.engine.attempt import Attempt
from bisect_env.engine.measuring import Measuring
from bisect_env.engine.places import Place
from bisect_env.engine.plan import COUNTED
from bisect_env.engine.progress import Reporter
from bisect_env.engine.settings import Settings
from bisect_env.engine.state import CellState
from bisect_env.engine.trialing import Bench
from bisect_env.environments.records import Environment, Interpreter, Lock
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, Matrix, ReproducerChoice
from bisect_env.store.database import Store
from bisect_env.store.ids import new_trial_id
from bisect_env.trials.records import Outcome, Reproducer, Side, TrialRecord
from bisect_env.trials.runner import Stopped
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.records import Verdict
from tests.engine.scrambled import Scrambled
from tests.support.engine import measured
from tests.support.racing import World, placed

BODY = "axes: {torch: [2.10.0, 2.11.0, 2.14.1], transformers: [5.8.1]}\ntrials: 6\ncontrols: 4\nsolo: 0\n"


@pytest.fixture
def three(world: World) -> World:
    """Cells that always, sometimes and never race; which trials of the second do is decided by their seeds."""
    world.torch("2.10.0", race=1.0)
    world.torch("2.11.0", race=0.5)
    world.torch("2.14.1")
    world.transformers("5.8.1")
    world.matrix(BODY)
    return world


def beside(world: World, name: str) -> World:
    """Another project with the same index and matrix, and a store of its own."""
    folder = world.folder.with_name(name)
    folder.mkdir()
    other = replace(world, folder=folder)
    other.matrix((world.folder / "matrix.yaml").read_text().partition("files: [race.py]}\n")[2])
    return other


@pytest.mark.parametrize("stop_early", [False, True])
def test_real_trials_in_any_order_come_to_the_same(three: World, stop_early: bool) -> None:
    three.matrix(BODY + f"stop_early: {str(stop_early).lower()}\n")
    ours, _ = measured(three)
    other = beside(three, "other")
    executor = Scrambled(seed=7)
    theirs, listener = measured(other, executor=executor)
    assert [r.verdict.headline for r in theirs] == [r.verdict.headline for r in ours]
    assert listener.most_at_once > 3 and listener.threads == {threading.get_ident()}
    assert executor.losses, "none was lost"
    lost = [row for row in other.trials(counted=False) if row[4] == "infra"]
    assert len(lost) == len(executor.losses) == sum(r.verdict.infra for r in theirs)
    if not stop_early:
        assert [r.verdict.text for r in theirs] == [r.verdict.text for r in ours]
        # The very same trials, each once, with the same outcomes; those of a cell's side have one seed each.
        assert placed(other.trials()) == placed(three.trials()) and len(set(placed(other.trials()))) == 3 * 10
        assert sorted(row[1:] for row in other.trials()) == sorted(row[1:] for row in three.trials())
    # What is stored counts on this host as well: nothing of it is run again.
    again, idle = measured(other)
    assert [r.verdict.text for r in again] == [r.verdict.text for r in theirs] and not idle.told


@pytest.mark.parametrize("lost", [0.5, 1.0], ids=["some", "the first two attempts at each"])
def test_a_warm_up_comes_before_all_others_of_its_cell(three: World, lost: float) -> None:
    three.matrix(BODY.replace("2.10.0, 2.11.0, ", "") + "conditions: {cache: [warm, cold]}\n")
    executor = Scrambled(seed=3, lost=lost)
    results, listener = measured(three, executor=executor)
    warm = next(result for result in results if result.cell.condition.cache == "warm")
    told = [(what, side) for what, cell, side in listener.told if cell == warm.cell.id]
    # Also the warm-up may be lost, and is then tried again.
    began = next(at for at, (_, side) in enumerate(told) if side != "warmup")
    assert {side for _, side in told[:began]} == {"warmup"} and told[began - 1] == ("ended", "warmup")
    counted = [s.record for s in warm.samples if s.record.side in COUNTED and s.record.outcome is not Outcome.INFRA]
    assert len(counted) == 10 and all(record.cache_hits == 1 for record in counted)


# Without processes: the law over many orders.

Outcomes = Mapping[tuple[str, Side, int], Outcome]
CELLS = ("a", "b", "c")
HOW = st.sampled_from([Outcome.CLEAN] * 6 + [Outcome.FAILED] * 3 + [Outcome.OOM, Outcome.WRONG])


def cell(name: str) -> Cell:
    return Cell(name, (("torch", name),), EnvironmentRequest((f"torch=={name}",)), Condition.of({"threads": 2}))


def verdicts(outcomes: Outcomes, design: Design, executor: Scrambled) -> list[Verdict]:
    """What the engine's measuring comes to where the trials come to these outcomes."""

    def run(bench: Bench, attempt: Attempt, place: Place) -> TrialRecord:
        slot = attempt.slot
        outcome = outcomes.get((slot.cell.id, slot.side, slot.index), Outcome.CLEAN)
        record = TrialRecord(
            new_trial_id(), slot.cell.id, "hash", slot.cell.condition, slot.side, slot.index, outcome, seconds=1.0
        )
        bench.store.put_trial(record, slot.cell.key, bench.run_id, slot.index, "hash")
        return record

    executor = replace(executor, run=run)
    cells = tuple(map(cell, CELLS))
    matrix = Matrix("m", Path("m.yaml"), cells, ("torch",), ReproducerChoice("x"), design.trials, design.controls)
    python = Interpreter(Path("/python"), "3.12.1", "cpython", "linux-x86_64")
    states = []
    for each in cells:
        lock = Lock("", python, (), None, each.id)
        states.append(CellState(each, lock, Environment(lock, Path("/nowhere"), Path("/python"), "", 0.0)))
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.sqlite") as store:
        store.put_cells(cells, "m")
        run_id = store.start_run("m", "m.yaml", [], 0, {})
        reproducer = Reproducer("x", ("python",), (), "hash", protocol=True)
        chosen = Settings(Path(folder), executor=executor)
        bench = Bench(matrix, chosen, store, run_id, reproducer, threading.Event(), lambda _: None)

        def verdict(state: CellState) -> Verdict:
            return judging.verdict(state, states, matrix, design, True)

        Measuring(bench, design, states, Reporter(), verdict, lambda _: False).run()
        for state in states:
            # What the states have is what the store has: nothing is dropped, and nothing there twice.
            stored = store.trials(state.cell.key, state.cell.id, "hash")
            assert sorted(s.record.id for s in stored) == sorted(s.record.id for s in state.samples)
        return [replace(verdict(state), infra=0) for state in states]


OUTCOMES = st.dictionaries(st.tuples(st.sampled_from(CELLS), st.sampled_from(COUNTED), st.integers(0, 7)), HOW)
ONE_BY_ONE = Scrambled(room=1, processes=1, lost=0.0)


@settings(max_examples=25, deadline=None)
@given(OUTCOMES, st.integers(0, 2**16), st.integers(2, 40), st.sampled_from([0.0, 0.4]))
def test_the_same_outcomes_are_the_same_verdicts(outcomes: Outcomes, seed: int, room: int, lost: float) -> None:
    design = Design(trials=8, controls=4, solo=2, stop_early=False)
    many = Scrambled(seed=seed, room=room, processes=2, lost=lost)
    assert verdicts(outcomes, design, many) == verdicts(outcomes, design, ONE_BY_ONE)


@settings(max_examples=25, deadline=None)
@given(OUTCOMES, st.integers(0, 2**16), st.integers(2, 40))
def test_no_order_makes_or_hides_a_race_where_it_stops_early(outcomes: Outcomes, seed: int, room: int) -> None:
    """What runs beside the trial that ends a cell is surplus: it may only say more of what is certain already."""
    design = Design(trials=8, controls=4, solo=2)
    many = verdicts(outcomes, design, Scrambled(seed=seed, room=room, processes=2))
    one = verdicts(outcomes, design, ONE_BY_ONE)
    assert [(each.headline, each.stopped_at) for each in many] == [(each.headline, each.stopped_at) for each in one]


def test_what_ended_before_an_exception_is_kept(three: World) -> None:
    """Also what had ended and was held back by the executor, and the loss that ends the run."""

    class Losing(Scrambled):
        def loses(self, attempt: Attempt) -> bool:
            return attempt.slot.cell.id.startswith("torch-2.11.0")

    with pytest.raises(InfrastructureError, match="its node failed"):
        measured(three, executor=Losing(seed=1))
    rows = three.trials(counted=False)
    assert sum(row[4] == "infra" for row in rows) >= 3 and not three.processes()
    results, _ = measured(three)
    assert [result.verdict.headline.value for result in results][::2] == ["RACE", "FULL"]
    kept = {row[0] for row in rows}
    assert kept <= {row[0] for row in three.trials(counted=False)}
    assert len(set(placed(three.trials()))) == len(three.trials())


@dataclass(frozen=True)
class Elsewhere(Scrambled):
    """On many hosts, where nothing of some cells ever comes to a result."""

    cells: tuple[str, ...] = ()

    @property
    def sets_aside(self) -> bool:
        return True

    def loses(self, attempt: Attempt) -> bool:
        return attempt.slot.cell.id.startswith(self.cells)


def test_a_cell_whose_trials_are_given_up_is_set_aside_and_the_others_are_measured(three: World) -> None:
    with pytest.raises(InfrastructureError, match=r"set aside, .*\n  torch-2.11.0.*its node failed\n  .*same command"):
        measured(three, executor=Elsewhere(seed=1, cells=("torch-2.11.0",)))
    keys = Counter(key for _, key, *_ in three.trials())
    assert list(keys.values()) == [10, 10], "two cells have all of their trials"
    results, _ = measured(three)
    assert [result.verdict.headline.value for result in results][::2] == ["RACE", "FULL"]
    assert len(set(placed(three.trials()))) == len(three.trials()) == 30


def test_where_nothing_comes_to_a_result_the_run_ends(three: World) -> None:
    with pytest.raises(InfrastructureError, match=r"its node failed\n  2 cells before it came to nothing, too"):
        measured(three, executor=Elsewhere(seed=1, cells=("torch",)))
    assert not three.trials() and not three.processes()


def test_the_stop_event_ends_all_that_runs(three: World) -> None:
    three.torch("2.14.1", seconds=30)
    stop = threading.Event()

    class Stopping(Scrambled):
        def loses(self, attempt: Attempt) -> bool:
            if attempt.slot.cell.id.startswith("torch-2.14.1"):
                threading.Timer(1.0, stop.set).start()
            return False

    with pytest.raises(Stopped):
        measured(three, stop=stop, executor=Stopping())
    assert not three.processes()
    assert list((three.store / "trials").iterdir()) == []

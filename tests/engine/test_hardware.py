"""A cell's trials on several GPU models or drivers: what counts, what is tried again, what is compared.

No host of the tests has such GPUs, so that the slots here hand back records that say that they ran on them; everything
else is the engine's own.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.engine import judging
from bisect_env.engine.attempt import Attempt
from bisect_env.engine.local import Local
from bisect_env.engine.measuring import RETRIES, Measuring
from bisect_env.engine.progress import Reporter
from bisect_env.engine.settings import Settings
from bisect_env.engine.state import CellState
from bisect_env.engine.trialing import Bench
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import Cell, Condition, Matrix, ReproducerChoice
from bisect_env.store.database import Store
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Device, Outcome, Reproducer, Side, StepTime, TrialRecord
from bisect_env.verdicts.hardware import Hardware
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.records import Headline
from bisect_env.verdicts.samples import counts
from tests.store.samples import A2, H200, cell, environment, lock, trial

NEWER = replace(H200, driver="590.1")
PLAN = Design(trials=4, controls=4, solo=0)
HERE = Reproducer("race", ("python", "race.py"), (), "hash", True)


@dataclass(frozen=True)
class Cluster(Local):
    """Slots whose attempts run on the next GPU of a script; then, and where they are to, on what they are asked for."""

    script: deque[Device] = field(default_factory=deque)
    obedient: bool = True
    room: int = 3
    tried: list[tuple[Attempt, Device]] = field(default_factory=list)

    def slots(self, bench: Bench, cells: Sequence[Cell]) -> Any:
        return Scripted(self, bench)


@dataclass
class Scripted:
    """As :class:`~bisect_env.engine.executor.Slots`."""

    cluster: Cluster
    bench: Bench
    running: dict[Any, TrialRecord] = field(default_factory=dict)
    taken: set[Any] = field(default_factory=set)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert error is not None or not self.running, "every attempt was waited for"

    @property
    def free(self) -> bool:
        return len(self.taken) < self.cluster.room

    def start(self, task: Any, attempt: Attempt) -> None:
        cluster, slot = self.cluster, attempt.slot
        device = cluster.script.popleft() if cluster.script else H200
        if cluster.obedient and attempt.hardware is not None:
            device = next(each for each in (H200, A2, NEWER) if Hardware.of([each]) == attempt.hardware)
        cluster.tried.append((attempt, device))
        number = len(cluster.tried)
        record = trial(f"{self.bench.run_id}-{number}", side=slot.side, devices=(device,), started=float(number))
        self.bench.store.put_trial(record, slot.cell.key, self.bench.run_id, slot.index, "hash")
        self.taken.add(task)
        self.running[task] = record

    def wait(self) -> tuple[Any, TrialRecord]:
        task = next(iter(self.running))
        return task, self.running.pop(task)

    def give_back(self, task: Any) -> None:
        self.taken.remove(task)

    def left(self) -> Iterator[tuple[Any, TrialRecord]]:
        return iter(())


class Told(Reporter):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.ends: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def trial_ended(self, cell: Cell, record: TrialRecord, note: str) -> None:
        self.ends.append(note)


def measured(tmp_path: Path, executor: Cluster, *states: CellState, alike: bool = False) -> Told:
    """The cells' trials on these slots, after what the store holds."""
    told = Told()
    with Store(tmp_path / "store.sqlite") as store:
        cells = tuple(state.cell for state in states)
        matrix = Matrix("m", Path("m.yaml"), cells, ("torch",), ReproducerChoice("race"), 4, 4, solo=0)
        run_id = store.start_run("m", "m.yaml", [], 0, {}, 4, 4)
        settings = Settings(root=tmp_path, executor=executor)
        bench = Bench(matrix, settings, store, run_id, HERE, threading.Event(), told.note)
        for state in states:
            state.lock, state.environment = lock(), environment()
            state.take(store.trials(state.cell.key, "aaaa1111", "hash"))

        def verdict(found: CellState) -> Any:
            return judging.verdict(found, states, matrix, PLAN, True)

        Measuring(bench, PLAN, states, told, verdict, lambda _: False, alike=alike).run()
    return told


def test_trials_on_other_gpus_are_kept_and_run_again_where_the_first_one_ran(tmp_path: Path) -> None:
    executor = Cluster(deque([H200, A2, NEWER]))
    state = CellState(cell())
    told = measured(tmp_path, executor, state)
    assert state.hardware == Hardware.of([H200])
    assert [counts(sample.record) for sample in state.samples] == [True] * 8
    assert [sample.record.devices for sample in state.elsewhere] == [(A2,), (NEWER,)]
    assert sorted(note for note in told.ends if note) == [
        "not counted: it ran on NVIDIA A2, driver 580.159.04; this cell's trials are of NVIDIA H200, driver 580.159.04",
        "not counted: it ran on NVIDIA H200, driver 590.1; this cell's trials are of NVIDIA H200, driver 580.159.04",
    ]
    places = [(sample.record.side, sample.block) for sample in state.samples]
    assert sorted(places) == sorted((side, block) for side in (Side.THREADS, Side.SERIAL) for block in range(4))
    assert all(attempt.hardware == state.hardware for attempt, _ in executor.tried[3:])


def test_what_is_not_to_be_had_any_more_ends_the_cell_and_not_the_run(tmp_path: Path) -> None:
    executor = Cluster(deque([H200, *[A2] * 50]), obedient=False)
    state = CellState(cell())
    told = measured(tmp_path, executor, state)
    assert [sample.record.devices for sample in state.samples] == [(H200,)]
    # Each slot that was under way is tried so often and no slot is begun after the first was given up.
    assert len(state.elsewhere) <= executor.room * RETRIES
    [note] = told.notes
    assert "not measured any further in this run: 3 attempts at a trial ran on something else" in note

    # The next run goes on with the group that has most by then.
    again = CellState(cell())
    measured(tmp_path, Cluster(deque([H200]), obedient=True), again)
    assert again.hardware == Hardware.of([A2]) and sum(counts(sample.record) for sample in again.samples) >= 8


def test_cells_that_are_compared_are_measured_on_one_hardware(tmp_path: Path) -> None:
    """Each by itself would be measured on what its own first trial ran on."""
    for alike, kinds in ((False, 2), (True, 1)):
        folder = tmp_path / str(alike)
        folder.mkdir()
        states = [CellState(cell("baseline")), CellState(cell("candidate", torch="2.14.1"))]
        executor = Cluster(deque([H200, A2, H200, A2, H200, A2]), room=6)
        measured(folder, executor, *states, alike=alike)
        assert len({state.hardware for state in states}) == kinds
        ran = {Hardware.of(s.record.devices) for state in states for s in state.samples}
        assert len(ran) == kinds and all(len(state.samples) == 8 for state in states)


def test_a_comparison_that_can_go_on_nowhere_says_so(tmp_path: Path) -> None:
    states = [CellState(cell("baseline")), CellState(cell("candidate", torch="2.14.1"))]
    executor = Cluster(deque([H200, *[A2] * 50]), obedient=False, room=1)
    with pytest.raises(InfrastructureError, match=r"3 attempts at a trial ran on something else .* NVIDIA H200"):
        measured(tmp_path, executor, *states, alike=True)
    assert sum(len(state.samples) for state in states) == 1 and sum(len(state.elsewhere) for state in states) == 3


def test_one_hardware_is_measured_as_ever(tmp_path: Path) -> None:
    state = CellState(cell())
    told = measured(tmp_path, Cluster(), state)
    assert len(state.samples) == 8 and state.elsewhere == [] and not any(told.ends) and not told.notes


devices = st.sampled_from([(), (H200,), (A2,), (NEWER,)])
stored = st.lists(st.builds(lambda outcome, at: (outcome, at), st.sampled_from([*Outcome]), devices), max_size=10)


@given(stored, st.sampled_from([None, (), (H200,), (A2, H200)]))
def test_a_state_never_counts_two_hardwares_however_its_trials_come(
    found: list[tuple[Outcome, tuple[Device, ...]]], here: tuple[Device, ...] | None
) -> None:
    samples = [
        StoredTrial(trial(f"t{number}", outcome=outcome, devices=at, started=float(number)), number, "r")
        for number, (outcome, at) in enumerate(found)
    ]
    half = len(samples) // 2
    state = CellState(cell())
    state.take(samples[:half], None if here is None else Hardware.of(here))
    fixed = state.hardware
    for sample in samples[half:]:
        state.keep(sample)
    assert len({Hardware.of(s.record.devices) for s in state.samples if counts(s.record)}) <= 1
    assert sorted(s.record.id for s in (*state.samples, *state.elsewhere)) == sorted(s.record.id for s in samples)
    assert fixed is None or state.hardware == fixed, "what a cell is measured on does not change under way"
    if here is not None and fixed is not None:
        assert set(fixed.gpus) <= set(Hardware.of(here).gpus)


@pytest.mark.parametrize("reference_on", [H200, A2], ids=["same", "other"])
def test_throughput_is_compared_on_one_model_only(reference_on: Device) -> None:
    """The reference's own trials may be of another model: only those beside the cell's and on its model compare."""

    def rates(of: str, device: Device, rate: int, run: str) -> list[StoredTrial]:
        step = (StepTime("w0", rate, 1.0, 10.0, True),)
        return [
            StoredTrial(replace(trial(f"{of}{run}{n}", devices=(device,), started=n), steps=step), n, run)
            for n in range(6)
        ]

    slow, fast = replace(cell("slow"), condition=Condition.of({"a": 1})), cell("fast", torch="2.9.1")
    fast = replace(fast, condition=slow.condition)
    matrix = Matrix(
        "m", Path("m.yaml"), (slow, fast), ("torch",), ReproducerChoice("race"), 6, 0, solo=0,
        reference=(("torch", "2.9.1"),),
    )  # fmt: skip
    design = Design(6, 0, solo=0)
    own, other = CellState(slow, lock(), environment()), CellState(fast, lock(), environment())
    own.take(rates("slow", H200, 500, "r"))
    other.take([*rates("fast", reference_on, 1000, "r"), *rates("more", A2, 9000, "earlier")])
    found = judging.verdict(own, [own, other], matrix, design, True)
    if reference_on is H200:
        assert found.headline is Headline.SLOW and found.throughput and found.throughput.ratio == pytest.approx(0.5)
    else:
        assert found.throughput and found.throughput.ratio is None

"""What an interrupted command left: every result is stored once, what runs is waited for, and nothing is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.cluster import job, pending, watching
from bisect_env.cluster.pending import Array, Pending
from bisect_env.cluster.settings import SlurmSettings
from bisect_env.cluster.taking_in import take_in
from bisect_env.engine import left_over
from bisect_env.errors import InfrastructureError
from bisect_env.store.database import Store
from bisect_env.trials.records import Device, Outcome, Side
from bisect_env.trials.runner import Stopped
from tests.cluster.pretended import Pretended
from tests.cluster.test_flight import ENDED, result_of
from tests.store.samples import H200

TOKEN = "0a1b2c3d"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.sqlite") as opened:
        opened.start_run("m", "m.yaml", (), 0, {}, run_id="run")
        yield opened


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretended:
    for name in ("SETTLE", "SOON", "LATE"):
        monkeypatch.setattr(watching, name, 0.0)
    return Pretended(tmp_path / "slurm", monkeypatch)


@pytest.fixture
def left(tmp_path: Path, slurm: Pretended) -> Pending:
    """Two jobs of an array that an earlier command submitted; the first has a result, and both are in the queue."""
    found = pending.new(tmp_path)
    found.add(Array(TOKEN, (0, 1)))
    found.numbered(TOKEN, "7")
    for index in (0, 1):
        (found.folder / f"{TOKEN}-{index}").mkdir()
        (slurm.home / "jobs" / f"7_{index}").write_text(f"bisect-env-{TOKEN}|RUNNING|node1|None")
    job.write_result(result_of("u0"), found.folder / f"{TOKEN}-0")
    return found


@pytest.fixture
def take(tmp_path: Path, store: Store) -> Callable[..., int]:
    def call(
        stop: threading.Event | None = None,
        leave: bool = False,
        said: list[str] | None = None,
        settings: SlurmSettings = SlurmSettings(),  # noqa: B008 - frozen
    ) -> int:
        tell = [].append if said is None else said.append
        return take_in(settings, tmp_path, store, tell, stop or threading.Event(), lambda _: leave)

    return call


def stored(store: Store) -> list[str]:
    return [sample.record.id for sample in store.trials_of_cell(result_of("u0").cell_key)]


def ends(left: Pending, index: int) -> None:
    job.write_ended(ENDED, left.folder / f"{TOKEN}-{index}")


def test_results_are_stored_and_the_folder_goes(left: Pending, take: Callable[..., int], store: Store) -> None:
    job.write_result(result_of("u1", block=1), left.folder / f"{TOKEN}-1")
    ends(left, 0)
    ends(left, 1)
    assert take() == 2
    assert stored(store) == ["trial-u0", "trial-u1"]
    assert not left.folder.exists()
    assert take() == 0


def test_what_runs_is_waited_for(left: Pending, take: Callable[..., int], store: Store) -> None:
    def goes_on() -> None:
        job.write_result(result_of("u1", block=1), left.folder / f"{TOKEN}-1")
        ends(left, 0)
        ends(left, 1)

    timer = threading.Timer(0.6, goes_on)
    timer.start()
    assert take() == 2
    timer.join()
    assert stored(store) == ["trial-u0", "trial-u1"]


def test_what_is_stored_already_is_not_stored_again(left: Pending, take: Callable[..., int], store: Store) -> None:
    """Killed after a result was stored, and before its job was forgotten; and a second job of the same item."""
    sample = result_of("u0").sample
    store.put_trial(sample.record, result_of("u0").cell_key, sample.run_id, sample.block, sample.record.reproducer)
    job.write_result(result_of("again"), left.folder / f"{TOKEN}-1")
    ends(left, 0)
    ends(left, 1)
    assert take() == 0
    assert stored(store) == ["trial-u0"]


@pytest.mark.parametrize(("first", "number"), [(Outcome.INFRA, 2), (Outcome.CLEAN, 1), (Outcome.HANG, 1)])
def test_only_one_trial_of_a_place_counts(
    left: Pending, take: Callable[..., int], store: Store, first: Outcome, number: int
) -> None:
    job.write_result(result_of("u0", outcome=first), left.folder / f"{TOKEN}-0")
    job.write_result(result_of("again"), left.folder / f"{TOKEN}-1")
    ends(left, 0)
    ends(left, 1)
    assert take() == number


@pytest.mark.parametrize(("when", "devices", "number"), [(60.0, (), 0), (-60.0, (), 1), (60.0, (H200,), 1)])
def test_what_another_run_measured_in_its_place_since_counts_instead(
    left: Pending, take: Callable[..., int], store: Store, when: float, devices: tuple[Device, ...], number: int
) -> None:
    """A run on this host that did not wait; not an earlier one, nor one on another GPU."""
    run = store.run("run")
    assert run is not None
    store.start_run("m", "m.yaml", (), 0, {}, run_id="here")
    found = result_of("local")
    record = replace(found.sample.record, started=run.started + when, devices=devices)
    store.put_trial(record, found.cell_key, "here", found.sample.block, record.reproducer)
    ends(left, 0)
    ends(left, 1)
    assert take() == number


def test_rounds_of_two_jobs_are_sessions_of_their_own(left: Pending, take: Callable[..., int], store: Store) -> None:
    for index in (0, 1):
        job.write_result(result_of(f"rounds-{index}", side=Side.ROUNDS), left.folder / f"{TOKEN}-{index}")
        ends(left, index)
    assert take() == 3
    samples = store.trials_of_cell(result_of("u0").cell_key)
    assert len({sample.block for sample in samples if sample.record.side is Side.ROUNDS}) == 2


def test_a_job_that_slurm_no_longer_knows_leaves_what_it_had(
    left: Pending, slurm: Pretended, take: Callable[..., int], store: Store
) -> None:
    slurm.becomes("7_0", "GONE")
    slurm.becomes("7_1", "GONE")
    assert take() == 1
    assert stored(store) == ["trial-u0"]
    assert not left.folder.exists()


def test_what_a_store_knew_that_was_removed_is_dropped(left: Pending, take: Callable[..., int], store: Store) -> None:
    other = result_of("u0")
    other = replace(other, sample=replace(other.sample, run_id="unknown"))
    job.write_result(other, left.folder / f"{TOKEN}-0")
    ends(left, 0)
    ends(left, 1)
    assert take() == 0
    assert not left.folder.exists()


def test_an_array_that_never_came_into_the_queue(
    tmp_path: Path, slurm: Pretended, take: Callable[..., int], store: Store
) -> None:
    """Killed between the note and sbatch."""
    found = pending.new(tmp_path)
    found.add(Array(TOKEN, (0,)))
    (found.folder / f"{TOKEN}-0").mkdir()
    assert take() == 0
    assert not pending.left(tmp_path)


@pytest.mark.parametrize("leave", [True, False])
def test_interrupted_again(left: Pending, slurm: Pretended, take: Callable[..., int], leave: bool) -> None:
    stop, said = threading.Event(), list[str]()
    stop.set()
    with pytest.raises(Stopped):
        take(stop, leave, said)
    assert set(slurm.jobs().values()) == ({"RUNNING"} if leave else {"CANCELLED"})
    assert bool(pending.left(left.folder.parent.parent)) is leave
    assert any("scancel 7" in text for text in said) is leave


def test_cancelled_at_last_what_had_ended_is_stored(left: Pending, take: Callable[..., int], store: Store) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        take(stop)
    assert stored(store) == ["trial-u0"]
    assert not left.folder.exists()


@pytest.mark.parametrize("leave", [True, False])
def test_interrupted_with_jobs_of_several_commands(
    left: Pending, tmp_path: Path, slurm: Pretended, take: Callable[..., int], store: Store, leave: bool
) -> None:
    other = pending.new(tmp_path)
    other.add(Array("ffffffff", (0,)))
    other.numbered("ffffffff", "8")
    (other.folder / "ffffffff-0").mkdir()
    (slurm.home / "jobs" / "8_0").write_text("bisect-env-ffffffff|RUNNING|node1|None")
    job.write_result(result_of("u1", block=1), other.folder / "ffffffff-0")
    stop, said = threading.Event(), list[str]()
    stop.set()
    with pytest.raises(Stopped):
        take(stop, leave, said)
    assert set(slurm.jobs().values()) == ({"RUNNING"} if leave else {"CANCELLED"})
    assert len(pending.left(tmp_path)) == (2 if leave else 0)
    if leave:
        assert any("scancel 7" in text for text in said) and any("scancel 8" in text for text in said)
    else:
        assert sorted(stored(store)) == ["trial-u0", "trial-u1"]


def test_jobs_that_never_start_are_given_up(left: Pending, slurm: Pretended, take: Callable[..., int]) -> None:
    ends(left, 0)
    slurm.becomes("7_1", "PENDING", reason="PartitionDown")
    said = list[str]()
    impatient = SlurmSettings().model_copy(update={"patience": 0})
    timer = threading.Timer(10, (stop := threading.Event()).set)
    timer.start()
    assert take(stop, said=said, settings=impatient) == 1
    timer.cancel()
    assert slurm.jobs()["7_1"] == "CANCELLED" and not left.folder.exists()
    assert any("was not started within" in text and "PartitionDown" in text for text in said)


def test_scancel_that_does_not_answer_is_asked_again(left: Pending, slurm: Pretended, take: Callable[..., int]) -> None:
    ends(left, 0)
    slurm.becomes("7_1", "PENDING", reason="PartitionDown")
    scancel = slurm.home / "bin" / "scancel"
    works = scancel.read_text()
    scancel.write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n")
    timer = threading.Timer(0.7, lambda: scancel.write_text(works))
    timer.start()
    assert take(settings=SlurmSettings().model_copy(update={"patience": 0})) == 1
    timer.join()
    assert slurm.jobs()["7_1"] == "CANCELLED"


def test_a_note_that_cannot_be_read_is_named(left: Pending, take: Callable[..., int]) -> None:
    (left.folder / left_over.FILE).write_text("{")
    with pytest.raises(InfrastructureError, match=r"pending\.json(.|\n)*squeue --me"):
        take()


def test_notes_of_jobs_come_back_as_they_were(tmp_path: Path) -> None:
    found = pending.new(tmp_path)
    array = Array(TOKEN, (0, 1, 2))
    found.add(array)
    found.add(Array("ffffffff", (0,)))
    found.numbered(TOKEN, "12")
    found.ended([(TOKEN, 1), ("ffffffff", 0)])
    [again] = pending.left(tmp_path)
    assert again.arrays == (replace(array, open=(0, 2), number="12"),)
    again.ended([(TOKEN, 0), (TOKEN, 2)])
    assert pending.left(tmp_path) == ()

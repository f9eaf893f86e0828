"""The executor over pretended commands: what it makes of the last words of jobs that are more than attempts."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.cluster import job, pending, watching
from bisect_env.cluster.job import JobSpec
from bisect_env.cluster.settings import slurm_settings
from bisect_env.cluster.slurm import Slurm
from bisect_env.engine.grouping import Entrant, Session
from bisect_env.engine.progress import Reporter
from bisect_env.engine.settings import Settings
from bisect_env.engine.trialing import Bench
from bisect_env.environments.records import Environment, Reason, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.matrix.cells import Cell, Condition, Limits, Matrix, ReproducerChoice
from bisect_env.store.database import Store
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Side
from bisect_env.trials.runner import Stopped
from tests.cluster.pretended import Pretended
from tests.cluster.test_flight import ATTEMPT, CELL, ENDED, LOCK, NOTHING, result_of

ROUNDS = replace(CELL, id="rounds", condition=Condition.of({"device": "cpu", "rounds": 4}))


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretended:
    for name in ("SETTLE", "SOON", "LATE", "CERTAIN"):
        monkeypatch.setattr(watching, name, 0.0)
    return Pretended(tmp_path / "slurm", monkeypatch)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    matrix = Matrix("m", Path("/m"), (ROUNDS,), (), ReproducerChoice(""))
    with Store(tmp_path / "store.sqlite") as store:
        store.start_run("m", "m.yaml", (), 0, {}, run_id="run")
        yield Bench(matrix, Settings(tmp_path), store, "run", NOTHING, threading.Event(), lambda _: None)


@contextmanager
def node(root: Path, does: Callable[[JobSpec, Path], None]) -> Iterator[None]:
    """Every job that is submitted is done at once in this way."""
    stop = threading.Event()

    def work() -> None:
        done: set[Path] = set()
        while not stop.wait(0.05):
            for path in set(root.glob("cluster/*/*/job.json")) - done:
                done.add(path)
                does(job.read(path.parent), path.parent)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def entrant() -> Entrant:
    sample = result_of("earlier").sample
    return Entrant(
        ROUNDS, ATTEMPT.environment, (replace(sample, record=replace(sample.record, condition=ROUNDS.condition)),)
    )


def timed(spec: JobSpec, folder: Path, fits: bool = True) -> None:
    found = result_of("rounds-1", side=Side.ROUNDS)
    if fits:
        job.write_result(replace(found, cell_key=ROUNDS.key), folder)
    job.write_ended(replace(ENDED, fits=fits), folder)


def test_rounds_are_a_job_and_its_records_are_stored(tmp_path: Path, pretended: Pretended, bench: Bench) -> None:
    kept: list[tuple[Cell, StoredTrial]] = []
    specs: list[JobSpec] = []

    def does(spec: JobSpec, folder: Path) -> None:
        specs.append(spec)
        timed(spec, folder)

    with node(tmp_path, does):
        Slurm(slurm_settings({})).rounds(bench, [entrant()], Reporter(), lambda *each: kept.append(each))
    assert [[each.cell for each in spec.entrants] for spec in specs] == [[ROUNDS]]
    [(cell, sample)] = kept
    assert cell == ROUNDS
    assert sample.block > 2**20
    assert [each.block for each in bench.store.trials_of_cell(ROUNDS.key)] == [sample.block]
    assert not pending.left(tmp_path)


@pytest.mark.parametrize("fits", [True, False])
def test_a_session_is_a_job_and_says_whether_it_fits(
    tmp_path: Path, pretended: Pretended, bench: Bench, fits: bool
) -> None:
    kept: list[object] = []
    with node(tmp_path, lambda spec, folder: timed(spec, folder, fits)):
        session = Session(entrant(), ())
        assert Slurm(slurm_settings({})).session(bench, session, Reporter(), lambda *each: kept.append(each)) is fits
    assert len(kept) == int(fits)


@pytest.mark.parametrize("what", ["stands", "cannot be built", "no node can"])
def test_builds(tmp_path: Path, pretended: Pretended, bench: Bench, what: str) -> None:
    standing = Environment(LOCK, Path("/local/e"), Path("/local/e/python"), "", 2.0)
    failed = Unavailable("build", Reason.BUILD, "no compiler")

    def does(spec: JobSpec, folder: Path) -> None:
        found: tuple[Environment | Unavailable, ...] = {"stands": (standing,), "cannot be built": (failed,)}.get(
            what, ()
        )
        whose = "cell" if what == "cannot be built" else "node"
        trouble = None if what == "stands" else job.Trouble(whose, "it is broken")
        job.write_ended(replace(ENDED, environments=found, trouble=trouble, build_seconds=2.0), folder)

    executor = Slurm(slurm_settings({"environments": "/local/e"}))

    def build() -> dict[str, Environment | Unavailable]:
        wanted = {LOCK.address: (LOCK, CELL.request, "label")}
        return executor.build(wanted, bench.settings, bench.store, Uv(), Reporter(), bench.stop, Limits())

    with node(tmp_path, does):
        if what == "no node can":
            with pytest.raises(InfrastructureError, match="it is broken"):
                build()
        else:
            [result] = build().values()
            assert result == (standing if what == "stands" else failed)
    assert (executor.find(LOCK, bench.settings) is not None) is (what == "stands")
    assert not pending.left(tmp_path)


@pytest.mark.parametrize(("lacking", "words"), [("sbatch", "sbatch cannot be found"), ("srun", "srun cannot be found")])
def test_a_host_without_slurm_says_so_and_has_no_folder_of_jobs(
    tmp_path: Path, pretended: Pretended, lacking: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(pretended.home / "bin"))
    (pretended.home / "bin" / lacking).unlink()
    with pytest.raises(BadInput, match=words):
        Slurm(slurm_settings({})).flight(tmp_path, lambda _: None)
    assert not (tmp_path / "cluster").exists()


def test_an_installation_without_submitit_says_what_to_install(
    tmp_path: Path, pretended: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(BadInput, match=r"pip install 'bisect-env\[slurm\]'"):
        Slurm(slurm_settings({})).flight(tmp_path, lambda _: None)
    assert not (tmp_path / "cluster").exists()


@pytest.mark.parametrize("leave", [True, False])
def test_an_interruption_leaves_or_cancels_and_keeps_what_had_ended(
    tmp_path: Path, pretended: Pretended, bench: Bench, leave: bool
) -> None:
    asked: list[str] = []

    def leaves(in_flight: str) -> bool:
        asked.append(in_flight)
        return leave

    slots = Slurm(slurm_settings({"batch": "1"}), leaves).slots(bench, [CELL])
    with pytest.raises(Stopped), slots:
        slots.start("a", ATTEMPT)
        slots.start("b", ATTEMPT)
        threading.Timer(0.5, bench.stop.set).start()
        while True:
            slots.wait()
    assert asked
    assert set(pretended.jobs().values()) == ({"PENDING"} if leave else {"CANCELLED"})
    assert bool(pending.left(tmp_path)) is leave
    assert list(slots.left()) == []


def test_an_attempt_that_no_job_brings_to_a_result_is_infrastructure(
    tmp_path: Path, pretended: Pretended, bench: Bench
) -> None:
    def does(spec: JobSpec, folder: Path) -> None:
        job.write_ended(replace(ENDED, trouble=job.Trouble("cell", "the reproducer's files have changed")), folder)

    with node(tmp_path, does), Slurm(slurm_settings({})).slots(bench, [CELL]) as slots:
        slots.start("a", ATTEMPT)
        task, record = slots.wait()
        slots.give_back(task)
    assert (record.outcome, record.aborted) == ("infra", True)
    assert record.message == "the reproducer's files have changed"
    assert [sample.record.id for sample in bench.store.trials_of_cell(CELL.key)] == [record.id]

"""Work on its way, with what a real Slurm says too rarely: refusals, silence, arrays that may not have arrived."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bisect_env.cluster import asking, job, pending, sending, submitting, watching
from bisect_env.cluster.asking import Group, Work
from bisect_env.cluster.flight import Finished, Flight
from bisect_env.cluster.job import Ended, ItemResult, JobSpec, Trouble
from bisect_env.cluster.settings import SlurmSettings, slurm_settings
from bisect_env.cluster.submitting import LOG, Cluster
from bisect_env.engine.attempt import Attempt
from bisect_env.engine.plan import Slot
from bisect_env.engine.settings import Settings
from bisect_env.engine.trialing import Bench
from bisect_env.environments.records import Environment, Interpreter, Lock, Reason, Unavailable
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, Matrix, ReproducerChoice
from bisect_env.store.database import Store
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Reproducer, Side, TrialRecord
from tests.cluster.pretended import Pretended

LOCK = Lock("", Interpreter(Path("/python"), "3.12", "cpython", "linux"), (), None, "a" * 16)
CELL = Cell("cell", (), EnvironmentRequest(("torch==1",)), Condition.of({"device": "cpu"}), ())
ATTEMPT = Attempt(Slot(CELL, Side.THREADS, 0), Environment(LOCK, Path("/e"), Path("/e/python"), "", 0.0), 60.0)
NOTHING = Reproducer("", (), (), "", protocol=False)
ENDED = Ended("node1", "1_0", None)


@dataclass
class Scene:
    """A flight over pretended commands, and what it has said."""

    flight: Flight
    slurm: Pretended
    folder: Path
    said: list[str] = field(default_factory=list)

    def add(self, count: int = 1, what: str = "env") -> list[str]:
        """Units that are attempts."""
        return [self.flight.add(Work(Group(what, None, None), _spec, ATTEMPT)) for _ in range(count)]

    def step(self) -> list[Finished]:
        """A look at everything."""
        return self.flight.step()

    def folders(self) -> list[Path]:
        """Those of jobs, in order."""
        return sorted((path for path in self.folder.iterdir() if path.is_dir()), key=lambda path: path.name)

    def of(self, unit: str) -> Path:
        """The folder of the last job that holds a unit."""
        holding = [path for path in self.folders() if unit in {item.id for item in job.read(path).items}]
        return max(holding, key=lambda path: (path / job.JOB).stat().st_mtime_ns)

    def result(self, unit: str, folder: Path | None = None) -> None:
        """A node leaves a unit's result."""
        job.write_result(result_of(unit), folder or self.of(unit))

    def runs(self, node: str = "node1") -> None:
        """All waiting jobs are started."""
        for name, state in self.slurm.jobs().items():
            if state == "PENDING":
                self.slurm.becomes(name, "RUNNING", node)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scene]:
    slurm = Pretended(tmp_path / "slurm", monkeypatch)
    for name in ("SETTLE", "SOON", "LATE", "CERTAIN"):
        monkeypatch.setattr(watching, name, 0.0)

    def scene(**values: object) -> Scene:
        settings = slurm_settings(values)
        left = pending.new(tmp_path)
        said: list[str] = []
        flight = Flight(settings, Cluster(settings, left.folder), left, said.append)
        return Scene(flight, slurm, left.folder, said)

    return scene


def _spec(name: str, named: Sequence[tuple[str, Attempt]]) -> JobSpec:
    matrix = Matrix("m", Path("/m"), (), (), ReproducerChoice(""))
    items = tuple(job.item(unit, attempt) for unit, attempt in named)
    return JobSpec(name, "run", Path("/root"), matrix, NOTHING, (), items)


def result_of(unit: str, block: int = 0, side: Side = Side.THREADS, outcome: Outcome = Outcome.CLEAN) -> ItemResult:
    """A record as a node leaves it."""
    record = TrialRecord(f"trial-{unit}", LOCK.address, "r", CELL.condition, side, 0, outcome)
    return ItemResult(unit, CELL.key, StoredTrial(record, block, "run"))


def test_results_come_as_they_are_seen_and_an_ended_job_leaves_nothing(make: Callable[..., Scene]) -> None:
    scene = make(jobs="2", batch="2")
    first, second, third = scene.add(3)
    assert scene.step() == []
    assert [len(job.read(path).items) for path in scene.folders()] == [2, 1]
    scene.runs()
    folder = scene.of(first)
    scene.result(first)
    assert [finished.unit for finished in scene.step()] == [first]
    scene.result(second)
    job.write_ended(ENDED, folder)
    assert [finished.unit for finished in scene.step()] == [second]
    assert folder.exists()  # Whoever is killed before the result is stored finds it there.
    scene.step()
    assert not folder.exists()
    scene.result(third)
    assert [finished.unit for finished in scene.step()] == [third]
    assert pending.left(scene.folder.parent.parent)
    job.write_ended(ENDED, scene.of(third))
    assert scene.flight.settle() == []
    scene.flight.clean()
    assert not scene.folder.exists()
    assert not scene.flight.watch.jobs


def test_a_lost_jobs_item_is_tried_elsewhere_and_its_late_result_ends_it(make: Callable[..., Scene]) -> None:
    scene = make(jobs="2")
    [unit] = scene.add()
    scene.step()
    lost = scene.of(unit)
    scene.runs("node1")
    scene.step()
    scene.slurm.becomes("1_0", "NODE_FAIL", "node1", "NodeDown")
    assert scene.step() == []
    assert any("its node failed on node1 (NodeDown)" in text for text in scene.said)
    scene.step()
    assert "--exclude=node1" in scene.slurm.submitted[1]["script"]
    scene.result(unit, lost)
    assert [finished.unit for finished in scene.step()] == [unit]
    scene.result(unit)
    assert scene.step() == []
    assert scene.flight.settle() == []
    assert scene.slurm.jobs()["2_0"] == "CANCELLED"


def test_given_up_after_three_jobs(make: Callable[..., Scene]) -> None:
    scene = make()
    [unit] = scene.add()
    found: list[Finished] = []
    for number in range(1, 4):
        scene.step()
        (scene.of(unit) / LOG).write_text("python: cannot open shared object file\n")
        scene.runs(f"node{number}")
        scene.step()
        scene.slurm.becomes(f"{number}_0", "GONE")
        found = scene.step()
    assert [finished.unit for finished in found] == [unit]
    assert len(found[0].losses) == 3
    assert "Slurm no longer says why; its log ends: python: cannot open" in found[0].losses[0]


def test_a_node_that_can_run_nothing_is_left_out_for_the_rest(make: Callable[..., Scene]) -> None:
    scene = make(jobs="1", batch="1")
    first, _ = scene.add(2)
    scene.step()
    trouble = Trouble("node", "its NVIDIA driver 470 is too old")
    job.write_ended(replace(ENDED, trouble=trouble), scene.of(first))
    scene.runs("node1")
    scene.step()
    scene.step()
    assert "the node node1 is left out from now on: its NVIDIA driver 470 is too old" in scene.said
    scene.slurm.says("single")
    job.write_ended(replace(ENDED, host="node2", trouble=trouble), scene.of(first))
    assert "--exclude=node1" in scene.slurm.submitted[-1]["script"]
    with pytest.raises(InfrastructureError, match=r"no node is left for a job(.|\n)*node1: its NVIDIA driver"):
        for _ in range(3):
            scene.step()


def test_on_a_single_node_what_was_lost_there_is_tried_there_again(make: Callable[..., Scene]) -> None:
    scene = make()
    scene.slurm.says("single")
    [unit] = scene.add()
    scene.step()
    scene.runs()
    scene.step()
    scene.slurm.becomes("1_0", "PREEMPTED", "node1")
    scene.step()
    scene.step()
    assert scene.slurm.jobs()["2_0"] == "PENDING"
    assert "--exclude" not in scene.slurm.submitted[-1]["script"]
    scene.result(unit)
    assert [finished.unit for finished in scene.step()] == [unit]


@pytest.mark.parametrize("words", ["AssocMaxSubmitJobLimit", "Invalid job array specification"])
def test_a_cluster_that_takes_few_jobs_gets_smaller_arrays_and_waits(
    make: Callable[..., Scene], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    scene = make(jobs="8", batch="1")
    scene.slurm.says("most", f"2 sbatch: error: {words}")
    scene.add(8)
    scene.step()
    assert len(scene.slurm.jobs()) == 8
    assert max(script["script"].count("--array=0-1%") for script in scene.slurm.submitted) == 1
    scene.slurm.says("refusal", "sbatch: error: QOSMaxSubmitJobPerUserLimit")
    monkeypatch.setattr(sending, "AGAIN", 0.3)
    scene.add()
    for name in scene.slurm.jobs():
        scene.slurm.becomes(name, "CANCELLED")
    scene.step()
    scene.step()
    assert any("takes no more jobs of yours now" in text for text in scene.said)
    scene.slurm.no_longer("refusal")
    scene.step()
    assert len(scene.slurm.jobs()) == 8  # It is not asked at every look.
    time.sleep(0.3)
    scene.step()
    assert len(scene.slurm.jobs()) == 16


@pytest.mark.parametrize("arrived", [True, False])
def test_an_array_that_may_have_arrived_is_looked_for_by_its_name(make: Callable[..., Scene], arrived: bool) -> None:
    scene = make()
    scene.slurm.says("refusal", f"{'arrives ' if arrived else ''}Socket timed out on send/recv operation")
    scene.slurm.says("silent")
    [unit] = scene.add()
    scene.step()
    scene.step()
    assert len(scene.slurm.submitted) == 1  # Not again before it is known.
    [left] = pending.left(scene.folder.parent.parent)
    assert [array.number for array in left.arrays] == [""]
    scene.slurm.no_longer("silent")
    scene.slurm.no_longer("refusal")
    scene.step()
    scene.step()
    assert len(scene.slurm.submitted) == (1 if arrived else 2)
    assert len(scene.slurm.jobs()) == 1
    scene.result(unit)
    assert [finished.unit for finished in scene.step()] == [unit]


def test_silence_of_slurm_loses_nothing(make: Callable[..., Scene]) -> None:
    scene = make()
    [unit] = scene.add()
    scene.step()
    scene.runs()
    scene.slurm.says("silent")
    for _ in range(3):
        assert scene.step() == []
    scene.result(unit)
    assert [finished.unit for finished in scene.step()] == [unit]
    assert not any("lost" in text for text in scene.said)


def test_what_slurm_would_never_start_is_cancelled_and_given_up(make: Callable[..., Scene]) -> None:
    scene = make()
    [unit] = scene.add()
    scene.step()
    scene.slurm.becomes("1_0", "PENDING", reason="PartitionTimeLimit")
    scene.step()
    [finished] = scene.step()
    assert finished.unit == unit
    assert "the partition allows no job of so long a time (PartitionTimeLimit)" in finished.losses[0]
    assert scene.slurm.jobs() == {"1_0": "CANCELLED"}


def test_a_job_that_is_not_started_in_time(make: Callable[..., Scene]) -> None:
    scene = make(patience="1")
    scene.add()
    scene.step()
    scene.flight.watch.jobs[0].since -= 61
    scene.step()
    [finished] = scene.step()
    assert "not started within 1 minutes" in finished.losses[0]
    assert "Priority" in finished.losses[0]


def test_cancelling_ends_everything_and_keeps_what_was_there(make: Callable[..., Scene]) -> None:
    scene = make(batch="1")
    first, _, _ = scene.add(3)
    scene.step()
    scene.runs()
    scene.result(first)
    assert [finished.unit for finished in scene.flight.cancel()] == [first]
    scene.flight.clean()
    assert set(scene.slurm.jobs().values()) == {"CANCELLED"}
    assert not scene.folder.exists()


def test_what_cannot_be_cancelled_is_named(make: Callable[..., Scene], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bisect_env.cluster.flight.END", 0.1)
    monkeypatch.setattr("bisect_env.cluster.flight.SLOW", 0.1)
    scene = make()
    scene.add()
    scene.step()
    scene.slurm.says("silent")
    scene.flight.cancel()
    assert any(text.endswith("this cancels them: scancel 1") for text in scene.said)
    assert pending.left(scene.folder.parent.parent)


def test_the_fault_of_one_environment_is_not_another_ones(make: Callable[..., Scene]) -> None:
    scene = make(jobs="1", batch="4")
    [good], [bad] = scene.add(what="good"), scene.add(what="bad")
    scene.step()
    assert scene.of(good) == scene.of(bad)
    trouble = Trouble("cell", "bad: build failed")
    job.write_ended(replace(ENDED, trouble=trouble), scene.of(good))
    assert scene.step() == []
    scene.step()
    scene.result(good)
    job.write_ended(ENDED, scene.of(good))
    assert [finished.unit for finished in scene.step()] == [good]
    scene.step()
    job.write_ended(replace(ENDED, trouble=trouble), scene.of(bad))
    [finished] = scene.step()
    assert (finished.unit, finished.losses) == (bad, ("bad: build failed",) * 2)


def test_an_environment_that_cannot_be_built_is_an_answer(make: Callable[..., Scene]) -> None:
    scene = make()
    unit = scene.flight.add(Work(Group("build", None, None), _spec))
    scene.step()
    failed = Unavailable("build", Reason.BUILD, "no compiler")
    job.write_ended(replace(ENDED, environments=(failed,), trouble=Trouble("cell", "no compiler")), scene.folders()[0])
    [finished] = scene.step()
    assert finished.unit == unit
    assert not finished.losses
    assert finished.ended is not None and finished.ended.environments == (failed,)


@pytest.mark.parametrize("log", [None, f"the node node1 has no /venv/bin/python: {submitting.WITHOUT_PYTHON}"])
def test_a_node_on_which_no_job_begins_does_not_draw_them_all(make: Callable[..., Scene], log: str | None) -> None:
    scene = make(batch=1, jobs=2)
    scene.add(4)
    scene.step()
    scene.runs("node1")
    scene.step()
    for name in scene.slurm.jobs():
        scene.slurm.becomes(name, "FAILED", "node1", "JobLaunchFailure")
    for folder in scene.folders():
        if log is not None:
            (folder / submitting.LOG).write_text(log)
    scene.step()
    scene.step()
    scripts = [call["script"] for call in scene.slurm.submitted]
    assert len(scripts) >= 2 and all("--exclude=node1" in script for script in scripts[1:])
    assert len([text for text in scene.said if "node1 is left out" in text]) == 1
    assert any("on a file system " in text for text in scene.said)


@pytest.mark.parametrize(
    ("state", "apart"), [("OUT_OF_MEMORY", True), ("TIMEOUT", True), ("FAILED", True), ("PREEMPTED", False)]
)
def test_what_may_have_ended_a_shared_job_gets_one_of_its_own(
    make: Callable[..., Scene], state: str, apart: bool
) -> None:
    scene = make(batch=4, jobs=1)
    scene.add(1, "hungry")
    scene.add(1, "innocent")
    scene.step()
    scene.runs("node1")
    scene.step()
    [folder] = scene.folders()
    assert len(job.read(folder).items) == 2
    (folder / LOG).write_text("Killed")
    scene.slurm.becomes("1_0", state, "node1")
    scene.step()
    scene.step()
    assert len(job.read(scene.of("u0")).items) == (1 if apart else 2)


@pytest.mark.parametrize("number", [1, 3])
def test_a_job_that_began_and_failed_leaves_no_node_out(make: Callable[..., Scene], number: int) -> None:
    scene = make(batch=1, jobs=3)
    scene.add(number)
    scene.step()
    scene.runs("node1")
    scene.step()
    for name, folder in zip(scene.slurm.jobs(), scene.folders(), strict=True):
        (folder / submitting.LOG).write_text("Killed")
        scene.slurm.becomes(name, "FAILED", "node1", "NonZeroExitCode")
    scene.step()
    assert sum("a job was lost" in text for text in scene.said) == number
    assert not any("left out" in text for text in scene.said)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("sbatch: error: invalid partition specified: moon", "partition is not set"),
        ("sbatch: error: Invalid account or account/partition combination specified", "sacctmgr show assoc"),
        ("sbatch: error: Batch job submission failed: Requested node configuration is not available", "no node"),
        ("sbatch: error: Batch job submission failed: Invalid generic resource (gres) specification", "0 for none"),
        ("sbatch: error: something new", "man sbatch"),
        ("Batch job submission failed: Required partition not available (inactive or drain)", "sinfo -s"),
        ("sbatch: unrecognized option '--no-such=1'", "extra is 'hold, no-such=1'"),
    ],
)
def test_refusals_are_told_with_what_to_do(make: Callable[..., Scene], said: str, words: str) -> None:
    scene = make(extra={"hold": True, "no-such": "1"})
    scene.slurm.says("refusal", said)
    scene.add()
    with pytest.raises(InfrastructureError) as raised:
        scene.step()
    assert words in str(raised.value) and "wanted:" in str(raised.value)
    assert said.rpartition(": ")[2] in str(raised.value)
    scene.flight.clean()
    assert not pending.left(scene.folder.parent.parent) and not scene.folder.exists()


def test_a_job_is_given_this_python_and_this_environment(
    make: Callable[..., Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSED_ON", "secret")
    monkeypatch.setenv("SBATCH_PARTITION", "theirs")
    monkeypatch.setenv("SBATCH_ACCOUNT", "theirs")
    monkeypatch.setenv("SBATCH_ARRAY_INX", "5-9")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    scene = make(partition="gpu", memory="4G", time="1:00")
    scene.flight.add(Work(Group("env", "gpu", "a100:2"), _spec, ATTEMPT))
    scene.step()
    [call] = scene.slurm.submitted
    script, env = call["script"], call["env"]
    assert isinstance(env, Mapping)
    for line in ("--partition=gpu", "--gpus-per-node=a100:2", "--mem=4G", "--time=1", "--array=0-0%1", "--export=ALL"):
        assert f"#SBATCH {line}\n" in script
    assert f"exec {sys.executable} -u -m bisect_env.cluster.worker {scene.folder}/" in script
    assert "srun" not in script
    assert "secret" not in script
    assert env["PASSED_ON"] == "secret"
    assert not {"SBATCH_PARTITION", "SBATCH_ARRAY_INX", "CUDA_VISIBLE_DEVICES"} & set(env)
    assert env["SBATCH_ACCOUNT"] == "theirs"  # Nothing was said of an account.


def test_gpus_and_partition_of_a_cell() -> None:
    def cell(**condition: str | int) -> Cell:
        return replace(CELL, condition=Condition.of(condition))

    settings = SlurmSettings(partition="all")
    assert asking.gpus_of(settings, cell(device="cpu")) is None
    assert asking.gpus_of(settings, cell(device="auto")) == "1"
    assert asking.gpus_of(settings, cell(gpus=4)) == "4"
    assert asking.gpus_of(slurm_settings({"gpus": "a100:2"}), cell(gpus=4)) == "a100:2"
    assert asking.gpus_of(slurm_settings({"gpus": "0"}), cell()) is None
    assert asking.partition_of(settings, cell()) == "all"
    assert asking.partition_of(settings, cell(partition="b")) == "b"
    assert asking.partition_of(SlurmSettings(), cell()) is None


def test_rounds_of_two_jobs_never_have_the_same_number() -> None:
    sample = result_of("u0").sample
    rounds = replace(sample, record=replace(sample.record, side=Side.ROUNDS))
    jobs = ["00000001-0", "00000001-1", "00000002-0", "ffffffff-199"]
    blocks = {asking.placed(replace(rounds, block=block), name).block for name in jobs for block in (0, 1, 200)}
    assert len(blocks) == 12
    assert max(blocks) < 2**53
    assert asking.placed(sample, jobs[0]) == sample


def test_a_job_of_attempts_holds_their_locks_whole(tmp_path: Path) -> None:
    locks = [replace(LOCK, text=f"torch=={n} --hash=sha256:0", address=str(n) * 16) for n in (1, 2)]
    attempts = [replace(ATTEMPT, environment=replace(ATTEMPT.environment, lock=lock)) for lock in locks]
    matrix = Matrix("m", Path("/m"), (CELL,), (), ReproducerChoice(""))
    with Store(tmp_path / "store.sqlite") as store:
        bench = Bench(matrix, Settings(tmp_path), store, "r", NOTHING, threading.Event(), print)
        works = [asking.attempt_work(bench, SlurmSettings(), {}, attempt) for attempt in attempts]
        spec = works[0].spec("job", [("u0", attempts[0]), ("u1", attempts[1])])
    assert [wanted.lock for wanted in spec.wanted] == locks
    assert [item.attempt.environment.lock.address for item in spec.items] == [lock.address for lock in locks]
    assert asking.kin(works[0].group) == asking.kin(works[1].group)
    own = SlurmSettings(environments="/local")
    assert asking.kin(asking.attempt_work(bench, own, {}, attempts[0]).group) != asking.kin(
        asking.attempt_work(bench, own, {}, attempts[1]).group
    )

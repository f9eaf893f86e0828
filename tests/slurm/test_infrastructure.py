"""What is the cluster's fault is told and tried again elsewhere, and is never an outcome."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_full_disk import mount
from tests.slurm.test_losses import BODY, EVERYWHERE, complete, finished, small
from tests.slurm.world import Cluster, verdicts

__all__ = ["small"]


def not_measured(cluster: Cluster) -> str:
    """The errors of a run that comes to no trial, and says so."""
    done = cluster.world.run("matrix", "matrix.yaml", timeout=200)
    assert done.returncode == 5 and "Traceback" not in done.stderr, done.stdout + done.stderr
    assert "NOT RUN" in done.stdout and not cluster.world.trials() and not cluster.runs("begin")
    cluster.nothing_left()
    return done.stderr


def body(executor: str) -> tuple[str, str]:
    text = "axes: {torch: [2.14.1], transformers: [5.8.1]}\ntrials: 2\ncontrols: 1\nsolo: 0\n"
    return text, executor


def test_what_no_node_has_is_told_in_slurms_words(small: Cluster) -> None:
    small.matrix(*body("{partition: gpu, constraint: nowhere}"))
    assert "Invalid feature specification" in not_measured(small)
    small.matrix(*body("{partition: gpu, gpus: 7}"))
    assert "Requested node configuration is not available" in not_measured(small)
    small.matrix(*body("{partition: moon}"))
    assert "moon" in not_measured(small)


def test_a_job_that_never_starts(small: Cluster) -> None:
    small.matrix(*body("{partition: gpu, patience: 1, extra: {hold: true}}"))
    assert "JobHeldUser" in not_measured(small)


def test_the_time_limit_of_a_job(small: Cluster) -> None:
    small.hold.touch()
    process = small.start()
    small.wait_for(lambda: small.runs("begin"), "no trial begins")
    job = small.runs("begin")[-1]["SLURM_JOB_ID"]
    small.slurm.time_out(job)
    small.slurm.wait(lambda: job not in {each.id for each in small.slurm.jobs()}, "the job is not timed out")
    small.hold.unlink()
    complete(small, *finished(process))


def test_all_jobs_cancelled_by_somebody_else(small: Cluster) -> None:
    process = small.start()
    for _ in range(2):
        seen = len(small.runs("begin"))
        small.wait_for(lambda seen=seen: len(small.runs("begin")) > seen, "no trial begins")
        small.slurm.ask("scancel", "--partition", "gpu")
    complete(small, *finished(process))
    # Slurm ends all processes of a job, the trial's before the worker's, or after it: that is no result.
    infra = [row for row in small.world.trials(counted=False) if row[4] == "infra"]
    assert not infra, infra


def test_a_cell_whose_jobs_are_all_lost_is_set_aside_and_the_others_are_measured(small: Cluster) -> None:
    small.world.torch("2.13.0", seconds=200)
    small.matrix(BODY.replace("2.11.0", "2.13.0"), "{partition: gpu, gpus: 1, jobs: 2, batch: 1}")
    process = small.start()
    deadline = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < deadline:
        for job in slow_jobs(small):
            small.slurm.ask("scancel", "--quiet", job)
        time.sleep(0.5)
    stdout, stderr = finished(process)
    assert process.returncode == 5 and "FULL" in stdout, stdout + stderr
    assert "set aside, and not measured to the end:\n  torch-2.13.0" in stderr and "the job was cancelled" in stderr
    # On a loaded host a job may be cancelled too late: a trial that says nothing for long is a hang of its cell.
    assert Counter(row[4] for row in small.world.trials() if row[4] != "hang") == {"clean": 8}
    small.nothing_left()


def slow_jobs(cluster: Cluster) -> set[str]:
    """Running jobs with a trial under way for some seconds."""
    now, ended = time.time(), {run["pid"] for run in cluster.runs()}
    begun = (run for run in cluster.runs("begin") if run["pid"] not in ended and now - run["t"] > 3)
    return {run["SLURM_JOB_ID"] for run in begun}


def test_what_is_cancelled_again_and_again_is_given_up_and_never_an_outcome(small: Cluster) -> None:
    small.matrix(*body("{partition: gpu, jobs: 2}"))
    small.hold.touch()
    process = small.start()
    seen = 0
    while process.poll() is None:
        small.wait_for(
            lambda seen=seen: len(small.runs("begin")) > seen or process.poll() is not None, "no trial begins"
        )
        seen = len(small.runs("begin"))
        small.slurm.ask("scancel", "--partition", "gpu")
    _, stderr = finished(process)
    assert process.returncode == 5 and "the job was cancelled" in stderr, stderr
    assert not small.world.trials()
    assert {outcome for *_, outcome in small.world.trials(counted=False)} == {"infra"}
    small.nothing_left()
    small.hold.unlink()
    stdout, stderr = finished(small.start())
    assert "FULL" in stdout, stdout + stderr
    small.everything_once(3)


def test_partitions_are_rows_of_their_own(small: Cluster) -> None:
    text, executor = body("{partition: first, gpus: 1}")
    small.matrix(f"{text}conditions: {{partition: [first, second]}}\n", executor)
    found = verdicts(small.world.document("matrix.yaml"))
    assert len(found) == 2 and set(found.values()) == {"FULL"}
    assert Counter(run["SLURMD_NODENAME"] for run in small.runs()) == {"node1": 3, "node2": 3}


@pytest.fixture
def full(small: Cluster) -> Iterator[Path]:
    """node1, whose own disk has no room."""
    place = small.slurm.disk("node1")
    if trouble := mount(place, "size=4k,nr_inodes=2"):
        pytest.skip(f"no disk can be mounted here: {trouble}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_node_whose_disk_is_full(small: Cluster, full: Path) -> None:
    small.matrix(*body(EVERYWHERE))
    stdout, stderr = finished(small.start())
    assert "FULL" in stdout and "node1" in stderr, stdout + stderr
    assert {run["SLURMD_NODENAME"] for run in small.runs()} == {"node2"}
    small.everything_once(3)
    small.nothing_left()

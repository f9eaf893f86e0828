"""Whatever is killed in the middle: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import signal
import subprocess
import time

import psutil
import pytest

from tests.slurm.world import Cluster

BODY = """\
axes: {torch: [2.11.0, 2.14.1], transformers: [5.8.1]}
trials: 6
controls: 2
solo: 0
stop_early: false
"""
TRIALS = 2 * (6 + 2)
EVERYWHERE = "{partition: gpu, gpus: 1, jobs: 3, batch: 3}"


@pytest.fixture
def small(cluster: Cluster) -> Cluster:
    """A racing and a clean cell on two nodes."""
    cluster.world.torch("2.11.0", race=1.0, seconds=0.7)
    cluster.world.torch("2.14.1", seconds=0.7)
    cluster.world.transformers("5.8.1")
    cluster.matrix(BODY, EVERYWHERE)
    return cluster


def finished(process: subprocess.Popen[str], limit: float = 120) -> tuple[str, str]:
    try:
        stdout, stderr = process.communicate(timeout=limit)
    except BaseException:
        process.kill()
        raise
    assert "Traceback" not in stderr, stderr
    return stdout, stderr


def complete(cluster: Cluster, stdout: str, stderr: str) -> None:
    assert "RACE 6/6" in stdout and "FULL" in stdout, stdout + stderr
    cluster.everything_once(TRIALS)
    cluster.nothing_left()


def workers(cluster: Cluster) -> list[psutil.Process]:
    """The workers themselves, not what starts them: the batch script and srun name the same words."""
    found = []
    for process in cluster.world.processes("bisect_env.cluster.worker"):
        with process.oneshot():
            if "python" in process.name():
                found.append(process)
    return found


def test_a_cancelled_job_and_a_killed_worker(small: Cluster) -> None:
    process = small.start()
    small.wait_for(lambda: small.runs("begin"), "no trial begins")
    job = small.runs("begin")[-1]["SLURM_JOB_ID"]
    small.slurm.ask("scancel", job)
    seen = len(small.runs("begin"))
    small.wait_for(lambda: len(small.runs("begin")) > seen and workers(small), "no further trial begins")
    workers(small)[0].kill()
    complete(small, *finished(process))


def test_a_slurmd_that_dies_and_comes_back(small: Cluster) -> None:
    process = small.start()
    small.wait_for(lambda: small.runs("begin"), "no trial begins")
    node = small.runs("begin")[-1]["SLURMD_NODENAME"]
    small.slurm.stop_node(node)
    time.sleep(2)
    small.slurm.start_node(node)
    complete(small, *finished(process))


def test_a_node_that_falls(small: Cluster) -> None:
    process = small.start()
    small.wait_for(lambda: small.runs("begin"), "no trial begins")
    node = small.runs("begin")[-1]["SLURMD_NODENAME"]
    small.slurm.fell(node)
    complete(small, *finished(process))
    assert {run["SLURMD_NODENAME"] for run in small.runs()} - {node}


def test_a_controller_that_is_away_for_a_while(small: Cluster) -> None:
    process = small.start()
    small.wait_for(lambda: small.runs("begin"), "no trial begins")
    small.slurm.stop_controller(signal.SIGTERM)
    time.sleep(4)
    small.slurm.start_controller()
    complete(small, *finished(process))


def test_the_submitter_is_killed_and_the_same_command_goes_on(small: Cluster) -> None:
    for _ in range(2):
        process = small.start()
        seen = len(small.runs())
        small.wait_for(lambda seen=seen: len(small.runs()) > seen + 1, "no trial ends")
        process.kill()
        process.communicate()
    complete(small, *finished(small.start()))


def test_preempted_jobs_run_again(small: Cluster) -> None:
    process = small.start()
    small.wait_for(lambda: small.runs("begin"), "no trial begins")
    small.slurm.ask("sbatch", "-p", "urgent", "--exclusive", "-N", "2", "-o", "/dev/null", "--wrap", "sleep 4")
    complete(small, *finished(process))

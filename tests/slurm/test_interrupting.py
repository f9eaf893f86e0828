"""Ctrl-C: all jobs are cancelled, or left to run for the same command; none is forgotten."""

from __future__ import annotations

import signal

from tests.slurm.test_losses import EVERYWHERE, TRIALS, complete, finished, small
from tests.slurm.world import Cluster

__all__ = ["small"]


def test_cancels_all_jobs(small: Cluster) -> None:
    process = small.start()
    small.wait_for(lambda: small.runs(), "no trial ends")
    process.send_signal(signal.SIGINT)
    _, stderr = finished(process)
    assert process.returncode == 130, stderr
    small.slurm.wait(lambda: not small.slurm.jobs(), "a job outlives the run", 15)
    small.nothing_left()
    complete(small, *finished(small.start()))


def test_leaves_them_and_takes_in_what_ran_meanwhile(small: Cluster) -> None:
    process = small.start("--on-interrupt", "leave")
    small.wait_for(lambda: small.runs(), "no trial ends")
    process.send_signal(signal.SIGINT)
    _, stderr = finished(process)
    assert process.returncode == 130, stderr
    arrays = {job.id.partition("_")[0] for job in small.slurm.jobs()}
    assert arrays and f"scancel {' '.join(sorted(arrays))}" in stderr, stderr
    small.slurm.wait(lambda: not small.slurm.jobs(), "the jobs that were left do not end")
    ran = len(small.runs())
    complete(small, *finished(small.start()))
    assert ran > 1 and len(small.runs()) == TRIALS, "nothing that ran was thrown away, and nothing ran again"


def test_two_hundred_jobs_are_queued_and_all_cancelled(cluster: Cluster) -> None:
    cluster.world.torch("2.14.1", seconds=0.5)
    cluster.world.transformers("5.8.1")
    body = "axes: {torch: [2.14.1], transformers: [5.8.1]}\ntrials: 240\ncontrols: 1\nsolo: 0\nstop_early: false\n"
    cluster.matrix(body, EVERYWHERE.replace("jobs: 3, batch: 3", "jobs: 200, batch: 1"))
    process = cluster.start()
    cluster.slurm.wait(lambda: len(cluster.slurm.jobs()) >= 180, "they are not queued")
    cluster.wait_for(lambda: len(cluster.runs()) >= 8, "they do not run")
    process.send_signal(signal.SIGINT)
    _, stderr = finished(process)
    assert process.returncode == 130, stderr
    cluster.slurm.wait(lambda: not cluster.slurm.jobs(), "a job outlives the run", 15)
    cluster.nothing_left()
    stored = cluster.world.trials()
    assert len(stored) == len({(side, index) for _, _, side, index, _ in stored}) >= 8

"""The Slurm that the other tests use is one: it queues, keeps devices apart, loses nodes and takes them back."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.slurm.server import Slurm


def device(seconds: float) -> tuple[str, str, float, float]:
    """A job: its node, its device, from when to when it had them."""
    began = time.time()
    time.sleep(seconds)
    return os.environ["SLURMD_NODENAME"], os.environ["CUDA_VISIBLE_DEVICES"], began, time.time()


def test_jobs_of_an_array_have_a_device_each(slurm: Slurm, tmp_path: Path) -> None:
    import submitit  # an extra: without it the fixture has skipped

    executor = submitit.SlurmExecutor(folder=tmp_path)
    executor.update_parameters(gres="gpu:1", partition="first", array_parallelism=4, time=5)
    jobs = executor.map_array(device, [0.5] * 4)
    told = [job.result() for job in jobs]
    assert {node for node, *_ in told} == {"node1"}
    assert {cards for _, cards, *_ in told} == {"0", "1"}
    for at, (_, cards, began, ended) in enumerate(told):
        for _, others, other_began, other_ended in told[at + 1 :]:
            assert cards != others or ended <= other_began or other_ended <= began
    # Two at a time: the four were not one after the other.
    assert max(ended for *_, ended in told) - min(began for *_, _, began, _ in told) < 4 * 0.5 + 4


def test_a_node_that_falls_is_seen_and_comes_back(slurm: Slurm, tmp_path: Path) -> None:
    words = ("sbatch", "--parsable", "--no-requeue", "--gres=gpu:1", "-p", "second", "-o", str(tmp_path / "out"))
    slurm.ask(*words, "--wrap", "sleep 300")
    slurm.wait(lambda: [job.node for job in slurm.jobs()] == ["node2"], "the job does not start")
    slurm.fell("node2")
    slurm.wait(lambda: slurm.states()["node2"].startswith("down") and not slurm.jobs(), "nobody sees that node2 fell")
    slurm.reset()
    assert slurm.states() == {"node1": "idle", "node2": "idle"}

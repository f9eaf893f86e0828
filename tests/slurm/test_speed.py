"""Two slots are nearly twice as fast as one, and each job has its own device only."""

from __future__ import annotations

import json
import shutil
import time
from itertools import combinations

from tests.slurm.world import Cluster, verdicts

SECONDS = 2.0
"""Of a trial: what a job costs by itself has to be small beside its trials."""
BODY = """\
axes: {torch: [2.11.0, 2.14.1], transformers: [5.6.0, 5.8.1]}
conditions: {pattern: [hot, barrier, burst]}
trials: 1
controls: 1
solo: 0
stop_early: false
"""
CELLS, TRIALS = 12, 12 * (1 + 1)
LEAST = 1.8


def test_twelve_cells_on_two_slots(cluster: Cluster) -> None:
    world = cluster.world
    for version in ("2.11.0", "2.14.1"):
        world.torch(version, seconds=SECONDS)
    for version in ("5.6.0", "5.8.1"):
        world.transformers(version)
    whole, took, told = {}, {}, {}
    for jobs in (1, 2):
        cluster.matrix(BODY, f"{{partition: first, gpus: 1, jobs: {jobs}, batch: 6}}")
        began = time.monotonic()
        told[jobs] = verdicts(world.document("matrix.yaml"))
        whole[jobs] = time.monotonic() - began
        cluster.everything_once(TRIALS)
        runs = cluster.runs()
        took[jobs] = max(run["t"] for run in runs) - min(run["t"] for run in cluster.runs("begin"))
        assert len(told[jobs]) == CELLS and len(runs) == TRIALS
        assert len({run["SLURM_JOB_ID"] for run in runs}) >= TRIALS / 6
        held = {(run["SLURM_JOB_ID"], run["SLURM_JOB_GPUS"]) for run in runs}
        assert {gpu for _, gpu in held} <= {"0", "1"} and len(held) == len({job for job, _ in held})
        if jobs == 2:
            own_devices(cluster)
        else:
            shutil.rmtree(world.store)
            cluster.log.unlink()
    # The command's own start, resolving and the first build are the same for both.
    print(json.dumps({"trials": took, "ratio": took[1] / took[2], "command": whole, "its ratio": whole[1] / whole[2]}))
    assert told[1] == told[2]
    assert took[1] / took[2] >= LEAST, took


def own_devices(cluster: Cluster) -> None:
    """What ran at the same time had different devices, and both were used at once."""
    began = {run["pid"]: run["t"] for run in cluster.runs("begin")}
    spans = [(began[run["pid"]], run["t"], run["SLURM_JOB_GPUS"]) for run in cluster.runs()]
    beside = [(one, other) for one, other in combinations(spans, 2) if one[0] < other[1] and other[0] < one[1]]
    assert beside and all(one[2] != other[2] for one, other in beside)

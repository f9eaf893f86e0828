"""How long a run is said to take: by what trials took, and by how many of them run at a time."""

from __future__ import annotations

import re

from tests.support.racing import World


def seconds(world: World, *args: str) -> tuple[float, str]:
    done = world.run("matrix", "matrix.yaml", "--trials", "100", "--dry-run", *args)
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("Trials: about")]
    told = re.match(r"Trials: about (\d+) (s|min)", line)
    assert told is not None, line
    return int(told[1]) * (60 if told[2] == "min" else 1), line


def test_trials_side_by_side_are_sooner_done(world: World) -> None:
    world.torch("2.14.1", seconds=1.0)
    world.transformers("5.8.1")
    world.matrix("axes: {torch: [2.14.1], transformers: [5.8.1]}\ntrials: 2\ncontrols: 1\nsolo: 0\n")
    assert world.run("matrix", "matrix.yaml").returncode == 0
    alone, line = seconds(world)
    assert alone >= 100 and "at a time" not in line
    beside, line = seconds(world, "--at-once", "2")
    assert beside < 0.7 * alone and "with 2 at a time" in line
    # Nothing of the cluster is needed to say it.
    cluster, line = seconds(world, "--executor", "slurm", "--jobs", "8")
    assert cluster < 0.3 * alone and "with 8 at a time" in line

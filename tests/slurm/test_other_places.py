"""Environments on the disk of each node, and nodes that reach no index: a bundle on the shared folder serves."""

from __future__ import annotations

import sys

import pytest

from bisect_env.store.database import Store
from bisect_env.trials.records import Side, TrialRecord
from tests.slurm.test_losses import BODY, complete, finished
from tests.slurm.world import Cluster
from tests.support import tooling
from tests.support.gating import Gates


@pytest.fixture
def small(cluster: Cluster) -> Cluster:
    cluster.world.torch("2.11.0", race=1.0)
    cluster.world.torch("2.14.1")
    cluster.world.transformers("5.8.1")
    return cluster


def test_environments_of_each_nodes_own(small: Cluster) -> None:
    small.matrix(BODY, "{partition: gpu, gpus: 1, jobs: 4, batch: 2, environments: $SLURM_TMPDIR/environments}")
    complete(small, *finished(small.start()))
    folders = {(line["SLURMD_NODENAME"], line["python"]) for line in small.runs()}
    assert {node for node, _ in folders} == {"node1", "node2"}
    assert all(python.startswith(str(small.slurm.disk(node))) for node, python in folders), folders
    assert not list((small.world.store / "environments").glob("[!.]*/venv"))


def test_a_bundle_is_the_index(small: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    world = small.world
    tooling.offer(world.index, world.wheels)
    monkeypatch.setenv("UV_DEFAULT_INDEX", world.index.url)
    small.matrix(BODY, "{partition: gpu, gpus: 1, jobs: 4, batch: 4}")
    for words in (
        ("bundle", "matrix.yaml", "-o", "parts", "--python", f"3.{sys.version_info[1]}"),
        ("unbundle", "parts", "--into", "bundle"),
    ):
        done = world.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
    asked = len(world.index.requests)
    monkeypatch.setenv("UV_CACHE_DIR", str(world.folder / "empty cache"))
    complete(small, *finished(small.start("--bundle", "bundle")))
    assert len(world.index.requests) == asked, "an index was asked"


def test_rounds_in_turn_are_timed_on_one_node(cluster: Cluster) -> None:
    gates = Gates(cluster.world)
    for version, tokens in (("1.0", 1000), ("1.1", 500)):
        gates.offer(version, tokens=tokens)
    gates.freeze("now.txt", engine="1.0")
    gates.freeze("new.txt", engine="1.1")
    done, found = gates.run(
        *("--baseline", "now.txt", "--candidate", "new.txt", "--option", "rounds=3", "--pairs", "24"),
        *("--executor", "slurm", "--partition", "gpu", "--jobs", "4"),
    )
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = (line for line in found["lines"] if line["question"] == "throughput")
    assert line["decision"] == "fail" and 0.4 < line["figures"]["ratio"] < 0.6, line
    assert line["figures"]["pairs"] == 24
    jobs = [dict(record.host)["slurm job"] for record in rounds(cluster)]
    assert len(jobs) == 2 * len(set(jobs)) == 16, "both sides of a session are one job"
    cluster.nothing_left()


def rounds(cluster: Cluster) -> list[TrialRecord]:
    with Store(cluster.world.store / "store.sqlite") as store:
        found = [sample.record for run in store.runs() for sample in store.trials_of_run(run.id)]
    return [record for record in found if record.side is Side.ROUNDS]

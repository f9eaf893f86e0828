"""The same matrix, bisection and gate come to the same answers here and on the cluster, for the same outcomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.slurm.world import Cluster, verdicts
from tests.support.bisecting import Suspects
from tests.support.gating import Gates, answers

SLURM = ("--executor", "slurm", "--partition", "gpu", "--jobs", "4")
OPEN = "inconclusive"
BODY = """\
axes: {torch: [2.10.0, 2.11.0, 2.14.1], transformers: [5.8.1]}
trials: 6
controls: 2
"""


def places(cluster: Cluster, store: str) -> list[tuple[str, str, int, str]]:
    """Of the trials in one of the project's stores: cell, side, index and outcome."""
    world = cluster.world
    (world.folder / store).rename(world.store)
    found = sorted((cell, side, index, outcome) for _, cell, side, index, outcome in world.trials())
    world.store.rename(world.folder / store)
    return found


def test_a_matrix(cluster: Cluster) -> None:
    world = cluster.world
    world.torch("2.10.0", race=0.5)
    world.torch("2.11.0", race=1.0)
    world.torch("2.14.1")
    world.transformers("5.8.1")
    cluster.matrix(BODY, "{partition: gpu, jobs: 4}")
    here = world.document("matrix.yaml", "--executor", "local", "--store", "here")
    there = world.document("matrix.yaml", "--store", "there")
    assert verdicts(here) == verdicts(there) and len(verdicts(here)) == 3
    assert places(cluster, "here") == places(cluster, "there")


def test_a_bisection(cluster: Cluster) -> None:
    suspects = Suspects(cluster.world)
    suspects.offer("alpha", {"1.0": 0.0, "1.1": 0.0, "1.2": 1.0})
    suspects.offer("beta", {"1.0": 0.0, "2.0": 0.0})
    suspects.freeze("good.txt", alpha="1.0", beta="1.0")
    suspects.freeze("bad.txt", alpha="1.2", beta="2.0")
    sides = ["bisect", "--good", "good.txt", "--bad", "bad.txt", "--index", cluster.world.index.url]
    words = suspects.command("alpha", "beta")
    found = []
    for options in (("--store", "here"), ("--store", "there", *SLURM)):
        done = cluster.world.run(*sides, *options, "--json", "out.json", "--", *words)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
        found.append(answer(cluster.world.folder / "out.json"))
    assert found[0] == found[1] and found[0] == ("culprit", ["alpha"], "1.1", "1.2")
    cluster.nothing_left()


def answer(path: Path) -> tuple[Any, ...]:
    document = json.loads(path.read_text())
    versions = document["versions"]
    factors = [factor["name"] for factor in document["factors"]]
    return document["answer"], factors, versions["last_good"], versions["first_bad"]


def test_a_gate(cluster: Cluster) -> None:
    gates = Gates(cluster.world)
    facts: dict[str, Any] = {"tokens": 1000, "peak": 10**9, "dense": 0, "error": 0.001}
    for version, race in (("1.0", 0.0), ("1.1", 1.0), ("1.2", 0.0)):
        gates.offer(version, race=race, **facts)
    files = {version: str(gates.freeze(f"{version}.txt", engine=version)) for version in ("1.0", "1.1", "1.2")}
    for candidate, code in (("1.1", 1), ("1.2", 0)):
        found = []
        for options in (("--store", "here"), ("--store", "there", *SLURM)):
            sides = ("--baseline", files["1.0"], "--candidate", files[candidate])
            done, document = gates.run(*sides, *options)
            assert done.returncode == code, done.stdout + done.stderr
            found.append((document["decision"], answers(document)))
        (here, answered_here), (there, answered_there) = found
        assert here == there and answered_here["races"] == answered_there["races"]
        # A gate that fails stops: then it depends on what was under way whether another question was answered, not how.
        both = {
            question for question in answered_here if OPEN not in (answered_here[question], answered_there[question])
        }
        assert all(answered_here[question] == answered_there[question] for question in both)
        assert code or both == set(answered_here) == set(answered_there)
    cluster.nothing_left()

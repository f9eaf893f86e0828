"""Stale compile caches: filled by the nearest earlier torch of the matrix, shared with that torch's own warm ones."""

from __future__ import annotations

from tests.support.engine import measured
from tests.support.racing import World

BODY = """\
axes: {torch: [2.14.1, 2.11.0, 2.13.0], transformers: [5.8.1]}
conditions: {cache: [warm, stale]}
trials: 1
controls: 1
solo: 0
"""


def test_the_nearest_earlier_torch_fills_it_once(world: World) -> None:
    for version in ("2.11.0", "2.13.0", "2.14.1"):
        world.torch(version)
    world.transformers("5.8.1")
    world.matrix(BODY)
    results, listener = measured(world)
    assert len([told for told in listener.told if told[0] == "started" and told[2] == "warmup"]) == 3
    assert len(list((world.store / "caches").iterdir())) == 3
    cells = {result.cell.id: result for result in results}
    address = {dict(r.cell.levels)["torch"]: r.lock.address for r in results if r.lock is not None}
    for torch, filler in (("2.14.1", "2.13.0"), ("2.13.0", "2.11.0"), ("2.11.0", "2.13.0")):
        samples = cells[f"torch-{torch}_transformers-5.8.1_stale"].samples
        counted = [sample.record for sample in samples if sample.record.side != "warmup"]
        assert len(counted) == 2 and all(record.cache_hits == 1 for record in counted)
        assert {dict(record.extra)["compile cache filled by"] for record in counted} == {
            f"environment {address[filler]}"
        }
        assert {record.environment for record in counted} == {address[torch]}


def test_one_stale_cell_alone_builds_the_other_torch_for_its_cache(world: World) -> None:
    world.torch("2.11.0")
    world.torch("2.14.1")
    world.transformers("5.8.1")
    world.matrix(BODY.replace("2.14.1, 2.11.0, 2.13.0", "2.11.0, 2.14.1"))
    finished = world.run("matrix", "matrix.yaml", "--cell", "torch-2.14.1*stale")
    assert finished.returncode == 0, finished.stderr
    assert "FULL" in finished.stdout and "2.11.0" not in finished.stdout
    assert len(list((world.store / "environments").glob("*/complete"))) == 2
    assert sorted(side for _, _, side, _, _ in world.trials()) == ["serial", "threads", "warmup"]
    # Nothing is prepared or measured twice.
    assert world.run("matrix", "matrix.yaml", "--cell", "torch-2.14.1*stale").returncode == 0
    assert len(world.trials()) == 3


def test_what_fails_to_fill_it_is_not_tried_again_and_the_cell_starts_cold(world: World) -> None:
    world.torch("2.11.0", warmup_fails=True)
    world.torch("2.14.1")
    world.transformers("5.8.1")
    world.matrix(BODY.replace("2.14.1, 2.11.0, 2.13.0", "2.11.0, 2.14.1"))
    for trials in ("1", "2"):
        finished = world.run("matrix", "matrix.yaml", "--cell", "torch-2.14.1*stale", "--trials", trials)
        assert finished.returncode == 0, finished.stderr
        assert ("warmup: failed" in finished.stderr) == (trials == "1")


def test_without_the_other_environment_there_is_no_stale_cache(world: World) -> None:
    world.torch("2.14.1")
    world.transformers("5.8.1")
    world.matrix(BODY.replace("2.14.1, 2.11.0, 2.13.0", "2.11.0, 2.14.1"))
    results, _ = measured(world)
    stale = next(result for result in results if result.cell.id == "torch-2.14.1_transformers-5.8.1_stale")
    assert stale.verdict.text == "UNRESOLVABLE"
    assert "its stale compile cache is filled by torch-2.11.0_transformers-5.8.1_stale" in stale.verdict.reason

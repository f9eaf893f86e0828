"""Which trials of a store a report takes, from synthetic stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.engine.recall import HOST, Recalled, StoredReleases, recall
from bisect_env.environments.records import Reason, Unavailable
from bisect_env.errors import BadInput
from bisect_env.matrix.cells import Cell, IndexChoice, Matrix, ReproducerChoice
from bisect_env.store.database import Store
from bisect_env.trials.records import Device, Outcome, Reproducer, Side
from bisect_env.verdicts.records import Headline
from tests.store.samples import A2, H200, cell, lock, trial

CELL = cell()
HERE = Reproducer("race", ("python", "race.py"), (), "hash", True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.sqlite") as opened:
        yield opened


def put(
    store: Store,
    count: int,
    *,
    of: Cell = CELL,
    devices: tuple[Device, ...] = (H200,),
    reproducer: str = "hash",
    started: float = 0.0,
    address: str = "aaaa1111",
    outcome: Outcome = Outcome.CLEAN,
    host: str = "gpu-1",
) -> str:
    """A run of so many blocks on a host."""
    run_id = store.start_run("m", "m.yaml", [], 0, {HOST: host} if host else {}, count, count)
    store.put_cells([of], "m")
    store.put_lock(of.request.key, lock(), 0.1)
    for block in range(count):
        for side in (Side.THREADS, Side.SERIAL):
            kept = outcome if side is Side.THREADS else Outcome.CLEAN
            record = trial(f"{run_id}-{side}-{block}", side=side, devices=devices, address=address, outcome=kept)
            record = replace(record, reproducer=reproducer, started=started + block)
            store.put_trial(record, of.key, run_id, block, reproducer)
    return run_id


def recalled(store: Store, *cells: Cell) -> Recalled:
    shown = cells or (CELL,)
    matrix = Matrix("m", Path("m.yaml"), shown, ("torch",), ReproducerChoice("race"), 6, 6, solo=0)
    return recall(matrix, HERE, store, 0.05)


def test_whatever_gpu_this_host_has(store: Store) -> None:
    run_id = put(store, 6)
    found = recalled(store)
    [result] = found.results
    assert result.verdict.headline is Headline.FULL and result.verdict.threads and result.verdict.threads.n == 6
    assert result.lock == lock() and len(result.samples) == 12 and [run.id for run in found.runs] == [run_id]
    assert not any("reproducer" in mark or "pooled" in mark for mark in result.verdict.marks)


def test_models_are_never_pooled(store: Store) -> None:
    put(store, 6)
    put(store, 2, devices=(A2,), started=100.0, outcome=Outcome.FAILED)
    put(store, 1, devices=(H200, A2), started=200.0, outcome=Outcome.FAILED)
    [result] = recalled(store).results
    assert result.verdict.threads and (result.verdict.threads.k, result.verdict.threads.n) == (0, 6)
    assert "4 trials on NVIDIA A2 are there too, and not pooled with those on NVIDIA H200" in result.verdict.marks
    assert any(mark.startswith("2 trials on NVIDIA A2 and NVIDIA H200 are") for mark in result.verdict.marks)


def test_nor_are_drivers_and_of_as_many_trials_the_latest_are_shown(store: Store) -> None:
    newer = replace(H200, driver="590.1")
    put(store, 4, outcome=Outcome.FAILED)
    put(store, 4, devices=(newer,), started=100.0)
    [result] = recalled(store).results
    assert result.verdict.threads and (result.verdict.threads.k, result.verdict.threads.n) == (0, 4)
    assert {sample.record.devices for sample in result.samples} == {(newer,)} and len(result.elsewhere) == 8
    assert any(
        mark.startswith("8 trials on NVIDIA H200, driver 580.159.04 are there too") for mark in result.verdict.marks
    )


def test_of_several_reproducers_the_one_measured_last(store: Store) -> None:
    put(store, 6, reproducer="older hash", outcome=Outcome.FAILED)
    put(store, 3, reproducer="newer hash", started=100.0)
    [result] = recalled(store).results
    assert result.verdict.threads and result.verdict.threads.n == 3
    assert "measured with another version of the reproducer (newer ha) than is here" in result.verdict.marks
    put(store, 2, started=200.0)
    [result] = recalled(store).results
    assert result.verdict.threads and result.verdict.threads.n == 2
    assert not any("reproducer" in mark for mark in result.verdict.marks)


def test_trials_of_another_lock_and_superseded_ones_are_not_taken(store: Store) -> None:
    put(store, 6, address="of another lock")
    assert recalled(store).results[0].verdict.headline is Headline.NOT_RUN
    put(store, 6)
    store.retire([CELL.key])
    found = recalled(store)
    assert found.results[0].verdict.headline is Headline.NOT_RUN and found.runs == ()


def test_hosts_that_are_put_together_are_named(store: Store) -> None:
    put(store, 3)
    put(store, 3, started=9.0, host="")  # An older version did not say.
    assert not any("hosts" in mark for mark in recalled(store).results[0].verdict.marks)
    put(store, 3, started=100.0, host="gpu-2")
    assert "trials of 2 hosts together: gpu-1, gpu-2" in recalled(store).results[0].verdict.marks


def test_a_cell_is_found_though_indexes_and_bases_lie_elsewhere(store: Store) -> None:
    def at(place: str, **request: object) -> Cell:
        index = IndexChoice(find_links=(f"{place}/wheels",), offline=True)
        return replace(CELL, request=replace(CELL.request, index=index, base=f"{place}/python3", **request))

    there, here = at("/gpu-host"), at("/home/me")
    put(store, 6, of=there)
    assert here.key != there.key
    assert recalled(store, here).results[0].verdict.headline is Headline.FULL
    for other in (at("/home/me", cuda="cu128"), replace(here, variables=(("A", "1"),))):
        assert recalled(store, other).results[0].verdict.headline is Headline.NOT_RUN


def test_why_there_is_no_environment(store: Store) -> None:
    put(store, 0)
    store.put_unavailable(CELL.key, "aaaa1111", Unavailable("build", Reason.BUILD, "no compiler"))
    assert recalled(store).results[0].verdict.headline is Headline.BUILD_FAILED
    store.put_lock(CELL.request.key, Unavailable("resolve", Reason.CONFLICT, "a and b"), 0.1)
    [result] = recalled(store).results
    assert result.verdict.headline is Headline.UNRESOLVABLE and result.lock is None


def test_a_range_stands_for_what_the_environments_have(store: Store) -> None:
    put(store, 0)
    found = StoredReleases(store).releases("Torch", IndexChoice())
    assert [release.version for release in found] == ["2.11.0"]
    with pytest.raises(BadInput, match="no environment has transformers"):
        StoredReleases(store).releases("transformers", IndexChoice())

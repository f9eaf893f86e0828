"""Nodes with other GPUs than a cell is measured on are left out of its jobs, once a trial has told what they have."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.cluster import asking, job, pending, watching
from bisect_env.cluster.flight import Flight
from bisect_env.cluster.job import ItemResult
from bisect_env.cluster.settings import slurm_settings
from bisect_env.cluster.submitting import Cluster
from bisect_env.engine.grouping import Entrant
from bisect_env.matrix.cells import Condition, Matrix, ReproducerChoice
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Device
from bisect_env.verdicts.hardware import Hardware
from tests.cluster.pretended import Pretended
from tests.cluster.test_flight import ATTEMPT, CELL, _spec
from tests.store.samples import A2, H200, cell, environment, trial

NODE_OF = {"big1": H200, "small1": A2}


def test_what_a_node_has_is_known_by_its_first_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = Pretended(tmp_path / "slurm", monkeypatch)
    for name in ("SETTLE", "SOON", "LATE"):
        monkeypatch.setattr(watching, name, 0.0)
    left, settings = pending.new(tmp_path), slurm_settings({"jobs": "20", "batch": "1"})
    flight = Flight(settings, Cluster(settings, left.folder), left, lambda text: None)
    work = replace(asking.Work(asking.Group("env", None, "1"), _spec, ATTEMPT))

    def ends_on(unit: str, node: str) -> None:
        [folder] = [path for path in left.folder.iterdir() if path.is_dir() and unit in path_items(path)]
        record = replace(trial(f"t-{unit}", devices=(NODE_OF[node],)), host=(("node", node),))
        job.write_result(ItemResult(unit, CELL.key, StoredTrial(record, 0, "run")), folder)

    def path_items(path: Path) -> list[str]:
        return [item.id for item in job.read(path).items]

    for unit, node in [(flight.add(work), "big1"), (flight.add(work), "small1")]:
        flight.step()
        ends_on(unit, node)
    flight.step()

    def excluded(judged: Device) -> list[str]:
        flight.add(replace(work, group=replace(work.group, hardware=Hardware.of([judged]))))
        flight.step()
        return re.findall(r"--exclude=(\S+)", slurm.submitted[-1]["script"])

    assert excluded(H200) == ["small1"] and excluded(A2) == ["big1"]
    assert excluded(replace(H200, driver="590.1")) == ["big1,small1"]

    # Where Slurm has no other node, it runs wherever it can, and the engine sees that it does not count.
    slurm.says("single")
    for name in slurm.jobs():
        slurm.becomes(name, "COMPLETED")
    flight.add(replace(work, group=replace(work.group, hardware=Hardware.of([H200]), what="another")))
    flight.step()
    flight.step()
    assert "--exclude" not in slurm.submitted[-1]["script"]


def test_rounds_of_what_is_compared_go_where_it_is_measured() -> None:
    condition = Condition.of({"threads": 2, "rounds": 4})

    def entrant(torch: str, device: Device) -> Entrant:
        own = replace(cell(f"torch-{torch}", torch=torch), condition=condition)
        sample = StoredTrial(trial(torch, devices=(device,)), 0, "r")
        return Entrant(own, environment(), (sample,))

    baseline, same, other = entrant("2.9.1", H200), entrant("2.11.0", H200), entrant("2.14.1", A2)
    cells = tuple(each.cell for each in (baseline, same, other))
    matrix = Matrix("m", Path("m.yaml"), cells, ("torch",), ReproducerChoice("race"), reference=(("torch", "2.9.1"),))
    groups = asking.comparable(matrix, slurm_settings({}), (baseline, same, other))
    assert groups == ((baseline, same), (baseline, other))

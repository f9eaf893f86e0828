"""Rounds in turn as one job: planned by the node or given as a session, each process's record a result of its own."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from bisect_env.cluster import job
from bisect_env.cluster.job import ItemResult, JobSpec, Wanted
from bisect_env.engine.grouping import Entrant, Session
from bisect_env.environments.records import Environment
from bisect_env.matrix.cells import Cell, Condition
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Side
from tests.cluster.site import Site
from tests.cluster.test_worker import wait_for
from tests.engine.test_sessions import SCRIPT
from tests.support.environments import lock_of, request_of
from tests.verdicts.build import record


def compared(site: Site, rounds: int = 4, **fate: object) -> JobSpec:
    """A job with the rounds of two cells, the second compared with the first."""
    said = json.dumps({"name": "x", "tokens": 1000, "start": 0.2, **fate})
    variables = (("FATE", said), ("LOG", str(site.folder / "log")))
    condition = Condition.of({"threads": 2, "rounds": rounds, "mitigation": "none", "device": "cpu"})
    wheels = [site.torch("2.14.1"), site.torch("2.11.0")]
    wanted = tuple(Wanted(lock_of(wheel), request_of(wheel), wheel.name) for wheel in wheels)
    cells = tuple(
        Cell(name, (("torch", name),), each.request, condition, variables)
        for name, each in zip(("base", "other"), wanted, strict=True)
    )
    counted = (StoredTrial(record(Side.SERIAL), 0, "r1"), StoredTrial(record(Side.ROUNDS, Outcome.INFRA), 6, "r1"))
    entrants = tuple(
        Entrant(cell, Environment(each.lock, Path("/elsewhere"), Path("/elsewhere/python"), "", 0.0), counted)
        for cell, each in zip(cells, wanted, strict=True)
    )
    spec = site.spec([], script=SCRIPT)
    matrix = replace(spec.matrix, cells=cells, reference=(("torch", "base"),))
    return replace(
        spec, matrix=matrix, wanted=wanted, entrants=entrants, reproducer=replace(spec.reproducer, protocol=True)
    )


@pytest.mark.parametrize("planned", [True, False])
def test_rounds_are_timed_in_turn(site: Site, planned: bool) -> None:
    spec = compared(site)
    if not planned:
        spec = replace(spec, entrants=(), session=Session(spec.entrants[0], spec.entrants[1:]))
    folder = site.send(spec)
    job.write_result(ItemResult("rounds-earlier", "key", StoredTrial(record(Side.ROUNDS), 7, "r1")), folder)
    ended, log = site.do(spec, SLURMD_NODENAME="node3")
    assert ended.trouble is None and ended.fits, log
    found = job.results(site.root / "jobs" / "job")
    by_cell = {result.cell_key: result.sample for result in found.values()}
    base, other = (by_cell[cell.key] for cell in spec.matrix.cells)
    assert (len(base.record.rounds), len(other.record.rounds)) == (4, 4)
    assert {(s.block, s.run_id) for s in (base, other)} == {(7, "r1")}, "after the sessions that the run has had"
    for name, result in found.items():
        assert name == f"rounds-{result.sample.record.id}" and dict(result.sample.record.host)["node"] == "node3"
    addresses = {cell.key: each.lock.address for cell, each in zip(spec.matrix.cells, spec.wanted, strict=True)}
    assert all(by_cell[key].record.environment == address for key, address in addresses.items())
    lines = [json.loads(line) for line in (site.folder / "log").read_text().splitlines()]
    computed = sorted(line[2:] for line in lines if line[1] != "start")
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(computed))
    assert site.left() == []


def test_processes_that_do_not_fit_together(site: Site) -> None:
    spec = compared(site)
    others = tuple(spec.entrants[1:] * 200)
    ended, _ = site.do(replace(spec, entrants=(), session=Session(spec.entrants[0], others)))
    assert ended.trouble is None and not ended.fits and job.results(site.root / "jobs" / "job") == {}


def test_told_to_end_in_a_round(site: Site) -> None:
    folder = site.send(compared(site, rounds=1000))
    with site.running(folder) as process:
        log = site.folder / "log"
        wait_for(lambda: log.exists() and "round 3" in log.read_text(), process)
        began = time.monotonic()
        process.terminate()
        said, _ = process.communicate(timeout=20)
        assert time.monotonic() - began < 2, said
    ended = job.ended(folder)
    assert ended is not None and ended.stopped and job.results(folder) == {} and site.left() == []

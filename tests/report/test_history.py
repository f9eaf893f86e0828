from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bisect_env.engine.past import CellPast, Moment, Past
from bisect_env.environments.records import Lock
from bisect_env.matrix.cells import Cell
from bisect_env.report.history import MOST, NAMED, Shift, changes, describe, document, since
from bisect_env.store.runs import StoredRun
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Device
from tests.report.build import Judged, lock, row
from tests.support.schemas import matching

RACE, FULL = row("2.11.0", "5.6.0", "FFFF", "...."), row("2.11.0", "5.6.0", "......")


def run(number: int, **versions: str) -> StoredRun:
    facts = {"bisect-env": "0.1.0", "host": "gpu3", **versions}
    started = 1_796_000_000.0 + 86_400 * number
    return StoredRun(f"r{number}", "m", "m.yaml", ("matrix",), 0, tuple(facts.items()), started, status="completed")


def moment(number: int, shown: Judged, driver: str = "", **more: Any) -> Moment:
    devices = (Device("GPU-0", "H200", 0, 1, driver),) if driver else ()
    samples = tuple(
        StoredTrial(replace(sample.record, devices=devices), sample.block, f"r{number}") for sample in shown.samples
    )
    cell: Cell = more.get("cell", shown.cell)
    found: Lock | None = more.get("lock", lock())
    return Moment(more.get("run", run(number)), cell, shown.verdict, found, samples, len(samples))


def past(*moments: Moment) -> Past:
    runs = tuple({found.run.id: found.run for found in moments}.values())
    return Past("m", runs, (CellPast(RACE.cell, moments, None),))


def told(before: Moment, after: Moment) -> list[tuple[str, str, str | None, str | None]]:
    return [(each.what, each.name, each.before, each.after) for each in changes(before, after)]


def test_nothing_changed() -> None:
    assert changes(moment(1, RACE), moment(2, RACE)) == []


def test_what_can_change_with_a_verdict() -> None:
    before = moment(1, RACE, driver="570.1")
    pins = (("numpy", "2.0"), ("torch", "2.15.0"))
    after = moment(2, FULL, driver="580.2", lock=lock(pins=pins, address="b" * 16), run=run(2, host="gpu4"))
    assert told(before, after) == [
        ("verdict", "", "RACE 4/4", "FULL"),
        ("distribution", "numpy", None, "2.0"),
        ("distribution", "torch", "2.14.1", "2.15.0"),
        ("driver", "", "570.1", "580.2"),
        ("host", "", "gpu3", "gpu4"),
    ]
    assert ("GPUs", "", "none", "H200") in told(moment(1, FULL), moment(2, FULL, driver="570.1"))


def test_what_an_older_version_did_not_note_is_no_change() -> None:
    silent = replace(run(1), versions=())
    assert changes(moment(1, RACE, run=silent), moment(2, RACE)) == []


def test_the_same_pins_in_another_environment_are_told() -> None:
    trials = [replace(sample, record=replace(sample.record, environment="other")) for sample in RACE.samples]
    assert [each[0] for each in told(moment(1, RACE), moment(2, replace(RACE, samples=trials)))] == ["environment"]


def test_a_variable_that_is_named_like_a_secret_hides_its_value() -> None:
    def with_variables(*pairs: tuple[str, str]) -> Cell:
        return replace(RACE.cell, variables=pairs)

    before = moment(1, RACE, cell=with_variables(("HF_TOKEN", "hunter2"), ("OMP_NUM_THREADS", "1")))
    after = moment(2, RACE, cell=with_variables(("OMP_NUM_THREADS", "8")))
    found = changes(before, after)
    assert Shift("variable", "OMP_NUM_THREADS", "1", "8") in found and len(found) == 2
    text = describe(past(before, after), 120) + json.dumps(document(past(before, after)))
    assert "hunter2" not in text and "HF_TOKEN" in text


def test_the_last_run_is_compared_with_the_one_before_of_each_cell() -> None:
    other = CellPast(replace(RACE.cell, id="other"), (moment(1, RACE),), None)
    found = past(moment(1, RACE), moment(3, FULL))
    latest = since(replace(found, cells=(*found.cells, other)))
    assert latest is not None and latest[0].id == "r3"
    assert [(cell.cell.id, differs[0].after) for cell, differs in latest[1]] == [(RACE.cell.id, "FULL")]
    assert since(Past("m", (run(1),), (CellPast(RACE.cell, (), None),))) is None


def test_long_histories_and_long_differences_are_cut_in_the_text_and_whole_in_the_document() -> None:
    def pinned(version: str) -> Lock:
        pins = tuple((f"package{number}", version) for number in range(NAMED + 3))
        return lock(pins=pins, address=version)

    moments = [moment(number, RACE, lock=pinned(str(number))) for number in range(MOST + 2)]
    found = past(*moments)
    text = describe(found, 120)
    assert f"m: {MOST + 2} runs, 1 cell." in text and "2 earlier runs left out" in text
    assert "and 3 more distributions" in text and "r0 " not in text
    whole = matching("history", json.loads(json.dumps(document(found), allow_nan=False)))
    assert len(whole["cells"][0]["moments"]) == MOST + 2
    assert len(whole["changed"][0]["changes"]) == NAMED + 3


def test_no_line_is_wider_than_asked() -> None:
    widths: Sequence[int] = (80, 120)
    for width in widths:
        text = describe(past(moment(1, RACE, driver="570.1"), moment(2, FULL, driver="580.2")), width)
        assert max(map(len, text.splitlines())) <= width


def test_a_matrix_that_measured_nothing() -> None:
    empty = Past("m", (run(1),), ())
    assert "Nothing was measured yet." in describe(empty, 80)
    assert matching("history", document(empty))["last"] is None

"""What ``show`` says of a cell: never more than the run that measured it, and nothing of trials that do not count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.cli.main import main
from bisect_env.store.database import Store
from bisect_env.trials.records import Outcome, Side
from tests.store.samples import A2, cell, lock, trial

CELL = cell()


def put(root: Path, planned: int, blocks: int, **changes: object) -> None:
    """A run of so many planned blocks, of which these are in: all threaded trials but the first failed."""
    with Store(root / "store.sqlite") as store:
        run_id = store.start_run("m", "m.yaml", [], 0, {}, planned, planned)
        store.put_cells([CELL], "m")
        store.put_lock(CELL.request.key, lock(), 0.1)
        for block in range(blocks):
            for side in (Side.THREADS, Side.SERIAL, Side.SOLO):
                failed = side is Side.THREADS and block > 0
                record = trial(
                    f"{run_id}-{side}-{block}", side=side, outcome=Outcome.FAILED if failed else Outcome.CLEAN
                )
                record = replace(record, **{"started": float(block), **changes})
                store.put_trial(record, CELL.key, run_id, block, record.reproducer)


def shown(root: Path, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["show", CELL.key, "--store", str(root)])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_an_unfinished_cell_is_judged_at_its_own_looks_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, planned=12, blocks=5)  # 4/5 against 0/5: p = 0.024, more than any look so far may spend
    text = shown(tmp_path, capsys)
    assert "UNSURE: 4 of 5 threaded trials" in text
    assert "not finished: 5 of 12 threaded, 5 of 12 serial, 5 of 12 solo trials are in" in text


def test_a_finished_one_has_its_race(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, planned=5, blocks=5)
    assert "RACE 4/5: 4 of 5 threaded trials" in shown(tmp_path, capsys)


@pytest.mark.parametrize(
    "changes", [{"reproducer": "edited"}, {"devices": (A2,)}, {"environment": "of another lock"}], ids=str
)
def test_trials_of_something_else_are_not_pooled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, object]
) -> None:
    put(tmp_path, planned=5, blocks=5, **changes)
    put(tmp_path, planned=5, blocks=1, started=9.0)
    text = shown(tmp_path, capsys)
    assert "FULL: 0/1" in text and "15 earlier trials are kept and not counted" in text


def test_nor_are_those_before_fresh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, planned=5, blocks=5)
    with Store(tmp_path / "store.sqlite") as store:
        store.retire([CELL.key])
    text = shown(tmp_path, capsys)
    assert "NOT RUN: no trial was run yet" in text and "15 earlier trials" in text


def test_the_plan_includes_the_solo_control_and_whether_it_stops_early(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        run_id = store.start_run("m", "m.yaml", [], 0, {}, 6, 6, 0, False)
        store.put_cells([CELL], "m")
        store.put_lock(CELL.request.key, lock(), 0.1)
        for block in range(6):
            for side, outcome in ((Side.THREADS, Outcome.FAILED), (Side.SERIAL, Outcome.CLEAN)):
                record = trial(f"{side}-{block}", side=side, outcome=outcome)
                store.put_trial(record, CELL.key, run_id, block, record.reproducer)
    text = shown(tmp_path, capsys)
    # The whole error is spent at the one look; two looks would have had 0.015 at the first.
    assert "RACE 6/6: 6 of 6 threaded trials" in text and "limit 0.046, look at 6 blocks" in text
    assert "not finished" not in text and "stopped early" not in text

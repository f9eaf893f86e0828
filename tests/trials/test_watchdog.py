from __future__ import annotations

from pathlib import Path

import pytest

from bisect_env.matrix.cells import Limits
from bisect_env.trials.watchdog import EventsWatch, Expiry, Progress, expired

LIMITS = Limits(trial=900, import_time=120)


@pytest.mark.parametrize(
    ("progress", "now", "protocol", "limit"),
    [
        (Progress(0.0), 119, True, ""),
        (Progress(0.0), 121, True, "import"),
        (Progress(0.0), 121, False, ""),
        (Progress(0.0, ready=False, last_event=1.0), 100, True, ""),
        (Progress(0.0, ready=True, last_event=300.0), 350, True, ""),
        (Progress(0.0, ready=True, last_event=300.0), 361, True, "silence"),
        (Progress(0.0, ready=True, last_event=300.0), 361, False, "silence"),
        (Progress(0.0, ready=True, last_event=899.0), 901, True, "total"),
        (Progress(0.0), 901, False, "total"),
        (Progress(0.0, ready=True, last_event=1190.0, waited=300.0), 1199, True, ""),
        (Progress(0.0, ready=True, last_event=1190.0, waited=300.0), 1200, True, "total"),
    ],
)
def test_which_limit_passes_when(progress: Progress, now: float, protocol: bool, limit: str) -> None:
    seconds = {"import": 120, "silence": 60, "total": 900}
    wanted = Expiry(limit, seconds[limit]) if limit else None
    assert expired(progress, now, LIMITS, 60, protocol) == wanted


def test_growth_is_progress_and_ready_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "events"
    watch = EventsWatch(path, 1.0)
    assert watch.look(2.0) == Progress(1.0)
    path.write_text('{"event": "start", "t": 1}\n{"event": "rea')
    assert watch.look(3.0) == Progress(1.0, False, 3.0)
    assert watch.look(4.0) == Progress(1.0, False, 3.0)
    path.write_text('{"event": "start", "t": 1}\n{"event": "ready", "t": 1}\n')
    assert watch.look(5.0) == Progress(1.0, True, 5.0)


def test_waiting_for_a_turn_is_no_silence_and_no_time_of_its_own(tmp_path: Path) -> None:
    path, turns = tmp_path / "events", tmp_path / "turns"
    turns.mkdir()
    watch = EventsWatch(path, 0.0, turns)
    path.write_text('{"event": "ready", "t": 1}\n{"event": "waiting", "t": 1, "round": 0}\n{"event": "wai')
    assert watch.look(1.0) == Progress(0.0, True, 1.0, 1.0) and (watch.waiting, watch.idle) == (0, True)
    assert watch.look(500.0) == Progress(0.0, True, 500.0, 500.0)
    (turns / "0").touch()
    assert watch.look(501.0) == watch.look(590.0) == Progress(0.0, True, 500.0, 500.0)
    with path.open("a") as file:
        file.write('ting", "t": 2, "round": 1}\n')
    assert watch.look(600.0) == Progress(0.0, True, 600.0, 510.0) and watch.waiting == 1
    (turns / "end").touch()
    assert watch.look(700.0) == Progress(0.0, True, 600.0, 510.0) and not watch.idle


def test_without_turns_nobody_waits_for_one(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_text('{"event": "ready", "t": 1}\n{"event": "waiting", "t": 1, "round": 0}\n')
    watch = EventsWatch(path, 0.0)
    assert watch.look(1.0) == watch.look(9.0) == Progress(0.0, True, 1.0)


def test_a_file_begun_again_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "events"
    watch = EventsWatch(path, 0.0)
    path.write_text('{"event": "start", "t": 1}\n' * 3)
    assert not watch.look(1.0).ready
    path.write_text('{"event": "ready", "t": 1}\n')
    assert watch.look(2.0).ready

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

"""Progress: plain lines where no terminal is, a live view on one, and a result that is text alone either way."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from rich.console import Console

from bisect_env.environments.records import Reason, Unavailable
from bisect_env.report.progress import LineReporter, LiveReporter
from bisect_env.trials.records import Outcome, Side
from tests.report import build
from tests.support.racing import World
from tests.verdicts.build import FX

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def told(kind: type[LineReporter], terminal: bool) -> str:
    """What a reporter writes of a short run."""
    screen = io.StringIO()
    # Wider than any line here, so that a terminal does not wrap it.
    reporter = kind(Console(file=screen, force_terminal=terminal, width=200, highlight=False))
    row = build.row("2.11.0", "5.8.1", "FF....", "......")
    failed, clean = (replace(row.samples[number].record, seconds=1.0) for number in (0, 2))
    conflict = Unavailable("resolve", Reason.CONFLICT, "Because a==1\n  depends on b==2\n  and you require b==1, no.")
    broken = Unavailable("build", Reason.BUILD, "Failed to download `a`\n  Failed to extract archive")
    with reporter:
        reporter.note("transformers >=5 is [5.0]: 1 release")
        reporter.phase("resolve", 2)
        reporter.resolving("torch 2.11.0")
        reporter.resolved("torch 2.11.0", build.lock(notes=("no upload dates: torch",)), 1.25)
        reporter.resolved("torch 9", conflict, 0.5)
        reporter.phase("build", 2)
        reporter.building("torch 2.11.0", build.lock(downloads=(("torch", 3_400_000_000),)))
        reporter.built("torch 9", broken, 2.0)
        reporter.phase("trials", 18)
        reporter.trial_started(row.cell, Side.THREADS, 1, 6)
        reporter.trial_ended(row.cell, failed, "")
        reporter.trial_ended(row.cell, replace(clean, seconds=2.0), "")
        lost = replace(clean, outcome=Outcome.INFRA, message="the GPU was lost")
        reporter.trial_ended(row.cell, lost, f"not counted: {lost.message}")
        reporter.cell_finished(row.cell, replace(row.verdict, stopped_early=True))
    return screen.getvalue()


def test_lines_where_no_terminal_is() -> None:
    text, name = told(LineReporter, terminal=False), build.cell("2.11.0", "5.8.1").id
    assert "\x1b" not in text and "\r" not in text
    assert [line[8:] for line in text.splitlines()] == [
        "transformers >=5 is [5.0]: 1 release",
        "Resolving: 2 environments to resolve",
        "resolved torch 2.11.0: 1 distribution, cpu, in 1.2 s (no upload dates: torch)",
        "UNRESOLVABLE torch 9: conflict: Because a==1 depends on b==2 and you require b==1, no.",
        "Building: 2 environments to build",
        "building torch 2.11.0: 1 distribution of 3.4 GB",
        "BUILD-FAILED torch 9: Failed to download `a` Failed to extract archive",
        "Trials: 18 trials at most",
        f"[1/18] {name} threads: failed in 1.0 s: {FX}",
        f"[2/18] {name} threads: clean in 2.0 s",
        f"[2/18] {name} threads: infra in 1.0 s (not counted: the GPU was lost)",
        f"{name}: UNSURE (stopped early: it is certain)",
    ]


def test_trials_that_are_not_of_the_plan_are_not_counted() -> None:
    screen = io.StringIO()
    reporter = LineReporter(Console(file=screen, width=200, highlight=False))
    row = build.row("2.11.0", "5.8.1", "..")
    timed = replace(row.samples[0].record, side=Side.ROUNDS, seconds=3.0)
    reporter.trial_ended(row.cell, timed, "8 rounds timed")  # Of a finished matrix: no trial was ahead.
    reporter.phase("trials", 2)
    reporter.trial_ended(row.cell, replace(row.samples[0].record, seconds=1.0), "")
    reporter.trial_ended(row.cell, timed, "8 rounds timed")
    lines = [line[8:] for line in screen.getvalue().splitlines()]
    assert lines[0] == lines[3] == f"{row.cell.id} rounds: clean in 3.0 s (8 rounds timed)"
    assert lines[2].startswith("[1/2] ")


def test_one_environment_is_not_told_as_several() -> None:
    screen = io.StringIO()
    LineReporter(Console(file=screen, width=200, highlight=False)).phase("build", 1)
    assert screen.getvalue().endswith("Building: 1 environment to build\n")


def test_a_live_view_keeps_what_matters_on_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")  # A dumb one gets no cursor movement.
    text = told(LiveReporter, terminal=True)
    lasting = [line[8:].strip() for line in ESCAPE.sub("", text).splitlines() if re.match(r" *\d+:\d\d  ", line)]
    assert "UNRESOLVABLE torch 9: conflict: Because a==1 depends on b==2 and you require b==1, no." in lasting
    assert any("threads: failed in" in line for line in lasting)
    assert not any("threads: clean" in line for line in lasting), "clean trials only move the bar"
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1, "the cursor comes back"
    # Transient: the last thing drawn is taken away again.
    assert "\x1b[2K" in text.rpartition("UNSURE")[2]


@pytest.mark.parametrize("table_too", [False, True])
def test_on_a_terminal(world: World, table_too: bool) -> None:
    world.torch("2.11.0", race=1.0)
    world.transformers("5.8.1")
    world.matrix("axes: {torch: [2.11.0], transformers: [5.8.1]}\ntrials: 1\ncontrols: 1\n")
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "bisect_env", "matrix", "matrix.yaml"],
        cwd=world.folder,
        env={**os.environ, "UV_CACHE_DIR": str(world.uv_cache), "TERM": "xterm", "COLUMNS": "110", "LINES": "30"},
        stdin=subprocess.DEVNULL,
        stdout=slave if table_too else subprocess.PIPE,
        stderr=slave,
        text=True,
    )
    os.close(slave)
    screen: list[bytes] = []
    reader = threading.Thread(target=_read, args=(master, screen))
    reader.start()
    stdout, _ = process.communicate(timeout=60)
    reader.join()
    os.close(master)
    drawn = b"".join(screen).decode()
    assert process.returncode == 0, drawn
    assert "serial 1/1" in drawn and drawn.count("\x1b[?25l") == drawn.count("\x1b[?25h") == 1
    result = drawn.rpartition("\x1b[?25h")[2] if table_too else stdout
    assert "UNSURE" in result
    assert "\x1b" not in result.partition("torch")[2], "the table is text alone"


def _read(master: int, screen: list[bytes]) -> None:
    while True:
        try:
            piece = os.read(master, 1 << 16)
        except OSError:  # Linux says so when nobody writes any more.
            return
        if not piece:
            return
        screen.append(piece)

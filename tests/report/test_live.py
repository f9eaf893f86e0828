"""A bisection while it runs: plain lines where no terminal is, bars on one, and the cursor comes back."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from bisect_env.bisection.records import Stage
from bisect_env.environments.records import Reason, Unavailable
from bisect_env.report.live import BisectionLines, BisectionLive
from bisect_env.trials.records import Outcome, Side
from tests.report import build, findings
from tests.verdicts.build import FX

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SUSPECTS = (("torch", 0.82), ("numpy", 0.1), ("transformers", 0.05), ("jinja2", 0.02), ("none of these", 0.01))


def told(kind: type[BisectionLines], terminal: bool, width: int = 200) -> tuple[str, BisectionLines]:
    """What a reporter writes of a short bisection."""
    screen = io.StringIO()
    reporter = kind(Console(file=screen, force_terminal=terminal, width=width, height=30, highlight=False))
    row = build.row("2.11.0", "5.8.1", "F.")
    failed, clean = (replace(sample.record, seconds=1.0) for sample in row.samples[:2])
    conflict = Unavailable("resolve", Reason.CONFLICT, "Because a==1\n  depends on b==2 and you require b==1, no.")
    with reporter:
        reporter.note("torch: 9 versions lie between")
        reporter.stage(Stage.FACTORS, ("torch", "numpy", "transformers", "jinja2"))
        reporter.posterior(Stage.FACTORS, SUSPECTS, 0.95)
        reporter.resolving("numpy bad")
        reporter.resolved("numpy bad", conflict, 0.5)
        reporter.resolved("torch bad", build.lock(), 0.5)
        reporter.batch_started(Stage.FACTORS, (("torch", "bad"),), 4)
        reporter.building("torch bad", build.lock(downloads=(("torch", 3_400_000_000),)))
        reporter.built("torch bad", build_environment(), 2.0)
        reporter.trial_started(row.cell, Side.THREADS, 1, 4)
        reporter.trial_ended(row.cell, failed, "")
        reporter.trial_ended(row.cell, clean, "")
        lost = replace(clean, outcome=Outcome.INFRA, message="the GPU was lost")
        reporter.trial_ended(row.cell, lost, f"not counted: {lost.message}")
        reporter.batch_ended(findings.BATCH)
        reporter.spent(5, 1, 100.0)
        reporter.remaining(600.0)
        reporter.posterior(Stage.FACTORS, SUSPECTS, 0.95)
        if isinstance(reporter, BisectionLive):
            reporter.live.refresh()
    return screen.getvalue(), reporter


def build_environment() -> Unavailable:
    return Unavailable("build", Reason.BUILD, "Failed to download `a`")


def test_lines_where_no_terminal_is() -> None:
    text, _ = told(BisectionLines, terminal=False)
    name = build.cell("2.11.0", "5.8.1").id
    assert "\x1b" not in text and "\r" not in text
    assert [line[8:] for line in text.splitlines()] == [
        "torch: 9 versions lie between",
        "Which difference: 4 suspects",
        "suspects: torch 82 %, numpy 10 %, transformers 5 %",
        "UNRESOLVABLE numpy bad: conflict: Because a==1 depends on b==2 and you require b==1, no.",
        "4 trials: torch bad, the rest good",
        "building torch bad: 1 distribution of 3.4 GB",
        "BUILD-FAILED torch bad: Failed to download `a`",
        f"  {name}: failed in 1.0 s: {FX}",
        f"  {name}: clean in 1.0 s",
        f"  {name}: infra in 1.0 s (not counted: the GPU was lost)",
        "torch bad, the rest good: 3 of 4 fail, 1 trial not counted",
        "suspects: torch 82 %, numpy 10 %, transformers 5 %; 5 trials, 1 environment built, 2 min; "
        "about 10 min left in this stage",
    ]


@pytest.mark.parametrize("width", [60, 200])
def test_bars_on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("TERM", "xterm")  # A dumb one gets no cursor movement.
    text, _ = told(BisectionLive, terminal=True, width=width)
    drawn = ESCAPE.sub("", text)
    assert re.search(r"torch +━+╸?━* *82 %", drawn), "a bar with its probability"
    assert "none of these" in drawn
    assert "5 trials, 1 environment built, 2 min; about 10 min left" in drawn
    lasting = [line[8:].strip() for line in drawn.splitlines() if re.match(r" *\d+:\d\d  ", line)]
    assert any(line.startswith("torch bad, the rest good: 3 of 4 fail") for line in lasting)
    assert not any("clean in" in line for line in lasting), "a batch has one line"
    assert any("not counted: the GPU was lost" in line for line in lasting)
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1, "the cursor comes back"
    assert "\x1b[2K" in text.rpartition("left in this stage")[2], "the bars are taken away"


def test_an_exception_gives_the_cursor_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = io.StringIO()
    with pytest.raises(KeyboardInterrupt), BisectionLive(Console(file=screen, force_terminal=True)):
        raise KeyboardInterrupt
    assert screen.getvalue().count("\x1b[?25l") == screen.getvalue().count("\x1b[?25h") == 1


def test_the_time_left_goes_down_and_not_below_nothing() -> None:
    reporter = BisectionLines(Console(file=io.StringIO()))
    reporter.remaining(5.0)
    assert reporter.left is not None
    reporter.left = (5.0, reporter.left[1] - 2.0)
    assert "about 3 s left" in reporter.effort()
    reporter.left = (5.0, reporter.left[1] - 100.0)
    assert "about 0 s left" in reporter.effort()
    reporter.remaining(None)
    assert "left" not in reporter.effort()


def test_many_suspects_are_added_up() -> None:
    reporter = BisectionLive(Console(file=io.StringIO(), width=100))
    reporter.stage(Stage.FACTORS, ())
    reporter.posterior(Stage.FACTORS, tuple((f"package{number}", 0.02) for number in range(50)), 0.95)
    shown = Console(file=io.StringIO(), width=100, record=True)
    shown.print(reporter.view())
    text = shown.export_text()
    assert "package7" in text and "package8" not in text and re.search(r"42 more +84 %", text)


def test_what_stages_say() -> None:
    screen = io.StringIO()
    reporter = BisectionLines(Console(file=screen, width=200, highlight=False))
    reporter.stage(Stage.ENDS, ("good", "bad"))
    reporter.batch_started(Stage.ENDS, (), 4)
    reporter.batch_started(Stage.ENDS, (("a", "bad"), ("b", "bad")), 1)
    reporter.stage(Stage.VERSIONS, ("2.11.0", "2.12.0"))
    reporter.batch_started(Stage.VERSIONS, (("b", "bad"), ("torch", "2.12.0")), 4)
    reporter.stage(Stage.CONFIRM, ("one", "other"))
    reporter.posterior(Stage.VERSIONS, SUSPECTS, 0.95)
    assert [line[8:] for line in screen.getvalue().splitlines()] == [
        "Both ends",
        "4 trials: the good end",
        "1 trial: the bad end",
        "Which version: 2 suspects",
        "4 trials: torch 2.12.0, 1 more bad",
        "Confirming on fresh trials",
    ]

"""Ctrl-C while a reproducer runs by hand."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.reproducers.conftest import command

BODY = """
def endless(worker):
    sys.stdout.write("at work\\n")  # one write: two threads say it at the same time
    sys.stdout.flush()
    while True:
        time.sleep(1)
trial.work([endless, endless])
sys.exit(trial.finish())
"""


@pytest.mark.parametrize(
    ("handler", "status"), [(signal.SIG_DFL, 130), (signal.SIG_IGN, None)], ids=["terminal", "background"]
)
def test_it_ends_at_once_and_is_no_failure(tmp_path: Path, handler: signal.Handlers, status: int | None) -> None:
    words, environment = command(tmp_path, BODY)
    previous = signal.signal(signal.SIGINT, handler)  # what the child inherits
    try:
        process = subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path
        )
    finally:
        signal.signal(signal.SIGINT, previous)
    with process:
        assert process.stdout is not None and process.stdout.readline() == "at work\n"
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        ended = process.poll()
        process.kill()
        said = process.stdout.read()
    assert ended == status
    assert ("interrupted" in said) == (status == 130) and "Traceback" not in said

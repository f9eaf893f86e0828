"""Ctrl-C at a terminal: who sits there is asked what is to become of the jobs."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time

import pytest

from tests.slurm.test_losses import TRIALS, small  # noqa: F401 - the fixture
from tests.slurm.world import Cluster


@pytest.mark.parametrize(("answer", "left"), [("y\n", True), ("\n", False)])
def test_the_question_at_a_terminal(small: Cluster, answer: str, left: bool) -> None:  # noqa: F811
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        # A shell of its own takes the terminal as the one that its Ctrl-C comes from.
        ["setsid", "--ctty", "--wait", sys.executable, "-m", "bisect_env", "matrix", "matrix.yaml"],
        cwd=small.world.folder,
        env={**os.environ, "UV_CACHE_DIR": str(small.world.uv_cache), "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = ""
    until = time.monotonic() + 90
    try:
        while len(small.runs("begin")) < 3:
            seen += _read(ours)
            assert process.poll() is None and time.monotonic() < until, seen[-3000:]
        os.write(ours, b"\x03")
        while "[y/N]" not in seen:
            seen += _read(ours)
            assert process.poll() is None and time.monotonic() < until, seen[-3000:]
        os.write(ours, answer.encode())
        while process.poll() is None:
            seen += _read(ours)
            assert time.monotonic() < until, seen[-3000:]
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert process.returncode == 130, seen[-3000:]
    assert ("left in Slurm's hands" in seen) == left, seen[-3000:]
    done = small.world.run("matrix", "matrix.yaml")
    assert done.returncode == 0 and "RACE 6/6" in done.stdout, done.stdout + done.stderr
    assert ("an earlier command was interrupted" in done.stderr) == left, done.stderr
    small.everything_once(TRIALS)
    small.nothing_left()


def _read(descriptor: int) -> str:
    if not select.select([descriptor], [], [], 0.1)[0]:
        return ""
    try:
        return os.read(descriptor, 65536).decode(errors="replace")
    except OSError:  # The last process on the other side has ended.
        return ""

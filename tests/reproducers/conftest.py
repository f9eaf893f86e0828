"""Runs small reproducers on the real protocol module, in real processes, with a synthetic `torch` of a few lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPRODUCERS = Path(__file__).parents[2] / "reproducers"
sys.path.insert(0, str(REPRODUCERS))

TORCH = {
    "torch/__init__.py": """
        __version__ = "9.9.0+cpu"
        class version: cuda = None
        class cuda:
            is_available = staticmethod(lambda: False)
    """,
    "torch/_dynamo/__init__.py": "",
    "torch/_dynamo/callback.py": """
        import contextlib, enum
        class Trigger(enum.Enum):
            DYNAMO = 1
        class Handler:
            @contextlib.contextmanager
            def install_callbacks(self, trigger, compile_id):
                yield
        callback_handler = Handler()
        compiling = lambda: callback_handler.install_callbacks(Trigger.DYNAMO, "0/0")
    """,
}

HEAD = '''
"""A reproducer of a test."""
import sys, threading, time
import protocol

OPTIONS = {
    "threads": {"default": 2, "min": 1, "max": 8, "help": "worker threads"},
    "device": {"default": "auto", "choices": ["auto", "cpu", "cuda"], "help": "where"},
}
trial = protocol.Trial.begin(OPTIONS, __doc__)
with trial.importing():
    import torch
    trial.windows.follow()
    from torch._dynamo.callback import compiling
trial.ready()
'''


@dataclass(frozen=True)
class Ran:
    status: int
    events: list[dict[str, Any]]
    text: str
    """The events file as written."""
    output: str
    errors: str

    def of(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == name]


Run = Callable[..., Ran]


def command(folder: Path, body: str, head: str = HEAD) -> tuple[list[str], dict[str, str]]:
    """Write the script and its torch; the argument list and the environment to run it with, by hand."""
    for name, source in TORCH.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
    script = folder / "script.py"
    script.write_text(head.lstrip() + textwrap.dedent(body))
    return [sys.executable, str(script)], {**os.environ, "PYTHONPATH": f"{REPRODUCERS}{os.pathsep}{folder}"}


def under_the_tool(folder: Path, condition: dict[str, Any]) -> dict[str, str]:
    """The two variables of the protocol."""
    (folder / "condition.json").write_text(json.dumps({"side": "threads", "seed": 0, **condition}))
    return {
        "BISECT_ENV_CONDITION": str(folder / "condition.json"),
        "BISECT_ENV_EVENTS": str(folder / "events.jsonl"),
    }


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(body: str, *, head: str = HEAD, **condition: Any) -> Ran:
        words, environment = command(tmp_path, body, head)
        environment |= under_the_tool(tmp_path, condition)
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30, check=False)
        written = tmp_path / "events.jsonl"
        text = written.read_text() if written.exists() else ""
        events = [json.loads(line) for line in text.splitlines()]
        return Ran(done.returncode, events, text, done.stdout, done.stderr)

    return run

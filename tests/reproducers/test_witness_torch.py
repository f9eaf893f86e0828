"""The witness under a real torch: what it names exists there, and dynamo makes the graphs that it makes without.

Run by the session `torch_tests`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from bisect_env.explanation.log import read_log
from bisect_env.explanation.records import Action, State, WitnessLog
from tests.reproducers.conftest import REPRODUCERS

PYTHON = os.environ.get("BISECT_ENV_TEST_TORCH", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="BISECT_ENV_TEST_TORCH names no interpreter that has torch")

GRAPHS = """
import json, torch, torch._dynamo
from torch._dynamo.utils import counters
f = torch.compile(lambda x: (x @ x).tanh().sum(), backend="aot_eager")
w = torch.randn(8, 8, requires_grad=True)
for _ in range(5):
    f(w).backward()
def step(x):
    loss = f(x)
    loss.backward()
    return loss
stepped = torch.compile(step, backend="aot_eager")
for _ in range(3):
    stepped(w)
from torch.nn.attention.flex_attention import flex_attention
q = torch.randn(1, 2, 128, 16)
attention = torch.compile(flex_attention, backend="aot_eager")
for _ in range(3):
    attention(q, q, q)
flex_attention(q, q, q)
torch.compile(lambda x: x + 1 if torch.compiler.is_compiling() else x, backend="eager", fullgraph=True)(q)
try:
    from transformers.integrations.flex_attention import compile_friendly_flex_attention as friendly
except ImportError:
    friendly = flex_attention
whole = torch.compile(lambda q: friendly(q, q, q) * 2, backend="aot_eager", fullgraph=True)
with torch.no_grad():
    for _ in range(3):
        whole(q)
print(json.dumps({kind: dict(counters[kind]) for kind in ("stats", "graph_break", "unimplemented")}))
"""


def run(folder: Path, arguments: list[str], witnessed: bool, **more: str) -> tuple[str, WitnessLog | None]:
    variables = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), **more}
    path = folder / "witness.jsonl"
    if witnessed:
        variables |= {"PYTHONPATH": str(REPRODUCERS / "witness"), "BISECT_ENV_WITNESS": str(path)}
    done = subprocess.run([PYTHON, *arguments], env=variables, capture_output=True, text=True, timeout=240)
    assert done.returncode in (0, 1), done.stderr[-3000:]
    return done.stdout, read_log(path.read_text()) if witnessed else None


def test_dynamo_makes_the_same_graphs(tmp_path: Path) -> None:
    script = tmp_path / "graphs.py"
    script.write_text(GRAPHS)
    plain, _ = run(tmp_path, [str(script)], witnessed=False)
    seen, log = run(tmp_path, [str(script)], witnessed=True)
    assert json.loads(plain) == json.loads(seen) and json.loads(plain)["stats"]["unique_graphs"] > 3
    assert log is not None and log.complete
    # The eager flex_attention call is told; those in compiled graphs are counted only.
    assert len([event for event in log.events if event.state is State.UNFUSED]) == 1
    compiles = [event.value for event in log.events if event.state is State.COMPILE and event.action is Action.ENTER]
    assert compiles[0].startswith("forward 0/0") and any(value.startswith("lazy backward") for value in compiles)


def test_every_state_is_watched_or_said_to_be_unknown(tmp_path: Path) -> None:
    words = [str(REPRODUCERS / "compile_race.py"), "--pattern", "hot", "--functions", "2", "--device", "cpu"]
    _, log = run(tmp_path, words, witnessed=True)
    assert log is not None
    spoken = {item.state for item in log.watched} | {item.state for item in log.unknown}
    assert spoken == set(State)
    for thread in ("w0", "w1"):
        own = [event for event in log.events if event.thread == thread]
        assert {State.CONFIG, State.COMPILE, State.LOCK, State.TRACE, State.TRACING} <= {event.state for event in own}
        assert all(event.stack for event in own)

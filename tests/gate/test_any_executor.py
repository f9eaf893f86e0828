"""A gate's answers are the same under an executor of another kind as on this host."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bisect_env.cli import executor_option
from bisect_env.cli.main import cli
from tests.engine.scrambled import Scrambled
from tests.support.gating import Gates, answers
from tests.support.racing import World

FULL: dict[str, Any] = {"tokens": 1000, "peak": 10**9, "dense": 0, "error": 0.001}


@pytest.fixture
def gates(world: World) -> Gates:
    """``engine`` 1.0 is the baseline; 1.1 is as good, and 1.2 races and needs twice the memory."""
    found = Gates(world)
    found.offer("1.0", **FULL)
    found.offer("1.1", **FULL)
    found.offer("1.2", **FULL | {"race": 1.0, "peak": 2 * 10**9})
    for name, version in (("now", "1.0"), ("fine", "1.1"), ("bad", "1.2")):
        found.freeze(f"{name}.txt", engine=version)
    return found


@pytest.mark.parametrize(("candidate", "code"), [("fine.txt", 0), ("bad.txt", 1)])
def test_the_same_answers(gates: Gates, monkeypatch: pytest.MonkeyPatch, candidate: str, code: int) -> None:
    folder = gates.world.folder
    executor = Scrambled(seed=5, lost=0.2)
    words = ("--baseline", "now.txt", "--candidate", candidate)
    with monkeypatch.context() as here:
        here.chdir(folder)
        here.setenv("UV_CACHE_DIR", str(gates.world.uv_cache))
        here.setattr(executor_option, "Local", lambda: executor)
        args = gates.words(*words, "--store", "elsewhere", "--json", "elsewhere.json")
        assert cli.main(args=args, prog_name="bisect-env", standalone_mode=False) == code
    elsewhere = json.loads((folder / "elsewhere.json").read_text())
    done, here_found = gates.run(*words)
    assert done.returncode == code, done.stderr
    assert elsewhere["decision"] == here_found["decision"]
    # How many run at a time decides how much a certain fail leaves open, and nothing else.
    pairs = {question: {answer, answers(here_found)[question]} for question, answer in answers(elsewhere).items()}
    alike = [question for question, given in pairs.items() if len(given) == 1]
    assert all("inconclusive" in given for given in pairs.values() if len(given) > 1)
    assert len(alike) == len(pairs) if code == 0 else {"environment", "races", "memory"} <= set(alike)
    assert executor.most_at_once > 2 and executor.losses

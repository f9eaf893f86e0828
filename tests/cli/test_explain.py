"""``explain`` as a user runs it: a pretended torch whose tracing flag is one for all threads, and the real witness."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bisect_env.store.database import Store
from bisect_env.trials.records import Side
from tests.support.racing import World
from tests.support.schemas import matching

TRACE = """\
_is_fx_tracing_flag = False


def is_fx_symbolic_tracing():
    return _is_fx_tracing_flag


class Tracer:
    def trace(self, work):
        global _is_fx_tracing_flag
        old_is_fx_tracing_flag = _is_fx_tracing_flag
        _is_fx_tracing_flag = True
        try:
            return work()
        finally:
            _is_fx_tracing_flag = old_is_fx_tracing_flag
"""
WRAPPER = """\
from torch.fx import _symbolic_trace


def compile_wrapper(work):
    is_fx_symbolic_tracing = _symbolic_trace.is_fx_symbolic_tracing
    if is_fx_symbolic_tracing():
        raise RuntimeError("Detected that you are using FX to symbolically trace a dynamo-optimized function.")
    return work()
"""
SCRIPT = """\
import json, os, sys, threading, time, traceback

condition = json.load(open(os.environ["BISECT_ENV_CONDITION"]))
events = open(os.environ["BISECT_ENV_EVENTS"], "a", buffering=1)


def say(event, **values):
    events.write(json.dumps({"event": event, "t": time.time(), **values}) + "\\n")


say("start", pid=os.getpid())
import torch
from torch._dynamo.eval_frame import compile_wrapper
from torch.fx._symbolic_trace import Tracer

say("ready", versions={"torch": torch.__version__}, devices=[])
time.sleep(torch.FATE.get("seconds", 0))
tracing, called = threading.Event(), threading.Event()
status = 0


def traces():
    if torch.FATE.get("race") and condition["side"] == "threads":
        Tracer().trace(lambda: (tracing.set(), called.wait()))
    else:
        Tracer().trace(lambda: None)
        tracing.set()


def calls():
    global status
    tracing.wait()
    try:
        compile_wrapper(lambda: None)
    except RuntimeError as error:
        status = 1
        say("failure", thread="w1", type="RuntimeError", message=str(error), module="torch._dynamo.eval_frame",
            where="compile_wrapper:7", traceback=traceback.format_exc())
    finally:
        called.set()


threads = [threading.Thread(target=work, name=name) for name, work in (("w0", traces), ("w1", calls))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
say("done")
sys.exit(status)
"""
MATRIX = """\
name: flags
index: {{urls: ['{url}']}}
reproducer: {{command: [python, race.py], files: [race.py]}}
axes: {{torch: {versions}}}
conditions: {{threads: 2}}
"""


@pytest.fixture
def flags(world: World) -> World:
    """A matrix of a torch that races, 2.11.0, and of one that does not, 2.14.1."""
    files = {
        "torch/fx/__init__.py": "",
        "torch/fx/_symbolic_trace.py": TRACE,
        "torch/_dynamo/__init__.py": "",
        "torch/_dynamo/eval_frame.py": WRAPPER,
    }
    world.torch("2.11.0", files, race=True)
    world.torch("2.14.1", files)
    world.torch("2.13.0", files, race=True, seconds=1.5)
    (world.folder / "race.py").write_text(SCRIPT)
    matrix(world, "[2.11.0, 2.14.1]")
    return world


def matrix(world: World, versions: str) -> None:
    (world.folder / "m.yaml").write_text(MATRIX.format(url=world.index.url, versions=versions))


def sides(world: World) -> dict[str, int]:
    """How many trials of each side are stored."""
    return dict(Counter(side for _, _, side, _, _ in world.trials()))


def witnessed(world: World) -> list[str]:
    return [trial for trial, _, side, _, _ in world.trials() if side == "witness"]


def test_a_race_is_explained_stored_and_used_again(flags: World) -> None:
    files = {name: flags.folder / name for name in ("why.md", "why.json", "why.html")}
    done = flags.run(
        "explain", "torch=2.11.0", "m.yaml", "-o", "why.md", "--json", "why.json", "--html", "why.html"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Thread w0 set the tracing flag at " in done.stdout
    assert "from trace (torch/fx/_symbolic_trace.py:12)" in done.stdout.replace("\n", " ")
    assert "in compile_wrapper (torch/_dynamo/eval_frame.py:7)" in " ".join(done.stdout.split())
    assert "[3/12]" in done.stderr and "[4/12]" not in done.stderr
    document = matching("explain", json.loads(files["why.json"].read_text()))
    assert (document["failed"], document["plain"], document["plain_failed"], len(document["accounts"])) == (3, 3, 3, 3)
    standings = {each["name"]: each["standing"] for each in document["hypotheses"]}
    assert standings["another thread's trace"] == "kept" and standings["the tracing flag sticks"] == "eliminated"
    assert standings["the failure needs two threads"] == "kept"
    assert "stored for the matrix too: 3 in one thread and 3 with threads and no witness (--controls 0" in done.stderr
    assert "`bisect-env gate` shows whether it does" in " ".join(done.stdout.split())
    assert files["why.md"].read_text().startswith("torch-2.11.0: another thread's trace")
    assert "<svg" in files["why.html"].read_text()
    first = witnessed(flags)
    again = flags.run("explain", "torch-2.11.0", "m.yaml")
    assert again.returncode == 0 and "3 witnessed trials are stored and used again" in again.stderr
    assert witnessed(flags) == first and sides(flags) == {"witness": 3, "serial": 3, "threads": 3}
    anew = flags.run("explain", "torch-2.11.0", "m.yaml", "--again", "--trials", "1")
    assert anew.returncode == 0 and "1 of 1 witnessed trial" in anew.stdout
    assert len(witnessed(flags)) == 4
    assert not flags.processes()


def test_what_does_not_fail_is_undecided(flags: World) -> None:
    done = flags.run("explain", "torch-2.14.1", "m.yaml", "--trials", "2", "--controls", "0")
    assert done.returncode == 3, done.stderr
    assert "0 of 2 witnessed trials went wrong" in done.stdout and sides(flags) == {"witness": 2}


def test_a_matrix_counts_the_controls_and_runs_what_is_missing(flags: World) -> None:
    (flags.folder / "m.yaml").write_text((flags.folder / "m.yaml").read_text() + "trials: 3\ncontrols: 3\nsolo: 0\n")
    flags.run("explain", "torch-2.11.0", "m.yaml", "--trials", "1", "--controls", "1")
    assert sides(flags) == {"witness": 1, "serial": 1, "threads": 1}
    dry = flags.run("matrix", "m.yaml", "--cell", "torch-2.11.0", "--dry-run")
    assert "at most 4 trials to run" in dry.stdout
    assert flags.run("matrix", "m.yaml", "--cell", "torch-2.11.0").returncode == 0
    assert sides(flags) == {"witness": 1, "serial": 3, "threads": 3}
    assert sorted(index for _, _, side, index, _ in flags.trials() if side == "serial") == [0, 1, 2]
    flags.run("explain", "torch-2.11.0", "m.yaml", "--trials", "1")
    assert sides(flags) == {"witness": 1, "serial": 3, "threads": 3}


def dry(world: World, *args: str) -> dict[str, Any]:
    """What a dry run would do; it changes nothing but what is resolved."""
    before = world.trials(counted=False), sorted(world.store.glob("*/*"))
    done = world.run("explain", *args, "--dry-run", "--json", "plan.json", "-o", "plan.txt", "--html", "plan.html")
    assert done.returncode == 0, done.stderr
    assert (world.trials(counted=False), sorted(world.store.glob("*/*"))) == before
    assert "--html: nothing was tried, so that file is not written" in done.stderr
    assert not (world.folder / "plan.html").exists()
    assert (world.folder / "plan.txt").read_text() == done.stdout
    return matching("explain-plan", json.loads((world.folder / "plan.json").read_text()))


def numbers(series: dict[str, int]) -> tuple[int, int, int]:
    return series["stored"], series["least"], series["most"]


def test_a_dry_run_tells_what_it_takes_and_what_it_tells_comes_true(flags: World) -> None:
    plan = dry(flags, "torch=2.11.0", "m.yaml")
    (environment,) = plan["environments"]
    assert not environment["built"] and environment["packages"] == 1 and plan["download_bytes"] > 0
    assert numbers(plan["witnessed"]) == (0, 3, 12) and plan["until"] == 3 and not plan["warm_up"]
    assert numbers(plan["serial"]) == numbers(plan["threads"]) == (0, 3, 3) and plan["seconds"] is None
    with Store(flags.store / "store.sqlite", read_only=True) as store:
        assert not store.runs("explain")
    assert flags.run("explain", "torch=2.11.0", "m.yaml", "--trials", "2", "--controls", "1").returncode == 0
    plan = dry(flags, "torch=2.11.0", "m.yaml")
    assert [each["built"] for each in plan["environments"]] == [True] and plan["download_bytes"] == 0
    # Both went wrong: the third may be the last.
    assert numbers(plan["witnessed"]) == (2, 1, 10) and plan["seconds"] > 0
    assert numbers(plan["serial"]) == numbers(plan["threads"]) == (1, 2, 2)
    assert numbers(dry(flags, "torch=2.11.0", "m.yaml", "--again")["witnessed"]) == (0, 3, 12)
    assert numbers(dry(flags, "torch=2.11.0", "m.yaml", "--trials", "5")["witnessed"]) == (2, 3, 3)
    assert flags.run("explain", "torch=2.11.0", "m.yaml").returncode == 0
    assert sides(flags) == {"witness": 3, "serial": 3, "threads": 3}
    plan = dry(flags, "torch=2.11.0", "m.yaml")
    assert not plan["environments"] and not any(plan[kind]["most"] for kind in ("witnessed", "serial", "threads"))
    assert plan["seconds"] == 0


def test_a_dry_run_of_a_prepared_cache_tells_of_the_trial_that_fills_it(flags: World) -> None:
    text = (flags.folder / "m.yaml").read_text()
    (flags.folder / "m.yaml").write_text(text.replace("{threads: 2}", "{threads: 2, cache: stale}"))
    plan = dry(flags, "torch=2.14.1", "m.yaml")
    assert plan["warm_up"] and [each["cell"] for each in plan["environments"]] == ["torch-2.14.1", "torch-2.11.0"]
    flags.run("explain", "torch=2.14.1", "m.yaml", "--trials", "1", "--controls", "0")
    plan = dry(flags, "torch=2.14.1", "m.yaml", "--trials", "2")
    assert not plan["warm_up"] and all(each["built"] for each in plan["environments"])


def test_a_dry_run_of_a_cell_without_an_environment_is_refused(flags: World) -> None:
    matrix(flags, "[2.9.9]")
    done = flags.run("explain", "torch-2.9.9", "m.yaml", "--dry-run")
    assert done.returncode == 2 and "torch-2.9.9 has no environment here" in done.stderr


def test_witnessed_trials_forecast_nothing(flags: World) -> None:
    flags.run("explain", "torch-2.11.0", "m.yaml", "--trials", "1", "--controls", "0")
    dry = flags.run("matrix", "m.yaml", "--cell", "torch-2.11.0", "--dry-run")
    assert dry.returncode == 0 and "from the trials stored so far" not in dry.stdout
    flags.run("explain", "torch-2.11.0", "m.yaml", "--trials", "1", "--controls", "1")
    dry = flags.run("matrix", "m.yaml", "--cell", "torch-2.11.0", "--dry-run")
    assert "from the trials stored so far" in dry.stdout


TRAINER = """\
import json, os, sys, threading, time
import torch
from torch._dynamo.eval_frame import compile_wrapper
from torch.fx._symbolic_trace import Tracer

together = json.load(open(os.environ["BISECT_ENV_CONDITION"]))["side"] == "threads"
tracing, called, failed = threading.Event(), threading.Event(), []


def a():
    Tracer().trace(lambda: (tracing.set(), called.wait(20 if together else 0)))


def b():
    tracing.wait()
    try:
        compile_wrapper(lambda: None)
    {caught}
    finally:
        called.set()


threads = [threading.Thread(target=a), threading.Thread(target=b)]
for thread in threads:
    thread.start()
    if not together:
        thread.join()
for thread in threads:
    thread.join()
time.sleep(6 if together and {late} else 0)
{end}
"""
RAISES = "except ZeroDivisionError: pass"
KEEPS = "except RuntimeError as error: failed.append(error); print('step 3 failed:', error)"


@pytest.mark.parametrize(
    ("caught", "late", "end"),
    [
        pytest.param(RAISES, True, "sys.exit(together)", id="long after its thread has died"),
        pytest.param(RAISES, False, "os._exit(together)", id="without its exit handlers"),
        pytest.param(KEEPS, False, "os._exit(bool(failed))", id="and has caught it"),
        pytest.param(KEEPS, False, "if failed: raise failed[0]", id="by raising it again in its main thread"),
        pytest.param(KEEPS, False, "if failed: os.abort()", id="by a signal"),
    ],
)
def test_a_trainer_of_ones_own_is_explained_however_it_ends(flags: World, caught: str, late: bool, end: str) -> None:
    (flags.folder / "race.py").write_text(TRAINER.format(caught=caught, late=late, end=end))
    done = flags.run("explain", "torch-2.11.0", "m.yaml", "--trials", "1", "--controls", "0", "--json", "-")
    assert done.returncode == 0, done.stderr
    document = matching("explain", json.loads(done.stdout))
    assert "another thread's trace, seen in 1 of 1 witnessed trial" in document["sentence"]
    assert "In thread Thread-2 (b) the call failed while thread Thread-1 (a) had" in document["sentence"]
    assert "working for" not in " ".join(document["accounts"][0]["sentences"])
    assert document["accounts"][0]["log"]["complete"]


def test_verdicts_do_not_count_witnessed_trials_and_explain_counts_those_without(flags: World) -> None:
    (flags.folder / "m.yaml").write_text((flags.folder / "m.yaml").read_text() + "trials: 3\ncontrols: 3\nsolo: 0\n")
    flags.run("explain", "torch-2.11.0", "m.yaml", "--trials", "1", "--controls", "0")
    done = flags.run("matrix", "m.yaml", "--cell", "torch-2.11.0")
    assert done.returncode == 0, done.stderr
    assert sides(flags) == {"threads": 3, "serial": 3, "witness": 1}
    # Without FILE: the matrix that the cell was measured with.
    found = flags.run("explain", "torch-2.11.0", "--trials", "1", "--json", "-")
    assert found.returncode == 0, found.stderr
    assert f"taking {flags.folder / 'm.yaml'}, with which this cell was measured" in found.stderr
    document = json.loads(found.stdout)
    assert (document["plain_failed"], document["plain"]) == (3, 3)


def test_after_an_interruption_it_goes_on(flags: World) -> None:
    matrix(flags, "[2.13.0]")
    process = flags.start("explain", "torch-2.13.0", "m.yaml", "--trials", "3", "--controls", "0")
    until = time.monotonic() + 60
    while not witnessed(flags) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130 and "Interrupted. What was witnessed is kept" in stderr
    assert "Thread w0 set the tracing flag" in stdout
    kept = witnessed(flags)
    assert 1 <= len(kept) < 3 and not flags.processes()
    done = flags.run("explain", "torch-2.13.0", "m.yaml", "--trials", "3", "--controls", "0")
    assert done.returncode == 0 and len(witnessed(flags)) == 3 and witnessed(flags)[: len(kept)] == kept
    with Store(flags.store / "store.sqlite", read_only=True) as store:
        assert [run.status for run in store.runs("explain")] == ["completed", "interrupted"]
        trial = store.trial(kept[0])
        assert trial is not None and trial.record.side is Side.WITNESS and trial.record.witness


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("torch-2.12",), "m.yaml has no cell 'torch-2.12'"),
        (("torch-2",), "fits 2 cells of m.yaml"),
        (("torch-2.11.0", "--json", "nowhere/x.json"), "there is no folder nowhere"),
        (("torch-2.11.0", "--trials", "0"), "0 is not in the range"),
    ],
)
def test_bad_input_writes_nothing(flags: World, args: tuple[str, ...], says: str) -> None:
    done = flags.run("explain", args[0], "m.yaml", *args[1:])
    assert done.returncode == 2 and says in done.stderr
    assert not flags.store.exists()


def test_a_cell_without_an_environment_is_refused(flags: World) -> None:
    matrix(flags, "[2.9.9]")
    done = flags.run("explain", "torch-2.9.9", "m.yaml")
    assert done.returncode == 2 and "torch-2.9.9 has no environment here" in done.stderr


def test_trials_that_cannot_run_here_end_it(flags: World) -> None:
    (flags.folder / "race.py").write_text("import sys\nsys.exit(125)\n")
    done = flags.run("explain", "torch-2.11.0", "m.yaml")
    assert done.returncode == 2 and "its trials cannot run here: skipped" in done.stderr
    assert len(witnessed(flags)) == 1


def test_help_teaches(tmp_path: Path, world: World) -> None:
    text = world.run("explain", "--help").stdout
    assert "bisect-env explain torch=2.11.0,transformers=5.8.1 matrices/cpu.yaml" in text and "3  undecided" in text


def test_a_store_brought_home_is_explained_where_nothing_can_run(flags: World) -> None:
    assert flags.run("explain", "torch=2.11.0", "m.yaml", "--json", "there.json").returncode == 0
    brought = flags.folder / "brought"
    brought.mkdir()
    shutil.copy(flags.store / "store.sqlite", brought)
    shutil.rmtree(flags.store)
    flags.index.stop()
    (brought / "store.sqlite").chmod(0o444)
    before = (brought / "store.sqlite").read_bytes()
    words = ("explain", "torch=2.11.0", "m.yaml", "--stored", "--store", "brought")
    done = flags.run(*words, "--json", "here.json", "--html", "here.html")
    assert done.returncode == 0, done.stderr
    assert "another thread's trace" in done.stdout and "Traceback" not in done.stderr
    there, here = (json.loads((flags.folder / name).read_text()) for name in ("there.json", "here.json"))
    assert here == there
    assert (brought / "store.sqlite").read_bytes() == before and (flags.folder / "here.html").stat().st_size
    none = flags.run("explain", "torch=2.14.1", "m.yaml", "--stored", "--store", "brought")
    assert none.returncode == 2 and "no witnessed trial" in none.stderr
    assert "a cell that was explained there (torch-2.11.0)" in none.stderr
    for given in (["--dry-run"], ["--again"], ["--trials", "5"], ["--gpus", "0"], ["--executor", "local"]):
        refused = flags.run(*words, *given)
        assert refused.returncode == 2 and f"--stored runs nothing: {given[0]} cannot go with it" in refused.stderr

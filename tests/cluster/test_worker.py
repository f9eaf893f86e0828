"""A job as a plain process: what it builds, runs and leaves, and what is left of it when it is told to end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bisect_env.cluster import job
from bisect_env.cluster.job import Item, ItemResult, JobSpec
from bisect_env.engine.attempt import Prepared
from bisect_env.environments.places import built
from bisect_env.environments.records import Environment
from bisect_env.trials.records import Outcome, Side
from tests.cluster.site import Site


def wait_for(happened: Callable[[], object], process: subprocess.Popen[str], seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not happened():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.02)


def outcomes(found: dict[str, ItemResult]) -> dict[str, Outcome]:
    return {name: result.sample.record.outcome for name, result in found.items()}


def test_a_job_builds_runs_and_leaves_results(site: Site) -> None:
    spec = site.spec([{}, {"status": 1}])
    ended, log = site.do(spec, SLURM_JOB_ID="17", SLURMD_NODENAME="node3", CUDA_VISIBLE_DEVICES="1")
    folder = site.root / "jobs" / "job"
    found = job.results(folder)
    assert outcomes(found) == {"i0": Outcome.CLEAN, "i1": Outcome.FAILED}
    for number, item in enumerate(spec.items):
        result = found[item.id]
        assert result.cell_key == item.attempt.slot.cell.key
        assert (result.sample.block, result.sample.run_id) == (number, "r1")
        record = result.sample.record
        assert record.environment == spec.wanted[0].lock.address and "torch 2.14.1" in record.output
        host = dict(record.host)
        assert (host["node"], host["slurm job"], host["CUDA_VISIBLE_DEVICES given"]) == ("node3", "17", "1")
    assert ended.trouble is None and not ended.stopped and "c1: threads 1: failed" in log
    assert (ended.host, ended.job_id, ended.devices_given) == ("node3", "17", "1")
    (environment,) = ended.environments
    assert isinstance(environment, Environment) and environment.freeze.strip() == "torch==2.14.1"
    assert ended.build_seconds >= environment.build_seconds > 0 < ended.trial_seconds
    assert site.left() == []
    assert sorted(path.name for path in site.root.iterdir()) == ["environments", "jobs"], "no store, no trials"


def test_what_stands_is_found_and_proved(site: Site) -> None:
    first, _ = site.do(site.spec([]), "first")
    second, _ = site.do(site.spec(), "second")
    assert first.trial_seconds == 0 and isinstance(first.environments[0], Environment)
    assert isinstance(second.environments[0], Environment) and second.environments[0].build_seconds == 0
    (folder,) = built(site.root)
    (module,) = folder.glob("venv/lib/*/site-packages/torch/__init__.py")
    module.unlink()
    module.write_text("raise ImportError\n")
    third, log = site.do(site.spec(), "third")
    assert "no longer what its lock says" in log and third.trouble is None
    assert outcomes(job.results(site.root / "jobs" / "third")) == {"i0": Outcome.CLEAN}


def test_another_lock_under_the_same_address_builds_nothing(site: Site) -> None:
    spec = site.spec([{}])
    (wanted,) = spec.wanted
    ended, _ = site.do(replace(spec, wanted=(replace(wanted, lock=replace(wanted.lock, text="")),)))
    assert ended.trouble is not None and "not the one of its address" in ended.trouble.message
    assert not built(site.root)
    assert not job.results(site.root / "jobs" / "job")


def test_a_folder_of_the_nodes_own(site: Site) -> None:
    ended, _ = site.do(site.spec(node_folder="$OWN/environments", uv_cache="$OWN/uv"), OWN=str(site.folder / "own"))
    assert ended.trouble is None and built(site.root) == ()
    assert len(built(site.folder / "own" / "environments")) == 1 and (site.folder / "own" / "uv").is_dir()


def test_jobs_that_ask_at_once_build_once(site: Site) -> None:
    # Long enough for the last process to come while the first one builds.
    spec = site.spec([], [site.slow_source(4.0)])
    processes = [site.start(site.send(spec, f"job{number}")) for number in range(5)]
    for process in processes:
        log, _ = process.communicate(timeout=120)
        assert process.returncode == 0, log
    ends = [job.ended(site.root / "jobs" / f"job{number}") for number in range(5)]
    seconds = [e.environments[0].build_seconds for e in ends if e and isinstance(e.environments[0], Environment)]
    assert len(seconds) == 5 and sum(value > 0 for value in seconds) == 1
    assert site.left() == []


BUILDERS = """
import os, sys, time
from pathlib import Path
from bisect_env.environments import building
from bisect_env.environments.claims import Claims
from bisect_env.environments.uv import Uv
from tests.support.environments import lock_of, request_of
path, root, cache, log, ready = map(Path, sys.argv[1:6])
lock, request, uv = lock_of(path), request_of(path), Uv(cache)
children = []
for _ in range(20):
    if not os.fork():
        while not ready.exists():
            time.sleep(0.001)
        found = building.build(lock, request, root, uv, 60.0, claims=Claims(5.0))
        with log.open("a") as file:
            file.write(f"{found.build_seconds > 0} {found.python.exists()}\\n")
        os._exit(0)
ready.touch()
sys.exit(any(os.wait()[1] for _ in range(20)))
"""


def test_twenty_builders_of_one_address(site: Site) -> None:
    names = [site.torch(), site.root, site.uv_cache, site.folder / "log", site.folder / "ready"]
    command = [sys.executable, "-c", BUILDERS, *map(str, names)]
    finished = subprocess.run(command, cwd=Path(__file__).parents[2], timeout=60, check=False)
    assert finished.returncode == 0
    assert sorted((site.folder / "log").read_text().splitlines()) == ["False True"] * 19 + ["True True"]
    assert site.left() == []


def test_a_builder_that_is_killed_is_followed(site: Site) -> None:
    spec = site.spec([], [site.slow_source(3.0)])
    first, second = site.send(spec, "first"), site.send(spec, "second")
    with site.running(first) as process:
        wait_for(lambda: list(site.root.glob("environments/.locks/*.claim")), process)
        wait_for(lambda: list(site.root.glob("environments/.tmp-*/venv")), process)
        process.kill()
        process.wait()
    with site.running(second) as process:
        log, _ = process.communicate(timeout=60)
    ended = job.ended(second)
    assert ended is not None and ended.trouble is None and job.ended(first) is None, log
    assert isinstance(ended.environments[0], Environment) and ended.environments[0].build_seconds > 0
    # The disk of the killed one keeps what it had there; nothing of the shared folder does.
    assert all(name.startswith("bisect-env-scratch-") for name in site.left())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_in_a_trial(site: Site, number: signal.Signals) -> None:
    mark = site.folder / "mark"
    folder = site.send(site.spec([{}, {"mark": str(mark), "seconds": 60}, {}]))
    with site.running(folder) as process:
        wait_for(mark.exists, process)
        began = time.monotonic()
        process.send_signal(number)
        process.send_signal(number)
        log, _ = process.communicate(timeout=20)
        assert time.monotonic() - began < 2, log
    assert process.returncode == 130
    assert outcomes(job.results(folder)) == {"i0": Outcome.CLEAN}
    ended = job.ended(folder)
    assert ended is not None and ended.stopped and ended.trouble is None
    assert site.left() == [] and not is_alive(int(mark.read_text()))


HEARS = """\
import json, os, pathlib, signal, sys, time

condition = json.load(open(os.environ["BISECT_ENV_CONDITION"]))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(condition["status"]))
pathlib.Path(condition["mark"]).write_text(f"{os.getpid()} {os.getppid()}")
while True:
    time.sleep(0.05)  # Not one long sleep: Python answers a signal that comes just before it only after it.
"""
"""A trial that ends itself at a signal to end, and says what it will."""


@pytest.mark.parametrize("status", [1, 143])
@pytest.mark.parametrize("supervisor", [False, True])
def test_slurm_tells_all_processes_of_a_job_at_once(site: Site, status: int, supervisor: bool) -> None:
    mark = site.folder / "mark"
    folder = site.send(site.spec([{"mark": str(mark), "status": status}], script=HEARS))
    with site.running(folder) as process:
        wait_for(mark.exists, process)
        wait_for(lambda: " " in mark.read_text(), process)
        # Whichever of them gets it first.
        os.kill(int(mark.read_text().split()[supervisor]), signal.SIGTERM)
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        log, _ = process.communicate(timeout=20)
    assert job.results(folder) == {}, log
    ended = job.ended(folder)
    assert process.returncode == 130 and ended is not None and ended.stopped and ended.trouble is None, log


def asked(site: Site, mark: Path) -> JobSpec:
    """Its Python takes a minute to say which one it is."""
    spec = site.spec([{}])
    (wanted,) = spec.wanted
    slow = site.folder / "slow-python"
    slow.write_text(f'#!/bin/sh\n: > {mark}\nsleep 60\nexec {wanted.lock.interpreter.path} "$@"\n')
    slow.chmod(0o755)
    lock = replace(wanted.lock, interpreter=replace(wanted.lock.interpreter, path=slow))
    return replace(spec, wanted=(replace(wanted, lock=lock),))


def built_from_source(site: Site, mark: Path) -> JobSpec:
    return site.spec([{}], [site.slow_source(60.0)])


def imported(site: Site, mark: Path) -> JobSpec:
    text = f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(60)\n"
    return site.spec([{}], [site.wheels.wheel("torch", "2.9.0", files={"torch/__init__.py": text})])


@pytest.mark.parametrize("first", ["its processes", "the job"])
@pytest.mark.parametrize("doing", [asked, built_from_source, imported])
def test_what_a_signal_to_the_whole_job_ends_is_no_fault_of_the_node(
    site: Site, doing: Callable[[Site, Path], JobSpec], first: str
) -> None:
    mark = site.folder / "mark"
    folder = site.send(doing(site, mark))
    with site.running(folder) as process:
        wait_for(lambda: mark.exists() or any(site.root.glob("environments/.tmp-*/venv")), process)
        time.sleep(0.3)
        others = psutil.Process(process.pid).children(recursive=True)
        assert others
        if first == "the job":
            process.terminate()
        for each in others:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.terminate()
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        log, _ = process.communicate(timeout=20)
    ended = job.ended(folder)
    assert ended is not None and ended.stopped and ended.trouble is None, log
    assert process.returncode == 130 and site.left() == [], log


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_told_to_end_in_a_build(site: Site) -> None:
    folder = site.send(site.spec([], [site.slow_source(60.0)]))
    with site.running(folder) as process:
        wait_for(lambda: list(site.root.glob("environments/.tmp-*/venv")), process)
        time.sleep(0.5)
        began = time.monotonic()
        process.terminate()
        log, _ = process.communicate(timeout=20)
        assert time.monotonic() - began < 2, log
    ended = job.ended(folder)
    assert ended is not None and ended.stopped and ended.trouble is None
    assert site.left() == [] and built(site.root) == ()


def test_told_to_end_while_another_builds(site: Site) -> None:
    spec = site.spec([], [site.slow_source(60.0)])
    first, second = site.send(spec, "first"), site.send(spec, "second")
    with site.running(first) as builder:
        wait_for(lambda: list(site.root.glob("environments/.tmp-*/venv")), builder)
        with site.running(second) as waiter:
            wait_for(lambda: list(site.disk.glob("*/store.sqlite")), waiter)
            time.sleep(0.5)
            began = time.monotonic()
            waiter.terminate()
            log, _ = waiter.communicate(timeout=20)
            assert time.monotonic() - began < 2, log
        assert len(list(site.root.glob("environments/.locks/*.claim"))) == 1 and builder.poll() is None
        builder.terminate()
        builder.wait(timeout=20)
    assert site.left() == []


def test_told_to_end_where_nothing_looks_for_it(site: Site) -> None:
    """The import of a large torch is waited for by nothing that looks at the stop event."""
    mark = site.folder / "mark"
    slow = f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(60)\n"
    wheel = site.wheels.wheel("torch", "2.9.0", files={"torch/__init__.py": slow})
    folder = site.send(site.spec([], [wheel]))
    with site.running(folder) as process:
        wait_for(mark.exists, process)
        began = time.monotonic()
        process.terminate()
        log, _ = process.communicate(timeout=20)
        assert time.monotonic() - began < 2, log
    ended = job.ended(folder)
    assert ended is not None and ended.stopped and ended.trouble is None
    assert site.left() == []


def test_started_again_it_goes_on(site: Site) -> None:
    mark = site.folder / "mark"
    spec = site.spec([{}, {"mark": str(mark), "seconds": 60}])
    folder = site.send(spec)
    with site.running(folder) as process:
        wait_for(lambda: mark.exists() and mark.read_text(), process)
        process.kill()
        process.wait()
    until = time.monotonic() + 10
    while is_alive(int(mark.read_text())):
        assert time.monotonic() < until, "the trial ends with its worker"
        time.sleep(0.02)
    before = job.results(folder)
    assert list(before) == ["i0"] and job.ended(folder) is None
    with site.running(folder) as process:
        log, _ = process.communicate(timeout=60)
    after = job.results(folder)
    assert list(after) == ["i0", "i1"] and after["i0"] == before["i0"], log


def test_variables_to_pass_on_and_nothing_else(site: Site) -> None:
    spec = site.spec()
    spec = replace(spec, matrix=replace(spec.matrix, pass_env=("TOKEN",)))
    ended, _ = site.do(spec, TOKEN="s3cret-value", OTHER="not-this")
    (result,) = job.results(site.root / "jobs" / "job").values()
    assert ended.trouble is None and "'TOKEN'" in result.sample.record.output
    assert "'OTHER'" not in result.sample.record.output and "SLURM" not in result.sample.record.output
    for path in (site.root / "jobs").rglob("*.json"):
        assert "s3cret-value" not in path.read_text()


def test_a_prepared_cache_lies_where_all_nodes_find_it(site: Site) -> None:
    spec = site.spec([{"cache": "warm", "entry": True}])
    prepared = Prepared(site.root / "caches" / "key", spec.wanted[0].lock.address)
    attempt = replace(spec.items[0].attempt, prepared=prepared)
    warm_up = replace(attempt, slot=replace(attempt.slot, side=Side.WARMUP))
    site.do(replace(spec, items=(Item("warm-up", warm_up),)), "first")
    assert (prepared.folder / "inductor" / "entry").is_file()
    ended, _ = site.do(replace(spec, items=(Item("trial", attempt),)), "second")
    outputs = [job.results(site.root / "jobs" / name) for name in ("first", "second")]
    words = [result.sample.record.output.split()[-1] for found in outputs for result in found.values()]
    assert ended.trouble is None and words == ["cold", "warm"]

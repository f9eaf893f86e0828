"""Trials of real processes: each way to end, and that nothing is left running."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bisect_env.matrix.cells import Condition, Limits
from bisect_env.trials import runner
from bisect_env.trials.isolation import MARKER
from bisect_env.trials.process import Process
from bisect_env.trials.records import Outcome, Reproducer, Side
from tests.trials.scripts import PROTOCOL, READY, run_command, run_script, spec_of


def running(marker: str) -> list[int]:
    """Processes that carry the marker, zombies aside."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARKER) == marker and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def wait_for(path: Path, seconds: float = 15.0) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text().strip()
        time.sleep(0.02)
    raise AssertionError(f"{path} did not appear")


def gone(pid: int, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_a_clean_trial(tmp_path: Path) -> None:
    record = run_script(
        tmp_path,
        """
        condition = json.load(open(os.environ["BISECT_ENV_CONDITION"]))
        say("note", key="condition", value=condition)
        say("note", key="folder", value=os.getcwd())
        say("step", thread="w0", tokens=100, seconds=0.1, warm=True)
        say("cache", hits=4, misses=1)
        time.sleep(0.3)
        say("done")
        print("well", file=sys.stderr)
        """,
    )
    assert record.outcome is Outcome.CLEAN and record.exit_status == 0 and not record.failures
    assert '"seed": 7' in dict(record.extra)["condition"] and '"side": "threads"' in dict(record.extra)["condition"]
    assert (record.cache_hits, record.cache_misses) == (4, 1)
    assert record.versions == (("torch", "2.11.0+cu130"),)
    assert 0.3 <= record.longest_silence < 5 and record.seconds >= 0.3
    assert "well" in record.output
    assert not (tmp_path / "trial").exists() and not running("trial-" + tmp_path.name)


def test_a_failing_thread(tmp_path: Path) -> None:
    body = """
    def work():
        try:
            {}["custom"]
        except KeyError as error:
            say("failure", thread="w1", type="KeyError", message=str(error), module="torch.fx", where="a:1")
    thread = threading.Thread(target=work); thread.start(); thread.join()
    say("done")
    sys.exit(1)
    """
    record = run_script(tmp_path, body)
    assert record.outcome is Outcome.FAILED and record.exit_status == 1
    assert [(item.thread, str(item.signature)) for item in record.failures] == [("w1", "KeyError: 'custom'")]


def test_a_segmentation_fault_has_faulthandlers_frame(tmp_path: Path) -> None:
    record = run_script(tmp_path, "import ctypes\ndef inner():\n    ctypes.string_at(0)\ninner()")
    assert record.outcome is Outcome.FAILED and record.exit_status == -signal.SIGSEGV
    assert record.failures[0].signature.type == "SIGSEGV"
    assert "inner" in record.failures[0].traceback and record.failures[0].where


def test_an_abort(tmp_path: Path) -> None:
    record = run_script(tmp_path, "os.abort()")
    assert record.outcome is Outcome.FAILED and str(record.failures[0].signature) == "SIGABRT"


def test_a_deadlock_with_the_stacks_of_all_threads(tmp_path: Path) -> None:
    body = """
    import faulthandler, signal
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    a, b = threading.Lock(), threading.Lock()
    def one_way():
        with a:
            time.sleep(0.1)
            with b: pass
    def other_way():
        with b:
            time.sleep(0.1)
            with a: pass
    for work in (one_way, other_way):
        threading.Thread(target=work).start()
    """
    record = run_script(tmp_path, body)
    assert record.outcome is Outcome.HANG and record.exit_status is None
    assert record.hang_kind == "deadlock" and record.message == "no event within 1 s"
    assert "one_way" in record.stacks and "other_way" in record.stacks and "CPU time" in record.stacks
    assert not running("trial-" + tmp_path.name)


@pytest.mark.parametrize(("how", "why"), [("block", "is still pending, 2 of 2 threads"), ("take", "was taken, 0 of 2")])
def test_a_hang_without_stacks_says_why(tmp_path: Path, how: str, why: str) -> None:
    body = f"""
    import signal
    signal.signal(signal.SIGUSR1, lambda number, frame: None)
    if {how!r} == "block":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    threading.Thread(target=threading.Event().wait).start()
    """
    record = run_script(tmp_path, body)
    assert record.outcome is Outcome.HANG
    assert "no Python stacks of process" in record.stacks and why in record.stacks


def test_signals_that_parents_block_or_ignore_are_not_the_trials(tmp_path: Path) -> None:
    body = """
    import signal
    blocked = [int(each) for each in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
    ignored = [int(n) for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_IGN]
    say("note", key="blocked", value=json.dumps(blocked))
    say("note", key="ignored", value=json.dumps(ignored))
    say("done")
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])
    hup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        record = run_script(tmp_path, body)
    finally:
        signal.signal(signal.SIGHUP, hup)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    extra = dict(record.extra)
    assert extra["blocked"] == "[]"
    # Python itself ignores these two from its start on.
    assert set(json.loads(extra["ignored"])) <= {signal.SIGPIPE, signal.SIGXFSZ}


def test_a_spin_and_a_slow_compile_differ_by_the_open_window(tmp_path: Path) -> None:
    for name, body, kind in (
        ("spin", "while True: pass", "spin"),
        ("compile", "say('window', thread='w0', phase='begin', what='forward')\nwhile True: pass", "slow compile"),
    ):
        (tmp_path / name).mkdir()
        record = run_script(tmp_path / name, body)
        assert (record.outcome, record.hang_kind) == (Outcome.HANG, kind)
        assert ("compiling: w0 (forward)" in record.stacks) is (name == "compile")


def test_a_compiler_at_work_is_a_slow_compile(tmp_path: Path) -> None:
    shutil.copy(sys._base_executable, tmp_path / "cc1plus")  # type: ignore[attr-defined]
    body = f"""
    import subprocess
    subprocess.run([{str(tmp_path / "cc1plus")!r}, "-c", "while True: pass"], env={{"PYTHONHOME": {sys.base_prefix!r}}})
    """
    record = run_script(tmp_path, body)
    assert (record.outcome, record.hang_kind) == (Outcome.HANG, "slow compile"), record.stacks + record.output


def test_the_whole_time_is_limited_too(tmp_path: Path) -> None:
    body = "while True:\n    say('alive')\n    time.sleep(0.05)"
    record = run_script(tmp_path, body, limits=Limits(trial=1.0), silence=10.0)
    assert record.outcome is Outcome.HANG and "limits.trial" in record.message


def test_imports_that_hang(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text("import time\ntime.sleep(1000)\n")
    record = run_script(tmp_path, "import hanging", start=PROTOCOL, limits=Limits(import_time=0.8))
    assert record.outcome is Outcome.IMPORT_FAILED
    assert record.message == "imports did not end within 1 s (limits.import_time)"
    assert "CPU time" in record.stacks and record.hang_kind == ""


def test_a_command_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import data\nprint(open('data.py').read())\nraise SystemExit(int(data.status))\n"
    )
    (tmp_path / "data.py").write_text("status = 125\n")
    files = (tmp_path / "mine.py", tmp_path / "data.py")
    reproducer = Reproducer("mine", ("python", "mine.py"), files, "hash", protocol=False)
    record = run_command(tmp_path, "", reproducer=reproducer)
    assert record.outcome is Outcome.SKIPPED and "status = 125" in record.output


def test_a_commands_traceback_is_its_signature(tmp_path: Path) -> None:
    record = run_command(tmp_path, "import json\njson.loads('{')")
    assert record.outcome is Outcome.FAILED
    assert str(record.failures[0].signature).startswith("JSONDecodeError: Expecting property name")


@pytest.mark.parametrize(
    ("status", "outcome", "aborted"), [(3, "failed", False), (139, "failed", False), (130, "infra", True)]
)
def test_a_commands_exit_status(tmp_path: Path, status: int, outcome: str, aborted: bool) -> None:
    record = run_command(tmp_path, f"raise SystemExit({status})")
    assert (record.outcome, record.aborted) == (outcome, aborted)


def test_patterns_in_a_commands_output(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "print('loss is nan at step 1234')", protocol=False)
    spec = replace(spec, reproducer=replace(spec.reproducer, fail_pattern=r"loss is (nan|inf)"))
    record = runner.run(spec, threading.Event())
    assert record.outcome is Outcome.FAILED
    assert str(record.failures[0].signature) == "output: loss is nan at step <n>"


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    record = run_command(tmp_path, "", reproducer=Reproducer("x", ("no-such-command",), (), "h", protocol=False))
    assert record.outcome is Outcome.INFRA and record.aborted and "No such file" in record.message


def test_what_is_heard_late_is_heard_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pump = Process._pump

    def late(self: Process, timeout: float | None) -> list[dict[str, object]]:
        time.sleep(0.5)  # a busy machine: start, error and end of the process come at once
        return pump(self, timeout)

    monkeypatch.setattr(Process, "_pump", late)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    missing = Reproducer("x", ("no-such-command",), (), "h", protocol=False)
    record = run_command(tmp_path / "a", "", reproducer=missing)
    assert record.outcome is Outcome.INFRA and record.aborted
    began = time.monotonic()
    record = run_command(tmp_path / "b", "", reproducer=Reproducer("x", ("false",), (), "h", protocol=False))
    assert record.outcome is Outcome.FAILED and record.exit_status == 1 and time.monotonic() - began < 10


def test_a_flood_of_output_is_cut(tmp_path: Path) -> None:
    body = "line = 'x' * 99 + '\\n'\nfor _ in range(300): sys.stdout.write(line * 10_000)\nprint('last')\nsay('done')"
    before = psutil.Process().memory_info().rss
    record = run_script(tmp_path, body, silence=20.0)
    assert record.outcome is Outcome.CLEAN
    assert len(record.output) < 300_000 and record.output.endswith("last\n") and "left out" in record.output
    assert psutil.Process().memory_info().rss - before < 100e6


def test_a_daemon_that_left_its_session_is_ended_and_noted(tmp_path: Path) -> None:
    body = f"""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open({str(tmp_path / "pid")!r}, "w").write(f"{{os.getpid()}}\\n")
            os.execve("/bin/sleep", ["sleep", "1000"], {{}})
        os._exit(0)
    os.wait()
    while not os.path.exists({str(tmp_path / "pid")!r}): time.sleep(0.01)
    say("done")
    """
    record = run_script(tmp_path, body)
    assert record.outcome is Outcome.CLEAN
    assert "ended" in dict(record.extra)["left running"]
    assert gone(int(wait_for(tmp_path / "pid")), seconds=0.1)


def test_stop_ends_the_trial_at_once(tmp_path: Path) -> None:
    stop = threading.Event()
    body = f"open({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}}\\n')\ntime.sleep(1000)"
    spec = spec_of(tmp_path, READY + body, silence=100.0)

    def later() -> None:
        wait_for(tmp_path / "pid")
        stop.set()

    thread = threading.Thread(target=later)
    thread.start()
    with pytest.raises(runner.Stopped):
        runner.run(spec, stop)
    thread.join()
    assert gone(int(wait_for(tmp_path / "pid")), seconds=0.1)
    assert not spec.folder.exists()


RUNNER = """
import sys, threading
from pathlib import Path
from tests.trials.scripts import READY, spec_of
from bisect_env.trials import runner
runner.run(spec_of(Path(sys.argv[1]), READY + sys.argv[2], silence=100.0), threading.Event())
"""


@pytest.mark.parametrize(
    ("victim", "number"), [("runner", signal.SIGKILL), ("runner", signal.SIGINT), ("group", signal.SIGINT)]
)
def test_a_killed_runner_leaves_nothing_running(tmp_path: Path, victim: str, number: int) -> None:
    body = textwrap.dedent(f"""
    import signal, subprocess
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True, env={{}})
    open({str(tmp_path / "pids")!r}, "w").write(f"{{os.getpid()}} {{os.getppid()}} {{child.pid}}\\n")
    time.sleep(1000)
    """)
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", RUNNER, str(tmp_path), body]
    process = subprocess.Popen(command, cwd=root, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        pids = [int(word) for word in wait_for(tmp_path / "pids").split()]
        if victim == "group":
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        process.wait(15)
        assert all(gone(pid) for pid in pids)
        assert (tmp_path / "trial").exists() is (number == signal.SIGKILL)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("victim", ["trial", "supervisor"])
def test_a_killed_trial_says_nothing_about_the_cell(tmp_path: Path, victim: str) -> None:
    body = f"""
    import signal, subprocess
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    open({str(tmp_path / "pid")!r}, "w").write(f"{{child.pid}}\\n")
    os.kill(os.getpid() if {victim!r} == "trial" else os.getppid(), signal.SIGKILL)
    time.sleep(1000)
    """
    record = run_script(tmp_path, body, silence=20.0)
    assert record.outcome is Outcome.INFRA and not record.aborted
    assert gone(int(wait_for(tmp_path / "pid")))


@pytest.mark.parametrize("make", ["os.mkdir", "os.mkfifo", "lambda path: os.symlink('/dev/zero', path)"])
def test_events_that_are_no_file_are_none(tmp_path: Path, make: str) -> None:
    record = run_command(tmp_path, f"import os, time\n({make})(os.environ['BISECT_ENV_EVENTS'])\ntime.sleep(0.3)")
    assert record.outcome is Outcome.CLEAN and record.steps == ()


def test_a_torn_last_event(tmp_path: Path) -> None:
    body = "say('done')\nopen(os.environ['BISECT_ENV_EVENTS'], 'a').write('{\"event\": \"fail')"
    assert run_script(tmp_path, body).outcome is Outcome.CLEAN


def test_out_of_memory_and_wrong_numbers(tmp_path: Path) -> None:
    for name, event, outcome in (
        (
            "oom",
            "say('failure', thread='w0', type='OutOfMemoryError', message='CUDA out of memory.', module='')",
            "oom",
        ),
        ("nan", "say('numbers', what='loss', error=float('nan'), tolerance=1.0)", "wrong"),
    ):
        (tmp_path / name).mkdir()
        assert run_script(tmp_path / name, event + "\nsay('done')\nsys.exit(1)").outcome == outcome


def test_warm_cache_is_a_copy_and_a_kept_folder_stays(tmp_path: Path) -> None:
    warm = tmp_path / "warm"
    for kind in ("inductor", "triton", "cuda"):
        (warm / kind).mkdir(parents=True)
    (warm / "inductor" / "entry").write_text("old")
    body = """
    place = os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "entry")
    say("note", key="entry", value=open(place).read())
    open(place, "w").write("new")
    say("done")
    """
    spec = spec_of(tmp_path, READY + textwrap.dedent(body), warm_cache=warm)
    record = runner.run(spec, threading.Event(), facts=lambda: (("load", "1"), ("time", str(time.time()))), keep=True)
    assert dict(record.extra)["entry"] == "old" and (warm / "inductor" / "entry").read_text() == "old"
    assert (spec.folder / "compile-cache" / "inductor" / "entry").read_text() == "new"
    assert [name for name, _ in record.host] == ["load", "time", "time after"]


def test_cores_are_honoured(tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    body = "say('note', key='cores', value=sorted(os.sched_getaffinity(0)))\nsay('done')"
    assert dict(run_script(tmp_path, body, cores=(core,)).extra)["cores"] == f"[{core}]"


def test_a_full_disk_is_the_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bisect_env.trials.isolation.Folders.create", full)
    record = run_script(tmp_path, "say('done')")
    assert record.outcome is Outcome.INFRA and not record.aborted and "bisect-env clean" in record.message


def test_the_condition_is_flat(tmp_path: Path) -> None:
    body = "say('note', key='c', value=open(os.environ['BISECT_ENV_CONDITION']).read())\nsay('done')"
    record = run_script(tmp_path, body, condition=Condition.of({"threads": 3, "pattern": "hot"}))
    assert re.fullmatch(r'\{"pattern": "hot", "threads": 3, "side": "threads", "seed": 7\}', dict(record.extra)["c"])


def test_what_is_asked_of_a_repeat_and_what_is_said_of_it(tmp_path: Path) -> None:
    body = """
    condition = json.load(open(os.environ["BISECT_ENV_CONDITION"]))
    assert "BISECT_ENV_TURNS" not in os.environ
    say("repeat", index=condition["only_repeat"], resets=0)
    say("failure", thread="w1", type="KeyError", message="'x'", phase="first call")
    sys.exit(1)
    """
    record = run_script(tmp_path, body, only_repeat=3, at_once=2)
    assert record.outcome is Outcome.FAILED and (record.phase, record.resets) == ("first call", 0)
    assert (record.only_repeat, record.at_once) == (3, 2)


def test_waiting_for_a_turn_is_no_hang_and_a_turn_taken_in_silence_is(tmp_path: Path) -> None:
    body = """
    turns = os.environ["BISECT_ENV_TURNS"]
    say("waiting", round=0)
    while not os.path.exists(os.path.join(turns, "0")):
        time.sleep(0.01)
    say("round", index=0, tokens=10, seconds=0.1)
    say("waiting", round=1)
    while not os.path.exists(os.path.join(turns, "1")):
        time.sleep(0.01)
    time.sleep(60)
    """
    turns = tmp_path / "trial" / "turns"
    timers = [threading.Timer(after, (turns / name).touch) for after, name in ((1.5, "0"), (3.0, "1"))]
    began = time.monotonic()
    for timer in timers:
        timer.start()
    record = run_script(tmp_path, body, side=Side.ROUNDS, turns=turns)
    assert record.outcome is Outcome.HANG and time.monotonic() - began > 3.5
    assert [(item.index, item.tokens, item.seconds) for item in record.rounds] == [(0, 10, 0.1)]

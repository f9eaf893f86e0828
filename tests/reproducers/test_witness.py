"""The witness in real processes, on small packages that are called torch and are none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from bisect_env.explanation.log import read_log
from bisect_env.explanation.records import Action, Event, State, WitnessLog
from tests.reproducers.conftest import REPRODUCERS

WITNESS = REPRODUCERS / "witness"

TORCH = {
    "__init__.py": "from torch import compiler\n",
    "version.py": "__version__ = '9.9.0+cpu'\n",
    "fx/__init__.py": "",
    "fx/_symbolic_trace.py": '''
        """A docstring."""
        from __future__ import annotations
        import torch
        _is_fx_tracing_flag = False
        def is_fx_symbolic_tracing():
            return _is_fx_tracing_flag and not torch.compiler.is_compiling()
        class Tracer:
            def trace(self, work):
                """What it does."""
                global _is_fx_tracing_flag
                old = _is_fx_tracing_flag
                _is_fx_tracing_flag = True
                try:
                    return work()
                finally:
                    _is_fx_tracing_flag = old
        def shadowed():
            _is_fx_tracing_flag = "mine"
            return _is_fx_tracing_flag
    ''',
    "compiler/__init__.py": """
        import contextlib
        _is_compiling_flag: bool = False
        def is_compiling():
            return _is_compiling_flag
        @contextlib.contextmanager
        def session():
            global _is_compiling_flag
            old = _is_compiling_flag
            try:
                _is_compiling_flag = True
                yield
            finally:
                _is_compiling_flag = old
    """,
    "other.py": """
        import torch.fx._symbolic_trace
        def switch(value):
            torch.fx._symbolic_trace._is_fx_tracing_flag = value
        def look():
            return torch.fx._symbolic_trace._is_fx_tracing_flag
    """,
    "_dynamo/__init__.py": "",
    "_dynamo/convert_frame.py": "import threading\ncompile_lock = threading.RLock()\n",
    "_dynamo/cache_size.py": """
        def exceeds_recompile_limit(count):
            if count > 8:
                return True, "recompile_limit"
            return False, ""
    """,
    "_dynamo/config.py": "_config = {'recompile_limit': 1}\nrecompile_limit = 8\n",
    "_dynamo/callback.py": """
        import contextlib
        class Handler:
            @contextlib.contextmanager
            def install_callbacks(self, trigger, compile_id):
                yield
        handler = Handler()
    """,
    "_dynamo/eval_frame.py": """
        import torch._dynamo.config as config
        from torch.fx import _symbolic_trace
        skipped = []
        def skip_code(code):
            skipped.append(code)
        def optimize(fn, error=True):
            is_fx_symbolic_tracing = _symbolic_trace.is_fx_symbolic_tracing
            def compile_wrapper(*args):
                if (
                    is_fx_symbolic_tracing()
                    and not getattr(config, "force", False)
                ):
                    if error:
                        raise RuntimeError("nested")
                    else:
                        return fn(*args)
                return ("compiled", fn(*args))
            return compile_wrapper
    """,
}


@dataclass(frozen=True)
class Ran:
    status: int
    output: str
    log: WitnessLog | None
    folder: Path

    def of(self, state: State, *actions: Action) -> list[Event]:
        assert self.log is not None
        return [event for event in self.log.events if event.state is state and (not actions or event.action in actions)]


def lay(folder: Path, files: dict[str, str] = TORCH, package: str = "torch") -> None:
    for name, source in files.items():
        path = folder / "site-packages" / package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source).lstrip("\n"))
        for parent in path.relative_to(folder / "site-packages").parents:
            if parent.parts:
                (folder / "site-packages" / parent / "__init__.py").touch()


def variables(folder: Path) -> dict[str, str]:
    words = [str(WITNESS), str(folder / "site-packages")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(words), "BISECT_ENV_WITNESS": str(folder / "witness.jsonl")}


def run(folder: Path, body: str, **more: str) -> Ran:
    if not (folder / "site-packages").exists():
        lay(folder)
    script = folder / "script.py"
    script.write_text(textwrap.dedent(body))
    done = subprocess.run(
        [sys.executable, str(script)], env=variables(folder) | more, capture_output=True, text=True, timeout=30
    )
    path = folder / "witness.jsonl"
    return Ran(
        done.returncode, done.stdout + done.stderr, read_log(path.read_text()) if path.exists() else None, folder
    )


def test_a_foreign_trace_is_told_in_the_order_in_which_it_happened(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import threading
        from torch.fx._symbolic_trace import Tracer
        from torch._dynamo.eval_frame import optimize
        traced, called = threading.Event(), threading.Event()
        def work():
            traced.set()
            called.wait(10)
        def compiling():
            Tracer().trace(work)
        def calling():
            f = optimize(lambda: 1)
            print(f())
            other.start()
            traced.wait(10)
            try:
                f()
            except RuntimeError as error:
                print("failed:", error)
            called.set()
            other.join()
            print(f())
        other = threading.Thread(target=compiling, name="w0")
        thread = threading.Thread(target=calling, name="w1")
        thread.start(); thread.join()
        """,
    )
    assert ran.status == 0, ran.output
    assert ran.output.splitlines() == ["('compiled', 1)", "failed: nested", "('compiled', 1)"]
    assert ran.log is not None and ran.log.complete and ran.log.dropped == 0 and ran.log.torch == "9.9.0+cpu"
    tracing = [(event.thread, event.action, event.value) for event in ran.of(State.TRACING)]
    assert tracing == [
        ("w0", Action.SET, "True, was False"),
        ("w1", Action.READ, "True"),
        ("w1", Action.OBEYED, "raised"),
        ("w0", Action.CLEAR, "False, was True"),
        ("w1", Action.READ, "False"),
    ]
    assert [event.action for event in ran.of(State.TRACE)] == [Action.ENTER, Action.LEAVE]
    times = [event.t for event in ran.log.events]
    assert times == sorted(times) and 0 <= times[0] - ran.log.started < 20
    assert ("w1", State.TRACING, Action.READ, 1) in ran.log.counts  # the first call's, which read False


def test_line_numbers_are_those_of_the_source_and_the_witness_is_in_no_stack(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import traceback
        from torch.fx._symbolic_trace import Tracer
        from torch._dynamo.eval_frame import optimize
        def call():
            optimize(lambda: 1)()
        try:
            Tracer().trace(call)
        except RuntimeError:
            traceback.print_exc()
        """,
    )

    def line(name: str, text: str) -> int:
        return 1 + (tmp_path / "site-packages/torch" / name).read_text().splitlines().index(text)

    raised = line("_dynamo/eval_frame.py", '                raise RuntimeError("nested")')
    worked = line("fx/_symbolic_trace.py", "            return work()")
    assert f'eval_frame.py", line {raised}, in compile_wrapper' in ran.output
    assert f'_symbolic_trace.py", line {worked}, in trace' in ran.output
    assert "witness" not in ran.output
    [obeyed] = ran.of(State.TRACING, Action.OBEYED)
    told = [(frame.path, frame.line, frame.function) for frame in obeyed.stack[:3]]
    assert told[0] == ("torch/_dynamo/eval_frame.py", raised, "compile_wrapper")
    assert told[2] == ("torch/fx/_symbolic_trace.py", worked, "trace")
    [stored] = ran.of(State.TRACING, Action.SET)
    assert stored.stack[0].line == line("fx/_symbolic_trace.py", "        _is_fx_tracing_flag = True")
    [left] = ran.of(State.TRACE, Action.LEAVE)
    assert left.value == "Tracer.trace, raised RuntimeError"
    assert not any("witness_" in frame.path for event in ran.log.events for frame in event.stack)  # type: ignore[union-attr]


def test_the_eager_original_stores_from_other_modules_and_names_of_a_functions_own(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import torch.other as other
        from torch.fx import _symbolic_trace
        from torch._dynamo.eval_frame import optimize, skipped
        other.switch(True)
        print(optimize(lambda: 1, error=False)(), other.look(), _symbolic_trace.shadowed())
        other.switch(False)
        print(_symbolic_trace.Tracer.trace.__doc__, len(skipped) > 20)
        """,
    )
    assert ran.output.splitlines() == ["1 True mine", "What it does. True"]
    [obeyed] = ran.of(State.TRACING, Action.OBEYED)
    assert obeyed.value == "ran the eager original"
    stored = ran.of(State.TRACING, Action.SET, Action.CLEAR)
    assert [(event.action, event.stack[0].path) for event in stored] == [
        (Action.SET, "torch/other.py"),
        (Action.CLEAR, "torch/other.py"),
    ]
    assert ran.log is not None
    assert "torch/other.py: _is_fx_tracing_flag" in {item.where for item in ran.log.watched}


def test_locks_limits_configuration_and_compiles(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import threading, time
        from torch._dynamo.convert_frame import compile_lock
        from torch._dynamo.cache_size import exceeds_recompile_limit
        from torch._dynamo.callback import handler
        import torch._dynamo.config
        class Trigger: name = "LAZY_BACKWARD"
        held = threading.Event()
        def first():
            with compile_lock, compile_lock:
                held.set()
                time.sleep(0.2)
        def second():
            held.wait(10)
            with handler.install_callbacks(Trigger, "1/0"):
                with compile_lock:
                    print(exceeds_recompile_limit(3), exceeds_recompile_limit(9))
        threads = [threading.Thread(target=f, name=n) for f, n in ((first, "w0"), (second, "w1"))]
        [t.start() for t in threads]; [t.join() for t in threads]
        """,
    )
    assert ran.output == "(False, '') (True, 'recompile_limit')\n"
    lock = [(event.thread, event.action) for event in ran.of(State.LOCK)]
    assert lock == [
        ("w0", Action.ACQUIRE),
        ("w1", Action.WAIT),
        ("w0", Action.RELEASE),
        ("w1", Action.ACQUIRE),
        ("w1", Action.RELEASE),
    ]
    assert ran.of(State.LOCK, Action.WAIT)[0].value == "held by w0"
    assert [event.value for event in ran.of(State.COMPILE)] == ["lazy backward 1/0"] * 2
    assert [event.value for event in ran.of(State.CONFIG)] == ["recompile_limit=8"]
    assert [event.value for event in ran.of(State.RECOMPILE_LIMIT)] == ["recompile_limit=8 reached, runs eagerly"]


def test_a_flag_of_the_threads_own(tmp_path: Path) -> None:
    lay(
        tmp_path,
        TORCH
        | {
            "fx/_symbolic_trace.py": """
                import threading
                _is_fx_tracing_tls = threading.local()
                def set_it(value):
                    _is_fx_tracing_tls.flag = value
                def get_it():
                    return getattr(_is_fx_tracing_tls, "flag", False)
            """
        },
    )
    ran = run(
        tmp_path,
        """
        import threading
        from torch.fx import _symbolic_trace as it
        def one():
            it.set_it(True)
            print(it.get_it())
        t = threading.Thread(target=one, name="w0"); t.start(); t.join()
        print(it.get_it())
        """,
    )
    assert ran.output.split() == ["True", "False"]
    assert [(event.thread, event.action) for event in ran.of(State.TRACING)] == [
        ("w0", Action.SET),
        ("w0", Action.READ),
    ]
    assert ran.log is not None
    assert [item.how for item in ran.log.watched if item.state is State.TRACING] == ["stores and loads, thread-local"]
    assert any(item.state is State.TRACE and "has no Tracer.trace" in item.why for item in ran.log.unknown)


def test_what_this_torch_has_not_or_keeps_otherwise_is_said(tmp_path: Path) -> None:
    source = "import contextvars\n_is_fx_tracing_var = contextvars.ContextVar('x')\n"
    files = {name: text for name, text in TORCH.items() if not name.startswith("_dynamo")}
    lay(tmp_path, files | {"fx/_symbolic_trace.py": source, "compiler/__init__.py": ""})
    ran = run(tmp_path, "import torch.fx._symbolic_trace\n")
    assert ran.status == 0 and ran.log is not None
    why = {(item.state, item.why) for item in ran.log.unknown}
    assert (State.LOCK, "this torch has no torch._dynamo.convert_frame") in why
    assert (
        State.TRACING,
        "torch/fx/_symbolic_trace.py has no flag _is_fx_tracing_var of a kind that the witness knows",
    ) in why
    assert (State.COMPILING, r"torch/compiler/__init__.py has no module-level flag _is_compiling\w*") in why


def test_its_memory_and_file_are_bounded_and_what_is_left_out_is_counted(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import torch.other as other, time
        for index in range(60_000):
            other.switch(bool(index % 2 == 0) or 1)
            if index % 5000 == 0: time.sleep(0.4)
        other.switch(False)
        """,
    )
    assert ran.log is not None
    stored = ran.of(State.TRACING)
    assert 12_000 <= len(stored) < 45_000
    assert len(stored) + ran.log.dropped == 60_001
    assert stored[-1].action is Action.CLEAR


def test_a_killed_process_leaves_what_was_flushed(tmp_path: Path) -> None:
    lay(tmp_path)
    script = tmp_path / "script.py"
    script.write_text("import torch.other as o, time\no.switch(True)\nprint(1, flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen([sys.executable, str(script)], env=variables(tmp_path), stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline()
        time.sleep(1.0)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    log = read_log((tmp_path / "witness.jsonl").read_text())
    assert log is not None and not log.complete
    assert [event.action for event in log.events] == [Action.SET]


def test_children_are_not_witnessed_and_keep_their_variables(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import os, subprocess, sys, torch.other as other
        child = "import os, sys, torch.other as o; o.switch(True)"
        child += "; print('witness_log' in sys.modules, os.environ['PYTHONPATH'])"
        print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout)
        pid = os.fork()
        if not pid:
            other.switch(True)
            os._exit(0)
        os.waitpid(pid, 0)
        print("BISECT_ENV_WITNESS" in os.environ, any(word.endswith("/witness") for word in sys.path))
        """,
    )
    assert ran.output.split() == ["False", str(tmp_path / "site-packages"), "False", "False"]
    assert ran.of(State.TRACING) == []
    assert [path.name for path in tmp_path.glob("witness*")] == ["witness.jsonl"]


def test_a_second_process_of_the_command_has_a_log_of_its_own(tmp_path: Path) -> None:
    lay(tmp_path)
    for _ in range(2):
        subprocess.run([sys.executable, "-c", "import torch"], env=variables(tmp_path), check=True, timeout=30)
    logs = list(tmp_path.glob("witness.jsonl*"))
    assert len(logs) == 2 and all(json.loads(log.read_text().splitlines()[0])["witness"] == 1 for log in logs)


def test_another_sitecustomize_still_runs(tmp_path: Path) -> None:
    lay(tmp_path)
    (tmp_path / "site-packages" / "sitecustomize.py").write_text("print('theirs')\n")
    ran = run(tmp_path, "import sitecustomize\nprint(sitecustomize.__file__)\n")
    assert ran.output.splitlines() == ["theirs", str(tmp_path / "site-packages" / "sitecustomize.py")]


def test_a_log_that_cannot_be_written_costs_the_trial_nothing(tmp_path: Path) -> None:
    ran = run(tmp_path, "import torch; print('ran')", BISECT_ENV_WITNESS=str(tmp_path / "no" / "folder"))
    assert ran.status == 0 and "ran" in ran.output and "witness: not started: FileNotFoundError" in ran.output
    assert ran.log is None


@pytest.mark.parametrize("source", ["def broken(:\n", "\x00"])
def test_a_module_that_cannot_be_parsed_fails_as_it_would(tmp_path: Path, source: str) -> None:
    lay(tmp_path, TORCH | {"_dynamo/cache_size.py": source})
    ran = run(tmp_path, "import torch._dynamo.cache_size\n")
    assert ran.status == 1 and ("SyntaxError" in ran.output or "null bytes" in ran.output)
    assert ran.log is not None
    assert any("cannot be rewritten" in item.why for item in ran.log.unknown)


def test_a_program_that_joins_every_thread_ends(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import threading, torch.other as other
        thread = threading.Thread(target=other.switch, args=(True,), name="a")
        thread.start()
        for each in threading.enumerate():
            if each is not threading.current_thread():
                each.join(10)
        print(threading.active_count())
        """,
    )
    assert ran.output.split() == ["1"]
    assert [event.thread for event in ran.of(State.TRACING)] == ["a"]


def test_a_child_forked_while_the_log_is_written_ends(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import gc, os, sys, time, torch
        log = next(one for one in gc.get_objects() if type(one).__name__ == "Log")
        with log._lock:  # as the writer's thread holds it
            pid = os.fork()
        if not pid:
            sys.exit(0)
        end = time.monotonic() + 5
        while time.monotonic() < end and not os.waitpid(pid, os.WNOHANG)[0]:
            time.sleep(0.01)
        print(time.monotonic() < end or os.kill(pid, 9))
        """,
    )
    assert ran.output.split() == ["True"]


def test_a_finder_that_asks_all_others_finds_what_it_would(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import sys
        class Finder:
            def find_spec(self, name, path=None, target=None):
                found = (one.find_spec(name, path, target) for one in sys.meta_path if one is not self)
                return next((spec for spec in found if spec), None)
        sys.meta_path.insert(0, Finder())
        import torch.other as other
        other.switch(True)
        """,
    )
    assert ran.status == 0, ran.output
    assert [event.action for event in ran.of(State.TRACING)] == [Action.SET]


def test_a_log_that_grows_no_more_costs_the_trial_nothing(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))  # as a full disk: a write is short, the next fails
        import time, torch.other as other
        for _ in range(3):
            for number in range(500):
                other.switch(number)
            time.sleep(0.4)
        print("ran")
        """,
    )
    assert ran.status == 0 and ran.output.count("witness: its log ends early") == 1 and "ran" in ran.output
    assert "Traceback" not in ran.output
    assert ran.log is not None and ran.of(State.TRACING)


FAILS = """
        import os, sys, threading, time
        import torch.other as other
        from torch._dynamo.eval_frame import optimize
        other.switch(True)
        def call():
            optimize(lambda: 1)()
"""

POOL = "from concurrent.futures import ThreadPoolExecutor\nfrom torch._dynamo.callback import handler\n"
COMPILES = (
    f"{POOL}def compiles():\n    with handler.install_callbacks('DYNAMO', '0/0'):\n        raise ValueError('no')\n"
)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param(
            "thread = threading.Thread(target=call, name='b'); thread.start(); thread.join(); sys.exit(3)",
            [("b", "RuntimeError: nested", "compile_wrapper")],
            id="a thread",
        ),
        pytest.param(
            "threading.excepthook = lambda given: os._exit(3)\n"
            "thread = threading.Thread(target=call, name='b'); thread.start(); thread.join()",
            [("b", "RuntimeError: nested", "compile_wrapper")],
            id="a hook of the program's own ends it",
        ),
        pytest.param("call()", [("main", "RuntimeError: nested", "compile_wrapper")], id="the main thread"),
        pytest.param(
            "sys.excepthook = lambda *given: print('mine')\ncall()",
            [("main", "RuntimeError: nested", "compile_wrapper")],
            id="the main thread, behind a hook of the program's own",
        ),
        pytest.param(
            "sys.excepthook = lambda *given: os._exit(3)\ncall()",
            [("main", "RuntimeError: nested", "compile_wrapper")],
            id="the main thread, behind a hook that ends it",
        ),
        pytest.param(
            "try:\n    call()\nexcept RuntimeError as error:\n    raise ValueError('step 3') from error",
            [("main", "ValueError: step 3 <- RuntimeError: nested", "compile_wrapper")],
            id="where its cause was raised",
        ),
        pytest.param(
            "try:\n    call()\nexcept RuntimeError:\n    raise ValueError('step 3')",
            [("main", "ValueError: step 3 <- RuntimeError: nested", "<module>")],
            id="in the handling of another one",
        ),
        pytest.param(
            "class Odd(Exception):\n    def __str__(self): raise KeyError\nraise Odd",
            [("main", "Odd", "<module>")],
            id="without a text",
        ),
        pytest.param(
            "raise RuntimeError('\\n\\nPrevious Traceback:\\n  File \"x.py\", line 2\\n\\nRuntimeError: set twice')",
            [("main", "RuntimeError: set twice", "<module>")],
            id="what a text says behind an earlier traceback",
        ),
        pytest.param(
            f"{COMPILES}with ThreadPoolExecutor(1, 'pool') as pool:\n    pool.submit(compiles).result()\n",
            [("pool_0", "ValueError: no", "compiles")],
            id="of a pool's thread, raised again",
        ),
        pytest.param(
            f"{POOL}def compiles():\n    with handler.install_callbacks('DYNAMO', '0/0'):\n"
            "        try:\n            raise ValueError('no')\n"
            "        except ValueError as error:\n            raise RuntimeError('backend') from error\n"
            "with ThreadPoolExecutor(1, 'pool') as pool:\n    pool.submit(compiles).result()\n",
            [("pool_0", "RuntimeError: backend <- ValueError: no", "compiles")],
            id="of a pool's thread, raised from another one inside of the compile",
        ),
        pytest.param(
            f"{COMPILES}with ThreadPoolExecutor(1, 'pool') as pool:\n    future = pool.submit(compiles)\n"
            "    thread = threading.Thread(target=future.result); thread.start(); thread.join()\n    future.result()\n",
            [("pool_0", "ValueError: no", "compiles")],
            id="of a pool's thread, raised again in two that asked",
        ),
        pytest.param(
            f"{COMPILES}import asyncio\n"
            "async def asks():\n    async with asyncio.TaskGroup() as group:\n"
            "        group.create_task(asyncio.to_thread(compiles))\nasyncio.run(asks())\n",
            [
                (
                    "asyncio_0",
                    "ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception) <- ValueError: no",
                    "compiles",
                )
            ],
            id="of a pool's thread, in a group",
        ),
        pytest.param(
            f"{POOL}class Odd(Exception):\n    @property\n    def __dict__(self):\n        raise ValueError('odd')\n"
            "def compiles():\n    with handler.install_callbacks('DYNAMO', '0/0'):\n        raise Odd('no')\n"
            "with ThreadPoolExecutor(1, 'pool') as pool:\n    pool.submit(compiles).result()\n",
            [("pool_0", "Odd: no", "compiles")],
            id="of a pool's thread, of a class that shows no attributes",
        ),
        pytest.param(
            "text = '\\n\\nPrevious Traceback:\\n  File \"x.py\", line 2\\n\\nRuntimeError: set twice'\n"
            "raise RuntimeError(text + '\\n\\nfrom user code:\\n   File \"y.py\"\\n\\nSet VERBOSE=1')",
            [("main", "RuntimeError: set twice", "<module>")],
            id="what a text says behind an earlier traceback and before more",
        ),
        pytest.param("sys.exit(3)", [], id="an exit is none"),
        pytest.param(
            "thread = threading.Thread(target=sys.exit, name='b'); thread.start(); thread.join(); sys.exit(3)",
            [],
            id="a thread's exit neither",
        ),
        pytest.param("try:\n    call()\nexcept RuntimeError:\n    sys.exit(3)", [], id="one that was caught neither"),
    ],
)
def test_an_exception_that_ends_a_thread_is_told(tmp_path: Path, body: str, told: list[tuple[str, str, str]]) -> None:
    ran = run(tmp_path, textwrap.dedent(FAILS) + body + "\n")
    assert ran.status in (1, 3), ran.output
    seen = ran.of(State.UNCAUGHT)
    assert [(event.thread, event.value, event.stack[0].function) for event in seen] == told
    assert ran.log is not None and ran.log.complete
    assert all(event.action is Action.RAISED for event in seen)
    obeyed = ran.of(State.TRACING, Action.OBEYED)
    for event in seen:
        if event.stack[0].function == "compile_wrapper":
            assert event.stack[0] == obeyed[-1].stack[0] and event.t >= obeyed[-1].t
    plain = {**variables(tmp_path), "PYTHONPATH": str(tmp_path / "site-packages")}
    without = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], env=plain, capture_output=True, text=True, timeout=30
    )
    assert (ran.status, ran.output) == (without.returncode, without.stdout + without.stderr)


def test_of_an_exception_that_a_forked_child_sends_back_no_thread_here_is_said_to_have_raised_it(
    tmp_path: Path,
) -> None:
    body = """
        import multiprocessing
        from torch._dynamo.callback import handler
        def fails(error):
            with handler.install_callbacks('DYNAMO', '0/0'):
                raise error
        def child(pipe):
            try:
                fails(ValueError('no'))
            except ValueError as error:
                pipe.send(error)
        def asks():
            with handler.install_callbacks('DYNAMO', '1/0'):
                pass
            here, there = multiprocessing.Pipe()
            process = multiprocessing.get_context('fork').Process(target=child, args=(there,))
            process.start()
            received.append(here.recv())
            process.join()
        received = []
        thread = threading.Thread(target=asks, name='w1'); thread.start(); thread.join()
        raise received[0]
    """
    ran = run(tmp_path, textwrap.dedent(FAILS) + textwrap.dedent(body))
    assert [(event.thread, event.value) for event in ran.of(State.UNCAUGHT)] == [("main", "ValueError: no")]


@pytest.mark.parametrize(
    ("end", "complete"),
    [
        ("os._exit(3)", True),
        ("os.abort()", True),
        ("os.kill(os.getpid(), 9)", False),
        ("import ctypes; ctypes.string_at(0)", False),
    ],
)
def test_what_led_to_a_failure_is_written_however_the_process_ends(tmp_path: Path, end: str, complete: bool) -> None:
    """At once: the writer's next turn never comes."""
    body = f"try:\n    call()\nexcept RuntimeError:\n    {end}\n"
    ran = run(tmp_path, "import time; time.sleep(0.5)\n" + textwrap.dedent(FAILS) + body)
    assert ran.status != 0 and ran.log is not None and ran.log.complete is complete
    assert [event.action for event in ran.of(State.TRACING)] == [Action.SET, Action.READ, Action.OBEYED]


def test_a_program_that_fails_over_and_over_is_not_slowed_down_for_ever(tmp_path: Path) -> None:
    body = """
        import gc
        lanes = next(one for one in gc.get_objects() if type(one).__name__ == "Lanes")
        class Unseen(list):
            def __len__(self): return 0
        lanes.waiting = Unseen()  # as a writer that is never done: each wait is as long as waits are
        lanes._at_once = 2
        begun = time.monotonic()
        for _ in range(2_000):
            try:
                call()
            except RuntimeError:
                pass
        print(2 < time.monotonic() - begun < 10)
    """
    ran = run(tmp_path, textwrap.dedent(FAILS) + textwrap.dedent(body))
    assert ran.output.split() == ["True"] and len(ran.of(State.TRACING, Action.OBEYED)) == 2_000


def test_a_handler_that_ends_the_process_while_the_log_is_written_ends_it(tmp_path: Path) -> None:
    body = """
        import gc, signal
        log = next(one for one in gc.get_objects() if type(one).__name__ == "Log")
        signal.signal(signal.SIGALRM, lambda *_: os._exit(3))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with log._lock:
            time.sleep(20)
    """
    ran = run(tmp_path, textwrap.dedent(FAILS) + textwrap.dedent(body))
    assert ran.status == 3


def test_a_forked_child_ends_as_it_would_and_writes_nothing(tmp_path: Path) -> None:
    body = """
        pid = os.fork()
        if not pid:
            try:
                call()
            finally:
                os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    ran = run(tmp_path, textwrap.dedent(FAILS) + textwrap.dedent(body))
    assert ran.output.split() == ["7"] and ran.log is not None and ran.log.complete
    assert not ran.of(State.UNCAUGHT) and not ran.of(State.TRACING, Action.OBEYED)

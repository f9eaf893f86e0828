"""What threads share besides flags, seen in real processes: annotations, patches, kernels, and where they stand."""

from __future__ import annotations

from pathlib import Path

from bisect_env.explanation.records import Action, State
from tests.reproducers.test_witness import TORCH, Ran, lay
from tests.reproducers.test_witness import run as run_with

SHARED = {
    **TORCH,
    "fx/traceback.py": """
        from contextlib import contextmanager
        current_meta = {}
        @contextmanager
        def annotate(annotation_dict):
            global current_meta
            had, old = "custom" in current_meta, dict(current_meta.get("custom", {}))
            try:
                current_meta.setdefault("custom", {}).update(annotation_dict)
                yield
            finally:
                if had:
                    current_meta["custom"] = old
                else:
                    del current_meta["custom"]
        @contextmanager
        def preserve_node_meta():
            global current_meta
            saved = current_meta.copy()
            try:
                yield
            finally:
                current_meta = saved
        def get_current_meta():
            return current_meta
    """,
    "_inductor/graph.py": """
        class GraphLowering:
            def call_function(self, n):
                if "should_fallback" in n.meta or n.meta.get("custom", {}).get(
                    "fallback_to_eager"
                ):
                    return "eager"
                return "lowered"
    """,
    "_inductor/runtime/static_triton_launcher.py": """
        class StaticallyLaunchedTritonKernel:
            def __init__(self):
                self.name, self.module, self.function = "mul", object(), 7
            def close(self):
                self.module = self.function = None
            def run(self):
                assert self.function is not None
    """,
    "_inductor/runtime/triton_heuristics.py": """
        from types import SimpleNamespace
        class CachingAutotuner:
            def __init__(self, kernel):
                self.kernel, self.fn = kernel, SimpleNamespace(__name__="mul")
            def autotune_to_one_config(self):
                self.kernel.close()
    """,
}
SHARED["fx/_symbolic_trace.py"] = (
    TORCH["fx/_symbolic_trace.py"]
    + """
        import contextlib
        CURRENT_PATCHER = None
        @contextlib.contextmanager
        def _new_patcher():
            global CURRENT_PATCHER
            prior = CURRENT_PATCHER
            try:
                CURRENT_PATCHER = object()
                yield
            finally:
                if CURRENT_PATCHER is None:
                    raise AssertionError("CURRENT_PATCHER is None in finally block")
                CURRENT_PATCHER = prior
    """
)
THREADS = """
import threading
def thread(name, work):
    thread = threading.Thread(target=work, name=name)
    thread.start()
    thread.join()
"""


def run(folder: Path, body: str) -> Ran:
    lay(folder, SHARED)
    return run_with(folder, THREADS + body)


def test_who_writes_an_annotation_who_takes_it_and_which_node_obeys(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
from types import SimpleNamespace
from torch.fx._symbolic_trace import Tracer
from torch.fx.traceback import annotate, get_current_meta
from torch._inductor.graph import GraphLowering
def trace():
    get_current_meta()
    meta = {"custom": dict(get_current_meta()["custom"])}
    print(GraphLowering().call_function(SimpleNamespace(meta=meta, target="flex_attention")))
    print(GraphLowering().call_function(SimpleNamespace(meta={}, target="mul")))
with annotate({"fallback_to_eager": True}):
    thread("w1", lambda: Tracer().trace(trace))
def own():
    with annotate({"fallback_to_eager": True, "mine": 1}):
        Tracer().trace(trace)
thread("w2", own)
""",
    )
    assert ran.output.split() == ["eager", "lowered", "eager", "lowered"], ran.output
    shared = [(e.thread, e.action, e.value) for e in ran.of(State.ANNOTATION)]
    assert shared == [
        ("main", Action.ENTER, "annotate fallback_to_eager"),
        ("w1", Action.READ, "fallback_to_eager"),
        ("w1", Action.OBEYED, "fallback_to_eager: flex_attention"),
        ("main", Action.LEAVE, "annotate fallback_to_eager"),
        ("w2", Action.ENTER, "annotate fallback_to_eager, mine"),
        ("w2", Action.LEAVE, "annotate fallback_to_eager, mine"),
    ]
    assert ran.log is not None and ("w2", State.ANNOTATION, Action.OBEYED, 1) in ran.log.counts


def test_an_annotation_is_taken_once_in_a_trace_and_again_when_another_was_written(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
from torch.fx._symbolic_trace import Tracer
from torch.fx.traceback import annotate, get_current_meta
kept = annotate({"b": 2})
with annotate({"a": 1}):
    thread("w1", lambda: Tracer().trace(lambda: [get_current_meta() for _ in range(50)]))
    def twice():
        get_current_meta()
        thread("w3", kept.__enter__)
        get_current_meta()
    thread("w2", lambda: Tracer().trace(twice))
""",
    )
    taken = [(event.thread, event.value) for event in ran.of(State.ANNOTATION, Action.READ)]
    assert taken == [("w1", "a"), ("w2", "a"), ("w2", "a, b")]


def test_annotations_that_change_meanwhile_and_ones_that_are_none_harm_nothing(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
import torch.fx.traceback as tb
with tb.annotate({1: "a key that is no text"}):
    print(sorted(map(str, tb.get_current_meta()["custom"])))
tb.current_meta = {"custom": None}
tb.get_current_meta()
try:
    with tb.annotate(None):
        pass
except (AttributeError, TypeError) as error:
    print("as without a witness", type(error).__name__)
""",
    )
    assert "as without a witness" in ran.output and "witness:" not in ran.output, ran.output


def test_patches_of_two_traces(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
from torch.fx._symbolic_trace import _new_patcher
first, second = _new_patcher(), _new_patcher()
thread("w0", first.__enter__)
thread("w1", second.__enter__)
thread("w0", lambda: first.__exit__(None, None, None))
def end():
    try:
        second.__exit__(None, None, None)
    except AssertionError as error:
        print(error)
thread("w1", end)
""",
    )
    assert "CURRENT_PATCHER is None" in ran.output
    told = [(event.thread, event.action) for event in ran.of(State.PATCHER)]
    assert told == [("w0", Action.ENTER), ("w1", Action.ENTER), ("w0", Action.LEAVE), ("w1", Action.LEAVE)]
    assert ran.of(State.PATCHER)[-1].value.endswith("raised AssertionError")


def test_a_kernel_is_unloaded_by_one_thread_and_launched_by_another_by_the_number_of_the_object(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
from torch._inductor.runtime.static_triton_launcher import StaticallyLaunchedTritonKernel as Kernel
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
kernel, other = Kernel(), Kernel()
other.run()
thread("w0", CachingAutotuner(kernel).autotune_to_one_config)
kernel.close()
def launch():
    try:
        kernel.run()
    except AssertionError:
        print("not loaded")
thread("w1", launch)
""",
    )
    assert ran.output.strip() == "not loaded"
    enter, unloaded, leave, launched = ran.of(State.KERNEL)
    assert [event.thread for event in (enter, unloaded, leave, launched)] == ["w0", "w0", "w0", "w1"]
    assert enter.value.startswith("autotune_to_one_config mul #") and enter.value == leave.value
    name, number, what = unloaded.value.split(maxsplit=2)
    assert (name, what) == ("mul", "unloaded") and launched.value == f"mul {number} launched and not loaded"
    assert [frame.function for frame in unloaded.stack[:2]] == ["close", "autotune_to_one_config"]


def test_where_every_thread_stands_while_one_waits_long_for_the_lock(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
import sys, time
sys.modules["witness_standing"].LONG = 0.3
from torch._dynamo.convert_frame import compile_lock
def stands_still(until):
    until.wait()
held, until = threading.Event(), threading.Event()
def holder():
    with compile_lock:
        held.set()
        stands_still(until)
def waiter():
    held.wait()
    with compile_lock:
        pass
threads = [threading.Thread(target=work, name=name) for name, work in (("w0", holder), ("w1", waiter))]
for each in threads:
    each.start()
time.sleep(2)
until.set()
for each in threads:
    each.join()
""",
    )
    seen = ran.of(State.STANDING)
    holder, waiter = ([event for event in seen if event.thread == name] for name in ("w0", "w1"))
    # Told again when the wait has doubled, and not at every look.
    assert 2 <= len(holder) == len(waiter) <= 4
    assert all("stands_still" in {frame.function for frame in event.stack} for event in holder)
    assert all("waiter" in {frame.function for frame in event.stack} for event in waiter)
    assert all(event.action is Action.SEEN for event in seen)


def test_a_short_wait_tells_nothing_of_where_threads_stand(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
import time
from torch._dynamo.convert_frame import compile_lock
def hold():
    with compile_lock:
        time.sleep(0.4)
other = threading.Thread(target=hold, name="w0")
other.start()
time.sleep(0.1)
with compile_lock:
    pass
other.join()
""",
    )
    assert ran.of(State.LOCK, Action.WAIT) and not ran.of(State.STANDING)

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
    "_dynamo/metrics_context.py": """
        class MetricsContext:
            level, metrics = 0, ()
            def __enter__(self):
                '''Text.'''
                if not self.level:
                    self.metrics = set()
                self.level += 1
                return self
            def __exit__(self, *exception):
                self.level -= 1
            def set(self, metric):
                if metric in self.metrics:
                    raise RuntimeError(f"{metric} twice")
                self.metrics.add(metric)
        class RuntimeMetricsContext:
            def __enter__(self):
                pass
            def __exit__(self, *exception):
                pass
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


def test_who_only_looks_takes_nothing_and_hides_nothing(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
from torch.fx._symbolic_trace import Tracer
from torch.fx.traceback import annotate, get_current_meta
def look_and_trace():
    get_current_meta()
    Tracer().trace(get_current_meta)
with annotate({"a": 1}):
    thread("w1", look_and_trace)
""",
    )
    [taken] = ran.of(State.ANNOTATION, Action.READ)
    assert "trace" in {frame.function for frame in taken.stack}


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


def test_what_one_thread_alone_replaces_is_told_where_another_one_annotates(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
import torch.fx.traceback as tb
def keeps():
    for _ in range(50):
        with tb.preserve_node_meta():
            pass
inside, over = threading.Event(), threading.Event()
def annotates():
    try:
        with tb.annotate({"a": 1}):
            inside.set()
            over.wait()
    except KeyError as error:
        print(error)
w1 = threading.Thread(target=annotates, name="w1")
keeps()
with tb.preserve_node_meta():
    w1.start()
    inside.wait()
    keeps()
over.set()
w1.join()
keeps()
thread("w2", tb.annotate({"a": 1}).__enter__)
keeps()
""",
    )
    assert ran.output == "'custom'\n"
    told = [(event.thread, event.value) for event in ran.of(State.ANNOTATION, Action.SET)]
    assert told == [
        ("main", "current_meta, while w1 annotated"),
        ("main", "current_meta, while w1 annotated and its custom"),
    ]


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


def test_metrics_of_two_compiles(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
from torch._dynamo.metrics_context import MetricsContext, RuntimeMetricsContext
one = MetricsContext()
thread("w0", one.__enter__)
def compiles():
    with one:
        one.set("a")
    try:
        with one:
            one.set("a")
    except RuntimeError as error:
        print(error)
thread("w1", compiles)
thread("w0", lambda: one.__exit__(None, None, None))
with RuntimeMetricsContext():
    pass
""",
    )
    assert ran.output == "a twice\n"
    told = [(event.thread, event.action, event.value) for event in ran.of(State.METRICS)]
    one = told[0][2]
    assert one.startswith("MetricsContext #") and told == [
        ("w0", Action.ENTER, one),
        ("w1", Action.ENTER, one),
        ("w1", Action.LEAVE, one),
        ("w1", Action.ENTER, one),
        ("w1", Action.LEAVE, f"{one}, raised RuntimeError"),
        ("w0", Action.LEAVE, one),
    ]
    assert "compiles" in {frame.function for frame in ran.of(State.METRICS)[1].stack}


def test_metrics_of_each_thread_s_own_have_numbers_of_their_own(tmp_path: Path) -> None:
    """As from torch 2.11 on."""
    ran = run(
        tmp_path,
        """
from torch._dynamo.metrics_context import MetricsContext
one, other = MetricsContext(), MetricsContext()
with one:
    with other:
        pass
""",
    )
    entered, inner, left, last = (event.value for event in ran.of(State.METRICS))
    assert entered == last != inner == left


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


def test_what_is_left_out_of_order_is_told_as_what_it_is(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
from torch.fx.traceback import annotate, preserve_node_meta
written, kept = annotate({"a": 1}), preserve_node_meta()
written.__enter__()
kept.__enter__()
written.__exit__(None, None, None)
kept.__exit__(None, None, None)
""",
    )
    assert [(event.action, event.value) for event in ran.of(State.ANNOTATION)] == [
        (Action.ENTER, "annotate a"),
        (Action.ENTER, "preserve_node_meta"),
        (Action.LEAVE, "annotate a"),
        (Action.LEAVE, "preserve_node_meta"),
    ]


def test_an_annotation_whose_words_this_torch_calls_otherwise_or_that_cannot_be_written_harms_nothing(
    tmp_path: Path,
) -> None:
    other = {**SHARED, "fx/traceback.py": SHARED["fx/traceback.py"].replace("annotation_dict", "words")}
    lay(tmp_path, other)
    ran = run_with(
        tmp_path,
        THREADS
        + """
import torch.fx.traceback as tb
class Odd:
    def __str__(self):
        raise ValueError("no text")
    def __bool__(self):
        raise ValueError("neither")
with tb.annotate({Odd(): 1}):
    tb.get_current_meta()
tb.current_meta = {"custom": Odd()}
tb.get_current_meta()
print("done")
""",
    )
    assert ran.output == "done\n", ran.output


def test_kernels_for_any_device_are_loaded_when_they_are_launched(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
from torch._inductor.runtime.static_triton_launcher import StaticallyLaunchedTritonKernel as Kernel
kernel = Kernel()
kernel.device_agnostic, kernel.module, kernel.function, kernel.functions, kernel.modules = True, None, None, {}, {}
try:
    kernel.run()  # here it would load it
except AssertionError:
    pass
kernel.functions, kernel.modules = {0: 7}, {0: 8}
kernel.close()
kernel.modules = {}
kernel.close()
""",
    )
    assert [event.value.rpartition(" ")[2] for event in ran.of(State.KERNEL)] == ["unloaded"]


def test_what_is_collected_in_the_writers_thread_is_no_other_threads_doing(tmp_path: Path) -> None:
    other = "static_triton_launcher.py"
    source = SHARED[f"_inductor/runtime/{other}"] + "        def __del__(self):\n                self.close()\n"
    lay(tmp_path, {**SHARED, f"_inductor/runtime/{other}": source})
    ran = run_with(
        tmp_path,
        THREADS
        + """
import gc, sys, time
from torch._inductor.runtime.static_triton_launcher import StaticallyLaunchedTritonKernel as Kernel
gc.disable()
kernel = Kernel()
kernel.itself = kernel
del kernel
collected = []
sys.modules["witness_log"].look = lambda lanes: collected.append(gc.collect())
while not any(collected):
    time.sleep(0.05)
print([thread.name for thread in threading.enumerate()])
""",
    )
    assert ran.output.strip() == "['MainThread']", ran.output
    assert ran.log is not None and "autograd" not in ran.log.threads


def test_a_wait_that_an_exception_ends_is_over(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
import signal, sys, time
sys.modules["witness_standing"].LONG = 0.4
from torch._dynamo.convert_frame import compile_lock
held, until = threading.Event(), threading.Event()
def hold():
    with compile_lock:
        held.set()
        until.wait()
other = threading.Thread(target=hold, name="w0")
other.start()
held.wait()
def stop(*_):
    raise InterruptedError
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    compile_lock.acquire()
except InterruptedError:
    print("interrupted")
time.sleep(1.2)
until.set()
other.join()
""",
    )
    assert ran.output == "interrupted\n" and ran.of(State.LOCK, Action.WAIT) and not ran.of(State.STANDING)


def test_a_thread_that_has_ended_stands_nowhere(tmp_path: Path) -> None:
    """Its number is given to the next one, which may never do what the witness watches."""
    ran = run(
        tmp_path,
        """
import sys, time
sys.modules["witness_standing"].LONG = 0.3
from torch._dynamo.convert_frame import compile_lock
def brief():
    with compile_lock:
        pass
held, until = threading.Event(), threading.Event()
def hold():
    with compile_lock:
        held.set()
        until.wait()
def wait():
    with compile_lock:
        pass
holder = threading.Thread(target=hold, name="w1")
holder.start()
held.wait()
until.set()
holder.join()
gone = threading.Thread(target=brief, name="w0")
gone.start()
gone.join()
others = [threading.Thread(target=time.sleep, args=(1.5,), name="unseen") for _ in range(3)]
for each in others:
    each.start()
print(gone.ident in {each.ident for each in others})
until.clear(), held.clear()
holder = threading.Thread(target=hold, name="w2")
holder.start()
held.wait()
waiter = threading.Thread(target=wait, name="w3")
waiter.start()
time.sleep(1)
until.set()
for each in (holder, waiter, *others):
    each.join()
""",
    )
    assert ran.output == "True\n", "numbers are given again, or this shows nothing"
    assert {event.thread for event in ran.of(State.STANDING)} == {"w2", "w3"}

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.trials.signature import headline_of
from bisect_env.trials.traces import MESSAGE_LIMIT, crash, last_traceback, module_of

CHAINED = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/w/train.py", line 3, in <module>
[rank0]: ValueError: first

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/w/train.py", line 9, in main
    step()
  File "/v/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py", line 992, in compile_wrapper
    raise RuntimeError(
  File "/usr/lib/python3.12/threading.py", line 99, in inner
torch._dynamo.exc.InductorError: LoweringException: AttributeError: gone
  target: flex_attention
"""


def test_the_last_traceback_and_its_innermost_library_frame() -> None:
    trace = last_traceback("epoch 1\n" + CHAINED)
    assert trace is not None
    assert trace.type == "torch._dynamo.exc.InductorError"
    assert trace.module == "torch._dynamo.eval_frame"
    assert trace.where == "compile_wrapper:992"
    failure = trace.failure("main", 5.0)
    assert str(failure.signature) == "InductorError: LoweringException: AttributeError: gone"


@given(st.lists(st.integers(1, 200), min_size=1, max_size=4), st.integers(0, 60), st.sampled_from(["x", "  x", ""]))
def test_an_error_that_quotes_tracebacks_is_told_by_its_own_line(blocks: list[int], more: int, noise: str) -> None:
    """However long they are: in its signature, and in what is kept of its message."""
    frame = '  File "/v/site-packages/torch/_dynamo/metrics_context.py", line 170, in update\n    raise RuntimeError(\n'
    quoted = "".join(f"\n\nPrevious Traceback:\n{frame * count}" for count in blocks)
    output = f"Traceback (most recent call last):\n{frame}RuntimeError: {quoted}\n\nRuntimeError: set twice.\n"
    trace = last_traceback(output + f"{noise}\n" * more)
    assert trace is not None and trace.where == "update:170"
    failure = trace.failure("main", 5.0)
    assert str(failure.signature) == "RuntimeError: set twice."
    assert headline_of(failure.message) == "RuntimeError: set twice." and len(failure.message) < MESSAGE_LIMIT + 20


GROUP = """\
import asyncio
async def fails(text):
    raise RuntimeError(text)
async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(fails("first"))
        group.create_task(fails("second\\n\\nmore"))
try:
    asyncio.run(main())
finally:
    print("Closed", flush=True)
"""


def test_of_a_printed_group_the_last_one_s_is_the_last_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", GROUP], capture_output=True, text=True, check=False)
    for text in (done.stderr, "".join(f"[rank0]: {line}" for line in done.stderr.splitlines(keepends=True))):
        trace = last_traceback(f"{text}Closed\n")
        assert trace is not None and (trace.type, trace.message, trace.where) == (
            "RuntimeError",
            "second\n\nmore",
            "fails:3",
        )
    empty = last_traceback(
        '  + Exception Group Traceback (most recent call last):\n  |   File "x.py", line 1, in f\n'
        "  | ExceptionGroup: both (1 sub-exception)\n  +-+---------------- 1 ----------------\n"
        "    | ValueError: never raised\n    +------------------------------------\nClosed\n"
    )
    assert empty is not None and (empty.type, empty.message) == ("ExceptionGroup", "both (1 sub-exception)")


def test_no_traceback() -> None:
    assert last_traceback("all is well") is None
    assert last_traceback("Traceback (most recent call last):\n  File") is None


def test_a_real_traceback() -> None:
    script = "import json\njson.loads('{')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    trace = last_traceback(done.stderr)
    assert trace is not None and trace.type == "json.decoder.JSONDecodeError"


def test_module_of_a_file() -> None:
    assert module_of("/v/lib/python3.12/site-packages/torch/fx/__init__.py") == "torch.fx"
    assert module_of("/v/lib/python3.12/dist-packages/six.py") == "six"
    assert module_of("/usr/lib/python3.12/threading.py") == ""


def test_crash_takes_the_crashing_threads_top_library_frame() -> None:
    output = (
        "noise\nFatal Python error: Segmentation fault\n\n"
        'Thread 0x1 (most recent call first):\n  File "/v/site-packages/other/mod.py", line 1 in idle\n\n'
        "Current thread 0x2 (most recent call first):\n"
        '  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at\n'
        '  File "/v/site-packages/triton/compiler.py", line 7 in launch\n'
        '  File "/w/train.py", line 2 in <module>\n'
    )
    failure = crash(11, output, 1.0)
    assert failure.signature.type == "SIGSEGV"
    assert failure.signature.module == "triton.compiler"
    assert failure.where == "launch:7"
    assert failure.message == "Fatal Python error: Segmentation fault"

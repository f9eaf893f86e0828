"""Golden signatures of messages that torch and its neighbours really raise, and the laws of a template."""

from __future__ import annotations

import time
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.trials.signature import LONGEST, signature_of, template_of

FX = "Detected that you are using FX to symbolically trace a dynamo-optimized function."

GOLDEN = [
    ("RuntimeError", f"{FX} This is not supported at the moment.", f"{FX} This is not supported at the moment."),
    (
        "FailOnRecompileLimitHit",
        "torch._dynamo hit config.recompile_limit (8)\n   function: 'step' (/home/me/train.py:12)\n   last reason: 0/7",
        "torch._dynamo hit config.recompile_limit (8)",
    ),
    ("X", "torch._dynamo hit config.recompile_limit (256)", "torch._dynamo hit config.recompile_limit (256)"),
    (
        "torch._inductor.exc.InductorError",
        "LoweringException: AttributeError: 'Subgraph' object has no attribute 'dtype'\n"
        "  target: flex_attention_backward\n  args[0]: TensorBox(StorageBox(\n  InputBuffer(name='primals_1'",
        "LoweringException: AttributeError: 'Subgraph' object has no attribute 'dtype'",
    ),
    (
        "torch._dynamo.exc.BackendCompilerFailed",
        "backend='inductor' raised:\nLoweringException: AttributeError: 'Subgraph' object has no attribute 'dtype'\n"
        "  target: flex_attention_backward",
        "backend='inductor' raised: LoweringException: AttributeError: 'Subgraph' object has no attribute 'dtype'",
    ),
    (
        "RuntimeError",
        '\n\nPrevious Traceback:\n  File "/x/torch/_dynamo/utils.py", line 712, in set\n    self.update()\n'
        "\n\nRuntimeError: Metric(s) {'is_forward'} have already been set in the current context.  "
        "(see above for current and previous traceback).",
        "Metric(s) {'is_forward'} have already been set in the current context. "
        "(see above for current and previous traceback).",
    ),
    (
        "torch.utils.checkpoint.CheckpointError",
        "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
        "forward pass.\ntensor at position 3:\nsaved metadata: {'shape': torch.Size([2, 4])}",
        "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
        "forward pass.",
    ),
    ("RuntimeError", "load_kernel() must be called before run()", "load_kernel() must be called before run()"),
    ("AssertionError", "self.function is not None", "self.function is not None"),
    ("KeyError", "'custom'", "'custom'"),
    ("NameError", "module is not installed as a submodule", "module is not installed as a submodule"),
    ("TypeError", "'NoneType' object is not a mapping", "'NoneType' object is not a mapping"),
    (
        "JSONDecodeError",
        "Expecting value: line 1 column 5 (char 4)",
        "Expecting value: line <n> column <n> (char <n>)",
    ),
    ("UnpicklingError", "pickle data was truncated", "pickle data was truncated"),
    (
        "FileNotFoundError",
        "[Errno 2] No such file or directory: '/tmp/torchinductor_me/fxgraph/ab/fabc/x.pkl'",
        "[Errno 2] No such file or directory: '<path>'",
    ),
    (
        "RuntimeError",
        "Triton Error [CUDA]: an illegal memory access was encountered",
        "Triton Error [CUDA]: an illegal memory access was encountered",
    ),
    (
        "torch.OutOfMemoryError",
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.15 GiB of which 12 MiB is "
        "free. Process 4711 has 70.1 GiB memory in use.",
        "CUDA out of memory. Tried to allocate <size>. GPU <n> has a total capacity of <size> of which <size> is "
        "free. Process <n> has <size> memory in use.",
    ),
    (
        "RuntimeError",
        "The size of tensor a (272) must match the size of tensor b (64) at non-singleton dimension 2",
        "The size of tensor a <n> must match the size of tensor b <n> at non-singleton dimension <n>",
    ),
    ("RuntimeError", "CUDA error 700 in conv2d with float8_e4m3fn on sm_90", None),
    (
        "NotImplementedError",
        "FlexAttention does not support backward on CPU. Please set the input requires_grad to False.",
        "FlexAttention does not support backward on CPU. Please set the input requires_grad to False.",
    ),
]


@pytest.mark.parametrize(("kind", "message", "template"), GOLDEN, ids=lambda value: str(value)[:30])
def test_golden(kind: str, message: str, template: str | None) -> None:
    signature = signature_of(kind, message, "torch.x")
    assert signature.type == kind.rpartition(".")[2]
    assert signature.module == "torch.x"
    if template is not None:
        assert signature.template == template


def test_numbers_with_a_meaning_stay() -> None:
    template = template_of("CUDA error 700 with float8_e4m3fn after exit (137), recompile_limit (64)")
    assert template == "CUDA error 700 with float8_e4m3fn after exit (137), recompile_limit (64)"


def test_a_line_that_stands_for_what_was_left_out_counts_as_such_only_in_a_quoted_traceback() -> None:
    assert template_of("[...]\n  more") == "[...]"
    quoted = 'Previous Traceback:\n  File "x.py", line 3\n[...]\n    call()\n\nRuntimeError: set twice'
    assert template_of(quoted) == "RuntimeError: set twice"


@pytest.mark.parametrize("part", ["1234 ", "a-", "-"])
def test_a_line_of_any_length_takes_no_time_to_speak_of(part: str) -> None:
    begun = time.monotonic()
    template_of(part * (100_000 // len(part)))
    assert time.monotonic() - begun < 10


def test_different_faults_stay_different() -> None:
    assert template_of("recompile_limit (8)") != template_of("recompile_limit (64)")
    assert template_of("'Subgraph' object has no attribute 'dtype'") != template_of("'Subgraph' object has no 'size'")


@given(st.text(max_size=600) | st.from_regex(r"[a-z_0-9(\[, \])./:<>-]{0,80}", fullmatch=True))
@settings(max_examples=300, deadline=None)
def test_idempotent(message: str) -> None:
    template = template_of(message)
    assert template_of(template) == template
    assert len(template) <= LONGEST


SIZE = st.integers(1, 99_999)
VOLATILE = {
    "tensor at {} freed twice": st.integers(2**20, 2**47).map(hex),
    "cannot read {} from the cache": st.from_regex(r"/[a-z]{1,9}(/[a-z0-9_.-]{1,9}){1,4}", fullmatch=True),
    "worker died (pid {})": st.integers(2, 4_194_304),
    "raised in {} while tracing": st.integers(1, 999).map(lambda n: f"Thread-{n} (work)"),
    "tensor is on cuda:{}, not on cpu": st.integers(0, 99),
    "see line {} of the module": st.integers(1, 99_999),
    "mat1 and mat2 have shapes {}": st.lists(SIZE, min_size=2, max_size=5).map(lambda sizes: str(tuple(sizes))),
    "expected a tensor of {}": st.lists(SIZE, min_size=1, max_size=5).map(lambda sizes: f"torch.Size({sizes})"),
    "no fake tensor for {} here": st.tuples(SIZE, st.integers(1, 9)).map(lambda pair: f"arg{pair[0]}_{pair[1]}"),
    "{} has no users": st.integers(0, 999).map(lambda n: f"triton_poi_fused_add_{n}"),
    "module {} is gone": st.from_regex(r"[0-9a-f]{40}", fullmatch=True),
    "gave up after {}": st.floats(0.01, 900).map(lambda s: f"{s:.2f} seconds"),
    "at {} it stopped": st.datetimes(datetime(1970, 1, 1)).map(lambda moment: moment.strftime("%Y-%m-%d %H:%M:%S")),
    "allocated {} bytes": st.integers(1, 2**40),
    "in frame [{}] of the cache": st.tuples(st.integers(0, 99), st.integers(0, 99)).map(lambda p: f"{p[0]}/{p[1]}"),
}


@pytest.mark.parametrize("text", VOLATILE)
def test_invariant_under_what_moves(text: str) -> None:
    @given(VOLATILE[text], VOLATILE[text])
    @settings(max_examples=40, deadline=None)
    def same(one: object, other: object) -> None:
        assert template_of(text.format(one)) == template_of(text.format(other))

    same()
    # And the law is not kept by losing the message.
    assert len(template_of(text.format("x"))) >= len(text) - 8

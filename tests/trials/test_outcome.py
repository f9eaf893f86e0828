from __future__ import annotations

import json

import pytest

from bisect_env.trials import events
from bisect_env.trials.outcome import Classified, Seen, classify
from bisect_env.trials.records import Outcome

TRACEBACK = 'Traceback (most recent call last):\n  File "/w/t.py", line 1, in <module>\nValueError: bad 0x7f12\n'


def seen(*said: dict[str, object], status: int | None = 0, **words: object) -> Classified:
    text = "".join(json.dumps({"t": number + 1.0, **event}) + "\n" for number, event in enumerate(said))
    values: dict[str, object] = {"facts": events.read(text), "output": "", "exit_status": status, **words}
    return classify(Seen(**values))  # type: ignore[arg-type]


DONE = {"event": "done"}


def failure(message: str, kind: str = "RuntimeError") -> dict[str, object]:
    return {"event": "failure", "thread": "w0", "type": kind, "message": message, "module": "torch.x"}


def numbers(error: object) -> dict[str, object]:
    return {"event": "numbers", "what": "grad", "error": error, "tolerance": 0.01}


def test_clean_needs_exit_0_and_done() -> None:
    assert seen(DONE).outcome is Outcome.CLEAN
    early = seen(status=0)
    assert early.outcome is Outcome.FAILED and early.failures[0].signature.type == "exit 0"


@pytest.mark.parametrize("status", [0, 1])
def test_a_reported_failure_counts_whatever_the_exit_status(status: int) -> None:
    result = seen(failure("first"), failure("second"), DONE, status=status)
    assert result.outcome is Outcome.FAILED
    assert [item.message for item in result.failures] == ["first", "second"]


def test_a_failure_explains_the_hang_after_it() -> None:
    result = seen(failure("first"), status=None, expired="silence", waited=60.0)
    assert result.outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2 GiB."),
        ("RuntimeError", "CUDA out of memory. Tried to allocate 2 GiB."),
        ("RuntimeError", "CUDA error: out of memory"),
        ("RuntimeError", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        ("RuntimeError", "[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
)
def test_out_of_device_memory(kind: str, message: str) -> None:
    assert seen(failure(message, kind), DONE, status=1).outcome is Outcome.OOM


def test_a_kernels_shared_memory_is_not_device_memory() -> None:
    message = "out of resource: shared memory, Required: 300000, Hardware limit: 232448"
    assert seen(failure(message, "OutOfResources"), DONE, status=1).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "message",
    [
        "Failed to initialize NVML: Driver/library version mismatch",
        "CUDA error: uncorrectable ECC error encountered",
        "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system",
        "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "[Errno 28] No space left on device: '/x/y'",
    ],
)
def test_machine_trouble(message: str) -> None:
    result = seen(failure(message), DONE, status=1)
    assert result.outcome is Outcome.INFRA and not result.aborted
    assert message[:30] in result.message


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: unspecified launch failure",
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: misaligned address",
        "CUDA error: device-side assert triggered",
        "CUDA error: invalid device ordinal",
    ],
)
def test_what_a_kernel_does_is_the_cells_failure(message: str) -> None:
    assert seen(failure(message), DONE, status=1).outcome is Outcome.FAILED


def test_no_device_is_machine_trouble_only_after_a_lease() -> None:
    gone = failure("No CUDA GPUs are available")
    assert seen(gone, status=1, leased=True).outcome is Outcome.INFRA
    assert seen(gone, status=1, leased=False).outcome is Outcome.FAILED


def test_an_old_driver_cannot_run_it() -> None:
    old = failure("The NVIDIA driver on your system is too old (found version 12080).")
    assert seen(old, status=1).outcome is Outcome.SKIPPED


def test_the_hosts_oom_killer() -> None:
    assert seen(status=-9, oom_killed=True).outcome is Outcome.INFRA
    broken = failure("A process in the process pool was terminated abruptly", "BrokenProcessPool")
    assert seen(broken, DONE, status=1, oom_killed=True).outcome is Outcome.INFRA
    assert seen(DONE, oom_killed=True).outcome is Outcome.CLEAN


@pytest.mark.parametrize("number", [1, 2, 9, 15, 24, 25])
def test_killed_from_outside(number: int) -> None:
    result = seen(status=-number)
    assert result.outcome is Outcome.INFRA and "SIG" in result.message


@pytest.mark.parametrize(
    ("number", "name"), [(4, "SIGILL"), (6, "SIGABRT"), (7, "SIGBUS"), (8, "SIGFPE"), (11, "SIGSEGV")]
)
def test_crashes_are_failures(number: int, name: str) -> None:
    result = seen(status=-number)
    assert result.outcome is Outcome.FAILED and result.failures[0].signature.type == name
    through_a_shell = seen(status=128 + number, protocol=False)
    assert through_a_shell.outcome is Outcome.FAILED and through_a_shell.failures[0].signature.type == name


@pytest.mark.parametrize("error", [0.02, float("nan"), float("inf"), None])
@pytest.mark.parametrize("status", [0, 1])
def test_numbers_beyond_tolerance(error: object, status: int) -> None:
    result = seen(numbers(0.001), numbers(error), DONE, status=status)
    assert result.outcome is Outcome.WRONG and result.message.startswith("grad")
    assert seen(numbers(0.01), DONE).outcome is Outcome.CLEAN


def test_import_failures() -> None:
    broken = {"event": "import_failed", "type": "ImportError", "message": "no name X", "traceback": "tb"}
    result = seen(broken, status=1)
    assert result.outcome is Outcome.IMPORT_FAILED and result.message == "ImportError: no name X"
    assert result.failures[0].traceback == "tb"
    slow = seen(status=None, expired="import", waited=120.0)
    assert slow.outcome is Outcome.IMPORT_FAILED and "did not end within 120 s" in slow.message


def test_hangs_say_which_limit() -> None:
    assert seen(status=None, expired="silence", waited=60.0).message == "no event within 60 s"
    whole = seen(status=None, expired="total", waited=900.0)
    assert whole.outcome is Outcome.HANG and "900 s (limits.trial)" in whole.message


def test_skipped_says_why() -> None:
    note = {"event": "note", "key": "skipped", "value": "no CUDA device"}
    assert seen(note, status=125) == Classified(Outcome.SKIPPED, "no CUDA device")


@pytest.mark.parametrize("status", [0, *range(1, 256)])
def test_every_exit_status_of_git_bisect_run(status: int) -> None:
    result = seen(status=status, protocol=False)
    if status == 0:
        assert result.outcome is Outcome.CLEAN
    elif status == 125:
        assert result.outcome is Outcome.SKIPPED
    elif status < 128 or status - 128 in (4, 6, 7, 8, 11):
        assert result.outcome is Outcome.FAILED
    else:
        assert result.outcome is Outcome.INFRA and result.aborted and f"exit status {status}" in result.message


def test_the_output_gives_a_commands_signature() -> None:
    result = seen(status=3, protocol=False, output="start\n" + TRACEBACK)
    assert str(result.failures[0].signature) == "ValueError: bad <address>"
    assert str(seen(status=3, protocol=False).failures[0].signature) == "exit 3"


def test_patterns_outrank_the_exit_status_and_skipping_outranks_failing() -> None:
    found = seen(status=0, protocol=False, fail_match="loss is nan at step 17")
    assert found.outcome is Outcome.FAILED
    assert str(found.failures[0].signature) == "output: loss is nan at step <n>"
    assert seen(status=1, protocol=False, skip_match="no GPU", fail_match="bad").outcome is Outcome.SKIPPED
    inside = seen(status=1, protocol=False, output=TRACEBACK, fail_match="ValueError: bad 0x7f12")
    assert str(inside.failures[0].signature) == "ValueError: bad <address>"


def test_a_crash_on_a_full_disk_is_the_disks() -> None:
    output = "CppCompileError: x\n/usr/bin/ld: final link failed: No space left on device\n"
    assert seen(status=1, protocol=False, output=output).outcome is Outcome.INFRA

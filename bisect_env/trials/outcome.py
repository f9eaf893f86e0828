"""From everything seen of a trial to its outcome. Pure: what happened comes in as :class:`Seen`.

The order of the questions is the order of what can be believed. Trouble of the machine comes first, because it
explains whatever follows it and says nothing about the cell; then what the reproducer itself reported; then how the
process ended; last what it measured.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from bisect_env.trials.events import Facts
from bisect_env.trials.records import Failure, Outcome, Signature
from bisect_env.trials.signature import template_of
from bisect_env.trials.traces import MESSAGE_LIMIT, crash, last_traceback

SKIP = 125
ABORT_FROM = 128
SHELL_CRASHES = {128 + number: number for number in (4, 6, 7, 8, 11)}
"""Exit statuses of a shell whose command died of SIGILL, SIGABRT, SIGBUS, SIGFPE or SIGSEGV."""

_FROM_OUTSIDE = (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM)
"""Signals that a process does not get by its own fault: an operator, a scheduler or the kernel sent them."""
_LIMITS_OF_HOST = (signal.SIGXCPU, signal.SIGXFSZ)
_LAST_OUTPUT = 8_000

# torch.OutOfMemoryError (torch.cuda.OutOfMemoryError before 2.5) is the allocator's; the others come from libraries
# that allocate past it. DefaultCPUAllocator is the same thing where the device is the CPU. Triton's OutOfResources
# (shared memory of a kernel) is not: the kernel is wrong for the device, however much memory is free.
_OOM = re.compile(
    r"CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|(?:CUBLAS|CUDNN)_STATUS_ALLOC_FAILED"
    r"|DefaultCPUAllocator: (?:can't|not enough) (?:allocate )?memory"
)
_OOM_TYPE = "OutOfMemoryError"

# The machine's own trouble. Not here, on purpose: an illegal memory access, a misaligned address, an unspecified launch
# failure, a device-side assert: a kernel that the cell's compiler made causes them, so they are failures of the cell.
# So is "an illegal instruction", and "invalid device ordinal" is a wrong condition.
_MACHINE = re.compile(
    r"driver/library version mismatch"  # the kernel module was upgraded under running processes
    r"|system has unsupported display driver / cuda driver combination"  # the same, in cudart's words (803)
    r"|uncorrectable (?:ECC|NVLink) error|CUDA_ERROR_ECC_UNCORRECTABLE|\bXid\b"
    r"|GPU is lost|GPU has fallen off the bus"
    r"|CUDA-capable device\(s\) is/are busy or unavailable|all CUDA-capable devices are busy or unavailable"
    r"|CUDA error: system not yet initialized"  # 802: the fabric manager is not up
    r"|CUDA unknown error - this may be due to an incorrectly set up environment"  # driver modules not loaded
    r"|No space left on device|Disk quota exceeded|\[Errno 28\]|\[Errno 122\]"
    r"|\[Errno 12\] Cannot allocate memory",  # fork or mmap without host memory, the OOM killer's gentler form
    re.IGNORECASE,
)
# Only after a lease: without one the trial was given no GPU, and asking for one is the reproducer's mistake.
_NO_DEVICE = re.compile(r"no CUDA-capable device is detected|No CUDA GPUs are available", re.IGNORECASE)
# Retrying never helps, and the cell is not at fault on a host with a newer driver: it cannot run here.
_OLD_DRIVER = re.compile(
    r"CUDA driver version is insufficient for CUDA runtime version|NVIDIA driver on your system is too old"
)


@dataclass(frozen=True)
class Seen:
    """What is known of a trial that has ended."""

    facts: Facts
    output: str
    """Standard output and error, the middle cut out when long."""
    exit_status: int | None
    """As the process left it, negative for a signal; None when this program killed it."""
    expired: str = ""
    """Which limit it was killed for: ``import``, ``silence``, ``still`` or ``total``; empty when it ended by itself."""
    waited: float = 0.0
    """Seconds of that limit."""
    ended: float = 0.0
    """Unix time."""
    protocol: bool = True
    fail_match: str | None = None
    """Line of the output that matched the fail pattern."""
    skip_match: str | None = None
    leased: bool = False
    """Whether GPUs were leased for it."""
    oom_killed: bool = False
    """Whether the kernel's out-of-memory killer struck meanwhile."""


@dataclass(frozen=True)
class Classified:
    """The outcome, why, and the failures: those reported, or the one that the process's end stands for."""

    outcome: Outcome
    message: str = ""
    failures: tuple[Failure, ...] = ()
    aborted: bool = False
    """True when trying again cannot help: the command asked to abort."""


def classify(seen: Seen) -> Classified:
    """The outcome of a trial."""
    facts = seen.facts
    failures = tuple(facts.failures) or _failures_of_end(seen)
    if facts.import_failure is not None:
        failures = (facts.import_failure, *failures)
    trouble = _machine_trouble(seen, failures)
    if trouble:
        return Classified(Outcome.INFRA, trouble, failures)
    old_driver = _says(failures, _OLD_DRIVER)
    if old_driver:
        return Classified(Outcome.SKIPPED, f"the driver is too old for it: {_line_round(old_driver)}", failures)
    if facts.import_failure is not None:
        failure = facts.import_failure
        return Classified(Outcome.IMPORT_FAILED, f"{failure.signature.type}: {failure.message}", failures)
    if seen.expired == "import":
        message = f"imports did not end within {seen.waited:.0f} s (limits.import_time)"
        return Classified(Outcome.IMPORT_FAILED, message, failures)
    if facts.failures:
        # Threads that wait for one that failed may hang afterwards; the failure is the cause.
        return _failed(facts.failures[0], failures)
    if seen.skip_match is not None:
        return Classified(Outcome.SKIPPED, f"its output matches the skip pattern: {seen.skip_match}")
    if seen.fail_match is not None:
        return _failed(failures[0], failures)
    if seen.expired:
        return Classified(Outcome.HANG, _hang_message(seen))
    return _by_exit_status(seen, failures)


def _by_exit_status(seen: Seen, failures: tuple[Failure, ...]) -> Classified:
    status = seen.exit_status
    if status == SKIP:
        said = [value for key, value in seen.facts.notes if key == "skipped"]
        return Classified(Outcome.SKIPPED, said[-1] if said else "exit status 125: it cannot run here")
    if status is not None and status >= ABORT_FROM and status not in SHELL_CRASHES and not seen.protocol:
        message = f"the command asked to abort (exit status {status}, as in git bisect run); it is not tried again"
        return Classified(Outcome.INFRA, message, aborted=True)
    wrong = [f"{what}: error {error:.3g}, tolerance {tolerance:.3g}"
             for what, error, tolerance in seen.facts.numbers if not error <= tolerance]  # fmt: skip
    # A reproducer that came to its end and exits 1 says with it that the numbers are wrong.
    if wrong and status in (0, 1) and (seen.facts.done or not seen.protocol):
        return Classified(Outcome.WRONG, "; ".join(wrong))
    if failures:
        return _failed(failures[0], failures)
    return Classified(Outcome.CLEAN)


def _failed(primary: Failure, failures: tuple[Failure, ...]) -> Classified:
    oom = primary.signature.type == _OOM_TYPE or _OOM.search(primary.message)
    return Classified(Outcome.OOM if oom else Outcome.FAILED, "", failures)


def _failures_of_end(seen: Seen) -> tuple[Failure, ...]:
    """The failure that the process's end stands for, when it reported none itself."""
    status = seen.exit_status
    if seen.fail_match is not None:
        found = last_traceback(seen.output)
        if found is not None and seen.fail_match in found.text:
            return (found.failure("main", seen.ended),)
        signature = Signature("output", template_of(seen.fail_match), "")
        return (Failure("main", signature, seen.fail_match[:MESSAGE_LIMIT], "", "", seen.ended),)
    if status is None or status == SKIP:
        return ()
    if status < 0:
        return (crash(-status, seen.output, seen.ended),)
    if not seen.protocol and status in SHELL_CRASHES:
        return (crash(SHELL_CRASHES[status], seen.output, seen.ended),)
    if status == 0:
        if not seen.protocol or seen.facts.done:
            return ()
        message = "it ended with exit status 0 before its end: there is no `done` event"
        return (Failure("main", Signature("exit 0", "no done event", ""), message, "", "", seen.ended),)
    found = last_traceback(seen.output)
    if found is not None:
        return (found.failure("main", seen.ended),)
    return (Failure("main", Signature(f"exit {status}", "", ""), f"exit status {status}", "", "", seen.ended),)


def _machine_trouble(seen: Seen, failures: tuple[Failure, ...]) -> str:
    status = seen.exit_status
    bad = bool(failures) or bool(seen.expired)
    if bad and seen.oom_killed:
        return "the host's out-of-memory killer struck while it ran: run fewer trials at a time, or smaller sizes"
    if status is not None and -status in _FROM_OUTSIDE:
        return f"it was killed from outside by {signal.Signals(-status).name}"
    if status is not None and -status in _LIMITS_OF_HOST:
        return f"it ran into a resource limit of this host ({signal.Signals(-status).name}; see ulimit -a)"
    found = _says(failures, _MACHINE) or (_says(failures, _NO_DEVICE) if seen.leased else None)
    if found is None and bad and not seen.facts.failures:
        # Nothing was reported: a crash's reason, or what a hung process complains of, stands in the last output.
        found = _MACHINE.search(seen.output[-_LAST_OUTPUT:])
    return _line_round(found) if found else ""


def _says(failures: tuple[Failure, ...], pattern: re.Pattern[str]) -> re.Match[str] | None:
    for failure in failures:
        found = pattern.search(failure.message)
        if found:
            return found
    return None


def _line_round(found: re.Match[str]) -> str:
    start = found.string.rfind("\n", 0, found.start()) + 1
    end = found.string.find("\n", found.end())
    return found.string[start : end if end >= 0 else None].strip()[:500]


def _hang_message(seen: Seen) -> str:
    if seen.expired == "silence":
        return f"no event within {seen.waited:.0f} s"
    if seen.expired == "still":
        return f"neither an event nor any computing within {seen.waited:.0f} s"
    return f"still running after {seen.waited:.0f} s (limits.trial)"

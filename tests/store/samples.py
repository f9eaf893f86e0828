"""Records for the store's tests."""

from __future__ import annotations

from pathlib import Path

from bisect_env.environments.records import Environment, Interpreter, Lock
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, IndexChoice
from bisect_env.trials.records import Device, Failure, Outcome, Side, Signature, StepTime, TrialRecord

INTERPRETER = Interpreter(Path("/usr/bin/python3.12"), "3.12.1", "cpython", "linux-x86_64")
H200 = Device("GPU-aa", "NVIDIA H200", 0, 1 << 37, "580.159.04")
A2 = Device("GPU-bb", "NVIDIA A2", 1, 1 << 34, "580.159.04")


def lock(address: str = "aaaa1111") -> Lock:
    return Lock("torch==2.11.0 --hash=sha256:00\n", INTERPRETER, (("torch", "2.11.0"),), "cu130", address)


def environment(address: str = "aaaa1111") -> Environment:
    return Environment(
        lock(address), Path("/p/environments") / address, Path("/p/venv/bin/python"), "torch==2.11.0\n", 3.5
    )


def cell(name: str = "torch-2.11.0", *, urls: tuple[str, ...] = (), torch: str = "2.11.0") -> Cell:
    request = EnvironmentRequest((f"torch=={torch}",), index=IndexChoice(urls=urls))
    return Cell(
        name, (("torch", torch),), request, Condition.of({"threads": 2, "rate": 1.0, "fast": True, "name": "x"})
    )


def trial(
    name: str,
    *,
    side: Side = Side.THREADS,
    outcome: Outcome = Outcome.CLEAN,
    started: float = 0.0,
    devices: tuple[Device, ...] = (),
    output: str = "",
    address: str = "aaaa1111",
) -> TrialRecord:
    failure = Failure("w1", Signature("RuntimeError", "FX", "torch._dynamo"), "FX in w1", "f:1", "Traceback ...", 3.0)
    return TrialRecord(
        id=name,
        environment=address,
        reproducer="hash",
        condition=Condition.of({"threads": 2}),
        side=side,
        seed=7,
        outcome=outcome,
        failures=(failure,) if outcome is Outcome.FAILED else (),
        steps=(StepTime("w0", 4096, 0.5, 10.0, True),),
        started=started,
        output=output,
        devices=devices,
    )

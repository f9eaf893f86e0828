from __future__ import annotations

from pathlib import Path

import pytest

from bisect_env.bisection import releases
from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.records import Interpreter
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import IndexChoice
from tests.support.index import Index, refusing_url
from tests.support.wheels import Wheels

PYTHON = Interpreter(Path("python"), "3.11.4", "cpython", "linux-x86_64")


def test_versions_days_and_what_does_not_fit(wheels: Wheels, index: Index) -> None:
    index.add(wheels.wheel("x", "1.0"), uploaded="2026-01-05T10:00:00Z")
    index.add(wheels.wheel("x", "1.1", tag="cp312-cp312-linux_x86_64"), uploaded="2026-02-05T23:59:00Z")
    index.add(wheels.wheel("x", "1.2"), uploaded="2026-03-05T10:00:00Z", requires_python=">=3.12")
    index.add(wheels.wheel("x", "1.3", tag="cp312-cp312-linux_x86_64"), uploaded="2026-04-05T10:00:00Z")
    index.add(wheels.sdist("x", "1.3"), uploaded="2026-04-06T10:00:00Z")
    index.add(wheels.wheel("x", "1.4"), yanked="broken")
    index.add(wheels.wheel("x", "1.5rc1"))
    index.add(wheels.wheel("x", "2.0"), uploaded=None)
    found = releases.between("x", "1.0", "2.0", IndexChoice(None, (index.url,)), SimpleIndex(), PYTHON)
    assert [(step.version, step.as_of) for step in found.steps] == [
        ("1.0", "2026-01-05"),
        ("1.1", "2026-02-05"),
        ("1.2", "2026-03-05"),
        ("1.3", "2026-04-06"),
        ("2.0", None),
    ]
    assert [step.unusable for step in found.steps] == [
        "",
        "1.1 has no wheel for Python 3.11.4 on linux-x86_64, and no source",
        "1.2 requires Python >=3.12, not 3.11.4",
        "",
        "",
    ]
    assert found.notes == ("x 1.4 was yanked, and is left out", "1 pre-release is left out of the versions of x")


def test_an_index_that_does_not_answer_is_no_empty_one() -> None:
    with pytest.raises(InfrastructureError, match="the releases of x are not known"):
        releases.between("x", "1", "2", IndexChoice(None, (refusing_url(),)), SimpleIndex(1.0))


def test_pure_is_what_has_wheels_for_any_machine_alone(wheels: Wheels, index: Index) -> None:
    index.add(wheels.wheel("x", "1"))
    index.add(wheels.wheel("x", "2"))
    index.add(wheels.wheel("x", "2", tag="cp311-cp311-linux_x86_64"))
    index.add(wheels.sdist("x", "3"))
    choice, simple = IndexChoice(None, (index.url,)), SimpleIndex()
    assert [releases.is_pure("x", version, choice, simple) for version in ("1", "2", "3", "4")] == [
        True,
        False,
        False,
        False,
    ]


def test_a_torch_that_changes_its_cuda_with_its_version_is_noted(wheels: Wheels, index: Index) -> None:
    for version, runtime in (
        ("2.9.0", "nvidia-cuda-runtime-cu12==12.8.90; platform_system == 'Linux'"),
        ("2.10.0", "nvidia-cuda-runtime-cu12==12.8.93"),
        ("2.11.0", "cuda-toolkit[cudart,nvrtc]==13.0.2; platform_system == 'Linux'"),
        ("2.12.0", "cuda-toolkit[cudart]==13.0.3"),
        ("2.13.0", "cuda-bindings<14"),
    ):
        index.add(wheels.wheel("torch", version, requires=["filelock", runtime]))
    choice = IndexChoice(None, (index.url,))
    found = releases.between("torch", "2.9.0", "2.13.0", choice, SimpleIndex())
    assert [note.partition(", each")[0] for note in found.notes] == [
        "torch 2.10.0 is built for cu128 and torch 2.11.0 for cu130",
        "torch 2.12.0 is built for cu130 and torch 2.13.0 for no CUDA",
    ]
    assert releases.between("torch", "2.11.0", "2.12.0", choice, SimpleIndex()).notes == ()

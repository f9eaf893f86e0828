from __future__ import annotations

import pytest

from bisect_env.trials.stacks import ThreadSample, describe, kind_of


def thread(cpu: float, state: str = "S", compiles: bool = False) -> ThreadSample:
    return ThreadSample(1, "python", 2, "pt_autograd_0", state, "futex_wait", cpu, compiles)


@pytest.mark.parametrize(
    ("threads", "compiling", "kind"),
    [
        ([thread(0.0), thread(0.0)], [], "deadlock"),
        ([thread(0.0)], ["w0"], "deadlock"),
        ([thread(0.03)], [], "deadlock"),
        ([], [], "deadlock"),
        ([thread(0.0), thread(0.6)], [], "spin"),
        ([thread(0.02, state="R")], [], "spin"),
        ([thread(0.6)], ["w0"], "slow compile"),
        ([thread(0.0), thread(0.5, compiles=True)], [], "slow compile"),
        ([thread(0.6), thread(0.0, compiles=True)], [], "spin"),
    ],
)
def test_kinds(threads: list[ThreadSample], compiling: list[str], kind: str) -> None:
    assert kind_of(threads, 0.7, compiling) == kind


def test_the_table_names_thread_time_and_place() -> None:
    assert "thread 2 pt_autograd_0  0.60 s  R  in futex_wait" in describe([thread(0.6, "R")], 0.7)

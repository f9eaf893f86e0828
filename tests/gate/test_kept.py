"""Gates on the disk: found again by what they ask and where, whatever happened to one that was begun."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.errors import InfrastructureError
from bisect_env.gate import kept
from bisect_env.gate.kept import Header, Machine
from bisect_env.gate.records import Rules
from bisect_env.gate.specification import Gate
from bisect_env.matrix.cells import IndexChoice
from bisect_env.snapshots import sources
from bisect_env.snapshots.records import CompileCache
from tests.gate.build import asked, side

HERE = Machine("host", ("NVIDIA H200",), "560.1")


def gate(**rules: float) -> Gate:
    specification = asked(
        side("a", torch="1"), side("b", torch="2"), index=IndexChoice(urls=("https://u:pw@i/simple",))
    )
    return Gate(specification, Rules(**rules))  # type: ignore[arg-type]


def header(name: str, started: float, wanted: Gate) -> Header:
    return Header(name, wanted, wanted.question(), HERE, "hash", started, "0.1")


def test_the_latest_of_the_same_question_is_found(tmp_path: Path) -> None:
    for name, at in (("r1", 1.0), ("r3", 3.0), ("r2", 2.0)):
        kept.begin(tmp_path, header(name, at, gate()))
    kept.begin(tmp_path, header("r4", 4.0, gate(max_race_rate=0.1)))
    found = kept.latest(tmp_path, gate().question(), HERE, "hash")
    assert found is not None and found.id == "r3" and found.gate.rules == Rules()
    assert [each.id for each in kept.headers(tmp_path)] == ["r4", "r3", "r2", "r1"]
    assert "pw" not in (tmp_path / "gates" / "r1" / "gate.json").read_text()


def test_more_budget_is_the_same_gate_and_another_machine_is_not(tmp_path: Path) -> None:
    kept.begin(tmp_path, header("r1", 1.0, gate()))
    more = gate(budget_seconds=60.0)
    assert kept.latest(tmp_path, more.question(), HERE, "hash") is not None
    for machine in (replace(HERE, driver="570.0"), replace(HERE, gpus=()), replace(HERE, host="other")):
        assert kept.latest(tmp_path, gate().question(), machine, "hash") is None
    assert kept.latest(tmp_path, gate().question(), HERE, "other reproducer") is None
    token = replace(gate(), asked=replace(gate().asked, index=IndexChoice(urls=("https://u:new@i/simple",))))
    assert kept.latest(tmp_path, token.question(), HERE, "hash") is not None, "a token that changed"


def test_a_host_that_was_asked_a_minute_later_is_the_same() -> None:
    now = gate()
    other = replace(now.asked.good, cache=CompileCache("/c", 7, 900), libraries=(), missing=("not told",), origin="b")
    later = replace(now, asked=replace(now.asked, good=other))
    assert later.question() == now.question()
    upgraded = replace(now, asked=replace(now.asked, good=side("a", torch="1.5")))
    assert upgraded.question() != now.question() != replace(now, controls=2).question()
    assert replace(now, asked=replace(now.asked, seed=1)).question() != now.question()


def test_what_cannot_be_read_is_no_gate(tmp_path: Path) -> None:
    (tmp_path / "gates" / "r1").mkdir(parents=True)
    (tmp_path / "gates" / "r2").mkdir()
    (tmp_path / "gates" / "r2" / "gate.json").write_text("{torn")
    assert list(kept.headers(tmp_path)) == []
    assert kept.spent(tmp_path, "r1") == 0.0
    kept.spend(tmp_path, "r1", 12.3456)
    assert kept.spent(tmp_path, "r1") == 12.346


def test_a_side_that_was_kept_is_a_source(tmp_path: Path) -> None:
    kept.begin(tmp_path, header("r1", 1.0, gate()))
    path = kept.snapshot_file(tmp_path, "r1", "candidate", side("-", torch="2.0", numpy="1.0"))
    again = sources.snapshot(str(path))
    assert [(each.name, each.version) for each in again.distributions] == [("numpy", "1.0"), ("torch", "2.0")]
    with pytest.raises(InfrastructureError):
        kept.begin(tmp_path, header("r1", 1.0, gate()))

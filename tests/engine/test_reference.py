"""Throughput against the reference cell, measured in the same blocks."""

from __future__ import annotations

from tests.support.racing import World


def test_slow_has_its_ratio(world: World) -> None:
    world.torch("2.11.0+cu128", tokens=1000)
    world.torch("2.11.0+cu130", tokens=300)
    world.transformers("5.8.1")
    world.matrix(
        "axes: {torch: [2.11.0], cuda: [cu128, cu130], transformers: [5.8.1]}\n"
        "reference: {cuda: cu128}\ntrials: 4\ncontrols: 1\n"
    )
    fast, slow = world.document("matrix.yaml")["cells"]
    assert fast["verdict"]["text"] == "FULL" and fast["verdict"]["throughput"]["ratio"] is None
    assert slow["verdict"]["text"].startswith("SLOW 0.") and slow["environment"]["cuda"] == "cu130"
    speed = slow["verdict"]["throughput"]
    # Steps of equal length, so the ratio is that of the tokens, but for the jitter of sleeping.
    assert 0.2 < speed["ratio"] < 0.45 and speed["ratio_low"] <= speed["ratio"] <= speed["ratio_high"] < 0.95
    # One cell asked for alone: its reference comes with it, or there would be nothing to compare with.
    again = world.document("matrix.yaml", "--cell", slow["id"])["cells"]
    assert [cell["verdict"]["text"] for cell in again] == ["FULL", slow["verdict"]["text"]]

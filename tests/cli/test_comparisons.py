"""Mitigations and compile caches as axes, all trials of every cell run, from the command to the sections it prints."""

from __future__ import annotations

import re
from collections import Counter

from tests.support.racing import World

BODY = """\
axes: {torch: [2.11.0, 2.14.1], transformers: [4.52.4]}
conditions: {mitigation: [none, careful], cache: [cold]}
exclude: [{torch: 2.14.1, mitigation: careful}]
include:
  - {torch: 2.11.0, transformers: 4.52.4, mitigation: none, cache: warm}
  - {torch: 2.11.0, transformers: 4.52.4, mitigation: none, cache: stale}
trials: 5
controls: 4
solo: 0
stop_early: false
at_once: 2
"""
PREFIX = "torch-2.11.0_transformers-4.52.4"


def furnish(world: World) -> None:
    world.torch("2.11.0", race=1.0)
    world.torch("2.14.1")
    world.transformers("4.52.4")
    world.matrix(BODY)


def test_what_mitigations_and_caches_do(world: World) -> None:
    furnish(world)
    finished = world.run("matrix", "matrix.yaml")
    assert finished.returncode == 0, finished.stderr
    mitigations = finished.stdout.partition("\nMitigations\n\n")[2].partition("\n\n")[0].splitlines()
    caches = finished.stdout.partition("\nCompile caches\n\n")[2].partition("\n\n")[0].splitlines()
    assert re.split(r"  +", mitigations[2])[:3] == ["none", "RACE", "5/5 (48-100 %)"]
    assert re.split(r"  +", mitigations[3])[:4] == ["careful", "cleared", "0/5 (0-52 %)", "<45 %"]
    at = caches[0].index("hits/misses")
    assert [(line.split()[0], line[at:].split()[0]) for line in caches[2:]] == [
        ("cold", "0/1"),
        ("warm", "1/0"),
        ("stale", "1/0"),
    ]
    assert "trials ran 2 at a time" in finished.stdout
    # Nothing stopped early, although 4 of 4 were certain, and there are no solo controls.
    sides = Counter((key, side) for _, key, side, _, _ in world.trials() if side in ("threads", "serial", "solo"))
    assert len(sides) == 10 and {(side, count) for (_, side), count in sides.items()} == {("threads", 5), ("serial", 4)}


def test_a_stale_cache_is_filled_by_a_cell_that_is_left_out(world: World) -> None:
    furnish(world)
    found = world.document("matrix.yaml", "--cell", "*_stale", "--trials", "1", "--at-once", "1")
    assert [cell["id"] for cell in found["cells"]] == [f"{PREFIX}_none_stale"]
    assert found["matrix"]["solo"] == 0 and found["matrix"]["at_once"] == 1
    measured = {key for _, key, side, _, _ in world.trials() if side != "warmup"}
    assert measured == {found["cells"][0]["key"]}
    shown = world.run("show", f"{PREFIX}_none_stale").stdout
    assert "1 hits, 0 misses" in world.run("show", found["cells"][0]["trials"][-1]["id"]).stdout
    assert "RACE" not in shown and "UNSURE" in shown

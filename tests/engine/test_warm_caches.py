"""Warm compile caches: prepared once by a single-threaded trial, copied into each trial, proved by its counters."""

from __future__ import annotations

import re

from tests.support.racing import World

BODY = """\
axes: {torch: [2.14.1], transformers: [5.8.1]}
conditions: {cache: [cold, warm]}
trials: 2
controls: 2
"""


def counters(world: World) -> dict[str, list[str]]:
    """Hits and misses of every trial, by the id of its cell."""
    found: dict[str, list[str]] = {}
    for name, _, side, _, _ in world.trials():
        shown = world.run("show", name).stdout
        state = "warm" if re.search(r"cache +warm", shown) else "cold"
        (count,) = re.findall(r"compile cache +(\d hits, \d misses)", shown)
        found.setdefault(f"{state} {side}", []).append(count)
    return found


def test_prepared_once_and_used_by_every_trial(world: World) -> None:
    world.torch("2.14.1")
    world.transformers("5.8.1")
    world.matrix(BODY)
    first = world.run("matrix", "matrix.yaml", "--trials", "1")
    assert first.returncode == 0, first.stderr
    assert first.stderr.count("warmup: clean") == 1 and "it fills the compile cache" in first.stderr
    hit, miss = ["1 hits, 0 misses"], ["0 hits, 1 misses"]
    cold = {f"cold {side}": miss for side in ("threads", "serial", "solo")}
    warm = {f"warm {side}": hit for side in ("threads", "serial", "solo")}
    assert counters(world) == {**cold, **warm, "warm warmup": miss}
    assert "was not warm" not in first.stdout
    (prepared,) = (world.store / "caches").iterdir()
    changed = prepared.stat().st_mtime_ns

    second = world.run("matrix", "matrix.yaml")
    assert "warmup" not in second.stderr and "6 trials at most" in second.stderr
    assert [path.stat().st_mtime_ns for path in (world.store / "caches").iterdir()] == [changed]
    assert "was not warm" not in second.stdout and second.stdout.count("FULL") >= 2


def test_a_warm_up_that_fails_is_not_tried_again_and_the_cell_says_so(world: World) -> None:
    world.torch("2.14.1", warmup_fails=True)
    world.transformers("5.8.1")
    world.matrix(BODY.replace("[cold, warm]", "warm"))
    for trials in ("1", "2"):
        finished = world.run("matrix", "matrix.yaml", "--trials", trials)
        assert finished.returncode == 0, finished.stderr
        assert ("warmup: failed" in finished.stderr) == (trials == "1")
    assert not (world.store / "caches").exists() and list((world.store / "trials").iterdir()) == []
    assert "FULL" in finished.stdout
    assert "the compile cache was not warm: 4 of 4 trials missed in it" in " ".join(finished.stdout.split())


def test_a_folder_of_the_users_own(world: World) -> None:
    world.torch("2.14.1")
    world.transformers("5.8.1")
    (world.folder / "their-cache").mkdir()
    (world.folder / "their-cache" / "entry").write_text("compiled elsewhere")
    world.matrix(BODY.replace("[cold, warm]", "./their-cache"))
    finished = world.run("matrix", "matrix.yaml", "--trials", "1")
    assert finished.returncode == 0 and "warmup" not in finished.stderr and "was not warm" not in finished.stdout
    assert (world.folder / "their-cache" / "entry").read_text() == "compiled elsewhere", "trials get a copy"


def test_where_every_cold_trial_fails_the_warm_twin_lends_its_throughput(world: World) -> None:
    world.torch("2.14.1", cold_race=True)
    world.transformers("5.8.1")
    world.matrix(BODY)
    finished = world.run("matrix", "matrix.yaml", "--trials", "4")
    assert finished.returncode == 0 and "RACE 4/4" in finished.stdout and "FULL" in finished.stdout
    told = " ".join(finished.stdout.split())
    assert "tokens/s under the warmed-up condition: every trial of this one failed" in told
    rates = re.findall(r"(?:RACE 4/4|FULL) .*? (\d[\d.]*k) ", finished.stdout.partition("Compile caches")[0])
    assert len(rates) == 2 and len(set(rates)) == 1, finished.stdout

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tabulate import tabulate_formats

from bisect_env.matrix.cells import Matrix, ReproducerChoice
from bisect_env.report.sections import report
from tests.report.build import AXES, Judged, laptop, row, speed, under
from tests.report.build import matrix as matrix_of
from tests.verdicts.build import paths


def rows() -> list[Judged]:
    dense = paths(("w0", 100, {"math_attention": 63, "library_choice": 63}))
    fused = paths(("w0", 100, {"math_attention": 0, "library_choice": 0}))
    plain = [
        ("none", row("2.11.0", "5.6.0", "FFFF..", steps=speed(480_000), paths=fused)),
        ("warmup", row("2.11.0", "5.6.0", "......", steps=speed(475_000), paths=fused)),
        ("no-nested-trace-error", row("2.11.0", "5.6.0", "......", steps=speed(37_000), paths=dense)),
        ("lock-all", row("2.11.0", "5.6.0", "")),
    ]
    found = [under(under(item, "mitigation", name), "cache", "cold") for name, item in plain]
    warm = row("2.11.0", "5.6.0", "......", steps=speed(481_000), cache_hits=7, cache_misses=0)
    return [*found, under(under(warm, "mitigation", "none"), "cache", "warm")]


def matrix(shown: list[Judged]) -> Matrix:
    axes = (*AXES, "mitigation", "cache")
    cells = tuple(item.cell for item in shown)
    return Matrix("x", Path("x.yaml"), cells, axes, ReproducerChoice("dflash"), trials=6)


SIMPLE = """\
Mitigations

mitigation             result              failed         bound  tok/s  ratio  path                  id
---------------------  ------------------  -------------  -----  -----  -----  --------------------  --------
none                   RACE                4/6 (22-96 %)         480k          fused (2 signs)       {0}
warmup                 cleared             0/6 (0-46 %)   <39 %  475k   0.99   fused (2 signs)       {1}
no-nested-trace-error  cleared, but dense  0/6 (0-46 %)   <39 %  37.0k  0.08   dense 63 % (2 signs)  {2}
lock-all               not run                                                                       {3}

cleared: none of the planned trials failed, and without the mitigation significantly more do (Fisher's exact test,
one-sided, 95 %, each mitigation by itself). bound: of the rate of failures, 95 %. ratio: to the tokens/s without a
mitigation.

Compile caches

cache  verdict   failed         control       hits/misses  tok/s  path             id
-----  --------  -------------  ------------  -----------  -----  ---------------  --------
cold   RACE 4/6  4/6 (22-96 %)  0/6 (0-46 %)               480k   fused (2 signs)  {0}
warm   FULL      0/6 (0-46 %)   0/6 (0-46 %)  7/0          481k                    {4}

hits/misses: of the compile cache in a threaded trial, medians.

No cell can be recommended yet"""


def test_what_mitigations_and_caches_do_stands_below_the_table() -> None:
    shown = rows()
    found = report(shown, matrix(shown), 0.05)
    assert SIMPLE.format(*(item.cell.key[:8] for item in shown)) in found
    assert max(map(len, found.rpartition("\n\n")[0].splitlines())) <= 120


def test_markdown_is_fit_for_a_document() -> None:
    shown = rows()
    found = report(shown, matrix(shown), 0.05, "github", 40)
    assert "\n\n**Mitigations**\n\n| mitigation " in found and "\n\n**Compile caches**\n\n| cache " in found
    assert "| dense 63 % (2 signs) |" in found and "Not shown" not in found
    assert "| 0.99 (0.99-0.99) " in found
    assert found.rpartition("\n\n")[2].startswith("No cell can be recommended yet")


def test_in_a_narrow_terminal_columns_go_and_are_named() -> None:
    shown = rows()
    found = report(shown, matrix(shown), 0.05, width=80)
    assert "Not shown at 80 columns: path, bound. Compile caches" in " ".join(found.split())
    assert max(map(len, found.rpartition("\n\n")[0].splitlines())) <= 80


def test_without_mitigations_there_is_the_table_alone() -> None:
    shown = laptop()
    found = report(shown, matrix_of(shown), 0.05)
    assert "Mitigations" not in found and "Compile caches" not in found


@pytest.mark.parametrize("fmt", tabulate_formats)
def test_every_format(fmt: str) -> None:
    shown = rows()
    found = report(shown, matrix(shown), 0.05, fmt)
    assert ("Mitigations" in found) is (fmt in ("plain", "simple", "github", "pipe"))


def test_cells_of_several_environments_are_told_apart() -> None:
    shown = rows()
    other = [
        replace(
            item,
            cell=replace(
                item.cell,
                request=replace(item.cell.request, requirements=("torch==2.14.1",)),
                levels=(("torch", "2.14.1"), *item.cell.levels[1:]),
            ),
        )
        for item in shown[:2]
    ]
    found = report([*shown, *other], matrix([*shown, *other]), 0.05)
    section = found.partition("Mitigations\n\n")[2].partition("\n\n")[0]
    assert section.startswith("torch   mitigation ")
    assert section.count("2.14.1") == 2

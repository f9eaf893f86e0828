"""Cells measured on several GPU models or drivers: said where it is so, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bisect_env.report import machine, table
from bisect_env.report.html.matrix import charts
from bisect_env.report.mitigations import Effect, mitigations
from bisect_env.report.rows import together
from bisect_env.trials.records import Device
from tests.report.build import AXES, Judged, laptop, matrix, row, speed, under
from tests.store.samples import A2, H200

NEWER = replace(H200, driver="590.1")


def on(device: Device | None, shown: Judged) -> Judged:
    devices = () if device is None else (device,)
    return replace(shown, samples=[replace(s, record=replace(s.record, devices=devices)) for s in shown.samples])


def rows(*devices: Device | None) -> list[Judged]:
    cells = (("2.11.0", "4.52.4"), ("2.11.0", "5.8.1"), ("2.14.1", "4.52.4"), ("2.14.1", "5.8.1"))
    return [on(device, row(*cell, "......")) for device, cell in zip(devices, cells, strict=False)]


@pytest.mark.parametrize("fmt", ["simple", "github", "tsv"])
def test_where_all_is_the_same_nothing_changes(fmt: str) -> None:
    plain = table.render(rows(None, None, None), AXES, fmt)
    assert table.render(rows(H200, H200, H200), AXES, fmt) == plain
    # No GPU is no model: a matrix with both devices has an axis that says it.
    assert table.render(rows(None, H200, None), AXES, fmt) == plain
    assert "GPU" not in plain and "driver" not in plain


def headers(text: str) -> list[str]:
    return next(line for line in text.splitlines() if "verdict" in line).split()


def test_models_and_drivers_are_columns_where_several_occur_and_group_the_table() -> None:
    text = table.render(rows(H200, A2, H200, None), AXES)
    assert "GPU" in headers(text) and "driver" not in headers(text)
    lines = [line for line in text.splitlines() if "FULL" in line]
    assert [("H200" in line, "A2" in line, "no GPU" in line) for line in lines] == [
        (True, False, False),
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
    text = table.render(rows(H200, NEWER), AXES)
    assert "driver" in headers(text) and "GPU" not in headers(text) and "590.1" in text


def test_cells_without_a_trial_come_last_only_where_others_are_grouped() -> None:
    none = laptop()[-1]
    alike, mixed = [none, *rows(H200, H200)], [none, *rows(H200, A2)]
    assert together(alike) == alike
    assert together(mixed) == [*mixed[1:], none]


def test_a_mitigation_on_other_gpus_clears_nothing_and_has_no_ratio() -> None:
    none = on(H200, under(row("2.11.0", "5.8.1", "FFFFFF"), "mitigation", "none"))
    fixed = on(H200, under(row("2.11.0", "5.8.1", "......"), "mitigation", "serial_warmup"))

    def compared(twin: Judged) -> Any:
        [(_, [found])] = mitigations([none, twin], 6)
        return found

    assert compared(fixed).effect is Effect.CLEARED
    found = compared(on(A2, fixed))
    assert found.effect is Effect.UNSURE and found.p_value is None


def test_the_document_says_what_a_cell_is_measured_on_and_what_was_measured_elsewhere() -> None:
    [own] = rows(H200)
    [other] = rows(A2)
    cell = machine._cell(replace(own, elsewhere=other.samples[:2]), 0.05)
    assert cell["hardware"] == [{"model": "NVIDIA H200", "driver": "580.159.04"}]
    assert cell["elsewhere"] == [
        {"hardware": [{"model": "NVIDIA A2", "driver": "580.159.04"}], "trials": ["threads-1", "threads-2"]}
    ]
    assert len(cell["trials"]) == len(own.samples)
    assert machine._cell(rows(None)[0], 0.05)["hardware"] == []


def test_charts_show_no_two_models_beside_each_other() -> None:
    def timed(device: Device, torch: str) -> Judged:
        return on(device, row(torch, "5.8.1", "......", steps=speed(1000)))

    def titles(*shown: Judged) -> list[str]:
        cells = tuple(each.cell for each in shown)
        asked = replace(matrix(shown), cells=cells, reference=(("torch", "2.11.0"),))
        return [chart.title for chart in charts(shown, asked, ("torch",))]

    base = timed(H200, "2.11.0")
    assert titles(base, timed(H200, "2.14.1")) == ["Compared with torch 2.11.0"]
    assert titles(base, timed(A2, "2.14.1")) == [
        "Compared with torch 2.11.0, on NVIDIA H200",
        "Compared with torch 2.11.0, on NVIDIA A2",
    ]

from __future__ import annotations

from dataclasses import replace

import pytest
from tabulate import tabulate_formats

from bisect_env.errors import BadInput
from bisect_env.report.rows import interval, path, tokens
from bisect_env.report.table import check_format, render
from bisect_env.trials.records import Side, Utilisation
from bisect_env.verdicts.samples import Placed
from bisect_env.verdicts.statistics import clopper_pearson
from bisect_env.verdicts.verdict import judge
from tests.report.build import AXES, SIX, laptop, row, speed
from tests.verdicts.build import paths, record

WIDE = """\
All cells: cuda cpu, pattern hot

torch   transformers  verdict           failed        control  tok/s  ratio  path       exposures  race rate  id
------  ------------  ----------------  ------------  -------  -----  -----  ---------  ---------  ---------  --------
2.11.0  4.52.4        RACE 4/4 [1, 2]   40-100 %      0/4                                                     {0}
2.11.0  5.8.1         RACE 5/6 [1]      36-100 %      0/6                                                     {1}
2.14.1  4.52.4        FULL              0/6 (0-46 %)  0/6      21.5k                    240        <39 %      {2}
2.14.1  5.8.1         DENSE 31 %        0/6 (0-46 %)  0/6      4.3k   0.20   dense (2)             <39 %      {3}
2.15.0  5.8.1         UNRESOLVABLE [3]                                                                        {4}

Not shown at 120 columns: exposures/trial.

 1  RuntimeError: Detected that you are using FX to symbolically trace (torch._dynamo.eval_frame)
 2  stopped early: certain at a look fixed beforehand
 3  conflict: a 1.0 needs b<2 and b==2 is asked for"""

NARROW = """\
All cells: cuda cpu, pattern hot

torch   transformers  verdict           failed        control  tok/s  id
------  ------------  ----------------  ------------  -------  -----  --------
2.11.0  4.52.4        RACE 4/4 [1, 2]   40-100 %      0/4             {0}
2.11.0  5.8.1         RACE 5/6 [1]      36-100 %      0/6             {1}
2.14.1  4.52.4        FULL              0/6 (0-46 %)  0/6      21.5k  {2}
2.14.1  5.8.1         DENSE 31 %        0/6 (0-46 %)  0/6      4.3k   {3}
2.15.0  5.8.1         UNRESOLVABLE [3]                                {4}

Not shown at 80 columns: exposures/trial, exposures, race rate, ratio, path.

 1  RuntimeError: Detected that you are using FX to symbolically trace
    (torch._dynamo.eval_frame)
 2  stopped early: certain at a look fixed beforehand
 3  conflict: a 1.0 needs b<2 and b==2 is asked for"""


@pytest.mark.parametrize(("width", "golden"), [(120, WIDE), (80, NARROW)])
def test_fitted_to_the_terminal(width: int, golden: str) -> None:
    found = render(laptop(), AXES, width=width)
    assert found == golden.format(*(shown.cell.key[:8] for shown in laptop()))
    assert max(map(len, found.splitlines())) <= width


def test_markdown_keeps_every_column_that_says_something() -> None:
    found = render(laptop(), AXES, "github", width=40)
    assert "| torch   | transformers   | verdict " in found and "| exposures " in found
    assert "| dense (2 signs) |" in found and "| signature " not in found, "the signature is a note"
    assert "| cuda" not in found and found.startswith("All cells: cuda cpu")
    assert "1. RuntimeError: Detected" in found and "Not shown" not in found


def test_formats_for_programs_have_every_column_and_their_notes_in_place() -> None:
    head, *body = render(laptop(), AXES, "tsv").splitlines()
    names = [name.strip() for name in head.split("\t")]
    assert names[: len(AXES)] == list(AXES) and names[-2:] == ["notes", "id"]
    assert len(body) == 5 and all(line.count("\t") == head.count("\t") for line in body)
    assert body[-1].split("\t")[-2].strip() == "conflict: a 1.0 needs b<2 and b==2 is asked for"


@pytest.mark.parametrize("fmt", tabulate_formats)
def test_every_format(fmt: str) -> None:
    check_format(fmt)
    assert "DENSE 31 " in render(laptop(), AXES, fmt)
    render([], AXES, fmt)


def test_an_unknown_format_is_bad_input() -> None:
    with pytest.raises(BadInput, match="'githb' is not a table format"):
        check_format("githb")


def test_figures_of_a_gpu() -> None:
    used = (Utilisation("attention", 4.2e14, 1.0, 1e15), Utilisation("step", 1e14, 1.0, 1e15))
    shown = row("2.14.1", "4.52.4", "F.....", exposures=30, peak_bytes=5_800_000_000)
    timed = replace(shown, verdict=judge([*shown.samples, Placed(record(Side.ROUNDS, utilisation=used), 0)], SIX))
    names, values = (line.split("\t") for line in render([timed], AXES, "tsv").splitlines())
    found = dict(zip((name.strip() for name in names), (value.strip() for value in values), strict=True))
    assert (found["util"], found["peak"]) == ("42 %", "5.8 GB")
    assert (found["exposures"], found["exposures/trial"], found["exposures/failure"]) == ("180", "30", "180")


def test_an_axis_with_a_figure_s_name_stays() -> None:
    shown = [
        replace(item, cell=replace(item.cell, levels=(*item.cell.levels, ("path", f"p{at}"))))
        for at, item in enumerate(laptop())
    ]
    found = render(shown, (*AXES, "path"), width=60)
    assert all(f"p{at}" in found for at in range(5)) and "dense (2 signs)" not in found


@pytest.mark.parametrize(
    ("outcomes", "shares", "text"),
    [
        ("......", ({"a": 0, "b": 0}, {"a": 0, "b": 0, "c": 0}), "fused (2 signs)"),
        ("......", ({"a": 0}, {"a": 0, "b": 0}), "fused (1 sign)"),
        ("......", ({"a": 0}, {"b": 0}), "unknown"),
        ("......", ({"kernels": 30}, {"a": 40, "kernels": 0}), "dense (2 signs)"),
        ("......", ({"a": 0, "b": 0}, {"a": 40, "b": 40}), "dense (2 signs)"),
        ("......", ({"a": 0, "b": 0}, {"a": 40, "b": 0}), "dense (1 sign)"),
        ("FFFFFF", ({"a": 0, "b": 0}, {"a": 40, "b": 40}), "dense 40 % (2 signs)"),
        ("......", (), ""),
    ],
)
def test_path(outcomes: str, shares: tuple[dict[str, int], ...], text: str) -> None:
    ran = paths(*((f"w{at}", 100, signs) for at, signs in enumerate(shares)))
    assert path(row("2.14.1", "4.52.4", outcomes, paths=ran).verdict) == text


def test_notes_are_numbered_once() -> None:
    found = render([row("2.11.0", "4.52.4", "FFFF", "...."), row("2.11.0", "5.8.1", "SSSF", "....")], AXES)
    assert "RACE 4/4 [1]" in found and "RACE 4/4 [2, 1]" in found
    assert found.count("Detected that you are using FX") == 1


def test_what_all_measured_cells_share_is_said_once_above_the_table() -> None:
    racing = [row("2.11.0", version, "FFFF", "....") for version in ("4.52.4", "5.8.1")]
    not_run = row("2.12.1", "5.8.1", "", "")
    early = "stopped early: certain at a look fixed beforehand"
    found = render([*racing, not_run], AXES)
    assert f"All cells that were measured: {early}\n\ntorch " in found and found.count(early) == 1
    assert "NOT RUN\n" not in found and "NOT RUN  " in found, "the headline says it all"
    assert f"2. {early}" in render([racing[0], not_run], AXES, "github"), "of one cell it is a note"
    assert render(racing, AXES, "tsv").count(early) == 2


def test_the_interval_alone_where_the_verdict_has_the_counts() -> None:
    found = render([row("2.11.0", "4.52.4", "FFFFF."), row("2.11.0", "5.8.1", "......")], AXES, "github")
    assert "| 36-100 %     |" in found and "| 0/6 (0-46 %) |" in found
    assert "5/6 (36-100 %)" in render([row("2.11.0", "4.52.4", "FFFFF.")], AXES, "tsv")


def test_what_failed_and_what_hung_is_one_count_and_told_apart() -> None:
    found = render([row("2.11.0", "4.52.4", "FFFFHH", "......"), row("2.14.1", "4.52.4", "HHHHFF", "......")], AXES)
    assert "RACE 6/6, 2 hung" in found and "HANG 6/6, 2 failed" in found
    assert found.count("54-100 %") == 2


def test_what_the_verdict_rests_on_is_noted_where_figures_do_not_tell() -> None:
    found = render([row("2.11.0", "4.52.4", "F.....", steps=speed(10))], AXES, width=200)
    assert "1  1 of 6 threaded trials and 0 of 6 serial controls failed, which chance can explain" in found


def test_solo_controls_are_shown_when_they_differ() -> None:
    shown = row("2.11.0", "4.52.4", "......")
    other = replace(shown, verdict=replace(shown.verdict, solo=clopper_pearson(2, 6)))
    assert "0/6, solo 2/6" in render([other], AXES)


@pytest.mark.parametrize(
    ("rate", "text"), [(0.123, "0.12"), (15, "15"), (950, "950"), (4_300, "4.3k"), (480_000, "480k"), (1.25e6, "1.2M")]
)
def test_tokens(rate: float, text: str) -> None:
    assert tokens(rate) == text


def test_interval() -> None:
    assert interval(None) == ""
    assert interval(clopper_pearson(5, 6)) == "5/6 (36-100 %)"

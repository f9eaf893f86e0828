from __future__ import annotations

from dataclasses import replace

import pytest
from tabulate import tabulate_formats

from bisect_env.errors import BadInput
from bisect_env.report.rows import interval, tokens
from bisect_env.report.table import check_format, render
from bisect_env.verdicts.statistics import clopper_pearson
from tests.report.build import AXES, laptop, row, speed

WIDE = """\
All cells: cuda cpu, pattern hot

torch    transformers    verdict           failed          control    tok/s    ratio    dense    race rate    id
-------  --------------  ----------------  --------------  ---------  -------  -------  -------  -----------  --------
2.11.0   4.52.4          RACE 4/4 [1, 2]   4/4 (40-100 %)  0/4                                                {0}
2.11.0   5.8.1           RACE 5/6 [1]      5/6 (36-100 %)  0/6                                                {1}
2.14.1   4.52.4          FULL              0/6 (0-46 %)    0/6        21.5k                      <39 %        {2}
2.14.1   5.8.1           DENSE 31 %        0/6 (0-46 %)    0/6        4.3k     0.20     31 %     <39 %        {3}
2.15.0   5.8.1           UNRESOLVABLE [3]                                                                     {4}

Not shown at 120 columns: signature.

 1  RuntimeError: Detected that you are using FX to symbolically trace (torch._dynamo.eval_frame)
 2  stopped early: certain at a look fixed beforehand
 3  conflict: a 1.0 needs b<2 and b==2 is asked for"""

NARROW = """\
All cells: cuda cpu, pattern hot

torch    transformers    verdict           failed          tok/s    id
-------  --------------  ----------------  --------------  -------  --------
2.11.0   4.52.4          RACE 4/4 [1, 2]   4/4 (40-100 %)           {0}
2.11.0   5.8.1           RACE 5/6 [1]      5/6 (36-100 %)           {1}
2.14.1   4.52.4          FULL              0/6 (0-46 %)    21.5k    {2}
2.14.1   5.8.1           DENSE 31 %        0/6 (0-46 %)    4.3k     {3}
2.15.0   5.8.1           UNRESOLVABLE [3]                           {4}

Not shown at 80 columns: signature, dense, race rate, control, ratio.

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
    assert "| torch   | transformers   | verdict " in found and "| signature " in found
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


def test_notes_are_numbered_once() -> None:
    found = render([row("2.11.0", "4.52.4", "FFFF", "...."), row("2.11.0", "5.8.1", "SSSF", "....")], AXES)
    assert "RACE 4/4 [1, 2]" in found and "RACE 4/4 [3, 1, 2]" in found
    assert found.count("Detected that you are using FX") == 1


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

"""The page of a matrix says what the text report says, cell by cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.report import summary, table
from bisect_env.report.html import cells
from bisect_env.report.html import matrix as html
from bisect_env.report.rows import short_id
from bisect_env.trials.records import Failure
from bisect_env.verdicts.samples import Placed
from tests.report.build import AXES, Judged, laptop, row, speed, under
from tests.report.build import matrix as matrix_of
from tests.report.html.pages import matrix_page, timed
from tests.report.html.reading import Element, read

LINES = 400


def evidence(root: Element, shown: Judged) -> Element:
    (found,) = [each for each in root.all("details", "evidence") if any(
        below.get("id") == f"cell-{short_id(shown.cell)}" for below in each
    )]  # fmt: skip
    return found


def test_each_cell_of_the_grid_opens_its_evidence() -> None:
    shown = laptop()
    root = read(matrix_page(shown))
    (grid,) = root.all("table", "grid")
    links = {each.get("href"): each for each in grid.all("a")}
    assert len(links) == len(shown)
    for each in shown:
        link = links[f"#cell-{short_id(each.cell)}"]
        assert each.verdict.text in link.text and link.get("data-headline") == each.verdict.headline.value
        below = evidence(root, each)
        assert each.verdict.reason.split()[0] in below.text
        for sample in each.samples:
            assert sample.record.id in below.text
        for signature in each.verdict.signatures:
            assert signature.signature.template in below.text
    assert "not in the matrix" in grid.text


def test_the_table_s_figures_the_sentences_and_the_remarks_are_all_there() -> None:
    shown = [*laptop()[:4], timed("2.12.0", "5.8.1", "FF......", 20_000)]
    text = read(matrix_page(shown)).text
    for sentence in summary.sentences(shown, 0.05):
        assert sentence in text
    for column in table.columns(shown, AXES):
        assert column.header in text or not any(column.texts)
        for each in filter(None, column.texts):
            assert each in text
    for each in shown:
        for remark in table.remarks(each):
            assert remark in text


def test_colour_is_never_alone() -> None:
    root = read(matrix_page())
    for link in root.all("a", "cell"):
        assert link.all("b")[0].text and link.all("span", "sign")[0].get("aria-hidden") == "true"
    for badge in root.all("span", "badge"):
        assert len(badge.text) > 2


def test_throughput_is_a_dot_a_round_beside_the_reference() -> None:
    own, reference = (
        timed("2.11.0", "5.8.1", "." * 6, 20_000, seed=1),
        timed("2.14.1", "5.8.1", "." * 6, 21_000, seed=2),
    )
    root = read(matrix_page([own, reference], reference=(("torch", "2.14.1"),)))
    strips = {each.get("id"): each for each in root.all("div", "strip")}
    for each in (own, reference):
        strip = strips[f"rounds-{short_id(each.cell)}"]
        assert len(strip.all("circle")) == 24 and len(strip.all("rect")) == 1 and len(strip.all("line", "against")) == 1
        assert "24 rounds in 1 session" in strip.all("svg")[0].get("aria-label")
    assert "(reference)" in strips[f"rounds-{short_id(reference.cell)}"].text
    assert "Compared with torch 2.14.1" in root.text


def test_mitigations_and_caches_have_their_sections() -> None:
    shown = [
        under(row("2.11.0", "5.6.0", trials), "mitigation", name)
        for name, trials in (("none", "FFFFFF"), ("lock", "......"))
    ]
    root = read(matrix_page(shown))
    assert "Mitigations" in [each.text for each in root.all("h2")] and "not cleared" not in root.text
    assert "Fisher's exact test" in root.text and "Compile caches" not in root.text


def test_an_empty_matrix_is_a_page_too() -> None:
    assert "No cell, so nothing to say." in read(matrix_page([])).text


def test_a_long_traceback_is_cut_and_says_so() -> None:
    text = "\n".join(f"line {number} {'x' * 1000 if number == 3 else ''}" for number in range(LINES))
    cut = cells.shortened(text, "t1").splitlines()
    assert len(cut) == cells.HEAD + cells.TAIL + 1
    assert cut[0].startswith("line 0") and cut[-1].startswith(f"line {LINES - 1}")
    assert (
        cut[cells.HEAD]
        == f"[... {LINES - cells.HEAD - cells.TAIL} lines are left out here: `bisect-env show t1` has all ...]"
    )
    assert max(map(len, cut)) <= cells.WIDTH + 10
    assert cells.shortened("short\ntext", "t1") == "short\ntext"


@pytest.mark.parametrize("variable", ["HF_TOKEN", "MY_API_KEY"])
def test_variables_that_hold_a_secret_are_hidden(variable: str) -> None:
    shown = row("2.11.0", "5.6.0", "......")
    cell = replace(shown.cell, variables=((variable, "hf_abcdef"), ("OMP_NUM_THREADS", "1")))
    page = matrix_page([replace(shown, cell=cell)])
    assert "hf_abcdef" not in page and "OMP_NUM_THREADS" in page and variable in page


def test_sixty_cells_with_their_evidence_stay_below_two_megabytes() -> None:
    """Each with 40 trials, half of them failed in two threads with a traceback of 400 lines, and 48 rounds."""
    trace = "\n".join(
        f'  File "/venv/lib/python3.12/site-packages/torch/_dynamo/m{n}.py", line {n}' for n in range(LINES)
    )
    shown = []
    for number in range(60):
        found = timed(f"2.{number}.0", "5.6.0", "F" * 20, 20_000, rounds=48, seed=number)
        samples = [
            Placed(replace(s.record, failures=tuple(longer(f, trace) for f in s.record.failures)), s.block)
            for s in found.samples
        ]
        shown.append(replace(found, samples=samples))
    size = len(matrix_page(shown).encode())
    assert 300_000 < size < 2_000_000


def longer(failure: Failure, trace: str) -> Failure:
    return replace(failure, traceback=trace)


def test_what_every_measured_cell_has_is_said_once_above() -> None:
    shown = [row(torch, "5.6.0", "......", steps=speed(20_000)) for torch in ("2.11.0", "2.12.0")]
    marked = [replace(each, verdict=replace(each.verdict, marks=("trials ran 16 at a time",))) for each in shown]
    page = html.page(marked, matrix_of(marked), 0.05)
    assert "All cells that were measured: trials ran 16 at a time" in read(page).text


def test_the_templates_are_part_of_the_package() -> None:
    folder = Path(html.__file__).parent / "templates"
    assert {"base.html", "matrix.html", "style.css", "script.js"} <= {each.name for each in folder.iterdir()}

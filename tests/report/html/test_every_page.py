"""What holds for every page: it is alone, it is sound, it can be read by everybody, and no text is taken for markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from bisect_env.explanation.records import Frame, Hypothesis, Standing, State, Unknown, Watched
from bisect_env.matrix.cells import Condition
from bisect_env.report.html import bisection as bisection_page
from bisect_env.report.html import explanation as explanation_page
from bisect_env.report.html import gate as gate_page
from bisect_env.report.html import paper
from bisect_env.snapshots.factors import Factor, Held, Kind
from bisect_env.verdicts.samples import Placed
from tests.report.build import Judged, laptop, lock
from tests.report.explanations import explanation, raced
from tests.report.findings import culprit
from tests.report.html.pages import PLANTED, bisection, gate, matrix_page, side, timed
from tests.report.html.reading import Element, read
from tests.verdicts.build import failure

SECRET = "s3cr3t-value"
URL = f"https://user:{SECRET}@index.example/simple"


def matrix() -> str:
    return matrix_page([*laptop(), timed("2.12.0", "4.52.4", "." * 6, 20_000)])


def bisect() -> str:
    return bisection_page.page(*bisection())


def unlogged() -> str:
    return bisection_page.page(culprit())


def gated() -> str:
    return gate_page.page(gate())


def explained() -> str:
    return explanation_page.page(explanation())


PAGES: list[Callable[[], str]] = [matrix, bisect, unlogged, gated, explained]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)


@each_page
def test_it_needs_nothing_beside_it(page: Callable[[], str]) -> None:
    document = page()
    root = read(document)
    assert not [each for each in root if each.tag in ("link", "img", "iframe", "object", "embed", "base")]
    for element in root:
        assert not element.get("src") and not element.get("srcset") and not element.get("style")
        assert not [name for name in element.attributes if name.startswith("on")]
        if element.get("href"):
            assert element.get("href").startswith(("#", "https://", "http://"))
    (style,) = root.all("style")
    assert "url(" not in style.text and "@import" not in style.text
    (policy,) = [each.get("content") for each in root.all("meta") if "Policy" in each.get("http-equiv")]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy


@each_page
def test_its_policy_names_its_own_script_and_style(page: Callable[[], str]) -> None:
    document = page()
    (policy,) = [each.get("content") for each in read(document).all("meta") if "Policy" in each.get("http-equiv")]
    for tag in ("script", "style"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", document, re.DOTALL)
        assert f"{tag}-src {paper._hash(text)}" in policy


@each_page
def test_headings_come_in_order_and_anchors_lead_somewhere(page: Callable[[], str]) -> None:
    root = read(page())
    levels = [int(each.tag[1]) for each in root if re.fullmatch("h[1-6]", each.tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    assert all(each.text for each in root if re.fullmatch("h[1-6]", each.tag))
    ids = [each.get("id") for each in root if each.get("id")]
    assert len(ids) == len(set(ids))
    assert {each.get("href")[1:] for each in root.all("a") if each.get("href").startswith("#")} <= set(ids)
    assert root.all("html")[0].get("lang") == "en" and root.all("main") and root.all("title")[0].text


@each_page
def test_tables_name_their_rows_and_columns(page: Callable[[], str]) -> None:
    root = read(page())
    assert root.all("table")
    for table in root.all("table"):
        assert table.all("caption")[0].text
        assert all(head.get("scope") in ("row", "col", "colgroup") for head in table.all("th"))
        assert all(row.all("th") for row in table.all("tr")) and all(head.text for head in table.all("th"))
    for box in root.all("div", "scroll"):
        assert box.get("tabindex") == "0" and box.get("role") == "group" and box.get("aria-label")


@each_page
def test_drawings_are_told_in_words(page: Callable[[], str]) -> None:
    drawings = [each for each in read(page()).all("svg") if each.get("role") == "img"]
    for drawing in drawings:
        assert re.search(r"\d", drawing.get("aria-label"))


@each_page
def test_without_its_script_it_shows_no_button_that_does_nothing(page: Callable[[], str]) -> None:
    root = read(page())

    def hidden(element: Element, under: bool = False) -> None:
        under = under or "hidden" in element.attributes
        assert element.tag != "button" or under
        for child in element.children:
            hidden(child, under)

    hidden(root)


def planted_row() -> Judged:
    """A cell in which everything that is text is an attack."""
    shown = timed("2.11.0", "4.52.4", "FF......", 20_000)
    levels = (("torch", PLANTED), ("cuda", URL), ("transformers", PLANTED), ("pattern", "hot"))
    condition = Condition.of({**shown.cell.condition.as_dict(), "option": PLANTED})
    cell = replace(
        shown.cell, id=PLANTED, levels=levels, condition=condition, variables=(("HF_TOKEN", SECRET), ("X", PLANTED))
    )
    samples = []
    for sample in shown.samples:
        found = sample.record
        if found.failures:
            bad = replace(
                failure(found.failures[0].signature), where=PLANTED, traceback=f"{PLANTED}\n{URL}\x1b[31mred\x00"
            )
            bad = replace(bad, signature=replace(bad.signature, template=PLANTED, module=PLANTED))
            found = replace(found, failures=(bad,), stacks=PLANTED, versions=((PLANTED, PLANTED),), phase=PLANTED)
        samples.append(Placed(found, sample.block))
    marks = (PLANTED, URL)
    verdict = replace(shown.verdict, reason=PLANTED, marks=marks)
    return replace(shown, cell=cell, samples=samples, verdict=verdict, lock=lock(text=f"x @ {URL}", notes=marks))


def planted_matrix() -> str:
    return matrix_page([planted_row(), *laptop()], name=PLANTED)


def planted_finding() -> str:
    bad = Factor(PLANTED, Kind.DISTRIBUTION, PLANTED, URL, ())
    found = culprit(
        sentence=PLANTED,
        signature=PLANTED,
        factors=(bad,),
        held=(Held(PLANTED, PLANTED, PLANTED, PLANTED),),
        notes=(PLANTED, URL),
        commands=(PLANTED, PLANTED),
        skipped=((PLANTED, URL),),
        locks=("torch==1", f"x @ {URL}"),
    )
    _, history = bisection()
    asked = replace(history.header.specification, good=side(PLANTED, "1"), bad=side(URL, "2"))
    return bisection_page.page(found, replace(history, header=replace(history.header, specification=asked)))


def planted_gate() -> str:
    row = planted_row()
    found = gate()
    lines = tuple(replace(line, sentence=PLANTED, baseline=PLANTED, more=URL) for line in found.lines)
    named = replace(found.candidate, snapshot=side(PLANTED, "1"), cell=row.cell, lock=row.lock)
    return gate_page.page(replace(found, lines=lines, candidate=named, notes=(PLANTED,), bisect_command=PLANTED))


def planted_explanation() -> str:
    """In which threads, files, messages and sentences are attacks."""
    secret = f"{PLANTED} {URL} \x00\x1b[31m"
    told = raced(PLANTED)
    (collision,) = told.collisions
    assert told.log is not None and collision.window is not None and collision.met is not None
    frames = (Frame(secret, 1, PLANTED),)
    window = replace(
        collision.window, thread=PLANTED, opened=replace(collision.window.opened, stack=frames, value=PLANTED)
    )
    met = replace(collision.met, thread=secret, stack=frames, value=PLANTED)
    collision = replace(collision, culprit=PLANTED, victim=secret, met=met, window=window, message=secret)
    account = replace(told, outcome=PLANTED, collisions=(collision,), sentences=(secret,))
    hypothesis = Hypothesis(PLANTED, secret, Standing.KEPT, (secret,))
    unknown = replace(
        told.log,
        torch=PLANTED,
        unknown=(Unknown(State.KERNEL, secret),),
        watched=(Watched(State.TRACE, PLANTED, secret),),
    )
    found = explanation(
        account, replace(account, trial="other", log=unknown), vanished=secret, cost=secret, notes=(secret,)
    )
    return explanation_page.page(replace(found, cell=PLANTED, environment=secret, hypotheses=(hypothesis,)))


@pytest.mark.parametrize(
    "page", [planted_matrix, planted_finding, planted_gate, planted_explanation], ids=lambda page: page.__name__
)
def test_nothing_that_is_text_becomes_markup_and_no_secret_is_told(page: Callable[[], str]) -> None:
    document = page()
    root = read(document)
    assert len(root.all("script")) == 1 and not root.all("img")
    assert PLANTED in "".join(root.pieces), "it is not there at all"
    assert "<img" not in document and "<script>document.title" not in document
    for element in root:
        assert not [name for name in element.attributes if name.startswith("on")]
    assert SECRET not in document
    assert "\x00" not in document and "\x1b" not in document


def test_each_tone_can_be_read_in_both_themes_and_beside_its_neighbours() -> None:
    """Contrast by WCAG 2.2: at least 4.5 for text, 3 for the edges that tell a control or a cell."""
    text = [
        ("ink", "paper"),
        ("quiet", "paper"),
        ("quiet", "raised"),
        ("link", "paper"),
        ("ink", "raised"),
        ("ink", "shade"),
    ]
    tones = ("good", "bad", "poor", "open", "barred", "none")
    text += [(ink, f"{tone}-paper") for tone in tones for ink in (tone, "ink")]
    lines = [("focus", "paper"), ("strong", "paper"), *((f"s{number}", "paper") for number in range(1, 8))]
    for theme in ("light", "dark"):
        source = paper._environment().get_template(f"{theme}.css").render()
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", source))
        for ink, ground in text:
            assert contrast(colours[ink], colours[ground]) >= 4.5, (theme, ink, ground)
        for line, ground in lines:
            assert contrast(colours[line], colours[ground]) >= 3, (theme, line, ground)


def contrast(one: str, other: str) -> float:
    """The ratio of two colours' relative luminances (WCAG 2.2, 1.4.3)."""
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(
    ("said", "typed"),
    [("see `bisect-env show ID`.", ["bisect-env show ID"]), ("an odd ` stays", []), ("`<b>` and `c`", ["<b>", "c"])],
)
def test_what_is_to_be_typed_is_set_apart(said: str, typed: list[str]) -> None:
    root = read(bisection_page.page(culprit(notes=(said,))))
    (note,) = [item for item in root.all("li") if item.text.replace("`", "") == said.replace("`", "")]
    assert [code.text for code in note.all("code")] == typed and ("`" in note.text) == (not typed)

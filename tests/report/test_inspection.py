"""An inspection as it is read: in a terminal, in an issue, and by programs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bisect_env.inspection.compare import across
from bisect_env.inspection.inspected import Asked, Cost, Inspection, Place, Traced
from bisect_env.inspection.records import (
    Call,
    Entry,
    Found,
    Hit,
    NotFound,
    Scan,
    Scope,
    Step,
    Surface,
    Unresolved,
    Use,
    Uses,
)
from bisect_env.report import inspection as report
from bisect_env.report.inspection_machine import document
from bisect_env.report.inspection_scan import reach
from bisect_env.report.inspection_surface import differing, pieces
from tests.support.schemas import matching

NAME = "torch.attention.flex"
FOUND = Found(NAME, "torch.attention", "flex", "function", "torch/attention.py", 12)
COST = Cost(8, 0, 14_200_000, 6.14)
OLD, NEW = "(query, scale: float | None = None)", "(query, *, scale: float | None = 1.0, aux=None) -> Tensor"


def surface(label: str, signature: str, *names: str) -> Surface:
    entries = tuple(Entry(name, "function", "(x)", 3, not name.startswith("_")) for name in names)
    return Surface(label, FOUND, entries, signature)


def scan(label: str, line: int = 7, *, hits: bool = True, unresolved: int = 0, beyond: int = 0) -> Scan:
    way = (
        Step("torch.attention:flex", "torch/attention.py", 14, observed=True),
        Step("torch.fx:trace", "torch/fx.py", line),
    )
    return Scan(
        label,
        FOUND,
        ("Tracer",),
        6,
        214,
        (Hit("Tracer", way, "torch/fx.py", line, "    Tracer().trace()"),) if hits else (),
        tuple(Unresolved("torch.fx:trace", "torch/fx.py", 8, "mod(x)", "a parameter") for _ in range(unresolved)),
        beyond,
    )


def uses(label: str, scope: Scope, name: str = "torch.fx._flag") -> Uses:
    found = replace(FOUND, asked=name)
    stores = (Use("torch.fx:Tracer.trace", "torch/fx.py", 9, "    _flag = True"),)
    return Uses(label, found, scope, stores, (Use("torch.fx:is_tracing", "torch/fx.py", 3, "return _flag"),), 40)


def one(**parts: object) -> Inspection:
    asked = Asked(NAME, patterns=("Tracer",), uses=True)
    return Inspection(asked, (Place("torch 2.11.0", FOUND, **parts),), (), COST)  # type: ignore[arg-type]


def several(surfaces: list[Surface], match: str | None = None) -> Inspection:
    places = tuple(Place(each.label, each.found, each) for each in surfaces)
    return Inspection(Asked(NAME, match=match), places, across(surfaces), COST)


def test_a_surface_has_its_signature_and_marks() -> None:
    entries = (
        Entry("_DISABLE", "value", "False", 40, False, switch=True),
        Entry("mask", "function", "(fn, B)", 50, True, origin="torch.masks"),
        Entry("Block", "class", "", 0, True),
    )
    told = report.describe(one(surface=Surface("torch 2.11.0", FOUND, entries, OLD)), 100)
    assert f"Signature: {OLD}" in told
    assert "- _DISABLE = False  [value, debug switch, line 40]" in told
    assert "- mask(fn, B)  [function, of torch.masks, line 50]" in told
    assert "- Block  [class]" in told
    assert "torch 2.11.0: function, torch/attention.py, line 12" in told


def test_a_pattern_that_no_name_matches_is_said() -> None:
    inspection = one(surface=Surface("torch 2.11.0", FOUND))
    told = report.describe(replace(inspection, asked=replace(inspection.asked, match="zzz")), 100)
    assert "No name in it matches 'zzz'." in told


def test_across_versions_only_what_changed_is_a_row() -> None:
    found = several(
        [surface("2.8", OLD, "same", "gone"), surface("2.9", OLD, "same"), surface("2.10", NEW, "same", "new")]
    )
    told = report.describe(found, 100)
    rows = {line.split()[0]: line.split()[1:] for line in told.splitlines() if line}
    assert rows["gone"] == ["yes", "went", "-"]
    assert rows["new"] == ["-", "-", "appeared"]
    assert "same" not in rows
    assert "1 other name the same in all 3 places." in told
    assert "without" not in told and "aux=None" in told and "- gone went with 2.9" in told


def test_names_that_were_asked_for_are_rows_though_they_are_the_same() -> None:
    told = report.describe(several([surface("2.8", OLD, "same"), surface("2.9", OLD, "same")], match="same"), 100)
    assert ["same", "yes"] in [line.split() for line in told.splitlines()]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("(a, b=1)", "(a, b=2)", "b=1 became b=2"),
        ("(a)", "(a, *, c: dict[str, int] = {'x,': 1})", "with *; with c: dict[str, int] = {'x,': 1}"),
        ("(a, b)", "(b, a)", "another order"),
        ("(a) -> int", "(a)", "without -> int"),
        ("(a: Optional[int] = 1)", "(a: int | None = 1)", "types only written in another way"),
        (
            "(a: t.Union[int, str], b=1) -> Optional[t.Union[A, B]]",
            "(a: int | str, b=2) -> A | B | None",
            "b=1 became b=2; some types only written in another way",
        ),
        ("(a)", "(a); overload (a: int) -> int; overload (a: str)", "with 2 overloads (all in --json)"),
        (
            "(a) -> A; overload (a: int); overload (a: str)",
            "(a) -> B; overload (a: str); overload (a: bytes)",
            "-> A became -> B; with 1 overload and without 1 overload (all in --json)",
        ),
        (
            "(a); overload (a: int); overload (a: str)",
            "(a); overload (a: str); overload (a: int)",
            "overloads in another order",
        ),
        ("False", "True", "False became True"),
        ("", "(a)", "nothing became (a)"),
    ],
)
def test_what_of_a_signature_changed(before: str, after: str, said: str) -> None:
    assert differing(before, after) == said


def test_a_signature_falls_into_its_parameters() -> None:
    assert list(pieces("(a, b: Callable[[int, str], None] = f(1, 2), **kw) -> tuple[int, ...]")) == [
        "a",
        "b",
        "**kw",
        "->",
    ]
    assert pieces("False") == {}


def test_a_null_result_says_how_far_it_looked() -> None:
    found = scan("torch 2.11.0", hits=False, unresolved=9, beyond=3)
    assert reach(found) == (
        "0 hits in 214 functions reachable in 6 steps; 9 calls could not be resolved (list with --unresolved); "
        "3 functions called at the last step not read (--depth 7)"
    )
    assert reach(replace(found, depth=0, functions=1, unresolved=(), beyond=0)) == "0 hits in 1 function by itself"


def test_a_hit_has_the_way_to_it() -> None:
    told = report.describe(one(scan=scan("torch 2.11.0")), 100)
    assert "torch/fx.py:7: Tracer().trace()" in told
    assert "torch.fx:trace, 1 step away:" in told
    assert "by torch.attention:flex, torch/attention.py:14, as the run did" in told


def test_a_hit_of_several_places_is_told_once() -> None:
    scans = [scan("2.8", 7), scan("2.9", 9), scan("2.10", hits=False)]
    places = tuple(Place(each.label, FOUND, scan=each) for each in scans)
    told = report.describe(Inspection(Asked(NAME, patterns=("Tracer",)), places, (), COST), 100)
    assert told.count("Tracer().trace()") == 1
    assert "torch/fx.py:9: Tracer().trace()  (in 2.8, 2.9)" in told


def test_unresolved_calls_are_listed_when_asked_for() -> None:
    found = one(scan=scan("torch 2.11.0", unresolved=2))
    assert "mod(x)" not in report.describe(found, 100)
    told = report.describe(found, 100, unresolved=True)
    assert "Not resolved in torch 2.11.0" in told and "2 a parameter" in told
    assert "torch/fx.py:8: mod(x)  in torch.fx:trace: a parameter" in told


def test_uses_say_who_sets_and_who_shares() -> None:
    told = report.describe(one(uses=uses("torch 2.11.0", Scope.PROCESS)), 100)
    assert "Who sets and who reads torch.fx._flag" in told
    assert "Shared by the whole process." in told
    assert "- sets: torch.fx:Tracer.trace, torch/fx.py:9: _flag = True" in told


def test_uses_across_versions_name_what_came_in_its_place() -> None:
    gone = NotFound("torch.fx._flag", "torch.fx", ("torch.fx._tls",))
    places = (
        Place("2.13", FOUND, uses=uses("2.13", Scope.PROCESS)),
        Place("2.14", gone, instead=uses("2.14", Scope.THREAD, "torch.fx._tls")),
    )
    told = report.describe(Inspection(Asked("torch.fx._flag", uses=True), places, (), COST), 100)
    assert "2.14: no torch.fx._flag: torch.fx is there, and has no such name; nearest: torch.fx._tls" in told
    assert "Who sets and who reads torch.fx._tls" in told and "Shared by a thread of its own." in told


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (NotFound("a.b", "a", ("a.c",)), "no a.b: a is there, and has no such name; nearest: a.c"),
        (NotFound("a.b", "", ()), "no a.b: nothing of it is there"),
        (
            NotFound("a.b", "a", (), "compiled code"),
            "a.b is not in the text, and a has names from elsewhere (compiled code)",
        ),
    ],
)
def test_why_there_is_no_such_name(found: NotFound, said: str) -> None:
    assert report.missing(found) == said


def test_who_shares_it_is_not_made_up() -> None:
    assert "The source does not tell who shares it." in report.describe(one(uses=uses("2.13", Scope.UNKNOWN)), 100)


def test_scopes_that_differ_are_told_of_each_place() -> None:
    every = (uses("2.11", Scope.PROCESS), uses("2.12", Scope.CONTEXT))
    places = tuple(Place(each.label, FOUND, uses=each) for each in every)
    told = report.describe(Inspection(Asked(NAME, uses=True), places, (), COST), 100)
    assert "- 2.11: shared by the whole process" in told
    assert "The number of a line is the one it has in the last place that has it." in told
    assert ["torch.fx:Tracer.trace", "sets"] in [line.split() for line in told.splitlines()]


def test_what_was_read_and_what_it_cost() -> None:
    assert report.cost(COST) == "8 wheels on the index, 14.2 MB, 6.1 s; nothing was installed."
    assert report.cost(Cost(0, 1, 0, 0.3)) == "1 place on this machine, 0.3 s; nothing was installed."


def test_a_trace_says_what_it_saw() -> None:
    traced = Traced("train.py", (Call("a:f", "b:g", "a.py", 3),), 4, 12.3, None)
    told = report.describe(replace(one(), traced=traced), 200)
    assert (
        "train.py was ended at the time limit after 12.3 s: 1 distinct calls were observed; 4 more were not kept"
        in told
    )


@pytest.mark.parametrize("difference", ["", "--- a\n+++ b\n-x\n+y"])
def test_a_difference_or_none(difference: str) -> None:
    places = tuple(Place(label, FOUND) for label in ("2.8", "2.9"))
    told = report.describe(Inspection(Asked(NAME), places, (), COST, difference), 100)
    assert "Difference from 2.8 to 2.9" in told
    assert ("No difference." in told) is not bool(difference) and ("+y" in told) is bool(difference)


def test_markdown_escapes_what_is_no_markup() -> None:
    told = report.as_markdown(one(uses=uses("torch 2.11.0", Scope.PROCESS)))
    assert r"\_flag = True" in told and "## Who sets and who reads" in told


def test_the_document_is_what_its_schema_says() -> None:
    gone = NotFound("torch.fx._flag", "torch.fx", ("torch.fx._tls",))
    everything = Inspection(
        Asked(NAME, match="x", patterns=("Tracer",), uses=True),
        (
            Place("2.13", FOUND, surface("2.13", OLD, "a"), scan("2.13", unresolved=1), uses("2.13", Scope.PROCESS)),
            Place("2.14", gone, instead=uses("2.14", Scope.THREAD, "torch.fx._tls")),
        ),
        across([surface("2.13", OLD, "a"), surface("2.14", NEW)]),
        COST,
        "",
        Traced("train.py", (), 0, 1.0, 0),
        ("a note",),
    )
    told = matching("inspect", json.loads(json.dumps(document(everything))))
    assert told["places"][1]["instead"]["scope"] == "thread" and told["places"][1]["found"] is None
    assert told["places"][0]["scan"]["hits"][0]["way"][0]["observed"] is True

"""Trees that are as deep as a text is long: read like any other, and told where even Python gives them up."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.inspection.lookup import Lookup
from bisect_env.inspection.names import resolve
from bisect_env.inspection.parsed import parsed, tree_of
from bisect_env.inspection.reach import scan
from bisect_env.inspection.records import Found, NotFound
from bisect_env.inspection.surface import surface
from bisect_env.inspection.uses import uses
from bisect_env.inspection.walking import Following, Walker, operands, written
from tests.support.sources import Texts

LONG = 2500
"""Far beyond what a visitor that calls itself stands; Python's own parser stands a little more."""
SHAPES: dict[str, Callable[[int], str]] = {
    "operators": lambda n: " + ".join(["'a'"] * n),
    "alternatives": lambda n: " | ".join(["int"] * n),
    "calls": lambda n: "seen" + ".b()" * (n // 2),
    "attributes": lambda n: "seen" + ".b" * n,
    "subscripts": lambda n: "seen" + "[0]" * n,
    "choices": lambda n: "".join(f"{i} if seen else " for i in range(n)) + "0",
    "powers": lambda n: "**".join("2" * (n // 2)),
    "negations": lambda n: "not " * n + "seen",
    "lambdas": lambda n: "lambda: " * (n // 4) + "seen",
}
MODULE = """\
flag = False
seen = None
value = {deep}
noted: {deep} = None

def f(x, y={deep}):
    z = {deep}
    helper({deep})
    g()

def helper(x): ...

def g(): flag

class C({deep}):
    def method(self): return {deep}

last = flag
"""


@pytest.mark.parametrize("length", [200, LONG])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_module_with_a_long_chain_is_read_like_any_other(shape: str, length: int) -> None:
    texts = Texts({"m": MODULE.format(deep=SHAPES[shape](length))})
    tree = parsed(texts, "m")
    assert tree is not None and not tree.error
    assert set(tree.table.names) == {"flag", "seen", "value", "noted", "f", "helper", "g", "C", "last"}
    for name, line in (("m.f", 6), ("m.C.method", 16), ("m.value", 3)):
        found = resolve(texts, name)
        assert isinstance(found, Found) and found.line == line
    hits = scan(texts, "m.f", [r"def \w+"], 2).hits
    assert [hit.way[-1].name for hit in hits] == ["m:f", "m:helper", "m:g"]
    assert [use.line for use in uses(texts, "m.flag", "m").reads] == [13, 18]
    assert {"flag", "value", "noted", "f", "C"} <= {entry.name for entry in surface(texts, "m", ".").entries}
    assert "method" in {entry.name for entry in surface(texts, "m.C").entries}


@pytest.mark.parametrize("length", [200, LONG])
def test_branches_after_branches(length: int) -> None:
    branches = "".join(f"elif seen == {number}:\n    def g(): flag\n" for number in range(length))
    texts = Texts({"m": f"flag = seen = 0\nif seen:\n    def g(): ...\n{branches}\ndef f(): g()\n"})
    found = resolve(texts, "m.g")
    assert isinstance(found, Found) and len(found.others) == length
    assert scan(texts, "m.f", ["flag"], 2).functions == length + 2
    assert len(uses(texts, "m.flag", "m").reads) == length


@pytest.mark.parametrize("shape", SHAPES)
def test_what_python_gives_up_is_not_parsed_and_said_to_be(shape: str) -> None:
    texts = Texts({"m": f"value = {SHAPES[shape](40_000)}\ndef f(): ..."})
    tree = parsed(texts, "m")
    assert tree is not None
    missing = resolve(texts, "m.f")
    # Later versions of Python may stand more of some.
    assert isinstance(missing, Found) if not tree.error else isinstance(missing, NotFound) and "parse" in missing.why
    assert not tree.error or "is not Python as it is understood here" in str(tree_of(texts, "m"))


def test_an_annotation_in_quotes_may_be_as_long() -> None:
    for text in ("'" + " | ".join(["C"] * LONG) + "'", "'" + " | ".join(["C"] * 40_000) + "'"):
        texts = Texts({"m": f"class C:\n    def g(self): ...\ndef f(x: {text}):\n    x.g()\n"})
        assert Lookup(texts, "m.f").parsed("m")
        assert scan(texts, "m.f", ["def f"], 2).hits


class Order(Walker):
    """Notes nodes as they are visited, and where functions end."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    def visit_Name(self, node: ast.Name) -> None:
        self.noted.append(node.id)

    def visit_Lambda(self, node: ast.Lambda) -> Following:
        self.noted.append("(")
        return node.body, lambda: self.noted.append(")")

    def visit_Call(self, node: ast.Call) -> Following:
        return node.func, *node.args


class Calling(ast.NodeVisitor):
    """The same, as Python's own visitor does it."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    def visit_Name(self, node: ast.Name) -> None:
        self.noted.append(node.id)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.noted.append("(")
        self.visit(node.body)
        self.noted.append(")")


NAMES = st.sampled_from("abc")
EXPRESSIONS = st.recursive(
    NAMES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "*", "if 1 else", "and", "<"]), inner).map(" ".join).map("({})".format),
        inner.map("(lambda: {})".format),
        st.lists(inner, max_size=3).map(", ".join).map("f({})".format),
        inner.map("{}.x[0]".format),
    ),
    max_leaves=12,
)


@given(EXPRESSIONS)
def test_nodes_are_visited_in_the_order_of_pythons_own_visitor(text: str) -> None:
    tree = ast.parse(text)
    ours, pythons = Order(), Calling()
    ours.visit(tree)
    pythons.visit(tree)
    assert ours.noted == pythons.noted


@given(st.lists(NAMES, min_size=2, max_size=6), st.sampled_from(["+", "|"]))
def test_operands_are_those_of_the_text(names: list[str], operator: str) -> None:
    tree = ast.parse(f" {operator} ".join([*names, "(a - b)"]).strip(), mode="eval").body
    assert isinstance(tree, ast.BinOp)
    assert [ast.unparse(one) for one in operands(tree)] == [*names, "a - b"]


def test_an_expression_is_written_out_as_far_as_that_goes() -> None:
    assert written(ast.parse("a+b", mode="eval")) == "a + b"
    assert written(ast.parse(SHAPES["operators"](LONG), mode="eval")) == "..."

from __future__ import annotations

import pytest

from bisect_env.errors import BadInput
from bisect_env.inspection.compare import across
from bisect_env.inspection.records import Change, Entry, NotFound
from bisect_env.inspection.surface import surface
from tests.support.sources import Texts

MODULE = {
    "p": "from .m import f",
    "p.m": """
        import os
        from typing import NamedTuple, overload
        from dataclasses import dataclass
        from .other import helper as imported, Kind

        _DISABLE_COMPILE_DEBUG = False
        _SIZE = 128
        LIMIT: int = 8
        FORCE = os.environ.get("P_FORCE", "0") == "1"

        @overload
        def f(a: int) -> int: ...
        @overload
        def f(a: str) -> str: ...
        def f(a, b: int | None = None, *rest: int, c=1, **more):
            return "P_DEBUG" in os.environ, os.getenv("P_DEBUG")

        def positional(a, /, b, *, c): ...
        def _compile_it(): ...

        @dataclass
        class Pair:
            left: int
            right: str = "x"

        class Base:
            def inherited(self): ...

        class Plain(Base):
            size: int = 3
            def __init__(self, n: int = 1):
                self.n = n
                self._hidden = 2
            def run(self, x) -> None: ...
            @staticmethod
            def make(y): ...
            def _private(self): ...
    """,
    "p.other": "def helper(x=1): ...\nclass Kind: ...",
}


def entries(dotted, match=None, modules=MODULE):
    return {one.name: one for one in surface(Texts(modules), dotted, match).entries}


def test_the_surface_of_a_module():
    found = entries("p.m")
    assert list(found) == [
        *("_DISABLE_COMPILE_DEBUG", "LIMIT", "FORCE", "f", "positional", "Pair", "Base", "Plain"),
        *("$P_FORCE", "$P_DEBUG"),
    ]
    assert found["f"].signature == (
        "(a, b: int | None = None, *rest: int, c=1, **more); overload (a: int) -> int; overload (a: str) -> str"
    )
    assert found["positional"].signature == "(a, /, b, *, c)"
    assert found["Pair"].signature == "(left: int, right: str = 'x')"
    assert found["Plain"].signature == "(n: int = 1)"
    assert found["LIMIT"] == Entry("LIMIT", "value", "8", 9, True)
    assert found["_DISABLE_COMPILE_DEBUG"] == Entry("_DISABLE_COMPILE_DEBUG", "value", "False", 7, False, switch=True)
    assert found["FORCE"].switch and found["FORCE"].public
    assert found["$P_DEBUG"] == Entry("$P_DEBUG", "value", "'P_DEBUG' in os.environ", 17, False, switch=True)


def test_a_pattern_finds_private_and_imported_names_whatever_their_case():
    assert list(entries("p.m", "compile")) == ["_DISABLE_COMPILE_DEBUG", "_compile_it"]
    imported = entries("p.m", "imported")["imported"]
    assert (imported.kind, imported.signature, imported.origin) == ("function", "(x=1)", "p.other")
    assert entries("p.m", "^os$")["os"].kind == "module"
    assert list(entries("p.m", "p_debug")) == ["$P_DEBUG"]
    with pytest.raises(BadInput, match="regular expression"):
        entries("p.m", "(")


def test_a_package_offers_what_it_imports_and_its_modules():
    found = entries("p")
    assert {name: (one.kind, one.origin) for name, one in found.items()} == {
        "f": ("function", "p.m"),
        "m": ("module", ""),
        "other": ("module", ""),
    }


def test_all_decides_where_there_is_one():
    modules = {"m": "__all__ = ['_a']\n_a = 1\nb = 2\nfrom q import *", "q": "__all__ = ['c']\nc = 3"}
    assert list(entries("m", modules=modules)) == ["_a"]
    assert entries("m", "c", modules)["c"].origin == "q"


def test_the_surface_of_a_class():
    found = entries("p.m.Plain")
    assert {name: one.signature for name, one in found.items()} == {
        "size": ": int = 3",
        "__init__": "(self, n: int = 1)",
        "run": "(self, x) -> None",
        "make": "(y)",
        "n": "",
    }
    inherited = entries("p.m.Plain", "inherited|private|hidden")
    assert {name: one.origin for name, one in inherited.items()} == {
        "_private": "",
        "_hidden": "",
        "inherited": "p.m.Base",
    }


def test_the_surface_of_a_function_is_its_signature_and_what_matches_beside_it():
    whole = surface(Texts(MODULE), "p.f", "compile")
    assert whole.signature.startswith("(a, b: int | None = None, ")
    assert [one.name for one in whole.entries] == ["_DISABLE_COMPILE_DEBUG", "_compile_it"]
    assert surface(Texts(MODULE), "p.m.f").entries == ()
    assert surface(Texts(MODULE), "p.m.Plain.run").signature == "(x) -> None"
    assert surface(Texts(MODULE), "p.m.Plain.make").signature == "(y)"


def test_across_places_names_appear_change_and_go():
    texts = [
        Texts({"m": "def f(a): ...\nx = 1\n"}, label="1"),
        Texts({"m": "def f(a, b=1): ...\nx = 1\ndef g(): ...\n"}, label="2"),
        Texts({"m": "class f: ...\ndef g(): ...\n"}, label="3"),
    ]
    rows = across([surface(one, "m") for one in texts])
    assert rows == (
        Change("f", ("(a)", "(a, b=1)", "class")),
        Change("x", ("1", "1", None)),
        Change("g", (None, "()", "()")),
    )
    assert [row.steps for row in rows] == [("changed", "changed"), ("", "went"), ("appeared", "")]


def test_across_places_the_name_itself_comes_first():
    texts = [Texts({"m": "def f(a): ...\n"}), Texts({"m": "def g(a): ...\n"})]
    surfaces = [surface(one, "m.f") for one in texts]
    assert isinstance(surfaces[1].found, NotFound)
    assert across(surfaces) == (Change("m.f", ("(a)", None)),)
    assert across([]) == ()


def test_a_stand_in_is_no_overload():
    found = surface(Texts({"p": "try:\n    from _q import f\nexcept ImportError:\n    def f(x): ..."}), "p", "f")
    assert [entry.signature for entry in found.entries] == ["(x)"]

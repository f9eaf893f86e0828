from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.inspection.names import resolve
from bisect_env.inspection.records import Found, NotFound
from tests.support.sources import Texts


def where(modules, dotted, compiled=()):
    found = resolve(Texts(modules, compiled), dotted)
    assert isinstance(found, Found), found
    return f"{found.module}:{found.qualname}", found.kind


@pytest.mark.parametrize(
    ("modules", "dotted", "expected", "kind"),
    [
        ({"p.m": "def f(): ..."}, "p.m.f", "p.m:f", "function"),
        ({"p.m": "def f(): ..."}, "p.m", "p.m:", "module"),
        ({"p.m": "class C:\n    def g(self): ..."}, "p.m.C.g", "p.m:C.g", "method"),
        ({"p.m": "flag = False"}, "p.m.flag", "p.m:flag", "value"),
        ({"p.m": "flag: bool"}, "p.m.flag", "p.m:flag", "value"),
        (
            {"p.m": "class C:\n    size: int\n    def __init__(self):\n        self.n = 1"},
            "p.m.C.n",
            "p.m:C.n",
            "value",
        ),
        ({"p.m": "class C:\n    size: int"}, "p.m.C.size", "p.m:C.size", "value"),
        # Re-exports: absolute, relative, renamed, over several hops.
        ({"p": "from .a import f as g", "p.a": "from p.b import f", "p.b": "def f(): ..."}, "p.g", "p.b:f", "function"),
        ({"p": "from . import a", "p.a": "def f(): ..."}, "p.a.f", "p.a:f", "function"),
        ({"p.a": "import p.b as other", "p.b": "def f(): ..."}, "p.a.other.f", "p.b:f", "function"),
        ({"p.a": "import p.b", "p.b": "def f(): ..."}, "p.a.p.b.f", "p.b:f", "function"),
        ({"p.a.x": "from ..b import f", "p.b": "def f(): ..."}, "p.a.x.f", "p.b:f", "function"),
        # Stars.
        ({"p": "from .a import *", "p.a": "def f(): ..."}, "p.f", "p.a:f", "function"),
        ({"p": "from .a import *", "p.a": "__all__ = ['_f']\ndef _f(): ..."}, "p._f", "p.a:_f", "function"),
        (
            {"p": "from .a import *", "p.a": "from .b import *\n__all__ = []\n__all__ += ['f']", "p.b": "def f(): ..."},
            *("p.f", "p.b:f", "function"),
        ),
        # Conditional definitions: the last real one.
        (
            {"p": "try:\n    from .a import f\nexcept ImportError:\n    f = None", "p.a": "def f(): ..."},
            "p.f",
            "p.a:f",
            "function",
        ),
        ({"p.m": "try:\n    from q import f\nexcept ImportError:\n    def f(): ..."}, "p.m.f", "p.m:f", "function"),
        (
            {"p.m": "from typing import overload\n@overload\ndef f(a): ...\ndef f(a): ...\n"},
            *("p.m.f", "p.m:f", "function"),
        ),
        # Other names for the same.
        ({"p.m": "def f(): ...\ng = f"}, "p.m.g", "p.m:f", "function"),
        ({"p.m": "import functools\ndef f(a): ...\ng = functools.partial(f, 1)"}, "p.m.g", "p.m:f", "function"),
        ({"p.m": "def wrap(f): return f\n@wrap\ndef f(): ..."}, "p.m.f", "p.m:f", "function"),
        ({"p.m": "def wrap(f): return f\ndef f(): ...\nf = wrap(f)"}, "p.m.f", "p.m:f", "function"),
        # Classes and their bases.
        (
            {"p.m": "from p.b import B\nclass C(B): ...", "p.b": "class A:\n    def g(self): ...\nclass B(A): ..."},
            *("p.m.C.g", "p.b:A.g", "method"),
        ),
        ({"p.m": "class C:\n    def g(self): ...\n    h = g"}, "p.m.C.h", "p.m:C.g", "method"),
        ({"p.m": "class C:\n    class D:\n        def g(self): ..."}, "p.m.C.D.g", "p.m:C.D.g", "method"),
        # Lazy modules.
        (
            {
                "p": """
                    from .utils import _LazyModule
                    _import_structure = {"models.a": ["A"], "other": []}
                    _import_structure["other"].append("B")
                    sys.modules[__name__] = _LazyModule(__name__, _import_structure)
                """,
                "p.models.a": "class A: ...",
            },
            *("p.A", "p.models.a:A", "class"),
        ),
        (
            {
                "p": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import *\nelse:\n    lazy()",
                "p.a": "class A: ...",
            },
            *("p.A", "p.a:A", "class"),
        ),
        (
            {
                "p": "_where = {'f': 'p.a', 'g': '.a:f'}\ndef __getattr__(name): return load(_where[name])",
                "p.a": "def f(): ...",
            },
            *("p.g", "p.a:f", "function"),
        ),
        (
            {
                "p": "def __getattr__(name):\n    if name == 'f':\n        from .a import f\n        return f",
                "p.a": "def f(): ...",
            },
            *("p.f", "p.a:f", "function"),
        ),
    ],
)
def test_names_are_followed_to_their_definition(modules, dotted, expected, kind):
    assert where(modules, dotted) == (expected, kind)


def test_the_way_of_a_re_export_is_told():
    modules = {"p": "from .a import f as g", "p.a": "from .b import f", "p.b": "\n\ndef f(): ..."}
    found = resolve(Texts(modules), "p.g")
    assert found == Found("p.g", "p.b", "f", "function", "p/b.py", 3, ("p.g", "p.a.f"))


def test_several_definitions_are_all_told():
    text = "import sys\nif sys.flags.debug:\n    def f(): return 1\nelse:\n    def f(): return 2\n"
    found = resolve(Texts({"m": text}), "m.f")
    assert isinstance(found, Found) and (found.line, found.others) == (5, (3,))


def test_a_missing_name_gets_the_nearest_ones():
    modules = {"p": "from .a import *", "p.a": "def flex_attention(): ...\ndef create_mask(): ...", "p.attic": ""}
    missing = resolve(Texts(modules), "p.flex_atention")
    assert missing == NotFound("p.flex_atention", "p", ("p.flex_attention",))
    assert resolve(Texts(modules), "p.attik.x") == NotFound("p.attik.x", "p", ("p.attic",))
    assert resolve(Texts(modules), "pp.x").nearest == ("p",)
    assert resolve(Texts(modules), "p..a") == NotFound("p..a", "", ("p",))
    assert resolve(Texts({"m": "class C:\n    def forward(self): ..."}), "m.C.foward").nearest == ("m.C.forward",)


def test_a_name_that_compiled_code_may_have_says_so():
    modules = {"p": "from p._C import *"}
    assert resolve(Texts(modules, ("p._C",)), "p.ones").why == "compiled code"
    assert resolve(Texts(modules, ("p._C",)), "p._C.ones").why == "compiled code"
    assert where(modules, "p._C", ("p._C",)) == ("p._C:", "extension")


def test_a_module_that_does_not_parse_says_so():
    missing = resolve(Texts({"p.m": "def f(:\n"}), "p.m.f")
    assert isinstance(missing, NotFound) and "does not parse" in missing.why


def test_only_what_is_on_the_way_is_read():
    texts = Texts({"p": "from .a import f\nfrom .b import g", "p.a": "def f(): ...", "p.b": "def g(): ..."})
    resolve(texts, "p.f")
    assert set(texts.reads) == {"p", "p.a"}


_MODULES = ("m", "m.a", "m.b", "m.c")
_LINES = st.one_of(
    st.builds(
        "from {} import {} as {}".format, st.sampled_from(_MODULES), st.sampled_from("xyz"), st.sampled_from("xyz")
    ),
    st.builds("from {} import *".format, st.sampled_from(_MODULES)),
    st.builds("{} = {}".format, st.sampled_from("xyz"), st.sampled_from(["x", "y", "z", "x()", "y.z", "x.x"])),
    st.builds("class {}({}): ...".format, st.sampled_from("xyz"), st.sampled_from(["x", "y", "z", "x.y"])),
    st.builds("def {}(a={}): return {}".format, *(st.sampled_from("xyz") for _ in range(3))),
    st.builds("import {} as {}".format, st.sampled_from(_MODULES), st.sampled_from("xyz")),
)


@given(st.lists(st.lists(_LINES, max_size=5), min_size=4, max_size=4), st.sampled_from(["x", "x.y", "y.x.z", "a.x.y"]))
def test_resolving_ends_whatever_goes_in_circles(bodies, rest):
    texts = Texts({name: "\n".join(lines) for name, lines in zip(_MODULES, bodies, strict=True)})
    found = resolve(texts, f"m.{rest}")
    # What is found is there: its line names it.
    if isinstance(found, Found) and found.kind in {"function", "class"}:
        line = texts.modules[found.module].splitlines()[found.line - 1]
        assert line.startswith(("def " if found.kind == "function" else "class ") + found.qualname)


def test_what_the_standard_library_may_have_is_not_said_to_be_missing():
    found = resolve(Texts({"p.m": "import os\nfrom os import path as where"}), "p.m.where.join")
    assert isinstance(found, NotFound) and (found.known, found.why) == ("p.m", "Python's own library")
    found = resolve(Texts({"p.m": "import os"}), "p.m.other")
    assert isinstance(found, NotFound) and not found.why


@pytest.mark.parametrize("text", ["def f(:", "x = 1\0", "x = " + "-" * 100_000 + "1", "x = " + "1 + " * 50_000 + "1"])
def test_a_module_that_python_does_not_parse_is_no_empty_one(text):
    found = resolve(Texts({"p": "from .m import *", "p.m": text, "p.n": "y = 1"}), "p.m")
    assert isinstance(found, Found) and found.error
    assert not resolve(Texts({"p.m": text, "p.n": "y = 1"}), "p.n.y").error


@pytest.mark.parametrize(
    ("listed", "there"),
    [
        ("['g'] + names()", True),
        ("[*names(), 'g']", True),
        ("names()", True),
        ("[name for name in globals()]", True),
        ("['g']", False),
        ("['g'] + ['h']", False),
        ("('g',)", False),
    ],
)
def test_a_star_hides_nothing_that_a_list_made_at_run_time_may_have(listed, there):
    found = resolve(Texts({"p": "from .a import *", "p.a": f"f = make()\ng = 1\n__all__ = {listed}"}), "p.f")
    assert isinstance(found, Found) is there

from __future__ import annotations

from collections import deque
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.errors import BadInput
from bisect_env.inspection.reach import scan
from bisect_env.inspection.records import Call, NotFound, Step
from tests.support.sources import Texts


def ways(modules, dotted, depth=9, pattern="HIT", observed=(), compiled=(), **options):
    result = scan(Texts(modules, compiled), dotted, [pattern], depth, observed, **options)
    return [" ".join(step.name for step in hit.way) for hit in result.hits]


HIT = "\ndef hit(): HIT()\n"


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("def f(): hit()", "m:f m:hit"),
        ("def f(): g()\ndef g(): hit()", "m:f m:g m:hit"),
        # Methods: self, cls, bases, super, static ones.
        ("class C:\n    def f(self): self.g()\n    def g(self): hit()", "m:C.f m:C.g m:hit"),
        (
            "class C:\n    @classmethod\n    def f(cls): cls.g()\n    @staticmethod\n    def g(): hit()",
            "m:C.f m:C.g m:hit",
        ),
        ("class B:\n    def g(self): hit()\nclass C(B):\n    def f(self): self.g()", "m:C.f m:B.g m:hit"),
        ("class B:\n    def f(self): hit()\nclass C(B):\n    def f(self): super().f()", "m:C.f m:B.f m:hit"),
        # Constructors, instances, what methods keep in self.
        ("class C:\n    def __init__(self): hit()\ndef f(): return C()", "m:f m:C.__init__ m:hit"),
        ("class C:\n    def __call__(self): hit()\ndef f():\n    c = C()\n    c()", "m:f m:C.__call__ m:hit"),
        ("class C:\n    def g(self): hit()\ndef f():\n    c = C()\n    c.g()", "m:f m:C.g m:hit"),
        ("class C:\n    def g(self): hit()\none = C()\ndef f(): one.g()", "m:f m:C.g m:hit"),
        (
            "class C:\n    def g(self): hit()\n"
            "class D:\n    def __init__(self): self.c = C()\n    def f(self): self.c.g()",
            "m:D.f m:C.g m:hit",
        ),
        ("class C:\n    def g(self): hit()\ndef f(c: 'C | None'): c.g()", "m:f m:C.g m:hit"),
        ("class C:\n    c: C\n    def g(self): hit()\n    def f(self): self.c.g()", "m:C.f m:C.g m:hit"),
        ("class C:\n    def g(self): hit()\ndef make(): return C()\ndef f(): make().g()", "m:f m:C.g m:hit"),
        ("class C:\n    @property\n    def g(self): return hit()\n    def f(self): return self.g", "m:C.f m:C.g m:hit"),
        # Other names, partials, choices.
        ("g = hit\ndef f(): g()", "m:f m:hit"),
        ("from functools import partial\ndef f():\n    g = partial(hit, 1)\n    g()", "m:f m:hit"),
        ("import functools\ng = functools.partial(hit)\ndef f(): g()", "m:f m:hit"),
        ("def other(): ...\ndef f(a):\n    g = hit if a else other\n    g()", "m:f m:hit"),
        # Decorators, with and without arguments, as statements, with functools.wraps.
        ("def d(g):\n    def w(): hit(); g()\n    return w\n@d\ndef f(): ...", "m:f m:d m:hit"),
        (
            "def d(a):\n    def o(g):\n        hit()\n        return g\n    return o\n@d(1)\ndef f(): ...",
            "m:f m:d m:hit",
        ),
        (
            "import functools\ndef d(g):\n    @functools.wraps(g)\n    def w(): return hit()\n    return w\n"
            "@d\ndef k(): ...\ndef f(): k()",
            "m:f m:k m:d m:hit",
        ),
        ("def d(g):\n    def w(): hit()\n    return w\ndef k(): ...\nk = d(k)\ndef f(): k()", "m:f m:d m:hit"),
        # Context managers.
        ("class C:\n    def __enter__(self): hit()\ndef f():\n    with C(): pass", "m:f m:C.__enter__ m:hit"),
        (
            "class C:\n    def __exit__(self, *a): hit()\ndef f():\n    c = C()\n    with c: pass",
            "m:f m:C.__exit__ m:hit",
        ),
        (
            "import contextlib\n@contextlib.contextmanager\ndef c():\n    hit()\n    yield\n"
            "def f():\n    with c(): pass",
            "m:f m:c m:hit",
        ),
        # Functions handed over, inside functions, of lambdas.
        ("def f(xs): map(hit, xs)", "m:f m:hit"),
        ("def vmap(g): return lambda: g()\ndef f(): vmap(hit)()", "m:f m:hit"),
        ("def f():\n    def inner(): hit()\n    return inner", "m:f m:hit"),
        ("def f(): return lambda: hit()", "m:f m:hit"),
        ("f = lambda: hit()", "m:f m:hit"),
        # Cycles.
        ("def f(): g()\ndef g(): f(); hit()", "m:f m:g m:hit"),
    ],
)
def test_calls_are_followed(text, way):
    owner = "C." if "m:C.f" in way else "D." if "m:D.f" in way else ""
    assert ways({"m": text + HIT}, f"m.{owner}f") == [way]


def test_calls_are_followed_through_modules():
    modules = {
        "p": "from .a import hit as exported",
        "p.a": "def hit(): HIT()",
        "p.m": """
            import p.a
            import p
            def plain(): p.a.hit()
            def lazily():
                from .a import hit as late
                late()
            def exported(): p.exported()
        """,
    }
    assert ways(modules, "p.m.plain") == ["p.m:plain p.a:hit"]
    assert ways(modules, "p.m.lazily") == ["p.m:lazily p.a:hit"]
    assert ways(modules, "p.m.exported") == ["p.m:exported p.a:hit"]


def test_conditional_definitions_are_all_followed():
    text = "import sys\nif sys.flags.debug:\n    def g(): hit()\nelse:\n    def g(): ...\ndef f(): g()"
    assert ways({"m": text + HIT}, "m.f") == ["m:f m:g m:hit"]


def test_of_definitions_for_several_platforms_that_of_this_one_is_followed():
    text = "import sys\nif sys.platform == 'win32':\n    def g(): {}\nelse:\n    def g(): {}\ndef f(): g()"
    assert ways({"m": text.format("hit()", "...") + HIT}, "m.f") == []
    assert ways({"m": text.format("...", "hit()") + HIT}, "m.f") == ["m:f m:g m:hit"]


def test_a_class_starts_from_its_methods_and_a_module_from_all_it_defines():
    text = "class C:\n    def a(self): HIT()\n    def b(self): ...\ndef f(): HIT()\n"
    assert ways({"m": text}, "m.C", 0) == ["m:C.a"]
    assert sorted(ways({"m": text}, "m", 0)) == ["m:C.a", "m:f"]
    assert scan(Texts({"m": text}), "m", ["x"], 0).functions == 3


def test_a_method_handed_on_by_name_is_reached_in_the_class_at_hand():
    modules = {
        "torch.nn.modules.module": """
            class Module:
                def _wrapped_call_impl(self): return self.forward()
                __call__ = _wrapped_call_impl
                def forward(self): ...
        """,
        "torch.autograd.function": "class Function:\n    @classmethod\n    def apply(cls): ...",
        "m": """
            from torch.nn.modules.module import Module
            from torch.autograd.function import Function
            class Layer(Module):
                def forward(self): HIT()
            class Step(Function):
                @staticmethod
                def forward(ctx): HIT()
            def f():
                layer = Layer()
                layer()
            def g(): Step.apply()
        """,
    }
    assert ways(modules, "m.f") == ["m:f m:Layer.forward"]
    assert ways(modules, "m.g") == ["m:g m:Step.forward"]


def test_comments_and_docstrings_match_only_when_asked():
    text = '''
def f():
    """HIT in words."""
    # HIT too
    x = "HIT in a string"  # and HIT
    return x  # HIT
'''
    lines = [hit.line for hit in scan(Texts({"m": text}), "m.f", ["HIT"], 0).hits]
    assert lines == [5]
    assert [hit.line for hit in scan(Texts({"m": text}), "m.f", ["HIT"], 0, comments=True).hits] == [3, 4, 5, 6]


def test_steps_tell_lines_and_what_was_only_handed_over():
    text = "def f(xs):\n    map(g, xs)\n\ndef g(x):\n    HIT\n"
    (hit,) = scan(Texts({"m": text}), "m.f", ["HIT"], 1).hits
    assert hit.way == (Step("m:f", "m.py", 2, passed=True), Step("m:g", "m.py", 5))
    assert (hit.path, hit.line, hit.text) == ("m.py", 5, "HIT")


@pytest.mark.parametrize(
    ("text", "call", "why"),
    [
        ("def f(g): g()", "g", "a parameter"),
        ("def f(x): x.run()", "x.run", "an attribute of a value"),
        ("def f(xs): xs[0]()", "xs[0]", "a subscript"),
        ("def f(xs):\n    for x in xs: x()", "x", "a variable of a loop, a with or an unpacking"),
        ("hook = None\ndef f(): hook()", "hook", "set at run time"),
        ("def f(x): x.a()()", "x.a()", "what a call returns"),
        ("from p._C import go\ndef f(): go()", "go", "compiled code"),
        ("import p._C\ndef f(): p._C._go.on()", "p._C._go.on", "compiled code"),
        ("import numpy as np\ndef f(): np.ones(1)", "np.ones", "not in the source"),
        ("from p.bad import go\ndef f(): go()", "go", "in a module that this Python does not parse"),
        ("from p.lazy import go\ndef f(): go()", "go", "made by the module's __getattr__"),
        ("from p._C import Base\nclass C(Base): ...\ndef f(): C()", "C", "compiled code"),
        ("def f(lock):\n    with lock: pass", "with lock", "a parameter"),
    ],
)
def test_what_cannot_be_followed_says_why(text, call, why):
    modules = {"m": text, "p.bad": "def (:", "p.lazy": "def __getattr__(name): return 1"}
    (missed,) = [one for one in scan(Texts(modules, ("p._C",)), "m.f", ["HIT"], 3).unresolved if one.call == call]
    assert (missed.caller, missed.why) == ("m:f", why)
    assert missed.path == "m.py" and missed.line >= 1


def test_builtins_and_the_standard_library_are_neither_followed_nor_missed():
    text = """
import functools, os.path, threading
from collections.abc import Callable
import logging
log = logging.getLogger(__name__)
def f(x):
    print(len(x), os.path.join("a", "b"), "".join(x), [].append(1), {}.items())
    log.warning("x")
    threading.Lock().acquire()
    raise ValueError(str(x))
"""
    texts = Texts({"m": text, "threading": "class Lock:\n    def acquire(self): HIT()"})
    result = scan(texts, "m.f", ["HIT"], 5)
    assert (result.unresolved, result.functions, result.hits) == ((), 1, ())
    # Asked for by name it is looked at like anything else.
    assert ways(texts.modules, "threading.Lock.acquire") == ["threading:Lock.acquire"]


def test_the_reach_of_a_null_result_is_told():
    text = "def f(): g(); h()\ndef g(): i()\ndef h(): i()\ndef i(): j()\ndef j(): ...\n"
    result = scan(Texts({"m": text}), "m.f", ["HIT"], 1)
    assert (result.functions, result.beyond, result.hits) == (3, 1, ())
    assert scan(Texts({"m": text}), "m.f", ["HIT"], 9).beyond == 0


def test_observed_calls_add_ways_that_the_text_does_not_show():
    modules = {"m": "def f(g): g()\ndef outer():\n    def inner(): HIT\n    return inner\n"}
    seen = [
        Call("m:f", "m:outer.<locals>.inner", "m.py", 1),
        Call("m:f", "gone:x", "m.py", 1),
        Call("m:<module>", "m:f", "m.py", 1),
        Call("m:f", "threading:Lock", "m.py", 1),
    ]
    result = scan(Texts(modules), "m.f", ["HIT"], 1, seen)
    assert [hit.way for hit in result.hits] == [(Step("m:f", "m.py", 1, observed=True), Step("m:outer", "m.py", 3))]
    assert [(one.call, one.why) for one in result.unresolved] == [
        ("g", "a parameter"),
        ("gone:x", "seen in a run, not in the source"),
    ]


def test_a_parameter_called_as_its_annotation_is_no_circle():
    assert ways({"m": "class C:\n    def g(self): hit()\ndef f(C: C): C.g()" + HIT}, "m.f") == ["m:f m:C.g m:hit"]


def test_a_name_that_is_not_there_and_a_bad_pattern():
    assert isinstance(scan(Texts({"m": ""}), "m.f", ["x"], 1).found, NotFound)
    with pytest.raises(BadInput, match="regular expression"):
        scan(Texts({"m": ""}), "m", ["("], 1)


@given(st.data())
def test_a_hit_is_found_exactly_when_a_short_enough_path_exists(data):
    size = data.draw(st.integers(1, 9))
    pairs = [(a, b) for a in range(size) for b in range(size) if a != b]
    drawn = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    depth = data.draw(st.integers(0, 5))
    marked = data.draw(st.sets(st.integers(0, size - 1)))
    calls = {a: [b for x, b in drawn if x == a] for a in range(size)}
    home = {a: data.draw(st.integers(0, 1)) for a in range(size)}
    texts = {f"p.m{n}": f"import p.m{1 - n} as other\n" for n in (0, 1)}
    for a in range(size):
        body = [f"    {'other.' if home[b] != home[a] else ''}f{b}()\n" for b in calls[a]]
        texts[f"p.m{home[a]}"] += f"def f{a}():\n    pass\n" + "".join(body) + ("    HIT\n" if a in marked else "")
    distance = {0: 0}
    waiting = deque([0])
    while waiting:
        a = waiting.popleft()
        for b in calls[a]:
            if b not in distance:
                distance[b] = distance[a] + 1
                waiting.append(b)
    result = scan(Texts(texts), f"p.m{home[0]}.f0", ["HIT"], depth)
    near = {a for a, steps in distance.items() if steps <= depth}
    assert result.functions == len(near) and not result.unresolved
    assert result.beyond == sum(steps == depth + 1 for steps in distance.values())
    found = {int(hit.way[-1].name.partition(":f")[2]): hit for hit in result.hits}
    assert found.keys() == near & marked
    for a, hit in found.items():
        steps = [int(step.name.partition(":f")[2]) for step in hit.way]
        assert len(steps) == distance[a] + 1 and steps[0] == 0
        assert all(after in calls[before] for before, after in pairwise(steps))
        for step, after in zip(hit.way, steps[1:], strict=False):
            line = texts[step.path.removesuffix(".py").replace("/", ".")].splitlines()[step.line - 1]
            assert line.strip().endswith(f"f{after}()")


def test_functions_that_return_each_others_results_end_soon():
    size = 30
    body = [f"def f{a}(x):\n" + "".join(f"    if x: return f{b}(x)\n" for b in range(size)) for a in range(size)]
    result = scan(Texts({"m": "\n".join(body) + "\ndef start(x): f0(x).run()\n"}), "m.start", ["HIT"], 3)
    assert result.functions == size + 1
    assert [one.call for one in result.unresolved] == ["f0(x).run"]


def test_form_feeds_end_no_line():
    text = "def f():\n    ...\n\x0c\ndef g():\n    a = '\x0b\u2028'\n    HIT\n"
    found = scan(Texts({"p": text}), "p.g", ("HIT",), 1)
    assert [(hit.line, hit.text) for hit in found.hits] == [(6, "HIT")]

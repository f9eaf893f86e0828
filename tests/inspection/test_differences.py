from __future__ import annotations

from bisect_env.inspection.differences import difference
from tests.support.sources import Texts

OLD = Texts({"p.m": "import os\n\n@cache\ndef f(a):\n    return a\n\nclass C:\n    x = 1\n"}, label="lib 1")
NEW = Texts({"p.m": "import os\n\n\n\n@cache\ndef f(a, b):\n    return a\n\nclass C:\n    x = 1\n"}, label="lib 2")


def test_a_functions_diff_names_both_places_and_has_the_files_line_numbers():
    assert difference(OLD, NEW, "p.m.f").splitlines() == [
        "--- lib 1: p/m.py f",
        "+++ lib 2: p/m.py f",
        "@@ -3,3 +5,3 @@",
        " @cache",
        "-def f(a):",
        "+def f(a, b):",
        "     return a",
    ]


def test_what_is_the_same_differs_in_nothing():
    assert difference(OLD, NEW, "p.m.C") == ""
    assert difference(OLD, OLD, "p.m") == ""


def test_a_modules_diff():
    text = difference(OLD, NEW, "p.m")
    assert text.startswith("--- lib 1: p/m.py\n+++ lib 2: p/m.py\n@@ -1,7 +1,9 @@\n")


def test_what_one_place_lacks_was_added_or_went():
    added = difference(Texts({"m": ""}, label="old"), Texts({"m": "x = 1\ny = 2\n"}, label="new"), "m.y")
    assert added.splitlines() == ["--- old: no m.y", "+++ new: m.py y", "@@ -0,0 +2 @@", "+y = 2"]


def test_form_feeds_end_no_line():
    before, after = (f"\x0c\ndef f():\n    return {value}\n" for value in (1, 2))
    told = difference(Texts({"p": before}, label="a"), Texts({"p": after}, label="b"), "p.f")
    assert "-    return 1" in told and "+    return 2" in told and "@@ -2," in told

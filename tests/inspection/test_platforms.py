"""Which branch is meant where the platform decides it; where anything else does, neither is."""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
from pathlib import Path

import pytest

from bisect_env.inspection.installed import installed
from bisect_env.inspection.names import resolve
from bisect_env.inspection.platforms import HERE, Conditions, Platform
from bisect_env.inspection.reach import scan
from bisect_env.inspection.records import Found
from tests.support.sources import Texts

POSIX = Platform(
    {
        "sys.platform": "linux",
        "sys.builtin_module_names": ("posix", "sys"),
        "os.name": "posix",
        "platform.system": "Linux",
    }
)
WINDOWS = Platform(
    {
        "sys.platform": "win32",
        "sys.builtin_module_names": ("nt", "sys"),
        "os.name": "nt",
        "platform.system": "Windows",
    }
)
ONLY_WINDOWS = [
    'sys.platform == "win32"',
    '"win32" == sys.platform',
    'not sys.platform != "win32"',
    'sys.platform.startswith("win")',
    'sys.platform.startswith(("cygwin", "win"))',
    'sys.platform.lower() in ["win32", "cygwin"]',
    'os.name == "nt"',
    'os.name in {"nt", "ce"}',
    'os.name not in ("posix",)',
    'platform.system() == "Windows"',
    'platform.system().lower() == "windows"',
    '"nt" in sys.builtin_module_names',
    'os.name == "nt" and sys.platform == "win32"',
    'os.name == "nt" or sys.platform == "cygwin"',
    "WINDOWS",
    "not POSIX",
    's.platform == "win32"',
    'which == "win32"',
    '"nt" in builtin',
]
UNDECIDED = [
    "os.environ.get('X') == 'nt'",
    "sys.version_info >= (3, 12)",
    "platform.machine() == 'x86_64'",
    "sys.platform == wanted",
    "sys.platform.startswith(wanted)",
    "sys.platform.startswith(*wanted)",
    "sys.platform.startswith()",
    "AGAIN",
    "True",
    "DEBUG",
    "DEBUG or os.name == wanted",
    "DEBUG == 1",
    "CIRCLE",
    "own.platform == 'win32'",
    "os.name == 'nt' if a else b",
    "wanted and wanted",
    "sys.platform < 'win'",
    "len(sys.platform) == 5",
    "x in sys.builtin_module_names",
    "1 in sys.platform",
]
HEAD = """\
import os, sys, platform
import sys as s
from sys import platform as which
import own
WINDOWS = os.name == "nt"
POSIX = not WINDOWS
builtin = sys.builtin_module_names
DEBUG = True
AGAIN = True
AGAIN = os.name == "nt"
CIRCLE = CIRCLE_TOO
CIRCLE_TOO = CIRCLE
"""


def decided(test: str, of: Platform) -> bool | None:
    tests = Conditions(of)
    for node in ast.parse(HEAD).body:
        match node:
            case ast.Import():
                for alias in node.names:
                    tests.imported(alias.asname or alias.name, alias.name)
            case ast.ImportFrom():
                for alias in node.names:
                    tests.imported(alias.asname or alias.name, f"{node.module}.{alias.name}")
            case ast.Assign(targets=[ast.Name(id=name)]):
                tests.assigned(name, node.value)
    return tests.decides(ast.parse(test, mode="eval").body)


@pytest.mark.parametrize("test", ONLY_WINDOWS)
def test_what_the_platform_decides(test: str) -> None:
    assert decided(test, WINDOWS) is True and decided(test, POSIX) is False
    assert decided(f"not ({test})", WINDOWS) is False and decided(f"not ({test})", POSIX) is True
    assert decided(f"({test}) and a", POSIX) is False and decided(f"({test}) or a", WINDOWS) is True
    assert decided(f"({test}) and a", WINDOWS) is None and decided(f"({test}) or a", POSIX) is None


@pytest.mark.parametrize("test", UNDECIDED)
def test_what_it_does_not_decide(test: str) -> None:
    assert decided(test, WINDOWS) is None and decided(test, POSIX) is None


A, B = "from p import a as mine", "import p.b as mine"
FUNCTION = {"p.a": "def f(): ...", "p.b": "def f(): ...", "p": ""}


@pytest.mark.skipif(os.name != "posix", reason="of POSIX")
@pytest.mark.parametrize(
    "text",
    [
        f"if sys.platform != 'win32':\n    {A}\nelse:\n    {B}",
        f"if sys.platform == 'win32':\n    {B}\nelse:\n    {A}",
        f"if os.name == 'posix':\n    {A}\nelif os.name == 'nt':\n    {B}",
        f"if os.name == 'nt':\n    {B}\nelif os.name == 'posix':\n    {A}",
        "mine = p.b if os.name == 'nt' else p.a",
        "mine = p.a if os.name == 'posix' else p.b",
        f"if os.name == 'nt':\n    try:\n        {B}\n    except ImportError: ...\nelse:\n    {A}",
        f"if os.name == 'posix':\n    if x:\n        {A}\nelse:\n    {B}",
        f"if x:\n    mine = None\nelif os.name == 'nt':\n    {B}\nelse:\n    {A}",
    ],
)
def test_a_name_is_what_it_is_here(text: str) -> None:
    found = resolve(Texts({"m": f"import os, sys, p.a, p.b\n{text}", **FUNCTION}), "m.mine.f")
    assert isinstance(found, Found) and (found.module, found.others) == ("p.a", ()), found


@pytest.mark.skipif(os.name != "posix", reason="of POSIX")
@pytest.mark.parametrize("last", [True, False])
def test_stars_of_another_platform_come_last(last: bool) -> None:
    parts = ["'posix':\n    from p.a import *", "'nt':\n    from p.b import *"]
    text = "import os\n" + "\n".join(f"if os.name == {part}" for part in (parts if last else reversed(parts)))
    found = resolve(Texts({"m": text, **FUNCTION}), "m.f")
    assert isinstance(found, Found) and found.module == "p.a"


def test_what_is_there_for_another_platform_alone_is_found_all_the_same() -> None:
    other = "nt" if os.name == "posix" else "posix"
    found = resolve(
        Texts({"m": f"import os\nif os.name == {other!r}:\n    import p.b as mine", **FUNCTION}), "m.mine.f"
    )
    assert isinstance(found, Found) and found.module == "p.b"


@pytest.mark.skipif(os.name != "posix", reason="of POSIX")
def test_an_import_in_a_function_too() -> None:
    text = f"import sys\ndef f():\n    if sys.platform == 'win32':\n        {B}\n    else:\n        {A}\n    mine.f()"
    found = scan(Texts({"m": text, **FUNCTION}), "m.f", ["def f"], 3)
    assert [hit.way[-1].name for hit in found.hits] == ["m:f", "p.a:f"]


def test_the_path_module_of_the_standard_library_is_that_of_this_platform() -> None:
    """Of the real ``os``, which asks for the names of built-in modules."""
    sources = installed(sys.executable, "")
    for name in ("os.path", "os.path.join"):
        found = resolve(sources, name)
        assert isinstance(found, Found) and found.module == os.path.__name__, found
    assert Path(sysconfig.get_path("stdlib"), f"{os.path.__name__}.py").is_file()


def test_this_platform_is_told_as_python_does() -> None:
    assert HERE.facts["os.name"] == os.name and HERE.facts["sys.platform"] == sys.platform

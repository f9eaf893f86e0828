"""Locks for the Python of another host, by the real uv: its wheels, its markers, and what it could never install."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.environments.locks import resolve
from bisect_env.environments.records import Interpreter, Lock, Reason, Unavailable
from bisect_env.environments.sizes import platforms_of, tags_of
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice
from tests.support.index import Index
from tests.support.wheels import Wheels

MINOR = 13 if sys.version_info[1] != 13 else 12
"""Not the Python that runs the tests."""
THERE = Interpreter(Path(f"python3.{MINOR}"), f"3.{MINOR}", "cpython", "x86_64-manylinux_2_28")


def request(index: Index, *lines: str, **options: object) -> EnvironmentRequest:
    return EnvironmentRequest(lines, index=IndexChoice(urls=(index.url,)), **options)  # type: ignore[arg-type]


def test_it_is_resolved_for_that_python(index: Index, wheels: Wheels, uv: Uv) -> None:
    here = f"cp3{sys.version_info[1]}"
    for version, tag in (
        ("1.0", f"cp3{MINOR}-cp3{MINOR}-manylinux_2_28_x86_64"),
        ("2.0", f"{here}-{here}-linux_x86_64"),
    ):
        index.add(wheels.wheel("fast", version, tag=tag, requires=[f"extra ; python_version == '3.{MINOR}'"]))
    index.add(wheels.wheel("extra", "1.0"))
    lock = resolve(request(index, "fast"), uv, elsewhere=THERE)
    assert isinstance(lock, Lock), lock
    assert lock.pins == (("extra", "1.0"), ("fast", "1.0")) and lock.interpreter == THERE
    assert dict(lock.downloads or ()).keys() == {"extra", "fast"}


def test_a_source_distribution_is_no_answer(index: Index, wheels: Wheels, uv: Uv) -> None:
    index.add(wheels.sdist("built", "1.0"))
    result = resolve(request(index, "built"), uv, elsewhere=THERE)
    assert isinstance(result, Unavailable) and result.reason is Reason.NO_SUCH_VERSION and "built" in result.message


@pytest.mark.parametrize("url", ["git+https://localhost/a@main", "file:///nowhere/a"])
def test_neither_is_a_source_that_it_has_not(index: Index, uv: Uv, url: str) -> None:
    result = resolve(request(index, f"a @ {url}"), uv, elsewhere=THERE)
    assert isinstance(result, Unavailable) and result.reason is Reason.BUILD and "find-links" in result.message


@pytest.mark.parametrize(
    ("python", "fits"),
    [
        (None, True),
        ("3", True),
        (f"3.{MINOR}", True),
        (f"cpython@3.{MINOR}.1", True),
        ("3.9", False),
        ("/bin/py", False),
    ],
)
def test_the_cell_may_ask_for_a_python(index: Index, wheels: Wheels, uv: Uv, python: str | None, fits: bool) -> None:
    index.add(wheels.wheel("a", "1.0"))
    result = resolve(replace(request(index, "a"), python=python), uv, elsewhere=THERE)
    assert isinstance(result, Lock) if fits else isinstance(result, Unavailable)
    if isinstance(result, Unavailable):
        assert result.reason is Reason.INTERPRETER


def test_platforms() -> None:
    platforms = platforms_of("x86_64-manylinux_2_28") or ()
    assert platforms[0] == "manylinux_2_28_x86_64" and "manylinux_2_29_x86_64" not in platforms
    assert {"manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"} <= set(platforms)
    assert "manylinux1_aarch64" not in (platforms_of("aarch64-manylinux_2_28") or ())
    assert platforms_of("linux-x86_64") is None
    tags = [str(tag) for tag in tags_of(THERE)]
    assert tags[0] == f"cp3{MINOR}-cp3{MINOR}-manylinux_2_28_x86_64" and tags[-1] == "py30-none-any"
    assert "cp38-abi3-manylinux_2_17_x86_64" in tags

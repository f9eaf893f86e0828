"""Which versions a word asks for, and which wheel is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from bisect_env.environments.index import File
from bisect_env.environments.records import Interpreter
from bisect_env.environments.sizes import tags_of
from bisect_env.errors import BadInput
from bisect_env.inspection.wanted import Wanted, best_wheel, near, of_version, parse, versions
from bisect_env.matrix.versions import Release

RELEASES = ("2.7.1", "2.8.0", "2.9.0", "2.9.1", "2.10.0", "2.11.0", "2.11.1", "2.15.0", "2.15.1", "2.16.0rc1")


def releases(*texts: str, yanked: tuple[str, ...] = ()) -> list[Release]:
    return [Release(text, None, text in yanked) for text in texts]


def asked(word: str, found: list[Release] | None = None) -> tuple[str, ...]:
    wanted = parse(word)
    assert wanted is not None
    return versions(wanted, releases(*RELEASES) if found is None else found)


def test_words() -> None:
    assert parse("torch==2.11.0") == Wanted("torch", Version("2.11.0"))
    assert parse(" torch == 2.11.0+cu128 ") == Wanted("torch", Version("2.11.0+cu128"))
    assert parse("torch==2.8..2.15") == Wanted("torch", Version("2.8"), Version("2.15"))
    assert parse("torch==2.8.0...2.15.0") == Wanted("torch", Version("2.8.0"), Version("2.15.0"), True)
    assert parse("torch") is None and parse("/opt/env") is None
    for word, found in (
        ("torch==", None),
        ("torch==new", "new"),
        ("torch==2..x", "x"),
        ("a==3..2", "2 comes before 3"),
    ):
        if found is None:
            assert parse(word) is None
        else:
            with pytest.raises(BadInput, match=found):
                parse(word)


def test_ranges() -> None:
    assert asked("t==2.8..2.15") == ("2.8.0", "2.9.1", "2.10.0", "2.11.1", "2.15.1")
    assert asked("t==2.8.0..2.15.0") == ("2.8.0", "2.9.1", "2.10.0", "2.11.1", "2.15.0")
    assert asked("t==2.9...2.11") == ("2.9.0", "2.9.1", "2.10.0", "2.11.0", "2.11.1")
    assert asked("t==2.9.1...2.11.0") == ("2.9.1", "2.10.0", "2.11.0")
    assert asked("t==2...2") == tuple(text for text in RELEASES if "rc" not in text)
    assert asked("t==2.16.0rc1") == ("2.16.0rc1",), "named, it is taken"
    assert asked("t==2.9..2.9", releases(*RELEASES, yanked=("2.9.1",))) == ("2.9.0",)
    assert asked("t==1..3", releases("2.0+cpu", "2.0+cu128", "nonsense")) == ("2.0",)
    with pytest.raises(BadInput, match=r"(?s)no version was released.*2.11.1 or 2.15.0, which are next to it"):
        asked("t==2.12..2.14")
    with pytest.raises(BadInput, match="61 versions"):
        asked("t==1...1", releases(*(f"1.{number}" for number in range(61))))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1), st.integers(0, 4), st.integers(0, 4))
def test_a_range_of_minors_is_the_newest_of_each_in_all_of_it(
    found: list[tuple[int, int]], first: int, second: int
) -> None:
    low, high = sorted((first, second))
    released = releases(*{f"1.{minor}.{patch}" for minor, patch in found})
    expected = {minor: max(patch for each, patch in found if each == minor) for minor, _ in found}
    wanted = [f"1.{minor}.{patch}" for minor, patch in sorted(expected.items()) if low <= minor <= high]
    if wanted:
        assert list(asked(f"t==1.{low}..1.{high}", released)) == wanted
    else:
        with pytest.raises(BadInput):
            asked(f"t==1.{low}..1.{high}", released)


def test_the_versions_next_to_one_that_is_not() -> None:
    assert near(Version("2.9.5"), RELEASES).startswith("2.9.1 or 2.10.0, which are next to it; the newest is 2.16.0rc1")
    assert near(Version("9"), RELEASES) == "2.16.0rc1, which is next to it"
    assert near(Version("0.1"), ("1.0", "nonsense")) == "1.0, which is next to it"
    assert "no version there" in near(Version("1"), ())


def file(name: str, size: int = 10) -> File:
    wheel = name.endswith(".whl")
    return File(name, name.removesuffix(".tar.gz").split("-")[1], wheel, size, None, False, None, f"http://x/{name}")


def best(*names: str) -> tuple[str, bool] | None:
    interpreter = Interpreter(Path("python"), "3.12.0", "cpython", "x86_64-manylinux_2_28")
    found = best_wheel([file(name) for name in names], {tag: n for n, tag in enumerate(tags_of(interpreter))})
    return found and (found[0].name, found[1])


def test_the_wheel_that_fits_comes_first_then_what_is_like_it() -> None:
    fitting, abi3, pure = (
        "t-1-cp312-cp312-manylinux_2_28_x86_64.whl",
        "t-1-cp39-abi3-linux_x86_64.whl",
        "t-1-py3-none-any.whl",
    )
    other = "t-1-cp311-cp311-manylinux_2_28_x86_64.whl"
    arm, windows = "t-1-cp312-cp312-manylinux_2_28_aarch64.whl", "t-1-cp312-cp312-win_amd64.whl"
    assert best(windows, pure, abi3, fitting) == (fitting, True)
    assert best(windows, pure, abi3) == (abi3, True)
    assert best(windows, arm, pure) == (pure, True)
    assert best(windows, arm, other) == (other, False)
    assert best(windows, arm) == (arm, False)
    assert best(windows, "t-1.tar.gz", "nonsense-1.whl") == (windows, False)
    assert best("t-1.tar.gz") is None and best() is None
    again = fitting.replace("-1-", "-1-3-", 1)
    assert best(fitting, again, fitting.replace("-1-", "-1-2-", 1)) == (again, True)


def test_of_several_builds_the_one_without_cuda() -> None:
    names = [f"t-1{label}-py3-none-any.whl" for label in ("+cu130", "+cpu", "+cu128")]
    files = [file(name) for name in names]
    assert of_version(files, Version("1")) == files and of_version(files, Version("1.0+cpu")) == [files[1]]
    assert of_version(files, Version("2")) == []
    assert best(*names) == ("t-1+cpu-py3-none-any.whl", True)

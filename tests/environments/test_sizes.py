"""What a lock downloads, from uv's pylock output."""

from __future__ import annotations

from bisect_env.environments.interpreters import find
from bisect_env.environments.records import Interpreter
from bisect_env.environments.sizes import downloads, tags_of

PYLOCK = """
[[packages]]
name = "alpha"
version = "1.0"
sdist = { url = "http://x/alpha-1.0.tar.gz", size = 1000 }
wheels = [
    { url = "http://x/alpha-1.0-cp311-cp311-win_amd64.whl", size = 7 },
    { url = "http://x/alpha-1.0-py3-none-any.whl", size = 20 },
    { url = "http://x/alpha-1.0-py310-none-any.whl", size = 9 },
]

[[packages]]
name = "source"
version = "1.0"
sdist = { url = "http://x/source-1.0.tar.gz", size = 300 }

[[packages]]
name = "torch"
version = "2.11.0+cu128"
wheels = [{ url = "http://x/torch-2.11.0%2Bcu128-py3-none-any.whl", size = 4000 }]

[[packages]]
name = "local"
directory = { path = "/x" }
"""


def own() -> Interpreter:
    interpreter = find(None)
    assert isinstance(interpreter, Interpreter)
    return interpreter


def test_the_file_that_fits_best_counts() -> None:
    found = downloads(PYLOCK, tags_of(own()))
    assert found is not None and [size for _, size in found] == [20, 300, 4000]
    assert ("torch", 4000) in found


def test_one_size_that_is_not_told_leaves_the_sum_unknown() -> None:
    assert downloads(PYLOCK.replace(", size = 4000", ""), tags_of(own())) is None


def test_an_empty_lock_downloads_nothing() -> None:
    assert downloads("", tags_of(own())) == ()


def test_tags_follow_the_interpreters_version() -> None:
    tags = {str(tag).split("-")[0] for tag in tags_of(Interpreter(own().path, "3.12.1", "cpython", "linux-x86_64"))}
    assert {"cp312", "py3", "py312"} <= tags and "cp313" not in tags

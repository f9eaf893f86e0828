"""Which file of a pin goes into a bundle: the best that the target takes, and only one that can be proved there."""

from __future__ import annotations

from pathlib import Path

from bisect_env.bundles import targets
from bisect_env.bundles.records import Target
from bisect_env.bundles.sources import Source, sources
from bisect_env.environments.records import Interpreter, Lock, Unavailable

TAGS = targets.tags(Target("3.12", "x86_64-manylinux_2_28"))
HASHES = "".join(f" --hash=sha256:{letter * 64}" for letter in "abc")
LOCK = Lock(
    f"fast==1.0{HASHES}\n", Interpreter(Path("python3.12"), "3.12", "cpython", ""), (("fast", "1.0"),), None, ""
)


def pylock(*wheels: tuple[str, str], host: str = "user:****@host") -> str:
    files = ", ".join(
        f'{{ url = "https://{host}/{name}", size = 7, hashes = {{ sha256 = "{digest * 64}" }} }}'
        for name, digest in wheels
    )
    return f'[[packages]]\nname = "fast"\nversion = "1.0"\nwheels = [{files}]\n'


def chosen(*wheels: tuple[str, str]) -> str:
    found = sources(pylock(*wheels), LOCK, TAGS)
    return found.message if isinstance(found, Unavailable) else found[0].filename


def test_the_best_that_the_target_takes() -> None:
    old, new = "fast-1.0-cp312-cp312-manylinux_2_17_x86_64.whl", "fast-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    too_new, any_ = "fast-1.0-cp312-cp312-manylinux_2_34_x86_64.whl", "fast-1.0-py3-none-any.whl"
    assert chosen((old, "a"), (any_, "b"), (new, "c"), (too_new, "a")) == new
    assert chosen((any_, "b"), (old, "a")) == old
    assert chosen((too_new, "a"), (any_, "b")) == any_
    assert "no wheel" in chosen((too_new, "a"))


def test_only_what_the_lock_knows() -> None:
    assert "no SHA-256" in chosen(("fast-1.0-py3-none-any.whl", "d"))


def test_no_user_is_kept_of_a_url_and_labels_are_read() -> None:
    found = sources(pylock(("fast-1.0%2Bcu128-py3-none-any.whl", "a")), LOCK, TAGS)
    assert found == (Source("fast-1.0+cu128-py3-none-any.whl", "fast", "1.0", "a" * 64, 7, ""),)
    assert isinstance(found, tuple) and found[0].url == "https://host/fast-1.0%2Bcu128-py3-none-any.whl"

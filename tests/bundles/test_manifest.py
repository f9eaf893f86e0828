"""manifest.json: read as it was written, refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisect_env.bundles import manifest
from bisect_env.bundles.records import Locked, Manifest, Piece, Target, Wheel
from bisect_env.environments.records import Interpreter, Lock, Reason, Unavailable
from bisect_env.errors import BadInput

LOCK = Lock("a==1\n", Interpreter(Path("python3.12"), "3.12", "cpython", "any"), (("a", "1"),), "cu130", "address")
WHOLE = Manifest(
    1,
    "0.1.0",
    "matrices/a.yaml",
    Target("3.12", "x86_64-manylinux_2_28"),
    (("p", 7),),
    (Wheel("a-1-py3-none-any.whl", "a", "1", "s", 7, (Piece("p", 0, 0, 7),)),),
    (
        Locked("k", ("one", "two"), LOCK, None, ("s",)),
        Locked("l", ("three",), None, Unavailable("resolve", Reason.CONFLICT, "no"), ()),
    ),
    (("uv.whl", "t"),),
)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    manifest.save(WHOLE, tmp_path)
    assert manifest.load(tmp_path) == WHOLE
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[: len(text) // 2], "no JSON"),
        (lambda text: text.replace('"version": 1', '"version": 2', 1), "newer bisect-env"),
        (lambda text: text.replace('"part_bytes"', '"other"'), "part_bytes"),
    ],
)
def test_what_it_cannot_be_is_said(tmp_path: Path, damage: object, words: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(damage(manifest.encode(WHOLE)))  # type: ignore[operator]
    with pytest.raises(BadInput, match=words) as caught:
        manifest.load(tmp_path)
    assert caught.value.source == str(path)


def test_a_folder_without_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        manifest.load(tmp_path)

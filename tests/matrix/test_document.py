"""Reading YAML: text as written, places, and files that must be refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.errors import BadInput
from bisect_env.matrix import document

SOURCE = Path("matrix.yaml")


def parsed(text: str) -> document.Document:
    return document.parse(text, SOURCE)


def refused(text: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        parsed(text)
    assert caught.value.source == "matrix.yaml"
    return caught.value


@pytest.mark.parametrize("text", ["2.10", "no", "2026-01-15", "1e3", "0x10", "1_000", "12:30:45", "+1", ".5", "true"])
def test_an_unquoted_scalar_stays_what_was_written(text: str) -> None:
    assert parsed(f"a: {text}\nb: [{text}]\n").data == {"a": text, "b": [text]}


def test_nothing_is_none_and_quoted_is_text() -> None:
    assert parsed("a:\nb: ~\nc: null\nd: 'null'\ne: ''\n").data == {
        "a": None,
        "b": None,
        "c": None,
        "d": "null",
        "e": "",
    }


def test_places_are_those_of_keys_and_entries() -> None:
    read = parsed("axes:\n  torch:\n    - 2.11.0\n    - 2.12.0\n  find-links: {x: 1}\n")
    assert read.place(("axes", "torch")) == "line 2, column 3 (axes.torch)"
    assert read.place(("axes", "torch", 1)) == "line 4, column 7 (axes.torch[1])"
    assert read.place(("axes", "find_links", "x")) == "line 5, column 16 (axes.find-links.x)"
    assert read.place(("axes", "torch", 1, "deeper")) == "line 4, column 7 (axes.torch[1])"


def test_aliases_stand_for_their_anchors() -> None:
    assert parsed("a: &x [1, {k: 2}]\nb: *x\n").data["b"] == ["1", {"k": "2"}]


def test_an_anchor_bomb_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 10)]
    started = time.perf_counter()
    error = refused("\n".join(lines))
    assert time.perf_counter() - started < 5
    assert "more than 20000 values once anchors are followed" in error.found
    assert error.place.startswith("line 1")
    assert "anchors" in error.wanted


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ("a: &a [*a]\n", "line 1, column 8 (a[0])", "*a stands for nothing"),
        ("a: *b\n", "line 1, column 4 (a)", "*b stands for nothing"),
        ("", "", "an empty file"),
        ("# only a comment\n", "", "an empty file"),
        ("- torch\n- cuda\n", "line 1, column 1", "a list with 2 entries"),
        ("torch\n", "line 1, column 1", "'torch'"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1", "a second document"),
        ("a: 1\nb: 2\na: 3\n", "line 3, column 1", "'a' a second time (first on line 1)"),
        ("find-links: 1\nfind_links: 2\n", "line 2, column 1", "'find_links' a second time"),
        ("a: {? [x] : 1}\n", "line 1, column 7 (a)", "a key that is not plain text"),
        ("a: !!python/object:os.system x\n", "line 1, column 4 (a)", "the tag"),
        ("a: [1\nb: 2\n", "line 2, column 2", "not valid YAML"),
        ("torch: >=2.11,<2.15\n", "line 1, column 9", "not valid YAML"),
        ("a:\n\t- 1\n", "line 2, column 1", "not valid YAML"),
        ("a: \x07\n", "", "not valid YAML"),
    ],
)
def test_bad_files_are_refused_with_their_place(text: str, place: str, found: str) -> None:
    error = refused(text)
    assert error.place == place
    assert found in error.found
    assert error.wanted


def test_a_range_without_quotes_is_told_to_quote_it() -> None:
    assert '">=2.11,<2.15"' in refused("axes: {torch: [>=2.11]}\n").wanted


def test_deep_nesting_is_refused_without_recursion() -> None:
    assert "nested more than" in refused("a: " + "[" * 30_000).found


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    cases = {
        tmp_path / "missing.yaml": "no such file",
        tmp_path: "a folder",
        tmp_path / "binary.yaml": "not UTF-8 text",
        tmp_path / "huge.yaml": "larger than 128 KiB",
        tmp_path / ("x" * 300): "cannot be read",
    }
    (tmp_path / "binary.yaml").write_bytes(b"a: 1\nb: \xff\xfe\x00")
    (tmp_path / "huge.yaml").write_text("a: [" + "x, " * 100_000 + "]")
    for path, found in cases.items():
        with pytest.raises(BadInput) as caught:
            document.read(path)
        assert found in caught.value.found
        assert caught.value.source == str(path)
        assert caught.value.wanted
    with pytest.raises(BadInput, match="line 2"):
        document.read(tmp_path / "binary.yaml")


def test_an_endless_file_is_refused() -> None:
    with pytest.raises(BadInput, match="larger than"):
        document.read(Path("/dev/zero"))


SCALARS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=12)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS, inner, max_size=3), max_leaves=8
)


def written(value: object) -> str:
    """``value`` as flow YAML with every scalar in quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)}: {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(item) for item in value) + "]"
    return "'" + str(value).replace("'", "''") + "'"


def has_twins(value: object) -> bool:
    if isinstance(value, dict):
        keys = [key.replace("-", "_") for key in value]
        return len(set(keys)) < len(keys) or any(has_twins(item) for item in value.values())
    return isinstance(value, list) and any(has_twins(item) for item in value)


@given(st.dictionaries(SCALARS, VALUES, max_size=4).filter(lambda data: not has_twins(data)))
def test_what_is_written_is_what_is_read(data: dict[str, object]) -> None:
    assert parsed(written(data)).data == data

"""Ids and tags."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.matrix.expansion import Level
from bisect_env.matrix.naming import LONGEST, Part, identifiers, tags
from bisect_env.matrix.vocabulary import Kind


def part(name: str, text: str, kind: Kind = Kind.PACKAGE, value: object = ...) -> Part:
    return Part(name, kind, Level(text, text, text if value is ... else value))  # type: ignore[arg-type]


def one(*parts: Part) -> str:
    return identifiers([(parts, "0123456789abcdef")], "matrix")[0]


def nox_folder(identifier: str) -> str:
    """What nox makes of a session's name, from its documentation: compared here, not imported."""
    ascii_only = unicodedata.normalize("NFKD", f"cell({identifier})").encode("ascii", "ignore").decode("ascii")
    dashed = re.sub(r"[^\w\s-]", "-", ascii_only).strip().lower()
    return re.sub(r"[-\s]+", "-", dashed).strip("-")


def test_variant_and_torch_are_one_word() -> None:
    torch, cuda = part("torch", "2.11.0"), part("cuda", "cu130", Kind.CUDA)
    assert one(torch, cuda, part("pattern", "hot", Kind.CONDITION)) == "torch-2.11.0+cu130_hot"
    assert one(part("torch", "2.11.0+cu130"), cuda) == "torch-2.11.0+cu130"
    assert one(part("python", "3.12", Kind.PYTHON), cuda) == "python-3.12_cu130"
    assert one(torch, part("cuda", "none", Kind.CUDA, None)) == "torch-2.11.0"


def test_conditions_say_their_name_where_their_value_does_not() -> None:
    threads = part("threads", "3", Kind.CONDITION, 3)
    assert one(threads) == "threads-3"
    assert one(part("attention", "torch", Kind.CONDITION)) == "attention-torch"
    assert one(part("a", "none", Kind.CONDITION), part("b", "none", Kind.CONDITION)) == "a-none_b-none"
    assert one(part("cache", "/data/caches/old one", Kind.CONDITION)) == "old-one"
    assert tags([threads, part("pattern", "hot", Kind.CONDITION)]) == ("threads3", "hot")


def test_a_cell_without_columns_has_the_matrixs_name() -> None:
    assert one() == "matrix"
    assert identifiers([((), "k")], "../..") == ["cell"]


def test_only_colliding_ids_carry_their_key() -> None:
    rows = [([part("a", text)], f"{at:08}rest") for at, text in enumerate(["1.0+x", "1.0-x", "2.0"])]
    assert identifiers(rows, "matrix") == ["a-1.0+x_00000000", "a-1.0-x_00000001", "a-2.0"]


def test_commits_are_shortened() -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert one(part("t", f"git+https://example.org/t.git@{commit}")) == "t-git-0123456789ab"
    assert one(part("t", "git+ssh://git@example.org/t.git")) == "t-t.git"


TEXTS = st.text(st.sampled_from("aB1.+-_/@ é:~"), max_size=8)
PARTS = st.builds(part, st.sampled_from(["torch", "numpy", "x"]), TEXTS, st.sampled_from(list(Kind)))


@given(st.lists(st.lists(PARTS, max_size=3), min_size=1, max_size=8), st.text(max_size=6))
def test_ids_are_unique_safe_and_short_also_as_nox_folders(rows: list[list[Part]], name: str) -> None:
    ids = identifiers([(row, f"{at:08x}") for at, row in enumerate(rows)], name)
    assert len({nox_folder(identifier) for identifier in ids}) == len(rows)
    for identifier in ids:
        assert re.fullmatch(r"[A-Za-z0-9+_-][A-Za-z0-9.+_-]*", identifier)
        assert len(identifier) <= LONGEST


@given(st.lists(PARTS, max_size=4))
def test_tags_are_words(row: list[Part]) -> None:
    for tag in tags(row):
        assert re.fullmatch(r"[A-Za-z0-9.+_-]+", tag)


@given(st.lists(st.text(st.sampled_from("ab-"), min_size=1, max_size=100), min_size=1, max_size=2))
def test_long_ids_are_cut(texts: list[str]) -> None:
    long = [part(f"name-{at}", text * 10) for at, text in enumerate(texts)]
    assert len(one(*long)) <= LONGEST

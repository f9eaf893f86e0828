"""Cells, and finding things by the beginning of their names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.store.database import Store
from tests.store.samples import cell, environment, trial


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.sqlite") as opened:
        yield opened


def test_a_cell_is_found_by_id_and_by_key(store: Store) -> None:
    store.put_cells([cell()], "m")
    store.put_cells([cell("torch-2.13.0", torch="2.13.0")], "m")
    (found,) = store.cells("torch-2.11")
    assert (found.cell, found.key, found.matrix) == (cell(), cell().key, "m")
    assert store.cells(cell().key[:8]) == [found]
    assert len(store.cells("torch-2.1")) == 2
    assert len(store.cells("")) == 2
    assert store.cells("torch-9") == []


def test_a_whole_name_fits_alone(store: Store) -> None:
    store.put_cells([cell("torch")], "m")
    store.put_cells([cell("torch-nightly", torch="2.15")], "m")
    assert [found.cell.id for found in store.cells("torch")] == ["torch"]
    assert [match.about for match in store.find("torch")] == ["cell torch of m"]
    assert len(store.find("torc")) == 2


def test_a_cell_that_changed_is_found_with_both_contents(store: Store) -> None:
    store.put_cells([cell("a", torch="2.11.0")], "m")
    store.put_cells([cell("a", torch="2.12.0")], "m")
    store.put_cells([cell("a", torch="2.12.0")], "m")
    found = store.cells("a")
    assert [stored.cell.levels[0][1] for stored in found] == ["2.12.0", "2.11.0"], "the latest first"


def test_find_lists_all_kinds_and_what_is_ambiguous(store: Store) -> None:
    run_id = store.start_run("matrix", "m.yaml", [], 0, {})
    store.put_cells([cell("talk")], "matrix")
    store.put_trial(trial("tabc"), cell().key, run_id, 0, "hash")
    store.put_trial(trial("tabd"), cell().key, run_id, 0, "hash")
    store.put_environment(environment("tabf0000"), 1.0)
    found = store.find("ta")
    assert [(match.kind, match.id) for match in found] == [
        ("cell", cell("talk").key),
        ("trial", "tabc"),
        ("trial", "tabd"),
        ("environment", "tabf0000"),
    ]
    assert "threads, clean" in found[1].about
    assert [match.id for match in store.find("tabc")] == ["tabc"]
    assert [match.kind for match in store.find(run_id)] == ["run"]
    assert "not ended" in store.find(run_id)[0].about
    assert store.find("zzz") == []


@pytest.mark.parametrize("name", ["a%b", "a_b", "a'b", 'a"b', "a\\b", "ä"])
def test_odd_names_are_names(store: Store, name: str) -> None:
    store.put_cells([cell(name)], "m")
    store.put_cells([cell("axb", torch="2.12.0")], "m")
    assert [found.cell.id for found in store.cells(name)] == [name]


def test_prefixes_fit_exactly_what_begins_with_them(tmp_path: Path) -> None:
    names = ["a", "ab", "abc", "b", "A", "a-1", "a.2", "ä", "\U0010fffe"]
    with Store(tmp_path / "s.sqlite") as store:
        run_id = store.start_run("m", "m", [], 0, {})
        for name in names:
            store.put_trial(trial(name), "key", run_id, 0, "hash")

        @settings(deadline=None, database=None)
        @given(st.text("ab.-A1ä", max_size=3))
        def holds(prefix: str) -> None:
            found = {match.id for match in store.find(prefix) if match.kind == "trial"}
            assert found == ({prefix} if prefix in names else {name for name in names if name.startswith(prefix)})

        holds()


def test_credentials_of_an_index_are_not_kept(store: Store) -> None:
    secret = cell(urls=("https://me:s3cret@idx/simple",))
    store.put_cells([secret], "m")
    (found,) = store.cells(secret.id)
    assert found.cell.request.index.urls == ("https://****@idx/simple",)
    assert found.key == secret.key, "trials are found by the key they were stored under"

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bisect_env.trials import caches
from bisect_env.trials.isolation import Folders


def fill(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def test_a_prepared_cache_is_copied_not_linked(tmp_path: Path) -> None:
    source = fill(tmp_path / "kept", "inductor/fxgraph/a", "triton/hash/k.json", "cuda/index")
    caches.copy_in(source, tmp_path / "new")
    copy = tmp_path / "new" / "inductor" / "fxgraph" / "a"
    assert copy.read_text() == "inductor/fxgraph/a" and copy.stat().st_nlink == 1
    copy.write_text("changed")
    assert (source / "inductor/fxgraph/a").read_text() == "inductor/fxgraph/a"
    assert caches.measure(source) == (
        3,
        sum(len(n) for n in ("inductor/fxgraph/a", "triton/hash/k.json", "cuda/index")),
    )


def test_somebodys_inductor_cache_is_put_where_a_trial_looks(tmp_path: Path) -> None:
    source = fill(tmp_path / "theirs", "fxgraph/a", "aotautograd/b", "triton/0/hash/k.cubin", "triton/5/other/k.cubin")
    caches.copy_in(source, tmp_path / "new")
    assert (tmp_path / "new" / "inductor" / "aotautograd" / "b").exists()
    assert (tmp_path / "new" / "triton" / "hash" / "k.cubin").exists()
    assert (tmp_path / "new" / "triton" / "other" / "k.cubin").exists()


def test_a_pipe_in_a_cache_is_not_waited_for(tmp_path: Path) -> None:
    source = fill(tmp_path / "mine", "fxgraph/a")
    os.mkfifo(source / "fxgraph" / "pipe")
    caches.copy_in(source, tmp_path / "new")
    assert [path.name for path in (tmp_path / "new" / "inductor" / "fxgraph").iterdir()] == ["a"]


def test_a_cache_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        caches.copy_in(tmp_path / "nowhere", tmp_path / "new")


def test_keep_moves_whole_caches_and_the_first_one_stays(tmp_path: Path) -> None:
    for number in (1, 2):
        fill(Folders(tmp_path / f"trial{number}").compiled, f"inductor/{number}")
        caches.keep(tmp_path / f"trial{number}", tmp_path / "caches" / "key")
    assert [path.name for path in (tmp_path / "caches").iterdir()] == ["key"]
    assert (tmp_path / "caches" / "key" / "inductor" / "1").exists()

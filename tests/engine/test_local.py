"""This host as an executor: what it says of jobs that it cannot take in."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from bisect_env.engine import left_over
from bisect_env.engine.local import Local
from bisect_env.engine.settings import Settings
from bisect_env.store.database import Store


@pytest.mark.parametrize("jobs", [True, False])
def test_jobs_that_were_left_to_a_cluster_are_told(tmp_path: Path, jobs: bool) -> None:
    folder = tmp_path / left_over.FOLDER / "20261130-120000-0a1b"
    folder.mkdir(parents=True)
    if jobs:
        (folder / left_over.FILE).write_text("{}")
    said: list[str] = []
    with Store(tmp_path / "store.sqlite") as store:
        assert Local().take_in(Settings(tmp_path), store, said.append, threading.Event()) == 0
    assert len(said) == int(jobs)
    assert all("--executor slurm" in text and "squeue --me" in text for text in said)

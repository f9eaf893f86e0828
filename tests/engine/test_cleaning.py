"""What ``clean`` takes for the work of a run, and what it lets be."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock

from bisect_env.engine.cleaning import bundles, remove, survey, without_a_run
from bisect_env.store.ids import new_trial_id


def test_what_a_run_left_goes_and_what_is_the_users_stays(tmp_path: Path) -> None:
    ours, theirs = new_trial_id(), ("trials/run1", "trials/t1", "caches/pip", "environments/conda")
    for name in (f"trials/{ours}", "caches/0123456789abcdef", *theirs):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("x")
    items = survey(tmp_path, (), ())
    assert {(item.kind, item.name) for item in items} == {
        ("trial folder", ours),
        ("compile cache", "0123456789abcdef"),
    }
    for item in items:
        assert remove(item, tmp_path) > 0
    assert all((tmp_path / name / "file").exists() for name in theirs)
    assert survey(tmp_path, (), ()) == ()


def test_fetched_wheels_go_unless_a_bundle_is_being_made_and_delivered_ones_stay(tmp_path: Path) -> None:
    for name in (
        "wheels/aa/x.whl",
        "wheels/stamps.json",
        "wheels/.lock",
        "bundle/manifest.json",
        "bundle/wheels/y.whl",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x" * 10 if name[-1] != "k" else "")
    fetched, delivered = survey(tmp_path, (), ())
    assert (fetched.kind, fetched.own_bytes, fetched.used) == ("fetched wheels", 20, False)
    assert (delivered.kind, delivered.own_bytes, delivered.used) == ("delivered wheels", 10, True)
    with FileLock(tmp_path / "wheels" / ".lock"):
        assert remove(fetched, tmp_path) == 0 and (tmp_path / "wheels/aa/x.whl").exists()
    assert remove(fetched, tmp_path) == 20 and [path.name for path in (tmp_path / "wheels").iterdir()] == [".lock"]
    assert remove(delivered, tmp_path) == 0 and bundles(tmp_path) == (delivered,)


def test_a_folder_of_the_users_that_is_called_wheels_stays(tmp_path: Path) -> None:
    for name in ("wheels/mine.whl", "bundle/wheels/mine.whl"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x")
    assert survey(tmp_path, (), ()) == ()


def test_a_trial_that_runs_is_in_use(tmp_path: Path) -> None:
    ours = new_trial_id()
    (tmp_path / "trials" / ours).mkdir(parents=True)
    assert [item.used for item in survey(tmp_path, (), (ours,))] == [True]


def test_what_was_read_of_an_index_goes_and_a_folder_of_the_users_stays(tmp_path: Path) -> None:
    key = "0" * 64
    theirs = ("inspected/mine.txt", "inspected/wheels/mine/0-3-9-00000000", "inspected/pages/mine.json")
    for name in (f"inspected/wheels/{key}/0-3-9-00000000", f"inspected/pages/{key}.json", *theirs):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("xyz")
    (item,) = without_a_run(tmp_path)
    assert (item.kind, item.own_bytes, item.used) == ("read", 6, False)
    assert remove(item, tmp_path) == 6
    assert all((tmp_path / name).exists() for name in theirs)
    assert not (tmp_path / "inspected" / "wheels" / key).exists() and without_a_run(tmp_path) == ()


def test_folders_of_lost_jobs_go_when_no_command_needs_them(tmp_path: Path) -> None:
    names = ("20261130-120000-ab12", "20261130-120000-ab13", "20261130-120000-ab14")
    for name in (*names, "theirs"):
        (tmp_path / "cluster" / name).mkdir(parents=True)
        (tmp_path / "cluster" / name / "log.txt").write_text("x")
        os.utime(tmp_path / "cluster" / name, (0, 0))
    (tmp_path / "cluster" / names[1] / "pending.json").write_text("{}")
    os.utime(tmp_path / "cluster" / names[2])
    items = survey(tmp_path, (), ())
    assert [(item.kind, item.name, item.used) for item in items] == [
        ("job folder", names[0], False),
        ("job folder", names[1], True),
        ("job folder", names[2], True),
    ]
    assert remove(items[0], tmp_path) == 1
    assert not (tmp_path / "cluster" / names[0]).exists()

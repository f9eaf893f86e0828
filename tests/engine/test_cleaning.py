"""What ``clean`` takes for the work of a run, and what it lets be."""

from __future__ import annotations

from pathlib import Path

from bisect_env.engine.cleaning import remove, survey
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


def test_a_trial_that_runs_is_in_use(tmp_path: Path) -> None:
    ours = new_trial_id()
    (tmp_path / "trials" / ours).mkdir(parents=True)
    assert [item.used for item in survey(tmp_path, (), (ours,))] == [True]

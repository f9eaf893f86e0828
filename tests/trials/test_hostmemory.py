from __future__ import annotations

from pathlib import Path

from bisect_env.trials.hostmemory import oom_kills


def test_counters_of_both_versions_of_control_groups(tmp_path: Path) -> None:
    files = {
        "proc/vmstat": "nr_free 1\noom_kill 3\n",
        "proc/self/cgroup": "4:memory:/a\n3:cpuset:/\n0::/b/c\n",
        "sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
        "sys/fs/cgroup/b/c/memory.events": "low 0\noom 2\noom_kill 2\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert oom_kills(tmp_path) == (3, 1, 2)
    assert oom_kills(tmp_path / "nowhere") == ()


def test_this_machine_has_at_least_one() -> None:
    assert oom_kills()

"""From the version on to the commit, for a pure-Python distribution with a repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from bisect_env.bisection.records import Answer, Stage
from tests.bisection.world import Bisections, Listener, Rules
from tests.support import wheels
from tests.support.git_server import serving

WHO = {f"GIT_{role}_{what}": "t@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, env={**os.environ, **WHO})


def repository(folder: Path, versions: list[str], tags: dict[str, str]) -> Path:
    """A commit a version of alpha; ``tags`` by version."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for version in versions:
        shutil.rmtree(folder / "prebuilt", ignore_errors=True)
        wheels.tree(folder, "alpha", version)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"Work towards {version}")
        if version in tags:
            git(folder, "tag", tags[version])
    return folder


def test_the_commit_is_found_between_two_releases(bisections: Bisections, tmp_path: Path) -> None:
    bisections.offer("alpha", "1.0", "2.0")
    line = ["1.0", "1.1", "1.2", "1.3", "1.4", "2.0"]
    source = repository(tmp_path / "alpha", line, {"1.0": "v1.0", "2.0": "v2.0"})
    rules: Rules = [{"when": {"alpha": ">=1.3"}, "rate": 1, "says": "race"}]
    asked = bisections.specification({"alpha": "1.0"}, {"alpha": "2.0"}, rules, commits=(("alpha", str(source)),))
    listener = Listener()
    found = bisections.found(asked, listener)
    assert found.answer is Answer.CULPRIT, (found.sentence, found.notes)
    assert Stage.COMMITS in listener.stages
    assert found.commits is not None
    assert found.commits.subject == "Work towards 1.3"
    assert "Work towards 1.3" in found.sentence
    # The two sides of the smallest difference are two commits.
    assert found.locks is not None and all("git+file://" in lock for lock in found.locks)


def test_the_commit_is_found_in_a_repository_behind_a_url(bisections: Bisections, tmp_path: Path) -> None:
    bisections.offer("alpha", "1.0", "2.0")
    (tmp_path / "served").mkdir()
    repository(tmp_path / "served" / "alpha", ["1.0", "1.1", "1.2", "2.0"], {"1.0": "v1.0", "2.0": "v2.0"})
    rules: Rules = [{"when": {"alpha": ">=1.2"}, "rate": 1, "says": "race"}]
    with serving(tmp_path / "served") as server:
        commits = (("alpha", server.url("alpha")),)
        found = bisections.found(bisections.specification({"alpha": "1.0"}, {"alpha": "2.0"}, rules, commits=commits))
    assert found.answer is Answer.CULPRIT, (found.sentence, found.notes)
    assert found.commits is not None and found.commits.subject == "Work towards 1.2"
    assert found.tried.endswith("commits were tried.")


def test_a_repository_without_the_tags_leaves_it_at_the_version(bisections: Bisections, tmp_path: Path) -> None:
    bisections.offer("alpha", "1.0", "2.0")
    source = repository(tmp_path / "alpha", ["1.0", "2.0"], {})
    rules: Rules = [{"when": {"alpha": ">=1.3"}, "rate": 1, "says": "race"}]
    asked = bisections.specification({"alpha": "1.0"}, {"alpha": "2.0"}, rules, commits=(("alpha", str(source)),))
    found = bisections.found(asked)
    assert found.answer is Answer.CULPRIT and found.commits is None
    assert found.versions is not None and found.versions.first_bad == "2.0"
    assert any("no tag of alpha" in note for note in found.notes)

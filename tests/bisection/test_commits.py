"""Commits between two versions, in real repositories, and installed from there by the real uv."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from bisect_env.bisection import commits
from bisect_env.bisection.commits import Commits
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput
from tests.support.git_server import serving
from tests.support.wheels import tree


class Repository:
    """A scratch repository, each commit of which sets what ``x.py`` says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "t")
        self.git("config", "user.email", "t@example.org")

    def git(self, *args: str) -> str:
        return subprocess.run(
            ["git", *args], cwd=self.folder, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, subject: str, tag: str | None = None) -> str:
        (self.folder / "x.py").write_text(f"{subject!r}\n")
        self.git("add", "-A")
        self.git("commit", "--quiet", "--allow-empty", "-m", f"{subject}\n\nbody")
        if tag is not None:
            self.git("tag", tag)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "a repository")


def subjects(found: Commits) -> list[str]:
    return [commit.subject for commit in found.steps]


def test_both_ends_and_what_lies_between(repository: Repository) -> None:
    shas = [repository.commit(*args) for args in (("one", "v1.0"), ("two",), ("three",), ("four", "v1.1"), ("five",))]
    found = commits.between("x", commits.clone(str(repository.folder), Path("unused")), "1.0", "1.1")
    assert subjects(found) == ["one", "two", "three", "four"]
    assert [commit.sha for commit in found.steps] == shas[:4]
    assert (found.tags, found.downgrade, found.notes) == (("refs/tags/v1.0", "refs/tags/v1.1"), False, ())
    assert found.requirement(found.steps[1]) == f"x @ git+{repository.folder.as_uri()}@{shas[1]}"


def test_a_downgrade_goes_back(repository: Repository) -> None:
    for args in (("one", "1.0"), ("two",), ("three", "1.1")):
        repository.commit(*args)
    found = commits.between("x", repository.folder, "1.1", "1.0")
    assert (subjects(found), found.downgrade) == (["three", "two", "one"], True)


def test_a_merge_is_one_step(repository: Repository) -> None:
    repository.commit("one", "v1.0")
    repository.git("checkout", "--quiet", "-b", "topic")
    repository.commit("on the branch")
    repository.commit("on the branch again")
    repository.git("checkout", "--quiet", "main")
    repository.git("commit", "--quiet", "--allow-empty", "-m", "two")
    repository.git("merge", "--quiet", "--no-ff", "-m", "merged", "topic")
    repository.git("tag", "v1.1")
    assert subjects(commits.between("x", repository.folder, "1.0", "1.1")) == ["one", "two", "merged"]


@pytest.mark.parametrize("back", [False, True])
def test_a_release_that_was_tagged_on_a_branch_of_its_own(repository: Repository, back: bool) -> None:
    start = repository.commit("common")
    repository.git("checkout", "--quiet", "-b", "release-1.0")
    repository.commit("only there", "v1.0")
    repository.git("checkout", "--quiet", "main")
    repository.commit("two")
    repository.commit("three", "v1.1")
    found = commits.between("x", repository.folder, *(("1.1", "1.0") if back else ("1.0", "1.1")))
    if back:
        # Neither is an ancestor of the other: the line leads to the bad end, from where it left the good one.
        assert subjects(found) == ["common", "only there"]
    else:
        assert subjects(found) == ["common", "two", "three"]
    assert found.steps[0].sha == start
    assert start[:12] in found.notes[0]


def test_revisions_serve_where_there_is_no_tag(repository: Repository) -> None:
    first, last = repository.commit("one"), repository.commit("two")
    assert subjects(commits.between("x", repository.folder, first, "main")) == ["one", "two"]
    assert subjects(commits.between("x", repository.folder, last[:10], last)) == ["two"]


def test_versions_without_a_tag_and_histories_without_a_beginning(repository: Repository) -> None:
    repository.commit("one", "v1.0")
    with pytest.raises(BadInput, match=r"no tag of x 2\.0(.|\n)*it has v1\.0"):
        commits.between("x", repository.folder, "1.0", "2.0")
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.commit("elsewhere", "v2.0")
    with pytest.raises(BadInput, match="no history in common"):
        commits.between("x", repository.folder, "1.0", "2.0")
    for name in ("--output=/tmp/x", "-1"):
        with pytest.raises(BadInput, match="no tag"):
            commits.between("x", repository.folder, name, "1.0")


def test_a_distribution_in_a_folder_of_its_repository(repository: Repository) -> None:
    (repository.folder / "packages" / "x-lib").mkdir(parents=True)
    (repository.folder / "packages" / "x-lib" / "pyproject.toml").write_text('[project]\nname = "X_Lib"\n')
    (repository.folder / "pyproject.toml").write_text('[project]\nname = "workspace"\n')
    repository.commit("one", "x-lib-v1.0")
    sha = repository.commit("two", "x-lib-v1.1")
    found = commits.between("x-lib", repository.folder, "1.0", "1.1")
    assert found.requirement(found.steps[-1]).endswith(f"@{sha}#subdirectory=packages/x-lib")


def test_a_clone_of_a_url_is_made_once_and_brought_up_to_date(repository: Repository, tmp_path: Path) -> None:
    repository.commit("one", "v1.0")
    repository.commit("two", "v1.1")
    url = f"file://{repository.folder}".replace("a repository", "a%20repository")
    folder = commits.clone(url, tmp_path / "clones" / "x")
    assert subjects(commits.between("x", folder, "1.0", "1.1")) == ["one", "two"]
    repository.commit("three", "v1.2")
    assert commits.clone(url, folder) == folder
    assert subjects(commits.between("x", folder, "1.1", "1.2")) == ["two", "three"]
    assert commits.remote_tags(url) == ("v1.0", "v1.1", "v1.2")


@contextmanager
def served(how: str, repository: Repository) -> Iterator[str]:
    """A URL of the repository: of a folder, of git's own daemon, or over HTTP."""
    folder = repository.folder
    if how == "file":
        yield folder.as_uri().replace("file://", "file://localhost")
    elif how == "http":
        with serving(folder.parent) as server:
            yield server.url(quote(folder.name))
    else:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        options = ["--reuseaddr", "--export-all", "--listen=127.0.0.1", f"--port={port}"]
        process = subprocess.Popen(["git", "daemon", *options, f"--base-path={folder.parent}"], start_new_session=True)
        try:
            deadline = time.monotonic() + 20
            while not _listens(port) and time.monotonic() < deadline:
                time.sleep(0.05)
            yield f"git://127.0.0.1:{port}/{folder.name}"
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("how", ["file", "http", "git"])
def test_a_repository_behind_a_url(repository: Repository, tmp_path: Path, how: str) -> None:
    repository.commit("one", "v1.0")
    repository.commit("two")
    repository.commit("three", "v1.1")
    with served(how, repository) as url:
        commits.check(url, offline=False)
        folder = commits.clone(url, tmp_path / "clones" / "x")
        assert subjects(commits.between("x", folder, "1.0", "1.1")) == ["one", "two", "three"]
        repository.commit("four", "v1.2")
        assert commits.clone(url, folder) == folder
        assert subjects(commits.between("x", folder, "1.1", "1.2")) == ["three", "four"]
        assert commits.remote_tags(url) == ("v1.0", "v1.1", "v1.2")


def test_one_that_needs_a_password_is_refused_and_its_clone_is_not_begun(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("one", "v1.0")
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving(repository.folder.parent, "me", "word") as server:
        url = server.url(quote(repository.folder.name))
        for ask in (lambda: commits.check(url, offline=False), lambda: commits.clone(url, tmp_path / "clone")):
            with pytest.raises(BadInput, match="terminal prompts disabled") as raised:
                ask()
            assert "read without a password" in str(raised.value)
        assert not (tmp_path / "clone").exists()
        commits.check(url, offline=True)  # Nobody is asked then.
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password word\n")
        commits.check(url, offline=False)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://me:hidden@example.org/x.git", "credentials in the URL"),
        ("--upload-pack=touch /tmp/x", "no such folder"),
        ("--upload-pack=touch /tmp/x:y", "no repository"),
        ("ext::sh -c true", "no repository"),
        ("file:///nowhere/at/all", "does not appear to be a git repository|does not exist"),
    ],
)
def test_what_is_no_repository(tmp_path: Path, url: str, words: str) -> None:
    for ask in (lambda: commits.check(url, offline=False), lambda: commits.clone(url, tmp_path / "clone")):
        with pytest.raises(BadInput, match=words) as raised:
            ask()
        assert "hidden" not in str(raised.value)
    assert commits.remote_tags("file:///nowhere/at/all") == ()


def test_a_folder_without_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a git repository"):
        commits.clone(str(tmp_path), tmp_path / "clone")


def test_a_hooks_environment_means_no_other_repository(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("one", "v1.0")
    repository.commit("two", "v1.1")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert subjects(commits.between("x", repository.folder, "1.0", "1.1")) == ["one", "two"]


def test_uv_installs_each_commit(tmp_path: Path, uv: Uv) -> None:
    repository = Repository(tmp_path / "x")
    for version in ("1.0", "1.1"):
        for at in range(2):
            tree(repository.folder, "x", version, files={"x.py": f"SAYS = {version + str(at)!r}\n"})
            repository.git("add", "-A")
            repository.git("commit", "--quiet", "-m", f"{version} {at}")
        repository.git("tag", f"v{version}")
        subprocess.run(["git", "rm", "-rq", "."], cwd=repository.folder, check=True)
    found = commits.between("x", repository.folder, "1.0", "1.1")
    assert subjects(found) == ["1.0 1", "1.1 0", "1.1 1"]
    venv = tmp_path / "venv"
    assert uv.run(["venv", "--quiet", "--python", sys.executable, venv]).ok
    said = []
    for commit in found.steps:
        installed = uv.run(["pip", "install", "--quiet", "--python", venv / "bin/python", found.requirement(commit)])
        assert installed.ok, installed.stderr
        # Without byte code: files of one size and one second look the same to it.
        python = [str(venv / "bin/python"), "-Bc", "import x; print(x.SAYS)"]
        said.append(subprocess.run(python, capture_output=True, text=True, check=True).stdout.strip())
    assert said == ["1.01", "1.10", "1.11"]

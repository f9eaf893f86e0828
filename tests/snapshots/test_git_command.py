"""The user's git never asks back, ends in time, and says nothing that is secret."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from bisect_env.errors import InfrastructureError
from bisect_env.snapshots.git import Place, read
from bisect_env.snapshots.git_command import environment, git
from tests.support.git_server import serving


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "served" / "x"
    folder.mkdir(parents=True)
    (folder / "file.txt").write_text("content\n")
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for args in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-q", "-m", "one"], ["tag", "v1"]):
        subprocess.run(["git", *args], cwd=folder, check=True)
    return folder


def test_what_it_prints_and_what_it_reads(repository: Path) -> None:
    said = git(repository, ["cat-file", "--batch-check"], 30.0, b"main:file.txt\n")
    assert (said.status, said.words) == (0, "") and b" blob 8" in said.output
    failed = git(repository, ["rev-parse", "--verify", "nothing^{commit}"], 30.0)
    assert failed.status and failed.words == "Needed a single revision"


@pytest.mark.parametrize("user", ["", "me"])
def test_a_repository_that_needs_a_password_fails_at_once_and_nobody_is_asked(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    asked = tmp_path / "asked"
    prompt = tmp_path / "prompt"
    prompt.write_text(f"#!/bin/sh\ntouch '{asked}'\necho word\n")
    prompt.chmod(0o755)
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.setenv(name, str(prompt))
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving(repository.parent, "me", "word") as server:
        url = server.url("x").replace("//", f"//{user}@" if user else "//")
        began = time.monotonic()
        said = git(tmp_path, ["ls-remote", url], 30.0)
        assert time.monotonic() - began < 20
        assert said.status and "terminal prompts disabled" in said.words and server.asked
        assert not asked.exists()
        assert "me@" not in said.words
        # Who has it in ~/.netrc is let in.
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password word\n")
        (tmp_path / ".netrc").chmod(0o600)
        assert b"refs/tags/v1" in git(tmp_path, ["ls-remote", server.url("x")], 30.0).output


def test_what_does_not_answer_is_ended_with_all_that_git_has_started(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/never-answers"
        began = time.monotonic()
        with pytest.raises(InfrastructureError, match=r"git ls-remote did not come to an end within 1 s"):
            git(tmp_path, ["ls-remote", url], 1.0)
        assert time.monotonic() - began < 10
        deadline = time.monotonic() + 5
        while _running(url) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not _running(url)


def _running(words: str) -> list[bytes]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if words.encode() in line:
            found.append(line)
    return found


def test_no_git_and_no_folder_are_told_apart(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InfrastructureError, match="nowhere: there is no such folder"):
        git(tmp_path / "nowhere", ["status"], 10.0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfrastructureError, match="git was not found on PATH; it is needed for git status"):
        git(tmp_path, ["status"], 10.0)
    with pytest.raises(InfrastructureError, match=r"HEAD:file\.txt: git was not found"):
        read(Place("HEAD", "file.txt", repository), "HEAD:file.txt", 100)


def test_a_hooks_variables_mean_no_other_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert read(Place("HEAD", "file.txt", repository), "HEAD:file.txt", 100) == b"content\n"
    kept = environment({"GIT_DIR": "x", "GIT_SSH_COMMAND": "ssh -i key", "HOME": "/home/me", "GIT_ASKPASS": "x"})
    assert "GIT_DIR" not in kept and kept["GIT_SSH_COMMAND"] == "ssh -i key" and kept["HOME"] == "/home/me"
    assert kept["GIT_ASKPASS"] == "" and kept["GIT_TERMINAL_PROMPT"] == "0"


def test_no_terminal_is_left_to_ask_on(repository: Path) -> None:
    """An alias runs a shell, which sees what git's helpers see."""
    said = git(repository, ["-c", "alias.look=!ps -o sid= -p $$", "look"], 30.0)
    assert said.status == 0 and int(said.output) != os.getsid(0)

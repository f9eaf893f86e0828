"""The commits between two released versions of a pure-Python distribution, asked of git.

The line follows first parents back from the newer end: on a branch into which others are merged, each step is then one
merge, with all that came with it. Where the tag of the older end is not on that line (it was set on a branch of its
own), the line begins where it left the newer end's history, and a note says so.
"""

from __future__ import annotations

import posixpath
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from packaging.utils import canonicalize_name

from bisect_env.bisection.links import tag_of
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.matrix.urls import has_credentials, without_credentials
from bisect_env.snapshots.git_command import git

PATIENCE = 600.0
"""Seconds for a clone; the largest repositories of this kind take a minute or two."""
OPTION = "--source"
ANSWER = 30.0
"""Seconds for a repository to say which tags it has."""
_FIELD, _RECORD = "\x1f", "\x1e"


@dataclass(frozen=True)
class Commit:
    """One position of the line."""

    sha: str
    day: str
    """Of the commit, ``2026-03-01``: as of then its environment is resolved."""
    subject: str
    """First line of its message."""


@dataclass(frozen=True)
class Commits:
    """A line of commits from the good end to the bad one."""

    distribution: str
    folder: Path
    """The clone."""
    subdirectory: str
    """Where in the repository the distribution is; empty: at its top."""
    steps: tuple[Commit, ...]
    """Both ends included; position 0 is the good one."""
    tags: tuple[str, str]
    """Tag, or revision, of the good and of the bad end."""
    downgrade: bool
    """The good end is the newer one."""
    notes: tuple[str, ...]

    def source(self, commit: Commit) -> str:
        """The URL that an installer takes: what follows ``name @``."""
        part = f"#subdirectory={quote(self.subdirectory)}" if self.subdirectory else ""
        return f"git+{self.folder.as_uri()}@{commit.sha}{part}"

    def requirement(self, commit: Commit) -> str:
        """The requirement line of a commit, by a ``file:`` URL: nothing is fetched twice."""
        return f"{self.distribution} @ {self.source(commit)}"


def check(repository: str, offline: bool) -> None:
    """Whether there is such a repository, and it can be read, before anything is built for it.

    Args:
        repository: as it was given.
        offline: no URL is asked.

    Raises:
        BadInput: it has credentials in it, or there is none, in git's words.
        InfrastructureError: git is missing or does not answer in time.
    """
    local, url = _place(repository)
    if local is not None:
        _git(local, ["rev-parse", "--git-dir"], OPTION)
    elif not offline:
        _git(Path.cwd(), ["ls-remote", "--tags", "--", url], f"{OPTION} {url}", patience=ANSWER)


def clone(repository: str, folder: Path) -> Path:
    """A local clone of a repository, with all tags: a local one as it is, else a bare one that is made in ``folder``.

    One of the same repository that is there already is brought up to date.

    Raises:
        BadInput: the URL has credentials in it, or there is no such repository, in git's words.
        InfrastructureError: git is missing or does not answer in time.
    """
    local, url = _place(repository)
    if local is not None:
        top = _git(local, ["rev-parse", "--absolute-git-dir"], repository).strip()
        return local.resolve() if (local / ".git").exists() else Path(top)
    if (folder / "HEAD").is_file():
        _git(folder, ["fetch", "--quiet", "--tags", "--force", "--", url, "+refs/heads/*:refs/heads/*"], repository)
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Not partial: installers clone from it again, commit by commit.
    _git(folder.parent, ["clone", "--quiet", "--bare", "--", url, str(folder)], repository)
    return folder


def _place(repository: str) -> tuple[Path | None, str]:
    """The folder of a local clone, or the URL of what is not one.

    Raises:
        BadInput: it has credentials in it, or is what git would take for something else.
    """
    if has_credentials(repository):
        wanted = "the URL without them, and the credentials in ~/.netrc or git's credential helper"
        raise BadInput(OPTION, "", f"{without_credentials(repository)}: credentials in the URL", wanted)
    wanted = "a local clone with its tags, or the URL of a git repository (https://..., ssh://...)"
    local = _local(repository)
    url = repository.removeprefix("git+")
    if local is None and ":" not in url:
        raise BadInput(OPTION, "", f"{repository}: no such folder", wanted)
    if local is None and (url.startswith("-") or "::" in url.partition("/")[0]):
        raise BadInput(OPTION, "", f"{repository}: no repository", wanted)
    return local, url


def tags(folder: Path) -> tuple[str, ...]:
    """All tags of a clone. Raises as :func:`clone`."""
    return tuple(_git(folder, ["tag", "--list"], str(folder)).split())


def remote_tags(url: str) -> tuple[str, ...]:
    """All tags of a repository that is not cloned, for links; empty where it does not answer or needs a password."""
    try:
        told = _git(Path.cwd(), ["ls-remote", "--tags", "--refs", "--", url], url, patience=15.0)
    except (BadInput, InfrastructureError):
        return ()
    return tuple(line.rpartition("refs/tags/")[2] for line in told.splitlines() if "refs/tags/" in line)


def between(distribution: str, folder: Path, good: str, bad: str) -> Commits:
    """The line of commits from ``good`` to ``bad``: released versions, whose tags are looked up, or git revisions.

    Raises:
        BadInput: a version has no tag, or the two ends have no history in common.
        InfrastructureError: git is missing or does not answer in time.
    """
    known = tags(folder)
    ends = [_revision(distribution, folder, version, known) for version in (good, bad)]
    first, last = (_commit(folder, name) for name in ends)
    downgrade = _is_ancestor(folder, last, first) and first != last
    older, newer = (last, first) if downgrade else (first, last)
    line = _git(folder, ["rev-list", "--first-parent", "--reverse", newer, f"^{older}"], str(folder)).split()
    notes = []
    start = older
    if line:
        parent = _git(folder, ["rev-list", "--first-parent", "--max-count=2", line[0]], str(folder)).split()[1:]
        if not parent:
            found = f"no history in common of {ends[0]} and {ends[1]}"
            raise BadInput(str(folder), "", found, "two versions of one line of development")
        start = parent[0]
    if start != older:
        end = ends[1] if downgrade else ends[0]
        notes.append(f"{end} is not on the line of first parents: the line begins at {start[:12]}, where it left it")
    steps = _described(folder, [start, *line])
    if downgrade:
        steps.reverse()
    return Commits(
        distribution,
        folder,
        _subdirectory(distribution, folder, newer),
        tuple(steps),
        (ends[0], ends[1]),
        downgrade,
        tuple(notes),
    )


def _local(repository: str) -> Path | None:
    path = Path(repository.removeprefix("git+").removeprefix("file://")).expanduser()
    return path.absolute() if path.is_dir() else None


def _revision(distribution: str, folder: Path, version: str, known: Sequence[str]) -> str:
    tag = tag_of(distribution, version, known)
    if tag is not None:
        return f"refs/tags/{tag}"
    if not version.startswith("-") and _try(folder, ["rev-parse", "--verify", "--quiet", f"{version}^{{commit}}"]):
        return version
    near = ", ".join(known[-3:]) or "no tags at all"
    wanted = f"a repository that tags its releases as v{version}, {version} or {distribution}-{version}; it has {near}"
    raise BadInput(str(folder), "", f"no tag of {distribution} {version}", wanted)


def _commit(folder: Path, revision: str) -> str:
    return _git(folder, ["rev-parse", "--verify", f"{revision}^{{commit}}"], str(folder)).strip()


def _is_ancestor(folder: Path, one: str, other: str) -> bool:
    return _try(folder, ["merge-base", "--is-ancestor", one, other])


def _described(folder: Path, shas: Sequence[str]) -> list[Commit]:
    form = f"--format=%H{_FIELD}%cs{_FIELD}%s{_RECORD}"
    told = _git(folder, ["log", "--no-walk=unsorted", "--stdin", form], str(folder), "\n".join(shas) + "\n")
    found = {}
    for record in told.split(_RECORD):
        if record.strip():
            sha, day, subject = record.strip("\n").split(_FIELD, 2)
            found[sha] = Commit(sha, day, without_credentials(subject))
    return [found[sha] for sha in shas]


def _subdirectory(distribution: str, folder: Path, commit: str) -> str:
    """The folder of a repository that has several distributions; empty where it is at the top, or not to be found."""
    files = _git(folder, ["ls-tree", "-r", "-z", "--name-only", commit], str(folder)).split("\0")
    projects = [name for name in files if posixpath.basename(name) == "pyproject.toml"]
    wanted = canonicalize_name(distribution)
    for name in sorted(projects, key=lambda path: path.count("/")):
        text = _git(folder, ["cat-file", "blob", f"{commit}:{name}"], str(folder))
        try:
            project = tomllib.loads(text).get("project", {})
        except tomllib.TOMLDecodeError:
            continue
        if canonicalize_name(str(project.get("name", ""))) == wanted:
            return posixpath.dirname(name)
    top = {"pyproject.toml", "setup.py", "setup.cfg"} & set(files)
    own = [name for name in files if name.endswith("/setup.py") and wanted == canonicalize_name(name.split("/")[-2])]
    return "" if top or not own else posixpath.dirname(own[0])


def _git(folder: Path, args: Sequence[str], about: str, stdin: str = "", patience: float = PATIENCE) -> str:
    """What git prints. Raises BadInput with git's words where it fails."""
    said = git(folder, args, patience, stdin.encode())
    if said.status:
        wanted = "a local clone with its tags, or the URL of a git repository that can be read without a password"
        raise BadInput(without_credentials(about), "", said.words, wanted)
    return said.output.decode("utf-8", "replace")


def _try(folder: Path, args: Sequence[str]) -> bool:
    return not git(folder, args, PATIENCE).status

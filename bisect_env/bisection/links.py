"""From what a project says of itself to its repository, the comparison of two tags, and its release notes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bisect_env.bisection.records import Link

_SOURCE = ("source", "repository", "sourcecode", "github", "gitlab", "code", "homepage", "home", "bugtracker", "issues")
"""Labels of project URLs that lead to the source, the surest first (PEP 753's well-known ones, and old habits)."""
_NOTES = ("releasenotes", "changelog", "changes", "history", "whatsnew", "releases")
_HOSTS = re.compile(r"(www\.)?(github|gitlab|codeberg)\.[a-z]+|gitlab\.[\w.-]+|git\.[\w.-]+|bitbucket\.org")
_RELEASE = frozenset({"", "v", "version", "ver", "release", "releases", "rel", "r"})
"""What stands before the version in a tag besides the distribution's own name."""


@dataclass(frozen=True)
class Repository:
    """A source repository on a host whose pages have known addresses."""

    url: str
    """``https://github.com/huggingface/transformers``, without ``.git`` and without a slash at its end."""

    @property
    def clone(self) -> str:
        """What ``git clone`` takes."""
        return f"{self.url}.git"

    @property
    def gitlab(self) -> bool:
        """GitLab's pages are elsewhere than GitHub's, whose form Codeberg shares."""
        return "gitlab" in (urlsplit(self.url).hostname or "")

    def comparison(self, good: str, bad: str) -> str:
        """The page of all changes between two tags or commits."""
        start, between = ("/-/compare", "...") if self.gitlab else ("/compare", "...")
        return f"{self.url}{start}/{quote(good, safe='')}{between}{quote(bad, safe='')}"

    def release(self, tag: str) -> str:
        """The page of a tag's release notes."""
        return (
            f"{self.url}/-/releases/{quote(tag, safe='')}"
            if self.gitlab
            else f"{self.url}/releases/tag/{quote(tag, safe='')}"
        )

    def commit(self, sha: str) -> str:
        """The page of a commit."""
        return f"{self.url}{'/-' if self.gitlab else ''}/commit/{sha}"


def repository(urls: Iterable[tuple[str, str]]) -> Repository | None:
    """The repository that a project's URLs (label, URL) name; None when none of them is one."""
    by_label = [(_label(label), url) for label, url in urls]
    ranked = sorted(by_label, key=lambda each: _SOURCE.index(each[0]) if each[0] in _SOURCE else len(_SOURCE))
    for _, url in ranked:
        found = _repository(url)
        if found is not None:
            return found
    return None


def tag_of(distribution: str, version: str, tags: Iterable[str]) -> str | None:
    """The tag of a released version: ``v1.2``, ``1.2``, ``name-1.2``, ``name/v1.2``, ``release-1.2``; None without one.

    Versions are compared as such (``v1.2`` is 1.2.0), a local label apart. Of several the plainest is taken.
    """
    try:
        wanted = Version(Version(version).public)
    except InvalidVersion:
        return None
    name = canonicalize_name(distribution)
    found = []
    for tag in tags:
        match = re.fullmatch(r"(?P<before>.*?)[-_/@=.]*?(?P<version>\d+[.\w+!-]*)", tag)
        if match is None or not _belongs(match["before"], name):
            continue
        # Some write the dots of a version as hyphens or underscores.
        if any(_is(text, wanted) for text in (match["version"], re.sub(r"[-_]", ".", match["version"]))):
            found.append(tag)
    return min(found, key=lambda tag: (len(tag), tag), default=None)


def links(
    distribution: str, urls: Sequence[tuple[str, str]], good: str, bad: str, tags: Sequence[str] = ()
) -> tuple[Link, ...]:
    """What there is to read between two versions: release notes, the comparison, the repository.

    ``tags`` are those of the repository; without them no address of a tag is made up.
    """
    found = []
    notes = next((url for label, url in urls if _label(label) in _NOTES and _web(url)), None)
    if notes is not None:
        found.append(Link("release notes", notes))
    source = repository(urls)
    if source is None:
        return tuple(found)
    ends = [tag_of(distribution, version, tags) for version in (good, bad)]
    if ends[1] is not None and notes is None:
        found.append(Link(f"release notes of {bad}", source.release(ends[1])))
    if ends[0] is not None and ends[1] is not None:
        found.append(Link(f"changes from {good} to {bad}", source.comparison(ends[0], ends[1])))
    if not found:
        found.append(Link("source repository", source.url))
    return tuple(found)


def _is(text: str, wanted: Version) -> bool:
    try:
        return Version(text) == wanted
    except InvalidVersion:
        return False


def _label(label: str) -> str:
    """PEP 753: without punctuation and blanks, in small letters."""
    return re.sub(r"[^a-z0-9]", "", label.lower())


def _web(url: str) -> bool:
    return urlsplit(url).scheme in ("http", "https")


def _repository(url: str) -> Repository | None:
    parts = urlsplit(url.removeprefix("git+"))
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https", "ssh", "git") or _HOSTS.fullmatch(host) is None:
        return None
    path = parts.path.strip("/").partition("/-/")[0]
    pieces = path.split("/")
    if "gitlab" not in host:
        pieces = pieces[:2]
    if len(pieces) < 2 or pieces[0] in ("orgs", "sponsors", "users"):
        return None
    return Repository(f"https://{host.removeprefix('www.')}/{'/'.join(pieces).removesuffix('.git')}")


def _belongs(before: str, name: str) -> bool:
    """Whether what stands before a tag's version means this distribution and no other of the same repository."""
    words = [word for word in re.split(r"[-_/@=. ]+", before.lower()) if word]
    own = name.split("-")
    if words[: len(own)] == own:
        words = words[len(own) :]
    return all(word in _RELEASE for word in words)

"""The released versions between a good and a bad one, in the order in which a bisection walks them. Pure.

Rules

- Position 0 is the good version and the last one the bad one, as they were written. Where the good one is the newer
  one, the line goes down: the culprit is then the step at which it breaks on the way back.
- Yanked versions are left out, and named in a note.
- Pre-releases are left out, unless they are asked for or one of the ends is one of the same kind: development releases
  only when they are asked for, or an end is a development release.
- A version that an index has in several builds (``2.11.0+cu128``, ``2.11.0+cu130``) is one step, in the build of the
  good side for as long as the index has it, then in that of the bad side. The change of the build is a step of its own
  wherever one version has both. A version that has neither is taken without a label, or left out and named.
- Other local labels (``1.0+local.2``) are versions like any other: builds of one's own between two releases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from packaging.version import InvalidVersion, Version

from bisect_env.environments.distributions import same_version
from bisect_env.matrix.versions import Release

_BUILD = re.compile(r"cu\d+|(?<![a-z])(cpu|xpu|rocm)")
"""In a local label: one version built several times (``cu128``, ``pt27cu126``, ``cu12torch2.8cxx11abitrue``)."""


@dataclass(frozen=True)
class Step:
    """One position of the line."""

    version: str
    """As it is to be pinned, with the label of its build."""
    uploaded: datetime | None = None
    """When its newest file was; None where the index does not tell."""
    unusable: str = ""
    """Why it is known not to install here, before anything is resolved; it can be blamed all the same."""

    @property
    def as_of(self) -> str | None:
        """The day (UTC) as of which its environment is resolved; None where the index does not tell.

        What else the environment pins must have been uploaded by then: the newest of all these days is meant.
        """
        return None if self.uploaded is None else self.uploaded.astimezone(UTC).date().isoformat()


@dataclass(frozen=True)
class Versions:
    """A line from the good version to the bad one."""

    distribution: str
    steps: tuple[Step, ...]
    """Both ends included."""
    downgrade: bool
    """The good version is the newer one."""
    notes: tuple[str, ...]


def line(distribution: str, releases: Iterable[Release], good: str, bad: str, *, prereleases: bool = False) -> Versions:
    """The line from ``good`` to ``bad`` through what an index has.

    An end that the index does not have stays the end it is. Raises ValueError when an end is no version: there is no
    order then.
    """
    try:
        first, last = Version(good), Version(bad)
    except InvalidVersion as error:
        raise ValueError(f"{distribution}: {error}; its versions have no order") from error
    # Two builds of one version have no order that means anything.
    downgrade = first > last and not (first.public == last.public and (_is_build(first) or _is_build(last)))
    low, high = sorted((first, last))
    known = _by_version(releases)
    between = [version for version in known if low < version < high or _same_release(version, low, high)]
    notes = list[str]()
    kept = []
    for version in sorted(between):
        if known[version].yanked:
            notes.append(f"{distribution} {version} was yanked, and is left out")
        elif not _wanted(version, (first, last), prereleases):
            continue
        else:
            kept.append(version)
    left_out = sum(
        not known[version].yanked and version not in kept for version in between if version not in (low, high)
    )
    if left_out:
        plural = "pre-release is" if left_out == 1 else "pre-releases are"
        notes.append(f"{left_out} {plural} left out of the versions of {distribution}")
    path, more = _path(distribution, kept, first, last)
    inner = [version for version in path if version not in (first, last)]
    steps = [_step(version, known) for version in inner]
    ends = [
        Step(end, known[version].uploaded if version in known else None)
        for end, version in ((good, first), (bad, last))
    ]
    # One version in two spellings is no line.
    steps = [ends[0], *steps, ends[1]] if not same_version(good, bad) else ends[:1]
    return Versions(distribution, tuple(steps), downgrade, (*notes, *more))


def _by_version(releases: Iterable[Release]) -> dict[Version, Release]:
    found = {}
    for release in releases:
        try:
            found[Version(release.version)] = release
        except InvalidVersion:
            continue  # As pip and uv do: it cannot be asked for.
    return found


def _same_release(version: Version, low: Version, high: Version) -> bool:
    """Another build of an end: its label may sort outside of the range, and it may be the step between two builds."""
    return _is_build(version) and version not in (low, high) and version.public in (low.public, high.public)


def _is_build(version: Version) -> bool:
    return version.local is not None and _BUILD.search(version.local) is not None


def _wanted(version: Version, ends: tuple[Version, Version], prereleases: bool) -> bool:
    if prereleases or not version.is_prerelease:
        return True
    if version.is_devrelease:
        return any(end.is_devrelease for end in ends)
    return any(end.is_prerelease for end in ends)


def _path(
    distribution: str, versions: Sequence[Version], first: Version, last: Version
) -> tuple[list[Version], tuple[str, ...]]:
    """One build of each version, from the good end to the bad one; notes on what had to be left out."""
    builds: dict[Version, dict[str | None, Version]] = {}
    for version in (*versions, first, last):
        public = Version(version.public)
        if _is_build(version):
            builds.setdefault(public, {})[version.local] = version
        elif version.local is not None:
            builds.setdefault(version, {})[None] = version  # A version of its own.
        else:
            builds.setdefault(public, {})[None] = version
    labels = [end.local if _is_build(end) else None for end in (first, last)]
    path, notes, missing = list[Version](), list[str](), list[str]()
    ordered = sorted(builds, reverse=first > last)
    switch = _switch(ordered, builds, labels)
    for at, public in enumerate(ordered):
        own = builds[public]
        wanted = labels[:1] if at < switch else labels[1:] if at > switch else list(dict.fromkeys(labels))
        found = [own[label] for label in wanted if label in own] or ([own[None]] if None in own else [])
        if not found and len(own) == 1 and None in labels:
            found = list(own.values())  # The only build there is, where builds were not asked for.
        if found:
            path += found
        else:
            missing.append(str(public))
    if missing:
        said = " or ".join(sorted({label for label in labels if label is not None})) or "unlabelled"
        notes.append(f"left out, since the index has no {said} build of it: {distribution} {', '.join(missing)}")
    if labels[0] != labels[1]:
        notes.append(
            f"{distribution} changes its build from {labels[0] or 'one without a label'} to "
            f"{labels[1] or 'one without a label'} on the way; where one version has both, that is a step of its own"
        )
    return path, tuple(notes)


def _switch(
    ordered: Sequence[Version], builds: dict[Version, dict[str | None, Version]], labels: Sequence[str | None]
) -> int:
    """Where the build changes: at the last version that has both, else behind the last that has the good side's."""
    both = [at for at, public in enumerate(ordered) if all(label in builds[public] for label in labels)]
    if both:
        return both[-1]
    own = [at for at, public in enumerate(ordered) if labels[0] in builds[public]]
    return own[-1] if own else 0


def _step(version: Version, known: dict[Version, Release]) -> Step:
    release = known.get(version)
    return Step(str(version), None if release is None else release.uploaded)

"""Which distributions differ between two snapshots, and which cannot be compared: a note, and never a guess."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bisect_env.environments import variants
from bisect_env.environments.distributions import same_version
from bisect_env.snapshots.records import Distribution, Snapshot

INTERPRETER = frozenset({"python", "python-abi"})
"""What conda lists as packages and is compared as the Python."""
UNFROZEN = frozenset({"distribute", "pip", "setuptools", "wheel"})
"""What ``pip freeze`` leaves out unless it is asked for all."""

_GIT = re.compile(r"(?P<place>git\+[^#]*?)(?:@(?P<commit>[^@/#]+))?(?:#.*)?")
_HASH = re.compile(r"#.*?\b(sha\d+=[0-9a-f]+)")


@dataclass(frozen=True)
class Change:
    """One thing that differs: a distribution, a variable."""

    name: str
    good: str | None
    """Version as it was written, or the source where no version is told, or a variable's value; None: absent."""
    bad: str | None
    good_source: str = ""
    """Where it was installed from, as :attr:`Distribution.source`."""
    bad_source: str = ""

    @property
    def both(self) -> bool:
        """It exists on both sides, in different states."""
        return self.good is not None and self.bad is not None


@dataclass(frozen=True)
class Compared:
    """The distributions of two snapshots, side by side."""

    changes: tuple[Change, ...]
    """By name. Torch is one of them, with equal versions, where only its CUDA variant differs."""
    notes: tuple[str, ...]
    """What could not be compared, and why."""
    variants: tuple[str, str] | None = None
    """Torch's CUDA variant on each side, where both tell it and it differs."""


def compare(good: Snapshot, bad: Snapshot) -> Compared:
    """The distributions that differ. One that a side's form does not cover is noted, and is no difference."""
    ours, theirs = _effective(good), _effective(bad)
    notes = [*_managers(good), *_managers(bad)]
    changes: list[Change] = []
    builds = _builds(good, bad)
    for name in sorted(ours.keys() & theirs.keys()):
        why = _incomparable(ours[name], theirs[name])
        if name == "torch" and builds is not None:
            changes.append(_change(name, ours[name], theirs[name]))
        elif why:
            notes.append(f"{name}: not compared, {why}")
        elif _differ(ours[name], theirs[name], good, bad):
            changes.append(_change(name, ours[name], theirs[name]))
        else:
            notes += _doubts(ours[name], theirs[name], good, bad)
    for here, there, snapshot, other in ((ours, theirs, good, bad), (theirs, ours, bad, good)):
        alone = [here[name] for name in sorted(here.keys() - there.keys())]
        covered, more = _covered(alone, snapshot, other)
        notes += more
        for each in covered:
            changes.append(_change(each.name, *((each, None) if here is ours else (None, each))))
    return Compared(tuple(sorted(changes, key=lambda change: change.name)), tuple(notes), builds)


def variant_of(snapshot: Snapshot) -> str | None:
    """The CUDA variant of the snapshot's torch, by its label or as the source says; None where neither tells."""
    torch = _effective(snapshot).get("torch")
    label = None if torch is None or torch.version is None else variants.label_of(torch.version)
    return label if label is not None and variants.LABEL.fullmatch(label) else snapshot.cuda


def _effective(snapshot: Snapshot) -> dict[str, Distribution]:
    """Of two of one name pip's: it is installed over conda's files, and Python imports it."""
    found: dict[str, Distribution] = {}
    for each in snapshot.distributions:
        if each.manager == "conda" and (each.name in INTERPRETER or each.name in found):
            continue
        found[each.name] = each
    return found


def _managers(snapshot: Snapshot) -> list[str]:
    """A sentence for each distribution that pip and conda have in different versions."""
    by_name: dict[str, list[Distribution]] = {}
    for each in snapshot.distributions:
        by_name.setdefault(each.name, []).append(each)
    return [
        f"{name}: in {snapshot.origin} {' and '.join(f'{each.manager} has {_told(each)}' for each in several)}; "
        f"compared is pip's"
        for name, several in sorted(by_name.items())
        if len(several) > 1
    ]


def _told(distribution: Distribution) -> str:
    return distribution.version or distribution.source or "no version that is told"


def _change(name: str, good: Distribution | None, bad: Distribution | None) -> Change:
    return Change(
        name,
        None if good is None else _told(good),
        None if bad is None else _told(bad),
        "" if good is None else _asked(good.source),
        "" if bad is None else _asked(bad.source),
    )


def _asked(source: str) -> str:
    """A source that an installer can be asked for: a URL. (What conda built has none.)"""
    return source if "://" in source or source.startswith("file:") else ""


def _incomparable(good: Distribution, bad: Distribution) -> str:
    """Why nobody can tell whether the two are the same; empty when it can be told."""
    if good.version is not None and bad.version is not None:
        return ""
    if good.source and bad.source:
        # A folder's content is not known from its path, and neither is a branch's from its name.
        both_git = _GIT.fullmatch(good.source) and _GIT.fullmatch(bad.source)
        return "" if both_git else "what was installed from the two places is not known"
    unknown = good if good.version is None else bad
    side = "on the good side" if good.version is None else "on the bad side"
    return f"its version is not known {side}" + (f" ({unknown.note})" if unknown.note else "")


def _differ(good: Distribution, bad: Distribution, ours: Snapshot, theirs: Snapshot) -> bool:
    if good.version is None or bad.version is None:
        return _place(good.source) != _place(bad.source)
    if not same_version(good.version, bad.version):
        return not (good.name in variants.FAMILY and _same_build(good.version, bad.version, ours.cuda, theirs.cuda))
    one, other = _GIT.fullmatch(good.source), _GIT.fullmatch(bad.source)
    if one is not None and other is not None:
        return _place(good.source) != _place(bad.source)
    hashes = [_HASH.search(each.source) for each in (good, bad)]
    return hashes[0] is not None and hashes[1] is not None and hashes[0][1] != hashes[1][1]


def _same_build(good: str, bad: str, good_cuda: str | None, bad_cuda: str | None) -> bool:
    """``2.11.0`` is what metadata says of a build that calls itself ``2.11.0+cu128``: the same until known better."""
    try:
        one, other = Version(good), Version(bad)
    except InvalidVersion:
        return False
    if one.public != other.public or (one.local is None) == (other.local is None):
        return False
    return (one.local or good_cuda or other.local) == (other.local or bad_cuda or one.local)


def _place(source: str) -> tuple[str, str]:
    """Repository and commit of a git source; other sources as they are."""
    match = _GIT.fullmatch(source)
    if match is None:
        return source, ""
    return re.sub(r"^git\+|\.git$|/$", "", match["place"].lower()), match["commit"] or ""


def _doubts(good: Distribution, bad: Distribution, ours: Snapshot, theirs: Snapshot) -> list[str]:
    """What may differ all the same although the versions are equal."""
    name, version = good.name, _told(good)
    git = [each for each in (good, bad) if each.source.startswith("git+")]
    if len(git) == 1:
        here, there = (ours, theirs) if git[0] is good else (theirs, ours)
        return [
            f"{name}: {version} on both sides, in {here.origin} from {git[0].source}; {there.origin} tells no source"
        ]
    builds = [each.source for each in (good, bad) if each.manager == "conda" and each.source]
    if len(set(builds)) == 2:
        return [f"{name}: {version} on both sides, in different builds of conda: {' and '.join(builds)}"]
    folders = [each for each in (good, bad) if each.source.startswith("file:") and not _archive(each.source)]
    if folders:
        return [f"{name}: {version} on both sides; what stands in {folders[0].source} is not compared"]
    if version.startswith("0+unknown"):
        return [f"{name}: both sides say {version}, which may be two different builds"]
    labels = [None if each.version is None else variants.label_of(each.version) for each in (good, bad)]
    if name == "torch" and labels[0] != labels[1] and (variant_of(ours) is None or variant_of(theirs) is None):
        unknown = ours if variant_of(ours) is None else theirs
        return [f"{name}: the CUDA variant is not told in {unknown.origin}, so that it is not compared"]
    return []


def _archive(source: str) -> bool:
    return re.search(r"\.(whl|tar\.gz|zip)(#.*)?$", source) is not None


def _covered(
    alone: Sequence[Distribution], snapshot: Snapshot, other: Snapshot
) -> tuple[list[Distribution], list[str]]:
    """Of the distributions that only ``snapshot`` has those that ``other`` would have listed; notes on the rest."""
    if other.partial:
        return [], _unlisted(alone, snapshot, f"{other.origin} ({other.form}) does not list everything")
    ranged, unread = set(_names(other.ranges)), {_first_name(each.text) for each in other.unread}
    conda = any(each.manager == "conda" for each in other.distributions)
    covered, apart = list[Distribution](), dict[str, list[Distribution]]()
    for each in alone:
        if each.name in ranged:
            why = f"{other.origin} has only a range for it"
        elif each.name in unread:
            why = f"{other.origin} has a line on it that could not be read"
        elif each.manager == "conda" and not conda:
            why = f"{other.origin} does not list what conda installs"
        elif each.name in UNFROZEN and "freeze" in other.form:
            why = "pip freeze leaves them out"
        else:
            covered.append(each)
            continue
        apart.setdefault(why, []).append(each)
    return covered, [note for why, several in apart.items() for note in _unlisted(several, snapshot, why)]


def _unlisted(several: Sequence[Distribution], snapshot: Snapshot, why: str) -> list[str]:
    if not several:
        return []
    names = ", ".join(f"{each.name} {_told(each)}" for each in several)
    return [f"in {snapshot.origin} only, and not compared, since {why}: {names}"]


def _names(requirements: Iterable[str]) -> Iterable[str]:
    for line in requirements:
        try:
            yield canonicalize_name(Requirement(line).name)
        except InvalidRequirement:
            yield _first_name(line)


def _first_name(text: str) -> str:
    match = re.search(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", text)
    return "" if match is None else canonicalize_name(match[0])


def _builds(good: Snapshot, bad: Snapshot) -> tuple[str, str] | None:
    if not good.of("torch") or not bad.of("torch"):
        return None
    one, other = variant_of(good), variant_of(bad)
    return (one, other) if one is not None and other is not None and one != other else None

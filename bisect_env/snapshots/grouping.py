"""Which changed distributions move together: those that no environment can have at different levels.

Two changed distributions are one factor when

1. one of them, there on both sides, requires the other by ``==`` (``==13.0.*`` included) on either side, and the
   other's version of the other side is not that one; or
2. neither mix is allowed: what is required on the one side or the other excludes both.

A distribution that is there on one side only goes with the changed ones that require it there. Where these are in
several factors it follows them: it is there when one of them is at the level that needs it.

Where the requirements of torch are not known, its own family (triton, NVIDIA's libraries, torchvision, torchaudio)
moves together by name: torch's wheels have pinned all of these since 2.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bisect_env.environments import variants
from bisect_env.snapshots.changes import Change

TRITON = frozenset({"triton", "triton-windows", "pytorch-triton", "pytorch-triton-rocm", "pytorch-triton-xpu"})
"""Triton, and what stands in for it."""
_LIBRARY = re.compile(
    r"nvidia-(cublas|cuda-(cccl|crt|cupti|nvcc|nvrtc|runtime)|cudnn|cufft|cufile|curand|cusolver|cusparse|cusparselt|nccl"
    r"|nvjitlink|nvshmem|nvtx|nvvm)(-cu\d+)?|cuda-toolkit"
)

Requirements = Mapping[str, Sequence[Requirement]]
"""Of each changed distribution of one side what it requires there; one whose requirements are unknown is missing."""


@dataclass(frozen=True)
class Groups:
    """The changed distributions, each in one group or following several."""

    groups: tuple[tuple[str, ...], ...]
    """Names; the first is the one that the others come with."""
    followers: tuple[tuple[str, tuple[str, ...]], ...]
    """Name of a distribution of one side only, and first names of the groups that require it."""


def active(lines: Mapping[str, Sequence[str] | None], environment: Mapping[str, str]) -> Requirements:
    """What holds of ``Requires-Dist`` lines by name in a marker environment; extras where one of the others asks."""
    parsed = {name: [*_parsed(of)] for name, of in lines.items() if of is not None}
    extras: dict[str, set[str]] = {name: set() for name in parsed}
    while True:
        found = {
            name: tuple(each for each in every if _holds(each, environment, extras[name]))
            for name, every in parsed.items()
        }
        holding = [each for every in found.values() for each in every]
        asked = {(canonicalize_name(each.name), extra) for each in holding for extra in each.extras}
        new = [(name, extra) for name, extra in asked if name in extras and extra not in extras[name]]
        if not new:
            return found
        for name, extra in new:
            extras[name].add(extra)


def in_family(name: str) -> bool:
    """True for what is built for one torch."""
    return name in TRITON or name in variants.FAMILY or _LIBRARY.fullmatch(name) is not None


def grouped(changes: Sequence[Change], good: Requirements, bad: Requirements) -> Groups:
    """The changed distributions in groups. Symmetric: exchanging the sides changes nothing."""
    by_name = {change.name: change for change in changes}
    joined = _Joined(by_name)
    for one, other in _ties(by_name, good, bad):
        joined.join(one, other)
    for one, other in _family(by_name, good, bad):
        joined.join(one, other)
    required = _required(by_name, good, bad)
    several: dict[str, tuple[str, ...]] = {}
    for members in joined.sets():
        roots = _roots_of(members, by_name, required)
        if len({joined.of(root) for root in roots}) == 1:
            joined.join(members[0], min(roots))
        elif roots:
            several |= dict.fromkeys(members, tuple(sorted(roots)))
    kept = [_ordered(members, by_name, required) for members in joined.sets() if members[0] not in several]
    first = {name: group[0] for group in kept for name in group}
    return Groups(
        tuple(sorted(kept)),
        tuple((name, tuple(sorted({first[root] for root in roots}))) for name, roots in sorted(several.items())),
    )


class _Joined:
    """Sets that are joined; each is known by its smallest name."""

    def __init__(self, names: Iterable[str]) -> None:
        self._set: dict[str, tuple[str, ...]] = {name: (name,) for name in names}

    def of(self, name: str) -> str:
        return self._set[name][0]

    def sets(self) -> tuple[tuple[str, ...], ...]:
        return tuple(sorted(set(self._set.values())))

    def join(self, one: str, other: str) -> None:
        together = tuple(sorted({*self._set[one], *self._set[other]}))
        for name in together:
            self._set[name] = together


def _parsed(lines: Iterable[str]) -> Iterable[Requirement]:
    for line in lines:
        try:
            yield Requirement(line)
        except InvalidRequirement:
            continue  # Of an old package; uv reads it as little.


def _holds(requirement: Requirement, environment: Mapping[str, str], extras: Iterable[str]) -> bool:
    if requirement.marker is None:
        return True
    try:
        return any(requirement.marker.evaluate({**environment, "extra": extra}) for extra in ("", *extras))
    except (UndefinedEnvironmentName, InvalidVersion, InvalidSpecifier):
        return False


def _ties(by_name: Mapping[str, Change], good: Requirements, bad: Requirements) -> Iterable[tuple[str, str]]:
    excluded: set[tuple[str, str]] = set()
    """The mixes (first at its good level, second at its bad one) that requirements exclude."""
    for requirements, here, there in ((good, _good, _bad), (bad, _bad, _good)):
        for name, every in requirements.items():
            for requirement in every:
                other = canonicalize_name(requirement.name)
                if name == other or other not in by_name or here(by_name[other]) is None:
                    continue
                if _allows(requirement, there(by_name[other])):
                    continue
                excluded.add((name, other) if requirements is good else (other, name))
                if by_name[name].both and _equality(requirement):
                    yield name, other
    yield from (pair for pair in excluded if (pair[1], pair[0]) in excluded)


def _good(change: Change) -> str | None:
    return change.good


def _bad(change: Change) -> str | None:
    return change.bad


def _allows(requirement: Requirement, version: str | None) -> bool:
    """Whether a version (None: absent) meets the requirement; what cannot be read is not claimed to be excluded."""
    if version is None:
        return False
    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True


def _equality(requirement: Requirement) -> bool:
    return any(each.operator in ("==", "===") for each in requirement.specifier)


def _family(by_name: Mapping[str, Change], good: Requirements, bad: Requirements) -> Iterable[tuple[str, str]]:
    """Torch with all of its family, where its requirements are not known on a side that has it.

    Neither are they where only its variant differs: what an index says of ``2.11.0`` is true of one of the two builds.
    """
    torch = by_name.get("torch")
    if torch is None:
        return
    unknown = (torch.good is not None and "torch" not in good) or (torch.bad is not None and "torch" not in bad)
    if unknown or torch.good == torch.bad:
        yield from (("torch", name) for name in by_name if in_family(name))


def _required(by_name: Mapping[str, Change], good: Requirements, bad: Requirements) -> dict[str, set[str]]:
    """By name the changed distributions that require it, on a side where both are."""
    found: dict[str, set[str]] = {name: set() for name in by_name}
    for requirements, here in ((good, _good), (bad, _bad)):
        for name, every in requirements.items():
            for requirement in every:
                other = canonicalize_name(requirement.name)
                if other in found and other != name and here(by_name[other]) is not None:
                    found[other].add(name)
    return found


def _roots_of(members: Sequence[str], by_name: Mapping[str, Change], required: Mapping[str, set[str]]) -> set[str]:
    """What all of a group is there for; empty where one of them is there on both sides, or for its own sake."""
    if any(by_name[name].both or not required[name] for name in members):
        return set()
    return {root for name in members for root in _roots(name, by_name, required)} - set(members)


def _roots(name: str, by_name: Mapping[str, Change], required: Mapping[str, set[str]]) -> tuple[str, ...]:
    """What a distribution of one side only is there for: changed ones of both sides, or ones that nothing requires.

    Empty for one that is there for its own sake. Of those that only require each other the first by name is meant.
    """
    seen, todo, roots = {name}, [name], set[str]()
    while todo:
        each = todo.pop()
        users = required[each]
        if each != name and (by_name[each].both or not users):
            roots.add(each)
            continue
        todo += [user for user in users if user not in seen]
        seen |= users
    if not roots and required[name] and min(seen) != name:
        roots.add(min(seen))
    return tuple(sorted(roots))


def _ordered(
    members: Sequence[str], by_name: Mapping[str, Change], required: Mapping[str, set[str]]
) -> tuple[str, ...]:
    """Torch first, else what none of the others requires and most of them come with; then what is on both sides."""
    inside = set(members)

    def rank(name: str) -> tuple[bool, bool, int, str]:
        brings = sum(name in required[other] for other in inside)
        return name != "torch", bool(required[name] & inside), -brings, name

    first = min(members, key=rank)
    others = sorted(members, key=lambda name: (not by_name[name].both, name))
    return (first, *(name for name in others if name != first))

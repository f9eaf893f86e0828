"""A convicted group taken apart: triton, cuDNN, NCCL or cuBLAS alone is an everyday culprit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from bisect_env.snapshots.changes import Change
from bisect_env.snapshots.factors import Factor, Kind, of_members
from bisect_env.snapshots.grouping import TRITON


def split(factor: Factor) -> tuple[Factor, ...]:
    """The parts of a group, each as a factor that can be flipped alone (against the group's own pins).

    Together they have all members of the group, each once; the part that names the group comes first and keeps the
    group's levels. What is one library under two names (``nvidia-cudnn-cu12`` on the one side, ``nvidia-cudnn-cu13``
    on the other) is one part. A factor that cannot be split is returned as it is, alone.
    """
    if factor.kind is not Kind.DISTRIBUTION or len(factor.members) < 2:
        return (factor,)
    parts: dict[str, list[Change]] = {}
    for member in factor.members:
        parts.setdefault(_library(member), []).append(member)
    found = []
    for library, members in parts.items():
        found += [_renamed(library, members)] if _exchanged(members) else [of_members((each,)) for each in members]
    if len(found) == 1:
        return (factor,)
    first, *others = found
    return replace(first, good=factor.good, bad=factor.bad), *sorted(others, key=lambda part: part.name)


def _library(member: Change) -> str:
    if member.both or member.name in TRITON:
        return "triton" if member.name in TRITON else member.name
    return re.sub(r"^(nvidia-.*)-cu\d+$", r"\1", member.name)


def _exchanged(members: Sequence[Change]) -> bool:
    """Whether two members are one thing: one is its name on the good side, the other that on the bad side."""
    sides = [(each.good is not None, each.bad is not None) for each in members]
    return sorted(sides) == [(False, True), (True, False)]


def _renamed(library: str, members: Sequence[Change]) -> Factor:
    """Each level is told with the name that it has there."""
    good = next(f"{each.name} {each.good}" for each in members if each.good is not None)
    bad = next(f"{each.name} {each.bad}" for each in members if each.bad is not None)
    return Factor(library, Kind.DISTRIBUTION, good, bad, tuple(members))

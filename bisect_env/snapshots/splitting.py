"""A convicted group taken apart: triton, cuDNN, NCCL or cuBLAS alone is an everyday culprit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bisect_env.snapshots.changes import CUDA, Change
from bisect_env.snapshots.factors import Factor, Kind, of_members
from bisect_env.snapshots.grouping import TRITON


def split(factor: Factor) -> tuple[Factor, ...]:
    """The parts of a group, each as a factor that can be flipped alone (against the group's own pins).

    Together they have all members of the group, each once. What is one library under two names (``nvidia-cudnn-cu12``
    on the one side, ``nvidia-cudnn-cu13`` on the other) is one part, and so are torch and its CUDA variant. A factor
    that cannot be split is returned as it is, alone.
    """
    if factor.kind is not Kind.DISTRIBUTION or len(factor.members) < 2:
        return (factor,)
    parts: dict[str, list[Change]] = {}
    for member in factor.members:
        parts.setdefault(_part(member, factor), []).append(member)
    for part, members in list(parts.items()):
        if not _exchange(part, members):
            del parts[part]
            parts |= {member.name: [member] for member in members}
    if len(parts) == 1:
        return (factor,)
    first = _part(factor.members[0], factor)
    order = sorted(parts, key=lambda part: (part != first, part))
    return tuple(_factor(part, parts[part]) for part in order)


def _part(member: Change, factor: Factor) -> str:
    if member.name == CUDA:
        return factor.name
    if member.name in TRITON:
        return "triton"
    if member.both or not member.name.startswith("nvidia-"):
        return member.name
    return re.sub(r"-cu\d+$", "", member.name)


def _exchange(part: str, members: Sequence[Change]) -> bool:
    """Whether several members are one thing: its name on the good side and that on the bad one, or torch's variant."""
    others = [member for member in members if member.name != CUDA]
    return len(others) < 2 or (len(others) == 2 and _once(others, "good") and _once(others, "bad"))


def _once(members: Sequence[Change], side: str) -> bool:
    return sum(getattr(member, side) is not None for member in members) == 1


def _factor(part: str, members: Sequence[Change]) -> Factor:
    """Named after the part; of two names each level is told by the side that has it."""
    if len(members) == 2 and CUDA not in (members[0].name, members[1].name):
        good = next(f"{each.name} {each.good}" for each in members if each.good is not None)
        bad = next(f"{each.name} {each.bad}" for each in members if each.bad is not None)
        return Factor(part, Kind.DISTRIBUTION, good, bad, tuple(members))
    torch_first = sorted(members, key=lambda member: member.name == CUDA)
    return of_members(torch_first)

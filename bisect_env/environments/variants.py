"""CUDA variants of torch: read from a lock, found on an index, asked for in a requirement.

One version has several builds, told apart by a local version label (``2.11.0+cu128``) on PyTorch's and on private
indexes. PyPI has no labels: there one version is one variant, and its requirements tell which.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bisect_env.environments.requirements import exact

FAMILY = ("torch", "torchvision", "torchaudio")
"""What PyTorch builds once a variant."""

LABEL = re.compile(r"cu\d+|cpu|xpu|rocm\d.*")


def cuda_of(pins: Iterable[tuple[str, str]]) -> str | None:
    """The variant of a lock: ``cu128``, ``cpu``, ...; None when torch is not in it.

    The label of torch's version tells, else NVIDIA's runtime that it requires: ``nvidia-cuda-runtime-cu12`` 12.8.x is
    cu128, ``nvidia-cuda-runtime`` 13.0.x is cu130, none is cpu. (``cuda-bindings`` has a numbering of its own.)
    """
    versions: dict[str, str] = {canonicalize_name(name): version for name, version in pins}
    if "torch" not in versions:
        return None
    label = label_of(versions["torch"])
    if label is not None and LABEL.fullmatch(label):
        return label
    for name, version in sorted(versions.items()):
        if name.startswith("nvidia-cuda-runtime"):
            major, minor, *_ = [*version.split("."), "0"]
            return f"cu{major}{minor}"
    return "cpu"


def label_of(version: str) -> str | None:
    """The local label of a version, None without one (or when it is no version)."""
    try:
        return Version(version).local
    except InvalidVersion:
        return None


def builds(offered: Iterable[str], version: str) -> tuple[str, ...]:
    """Of the offered versions the builds of ``version`` (which has no label), sorted: plain ones and labelled ones."""
    wanted = Version(version)
    found = set()
    for each in offered:
        try:
            parsed = Version(each)
        except InvalidVersion:
            continue
        if parsed.public == wanted.public:
            found.add(str(parsed))
    return tuple(sorted(found))


def labelled(requirements: Sequence[Requirement], variant: str, offered: Mapping[str, Collection[str]]) -> list[str]:
    """The requirement lines, with the variant's label on each exact pin of the family that is offered so labelled.

    ``offered`` maps a normalised name to the versions that the index has. A bare ``torch==2.11.0`` would take the
    highest label, whatever was asked for.
    """
    lines = []
    for requirement in requirements:
        name, version = canonicalize_name(requirement.name), exact(requirement)
        if (
            version is not None
            and label_of(version) is None
            and f"{Version(version)}+{variant}" in offered.get(name, ())
        ):
            requirement = Requirement(str(requirement).replace(f"=={version}", f"=={version}+{variant}", 1))
        lines.append(str(requirement))
    return lines


def torch_pin(requirements: Iterable[Requirement]) -> str | None:
    """The version that torch is pinned to, None when it is not pinned exactly."""
    for requirement in requirements:
        if canonicalize_name(requirement.name) == "torch":
            return exact(requirement)
    return None

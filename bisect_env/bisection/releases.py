"""The versions of a culprit as the index has them: which there are, when they came, and whether they fit a Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from bisect_env.bisection import versions
from bisect_env.bisection.versions import Step, Versions
from bisect_env.environments.index import File, SimpleIndex
from bisect_env.environments.metadata import MetadataSource
from bisect_env.environments.records import Interpreter, Unavailable
from bisect_env.environments.requirements import exact
from bisect_env.environments.sizes import tags_of
from bisect_env.environments.variants import label_of
from bisect_env.matrix.cells import IndexChoice


def between(
    distribution: str,
    good: str,
    bad: str,
    index: IndexChoice,
    simple: SimpleIndex,
    pythons: Sequence[Interpreter] = (),
    *,
    prereleases: bool = False,
) -> Versions:
    """The line of versions from ``good`` to ``bad`` through what the index has, with the days of their uploads.

    Of torch a note tells the steps that change its CUDA variant along with the version, where no label tells it.
    Versions of which no file fits any of the ``pythons`` say so: they need not be resolved to be skipped.

    Raises InfrastructureError when the index does not answer, ValueError when an end is no version.
    """
    found = versions.line(distribution, simple.releases(distribution, index), good, bad, prereleases=prereleases)
    if distribution == "torch":
        found = replace(found, notes=(*found.notes, *_rebuilt(found.steps, MetadataSource(simple, index))))
    files = simple.files(distribution, index)
    if not pythons or isinstance(files, Unavailable) or len(found.steps) < 2:
        return found
    known = [(python, frozenset(tags_of(python))) for python in pythons]
    inner = []
    for step in found.steps[1:-1]:
        reasons = [_unusable(files, step.version, python, tags) for python, tags in known]
        inner.append(replace(step, unusable=reasons[0] if all(reasons) else ""))
    return replace(found, steps=(found.steps[0], *inner, found.steps[-1]))


def variant_in(requires: Sequence[str]) -> str | None:
    """The CUDA variant that a torch is built for (``cu128``), by the NVIDIA runtime that it requires; None without one.

    From 2.11 on torch requires ``cuda-toolkit``, before that ``nvidia-cuda-runtime-cu12``, exactly.
    """
    for line in requires:
        try:
            name, version = canonicalize_name(Requirement(line).name), exact(Requirement(line))
        except InvalidRequirement:
            continue
        if version is not None and (name == "cuda-toolkit" or name.startswith("nvidia-cuda-runtime")):
            return "cu" + "".join(version.split(".")[:2])
    return None


def is_pure(distribution: str, version: str, index: IndexChoice, simple: SimpleIndex) -> bool:
    """Whether every wheel of a version is for any machine: only then is its source the thing itself.

    False where the index has no wheel of it or does not answer.
    """
    files = simple.files(distribution, index)
    if isinstance(files, Unavailable):
        return False
    wheels = [file for file in files if file.wheel and _same(file.version, version)]
    return bool(wheels) and all(file.name.endswith("-none-any.whl") for file in wheels)


def _rebuilt(steps: Sequence[Step], metadata: MetadataSource) -> list[str]:
    """PyPI has one build of each version: there a new CUDA can hide behind a new version."""
    if any(label_of(step.version) is not None for step in steps):
        return []
    told = [(step.version, metadata.of("torch", step.version)) for step in steps]
    known = [(version, variant_in(each.requires)) for version, each in told if each is not None]
    return [
        f"torch {before} is built for {old or 'no CUDA'} and torch {after} for {new or 'no CUDA'}, each for that alone "
        "on this index: between them version and CUDA variant change together"
        for (before, old), (after, new) in pairwise(known)
        if old != new
    ]


def _unusable(files: Sequence[File], version: str, interpreter: Interpreter, tags: frozenset[Tag]) -> str:
    """Why none of a version's files fits; empty when one does, a source distribution included."""
    own = [file for file in files if _same(file.version, version)]
    fitting = [file for file in own if _python_fits(file, interpreter)]
    if own and not fitting:
        return f"it requires Python {own[0].requires_python}, not {interpreter.version}"
    if own and not any(not file.wheel or _tags(file) & tags for file in fitting):
        return f"it has no wheel for Python {interpreter.version} on {interpreter.platform}, and no source"
    return ""


def _python_fits(file: File, interpreter: Interpreter) -> bool:
    try:
        return SpecifierSet(file.requires_python or "").contains(interpreter.version, prereleases=True)
    except InvalidSpecifier:
        return True


def _tags(file: File) -> frozenset[Tag]:
    try:
        return parse_wheel_filename(file.name)[3]
    except (InvalidWheelFilename, InvalidVersion):
        return frozenset()


def _same(offered: str, version: str) -> bool:
    try:
        return Version(offered) == Version(version)
    except InvalidVersion:
        return False

"""What lies between two levels of a distribution: asked of the index, or of git."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bisect_env.bisection import commits as repositories
from bisect_env.bisection import releases
from bisect_env.bisection.log import Candidates
from bisect_env.bisection.mixes import Mixes, levels
from bisect_env.bisection.reading import compared
from bisect_env.bisection.records import BAD, Reading, Specification
from bisect_env.bisection.versions import Versions
from bisect_env.bisection.wants import Lookup
from bisect_env.environments import interpreters
from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.records import Interpreter
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.inspection.origins import open_origins
from bisect_env.matrix.cells import IndexChoice, digest

CLONES = "repositories"


def versions(
    want: Lookup, specification: Specification, simple: SimpleIndex, pythons: Sequence[Interpreter]
) -> Candidates:
    """The released versions between the two levels, and which of them no Python of the bisection can have.

    Raises:
        InfrastructureError: the index does not answer.
    """
    try:
        found = released(want.distribution, want.good, want.bad, specification, simple, pythons)
    except ValueError as error:
        return Candidates(want.stage, want.distribution, (want.good, want.bad), notes=(str(error),))
    names = tuple(step.version for step in found.steps)
    unusable = tuple((step.version, step.unusable) for step in found.steps if step.unusable)
    reasons: dict[str, list[str]] = {}
    for version, why in unusable:
        reasons.setdefault(why, []).append(version)
    notes = [f"{want.distribution} {', '.join(own)} cannot be tried here: {why}" for why, own in reasons.items()]
    return Candidates(want.stage, want.distribution, names, notes=(*found.notes, *notes), unusable=unusable)


def reading(
    found: Candidates, index: IndexChoice, pythons: Sequence[Interpreter], tracebacks: Sequence[str], root: Path
) -> Reading:
    """Where along these versions the files of the tracebacks changed, by what their wheels list; nothing is installed.

    Args:
        found: the versions.
        index: where they come from.
        pythons: of the bisection: the wheels of the first one are read.
        tracebacks: of the failure that is searched for.
        root: the project's folder, where what was read is kept.
    """
    python = ".".join(pythons[0].version.split(".")[:2]) if pythons else None
    read = partial(_digests, found.distribution, index=index, python=python, root=root)
    try:
        digests: Sequence[Mapping[str, str] | str] = read(found.names)
    except (BadInput, InfrastructureError):
        # One by one: what the others say is worth having.
        digests = [_digests_or_why(read, version) for version in found.names]
    return compared(found.distribution, found.names, digests, tracebacks)


def _digests(
    distribution: str, versions: Sequence[str], *, index: IndexChoice, python: str | None, root: Path
) -> list[Mapping[str, str]]:
    words = [f"{distribution}=={version}" for version in versions]
    return [each.digests() for each in open_origins(words, distribution, index, root, python=python)]


def _digests_or_why(read: Callable[[Sequence[str]], list[Mapping[str, str]]], version: str) -> Mapping[str, str] | str:
    try:
        return read((version,))[0]
    except (BadInput, InfrastructureError) as error:
        return str(error).splitlines()[0]


def released(
    distribution: str,
    good: str,
    bad: str,
    specification: Specification,
    simple: SimpleIndex,
    pythons: Sequence[Interpreter] = (),
) -> Versions:
    """The versions between two, as the specification asks for them.

    Raises:
        As :func:`releases.between`.
    """
    prereleases = specification.prereleases
    return releases.between(distribution, good, bad, specification.index, simple, pythons, prereleases=prereleases)


def pythons_of(mixes: Mixes) -> tuple[Interpreter, ...]:
    """The Pythons that the mixes of a bisection can have: one, or two where it is a suspect itself.

    None, where one of them is not on this host: then nothing is known of what fits it.
    """
    every = levels({factor.name: BAD for factor in mixes.factors})
    requests = dict.fromkeys(mixes.cell(end).request.python for end in (levels({}), every))
    found = [interpreters.find(request) for request in requests]
    known = [each for each in found if isinstance(each, Interpreter)]
    return tuple(known) if len(known) == len(found) else ()


def commits(want: Lookup, specification: Specification, simple: SimpleIndex, root: Path) -> Candidates:
    """The commits between two versions, as what an installer takes; none, with a note, where there is no way to them.

    Raises:
        InfrastructureError: git is missing, or does not answer.
    """
    if not releases.is_pure(want.distribution, want.bad, specification.index, simple):
        why = f"{want.distribution} has wheels of compiled code: its commits are not searched"
        return Candidates(want.stage, want.distribution, (), notes=(why,))
    source = dict(specification.commits)[want.distribution]
    try:
        # Of each repository its own: another one may have the same tags for something else.
        name = re.sub(r"[^\w.-]", "-", want.distribution)
        folder = repositories.clone(source, root / CLONES / f"{name}-{digest(source, 8)}")
        found = repositories.between(want.distribution, folder, want.good, want.bad)
    except BadInput as error:
        return Candidates(want.stage, want.distribution, (), notes=(f"its commits are not searched: {error.found}",))
    names = tuple(found.source(step) for step in found.steps)
    subjects = tuple(step.subject for step in found.steps)
    return Candidates(want.stage, want.distribution, names, subjects, found.notes)

"""What lies between two levels of a distribution: asked of the index, or of git."""

from __future__ import annotations

import re
from pathlib import Path

from bisect_env.bisection import commits as repositories
from bisect_env.bisection import releases
from bisect_env.bisection.log import Candidates
from bisect_env.bisection.records import Specification
from bisect_env.bisection.versions import Versions
from bisect_env.bisection.wants import Lookup
from bisect_env.environments.index import SimpleIndex
from bisect_env.errors import BadInput

CLONES = "repositories"


def versions(want: Lookup, specification: Specification, simple: SimpleIndex) -> Candidates:
    """The released versions between the two levels.

    Raises:
        InfrastructureError: the index does not answer.
    """
    try:
        found = released(want.distribution, want.good, want.bad, specification, simple)
    except ValueError as error:
        return Candidates(want.stage, want.distribution, (want.good, want.bad), notes=(str(error),))
    names = tuple(step.version for step in found.steps)
    return Candidates(want.stage, want.distribution, names, notes=found.notes)


def released(distribution: str, good: str, bad: str, specification: Specification, simple: SimpleIndex) -> Versions:
    """The versions between two, as the specification asks for them.

    Raises:
        As :func:`releases.between`.
    """
    return releases.between(distribution, good, bad, specification.index, simple, prereleases=specification.prereleases)


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
        folder = repositories.clone(source, root / CLONES / re.sub(r"[^\w.-]", "-", want.distribution))
        found = repositories.between(want.distribution, folder, want.good, want.bad)
    except BadInput as error:
        return Candidates(want.stage, want.distribution, (), notes=(f"its commits are not searched: {error.found}",))
    names = tuple(found.source(step) for step in found.steps)
    subjects = tuple(step.subject for step in found.steps)
    return Candidates(want.stage, want.distribution, names, subjects, found.notes)

"""From the two cells to their locks, and to an error where there is no baseline or nothing can be said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bisect_env.bisection.records import Specification
from bisect_env.environments.records import Lock, Reason, Unavailable
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.gate.sides import cells
from bisect_env.matrix.cells import Cell

TROUBLE = frozenset(
    {Reason.INDEX_UNREACHABLE, Reason.CREDENTIALS, Reason.OFFLINE, Reason.INTERPRETER, Reason.BASE, Reason.UV}
)
"""Reasons that say nothing of a side: the user mends them and gives the same command again."""
Resolve = Callable[[Sequence[Cell]], Mapping[str, Lock | Unavailable]]
"""The locks of cells, by the keys of their requests."""

AS_INSTALLED = (
    "the baseline's own pins contradict each other ({}), as an installer that knows better leaves them: every pin is "
    "taken as it stands, on both sides"
)


def resolved(
    asked: Specification, resolve: Resolve
) -> tuple[tuple[tuple[Cell, Lock], tuple[Cell, Lock | Unavailable]], tuple[str, ...]]:
    """Both cells, the baseline's lock, the candidate's or why it has none, and notes.

    Raises:
        BadInput: the baseline does not resolve.
        InfrastructureError: a side cannot be told from trouble of the machine or an index.
    """
    notes: tuple[str, ...] = ()
    baseline, candidate = cells(asked)
    locks = resolve((baseline, candidate))
    found = locks[baseline.request.key]
    if isinstance(found, Unavailable) and found.reason is Reason.CONFLICT:
        notes = (AS_INSTALLED.format(_first_line(found.message)),)
        loose = cells(asked, as_installed=True)
        locks = {**locks, **resolve((loose[0],))}
        baseline, found = loose[0], locks[loose[0].request.key]
        own = locks[candidate.request.key]
        if isinstance(own, Unavailable) and own.reason is Reason.CONFLICT:
            candidate = loose[1]
            locks = {**locks, **resolve((candidate,))}
    own = locks[candidate.request.key]
    if isinstance(own, Unavailable) and own.reason in TROUBLE:
        raise InfrastructureError(f"the candidate cannot be resolved here ({own.reason}): {own.message}")
    return ((baseline, usable(found, asked)), (candidate, own)), notes


def usable(baseline: Lock | Unavailable, asked: Specification) -> Lock:
    """The baseline's lock.

    Raises:
        BadInput: there is none, and it is the baseline's own fault.
        InfrastructureError: there is none for another reason.
    """
    if isinstance(baseline, Lock):
        return baseline
    raise refusal(baseline, asked)


def refusal(missing: Unavailable, asked: Specification) -> BadInput | InfrastructureError:
    """The error of a baseline that has no environment here, for whatever reason."""
    if missing.reason in TROUBLE:
        return InfrastructureError(f"the baseline has no environment here ({missing.reason}): {missing.message}")
    wanted = "a baseline that works here: its distributions on an index or in a folder (--index, --find-links), or"
    found = f"the baseline has no environment here ({missing.reason}): {missing.message}"
    return BadInput(asked.good.origin, "", found, f"{wanted} --without NAME for what this host cannot install")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")

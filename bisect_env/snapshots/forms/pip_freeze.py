"""``pip freeze``, ``uv pip freeze`` and ``pip list --format=freeze``: ``name==version``, ``name @ source``, ``-e``."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.snapshots import pasted
from bisect_env.snapshots.pieces import (
    HOST_NOT_TOLD,
    Gathering,
    cuda_of,
    cut_off,
    editable,
    pinned,
    require_some,
    sourced,
    told_above,
    unread,
)
from bisect_env.snapshots.records import Distribution, Snapshot, Target, Unread

NAME = "pip freeze"

_LEFT_OUT = ("pip", "setuptools", "wheel")
"""What pip freeze does not list by itself: pip always, the others before Python 3.12."""
_UNNAMED = "an editable installation whose name the line does not tell; pip list tells name and version"


def recognise(text: str) -> float:
    """The share of lines that pip freeze could have written."""
    lines = pasted.sample(text)
    own = sum(_distribution(line) is not None or line.startswith("-e ") for line in lines)
    return 0.9 * own / len(lines) if lines else 0.0


def read(text: str, origin: str, host: Target) -> Snapshot:
    """The distributions of each line. Raises BadInput: one stands there in two versions, or none can be read."""
    found, left = Gathering(origin), list[Unread]()
    told = None
    for number, line in pasted.numbered(text):
        if line.lstrip().startswith("#"):
            told = told_above(line)
            continue
        distribution = _distribution(line, told)
        told = None
        if distribution is not None:
            found.add(distribution, f"line {number}")
        else:
            left.append(unread(number, line, _UNNAMED if line.startswith("-e ") else "no line of pip freeze"))
    distributions = found.distributions()
    snapshot = Snapshot(
        origin,
        NAME,
        distributions,
        pasted.told_python(text),
        cuda=cuda_of(distributions),
        missing=(HOST_NOT_TOLD, *_left_out(distributions), *cut_off(text)),
        unread=tuple(left),
    )
    return require_some(snapshot, "the output of pip freeze: lines such as torch==2.11.0")


def _left_out(distributions: Sequence[Distribution]) -> tuple[str, ...]:
    listed = {each.name for each in distributions}
    names = [name for name in _LEFT_OUT if name not in listed]
    if not names:
        return ()
    said = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return (f"It does not list {said}, which pip freeze may leave out: whether they differ is not known.",)


def _distribution(line: str, told: tuple[str, str] | None = None) -> Distribution | None:
    if len(line) > pasted.LONGEST_LINE:
        return None
    return pinned(line) or sourced(line) or editable(line, told)

"""Priors from reading: candidate versions in which a file of the failure's own traceback changed weigh more. Pure.

A failure's traceback names the files that it ran through. Where along the line of versions one of them changed is read
from the versions themselves, by digests of their files. What is read steers the search and never decides: weights
multiply the prior of the candidates, "none of these" keeps its own, and the confirmation knows nothing of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from bisect_env.bisection.records import Reading, ReadVersion

LONG_WEIGHT, SHORT_WEIGHT = 8.0, 4.0
"""Of a candidate that changed one of the files, on a long and on a short line; of the others it is 1. Chosen on
simulations (docs/search.md): on short lines a misleading 8 makes more than 5 % of the answers wrong."""
LONG = 24
"""Candidates from which on a line is long."""
MOST_MARKED = 1 / 6
"""Share of the candidates up to which they weigh more. Where more have changed the files, a right reading saves too
little for what a misleading one costs (docs/search.md)."""

_FILE = re.compile(r'^\s*File "([^"]+\.py)", line \d+', re.MULTILINE)
_PACKAGES = ("site-packages", "dist-packages")


def files_of(tracebacks: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """The files of a distribution that tracebacks go through, in the order in which they first appear.

    Args:
        tracebacks: as Python prints them; the user's own files and those of other distributions are left out.
        known: the distribution's files, as its wheels have them: ``torch/_dynamo/eval_frame.py``.
    """
    paths = (path for text in tracebacks for path in _FILE.findall(text))
    return tuple(dict.fromkeys(found for path in paths if (found := _within(path, known))))


def _within(path: str, known: Collection[str]) -> str:
    """A file's path below the folder of packages; empty where the distribution has no such file."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    roots = [place for place, part in enumerate(parts) if part in _PACKAGES]
    if roots:
        inside = "/".join(parts[roots[-1] + 1 :])
        return inside if inside in known else ""
    # Shortened, or in a checkout: a package and a module at least, since many have a file called utils.py.
    ends = ("/".join(parts[place:]) for place in range(len(parts) - 1))
    return next((end for end in ends if end in known), "")


def compared(
    distribution: str, names: Sequence[str], digests: Sequence[Mapping[str, str] | str], tracebacks: Iterable[str]
) -> Reading:
    """Which version changed which of the files that the tracebacks go through.

    Args:
        distribution: whose versions they are.
        names: the versions along the line, both ends included.
        digests: of each version's files by their paths; or why they could not be read.
        tracebacks: of the failure that is searched for.
    """
    known = {path for each in digests if not isinstance(each, str) for path in each}
    files = files_of(tracebacks, known)
    versions = []
    for version, (before, after) in zip(names[1:], pairwise(digests), strict=True):
        if isinstance(before, str) or isinstance(after, str):
            versions.append(
                ReadVersion(version, unread=next(each for each in (after, before) if isinstance(each, str)))
            )
        else:
            versions.append(ReadVersion(version, tuple(file for file in files if before.get(file) != after.get(file))))
    return Reading(distribution, files, tuple(versions))


def weight(candidates: int) -> float:
    """Of those that changed one of the files, on a line with so many candidates."""
    return LONG_WEIGHT if candidates >= LONG else SHORT_WEIGHT


def weights(reading: Reading) -> tuple[float, ...] | None:
    """Of the candidates, in the order of the reading; None where they all weigh alike.

    What could not be read may have changed: it weighs as if it had.
    """
    marked = [bool(each.changed or each.unread) for each in reading.versions]
    if not reading.files or not 0 < sum(marked) <= MOST_MARKED * len(marked):
        return None
    return tuple(weight(len(marked)) if each else 1.0 for each in marked)


def summary(reading: Reading) -> str:
    """What it says as a whole, and what the search did with it."""
    name, of = reading.distribution, len(reading.versions)
    changed = sum(bool(each.changed) for each in reading.versions)
    unread = sum(bool(each.unread) for each in reading.versions)
    alike = "All weighed alike in the search."
    if not reading.files:
        why = "no two neighbouring versions could be read" if unread == of else f"it goes through no file of {name}"
        return f"Nothing is known of the failure's traceback: {why}. {alike}"
    said = f"{changed} of {of} versions of {name} changed a file that the failure's traceback goes through"
    said += f", and {unread} could not be compared" if unread else ""
    if weights(reading) is not None:
        weighed = f"They weighed {weight(of):g} times as much as the others in the search"
        return f"{said}. {weighed}, and nothing in the confirmation."
    if changed + unread:
        said += f": too many to tell much (at most {MOST_MARKED:.1%} may)"
    return f"{said}. {alike}"


def lines(reading: Reading) -> tuple[str, ...]:
    """A line for each version that changed one of the files, or that could not be compared with the one before it."""
    found = []
    for each in reading.versions:
        if each.unread:
            found.append(
                f"{reading.distribution} {each.version}: not compared with the version before it: {each.unread}"
            )
        elif each.changed:
            found.append(f"{reading.distribution} {each.version} changed {', '.join(each.changed)}")
    return tuple(found)

"""Whether what a file asks for under a condition is asked for on a host."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from bisect_env.errors import BadInput
from bisect_env.matrix.problems import one_of
from bisect_env.snapshots.pieces import shortened
from bisect_env.snapshots.records import Target

_UNKNOWN = re.compile(r"\bplatform_(?:release|version)\b")
_LONGEST = 20_000


class Undecided(ValueError):
    """A marker that is not valid, or that asks for what is not known of the host; says which."""


def applies(marker: str, host: Target, extras: Collection[str] = ()) -> bool:
    """Whether a marker of PEP 508 holds on ``host``; an ``extra == "name"`` in it when ``name`` is in ``extras``.

    Raises Undecided.
    """
    if _UNKNOWN.search(marker) is not None:
        raise Undecided("depends on the kernel, which is not known of the host")
    # A requirement has one extra at a time in the standard, an installation has many: each is decided here.
    decided = _EXTRA.sub(lambda match: _constant((match[3] in extras) == (match[1] == "==")), marker)
    return _evaluated(decided, host)


def applies_to_lock(marker: str, host: Target, extras: Collection[str], groups: Collection[str]) -> bool:
    """Whether a marker of PEP 751 holds: it may ask for ``extras`` and ``dependency_groups``. Raises Undecided."""
    if _UNKNOWN.search(marker) is not None:
        raise Undecided("depends on the kernel, which is not known of the host")
    variables: dict[str, str | AbstractSet[str]] = {
        **host.environment(),
        "extras": frozenset(extras),
        "dependency_groups": frozenset(groups),
    }
    try:
        return _parsed(marker).evaluate(variables, context="lock_file")
    except (ValueError, RecursionError, KeyError) as error:
        raise Undecided(_words(error)) from None


_EXTRA = re.compile(r"""\bextra\s*(==|!=)\s*(["'])([^"']*)\2""")


def _constant(value: bool) -> str:
    return "python_version >= '0'" if value else "python_version < '0'"


@cache
def _parsed(marker: str) -> Marker:
    if len(marker) > _LONGEST:
        raise Undecided("longer than any marker")
    try:
        return Marker(marker)
    except (ValueError, RecursionError) as error:
        raise Undecided(_words(error)) from None


def _evaluated(marker: str, host: Target) -> bool:
    try:
        return _parsed(marker).evaluate({**host.environment()})
    except (ValueError, RecursionError, KeyError) as error:
        raise Undecided(_words(error)) from None


def _words(error: Exception) -> str:
    if isinstance(error, Undecided):
        return str(error)
    return f"no marker that can be evaluated ({(str(error).splitlines() or [type(error).__name__])[0][:200]})"


def fitting(requires_python: str | None, host: Target) -> tuple[Target, str]:
    """The host to evaluate a lock's markers for, and a sentence that says which.

    It is ``host``, unless ``requires_python`` rules its Python out: then with the lowest version that is allowed.
    Raises ValueError: ``requires_python`` is no version range, or allows no Python 3.
    """
    allowed = SpecifierSet(requires_python or "")
    where = f"on {host.platform} {host.machine}"
    if allowed.contains(host.environment()["python_full_version"], prereleases=True):
        return host, f"What it holds only under a condition was decided for Python {host.python} {where}."
    lowest = [each.version.removesuffix(".*") for each in allowed if each.operator in (">=", "==", "~=", "===")]
    candidates = sorted(
        {*(f"3.{minor}.0" for minor in range(40)), *(str(Version(each)) for each in lowest)}, key=Version
    )
    python = next((each for each in candidates if allowed.contains(each, prereleases=True)), None)
    if python is None:
        raise ValueError(f"{requires_python} allows no Python 3")
    chosen = replace(host, python=python)
    sentence = (
        f"What it holds only under a condition was decided for Python {python} {where}, the lowest Python that it is "
        f"for ({requires_python}): {host.python} is none of them."
    )
    return chosen, sentence


def check_made_for(
    allowed: Sequence[str], holds: Callable[[str], bool], host: Target, words: tuple[str, str, str]
) -> None:
    """Refuses a lock that was made for other hosts only.

    Args:
        allowed: markers of the hosts that it was made for; none where it is for all.
        holds: whether one of them holds on ``host``; raises Undecided.
        host: to be read for.
        words: the lock's origin, the key that has the markers, and what would be right.

    Raises BadInput: none of them holds, or that cannot be told.
    """
    origin, key, wanted = words
    try:
        if allowed and not any(map(holds, allowed)):
            found = f"made for {shortened(' or '.join(allowed))}"
            raise BadInput(origin, key, found, f"one for {host.platform} {host.machine}, Python {host.python}")
    except Undecided as error:
        raise BadInput(origin, key, str(error), wanted) from None


def choice(
    origin: str, host: Target, extras: Collection[str], groups: Collection[str], default: Collection[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """The extras and the groups of a lock that were installed: groups in ``default``, and what the user names.

    Raises BadInput: the lock does not offer one that is named.
    """
    known = {*extras, *groups}
    for name in sorted(host.chosen | host.left_out):
        if name not in known:
            offered = one_of(sorted(known), name) if known else "none: this lock offers no extra and no group"
            raise BadInput(origin, "", f"an extra or group {name} is named", offered)
    chosen = host.chosen | frozenset(default)
    return frozenset(extras) & host.chosen, (frozenset(groups) & chosen) - host.left_out


def counted(extras: Collection[str], groups: Collection[str], offered: Collection[tuple[str, str]]) -> str:
    """A sentence on which extras and groups (``offered``: kind, name) were counted as installed."""
    chosen = {("extra", name) for name in extras} | {("group", name) for name in groups}
    words = "".join(f", {kind} {name}" for kind, name in sorted(chosen))
    others = ", ".join(f"{kind} {name}" for kind, name in sorted(set(offered) - chosen))
    how = "; not counted (to choose them, put [NAME,-NAME] behind the file's name): " if others else ""
    return f"Counted as installed: the project's own requirements{words}{how}{others}."

"""A surface across places."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.inspection.records import Change, Found, Surface


def across(surfaces: Sequence[Surface]) -> tuple[Change, ...]:
    """A row for each name that any place has: first the name asked for (where it can be called or is missing
    somewhere), then its entries, in the order in which the places bring them up.

    What has no signature stands there with its kind, so that a function that became a class is a change.
    """
    own = [_own(one) for one in surfaces]
    rows = []
    if surfaces and (any(text is None for text in own) or any(one.signature for one in surfaces)):
        rows.append(Change(surfaces[0].found.asked, tuple(own)))
    names = dict.fromkeys(entry.name for one in surfaces for entry in one.entries)
    by_place = [{entry.name: entry.signature or entry.kind for entry in one.entries} for one in surfaces]
    rows.extend(Change(name, tuple(place.get(name) for place in by_place)) for name in names)
    return tuple(rows)


def _own(one: Surface) -> str | None:
    return (one.signature or one.found.kind) if isinstance(one.found, Found) else None

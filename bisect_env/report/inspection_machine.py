"""An inspection as a JSON document for programs. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bisect_env.inspection.inspected import Inspection
from bisect_env.inspection.records import Change, Found, NotFound, Scan, Surface, Uses
from bisect_env.matrix.urls import without_credentials
from bisect_env.report.machine import plain

SCHEMA = 1
"""Grows when a key is renamed, removed or changes its meaning; not when one is added."""


def document(inspection: Inspection) -> dict[str, Any]:
    """Everything that was found, fit for ``json.dumps``; what was not asked for is null."""
    traced = inspection.traced
    result = {
        "schema": SCHEMA,
        "asked": asdict(inspection.asked),
        "places": [
            {
                "label": place.label,
                **_named(place.found),
                "surface": place.surface and _surface(place.surface),
                "scan": place.scan and _scan(place.scan),
                "uses": place.uses and _uses(place.uses),
                "instead": place.instead and _uses(place.instead),
            }
            for place in inspection.places
        ],
        "changes": [_change(change) for change in inspection.changes],
        "difference": inspection.difference,
        "traced": traced
        and {
            "script": traced.script,
            "calls": len(traced.calls),
            "more": traced.more,
            "seconds": traced.seconds,
            "status": traced.status,
        },
        "cost": asdict(inspection.cost),
        "notes": list(inspection.notes),
    }
    clean: dict[str, Any] = plain(result, without_credentials)
    return clean


def _named(found: Found | NotFound) -> dict[str, Any]:
    there = isinstance(found, Found)
    return {"found": asdict(found) if there else None, "missing": None if there else asdict(found)}


def _surface(surface: Surface) -> dict[str, Any]:
    return {"signature": surface.signature, "entries": [asdict(entry) for entry in surface.entries]}


def _scan(scan: Scan) -> dict[str, Any]:
    kept = asdict(scan)
    for key in ("label", "found"):
        del kept[key]
    return kept


def _uses(uses: Uses) -> dict[str, Any]:
    kept = asdict(uses)
    for key in ("label", "found"):
        del kept[key]
    return {"name": uses.found.asked, **kept}


def _change(change: Change) -> dict[str, Any]:
    return {"name": change.name, "signatures": list(change.signatures), "steps": list(change.steps)}

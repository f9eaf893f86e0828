"""A finding, and a plan, as JSON documents for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bisect_env.bisection.records import Finding, Observation, Plan
from bisect_env.matrix.urls import without_credentials
from bisect_env.report.bisection_words import value as shown
from bisect_env.report.machine import plain

SCHEMA = 1
"""Grows when a key is renamed, removed or changes its meaning; not when one is added."""


def document(found: Finding) -> dict[str, Any]:
    """Everything the report rests on, both locks in full, fit for ``json.dumps``.

    A figure that is not a number is null. Values of variables whose names say that they hold a secret are hidden.
    """
    result = asdict(found) | {
        "schema": SCHEMA,
        "suspects": [{"name": name, "probability": chance} for name, chance in found.suspects],
        "skipped": [{"environment": where, "why": why} for where, why in found.skipped],
        "other_signatures": [{"signature": text, "trials": count} for text, count in found.other_signatures],
        "locks": _sides(found.locks),
        "variables": _sides(tuple({n: shown(n, v) for n, v in side} for side in found.variables)),
        "conditions": _sides(found.conditions and tuple(each.as_dict() for each in found.conditions)),
        "commands": _sides(found.commands),
        "observations": [_observation(seen) for seen in found.observations],
    }
    clean: dict[str, Any] = plain(result, without_credentials)
    return clean


def plan(planned: Plan) -> dict[str, Any]:
    """What a bisection would do."""
    result = asdict(planned) | {
        "schema": SCHEMA,
        "unresolvable": [{"point": dict(each.point), "reason": each.reason} for each in planned.unresolvable],
        "versions": dict(planned.versions),
    }
    clean: dict[str, Any] = plain(result, without_credentials)
    return clean


def _observation(seen: Observation) -> dict[str, Any]:
    return asdict(seen) | {
        "point": dict(seen.point),
        "signatures": [{"signature": text, "trials": count} for text, count in seen.signatures],
    }


def _sides(pair: Any) -> dict[str, Any] | None:
    return None if pair is None else {"good": pair[0], "bad": pair[1]}

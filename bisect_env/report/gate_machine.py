"""What a gate decided, as a JSON document for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bisect_env.gate.records import GateResult, Line, SideFacts
from bisect_env.matrix.urls import without_credentials
from bisect_env.report.bisection_words import value as shown
from bisect_env.report.gate import headline
from bisect_env.report.machine import environment, plain, trial

SCHEMA = 1
"""Grows when a key is renamed, removed or changes its meaning; not when one is added."""


def document(result: GateResult) -> dict[str, Any]:
    """Everything the report rests on, fit for ``json.dumps``.

    A figure that is not a number is null. Values of variables whose names say that they hold a secret are hidden, and
    index URLs are left out.
    """
    announced = result.announcement
    content = {
        "schema": SCHEMA,
        "id": result.id,
        "decision": result.decision,
        "sentence": headline(result),
        "lines": [_line(line) for line in result.lines],
        "rules": asdict(result.rules),
        "announcement": asdict(announced),
        "difference": asdict(result.difference),
        "baseline": _side(result.baseline),
        "candidate": _side(result.candidate),
        "bisect_command": result.bisect_command,
        "notes": list(result.notes),
        "trials": result.trials,
        "builds": result.builds,
        "seconds": result.seconds,
    }
    clean: dict[str, Any] = plain(content, without_credentials)
    return clean


def _line(line: Line) -> dict[str, Any]:
    return asdict(line) | {"figures": dict(line.figures)}


def _side(side: SideFacts) -> dict[str, Any]:
    snapshot, verdict = side.snapshot, side.verdict
    return {
        "name": side.name,
        "origin": snapshot.origin,
        "form": snapshot.form,
        "distributions": {each.name: each.version for each in snapshot.distributions},
        "python": snapshot.python,
        "driver": snapshot.driver,
        "gpus": list(snapshot.gpus),
        "cell": side.cell.key,
        "condition": side.cell.condition.as_dict(),
        "variables": {name: shown(name, value) for name, value in side.cell.variables},
        "environment": environment(side.lock) if side.lock is not None else None,
        "verdict": None if verdict is None else {"text": verdict.text, **asdict(verdict)},
        "trials": [trial(sample) | {"run": sample.run_id} for sample in side.samples],
    }

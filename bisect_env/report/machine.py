"""The results as a JSON document for programs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from bisect_env.environments.records import Lock
from bisect_env.matrix.cells import Matrix
from bisect_env.report.caches import Cached, caches
from bisect_env.report.mitigations import Mitigated, failures, mitigations
from bisect_env.report.origin import Origin
from bisect_env.report.rows import Row, is_dense, measured_on, short_id
from bisect_env.report.summary import recommended, sentence
from bisect_env.verdicts.hardware import Hardware, ran_on
from bisect_env.verdicts.records import Interval
from bisect_env.verdicts.samples import Sample

SCHEMA = 1
"""Grows when a key is renamed, removed or changes its meaning; not when one is added."""


def document(rows: Sequence[Row], matrix: Matrix, max_race_rate: float, origin: Origin | None = None) -> dict[str, Any]:
    """Everything the table rests on, fit for ``json.dumps``: a figure that is not a number is null.

    Index URLs and the values of environment variables are left out, since they may hold credentials.
    """
    result = {
        "schema": SCHEMA,
        "matrix": {
            "name": matrix.name,
            "axes": list(matrix.axes),
            "reproducer": matrix.reproducer.name,
            "trials": matrix.trials,
            "controls": matrix.controls,
            "solo": matrix.controls if matrix.solo is None else matrix.solo,
            "stop_early": matrix.stop_early,
            "at_once": matrix.at_once,
            "reference": dict(matrix.reference),
            "slow_below": matrix.slow_below,
            "max_race_rate": max_race_rate,
            "notes": list(matrix.notes),
        },
        "measured": None if origin is None else asdict(origin),
        "summary": sentence(rows, max_race_rate),
        "cells": [_cell(row, max_race_rate) for row in rows],
        "mitigations": [
            {
                "none": none.cell.id,
                "headline": none.verdict.headline,
                "failed": _interval(failures(none)),
                "mitigated": [_mitigated(item) for item in twins],
            }
            for none, twins in mitigations(rows, matrix.trials)
        ],
        "caches": [[_cached(item) for item in group] for group in caches(rows)],
    }
    clean: dict[str, Any] = plain(result)
    return clean


def _cell(row: Row, max_race_rate: float) -> dict[str, Any]:
    verdict = row.verdict
    versions = next((dict(sample.record.versions) for sample in row.samples if sample.record.versions), {})
    return {
        "id": row.cell.id,
        "key": row.cell.key,
        "show": short_id(row.cell),
        "levels": dict(row.cell.levels),
        "tags": list(row.cell.tags),
        "condition": row.cell.condition.as_dict(),
        "variables": [name for name, _ in row.cell.variables],
        "requirements": list(row.cell.request.requirements),
        "recommended": recommended(row, max_race_rate),
        "verdict": {"text": verdict.text, **asdict(verdict)},
        "environment": environment(row.lock) if row.lock is not None else None,
        "versions": versions,
        "trials": [trial(sample) for sample in row.samples],
        "hardware": _gpus(measured_on(row)),
        "elsewhere": _elsewhere(row),
    }


def _gpus(found: Hardware | None) -> list[dict[str, str]]:
    return [{"model": model, "driver": driver} for model, driver in found.gpus] if found is not None else []


def _elsewhere(row: Row) -> list[dict[str, Any]]:
    groups: dict[Hardware, list[str]] = {}
    for sample in row.elsewhere:
        groups.setdefault(ran_on(sample.record), []).append(sample.record.id)
    return [{"hardware": _gpus(found), "trials": names} for found, names in groups.items()]


def _mitigated(item: Mitigated) -> dict[str, Any]:
    return {
        "cell": item.row.cell.id,
        "mitigation": item.mitigation,
        "effect": item.effect,
        "dense": is_dense(item.row.verdict),
        "failed": _interval(item.failed),
        "bound": item.bound,
        "p_value": item.p_value,
        "throughput": asdict(item.throughput) if item.throughput else None,
    }


def _cached(item: Cached) -> dict[str, Any]:
    return {
        "cell": item.row.cell.id,
        "cache": item.cache,
        "failed": _interval(failures(item.row)),
        "hits": item.hits,
        "misses": item.misses,
    }


def _interval(found: Interval | None) -> dict[str, Any] | None:
    return asdict(found) if found is not None else None


def environment(lock: Lock) -> dict[str, Any]:
    """What an environment is built from."""
    return {
        "address": lock.address,
        "lock_sha256": hashlib.sha256(lock.text.encode()).hexdigest(),
        "python": lock.interpreter.version,
        "platform": lock.interpreter.platform,
        "cuda": lock.cuda,
        "pins": dict(lock.pins),
        "base_manifest": lock.base_manifest,
        "marks": list(lock.marks),
        "notes": list(lock.notes),
    }


def trial(sample: Sample) -> dict[str, Any]:
    """One trial, without its output and tracebacks."""
    record = sample.record
    return {
        "id": record.id,
        "side": record.side,
        "block": sample.block,
        "seed": record.seed,
        "outcome": record.outcome,
        "signature": asdict(record.failures[0].signature) if record.failures else None,
        "tokens_per_second": record.tokens_per_second,
        "rounds": [asdict(item) for item in record.rounds],
        "utilisation": [asdict(item) for item in record.utilisation],
        "exposures": record.exposures,
        "peak_bytes": record.peak_bytes,
        "resets": record.resets,
        "phase": record.phase,
        "only_repeat": record.only_repeat,
        "at_once": record.at_once,
        "started": record.started,
        "seconds": record.seconds,
        "message": record.message,
    }


def plain(value: Any, text: Callable[[str], str] = str) -> Any:
    """As JSON has it: keys are texts, what is not finite is null; ``text`` is applied to every text."""
    if isinstance(value, dict):
        return {str(key): plain(item, text) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, text) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return text(value) if isinstance(value, str) else value

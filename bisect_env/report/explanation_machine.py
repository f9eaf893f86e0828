"""Why a cell fails, as a JSON document for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bisect_env.explanation.records import Account, Explanation, Window, WitnessLog
from bisect_env.matrix.urls import without_credentials
from bisect_env.report.explanation_follows import follows
from bisect_env.report.explanation_words import headline, primary
from bisect_env.report.machine import plain

SCHEMA = 1
"""Grows when a key is renamed, removed or changes its meaning; not when one is added."""


def document(explanation: Explanation) -> dict[str, Any]:
    """Everything the report rests on, fit for ``json.dumps``, but for single events: a trial has thousands of them.

    Those that a collision is made of are there, with their stacks.
    """
    told = primary(explanation)
    content = {
        "schema": SCHEMA,
        "cell": explanation.cell,
        "environment": explanation.environment,
        "sentence": headline(explanation),
        "primary": None if told is None else told.trial,
        "accounts": [_account(account) for account in explanation.accounts],
        "hypotheses": [asdict(each) for each in explanation.hypotheses],
        "failed": explanation.failed,
        "witnessed": len(explanation.accounts),
        "plain_failed": explanation.plain_failed,
        "plain": explanation.plain,
        "vanished": explanation.vanished,
        "follows": follows(explanation),
        "cost": explanation.cost,
        "notes": list(explanation.notes),
    }
    clean: dict[str, Any] = plain(content, without_credentials)
    return clean


def _account(account: Account) -> dict[str, Any]:
    return {
        "trial": account.trial,
        "outcome": account.outcome,
        "sentences": list(account.sentences),
        "collisions": [asdict(each) for each in account.collisions],
        "windows": [_window(each) for each in account.windows],
        "log": None if account.log is None else _log(account.log),
    }


def _window(window: Window) -> dict[str, Any]:
    return {
        "state": window.state,
        "thread": window.thread,
        "value": window.opened.value,
        "start": window.start,
        "end": window.end,
    }


def _log(log: WitnessLog) -> dict[str, Any]:
    return {
        "torch": log.torch,
        "python": log.python,
        "started": log.started,
        "threads": list(log.threads),
        "watched": [asdict(each) for each in log.watched],
        "unknown": [asdict(each) for each in log.unknown],
        "events": len(log.events),
        "counts": [
            {"thread": thread, "state": state, "action": action, "count": count}
            for thread, state, action, count in log.counts
        ],
        "dropped": log.dropped,
        "complete": log.complete,
    }

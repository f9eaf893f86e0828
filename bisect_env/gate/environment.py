"""The environment question: can the candidate be had, and is it what its lock says? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bisect_env.environments.distributions import same_version
from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.gate.records import Decision, Line, Question
from bisect_env.snapshots.records import Snapshot
from bisect_env.verdicts.records import Headline, Verdict
from bisect_env.words import counted

DOES_NOT = {"resolve": "does not resolve", "build": "does not install", "import": "cannot be imported"}
LISTED = 5
"""Changed files that a sentence names."""


@dataclass(frozen=True)
class Tried:
    """What became of a side's environment."""

    lock: Lock | Unavailable | None
    environment: Environment | Unavailable | None
    """None: it was not built, or not yet."""
    verdict: Verdict | None = None
    changes: tuple[str, ...] = ()
    """How it differs by now from what was built from its lock, a line a file."""


@dataclass(frozen=True)
class Unlike:
    """In what a snapshot and its lock differ: names with their versions, sorted."""

    only_snapshot: tuple[str, ...]
    only_lock: tuple[str, ...]
    otherwise: tuple[str, ...]
    """In both, in different versions."""


def unlike(snapshot: Snapshot, lock: Lock) -> Unlike:
    """What the host (its snapshot) has and the lock does not, and the reverse."""
    # pip's goes over conda's, as everywhere.
    ordered = sorted(snapshot.distributions, key=lambda each: each.manager != "conda")
    here = {each.name: each.version for each in ordered}
    there = dict(lock.pins)
    both = sorted(here.keys() & there.keys())
    return Unlike(
        tuple(f"{name} {here[name] or '(version not told)'}" for name in sorted(here.keys() - there.keys())),
        tuple(f"{name} {there[name]}" for name in sorted(there.keys() - here.keys())),
        tuple(
            f"{name} {version} (lock: {there[name]})"
            for name in both
            if (version := here[name]) is not None and not same_version(version, there[name])
        ),
    )


def notes(name: str, snapshot: Snapshot, lock: Lock) -> tuple[str, ...]:
    """Sentences on what differs between a side's snapshot and its lock."""
    if lock.base is not None:
        return ()  # A lock over a base has the overlay alone.
    found = unlike(snapshot, lock)
    said = (
        (f"in the {name}'s snapshot and not in its lock", found.only_snapshot),
        (f"in the {name}'s lock, since something requires it, and not in its snapshot", found.only_lock),
        (f"in another version in the {name}'s lock than in its snapshot", found.otherwise),
    )
    return tuple(f"{what}: {', '.join(names)}" for what, names in said if names)


def line(baseline: Tried, candidate: Tried) -> Line:
    """The answer for the candidate; of the baseline, without which there is no gate, the figures stand beside it."""
    figures = tuple(
        (f"{name}'s distributions", float(len(tried.lock.pins)))
        for name, tried in (("baseline", baseline), ("candidate", candidate))
        if isinstance(tried.lock, Lock)
    )
    decision, sentence, more = _decided(candidate)
    return Line(Question.ENVIRONMENT, decision, sentence, _brief(baseline), _brief(candidate), figures, more)


def _decided(tried: Tried) -> tuple[Decision, str, str]:
    for missing in (tried.lock, tried.environment):
        if isinstance(missing, Unavailable):
            said = f"the candidate {DOES_NOT.get(missing.stage, missing.stage)} ({missing.reason}): {missing.message}"
            return Decision.FAIL, said, ""
    if tried.verdict is not None and tried.verdict.headline is Headline.IMPORT_FAILED:
        return Decision.FAIL, f"the reproducer's imports fail in the candidate: {tried.verdict.reason}", ""
    if tried.changes:
        return Decision.FAIL, f"the candidate is not what its lock says: {_some(tried.changes)}", ""
    if tried.lock is None or tried.environment is None:
        return Decision.INCONCLUSIVE, "the candidate was not built", "the same command goes on and builds it"
    said = f"the candidate resolves, installs and imports, and is what its lock says ({_counted(tried.lock)})"
    return Decision.PASS, said, ""


def _brief(tried: Tried) -> str:
    for missing in (tried.lock, tried.environment):
        if isinstance(missing, Unavailable):
            return DOES_NOT.get(missing.stage, missing.stage)
    if tried.verdict is not None and tried.verdict.headline is Headline.IMPORT_FAILED:
        return DOES_NOT["import"]
    if tried.changes:
        return "changed"
    return _counted(tried.lock) if isinstance(tried.lock, Lock) else "not resolved"


def _counted(lock: Lock | Unavailable) -> str:
    number = len(lock.pins) if isinstance(lock, Lock) else 0
    if isinstance(lock, Lock) and lock.base is not None and not number:
        return "the base itself"
    return counted(number, "distribution") + (
        " over the base" if isinstance(lock, Lock) and lock.base is not None else ""
    )


def _some(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
    return "; ".join(texts[:LISTED]) + more

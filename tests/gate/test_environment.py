"""The environment question: what makes a candidate fail it, and what is only listed."""

from __future__ import annotations

from pathlib import Path

from bisect_env.environments.records import Environment, Reason, Unavailable
from bisect_env.gate.environment import Tried, line, notes, unlike
from bisect_env.gate.records import Decision
from bisect_env.verdicts.records import Headline, Verdict
from tests.gate.build import lock, side

LOCK = lock(torch="2.12.0", numpy="2.0")
BUILT = Environment(LOCK, Path("/e"), Path("/e/venv/bin/python"), "", 1.0)
STANDS = Tried(LOCK, BUILT)


def test_it_passes_when_it_stands() -> None:
    found = line(STANDS, STANDS)
    assert found.decision is Decision.PASS and "2 distributions" in found.sentence
    assert dict(found.figures) == {"baseline's distributions": 2, "candidate's distributions": 2}


def test_each_way_not_to_stand_is_a_fail_in_the_tools_words() -> None:
    conflict = Tried(Unavailable("resolve", Reason.CONFLICT, "because torch wants numpy<2"), None)
    broken = Tried(LOCK, Unavailable("build", Reason.BUILD, "error: no compiler"))
    unimportable = Tried(LOCK, Unavailable("import", Reason.IMPORT, "libcudart.so.13: not found"))
    by_trials = Tried(LOCK, BUILT, Verdict(Headline.IMPORT_FAILED, reason="no module flex"))
    changed = Tried(LOCK, BUILT, changes=tuple(f"changed: lib/{n}.py" for n in range(7)))
    for tried, words in (
        (conflict, "does not resolve (conflict): because torch wants numpy<2"),
        (broken, "does not install (build failed): error: no compiler"),
        (unimportable, "cannot be imported (import failed): libcudart.so.13"),
        (by_trials, "imports fail in the candidate: no module flex"),
        (changed, "changed: lib/4.py; and 2 more"),
    ):
        found = line(STANDS, tried)
        assert found.decision is Decision.FAIL and words in found.sentence


def test_before_it_is_built_nothing_is_said() -> None:
    found = line(STANDS, Tried(LOCK, None))
    assert found.decision is Decision.INCONCLUSIVE and found.more


def test_what_snapshot_and_lock_do_not_share_is_listed() -> None:
    host = side("host", torch="2.12", pip="25.0", numpy="2.1")
    found = unlike(host, lock(torch="2.12.0", numpy="2.0", sympy="1.14"))
    assert found.only_snapshot == ("pip 25.0",)
    assert found.only_lock == ("sympy 1.14",)
    assert found.otherwise == ("numpy 2.1 (lock: 2.0)",)
    said = notes("candidate", host, lock(torch="2.12.0"))
    assert said == ("in the candidate's snapshot and not in its lock: numpy 2.1, pip 25.0",)

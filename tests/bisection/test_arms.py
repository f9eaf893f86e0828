"""How the environments of a confirmation are named: by the version where it is one between the two sides."""

from __future__ import annotations

from bisect_env.bisection.blame import Blame, Culprit
from bisect_env.bisection.records import BAD, GOOD
from tests.bisection.simulated import factor

ALPHA, BETA = Culprit(factor("alpha")), Culprit(factor("beta"))
REST = (", everything else at bad", ", everything else at good")


def labels(blame: Blame, low: dict[str, str], high: dict[str, str]) -> list[str]:
    return [arm.label for arm in blame.arms(low, high)]


def test_ends_and_versions_between_them() -> None:
    one = Blame(("alpha", "other"), (ALPHA,))
    assert labels(one, {}, {}) == [f"alpha at {level}{rest}" for rest in REST for level in (BAD, GOOD)]
    between = labels(one, {"alpha": "1.3.0"}, {"alpha": "1.4.0"})
    assert between == [f"alpha {level}{rest}" for rest in REST for level in ("1.4.0", "1.3.0")]
    assert labels(one, {"alpha": GOOD}, {"alpha": "1.4.0"})[:2] == [f"alpha 1.4.0{REST[0]}", f"alpha at good{REST[0]}"]


def test_where_nothing_else_differs_nothing_is_said_of_it() -> None:
    assert labels(Blame(("alpha",), (ALPHA,)), {"alpha": GOOD}, {"alpha": "2"}) == ["alpha 2", "alpha at good"]


def test_commits_by_their_short_hash() -> None:
    at = {"alpha": f"git+file:///clones/alpha@{'0123456789' * 4}#subdirectory=x"}
    assert labels(Blame(("alpha",), (ALPHA,)), {"alpha": GOOD}, at)[0] == "alpha at commit 012345678901"


def test_pairs() -> None:
    pair = Blame(("alpha", "beta"), (ALPHA, BETA))
    assert labels(pair, {}, {}) == ["alpha and beta at bad", "alpha at good alone", "beta at good alone"]
    walked = labels(pair, {"alpha": "1.3", "beta": GOOD}, {"alpha": "1.4", "beta": BAD})
    assert walked == ["alpha 1.4 and beta at bad", "alpha 1.3 alone", "beta at good alone"]

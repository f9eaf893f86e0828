"""What a dry run says: suspects, impossible mixes, trials, versions."""

from __future__ import annotations

from bisect_env.bisection.planning import plan
from bisect_env.store.database import Store
from tests.bisection.world import Bisections


def test_a_plan_resolves_and_runs_nothing(bisections: Bisections) -> None:
    bisections.offer("alpha", "1.0", requires=["beta<2"])
    bisections.offer("alpha", "1.5", "2.0", requires=["beta>=2"])
    bisections.offer("beta", "1.0", "2.0")
    bisections.offer("gamma", "1.0", "1.1", "1.2", "2.0")
    versions = ("alpha", "beta", "gamma")
    asked = bisections.specification(dict.fromkeys(versions, "1.0"), dict.fromkeys(versions, "2.0"), [])
    bisections.root.mkdir(parents=True)
    with Store(bisections.root / "store.sqlite") as store:
        planned = plan(asked, bisections.place(store))
        assert not store.runs()
    assert [factor.name for factor in planned.factors] == list(versions)
    # Both ends, and three factors flipped alone from either; of three factors these are all different.
    assert planned.mixes == 8
    impossible = [dict(each.point) for each in planned.unresolvable]
    assert len(impossible) == 4
    assert all(point.get("alpha", "good") != point.get("beta", "good") for point in impossible)
    assert dict(planned.versions) == {"alpha": 1, "beta": 0, "gamma": 2}
    assert 10 < planned.trials <= planned.trials_95 and planned.environments >= 2
    assert planned.download_bytes is not None and planned.download_bytes > 0
    assert not (bisections.root / "environments").exists()

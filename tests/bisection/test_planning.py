"""What a dry run says: suspects, impossible mixes, trials, versions."""

from __future__ import annotations

from dataclasses import replace

from bisect_env.bisection.planning import plan
from bisect_env.bisection.records import Budget
from bisect_env.store.database import Store
from bisect_env.trials.records import Side
from bisect_env.trials.reproducers import prepare
from tests.bisection.world import Bisections, Rules
from tests.store.samples import cell, environment, trial


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
    assert planned.notes == (
        "alpha at bad does not resolve with beta at good; should they be all that is left, that mix is tried with "
        "their pins overridden, and marked off-pin",
        "beta at bad does not resolve with alpha at good; should they be all that is left, that mix is tried with "
        "their pins overridden, and marked off-pin",
    )
    assert 10 < planned.trials <= planned.trials_95 and planned.environments >= 2
    assert planned.download_bytes is not None and planned.download_bytes > 0
    assert planned.seconds is None, "nothing was built or tried yet"
    assert not (bisections.root / "environments").exists()


def test_time_is_expected_by_what_trials_and_builds_took(bisections: Bisections) -> None:
    for name in ("alpha", "beta"):
        bisections.offer(name, "1.0", "2.0")
    rules: Rules = [{"when": {"alpha": ">=2"}, "rate": 1.0, "says": "race"}]
    sides = ({"alpha": "1.0", "beta": "1.0"}, {"alpha": "2.0", "beta": "2.0"})
    asked = bisections.specification(*sides, rules)
    bisections.found(replace(asked, budget=Budget(trials=8)))
    with Store(bisections.root / "store.sqlite") as store:
        reproducer = prepare(asked.reproducer).content_hash
        took = [sample.record.seconds for sample in store.latest(reproducer, Side.THREADS, 100)]
        built = store.build_seconds(100)
        planned = plan(asked, bisections.place(store))
        halved = plan(replace(asked, at_once=2), bisections.place(store))
        another = replace(asked, reproducer=replace(asked.reproducer, command=("python", "-B", "trial.py")))
        assert plan(another, bisections.place(store)).seconds is None, "no trial of it is known"
    assert planned.seconds is not None and halved.seconds is not None
    # A busy machine may take ten times as long for one trial as for the next: only what was measured bounds it.
    assert planned.trials * min(took) <= planned.seconds, "at least the trials"
    assert planned.seconds <= planned.trials * max(took) + planned.environments * max(built)
    assert halved.seconds < planned.seconds


def test_batches_at_a_time_are_sooner_for_more_trials(bisections: Bisections) -> None:
    names = ("alpha", "beta", "gamma", "delta")
    for name in names:
        bisections.offer(name, "1.0", "2.0")
    asked = bisections.specification(dict.fromkeys(names, "1.0"), dict.fromkeys(names, "2.0"), [])
    asked = replace(asked, at_once=8)
    with Store(bisections.root / "store.sqlite") as store:
        store.start_run("m", "m.yaml", (), 0, {}, run_id="run")
        record = replace(trial("t1", side=Side.THREADS), seconds=10.0)
        record = replace(record, reproducer=prepare(asked.reproducer).content_hash)
        store.put_cells([cell()], "m")
        store.put_trial(record, cell().key, "run", 0, record.reproducer)
        store.put_environment(environment(), 20.0)
        one, four, lone = (
            plan(each, bisections.place(store))
            for each in (
                replace(asked, parallel=1, at_once=1), replace(asked, parallel=4), replace(asked, parallel=4, at_once=1)
            )
        )  # fmt: skip
    assert one.seconds is not None and four.seconds is not None and lone.seconds is not None
    assert one.trials < four.trials == lone.trials and four.seconds < 0.6 * one.seconds
    assert lone.seconds > one.seconds, "where one trial runs at a time, more of them take longer"
    assert any("4 batches at a time" in note for note in four.notes) and not one.notes

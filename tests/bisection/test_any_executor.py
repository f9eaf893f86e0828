"""A bisection finds the same under an executor of another kind as on this host."""

from __future__ import annotations

import threading

from bisect_env.bisection.batches import Place
from bisect_env.bisection.driver import bisect
from bisect_env.bisection.records import Answer
from bisect_env.engine.settings import Settings
from bisect_env.environments.uv import Uv
from bisect_env.store.database import Store
from tests.bisection.world import Bisections, Listener, Rules
from tests.engine.scrambled import Scrambled


def test_the_same_culprit(bisections: Bisections) -> None:
    bisections.offer("alpha", "1.0", "2.0", "3.0", "4.0")
    bisections.offer("beta", "1.0", "2.0")
    rules: Rules = [{"when": {"alpha": ">=3.0"}, "rate": 0.8, "says": "race"}]
    asked = bisections.specification({"alpha": "1.0", "beta": "1.0"}, {"alpha": "4.0", "beta": "2.0"}, rules)
    ours = bisections.found(asked)
    executor = Scrambled(seed=2, lost=0.2)
    root = bisections.folder / "elsewhere"
    root.mkdir()
    with Store(root / "store.sqlite") as store:
        settings = Settings(root, executor=executor)
        theirs = bisect(asked, Place(settings, store, Uv(bisections.uv_cache), Listener(), threading.Event()))
    for found in (ours, theirs):
        assert found.answer is Answer.CULPRIT and found.versions is not None, found.sentence
        assert ([each.name for each in found.factors], found.versions.first_bad) == (["alpha"], "3.0")
    assert executor.most_at_once > 1 and executor.losses

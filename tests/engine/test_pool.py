"""The pool: results in the order in which they end, words in between, and an end to everything."""

from __future__ import annotations

import threading
import time

import pytest

from bisect_env.engine.pool import Pool
from bisect_env.matrix.cells import Condition
from bisect_env.trials.records import Outcome, Side, TrialRecord
from bisect_env.trials.runner import Stopped

RECORD = TrialRecord("t", "e", "r", Condition(()), Side.SERIAL, 0, Outcome.CLEAN)


def test_results_and_words_come_to_the_one_that_waits() -> None:
    said: list[tuple[str, int]] = []
    with Pool[str](2, threading.Event(), lambda text: said.append((text, threading.get_ident()))) as pool:
        go = threading.Event()

        def slow() -> TrialRecord:
            pool.say("waiting")
            go.wait(10)
            return RECORD

        pool.start("slow", slow)
        pool.start("quick", lambda: RECORD)
        assert pool.wait()[0] == "quick"
        go.set()
        assert pool.wait() == ("slow", RECORD)
    assert said == [("waiting", threading.get_ident())]


def test_what_goes_wrong_in_a_thread_is_raised_and_ends_the_others() -> None:
    stop = threading.Event()

    def until_stopped() -> TrialRecord:
        assert stop.wait(10)
        raise Stopped

    def fails() -> TrialRecord:
        raise KeyError("x")

    pool = Pool[str](3, stop, lambda text: None)
    with pytest.raises(KeyError), pool:
        pool.start("ended", lambda: RECORD)
        time.sleep(0.05)
        pool.start("long", until_stopped)
        pool.start("fails", fails)
        assert pool.wait()[0] == "ended"
        pool.start("ended meanwhile", lambda: RECORD)
        while True:
            pool.wait()
    assert [task for task, _ in pool.left()] in ([], ["ended meanwhile"])

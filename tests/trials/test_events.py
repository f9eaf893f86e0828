from __future__ import annotations

import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.trials.events import read
from bisect_env.trials.records import Round, Utilisation


def lines(*events: dict[str, object]) -> str:
    return "".join(json.dumps({"t": 1.0, **event}) + "\n" for event in events)


def test_everything_a_reproducer_can_say() -> None:
    facts = read(
        lines(
            {"event": "start", "pid": 3},
            {"event": "ready", "t": 2.0, "versions": {"torch": "2.11.0", "triton": None}, "devices": ["cpu"]},
            {"event": "window", "thread": "w0", "phase": "begin", "what": "forward"},
            {"event": "window", "thread": "w1", "phase": "begin", "what": "backward"},
            {"event": "window", "thread": "w0", "phase": "end", "what": "forward"},
            {"event": "step", "t": 3.0, "thread": "w0", "tokens": 64, "seconds": 0.5, "warm": True, "count": 4},
            {"event": "alive", "thread": "w0"},
            {"event": "path", "thread": "w1", "calls": 10, "signs": {"math_attention": 3}},
            {"event": "memory", "peak_bytes": 5, "predicted": {"fused": 4.5, "dense": 20}},
            {"event": "numbers", "what": "grad", "error": 0.1, "tolerance": 0.5},
            {"event": "losses", "thread": "w0", "values": [1.5, None]},
            {"event": "exposures", "count": 7},
            {"event": "cache", "hits": 3, "misses": 0},
            {"event": "note", "key": "threads", "value": 2},
            {"event": "repeat", "index": 1, "resets": 1},
            {"event": "waiting", "round": 0},
            {"event": "round", "t": 4.0, "index": 0, "tokens": 96, "seconds": 0.25},
            {"event": "waiting", "round": 1},
            {"event": "utilisation", "what": "attention", "operations": 3e12, "seconds": 0.5, "ceiling": 1e13},
            {"event": "done"},
        )
    )
    assert facts.ignored == 0
    assert (facts.ready, facts.done, facts.versions, facts.devices) == (2.0, True, {"torch": "2.11.0"}, ("cpu",))
    assert (facts.windows, facts.open_windows) == (2, {"w1": ["backward"]})
    assert (facts.steps[0].tokens, facts.steps[0].seconds, facts.steps[0].warm) == (64, 0.5, True)
    assert facts.paths[0].signs == (("math_attention", 3),)
    assert (facts.peak_bytes, facts.predicted_bytes) == (5, {"fused": 4, "dense": 20})
    assert facts.numbers == [("grad", 0.1, 0.5)]
    assert facts.losses["w0"][0] == 1.5 and math.isnan(facts.losses["w0"][1])
    assert (facts.exposures, facts.cache_hits, facts.cache_misses, facts.notes) == (7, 3, 0, [("threads", "2")])
    assert facts.rounds == [Round(0, 96, 0.25, 4.0)] and (facts.waiting, facts.resets) == (1, 1)
    assert facts.utilisation == [Utilisation("attention", 3e12, 0.5, 1e13)] and facts.utilisation[0].share == 0.6


def test_failures_come_earliest_first() -> None:
    facts = read(
        lines(
            {"event": "failure", "t": 9.0, "thread": "w1", "type": "ValueError", "message": "later"},
            {
                "event": "failure",
                "t": 8.0,
                "thread": "w0",
                "type": "KeyError",
                "message": "'custom'",
                "module": "torch",
            },
        )
    )
    assert [(failure.thread, str(failure.signature)) for failure in facts.failures] == [
        ("w0", "KeyError: 'custom'"),
        ("w1", "ValueError: later"),
    ]


def test_resets_are_those_before_the_first_failure_and_the_phase_is_its_own() -> None:
    failed = {"event": "failure", "thread": "w0", "type": "ValueError", "message": "x"}
    told = [
        {"event": "repeat", "index": 0, "resets": 0},
        {"event": "repeat", "index": 1, "resets": 1},
        {**failed, "t": 9.0, "phase": "backward"},
        {**failed, "t": 8.0, "phase": "first call"},
        {**failed, "t": 8.0},
        {"event": "repeat", "index": 2, "resets": 2},
    ]
    facts = read(lines(*told))
    assert (facts.resets, facts.phase, facts.ignored) == (1, "first call", 0)
    assert read(lines(*told[:2])).resets == 1
    assert (read(lines(failed)).phase, read(lines(failed)).resets) == ("", 0)


def test_a_round_or_a_utilisation_without_time_is_none() -> None:
    whole = {"event": "utilisation", "what": "step", "operations": 1.0, "seconds": 1.0, "ceiling": 1.0}
    wrong = [{**whole, key: 0} for key in ("operations", "seconds", "ceiling")]
    wrong += [{"event": "round", "index": 0, "tokens": 5, "seconds": value} for value in (0, -1.0, "1")]
    facts = read(lines(*wrong, {"event": "waiting", "round": -1}, {"event": "repeat", "index": 0}))
    assert facts.ignored == len(wrong) + 2
    assert not facts.rounds and not facts.utilisation and facts.waiting is None


def test_a_torn_last_line_is_no_event_and_no_fault() -> None:
    facts = read(lines({"event": "start"}, {"event": "done"})[:-10])
    assert (facts.done, facts.ignored, len(facts.times)) == (False, 0, 1)


def test_malformed_lines_are_counted() -> None:
    facts = read(
        'no json\n{"event": "witness", "t": 1}\n{"event": "done"}\n{"event": "done", "t": "now"}\n[]\n'
        '{"event": "step", "t": 1, "thread": "w0", "tokens": -1, "seconds": 1, "warm": true}\n'
        '{"event": "path", "t": 1, "thread": "w0", "calls": 1, "signs": {"kernels": 1.5}}\n'
        '{"event": "ready", "t": NaN, "versions": {}}\n{"event": "cache", "t": 1, "hits": true, "misses": 0}\n'
    )
    assert facts.ignored == 9
    assert not facts.done and not facts.steps and not facts.paths and facts.ready is None and facts.cache_hits is None


def test_an_error_that_is_no_number_stays_one_that_never_passes() -> None:
    for error in ("NaN", "null", '"nan"'):
        facts = read(f'{{"event": "numbers", "t": 1, "what": "loss", "error": {error}, "tolerance": 1}}\n')
        assert math.isnan(facts.numbers[0][1])


def test_longest_silence_counts_from_ready_to_the_end() -> None:
    facts = read(
        lines(
            {"event": "start", "t": 0},
            {"event": "ready", "t": 50},
            {"event": "alive", "t": 53},
            {"event": "done", "t": 54},
        )
    )
    assert facts.longest_silence(end=54.5) == 3
    assert facts.longest_silence(end=60) == 6
    assert read("").longest_silence(end=60) == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = ["start", "import_failed", "ready", "window", "step", "alive", "path", "failure", "memory", "numbers", "losses",
         "exposures", "cache", "note", "repeat", "round", "waiting", "utilisation", "done", "other"]  # fmt: skip
KEYS = ["t", "thread", "phase", "what", "tokens", "seconds", "warm", "calls", "signs", "type", "message", "module",
        "peak_bytes", "predicted", "error", "tolerance", "values", "count", "hits", "misses", "key", "value",
        "versions", "devices", "index", "resets", "round", "operations", "ceiling"]  # fmt: skip


@given(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(KEYS), JSON))
@settings(max_examples=400, deadline=None)
def test_no_event_is_an_error(name: str, words: dict[str, object]) -> None:
    facts = read(json.dumps({"event": name, **words}) + "\n")
    assert facts.ignored + len(facts.times) == 1

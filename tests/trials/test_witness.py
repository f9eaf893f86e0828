"""A witnessed trial: what the reproducer is told, what the record keeps, and how a long log is thinned out."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.explanation.log import read_log
from bisect_env.explanation.records import Action, State
from bisect_env.trials.isolation import isolate
from bisect_env.trials.records import Side
from bisect_env.trials.witness import thinned, written
from bisect_env.verdicts.samples import by_side, counts
from tests.trials.scripts import run_script, spec_of

HEAD = '{"witness": 1, "python": "3.11.7", "pid": 1, "started": 0.0}\n'
BODY = """
condition = json.load(open(os.environ["BISECT_ENV_CONDITION"]))
say("note", key="condition", value=condition)
say("note", key="variables", value=sorted(name for name in os.environ if "WITNESS" in name or name == "PYTHONPATH"))
say("done")
"""


def line(t: float, action: str = "set", stack: int = 0, thread: str = "w0", state: str = "fx-tracing") -> str:
    return json.dumps({"e": [t, thread, state, action, "", stack]}) + "\n"


def stack(number: int, size: int = 1) -> str:
    return json.dumps({"stack": number, "frames": [["torch/a.py", 1, "f"]] * size}) + "\n"


def test_the_reproducer_is_told_threads_and_the_log_is_in_the_record(tmp_path: Path) -> None:
    record = run_script(tmp_path, BODY, side=Side.WITNESS)
    told = dict(record.extra)
    assert '"side": "threads"' in told["condition"] and told["variables"] == "[]"
    log = read_log(record.witness)
    assert record.side is Side.WITNESS and log is not None and log.complete
    assert not any(counts(each) for each in [record])
    sides = by_side([record, replace(record, side=Side.THREADS)])
    assert len(sides.threads) == 1 and sides.infra == 0 and sides.undecided == ()


def test_no_other_side_is_witnessed(tmp_path: Path) -> None:
    record = run_script(tmp_path, BODY)
    assert record.witness == "" and dict(record.extra)["variables"] == "[]"


def test_its_folder_stands_before_the_users_own(tmp_path: Path) -> None:
    spec = replace(spec_of(tmp_path, BODY), side=Side.WITNESS, variables=(("PYTHONPATH", "/theirs"),))
    first, second = isolate(spec, {}).variables["PYTHONPATH"].split(":")
    assert first.endswith("reproducers/witness") and second == "/theirs"
    assert "BISECT_ENV_WITNESS" not in isolate(
        replace(spec, side=Side.THREADS, pass_env=("BISECT_*",)), {"BISECT_ENV_WITNESS": "/elsewhere"}
    ).variables  # fmt: skip


def test_the_largest_of_several_processes_logs_is_kept(tmp_path: Path) -> None:
    assert written(tmp_path / "witness.jsonl") == ""
    (tmp_path / "witness.jsonl").write_text("a")
    (tmp_path / "witness.jsonl-12").write_text("bbb")
    (tmp_path / "witness.jsonl~").write_text("half written")
    assert written(tmp_path / "witness.jsonl") == "bbb"


def test_a_long_log_keeps_its_beginning_what_is_near_a_failure_and_what_was_set_long_before() -> None:
    counts = "".join(f'{{"count": ["w1", "fx-tracing", "read", {number}]}}\n' for number in range(400))
    middle = "".join(line(10 + i / 1000, "read", 2, "w1") for i in range(5000))
    old = line(2.0, "set", 1, "w9")
    first = "".join(line(1 + i / 10_000, "read", 2, "w1") for i in range(2000))
    failing = line(14.5, "obeyed", 3, "w1")
    text = HEAD + stack(1) + stack(2) + stack(3, 5) + stack(4) + first + old + middle + failing + counts
    short = thinned(text, [14.5], 30_000)
    assert len(short) <= 30_050
    log, whole = read_log(short), read_log(text)
    assert log is not None and whole is not None
    assert len(log.events) + log.dropped == len(whole.events)
    assert log.counts == whole.counts and short.count('"count"') == 1
    times = [event.t for event in log.events]
    assert 1.0 in times and 2.0 in times and 14.5 in times and 11.0 not in times
    assert any(14.4985 < t < 14.5 for t in times)
    [obeyed] = [event for event in log.events if event.action is Action.OBEYED]
    assert len(obeyed.stack) == 5 and '"stack": 4' not in short


def test_a_short_log_stays_as_it_is() -> None:
    text = HEAD + line(1.0)
    assert thinned(text, []) == text


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.sampled_from(["set", "clear", "read", "obeyed", "wait"]), st.integers(0, 5)),
        max_size=80,
    ),
    st.lists(st.floats(0, 100), max_size=3),
    st.integers(200, 4000),
)
def test_thinning_loses_nothing_silently(events: list[tuple[float, str, int]], near: list[float], limit: int) -> None:
    text = HEAD + "".join(stack(number) for number in range(1, 6)) + "".join(line(*event) for event in events)
    short = thinned(text, near, limit)
    log, whole = read_log(short), read_log(text)
    assert log is not None and whole is not None
    assert len(log.events) + log.dropped == len(whole.events)
    assert set(log.events) <= set(whole.events)
    assert len(short) <= max(limit, len(HEAD)) + 40


@pytest.mark.parametrize("words", ["", "no log\n", "[1]\n", '{"witness": 2}\n', '{"e": [1]}\n', '{"torch": "2"}\n'])
def test_what_no_witness_wrote_is_no_log(words: str) -> None:
    assert read_log(words) is None


def test_torn_and_foreign_lines_are_left_out() -> None:
    text = HEAD + line(2.0, "set", 1) + "print\n" + line(1.0, "no such action") + stack(1) + line(1.5)[:20]
    log = read_log(text)
    assert log is not None and len(log.events) == 1 and len(log.events[0].stack) == 1
    assert not log.complete and log.threads == ("w0",)


@given(st.lists(st.one_of(st.text(max_size=30), st.binary(max_size=30).map(lambda b: b.decode(errors="replace")))))
def test_any_text_is_read(pieces: list[str]) -> None:
    read_log("\n".join([HEAD, *pieces]))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(
                [
                    "e",
                    "stack",
                    "frames",
                    "count",
                    "watched",
                    "where",
                    "how",
                    "unknown",
                    "why",
                    "dropped",
                    "thinned",
                    "torch",
                    "end",
                    "witness",
                    "python",
                    "started",
                ]
            ),
            _JSON,
            max_size=4,
        ),
        max_size=6,
    )
)
def test_any_values_are_read(lines: list[dict[str, object]]) -> None:
    text = HEAD + "".join(json.dumps(words) + "\n" for words in lines)
    log = read_log(text)
    assert log is not None and log.dropped >= 0
    thinned(text, [1.0], 100)


@given(st.randoms(use_true_random=False))
def test_the_order_of_lines_does_not_matter(shuffle: random.Random) -> None:
    lines = [line(float(number), "set", number % 3 + 1) for number in range(6)] + [
        stack(number) for number in (1, 2, 3)
    ]
    shuffled = list(lines)
    shuffle.shuffle(shuffled)
    one, other = read_log(HEAD + "".join(lines)), read_log(HEAD + "".join(shuffled))
    assert one is not None and other is not None and one.events == other.events
    assert one.events[0].state is State.TRACING


@pytest.mark.parametrize(("action", "value"), [("obeyed", "raised"), ("raised", "RuntimeError: nested")])
def test_of_a_command_what_was_round_its_failure_is_kept_and_not_only_what_was_round_its_end(
    action: str, value: str
) -> None:
    failed = json.dumps({"e": [400.5, "w1", "fx-tracing", action, value, 0]}) + "\n"
    text = HEAD + "".join(line(float(t), "set" if t % 2 else "read") for t in range(1000)) + failed
    log = read_log(thinned(text, [999.0], len(text) // 4))
    assert log is not None and log.dropped > 500
    times = {event.t for event in log.events}
    assert {400.5, *map(float, range(390, 411)), *map(float, range(980, 1000))} <= times

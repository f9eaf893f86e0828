from __future__ import annotations

from typing import Any

import pytest
from condition import SIDES, CannotRunHere, checked, command_line, summary
from hypothesis import given
from hypothesis import strategies as st

OPTIONS: dict[str, dict[str, Any]] = {
    "threads": {"default": 2, "min": 1, "max": 8, "help": "worker threads"},
    "pattern": {"default": "hot", "choices": ["hot", "barrier"], "help": "who compiles"},
    "stagger": {"default": 0.0, "min": 0.0, "help": "seconds between starts"},
    "last_step": {"default": False, "help": "100 % of it"},
}


def test_what_is_not_given_has_its_default() -> None:
    assert checked(OPTIONS, {"pattern": "barrier", "seed": 3}) == {
        "threads": 2,
        "pattern": "barrier",
        "stagger": 0.0,
        "last_step": False,
        "side": "threads",
        "seed": 3,
    }


@given(threads=st.integers(), seed=st.integers(), pattern=st.text(max_size=8), side=st.sampled_from([*SIDES, "both"]))
def test_only_values_the_options_allow_pass(threads: int, seed: int, pattern: str, side: str) -> None:
    given_values = {"threads": threads, "pattern": pattern, "seed": seed, "side": side}
    fine = 1 <= threads <= 8 and pattern in ("hot", "barrier") and side in SIDES and seed >= 0
    if fine:
        assert checked(OPTIONS, given_values).items() >= given_values.items()
    else:
        with pytest.raises(ValueError, match=r"threads|pattern|seed|side"):
            checked(OPTIONS, given_values)


@pytest.mark.parametrize(
    ("given_values", "message"),
    [
        ({"threads": "2"}, "threads: '2' is not of type int"),
        ({"threads": True}, "threads: True is not of type int"),
        ({"threads": 9}, "threads: 9 is not between 1 and 8"),
        ({"stagger": -0.5}, "stagger: -0.5 is not between 0.0 and inf"),
        ({"stagger": "soon"}, "stagger: 'soon' is not of type float"),
        ({"last_step": 1}, "last_step: 1 is not of type bool"),
        ({"pattern": "cold"}, "pattern: 'cold' is none of hot, barrier"),
        ({"threads": 0, "pattern": "x"}, "threads: 0 is not between 1 and 8; pattern: 'x' is none of hot, barrier"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(given_values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        checked(OPTIONS, given_values)
    assert str(raised.value) == message


def test_a_whole_number_serves_where_a_fraction_is_wanted() -> None:
    assert checked(OPTIONS, {"stagger": 1})["stagger"] == 1


def test_a_key_without_an_option_cannot_be_honoured_and_is_not_ignored() -> None:
    with pytest.raises(CannotRunHere, match="no option for mitigation=lock"):
        checked(OPTIONS, {"mitigation": "lock", "cache": "warm"})
    assert checked(OPTIONS, {"mitigation": "none", "checkpointing": "none", "cache": "warm"}) == checked(OPTIONS, {})


def test_flags_come_from_the_options() -> None:
    arguments = ["--threads", "3", "--stagger", "0.5", "--last-step", "--side", "solo", "--seed", "7"]
    assert checked(OPTIONS, command_line(OPTIONS, "words", arguments)) == {
        "threads": 3,
        "pattern": "hot",
        "stagger": 0.5,
        "last_step": True,
        "side": "solo",
        "seed": 7,
    }


@pytest.mark.parametrize("arguments", [["--threads", "two"], ["--pattern", "cold"], ["--side", "both"], ["--unknown"]])
def test_a_wrong_command_line_is_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        command_line(OPTIONS, "words", arguments)
    assert raised.value.code == 2
    assert arguments[0].lstrip("-") in capsys.readouterr().err


def test_help_shows_every_option_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        command_line(OPTIONS, "words", ["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert raised.value.code == 0
    for words in ("words", "worker threads (default: 2)", "{hot,barrier}", "100 % of it (default: False)"):
        assert words in shown


def test_the_summary_has_every_fact() -> None:
    seen = [
        {"event": "ready", "versions": {"torch": "2.11.0"}, "devices": ["cpu"]},
        {"event": "step", "thread": "w1", "tokens": 300, "seconds": 1.5, "warm": True},
        {"event": "step", "thread": "w1", "tokens": 100, "seconds": 0.5, "warm": True},
        {"event": "step", "thread": "w1", "tokens": 999, "seconds": 9.0, "warm": False},
        {"event": "window", "phase": "begin"},
        {"event": "window", "phase": "end"},
        {"event": "path", "thread": "w1", "calls": 9, "signs": {"math_attention": 4}},
        {"event": "exposures", "count": 7},
        {"event": "memory", "peak_bytes": 3 * 2**20},
        {"event": "numbers", "what": "output", "error": 0.25, "tolerance": 0.5},
        {
            "event": "failure",
            "thread": "w1",
            "type": "KeyError",
            "module": "torch.fx",
            "where": "f:3",
            "message": "'x'",
        },
    ]
    lines = summary(seen, {"threads": 2}).splitlines()
    assert lines == [
        "condition: threads=2",
        "versions:  torch 2.11.0",
        "devices:   cpu",
        "w1: 400 tokens warm in 2.00 s, 200 tokens/s",
        "w1: 9 calls after its first; seen unfused: math_attention 4",
        "compiles: 1; calls made while another thread was compiling: 7",
        "peak memory: 3 MiB",
        "numbers: output: relative error 0.25 (tolerance 0.5)",
        "FAILED w1: KeyError in torch.fx (f:3): 'x'",
        "outcome: 1 thread(s) failed",
    ]


def test_one_repeat_may_be_asked_for_where_there_are_repeats() -> None:
    options = {"repeats": {"default": 1, "min": 1, "max": 9}}
    assert checked(options, {"only_repeat": 3})["only_repeat"] == 3
    assert "only_repeat" not in checked(options, {"only_repeat": None})
    with pytest.raises(ValueError, match="only_repeat: -1 is not between 0"):
        checked(options, {"only_repeat": -1})
    with pytest.raises(CannotRunHere, match="no repeats"):
        checked({}, {"only_repeat": 3})

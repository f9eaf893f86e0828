"""Records to JSON and back."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bisect_env.environments.records import Environment, Interpreter, Lock, Unavailable
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, IndexChoice, Limits
from bisect_env.store.codec import decode, encode, without_credentials
from bisect_env.trials import records
from bisect_env.trials.records import TrialRecord
from tests.store.samples import cell, trial

TEXT = st.text(max_size=20).filter(lambda text: "://" not in text)
LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    Path: st.lists(st.text("abc ä.", min_size=1, max_size=5), max_size=4).map(lambda parts: Path("/", *parts)),
}


def full(kind: Any) -> st.SearchStrategy[Any]:
    """Every field of a record filled, defaults included: a default would hide that a field is lost."""
    if kind in LEAVES:
        return LEAVES[kind]
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: full(hints[field.name]) for field in dataclasses.fields(kind)})
    arguments = getattr(kind, "__args__", ())
    if getattr(kind, "__origin__", None) is tuple:
        if arguments[-1] is Ellipsis:
            return st.lists(full(arguments[0]), max_size=3).map(tuple)
        return st.tuples(*map(full, arguments))
    if arguments:
        return st.one_of(*map(full, arguments))
    return st.from_type(kind)


@pytest.mark.parametrize("kind", [TrialRecord, Lock, Environment, Unavailable, Cell, records.TrialSpec, Interpreter])
def test_round_trip_is_exact(kind: type[Any]) -> None:
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(full(kind))
    def holds(record: Any) -> None:
        # repr, because NaN is not equal to itself; it also tells 1, 1.0 and True apart, which == does not.
        assert repr(decode(kind, encode(record))) == repr(record)

    holds()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308, 5e-324, -0.0])
def test_numbers_that_json_does_not_have(value: float) -> None:
    record = dataclasses.replace(trial("t1"), losses=(("w0", (value,)),), seconds=value)
    back = decode(TrialRecord, encode(record))
    assert repr(back.losses) == repr(record.losses)
    assert repr(back.seconds) == repr(value)


def test_types_of_condition_values_survive() -> None:
    values = {"a": 1, "b": 1.0, "c": True, "d": "1", "e": "true", "f": 0, "g": False, "h": "nan"}
    record = dataclasses.replace(trial("t1"), condition=Condition.of(values))
    back = decode(TrialRecord, encode(record)).condition.as_dict()
    assert {key: (type(value), value) for key, value in back.items()} == {k: (type(v), v) for k, v in values.items()}


def test_a_key_and_condition_key_survive() -> None:
    original = cell()
    back = decode(Cell, encode(original))
    assert (back, back.key, back.condition_key) == (original, original.key, original.condition_key)


def test_output_that_is_no_text_is_kept_readably() -> None:
    record = dataclasses.replace(trial("t1"), output="before \udc80 after \x00", extra=(("k", "\ud800"),))
    back = decode(TrialRecord, encode(record))
    assert back.output == "before \\udc80 after \x00"
    assert back.extra == (("k", "\\ud800"),)
    assert back.losses == record.losses
    assert back.side is record.side


def test_unknown_keys_are_ignored_and_missing_ones_get_their_defaults() -> None:
    data = json.loads(encode(trial("t1")))
    data["from_the_future"] = {"x": 1}
    data["condition"]["also"] = 1
    for name in ("output", "cores", "extra", "hang_kind"):
        del data[name]
    back = decode(TrialRecord, json.dumps(data))
    assert (back.id, back.output, back.cores, back.extra) == ("t1", "", (), ())


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"id": 3}', encode(trial("t1"))[:-1], encode(cell())])
def test_anything_else_is_an_error_with_words(text: str) -> None:
    with pytest.raises(InfrastructureError, match="TrialRecord that cannot be read"):
        decode(TrialRecord, text)


def test_a_value_of_a_newer_version_is_named() -> None:
    data = json.loads(encode(trial("t1")))
    data["outcome"] = "melted"
    with pytest.raises(InfrastructureError, match=r"outcome: .*newer bisect-env"):
        decode(TrialRecord, json.dumps(data))


@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("https://user:s3cret@host/simple", "https://****@host/simple"),
        ("HTTPS://token@host", "HTTPS://****@host"),
        ("a http://u:p@h b https://x:y@z", "a http://****@h b https://****@z"),
        ("pkg @ git+https://tok@github.com/a/b@0123", "pkg @ git+https://****@github.com/a/b@0123"),
        ("pkg @ git+ssh://git@github.com/a/b@0123", "pkg @ git+ssh://git@github.com/a/b@0123"),
        ("git+ssh://git:pw@host/a", "git+ssh://****@host/a"),
        ("https://host/path/@scope/x", "https://host/path/@scope/x"),
        ("https://host:8080/x a@b", "https://host:8080/x a@b"),
        ("mail me@host", "mail me@host"),
        ("https://host/x?token=s3cret&a=b", "https://host/x?token=***&a=b"),
    ],
)
def test_credentials_are_left_out(given_text: str, kept: str) -> None:
    assert without_credentials(given_text) == kept
    assert without_credentials(kept) == kept


def test_credentials_are_left_out_wherever_they_are() -> None:
    secret = "https://user:s3cret@host/simple?token=s3cret"
    for record in (
        cell(urls=(secret,)),
        dataclasses.replace(trial("t1"), output=f'say "{secret}"\n{secret}', message=secret),
        EnvironmentRequest((f"x @ {secret}",), index=IndexChoice(find_links=(secret,))),
    ):
        text = encode(record)
        assert "s3cret" not in text
        assert "user:" not in text
        assert repr(decode(type(record), text)) == repr(record).replace("user:s3cret", "****").replace("s3cret", "***")


def test_limits_are_a_record_too() -> None:
    assert decode(Limits, encode(Limits(trial=1.5))) == Limits(trial=1.5)

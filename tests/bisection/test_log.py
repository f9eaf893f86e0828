"""The log: what is written is read, torn lines are nothing, and damage is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.bisection.log import Answer, Candidates, Checked, Header, Log, Told, Undone, read, undo
from bisect_env.bisection.records import Observation, Stage, Unresolvable
from bisect_env.errors import BadInput
from tests.bisection.simulated import factor, specification


def header() -> Header:
    factors = (factor("torch"), factor("triton"))
    return Header("r123456", specification(factors), factors, 1.5, "0.1")


def told(number: int, size: int = 2) -> Told:
    point = (("torch", "bad"),)
    seen = Observation(Stage.FACTORS, number, point, "cell", "address", failures=1, passes=1, trials=("t1", "t2"))
    return Told((seen,), size, 0.25)


def begun(path: Path) -> Log:
    log = Log(path)
    log.begin(header())
    return log


def test_what_is_written_is_read(tmp_path: Path) -> None:
    log = begun(tmp_path / "a" / "log.jsonl")
    answers: list[Answer] = [
        Checked(Stage.FACTORS, (Unresolvable((("torch", "bad"),), "conflict"),), 4),
        told(0),
        Candidates(Stage.VERSIONS, "torch", ("1", "2", "3"), ("a", "b"), ("note",)),
        told(1, 3),
    ]
    for answer in answers:
        log.append(answer)
    history = read(log.path)
    assert (history.header, list(history.answers), history.blocks) == (header(), answers, 5)
    assert history.seconds == 0.5


@given(cut=st.integers(1, 200))
def test_a_torn_last_line_is_nothing_and_is_cut_off(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    log = begun(tmp_path_factory.mktemp("torn") / "log.jsonl")
    log.append(told(0))
    whole = log.path.read_bytes()
    log.append(told(1))
    log.path.write_bytes(log.path.read_bytes()[:-cut] if cut < len(log.path.read_bytes()) - len(whole) else whole)
    assert read(log.path).answers == (told(0),)
    log.append(told(2))
    assert read(log.path).answers == (told(0), told(2))


def test_undoing_appends_and_takes_back_what_followed_from_it(tmp_path: Path) -> None:
    log = begun(tmp_path / "log.jsonl")
    log.append(told(0))
    log.append(told(1))
    log.append(Candidates(Stage.VERSIONS, "torch", ("1", "2")))
    size = log.path.stat().st_size
    assert undo(log.path) == told(1).observations
    assert log.path.stat().st_size > size
    history = read(log.path)
    # Its trials stay in the store, in blocks that are taken.
    assert (history.answers, history.blocks) == ((told(0),), 4)
    assert undo(log.path) == told(0).observations
    assert undo(log.path) == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "line 1: no whole line"),
        (b"not json\n", "line 1: no entry"),
        (b'{"kind":"told","body":{}}\n', "line 1: an entry 'told'"),
        (b"[]\n", "line 1: no entry"),
    ],
)
def test_what_is_no_log_is_told(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=words):
        read(path)


def test_an_entry_of_a_newer_version_is_told(tmp_path: Path) -> None:
    log = begun(tmp_path / "log.jsonl")
    with log.path.open("a") as file:
        file.write('{"kind":"dreamt","body":{}}\n')
    with pytest.raises(BadInput, match="line 2: an entry 'dreamt'"):
        read(log.path)


def test_no_log_at_all(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        read(tmp_path / "log.jsonl")


def test_credentials_never_reach_it(tmp_path: Path) -> None:
    from dataclasses import replace

    from bisect_env.matrix.cells import IndexChoice

    asked = replace(header().specification, index=IndexChoice(urls=("https://me:secret@index.example/simple",)))
    Log(tmp_path / "log.jsonl").begin(replace(header(), specification=asked))
    assert b"secret" not in (tmp_path / "log.jsonl").read_bytes()
    Log(tmp_path / "log.jsonl").append(Undone())

"""What was read of a file, in pieces; what a server may do wrong is tested with whole wheels (inspection)."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.environments.ranges import TAIL, Pieces, Ranged
from tests.support.index import Index

SIZE = 60
spans = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda pair: (min(pair), max(pair)))


@given(kept=st.lists(spans), asked=spans)
def test_what_is_there_and_what_is_missing(kept: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    content, pieces = bytes(range(SIZE)), Pieces()
    for start, end in kept:
        pieces.add(start, content[start:end])
    there = {place for start, end in kept for place in range(start, end)}
    missing = [place for start, end in pieces.missing(*asked) for place in range(start, end)]
    assert missing == [place for place in range(*asked) if place not in there]
    first_hole = missing[0] if missing else asked[1]
    assert pieces.read(*asked) == content[asked[0] : first_hole]


def big(index: Index, folder: Path) -> tuple[str, bytes]:
    content = bytes(range(256)) * 2000
    folder.mkdir(exist_ok=True)
    (folder / "big-1.0-py3-none-any.whl").write_bytes(content)
    index.add(folder / "big-1.0-py3-none-any.whl")
    index.parts = True
    return f"http://{index.host}{index.prefix}/files/big-1.0-py3-none-any.whl", content


def test_parts_that_will_be_read_are_asked_for_at_once_and_neighbours_together(index: Index, tmp_path: Path) -> None:
    url, content = big(index, tmp_path / "w")
    heard: list[int] = []
    with requests.Session() as session:
        file = Ranged(session, url, size=len(content), heard=heard.append)
        assert heard == [TAIL]
        file.load([(0, 10), (100, 200), (300_000, 300_100), (5, 150)])
        assert sorted(heard[1:]) == [100, 200]
        asked = len(index.requests)
        for start, end in ((0, 200), (300_000, 300_100), (len(content) - TAIL, len(content))):
            file.seek(start)
            assert not file.lacks(start, end) and file.read(end - start) == content[start:end]
        assert len(index.requests) == asked
        file.load([(0, 10)])
        assert len(index.requests) == asked


def test_a_torn_or_busy_answer_is_asked_for_again(index: Index, tmp_path: Path) -> None:
    url, content = big(index, tmp_path / "w")
    with requests.Session() as session:
        index.cuts = 1
        file = Ranged(session, url)
        index.cuts = 1
        assert file.read(100) == content[:100]
        index.cuts = 2
        file.seek(200_000)
        with pytest.raises(OSError, match="cut off"):
            file.read(10)
        index.status = 503
        with pytest.raises(OSError, match="HTTP 503"):
            file.read(10)
        index.status = 403
        with pytest.raises(PermissionError, match="refused"):
            file.read(10)


def test_the_most_bytes(index: Index, tmp_path: Path) -> None:
    url, _ = big(index, tmp_path / "w")
    with requests.Session() as session:
        file = Ranged(session, url, most=TAIL + 10)
        with pytest.raises(OSError, match="more than"):
            file.read(TAIL)
    with pytest.raises(OSError, match="offline"):
        Ranged(None, url)

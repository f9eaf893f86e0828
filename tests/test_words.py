from __future__ import annotations

import pytest

from bisect_env.words import counted, lasting


def test_times_as_people_say_them() -> None:
    assert [lasting(value) for value in (40, 1560, 11400)] == ["40 s", "26 min", "3 h 10 min"]


@pytest.mark.parametrize(
    ("number", "words", "said"),
    [
        (0, ("trial",), "0 trials"),
        (1, ("trial",), "1 trial"),
        (2, ("more pair",), "2 more pairs"),
        (1, ("batch", "batches"), "1 batch"),
        (3, ("batch", "batches"), "3 batches"),
    ],
)
def test_one_is_one_and_two_are_two(number: int, words: tuple[str, ...], said: str) -> None:
    assert counted(number, *words) == said

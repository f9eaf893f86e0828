"""How long what is missing takes: by its own kind, else by the slowest, else not told."""

from __future__ import annotations

import pytest

from bisect_env.explanation.planned import expected
from bisect_env.trials.records import Side

W, S, T = Side.WITNESS, Side.SERIAL, Side.THREADS


@pytest.mark.parametrize(
    ("missing", "stored", "seconds"),
    [
        ({W: 12, S: 3, T: 3}, {W: [], S: [], T: []}, None),
        ({W: 2, S: 3, T: 0}, {W: [5.0], S: [1.0, 2.0, 9.0], T: [70.0]}, 2 * 5 + 3 * 2),
        ({W: 2, S: 1, T: 1}, {W: [], S: [1.0], T: [4.0]}, 2 * 4 + 1 + 4),
        ({W: 0, S: 0, T: 0}, {W: [5.0], S: [], T: []}, 0),
    ],
)
def test_seconds(missing: dict[Side, int], stored: dict[Side, list[float]], seconds: float | None) -> None:
    assert expected(missing, stored) == seconds

"""Short names for what stands in many documents."""

from __future__ import annotations

from typing import Literal

from bisect_env.matrix.cells import Scalar

One = Literal[1]
Levels = dict[str, str]
Condition = dict[str, Scalar]

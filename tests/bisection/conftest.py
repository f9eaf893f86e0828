"""A place for bisections of tiny wheels."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bisection.world import Bisections
from tests.support.index import Index
from tests.support.wheels import Wheels


@pytest.fixture
def bisections(tmp_path: Path, index: Index, wheels: Wheels, uv_cache: Path) -> Bisections:
    """An empty project over an empty index."""
    return Bisections(tmp_path / "project", index, wheels, uv_cache)

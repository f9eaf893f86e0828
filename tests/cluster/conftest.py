"""What the tests of jobs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.site import Site
from tests.support.wheels import Wheels


@pytest.fixture
def site(tmp_path: Path, wheels: Wheels, uv_cache: Path) -> Site:
    """A site of its own."""
    return Site(tmp_path / "site", wheels, uv_cache)

"""Fixtures of the tests that need a real sshd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.ssh import server
from tests.ssh.server import Sshd


@pytest.fixture
def make_sshd(tmp_path: Path) -> Iterator[Callable[..., Sshd]]:
    """Starts servers; the arguments are further lines of their configuration."""
    if server.SSHD is None:
        pytest.skip(server.MISSING)
    with ExitStack() as running:
        numbers = iter(range(100))

        def make(*settings: str) -> Sshd:
            return running.enter_context(Sshd(tmp_path / f"sshd{next(numbers)}", settings))

        yield make

"""Fixtures of the tests that need a real Slurm."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

import pytest

from tests.slurm import server
from tests.slurm.server import Slurm
from tests.slurm.world import Cluster
from tests.support.racing import World


@pytest.fixture(scope="session")
def running_slurm() -> Iterator[Slurm]:
    """One for all tests: it takes seconds to come up."""
    lacking = server.MISSING
    if importlib.util.find_spec("submitit") is None:
        lacking = "there is no submitit: pip install 'bisect-env[slurm]'"
    if lacking is not None:
        say = pytest.fail if os.environ.get("BISECT_ENV_REQUIRE_SLURM") else pytest.skip
        say(lacking)
    with Slurm() as slurm:
        yield slurm
    assert not slurm.processes()


@pytest.fixture
def slurm(running_slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """Idle, known to this process and to what it starts, and idle again after the test."""
    for name in [name for name in os.environ if name not in running_slurm.variables]:
        monkeypatch.delenv(name)
    for name, value in running_slurm.variables.items():
        monkeypatch.setenv(name, value)
    yield running_slurm
    running_slurm.reset()


@pytest.fixture
def cluster(world: World, slurm: Slurm) -> Iterator[Cluster]:
    """A project whose trials run on the pretended nodes."""
    found = Cluster(world, slurm)
    yield found
    found.end()

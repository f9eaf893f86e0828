"""Fixtures of all tests: tiny distributions, an index that serves them, and a uv that knows nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from bisect_env.environments.uv import Uv
from tests.support.index import Index
from tests.support.nvml import Pretended
from tests.support.racing import World
from tests.support.wheels import Wheels

# How long an example takes says something about the machine's other work, too.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell ignores it in what it starts in the background, and what tests start, and interrupt, would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _clean_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own settings for uv and pip, and where tests run, must not decide a test."""
    for name in list(os.environ):
        if name.startswith(("UV_", "PIP_", "GITHUB_")) or name.lower() in {"http_proxy", "https_proxy", "all_proxy"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    """A pretended NVML with two cards, of which the second is divided into MIG devices."""
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    return Pretended(monkeypatch)


@pytest.fixture
def wheels(tmp_path: Path) -> Wheels:
    """Builds wheels and source distributions in a folder of the test's own."""
    return Wheels(tmp_path / "wheels")


@pytest.fixture
def make_index() -> Iterator[Callable[..., Index]]:
    """Starts indexes; the arguments are those of :class:`tests.support.index.Index`."""
    with ExitStack() as running:
        yield lambda **options: running.enter_context(Index(**options))


@pytest.fixture
def index(make_index: Callable[..., Index]) -> Index:
    """A running, empty index on loopback."""
    return make_index()


@pytest.fixture(scope="session")
def uv_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """uv's cache for the session, apart from the user's. On the same filesystem as ``tmp_path``: hard links work."""
    return tmp_path_factory.mktemp("uv-cache")


@pytest.fixture
def uv(uv_cache: Path) -> Uv:
    """uv with the session's cache and nothing learnt yet."""
    return Uv(uv_cache)


@pytest.fixture
def world(tmp_path: Path, index: Index, wheels: Wheels, uv_cache: Path) -> World:
    """A project in a folder of its own, with an empty index, for tests that run the command line as a user would."""
    folder = tmp_path / "project"
    folder.mkdir()
    return World(folder, index, wheels, uv_cache)

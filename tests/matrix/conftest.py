"""A folder with small reproducers of the tests' own, and a way to load matrix files written in a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bisect_env.errors import BadInput
from bisect_env.matrix.cells import IndexChoice, Matrix
from bisect_env.matrix.loading import load
from bisect_env.matrix.versions import Release

RACER = '''"""A reproducer that is only ever read."""

import no_such_module

OPTIONS = {
    "threads": {"default": 2, "min": 1, "max": 8, "help": "worker threads"},
    "pattern": {"default": "hot", "choices": ["hot", "barrier", "separate"], "help": "who compiles"},
    "rate": {"default": 0.5, "min": 0.0, "max": 1.0, "help": "a number"},
    "warm_steps": {"default": 4, "help": "any whole number"},
    "fused": {"default": True, "help": "a switch"},
    "label": {"default": "none", "help": "any text"},
}
'''


class Releases:
    """A release source with a fixed answer, which remembers what it was asked."""

    def __init__(self, *versions: str, yanked: Sequence[str] = (), dates: dict[str, str] | None = None) -> None:
        moments = {version: datetime.fromisoformat(day).replace(tzinfo=UTC) for version, day in (dates or {}).items()}
        self.all = [Release(version, moments.get(version), version in yanked) for version in versions]
        self.asked: list[tuple[str, IndexChoice]] = []

    def releases(self, name: str, index: IndexChoice) -> list[Release]:
        self.asked.append((name, index))
        return self.all


Loader = Callable[..., Matrix]


@pytest.fixture
def reproducers(tmp_path: Path) -> Path:
    folder = tmp_path / "reproducers"
    folder.mkdir()
    (folder / "racer.py").write_text(RACER)
    (folder / "protocol.py").write_text("VERSION = 1\n")
    return folder


@pytest.fixture
def matrix_file(tmp_path: Path) -> Path:
    return tmp_path / "matrix.yaml"


@pytest.fixture
def loaded(matrix_file: Path, reproducers: Path) -> Loader:
    """Loads a text as a matrix file; a shipped reproducer is added on the last line when the text names none."""

    def load_text(text: str, releases: Releases | None = None) -> Matrix:
        if "reproducer:" not in text:
            text += "\nreproducer: racer\n"
        matrix_file.write_text(text)
        return load(matrix_file, releases, reproducers=reproducers)

    return load_text


@pytest.fixture
def refused(loaded: Loader, matrix_file: Path) -> Callable[..., BadInput]:
    """The error that a text is refused with, its file checked."""

    def load_text(text: str, releases: Releases | None = None) -> BadInput:
        with pytest.raises(BadInput) as caught:
            loaded(text, releases)
        assert caught.value.source == str(matrix_file)
        assert caught.value.exit_code == 2
        assert caught.value.wanted
        return caught.value

    return load_text

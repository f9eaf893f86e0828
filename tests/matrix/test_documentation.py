"""docs/matrix-files.md: its examples load, and it lists every key with its default."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bisect_env.matrix.cells import Limits
from bisect_env.matrix.loading import load
from bisect_env.matrix.schema import IndexSection, LimitsSection, MatrixFile, ReproducerSection

TEXT = (Path(__file__).parents[2] / "docs" / "matrix-files.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize(("at", "cells"), [(0, 12), (1, 4), (2, 2)])
def test_examples_load(tmp_path: Path, at: int, cells: int) -> None:
    for name in ("train.py", "config.json"):
        (tmp_path / name).touch()
    (tmp_path / "data").mkdir()
    text = EXAMPLES[at] if "reproducer:" in EXAMPLES[at] else EXAMPLES[at] + "reproducer: compile_race\n"
    (tmp_path / "matrix.yaml").write_text(text)
    assert len(load(tmp_path / "matrix.yaml").cells) == cells


def test_there_are_no_other_examples() -> None:
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("section", [MatrixFile, IndexSection, LimitsSection, ReproducerSection])
def test_every_key_is_documented(section: type) -> None:
    for name in section.model_fields:  # type: ignore[attr-defined]
        assert name in TEXT or name.replace("_", "-") in TEXT


def test_the_documented_limits_are_the_defaults() -> None:
    limits = Limits()
    for name in LimitsSection.model_fields:
        assert f"| `{name.replace('_', '-')}` | {getattr(limits, name):g} |" in TEXT

"""OPTIONS are read, not run; and shipped reproducers are found by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisect_env.errors import BadInput
from bisect_env.matrix import shipped
from bisect_env.matrix.options import read_options
from bisect_env.matrix.problems import Unfit


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "racer.py"
    path.write_text(text)
    return path


def test_the_script_is_not_run(reproducers: Path) -> None:
    # It imports a module that does not exist.
    options = read_options(reproducers / "racer.py")
    assert list(options) == ["threads", "pattern", "rate", "warm_steps", "fused", "label"]
    assert options["threads"].help == "worker threads"
    assert (options["threads"].minimum, options["threads"].maximum) == (1, 8)
    assert options["pattern"].choices == ("hot", "barrier", "separate")


def test_values_have_the_type_of_the_default(reproducers: Path) -> None:
    options = read_options(reproducers / "racer.py")
    typed = {"threads": "3", "pattern": "barrier", "rate": "1", "fused": "no", "label": "3"}
    values = {name: options[name].value(text) for name, text in typed.items()}
    assert values == {"threads": 3, "pattern": "barrier", "rate": 1.0, "fused": False, "label": "3"}
    assert [type(value) for value in values.values()] == [int, str, float, bool, str]


def test_an_annotated_literal_is_read(tmp_path: Path) -> None:
    path = script(tmp_path, "OPTIONS: dict[str, dict] = {'n': {'default': 1, 'min': 1}}\n")
    with pytest.raises(Unfit, match="at least 1"):
        read_options(path)["n"].value("0")


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ("x = 1\n", "", "no OPTIONS"),
        ("x = 1\nOPTIONS = make()\n", "line 2", "not a literal"),
        ("OPTIONS = []\n", "line 1", "a list"),
        ("OPTIONS = {'n': {}}\n", "line 1", "'n' has no default"),
        ("OPTIONS = {'n': {'default': 1, 'low': 0}}\n", "line 1", "the key 'low'"),
        ("OPTIONS = {'n': {'default': None}}\n", "line 1", "no text or number"),
        ("OPTIONS = {\n  'n': }\n", "line 2", "not Python"),
    ],
)
def test_bad_options(tmp_path: Path, text: str, place: str, found: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_options(script(tmp_path, text))
    assert caught.value.place == place
    assert found in caught.value.found


def test_a_missing_script(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_options(tmp_path / "none.py")


def test_reproducers_are_the_scripts_with_options(reproducers: Path) -> None:
    assert list(shipped.reproducers(reproducers)) == ["racer"]

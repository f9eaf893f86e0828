from __future__ import annotations

from pathlib import Path

import pytest

from bisect_env.errors import BadInput
from bisect_env.matrix import shipped
from bisect_env.matrix.cells import ReproducerChoice
from bisect_env.trials.reproducers import prepare


def ship(folder: Path, **modules: str) -> None:
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)


def test_a_shipped_reproducer_is_identified_by_what_it_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "reproducers_folder", lambda: tmp_path)
    ship(tmp_path, race="OPTIONS = {}\nimport protocol\n", protocol="from shared import x\n", shared="x = 1\n",
         other="OPTIONS = {}\n")  # fmt: skip
    reproducer = prepare(ReproducerChoice("race"))
    assert reproducer.command == ("python", str(tmp_path / "race.py")) and reproducer.protocol
    ship(tmp_path, other="OPTIONS = {'a': {}}\n")
    assert prepare(ReproducerChoice("race")).content_hash == reproducer.content_hash
    ship(tmp_path, shared="x = 2\n")
    assert prepare(ReproducerChoice("race")).content_hash != reproducer.content_hash


def test_the_shipped_ones_are_there() -> None:
    reproducer = prepare(ReproducerChoice("compile_race"))
    assert Path(reproducer.command[1]).is_file()
    with pytest.raises(BadInput, match="compile_race"):
        prepare(ReproducerChoice("compile_rase"))


def test_a_users_command_is_identified_by_command_patterns_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a" / "lib").mkdir(parents=True)
    script, library = tmp_path / "a" / "train.py", tmp_path / "a" / "lib"
    script.write_text("1")
    (library / "m.py").write_text("1")
    choice = ReproducerChoice("mine", ("python", "train.py"), (script, library), fail_pattern="nan")
    first = prepare(choice)
    assert not first.protocol and first.files == (script, library) and first.fail_pattern == "nan"
    assert prepare(choice).content_hash == first.content_hash
    (library / "m.py").write_text("2")
    assert prepare(choice).content_hash != first.content_hash


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"files": (Path("/nowhere/train.py"),)}, r"files\[0\]"),
        ({"files": (Path(__file__), Path(__file__))}, r"files\[1\]"),
        ({"fail_pattern": "("}, "fail_pattern"),
        ({"skip_pattern": "["}, "skip_pattern"),
    ],
)
def test_what_cannot_be_used_is_said(changes: dict[str, object], place: str) -> None:
    with pytest.raises(BadInput, match=place):
        prepare(ReproducerChoice("mine", ("true",), **changes))  # type: ignore[arg-type]

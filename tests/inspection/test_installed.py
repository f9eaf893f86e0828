"""Environments read where they lie: nothing imported, and found what their Python would find."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.inspection.installed import installed
from bisect_env.inspection.records import Held
from tests.support.wheels import Wheels

BOOM = "raise SystemExit('imported')\n"


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., Path]:
    """Makes an environment with these files in its folder of packages."""

    def make(files: dict[str, str] | None = None, name: str = "env") -> Path:
        folder = tmp_path / name
        venv.create(folder, symlinks=True)
        (site,) = folder.glob("lib/python*/site-packages")
        for path, text in (files or {}).items():
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_text(text)
        return folder

    return make


def info(name: str, version: str, *files: str) -> dict[str, str]:
    folder = f"{name}-{version}.dist-info"
    record = "".join(f"{file},,\n" for file in files)
    return {f"{folder}/METADATA": f"Name: {name}\nVersion: {version}\n", f"{folder}/RECORD": record}


def test_modules_of_an_environment(environment: Callable[..., Path]) -> None:
    folder = environment(
        {
            "lib/__init__.py": BOOM,
            "lib/part.py": "x = 1\n",
            "space/deep/mod.py": "",
            **info("lib", "1.2", "lib/part.py"),
        }
    )
    for word in (str(folder), str(folder / "bin" / "python")):
        place = installed(word, "lib")
        assert place.label == "lib 1.2"
        source = place.module("lib.part")
        assert source is not None
        assert (source.path, source.text, source.package) == ("lib/part.py", "x = 1\n", False)
        package = place.module("lib")
        assert package is not None and package.package and package.text == BOOM
        assert place.holds("lib.nothing") is Held.ABSENT and place.module("lib.nothing") is None
        assert place.submodules("lib") == ("part",)
        space = place.module("space.deep")
        assert space is not None and space.text == "" and space.package
        assert set(place.digests()) == {"lib/part.py"}
    assert installed(str(folder)).label == "env"
    assert set(installed(str(folder), "other").digests()) == {"lib/__init__.py", "lib/part.py", "space/deep/mod.py"}


def test_the_standard_library_counts(environment: Callable[..., Path]) -> None:
    place = installed(str(environment()))
    text = place.module("json.decoder")
    assert text is not None and "class JSONDecoder" in text.text
    assert place.holds("sys") is Held.EXTENSION and place.module("sys") is None
    assert {"sys", "json", "os"} <= set(place.submodules(""))
    assert place.digests() == {}


def test_lines_of_pth_files_and_bases_are_followed(environment: Callable[..., Path], tmp_path: Path) -> None:
    base = environment({"below.py": "", "under.pth": str(tmp_path / "src") + "\n"}, "base")
    (site,) = base.glob("lib/python*/site-packages")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "edited.py").write_text("here = True\n")
    over = environment({"base.pth": f"import site; site.addsitedir({str(site)!r})\n"}, "over")
    place = installed(str(over))
    assert place.holds("below") is Held.SOURCE
    edited = place.module("edited")
    assert edited is not None and edited.path == "edited.py"
    assert "edited.py" in place.digests()


def test_editable_installs_with_a_finder(environment: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "work" / "mine").mkdir(parents=True)
    (tmp_path / "work" / "mine" / "__init__.py").write_text(BOOM)
    (tmp_path / "work" / "mine" / "part.py").write_text("y = 2\n")
    finder = f"MAPPING = {{'mine': {str(tmp_path / 'work' / 'mine')!r}}}\n"
    folder = environment(
        {"__editable___mine_finder.py": finder, "mine.pth": "import __editable___mine_finder\n", **info("mine", "0.1")}
    )
    place = installed(str(folder), "mine")
    assert place.label == "mine 0.1"
    part = place.module("mine.part")
    assert part is not None and part.text == "y = 2\n"
    assert {"mine/__init__.py", "mine/part.py"} <= set(place.digests())


def test_what_uv_installed(wheels: Wheels, environment: Callable[..., Path], uv: Uv) -> None:
    path = wheels.wheel("lib", "1.0", files={"lib/__init__.py": BOOM, "lib/a.py": "1\n"})
    folder = environment()
    subprocess.run(
        [uv.binary, "pip", "install", "-q", "--offline", "--python", folder / "bin" / "python", path], check=True
    )
    place = installed(str(folder), "lib")
    assert place.label == "lib 1.0" and set(place.digests()) == {"lib/__init__.py", "lib/a.py"}


def test_another_encoding_and_none(environment: Callable[..., Path]) -> None:
    folder = environment({"fine.py": "# -*- coding: latin-1 -*-\n"})
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "fine.py").write_bytes("# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1"))
    (site / "broken.py").write_bytes(b"name = '\xff'\n")
    place = installed(str(folder))
    fine = place.module("fine")
    assert fine is not None and "é" in fine.text
    broken = place.module("broken")
    assert broken is not None and not broken.text and "no text of the encoding" in broken.error


def test_links_in_a_circle_and_what_is_no_file_hide_nothing(environment: Callable[..., Path]) -> None:
    folder = environment({"pkg/__init__.py": "", "pkg/part.py": "x = 1\n"})
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "pkg" / "circle.py").symlink_to("circle.py")
    (site / "pkg" / "nowhere.py").symlink_to("gone.py")
    os.mkfifo(site / "pkg" / "pipe.py")
    place = installed(str(folder))
    assert place.submodules("pkg") == ("part",)
    assert place.holds("pkg.pipe") is Held.ABSENT  # as for Python: to read it would wait for ever


def test_a_package_without_init_has_no_file(environment: Callable[..., Path]) -> None:
    space = installed(str(environment({"space/part.py": ""}))).module("space")
    assert space is not None and space.package and not space.path


def test_a_file_that_went_meanwhile(environment: Callable[..., Path]) -> None:
    folder = environment({"gone.py": ""})
    place = installed(str(folder))
    assert place.holds("gone") is Held.SOURCE
    next(folder.glob("lib/python*/site-packages/gone.py")).unlink()
    with pytest.raises(InfrastructureError, match=r"gone.*cannot be read"):
        place.module("gone")


def test_what_is_no_environment(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("hello")
    liar = tmp_path / "liar"
    liar.write_text("#!/bin/sh\necho no python\n")
    liar.chmod(0o755)
    for word, found in (
        ("empty", "without bin/python"),
        ("nowhere", "no such file or folder"),
        ("text", "not a Python that runs"),
        ("liar", "not a Python that can be asked"),
    ):
        with pytest.raises(BadInput, match=found):
            installed(str(tmp_path / word))


def test_what_a_start_prints_is_no_answer(environment: Callable[..., Path]) -> None:
    folder = environment({"loud.pth": "import sys; print('hello from a .pth')\n"})
    assert installed(str(folder)).holds("os") is Held.SOURCE


def test_an_interpreter_without_an_environment() -> None:
    place = installed(sys.executable, "pytest")
    assert place.label.startswith("pytest ")
    assert place.holds("pytest") is Held.SOURCE

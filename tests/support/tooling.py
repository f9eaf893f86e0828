"""What `bisect-env bundle` needs for the tool itself, on an index of loopback: the build backend and the dependencies.

The real ones are megabytes that only a network has. The backend packs the checkout's package as hatchling would, with
the requirements of its pyproject.toml; the dependencies are empty distributions of their names.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tests.support.index import Index
from tests.support.wheels import Wheels

ROOT = Path(__file__).parents[2]
VERSION = "9999.0"
BACKEND = """\
import pathlib, re, sys, tomllib, zipfile


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    version = re.search('__version__ = "(.*)"', pathlib.Path("bisect_env/__init__.py").read_text())[1]
    lines = ["Metadata-Version: 2.1", "Name: bisect-env", f"Version: {version}"]
    lines += [f"Requires-Dist: {line}" for line in project["dependencies"]]
    lines += ["Provides-Extra: nox", *(
        f"Requires-Dist: {line} ; extra == 'nox'" for line in project["optional-dependencies"]["nox"]
    )]
    info = f"bisect_env-{version}.dist-info"
    name = f"bisect_env-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory, name), "w") as archive:
        def put(path, text):
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), text)
        put("bisect_env/__init__.py", pathlib.Path("bisect_env/__init__.py").read_text())
        put(f"{info}/METADATA", "\\n".join(lines) + "\\n")
        put(f"{info}/WHEEL", "Wheel-Version: 1.0\\nGenerator: tests\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        put(f"{info}/RECORD", "".join(f"{entry},,\\n" for entry in [*archive.namelist(), f"{info}/RECORD"]))
    return name
"""


def offer(index: Index, wheels: Wheels) -> None:
    """Puts them on the index."""
    index.add(wheels.wheel("hatchling", VERSION, files={"hatchling/__init__.py": "", "hatchling/build.py": BACKEND}))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line in (*project["dependencies"], *project["optional-dependencies"]["nox"]):
        requirement = Requirement(line)
        extras = {extra: ["uv"] for extra in requirement.extras}
        index.add(wheels.wheel(requirement.name, VERSION, extras=extras))

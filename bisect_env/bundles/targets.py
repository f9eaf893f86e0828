"""The host a bundle is for: how it is asked for, and which wheels it takes."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.tags import Tag

from bisect_env.bundles.records import Target
from bisect_env.environments import sizes
from bisect_env.environments.records import Interpreter
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput


def parse(python: str, platform: str, uv: Uv) -> Target:
    """The target of ``--python`` and ``--platform``.

    Raises:
        BadInput: one of them is not understood, or bisect-env itself does not run there.
    """
    if not re.fullmatch(r"3\.\d+", python):
        wanted = "the target's minor version, such as 3.12 (`python3 --version` there)"
        raise BadInput("--python", "", f"{python!r} is no version of Python", wanted)
    own = importlib.metadata.metadata("bisect-env")["Requires-Python"]
    if not SpecifierSet(own).contains(f"{python}.0"):
        wanted = f"a Python {own} on the target: `bisect-env unbundle` and `matrix` run there"
        raise BadInput("--python", "", f"bisect-env itself does not run on Python {python}", wanted)
    if sizes.platforms_of(platform) is None:
        wanted = "x86_64-manylinux_2_28 or aarch64-manylinux_2_28, with the target's glibc (`ldd --version` there)"
        raise BadInput("--platform", "", f"{platform!r} is no platform that bundles are made for", wanted)
    unknown = uv.run(
        ["pip", "compile", "--quiet", "--offline", "--no-config", "--python-platform", platform, "-"], stdin=""
    )
    if "--python-platform" in unknown.stderr:
        names = re.findall(rf"{platform.partition('-')[0]}-manylinux_\d+_\d+", unknown.stderr)
        wanted = f"the newest that the target's glibc reaches (`ldd --version` there), one of: {', '.join(names)}"
        raise BadInput("--platform", "", f"uv does not resolve for {platform!r}", wanted)
    return Target(python, platform)


def interpreter(target: Target) -> Interpreter:
    """Stands for the target's Python, whose path and patch version are known there alone."""
    return Interpreter(Path(f"python{target.python}"), target.python, "cpython", target.platform)


def tags(target: Target) -> tuple[Tag, ...]:
    """The wheels that the target takes, the best first."""
    return sizes.tags_of(interpreter(target))

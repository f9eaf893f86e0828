"""The host a bundle is for: how it is asked for, and which wheels it takes."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.tags import Tag

from bisect_env.bundles.records import Target
from bisect_env.environments import sizes
from bisect_env.environments.records import Interpreter
from bisect_env.errors import BadInput


def parse(python: str, platform: str) -> Target:
    """The target of ``--python`` and ``--platform``.

    Raises:
        BadInput: one of them is not understood.
    """
    if not re.fullmatch(r"3\.\d+", python):
        wanted = "the target's minor version, such as 3.12 (`python3 --version` there)"
        raise BadInput("--python", "", f"{python!r} is no version of Python", wanted)
    if sizes.platforms_of(platform) is None:
        wanted = "x86_64-manylinux_2_28 or aarch64-manylinux_2_28, with the target's glibc (`ldd --version` there)"
        raise BadInput("--platform", "", f"{platform!r} is no platform that bundles are made for", wanted)
    return Target(python, platform)


def interpreter(target: Target) -> Interpreter:
    """Stands for the target's Python, whose path and patch version are known there alone."""
    return Interpreter(Path(f"python{target.python}"), target.python, "cpython", target.platform)


def tags(target: Target) -> tuple[Tag, ...]:
    """The wheels that the target takes, the best first."""
    return sizes.tags_of(interpreter(target))

"""How much a lock will download at most, from the sizes in uv's ``pylock.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from bisect_env.environments.records import Interpreter


def tags_of(interpreter: Interpreter) -> tuple[Tag, ...]:
    """The wheels that a CPython takes, the best first: of this machine, or of another one (:func:`platforms_of`)."""
    major, minor = (int(part) for part in interpreter.version.split(".")[:2])
    platforms = platforms_of(interpreter.platform)
    return (
        *cpython_tags((major, minor), platforms=platforms),
        *compatible_tags((major, minor), f"cp{major}{minor}", platforms),
    )


def platforms_of(platform: str) -> tuple[str, ...] | None:
    """The platform tags of uv's ``--python-platform`` (``x86_64-manylinux_2_28``), the best first; None for others.

    The names for glibc 2.17, 2.12 and 2.5 are those of PEPs 599, 571 and 513; ``linux_x86_64`` is what some indexes
    still call theirs.
    """
    match = re.fullmatch(r"(x86_64|aarch64)-manylinux_2_(\d+)", platform)
    if match is None:
        return None
    machine, newest = match[1], int(match[2])
    oldest, legacy = (5, {17: "2014", 12: "2010", 5: "1"}) if machine == "x86_64" else (17, {17: "2014"})
    found = []
    for minor in range(newest, oldest - 1, -1):
        found.append(f"manylinux_2_{minor}_{machine}")
        if minor in legacy:
            found.append(f"manylinux{legacy[minor]}_{machine}")
    return (*found, f"linux_{machine}")


def downloads(pylock: str, tags: Iterable[Tag]) -> tuple[tuple[str, int], ...] | None:
    """Name and bytes of each file that an empty cache would fetch; None when the index tells not all of them.

    Counted is the wheel that fits best, else the source distribution. Local and git requirements count as nothing.
    """
    order = {tag: place for place, tag in enumerate(tags)}
    found = []
    for package in tomllib.loads(pylock).get("packages", ()):
        file = best_file(package, order)
        if file is None:
            continue
        if "size" not in file:
            return None
        found.append((str(package["name"]), int(file["size"])))
    return tuple(found)


def best_file(package: Mapping[str, Any], order: Mapping[Tag, int]) -> Mapping[str, Any] | None:
    """The file that is installed of a package of ``pylock.toml``: the wheel whose tag comes first, else the source."""
    best: tuple[int, Mapping[str, Any]] | None = None
    for wheel in package.get("wheels", ()):
        try:
            places = [order[tag] for tag in parse_wheel_filename(file_name(wheel))[3] if tag in order]
        except InvalidWheelFilename:
            continue
        if places and (best is None or min(places) < best[0]):
            best = min(places), wheel
    return best[1] if best is not None else package.get("sdist")


def file_name(file: Mapping[str, Any]) -> str:
    """The name of a file in ``pylock.toml``, which may stand in its URL or path alone."""
    name: str = file.get("name") or file.get("url", file.get("path", "")).rpartition("/")[2]
    return unquote(name)

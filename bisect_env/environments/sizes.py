"""How much a lock will download at most, from the sizes in uv's ``pylock.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from bisect_env.environments.records import Interpreter


def tags_of(interpreter: Interpreter) -> tuple[Tag, ...]:
    """The wheels that a CPython of this machine takes, the best first."""
    major, minor = (int(part) for part in interpreter.version.split(".")[:2])
    return (*cpython_tags((major, minor)), *compatible_tags((major, minor), f"cp{major}{minor}"))


def downloads(pylock: str, tags: Iterable[Tag]) -> tuple[tuple[str, int], ...] | None:
    """Name and bytes of each file that an empty cache would fetch; None when the index tells not all of them.

    Counted is the wheel that fits best, else the source distribution. Local and git requirements count as nothing.
    """
    order = {tag: place for place, tag in enumerate(tags)}
    found = []
    for package in tomllib.loads(pylock).get("packages", ()):
        file = _file(package, order)
        if file is None:
            continue
        if "size" not in file:
            return None
        found.append((str(package["name"]), int(file["size"])))
    return tuple(found)


def _file(package: Mapping[str, Any], order: Mapping[Tag, int]) -> Mapping[str, Any] | None:
    best: tuple[int, Mapping[str, Any]] | None = None
    for wheel in package.get("wheels", ()):
        name = wheel.get("name") or wheel.get("url", wheel.get("path", "")).rpartition("/")[2].replace("%2B", "+")
        try:
            places = [order[tag] for tag in parse_wheel_filename(name)[3] if tag in order]
        except InvalidWheelFilename:
            continue
        if places and (best is None or min(places) < best[0]):
            best = min(places), wheel
    return best[1] if best is not None else package.get("sdist")

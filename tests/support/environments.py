"""Locks and environments of tiny wheels, made without the resolver's layer: what the building half is tested on."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from bisect_env.environments import building
from bisect_env.environments.compiling import address_of
from bisect_env.environments.records import Environment, Interpreter, Lock
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice

INTERPRETER = Interpreter(
    Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}",
    ".".join(str(part) for part in sys.version_info[:3]),
    "cpython",
    sysconfig.get_platform(),
)
TIMEOUT = 60.0


def request_of(*paths: Path, **options: object) -> EnvironmentRequest:
    """A request whose only source is the folder that these wheels lie in, offline."""
    pins = tuple("=={}".join([name, ""]).format(version) for name, version in (name_and_version(p) for p in paths))
    links = tuple(sorted({str(path.parent) for path in paths}))
    return EnvironmentRequest(pins, index=IndexChoice(find_links=links, offline=True), **options)  # type: ignore[arg-type]


def name_and_version(path: Path) -> tuple[str, str]:
    name, version = path.name.removesuffix(".tar.gz").split("-")[:2]
    return name.replace("_", "-"), version


def lock_of(*paths: Path, cuda: str | None = None) -> Lock:
    """The lock that uv would write for exactly these wheels and source distributions."""
    pins = tuple(sorted(name_and_version(path) for path in paths))
    by_name = {name_and_version(path)[0]: path for path in paths}
    text = "".join(
        f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(by_name[name].read_bytes()).hexdigest()}\n"
        for name, version in pins
    )
    return Lock(text, INTERPRETER, pins, cuda, address_of(text, "", INTERPRETER))


def built(paths: Sequence[Path], root: Path, uv: Uv, **options: object) -> Environment:
    """A real environment with these distributions under ``root``."""
    result = building.build(lock_of(*paths), request_of(*paths, **options), root, uv, TIMEOUT)
    assert isinstance(result, Environment), result
    return result

"""Every request of a matrix, resolved for the target; and where each wheel of its lock comes from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bisect_env.bundles import targets
from bisect_env.bundles.records import Locked, Target, key_of
from bisect_env.bundles.sources import Source, sources
from bisect_env.environments import locks
from bisect_env.environments.compiling import Compiler
from bisect_env.environments.records import Unavailable
from bisect_env.environments.requirements import local_path
from bisect_env.environments.side_by_side import side_by_side
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import Cell, EnvironmentRequest

AT_ONCE = 4


@dataclass(frozen=True)
class Resolved:
    """A request's outcome, with a source for each of ``locked.wheels``."""

    locked: Locked
    sources: tuple[Source, ...]


def resolve(
    request: EnvironmentRequest, cells: tuple[str, ...], target: Target, uv: Uv, stop: threading.Event
) -> Resolved:
    """One request. Raises as :func:`locks.resolve` does."""
    interpreter = targets.interpreter(target)
    lock = locks.resolve(request, uv, stop, elsewhere=interpreter)
    if isinstance(lock, Unavailable):
        return _unavailable(request, cells, lock)
    pylock = Compiler(request, interpreter, uv, stop, None, elsewhere=True).pylock(lock)
    found = pylock if isinstance(pylock, Unavailable) else sources(pylock, lock, targets.tags(target))
    if isinstance(found, Unavailable):
        return _unavailable(request, cells, found)
    found = tuple(map(_measured, found))
    wheels = tuple(source.sha256 for source in found)
    return Resolved(Locked(key_of(request), cells, lock, None, wheels), found)


def _measured(source: Source) -> Source:
    """With the size of a folder's wheel, which ``pylock.toml`` does not tell."""
    path = local_path(source.url)
    return source if path is None or not path.exists() else replace(source, size=path.stat().st_size)


def _unavailable(request: EnvironmentRequest, cells: tuple[str, ...], why: Unavailable) -> Resolved:
    return Resolved(Locked(key_of(request), cells, None, why, ()), ())


def resolve_all(
    cells: Sequence[Cell],
    target: Target,
    uv: Uv,
    stop: threading.Event,
    done: Callable[[Resolved, float], None],
) -> tuple[Resolved, ...]:
    """The requests of the cells, several at once, in the order of the cells; ``done`` is told seconds."""
    requests = {cell.request.key: cell.request for cell in cells}
    ids = {key: tuple(cell.id for cell in cells if cell.request.key == key) for key in requests}

    def one(key: str) -> Resolved:
        began = time.monotonic()
        resolved = resolve(requests[key], ids[key], target, uv, stop)
        done(resolved, time.monotonic() - began)
        return resolved

    return side_by_side(one, requests, AT_ONCE, stop)

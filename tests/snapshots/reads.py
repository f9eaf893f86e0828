"""How the tests of forms read: for a host that is not the one they run on."""

from __future__ import annotations

import pytest

from bisect_env.errors import BadInput
from bisect_env.snapshots.reading import read_text
from bisect_env.snapshots.records import Distribution, Snapshot, Target

LINUX = Target("3.12.4", "linux", "x86_64")
WINDOWS = Target("3.10.1", "win32", "AMD64")


def read(text: str, host: Target = LINUX, files: dict[str, str] | None = None) -> Snapshot:
    """The snapshot in ``text``; ``files`` lie beside it."""
    return read_text(text, "given.txt", host, None if files is None else files.get)


def pins(snapshot: Snapshot) -> dict[str, str | None]:
    return {each.name: each.version for each in snapshot.distributions}


def only(snapshot: Snapshot, name: str) -> Distribution:
    (found,) = snapshot.of(name)
    return found


def refusal(text: str, host: Target = LINUX, files: dict[str, str] | None = None) -> BadInput:
    """Why ``text`` is refused; the message has all its parts."""
    with pytest.raises(BadInput) as caught:
        read(text, host, files)
    assert caught.value.source.startswith("given.txt")
    assert caught.value.found
    assert caught.value.wanted
    return caught.value

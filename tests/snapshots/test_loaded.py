"""Libraries that two processes have loaded, compared."""

from __future__ import annotations

from bisect_env.snapshots.factors import difference
from bisect_env.snapshots.loaded import differing
from bisect_env.snapshots.records import Library, Snapshot

INSIDE = "/srv/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"
ELSEWHERE = "/opt/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
SYSTEM = "/usr/lib/x86_64-linux-gnu/libnccl.so.2"


def having(*paths: str, venv: str | None = None) -> Snapshot:
    libraries = tuple(Library(path.rpartition("/")[2], path) for path in paths)
    return Snapshot("A", "captured", (), venv=venv, libraries=libraries)


def test_one_from_the_system() -> None:
    (found,) = differing(having(INSIDE), having(SYSTEM))
    told = ("libnccl.so.2", "loaded from its environment", f"loaded from {SYSTEM}")
    assert (found.name, found.good, found.bad) == told
    (held,) = difference(having(INSIDE), having(SYSTEM)).held
    assert (held.name, held.good, held.bad) == told
    (both,) = differing(having(INSIDE), having(INSIDE, SYSTEM))
    assert both.bad == f"loaded from {SYSTEM} and its environment"


def test_what_is_no_difference() -> None:
    assert not differing(having(INSIDE), having(ELSEWHERE))
    assert not differing(having(SYSTEM), having("/usr/lib64/libnccl.so.2"))
    assert not differing(having(INSIDE), having())
    assert not differing(having(INSIDE), Snapshot("B", "pip freeze", ()))
    assert not differing(having("/srv/venv/lib/libnccl.so.2", venv="/srv/venv"), having(INSIDE))

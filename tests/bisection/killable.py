"""Runs the bisection of a specification in a file, in a process of its own that a test may kill."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from bisect_env.bisection.batches import Place
from bisect_env.bisection.driver import bisect
from bisect_env.bisection.progress import Reporter
from bisect_env.bisection.records import Specification
from bisect_env.engine.settings import Settings
from bisect_env.environments.uv import Uv
from bisect_env.store.codec import decode
from bisect_env.store.database import Store


def main() -> None:
    root, cache, file = map(Path, sys.argv[1:])
    specification = decode(Specification, file.read_text())
    with Store(root / "store.sqlite") as store:
        place = Place(Settings(root), store, Uv(cache), Reporter(), threading.Event())
        print(bisect(specification, place).sentence)


if __name__ == "__main__":
    main()

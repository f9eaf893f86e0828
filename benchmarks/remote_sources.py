"""What reading versions that are only on an index costs: bytes, requests, seconds.

Nothing is installed. In turn, each with an empty folder of what is kept, but for the last:

  open       the directories of all wheels, in which the digest of every module stands
  two files  as well the modules that both inspections of the FX flag begin with
  a package  as well all of torch.fx, known beforehand
  all        as well every module, as `inspect --uses` reads them
  again      `two files` once more, from what was kept

The goal is eight versions of torch, opened and read for an inspection, in under 15 s and 30 MB. Without an index that
answers there is nothing to measure, and the benchmark says so and ends with 0.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measuring import say, scratch, show

from bisect_env.errors import InfrastructureError
from bisect_env.inspection.layout import module_name
from bisect_env.inspection.origins import open_origins
from bisect_env.inspection.records import Sources
from bisect_env.inspection.traffic import Traffic
from bisect_env.inspection.wheels import fetch_ahead
from bisect_env.matrix.cells import IndexChoice

TWO = ("torch.nn.attention.flex_attention", "torch.fx._symbolic_trace")
AT_ONCE = 8


def read(places: Sequence[Sources], names: Callable[[Sources], list[str]]) -> None:
    """Have modules of all places, the places side by side as `inspect` reads them."""

    def one(place: Sources) -> None:
        wanted = names(place)
        fetch_ahead(place, wanted)
        for name in wanted:
            place.module(name)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, places))


def within(package: str) -> Callable[[Sources], list[str]]:
    """Names of all modules of a package; of all packages for ``""``."""

    def names(place: Sources) -> Iterator[str]:
        for path in place.digests():
            name = module_name(path)
            if name is not None and f"{name}.".startswith(package and f"{package}."):
                yield name

    return lambda place: list(names(place))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("word", nargs="?", default="torch==2.8.0..2.15.0", help="versions, as after `inspect --in`")
    parser.add_argument("--all", action="store_true", help="read every module too: 90 MB for eight of torch")
    parser.add_argument("--scratch", type=Path, help="parent of the scratch folder")
    parser.add_argument("--json", type=Path, help="write the figures there")
    asked = parser.parse_args()
    ways: dict[str, Callable[[Sources], list[str]]] = {
        "open": lambda _: [],
        "two files": lambda _: list(TWO),
        "a package": within("torch.fx"),
    }
    if asked.all:
        ways["all"] = within("")
    figures = []
    with scratch(asked.scratch) as folder:
        for name, root in [*((way, folder / way.replace(" ", "-")) for way in ways), ("again", folder / "two-files")]:
            traffic, began = Traffic(), time.monotonic()
            try:
                places = open_origins([asked.word], "torch", IndexChoice(), root, traffic=traffic)
            except InfrastructureError as error:
                say(f"nothing to measure: {error}")
                return
            read(places, ways.get(name, ways["two files"]))
            seconds = time.monotonic() - began
            say(f"{name}: {traffic}")
            kept = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
            figures.append((name, len(places), traffic.bytes / 1e6, traffic.requests, seconds, kept / 1e6))
    headers = ["what", "versions", "MB fetched", "requests", "s", "MB kept"]
    rows = [
        [name, str(versions), f"{fetched:.1f}", str(requests), f"{seconds:.1f}", f"{kept:.1f}"]
        for name, versions, fetched, requests, seconds, kept in figures
    ]
    show(rows, headers, [f"{asked.word}, up to {AT_ONCE} at a time."])
    if asked.json:
        asked.json.write_text(json.dumps([dict(zip(headers, row, strict=True)) for row in figures], indent=2) + "\n")


if __name__ == "__main__":
    main()

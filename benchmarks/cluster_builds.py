"""A large matrix on a cluster, simulated: how much of the nodes' time goes into building environments.

Which items share a job is decided by the code that ships (``bisect_env.cluster``: groups, kin, batches), in the order
in which a run chooses trials; nodes, builds and trials are simulated. The builds come first, one job each, as a run has
them. Then a job that finds an environment on its node goes on, and one that does not builds it: where environments are
shared none has to, where each node has a folder of its own each builds what it is sent. Not in it: the time until Slurm
starts a job, and the proof of an environment that stands.

    python benchmarks/cluster_builds.py --cells 1000 --nodes 64

Prints a table. All that is drawn comes from ``--seed``.
"""

from __future__ import annotations

import argparse
import heapq
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bisect_env.cluster.asking import Group, kin
from bisect_env.cluster.batches import batches
from bisect_env.cluster.items import Items
from bisect_env.engine.plan import COUNTED, Slot, next_round
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest
from bisect_env.trials.records import Side

SIDES: Mapping[Side, int] = {Side.THREADS: 12, Side.SERIAL: 6, Side.SOLO: 6}
"""Trials of a cell."""
BATCHES = (4, 24)
"""Trials of a job at most; 4 is the default."""


@dataclass(frozen=True)
class World:
    """A matrix and a cluster."""

    cells: int
    to_a_lock: int
    nodes: int
    build: tuple[float, float]
    """Seconds of a build, uniformly from the one to the other; each environment has its own."""
    trial: float
    """Seconds."""


@dataclass
class Spent:
    """What a run has come to."""

    building: float = 0.0
    """Node-seconds."""
    trials: float = 0.0
    builds: int = 0
    jobs: int = 0
    seconds: float = 0.0
    """From the first job to the end of the last one."""

    @property
    def share(self) -> float:
        """Of the node-seconds in jobs, those spent building."""
        return self.building / (self.building + self.trials)


def matrix(world: World) -> list[Cell]:
    """Its cells: some conditions of each environment."""
    return [
        Cell(
            id=f"{lock}-{condition}",
            levels=(),
            request=EnvironmentRequest((f"engine=={lock}",)),
            condition=Condition.of({"device": "cpu", "threads": condition + 1}),
        )
        for lock in range(world.cells // world.to_a_lock)
        for condition in range(world.to_a_lock)
    ]


def chosen(cells: list[Cell], seed: int) -> Iterator[Slot]:
    """All trials, round by round, in the order in which a run chooses them where none stops early."""
    for done in range(max(SIDES.values())):
        left = {side: SIDES[side] - done for side in COUNTED if SIDES[side] > done}
        yield from next_round([(cell, left, dict.fromkeys(left, done)) for cell in cells], seed)


def run(world: World, most: int, shared: bool, seed: int) -> Spent:
    """A run of the matrix with jobs of at most so many trials, as many jobs as there are nodes.

    Args:
        world: matrix and cluster.
        most: trials of a job.
        shared: whether an environment that one node has built is there for all.
        seed: of everything that is drawn.
    """
    draw = random.Random(seed)
    cells = matrix(world)
    takes = {cell.request.key: draw.uniform(*world.build) for cell in cells}
    spent, everywhere = Spent(), set[str]()
    own: dict[int, set[str]] = {node: set() for node in range(world.nodes)}
    free = [(0.0, node) for node in own]
    draw.shuffle(free)
    for address, seconds in takes.items():  # Builds alone, as many at a time as there are nodes.
        at, node = heapq.heappop(free)
        (everywhere if shared else own[node]).add(address)
        spent.building, spent.builds, spent.jobs = spent.building + seconds, spent.builds + 1, spent.jobs + 1
        heapq.heappush(free, (at + seconds, node))
    # A run measures once everything is built.
    now = max(at for at, _ in free)
    slots, items, places = chosen(cells, seed), Items(), dict[str, str]()
    addresses = {cell.id: cell.request.key for cell in cells}
    idle = sorted(own)
    ends: list[tuple[float, int, str]] = []
    """Of items and of jobs: when, the node, and the item or nothing."""

    def hand_out() -> None:
        slot = next(slots, None)
        if slot is not None:
            unit = f"u{len(places)}"
            address = places[unit] = addresses[slot.cell.id]
            items.add(unit, Group(address, "gpu", None, alone=not shared))

    for _ in range(world.nodes * most):
        hand_out()
    while True:
        for batch in batches(items.waiting(), len(idle), most, kin) if idle else ():
            node = idle.pop(draw.randrange(len(idle)))
            spent.jobs += 1
            items.submitted(f"j{spent.jobs}", batch.items)
            at = now
            for address in dict.fromkeys(places[unit] for unit in batch.items):
                if address not in (everywhere if shared else own[node]):
                    own[node].add(address)
                    at, spent.building, spent.builds = (
                        at + takes[address],
                        spent.building + takes[address],
                        spent.builds + 1,
                    )
            for unit in batch.items:
                at += world.trial
                spent.trials += world.trial
                heapq.heappush(ends, (at, node, unit))
            heapq.heappush(ends, (at, node, ""))
        if not ends:
            spent.seconds = now
            return spent
        now = ends[0][0]
        while ends and ends[0][0] == now:
            _, node, unit = heapq.heappop(ends)
            if unit:
                assert items.result(unit)
                hand_out()
            else:
                idle.append(node)


def rows(world: World, seed: int) -> Iterator[str]:
    """A line for each way."""
    yield "| environments | trials a job | builds | building % | node-hours | hours | nodes busy % | jobs |"
    yield "|---|---|---|---|---|---|---|---|"
    for shared in (True, False):
        for most in BATCHES:
            spent = run(world, most, shared, seed)
            busy = spent.building + spent.trials
            yield (
                f"| {'shared' if shared else 'of each node'} | {most} | {spent.builds} | {100 * spent.share:.1f} "
                f"| {busy / 3600:.1f} | {spent.seconds / 3600:.2f} "
                f"| {100 * busy / (world.nodes * spent.seconds):.0f} | {spent.jobs} |"
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--to-a-lock", type=int, default=4, help="cells that share an environment")
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--build", type=float, nargs=2, default=(20.0, 60.0), metavar="SECONDS", help="least and most")
    parser.add_argument("--trial", type=float, default=15.0, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    least, most = arguments.build
    world = World(arguments.cells, arguments.to_a_lock, arguments.nodes, (least, most), arguments.trial)
    print("\n".join(rows(world, arguments.seed)))


if __name__ == "__main__":
    main()

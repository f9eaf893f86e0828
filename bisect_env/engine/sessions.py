"""Throughput in turns: cells' processes are started side by side, and then compute one at a time.

Starting (imports, compiles) takes most of the time and may overlap; rounds may not. So all processes of a session are
alive at once, each ready and idle, and each gets its turn while nothing else runs, the baseline's between the others'.
Sessions on different GPUs start together too, and then take their rounds session by session.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import repeat

from bisect_env.engine.grouping import UNKNOWN, Entrant, Session, by_hardware, fits, halves, plan, turns, waves
from bisect_env.engine.places import alike, split
from bisect_env.engine.plan import seed_of, silence_limit
from bisect_env.engine.progress import Reporter
from bisect_env.engine.timed_process import STARTING, TimedProcess, pause
from bisect_env.engine.trialing import Bench, devices_wanted, narrowed
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import Cell
from bisect_env.store.trials import StoredTrial
from bisect_env.trials import gpu, leases, machine
from bisect_env.trials.records import Device, Outcome, Side, TrialRecord
from bisect_env.verdicts.hardware import Hardware
from bisect_env.verdicts.hardware import most as most_of
from bisect_env.verdicts.throughput import SLOWED

PATIENCE = 5.0
"""Seconds to wait for several GPUs at once before a single one has to do."""

Keep = Callable[[Cell, StoredTrial], None]


@dataclass
class _Running:
    """A session on its GPUs, with its processes in the order of its entrants."""

    session: Session
    block: int
    devices: tuple[Device, ...]
    processes: list[TimedProcess]
    before: tuple[tuple[str, str], ...]
    slowed: set[str]
    after: tuple[tuple[str, str], ...] = ()


def run(bench: Bench, entrants: Sequence[Entrant], reporter: Reporter, keep: Keep) -> None:
    """Time the rounds of every entrant that needs some (:func:`~bisect_env.engine.grouping.needs_rounds`).

    A session whose GPU was slowed down, and cells whose process ended for a reason that says nothing about them, get
    one more. Records are stored with the number of their session as block, unique in the run.

    Args:
        entrants: every cell that has an environment, also those that need nothing: they may be a baseline.
        keep: gets each record once it is stored.

    Raises:
        InfrastructureError: the GPUs cannot be leased.
        Stopped: the bench's stop event was set; nothing of the sessions under way is stored.
    """
    fresh: defaultdict[str, list[StoredTrial]] = defaultdict(list)

    def kept(cell: Cell, sample: StoredTrial) -> None:
        fresh[cell.key].append(sample)
        keep(cell, sample)

    block = 1 + max((s.block for e in entrants for s in e.samples if _of_run(s, bench.run_id)), default=-1)
    available = gpu.devices(bench.settings.gpus)
    several = len({Hardware.of([device]) for device in available}) > 1
    for count in sorted({devices_wanted(entrant.cell, len(available)) for entrant in entrants}):
        wanting = [entrant for entrant in entrants if devices_wanted(entrant.cell, len(available)) == count]
        groups = by_hardware(bench.matrix, wanting) if several and count else ((None, tuple(wanting)),)
        for judged, group in groups:
            on_those, devices = _on(bench, available, judged, count)
            memory = min(device.memory_bytes for device in devices) if count else None
            most = max(UNKNOWN, len(machine.cores()))
            sessions, left = plan(bench.matrix, group, most, memory)
            for entrant in left:
                reporter.note(
                    f"{entrant.cell.id}: no rounds in turn, since two such processes do not fit on a GPU together"
                )
            again: list[Session] = []
            places = len(devices) // count if count else len(sessions)
            for wave in waves(sessions, places, most):
                again += _measure(on_those, _informed(wave, fresh), count, block, reporter, kept)
                block += len(wave)
            for wave in waves(again, places, most):
                _measure(on_those, _informed(wave, fresh), count, block, reporter, kept)
                block += len(wave)


def run_one(bench: Bench, session: Session, reporter: Reporter, keep: Keep) -> bool:
    """Time the rounds of one session, whether or not any are needed; where its GPU was slowed down, once more.

    Args:
        session: its entrants with all their trials, those of earlier sessions of the run included.
        keep: gets each record once it is stored.

    Returns:
        False, and nothing is run: its processes do not fit on a GPU together.

    Raises:
        As :func:`run`.
    """
    available = gpu.devices(bench.settings.gpus)
    count = max(devices_wanted(entrant.cell, len(available)) for entrant in session.entrants)
    bench, available = _on(bench, available, most_of(session.entrants[-1].samples), count)
    memory = min(device.memory_bytes for device in available) if count else None
    if not fits(session, max(UNKNOWN, len(machine.cores())), memory):
        return False
    earlier = [s.block for e in session.entrants for s in e.samples if _of_run(s, bench.run_id)]
    block = 1 + max(earlier, default=-1)
    for again in _measure(bench, (session,), count, block, reporter, keep):
        block += 1
        _measure(bench, (again,), count, block, reporter, keep)
    return True


def _on(
    bench: Bench, available: Sequence[Device], judged: Hardware | None, count: int
) -> tuple[Bench, tuple[Device, ...]]:
    """The bench whose sessions get those GPUs on which their cells are measured, and these."""
    selection = narrowed(bench.settings.gpus, available, judged, count)
    return replace(bench, settings=replace(bench.settings, gpus=selection)), alike(available, judged, count)


def _informed(sessions: Sequence[Session], fresh: Mapping[str, Sequence[StoredTrial]]) -> tuple[Session, ...]:
    """The sessions with what earlier ones have shown of their cells."""

    def known(entrant: Entrant) -> Entrant:
        return entrant.after(fresh.get(entrant.cell.key, ()))

    return tuple(
        Session(session.baseline and known(session.baseline), tuple(map(known, session.others))) for session in sessions
    )


def _of_run(sample: StoredTrial, run_id: str) -> bool:
    return sample.run_id == run_id and sample.record.side is Side.ROUNDS


def _measure(
    bench: Bench, wave: Sequence[Session], count: int, block: int, reporter: Reporter, keep: Keep
) -> list[Session]:
    """Run sessions that start together, store their records, and give what should be measured again."""
    again: list[Session] = []
    while wave:
        with _leased(bench, count, len(wave)) as places:
            now, wave = wave[: len(places)], wave[len(places) :]
            processes = sum(len(session.entrants) for session in now)
            reporter.note(f"rounds: {processes} processes start side by side, and then compute in turn")
            cores = _cores(processes, count > 0)
            running = [
                _prepared(bench, session, block + number, devices, cores)
                for number, (session, devices) in enumerate(zip(now, places, strict=True))
            ]
            block += len(now)
            with _started(bench, running, reporter):
                for each in running:
                    _take_turns(bench, each)
                    again += _stored(bench, each, reporter, keep)
    return again


@contextmanager
def _leased(bench: Bench, count: int, sessions: int) -> Iterator[list[tuple[Device, ...]]]:
    """GPUs for as many sessions as there are free ones, at least for one."""
    with ExitStack() as stack:
        for places in range(sessions if count else 1, 0, -1):
            lease = leases.lease(
                count * places,
                apart=count == 1,
                allow_busy=bench.settings.allow_busy,
                timeout=PATIENCE if places > 1 else None,
                stop=bench.stop,
                selection=bench.settings.gpus,
                tell=bench.tell,
            )
            try:
                devices = stack.enter_context(lease)
            except InfrastructureError:
                if places == 1:
                    raise
            else:
                break
        if count:
            yield [devices[at : at + count] for at in range(0, len(devices), count)]
        else:
            yield [()] * sessions


def _cores(processes: int, on_gpu: bool) -> Iterator[tuple[int, ...]]:
    """The cores on which each process starts: a share where there are enough. On a CPU the libraries divide the rounds'
    work by the cores that they find at their start, so that all get all.
    """
    every = machine.cores()
    if on_gpu and processes <= len(every):
        return iter(split(machine.neighbours(every), processes))
    return repeat(every, processes)


def _prepared(
    bench: Bench, session: Session, block: int, devices: tuple[Device, ...], cores: Iterator[tuple[int, ...]]
) -> _Running:
    entrants = session.entrants
    # One seed for all: they are compared, so they do the same work.
    seed = seed_of(bench.settings.seed, entrants[0].cell, block)
    processes = [
        TimedProcess(bench, entrant, devices, len(entrants), seed, _silence(bench, entrant), next(cores))
        for entrant in entrants
    ]
    return _Running(session, block, devices, processes, gpu.health(devices), set())


def _silence(bench: Bench, entrant: Entrant) -> float:
    """As for the cell's trials, and three times that: its compiles run beside those of the whole session."""
    limits = bench.matrix.limits
    records = [sample.record for sample in entrant.samples]
    seen = [r.longest_silence for r in records if r.side is Side.SERIAL and r.outcome is Outcome.CLEAN]
    return silence_limit(limits.silence, limits.first_silence, seen, tripled=True)


@contextmanager
def _started(bench: Bench, running: Sequence[_Running], reporter: Reporter) -> Iterator[None]:
    """All processes, ready for their first turn. Nothing of them is left running afterwards."""
    processes = [process for each in running for process in each.processes]
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(len(processes)))
        for process in processes:
            stack.callback(process.close)
        try:
            for process in processes:
                reporter.trial_started(process.entrant.cell, Side.ROUNDS, 1, 1)
                process.start(pool)
            starting = processes
            while starting := [process for process in starting if not process.settled(pool)]:
                pause(bench.stop, STARTING)
            yield
        except BaseException:
            bench.stop.set()  # Ends the processes, so that closing them comes to an end.
            raise


def _take_turns(bench: Bench, running: _Running) -> None:
    session = running.session
    first = running.processes[0] if session.baseline else None
    others = running.processes[1:] if session.baseline else running.processes
    rounds = int(session.entrants[0].cell.condition.get("rounds", 8))
    for cycle in turns(first, others, rounds, seed_of(bench.settings.seed, session.entrants[0].cell, running.block)):
        for process in cycle:
            process.take_turn()
        running.slowed.update(gpu.slowed(gpu.health(running.devices)))
    for process in running.processes:
        process.finish()
    running.after = gpu.health(running.devices)
    running.slowed.update(gpu.slowed(running.after))


def _stored(bench: Bench, running: _Running, reporter: Reporter, keep: Keep) -> list[Session]:
    """Store a session's records; sessions to run again, with those of its cells that need it.

    Memory that did not suffice for all together may do for half of them.
    """
    foreign = () if bench.settings.allow_busy else gpu.foreign_processes(running.devices, own=())
    lost: list[Entrant] = []
    crowded = False
    for process in running.processes:
        cell = process.entrant.cell
        records = [_completed(record, running, foreign) for record in process.records]
        for record in records:
            bench.store.put_trial(record, cell.key, bench.run_id, running.block, bench.reproducer.content_hash)
            keep(cell, StoredTrial(record, running.block, bench.run_id))
            reporter.trial_ended(cell, record, _note(record, record is records[-1]))
        crowded |= records[-1].outcome is Outcome.OOM and len(running.processes) > 1
        if records[-1].outcome in (Outcome.INFRA, Outcome.OOM) and not records[-1].aborted:
            lost.append(process.entrant)
    session = running.session
    if running.slowed or session.baseline in lost:
        return list(halves(session) if crowded else (session,))
    again = replace(session, others=tuple(lost))
    return list(halves(again) if crowded else (again,)) if lost else []


def _completed(record: TrialRecord, running: _Running, foreign: Sequence[str]) -> TrialRecord:
    host = record.host + tuple((f"{key} before", value) for key, value in running.before) + running.after
    record = replace(record, host=host)
    if running.slowed:
        record = replace(record, extra=(*record.extra, (SLOWED, ", ".join(sorted(running.slowed)))))
    if foreign and record.outcome is not Outcome.INFRA:
        message = f"somebody else used the GPU meanwhile: {', '.join(foreign)}"
        record = replace(record, outcome=Outcome.INFRA, message=message)
    return record


def _note(record: TrialRecord, last: bool) -> str:
    if record.outcome is Outcome.INFRA:
        return f"not used: {record.message}"
    slowed = dict(record.extra).get(SLOWED)
    text = (
        f"{len(record.rounds)} rounds timed"
        if record.rounds or last
        else "it did not come to its rounds: started again"
    )
    return f"{text}; the GPU was slowed down ({slowed})" if slowed else text

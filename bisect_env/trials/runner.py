"""Runs one trial: its folder and variables, its process, the watch over it, and the record of what was seen."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bisect_env.trials import caches, events, stacks
from bisect_env.trials.capture import Capture
from bisect_env.trials.hostmemory import oom_kills
from bisect_env.trials.isolation import Folders, Isolation, compiler_folders, driver_folder, isolate, redact
from bisect_env.trials.outcome import Classified, Seen, classify
from bisect_env.trials.process import CannotStart, Process, SupervisorLost
from bisect_env.trials.records import Outcome, TrialRecord, TrialSpec
from bisect_env.trials.stillness import STILL_SECONDS, Stillness, cpu_seconds
from bisect_env.trials.watchdog import EventsWatch, Expiry, expired
from bisect_env.trials.witness import thinned, written

TICK = 0.1
"""Seconds between two looks at the events file and at ``stop``; the end of the process is seen at once."""
GRACE = 1.0
"""Seconds that a hung process has between SIGTERM and SIGKILL."""

HostFacts = tuple[tuple[str, str], ...]


class Stopped(KeyboardInterrupt):
    """The trial was cut short because ``stop`` was set. Nothing of it is left, and there is no record."""


@dataclass(frozen=True)
class _Ran:
    """What was seen while the process ran."""

    capture: Capture
    status: int | None
    expiry: Expiry | None
    started: float
    seconds: float
    left: tuple[str, ...]
    stacks: str = ""
    hang_kind: str = ""


def run(
    spec: TrialSpec,
    stop: threading.Event,
    facts: Callable[[], HostFacts] | None = None,
    keep: bool = False,
    began: Callable[[int], None] | None = None,
) -> TrialRecord:
    """Run a trial and return its record. Its folder is removed afterwards, whatever happened.

    Args:
        spec: the trial.
        stop: once it is set, the trial is killed and :class:`Stopped` raised.
        facts: asked for facts of the host before and after; what differs afterwards is added as ``NAME after``.
        keep: leave the folder, for its compile cache or for somebody to look at.
        began: is told the number of the trial's process once it runs.

    Raises:
        Stopped: ``stop`` was set.
        KeyboardInterrupt: as it came; the process is killed first.
    """
    folders = Folders(spec.folder)
    before = facts() if facts else ()
    kills = oom_kills()
    try:
        try:
            isolation = _prepare(spec, folders)
            ran = _run(spec, folders, isolation, stop, began)
            text = _written(folders.events)
            log = written(folders.witness)
        except (OSError, CannotStart, SupervisorLost) as error:
            return _not_run(spec, error, before)
        said = events.read(redact(text, isolation.secrets))
        output = redact(ran.capture.text(), isolation.secrets)
        seen = Seen(
            facts=said,
            output=output,
            exit_status=ran.status,
            expired=ran.expiry.limit if ran.expiry else "",
            waited=ran.expiry.seconds if ran.expiry else 0.0,
            ended=ran.started + ran.seconds,
            protocol=spec.reproducer.protocol,
            fail_match=ran.capture.match(0),
            skip_match=ran.capture.match(1),
            leased=bool(spec.devices),
            oom_killed=oom_kills() > kills,
        )
        after = dict(facts()) if facts else {}
        changed = ((f"{name} after", value) for name, value in after.items() if dict(before).get(name) != value)
        record = _record(spec, seen, classify(seen), ran, isolation, (*before, *changed))
        near = [failure.t for failure in record.failures]
        return replace(record, witness=thinned(redact(log, isolation.secrets), near))
    finally:
        if not keep:
            shutil.rmtree(spec.folder, ignore_errors=True)


def _prepare(spec: TrialSpec, folders: Folders) -> Isolation:
    folders.create()
    for file in spec.reproducer.files:
        if file.is_dir():
            shutil.copytree(file, folders.work / file.name)
        else:
            shutil.copy2(file, folders.work / file.name)
    if spec.warm_cache is not None:
        caches.copy_in(spec.warm_cache, folders.compiled)
    if spec.turns is not None:
        spec.turns.mkdir(parents=True, exist_ok=True)
    condition = {**spec.condition.as_dict(), "side": spec.side.told, "seed": spec.seed}
    if spec.only_repeat is not None:
        condition["only_repeat"] = spec.only_repeat
    folders.condition.write_text(json.dumps(condition))
    driver = driver_folder(os.environ, folders.driver) if spec.devices else None
    return isolate(spec, os.environ, compiler_folders(os.environ.get("PATH", "")), driver)


def _run(
    spec: TrialSpec,
    folders: Folders,
    isolation: Isolation,
    stop: threading.Event,
    began: Callable[[int], None] | None,
) -> _Ran:
    first, *rest = spec.reproducer.command
    command = [str(spec.python) if first == "python" else first, *rest]
    capture = Capture((spec.reproducer.fail_pattern, spec.reproducer.skip_pattern))
    kind = table = ""
    with Process(command, folders.work, isolation.variables, capture, spec.cores) as process:
        started, clock = time.time(), time.monotonic()
        if began is not None:
            began(process.pid)
        expiry = _watch(spec, folders, process, stop, clock)
        status = process.status
        seconds = time.monotonic() - clock
        if expiry:
            kind, table = _examine(process, folders.events, spec.reproducer.protocol)
        process.end(GRACE if expiry else 0.0)
    left = () if expiry else process.left
    kind = kind if expiry and expiry.limit != "import" else ""
    return _Ran(capture, status, expiry, started, seconds, left, redact(table, isolation.secrets), kind)


def _watch(spec: TrialSpec, folders: Folders, process: Process, stop: threading.Event, began: float) -> Expiry | None:
    watch = EventsWatch(folders.events, began, spec.turns)
    stillness = Stillness(began, lambda: cpu_seconds(process.family()))
    while not process.wait(TICK):
        if stop.is_set():
            raise Stopped
        now = time.monotonic()
        progress = watch.look(now)
        expiry = expired(progress, now, spec.limits, spec.silence, spec.reproducer.protocol)
        if expiry:
            return expiry
        # Imports read from a disk, and a command without the protocol may sleep for good reasons.
        if progress.ready and stillness.seconds(now, progress.last_event) >= STILL_SECONDS:
            return Expiry("still", STILL_SECONDS)
    return None


def _examine(process: Process, path: Path, protocol: bool) -> tuple[str, str]:
    """The kind of a hang, and all that can be seen of its threads."""
    family = process.family()
    samples = stacks.sample(family)
    said = events.read(_written(path))
    compiling = said.open_windows
    parts = [stacks.describe(samples, stacks.SAMPLE_SECONDS)]
    if compiling:
        parts.append("compiling: " + ", ".join(f"{thread} ({what[-1]})" for thread, what in compiling.items()))
    parts.append(stacks.dump(process, family, os.environ.get("PATH", ""), speaks=protocol and bool(said.times)))
    return stacks.kind_of(samples, stacks.SAMPLE_SECONDS, compiling), "\n\n".join(part for part in parts if part)


def _written(events_file: Path) -> str:
    """What the reproducer wrote; nothing when a command of the user's own has made something else than a file of it."""
    return events_file.read_text(errors="replace") if events_file.is_file() else ""


def _asked(spec: TrialSpec, outcome: Outcome, host: HostFacts) -> TrialRecord:
    """What every record of a trial says, however it went."""
    return TrialRecord(
        id=spec.id,
        environment=spec.environment,
        reproducer=spec.reproducer.content_hash,
        condition=spec.condition,
        side=spec.side,
        seed=spec.seed,
        outcome=outcome,
        devices=spec.devices,
        host=host,
        cores=spec.cores,
        only_repeat=spec.only_repeat,
        at_once=spec.at_once,
    )


def _record(
    spec: TrialSpec, seen: Seen, classified: Classified, ran: _Ran, isolation: Isolation, host: HostFacts
) -> TrialRecord:
    said = seen.facts
    extra = list(said.notes)
    if said.devices:
        extra.append(("devices seen", ", ".join(said.devices)))
    if said.ignored:
        extra.append(("events ignored", str(said.ignored)))
    if ran.left:
        extra.append(("left running", f"{', '.join(ran.left)} (ended)"))
    driver = Folders(spec.folder).driver
    if driver.exists():
        extra.append(("driver libraries", f"linked from {next(driver.iterdir()).resolve().parent}: only "
                      "LD_LIBRARY_PATH reaches them, and nothing else of it was passed on"))  # fmt: skip
    return replace(
        _asked(spec, classified.outcome, host),
        failures=classified.failures,
        paths=tuple(said.paths),
        steps=tuple(said.steps),
        peak_bytes=said.peak_bytes,
        predicted_bytes=tuple(said.predicted_bytes.items()),
        losses=tuple(said.losses.items()),
        numbers=tuple(said.numbers),
        versions=tuple(said.versions.items()),
        exposures=said.exposures,
        cache_hits=said.cache_hits,
        cache_misses=said.cache_misses,
        windows=said.windows,
        longest_silence=said.longest_silence(seen.ended),
        started=ran.started,
        seconds=ran.seconds,
        exit_status=ran.status,
        message=redact(classified.message, isolation.secrets),
        stacks=ran.stacks,
        hang_kind=ran.hang_kind,
        output=seen.output,
        environment_variables=isolation.shown,
        withheld=isolation.withheld,
        extra=tuple(extra),
        aborted=classified.aborted,
        rounds=tuple(said.rounds),
        utilisation=tuple(said.utilisation),
        resets=said.resets,
        phase=said.phase,
    )


def _not_run(spec: TrialSpec, error: Exception, host: HostFacts) -> TrialRecord:
    """The record of a trial without a result: a full disk may have room later, a missing command will still miss."""
    number = error.errno if isinstance(error, OSError) else None
    full = number in (errno.ENOSPC, errno.EDQUOT)
    passing = full or number in (errno.ENOMEM, errno.EAGAIN) or isinstance(error, SupervisorLost)
    hint = "; free some space (`bisect-env clean` shows what can go)" if full else ""
    return replace(
        _asked(spec, Outcome.INFRA, host),
        message=f"the trial could not be run: {error}{hint}",
        started=time.time(),
        aborted=not passing,
    )

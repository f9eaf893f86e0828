"""A job on its node: ``python -m bisect_env.cluster.worker FOLDER`` does what the folder says and leaves results in it.

It needs no Slurm: whatever starts it, it takes the GPUs that CUDA_VISIBLE_DEVICES leaves it and the cores it is bound
to. Its own store, and the folders of its trials, lie on the node's own disk and end with it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from bisect_env.bundles.offline import Offline
from bisect_env.cluster import job, node
from bisect_env.cluster.credentials import VARIABLE
from bisect_env.cluster.ending import told_to_end
from bisect_env.cluster.job import Ended, ItemResult, JobSpec, Trouble
from bisect_env.engine import prepare, sessions
from bisect_env.engine.grouping import Entrant, Session
from bisect_env.engine.places import Place
from bisect_env.engine.progress import Reporter
from bisect_env.engine.settings import Settings
from bisect_env.engine.trialing import Bench, run_attempt
from bisect_env.environments import building
from bisect_env.environments.claims import Claims
from bisect_env.environments.compiling import address_of
from bisect_env.environments.records import Environment, Lock, Reason, Unavailable
from bisect_env.environments.scratch import scratch
from bisect_env.environments.uv import Uv
from bisect_env.errors import BisectEnvError, ExitCode
from bisect_env.matrix.cells import Cell
from bisect_env.store.database import Store
from bisect_env.store.trials import StoredTrial
from bisect_env.trials import gpu, machine, reproducers
from bisect_env.trials.records import Outcome, Reproducer
from bisect_env.trials.runner import Stopped

OF_THE_NODE = (Reason.INDEX_UNREACHABLE, Reason.OFFLINE, Reason.INTERPRETER, Reason.UV)
"""Why there is no environment here, though there may be one elsewhere: this node's network, cache or programs."""
WITHOUT_IMPORT = (Reason.IMPORT, Reason.VARIANT)
"""The environment stands. Whoever sends trials for it knows, and wants to see what they come to."""

CUT_OFF = 0.5
"""Seconds in which this process is told to end as well: Slurm tells all of a job's, and a child may end by that."""


class _Failed(Exception):
    """The job cannot go on."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


@dataclass
class _Report(Reporter):
    """Says everything in the job's log, and keeps what belongs into its end."""

    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)
        print(text, flush=True)

    def built(self, label: str, result: Environment | Unavailable, seconds: float) -> None:
        words = f"not there: {result.message}" if isinstance(result, Unavailable) else f"stands after {seconds:.1f} s"
        print(f"{label}: environment {words}", flush=True)


class _Job:
    """One job under way. What it has come to stands in ``ended`` at every moment."""

    def __init__(self, spec: JobSpec, folder: Path, environ: Mapping[str, str], stop: threading.Event) -> None:
        self._spec, self._folder, self._environ, self._stop = spec, folder, environ, stop
        self._report = _Report()
        self.notes = self._report.notes
        self._facts = node.facts(environ)
        self.ended = nothing_done(environ)

    def run(self) -> None:
        """All of it, unless it is stopped or fails.

        Raises:
            _Failed: with the reason.
            Exception: whatever else happens while the job is stopped.
        """
        spec = self._spec
        entrants = spec.session.entrants if spec.session else spec.entrants
        cells = [item.attempt.slot.cell for item in spec.items] + [entrant.cell for entrant in entrants]
        lacking = node.lacks(spec.wanted, cells, spec.gpus, self._environ)
        if lacking:
            raise _Failed(Trouble("node", lacking))
        devices = gpu.devices(spec.gpus)
        driver = devices[0].driver if devices else None
        self.ended = replace(self.ended, devices=tuple(device.name for device in devices), driver=driver)
        reproducer = self._reproducer() if cells else spec.reproducer
        with scratch(node.own_disk(self._environ)) as own, Store(own / "store.sqlite") as store:
            began = time.monotonic()
            try:
                found = self._environments(store)
            finally:
                self.ended = replace(self.ended, build_seconds=time.monotonic() - began)
            if not cells or self._stop.is_set():
                return
            store.start_run(spec.matrix.name, spec.matrix.path, (), spec.seed, {}, run_id=spec.run_id)
            began = time.monotonic()
            try:
                self._measure(found, own, store, reproducer)
            finally:
                self.ended = replace(self.ended, trial_seconds=time.monotonic() - began)

    def _environments(self, store: Store) -> dict[str, Environment]:
        """By their addresses, those that stand here now. Without those that it needs, the job fails."""
        spec = self._spec
        root = spec.root if spec.node_folder is None else self._path(spec.node_folder)
        claims = Claims(spec.staleness)
        for each in spec.wanted:
            # Other jobs share what stands under an address: whatever else was built there would be theirs too.
            if not _names_its_content(each.lock):
                raise _Failed(Trouble("cell", f"{each.label}: the job's lock is not the one of its address"))
        built = prepare.build(
            {each.lock.address: (each.lock, each.request, each.label) for each in spec.wanted},
            root,
            store,
            Uv(None if spec.uv_cache is None else self._path(spec.uv_cache)),
            self._report,
            self._stop,
            spec.matrix.limits,
            None if spec.bundle is None else Offline.open(spec.bundle),
            claims,
        )
        ordered = [(each, built[each.lock.address]) for each in spec.wanted]
        self.ended = replace(self.ended, environments=tuple(result for _, result in ordered))
        standing: dict[str, Environment] = {}
        missing: list[tuple[str, Unavailable]] = []
        alone = not (spec.items or spec.entrants or spec.session)
        for each, result in ordered:
            if isinstance(result, Unavailable) and result.reason in WITHOUT_IMPORT and not alone:
                result = building.find(each.lock.address, each.lock, root, claims) or result
            if isinstance(result, Unavailable):
                missing.append((each.label, result))
            else:
                standing[each.lock.address] = result
        if missing:
            faults = [(label, result) for label, result in missing if result.reason in OF_THE_NODE]
            label, result = (faults or missing)[0]
            raise _Failed(Trouble("node" if faults else "cell", f"{label}: {result.reason}: {result.message}"))
        return standing

    def _measure(self, found: Mapping[str, Environment], own: Path, store: Store, reproducer: Reproducer) -> None:
        spec = self._spec
        bench = Bench(
            spec.matrix,
            Settings(own, spec.seed, allow_busy=spec.allow_busy, gpus=spec.gpus),
            store,
            spec.run_id,
            reproducer,
            self._stop,
            self._report.note,
        )
        self._run_items(bench, found, own)
        job.forget_rounds(self._folder)
        if spec.entrants:
            entrants = [_on(found, entrant) for entrant in spec.entrants]
            sessions.run(bench, entrants, self._report, self._keep)
        if spec.session is not None:
            baseline = None if spec.session.baseline is None else _on(found, spec.session.baseline)
            session = Session(baseline, tuple(_on(found, entrant) for entrant in spec.session.others))
            fits = sessions.run_one(bench, session, self._report, self._keep)
            self.ended = replace(self.ended, fits=fits)

    def _run_items(self, bench: Bench, found: Mapping[str, Environment], own: Path) -> None:
        done = job.results(self._folder)  # A job that is started again goes on where it was.
        place = Place(0, machine.cores())
        for item in self._spec.items:
            if item.id in done:
                continue
            attempt, slot = item.attempt, item.attempt.slot
            attempt = replace(attempt, environment=found[attempt.environment.lock.address])
            record = run_attempt(bench, attempt, place)
            if record.outcome is not Outcome.CLEAN and self._stop.wait(CUT_OFF):
                raise Stopped
            fault = node.at_fault(record, own)
            if fault:
                raise _Failed(Trouble("node", f"{fault}: {record.message}"))
            print(f"{slot.cell.id}: {slot.side} {slot.index}: {record.outcome}", flush=True)
            self._leave(item.id, slot.cell, StoredTrial(record, slot.index, bench.run_id))

    def _keep(self, cell: Cell, sample: StoredTrial) -> None:
        """A record of a process of rounds."""
        self._leave(f"{job.ROUNDS}{sample.record.id}", cell, sample)

    def _leave(self, name: str, cell: Cell, sample: StoredTrial) -> None:
        record = replace(sample.record, host=sample.record.host + self._facts)
        job.write_result(ItemResult(name, cell.key, replace(sample, record=record)), self._folder)

    def _reproducer(self) -> Reproducer:
        """The reproducer as it lies here; it may be installed elsewhere than where the job was sent from."""
        spec = self._spec
        here = reproducers.prepare(spec.matrix.reproducer)
        if here.content_hash != spec.reproducer.content_hash:
            words = f"the files of the reproducer {here.name} are not those that the job was sent for"
            raise _Failed(Trouble("cell", f"{words}: they have changed since, or another bisect-env is installed here"))
        return replace(spec.reproducer, command=here.command, files=here.files)

    def _path(self, text: str) -> Path:
        path = Path(os.path.expandvars(text)).expanduser()
        if not path.is_absolute():
            raise _Failed(Trouble("node", f"{text} is {path} here, which is no absolute path: is the variable set?"))
        return path


def _on(found: Mapping[str, Environment], entrant: Entrant) -> Entrant:
    return replace(entrant, environment=found[entrant.environment.lock.address])


def nothing_done(environ: Mapping[str, str]) -> Ended:
    """The end of a job that has not begun."""
    return Ended(node.name(environ), node.job_id(environ), environ.get("CUDA_VISIBLE_DEVICES"))


def work(folder: Path) -> Ended:
    """Do the job of a folder, in this process's main thread; what is returned lies in the folder too.

    SIGTERM ends it within two seconds: what it was doing leaves no result, no process, no folder and no claim.

    Raises:
        InfrastructureError: the folder cannot be written.
    """
    environ = dict(os.environ)
    # Nothing that is started from here may see it.
    os.environ.pop(VARIABLE, None)
    stop = threading.Event()
    ended = nothing_done(environ)
    with ExitStack() as stack:
        stack.enter_context(told_to_end(stop))
        try:
            (folder / job.ENDED).unlink(missing_ok=True)
            this = _Job(job.read(folder, environ), folder, environ, stop)
        except (BisectEnvError, OSError) as error:
            ended = replace(ended, trouble=Trouble("node", str(error)))
        else:
            trouble = _trouble(this, stop)
            ended = replace(this.ended, trouble=trouble, notes=tuple(this.notes))
        # What was asked may have been ended by the signal that this process gets a moment later: no fault of the node.
        if ended.trouble is not None and stop.wait(CUT_OFF):
            ended = replace(ended, trouble=None)
    ended = replace(ended, stopped=stop.is_set())
    job.write_ended(ended, folder)
    return ended


def _trouble(this: _Job, stop: threading.Event) -> Trouble | None:
    """Run it, and say why it did not come to its end; None when it did, or was told to stop."""
    try:
        this.run()
    except KeyboardInterrupt:
        return None
    except _Failed as failed:
        return failed.trouble
    except (BisectEnvError, OSError) as error:
        # Whatever goes wrong while all is being ended comes from that.
        return None if stop.is_set() else Trouble("node", str(error))
    except Exception as error:  # noqa: BLE001 - whoever sent the job is to learn of it too
        if stop.is_set():
            return None
        traceback.print_exc()
        return Trouble("cell", f"a defect of bisect-env, see the job's log: {type(error).__name__}: {error}")
    return None


def _names_its_content(lock: Lock) -> bool:
    """Whether the address is that of the text; one over a base is made of the base's files as well."""
    return lock.base is not None or lock.address == address_of(lock.text, lock.build_text, lock.interpreter)


def main(arguments: list[str]) -> int:
    """``FOLDER``: the job's folder."""
    if len(arguments) != 1:
        print("usage: python -m bisect_env.cluster.worker FOLDER", file=sys.stderr)
        return ExitCode.USAGE
    try:
        ended = work(Path(arguments[0]).absolute())
    except BisectEnvError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if ended.stopped:
        print("told to end; what was under way is to be done again", flush=True)
        return ExitCode.INTERRUPTED
    if ended.trouble is not None:
        print(f"trouble of the {ended.trouble.whose}: {ended.trouble.message}", file=sys.stderr)
        return ExitCode.INFRASTRUCTURE
    return ExitCode.PASSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

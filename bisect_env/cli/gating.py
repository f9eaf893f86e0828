"""A gate from what the command line asks to its reports: snapshots read, a change resolved, run, stopped, told."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

from rich.console import Console

from bisect_env.bisection.records import Specification
from bisect_env.cli import asked as bisecting
from bisect_env.cli import gate_output, named
from bisect_env.cli.asked import Asked, Checked
from bisect_env.cli.bisecting import Where, settings_of
from bisect_env.cli.common import STORE_FILE, Progress, complain, ends_cleanly, say
from bisect_env.cli.diff import snapshot
from bisect_env.cli.gate_output import Output
from bisect_env.environments import locks, requirements
from bisect_env.environments.records import Lock, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput, ExitCode, InfrastructureError
from bisect_env.gate import candidates, resolving
from bisect_env.gate.changes import changes
from bisect_env.gate.driver import Run
from bisect_env.gate.preparing import NothingToCompare
from bisect_env.gate.races import MOST_TRIALS
from bisect_env.gate.records import Rules
from bisect_env.gate.sides import cells
from bisect_env.gate.specification import Gate
from bisect_env.gate.turns import Place
from bisect_env.matrix.cells import Cell
from bisect_env.matrix.problems import shown
from bisect_env.matrix.urls import without_credentials
from bisect_env.report.gate_live import GateLines, GateLive
from bisect_env.snapshots import pinning, sources
from bisect_env.snapshots.factors import Difference
from bisect_env.snapshots.forms.requirements import NOT_APPLIED
from bisect_env.snapshots.records import Snapshot
from bisect_env.store.database import Store
from bisect_env.verdicts.statistics import clean_trials_needed

STORE = ".bisect-env"
"""The default of ``--store``."""
MOST_PLANNED = 10_000
"""Trials a side: the boundary of more would take longer to plan than their first ones to run."""


@dataclass(frozen=True)
class Sides:
    """What is compared, as the command line says it."""

    baseline: str
    candidate: str | None
    """None: it is told as a change."""
    upgrades: tuple[str, ...]
    requirements: str | None

    @property
    def specs(self) -> tuple[str, ...]:
        """The sources that are named."""
        return tuple(filter(None, (self.baseline, self.candidate)))


def specified(
    sides: Sides, wanted: Asked, rules: Rules, controls: int, baseline_store: bool, where: Where, uv: Uv
) -> tuple[Gate, Unavailable | None]:
    """The gate that is asked for, and why its candidate does not resolve, where that is known already.

    All that needs no source is checked first. Nothing is written.

    Raises:
        BadInput: an option or a source cannot be used, or the baseline does not resolve.
        InfrastructureError: an index or a host does not answer.
    """
    _check(rules)
    checked = bisecting.check(wanted, Path.cwd())
    for text in sides.upgrades:
        _upgrade(text)
    baseline = snapshot(sides.baseline, where.root)
    candidate, lines = baseline, tuple(sides.upgrades)
    dropped: tuple[str, ...] = ()
    if sides.candidate is not None:
        candidate = snapshot(sides.candidate, where.root)
    elif sides.requirements is not None:
        change = sources.snapshot(sides.requirements)
        lines, dropped = (*lines, *_lines(change)), tuple(text for text in change.missing if NOT_APPLIED in text)
    baseline, candidate = named.left_out((baseline, candidate), wanted.without)
    baseline, candidate = bisecting.with_variables(baseline, candidate, checked)
    resolver = _Resolver(wanted, checked, uv)
    baseline = resolver.exact(baseline)
    listed = baseline
    if sides.candidate is not None:
        settled = resolver.settled(candidate)
    else:
        baseline, settled = resolver.changed(baseline, lines)
        settled = replace(settled, snapshot=replace(settled.snapshot, missing=(*settled.snapshot.missing, *dropped)))
    known = pinning.installed(sides.specs)
    difference = changes(baseline, settled.snapshot, checked.index, uv.simple, known, cache=wanted.cache is None)
    asked = bisecting.specification(wanted, checked, baseline, settled.snapshot, difference)
    # What the command line does not name as it is compared is kept as a file for another command.
    again = (_again(sides.baseline) if baseline == listed else "", _again(sides.candidate))
    gate = Gate(asked, rules, controls, baseline_store, again, words(wanted, where))
    return gate, settled.unavailable


def _check(rules: Rules) -> None:
    """Raises BadInput where the rules take more trials than can be planned."""
    if rules.trials is not None:
        option, told, takes = "--trials", str(rules.trials), rules.trials
    else:
        option, told = "--max-race-rate", f"{rules.max_race_rate:g} at --confidence {rules.confidence:g}"
        takes = 0 if rules.no_worse is not None else clean_trials_needed(rules.max_race_rate, rules.confidence)
    most = MOST_TRIALS if rules.no_worse is not None else MOST_PLANNED
    if takes > most:
        raise BadInput(option, "", f"{told}: {takes} trials of each side", f"what takes at most {most} trials")


def _upgrade(text: str) -> None:
    """Raises BadInput for what is no requirement, in the words of the option."""
    try:
        requirements.parse([text])
    except BadInput as problem:
        wanted = "NAME==VERSION, or a name alone for its newest version; --requirements FILE takes a file"
        raise BadInput("--upgrade", problem.place, problem.found, wanted) from None


def _again(spec: str | None) -> str:
    """A source that can be read a second time; empty for none."""
    return "" if spec is None or spec.startswith(sources.STDIN) else spec


class _Resolver:
    """What has to be resolved before the two sides can be compared: ranges, and a change of the baseline."""

    def __init__(self, wanted: Asked, checked: Checked, uv: Uv) -> None:
        self._wanted, self._checked, self._uv, self._stop = wanted, checked, uv, threading.Event()

    def exact(self, baseline: Snapshot) -> Snapshot:
        """The baseline without ranges."""
        found = candidates.settled(baseline, self._cell(baseline).request, self._uv, self._stop)
        if found.unavailable is not None:
            raise resolving.refusal(found.unavailable, self._specification(baseline))
        return found.snapshot

    def settled(self, candidate: Snapshot) -> candidates.Settled:
        """The candidate without ranges."""
        found = candidates.settled(candidate, self._cell(candidate).request, self._uv, self._stop)
        return self._told(found)

    def changed(self, baseline: Snapshot, lines: tuple[str, ...]) -> tuple[Snapshot, candidates.Settled]:
        """The baseline as its lock completes it, and with these requirements installed into it."""
        asked = self._specification(baseline)
        if asked.base is not None:
            request = cells(asked)[0].request
            return baseline, self._told(candidates.laid_over(baseline, request, lines, self._uv, self._stop))

        def resolve(wanted: Any) -> dict[str, Lock | Unavailable]:
            requests = {cell.request.key: cell.request for cell in wanted}
            return {key: locks.resolve(request, self._uv, stop=self._stop) for key, request in requests.items()}

        ((cell, lock), _), _ = resolving.resolved(asked, resolve)
        before, found = candidates.changed(baseline, lock, cell.request, lines, self._uv, self._stop)
        return before, self._told(found)

    def _told(self, found: candidates.Settled) -> candidates.Settled:
        missing = found.unavailable
        if missing is not None and missing.reason in resolving.TROUBLE:
            raise InfrastructureError(f"the candidate cannot be resolved here ({missing.reason}): {missing.message}")
        return found

    def _cell(self, side: Snapshot) -> Cell:
        return cells(self._specification(side))[0]

    def _specification(self, side: Snapshot) -> Specification:
        return bisecting.specification(self._wanted, self._checked, side, side, Difference(()))


def _lines(change: Snapshot) -> tuple[str, ...]:
    """The requirements of a file, exact ones and others."""
    pins = tuple(
        f"{each.name} @ {each.source}" if each.source else f"{each.name}=={each.version}"
        for each in change.distributions
        if each.source or each.version
    )
    if change.unread:
        first = change.unread[0]
        found = f"{shown(first.text)}: {first.why}"
        raise BadInput(change.origin, f"line {first.line}", found, "a requirements file that can be read whole")
    return (*pins, *change.ranges)


def words(wanted: Asked, where: Where) -> tuple[str, ...]:
    """How a bisection is told to run the same trials from the same packages, the reproducer's command last."""
    found: list[str] = []
    for option, value in (
        ("--reproducer", wanted.reproducer),
        ("--threads", wanted.threads),
        ("--cache", wanted.cache),
        ("--fail-pattern", wanted.fail_pattern),
        ("--skip-pattern", wanted.skip_pattern),
        ("--timeout", wanted.timeout),
        ("--as-of", wanted.as_of),
        ("--torch-backend", wanted.torch_backend),
        ("--at-once", str(wanted.at_once) if wanted.at_once != 1 else None),
        ("--seed", str(wanted.seed) if wanted.seed else None),
        ("--gpus", where.gpus),
        ("--store", str(where.root) if str(where.root) != STORE else None),
    ):
        found += [option, value] if value is not None else []
    for option, values in (
        ("--option", wanted.options),
        ("--env", wanted.env),
        ("--pass-env", wanted.pass_env),
        ("--file", wanted.files),
        ("--without", wanted.without),
        ("--index", tuple(map(without_credentials, wanted.index))),
        ("--find-links", tuple(map(without_credentials, wanted.find_links))),
    ):
        found += [word for value in values for word in (option, value)]
    found += ["--offline"] if wanted.offline else []
    found += ["--allow-busy"] if where.allow_busy else []
    found += where.elsewhere.words
    return (*found, *(("--", *wanted.command) if wanted.command else ()))


def run(gate: Gate, missing: Unavailable | None, where: Where, output: Output, fresh: bool, dry: bool) -> ExitCode:
    """Run the gate, or go on with an earlier call of the same command, and write the reports."""
    # A candidate that does not resolve is a fail, also where it names no version that could be compared.
    if not gate.asked.difference.factors and missing is None:
        held = "; ".join(f"{each.name}: {each.why}" for each in gate.asked.difference.held)
        said = "Nothing to gate: the two sides do not differ in anything that trials here could show."
        say(f"{said} Held, and not tested: {held}." if held else said)
        return ExitCode.NOTHING_TO_COMPARE
    settings = settings_of(where, gate.asked)
    console = Console(file=cast("IO[str]", Progress()), highlight=False)
    reporter = GateLive(console) if console.is_terminal else GateLines(console)
    ended: BaseException | None = None
    # All input is checked: only now is anything written.
    with ends_cleanly(), Store(settings.root / STORE_FILE) as store:
        place = Place(settings, store, Uv(), reporter, threading.Event())
        going = Run(gate, place, missing, fresh, sys.argv[1:])
        try:
            with reporter:
                result = going.dry() if dry else going.to_the_end()
        except NothingToCompare as nothing:
            say(str(nothing))
            return ExitCode.NOTHING_TO_COMPARE
        except (KeyboardInterrupt, InfrastructureError) as error:
            place.stop.set()
            ended = error
            result = going.result("it was interrupted" if isinstance(error, KeyboardInterrupt) else "it failed")
    if dry:
        gate_output.put_plan(result, output)
        return ExitCode.PASSED
    gate_output.put(result, output)
    if isinstance(ended, InfrastructureError):
        raise ended
    if ended is not None:
        complain("Interrupted. What was measured is kept: the same command goes on from there.")
        return ExitCode.INTERRUPTED
    return gate_output.CODES[result.decision]

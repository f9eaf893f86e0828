"""A bisection from its first trial to its finding: asks the course what it wants, does it, and keeps every answer.

Everything that the course is told is in the log first. A bisection that was killed is its log replayed, and goes on as
if it had never stopped; a batch that was cut short finds in the store what had ended of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import inf
from pathlib import Path

from bisect_env import __version__
from bisect_env.bisection import counting, log, lookups
from bisect_env.bisection.batches import Batches, OutOfTime, Place
from bisect_env.bisection.closing import Closing
from bisect_env.bisection.concluding import conclude
from bisect_env.bisection.forecast import Forecast
from bisect_env.bisection.log import Answer, Candidates, Checked, Header, History, Log, Told
from bisect_env.bisection.mixes import Mixes, condition_factors
from bisect_env.bisection.records import Budget, Finding, Levels, Measure, Specification, Stage
from bisect_env.bisection.stages import Course
from bisect_env.bisection.wants import Check, Lookup, Round, Trials, Want
from bisect_env.engine.recall import HOST
from bisect_env.engine.sweeping import sweep
from bisect_env.engine.turn import turn
from bisect_env.errors import BadInput
from bisect_env.matrix.cells import IndexChoice
from bisect_env.snapshots.factors import Factor, Kind
from bisect_env.store.codec import encode
from bisect_env.trials import reproducers
from bisect_env.words import counted


def suspects(specification: Specification) -> tuple[Factor, ...]:
    """All factors of a bisection: those of the snapshots, and those of the conditions.

    Where the conditions say how the compile cache is, what the snapshots say of it is not asked.
    """
    conditions = condition_factors(specification.condition_good, specification.condition_bad)
    caches = any(factor.kind is Kind.CACHE for factor in conditions)
    own = [factor for factor in specification.difference.factors if not (caches and factor.kind is Kind.CACHE)]
    return (*own, *conditions)


def bisect(specification: Specification, place: Place, argv: Sequence[str] = ()) -> Finding:
    """Find the culprit. What an earlier call of the same specification left unfinished is gone on with.

    Args:
        specification: what is asked.
        place: where it works, and who watches.
        argv: the command line, for the store's list of runs.

    Raises:
        BadInput: the reproducer or a repository cannot be used.
        InfrastructureError: the machine, an index or the disk failed, again and again.
        KeyboardInterrupt: it was stopped. In every case :func:`resume` goes on from where it was.
    """
    path = begun(specification, place, argv)
    return resume(path, place, specification.index, specification.budget)


def begun(specification: Specification, place: Place, argv: Sequence[str] = ()) -> Path:
    """The log of the bisection of this specification: an earlier one's, or a new one. Nothing is tried yet.

    Raises:
        BadInput: the reproducer cannot be used, or a condition.
    """
    specification = _usable(specification)
    reproducers.prepare(specification.reproducer)
    path = unfinished(specification, place.settings.root)
    if path is None:
        parallel = specification.parallel or place.settings.executor.batches
        return _begin(replace(specification, parallel=parallel), place, argv)
    began = log.read(path).header.specification.parallel
    if specification.parallel not in (None, began):
        place.reporter.note(
            f"--parallel {specification.parallel}: this bisection began with {began}, and goes on with that: what its "
            "log says answers so many batches at a time"
        )
    return path


def resume(path: Path, place: Place, index: IndexChoice | None = None, budget: Budget | None = None) -> Finding:
    """Go on with the bisection of this log; of one that had come to its end the finding, without a further trial.

    Args:
        path: of its log.
        place: where it works, and who watches.
        index: where packages come from; None: as the log says, which holds no credentials.
        budget: of all of it, what is spent already included; None: as the log says.

    Raises:
        As :func:`bisect`.
    """
    history = log.read(path)
    about = f"bisection {history.header.id}"
    with turn(place.settings.root, about, place.stop, place.reporter.note) as waited:
        sweep(place.store)
        place.settings.executor.take_in(place.settings, place.store, place.reporter.note, place.stop)
        # Whoever had the turn may have gone on with this very one.
        history = log.read(path) if waited else history
        return _Run(path, history, place, index, budget).to_the_end()


def so_far(path: Path, place: Place, why: str) -> Finding:
    """What is known by a log, for a bisection that was interrupted: ``why`` says by what."""
    return _Run(path, log.read(path), place, None, None).finding(why)


def unfinished(specification: Specification, root: Path) -> Path | None:
    """The log of the latest bisection of the same specification, finished or not; None without one.

    With another budget it is the same one: to allow more is to go on. So it is with other batches at a time; it goes on
    with as many as it began with, since those are what its log answers.
    """
    for path in log.bisections(root):
        if _question(log.read(path).header.specification) == _question(specification):
            return path
    return None


def _question(specification: Specification) -> str:
    """All that matters to what is found, as the log keeps it: without credentials."""
    return encode(replace(specification, budget=Budget(), parallel=1))


def adopt(path: Path, place: Place, argv: Sequence[str] = ()) -> Path:
    """Take over a log of another host, or a copy that was cut: a bisection of this project that has answered the same.

    Returns:
        The path of its log here, for :func:`resume`.

    Raises:
        BadInput: it is no log of a bisection, or its lines are not in the order in which one was written.
    """
    history = log.read(path)
    course = Course(history.header.specification, history.header.factors)
    for number, answer in enumerate(history.answers, 1):
        try:
            course.give(answer)
        except ValueError as error:
            wanted = "a log as it was written: no line twice, none left out, none moved"
            raise BadInput(path, f"answer {number}", str(error), wanted) from error
    taken = _begin(history.header.specification, place, argv, history.header)
    for answer in history.answers:
        Log(taken).append(answer)
    return taken


def _begin(specification: Specification, place: Place, argv: Sequence[str], like: Header | None = None) -> Path:
    versions = {"bisect-env": __version__, HOST: place.settings.executor.host}
    name = f"{specification.good.origin} against {specification.bad.origin}"
    run_id = place.store.start_run("bisection", name, argv, specification.seed, versions)
    factors = suspects(specification) if like is None else like.factors
    path = log.path_of(place.settings.root, run_id)
    Log(path).begin(Header(run_id, specification, factors, time.time(), __version__))
    return path


def _usable(specification: Specification) -> Specification:
    """What of it has to be otherwise for the question.

    Raises:
        BadInput: a compile cache that no bisection can have.
    """
    for condition in (specification.condition_good, specification.condition_bad):
        if condition.cache == "stale":
            wanted = "cold, warm, or a folder: a bisection has no other torch whose cache could be stale"
            raise BadInput("cache", "", "stale", wanted)
    if specification.question.measure is Measure.THROUGHPUT_BELOW:
        return replace(specification, at_once=1)
    return specification


class _Run:
    """One process's part of a bisection."""

    def __init__(
        self, path: Path, history: History, place: Place, index: IndexChoice | None, budget: Budget | None
    ) -> None:
        self._log, self._place = Log(path), place
        header = history.header
        asked = header.specification
        specification = replace(asked, index=index or asked.index, budget=budget or asked.budget)
        self._id, self._specification = header.id, specification
        self._mixes = Mixes(specification, header.factors)
        self._reproducer = reproducers.prepare(specification.reproducer)
        settings = replace(place.settings, seed=specification.seed)
        self._blocks, self._earlier, self._began = history.blocks, history.seconds, time.monotonic()
        seconds = specification.budget.seconds
        deadline = inf if seconds is None else self._began + seconds - self._earlier
        work = replace(place, settings=settings)
        self._batches = Batches(header.id, self._mixes, self._reproducer, work, deadline)
        self._course = Course(specification, header.factors)
        self._forecast = Forecast()
        self._lines = [answer for answer in history.answers if isinstance(answer, Candidates)]
        for answer in history.answers:
            self._course.give(answer)
        self._batches.loose = any(seen.off_pin and seen.stage is Stage.ENDS for seen in self._course.observations)

    def to_the_end(self) -> Finding:
        """Do what the course wants until it has come to its end, or the budget has."""
        stage: Stage | None = None
        self._told()
        while (want := self._course.want) is not None:
            if self._course.stage is not stage:
                stage = self._course.stage
                self._place.reporter.stage(stage, self._course.searched)
                self._told()
            why = self._spent_up(want)
            if why:
                return self._close(why)
            began = time.monotonic()
            try:
                answer = self._answer(want)
            except OutOfTime:
                return self._close(self._out_of_time)
            answer = replace(answer, seconds=time.monotonic() - began)
            # First what is kept, then what follows from it.
            self._log.append(answer)
            self._blocks += answer.size if isinstance(answer, Told) else 0
            self._lines += [answer] if isinstance(answer, Candidates) else []
            self._course.give(answer)
            self._told()
        return self._close("")

    def finding(self, why: str) -> Finding:
        """What is known, without the parts that need more than the log."""
        return conclude(self._course, self._id, self._seconds, why, self._lines)

    @property
    def _seconds(self) -> float:
        return self._earlier + time.monotonic() - self._began

    def _close(self, why: str) -> Finding:
        closing = Closing(self._course, self._mixes, self._batches, self._place)
        found = closing.complete(self.finding(why))
        self._place.store.end_run(self._id, why or "completed")
        return found

    def _answer(self, want: Want) -> Answer:
        if isinstance(want, Check):
            return Checked(want.stage, self._batches.check(want.points), len(want.points))
        if isinstance(want, Lookup):
            return self._looked_up(want)
        points, sizes = self._within_budget(want)
        number = len(self._course.observations)
        signature = self._course.signature
        seen = self._batches.run(want.stage, points, sizes, self._blocks, number, signature)
        return Told(seen, max(sizes))

    def _looked_up(self, want: Lookup) -> Candidates:
        specification, place = self._specification, self._place
        if want.stage is Stage.COMMITS:
            return lookups.commits(want, specification, place.uv.simple, place.settings.root)
        pythons = lookups.pythons_of(self._mixes)
        found = lookups.versions(want, specification, place.uv.simple, pythons)
        if not specification.prior_from_reading or len(found.names) < 3:
            return found
        place.reporter.note(f"reading where {found.distribution} changed, in the wheels of {len(found.names)} versions")
        read = lookups.reading(found, specification.index, pythons, self._tracebacks(), place.settings.root)
        return replace(found, reading=read)

    def _tracebacks(self) -> tuple[str, ...]:
        """Those of the failure in question at the bad end, as far as its trials are in the store here."""
        course = self._course
        ids = [name for seen in course.seen_at(course.both_ends[1]) for name in seen.trials]
        records = [stored.record for name in ids if (stored := self._place.store.trial(name)) is not None]
        return counting.tracebacks(records, course.signature)

    def _within_budget(self, want: Trials | Round) -> tuple[Sequence[Levels], Sequence[int]]:
        """The mixes, and how many trials of each: as many as the budget allows."""
        most = self._specification.budget.trials
        left = inf if most is None else most - self._trials
        if isinstance(want, Trials):
            return want.points, [int(min(want.size, left // len(want.points)))] * len(want.points)
        before = accumulate(want.sizes, initial=0)
        cut = [int(min(size, left - used)) for size, used in zip(want.sizes, before, strict=False)]
        sizes = [size for size in cut if size > 0]
        return want.points[: len(sizes)], sizes

    @property
    def _trials(self) -> int:
        return sum(len(seen.trials) for seen in self._course.observations)

    def _spent_up(self, want: Want) -> str:
        """Why the budget does not allow what is wanted next; empty where it does."""
        budget = self._specification.budget
        if budget.seconds is not None and self._seconds >= budget.seconds:
            return self._out_of_time
        if budget.trials is None:
            return ""
        whole, left = counted(budget.trials, "trial"), budget.trials - self._trials
        if left <= 0:
            return f"the budget of {whole} is spent"
        least = len(want.points) if isinstance(want, Trials) else 0
        if left >= least:
            return ""
        said = f"the budget is {whole}"
        if self._trials:
            said = f"{left} of the budget of {whole} {'is' if left == 1 else 'are'} left"
        return f"{said}, and the next step takes at least {least}: one in each of {least} environments that take turns"

    @property
    def _out_of_time(self) -> str:
        return f"the budget of {self._specification.budget.seconds:g} s is spent"

    def _told(self) -> None:
        course, reporter = self._course, self._place.reporter
        builds = sum(seen.build_seconds is not None for seen in course.observations)
        reporter.spent(self._trials, builds, self._seconds)
        if course.suspects:
            stage, confidence = course.suspected_in, self._specification.confidence
            reporter.posterior(stage, course.suspects, confidence)
            left = self._forecast.remaining(stage, course.suspects, confidence, self._seconds)
            reporter.remaining(left if stage is course.stage else None)

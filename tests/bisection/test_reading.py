"""What a traceback's files say of versions: pure, from wheels on an index, and as a prior that steers a bisection."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.bisection import log, lookups
from bisect_env.bisection.log import Answer as Given
from bisect_env.bisection.log import Candidates, Header, Log
from bisect_env.bisection.reading import LONG, MOST_MARKED, compared, files_of, lines, summary, weight, weights
from bisect_env.bisection.records import Answer, Finding, Levels, Reading, ReadVersion, Specification, Stage
from bisect_env.bisection.stages import Course
from bisect_env.bisection.wants import Lookup, Want
from bisect_env.matrix.cells import IndexChoice
from bisect_env.report.bisection import report
from tests.bisection.simulated import World, factor, number, specification
from tests.bisection.world import Bisections, Listener, Rules

TORCH = """\
Traceback (most recent call last):
  File "/tmp/trial/compile_race.py", line 40, in work
    step()
  File "/envs/7f/venv/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py", line 1024, in compile_wrapper
    return fn(*args, **kwargs)
  File "/envs/7f/venv/lib/python3.11/site-packages/transformers/utils.py", line 7, in call
  File "/envs/7f/venv/lib/python3.11/site-packages/torch/fx/_symbolic_trace.py", line 12, in is_fx_tracing
  File "/envs/7f/venv/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py", line 8, in again
  File "/usr/lib/python3.11/threading.py", line 975, in run
RuntimeError: Detected that you are using FX to symbolically trace a dynamo-optimized function
"""
DYNAMO, FX = "torch/_dynamo/eval_frame.py", "torch/fx/_symbolic_trace.py"
VERSIONS = tuple(f"{position}.0" for position in range(1, 14))


def test_the_files_of_the_distribution_in_the_order_of_the_traceback() -> None:
    known = {DYNAMO, FX, "torch/__init__.py", "torch/utils.py", "threading.py"}
    assert files_of([TORCH, TORCH], known) == (DYNAMO, FX)
    assert files_of([TORCH], {"transformers/utils.py"}) == ("transformers/utils.py",)
    assert files_of([], known) == ()


def test_a_path_that_was_shortened_is_known_by_its_end_and_a_lone_name_is_not() -> None:
    shortened = f'  File "{FX}", line 3, in f\n  File "/home/me/utils.py", line 3, in g\n'
    assert files_of([shortened], {FX, "utils.py", "torch/utils.py"}) == (FX,)
    assert files_of(['  File "/home/me/src/torch/fx/_symbolic_trace.py", line 3, in f\n'], {FX}) == (FX,)


def test_which_version_changed_which_file() -> None:
    digests = [{DYNAMO: "a", FX: "x"}, {DYNAMO: "a", FX: "x", "torch/new.py": "n"}, {DYNAMO: "b", FX: "y"}, {FX: "y"}]
    found = compared("torch", ("1", "2", "3", "4"), digests, [TORCH])
    assert found.files == (DYNAMO, FX)
    assert [each.changed for each in found.versions] == [(), (DYNAMO, FX), (DYNAMO,)]
    assert lines(found) == (f"torch 3 changed {DYNAMO}, {FX}", f"torch 4 changed {DYNAMO}")


def read_as(*marked: int, of: int = 12, unread: Collection[int] = ()) -> Reading:
    """A reading of so many candidates, of which these, from 1, changed the file."""
    versions = (
        ReadVersion(f"{at + 1}.0", ("alpha/engine.py",) if at in marked else (), "no wheel" if at in unread else "")
        for at in range(1, of + 1)
    )
    return Reading("alpha", ("alpha/engine.py",), tuple(versions))


def test_what_cannot_be_read_weighs_as_changed_and_is_said() -> None:
    found = compared("alpha", ("1", "2", "3"), [{DYNAMO: "a"}, "it has no wheel", {DYNAMO: "a"}], [TORCH])
    assert [each.unread for each in found.versions] == ["it has no wheel"] * 2
    assert "alpha 2: not compared with the version before it: it has no wheel" in lines(found)
    assert weights(read_as(3, unread=[5])) == tuple(4.0 if at in (3, 5) else 1.0 for at in range(1, 13))
    assert "and 1 could not be compared. They weighed 4 times" in summary(read_as(3, unread=[5]))


@given(st.integers(1, 40), st.data())
def test_few_weigh_more_and_many_tell_nothing(of: int, data: st.DataObject) -> None:
    marked = data.draw(st.sets(st.integers(1, of)))
    found = weights(read_as(*marked, of=of))
    if 0 < len(marked) <= MOST_MARKED * of:
        assert found == tuple(weight(of) if at in marked else 1.0 for at in range(1, of + 1))
    else:
        assert found is None
        assert "All weighed alike" in summary(read_as(*marked, of=of))


def test_on_a_short_line_they_weigh_less() -> None:
    assert [weight(of) for of in (LONG - 1, LONG)] == [4.0, 8.0]


def test_a_traceback_that_goes_through_none_of_its_files_says_so() -> None:
    found = compared("beta", ("1", "2", "3"), [{"beta/x.py": "a"}] * 3, [TORCH])
    assert (weights(found), lines(found)) == (None, ())
    assert "it goes through no file of beta" in summary(found)
    assert "no two neighbouring versions could be read" in summary(compared("beta", ("1", "2"), ["no", "no"], [TORCH]))


class Read(World):
    """A world in which versions were read."""

    read: Reading | None = None

    def answer(self, want: Want) -> Given:
        if isinstance(want, Lookup):
            return Candidates(want.stage, want.distribution, self.versions, reading=self.read)
        return super().answer(want)


def simulated(seed: int, read: Reading | None, first_bad: int = 9) -> Course:
    world = Read(lambda chosen: 0.5 if number(chosen, "alpha", VERSIONS) >= first_bad else 0.0, seed, VERSIONS)
    world.read = read
    return world.run(Course(asked := specification([factor("alpha")], seed=seed), asked.difference.factors))


def test_a_course_with_a_right_reading_is_quicker_and_with_a_misleading_one_as_right() -> None:
    trials, right = [], []
    for read in (None, read_as(9, 4), read_as(2, 12)):
        courses = [simulated(seed, read) for seed in range(40)]
        searched = [seen for course in courses for seen in course.observations if seen.stage is Stage.VERSIONS]
        trials.append(sum(seen.counted for seen in searched))
        right.append(sum(c.versions is not None and c.versions.first_bad == VERSIONS[9] for c in courses))
    assert trials[1] < 0.85 * trials[0] and trials[2] < 1.3 * trials[0]
    # 5 % of 40 are 2; six wrong ones have a chance of 1.4 % then.
    assert min(right) >= 35


def test_a_log_with_a_reading_replays_to_the_same_course(tmp_path: Path) -> None:
    world = Read(lambda chosen: 0.5 if number(chosen, "alpha", VERSIONS) >= 9 else 0.0, 3, VERSIONS)
    world.read = read_as(9, unread=[2])
    asked = specification([factor("alpha")], seed=3)
    course = world.run(Course(asked, asked.difference.factors))
    kept = Log(tmp_path / "log.jsonl")
    kept.begin(Header("r1", asked, asked.difference.factors, 0.0, "0"))
    again = Course(asked, asked.difference.factors)
    for answer in world.answers:
        kept.append(answer)
    for answer in log.read(kept.path).answers:
        again.give(answer)
    assert again.want is None and again.beliefs == course.beliefs
    assert log.read(kept.path).answers == tuple(world.answers)


def offered(bisections: Bisections, edited: Collection[str]) -> None:
    """Thirteen versions of alpha, whose engine is edited in some of them; everything else of it in every one."""
    edition = 0
    for version in VERSIONS:
        edition += version in edited
        engine = f"EDITION = {edition}\n\n\ndef fail(words):\n    raise RuntimeError(words)\n"
        files = {"alpha/__init__.py": f"__version__ = {version!r}\n", "alpha/engine.py": engine}
        bisections.index.add(bisections.wheels.wheel("alpha", version, files=files))


def question(bisections: Bisections, first_bad: str, edited: Collection[str]) -> Specification:
    offered(bisections, edited)
    # It always fails: how often luck leads astray is what many seeds tell, without processes.
    rules: Rules = [{"when": {"alpha": f">={first_bad}"}, "rate": 1.0, "says": "race", "through": "alpha.engine"}]
    return bisections.specification({"alpha": "1.0"}, {"alpha": "13.0"}, rules, prior_from_reading=True)


def asks(found: Finding) -> list[tuple[Stage, Levels, int, int]]:
    return [(seen.stage, seen.point, seen.failures, seen.passes) for seen in found.observations]


@pytest.mark.parametrize("first_bad", ["9.0", "4.0"], ids=["right", "misleading"])
def test_a_bisection_that_reads_beforehand(bisections: Bisections, first_bad: str) -> None:
    found = bisections.found(question(bisections, first_bad, ["6.0", "9.0"]))
    assert found.answer is Answer.CULPRIT, found.sentence
    assert found.versions is not None and found.versions.first_bad == first_bad
    (read,) = found.readings
    assert (read.distribution, read.files) == ("alpha", ("alpha/engine.py",))
    assert [each.version for each in read.versions if each.changed] == ["6.0", "9.0"]
    assert weights(read) is not None
    text = report(found)
    assert "2 of 12 versions of alpha changed a file that the failure's traceback goes through. They weighed 4" in text
    assert "alpha 9.0 changed alpha/engine.py" in text


class Interrupts(Listener):
    """Presses Ctrl-C when a batch along the versions is about to begin for the second time."""

    left = 2

    def batch_started(self, stage: Stage, point: Levels, size: int) -> None:
        self.left -= stage is Stage.VERSIONS
        if not self.left:
            raise KeyboardInterrupt


def test_interrupted_after_it_has_read_it_asks_the_same_and_reads_nothing_again(
    bisections: Bisections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = question(bisections, "9.0", ["6.0", "9.0"])
    whole = bisections.found(asked)
    other = Bisections(tmp_path / "other", bisections.index, bisections.wheels, bisections.uv_cache)
    again = question(other, "9.0", ["6.0", "9.0"])
    with pytest.raises(KeyboardInterrupt):
        other.found(again, Interrupts())

    def unasked(*args: object, **options: object) -> None:
        raise AssertionError("the versions were read a second time")

    monkeypatch.setattr(lookups, "open_origins", unasked)
    found = other.found(again)
    assert asks(found) == asks(whole)
    assert (found.readings, found.probability) == (whole.readings, whole.probability)


def test_a_version_without_a_wheel_is_not_compared(bisections: Bisections) -> None:
    offered(bisections, ["3.0"])
    bisections.index.add(bisections.wheels.sdist("alpha", "3.1"))
    names = ("2.0", "3.0", "3.1", "4.0", "5.0")
    found = lookups.reading(
        Candidates(Stage.VERSIONS, "alpha", names),
        IndexChoice(urls=(bisections.index.url,)),
        (),
        ['  File "/x/site-packages/alpha/engine.py", line 4, in fail\n'],
        bisections.root,
    )
    assert [each.changed for each in found.versions] == [("alpha/engine.py",), (), (), ()]
    assert [bool(each.unread) for each in found.versions] == [False, True, True, False]

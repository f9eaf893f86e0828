"""What the command line asks of a bisection, checked by the rules of a matrix file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bisect_env.bisection.records import Budget, Measure, Question, Specification
from bisect_env.cli import amounts
from bisect_env.errors import BadInput
from bisect_env.matrix import shipped
from bisect_env.matrix.cells import Condition, IndexChoice, Limits, ReproducerChoice, Scalar
from bisect_env.matrix.document import Document, Loc
from bisect_env.matrix.loading import default_condition
from bisect_env.matrix.problems import Unfit, one_of, shown
from bisect_env.matrix.schema import validate
from bisect_env.matrix.settings import Settings
from bisect_env.matrix.urls import names_secret
from bisect_env.matrix.vocabulary import Vocabulary
from bisect_env.snapshots.factors import Difference
from bisect_env.snapshots.records import Snapshot

COPIED = (".py", ".sh")
"""Words of a command that are files with one of these names are copied into every trial's folder."""


_OPTIONS: dict[Loc, str] = {
    ("index", "urls"): "--index",
    ("index", "find_links"): "--find-links",
    ("index", "torch_backend"): "--torch-backend",
    ("reproducer", "files"): "--file",
    ("reproducer", "fail_pattern"): "--fail-pattern",
    ("reproducer", "skip_pattern"): "--skip-pattern",
    ("reproducer", "command"): "the command after --",
    ("reproducer",): "--reproducer",
    ("limits", "trial"): "--timeout",
    ("env",): "--env, --good-env, --bad-env",
    ("pass_env",): "--pass-env",
    ("as_of",): "--as-of",
}
"""What of a matrix file each option stands for."""


@dataclass(frozen=True)
class Asked:
    """The options as they were written, under click's names."""

    reproducer: str | None
    command: tuple[str, ...]
    files: tuple[str, ...]
    options: tuple[str, ...]
    good_options: tuple[str, ...]
    bad_options: tuple[str, ...]
    env: tuple[str, ...]
    good_env: tuple[str, ...]
    bad_env: tuple[str, ...]
    pass_env: tuple[str, ...]
    threads: str | None
    cache: str | None
    question: str
    any_failure: bool
    signature: str | None
    fail_pattern: str | None
    skip_pattern: str | None
    timeout: str | None
    find_fix: bool
    along: str | None
    without: tuple[str, ...]
    commits: tuple[str, ...]
    prereleases: bool
    confidence: float
    budget: tuple[str, ...]
    seed: int
    at_once: int
    batch: int | None
    confirm: int | None
    index: tuple[str, ...]
    find_links: tuple[str, ...]
    torch_backend: str | None
    offline: bool
    as_of: str | None
    base: str | None = None
    prior_from_reading: bool = False
    parallel: int | None = None


@dataclass(frozen=True)
class Checked:
    """Everything that can be known to be right before a snapshot is read."""

    reproducer: ReproducerChoice
    good: Condition
    bad: Condition
    variables: tuple[Mapping[str, str], Mapping[str, str]]
    """Set by options, on the good and on the bad side."""
    question: Question
    budget: Budget
    commits: tuple[tuple[str, str], ...]
    index: IndexChoice
    limits: Limits
    pass_env: tuple[str, ...]


class _CommandLine(Document):
    """The options as the data of a matrix file: what is unfit there is said of the option."""

    def bad(self, path: Loc, found: str, wanted: str) -> BadInput:
        """The error for the option that the value at ``path`` came from."""
        return BadInput(_OPTIONS.get(path[:2], _OPTIONS.get(path[:1], "the command line")), "", found, wanted)


def check(asked: Asked, folder: Path) -> Checked:
    """The options, understood. Relative paths start at ``folder``.

    Raises:
        BadInput: one of them cannot be used.
    """
    with named_option("--timeout"):
        seconds, hang = amounts.timeout(asked.timeout) if asked.timeout is not None else (None, amounts.HANGS[0])
    if asked.signature is not None and not asked.signature.strip():
        raise BadInput("--signature", "", "an empty text, which every failure contains", "a text, or --any-failure")
    with named_option("--question"):
        question = amounts.question(asked.question, asked.any_failure, asked.signature, hang)
    if asked.prior_from_reading and question.measure is not Measure.FAILURE:
        found = f"a question about {asked.question}, whose trials have no traceback"
        raise BadInput("--prior-from-reading", "", found, "--question failure, or leave it out")
    with named_option("--budget"):
        budget = amounts.budget(asked.budget)
    with named_option("--source"):
        commits = tuple(amounts.assignment(text, "transformers=../transformers or NAME=URL") for text in asked.commits)
    variables = _variables(asked)
    document = _CommandLine(folder / "command line", _data(asked, seconds, variables, folder))
    file = validate(document)
    settings = Settings(document, file)
    reproducer, known = settings.reproducer(shipped.reproducers_folder())
    settings.variables()
    words = Vocabulary(folder, known, reproducer.name)
    both = default_condition(known)
    for option, key, text in (("--threads", "threads", asked.threads), ("--cache", "cache", asked.cache)):
        if text is not None:
            both[key] = _valued(option, key, text, words)[1]
    both |= _options("--option", asked.options, words)
    return Checked(
        reproducer=reproducer,
        good=Condition.of(both | _options("--good-option", asked.good_options, words)),
        bad=Condition.of(both | _options("--bad-option", asked.bad_options, words)),
        variables=variables,
        question=question,
        budget=budget,
        commits=commits,
        index=settings.index(asks_for_cuda=False),
        limits=settings.limits(),
        pass_env=settings.pass_env({name: ("env", name) for name in file.env}),
    )


def specification(
    asked: Asked, checked: Checked, good: Snapshot, bad: Snapshot, difference: Difference
) -> Specification:
    """The bisection that is asked for."""
    return Specification(
        good=good,
        bad=bad,
        difference=difference,
        condition_good=checked.good,
        condition_bad=checked.bad,
        reproducer=checked.reproducer,
        question=checked.question,
        confidence=asked.confidence,
        budget=checked.budget,
        seed=asked.seed,
        find_fix=asked.find_fix,
        along=asked.along,
        without=asked.without,
        index=checked.index,
        as_of=asked.as_of,
        limits=checked.limits,
        pass_env=checked.pass_env,
        at_once=asked.at_once,
        batch=asked.batch,
        confirm=asked.confirm,
        commits=checked.commits,
        prereleases=asked.prereleases,
        base=asked.base,
        prior_from_reading=asked.prior_from_reading,
        parallel=asked.parallel,
    )


def with_variables(good: Snapshot, bad: Snapshot, checked: Checked) -> tuple[Snapshot, Snapshot]:
    """The snapshots with the variables that the command line sets; one that it does not name for a side is unset."""
    names = tuple(sorted({name for side in checked.variables for name in side}))
    sides = zip((good, bad), checked.variables, strict=True)
    changed = [_with_variables(snapshot, names, set_here) for snapshot, set_here in sides] if names else [good, bad]
    return changed[0], changed[1]


def _with_variables(snapshot: Snapshot, names: tuple[str, ...], set_here: Mapping[str, str]) -> Snapshot:
    known = {name: value for name, value in snapshot.variables or () if name not in names}
    covered = () if snapshot.variables is None else snapshot.covered
    variables = tuple(sorted({**known, **set_here}.items()))
    return replace(snapshot, variables=variables, covered=(*covered, *names))


def _data(
    asked: Asked, seconds: float | None, variables: tuple[Mapping[str, str], Mapping[str, str]], folder: Path
) -> dict[str, Any]:
    """The options as a matrix file would have them."""
    command, copied = _own_command(asked, folder)
    if asked.reproducer is None and not command:
        names = ", ".join(shipped.reproducers())
        wanted = f"--reproducer NAME (shipped: {names}), or your own command as the last thing: -- python train.py"
        raise BadInput("--reproducer", "", "nothing that could fail: no reproducer and no command", wanted)
    if asked.reproducer is not None and command:
        raise BadInput("--reproducer", "", f"{asked.reproducer}, and a command after --", "one of the two")
    known = {name.replace("_", "-"): name for name in shipped.reproducers()}
    if asked.reproducer is not None and asked.reproducer.replace("_", "-") not in known:
        wanted = (
            f"{one_of(known.values(), asked.reproducer)}; or your own command as the last thing: -- python train.py"
        )
        raise BadInput("--reproducer", "", f"no reproducer is called {shown(asked.reproducer)}", wanted)
    reproducer: dict[str, Any] = {"command": list(command)} if command else {"name": asked.reproducer}
    given = {
        "files": [*copied, *(text for text in asked.files if text not in copied)],
        "fail-pattern": asked.fail_pattern,
        "skip-pattern": asked.skip_pattern,
    }
    reproducer |= {key: value for key, value in given.items() if value}
    index: dict[str, Any] = {"urls": list(asked.index), "find-links": list(asked.find_links)}
    if asked.torch_backend is not None:
        index["torch-backend"] = asked.torch_backend
    if asked.offline:
        index["offline"] = "true"
    data = {
        "reproducer": reproducer,
        "index": index,
        "env": {**variables[0], **variables[1]},
        "pass-env": list(asked.pass_env),
        "limits": {} if seconds is None else {"trial": str(seconds)},
    }
    return data if asked.as_of is None else data | {"as_of": asked.as_of}


def _own_command(asked: Asked, folder: Path) -> tuple[tuple[str, ...], list[str]]:
    """The command as a trial runs it, in a folder of its own, and the files that it names itself.

    They are copied: what a trial runs is then part of what its outcome is stored under.
    """
    words, copied = [], []
    for at, word in enumerate(asked.command):
        path = folder / word
        script = word.endswith(COPIED) or (at == 0 and "/" in word)
        if script and not path.exists() and word not in map(_name, asked.files):
            wanted = f"a script, relative to {folder}; or --file PATH/{Path(word).name} beside it"
            raise BadInput("the command after --", "", f"{shown(word)}: no such file", wanted)
        if not script or Path(word).is_absolute() or not path.is_file():
            words.append(word)
            continue
        copied.append(word if word.startswith((".", "/")) else f"./{word}")
        words.append(path.name if at else f"./{path.name}")
    return tuple(words), copied


def _name(path: str) -> str:
    return Path(path).name


def _options(option: str, texts: Sequence[str], words: Vocabulary) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for text in texts:
        with named_option(option):
            key, value = amounts.assignment(text, "KEY=VALUE, for example threads=3")
        name, meant = _valued(option, key, value, words)
        if name in found:
            raise BadInput(option, "", f"{name} a second time", "each key once")
        found[name] = meant
    return found


def _valued(option: str, key: str, text: str, words: Vocabulary) -> tuple[str, Scalar]:
    with named_option(option):
        name = words.condition_key(key)
        return name, words.condition_value(name, text)


def _variables(asked: Asked) -> tuple[dict[str, str], dict[str, str]]:
    sides = []
    for option, texts in (("--env", asked.env), ("--good-env", asked.good_env), ("--bad-env", asked.bad_env)):
        with named_option(option):
            sides.append(dict(amounts.assignment(text, "NAME=VALUE, for example OMP_NUM_THREADS=1") for text in texts))
    both, good, bad = sides
    for name in (name for side in sides for name in side if names_secret(name)):
        wanted = f"--pass-env {name}: trials get it from this process, and its value is kept nowhere"
        raise BadInput("--env", "", f"{name}, which looks like a secret and would be stored with every trial", wanted)
    return both | good, both | bad


@contextmanager
def named_option(name: str) -> Iterator[None]:
    """Within it, :class:`Unfit` becomes :class:`BadInput` of the option."""
    try:
        yield
    except Unfit as problem:
        raise BadInput(name, "", problem.found, problem.wanted) from problem

"""What is asked of a bisection: options become conditions, files and questions, or a message that helps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.bisection.records import Budget
from bisect_env.cli.asked import Asked, check, specification, with_variables
from bisect_env.errors import BadInput
from bisect_env.matrix.cells import ReproducerChoice
from bisect_env.snapshots.factors import difference
from bisect_env.snapshots.reading import read_text

NOTHING = Asked(
    reproducer=None,
    command=(),
    files=(),
    options=(),
    good_options=(),
    bad_options=(),
    env=(),
    good_env=(),
    bad_env=(),
    pass_env=(),
    threads=None,
    cache=None,
    question="failure",
    any_failure=False,
    signature=None,
    fail_pattern=None,
    skip_pattern=None,
    timeout=None,
    find_fix=False,
    along=None,
    without=(),
    commits=(),
    prereleases=False,
    confidence=0.95,
    budget=(),
    seed=0,
    at_once=1,
    batch=None,
    confirm=20,
    index=(),
    find_links=(),
    torch_backend=None,
    offline=False,
    as_of=None,
)
RACE = replace(NOTHING, reproducer="compile_race")
TRUE = replace(NOTHING, command=("true",))


def test_conditions_of_both_sides(tmp_path: Path) -> None:
    wanted = replace(
        RACE, threads="3", cache="warm", options=("pattern=barrier",), bad_options=("cache=cold", "functions=2")
    )
    checked = check(wanted, tmp_path)
    good, bad = checked.good.as_dict(), checked.bad.as_dict()
    assert good == {**bad, "cache": "warm", "functions": 8}
    assert (bad["threads"], bad["pattern"], bad["cache"], bad["functions"]) == (3, "barrier", "cold", 2)
    assert checked.reproducer == ReproducerChoice("compile_race")


def test_scripts_that_a_command_names_are_copied(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("run.sh", "sub/train.py", "extra.json"):
        (tmp_path / name).touch()
    wanted = replace(NOTHING, command=("./run.sh", "sub/train.py", "extra.json", "--x=1.py"), files=("./extra.json",))
    with pytest.raises(BadInput, match=r"'--x=1.py': no such file"):
        check(wanted, tmp_path)
    found = check(replace(wanted, command=wanted.command[:3]), tmp_path).reproducer
    assert found.command == ("./run.sh", "train.py", "extra.json")
    assert [path.relative_to(tmp_path).as_posix() for path in found.files] == ["run.sh", "sub/train.py", "extra.json"]


def test_everything_reaches_the_specification(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    wanted = replace(
        TRUE,
        budget=("30 trials, 2h",),
        timeout="5m:good",
        question="memory>2GB",
        find_links=("./wheels",),
        commits=("transformers=../transformers",),
        pass_env=("HF_TOKEN",),
        fail_pattern="FX",
        find_fix=True,
        along="torch",
        without=("flash-attn",),
        seed=7,
        batch=3,
        as_of="2026-05-01",
    )
    checked = check(wanted, tmp_path)
    good, bad = (read_text(f"torch=={version}\n", "x") for version in ("2.11.0", "2.12.0"))
    asked = specification(wanted, checked, good, bad, difference(good, bad))
    assert asked.budget == Budget(30, 7200.0)
    assert asked.limits.trial == 300.0 and asked.question.hang == "good" and asked.question.threshold == 2e9
    assert asked.index.find_links == (str(wheels),) and asked.reproducer.fail_pattern == "FX"
    assert asked.commits == (("transformers", "../transformers"),) and asked.pass_env == ("HF_TOKEN",)
    assert asked.without == ("flash-attn",)
    assert (asked.find_fix, asked.along, asked.seed, asked.batch, asked.as_of) == (True, "torch", 7, 3, "2026-05-01")


def test_variables_of_the_command_line_are_a_difference(tmp_path: Path) -> None:
    checked = check(replace(TRUE, env=("OMP_NUM_THREADS=2",), bad_env=("TORCH_X=1",)), tmp_path)
    plain = read_text("torch==2.11.0\n", "x")
    good, bad = with_variables(plain, plain, checked)
    assert good.variables == (("OMP_NUM_THREADS", "2"),)
    assert bad.variables == (("OMP_NUM_THREADS", "2"), ("TORCH_X", "1"))
    (factor,) = difference(good, bad).factors
    assert (factor.name, factor.good, factor.bad) == ("TORCH_X", None, "1")


def test_a_side_that_has_variables_keeps_them(tmp_path: Path) -> None:
    checked = check(replace(TRUE, good_env=("TORCH_X=1",)), tmp_path)
    plain = read_text("torch==2.11.0\n", "x")
    captured = replace(plain, variables=(("OMP_NUM_THREADS", "4"), ("TORCH_X", "0")), covered=("OMP*", "TORCH*"))
    good, bad = with_variables(plain, captured, checked)
    assert bad.variables == (("OMP_NUM_THREADS", "4"),), "what --bad-env does not set is unset there"
    assert [each.name for each in difference(good, bad).factors] == ["TORCH_X"], "of the other nothing is known"


@pytest.mark.parametrize(
    ("wanted", "option", "words"),
    [
        (NOTHING, "--reproducer", ["compile_race, dflash", "-- python train.py"]),
        (replace(RACE, command=("true",)), "--reproducer", ["one of the two"]),
        (replace(NOTHING, reproducer="compile_rase"), "--reproducer", ["compile_race (the nearest known one)"]),
        (replace(RACE, options=("treads=3",)), "--option", ["unknown key 'treads'", "threads (the nearest"]),
        (replace(RACE, bad_options=("threads=3", "threads=4")), "--bad-option", ["a second time"]),
        (replace(RACE, threads="many"), "--threads", ["a whole number"]),
        (replace(RACE, cache="wram"), "--cache", ["warm (the nearest known one)"]),
        (replace(RACE, fail_pattern="x"), "--fail-pattern", ["shipped reproducer"]),
        (replace(TRUE, fail_pattern="["), "--fail-pattern", ["regular expression"]),
        (replace(TRUE, budget=("200",)), "--budget", ["'200 trials', 200m or 200h"]),
        (replace(TRUE, timeout="5"), "--timeout", ["90s"]),
        (replace(TRUE, timeout="0s"), "--timeout", ["more than 0"]),
        (replace(TRUE, question="memory"), "--question", ["memory>60GB"]),
        (replace(TRUE, index=("ftp://x",)), "--index", ["https://HOST/simple"]),
        (replace(TRUE, find_links=("./nowhere",)), "--find-links", ["no such file or folder"]),
        (replace(TRUE, torch_backend="cu12x"), "--torch-backend", ["cu128"]),
        (replace(TRUE, as_of="yesterday"), "--as-of", ["2026-05-01"]),
        (replace(TRUE, env=("HF_TOKEN=abcd1234",)), "--env", ["--pass-env HF_TOKEN"]),
        (replace(TRUE, bad_env=("BISECT_ENV_X=1",)), "--env, --good-env, --bad-env", ["another name"]),
        (replace(TRUE, env=("=1",)), "--env", ["NAME=VALUE"]),
        (replace(TRUE, pass_env=("A-B",)), "--pass-env", ["letters, digits"]),
        (replace(TRUE, commits=("transformers",)), "--source", ["transformers=../transformers"]),
        (replace(TRUE, files=("./nowhere",)), "--file", ["no such file"]),
        (replace(NOTHING, command=("python", "nowhere.py")), "the command after --", ["no such file", "--file"]),
        (replace(NOTHING, command=("./nowhere",)), "the command after --", ["no such file"]),
    ],
)
def test_what_cannot_be_meant(wanted: Asked, option: str, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        check(wanted, tmp_path)
    assert error.value.source == option
    assert "abcd1234" not in str(error.value), "a secret is not repeated"
    for word in words:
        assert word in str(error.value)
    assert "{" not in str(error.value), "a matrix file's syntax is of no help here"


def test_a_prior_from_reading_needs_a_failure_with_a_traceback(tmp_path: Path) -> None:
    check(replace(RACE, prior_from_reading=True), tmp_path)
    with pytest.raises(
        BadInput, match="--prior-from-reading: a question about memory>60GB, whose trials have no trace"
    ):
        check(replace(RACE, prior_from_reading=True, question="memory>60GB"), tmp_path)

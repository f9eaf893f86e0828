"""The report of an explanation: the answer first, the proof, the picture, and what became of every hypothesis."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bisect_env.explanation.records import Account, Action, Collision, Consequence, Mechanism, State, Window
from bisect_env.report import explanation as report
from bisect_env.report import explanation_machine as machine
from bisect_env.report import explanation_words as words
from bisect_env.report.explanation_follows import follows
from tests.report.explanations import START, busy, eager, event, explanation, hung, log, raced, silent, stuck
from tests.support.schemas import matching

ANSWERS = [
    (raced(), "another thread's trace", "in thread worker-1 the call failed while thread worker-0 had the FX tracing"),
    (stuck(), "a tracing flag that stays set", "40 times"),
    (eager(), "another thread's compile", "ran eagerly while thread worker-0 had is_compiling() true, 31 times"),
    (hung(), "threads waiting for each other", "stood still while thread worker-0 had the compile lock held"),
]


@pytest.mark.parametrize(("account", "mechanism", "said"), ANSWERS, ids=[each[1] for each in ANSWERS])
def test_the_answer_comes_first(account: Account, mechanism: str, said: str) -> None:
    first = report.report(explanation(account), width=1000).splitlines()[0]
    assert first.startswith(f"torch-2.11.0_transformers-5.8.1_hot: {mechanism}, seen in 1 of 1 witnessed trial")
    assert said.lower() in first.lower()


def test_what_is_explained_is_told_before_what_is_not() -> None:
    unknown = replace(raced("0"), collisions=(replace(raced().collisions[0], mechanism=Mechanism.UNKNOWN),))
    clean = replace(silent("1"), outcome="clean")
    found = explanation(clean, silent("2"), unknown, raced("3"), raced("4"))
    told = words.primary(found)
    assert told is not None and told.trial == "3"
    assert "seen in 2 of 5 witnessed trials; none of the known ones in 1; 4 went wrong" in words.headline(found)
    assert [each.trial for each in words.others(found)] == ["1", "2", "0", "4"]
    none_known = explanation(silent("2"), unknown)
    assert "by none of the known mechanisms. Trial 0" in words.headline(none_known)


def test_what_explains_the_most_failures_is_the_answer() -> None:
    limited = replace(eager("1"), outcome="clean")
    found = explanation(limited, replace(limited, trial="5"), stuck("2"), raced("3"), raced("4"))
    told = words.primary(found)
    assert told is not None and told.trial == "3"
    assert f"{Mechanism.FOREIGN_TRACE}, seen in 2 of 5 witnessed trials" in words.headline(found)
    silently = words.primary(explanation(limited, replace(limited, trial="5")))
    assert silently is not None and silently.trial == "1"


def test_nothing_is_explained_that_was_not_seen() -> None:
    assert "no trial was witnessed" in words.headline(replace(explanation(), accounts=()))
    assert "went wrong, and nothing tells why: the witness did not start" in words.headline(explanation(silent()))
    watched = replace(silent(), log=log(()))
    assert "no collision between threads was seen" in words.headline(explanation(silent(), watched))
    quiet = replace(silent(), outcome="clean")
    assert "0 of 1 witnessed trial went wrong: there is nothing to explain" in words.headline(explanation(quiet))
    for found in (explanation(silent()), replace(explanation(), accounts=()), explanation(quiet, failed=0)):
        text = report.report(found)
        assert "Round the collision" not in text and "The stacks" not in text and "Hypotheses" in text


def test_only_two_threads_collide() -> None:
    (collision,) = raced().collisions
    alone = replace(collision, mechanism=Mechanism.UNKNOWN, culprit="", window=None)
    text = report.report(explanation(replace(raced(), collisions=(alone,))))
    assert "Round the failure" in text and "failure v" in text and "It happened 1.9281 s after the start." in text
    assert "The last that was seen of it, innermost frame first" in text and "collision" not in text
    assert "The stacks that prove it, innermost frame first" in report.report(explanation())


def test_both_stacks_are_shown_innermost_first() -> None:
    text = report.report(explanation())
    culprit, victim = text.index("_symbolic_trace.py:801 trace"), text.index("eval_frame.py:845 compile_wrapper")
    assert (
        culprit < text.index("compile_race.py:212 compile_new") < victim < text.index("compile_race.py:188 call_warm")
    )
    assert "Thread worker-0 set fx-tracing (True) at 1.9186 s" in text
    assert "Thread worker-1 read fx-tracing (True) at 1.9281 s" in text


def test_a_thread_that_met_it_for_the_victim_is_named() -> None:
    """Autograd's threads run a worker's backward."""
    base = raced()
    (collision,) = base.collisions
    met = event(1.9281, "pt_autograd_0", State.TRACING, Action.READ, "True")
    account = replace(base, log=log(base.windows, met), collisions=(replace(collision, met=met),))
    text = report.report(explanation(account))
    assert "Thread pt_autograd_0 read fx-tracing" in text and "(no stack was taken)" in text
    assert "pt_autograd_0 " in text.partition("Round the collision")[2].partition("Hypotheses")[0]


@pytest.mark.parametrize("width", [80, 120])
def test_the_ledger_has_every_hypothesis_with_its_evidence(width: int) -> None:
    found = explanation()
    text = report.report(found, width=width)
    table = text.partition("Hypotheses")[2].partition("Could not be watched")[0]
    assert all(len(line) <= width for line in table.splitlines())
    order = [table.index(name) for name in ("kept", "undecided", "eliminated", "untested")]
    assert order == sorted(order)
    pieces = [line[-(width - len("another thread's trace") - 14) :] for line in table.splitlines()]
    folded = " ".join(" ".join(pieces).split())
    for each in found.hypotheses:
        assert each.name in table and all(said in folded for said in (each.statement, *each.evidence))
    assert all(line.isascii() for line in text.splitlines())


def test_markdown_has_the_ledger_in_one_row_each_and_the_picture_as_it_is() -> None:
    found = explanation()
    text = report.report(found, "markdown")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(found.hypotheses)
    kept = next(row for row in rows if "| kept" in row)
    assert "A call is taken for one under tracing" in kept and "chance would put 0.1 of 2 failures there." in kept
    assert "```\n" in text and "collision v" in text and "## Round the collision" in text


def test_what_is_not_known_is_said() -> None:
    text = report.report(explanation(hung(), silent(), vanished="It did not occur under the witness."), width=300)
    assert text.splitlines()[2] == "It did not occur under the witness."
    assert "kernel-load: inductor was not imported" in text
    assert "No room was left for 12 events, in 1 trial" in text
    assert "The log of 1 trial has no end" in text
    assert "00c0ffee  failed; the witness did not start" in text
    assert "without it        4 of 4 trials of the same condition went wrong" in text
    assert "Calls took 1.04 times as long" in text
    none = report.report(explanation(plain=0, plain_failed=0), width=300)
    assert "without it        no trial of the same condition is stored" in none


def test_it_says_how_to_go_on() -> None:
    text = report.report(explanation())
    assert text.rstrip().splitlines()[-2:] == [
        "    bisect-env show 3f2a91c0  # everything about the trial that is told here",
        "    bisect-env explain torch-2.11.0_transformers-5.8.1_hot --html explanation.html  # with the trial drawn",
    ]
    named = report.report(explanation(), matrix="my matrix.yaml")
    assert "explain torch-2.11.0_transformers-5.8.1_hot 'my matrix.yaml' --html explanation.html" in named
    drawn = report.report(explanation(), matrix="my matrix.yaml", drawn=True)
    assert "bisect-env show 3f2a91c0" in drawn and "bisect-env explain" not in drawn


@pytest.mark.parametrize("account", [raced(), stuck(), eager(), hung(), silent()], ids=lambda account: account.trial)
def test_the_document_is_what_its_schema_says(account: Account) -> None:
    found = json.loads(json.dumps(machine.document(explanation(account)), allow_nan=False))
    matching("explain", found)
    assert found["schema"] == machine.SCHEMA and found["primary"] == account.trial
    (told,) = found["accounts"]
    assert len(told["windows"]) == len(account.windows)
    assert [each["mechanism"] for each in told["collisions"]] == [each.mechanism for each in account.collisions]


def test_the_document_of_a_long_trial_stays_small() -> None:
    """Its events are counted and not written down."""
    account = busy()
    assert account.log is not None
    text = json.dumps(machine.document(explanation(account)))
    assert f'"events": {len(account.log.events)}' in text and len(account.log.events) > 30_000
    assert len(text) < 200 * len(account.windows)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(2.05, "2.05 s"), (31.24, "31.2 s"), (0.0124, "12.4 ms"), (0.00083, "830 us"), (0.0, "0.00 us")],
)
def test_lengths_of_time(seconds: float, said: str) -> None:
    assert words.lasting(seconds) == said


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_below_the_answer_stands_what_follows_and_that_it_was_not_measured(mechanism: Mechanism) -> None:
    first, *rest = raced().collisions
    found = explanation(replace(raced(), collisions=(replace(first, mechanism=mechanism), *rest)))
    said = follows(found)
    if mechanism is Mechanism.UNKNOWN:
        assert said.startswith("What now: the ledger says what would tell")
    else:
        assert "It was not measured here; `bisect-env gate` shows whether it does" in said
    parts = report.report(found, width=2000).split("\n\n")
    assert said in parts[:3] and machine.document(found)["follows"] == said


def test_a_thread_that_its_own_flag_meets() -> None:
    [found] = stuck().collisions
    own = replace(found, culprit=found.victim, count=1)
    assert words.told(own) == f"in thread {found.victim} the call failed while it had the FX tracing flag set itself"


def test_where_nothing_went_wrong_nothing_follows() -> None:
    assert follows(replace(explanation(), accounts=())) == ""
    assert follows(explanation(replace(raced(), collisions=()))) == ""


@pytest.mark.parametrize(
    ("state", "action", "end", "obeyed", "said"),
    [
        (State.ANNOTATION, Action.ENTER, 1.5, True, " for FX annotations that thread w0 had left behind"),
        (State.ANNOTATION, Action.ENTER, None, True, " while thread w0 had FX annotations open"),
        (State.ANNOTATION, Action.ENTER, 1.5, False, " after thread w0 had ended FX annotations of its own"),
        (State.ANNOTATION, Action.SET, None, False, " after thread w0 had replaced FX annotations"),
        (State.METRICS, Action.ENTER, None, False, " while thread w0 had the metrics of a compile open"),
        (State.METRICS, Action.ENTER, 1.5, False, " after thread w0 had counted a compile in the same place"),
        (State.PATCHER, Action.ENTER, 1.5, False, " after thread w0 had ended a trace and taken patches off"),
        (State.KERNEL, Action.CALL, None, False, " after thread w0 had unloaded the kernel"),
        (State.KERNEL, Action.ENTER, 2.5, False, " while thread w0 had a kernel being loaded or tuned"),
        (State.KERNEL, Action.ENTER, 1.5, False, " after thread w0 had loaded or tuned the kernel"),
    ],
)
def test_what_the_other_thread_had_to_do_with_it(
    state: State, action: Action, end: float | None, obeyed: bool, said: str
) -> None:
    opened, met = event(1.0, "w0", state, action), event(2.0, "w1", state, Action.READ)
    window = Window(state, "w0", opened.t, None if end is None else START + end, opened, None)
    collision = Collision(
        Mechanism.UNKNOWN, Consequence.FAILED, "w1", met, "w0", window, met.t, obeyed=met if obeyed else None
    )
    assert words.told(collision) == f"in thread w1 the call failed{said}"

"""What an explanation would do, in words: what is to be built, which trials, how long."""

from __future__ import annotations

from dataclasses import replace

from bisect_env.explanation.planned import Series
from bisect_env.report.explain_plan import describe
from tests.report.plans import planned


def test_a_plan_in_words() -> None:
    assert describe(planned()) == (
        "An explanation of torch-2.11.0; nothing was built or run.\n\n"
        "cell          environment  packages  wheels\n"
        "------------  -----------  --------  ------\n"
        "torch-2.11.0  to build     51        2.8 GB\n"
        "older         built        50\n\n"
        "trials                       stored  to run\n"
        "---------------------------  ------  -------\n"
        "to fill the compile cache    0       1\n"
        "with the witness             1       2 to 11\n"
        "in one thread                0       3\n"
        "with threads and no witness  3       0\n\n"
        "Trials with the witness end when 3 went wrong. Download: up to 2.8 GB, less what uv has cached.\n"
        "Disk: at most 6.0 GB; 9.0 GB free. Time: at most about 12 min, by the trials stored so far."
    )
    assert "| with the witness | 1 | 2 to 11 |" in " ".join(describe(planned(), "markdown").split())


def test_what_is_not_there_is_not_said() -> None:
    plan = replace(planned(), warm_up=False, until=None, seconds=None)
    plan = replace(plan, environments=plan.environments[1:], witnessed=Series(0, 4, 4), unfinished=True)
    text = " ".join(describe(plan).split())
    assert "compile cache" not in text and "end when" not in text and "Download" not in text
    assert "with the witness 0 4 in one" in text and "Time: not known yet" in text
    assert "still elsewhere: what they come to is taken in first" in text


def test_nothing_is_missing() -> None:
    none = Series(3, 0, 0)
    plan = replace(planned(), environments=(), warm_up=False, witnessed=none, serial=none, threads=none)
    text = describe(plan)
    assert "No trial is missing" in text and "Time" not in text and "packages" not in text

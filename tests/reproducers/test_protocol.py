from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from bisect_env.trials.events import read
from tests.reproducers.conftest import HEAD, Run, command

TWO = """
def piece(worker):
    trial.events.emit("note", key=worker.name, value=threading.get_ident())
    worker.step(10, 0.01, worker.name == "w1")
trial.work([piece, piece], solo=1)
sys.exit(trial.finish())
"""


def test_a_clean_trial_says_everything_in_order(run: Run) -> None:
    ran = run(TWO)
    assert ran.status == 0, ran.errors
    names = [event["event"] for event in ran.events]
    assert (names[0], names[1], names[-2:]) == ("start", "ready", ["exposures", "done"])
    (ready,) = ran.of("ready")
    assert ready["versions"].items() >= {"torch": "9.9.0+cpu"}.items()
    assert "torch.version.cuda" not in ready["versions"]
    assert ready["devices"] == ["cpu"]
    facts = read(ran.text)
    assert (facts.ignored, facts.done, [step.tokens for step in facts.steps]) == (0, True, [10, 10])


@pytest.mark.parametrize(
    ("side", "workers", "threads"),
    [
        ("threads", {"w0", "w1"}, 2),
        ("profile", {"w0", "w1"}, 2),
        ("rounds", {"w0", "w1"}, 2),
        ("serial", {"w0", "w1"}, 1),
        ("warmup", {"w0", "w1"}, 1),
        ("solo", {"w1"}, 1),
    ],
)
def test_sides(run: Run, side: str, workers: set[str], threads: int) -> None:
    notes = run(TWO, side=side).of("note")
    assert {note["key"] for note in notes} == workers
    assert len({note["value"] for note in notes}) == threads


def test_a_failure_ends_the_others_soon_and_all_failures_are_kept(run: Run) -> None:
    ran = run(
        """
        import threading
        both = threading.Barrier(2)            # a thread still on its way out of `meet` is stopped, not failed
        def failing(worker):
            worker.meet()
            both.wait()
            import packaging.version
            packaging.version.Version("no version of " + worker.name)
        def waiting(worker):
            worker.meet()
            while not worker.stopping:
                time.sleep(0.001)
            worker.meet()                      # broken: the others are gone
            raise AssertionError("not reached")
        trial.work([failing, waiting, failing])
        sys.exit(trial.finish())
        """
    )
    assert ran.status == 1
    failures = sorted(ran.of("failure"), key=lambda failure: failure["thread"])
    assert [(one["thread"], one["type"], one["module"]) for one in failures] == [
        ("w0", "InvalidVersion", "packaging.version"),
        ("w2", "InvalidVersion", "packaging.version"),
    ]
    assert ran.events[-1]["event"] == "done"


def test_in_turn_a_failure_ends_what_comes_after(run: Run) -> None:
    body = """
    def piece(worker):
        trial.events.emit("note", key="began", value=worker.name)
        raise KeyError(worker.name)
    trial.work([piece, piece])
    sys.exit(trial.finish())
    """
    ran = run(body, side="serial")
    assert (ran.status, [note["value"] for note in ran.of("note")]) == (1, ["w0"])


def test_no_thread_ends_before_all_have_done_their_work(run: Run) -> None:
    ran = run(
        """
        begun = threading.Event()              # a thread still on its way out of `meet` would be stopped
        def failing(worker):
            worker.meet()
            begun.wait()
            raise KeyError("at once")
        def late(worker):
            worker.meet()
            begun.set()
            while not worker.stopping:
                time.sleep(0.001)
            time.sleep(0.2)
            trial.events.emit("note", key="alive", value=[thread.name for thread in threading.enumerate()])
        trial.work([failing, late])
        sys.exit(trial.finish())
        """
    )
    (note,) = ran.of("note")
    assert {"MainThread", "w0", "w1"} <= set(note["value"])


def test_windows_and_exposures(run: Run) -> None:
    ran = run(
        """
        inside, called = threading.Event(), threading.Event()
        def compiles(worker):
            worker.calling()                   # nobody compiles
            with compiling():
                with compiling():              # one window, not two
                    worker.calling()           # its own compile exposes nobody
                    inside.set()
                    called.wait(10)
            worker.meet()
        def calls(worker):
            inside.wait(10)
            worker.calling()
            worker.calling()
            called.set()
            worker.meet()
            worker.calling()
        trial.work([compiles, calls])
        sys.exit(trial.finish())
        """
    )
    assert [(one["thread"], one["phase"], one["what"]) for one in ran.of("window")] == [
        ("w0", "begin", "dynamo"),
        ("w0", "end", "dynamo"),
    ]
    assert ran.of("exposures")[0]["count"] == 2


def test_a_torch_that_does_not_tell_its_compiles_is_noted(run: Run) -> None:
    head = HEAD.replace("    trial.windows.follow()", "    import torch._dynamo.callback as callback\n"
                        "    del callback.Handler.install_callbacks\n    trial.windows.follow()")  # fmt: skip
    ran = run(TWO, head=head)
    assert (ran.status, [note["key"] for note in ran.of("note") if note["key"] == "windows"]) == (0, ["windows"])


def test_steps_are_joined_and_none_is_lost(run: Run) -> None:
    ran = run(
        """
        def piece(worker):
            worker.step(7, 0.001, False)
            for _ in range(5000):
                start = time.perf_counter()
                time.sleep(0.0001)
                worker.step(3, time.perf_counter() - start, True)
        trial.work([piece])
        sys.exit(trial.finish())
        """
    )
    steps = ran.of("step")
    warm = [step for step in steps if step["warm"]]
    assert [step["tokens"] for step in steps if not step["warm"]] == [7]
    assert (sum(step["tokens"] for step in warm), sum(step["count"] for step in warm)) == (15000, 5000)
    elapsed = warm[-1]["t"] - warm[0]["t"]
    assert len(warm) <= elapsed / 0.1 + 2
    for before, after in itertools.pairwise(warm):
        assert before["t"] <= after["t"] - after["seconds"] + 0.005  # seconds cover the steps, and only them


def test_imports_that_fail_are_told_from_trials_that_fail(run: Run) -> None:
    ran = run(TWO, head=HEAD.replace("import torch\n", "import torch.absent\n"))
    (failed,) = ran.of("import_failed")
    assert (ran.status, failed["type"]) == (1, "ModuleNotFoundError")
    assert "torch.absent" in failed["message"]
    assert not ran.of("ready")
    assert not ran.of("failure")


@pytest.mark.parametrize(
    ("condition", "reason"),
    [({"mitigation": "lock"}, "no option for mitigation=lock"), ({"device": "cuda"}, "torch sees no CUDA device")],
)
def test_what_cannot_run_here_is_125_with_the_reason(run: Run, condition: dict[str, str], reason: str) -> None:
    ran = run("trial.device()\n" + TWO, **condition)
    (note,) = ran.of("note")
    assert (ran.status, note["key"]) == (125, "skipped")
    assert reason in note["value"]
    assert reason in ran.errors


def test_a_worker_can_find_that_it_cannot_run_here(run: Run) -> None:
    ran = run(
        """
        def piece(worker):
            raise protocol.CannotRunHere("no such operator")
        trial.work([piece, piece])
        sys.exit(trial.finish())
        """
    )
    assert (ran.status, ran.of("failure")) == (125, [])
    assert {note["value"] for note in ran.of("note")} == {"no such operator"}


def test_a_wrong_value_is_usage(run: Run) -> None:
    ran = run(TWO, threads=99)
    assert ran.status == 2
    assert "threads: 99 is not between 1 and 8" in ran.errors


def test_by_hand_it_takes_flags_and_prints_a_summary(tmp_path: Path) -> None:
    words, environment = command(tmp_path, TWO)
    done = subprocess.run([*words, "--side", "solo"], env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert "side=solo" in done.stdout
    assert "w1: 10 tokens warm" in done.stdout
    assert "outcome: no thread failed" in done.stdout


def test_a_signal_shows_the_stacks_of_all_threads(run: Run) -> None:
    ran = run(
        """
        import os, signal
        def stuck(worker):
            worker.meet()
            if worker.name == "w0":
                time.sleep(0.2)
                os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.5)
        trial.work([stuck, stuck])
        sys.exit(trial.finish())
        """
    )
    assert ran.status == 0
    assert ran.errors.count("in stuck") == 2
    assert "in work" in ran.errors


REPEATS = """
def pieces(repeat):
    main = threading.current_thread() is threading.main_thread()
    trial.events.emit("repeat", index=repeat, resets=repeat - 4)
    {prepare}
    def piece(worker):
        worker.phase = "part"
        worker.meet()
        trial.events.emit("note", key=f"{{worker.name}} {{repeat}} {{main}}", value=threading.get_ident())
        {work}
        worker.meet()
    return [piece, piece]
trial.work(pieces, repeats=(4, 5, 6), after=lambda: trial.events.emit("note", key="after", value=trial.status))
sys.exit(trial.finish())
"""


@pytest.mark.parametrize(("side", "threads"), [("threads", 2), ("serial", 1)])
def test_repeats_are_prepared_in_the_main_thread_and_done_by_the_same_workers(
    run: Run, side: str, threads: int
) -> None:
    # In the controls a barrier has one thread only, which meets itself.
    ran = run(REPEATS.format(prepare="", work=""), side=side)
    assert ran.status == 0, ran.errors
    told = [event for event in ran.events if event["event"] in ("repeat", "note")]
    for number, repeat in enumerate((4, 5, 6)):
        one, *did, after = told[4 * number : 4 * number + 4]
        assert (one["event"], one["index"], after["key"]) == ("repeat", repeat, "after")
        assert {note["key"] for note in did} == {f"w0 {repeat} True", f"w1 {repeat} True"}
    assert len({note["value"] for note in ran.of("note") if note["key"] != "after"}) == threads


def test_a_failure_ends_the_repeats_and_says_its_phase(run: Run) -> None:
    ran = run(REPEATS.format(prepare="", work="assert (repeat, worker.name) != (5, 'w1')"))
    assert ran.status == 1
    assert [event["index"] for event in ran.of("repeat")] == [4, 5]
    (failure,) = ran.of("failure")
    assert (failure["thread"], failure["type"], failure["phase"]) == ("w1", "AssertionError", "part")
    assert [note["value"] for note in ran.of("note") if note["key"] == "after"] == [0, 1]


def test_what_fails_between_two_repeats_is_the_main_threads_failure(run: Run) -> None:
    ran = run(REPEATS.format(prepare="assert repeat < 6", work=""))
    assert ran.status == 1
    (failure,) = ran.of("failure")
    assert (failure["thread"], failure["phase"]) == ("main", "preparing")
    assert ran.events[-1]["event"] == "done"


def test_a_repeat_that_cannot_run_here_is_125(run: Run) -> None:
    prepare = "from condition import CannotRunHere; exec('raise CannotRunHere(\"not this one\")')"
    ran = run(REPEATS.format(prepare=prepare, work=""))
    assert ran.status == 125
    assert [note["value"] for note in ran.of("note") if note["key"] == "skipped"] == ["not this one"]


def test_waiting_workers_end_with_the_first_that_fails(run: Run) -> None:
    body = """
    def failing(worker):
        raise ValueError("for a reason")
    def waiting(worker):
        while True:
            worker.go_on()
            time.sleep(0.001)
    trial.work([failing, waiting])
    sys.exit(trial.finish())
    """
    ran = run(body)
    assert [failure["thread"] for failure in ran.of("failure")] == ["w0"]


def test_a_failed_trial_ends_although_another_thread_is_stuck(run: Run) -> None:
    ran = run(
        """
        import threading
        protocol.AFTER_FAILURE_SECONDS = 0.3
        begun = threading.Event()
        def failing(worker):
            begun.wait()
            raise KeyError("gone")
        def stuck(worker):
            begun.set()
            threading.Event().wait()
        trial.work([failing, stuck])
        """
    )
    assert ran.status == 1
    assert [failure["thread"] for failure in ran.of("failure")] == ["w0"]
    (note,) = (note for note in ran.of("note") if note["key"] == "stuck_after_failure")
    assert note["value"] == "w1"
    assert ran.of("done") and "in stuck" in ran.errors

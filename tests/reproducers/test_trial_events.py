from __future__ import annotations

import json
import threading
from pathlib import Path

from packaging.version import InvalidVersion, Version
from trial_events import MESSAGE_LIMIT, TRACEBACK_LIMIT, Events, describe

from bisect_env.trials.signature import signature_of


def test_events_of_many_threads_are_whole_lines(tmp_path: Path) -> None:
    events = Events(str(tmp_path / "events"))

    def write(number: int) -> None:
        for index in range(200):
            events.emit("note", key=number, value=f"{index} " + "x" * 3000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    for number in range(4):
        assert [int(one["value"].split()[0]) for one in found if one["key"] == number] == list(range(200))


def test_without_a_file_events_are_kept() -> None:
    events = Events()
    events.emit("step", t=5.0, tokens=3)
    assert events.seen == [{"event": "step", "t": 5.0, "tokens": 3}]


def test_the_module_is_the_innermost_library_s() -> None:
    try:
        Version("no version")
    except InvalidVersion as error:
        told = describe(error)
    assert (told["type"], told["module"]) == ("InvalidVersion", "packaging.version")
    assert told["where"].startswith("__init__:")
    assert "no version" in told["message"]
    assert told["traceback"].startswith("Traceback")


def test_own_and_standard_library_frames_are_no_library() -> None:
    try:
        json.loads("{")
    except ValueError as error:
        told = describe(error)
    # pytest's module of this test stands in for a library here; json's frames, further in, do not count.
    assert told["module"] == __name__


def test_long_texts_are_cut_and_keep_the_end() -> None:
    try:
        raise ValueError("y" * 100_000 + "the end")
    except ValueError as error:
        told = describe(error)
    assert MESSAGE_LIMIT <= len(told["message"]) < MESSAGE_LIMIT + 20 and told["message"].endswith("the end")
    assert TRACEBACK_LIMIT <= len(told["traceback"]) < TRACEBACK_LIMIT + 20
    assert told["traceback"].rstrip().endswith("the end")


def test_what_an_error_is_that_quotes_long_tracebacks_is_kept() -> None:
    quoted = (
        "\n\nPrevious Traceback:\n" + '  File "/x/torch/_dynamo/utils.py", line 71, in set\n    self.update()\n' * 99
    )
    try:
        raise RuntimeError(quoted * 2 + "\n\nRuntimeError: set twice")
    except RuntimeError as error:
        told = describe(error)
    assert len(told["message"]) < MESSAGE_LIMIT + 20
    assert str(signature_of(told["type"], told["message"])) == "RuntimeError: set twice"

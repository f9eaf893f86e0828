from __future__ import annotations

import json
from dataclasses import replace
from math import nan

import pytest

from bisect_env.matrix.cells import IndexChoice
from bisect_env.report.machine import SCHEMA, document
from bisect_env.verdicts.records import Throughput
from tests.report.build import laptop, lock, matrix, row, under


def test_the_document_holds_what_the_table_rests_on() -> None:
    rows = laptop()
    found = json.loads(json.dumps(document(rows, matrix(rows), 0.05), allow_nan=False))
    assert found["schema"] == SCHEMA == 1
    assert found["matrix"]["axes"] == ["torch", "cuda", "transformers", "pattern"]
    race, dense, conflict = found["cells"][0], found["cells"][3], found["cells"][4]
    assert race["verdict"]["headline"] == "RACE" and race["verdict"]["text"] == "RACE 4/4"
    assert race["verdict"]["threads"] == {
        "k": 4,
        "n": 4,
        "low": race["verdict"]["threads"]["low"],
        "high": 1.0,
        "confidence": 0.95,
    }
    assert [trial["id"] for trial in race["trials"]][:2] == ["threads-1", "threads-2"]
    assert race["trials"][0]["signature"]["type"] == "RuntimeError"
    assert race["show"] == race["key"][:8] and race["levels"]["torch"] == "2.11.0"
    assert dense["verdict"]["dense"][1]["share"] == 0.31
    assert dense["verdict"]["throughput"]["ratio"] == pytest.approx(0.2)
    assert conflict["environment"] is None and conflict["trials"] == []
    assert len(race["environment"]["lock_sha256"]) == 64 and race["environment"]["pins"] == {"torch": "2.14.1"}


def test_failed_and_hung_trials_are_told_apart() -> None:
    shown = row("2.11.0", "5.6.0", "FFFHHH")
    verdict = document([shown], matrix([shown]), 0.05)["cells"][0]["verdict"]
    assert (verdict["text"], verdict["threads"]["k"], verdict["threads"]["n"]) == ("RACE 6/6, 3 hung", 6, 6)
    assert verdict["ends_threads"] == {"failed": 3, "hung": 3}
    assert verdict["ends_serial"] == verdict["ends_solo"] == {"failed": 0, "hung": 0}


def test_figures_that_are_no_numbers_are_null() -> None:
    shown = laptop()[2]
    odd = replace(shown, verdict=replace(shown.verdict, throughput=Throughput(nan, float("inf"), 1.0, 1), bound=-nan))
    found = json.loads(json.dumps(document([odd], matrix([odd]), 0.05), allow_nan=False))
    speed = found["cells"][0]["verdict"]["throughput"]
    assert speed["median"] is None and speed["low"] is None and speed["high"] == 1.0
    assert found["cells"][0]["verdict"]["bound"] is None


def test_nothing_that_may_hold_credentials() -> None:
    shown = laptop()[0]
    index = IndexChoice(urls=("https://user:hunter2@example.org/simple",))
    request = replace(shown.cell.request, index=index)
    secret = replace(
        shown, cell=replace(shown.cell, request=request, variables=(("HF_TOKEN", "hunter2"),)), lock=lock()
    )
    text = json.dumps(document([secret], matrix([secret]), 0.05))
    assert "hunter2" not in text and "HF_TOKEN" in text


def test_comparisons_and_evidence_are_in_the_document() -> None:
    none = under(row("2.11.0", "5.6.0", "FFFFFF", phase="backward"), "mitigation", "none")
    quiet = under(row("2.11.0", "5.6.0", "......", exposures=30, at_once=10), "mitigation", "warmup")
    rows = [
        none,
        quiet,
        under(under(row("2.11.0", "5.6.0", "......", resets=1), "mitigation", "none"), "cache", "warm"),
    ]
    asked = replace(matrix(rows), trials=6, solo=0, stop_early=False, at_once=10)
    found = json.loads(json.dumps(document(rows, asked, 0.05), allow_nan=False))
    assert [found["matrix"][key] for key in ("solo", "stop_early", "at_once")] == [0, False, 10]
    (group,) = found["mitigations"]
    assert (group["none"], group["headline"], group["failed"]["k"]) == (none.cell.id, "RACE", 6)
    (item,) = group["mitigated"]
    assert (item["cell"], item["mitigation"], item["effect"], item["dense"]) == (
        quiet.cell.id,
        "warmup",
        "cleared",
        False,
    )
    assert item["p_value"] == pytest.approx(1 / 924) and item["bound"] == pytest.approx(1 - 0.05 ** (1 / 6))
    assert [entry["cache"] for entry in found["caches"][0]] == ["cold", "warm"]
    trial = found["cells"][0]["trials"][0]
    assert (trial["resets"], trial["phase"], trial["only_repeat"]) == (0, "backward", None)
    assert found["cells"][2]["trials"][0]["resets"] == 1
    assert found["cells"][1]["verdict"]["exposures_per_trial"] == 30
    assert found["cells"][1]["trials"][0]["at_once"] == 10

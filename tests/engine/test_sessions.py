"""Rounds in turn with real processes: one computes at a time, whatever happens to the others."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from bisect_env.engine import places, sessions
from bisect_env.engine.grouping import Entrant, needs_rounds
from bisect_env.engine.progress import Reporter
from bisect_env.engine.settings import Settings
from bisect_env.engine.trialing import Bench
from bisect_env.environments.records import Environment, Interpreter, Lock
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, Limits, Matrix, ReproducerChoice
from bisect_env.store.database import Store
from bisect_env.store.trials import StoredTrial
from bisect_env.trials import lease_folder, leases, machine
from bisect_env.trials.records import Outcome, Reproducer, Side, TrialRecord
from bisect_env.verdicts.samples import by_side
from bisect_env.verdicts.throughput import SLOWED, WARMED, throughput
from tests.support.nvml import Pretended
from tests.verdicts.build import record

SCRIPT = """\
import json, os, pathlib, sys, time

condition = json.load(open(os.environ["BISECT_ENV_CONDITION"]))
turns, fate = pathlib.Path(os.environ["BISECT_ENV_TURNS"]), json.loads(os.environ["FATE"])
events = open(os.environ["BISECT_ENV_EVENTS"], "a", buffering=1)
log = open(os.environ["LOG"], "a", buffering=1)


def say(event, **words):
    events.write(json.dumps({"event": event, "t": time.time(), **words}) + "\\n")


def compute(what, seconds):
    began = time.time()
    time.sleep(seconds)
    log.write(json.dumps([fate["name"], what, began, time.time()]) + "\\n")


def first(mark):
    path = pathlib.Path(os.environ["LOG"] + "." + fate["name"] + mark)
    there = path.exists()
    path.touch()
    return not there


say("start", pid=os.getpid())
say("ready", versions={}, devices=[])
compute("start", fate.get("start", 0.3))
warmed = condition["mitigation"] == "warmup"
if (fate.get("races") and not warmed) or (fate.get("races once") and first("raced")) or fate.get("broken"):
    say("failure", thread="w0", type="RuntimeError", message="tracing", module="torch.fx", phase="first call")
    sys.exit(1)
if fate.get("memory once") and first("memory"):
    say("failure", thread="w0", type="OutOfMemoryError", message="CUDA out of memory")
    sys.exit(1)
if fate.get("hangs cold") and not warmed:
    time.sleep(60)
if fate.get("killed once") and first("killed"):
    os.kill(os.getpid(), 9)
index = 0
while True:
    say("waiting", round=index)
    while not ((turns / str(index)).exists() or (turns / "end").exists()):
        time.sleep(0.005)
    if not (turns / str(index)).exists():
        break
    if fate.get("dies at") == index:
        os.abort()
    if fate.get("hangs at") == index:
        time.sleep(60)
    began = time.perf_counter()
    compute(f"round {index}", 0.01)
    say("note", key="cores", value=len(os.sched_getaffinity(0)))
    say("round", index=index, tokens=fate["tokens"], seconds=0.01)
    index += 1
compute("utilisation", 0.05)
say("utilisation", what="step", operations=1e9, seconds=0.01, ceiling=2e11)
say("done")
"""


@dataclass
class Table:
    """Cells on a bench of real processes, and what they did."""

    folder: Path
    store: Store
    cells: list[Cell] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    kept: list[tuple[str, StoredTrial]] = field(default_factory=list)
    device: str = "cpu"
    limits: Limits = field(default_factory=lambda: Limits(trial=30.0, silence=20.0))

    def __post_init__(self) -> None:
        self.run_id = self.store.start_run("m", "m.yaml", [], 0, {})

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def add(self, name: str, mitigation: str = "none", tokens: int = 1000, **fate: object) -> None:
        """A cell that does so many tokens a round and has that fate."""
        values = {"threads": 2, "rounds": 4, "mitigation": mitigation, "device": self.device}
        said = json.dumps({"name": name, "tokens": tokens, **fate})
        variables = (("FATE", said), ("LOG", str(self.log)))
        request = EnvironmentRequest((f"torch=={len(self.cells)}",))
        self.cells.append(Cell(name, (("torch", name),), request, Condition.of(values), variables))

    def run(self, samples: Sequence[StoredTrial] = ()) -> dict[str, list[StoredTrial]]:
        """The sessions of all cells; the new records of each."""
        script = self.folder / "reproducer.py"
        script.write_text(SCRIPT)
        matrix = _Compared(
            "m", self.folder / "m.yaml", tuple(self.cells), (), ReproducerChoice("x"), limits=self.limits
        )
        reproducer = Reproducer("x", ("python", str(script)), (), "hash", protocol=True)
        bench = Bench(matrix, Settings(self.folder), self.store, self.run_id, reproducer, self.stop, lambda _: None)
        counted = (StoredTrial(record(Side.SERIAL), 0, "r1"), *samples)
        entrants = [Entrant(cell, self._environment(cell), counted) for cell in self.cells]
        self.kept.clear()
        sessions.run(bench, entrants, Reporter(), lambda cell, sample: self.kept.append((cell.id, sample)))
        return {cell.id: [sample for name, sample in self.kept if name == cell.id] for cell in self.cells}

    def _environment(self, cell: Cell) -> Environment:
        interpreter = Interpreter(Path(sys.executable), "3.12.1", "cpython", "linux-x86_64")
        lock = Lock("", interpreter, (), None, f"address-{cell.id}")
        return Environment(lock, self.folder / "environment", Path(sys.executable), "", 0.0)

    def computed(self) -> list[tuple[str, str, float, float]]:
        """Who computed what from when to when, in order; without the starts."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return sorted((tuple(line) for line in lines if line[1] != "start"), key=lambda line: line[2])

    def processes(self) -> list[psutil.Process]:
        """What of this table still runs."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("LOG") == str(self.log) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found


class _Compared(Matrix):
    """The first cell is everybody's reference: their variables tell the stand-ins apart, and would make conditions."""

    def reference_of(self, cell: Cell) -> Cell | None:
        return self.cells[0] if cell.condition == self.cells[0].condition else None


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path, Store(tmp_path / "store.sqlite"))


def last(found: dict[str, list[StoredTrial]], name: str) -> TrialRecord:
    return found[name][-1].record


def test_processes_start_together_and_compute_one_at_a_time(table: Table) -> None:
    for name, tokens in (("base", 1000), ("a", 900), ("b", 1000), ("c", 1100)):
        table.add(name, tokens=tokens, start=0.8)
    found = table.run()
    assert {name: [s.record.outcome for s in trials] for name, trials in found.items()} == {
        name: [Outcome.CLEAN] for name in ("base", "a", "b", "c")
    }
    assert {name: len(last(found, name).rounds) for name in found} == {"base": 8, "a": 4, "b": 4, "c": 4}
    assert {(s.run_id, s.block, s.record.side, s.record.at_once) for t in found.values() for s in t} == {
        (table.run_id, 0, Side.ROUNDS, 4)
    }
    assert len({last(found, name).seed for name in found}) == 1, "they do the same work"
    assert all(last(found, name).utilisation[0].share == pytest.approx(0.5) for name in found)

    computed = table.computed()
    assert all(earlier[3] <= later[2] for earlier, later in pairwise(computed)), "never two at once"
    turns = [name for name, what, _, _ in computed if what != "utilisation"]
    assert all("base" in turns[max(0, at - 1) : at + 2] for at in range(len(turns)))
    starts = [json.loads(line) for line in table.log.read_text().splitlines() if '"start"' in line]
    assert max(line[3] for line in starts) < computed[0][2], "nobody starts beside a round"
    assert max(line[2] for line in starts) - min(line[2] for line in starts) < sum(s[3] - s[2] for s in starts)

    speed = throughput(by_side(found["a"]), by_side(found["base"]))
    assert speed is not None and speed.ratio == pytest.approx(0.9) and (speed.n, speed.sessions) == (4, 1)
    stored = table.store.trials(table.cells[1].key, "address-a", "hash")
    assert [(s.record.id, s.block) for s in stored] == [(last(found, "a").id, 0)]
    assert not needs_rounds(table.cells[1], [*stored, StoredTrial(record(Side.SERIAL), 0, "r1")])
    assert not table.processes() and not list((table.folder / "trials").iterdir())


def test_a_racing_start_is_tried_again_and_then_warmed_up(table: Table) -> None:
    table.add("base")
    table.add("once", **{"races once": True})
    table.add("racing", races=True)
    table.add("broken", broken=True)
    found = table.run()
    outcomes = {name: [sample.record.outcome.value for sample in trials] for name, trials in found.items()}
    assert outcomes == {
        "base": ["clean"],
        "once": ["failed", "clean"],
        "racing": ["failed", "failed", "clean"],
        "broken": ["failed", "failed", "failed"],
    }
    assert [len(last(found, name).rounds) for name in found] == [8, 4, 4, 0]
    assert [WARMED in dict(last(found, name).extra) for name in found] == [False, False, True, True]
    assert last(found, "racing").condition.get("mitigation", "") == "warmup"
    assert last(found, "once").condition.get("mitigation", "") == "none"
    speed = throughput(by_side(found["racing"]), by_side(found["base"]))
    assert speed is not None and speed.warmed and speed.ratio == pytest.approx(1.0)
    assert len({sample.block for trials in found.values() for sample in trials}) == 1, "all in the same session"


def test_a_mitigation_that_fails_at_its_start_is_not_replaced_by_another(table: Table) -> None:
    table.add("base", mitigation="lock-all", broken=True)
    table.add("other", mitigation="lock-all")
    found = table.run()
    assert [sample.record.outcome.value for sample in found["base"]] == ["failed", "failed"]
    assert len(last(found, "other").rounds) == 4, "those that came to their rounds have them, without their baseline"
    assert throughput(by_side(found["other"]), by_side(found["base"])) is not None


def test_one_that_dies_or_hangs_leaves_the_others_rounds(table: Table) -> None:
    table.limits = Limits(trial=30.0, silence=0.4, first_silence=0.4)
    table.add("base")
    table.add("dead", **{"dies at": 1})
    table.add("hanging", **{"hangs at": 2})
    table.add("fine")
    # The limit of silence is three times that of the matrix: a start takes 0.3 s, and 1.2 s are a hang.
    found = table.run()
    assert [last(found, name).outcome for name in found] == [
        Outcome.CLEAN, Outcome.FAILED, Outcome.HANG, Outcome.CLEAN,
    ]  # fmt: skip
    assert [len(last(found, name).rounds) for name in found] == [8, 1, 2, 4]
    assert [len(trials) for trials in found.values()] == [1, 1, 1, 1], "what came to its rounds is not started again"
    computed = table.computed()
    assert all(earlier[3] <= later[2] for earlier, later in pairwise(computed))
    speed = throughput(by_side(found["hanging"]), by_side(found["base"]))
    assert speed is not None and (speed.n, speed.ratio) == (2, pytest.approx(1.0))
    assert not table.processes()


def test_what_is_no_fault_of_the_cell_is_tried_once_more(table: Table) -> None:
    table.add("base")
    table.add("killed", **{"killed once": True})
    found = table.run()
    assert [sample.record.outcome.value for sample in found["killed"]] == ["infra", "clean"]
    assert len({sample.block for trials in found.values() for sample in trials}) == 1
    assert len(last(found, "killed").rounds) == 4


def test_a_hanging_start_is_warmed_up_at_once(table: Table) -> None:
    table.limits = Limits(trial=30.0, silence=0.4, first_silence=0.4)
    table.add("base")
    table.add("hanging", **{"hangs cold": True})
    found = table.run()
    assert [sample.record.outcome.value for sample in found["hanging"]] == ["hang", "clean"]
    assert WARMED in dict(last(found, "hanging").extra)


def test_where_memory_does_not_suffice_half_of_them_try_again(table: Table) -> None:
    table.add("base")
    for name in "abc":
        table.add(name, **({"memory once": True} if name != "c" else {}))
    found = table.run()
    assert {name: [(s.block, s.record.outcome.value) for s in trials] for name, trials in found.items()} == {
        "base": [(0, "clean"), (1, "clean"), (2, "clean")],
        "a": [(0, "oom"), (1, "clean")],
        "b": [(0, "oom"), (2, "clean")],
        "c": [(0, "clean")],
    }


def test_a_start_has_its_share_of_the_cores_and_a_round_has_all(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    every = machine.cores()
    if len(every) < 2:
        pytest.skip("one core cannot be shared")
    assert list(sessions._cores(3, on_gpu=False)) == [every] * 3, "on a CPU they are what the rounds run on"
    assert len({each for share in sessions._cores(2, on_gpu=True) for each in share}) == len(every) // 2 * 2
    # As on a GPU, which only decides that there are shares at all.
    monkeypatch.setattr(sessions, "_cores", lambda count, on_gpu: iter(places.split(every, count)))
    table.add("base")
    table.add("a")
    found = table.run()
    for name in ("base", "a"):
        noted = [value for key, value in last(found, name).extra if key == "cores"]
        assert noted == [str(len(every))] * len(last(found, name).rounds) and last(found, name).cores == every


def test_what_needed_a_warm_up_in_one_session_gets_it_at_once_in_the_next(table: Table) -> None:
    table.add("base", races=True)
    table.add("a", **{"memory once": True})
    found = table.run()
    assert [(s.block, s.record.outcome.value) for s in found["base"]] == [
        (0, "failed"), (0, "failed"), (0, "clean"), (1, "clean"),
    ]  # fmt: skip


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pretended:
    """Two GPUs, as far as NVML and the leases are concerned."""
    pretended = Pretended(monkeypatch)
    pretended.mig = []
    monkeypatch.setattr(lease_folder, "shared_folder", lambda: tmp_path / "leases")
    return pretended


def test_a_throttled_session_is_run_again_once(table: Table, cards: Pretended) -> None:
    cards.cards = 1
    braked = iter([0x4] * 3 + [0x80])  # the power cap is what a busy card is always at
    cards.throttle = lambda: next(braked, 0x4)
    table.device = "cuda"
    table.add("base")
    table.add("a")
    found = table.run()
    for name in ("base", "a"):
        assert [dict(sample.record.extra).get(SLOWED) for sample in found[name]] == ["gpu0: power brake", None]
        assert [sample.block for sample in found[name]] == [0, 1]
        assert [device.uuid for device in last(found, name).devices] == ["GPU-0"]
    speed = throughput(by_side(found["a"]), by_side(found["base"]))
    assert speed is not None and (speed.sessions, speed.n) == (1, 4)


def test_sessions_on_several_gpus_start_together_and_take_turns_one_after_the_other(
    table: Table, cards: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.device = "cuda"
    monkeypatch.setattr(sessions, "UNKNOWN", 6)  # processes, however few cores this machine has
    # Each process takes 40 of the 128 GiB: three of them to a card.
    for name in ("base", "a", "b", "c", "d"):
        table.add(name, start=0.8)
    found = table.run([StoredTrial(record(Side.THREADS, peak_bytes=30 << 30), 0, "r")])
    assert {name: [sample.block for sample in trials] for name, trials in found.items()} == {
        "base": [0, 1], "a": [0], "b": [0], "c": [1], "d": [1],
    }  # fmt: skip
    on = [{device.uuid for name in names for device in last(found, name).devices} for names in ("ab", "cd")]
    assert len(on[0]) == len(on[1]) == 1 and on[0] != on[1]
    computed = table.computed()
    assert all(earlier[3] <= later[2] for earlier, later in pairwise(computed))
    starts = [json.loads(line) for line in table.log.read_text().splitlines() if '"start"' in line]
    assert len(starts) == 6 and max(line[3] for line in starts) < computed[0][2]
    assert {name for name, _, _, _ in computed[-14:]} == {"base", "c", "d"}


def test_somebody_else_on_the_gpu_makes_it_no_result(
    table: Table, cards: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "BUSY_AGAIN", 0.2)
    cards.cards, table.device = 1, "cuda"
    table.add("base", start=0.8)
    # Somebody comes while it starts, and stays for longer than NVML is given to forget a process that has ended.
    timers = [threading.Timer(after, setattr, (cards, "processes", there)) for after, there in ((0.5, [1]), (5.5, []))]
    for timer in timers:
        timer.start()
    found = table.run()
    for timer in timers:
        timer.join()
    assert [sample.record.outcome for sample in found["base"]] == [Outcome.INFRA, Outcome.CLEAN]
    assert "somebody else used the GPU" in found["base"][0].record.message


def test_blocks_go_on_where_the_run_has_sessions_already(table: Table) -> None:
    table.add("base")
    for run_id, block in ((table.run_id, 5), ("another", 0)):
        earlier = StoredTrial(record(Side.ROUNDS, Outcome.INFRA), 4, run_id)
        assert [sample.block for sample in table.run([earlier])["base"]] == [block]


def test_more_cells_than_a_session_takes(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bisect_env.trials.machine.cores", lambda: (0, 1))
    for name in ("base", "a", "b", "c", "d"):
        table.add(name, start=0.05)
    found = table.run()
    assert {name: [sample.block for sample in trials] for name, trials in found.items()} == {
        "base": [0, 1], "a": [0], "b": [0], "c": [1], "d": [1],
    }  # fmt: skip
    assert all(throughput(by_side(found[name]), by_side(found["base"])).ratio is not None for name in "abcd")  # type: ignore[union-attr]


@pytest.mark.parametrize("after", [0.6, 1.6])
def test_stopping_ends_every_process_and_stores_nothing(table: Table, after: float) -> None:
    table.add("base", start=1.0)
    table.add("a", start=1.0)
    table.cells = [
        Cell(c.id, c.levels, c.request, Condition.of({**c.condition.as_dict(), "rounds": 1000}), c.variables)
        for c in table.cells
    ]
    timer = threading.Timer(after, table.stop.set)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        table.run()
    assert time.monotonic() - began < after + 3
    assert not table.processes() and not table.kept and not list((table.folder / "trials").iterdir())
    assert not table.store.trials(table.cells[0].key, "address-base", "hash")


def test_a_fault_of_our_own_ends_every_process_too(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(sessions, "turns", broken)
    table.add("base")
    with pytest.raises(ZeroDivisionError):
        table.run()
    assert not table.processes() and table.stop.is_set()

"""Where a snapshot comes from: files, git, standard input, the store, environments, hosts."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.environments.records import Reason, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.snapshots.forms import saved
from bisect_env.snapshots.records import Snapshot
from bisect_env.snapshots.sources import snapshot
from bisect_env.store.database import Store
from tests.snapshots.posted import COLLECT_ENV, LIGHTNING, TRANSFORMERS, VLLM
from tests.store.samples import H200, cell, environment, lock, trial
from tests.support.environments import built
from tests.support.wheels import Wheels


def pins(found: Snapshot) -> dict[str, str | None]:
    return {each.name: each.version for each in found.distributions}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_file(here: Path) -> None:
    (here / "good.txt").write_text("torch==2.11.0\nnumpy==2.1.0\n")
    found = snapshot("good.txt")
    assert (found.origin, found.form, pins(found)) == ("good.txt", "pip freeze", {"torch": "2.11.0", "numpy": "2.1.0"})


def test_requirements_name_others_beside_them(here: Path) -> None:
    (here / "sub").mkdir()
    (here / "sub" / "all.txt").write_text("-r base.txt\ntorch==2.11.0\n")
    (here / "sub" / "base.txt").write_text("numpy==2.1.0\n")
    assert pins(snapshot("sub/all.txt")) == {"torch": "2.11.0", "numpy": "2.1.0"}


@pytest.mark.parametrize(
    "report", [COLLECT_ENV, LIGHTNING, TRANSFORMERS, VLLM], ids=["torch", "lightning", "hf", "vllm"]
)
def test_one_of_several_reports(here: Path, report: str) -> None:
    other = report.replace("2.7.", "2.6.").replace("4.52.1", "4.40.0")
    (here / "issue.md").write_text(f"Good:\n{report}\nBad:\n{other}")
    (here / "one.txt").write_text(report)
    (here / "two.txt").write_text(other)
    for number, alone in ((1, "one.txt"), (2, "two.txt")):
        found = snapshot(f"issue.md#{number}")
        assert found.origin == f"issue.md#{number}"
        assert found.distributions == snapshot(alone).distributions
    with pytest.raises(BadInput, match="2 reports are recognised"):
        snapshot("issue.md#3")
    with pytest.raises(BadInput, match=r"issue\.md#2 for the one at line"):
        snapshot("issue.md")


def test_lines_keep_their_numbers(here: Path) -> None:
    (here / "issue.md").write_text(f"{LIGHTNING}\n{LIGHTNING.replace('4.52.1', 'some branch')}")
    (unread,) = snapshot("issue.md#2").unread
    lines = (here / "issue.md").read_text().split("\n")
    assert "some branch" in lines[unread.line - 1]


def test_a_file_whose_name_could_mean_something_else(here: Path) -> None:
    for name in ("main:uv.lock", "a#2"):
        (here / name).write_text("torch==2.11.0\n")
        assert pins(snapshot(name)) == {"torch": "2.11.0"}


@pytest.mark.parametrize("spec", ["none.txt", "none.txt#2", "", "https://me:geheim@example.com/good.txt"])
def test_no_such_file(here: Path, spec: str) -> None:
    with pytest.raises(BadInput) as error:
        snapshot(spec)
    assert "geheim" not in str(error.value)


def test_what_is_no_file(here: Path) -> None:
    os.mkfifo(here / "pipe")
    (here / "dangling").symlink_to(here / "nowhere")
    for name in ("pipe", "dangling", "/dev/zero"):
        with pytest.raises(BadInput):
            snapshot(name)


def test_a_file_of_50_megabytes(here: Path) -> None:
    with (here / "huge").open("wb") as file:
        for _ in range(50):
            file.write(b"torch==2.11.0\n" * (1_000_000 // 14))
    with pytest.raises(BadInput, match="more than"):
        snapshot("huge")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def given(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    given("torch==2.11.0\n")
    assert (snapshot("-").origin, pins(snapshot_of(given))) == ("-", {"torch": "2.12.0"})
    given(LIGHTNING + LIGHTNING.replace("2.7.1", "2.8.0"))
    assert snapshot("-#2").of("torch")[0].version == "2.8.0+cu128"
    given("")
    with pytest.raises(BadInput, match="nothing"):
        snapshot("-")


def snapshot_of(given: object) -> Snapshot:
    given("torch==2.12.0\n")  # type: ignore[operator]
    return snapshot("-")


# Git


@pytest.fixture
def repository(here: Path) -> Path:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *identity, *words], cwd=here, check=True, capture_output=True, timeout=30)

    git("init", "-q", "-b", "main")
    (here / "sub").mkdir()
    (here / "sub" / "pins.txt").write_text("-r base.txt\ntorch==2.10.0\n")
    (here / "sub" / "base.txt").write_text("numpy==2.0.0\n")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    (here / "sub" / "pins.txt").write_text("torch==2.11.0\n")
    git("commit", "-q", "-a", "-m", "two")
    (here / "sub" / "pins.txt").write_text("torch==9.9\n")
    return here


def test_a_file_of_a_revision(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = snapshot("main:sub/pins.txt")
    assert (found.origin, pins(found)) == ("main:sub/pins.txt", {"torch": "2.11.0"})
    assert pins(snapshot("main~1:sub/pins.txt")) == {"torch": "2.10.0", "numpy": "2.0.0"}
    monkeypatch.chdir(repository / "sub")
    assert pins(snapshot("HEAD:pins.txt")) == pins(snapshot("HEAD:sub/pins.txt")) == {"torch": "2.11.0"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nowhere:sub/pins.txt", "nowhere"),
        ("main:none.txt", "none.txt"),
        ("main:sub", "bad file"),
        ("main:../outside.txt", "outside"),
        ("--help:sub/pins.txt", "no such file"),
    ],
)
def test_no_such_revision(repository: Path, spec: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        snapshot(spec)


def test_without_a_repository(here: Path) -> None:
    with pytest.raises(BadInput, match="not a git repository"):
        snapshot("main:uv.lock")


def test_without_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    with pytest.raises(InfrastructureError, match="git was not found"):
        snapshot("main:sub/pins.txt")


# The store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store.sqlite")


def test_a_stored_cell(store: Store) -> None:
    stored = replace(cell(), variables=(("OMP_NUM_THREADS", "4"), ("HF_TOKEN", "geheim")))
    freeze = "torch==2.11.0\nmine @ git+https://example.com/mine.git@0123456789012345678901234567890123456789\n"
    held = replace(lock(), pins=(("mine", "0.3"), ("torch", "2.11.0")))
    store.put_cells([stored], "m")
    store.put_lock(stored.request.key, held, 0.1)
    store.put_environment(replace(environment(), lock=held, freeze=freeze), 1.0)
    run = store.start_run("m", "m.yaml", [], 0, {}, 1, 1)
    store.put_trial(trial("t1", devices=(H200,)), stored.key, run, 0, "hash")
    found = snapshot(f"cell:{stored.id}", store)
    assert pins(found) == {"torch": "2.11.0", "mine": "0.3"}
    assert found.of("mine")[0].source.startswith("git+https://example.com/mine.git@0123")
    assert (found.python, found.platform, found.cuda) == ("3.12.1", "linux-x86_64", "cu130")
    assert (found.driver, found.gpus) == ("580.159.04", ("NVIDIA H200",))
    assert found.variables == (("HF_TOKEN", "***"), ("OMP_NUM_THREADS", "4"))
    assert any("compile cache" in sentence for sentence in found.missing)
    for other in (f"cell:{stored.key[:10]}", "cell:aaaa", "cell:t1"):
        assert snapshot(other, store).distributions == found.distributions
    assert snapshot("cell:aaaa", store).variables is None


def test_a_cell_that_was_resolved_and_not_built(store: Store) -> None:
    store.put_cells([cell()], "m")
    store.put_lock(cell().request.key, lock(), 0.1)
    assert pins(snapshot(f"cell:{cell().id}", store)) == {"torch": "2.11.0"}


def test_no_such_cell(store: Store) -> None:
    other = cell("torch-2.11.1", torch="2.11.1")
    store.put_cells([cell(), other], "m")
    store.put_lock(other.request.key, Unavailable("resolve", Reason.CONFLICT, "torch and numpy"), 0.1)
    for spec, words in (
        ("cell:none", "nothing is called"),
        ("cell:", "nothing is called"),
        ("cell:torch-", "2 things begin"),
        (f"cell:{cell().id}", "never resolved"),
        ("cell:torch-2.11.1", "torch and numpy"),
    ):
        with pytest.raises(BadInput, match=words):
            snapshot(spec, store)
    with pytest.raises(BadInput, match="--store"):
        snapshot("cell:x")


# Environments and hosts


def test_a_built_environment(wheels: Wheels, tmp_path: Path, uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    made = built([wheels.wheel("alpha", "1.0"), wheels.wheel("beta", "2.0+local")], tmp_path / "root", uv)
    venv = made.folder / "venv"
    monkeypatch.chdir(tmp_path)
    for spec in (f"env:{venv}", str(venv), str(venv / "bin" / "python"), f"env:{made.folder}", str(made.folder)):
        found = snapshot(spec)
        assert found.origin == spec
        assert pins(found) == {"alpha": "1.0", "beta": "2.0+local"}
        assert found.python == ".".join(map(str, sys.version_info[:3])) and found.cache is not None
    assert snapshot(os.path.relpath(venv)).distributions == found.distributions
    assert snapshot(f"host:env -i sh -c @{venv}").distributions == found.distributions


def test_no_environment(tmp_path: Path) -> None:
    for spec in (f"env:{tmp_path}", str(tmp_path), "env:/nowhere", "env:"):
        with pytest.raises(BadInput, match=r"environment|bin/python"):
            snapshot(spec)


def test_a_hosts_origin_has_no_secret() -> None:
    with pytest.raises(BadInput, match=r"HF_TOKEN=\*\*\* .*a secret in the command") as error:
        snapshot("host:env -i HF_TOKEN=geheim OMP_NUM_THREADS=2 sh -c")
    assert "geheim" not in str(error.value)
    found = snapshot("host:env -i HF_TOKEN=/run/geheim OMP_NUM_THREADS=2 sh -c")
    assert found.origin == "host:env -i HF_TOKEN=*** OMP_NUM_THREADS=2 sh -c"
    assert "geheim" not in repr(found) and found.variables == (("HF_TOKEN", "***"), ("OMP_NUM_THREADS", "2"))


# Kept as JSON


def test_json_is_a_source_again(here: Path) -> None:
    (here / "posted.txt").write_text(COLLECT_ENV)
    for spec in ("posted.txt", "host:env -i sh -c"):
        found = snapshot(spec)
        (here / "kept.json").write_text(json.dumps(saved.structure(found), indent=1))
        assert snapshot("kept.json") == replace(found, origin="kept.json")


@pytest.mark.parametrize(
    "change",
    [
        {saved.KEY: 2},
        {saved.KEY: None},
        {"distributions": [{"version": "1"}]},
        {"distributions": "torch"},
        {"distributions": []},
        {"python": 3.11},
        {"variables": [["A"]]},
        {"distributions": [{"name": "a", "version": "1"}, {"name": "A", "version": "2"}]},
    ],
    ids=str,
)
def test_damaged_json(here: Path, change: dict[str, object]) -> None:
    (here / "posted.txt").write_text(COLLECT_ENV)
    document = saved.structure(snapshot("posted.txt")) | change
    (here / "kept.json").write_text(json.dumps(document))
    with pytest.raises(BadInput):
        snapshot("kept.json")
    (here / "cut.json").write_text(json.dumps(document, indent=1)[:-200])
    with pytest.raises(BadInput):
        snapshot("cut.json")

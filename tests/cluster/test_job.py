"""A job's files: exact, whole or not there, of one version, and without credentials."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bisect_env.cluster import job
from bisect_env.cluster.credentials import VARIABLE, Vault
from bisect_env.cluster.job import Ended, ItemResult, JobSpec, Trouble, Wanted
from bisect_env.engine.grouping import Entrant
from bisect_env.environments.records import Reason, Unavailable
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, IndexChoice, Matrix, ReproducerChoice
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Reproducer
from tests.cluster.samples import JOBS
from tests.store.samples import environment, trial

SLOW = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


def with_urls(*urls: str) -> JobSpec:
    request = EnvironmentRequest(("torch==1",), index=IndexChoice(urls=urls))
    cell = Cell("c", (), request, Condition.of({"threads": 2}))
    choice = ReproducerChoice("command", ("true",))
    matrix = Matrix("m", Path("/m.yaml"), (cell,), (), choice, pass_env=("HF_TOKEN",))
    reproducer = Reproducer("command", ("true",), (), "hash", False)
    return JobSpec("j", "r1", Path("/p"), matrix, reproducer, (Wanted(environment().lock, request, "torch 1"),))


@SLOW
@given(JOBS)
def test_a_job_comes_back_as_it_was(spec: JobSpec) -> None:
    with tempfile.TemporaryDirectory() as name:
        vault = Vault()
        job.write(spec, Path(name), vault)
        assert job.read(Path(name), vault.variables()) == spec


@settings(SLOW, max_examples=10)
@given(st.lists(JOBS, min_size=2, max_size=3))
def test_jobs_of_one_command_share_a_variable(specs: list[JobSpec]) -> None:
    with tempfile.TemporaryDirectory() as name:
        vault = Vault()
        folders = [Path(name, str(number)) for number in range(len(specs))]
        for spec, folder in zip(specs, folders, strict=True):
            job.write(spec, folder, vault)
        assert [job.read(folder, vault.variables()) for folder in folders] == specs


def test_no_credential_lies_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_parent")
    spec, vault = with_urls("https://me:s3cret@a/simple", "https://t0ken@b/simple?sig=s1gned&x=1"), Vault()
    job.write(spec, tmp_path, vault)
    text = (tmp_path / job.JOB).read_text()
    for secret in ("s3cret", "t0ken", "s1gned", "hf_of_the_parent"):
        assert secret not in text
    assert "HF_TOKEN" in text
    assert job.read(tmp_path, vault.variables()) == spec


@pytest.mark.parametrize("given_", [{}, {VARIABLE: "{}"}, {VARIABLE: "[1"}, {VARIABLE: "[]"}])
def test_a_job_without_its_credentials_is_refused(tmp_path: Path, given_: dict[str, str]) -> None:
    job.write(with_urls("https://me:s3cret@a/simple"), tmp_path, Vault())
    with pytest.raises(InfrastructureError, match=f"{VARIABLE} has to reach it"):
        job.read(tmp_path, given_)


def test_a_command_without_credentials_hands_on_nothing(tmp_path: Path) -> None:
    vault = Vault()
    job.write(with_urls("https://a/simple"), tmp_path, vault)
    assert vault.variables() == {}
    assert job.read(tmp_path, {}) == with_urls("https://a/simple")


def test_another_version_is_refused(tmp_path: Path) -> None:
    job.write(with_urls(), tmp_path, Vault())
    value = json.loads((tmp_path / job.JOB).read_text())
    (tmp_path / job.JOB).write_text(json.dumps({**value, "version": 2}))
    with pytest.raises(BadInput, match=r"version 2 of a job's files.*\n.*the same bisect-env"):
        job.read(tmp_path, {})
    (tmp_path / job.ENDED).write_text('{"version": 0}')
    with pytest.raises(BadInput, match="version 0"):
        job.ended(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 1, "hidden": [], "body": {}}'])
def test_a_damaged_job_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / job.JOB).write_text(text)
    with pytest.raises(InfrastructureError, match=r"job\.json: no file of a job, or a damaged one"):
        job.read(tmp_path, {})


def test_a_missing_job_is_told(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="cannot be read"):
        job.read(tmp_path, {})


def test_results_and_the_end(tmp_path: Path) -> None:
    assert job.results(tmp_path) == {} and job.ended(tmp_path) is None
    found = [ItemResult(f"i{n}", "key", StoredTrial(trial(f"t{n}", output="\x00é"), n, "r1")) for n in range(2)]
    for result in found:
        job.write_result(result, tmp_path)
    # A file that is still being written, or was when its writer was killed.
    (tmp_path / job.RESULTS / ".i2.json-1234").write_text("{")
    assert job.results(tmp_path) == {"i0": found[0], "i1": found[1]}
    ended = Ended(
        "node1",
        "12_3",
        "0",
        environments=(environment(), Unavailable("build", Reason.BUILD, "no compiler")),
        trouble=Trouble("node", "its disk is full"),
    )
    job.write_ended(ended, tmp_path)
    assert job.ended(tmp_path) == ended
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="a file system that all nodes share"):
        job.write(with_urls(), tmp_path / "file", Vault())


def cells(*torches: str, cache: str = "stale") -> tuple[Cell, ...]:
    def one(torch: str) -> Cell:
        request = EnvironmentRequest((f"torch=={torch}",))
        return Cell(f"torch-{torch}", (("torch", torch),), request, Condition.of({"cache": cache}))

    return tuple(map(one, torches))


@settings(deadline=None)
@given(st.lists(st.sampled_from(["1.0", "1.1", "2.0", "2.1", "3.0"]), unique=True, min_size=1), st.data())
def test_a_part_of_a_matrix_fills_stale_caches_as_the_whole_does(torches: list[str], data: st.DataObject) -> None:
    every = cells(*torches)
    at = data.draw(st.integers(0, len(every)))
    whole = replace(with_urls().matrix, cells=every[:at], left_out=every[at:])
    taken = tuple(data.draw(st.lists(st.sampled_from(every[:at]), unique=True))) if at else ()
    part = job.part_of(whole, taken)
    assert set(part.cells) == set(taken)
    assert len(part.left_out) <= len(taken)
    for cell in taken:
        assert part.stale_source_of(cell) == whole.stale_source_of(cell)


def test_an_entrant_keeps_what_rounds_are_planned_by() -> None:
    sample = StoredTrial(replace(trial("t1", output="x" * 1000), peak_bytes=5), 0, "r1")
    entrant = Entrant(cells("1.0")[0], environment(), (sample,))
    light = job.lighter(entrant)
    assert light.samples[0].record.output == "" and light.bytes == entrant.bytes
    assert replace(light.samples[0].record, output=sample.record.output) == sample.record
    assert light.environment.lock.address == environment().lock.address and light.environment.lock.text == ""

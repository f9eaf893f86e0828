"""What is wrong with a node, and what with a cell: told apart at the job's end, and never the outcome of a trial."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from bisect_env.bundles.absorb import absorb
from bisect_env.bundles.offline import Offline
from bisect_env.cluster import job, node, worker
from bisect_env.cluster.job import Ended, JobSpec, Wanted
from bisect_env.environments.records import Environment, Lock, Reason, Unavailable
from bisect_env.errors import BadInput
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, IndexChoice
from bisect_env.trials import lease_folder
from bisect_env.trials.records import Outcome
from tests.bundles.build import delivery, parts_in, request_for
from tests.cluster.site import Site
from tests.cluster.test_worker import outcomes, wait_for
from tests.support.environments import lock_of
from tests.support.index import Index, refusing_url
from tests.support.nvml import Pretended
from tests.support.wheels import corrupt


def whose(ended: Ended) -> tuple[str, str]:
    assert ended.trouble is not None and not ended.stopped
    return ended.trouble.whose, ended.trouble.message


def nothing_ran(site: Site) -> bool:
    return job.results(site.root / "jobs" / "job") == {} and site.left() == []


def test_no_interpreter(site: Site) -> None:
    spec = site.spec()
    lock = spec.wanted[0].lock
    lock = replace(lock, interpreter=replace(lock.interpreter, path=Path("/opt/python9/bin/python")))
    ended, _ = site.do(replace(spec, wanted=(replace(spec.wanted[0], lock=lock),)))
    kind, message = whose(ended)
    assert kind == "node" and "/opt/python9/bin/python is no Python that runs" in message
    assert "share its folder" in message and nothing_ran(site)


def test_another_interpreter_at_its_path(site: Site) -> None:
    spec = site.spec()
    lock = spec.wanted[0].lock
    lock = replace(lock, interpreter=replace(lock.interpreter, version="3.11.99"))
    ended, _ = site.do(replace(spec, wanted=(replace(spec.wanted[0], lock=lock),)))
    kind, message = whose(ended)
    assert kind == "node" and "on this node, and 3.11.99 for" in message and nothing_ran(site)


def test_no_base(site: Site) -> None:
    spec = site.spec()
    lock = replace(spec.wanted[0].lock, base="/opt/base/bin/python")
    ended, _ = site.do(replace(spec, wanted=(replace(spec.wanted[0], lock=lock),)))
    assert whose(ended)[0] == "node" and "/opt/base/bin/python is not there" in whose(ended)[1] and nothing_ran(site)


def test_temporary_files_cannot_be_written(site: Site) -> None:
    (site.folder / "file").write_text("")
    ended, _ = site.do(site.spec(), TMPDIR=str(site.folder / "file"))
    assert whose(ended)[0] == "node" and "Not a directory" in whose(ended)[1] and nothing_ran(site)


def mounted(place: Path, size: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        pytest.skip(f"no disk can be mounted here: {finished.stderr.strip()}")


@pytest.fixture
def small_disk(site: Site, request: pytest.FixtureRequest) -> Site:
    """The node's own disk has two MiB."""
    mounted(site.disk, "2m")
    request.addfinalizer(lambda: subprocess.run(["umount", "-l", str(site.disk)], check=True))
    return site


def fill(disk: Path) -> None:
    with pytest.raises(OSError, match="No space"), (disk / "full").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_its_disk_is_full(small_disk: Site) -> None:
    fill(small_disk.disk)
    ended, _ = small_disk.do(small_disk.spec())
    (small_disk.disk / "full").unlink()
    kind, message = whose(ended)
    assert kind == "node" and ("disk is full" in message or "No space left" in message)
    assert nothing_ran(small_disk)


def test_its_disk_fills_while_a_trial_runs(small_disk: Site) -> None:
    spec = small_disk.spec([{}, {"fills": str(small_disk.folder / "now")}, {}])
    folder = small_disk.send(spec)
    with small_disk.running(folder) as process:
        wait_for((small_disk.folder / "now").exists, process)
        fill(small_disk.disk)
        (small_disk.folder / "now.full").touch()
        log, _ = process.communicate(timeout=30)
    ended = job.ended(folder)
    assert ended is not None, log
    kind, message = whose(ended)
    assert kind == "node" and "disk" in message, log
    assert outcomes(job.results(folder)) == {"i0": Outcome.CLEAN}
    assert small_disk.left() == ["full"]


def over_index(site: Site, url: str) -> JobSpec:
    wheel = site.torch()
    request = EnvironmentRequest(("torch==2.14.1",), index=IndexChoice(urls=(url,)))
    return replace(site.spec(paths=[wheel], request=request), uv_cache=str(site.folder / "empty-cache"))


def test_an_index_that_this_node_cannot_reach(site: Site) -> None:
    ended, _ = site.do(over_index(site, refusing_url()), UV_HTTP_RETRIES="0")
    kind, message = whose(ended)
    assert kind == "node" and message.startswith("torch: index unreachable: ")
    (found,) = ended.environments
    assert isinstance(found, Unavailable) and found.reason is Reason.INDEX_UNREACHABLE and nothing_ran(site)


def test_an_index_with_credentials(site: Site, make_index: Callable[..., Index]) -> None:
    index = make_index(credentials=("me", "s3cret"))
    index.add(site.torch())
    ended, log = site.do(over_index(site, index.url_with_credentials))
    (result,) = job.results(site.root / "jobs" / "job").values()
    assert ended.trouble is None and result.sample.record.outcome is Outcome.CLEAN
    assert "BISECT_ENV_JOB" not in result.sample.record.output
    for path in site.root.rglob("*"):
        assert not path.is_file() or b"s3cret" not in path.read_bytes()
    assert "s3cret" not in log

    wrong = over_index(site, index.url_with_credentials.replace("s3cret", "0ther"))
    ended, _ = site.do(replace(wrong, root=site.folder / "anew", uv_cache=str(site.folder / "another-cache")), "wrong")
    assert whose(ended)[0] == "cell" and "0ther" not in whose(ended)[1]


def test_credentials_that_were_not_handed_on(site: Site) -> None:
    folder = site.send(over_index(site, "https://me:s3cret@127.0.0.1/simple"))
    site.variables.clear()
    with site.running(folder) as process:
        log, _ = process.communicate(timeout=30)
    ended = job.ended(folder)
    assert ended is not None and whose(ended)[0] == "node" and "credentials" in whose(ended)[1], log


def test_a_bundle_is_the_only_source(site: Site) -> None:
    wheel = site.torch()
    delivery(site.folder / "bundle", [[wheel]])
    into = site.folder / "shared" / "unbundled"
    parts = parts_in(site.folder / "bundle")
    absorb([site.folder / "bundle" / "manifest.json", *parts], into, (), lambda text: None)
    request = request_for(wheel)
    lock = Offline.open(into).resolve(request)
    assert isinstance(lock, Lock)
    wheel.unlink()
    spec = site.spec(paths=[site.wheels.wheel("torch", "0.0")], request=request, lock=lock)
    spec = replace(spec, bundle=into, uv_cache=str(site.folder / "empty-cache"))
    ended, log = site.do(spec)
    assert ended.trouble is None and "no network" in log
    assert outcomes(job.results(site.root / "jobs" / "job")) == {"i0": Outcome.CLEAN}

    shutil.rmtree(into)
    ended, _ = site.do(replace(spec, root=site.folder / "anew"), "without")
    assert whose(ended)[0] == "node" and "unbundle" in whose(ended)[1]


def test_what_cannot_be_built_anywhere_is_the_cells(site: Site) -> None:
    wheel = site.torch()
    lock = lock_of(wheel)
    ended, _ = site.do(replace(site.spec(paths=[corrupt(wheel)], lock=lock), uv_cache=str(site.folder / "empty")))
    (found,) = ended.environments
    assert whose(ended)[0] == "cell" and isinstance(found, Unavailable) and found.reason is Reason.BUILD
    assert nothing_ran(site)


def test_what_cannot_be_imported_is_told_and_tried_where_that_was_asked_for(site: Site) -> None:
    wheel = site.wheels.wheel("torch", "2.9.0", files={"torch/__init__.py": "raise ImportError('libnothing.so')\n"})
    alone, _ = site.do(site.spec([], [wheel]), "alone")
    (found,) = alone.environments
    assert whose(alone)[0] == "cell" and isinstance(found, Unavailable) and found.reason is Reason.IMPORT
    tried, _ = site.do(site.spec([{}], [wheel]), "tried")
    assert tried.trouble is None and tried.environments == alone.environments
    assert outcomes(job.results(site.root / "jobs" / "tried")) == {"i0": Outcome.FAILED}


def test_files_that_changed_since_the_job_was_sent(site: Site) -> None:
    folder = site.send(site.spec())
    (site.folder / "trial.py").write_text("print('another')\n")
    with site.running(folder) as process:
        log, _ = process.communicate(timeout=30)
    ended = job.ended(folder)
    assert ended is not None and whose(ended)[0] == "cell" and "changed since" in whose(ended)[1], log
    assert nothing_ran(site)


def test_files_that_this_node_does_not_see(site: Site) -> None:
    folder = site.send(site.spec())
    (site.folder / "trial.py").unlink()
    with site.running(folder) as process:
        log, _ = process.communicate(timeout=30)
    ended = job.ended(folder)
    assert ended is not None and whose(ended)[0] == "node" and "trial.py" in whose(ended)[1], log


def test_a_folder_that_is_no_job(site: Site) -> None:
    with site.running(site.folder / "nothing") as process:
        log, _ = process.communicate(timeout=30)
    assert process.returncode == 5 and "the job's folder cannot be used" in log and "Traceback" not in log


def test_a_gpu_that_is_not_there(site: Site) -> None:
    ended, _ = site.do(site.spec([{"device": "cuda"}]))
    assert whose(ended) == ("node", whose(ended)[1]) and "no GPU can be used" in whose(ended)[1] and nothing_ran(site)


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pretended:
    """Two cards that are whole, and a folder of leases of the test's own."""
    pretended = Pretended(monkeypatch)
    pretended.mig = []
    monkeypatch.setattr(pynvml, "nvmlSystemGetCudaDriverVersion_v2", lambda: 12080)
    monkeypatch.setattr(lease_folder, "shared_folder", lambda: tmp_path / "leases")
    return pretended


def on_gpu(device: str, *variants: str | None) -> tuple[tuple[Wanted, ...], tuple[Cell, ...]]:
    lock = lock_of()
    request = EnvironmentRequest(())
    wanted = tuple(Wanted(replace(lock, cuda=variant), request, "torch") for variant in variants)
    return wanted, (Cell("c", (), request, Condition.of({"device": device})),)


@pytest.mark.parametrize("variants", [("cu130",), ("cu126", "cu130"), ("cu132",)])
def test_a_driver_that_is_too_old(cards: Pretended, variants: tuple[str, ...]) -> None:
    found = node.lacks(*on_gpu("auto", *variants), None, {})
    assert found == ("its NVIDIA driver 580.1 is too old: it runs CUDA 12 at most, and torch was built for CUDA 13")
    assert node.lacks(*on_gpu("cpu", *variants), None, {}) == ""


@pytest.mark.parametrize("variants", [("cu128",), ("cu129",), ("cu118",), ("cpu",), (None,), ()])
def test_a_driver_that_is_new_enough(cards: Pretended, variants: tuple[str | None, ...]) -> None:
    assert node.lacks(*on_gpu("cuda", *variants), None, {}) == ""


def test_a_driver_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)

    monkeypatch.setattr(pynvml, "nvmlInit", refuse)
    monkeypatch.setattr("bisect_env.trials.gpu._opened_in", None)
    given = {"CUDA_VISIBLE_DEVICES": "0"}
    assert "driver/library mismatch" in node.lacks(*on_gpu("auto", "cu130"), None, given)
    assert node.lacks(*on_gpu("auto", "cu130"), None, {}) == "", "the job was given none"


def test_a_job_takes_the_gpu_that_it_was_given(
    site: Site, cards: Pretended, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TMPDIR", str(site.disk))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    spec = site.spec([{"device": "auto"}])
    ended = worker.work(site.send(spec))
    (result,) = job.results(site.root / "jobs" / "job").values()
    assert ended.trouble is None and (ended.devices, ended.driver) == (("NVIDIA H200",), "580.1")
    assert [device.uuid for device in result.sample.record.devices] == ["GPU-1"]
    assert dict(result.sample.record.host)["CUDA_VISIBLE_DEVICES given"] == "1"

    # Somebody else's process is on it: only --allow-busy measures beside it.
    cards.processes = [1]
    ended = worker.work(site.send(replace(spec, allow_busy=True), "busy"))
    assert ended.trouble is None and len(job.results(site.root / "jobs" / "busy")) == 1
    ended = worker.work(site.send(replace(spec, gpus="7"), "wrong"))
    assert ended.trouble is not None and ended.trouble.whose == "node" and "--gpus" in ended.trouble.message


def test_a_selection_that_is_not_there(cards: Pretended) -> None:
    with pytest.raises(BadInput):
        node.lacks(*on_gpu("auto"), "7", {})


def test_the_environment_is_the_jobs_own_word(site: Site) -> None:
    ended, _ = site.do(site.spec(), SLURM_ARRAY_JOB_ID="9", SLURM_ARRAY_TASK_ID="4", SLURM_JOB_ID="13")
    assert ended.job_id == "9_4" and isinstance(ended.environments[0], Environment)

"""Locks, by the real uv against indexes on loopback."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.environments.compiling import address_of
from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.locks import resolve
from bisect_env.environments.records import Lock, Reason, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice
from tests.support.certificates import impostor
from tests.support.index import Index, refusing_url
from tests.support.wheels import Wheels, tree

RUNTIME = {"cu128": ("nvidia-cuda-runtime-cu12", "12.8.90"), "cu130": ("nvidia-cuda-runtime", "13.0.96")}


def request(*lines: str, index: Index | IndexChoice, **options: object) -> EnvironmentRequest:
    choice = index if isinstance(index, IndexChoice) else IndexChoice(urls=(index.url,))
    return EnvironmentRequest(lines, index=choice, **options)  # type: ignore[arg-type]


def locked(result: Lock | Unavailable) -> Lock:
    assert isinstance(result, Lock), result
    return result


def refused(result: Lock | Unavailable) -> Unavailable:
    assert isinstance(result, Unavailable), result
    return result


def add_runtimes(index: Index, wheels: Wheels) -> None:
    for name, version in RUNTIME.values():
        index.add(wheels.wheel(name, version))


def add_torch(index: Index, wheels: Wheels, version: str, cuda: str | None, **options: object) -> None:
    requires = [f"{RUNTIME[cuda][0]}=={RUNTIME[cuda][1]}"] if cuda in RUNTIME else []
    index.add(wheels.wheel("torch", version, requires=requires), **options)  # type: ignore[arg-type]


@pytest.fixture
def labelled(index: Index, wheels: Wheels) -> Index:
    """An index with both variants of one version."""
    add_runtimes(index, wheels)
    add_torch(index, wheels, "2.11.0+cu128", "cu128")
    add_torch(index, wheels, "2.11.0+cu130", "cu130")
    return index


@pytest.fixture
def package_index(index: Index, wheels: Wheels) -> Index:
    """An index as PyPI is: a version is one variant, told by its requirements."""
    add_runtimes(index, wheels)
    add_torch(index, wheels, "2.10.0", "cu128")
    add_torch(index, wheels, "2.11.0", "cu130")
    return index


class Unreachable(SimpleIndex):
    """No test may ask PyTorch's own index; here its host does not answer, as on an air-gapped node."""

    def __init__(self) -> None:
        super().__init__()
        self.away = refusing_url()

    def page(self, url: str, name: str, offline: bool = False):  # type: ignore[no-untyped-def]
        assert "pytorch.org" not in url, "the host was known to be away"
        return super().page(url, name, offline)

    def reach(self, url: str):  # type: ignore[no-untyped-def]
        return super().reach(self.away if "pytorch.org" in url else url)


@pytest.fixture
def airgapped(uv: Uv) -> Uv:
    return replace(uv, simple=Unreachable())


def test_a_lock_has_hashes_and_neither_header_nor_address_of_the_index(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("alpha", "1.0", requires=["beta<2"]))
    index.add(wheels.wheel("beta", "1.5"))
    index.add(wheels.wheel("beta", "2.0"))
    lock = locked(resolve(request("alpha==1.0", index=index), uv))
    assert lock.pins == (("alpha", "1.0"), ("beta", "1.5"))
    assert lock.text.startswith("alpha==1.0 \\\n    --hash=sha256:")
    assert "127.0.0.1" not in lock.text and "#" not in lock.text
    assert lock.cuda is None and lock.notes == () and lock.torch_backend is None
    size = sum(upload.path.stat().st_size for upload in index.uploads if "2.0" not in upload.path.name)
    assert lock.download_bytes == size


def test_the_same_request_gives_the_same_lock_from_another_cache_and_another_copy_of_the_index(
    make_index: Callable[..., Index], wheels: Wheels, tmp_path: Path
) -> None:
    path = wheels.wheel("alpha", "1.0")
    locks = []
    for number in range(2):
        index = make_index()
        index.add(path)
        locks.append(locked(resolve(request("alpha", index=index), Uv(tmp_path / str(number)))))
    assert locks[0] == locks[1]


def test_another_interpreter_is_another_address(uv: Uv, index: Index, wheels: Wheels, tmp_path: Path) -> None:
    index.add(wheels.wheel("alpha", "1.0"))
    one = locked(resolve(request("alpha", index=index), uv))
    other = replace(one.interpreter, path=tmp_path / "python")
    assert address_of(one.text, "", one.interpreter) == one.address
    assert address_of(one.text, "", other) != one.address


def test_an_interpreter_that_is_not_there_names_those_that_are(uv: Uv, index: Index) -> None:
    result = refused(resolve(request("alpha", index=index, python="3.99"), uv))
    assert result.reason is Reason.INTERPRETER
    assert "no Python 3.99" in result.message and "found 3." in result.message


@pytest.mark.parametrize("cuda", ["cu128", "cu130"])
def test_the_variant_asked_for_is_taken_by_its_label(uv: Uv, labelled: Index, cuda: str) -> None:
    lock = locked(resolve(request("torch==2.11.0", index=labelled, cuda=cuda), uv))
    assert dict(lock.pins)["torch"] == f"2.11.0+{cuda}"
    assert lock.cuda == cuda
    assert RUNTIME[cuda] in lock.pins


def test_a_bare_version_with_several_variants_is_refused(uv: Uv, labelled: Index) -> None:
    result = refused(resolve(request("torch==2.11.0", index=labelled), uv))
    assert result.reason is Reason.VARIANT
    assert "2.11.0+cu128 and 2.11.0+cu130" in result.message


def test_a_label_in_the_pin_is_a_variant_asked_for(uv: Uv, labelled: Index) -> None:
    assert locked(resolve(request("torch==2.11.0+cu128", index=labelled), uv)).cuda == "cu128"


def test_two_places_that_ask_for_different_variants_are_refused(uv: Uv, labelled: Index) -> None:
    result = refused(resolve(request("torch==2.11.0+cu128", index=labelled, cuda="cu130"), uv))
    assert result.reason is Reason.VARIANT
    assert "cu128" in result.message and "cu130" in result.message


def test_a_variant_that_the_index_does_not_have_is_refused(uv: Uv, package_index: Index) -> None:
    assert locked(resolve(request("torch==2.11.0", index=package_index, cuda="cu130"), uv)).cuda == "cu130"
    result = refused(resolve(request("torch==2.11.0", index=package_index, cuda="cu128"), uv))
    assert result.reason is Reason.VARIANT
    assert "is cu130, not cu128" in result.message


def test_a_folder_of_wheels_serves_the_variant_offline(uv: Uv, labelled: Index, wheels: Wheels) -> None:
    choice = IndexChoice(torch_backend="auto", find_links=(str(wheels.folder),), offline=True)
    lock = locked(resolve(request("torch==2.11.0", index=choice, cuda="cu128"), uv))
    assert dict(lock.pins)["torch"] == "2.11.0+cu128"
    assert labelled.requests == []


def test_where_pytorch_does_not_answer_the_package_index_serves_its_variant(
    airgapped: Uv, package_index: Index
) -> None:
    choice = IndexChoice(torch_backend="auto", urls=(package_index.url,))
    for version, cuda in (("2.10.0", "cu128"), ("2.11.0", "cu130")):
        lock = locked(resolve(request(f"torch=={version}", index=choice, cuda=cuda), airgapped))
        assert lock.cuda == cuda and lock.torch_backend is None
        (note,) = lock.notes
        assert "refuses connections" in note and f"served torch {version}, which is {cuda}" in note


def test_and_no_other_variant(airgapped: Uv, package_index: Index) -> None:
    choice = IndexChoice(torch_backend="auto", urls=(package_index.url,))
    for cuda in ("cu128", "cpu"):
        result = refused(resolve(request("torch==2.11.0", index=choice, cuda=cuda), airgapped))
        assert result.reason is Reason.INDEX_UNREACHABLE
        assert f"torch 2.11.0 for {cuda}" in result.message and "build is cu130" in result.message


def test_offline_is_the_reason_when_pytorch_was_not_asked(uv: Uv, package_index: Index) -> None:
    plain = request("torch==2.11.0", index=package_index)
    locked(resolve(plain, uv))
    choice = IndexChoice(torch_backend="auto", urls=(package_index.url,), offline=True)
    asked = len(package_index.requests)
    result = refused(resolve(replace(plain, index=choice, cuda="cu128"), uv))
    assert result.reason is Reason.OFFLINE
    assert locked(resolve(replace(plain, index=choice, cuda="cu130"), uv)).cuda == "cu130"
    assert len(package_index.requests) == asked


def test_the_cpu_matrix_falls_back_to_the_package_index_and_says_so(airgapped: Uv, package_index: Index) -> None:
    choice = IndexChoice(torch_backend="cpu", torch_fallback=True, urls=(package_index.url,))
    lock = locked(resolve(request("torch==2.11.0", index=choice), airgapped))
    assert lock.cuda == "cu130"
    assert "torch 2.11.0 (cu130) was taken" in lock.notes[0]
    strict = refused(resolve(request("torch==2.11.0", index=replace(choice, torch_fallback=False)), airgapped))
    assert strict.reason is Reason.INDEX_UNREACHABLE


@pytest.fixture
def pytorch(
    tmp_path: Path, make_index: Callable[..., Index], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Index]:
    """Puts an index on loopback in the place of https://download.pytorch.org/whl/VARIANT."""
    disguise = impostor(tmp_path / "tls", "download.pytorch.org")
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(disguise.authority))

    def start(variant: str) -> Index:
        index = make_index(json=False, prefix="/whl", root=variant, tls=disguise.context)
        monkeypatch.setenv("HTTPS_PROXY", f"http://{index.host}")
        return index

    return start


def test_pytorchs_own_index_is_taken_where_it_answers(
    tmp_path: Path, package_index: Index, pytorch: Callable[[str], Index]
) -> None:
    official = pytorch("cu128")
    own = Wheels(tmp_path / "official")
    add_torch(official, own, "2.11.0+cu128", "cu128", uploaded=None)
    choice = IndexChoice(torch_backend="auto", urls=(package_index.url,))
    uv = Uv(tmp_path / "cache")
    lock = locked(resolve(request("torch==2.11.0", index=choice, cuda="cu128", as_of="release"), uv))
    assert dict(lock.pins)["torch"] == "2.11.0+cu128"
    assert lock.cuda == lock.torch_backend == "cu128"
    # Its pages have no dates: torch is exempt, the package index's files are not.
    assert lock.notes == ("as_of does not hold for torch: the index publishes no upload dates for it",)
    absent = refused(resolve(request("torch==2.12.0", index=choice, cuda="cu128"), uv))
    assert absent.reason is Reason.NO_SUCH_VERSION


def test_no_folder_beside_pytorchs_index_serves_another_variant(
    tmp_path: Path, package_index: Index, pytorch: Callable[[str], Index]
) -> None:
    add_torch(pytorch("cu128"), Wheels(tmp_path / "official"), "2.11.0+cu128", "cu128")
    beside = Wheels(tmp_path / "beside")
    beside.wheel("torch", "2.11.0+cu130")
    choice = IndexChoice(torch_backend="auto", urls=(package_index.url,), find_links=(str(beside.folder),))
    lock = locked(resolve(request("torch==2.11.0", index=choice, cuda="cu128"), Uv(tmp_path / "cache")))
    assert dict(lock.pins)["torch"] == "2.11.0+cu128"


def test_pytorchs_index_that_refuses_is_told_apart_from_one_that_is_away(
    tmp_path: Path, package_index: Index, pytorch: Callable[[str], Index]
) -> None:
    pytorch("cu128").status = 403
    choice = IndexChoice(torch_backend="auto", urls=(package_index.url,))
    result = refused(resolve(request("torch==2.11.0", index=choice, cuda="cu128"), Uv(tmp_path / "cache")))
    assert result.reason is Reason.CREDENTIALS and "HTTP 403" in result.message


def test_as_of_a_date_counts_all_of_that_day_in_utc(uv: Uv, index: Index, wheels: Wheels) -> None:
    for version, time_ in (
        ("1.0", "2025-03-01T10:00:00Z"),
        ("1.1", "2025-03-02T23:59:00Z"),
        ("1.2", "2025-03-03T00:01:00Z"),
    ):
        index.add(wheels.wheel("alpha", version), uploaded=time_)
    assert locked(resolve(request("alpha", index=index, as_of="2025-03-02"), uv)).pins == (("alpha", "1.1"),)
    assert locked(resolve(request("alpha", index=index, as_of="2025-03-02T12:00:00Z"), uv)).pins == (("alpha", "1.0"),)


def test_as_of_release_is_the_day_of_the_newest_pin(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("alpha", "1.0", requires=["gamma"]), uploaded="2025-01-10T12:00:00Z")
    index.add(wheels.wheel("beta", "1.0"), uploaded="2025-02-20T12:00:00Z")
    for version, day in (("1", "2025-01-01"), ("2", "2025-02-20"), ("3", "2025-02-21")):
        index.add(wheels.wheel("gamma", version), uploaded=f"{day}T18:00:00Z")
    lock = locked(resolve(request("alpha==1.0", "beta==1.0", index=index, as_of="release"), uv))
    assert dict(lock.pins)["gamma"] == "2"
    assert dict(locked(resolve(request("alpha==1.0", index=index, as_of="release"), uv)).pins)["gamma"] == "1"


def test_what_has_no_upload_date_is_exempt_one_by_one(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("alpha", "1.0", requires=["undated-dep", "gamma"]), uploaded=None)
    index.add(wheels.wheel("undated-dep", "1.0"), uploaded=None)
    index.add(wheels.wheel("gamma", "1"), uploaded="2025-01-01T00:00:00Z")
    index.add(wheels.wheel("gamma", "2"), uploaded="2026-01-01T00:00:00Z")
    lock = locked(resolve(request("alpha==1.0", index=index, as_of="2025-06-01"), uv))
    assert lock.pins == (("alpha", "1.0"), ("gamma", "1"), ("undated-dep", "1.0"))
    assert lock.notes == ("as_of does not hold for alpha, undated-dep: the index publishes no upload dates for it",)


def test_as_of_release_without_any_date_has_no_effect_and_says_so(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("alpha", "1.0"), uploaded=None)
    lock = locked(resolve(request("alpha==1.0", index=index, as_of="release"), uv))
    assert "no effect" in lock.notes[0]


def test_a_local_tree_is_locked_by_its_content(uv: Uv, index: Index, tmp_path: Path) -> None:
    source = tree(tmp_path / "tree", "loc", "1.5", files={"loc/__init__.py": "A = 1\n"})
    wanted = request(f"loc @ {source.as_uri()}", index=index)
    first = locked(resolve(wanted, uv))
    assert first.pins == (("loc", "1.5"),)
    ((name, path, content),) = first.trees
    assert (name, path) == ("loc", str(source)) and content in first.text
    (source / ".git").mkdir()
    (source / ".git" / "HEAD").write_text("x")
    assert locked(resolve(wanted, uv)).address == first.address
    # No file changes that uv looks at to tell whether what it has built is still good.
    (source / "prebuilt" / "loc-1.5-py3-none-any.whl").unlink()
    Wheels(source / "prebuilt").wheel("loc", "1.6", requires=["alpha"])
    index.add(Wheels(tmp_path / "wheels").wheel("alpha", "1.0"))
    second = locked(resolve(wanted, uv))
    assert second.address != first.address and second.pins == (("alpha", "1.0"), ("loc", "1.6"))


def test_a_git_requirement_is_pinned_to_its_commit(uv: Uv, index: Index, tmp_path: Path) -> None:
    source = tree(tmp_path / "repo", "loc", "1.5")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *arguments], cwd=source, check=True, capture_output=True)
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=source, text=True).strip()
    lock = locked(resolve(request(f"loc @ git+{source.as_uri()}@main", index=index), uv))
    assert lock.text.strip() == f"loc @ git+{source.as_uri()}@{commit}"
    assert lock.pins == (("loc", "1.5"),)
    result = refused(resolve(request(f"loc @ git+{source.as_uri()}@nowhere", index=index), uv))
    assert result.reason is Reason.NO_SUCH_VERSION


def test_build_requirements_are_met_and_pinned(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("torch", "2.11.0", files={"torch/__init__.py": ""}))
    index.add(wheels.wheel("torch", "2.12.0", files={"torch/__init__.py": ""}))
    index.add(wheels.wheel("helper", "3.0"))
    index.add(wheels.sdist("attn", "1.0", build_imports=["torch", "helper"], requires=["torch"]))
    plain = request("attn==1.0", "torch==2.11.0", index=index)
    failed = refused(resolve(plain, uv))
    assert (failed.stage, failed.reason) == ("build", Reason.BUILD) and "No module named 'torch'" in failed.message
    lock = locked(resolve(replace(plain, build_requirements=(("attn", ("torch", "helper")),)), uv))
    assert lock.pins == (("attn", "1.0"), ("torch", "2.11.0"))
    assert "helper==3.0 \\" in lock.build_text and "torch==2.11.0 \\" in lock.build_text
    assert not any(path.rpartition("/")[2] == "torch-2.12.0-py3-none-any.whl" for _, path in index.requests)


def test_an_index_that_is_away_is_known_within_seconds_and_asked_once(uv: Uv, index: Index) -> None:
    index.mode = "hangs"
    quick = replace(uv, simple=SimpleIndex(timeout=0.5))
    began = time.monotonic()
    for name in ("alpha", "beta", "gamma"):
        result = refused(resolve(request(name, index=index), quick))
        assert result.reason is Reason.INDEX_UNREACHABLE and "did not answer in time" in result.message
    assert time.monotonic() - began < 3
    assert len(index.requests) == 1


def test_credentials_reach_the_index_and_nothing_else(uv: Uv, make_index: Callable[..., Index], wheels: Wheels) -> None:
    index = make_index(credentials=("bob", "s3cret-word"))
    index.add(wheels.wheel("alpha", "1.0"))
    lock = locked(resolve(request("alpha", index=IndexChoice(urls=(index.url_with_credentials,))), uv))
    assert "s3cret-word" not in repr(lock)
    wrong = IndexChoice(urls=(index.url_with_credentials.replace("s3cret", "wr0ng"),))
    result = refused(resolve(request("alpha", index=wrong), replace(uv, simple=SimpleIndex())))
    assert result.reason is Reason.CREDENTIALS and "wr0ng" not in repr(result)


def test_credentials_of_a_named_index_come_from_uvs_variables(
    uv: Uv, make_index: Callable[..., Index], wheels: Wheels, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make_index(credentials=("bob", "s3cret-word"))
    add_torch(index, wheels, "2.11.0+cu128", None)
    choice = IndexChoice(urls=(f"our-own={index.url}",))
    assert refused(resolve(request("torch==2.11.0", index=choice), uv)).reason is Reason.CREDENTIALS
    monkeypatch.setenv("UV_INDEX_OUR_OWN_USERNAME", "bob")
    monkeypatch.setenv("UV_INDEX_OUR_OWN_PASSWORD", "s3cret-word")
    lock = locked(resolve(request("torch==2.11.0", index=choice, cuda="cu128"), replace(uv, simple=SimpleIndex())))
    assert dict(lock.pins)["torch"] == "2.11.0+cu128"


def test_a_requirement_with_credentials_is_refused_before_anything_runs(uv: Uv, index: Index) -> None:
    with pytest.raises(BadInput) as raised:
        resolve(request("x @ git+https://bob:s3cret-word@example.org/x.git", index=index), uv)
    assert "s3cret-word" not in str(raised.value)


def test_a_stopped_resolution_ends_at_once(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("alpha", "1.0"))
    stop = threading.Event()
    stop.set()
    began = time.monotonic()
    assert uv.simple.reach(index.url) is None
    index.mode = "hangs"  # reachable when it was probed, silent when uv comes
    with pytest.raises(InfrastructureError):
        resolve(request("alpha", index=index), uv, stop)
    assert time.monotonic() - began < 5

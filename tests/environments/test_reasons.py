"""uv's words and their meaning: each text comes from a real run of the installed uv against an index on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bisect_env.environments.reasons import explain, message
from bisect_env.environments.records import Reason, Unavailable
from bisect_env.environments.uv import Finished, Uv
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import IndexChoice
from tests.support.index import Index, refusing_url
from tests.support.wheels import Wheels, corrupt, tree

IMPATIENT = {"UV_HTTP_TIMEOUT": "1", "UV_HTTP_RETRIES": "0"}


def run(uv: Uv, lines: Sequence[str], index: IndexChoice, *options: str) -> Finished:
    arguments = ["pip", "compile", "-", "--python", sys.executable, "--no-header", *options]
    return uv.run(arguments, index=index, stdin="\n".join(lines), env=IMPATIENT, timeout=60)


def why(uv: Uv, lines: Sequence[str], index: Index | IndexChoice, *options: str) -> Unavailable:
    choice = index if isinstance(index, IndexChoice) else IndexChoice(urls=(index.url,))
    finished = run(uv, lines, choice, *options)
    assert not finished.ok
    return explain(finished)


def test_a_conflict_names_both_requirements(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("transformers", "4.52.4", requires=["huggingface-hub>=0.30,<1"]))
    index.add(wheels.wheel("transformers", "5.8.1", requires=["huggingface-hub>=1,<2"]))
    index.add(wheels.wheel("huggingface-hub", "0.36.0"))
    index.add(wheels.wheel("huggingface-hub", "1.3.0"))
    result = why(uv, ["transformers==4.52.4", "huggingface-hub>=1"], index)
    assert (result.stage, result.reason) == ("resolve", Reason.CONFLICT)
    assert "depends on huggingface-hub>=0.30,<1 and you require transformers==4.52.4" in result.message
    assert "you require huggingface-hub>=1" in result.message
    assert not result.message.startswith(("error", "No solution"))


def test_a_dependency_that_no_release_meets_is_a_conflict(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("alpha", "1.0", requires=["beta>=3"]))
    index.add(wheels.wheel("beta", "2.0"))
    assert why(uv, ["alpha"], index).reason is Reason.CONFLICT


def test_two_dependencies_of_dependencies(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("one", "1.0", requires=["beta<2"]))
    index.add(wheels.wheel("two", "1.0", requires=["beta>=2"]))
    index.add(wheels.wheel("beta", "1.0"))
    index.add(wheels.wheel("beta", "2.0"))
    result = why(uv, ["one", "two"], index)
    assert result.reason is Reason.CONFLICT
    assert "beta<2" in result.message and "beta>=2" in result.message


def test_another_python_is_a_conflict(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("alpha", "1.0", requires_python=">=3.99"), requires_python=">=3.99")
    result = why(uv, ["alpha"], index)
    assert result.reason is Reason.CONFLICT and "Python>=3.99" in result.message


@pytest.mark.parametrize("line", ["alpha==9.9", "alpha>=2", "nosuch"])
def test_no_such_version(uv: Uv, index: Index, wheels: Wheels, line: str) -> None:
    index.add(wheels.wheel("alpha", "1.0"))
    result = why(uv, [line], index)
    assert result.reason is Reason.NO_SUCH_VERSION
    assert line in result.message


def test_no_such_version_beside_a_requirement_that_could_be_met(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("alpha", "1.0", requires=["beta"]))
    index.add(wheels.wheel("beta", "1.0"))
    assert why(uv, ["alpha", "beta==9"], index).reason is Reason.NO_SUCH_VERSION


def test_no_release_before_the_date(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("alpha", "1.0"))
    result = why(uv, ["alpha"], index, "--exclude-newer", "2020-01-01T00:00:00Z")
    assert result.reason is Reason.NO_SUCH_VERSION and "exclude-newer" in result.message


def test_no_wheel_for_this_machine(uv: Uv, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("alpha", "1.0", tag="cp311-cp311-win_amd64"))
    assert why(uv, ["alpha"], index).reason is Reason.NO_SUCH_VERSION


def test_a_folder_of_wheels_without_it(uv: Uv, wheels: Wheels) -> None:
    wheels.wheel("alpha", "1.0")
    choice = IndexChoice(find_links=(str(wheels.folder),), offline=True)
    assert why(uv, ["alpha==2"], choice).reason is Reason.NO_SUCH_VERSION


def test_a_port_where_nobody_listens(uv: Uv) -> None:
    result = why(uv, ["alpha"], IndexChoice(urls=(refusing_url(),)))
    assert result.reason is Reason.INDEX_UNREACHABLE
    assert "Connection refused" in result.message and "127.0.0.1" in result.message


@pytest.mark.parametrize(("mode", "words"), [("hangs", "timed out"), ("drops", "reset")])
def test_an_index_that_breaks_off(uv: Uv, index: Index, mode: str, words: str) -> None:
    index.mode = mode  # type: ignore[assignment]
    result = why(uv, ["alpha"], index)
    assert result.reason is Reason.INDEX_UNREACHABLE and words in result.message


def test_an_index_in_trouble(uv: Uv, index: Index) -> None:
    index.status = 503
    result = why(uv, ["alpha"], index)
    assert result.reason is Reason.INDEX_UNREACHABLE and "503" in result.message


def test_a_host_that_does_not_exist(uv: Uv) -> None:
    result = why(uv, ["alpha"], IndexChoice(urls=("http://nowhere.invalid/simple",)))
    assert result.reason is Reason.INDEX_UNREACHABLE and "nowhere.invalid" in result.message


def test_refused_credentials(uv: Uv, make_index: Callable[..., Index]) -> None:
    index = make_index(credentials=("bob", "s3cret-word"))
    for url in (index.url, index.url.replace("http://", "http://bob:wr0ng-word@")):
        result = why(uv, ["alpha"], IndexChoice(urls=(url,)))
        assert result.reason is Reason.CREDENTIALS
        assert "401" in result.message and "wr0ng" not in result.message


def test_forbidden(uv: Uv, index: Index) -> None:
    index.status = 403
    assert why(uv, ["alpha"], index).reason is Reason.CREDENTIALS


def test_offline_with_nothing_in_the_cache(uv: Uv, index: Index) -> None:
    result = why(uv, ["alpha"], IndexChoice(urls=(index.url,), offline=True))
    assert result.reason is Reason.OFFLINE
    assert index.requests == []


def test_a_source_that_does_not_build(uv: Uv, index: Index, wheels: Wheels) -> None:
    # The build's own output must not be taken for uv's.
    index.add(wheels.sdist("alpha", "1.0", build_imports=["nosuchmodule  # Connection refused, 401 Unauthorized"]))
    result = why(uv, ["alpha"], index)
    assert (result.stage, result.reason) == ("build", Reason.BUILD)
    assert "No module named 'nosuchmodule'" in result.message


def test_a_git_server_that_is_away(uv: Uv, index: Index) -> None:
    port = refusing_url().removesuffix("/simple")
    assert why(uv, [f"x @ git+{port}/x.git"], index).reason is Reason.INDEX_UNREACHABLE


def test_a_local_tree_that_is_not_there(uv: Uv, index: Index, tmp_path: Path) -> None:
    result = why(uv, [f"x @ {(tmp_path / 'gone').as_uri()}"], index)
    assert result.reason is Reason.NO_SUCH_VERSION and "gone" in result.message


def test_a_broken_wheel_is_a_failed_build(uv: Uv, index: Index, wheels: Wheels, tmp_path: Path) -> None:
    index.add(corrupt(wheels.wheel("broken", "1.0")))
    arguments = ["pip", "install", "--target", tmp_path / "t", "--python", sys.executable, "broken"]
    finished = uv.run(arguments, index=IndexChoice(urls=(index.url,)), timeout=60)
    assert not finished.ok
    result = explain(finished, "build")
    assert (result.stage, result.reason) == ("build", Reason.BUILD) and "broken" in result.message


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 64 KiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a filesystem small enough to be full")
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"this machine mounts no tmpfs: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_the_machines_fault(small_disk: Path, index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("big", "1.0", files={"big.bin": os.urandom(200_000)}))
    arguments = ["pip", "install", "--target", small_disk / "t", "--python", sys.executable, "big"]
    finished = Uv(small_disk / "cache").run(arguments, index=IndexChoice(urls=(index.url,)), timeout=60)
    assert not finished.ok
    with pytest.raises(InfrastructureError, match="disk is full"):
        explain(finished)


@pytest.mark.parametrize(
    "finished",
    [
        Finished(-9, "", "", 1.0),
        Finished(-15, "", "error: x", 1.0, "stop"),
        Finished(-15, "", "error: x", 9.0, "timeout"),
    ],
)
def test_a_uv_that_was_killed_says_nothing_of_the_cell(finished: Finished) -> None:
    with pytest.raises(InfrastructureError):
        explain(finished)


def test_anything_else_is_told_in_uvs_words() -> None:
    result = explain(Finished(2, "", "warning: y\nerror: something new\n  cause: nobody knows\n", 1.0))
    assert (result.reason, result.message) == (Reason.UV, "something new\nnobody knows")


def test_the_message_of_a_run_without_an_error_line_is_all_of_it() -> None:
    assert message("  one\n\n two ") == "one\ntwo"


def test_trees_are_built_by_the_support_code(tmp_path: Path, uv: Uv, index: Index) -> None:
    source = tree(tmp_path / "x", "x", "1.0")
    assert run(uv, [f"x @ {source.as_uri()}"], IndexChoice(urls=(index.url,))).ok

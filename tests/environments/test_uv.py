"""Running uv: what it sees of the parent, what is seen of its credentials, and that nothing is left running."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.environments.uv import (
    Finished,
    Uv,
    credentials_of,
    find_uv,
    index_environment,
    redacted,
    uv_environment,
)
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import IndexChoice
from tests.support.index import Index
from tests.support.wheels import Wheels

COMPILE = ["pip", "compile", "-", "--no-header", "--python", sys.executable]


def test_the_parents_settings_do_not_decide(
    uv: Uv, index: Index, wheels: Wheels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add(wheels.wheel("alpha", "1.0"))
    index.add(wheels.wheel("alpha", "2.0"))
    (tmp_path / "constraints.txt").write_text("alpha<2\n")
    (tmp_path / "uv.toml").write_text('resolution = "lowest"\n')
    for name, value in {
        "UV_CONSTRAINT": str(tmp_path / "constraints.txt"),
        "UV_EXCLUDE_NEWER": "2001-01-01",
        "UV_EXTRA_INDEX_URL": "http://127.0.0.1:1/simple",
        "UV_RESOLUTION": "lowest",
        "UV_CONFIG_FILE": str(tmp_path / "uv.toml"),
        "PIP_INDEX_URL": "http://127.0.0.1:1/simple",
        "VIRTUAL_ENV": "/nowhere",
        "CONDA_PREFIX": "/nowhere",
        "PYTHONPATH": "/nowhere",
        "PYTHONHOME": "/nowhere",
        "COLUMNS": "20",
    }.items():
        monkeypatch.setenv(name, value)
    choice = IndexChoice(urls=(index.url,))
    finished = uv.run(COMPILE, index=choice, stdin="alpha", cwd=tmp_path)
    assert finished.ok, finished.stderr
    assert finished.stdout.startswith("alpha==2.0")
    # Its words are not broken to the parent's terminal.
    words = uv.run(COMPILE, index=choice, stdin="alpha==3").stderr
    assert "there is no version of alpha==3 and you require alpha==3, we can conclude" in words


def test_what_says_how_to_reach_things_is_kept() -> None:
    parent = {
        "PATH": "/bin",
        "HTTPS_PROXY": "http://proxy:1",
        "SSL_CERT_FILE": "/ca.pem",
        "UV_CACHE_DIR": "/cache",
        "UV_HTTP_TIMEOUT": "300",
        "CUDA_HOME": "/usr/local/cuda",
        "CC": "gcc",
    }
    seen = uv_environment(parent, defaults={"UV_HTTP_TIMEOUT": "15", "UV_HTTP_RETRIES": "1"})
    assert parent.items() <= seen.items()
    assert seen["UV_HTTP_RETRIES"] == "1" and seen["UV_PYTHON_DOWNLOADS"] == "never"
    assert uv_environment(parent, cache_dir=Path("/own"))["UV_CACHE_DIR"] == "/own"
    assert uv_environment({"UV_PYTHON_DOWNLOADS": "manual"})["UV_PYTHON_DOWNLOADS"] == "manual"


@given(st.sampled_from(["UV_", "PIP_", "CONDA_", "PYTHON", "VIRTUAL_ENV"]), st.text("ABCXYZ_", min_size=1, max_size=12))
def test_other_variables_of_these_tools_are_dropped(prefix: str, rest: str) -> None:
    name = prefix + rest
    kept = uv_environment({name: "1", "PATH": "/bin"})
    assert name not in kept


def test_the_order_of_indexes_is_their_priority(uv: Uv, make_index: Callable[..., Index], tmp_path: Path) -> None:
    first, second = make_index(), make_index()
    one, other = Wheels(tmp_path / "1"), Wheels(tmp_path / "2")
    first.add(one.wheel("alpha", "1.0"))
    second.add(other.wheel("alpha", "2.0"))
    second.add(other.wheel("beta", "1.0"))
    choice = IndexChoice(urls=(first.url, second.url))
    finished = uv.run([*COMPILE, "--no-annotate"], index=choice, stdin="alpha\nbeta")
    assert finished.stdout.split() == ["alpha==1.0", "beta==1.0"]


def test_without_urls_the_users_own_default_index_serves(
    uv: Uv, index: Index, wheels: Wheels, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add(wheels.wheel("alpha", "1.0"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    assert uv.run(COMPILE, index=IndexChoice(), stdin="alpha").ok
    assert index_environment(IndexChoice(), {})["UV_DEFAULT_INDEX"] == "https://pypi.org/simple"


def test_a_variant_is_not_left_to_uv(uv: Uv) -> None:
    assert index_environment(IndexChoice(torch_backend="cu128"), {})["UV_TORCH_BACKEND"] == "cu128"
    with pytest.raises(ValueError, match="auto"):
        uv.run(["--version"], index=IndexChoice(torch_backend="auto"))


def children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


@pytest.fixture(autouse=True)
def _none_is_left() -> Iterator[None]:
    """Tests of other files may have left multiprocessing's helpers, which live as long as this process."""
    before = children()
    yield
    assert children() <= before


def hung(uv: Uv, index: Index, **options: object) -> tuple[Finished, float, str]:
    """Runs into an index that never answers; returns what all uv processes had on their command lines meanwhile."""
    index.mode = "hangs"
    seen: list[str] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            for process in children():
                try:
                    seen.extend(process.cmdline())
                except psutil.Error:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.monotonic()
    try:
        choice = IndexChoice(urls=(index.url_with_credentials if index.credentials else index.url,))
        finished = uv.run(COMPILE, index=choice, stdin="alpha", **options)  # type: ignore[arg-type]
    finally:
        done.set()
        watcher.join()
    return finished, time.monotonic() - began, "\0".join(seen)


def test_it_is_killed_when_its_time_is_up(uv: Uv, index: Index) -> None:
    finished, seconds, _ = hung(uv, index, timeout=0.5)
    assert finished.ended == "timeout" and not finished.ok and finished.status < 0
    assert 0.5 <= seconds < 2  # the polite signal is enough


def test_it_is_killed_when_the_run_stops(uv: Uv, index: Index) -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    finished, seconds, _ = hung(uv, index, stop=stop)
    assert finished.ended == "stop" and seconds < 3.5


def test_it_is_killed_when_an_exception_arrives(uv: Uv, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting(threading.Event):
        def is_set(self) -> bool:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hung(uv, index, stop=Interrupting())


def test_credentials_are_on_no_command_line_and_in_no_output(uv: Uv, make_index: Callable[..., Index]) -> None:
    index = make_index(credentials=("bob", "s3cret-word"))
    finished, _, lines = hung(uv, index, timeout=1.0, env={"RUST_LOG": "uv=trace"})
    assert "compile" in lines
    assert "s3cret-word" not in lines + finished.stdout + finished.stderr
    index.mode = "serves"
    wrong = IndexChoice(urls=(index.url_with_credentials.replace("s3cret", "wr0ng"),))
    refused = uv.run([*COMPILE, "--verbose"], index=wrong, stdin="alpha")
    assert not refused.ok and "wr0ng" not in refused.stderr + refused.stdout


def test_a_build_may_print_its_variables(uv: Uv, wheels: Wheels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_very_secret")
    monkeypatch.setenv("UV_INDEX_CORP_PASSWORD", "s3cret-word")
    wheels.sdist("leaky", "1.0", build_imports=["os; raise SystemExit(str(dict(os.environ)))"])
    finished = uv.run([*COMPILE], index=IndexChoice(find_links=(str(wheels.folder),), offline=True), stdin="leaky")
    assert not finished.ok and "'HF_TOKEN': '***'" in finished.stderr
    assert "hf_very_secret" not in finished.stderr and "s3cret-word" not in finished.stderr


WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.!$", min_size=4, max_size=20)


@given(WORDS, WORDS, st.sampled_from(["", "/", "/simple", "/a/b?c=d"]))
def test_no_credential_of_a_url_survives(user: str, password: str, path: str) -> None:
    url = f"https://{quote(user, safe='')}:{quote(password, safe='')}@pypi.example{path}"
    text = redacted(f"error: Failed to fetch `{url}` (password {password})", credentials_of([url]))
    assert password not in text.replace("error: Failed to fetch", "").replace("(password ", "")


def test_other_urls_in_its_words_lose_theirs_too() -> None:
    assert redacted("see https://bob:pw@example.org/x and git@example.org") == (
        "see https://***@example.org/x and git@example.org"
    )


def test_a_uv_that_cannot_be_started_says_so(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="could not be started"):
        Uv(binary=tmp_path / "nothing").run(["--version"])


def test_the_seconds_it_took(uv: Uv) -> None:
    finished = uv.run(["--version"])
    assert finished.ok and finished.stdout.startswith("uv ") and 0 < finished.seconds < 30


@pytest.mark.parametrize(("said", "named"), [("uv 0.12.24 (x86_64)", "0.12.24"), ("", "no uv that answers")])
def test_a_uv_that_is_too_old_is_refused(
    said: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "uv"
    old.write_text(f"#!/bin/sh\necho '{said}'\n")
    old.chmod(0o755)
    monkeypatch.setattr("uv.find_uv_bin", lambda: str(old))
    with pytest.raises(InfrastructureError, match=r"0\.13 is needed") as refused:
        find_uv()
    assert named in str(refused.value) and "--upgrade uv" in str(refused.value)

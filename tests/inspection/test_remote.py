"""Wheels on an index that serves parts of files, serves none, tears, lies, refuses, or is slow."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bisect_env.environments.index import File, SimpleIndex
from bisect_env.errors import InfrastructureError
from bisect_env.inspection import remote
from bisect_env.inspection.installed import running_standard_library
from bisect_env.inspection.kept import FOLDER, forget, kept_bytes
from bisect_env.inspection.remote import Remote
from bisect_env.inspection.traffic import Traffic
from bisect_env.inspection.wheels import WheelSources, fetch_ahead
from bisect_env.matrix.cells import IndexChoice
from tests.support.index import Index
from tests.support.wheels import Wheels

BENEATH = running_standard_library()
NOISE = random.Random(1).randbytes(3_000_000)
"""Does not compress: stands for the libraries, beside which modules are small."""


def big(wheels: Wheels) -> Path:
    modules = {f"lib/m{number:03}.py": f"number = {number}\n" + "# text\n" * number for number in range(60)}
    files: dict[str, str | bytes] = {"lib/__init__.py": "", **modules, "lib/data.bin": NOISE, "lib/z/last.py": "end\n"}
    return wheels.wheel("lib", "1.0", files=files)


class Opened:
    """One command's view of one wheel."""

    def __init__(self, index: Index, root: Path, offline: bool = False, url: str = "", **options: bool) -> None:
        self.traffic = Traffic()
        choice = IndexChoice(urls=(url or index.url,), offline=offline)
        files = SimpleIndex(5.0).files("lib", IndexChoice(urls=(url or index.url,)))
        assert isinstance(files, tuple)
        (self.file,) = files
        self.remote = Remote(choice, root, self.traffic, **options)

    def open(self) -> WheelSources:
        return self.remote.open(self.file, "lib 1.0", BENEATH)


def text(place: WheelSources, name: str) -> str:
    module = place.module(name)
    assert module is not None
    return module.text


def left(root: Path) -> list[str]:
    """Files that are neither whole pieces nor lists."""
    return [path.name for path in root.rglob("*") if path.is_file() and path.name.startswith((".tmp", "tmp"))]


def test_modules_come_in_parts_and_are_kept(wheels: Wheels, index: Index, tmp_path: Path) -> None:
    index.add(big(wheels))
    index.parts = True
    first = Opened(index, tmp_path / "root")
    place = first.open()
    assert text(place, "lib.m007").startswith("number = 7\n") and text(place, "lib.z.last") == "end\n"
    assert first.traffic.versions == 1 and first.traffic.requests == len(index.sent)
    assert first.traffic.bytes == sum(index.sent) < 150_000
    assert "lib/m007.py" in place.digests() and place.submodules("lib.z") == ("last",)
    asked = len(index.sent)
    assert text(place, "lib.m008").startswith("number = 8\n")
    assert len(index.sent) == asked, "a neighbour had come along"
    second = Opened(index, tmp_path / "root", offline=True)
    assert text(second.open(), "lib.m007").startswith("number = 7\n")
    assert (second.traffic.requests, len(index.sent)) == (0, asked)
    assert "kept" in str(second.traffic) and "1 version, 0.1 MB in 2 requests" in str(first.traffic)


def test_several_that_are_known_come_at_once(wheels: Wheels, index: Index, tmp_path: Path) -> None:
    index.add(big(wheels))
    index.parts = True
    place = Opened(index, tmp_path / "root").open()
    before = len(index.sent)
    fetch_ahead(place, [f"lib.m{number:03}" for number in range(60)] + ["lib.z.last", "lib.nothing", "json"])
    asked = len(index.sent) - before
    assert asked <= 2
    for number in range(60):
        assert text(place, f"lib.m{number:03}").startswith(f"number = {number}\n")
    assert len(index.sent) - before == asked


def test_offline_and_not_kept(wheels: Wheels, index: Index, tmp_path: Path) -> None:
    index.add(big(wheels))
    with pytest.raises(InfrastructureError, match=r"lib-1.0-py3-none-any.whl on 127.* offline.*not read before"):
        Opened(index, tmp_path / "root", offline=True).open()


def test_without_parts_it_comes_whole_once_and_its_modules_stay(wheels: Wheels, index: Index, tmp_path: Path) -> None:
    path = index.add(big(wheels))
    first = Opened(index, tmp_path / "root")
    assert text(first.open(), "lib.m007").startswith("number = 7\n")
    assert "fetched whole (3.0 MB)" in first.traffic.notes[0]
    assert first.traffic.bytes == path.stat().st_size
    assert kept_bytes(tmp_path / "root") < 100_000 and left(tmp_path / "root") == []
    again = Opened(index, tmp_path / "root", offline=True)
    place = again.open()
    assert all(text(place, f"lib.m{number:03}") for number in range(60)) and again.traffic.notes == []


def test_a_large_one_comes_whole_only_when_asked_to(
    wheels: Wheels, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "LARGEST_WHOLE", 2_000_000)
    index.add(big(wheels))
    with pytest.raises(InfrastructureError, match=r"has 3 MB.*(?s:.*)--download"):
        Opened(index, tmp_path / "root").open()
    assert kept_bytes(tmp_path / "root") == 0 and left(tmp_path / "root") == []
    assert text(Opened(index, tmp_path / "root", download=True).open(), "lib.z.last") == "end\n"


@pytest.mark.parametrize("parts", [True, False])
def test_a_torn_answer(wheels: Wheels, index: Index, tmp_path: Path, parts: bool) -> None:
    index.add(big(wheels))
    index.parts, index.cuts = parts, 1 if parts else 0
    opened = Opened(index, tmp_path / "root")
    assert text(opened.open(), "lib.z.last") == "end\n"
    forget(tmp_path / "root")
    index.cuts = 9
    with pytest.raises(InfrastructureError, match=r"lib-1.0.* cannot be read: .*cut off"):
        Opened(index, tmp_path / "root").open()
    index.cuts = 0
    assert text(Opened(index, tmp_path / "root").open(), "lib.z.last") == "end\n"
    assert left(tmp_path / "root") == []


@pytest.mark.parametrize("parts", [True, False])
@pytest.mark.parametrize("lie", [-1000, 1000, 10_000_000])
def test_an_index_that_tells_another_size(wheels: Wheels, index: Index, tmp_path: Path, parts: bool, lie: int) -> None:
    index.add(big(wheels))
    index.parts, index.lie = parts, lie
    with pytest.raises(InfrastructureError, match=r"cannot be read: .*bytes"):
        Opened(index, tmp_path / "root").open()
    assert kept_bytes(tmp_path / "root") == 0 and left(tmp_path / "root") == []


def test_a_whole_file_that_is_not_what_the_index_says(wheels: Wheels, index: Index, tmp_path: Path) -> None:
    path = index.add(big(wheels))
    opened = Opened(index, tmp_path / "root")
    data = bytearray(path.read_bytes())
    data[2_000_000] ^= 1
    path.write_bytes(data)
    with pytest.raises(InfrastructureError, match="its SHA-256 is"):
        opened.open()
    assert kept_bytes(tmp_path / "root") == 0


@pytest.mark.parametrize("parts", [True, False])
def test_a_wheel_that_is_cut_short_on_the_index(wheels: Wheels, index: Index, tmp_path: Path, parts: bool) -> None:
    path = big(wheels)
    path.write_bytes(path.read_bytes()[:-100])
    index.add(path)
    index.parts = parts
    with pytest.raises(InfrastructureError, match="damaged or cut short"):
        Opened(index, tmp_path / "root").open()
    assert left(tmp_path / "root") == []


def test_a_server_that_refuses_drops_or_is_slow(
    wheels: Wheels, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "TIMEOUT", 0.5)
    index.add(big(wheels))
    index.parts = True
    opened = Opened(index, tmp_path / "root")
    index.status = 404
    with pytest.raises(InfrastructureError, match="HTTP 404"):
        opened.open()
    index.status, index.mode = None, "drops"
    with pytest.raises(InfrastructureError, match="the server cannot be reached"):
        opened.open()
    index.mode = "hangs"
    began = time.monotonic()
    with pytest.raises(InfrastructureError, match="did not answer in time"):
        opened.open()
    assert time.monotonic() - began < 3
    index.stop()
    with pytest.raises(InfrastructureError, match="refuses connections"):
        opened.open()


def test_credentials_are_used_and_never_shown(
    wheels: Wheels, make_index: Callable[..., Index], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make_index(credentials=("me", "pa55word"))
    index.add(big(wheels))
    index.parts = True
    opened = Opened(index, tmp_path / "root", url=index.url_with_credentials)
    place = opened.open()
    assert text(place, "lib.z.last") == "end\n"
    index.credentials = ("me", "another")
    with pytest.raises(InfrastructureError, match="credentials were refused") as caught:
        place.module("lib.m030")
    shown = f"{caught.value} {opened.file} {place.place} {opened.traffic} {opened.traffic.notes}"
    assert "pa55word" not in shown
    assert not any(b"pa55word" in path.read_bytes() for path in (tmp_path / "root").rglob("*") if path.is_file())
    assert "pa55word" not in "".join(str(path) for path in (tmp_path / "root").rglob("*"))
    monkeypatch.setenv("UV_INDEX_MINE_USERNAME", "me")
    monkeypatch.setenv("UV_INDEX_MINE_PASSWORD", "another")
    named = Opened(index, tmp_path / "other", url=f"mine={index.url}")
    assert text(named.open(), "lib.z.last") == "end\n"


def test_what_was_kept_and_is_damaged_is_fetched_again(wheels: Wheels, index: Index, tmp_path: Path) -> None:
    index.add(big(wheels))
    index.parts = True
    assert text(Opened(index, tmp_path / "root").open(), "lib.m007")
    pieces = [path for path in (tmp_path / "root" / FOLDER / "wheels").rglob("*") if path.is_file()]
    for path in pieces:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    assert text(Opened(index, tmp_path / "root").open(), "lib.m007").startswith("number = 7\n")
    place = Opened(index, tmp_path / "root").open()
    assert text(place, "lib.m006").startswith("number = 6\n")
    for path in (tmp_path / "root" / FOLDER / "wheels").rglob("*-*"):
        path.write_bytes(path.read_bytes()[:5])
    assert text(place, "lib.m007").startswith("number = 7\n"), "cut short after it was proved"
    assert forget(tmp_path / "root") > 0, "another process cleans up"
    assert text(place, "lib.m008").startswith("number = 8\n")


def test_a_folder_that_cannot_be_written_to(wheels: Wheels, index: Index, tmp_path: Path) -> None:
    index.add(big(wheels))
    index.parts = True
    (tmp_path / "root").write_text("a file")
    assert text(Opened(index, tmp_path / "root").open(), "lib.m007").startswith("number = 7\n")


READER = """
import sys
from pathlib import Path
from bisect_env.inspection.origins import open_origins
from bisect_env.matrix.cells import IndexChoice
(place,) = open_origins(["lib==1.0"], "lib", IndexChoice(urls=(sys.argv[1],)), Path(sys.argv[2]))
for number in range(0, 60, int(sys.argv[3])):
    assert place.module(f"lib.m{number:03}").text.startswith(f"number = {number}\\n")
print("read")
"""


def reader(index: Index, root: Path, step: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", READER, index.url, root, str(step)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_processes_at_once(wheels: Wheels, index: Index, tmp_path: Path) -> None:
    index.add(big(wheels))
    index.parts = True
    running = [reader(index, tmp_path / "root", step) for step in (1, 2, 3)]
    for process in running:
        assert process.communicate(timeout=60) == ("read\n", "")
    assert left(tmp_path / "root") == []
    asked = len(index.sent)
    index.stop()
    later = reader(index, tmp_path / "root", 1)
    assert later.communicate(timeout=60) == ("read\n", "") and len(index.sent) == asked


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_leaves_nothing_behind(
    wheels: Wheels, index: Index, tmp_path: Path, number: signal.Signals
) -> None:
    index.add(big(wheels))
    index.pause = 0.05
    process = reader(index, tmp_path / "root", 1)
    deadline = time.monotonic() + 20
    while not any("/files/" in path for _, path in index.requests) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    assert process.poll() is None
    os.kill(process.pid, number)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert left(tmp_path / "root") == [] and not list((tmp_path / "root" / FOLDER).glob("wheels/*"))


def test_a_wheel_without_a_hash_is_known_by_its_address(wheels: Wheels, index: Index, tmp_path: Path) -> None:
    index.add(big(wheels))
    index.parts = True
    opened = Opened(index, tmp_path / "root")
    bare = File(opened.file.name, "1.0", True, None, None, False, None, opened.file.url)
    assert text(opened.remote.open(bare, "lib", BENEATH), "lib.z.last") == "end\n"
    again = Opened(index, tmp_path / "root", offline=True)
    assert text(again.remote.open(bare, "lib", BENEATH), "lib.z.last") == "end\n"

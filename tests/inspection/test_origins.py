"""From words to places."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.inspection import listing
from bisect_env.inspection.changes import changed_files
from bisect_env.inspection.kept import keep_page, load_page
from bisect_env.inspection.origins import open_origins
from bisect_env.inspection.records import Sources
from bisect_env.inspection.traffic import Traffic
from bisect_env.matrix.cells import IndexChoice
from tests.support.index import Index, refusing_url
from tests.support.wheels import Wheels

VERSIONS = ("1.0.0", "1.1.0", "1.1.1", "1.2.0")


def offer(wheels: Wheels, index: Index, *versions: str, **options: str) -> None:
    for version in versions:
        files = {"lib/__init__.py": f"version = {version!r}\n", "lib/same.py": "x\n", f"lib/only{version[2]}.py": ""}
        index.add(wheels.wheel("lib", version, files=files, **options))
    index.parts = True


@pytest.fixture
def ask(tmp_path: Path, index: Index) -> Callable[..., tuple[Sources, ...]]:
    def of(*words: str, choice: IndexChoice | None = None, **options: object) -> tuple[Sources, ...]:
        return open_origins(
            words,
            "lib",
            choice or IndexChoice(urls=(index.url,)),
            tmp_path / "root",
            **options,  # type: ignore[arg-type]
        )

    return of


def text(place: Sources, name: str = "lib") -> str:
    module = place.module(name)
    assert module is not None
    return module.text


def test_places_in_the_order_of_the_words(
    wheels: Wheels, index: Index, ask: Callable[..., tuple[Sources, ...]]
) -> None:
    offer(wheels, index, *VERSIONS)
    here = wheels.folder / "lib-1.0.0-py3-none-any.whl"
    traffic = Traffic()
    places = ask("lib==1.2.0", str(here), "lib==1.0..1.1", sys.executable, traffic=traffic)
    assert [place.label for place in places[:3]] == ["lib 1.2.0", f"lib 1.0.0 ({here})", places[2].label]
    assert places[2].label.startswith("lib 1.0.0 (lib-1.0.0-py3-none-any.whl on 127") and places[3].label == "lib 1.1.1"
    assert [text(place) for place in places[:4]] == [f"version = '{v}'\n" for v in ("1.2.0", "1.0.0", "1.0.0", "1.1.1")]
    assert text(places[4], "json") and traffic.versions == 3 and traffic.notes == []
    assert [place.label for place in ask("lib==1.0...1.1.0")] == ["lib 1.0.0", "lib 1.1.0"]
    again = ask("lib==1.2.0", "lib==1.2.0")
    assert len({place.label for place in again}) == 2


def test_versions_are_opened_at_the_same_time(
    wheels: Wheels, index: Index, ask: Callable[..., tuple[Sources, ...]]
) -> None:
    offer(wheels, index, *VERSIONS)
    index.pause = 0.4
    began = time.monotonic()
    assert len(ask("lib==1...1")) == 4
    assert time.monotonic() - began < 1.5


def test_what_changed_between_two_versions_is_known_without_reading(
    wheels: Wheels, index: Index, ask: Callable[..., tuple[Sources, ...]], tmp_path: Path
) -> None:
    offer(wheels, index, "1.0.0", "1.2.0")
    before, after = ask("lib==1.0.0", "lib==1.2.0")
    asked = len(index.requests)
    assert changed_files(before, after) == {"lib/__init__.py", "lib/only0.py", "lib/only2.py"}
    assert changed_files(before, before) == frozenset()
    assert len(index.requests) == asked


def test_a_version_that_is_not_there(wheels: Wheels, index: Index, ask: Callable[..., tuple[Sources, ...]]) -> None:
    offer(wheels, index, *VERSIONS)
    index.add(wheels.sdist("lib", "0.9"))
    with pytest.raises(BadInput, match=r"(?s)has no lib 1.1.5.*1.1.1 or 1.2.0, which are next to it"):
        ask("lib==1.1.5")
    with pytest.raises(BadInput, match=r"lib 0.9 is there as source only \(lib-0.9.tar.gz, 0.0 MB\)"):
        ask("lib==0.9")
    with pytest.raises(BadInput, match="has no distribution libb"):
        ask("libb==1.0")
    with pytest.raises(BadInput, match="no version was released"):
        ask("lib==3..4")


def test_words_that_name_nothing(ask: Callable[..., tuple[Sources, ...]], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"(?s)torch: no file or folder.*torch==VERSION"):
        ask("torch")
    with pytest.raises(BadInput, match=r"(?s)sh: no file or folder.*such as /.*/sh"):
        ask("sh")
    with pytest.raises(BadInput, match=r"\.venv: no file or folder") as told:
        ask(".venv")
    assert ".venv==VERSION" not in str(told.value)
    with pytest.raises(BadInput, match="no such file"):
        ask("./gone-1-py3-none-any.whl")
    with pytest.raises(BadInput, match="no such file or folder"):
        ask(str(tmp_path / "env"))
    with pytest.raises(BadInput, match="'new' is no version"):
        ask("lib==1", python="new")


def test_yanked_ones_and_pre_releases_only_when_named(
    wheels: Wheels, index: Index, ask: Callable[..., tuple[Sources, ...]]
) -> None:
    offer(wheels, index, "1.0.0", "1.3.0rc1")
    index.add(wheels.wheel("lib", "1.1.0"), yanked="broken")
    assert [place.label for place in ask("lib==1..1")] == ["lib 1.0.0"]
    assert [place.label for place in ask("lib==1.1.0", "lib==1.3.0rc1")] == ["lib 1.1.0", "lib 1.3.0rc1"]


def test_a_wheel_for_another_machine_is_read_and_told(
    wheels: Wheels, index: Index, ask: Callable[..., tuple[Sources, ...]]
) -> None:
    offer(wheels, index, "1.0.0", tag="cp312-cp312-win_amd64")
    traffic = Traffic()
    (place,) = ask("lib==1.0.0", traffic=traffic, python="3.12")
    assert "1.0.0" in text(place)
    assert traffic.notes == [
        "lib 1.0.0 has no wheel for Python 3.12 here; lib-1.0.0-cp312-cp312-win_amd64.whl is read."
    ]


def test_a_second_command_needs_no_index(
    wheels: Wheels, index: Index, ask: Callable[..., tuple[Sources, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(wheels, index, *VERSIONS)
    for place in ask("lib==1..1"):
        text(place)
    asked = len(index.requests)
    assert [text(place) for place in ask("lib==1..1", "lib==1.1.1")] and len(index.requests) == asked
    index.stop()
    monkeypatch.setattr(listing, "FRESH", timedelta(0))
    traffic = Traffic()
    assert len(ask("lib==1..1", traffic=traffic)) == 3
    assert len(traffic.notes) == 1 and "refuses connections" in traffic.notes[0]
    offline = IndexChoice(urls=(index.url,), offline=True)
    assert len(ask("lib==1..1", choice=offline)) == 3
    with pytest.raises(InfrastructureError, match="offline"):
        ask("other==1", choice=offline)


def test_an_old_list_is_asked_for_again(
    wheels: Wheels, index: Index, ask: Callable[..., tuple[Sources, ...]], tmp_path: Path
) -> None:
    offer(wheels, index, "1.0.0")
    assert len(ask("lib==1..1")) == 1
    offer(wheels, index, "1.2.0")
    assert len(ask("lib==1..1")) == 1
    assert [place.label for place in ask("lib==1.2.0")] == ["lib 1.2.0"], "a version that the list lacks is asked for"
    assert len(ask("lib==1..1")) == 2
    kept = load_page(tmp_path / "root", (index.url,), "lib")
    assert kept is not None and datetime.now(UTC) - kept[0] < timedelta(minutes=1)
    assert {file.version for file in kept[1]} == {"1.0.0", "1.2.0"} and all(file.uploaded for file in kept[1])


def test_lists_with_secrets_in_their_addresses_are_not_kept(
    wheels: Wheels, index: Index, ask: Callable[..., tuple[Sources, ...]], tmp_path: Path
) -> None:
    offer(wheels, index, "1.0.0")
    ask("lib==1.0.0")
    kept = load_page(tmp_path / "root", (index.url,), "lib")
    assert kept is not None
    signed = tuple(replace(file, url=file.url + "?signature=s3cret") for file in kept[1])
    keep_page(tmp_path / "other", (index.url,), "lib", signed)
    assert load_page(tmp_path / "other", (index.url,), "lib") is None
    with_user = tuple(replace(file, url=file.url.replace("//", "//me:s3cret@")) for file in kept[1])
    keep_page(tmp_path / "other", (index.url.replace("//", "//me:s3cret@"),), "lib", with_user)
    assert load_page(tmp_path / "other", (index.url,), "lib") is not None
    assert not any(b"s3cret" in path.read_bytes() for path in (tmp_path / "other").rglob("*.json"))
    page = next((tmp_path / "other").rglob("*.json"))
    page.write_text('{"asked": 1}')
    assert load_page(tmp_path / "other", (index.url,), "lib") is None


def test_folders_and_file_indexes(wheels: Wheels, ask: Callable[..., tuple[Sources, ...]], tmp_path: Path) -> None:
    path = wheels.wheel("lib", "1.0.0")
    page = tmp_path / "simple" / "lib"
    page.mkdir(parents=True)
    (page / "index.html").write_text(f'<a href="{path.as_uri()}">{path.name}</a>')
    for choice in (
        IndexChoice(urls=((tmp_path / "simple").as_uri(),)),
        IndexChoice(find_links=(str(wheels.folder),), offline=True),
        IndexChoice(urls=((tmp_path / "simple").as_uri(),), offline=True),
    ):
        (place,) = ask("lib==1.0.0", choice=choice)
        assert "1.0.0" in text(place) and place.label == "lib 1.0.0"
    assert not (tmp_path / "root").exists()


def test_an_index_that_does_not_answer(
    ask: Callable[..., tuple[Sources, ...]], make_index: Callable[..., Index]
) -> None:
    with pytest.raises(InfrastructureError, match="refuses connections"):
        ask("lib==1.0", choice=IndexChoice(urls=(refusing_url(),)))
    closed = make_index(credentials=("me", "pa55word"))
    with pytest.raises(InfrastructureError, match="refused the credentials") as caught:
        ask("lib==1.0", choice=IndexChoice(urls=(closed.url_with_credentials.replace("pa55word", "wr0ng"),)))
    assert "wr0ng" not in str(caught.value) and "UV_INDEX_NAME_USERNAME" in str(caught.value)


def test_one_place_that_cannot_be_opened_ends_it(
    wheels: Wheels, index: Index, ask: Callable[..., tuple[Sources, ...]]
) -> None:
    offer(wheels, index, "1.0.0", "1.1.0")
    broken = wheels.folder / "lib-1.1.0-py3-none-any.whl"
    broken.write_bytes(broken.read_bytes()[:-50])
    with pytest.raises(InfrastructureError, match=r"lib-1.1.0.*(damaged|bytes)"):
        ask("lib==1..1")

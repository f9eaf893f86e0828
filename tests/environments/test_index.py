"""Asking indexes: what they have, and what is said when they do not answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bisect_env.environments.index import SimpleIndex, bare, default_index, unnamed
from bisect_env.environments.records import Reason, Unavailable
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import IndexChoice
from bisect_env.matrix.versions import Release
from tests.support.index import Index, refusing_url
from tests.support.wheels import Wheels


def choice(*indexes: Index, **options: object) -> IndexChoice:
    return IndexChoice(urls=tuple(index.url for index in indexes), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("json", [True, False])
def test_releases_come_in_order_with_their_days_and_yanks(
    make_index: Callable[..., Index], wheels: Wheels, json: bool
) -> None:
    index = make_index(json=json)
    index.add(wheels.wheel("alpha", "1.10"), uploaded="2025-03-01T00:00:00Z")
    index.add(wheels.wheel("alpha", "1.9"), yanked="broken")
    index.add(wheels.sdist("alpha", "1.10"), uploaded="2025-03-02T00:00:00Z")
    index.add(wheels.wheel("alpha", "2.0rc1"), uploaded=None)
    index.add(wheels.wheel("alpha", "1.10+cu128"), uploaded=None)
    day = datetime(2025, 3, 2, tzinfo=UTC) if json else None
    old = datetime(2025, 1, 1, tzinfo=UTC) if json else None
    assert SimpleIndex().releases("Alpha", choice(index)) == (
        Release("1.9", old, True),
        Release("1.10", day, False),
        Release("1.10+cu128", None, False),
        Release("2.0rc1", None, False),
    )


def test_a_project_nobody_has_is_no_release(index: Index) -> None:
    assert SimpleIndex().releases("nosuch", choice(index)) == ()


def test_the_first_index_that_has_it_wins(make_index: Callable[..., Index], wheels: Wheels) -> None:
    empty, first, second = make_index(), make_index(), make_index()
    first.add(wheels.wheel("alpha", "1.0"))
    second.add(wheels.wheel("alpha", "2.0"))
    assert [each.version for each in SimpleIndex().releases("alpha", choice(empty, first, second))] == ["1.0"]
    assert second.requests == []


def test_folders_and_pages_of_links_are_added(index: Index, wheels: Wheels, tmp_path: Path) -> None:
    index.add(wheels.wheel("alpha", "1.0"))
    other = Wheels(tmp_path / "other")
    other.wheel("alpha", "1.1+cu128")
    other.wheel("alphabet", "9.0")
    (other.folder / "README.txt").write_text("not a distribution")
    links = (str(other.folder), f"{index.url}/alpha/")
    found = SimpleIndex().files("alpha", choice(index, find_links=links))
    assert not isinstance(found, Unavailable)
    assert sorted({file.version for file in found}) == ["1.0", "1.1+cu128"]


def test_an_index_of_files(wheels: Wheels, tmp_path: Path) -> None:
    project = tmp_path / "simple" / "alpha"
    project.mkdir(parents=True)
    (project / "index.html").write_text('<a href="alpha-1.0-py3-none-any.whl">alpha-1.0-py3-none-any.whl</a>')
    files = IndexChoice(urls=((tmp_path / "simple").as_uri(),), offline=True)
    assert [each.version for each in SimpleIndex().releases("alpha", files)] == ["1.0"]
    assert SimpleIndex().releases("beta", files) == ()
    gone = IndexChoice(urls=((tmp_path / "gone").as_uri(),))
    with pytest.raises(InfrastructureError, match="is not a folder"):
        SimpleIndex().releases("alpha", gone)


@pytest.mark.parametrize(("mode", "words"), [("hangs", "did not answer in time"), ("drops", "the connection broke")])
def test_an_index_that_fails_is_known_soon(index: Index, mode: str, words: str) -> None:
    index.mode = mode  # type: ignore[assignment]
    simple = SimpleIndex(timeout=0.5)
    began = time.monotonic()
    trouble = simple.reach(index.url)
    assert isinstance(trouble, Unavailable) and trouble.reason is Reason.INDEX_UNREACHABLE
    assert words in trouble.message
    with pytest.raises(InfrastructureError, match=f"the releases of alpha are not known: .*{words}"):
        simple.releases("alpha", choice(index))
    assert time.monotonic() - began < 3


def test_a_refused_connection_and_an_unknown_host() -> None:
    refused = SimpleIndex().reach(refusing_url())
    assert refused is not None and "refuses connections" in refused.message
    unknown = SimpleIndex().reach("https://nowhere.invalid/simple")
    assert unknown is not None and "https://nowhere.invalid/simple is not known to this machine" in unknown.message


def test_a_host_that_takes_no_connection_is_waited_for_once() -> None:
    with socket.socket() as server, ExitStack() as clients:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):  # more than its queue holds: the kernel answers no further one
            client = clients.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        began = time.monotonic()
        trouble = SimpleIndex(timeout=0.5).reach(f"http://127.0.0.1:{server.getsockname()[1]}/simple")
        assert trouble is not None and "did not answer in time" in trouble.message
        assert time.monotonic() - began < 0.9


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_any_answer_at_all_is_an_answer(index: Index, status: int) -> None:
    index.status = status
    assert SimpleIndex().reach(index.url) is None


def test_a_connection_that_breaks_once_is_tried_again(index: Index) -> None:
    index.mode = "drops"
    threading.Timer(0.1, setattr, (index, "mode", "serves")).start()
    assert SimpleIndex().reach(index.url) is None


def test_credentials_are_sent_and_not_shown(make_index: Callable[..., Index], wheels: Wheels) -> None:
    index = make_index(credentials=("bob", "s3cret-word"))
    index.add(wheels.wheel("alpha", "1.0"))
    assert len(SimpleIndex().releases("alpha", IndexChoice(urls=(index.url_with_credentials,)))) == 1
    wrong = SimpleIndex().page(index.url_with_credentials.replace("s3cret", "wr0ng"), "alpha")
    assert isinstance(wrong, Unavailable) and wrong.reason is Reason.CREDENTIALS
    assert "wr0ng" not in wrong.message and index.url in wrong.message


def test_each_thing_is_asked_once_also_by_many_threads(index: Index, wheels: Wheels) -> None:
    index.add(wheels.wheel("alpha", "1.0"))
    simple = SimpleIndex()

    def ask() -> None:
        simple.reach(index.url)
        simple.releases("alpha", choice(index))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [method for method, _ in index.requests] == ["HEAD", "GET"]


def test_offline_asks_nobody(index: Index, wheels: Wheels) -> None:
    wheels.wheel("alpha", "1.0")
    simple = SimpleIndex()
    away = simple.files("alpha", choice(index, offline=True))
    assert isinstance(away, Unavailable) and away.reason is Reason.OFFLINE
    found = simple.files("alpha", choice(index, offline=True, find_links=(str(wheels.folder),)))
    assert not isinstance(found, Unavailable) and len(found) == 1
    assert index.requests == []


def test_the_default_index_is_the_users() -> None:
    assert default_index({}) == "https://pypi.org/simple"
    assert default_index({"UV_INDEX_URL": "http://b"}) == "http://b"
    assert default_index({"UV_INDEX_URL": "http://b", "UV_DEFAULT_INDEX": "http://a"}) == "http://a"


def test_urls_in_messages() -> None:
    assert bare("own=https://bob:pw@example.org:8443/simple/") == "https://example.org:8443/simple"
    assert unnamed("https://example.org/?a=b") == "https://example.org/?a=b"


@pytest.mark.parametrize("url", ["https://me:s3cret@host/x?token=s3cret", "corp=https://s3cret@host/x?sig=s3cret"])
def test_no_message_names_a_credential(url: str) -> None:
    assert bare(url).startswith("https://host/x?") and "s3cret" not in bare(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("bob:s3cret@host/simple/", "host/simple"),
        ("corp=bob:s3cret@host:80/simple", "host:80/simple"),
        ("a name bob:s3cret@", "a URL without a host"),
        ("/srv/x@y/simple", "/srv/x@y/simple"),
    ],
)
def test_a_url_whose_scheme_was_forgotten_shows_no_credential(url: str, shown: str) -> None:
    assert bare(url) == shown

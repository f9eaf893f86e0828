"""Locks, environments and why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bisect_env.environments.records import Reason, Unavailable
from bisect_env.store.database import Store
from bisect_env.store.environments import TRANSIENT
from tests.store.samples import environment, lock


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "deep" / "down" / "store.sqlite") as opened:
        yield opened


def test_a_lock_is_kept_replaced_and_forgotten(store: Store) -> None:
    assert store.lock("key") is None
    store.put_lock("key", Unavailable("resolve", Reason.CONFLICT, "a needs b<1, c needs b>1"), 0.2)
    assert store.lock("key") == Unavailable("resolve", Reason.CONFLICT, "a needs b<1, c needs b>1")
    store.put_lock("key", lock(), 0.3)
    assert store.lock("key") == lock()
    assert store.lock("key", retry_transient=True) == lock()
    store.forget_lock("key")
    assert store.lock("key") is None


@pytest.mark.parametrize("reason", list(Reason))
def test_what_may_be_over_is_left_out_on_request(store: Store, reason: Reason) -> None:
    found = Unavailable("resolve", reason, "because")
    store.put_lock("key", found, 0.1)
    store.put_unavailable("cell", "address", found)
    assert store.lock("key") == store.unavailable("cell", "address") == found
    left = None if reason in TRANSIENT else found
    assert store.lock("key", retry_transient=True) == left
    assert store.unavailable("cell", "address", retry_transient=True) == left


def test_the_network_is_transient_and_a_conflict_is_not() -> None:
    assert {Reason.INDEX_UNREACHABLE, Reason.OFFLINE, Reason.CREDENTIALS} <= TRANSIENT
    assert not {Reason.CONFLICT, Reason.NO_SUCH_VERSION, Reason.BUILD, Reason.IMPORT} & TRANSIENT


def test_an_environment_is_kept_by_its_address(store: Store) -> None:
    assert store.environment("aaaa1111") is None
    store.put_environment(environment(), 3.5)
    store.put_environment(environment("bbbb2222"), 1.0)
    assert store.environment("aaaa1111") == environment()


def test_unavailable_is_known_by_cell_and_address(store: Store) -> None:
    failed = Unavailable("build", Reason.BUILD, "gcc: not found")
    store.put_unavailable("cell", "a1", failed)
    assert store.unavailable("cell", "a1") == failed
    assert store.unavailable("cell", "a2") is None
    assert store.unavailable("cell") is None
    assert store.unavailable("other", "a1") is None
    store.put_unavailable("cell", None, Unavailable("resolve", Reason.OFFLINE, "offline"))
    assert store.unavailable("cell", None) == Unavailable("resolve", Reason.OFFLINE, "offline")
    assert store.unavailable("cell", "a1") == failed


def test_credentials_in_messages_do_not_reach_the_file(store: Store) -> None:
    store.put_lock("key", Unavailable("resolve", Reason.CREDENTIALS, "401 from https://me:s3cret@idx/simple"), 0.1)
    store.start_run("m", Path("m.yaml"), ["matrix", "--index", "https://me:s3cret@idx/simple"], 0, {})
    assert "https://****@idx/simple" in str(store.lock("key"))
    for path in store.path.parent.iterdir():
        assert b"s3cret" not in path.read_bytes()


def test_how_long_the_last_builds_took(store: Store) -> None:
    assert store.build_seconds(5) == []
    for number in range(4):
        store.put_environment(environment(f"{number}" * 8), float(number))
    assert store.build_seconds(2) == [3.0, 2.0]

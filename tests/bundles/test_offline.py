"""Locks, releases and reasons from an unbundled folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.bundles import manifest
from bisect_env.bundles.absorb import absorb
from bisect_env.bundles.destination import Destination
from bisect_env.bundles.offline import Offline, interpreter_for
from bisect_env.bundles.records import Target
from bisect_env.environments import building, interpreters
from bisect_env.environments.compiling import address_of
from bisect_env.environments.manifest import verify
from bisect_env.environments.records import Environment, Interpreter, Lock, Reason, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice
from tests.bundles.build import TARGET, delivery, noise, parts_in, request_for, sha256
from tests.support.environments import TIMEOUT
from tests.support.wheels import Wheels


@pytest.fixture
def alpha(wheels: Wheels) -> Path:
    return wheels.wheel("alpha", "1.0", files={"alpha/__init__.py": "", "alpha/data.bin": noise(1, 5000)})


@pytest.fixture
def beta(wheels: Wheels) -> Path:
    return wheels.wheel("beta", "1.0+cu130")


def unbundled(tmp_path: Path, *parts: Path) -> Offline:
    absorb([tmp_path / "bundle" / "manifest.json", *parts], tmp_path / "dest", (), lambda text: None)
    return Offline.open(tmp_path / "dest")


def lock_of(offline: Offline, request: EnvironmentRequest) -> Lock:
    found = offline.resolve(request)
    assert isinstance(found, Lock), found
    return found


def test_the_interpreter_of_this_host_takes_the_place_of_the_target_s(alpha: Path, tmp_path: Path) -> None:
    made = delivery(tmp_path / "bundle", [[alpha]])
    stand_in = Interpreter(Path("python3"), TARGET.python, "cpython", TARGET.platform)
    locked = replace(made.locked[0], lock=replace(made.locked[0].lock, interpreter=stand_in, address="theirs"))
    manifest.save(replace(made, locked=(locked,)), tmp_path / "bundle")
    lock = lock_of(unbundled(tmp_path), request_for(alpha))
    own = interpreters.find(None)
    assert lock.interpreter == own and isinstance(own, Interpreter)
    assert lock.address == address_of(lock.text, "", own)


def test_indexes_and_folders_of_the_matrix_do_not_matter_here(alpha: Path, tmp_path: Path) -> None:
    delivery(tmp_path / "bundle", [[alpha]])
    index = IndexChoice(urls=("https://somewhere.example/simple",), find_links=("/nowhere",))
    lock_of(unbundled(tmp_path), replace(request_for(alpha), index=index))


def test_what_the_bundle_does_not_have_is_said_with_the_way_out(alpha: Path, beta: Path, tmp_path: Path) -> None:
    delivery(tmp_path / "bundle", [[alpha]])
    found = unbundled(tmp_path).resolve(request_for(beta))
    assert isinstance(found, Unavailable) and found.stage == "resolve" and "bisect-env bundle FILE" in found.message


def test_what_could_not_be_resolved_there_is_said_here(alpha: Path, tmp_path: Path) -> None:
    made = delivery(tmp_path / "bundle", [[alpha]])
    why = Unavailable("resolve", Reason.CONFLICT, "alpha wants two betas")
    manifest.save(replace(made, locked=(replace(made.locked[0], lock=None, unavailable=why),)), tmp_path / "bundle")
    assert unbundled(tmp_path).resolve(request_for(alpha)) == why


@pytest.mark.parametrize(
    ("target", "asked", "words"),
    [
        (Target("3.99", TARGET.platform), None, "no Python 3.99"),
        (Target(TARGET.python, "aarch64-manylinux_2_17"), None, "bundle for this host"),
        (Target(TARGET.python, "x86_64-manylinux_2_99"), None, "C library is older"),
        (Target("3.99", TARGET.platform), TARGET.python, "asks for Python"),
    ],
)
def test_a_target_that_this_host_is_not(target: Target, asked: str | None, words: str) -> None:
    found = interpreter_for(target, asked)
    assert isinstance(found, Unavailable) and found.reason is Reason.INTERPRETER and words in found.message


def test_releases_are_the_versions_in_the_bundle(wheels: Wheels, alpha: Path, beta: Path, tmp_path: Path) -> None:
    other = wheels.wheel("Alpha", "1.2")
    delivery(tmp_path / "bundle", [[alpha, beta], [other]])
    offline = unbundled(tmp_path)
    assert [release.version for release in offline.releases("Alpha", IndexChoice())] == ["1.0", "1.2"]
    assert offline.releases("gamma", IndexChoice()) == ()


def test_missing_parts_are_counted_and_named(alpha: Path, beta: Path, tmp_path: Path) -> None:
    delivery(tmp_path / "bundle", [[beta], [alpha, beta]])
    parts = parts_in(tmp_path / "bundle")
    offline = unbundled(tmp_path, parts[0])
    assert offline.lacking(request_for(beta)) is None
    lacking = offline.lacking(request_for(alpha, beta))
    assert lacking is not None and (lacking.stage, lacking.reason) == ("delivery", Reason.UNDELIVERED)
    assert lacking.message.startswith(f"{len(parts) - 1} parts of its bundle are missing ({parts[1].stem[:12]}")
    # Looked at as it is now, not as it was when it was opened.
    unbundled(tmp_path, *parts)
    assert offline.lacking(request_for(alpha, beta)) is None


def test_one_spelling_of_the_folder_s_path(alpha: Path, tmp_path: Path) -> None:
    delivery(tmp_path / "bundle", [[alpha]])
    (tmp_path / "link").symlink_to(unbundled(tmp_path).folder)
    for path in (tmp_path / "bundle" / ".." / "dest", tmp_path / "link"):
        assert Offline.open(path).wheelhouse().folder == tmp_path / "dest" / "wheels"


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"has no manifest\.json"):
        Offline.open(tmp_path)


def test_environments_share_what_uv_unpacked_once(alpha: Path, beta: Path, tmp_path: Path) -> None:
    """Also with a wheel that was packed here: the lock has another hash for it."""
    delivery(tmp_path / "bundle", [[alpha], [alpha, beta]])
    offline = unbundled(tmp_path, *parts_in(tmp_path / "bundle"))
    shown = offline.folder / "wheels" / alpha.name
    repacked = tmp_path / "repacked.whl"
    repacked.write_bytes(shown.read_bytes() + b"\0" * 0)
    with repacked.open("r+b") as file:
        # The archive's comment: another file with the same content.
        file.seek(-2, 2)
        file.write(b"\x01\x00x")
    wheel = next(each for each in offline.manifest.wheels if each.filename == alpha.name)
    shown.unlink()
    Destination(offline.folder).show(wheel, repacked, sha256(repacked.read_bytes()))
    wheelhouse = offline.wheelhouse()
    assert dict(wheelhouse.also) == {wheel.sha256: sha256(shown.read_bytes())}
    uv, built = Uv(tmp_path / "cache"), []
    for request in (request_for(alpha), request_for(alpha, beta)):
        lock = lock_of(offline, request)
        result = building.build(lock, request, tmp_path / "root", uv, TIMEOUT, wheelhouse=wheelhouse)
        assert isinstance(result, Environment), result
        assert verify(result) == () and (result.folder / "lock.txt").read_text() == lock.text
        built.append(result)
    files = [next(each.folder.glob("venv/lib/python*/site-packages/alpha/data.bin")) for each in built]
    assert files[0].stat().st_ino == files[1].stat().st_ino
    assert len(list((tmp_path / "cache" / "archive-v0").iterdir())) == 2
    # A file that is not what it was when it was checked is not installed.
    shown.write_bytes(repacked_changed := bytes(reversed(shown.read_bytes())))
    assert len(repacked_changed) == shown.stat().st_size
    lock = lock_of(offline, request_for(alpha))
    refused = building.build(lock, request_for(alpha), tmp_path / "two", Uv(tmp_path / "c"), TIMEOUT, None, wheelhouse)
    assert isinstance(refused, Unavailable) and refused.stage == "build"

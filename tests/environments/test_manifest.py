"""What a manifest notices, and that what was changed through a hard link does not come back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bisect_env.environments import building, manifest
from bisect_env.environments.manifest import Manifest, quarantine, verify
from bisect_env.environments.places import LOCK, MANIFEST, MARKER
from bisect_env.environments.records import Environment
from bisect_env.environments.uv import Uv
from tests.support.environments import built
from tests.support.wheels import Wheels

PACKAGES = "venv/lib/python*/site-packages"


@pytest.fixture
def environment(wheels: Wheels, tmp_path: Path, uv: Uv, request: pytest.FixtureRequest) -> Environment:
    # A name of its own, so that a test that spoils uv's cache spoils it for no other.
    name = f"alpha-{abs(hash(request.node.name)) % 10**8}"
    return built([wheels.wheel(name, "1.0", files={"alpha/__init__.py": "x = 1\n"})], tmp_path, uv)


def file_of(environment: Environment, name: str = "alpha/__init__.py") -> Path:
    return next(environment.folder.glob(f"{PACKAGES}/{name}"))


def replaced(path: Path, text: str) -> None:
    """A new file under the old name, as ``sed -i`` does it."""
    other = path.with_suffix(".new")
    other.write_text(text)
    other.replace(path)


def test_changed_content_of_the_same_size(environment: Environment) -> None:
    replaced(file_of(environment), "x = 2\n")
    (line,) = verify(environment)
    assert line.startswith("changed: lib/python")
    assert line.endswith("alpha/__init__.py")


def test_touched_and_copied_files_are_read_and_remembered(environment: Environment) -> None:
    path = file_of(environment)
    replaced(path, "x = 1\n")
    before = Manifest.load(environment.folder / MANIFEST)
    assert verify(environment) == ()
    after = Manifest.load(environment.folder / MANIFEST)
    changed = {name for name, entry in after.files.items() if entry != before.files[name]}
    assert [Path(name).name for name in changed] == ["__init__.py"]
    assert [path.name for path in environment.folder.iterdir() if path.name.startswith(".")] == []


def test_permissions_do_not_make_another_file(environment: Environment) -> None:
    file_of(environment).chmod(0o600)
    assert verify(environment) == ()


def test_missing_file(environment: Environment) -> None:
    file_of(environment).unlink()
    (line,) = verify(environment)
    assert line.startswith("missing: ")


def test_extra_files(environment: Environment) -> None:
    site = file_of(environment).parents[1]
    (site / "evil.pth").write_text("import os\n")
    (site / "beta.py").write_text("")
    (site / "beta-1.0.dist-info").mkdir()
    (site / "beta-1.0.dist-info" / "METADATA").write_text("Name: beta\nVersion: 1.0\n")
    lines = verify(environment)
    assert [line.split("/")[-1] for line in lines] == [
        "METADATA",
        "beta.py",
        "evil.pth (Python runs it at every start)",
    ]
    assert all(line.startswith("extra: ") for line in lines)


def test_link_in_the_place_of_a_file(environment: Environment, tmp_path: Path) -> None:
    path = file_of(environment)
    (tmp_path / "same").write_text("x = 1\n")
    path.unlink()
    path.symlink_to(tmp_path / "same")
    (line,) = verify(environment)
    assert line.startswith("changed: ")


def test_byte_code_written_by_hand_is_no_difference(environment: Environment) -> None:
    folder = file_of(environment).parent / "__pycache__"
    folder.mkdir()
    (folder / "__init__.cpython-312.pyc").write_bytes(b"")
    assert verify(environment) == ()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"files": {"a": [1]}, "base_folders": []}', "\0"])
def test_manifest_that_cannot_be_read(environment: Environment, content: str) -> None:
    (environment.folder / MANIFEST).write_text(content)
    (line,) = verify(environment)
    assert line.startswith("it cannot be read")


def test_marker_and_lock(environment: Environment) -> None:
    (environment.folder / MARKER).unlink()
    (environment.folder / LOCK).write_text("other==1.0\n")
    lines = verify(environment)
    assert [line.split()[0] for line in lines] == ["the", "lock.txt"]


def test_changed_through_a_hard_link_and_built_anew(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    alpha, beta, gamma = (wheels.wheel(name, "3.1") for name in ("tampered", "beside", "apart"))
    one, two = built([alpha], tmp_path, uv), built([alpha, beta], tmp_path, uv)
    apart = built([gamma], tmp_path, uv)
    path = file_of(one, "tampered/__init__.py")
    with path.open("a") as file:
        file.write("evil = True\n")
    assert [len(verify(environment)) for environment in (one, two, apart)] == [1, 1, 0]

    # A plain rebuild repeats the tampering: that is why the cache must be cleaned.
    shutil.rmtree(two.folder)
    wheel_again = file_of(_without_proof([alpha, beta], tmp_path, uv), "tampered/__init__.py")
    assert "evil" in wheel_again.read_text()

    done = quarantine(one, tmp_path, uv)
    assert done.packages == ("tampered",)
    assert sorted(folder.name.split("-")[0] for folder in done.folders) == sorted([one.lock.address, two.lock.address])
    assert all("evil" in next(f.glob(f"{PACKAGES}/tampered/__init__.py")).read_text() for f in done.folders)
    assert building.find(one.lock.address, one.lock, tmp_path) is None
    assert building.find(apart.lock.address, apart.lock, tmp_path) is not None
    for wheels_of in ([alpha], [alpha, beta]):
        again = built(wheels_of, tmp_path, uv)
        assert "evil" not in file_of(again, "tampered/__init__.py").read_text()
        assert verify(again) == ()


def _without_proof(paths: list[Path], root: Path, uv: Uv) -> Environment:
    """Builds as if the files' times and sizes said nothing."""
    with pytest.MonkeyPatch.context() as patch:
        take = manifest.take
        patch.setattr(manifest, "take", lambda *args: (take(*args)[0], ()))
        return built(paths, root, uv)


@pytest.mark.parametrize("text", ["x = 1\nevil = True\n", "x = 2\n"])
def test_cache_changed_by_somebody_else_is_noticed_when_building(
    wheels: Wheels, tmp_path: Path, uv: Uv, text: str
) -> None:
    """Another project's environment shares uv's cache: a file edited there, also to the same length."""
    wheel = wheels.wheel("elsewhere", f"{len(text)}.0", files={"elsewhere.py": "x = 1\n"})
    foreign = built([wheel], tmp_path / "foreign", uv)
    path = file_of(foreign, "elsewhere.py")
    path.write_text(text)
    # Edited a good while after it was unpacked.
    late = path.stat().st_mtime + 600
    os.utime(path, (late, late))
    own = built([wheel], tmp_path / "own", uv)
    assert file_of(own, "elsewhere.py").read_text() == "x = 1\n"
    assert verify(own) == ()


def test_replaced_file_concerns_one_environment_only(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    alpha, beta = wheels.wheel("replaced", "1.0"), wheels.wheel("beside", "1.0")
    one, two = built([alpha], tmp_path, uv), built([alpha, beta], tmp_path, uv)
    replaced(file_of(one, "replaced/__init__.py"), "evil = True\n")
    assert verify(two) == ()
    done = quarantine(one, tmp_path, uv)
    assert (len(done.folders), done.packages) == (1, ())
    assert verify(built([alpha], tmp_path, uv)) == ()


def test_wheel_with_a_careless_record(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    """A RECORD that names a file which the wheel does not have, or nothing of one that it has, is its own fault."""
    import zipfile

    path = wheels.wheel("careless", "1.0", files={"careless.py": "x = 1\n"})
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    record = contents["careless-1.0.dist-info/RECORD"].decode()
    lines = [line for line in record.splitlines() if not line.startswith("careless.py")]
    contents["careless-1.0.dist-info/RECORD"] = "\n".join([*lines, "gone.py,sha256=AAAA,5", ""]).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    environment = built([path], tmp_path, uv)
    assert verify(environment) == ()
    replaced(file_of(environment, "careless.py"), "x = 2\n")
    assert len(verify(environment)) == 1

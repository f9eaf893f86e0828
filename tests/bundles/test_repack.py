"""Installed distributions as wheels: what real uv installed is packed, and real uv installs it again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bisect_env.bundles import hosts
from bisect_env.bundles.absorb import Absorbed, absorb
from bisect_env.bundles.destination import Destination
from bisect_env.bundles.having import record_of
from bisect_env.bundles.records import Wheel
from bisect_env.bundles.repack import Differs, repack
from bisect_env.environments import distributions
from bisect_env.environments.uv import Uv
from tests.bundles.build import delivery, noise, sha256
from tests.support.wheels import Wheels


@dataclass(frozen=True)
class Host:
    """A virtual environment with one distribution."""

    venv: Path
    wheel: Path

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def site(self) -> Path:
        return distributions.site_packages(self.venv)


@pytest.fixture
def host(wheels: Wheels, tmp_path: Path, uv: Uv) -> Host:
    wheel = wheels.wheel(
        "alpha",
        "1.0",
        files={
            "alpha/__init__.py": "x = 1\n",
            "alpha/lib.so": noise(5, 3 << 20),
            "alpha/empty.py": "",
            # As setuptools has what it vendors.
            "alpha/_vendor/other-1.0.dist-info/RECORD": "other.py,sha256=x,1\n",
            "alpha/_vendor/other-1.0.dist-info/INSTALLER": "uv",
        },
        scripts={"alpha-run": "alpha:run"},
    )
    return Host(installed(tmp_path / "host", wheel, uv), wheel)


def installed(venv: Path, wheel: Path, uv: Uv, *options: str | Path) -> Path:
    for command in (
        ["venv", "--quiet", "--python", sys.executable, venv],
        ["pip", "install", "--quiet", "--offline", "--no-index", "--link-mode", "copy", *options, wheel],
    ):
        finished = uv.run([*command, "--python", venv / "bin" / "python"] if command[0] == "pip" else command)
        assert finished.ok, finished.stderr
    return venv


def wheel_record(path: Path) -> Wheel:
    return Wheel(
        path.name, "alpha", "1.0", sha256(path.read_bytes()), path.stat().st_size, (), True, record_of(path) or ""
    )


def test_what_is_packed_holds_what_the_wheel_holds(host: Host, tmp_path: Path, uv: Uv) -> None:
    (host.site / "alpha" / "lib.so").chmod(0o755)
    subprocess.run([host.python, "-c", "import alpha"], check=True)
    path = tmp_path / host.wheel.name
    sha = repack(wheel_record(host.wheel), host.site, path)
    assert sha == sha256(path.read_bytes())
    with zipfile.ZipFile(path) as ours, zipfile.ZipFile(host.wheel) as original:
        assert {name: ours.read(name) for name in ours.namelist()} == {
            name: original.read(name) for name in original.namelist()
        }
        assert all(entry.compress_type == zipfile.ZIP_STORED for entry in ours.infolist())
        # Readers of a stream cannot take stored members whose size comes after them.
        assert not any(entry.flag_bits & 0x08 for entry in ours.infolist())
    again = tmp_path / "again.whl"
    assert repack(wheel_record(host.wheel), host.site, again) == sha
    # As it is built: by its hash, from a folder, with no index.
    (tmp_path / "lock.txt").write_text(f"alpha==1.0 --hash=sha256:{sha}\n")
    venv = tmp_path / "other"
    assert uv.run(["venv", "--quiet", "--python", sys.executable, venv]).ok
    arguments = ["pip", "sync", "--offline", "--no-index", "--require-hashes", "--find-links", tmp_path]
    finished = uv.run([*arguments, "--python", venv / "bin" / "python", tmp_path / "lock.txt"])
    assert finished.ok, finished.stderr
    lib = distributions.site_packages(venv) / "alpha" / "lib.so"
    assert lib.read_bytes() == (host.site / "alpha" / "lib.so").read_bytes() and os.access(lib, os.X_OK)
    assert (venv / "bin" / "alpha-run").exists()


@pytest.mark.parametrize("how", ["content", "size", "missing", "unreadable folder"])
def test_a_file_that_differs_is_named(host: Host, tmp_path: Path, how: str) -> None:
    lib = host.site / "alpha" / "lib.so"
    if how == "content":
        data = bytearray(lib.read_bytes())
        data[2 << 20] ^= 1
        lib.write_bytes(data)
    elif how == "size":
        lib.write_bytes(b"")
    else:
        lib.unlink()
        if how == "unreadable folder":
            lib.mkdir()
    found = repack(wheel_record(host.wheel), host.site, tmp_path / "x.whl")
    assert isinstance(found, Differs) and str(lib) in found.what
    assert found.still and Differs.decode(found.encode()) == found
    shutil.rmtree(lib, ignore_errors=True)
    lib.unlink(missing_ok=True)
    lib.write_bytes(b"mended")
    assert not found.still


def test_a_file_without_a_hash_cannot_be_proved(host: Host, tmp_path: Path) -> None:
    wheel = wheel_record(host.wheel)
    wheel = replace(wheel, record=wheel.record + "alpha/other.py,,\n")
    found = repack(wheel, host.site, tmp_path / "x.whl")
    assert isinstance(found, Differs) and "no hash" in found.what


def test_memory_does_not_grow_with_the_files(host: Host, tmp_path: Path) -> None:
    program = """
import resource, sys
from pathlib import Path
from bisect_env.bundles.records import Wheel
from bisect_env.bundles.repack import repack
from tests.bundles.test_repack import wheel_record
wheel = wheel_record(Path(sys.argv[1]))
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20), -1))
print(repack(wheel, Path(sys.argv[2]), Path(sys.argv[3])))
"""
    big = host.site / "alpha" / "lib.so"
    with big.open("r+b") as file:
        file.truncate(64 << 20)
    record = record_of(host.wheel)
    assert record is not None
    line = next(line for line in record.splitlines() if "lib.so" in line)
    new = f"alpha/lib.so,sha256={distributions.sha256_of(big)},{64 << 20}"
    changed = tmp_path / "changed" / host.wheel.name
    changed.parent.mkdir()
    with zipfile.ZipFile(host.wheel) as old, zipfile.ZipFile(changed, "w") as archive:
        for name in old.namelist():
            if name != "alpha/lib.so":
                archive.writestr(name, old.read(name).replace(line.encode(), new.encode()))
    said = subprocess.run(
        [sys.executable, "-c", program, changed, host.site, tmp_path / "x.whl"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert said.stdout.strip() == sha256((tmp_path / "x.whl").read_bytes())


def take(host: Host, tmp_path: Path) -> Absorbed:
    return absorb([tmp_path / "bundle"], tmp_path / "dest", [host.python], lambda text: None)


def test_installed_wheels_need_no_part(host: Host, wheels: Wheels, tmp_path: Path) -> None:
    beta = wheels.wheel("beta", "1.0")
    made = delivery(tmp_path / "bundle", [[host.wheel, beta]], installed={"alpha"})
    found = take(host, tmp_path)
    assert found.standing is not None and not found.standing.lacking()
    assert [wheel.name for wheel in found.packed] == ["alpha"]
    alpha = next(wheel for wheel in made.wheels if wheel.name == "alpha")
    held = Destination(tmp_path / "dest").held(alpha)
    assert held is not None and held.sha256 != alpha.sha256
    assert held.sha256 == sha256((tmp_path / "dest/wheels" / alpha.filename).read_bytes())
    # Once: a further delivery packs nothing.
    assert take(host, tmp_path).packed == []
    assert not list((tmp_path / "dest" / "unfinished").iterdir())


def test_a_tampered_one_is_missing_until_it_is_brought(host: Host, tmp_path: Path) -> None:
    delivery(tmp_path / "bundle", [[host.wheel]], installed={"alpha"})
    init = host.site / "alpha" / "__init__.py"
    init.write_text("x = 2\n")
    for _ in range(2):
        found = take(host, tmp_path)
        assert found.standing is not None and [wheel.name for wheel in found.standing.without_parts()] == ["alpha"]
        [what] = found.differing.values()
        assert str(init) in what and not list((tmp_path / "dest" / "wheels").iterdir())
    # Its inventory no longer claims it, so that the next bundle brings it.
    assert '"alpha"' not in hosts.ask(host.python, tmp_path / "dest") and '"alpha"' in hosts.ask(host.python)
    shutil.rmtree(tmp_path / "bundle")
    delivery(tmp_path / "bundle", [[host.wheel]], part_bytes=1 << 20)
    found = take(host, tmp_path)
    assert found.standing is not None and not found.standing.lacking() and not found.differing
    assert (tmp_path / "dest/wheels" / host.wheel.name).read_bytes() == host.wheel.read_bytes()


def test_a_tampered_one_that_is_mended_is_packed(host: Host, tmp_path: Path) -> None:
    delivery(tmp_path / "bundle", [[host.wheel]], installed={"alpha"})
    init = host.site / "alpha" / "__init__.py"
    init.write_text("x = 2\n")
    assert take(host, tmp_path).differing
    init.write_text("x = 1\n")
    found = take(host, tmp_path)
    assert not found.differing and [wheel.name for wheel in found.packed] == ["alpha"]


def test_one_that_is_not_installed_is_named(host: Host, wheels: Wheels, tmp_path: Path) -> None:
    delivery(tmp_path / "bundle", [[wheels.wheel("beta", "1.0")]], installed={"beta"})
    found = take(host, tmp_path)
    assert "beta 1.0 is not installed" in next(iter(found.differing.values()))


def test_two_at_a_time_wait_for_each_other(host: Host, tmp_path: Path) -> None:
    delivery(tmp_path / "bundle", [[host.wheel]], part_bytes=1 << 20)
    destination, said = Destination(tmp_path / "dest"), []
    destination.prepare()
    with destination.alone(lambda: None):
        thread = threading.Thread(
            target=lambda: absorb([tmp_path / "bundle"], tmp_path / "dest", (), said.append), daemon=True
        )
        thread.start()
        thread.join(0.5)
        assert thread.is_alive() and "another unbundle" in said[0]
    thread.join(20)
    assert not thread.is_alive() and len(list(destination.wheels.iterdir())) == 1

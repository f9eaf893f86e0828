"""The inventory, also as the stand-alone program: by a bare Python that reads it from its input."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from bisect_env.bundles import having, hosts, inventory, recorded
from bisect_env.bundles.absorb import absorb
from bisect_env.bundles.records import Target
from bisect_env.errors import BadInput
from tests.bundles.build import delivery, parts_in, sha256
from tests.support.wheels import Wheels

BARE = Path(os.path.realpath(sys.base_prefix)) / "bin" / "python3"


def told(*options: str | Path) -> dict[str, object]:
    """By the interpreter beneath, which does not have this package, in a folder of no interest."""
    finished = subprocess.run(
        [BARE, "-I", "-", *options], input=inventory.script(), capture_output=True, text=True, check=True, cwd="/"
    )
    assert not finished.stderr
    value: dict[str, object] = json.loads(finished.stdout)
    return value


def test_the_program_needs_nothing(tmp_path: Path) -> None:
    found = told()
    assert found["python"] == platform.python_version() and str(found["platform"]).startswith("linux-")
    assert found["wheels"] == [] and isinstance(found["installed"], list)


def test_what_is_installed_is_told_so_that_a_bundle_knows_it(tmp_path: Path) -> None:
    path = tmp_path / "have.json"
    path.write_text(hosts.ask(Path(sys.executable)))
    value = json.loads(path.read_text())
    entry = next(entry for entry in value["installed"] if entry["name"] == "packaging")
    record = next(Path(entry["location"]).glob("packaging-*.dist-info/RECORD")).read_text()
    assert entry["record"] == recorded.digest(record)
    has = having.load(path, Target(platform.python_version().rpartition(".")[0], "x86_64-manylinux_2_28"))
    assert has.has("packaging", entry["version"], record)


def test_what_was_unbundled_is_told(wheels: Wheels, tmp_path: Path) -> None:
    alpha, beta = wheels.wheel("alpha", "1.0"), wheels.wheel("beta", "1.0", files={"beta.py": "#" * 99})
    delivery(tmp_path / "bundle", [[alpha], [beta]], part_bytes=400)
    parts = parts_in(tmp_path / "bundle")
    absorb([tmp_path / "bundle" / "manifest.json", *parts[:-1]], tmp_path / "dest", (), lambda text: None)
    assert told("--bundle", tmp_path / "dest")["wheels"] == [sha256(alpha.read_bytes())]
    assert told("--bundle", tmp_path / "nowhere")["wheels"] == []
    (tmp_path / "dest" / "wheels" / alpha.name).write_bytes(b"")
    assert told("--bundle", tmp_path / "dest")["wheels"] == []


def test_what_is_no_python_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeper.chmod(0o755)
    monkeypatch.setattr(hosts, "PATIENCE", 0.3)
    reasons = {
        tmp_path / "nothing": "No such file",
        Path("/bin/true"): "what it printed is no inventory",
        Path("/bin/false"): "it ended with status 1 and said nothing",
        sleeper: "nothing within 0 s",
    }
    for path, reason in reasons.items():
        with pytest.raises(BadInput, match=f"does not answer: .*({reason})") as refused:
            hosts.ask(path)
        assert "Command" not in str(refused.value)

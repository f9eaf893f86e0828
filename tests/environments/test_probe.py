"""Imports of a synthetic torch: right, of another variant, broken, endless, crashing."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from bisect_env.environments.manifest import verify
from bisect_env.environments.places import PROBE
from bisect_env.environments.probe import probe
from bisect_env.environments.records import Environment, Reason, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import EnvironmentRequest, Limits
from tests.support.environments import built
from tests.support.wheels import Wheels

LIMITS = Limits(import_time=20.0)


def torch(wheels: Wheels, root: Path, uv: Uv, text: str) -> Environment:
    # The text is in the version: uv's cache is shared by the tests, and one version has one content.
    version = f"2.11.0+t{sum(text.encode())}"
    files = {"torch/__init__.py": f"from torch import version\n__version__ = '2.11.0'\n{text}\n"}
    files["torch/version.py"] = "cuda = None\nhip = None\n" if "variant" not in text else text
    return built([wheels.wheel("torch", version, files=files)], root, uv)


def asking(cuda: str | None) -> EnvironmentRequest:
    return EnvironmentRequest(("torch",), cuda=cuda)


@pytest.mark.parametrize(
    ("told", "wanted", "right"),
    [
        ("cuda = '13.0'", "cu130", True),
        ("cuda = '12.8'", "cu128", True),
        ("cuda = '13.0'", "cu128", False),
        ("cuda = '13.0'", "cpu", False),
        ("cuda = '13.0'", None, True),
        ("cuda = None", "cpu", True),
        ("cuda = None", "cu130", False),
        ("cuda = None; hip = '6.4'", "cpu", False),
    ],
)
def test_variant(wheels: Wheels, tmp_path: Path, uv: Uv, told: str, wanted: str | None, right: bool) -> None:
    environment = torch(wheels, tmp_path, uv, f"{told}  # variant")
    result = probe(environment, asking(wanted), LIMITS)
    if right:
        assert result is None
    else:
        assert isinstance(result, Unavailable)
        assert (result.stage, result.reason) == ("import", Reason.VARIANT)
        assert result.message.endswith(f"not for {wanted}")


def test_remembered_and_nothing_written_to_the_venv(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    environment = torch(wheels, tmp_path, uv, f"open({str(tmp_path / 'imports')!r}, 'a').write('x')")
    for _ in range(3):
        assert probe(environment, asking("cpu"), LIMITS) is None
    assert (tmp_path / "imports").read_text() == "x"
    assert json.loads((environment.folder / PROBE).read_text())["torch"] == "2.11.0"
    assert verify(environment) == ()
    assert list((environment.folder / "venv").rglob("*.pyc")) == []
    assert list((environment.folder / "pycache").rglob("*.pyc"))


def test_failing_import_gives_the_last_line(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    environment = torch(wheels, tmp_path, uv, "raise ImportError('libcudart.so.13: cannot open shared object file')")
    for _ in range(2):
        result = probe(environment, asking(None), LIMITS)
        assert isinstance(result, Unavailable)
        assert (result.stage, result.reason) == ("import", Reason.IMPORT)
        assert result.message == "ImportError: libcudart.so.13: cannot open shared object file"


def test_import_that_never_ends(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    # With a child that would outlive it.
    text = "import subprocess, sys, time\n"
    text += "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)'])\n"
    text += f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\ntime.sleep(100)"
    environment = torch(wheels, tmp_path, uv, text)
    began = time.monotonic()
    result = probe(environment, asking(None), Limits(import_time=2.0))
    assert time.monotonic() - began < 10
    assert isinstance(result, Unavailable)
    assert result.reason is Reason.IMPORT
    assert "longer than 2 s" in result.message
    assert not alive(int((tmp_path / "child").read_text()))
    # It may have been the machine: not remembered.
    assert not (environment.folder / PROBE).exists()


def alive(pid: int) -> bool:
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        if state == "Z":
            return False
        time.sleep(0.05)
    return True


def test_crash(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    environment = torch(wheels, tmp_path, uv, "import os\nos.kill(os.getpid(), 11)")
    result = probe(environment, asking(None), LIMITS)
    assert isinstance(result, Unavailable)
    assert "SIGSEGV" in result.message
    assert not (environment.folder / PROBE).exists()


def test_output_of_the_import_does_not_confuse(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    environment = torch(wheels, tmp_path, uv, "print('{}')\nprint('no newline', end='')")
    assert probe(environment, asking("cpu"), LIMITS) is None


def test_without_torch_nothing_is_imported(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    environment = built([wheels.wheel("alpha", "1.0")], tmp_path, uv)
    assert probe(environment, asking("cu130"), LIMITS) is None
    assert not (environment.folder / PROBE).exists()


def test_parents_environment_has_no_part_in_it(
    wheels: Wheels, tmp_path: Path, uv: Uv, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "torch.py").write_text("raise ImportError('evil')\n")
    (tmp_path / "evil" / "sitecustomize.py").write_text("raise SystemExit('evil')\n")
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, str(tmp_path / "evil"))
    monkeypatch.setenv("LD_PRELOAD", "/nowhere/evil.so")
    monkeypatch.chdir(tmp_path / "evil")
    seen = tmp_path / "seen"
    environment = torch(wheels, tmp_path, uv, f"import os\nopen({str(seen)!r}, 'w').write(' '.join(os.environ))")
    assert probe(environment, asking("cpu"), LIMITS) is None
    assert set(seen.read_text().split()) <= {"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "LANG", "LC_CTYPE"}
    assert "evil" in os.environ["PYTHONPATH"]

"""Environments on an existing one: what is laid over it, what is refused, and what Python then sees."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.environments import building, foundation, trees
from bisect_env.environments.base import resolve_on_base
from bisect_env.environments.foundation import Base
from bisect_env.environments.manifest import verify
from bisect_env.environments.records import Environment, Lock, Reason, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice
from tests.support.environments import INTERPRETER, TIMEOUT, built
from tests.support.wheels import Wheels, tree

TORCH = {"torch/__init__.py": "", "torch/version.py": "__version__ = '2.11.0+cu130'\ncuda: str | None = '13.0'\n"}


@pytest.fixture
def host(tmp_path: Path, uv: Uv) -> Path:
    """The Python of a host's own environment. Its torch, and one more, are on no index that a request knows."""
    own = Wheels(tmp_path / "on-no-index")
    torch = own.wheel("torch", "2.11.0+cu130", requires=["triton==3.6.0"], files=TORCH)
    paths = [
        torch,
        own.wheel("triton", "3.6.0"),
        own.wheel("transformers", "5.6.0", requires=["hub>=1", "torch>=2"]),
        own.wheel("hub", "1.0"),
        own.wheel("trainer", "1.0", requires=["transformers<5.7"]),
    ]
    return built(paths, tmp_path / "host", uv).python


@pytest.fixture
def folder(wheels: Wheels) -> Path:
    """A folder of wheels, all there is on an air-gapped host."""
    wheels.wheel("transformers", "5.6.0", requires=["hub>=1", "torch>=2"])
    wheels.wheel("transformers", "5.8.1", requires=["hub>=1.5", "torch>=2"])
    wheels.wheel("hub", "1.5")
    wheels.wheel("torch", "2.13.0", requires=["triton==3.7.1"])
    wheels.wheel("triton", "3.7.1")
    return wheels.folder


def request_on(host: Path, folder: Path, *requirements: str, **options: object) -> EnvironmentRequest:
    index = IndexChoice(find_links=(str(folder),), offline=True)
    return EnvironmentRequest(requirements, index=index, base=str(host), **options)  # type: ignore[arg-type]


def locked(request: EnvironmentRequest, uv: Uv) -> Lock:
    result = resolve_on_base(request, None, uv)
    assert isinstance(result, Lock), result
    return result


def refused(request: EnvironmentRequest, uv: Uv) -> Unavailable:
    result = resolve_on_base(request, None, uv)
    assert isinstance(result, Unavailable), result
    return result


def build(lock: Lock, request: EnvironmentRequest, root: Path, uv: Uv) -> Environment:
    result = building.build(lock, request, root, uv, TIMEOUT)
    assert isinstance(result, Environment), result
    return result


def said_by(python: Path, names: Sequence[str]) -> list[str]:
    """Versions as imported and as metadata tells them."""
    script = "import sys, importlib, importlib.metadata as m\nfor n in sys.argv[1:]:\n"
    script += "    print(getattr(importlib.import_module(n), '__version__', '-'), m.version(n))"
    asked = subprocess.run([python, "-I", "-B", "-c", script, *names], capture_output=True, text=True, check=True)
    return asked.stdout.split()


def test_only_what_differs_is_laid_over(host: Path, folder: Path, tmp_path: Path, uv: Uv) -> None:
    before = trees.walk(host.parents[1])
    request = request_on(host, folder, "torch==2.11.0", "transformers==5.8.1")
    lock = locked(request, uv)
    assert lock.pins == (("hub", "1.5"), ("transformers", "5.8.1"))
    assert lock.text.count("--hash=sha256:") == 2
    assert "#" not in lock.text
    assert lock.cuda == "cu130"
    assert lock.marks == ()
    assert lock.notes == ("trainer 1.0 of the base requires transformers<5.7, the overlay has 5.8.1",)
    assert locked(request, uv) == lock

    environment = build(lock, request, tmp_path, uv)
    assert said_by(environment.python, ["transformers", "hub", "triton"]) == ["5.8.1"] * 2 + ["1.5"] * 2 + ["3.6.0"] * 2
    assert environment.freeze.split() == [
        "hub==1.5",
        "torch==2.11.0+cu130",
        "trainer==1.0",
        "transformers==5.8.1",
        "triton==3.6.0",
    ]
    assert verify(environment) == ()
    assert trees.walk(host.parents[1]) == before
    assert building.build(lock, request, tmp_path, uv, TIMEOUT) == replace(environment, build_seconds=0.0)


def test_base_that_has_it_all(host: Path, folder: Path, tmp_path: Path, uv: Uv) -> None:
    request = request_on(host, folder, "torch==2.11.0", "transformers==5.6.0")
    lock = locked(request, uv)
    assert (lock.text.strip(), lock.pins) == ("", ())
    environment = build(lock, request, tmp_path, uv)
    assert said_by(environment.python, ["transformers"]) == ["5.6.0", "5.6.0"]
    assert verify(environment) == ()


def test_cells_on_one_base_have_addresses_of_their_own(host: Path, folder: Path, uv: Uv) -> None:
    locks = [locked(request_on(host, folder, f"transformers=={version}"), uv) for version in ("5.6.0", "5.8.1")]
    assert locks[0].address != locks[1].address
    assert locks[0].base_manifest == locks[1].base_manifest


def test_torch_over_the_bases_is_refused(host: Path, folder: Path, uv: Uv) -> None:
    result = refused(request_on(host, folder, "torch==2.13.0", "transformers==5.8.1"), uv)
    assert (result.stage, result.reason) == ("resolve", Reason.BASE)
    assert "torch 2.13.0 over the base's 2.11.0+cu130" in result.message
    assert "triton 3.7.1 over the base's 3.6.0" in result.message
    assert "accept" in result.message


def test_accepted_deviation_is_marked(host: Path, folder: Path, tmp_path: Path, uv: Uv) -> None:
    request = request_on(host, folder, "torch==2.13.0", accept=("Torch",))
    assert "triton" in refused(request, uv).message
    request = replace(request, accept=("Torch", "triton"))
    lock = locked(request, uv)
    assert lock.marks == ("torch 2.13.0 over the base's 2.11.0+cu130", "triton 3.7.1 over the base's 3.6.0")
    assert lock.cuda == "cpu"
    environment = build(lock, request, tmp_path, uv)
    assert said_by(environment.python, ["torch", "triton"]) == ["2.13.0", "2.13.0", "3.7.1", "3.7.1"]


def test_local_tree_on_a_base(host: Path, folder: Path, tmp_path: Path, uv: Uv) -> None:
    source = tree(tmp_path / "source", "transformers", "5.9.0.dev0", requires=["hub", "torch"])
    request = request_on(host, folder, f"transformers @ {source.as_uri()}", "torch==2.11.0")
    lock = locked(request, uv)
    assert lock.pins == (("transformers", "5.9.0.dev0"),)
    assert [name for name, _, _ in lock.trees] == ["transformers"]
    environment = build(lock, request, tmp_path, uv)
    assert said_by(environment.python, ["transformers"]) == ["5.9.0.dev0"] * 2


def test_pin_that_no_index_has(host: Path, folder: Path, uv: Uv) -> None:
    result = refused(request_on(host, folder, "torch==2.12.0", "transformers==5.8.1"), uv)
    assert result.reason is Reason.BASE
    assert "torch==2.12.0 is asked for, the base has 2.11.0+cu130" in result.message


def test_requirement_that_no_index_has(host: Path, folder: Path, uv: Uv) -> None:
    result = refused(request_on(host, folder, "transformers==9"), uv)
    assert result.stage == "resolve"
    assert result.reason is not Reason.BASE
    assert "transformers" in result.message


@pytest.mark.parametrize(("cuda", "right"), [("cu130", True), ("cu128", False), ("cpu", False)])
def test_variant_is_the_bases(host: Path, folder: Path, uv: Uv, cuda: str, right: bool) -> None:
    request = request_on(host, folder, "torch==2.11.0", cuda=cuda)
    if right:
        assert locked(request, uv).cuda == cuda
    else:
        result = refused(request, uv)
        assert result.reason is Reason.BASE
        assert "2.11.0+cu130 is a cu130 build" in result.message
        assert cuda in result.message


def test_another_python_is_refused(host: Path, folder: Path, uv: Uv) -> None:
    asked = replace(INTERPRETER, version="3.99.0")
    result = resolve_on_base(request_on(host, folder, "hub==1.0"), asked, uv)
    assert isinstance(result, Unavailable)
    assert result.reason is Reason.BASE
    assert "3.99.0" in result.message
    assert isinstance(resolve_on_base(request_on(host, folder, "hub==1.0"), INTERPRETER, uv), Lock)


@pytest.mark.parametrize("path", ["/nowhere/python", "/bin/false", "/bin/true"])
def test_base_that_is_no_python(path: str, folder: Path, uv: Uv) -> None:
    result = refused(request_on(Path(path), folder, "hub==1.5"), uv)
    assert result.reason is Reason.BASE
    assert path in result.message


def test_base_that_changes(host: Path, folder: Path, tmp_path: Path, uv: Uv) -> None:
    request = request_on(host, folder, "transformers==5.8.1")
    lock = locked(request, uv)
    environment = build(lock, request, tmp_path, uv)
    next(host.parents[1].glob("lib/python*/site-packages/triton/__init__.py")).write_text("changed = True\n")
    (line,) = verify(environment)
    assert "base" in line
    assert str(host) in line
    other = building.build(lock, request, tmp_path / "elsewhere", uv, TIMEOUT)
    assert isinstance(other, Unavailable)
    assert other.reason is Reason.BASE
    assert locked(request, uv).address != lock.address


def test_base_that_stands_on_a_base(host: Path, folder: Path, wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    """What a plain path in a .pth, and uv itself, would not see."""
    middle_request = request_on(host, folder, "transformers==5.8.1")
    middle = build(locked(middle_request, uv), middle_request, tmp_path / "middle", uv)
    wheels.wheel("hub", "1.7")
    request = request_on(middle.python, folder, "hub==1.7", "transformers==5.8.1", "torch==2.11.0")
    lock = locked(request, uv)
    assert lock.pins == (("hub", "1.7"),)
    assert lock.cuda == "cu130"
    top = build(lock, request, tmp_path / "top", uv)
    assert said_by(top.python, ["hub", "transformers", "triton"]) == ["1.7"] * 2 + ["5.8.1"] * 2 + ["3.6.0"] * 2
    assert "torch==2.11.0+cu130" in top.freeze.split()


def test_system_packages_of_a_base(host: Path, folder: Path, tmp_path: Path, uv: Uv) -> None:
    """A venv made with --system-site-packages holds nothing and sees much, pip among it."""
    subprocess.run(
        [INTERPRETER.path, "-m", "venv", "--system-site-packages", "--without-pip", tmp_path / "thin"], check=True
    )
    base = foundation.inspect(str(tmp_path / "thin" / "bin" / "python"))
    assert isinstance(base, Base)
    assert "pip" in base.versions
    request = request_on(tmp_path / "thin" / "bin" / "python", folder, "hub==1.5", "pip")
    lock = locked(request, uv)
    assert lock.pins == (("hub", "1.5"),)
    environment = build(lock, request, tmp_path, uv)
    assert said_by(environment.python, ["hub", "pip"])[0] == "1.5"


def test_parents_variables_are_not_the_bases(
    host: Path, folder: Path, tmp_path: Path, uv: Uv, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = locked(request_on(host, folder, "transformers==5.8.1"), uv)
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "sitecustomize.py").write_text("raise SystemExit('evil')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "evil"))
    monkeypatch.setenv("PYTHONHOME", str(tmp_path / "evil"))
    assert locked(request_on(host, folder, "transformers==5.8.1"), uv) == clean


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("cuda: Optional[str] = '13.0'\n", "cu130"),
        ("cuda = '12.8'\n", "cu128"),
        ("cuda: Optional[str] = None\n", "cpu"),
    ],
)
def test_variant_is_read_without_importing(tmp_path: Path, text: str, variant: str) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text(f"__version__ = '2.11.0'\ndebug = False\n{text}git_version = 'x'\n")
    base = Base(INTERPRETER, (str(tmp_path),), (str(tmp_path),), ())
    assert base.cuda == variant


def test_paths_in_others_are_walked_once() -> None:
    assert foundation.outermost(["/a/b", "/a/b/c", "/d", "/d", "/a/bc"]) == ("/a/b", "/d", "/a/bc")


def test_a_base_that_greets(host: Path) -> None:
    (site,) = host.parent.parent.glob("lib/*/site-packages")
    (site / "banner.pth").write_text("import sys; print('== NVIDIA Release 25.01 ==', flush=True)\n")
    base = foundation.inspect(str(host))
    assert isinstance(base, Base) and base.versions["torch"] == "2.11.0+cu130"


def test_own_python_as_a_base_is_described() -> None:
    base = foundation.inspect(sys.executable)
    assert isinstance(base, Base)
    assert base.interpreter.version == INTERPRETER.version
    assert base.versions["pytest"] == pytest.__version__
    assert base.cuda is None or base.cuda

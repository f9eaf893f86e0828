"""What is read from uv's locks is what uv installs of them: real uv, on tiny distributions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bisect_env.errors import BadInput
from bisect_env.snapshots import sources
from bisect_env.snapshots.reading import read_text
from bisect_env.snapshots.records import Snapshot, Target, this_host
from tests.snapshots.projects import Project
from tests.support.index import Index
from tests.support.wheels import Wheels


def pins(snapshot: Snapshot) -> dict[str, str | None]:
    return {each.name: each.version for each in snapshot.distributions}


def host(choice: str = "") -> Target:
    return this_host().choosing(choice)


@pytest.fixture
def variants(tmp_path: Path, wheels: Wheels, make_index: Callable[..., Index], uv_cache: Path) -> Project:
    """torch for the CPU and for CUDA by extras that exclude each other, as uv's guide to PyTorch has it."""
    plain, cpu, cuda = make_index(), make_index(), make_index()
    cpu.add(wheels.wheel("torch", "2.9.1+cpu", requires=["filelock"]))
    cuda.add(wheels.wheel("torch", "2.9.1+cu128", requires=["filelock", "triton==3.5.1", "nvidia-nccl-cu12==2.27.5"]))
    cuda.add(wheels.wheel("triton", "3.5.1"))
    for name, version in (("triton", "3.5.1"), ("nvidia-nccl-cu12", "2.27.5"), ("pluggy", "1.6.0"), ("ruff", "0.9.0")):
        plain.add(wheels.wheel(name, version))
    plain.add(wheels.wheel("accelerate", "1.2.0", requires=["torch>=2"]))
    plain.add(wheels.wheel("torch", "2.9.1", requires=["filelock", "triton==3.5.1"]))
    plain.add(wheels.wheel("filelock", "3.20.0"))
    plain.add(wheels.wheel("pywin32", "306"))
    folder = tmp_path / "training"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(f"""
[project]
name = "Training.Runs"
version = "0.1"
requires-python = ">=3.9"
dependencies = ["filelock", "pywin32; sys_platform == 'win32'"]

[project.optional-dependencies]
cpu = ["torch==2.9.1", "accelerate"]
cu128 = ["torch==2.9.1", "accelerate"]
tools = ["triton"]

[dependency-groups]
dev = ["pluggy"]
lint = ["ruff"]

[tool.uv]
conflicts = [[{{ extra = "cpu" }}, {{ extra = "cu128" }}]]

[tool.uv.sources]
torch = [{{ index = "cpu", extra = "cpu" }}, {{ index = "cuda", extra = "cu128" }}]

[[tool.uv.index]]
name = "plain"
url = "{plain.url}"
default = true

[[tool.uv.index]]
name = "cpu"
url = "{cpu.url}"
explicit = true

[[tool.uv.index]]
name = "cuda"
url = "{cuda.url}"
explicit = true
""")
    return Project(folder, uv_cache)


@pytest.mark.parametrize(
    ("choice", "options", "cuda"),
    [
        ("", (), None),
        ("cpu", ("--extra", "cpu"), "cpu"),
        ("cu128, Lint", ("--extra", "cu128", "--group", "lint"), "cu128"),
        ("tools,-dev", ("--extra", "tools", "--no-default-groups"), None),
    ],
)
def test_conflicting_extras_choose_between_entries_of_one_package(
    variants: Project, choice: str, options: tuple[str, ...], cuda: str | None
) -> None:
    lock = variants.lock()
    assert lock.count('name = "torch"\n') > 1, "the lock is to have several entries of torch"
    snapshot = read_text(lock, "uv.lock", host(choice))
    assert pins(snapshot) == variants.installed(*options)
    assert not snapshot.unread
    assert snapshot.cuda == cuda
    (counted,) = [sentence for sentence in snapshot.missing if sentence.startswith("Counted as installed")]
    assert ("extra cpu" in counted.partition("; not counted")[0]) == (choice == "cpu")


def test_a_choice_stands_behind_the_file_s_name(variants: Project) -> None:
    variants.lock()
    spec = f"{variants.folder / 'uv.lock'}[cu128,-dev]"
    found = sources.snapshot(spec)
    assert found.origin == spec
    assert pins(found) == variants.installed("--extra", "cu128", "--no-dev")


def test_extras_that_exclude_each_other_are_a_contradiction(variants: Project) -> None:
    with pytest.raises(BadInput) as caught:
        read_text(variants.lock(), "uv.lock", host("cpu,cu128"))
    assert "torch" in caught.value.found


def test_what_uv_exports_as_pylock_is_what_it_installs(variants: Project) -> None:
    variants.lock()
    text = variants.uv("export", "--format", "pylock.toml", "--extra", "cu128", "--no-emit-project")
    snapshot = read_text(text, "pylock.toml", host())
    assert snapshot.form == "pylock.toml"
    assert pins(snapshot) == variants.installed("--extra", "cu128")


def test_what_uv_exports_as_requirements_is_complete(variants: Project) -> None:
    variants.lock()
    text = variants.uv("export", "--extra", "cu128", "--no-emit-project")
    snapshot = read_text(text, "-", host())
    assert snapshot.form == "requirements.txt"
    assert pins(snapshot) == variants.installed("--extra", "cu128")
    assert not snapshot.partial
    assert not snapshot.ranges


def test_a_workspace_s_members_and_local_wheels(tmp_path: Path, wheels: Wheels, index: Index, uv_cache: Path) -> None:
    index.add(wheels.wheel("numpy", "1.26.4", requires_python=">=3.8"))
    index.add(wheels.wheel("numpy", "2.1.0", requires_python=">=3.8"))
    index.add(wheels.wheel("requests", "2.32.0", extras={"socks": ["pysocks"]}))
    index.add(wheels.wheel("pysocks", "1.7.1"))
    index.add(wheels.wheel("pytest", "8.0.0"))
    folder = tmp_path / "workspace"
    member = folder / "packages" / "kernels"
    member.mkdir(parents=True)
    private = wheels.wheel("private_ops", "0.3+build7")
    (folder / "pyproject.toml").write_text(f"""
[project]
name = "workspace"
version = "1"
requires-python = ">=3.9"
dependencies = [
    "kernels", "private-ops", "requests[socks]",
    "numpy<2; python_version < '3.14'", "numpy>=2; python_version >= '3.14'",
]
[tool.uv.workspace]
members = ["packages/*"]
[tool.uv.sources]
kernels = {{ workspace = true }}
private-ops = {{ path = "{private}" }}
[[tool.uv.index]]
url = "{index.url}"
default = true
""")
    (member / "pyproject.toml").write_text("""
[project]
name = "kernels"
version = "0.0.1"
requires-python = ">=3.9"
dependencies = ["numpy"]
[dependency-groups]
dev = ["pytest"]
[tool.uv]
package = false
""")
    project = Project(folder, uv_cache)
    snapshot = read_text(project.lock(), "uv.lock", host())
    found = pins(snapshot)
    # uv installs no member that is no package; it is the folder that matters, and it is listed.
    (kernels,) = snapshot.of("kernels")
    assert kernels.source == "packages/kernels"
    assert {name: version for name, version in found.items() if name != "kernels"} == project.installed()
    (ops,) = snapshot.of("private_ops")
    assert ops.source.endswith(private.name)


def test_a_script_s_lock_starts_from_its_requirements(
    tmp_path: Path, wheels: Wheels, index: Index, uv_cache: Path
) -> None:
    index.add(wheels.wheel("torch", "2.9.1", requires=["triton"]))
    index.add(wheels.wheel("triton", "3.5.1"))
    index.add(wheels.wheel("pywin32", "306"))
    (tmp_path / "race.py").write_text(f"""
# /// script
# requires-python = ">=3.9"
# dependencies = ["torch", "pywin32; sys_platform == 'win32'"]
# [[tool.uv.index]]
# url = "{index.url}"
# default = true
# ///
""")
    Project(tmp_path, uv_cache).uv("lock", "--script", "race.py")
    snapshot = read_text((tmp_path / "race.py.lock").read_text(), "race.py.lock", host())
    assert pins(snapshot) == {"torch": "2.9.1", "triton": "3.5.1"}


def test_a_script_s_requirements_fork_by_platform(tmp_path: Path, wheels: Wheels, index: Index, uv_cache: Path) -> None:
    for version in ("1.26.4", "2.1.0"):
        index.add(wheels.wheel("numpy", version))
    (tmp_path / "race.py").write_text(f"""
# /// script
# requires-python = ">=3.9"
# dependencies = ["numpy<2; sys_platform == 'win32'", "numpy>=2; sys_platform != 'win32'"]
# [[tool.uv.index]]
# url = "{index.url}"
# default = true
# ///
""")
    Project(tmp_path, uv_cache).uv("lock", "--script", "race.py")
    text = (tmp_path / "race.py.lock").read_text()
    assert pins(read_text(text, "x", Target("3.12", "linux", "x86_64"))) == {"numpy": "2.1.0"}
    assert pins(read_text(text, "x", Target("3.12", "win32", "AMD64"))) == {"numpy": "1.26.4"}


def test_an_extra_that_a_member_asks_for_decides_elsewhere(variants: Project) -> None:
    """accelerate's torch depends on an extra of ``kernels`` that is reached, by way of ``aaa``, only after it."""
    folder = variants.folder
    project = (folder / "pyproject.toml").read_text()
    indexes = project[project.index("[[tool.uv.index]]") :]
    (folder / "pyproject.toml").write_text(f"""
[project]
name = "root"
version = "1"
requires-python = ">=3.9"
dependencies = ["aaa", "accelerate"]
[tool.uv.workspace]
members = ["members/*"]
[tool.uv.sources]
aaa = {{ workspace = true }}
{indexes}
""")
    members = {
        "aaa": 'dependencies = ["kernels[cpu]"]\n[tool.uv.sources]\nkernels = { workspace = true }\n',
        "kernels": """
[project.optional-dependencies]
cpu = ["torch==2.9.1"]
cu128 = ["torch==2.9.1"]
[tool.uv]
conflicts = [[{ extra = "cpu" }, { extra = "cu128" }]]
[tool.uv.sources]
torch = [{ index = "cpu", extra = "cpu" }, { index = "cuda", extra = "cu128" }]
""",
    }
    for name, rest in members.items():
        place = folder / "members" / name
        place.mkdir(parents=True)
        head = f'[project]\nname = "{name}"\nversion = "1"\nrequires-python = ">=3.9"\n'
        (place / "pyproject.toml").write_text(head + rest)
    found = pins(read_text(variants.lock(), "uv.lock", host()))
    assert found.pop("aaa") == found.pop("kernels") == "1"
    assert found == variants.installed()
    assert found["torch"] == "2.9.1+cpu"

"""The difference with what a real index and real environments say."""

from __future__ import annotations

import sys
from pathlib import Path

from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import IndexChoice
from bisect_env.snapshots import pinning
from bisect_env.snapshots.factors import Difference
from bisect_env.snapshots.records import Distribution, Snapshot, in_order
from tests.support.index import Index, refusing_url
from tests.support.wheels import Wheels


def snapshot(name: str, *distributions: Distribution) -> Snapshot:
    return Snapshot(name, "pip list", in_order(distributions))


def pinned(text: str) -> tuple[Distribution, ...]:
    return tuple(Distribution(*each.split("==")) for each in text.split())


def groups(found: Difference) -> list[list[str]]:
    return [[member.name for member in factor.members] for factor in found.factors]


def torches(wheels: Wheels, index: Index) -> None:
    for torch, triton, label in (("2.8.0", "3.4.0", "cu128"), ("2.11.0", "3.6.0", "cu130")):
        index.add(wheels.wheel("torch", f"{torch}+{label}", requires=[f"triton=={triton}"]))
        index.add(wheels.wheel("triton", triton))


def test_pins_come_from_the_index(wheels: Wheels, index: Index) -> None:
    torches(wheels, index)
    index.add(wheels.wheel("nvidia-nccl-cu12", "1"))
    index.add(wheels.wheel("nvidia-nccl-cu12", "2"))
    good = snapshot("A", *pinned("torch==2.8.0+cu128 triton==3.4.0 nvidia-nccl-cu12==1"))
    bad = snapshot("B", *pinned("torch==2.11.0+cu130 triton==3.6.0 nvidia-nccl-cu12==2"))
    found = pinning.differing(good, bad, IndexChoice(None, (index.url,)), SimpleIndex())
    # By the rule for where nothing is known NCCL would be in the group.
    assert groups(found) == [["nvidia-nccl-cu12"], ["torch", "triton"]]
    assert found.notes == ()


def test_without_an_index_the_rule_is_used_and_nothing_is_held(wheels: Wheels) -> None:
    good = snapshot("A", *pinned("torch==2.8.0+cu128 triton==3.4.0 numpy==1"))
    bad = snapshot("B", *pinned("torch==2.11.0+cu130 triton==3.6.0 numpy==2"))
    found = pinning.differing(good, bad, IndexChoice(None, (refusing_url(),)), SimpleIndex(1.0))
    assert groups(found) == [["numpy"], ["torch", "triton"]]
    assert found.held == ()
    assert "put together by name" in found.notes[0]


def test_what_no_index_here_has_is_held(wheels: Wheels, index: Index, tmp_path: Path) -> None:
    torches(wheels, index)
    index.add(wheels.wheel("numpy", "1"))
    here = wheels.wheel("local", "2")
    good = snapshot("A", *pinned("torch==2.8.0+cu128 numpy==1 secret==1"), Distribution("local", "1", here.as_uri()))
    gone = (tmp_path / "gone" / "local-3-py3-none-any.whl").as_uri()
    bad = snapshot("B", *pinned("torch==2.8.0+cu126 numpy==2 secret==2"), Distribution("local", "3", gone))
    found = pinning.differing(good, bad, IndexChoice(None, (index.url,)), SimpleIndex())
    assert found.factors == ()
    why = {each.name: (each.why, each.available) for each in found.held}
    assert why["numpy"] == ("no index or folder that is used here has numpy 2", "good")
    assert why["secret"] == ("no index or folder that is used here has secret", "")
    assert why["local"] == (f"{tmp_path}/gone/local-3-py3-none-any.whl is not on this host", "good")
    assert why["torch"][0].endswith("PyTorch's own has its builds: https://download.pytorch.org/whl/cu126")


def test_pins_come_from_built_environments(wheels: Wheels, index: Index, uv: Uv, tmp_path: Path) -> None:
    names = []
    for version in ("1", "2"):
        index.add(wheels.wheel("a", version, requires=[f"b=={version}"]))
        index.add(wheels.wheel("b", version))
        venv = tmp_path / version
        assert uv.run(["venv", "--quiet", "--python", sys.executable, venv]).ok
        python = str(venv / "bin" / "python")
        choice = IndexChoice(None, (index.url,))
        assert uv.run(["pip", "install", "--quiet", "--python", python, f"a=={version}"], index=choice).ok
        names.append(f"env:{venv}")
    known = pinning.installed([*names, "-", "main:uv.lock"])
    assert known["a", "1"] == ("b==1",)
    good, bad = (snapshot(name, *pinned(f"a=={name} b=={name}")) for name in ("1", "2"))
    offline = IndexChoice(None, (), (), offline=True)
    assert groups(pinning.differing(good, bad, offline, SimpleIndex(), known)) == [["a", "b"]]
    assert groups(pinning.differing(good, bad, offline, SimpleIndex())) == [["a"], ["b"]]


def test_an_environment_that_cannot_be_asked_tells_nothing(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    assert pinning.installed([str(tmp_path)]) == {}

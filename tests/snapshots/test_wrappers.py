"""docker, kubectl, srun and sudo as prefixes, by stand-ins that pass standard input on as those do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput
from bisect_env.snapshots import hosts
from bisect_env.snapshots.reading import read_text
from bisect_env.snapshots.records import Snapshot
from tests.support.environments import built
from tests.support.wheels import Wheels
from tests.support.wrappers import wrappers


@pytest.fixture(autouse=True)
def _on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{wrappers(tmp_path / 'bin')}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def venv(wheels: Wheels, tmp_path: Path, uv: Uv) -> str:
    return str(built([wheels.wheel("alpha", "1.0")], tmp_path / "environments", uv).folder / "venv")


def taken(prefix: str, venv: str = "", interpreter: str = "") -> Snapshot:
    way = hosts.through(prefix.split(), "host", venv, interpreter)
    return read_text(hosts.ask(way, "host", 50.0), "host")


@pytest.mark.parametrize(
    "prefix",
    [
        "docker exec -i trainer",
        "docker exec -it trainer",
        "kubectl exec -i pod --",
        "srun -w node7",
        "srun -n 1 env -i",
    ],
)
def test_what_passes_its_input_on(prefix: str, venv: str) -> None:
    for found in (taken(prefix, venv), taken(prefix, interpreter=f"{venv}/bin/python")):
        assert [each.name for each in found.distributions] == ["alpha"]


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ("docker exec trainer", "passes its input on: docker exec -i NAME"),
        ("docker exec -t trainer", "passes its input on: docker exec -i NAME"),
        ("kubectl exec pod --", "passes its input on: kubectl exec -i POD --"),
        ("docker exec -i other", "No such container: other"),
        ("docker exec -i distroless", "ends in the path of a Python"),
        ("docker exec -i forbidden", "a user of the group docker"),
        ("sudo docker exec -i trainer", "sudo -n true"),
        ("srun -n 2", "a second capture"),
    ],
)
def test_what_does_not(prefix: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        taken(prefix)


def test_a_secret_goes_through_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"docker exec -e NAME"):
        taken("docker exec -e HF_TOKEN=geheim -i trainer")

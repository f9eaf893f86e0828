"""Credentials in every input: none in a store, a log, a report, a message, or the title of a process.

To add a command: a function that runs it with :meth:`Watched.run`, in ``COMMANDS``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bisect_env.environments.uv import Uv
from tests.support.bisecting import Suspects
from tests.support.environments import built
from tests.support.gating import FAST, Gates
from tests.support.index import Index, refusing_url
from tests.support.planting import (
    MARK,
    PASSWORD,
    USER,
    Watched,
    direct_url,
    holding,
    planted,
    watched,
    with_credentials,
)
from tests.support.racing import World
from tests.support.wheels import Wheels
from tests.support.wrappers import wrappers

CURIOUS = """\
import os, sys
print(dict(os.environ), sys.argv)
print(open(os.path.expanduser("~/.netrc")).read() if os.path.exists(os.path.expanduser("~/.netrc")) else "no netrc")
"""
"""A trial that prints all it is given before it does its work."""
FILES = {
    "freeze.txt": """\
alpha==1.0
beta @ <URL>/beta-1.0-py3-none-any.whl
-e git+<URL>/gamma.git@c0ffee#egg=gamma
""",
    "requirements.txt": """\
--index-url <URL>
--extra-index-url=<URL>
-f <URL>
alpha==1.0
-r <URL>/more.txt
beta>=1
""",
    "odd.txt": """\
alpha==1.0
beta==2.0
%% <URL> what is this
""",
    "uv.lock": f"""\
version = 1
requires-python = ">=3.8"

[[package]]
name = "alpha"
version = "1.0"
source = {{ registry = "<URL>" }}
wheels = [{{ url = "<URL>/alpha-1.0-py3-none-any.whl", hash = "sha256:{"0" * 64}" }}]
""",
    "pylock.toml": f"""\
lock-version = "1.0"
created-by = "me"
[[packages]]
name = "alpha"
version = "1.0"
index = "<URL>"
[[packages.wheels]]
name = "alpha-1.0-py3-none-any.whl"
url = "<URL>/alpha-1.0-py3-none-any.whl"
hashes = {{sha256 = "{"0" * 64}"}}
""",
    "pip-list.json": '[{"name": "alpha", "version": "1.0", "editable_project_location": "<URL>"}]',
    "environment.yml": """\
name: x
channels: ['<URL>']
dependencies:
- python=3.11
- pip:
  - -i <URL>
  - alpha==1.0
variables:
  HF_TOKEN: hf_<MARK>
  NCCL_URL: <URL>
""",
    "cut.json": '{"bisect_env_capture": 1, "variables": [["HF_TOKEN", "<MARK>',
}
"""What people have, with the index's URL and a token in it."""


@dataclass
class Place:
    """A project whose user has credentials everywhere."""

    world: World
    variables: dict[str, str]
    watch: Watched
    venv: Path

    @property
    def folder(self) -> Path:
        return self.world.folder

    @property
    def url(self) -> str:
        return with_credentials(self.world.index.url)

    def run(self, *args: str, codes: tuple[int, ...] = (0,), given: str = "", **variables: str) -> str:
        return self.watch.run(
            *args, cwd=self.folder, variables={**self.variables, **variables}, codes=codes, given=given
        )


@pytest.fixture
def place(make_index: Callable[..., Index], tmp_path: Path, wheels: Wheels, uv: Uv, uv_cache: Path) -> Iterator[Place]:
    index = make_index(credentials=(USER, PASSWORD))
    folder = tmp_path / "project"
    folder.mkdir()
    venv = built([wheels.wheel("alpha", "1.0"), wheels.wheel("beta", "1.0")], tmp_path / "other", uv).folder / "venv"
    direct_url(next(venv.glob("lib/python*/site-packages")), "alpha", "https://example.com/alpha.git")
    (venv / "pip.conf").write_text(f"[global]\nindex-url = {with_credentials(index.url)}\n")
    variables = planted(tmp_path, index.url) | {"UV_CACHE_DIR": str(uv_cache)}
    with watched() as watch:
        yield Place(World(folder, index, wheels, uv_cache), variables, watch, venv)


def snapshot(place: Place) -> None:
    url, folder = place.url, place.folder
    texts = {name: text.replace("<URL>", url).replace("<MARK>", MARK) for name, text in FILES.items()}
    for name, text in texts.items():
        (folder / name).write_text(text)
        place.watch.here("snapshot", str(folder / name), codes=(0, 2))
        place.watch.here("snapshot", str(folder / name), "--json", codes=(0, 2))
    place.run("snapshot", f"env:{place.venv}")
    place.run("snapshot", f"host:env FOO=1 sh -c @{place.venv}")
    for command in (f"env HF_TOKEN=hf_{MARK} sh", f"sshpass -p {MARK} ssh x", f"ssh {with_credentials('ssh://x')}"):
        place.watch.here("snapshot", f"host:{command}", codes=(2,))
        assert "a secret in the command" in place.watch.said[-1]
    place.watch.here("snapshot", f"{url}/freeze.txt", codes=(2,))


def capture(place: Place) -> None:
    tools = f"{wrappers(place.folder.parent / 'tools')}{os.pathsep}{os.environ['PATH']}"
    python = str(place.venv / "bin" / "python")
    ready = "print('ready', flush=True); input()"
    process = subprocess.Popen(
        [python, "-c", ready], env=place.variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for name, options in (
            ("shell", ()),
            ("python", ("--python", python)),
            ("venv", ("--activate", str(place.venv))),
            ("pid", ("--pid", str(process.pid))),
        ):
            assert "HF_TOKEN" in place.run("capture", *options, "-o", f"{name}.json")
            assert "***" in (place.folder / f"{name}.json").read_text()
    finally:
        process.kill()
        process.communicate()
    # Its value comes from the environment, and a container shows it.
    docker = ("docker", "exec", "-i", "-e", "HF_TOKEN", "trainer")
    place.run("capture", "--python", python, "--", *docker, PATH=tools)
    for command in (
        ("docker", "exec", "-i", "-e", f"HF_TOKEN=hf_{MARK}", "trainer"),
        ("kubectl", "--token", MARK, "exec", "-i", "pod", "--"),
    ):
        assert "a secret in the command" in place.run("capture", "--", *command, codes=(2,), PATH=tools)
    # What fails shows its last words.
    leak = 'echo "curl: $PIP_INDEX_URL $HF_TOKEN $UV_INDEX_CORP_PASSWORD" >&2; exit 3'
    assert "status 3" in place.run("capture", "--", "sh", "-c", leak, codes=(2,))
    place.run("capture", "--timeout", "1", "--", "sh", "-c", f"{leak.replace('exit 3', 'sleep 9')}", codes=(5,))


def diff(place: Place) -> None:
    (place.folder / "a.txt").write_text(f"alpha @ {place.url}/alpha-1.0-py3-none-any.whl\nbeta==1.0\n")
    (place.folder / "b.txt").write_text(f"alpha @ {place.url}/alpha-2.0-py3-none-any.whl\nbeta==2.0\n")
    place.run("diff", "a.txt", "b.txt", "--index", place.url, "--json")
    place.run("diff", f"env:{place.venv}", "b.txt", "--index", with_credentials(refusing_url()), codes=(0, 5))
    place.run("diff", "a.txt", "b.txt", "--index", place.url.replace(USER, "nobody"), codes=(0, 2, 5))


def inspect(place: Place) -> None:
    for version in ("2.11.0", "2.12.0"):
        place.world.torch(version)
    where = ("torch", "--in", "torch==2.11..2.12", "--json", "torch.json", "--markdown", "torch.md", "--index")
    assert "nothing was installed" in place.run("inspect", *where, place.url)
    place.run("inspect", *where, place.url, "--offline")
    place.run("inspect", *where, place.url.replace(USER, "nobody"), "--store", "another", codes=(2, 5))
    place.run("inspect", *where, with_credentials(refusing_url()), "--store", "third", codes=(5,))
    (place.folder / "fails.py").write_text(f"{CURIOUS}raise SystemExit(3)\n")
    traced = ("--scan", "x", "--trace", "fails.py", "--timeout", "30")
    place.run("inspect", "os", "--in", str(place.venv), *traced)
    place.run("inspect", "json", "--in", str(place.venv), *traced, codes=(2,))


def matrix(place: Place) -> None:
    place.world.torch("2.11.0", race=1.0)
    place.world.transformers("5.8.1")
    body = "axes: {torch: [2.11.0], transformers: ['5.8.1']}\ntrials: 4\ncontrols: 4\n"
    path = place.world.matrix(body)
    script = place.folder / "race.py"
    script.write_text(CURIOUS + script.read_text())
    text = path.read_text()
    outputs = ("--json", "matrix.json", "-o", "matrix.md")
    place.run("matrix", "matrix.yaml", "--dry-run")  # With the user's ~/.netrc.
    path.write_text(text.replace(place.world.index.url, place.url))
    assert "RACE 4/4" in place.run("matrix", "matrix.yaml", *outputs)
    place.run("report", "matrix.yaml")
    for trial in place.world.trials()[:2]:
        place.run("show", trial[0])
    for wrong in (with_credentials(refusing_url()), place.url.replace(USER, "nobody")):
        path.write_text(text.replace(place.world.index.url, wrong).replace("2.11.0", "2.14.9"))
        place.run("matrix", "matrix.yaml", codes=(0, 5), HOME=str(place.folder))
    place.run("clean")


def bisect(place: Place) -> None:
    suspects = Suspects(place.world)
    suspects.offer("alpha", {"1.0": 0.0, "1.1": 1.0})
    suspects.offer("beta", {"1.0": 0.0, "1.1": 0.0})
    suspects.freeze("good.txt", alpha="1.0", beta="1.0")
    suspects.freeze("bad.txt", alpha="1.1", beta="1.1")
    for name in ("good.txt", "bad.txt"):
        path = place.folder / name
        path.write_text(f"--extra-index-url {place.url}\n{path.read_text()}")
    command = suspects.command("alpha", "beta")
    script = place.folder / "draw.py"
    script.write_text(CURIOUS + script.read_text())
    outputs = ("--json", "bisect.json", "-o", "bisect.md")
    sides = ("bisect", "--good", "good.txt", "--bad", "bad.txt")
    place.run(*sides, "--index", place.world.index.url, "--dry-run", "--", *command)  # With the user's ~/.netrc.
    place.run(*sides, "--index", place.url, *outputs, *PASSED, "--", *command)
    found = json.loads((place.folder / "bisect.json").read_text())
    assert [each["name"] for each in found["factors"]] == ["alpha"]
    place.run("bisect", "log")
    refused = place.run(*sides, "--env", f"HF_TOKEN=hf_{MARK}", "--index", place.url, "--", *command, codes=(2,))
    assert "looks like a secret" in refused


def gate(place: Place) -> None:
    gates = Gates(place.world)
    gates.offer("1.0", tokens=1000)
    gates.offer("1.1", tokens=1000, race=1.0)
    for name, version in (("now.txt", "1.0"), ("new.txt", "1.1")):
        gates.freeze(name, engine=version)
        path = place.folder / name
        path.write_text(f"--extra-index-url {place.url}\n{path.read_text()}")
    script = place.folder / "trial.py"
    script.write_text(CURIOUS + script.read_text())
    words = ("gate", "--baseline", "now.txt", "--candidate", "new.txt", *FAST)
    end = ("--", "python", "trial.py")
    place.run(*words, "--index", place.world.index.url, "--dry-run", *end)  # With the user's ~/.netrc.
    outputs = ("--json", "gate.json", "-o", "gate.md")
    said = place.run(*words, "--index", place.url, *outputs, *PASSED, *end, codes=(1,))
    assert "FAIL" in said and "tracing flag was set" in (place.folder / "gate.md").read_text()


PASSED = ("--pass-env", "HF_TOKEN", "--pass-env", "PIP_INDEX_URL", "--pass-env", "UV_INDEX_CORP_PASSWORD")
"""Trials may have them, and print them."""
COMMANDS = (snapshot, capture, diff, inspect, matrix, bisect, gate)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.__name__)
def test_none_is_left_anywhere(command: Callable[[Place], None], place: Place, tmp_path: Path) -> None:
    command(place)
    said = "\n".join(place.watch.said)
    assert MARK not in said, [line for line in said.splitlines() if MARK in line]
    assert not place.watch.titles()
    started = (tmp_path / "started").read_text() if (tmp_path / "started").exists() else ""
    # A command with a secret in it is refused before anything is started.
    assert MARK not in started, [line for line in started.splitlines() if MARK in line]
    # The user wrote it there.
    inputs = [
        place.folder / name
        for name in (*FILES, "a.txt", "b.txt", "good.txt", "bad.txt", "now.txt", "new.txt", "matrix.yaml")
    ]
    assert not holding(place.folder, inputs)


def test_what_would_be_found(place: Place) -> None:
    """The search finds what is there: a file, a process's title, a started command, a printed line."""
    (place.folder / "log").write_bytes(b"\0\1" + MARK.encode())
    assert holding(place.folder) == [str(place.folder / "log")]
    subprocess.run([sys.executable, "-c", "import time; time.sleep(0.5)", MARK], check=True)
    assert place.watch.titles()
    place.run("capture", "--", "sh", "-c", f"echo {MARK} >&2; exit 3", codes=(2,))
    assert MARK in place.watch.said[-1]
    assert MARK in (place.folder.parent / "started").read_text()

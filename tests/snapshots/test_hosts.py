"""Hosts through command prefixes that exist here: each takes the command apart in another way."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from pathlib import Path

import psutil
import pytest

from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.snapshots import hosts
from bisect_env.snapshots.forms import captured
from bisect_env.snapshots.records import Snapshot, this_host
from bisect_env.snapshots.sources import snapshot
from tests.support.environments import built
from tests.support.wheels import Wheels

LIMIT = 60.0


@pytest.fixture
def ssh(tmp_path: Path) -> str:
    """As ssh: takes a host's name, joins the other words with blanks and has a shell take them apart again."""
    script = tmp_path / "like-ssh"
    script.write_text("#!/bin/sh\nshift\necho 'Welcome to gpu3'\necho 'motd' >&2\nexec env -i HOME=/ sh -c \"$*\"\n")
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def venv(wheels: Wheels, tmp_path: Path, uv: Uv) -> Path:
    environment = built([wheels.wheel("alpha", "1.0"), wheels.wheel("beta", "2.0")], tmp_path / "environments", uv)
    return environment.folder / "venv"


def asked(prefix: str, timeout: float = LIMIT) -> Snapshot:
    text = hosts.ask(hosts.route(prefix, "host"), "host", timeout)
    return captured.read(text, "host", this_host())


def names(snapshot: Snapshot) -> set[str]:
    return {each.name for each in snapshot.distributions}


@pytest.mark.parametrize(
    "prefix",
    [
        "env -i",
        "env -i bash -c",
        "env -i sh -c",
        "timeout 50 env -i bash -lc",
        "{ssh} gpu3",
        "{ssh} gpu3 {ssh} inner env -i bash -c",
        "{ssh} gpu3 exec env FOO=1 bash -c",
        "nice -n 1 env -i",
    ],
)
def test_a_venv_behind_any_prefix(prefix: str, ssh: str, venv: Path) -> None:
    route = prefix.format(ssh=ssh)
    found = asked(f"{route} @{venv}")
    assert names(found) == {"alpha", "beta"} and found.python == ".".join(map(str, sys.version_info[:3]))
    assert asked(f"{route} @{venv}/bin/activate").distributions == found.distributions


@pytest.mark.parametrize(
    "prefix",
    [
        "{venv}/bin/python",
        "env -i {venv}/bin/python3 -",
        "{ssh} gpu3 {venv}/bin/python",
        "{ssh} gpu3 'export PATH={venv}/bin:$PATH; python3'",
        "{ssh} gpu3 'bash -c \". {venv}/bin/activate && python3\"'",
        "bash -c 'source {venv}/bin/activate && python3 -'",
    ],
)
def test_a_prefix_that_ends_in_a_python(prefix: str, ssh: str, venv: Path) -> None:
    assert names(asked(prefix.format(ssh=ssh, venv=venv))) == {"alpha", "beta"}


@pytest.mark.skipif(shutil.which("script") is None, reason="util-linux's script makes the terminal")
@pytest.mark.parametrize("last", ["-c @{venv}", "-c {venv}/bin/python"])
def test_through_a_terminal_that_echoes(last: str, venv: Path) -> None:
    assert names(asked(f"script -qe /dev/null {last.format(venv=venv)}")) == {"alpha", "beta"}


def test_greetings_of_any_kind(venv: Path, tmp_path: Path) -> None:
    (tmp_path / "loud").write_text('printf \'\\033]0;gpu3\\007 \\001 {"a": 1}\\n\'\nexec "$@"\n')
    found = snapshot(f"host:sh {tmp_path}/loud env -i @{venv}")
    assert names(found) == {"alpha", "beta"}


def test_two_nodes_that_answer_at_once(venv: Path) -> None:
    with pytest.raises(BadInput, match="a second capture"):
        asked(f"sh -c 'cat > {venv}/given; sh {venv}/given; sh {venv}/given' @{venv}")


def test_a_venv_below_the_home_there(ssh: str, venv: Path) -> None:
    assert names(asked(f"{ssh} gpu3 @~/{venv.relative_to('/')}")) == {"alpha", "beta"}


def test_names_with_blanks_and_quotes(venv: Path, tmp_path: Path) -> None:
    odd = tmp_path / "it's a venv"
    odd.symlink_to(venv)
    assert "alpha" in names(asked(f"env -i sh -c {shlex.quote(f'@{odd}')}"))


def test_variables_are_those_of_the_other_side(ssh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    found = asked(f"{ssh} gpu3 env TORCH_LOGS=dynamo TOKENIZERS_PARALLELISM=false HF_TOKEN=/etc/token")
    expected = (("HF_TOKEN", "***"), ("TOKENIZERS_PARALLELISM", "false"), ("TORCH_LOGS", "dynamo"))
    assert found.variables == expected and found.where("variables") == "shell"


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ("no-such-command gpu3", "no-such-command cannot be started: No such file"),
        ("true", "it ended well and answered nothing"),
        ("sh -c 'sh </dev/null'", "docker exec -i"),
        ("sh -c 'echo Permission denied >&2; exit 255'", "status 255: Permission denied"),
        ("env -i sh -c @/nowhere/venv", "there is no /nowhere/venv to activate"),
        ("env PATH=/nowhere {sh}", "there is no python3 on PATH"),
        ("", "there is no command"),
        ("@/venv", "there is no command"),
        ("ssh 'gpu3", "No closing quotation"),
        ("sh -c 'a=https://me; echo $a:geheim@example.com; exit 1'", r"https://\*\*\*@example.com"),
        ("sh -c 'echo https://me:geheim@example.com'", "a secret in the command"),
        ("sh -c 'echo hf_geheim >&2; exit 1'", r"status 1: \*\*\*"),
    ],
)
def test_no_answer(prefix: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_geheim")
    with pytest.raises(BadInput, match=words) as error:
        asked(prefix.format(sh="/bin/sh -s --"))
    assert "geheim" not in str(error.value)


def test_more_than_any_answer() -> None:
    began = time.monotonic()
    with pytest.raises(BadInput, match="ended with status"):
        asked("yes")
    assert time.monotonic() - began < 30


def test_a_host_that_hangs_leaves_nothing_behind(tmp_path: Path) -> None:
    mark = f"sleep 9{tmp_path.stat().st_ino}"
    began = time.monotonic()
    with pytest.raises(InfrastructureError, match=r"no answer within 1 s: password:"):
        asked(f"sh -c 'echo password: >&2; trap : TERM; ({mark}) & {mark}; {mark}'", 1.0)
    assert time.monotonic() - began < 20
    left = [each for each in psutil.process_iter(["cmdline"]) if mark in " ".join(each.info["cmdline"] or ())]
    assert not left


def test_a_connection_that_stays_open_in_the_background_is_not_waited_for() -> None:
    began = time.monotonic()
    try:
        asked("sh -c 'sleep 20 & echo $! >&2; exec sh'")
        assert time.monotonic() - began < 10
    finally:
        for each in psutil.process_iter(["cmdline"]):
            if each.info["cmdline"] == ["sleep", "20"]:
                each.kill()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("host:ssh gpu3", "host:ssh gpu3"),
        ("host:docker exec -e HF_TOKEN=geheim -i x", "host:docker exec -e HF_TOKEN=*** -i x"),
        ("host:env DB_PASSWORD='ge heim' ssh x", "host:env DB_PASSWORD=*** ssh x"),
        ("host:sshpass -p geheim ssh x", "host:sshpass -p *** ssh x"),
        ("host:sshpass -pgeheim ssh x", "host:sshpass -p*** ssh x"),
        ("host:kubectl --token=geheim exec -i x --", "host:kubectl --token=*** exec -i x --"),
        ("host:kubectl --token geheim exec -i x --", "host:kubectl --token *** exec -i x --"),
        ("host:run https://me:geheim@x/", "host:run https://***@x/"),
        ("host:env OMP_NUM_THREADS=4 sh", "host:env OMP_NUM_THREADS=4 sh"),
    ],
)
def test_secrets_of_a_command_line_are_not_shown(text: str, wanted: str) -> None:
    assert hosts.shown(text) == wanted

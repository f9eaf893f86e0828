"""What is a secret in a command line, and what a failed command's words mean."""

from __future__ import annotations

import pytest

from bisect_env.snapshots.host_words import last_words, meaning, open_secret, own_complaint, silent


@pytest.mark.parametrize(
    "text",
    [
        "docker exec -e HF_TOKEN=geheim -i x",
        "env DB_PASSWORD='ge heim' ssh x",
        "sshpass -p geheim ssh x",
        "sshpass -pgeheim ssh x",
        "kubectl --token=geheim exec -i x --",
        "kubectl --token geheim exec -i x --",
        "run https://me:geheim@x/",
        "ssh x env PIP_INDEX_URL=https://me:geheim@x/simple",
    ],
)
def test_a_secret_in_the_open(text: str) -> None:
    assert open_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "ssh -o PasswordAuthentication=no -o PreferredAuthentications=publickey gpu3",
        "env SSH_AUTH_SOCK=/run/agent.sock ssh gpu3",
        "docker exec -e HF_TOKEN -i x",
        "env HF_TOKEN=$HF_TOKEN sh",
        "env TOKENIZERS_PARALLELISM=false USE_AUTH=0 sh",
        "ssh me@gpu3 pct exec 200 -- bash -c",
        "sshpass -e ssh gpu3",
        "ssh ssh://me@gpu3",
    ],
)
def test_no_secret(text: str) -> None:
    assert not open_secret(text)


@pytest.mark.parametrize(
    ("said", "machine"),
    [
        ("ssh: connect to host gpu3 port 22: Connection timed out", True),
        ("ssh: connect to host gpu3 port 22: No route to host", True),
        ("kex_exchange_identification: read: Connection reset by peer", True),
        ("The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?", True),
        ("me@gpu3: Permission denied (publickey,gssapi-keyex,gssapi-with-mic).", False),
        ("bash: line 1: sh: command not found", False),
        ("sh: 1: sh: not found", False),
    ],
)
def test_meanings(said: str, machine: bool) -> None:
    found = meaning(f"banner\n{said}\r\n")
    assert found is not None and found.machine is machine


@pytest.mark.parametrize("said", ["", "error", "bash: open: Permission denied", "sh: line 3: python3: not found"])
def test_none_is_made_up(said: str) -> None:
    assert meaning(said) is None


def test_what_the_script_itself_says_counts() -> None:
    assert own_complaint("motd\r\nbisect-env: there is no python3 on PATH\r\n") == "there is no python3 on PATH"
    assert own_complaint("ssh: bisect-env: x") == "" == own_complaint("")


def test_the_tool_is_named_that_passes_no_input() -> None:
    assert "podman exec -i NAME" in silent(["/usr/bin/podman", "exec", "x", "sh"])
    assert "without -n" in silent(["ssh", "-n", "gpu3", "sh"])


def test_last_words_are_few_and_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "geheim")
    assert last_words("a\n\nb https://u:p@h\n c geheim \n") == ": b https://***@h / c ***"
    assert last_words(" \n") == ""

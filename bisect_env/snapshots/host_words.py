"""What a command that gave no answer said, and what to do about it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bisect_env.matrix.urls import has_credentials, names_secret, secret_values, without_credentials

WANTED = "a command that runs another one on the host: `ssh gpu3`, `docker exec -i NAME`"

_ASSIGNED = re.compile(r"(?P<name>\b[A-Za-z_]\w*)=(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"']+)")
_PASSED = re.compile(
    r"(sshpass\s+-p\s*|--?(?:password|passwd|token|secret|api-?key)[=\s]+)(\"[^\"]*\"|'[^']*'|[^\s\"']+)"
)


@dataclass(frozen=True)
class Failure:
    """Words of ssh, docker, kubectl, sudo or a shell, and their meaning."""

    pattern: re.Pattern[str]
    meaning: str
    advice: str
    machine: bool = False
    """The network or the host failed, and nothing that was typed is wrong."""


def _failure(pattern: str, meaning: str, advice: str, machine: bool = False) -> Failure:
    return Failure(re.compile(pattern, re.IGNORECASE | re.MULTILINE), meaning, advice, machine)


FAILURES = (
    _failure(
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is not the one that ssh knows",
        "whoever runs the host must say whether its key was changed. If so: `ssh-keygen -R HOST` ([HOST]:PORT for "
        "another port), then `ssh HOST true` by hand. If not, somebody is in between",
    ),
    _failure(
        r"Host key verification failed|No \S+ host key is known",
        "ssh does not know its host key",
        "`ssh HOST true` by hand once, to compare the key and accept it",
    ),
    _failure(
        r"permission denied while trying to connect to the docker",
        "docker may not be used by this user",
        "a user of the group docker, or `sudo -n docker exec -i NAME`",
    ),
    _failure(
        r"Permission denied \([\w,-]+\)|Permission denied, please try again|Too many authentication failures"
        r"|can't open /dev/tty",
        "it wants a password or a key that ssh cannot give without asking",
        "a login without a question (ssh-copy-id, ssh-agent): `ssh -o BatchMode=yes HOST true` must succeed",
    ),
    _failure(
        r"sudo: .*(password|terminal|askpass)|su: .*terminal",
        "it wants a password for another user's rights",
        "rights without a question: `sudo -n true` must succeed there",
    ),
    _failure(
        r"Could not resolve hostname|Name or service not known|Temporary failure in name resolution|no such host",
        "there is no host of that name",
        "a name that `getent hosts NAME` or ~/.ssh/config knows",
    ),
    _failure(
        r"Connection refused|timed out|No route to host|Network is unreachable|to the server \S+ was refused",
        "it cannot be reached",
        "`ssh -v` (with the right -p) says how far it comes; is the host up, and the network there?",
        machine=True,
    ),
    _failure(
        r"Connection (to \S+ )?(closed|reset)|closed by (the )?remote host|Broken pipe|lost connection",
        "the connection was dropped",
        "the same command again; `ssh -v`, or the host's own log, says who ended it",
        machine=True,
    ),
    _failure(
        r"\bsh\"?: (executable file )?not found|\bsh: (No such file|command not found)|(\bsh\b.*: no such file)",
        "there is no shell",
        "a prefix that ends in the path of a Python: `docker exec -i NAME /usr/bin/python3`",
    ),
)
"""The first that is met in what was said counts."""


def meaning(said: str) -> Failure | None:
    """The failure that these words of a command tell; None for others."""
    return next((each for each in FAILURES if each.pattern.search(said)), None)


def own_complaint(said: str) -> str:
    """What the script that was sent found wrong there; empty when the failure is another one."""
    told = re.findall(r"^bisect-env: (.+?)\s*$", said, re.MULTILINE)
    return last_words(told[-1])[2:] if told else ""


def silent(command: Sequence[str]) -> str:
    """What would be right where a command ended well and answered nothing: its shell got no input."""
    names = {word.rpartition("/")[2] for word in command}
    tool = next((name for name in ("docker", "podman", "nerdctl", "kubectl", "oc", "ssh") if name in names), "docker")
    told = {"ssh": "ssh without -n and -f", "kubectl": "kubectl exec -i POD --", "oc": "oc exec -i POD --"}
    passes = told.get(tool, f"{tool} exec -i NAME")
    return (
        f"a command that passes its input on: {passes}; and a start-up file there (.bashrc) that does not end the shell"
    )


def shown(text: str) -> str:
    """A command line, without the secrets that may stand in it."""

    def assigned(match: re.Match[str]) -> str:
        return f"{match['name']}=***" if names_secret(match["name"]) else match[0]

    return without_own_secrets(_PASSED.sub(r"\1***", _ASSIGNED.sub(assigned, without_credentials(text))))


def open_secret(text: str) -> bool:
    """True when a command line certainly holds a secret: everybody on the machine can read it in the list of processes.

    A variable in capitals that is named like one, unless it names a place or a switch (``SSH_AUTH_SOCK=/run/...``);
    ssh's own options (``-o PasswordAuthentication=no``) are none.
    """
    if _PASSED.search(text) or has_credentials(text):
        return True
    for match in _ASSIGNED.finditer(text):
        value = match["value"].strip("\"'")
        told = value and not re.match(r"[/~$*]|(?:\d+|true|false|yes|no|on|off)$", value, re.IGNORECASE)
        if told and match["name"].isupper() and names_secret(match["name"]):
            return True
    return False


def last_words(text: str) -> str:
    """The last two lines that were said, without secrets, behind a colon; empty when nothing was."""
    told = without_own_secrets(without_credentials(text[-4000:]))
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return ": " + " / ".join(line[:300] for line in lines[-2:]) if lines else ""


def without_own_secrets(text: str) -> str:
    """Without the values of this process's own variables that hold secrets."""
    for secret in secret_values(os.environ):
        text = text.replace(secret, "***")
    return text

"""A real sshd on a free port of loopback, with keys and settings of its own: no service, nothing of the machine's."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")
MISSING = "there is no sshd: install openssh-server"
PRIVILEGE_SEPARATION = Path("/run/sshd")
"""Must exist when root starts it; its service makes it elsewhere."""
SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PermitRootLogin yes
PrintMotd no
MaxStartups 100
{more}
"""
CLIENT = """\
Host gpu3
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile {folder}/user_key
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    UpdateHostKeys no
    ControlPath none
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def key(path: Path) -> str:
    """Makes a key without a passphrase; its public half."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path.with_suffix(".pub").read_text().strip()


@dataclass
class Sshd:
    """A running one; ``prefix`` is what a user types before a command."""

    folder: Path
    settings: tuple[str, ...] = ()
    """Further lines of its configuration."""
    port: int = field(default_factory=free_port)

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def words(self) -> tuple[str, ...]:
        return ("ssh", "-F", str(self.folder / "client"), "gpu3")

    @property
    def prefix(self) -> str:
        return " ".join(self.words)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def __enter__(self) -> Sshd:
        assert SSHD is not None
        self.folder.mkdir(parents=True)
        if os.geteuid() == 0:
            PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        public = key(self.folder / "host_key")
        (self.folder / "authorized_keys").write_text(key(self.folder / "user_key") + "\n")
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {public}\n")
        told = {"port": self.port, "folder": self.folder, "user": getpass.getuser(), "more": "\n".join(self.settings)}
        (self.folder / "server").write_text(SERVER.format(**told))
        (self.folder / "client").write_text(CLIENT.format(**told))
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", str(self.folder / "server")], stdin=subprocess.DEVNULL, stderr=log, stdout=log
            )
        deadline = time.monotonic() + 20
        while "Server listening" not in self.log():
            assert self._process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.02)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait(20)

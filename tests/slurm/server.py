"""A real Slurm of several pretended nodes on loopback: no service, nothing of the machine's own configuration.

Each node is a slurmd of its own on this machine with pretended GPUs (Slurm wants device files whose names end in their
numbers; links to /dev/null are) and more CPUs than there are. Debian's packages slurm-wlm and munge have all it needs.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType

import psutil

PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scontrol", "scancel", "setpriv")
LACKING = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
MISSING = f"there is no {' and no '.join(LACKING)}: install slurm-wlm and munge" if LACKING else None
GPUS = 2
CPUS = 8
"""Pretended ones a node."""
LIMIT = 60.0
"""Seconds that a daemon, or a node, has to come up or to go, on a busy machine."""
NODE_OF_DAEMON = "PRETENDED_NODE"
"""A variable of every slurmd, and so of its steps, by which they are found."""
CONFIGURATION = """\
ClusterName=tests
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={folder}/task_prolog
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
ReturnToService=2
SlurmdTimeout=6
KillWait=2
EpilogMsgTime=0
{nodes}
PartitionName=gpu Nodes=ALL Default=YES PriorityTier=1
PartitionName=first Nodes=node1 PriorityTier=1
PartitionName=second Nodes=node2 PriorityTier=1
PartitionName=urgent Nodes=ALL PriorityTier=2
"""
TASK_PROLOG = """\
#!/bin/sh
echo "export SLURM_TMPDIR={folder}/disk/$SLURMD_NODENAME"
"""
"""As on clusters that give each job a folder on its node's own disk."""
NODE = (
    "NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} "
    "CPUs={cpus} RealMemory=4000 Gres=gpu:{gpus} Feature={name}"
)


def free_ports(count: int) -> list[int]:
    """So many different ones."""
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


@dataclass(frozen=True)
class Job:
    """What squeue says of one that has not ended."""

    id: str
    name: str
    state: str
    node: str
    reason: str


@dataclass
class Slurm:
    """A running one, in a temporary folder."""

    names: tuple[str, ...] = ("node1", "node2")
    folder: Path = field(init=False)
    _daemons: dict[str, subprocess.Popen[bytes]] = field(init=False, default_factory=dict)

    @property
    def configuration(self) -> Path:
        return self.folder / "slurm.conf"

    def disk(self, node: str) -> Path:
        """The folder that jobs on the node take for its own disk."""
        return self.folder / "disk" / node

    @property
    def variables(self) -> dict[str, str]:
        """What a process needs to find this one, and nothing that it has of another."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH", "SQUEUE"))}
        return own | {"SLURM_CONF": str(self.configuration), "PATH": PATH}

    def ask(self, *words: str) -> str:
        """A command of Slurm's; its output."""
        told = subprocess.run(words, env=self.variables, capture_output=True, text=True, timeout=LIMIT)
        assert told.returncode == 0, f"{words}: {told.stdout}{told.stderr}{self.logs()}"
        return told.stdout

    def jobs(self, *options: str) -> list[Job]:
        """Those that have not ended, each of an array by itself; `options` are further ones of squeue's."""
        lines = self.ask("squeue", "-h", "-r", "-o", "%i|%j|%T|%N|%r", *options).splitlines()
        return [Job(*line.split("|", 4)) for line in lines]

    def states(self) -> dict[str, str]:
        """Of every node: `idle`, `mixed`, `down`; with `*` where it does not answer."""
        return dict(line.split() for line in self.ask("sinfo", "-h", "-p", "gpu", "-N", "-o", "%N %t").splitlines())

    def start_node(self, name: str) -> None:
        self._start(name, ["slurmd", "-D", "-N", name], {NODE_OF_DAEMON: name})

    def stop_node(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Ends its slurmd; what runs there goes on."""
        self._stop(name, how)

    def fell(self, name: str) -> None:
        """The node loses its power: its slurmd and all that runs on it end at once, and Slurm is told that it is down.

        By itself Slurm sees it in half a minute.
        """
        self._stop(name, signal.SIGKILL)
        for process in self.processes():
            if name in (_variable(process, NODE_OF_DAEMON), _variable(process, "SLURMD_NODENAME")):
                _kill(process)
        self.ask("scontrol", "update", f"nodename={name}", "state=down", "reason=fell")

    def time_out(self, job: str) -> None:
        """Its time limit is over in a moment; Slurm looks for such jobs twice a minute."""
        soon = datetime.now() + timedelta(seconds=1)
        self.ask("scontrol", "update", f"jobid={job}", f"endtime={soon:%Y-%m-%dT%H:%M:%S}")

    def start_controller(self) -> None:
        self._start("slurmctld", ["slurmctld", "-D"])

    def stop_controller(self, how: signal.Signals = signal.SIGKILL) -> None:
        self._stop("slurmctld", how)

    def wait(self, told: Callable[[], bool], what: str, limit: float = LIMIT) -> None:
        deadline = time.monotonic() + limit
        while not told():
            assert time.monotonic() < deadline, f"{what}: {self.ask('squeue')}{self.ask('sinfo')}{self.logs()}"
            time.sleep(0.1)

    def reset(self) -> None:
        """As at the start: no jobs, all daemons up, all nodes idle."""
        if self._daemons["slurmctld"].poll() is not None:
            self.start_controller()
        self.ask("scancel", "--user", getpass.getuser())
        for name in self.names:
            if self._daemons[name].poll() is not None:
                self.start_node(name)
        self.wait(self._idle, "the nodes are not idle")

    def _idle(self) -> bool:
        states = self.states()
        for name, state in states.items():
            if state.startswith(("down", "drain", "drng")):
                # It may be up again this moment, which refuses the change.
                words = ("scontrol", "update", f"nodename={name}", "state=resume")
                subprocess.run(words, env=self.variables, capture_output=True, timeout=LIMIT, check=False)
        return set(states) == set(self.names) and set(states.values()) == {"idle"} and not self.jobs()

    def processes(self) -> list[psutil.Process]:
        """All that know of this Slurm: its daemons, its steps, its jobs, and who submits, but not this one's own."""
        mine = {os.getpid(), *(process.pid for process in psutil.Process().parents())}
        known = (process for process in psutil.process_iter() if process.pid not in mine)
        return [process for process in known if _variable(process, "SLURM_CONF") == str(self.configuration)]

    def logs(self, lines: int = 15) -> str:
        """The end of each daemon's."""
        texts = {path.name: path.read_text(errors="replace").splitlines() for path in self.folder.glob("*.log")}
        return "".join(f"\n--- {name}\n" + "\n".join(text[-lines:]) for name, text in sorted(texts.items()))

    def _start(self, name: str, words: list[str], variables: Mapping[str, str] | None = None) -> None:
        # Whoever kills the tests kills the daemons.
        with (self.folder / f"{name}.log").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *words],
                env=self.variables | dict(variables or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )

    def _stop(self, name: str, how: signal.Signals) -> None:
        self._daemons[name].send_signal(how)
        self._daemons[name].wait(LIMIT)

    def __enter__(self) -> Slurm:
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.folder.chmod(0o755)  # munged wants that everybody reaches its socket
        try:
            self._bring_up()
        except BaseException:
            self._end()
            raise
        return self

    def _bring_up(self) -> None:
        for part in ("munge", "state", *(f"{each}/{name}" for each in ("spool", "disk") for name in self.names)):
            (self.folder / part).mkdir(parents=True)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        controller, *ports = free_ports(1 + len(self.names))
        nodes = [
            NODE.format(name=name, port=port, cpus=CPUS, gpus=GPUS)
            for name, port in zip(self.names, ports, strict=True)
        ]
        told: Mapping[str, object] = {
            "folder": self.folder,
            "user": getpass.getuser(),
            "controller": controller,
            "nodes": "\n".join(nodes),
        }
        self.configuration.write_text(CONFIGURATION.format(**told))
        prolog = self.folder / "task_prolog"
        prolog.write_text(TASK_PROLOG.format(folder=self.folder))
        prolog.chmod(0o755)
        for number in range(GPUS):
            (self.folder / f"gpu{number}").symlink_to("/dev/null")
        (self.folder / "gres.conf").write_text(f"Name=gpu File={self.folder}/gpu[0-{GPUS - 1}]\n")
        (self.folder / "plugstack.conf").write_text("")
        parts = {"socket": "socket", "key-file": "key", "log-file": "log", "pid-file": "pid", "seed-file": "seed"}
        options = [f"--{option}={self.folder}/munge/{name}" for option, name in parts.items()]
        self._start("munged", ["munged", "--foreground", "--num-threads=2", *options])
        self._until((self.folder / "munge" / "socket").exists, "munged did not start")
        self.start_controller()
        for name in self.names:
            self.start_node(name)
        self._until(self._answers, "slurmctld does not answer")
        self.wait(self._idle, "the nodes are not idle")

    def _answers(self) -> bool:
        told = subprocess.run(["sinfo"], env=self.variables, capture_output=True, timeout=LIMIT, check=False)
        return told.returncode == 0

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + LIMIT
        while not reached():
            ended = [name for name, daemon in self._daemons.items() if daemon.poll() is not None]
            assert time.monotonic() < deadline and not ended, f"{what} {ended}: {self.logs()}"
            time.sleep(0.05)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def _end(self) -> None:
        for daemon in reversed(self._daemons.values()):
            daemon.kill()
            daemon.wait(LIMIT)
        left = self.processes()
        for process in left:
            _kill(process)
        psutil.wait_procs(left, LIMIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def _variable(process: psutil.Process, name: str) -> str | None:
    """A variable of its environment; None also of one that is gone or another user's.

    A slurmstepd writes its title over the first of them, where psutil stops to read.
    """
    try:
        block = Path(f"/proc/{process.pid}/environ").read_bytes()
    except OSError:
        return None
    found = (line for line in block.decode(errors="replace").split("\0") if line.startswith(f"{name}="))
    return next((line.partition("=")[2] for line in found), None)


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return

"""What `squeue` says of jobs, and what that means: pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bisect_env.words import counted

FORMAT = "%i|%j|%T|%N|%r"
"""Id (``12_3`` of an array), name, state, nodes, reason. The reason is last: it is words."""
_STARTED = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT"})
_COMING = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
)

ENDS = {
    "COMPLETED": "the job ended without a result",
    "FAILED": "the job failed",
    "TIMEOUT": "the job reached its time limit",
    "DEADLINE": "the job reached its deadline",
    "NODE_FAIL": "its node failed",
    "BOOT_FAIL": "its node did not boot",
    "LAUNCH_FAILED": "its node could not start it",
    "PREEMPTED": "the job was preempted",
    "CANCELLED": "the job was cancelled",
    "OUT_OF_MEMORY": "the job used more memory than it had asked for",
    "REVOKED": "the job was revoked",
}
NEVER = {
    "BadConstraints": "no node has what it asks for",
    "PartitionTimeLimit": "the partition allows no job of so long a time",
    "PartitionConfig": "the partition has no node for what it asks",
    "PartitionNodeLimit": "the partition is too small for it",
    "AccountNotAllowed": "the account may not use the partition",
    "QOSNotAllowed": "the QOS may not be used there",
    "QOSMaxWallDurationPerJobLimit": "the QOS allows no job of so long a time",
    "AssocMaxWallDurationPerJobLimit": "the account allows no job of so long a time",
    "DependencyNeverSatisfied": "what it depends on has failed",
    "InvalidAccount": "the account is not valid",
    "InvalidQOS": "the QOS is not valid",
}
"""Reasons of a waiting job that no waiting changes, in plain words."""

_ELSEWHERE = "until that changes; Ctrl-C, and the same command with another --partition, goes on there"
STUCK = (
    ("PartitionDown", f"nothing of it starts (`sinfo -s` shows what is up) {_ELSEWHERE}"),
    ("PartitionInactive", f"nothing of it starts (`sinfo -s` shows what is up) {_ELSEWHERE}"),
    ("Nodes required for job are DOWN", f"nothing of it starts (`sinfo -R` says why) {_ELSEWHERE}"),
    ("ReqNodeNotAvail", f"nothing of it starts (`sinfo -R` says why) {_ELSEWHERE}"),
    ("JobHeld", "nothing of it starts until `scontrol release JOB` by whoever held it; `squeue --me` has the numbers"),
)
"""Reasons of a waiting job that somebody has to change, by how they begin, and what to do."""


@dataclass(frozen=True)
class Seen:
    """One job as Slurm has it."""

    job: str
    name: str
    state: str
    node: str = ""
    reason: str = ""

    @property
    def coming(self) -> bool:
        """Whether it waits to be started."""
        return self.state in _COMING

    @property
    def started(self) -> bool:
        """Whether it is on a node."""
        return self.state in _STARTED

    @property
    def alive(self) -> bool:
        """Whether something may still come of it. States that are not known here are taken for alive."""
        return self.state not in ENDS


def read(text: str) -> tuple[Seen, ...]:
    """The jobs that ``squeue --noheader --array --format=FORMAT`` wrote; lines of another form are passed over."""
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|", 4)]
        if len(parts) == 5 and parts[0] and parts[2].replace("_", "").isalpha():
            job, name, state, node, reason = parts
            found.append(Seen(job, name, state, "" if node == "(null)" else node, "" if reason == "None" else reason))
    return tuple(found)


def why(seen: Seen | None, limit: int) -> str:
    """Why a job brought no result, in words.

    Args:
        seen: its end; None when Slurm knows nothing of it any more.
        limit: minutes that it had asked for.
    """
    if seen is None:
        return "the job is gone, and Slurm no longer says why"
    words = ENDS.get(seen.state, f"the job is {seen.state.lower()}")
    if seen.state == "TIMEOUT":
        words += f" of {limit} minutes: `time` gives it more, a smaller `batch` less to do"
    if seen.state == "OUT_OF_MEMORY":
        words += ": `memory` asks for more"
    where = f" on {seen.node}" if seen.node else ""
    return f"{words}{where}{f' ({seen.reason})' if seen.reason else ''}"


def told(seen: Iterable[Seen], waiting: int, what: str = "trial") -> str:
    """A line of progress: ``12 jobs running on 3 nodes, 5 in the queue (Priority), 40 trials waiting``."""
    jobs = tuple(seen)
    running = [job for job in jobs if job.started]
    queued = [job for job in jobs if job.coming]
    parts = []
    if running:
        nodes = len({job.node for job in running})
        parts.append(f"{counted(len(running), 'job')} running on {counted(nodes, 'node')}")
    if queued:
        reasons = sorted({job.reason for job in queued if job.reason})
        parts.append(f"{counted(len(queued), 'job')} in the queue" + (f" ({', '.join(reasons)})" if reasons else ""))
    stuck = next((what for start, what in STUCK if queued and all(job.reason.startswith(start) for job in queued)), "")
    if stuck:
        parts[-1] += f": {stuck}"
    if waiting:
        parts.append(f"{counted(waiting, what)} waiting")
    return ", ".join(parts)

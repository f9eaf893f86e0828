"""What a job finds on its node: which one it is, its own disk and its GPUs, and whether it can do what the job asks."""

from __future__ import annotations

import os
import re
import socket
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pynvml

from bisect_env.cluster.job import Wanted
from bisect_env.environments import interpreters
from bisect_env.environments.records import Lock, Unavailable
from bisect_env.matrix.cells import Cell
from bisect_env.trials import gpu
from bisect_env.trials.records import Outcome, TrialRecord

NODE = "node"
"""Name of the node's name among a record's host facts."""
TRIED = 1 << 20
"""Bytes that a disk has to take for it to be said to have room: more than a trial's own files need at least."""


def name(environ: Mapping[str, str]) -> str:
    """The node's name, as Slurm knows it where this is one."""
    return environ.get("SLURMD_NODENAME") or socket.gethostname()


def job_id(environ: Mapping[str, str]) -> str:
    """As ``squeue`` and ``scancel`` know it: ``12``, or ``12_3`` in an array; empty outside of Slurm."""
    array, task = environ.get("SLURM_ARRAY_JOB_ID"), environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else environ.get("SLURM_JOB_ID", "")


def facts(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What is added to the host facts of each record."""
    found = {
        NODE: name(environ),
        "slurm job": job_id(environ),
        "CUDA_VISIBLE_DEVICES given": environ.get("CUDA_VISIBLE_DEVICES", ""),
    }
    return tuple((key, value) for key, value in found.items() if value)


def own_disk(environ: Mapping[str, str]) -> Path:
    """The folder for temporary files on the node's own disk: the job's own where the cluster makes one."""
    return Path(environ.get("SLURM_TMPDIR") or environ.get("TMPDIR") or tempfile.gettempdir())


def has_room(folder: Path) -> str:
    """Why nothing can be written in a folder; empty when something can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(TRIED))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return ""


def at_fault(record: TrialRecord, disk: Path) -> str:
    """Why a trial without a result had none because of this node; empty when the node is not to blame."""
    if record.outcome is not Outcome.INFRA or record.hang_kind:
        return ""
    why = has_room(disk)
    return f"a trial could not be run on the node's own disk ({why})" if why else ""


def lacks(wanted: Iterable[Wanted], cells: Iterable[Cell], selection: str | None, environ: Mapping[str, str]) -> str:
    """What this node lacks for the environments and cells; empty when nothing is known to be missing.

    Raises:
        BadInput: the selection names a GPU that the job was not given.
    """
    locks = [each.lock for each in wanted]
    why = next(filter(None, map(_other_python, locks)), "")
    if why:
        return why
    devices = [cell.condition.device for cell in cells if cell.condition.device != "cpu"]
    if not devices:
        return ""
    choice = gpu.survey(selection)
    if not choice.devices:
        why = "; ".join(choice.notes)
        # A driver that is there and does not answer is a fault, whatever the cells would be content with.
        broken = bool(environ.get("CUDA_VISIBLE_DEVICES")) and gpu.why_unusable() and not _without_driver()
        return f"no GPU can be used: {why}" if "cuda" in devices or broken else ""
    most = _newest_cuda()
    needed = max((_major(lock.cuda) for lock in locks), default=0)
    if most is not None and needed > most:
        driver = choice.devices[0].driver
        return (
            f"its NVIDIA driver {driver} is too old: it runs CUDA {most} at most, and torch was built for CUDA {needed}"
        )
    return ""


def _other_python(lock: Lock) -> str:
    """Why an environment of the lock, built here or elsewhere, cannot run here as it does elsewhere."""
    wanted = lock.interpreter
    here = interpreters.find(str(wanted.path))
    if isinstance(here, Unavailable):
        return f"{here.message} on this node, as environment {lock.address} needs one: install it, or share its folder"
    # The path alone tells nothing: nodes are not always updated together.
    if (here.version, here.implementation, here.platform) != (wanted.version, wanted.implementation, wanted.platform):
        found = f"{wanted.path} is {here.implementation} {here.version} for {here.platform} on this node"
        return f"{found}, and {wanted.version} for {wanted.platform} where environment {lock.address} was resolved"
    if lock.base is not None and not os.access(lock.base, os.X_OK):
        return f"{lock.base} is not there, the base of environment {lock.address}: share its folder"
    return ""


def _without_driver() -> bool:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return bool(error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    return False


def _newest_cuda() -> int | None:
    """Major version of the newest CUDA that the driver runs, or the compatibility libraries on LD_LIBRARY_PATH; None
    where it does not say. What was built for one minor version runs with a driver of any other ("minor version
    compatibility", NVIDIA's CUDA Compatibility guide).
    """
    try:
        return int(pynvml.nvmlSystemGetCudaDriverVersion_v2()) // 1000
    except pynvml.NVMLError:
        return None


def _major(cuda: str | None) -> int:
    """13 of ``cu130``; 0 for a build that needs no driver."""
    found = re.fullmatch(r"cu(\d+)\d", cuda or "")
    return int(found[1]) if found else 0

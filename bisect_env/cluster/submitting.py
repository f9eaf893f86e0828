"""Slurm's commands: jobs are submitted through submitit's scripts, watched by squeue and cancelled by scancel.

Nothing here needs Slurm's accounting (`sacct`), which many clusters do not have.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisect_env.cluster.pending import Array
from bisect_env.cluster.queue import FORMAT, Seen, read
from bisect_env.cluster.settings import SlurmSettings
from bisect_env.errors import BadInput

COMMANDS = ("sbatch", "squeue", "scancel")
LIMIT = 120.0
"""Seconds that a command of Slurm's may take; its own limits are shorter."""
NAME = "bisect-env-{token}"
"""Of an array's jobs, by which they are found again when sbatch could not say their number."""
LOG = "log.txt"
"""In a job's folder: what its node wrote."""
WITHOUT_PYTHON = "install bisect-env on a file system that every node sees"
"""In the log of a job whose node has no Python to run it by."""
_OURS = re.compile(
    "SBATCH_(ARRAY_INX|JOB_NAME|OUTPUT|ERROR|INPUT|EXPORT|REQUEUE|NO_REQUEUE|WAIT|OPEN_MODE|SIGNAL)|SQUEUE_.*|SCANCEL_.*"
    "|SLURM_TMPDIR|CUDA_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES"
)
"""Variables that would change what these commands do, or that a job would take for its own."""
_VARIABLES = {"partition": "PARTITION", "account": "ACCOUNT", "qos": "QOS", "constraint": "CONSTRAINT",
              "time": "TIMELIMIT", "mem": "MEM_PER_NODE", "gpus_per_node": "GPUS_PER_NODE",
              "cpus_per_task": "CPUS_PER_TASK"}  # fmt: skip
"""Of sbatch's parameters the variables (``SBATCH_...``), which would win over what a script says."""


class Refused(Exception):
    """A command of Slurm's failed; its text is what it wrote."""


def check() -> None:
    """Whether this host can send jobs at all.

    Raises:
        BadInput: it has no Slurm, or there is no submitit.
    """
    missing = [name for name in COMMANDS if shutil.which(name) is None]
    if missing:
        wanted = "a host from which jobs are submitted (a login node), or --executor local"
        raise BadInput("executor", "slurm", f"{' and '.join(missing)} cannot be found on PATH", wanted)
    try:
        import submitit  # noqa: F401 - only whether it is there
    except ImportError:
        wanted = "pip install 'bisect-env[slurm]'"
        raise BadInput("executor", "slurm", "submitit is not installed", wanted) from None
    if shutil.which("srun") is None:
        wanted = "the whole of Slurm's client commands"
        raise BadInput("executor", "slurm", "srun cannot be found on PATH", wanted)


@dataclass(frozen=True)
class Ask:
    """What the jobs of an array ask for alike."""

    partition: str | None
    gpus: str | None
    exclude: frozenset[str] = frozenset()
    """Nodes."""


class Cluster:
    """The Slurm that this host can reach.

    Args:
        settings: what jobs ask for.
        folder: of the submission scripts.

    Raises:
        BadInput: this host has no Slurm, or there is no submitit.
    """

    def __init__(self, settings: SlurmSettings, folder: Path) -> None:
        check()
        import submitit

        self._settings, self._folder = settings, folder
        self._submitit = submitit

    def submit(self, ask: Ask, token: str, count: int, variables: Mapping[str, str]) -> str:
        """Hand an array of ``count`` jobs to Slurm; job i works in the folder ``TOKEN-i`` beside the scripts.

        Args:
            token: names the array; see :data:`NAME`.
            variables: beside this process's own, in the jobs' environment.

        Returns:
            The array's number.

        Raises:
            Refused: with what sbatch wrote. Where it only did not answer, the array may have arrived nevertheless.
        """
        executor = self._submitit.SlurmExecutor(folder=self._folder)
        executor.update_parameters(**self._parameters(ask, token))
        executor.parameters["map_count"] = count
        work = f"{shlex.quote(str(self._folder))}/{token}-$SLURM_ARRAY_TASK_ID"
        python = shlex.quote(sys.executable)
        # Instead of the shell, so that the signals of Slurm reach it at once.
        command = f"exec {python} -u -m bisect_env.cluster.worker {work}"
        script = self._folder / f"{token}.sh"
        script.write_text(executor._make_submission_file_text(command, token))
        drop = {f"SBATCH_{variable}" for key, variable in _VARIABLES.items() if key in executor.parameters}
        written = self._ask(executor._make_submission_command(script), variables, drop)
        try:
            return executor._get_job_id_from_submission_command(written)
        except self._submitit.core.utils.FailedSubmissionError as error:
            raise Refused(str(error)) from None

    def _parameters(self, ask: Ask, token: str) -> dict[str, Any]:
        settings, folder = self._settings, str(self._folder).replace("%", "%%")
        asked: dict[str, Any] = {
            "job_name": NAME.format(token=token),
            "partition": ask.partition,
            "account": settings.account,
            "qos": settings.qos,
            "constraint": settings.constraint,
            "gpus_per_node": ask.gpus,
            "cpus_per_task": settings.cpus,
            "mem": settings.memory,
            "time": settings.time,
            "exclude": ",".join(sorted(ask.exclude)) or None,
            "array_parallelism": settings.jobs,
            "use_srun": False,
            "stderr_to_stdout": True,
            "setup": [_looks_for_python(sys.executable)],
        }
        further: dict[str, Any] = {name: True if value is None else value for name, value in settings.extra}
        # A job that is lost is asked for anew, elsewhere; what Slurm started again by itself would run beside that.
        further |= {"no-requeue": True, "export": "ALL", "output": f"{folder}/{token}-%a/{LOG}"}
        known = {name: value for name, value in asked.items() if value is not None}
        return known | {"additional_parameters": further}

    def look(self, tokens: Collection[str]) -> tuple[Seen, ...]:
        """The jobs of these arrays that Slurm knows, ended ones included as long as it remembers them.

        Raises:
            Refused: Slurm does not answer.
        """
        names = ",".join(NAME.format(token=token) for token in sorted(tokens))
        words = ["squeue", "--noheader", "--array", "--states=all", f"--user={os.getuid()}", f"--name={names}"]
        return read(self._ask([*words, f"--format={FORMAT}"]))

    def cancel(self, arrays: Iterable[Array]) -> None:
        """Cancel all jobs of these arrays.

        Raises:
            Refused: Slurm does not answer.
        """
        for words in cancelling(arrays):
            self._cancel(words)

    def cancel_jobs(self, jobs: Sequence[str]) -> None:
        """Cancel jobs by their numbers (``12_3``).

        Raises:
            Refused: Slurm does not answer.
        """
        self._cancel(["scancel", *jobs])

    def _cancel(self, words: Sequence[str]) -> None:
        try:
            self._ask(words)
        except Refused as error:  # What has ended is as good as cancelled.
            if "Invalid job id" not in str(error) and "already completing or completed" not in str(error):
                raise

    def _ask(self, words: Sequence[str], variables: Mapping[str, str] | None = None, drop: Collection[str] = ()) -> str:
        environment = {name: value for name, value in os.environ.items() if not _OURS.fullmatch(name)}
        environment = {name: value for name, value in environment.items() if name not in drop} | dict(variables or {})
        try:
            # In a session of its own: Ctrl-C of a terminal must not end sbatch between the job and its number.
            told = subprocess.run(
                list(words),
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Refused(f"Socket timed out: {words[0]} did not answer for {LIMIT:.0f} s") from None
        except OSError as error:
            raise Refused(f"{words[0]}: {error.strerror}") from error
        if told.returncode != 0:
            raise Refused(told.stderr.strip() or told.stdout.strip() or f"{words[0]} ended with {told.returncode}")
        return told.stdout


def cancelling(arrays: Iterable[Array]) -> list[list[str]]:
    """The commands that cancel all jobs of these arrays; by its name where an array's number is not known."""
    found = list(arrays)
    numbers = [array.number for array in found if array.number]
    named = [["scancel", f"--name={NAME.format(token=array.token)}"] for array in found if not array.number]
    return [["scancel", *numbers], *named] if numbers else named


def _looks_for_python(python: str) -> str:
    text = f"has no {python}: {WITHOUT_PYTHON}, at the same path there as here"
    return f'[ -x {shlex.quote(python)} ] || {{ echo "the node $(hostname)" {shlex.quote(text)}; exit 127; }}'

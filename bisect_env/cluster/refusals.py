"""What `sbatch` refuses, in plain words, and what to do about it: pure."""

from __future__ import annotations

from bisect_env.cluster.settings import SlurmSettings
from bisect_env.errors import InfrastructureError

TOO_MANY = (
    "AssocMaxSubmitJobLimit",
    "AssocGrpSubmitJobsLimit",
    "QOSMaxSubmitJob",
    "QOSGrpSubmitJob",
    "MaxSubmitJob",
    "Job violates accounting/QOS policy",
)
"""The cluster takes no more jobs of the user's at present."""
TOO_LONG = "Invalid job array specification"
"""The array has more jobs than the cluster's ``MaxArraySize`` allows."""
PASSING = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Slurm temporarily unable to accept job",
    "Slurm backup controller in standby mode",
    "Connection refused",
    "Connection timed out",
    "Zero Bytes were transmitted",
    "Resource temporarily unavailable",
)
"""Slurm does not answer now; the job may even have arrived."""
NO_NODE = (
    "Requested node configuration is not available",
    "More processors requested than permitted",
    "Node count specification invalid",
    "Requested nodes are busy",
    "Memory required by task is not available",
)
"""No node of the partition, apart from those that are excluded, has what the job asks for."""
EXTRA = "extra"
_KEYS = (
    ("invalid partition", "partition", "a partition that `sinfo` lists"),
    (
        "Required partition not available",
        "partition",
        "a partition that takes jobs now (`sinfo -s`), or the same command when it does again",
    ),
    ("Invalid account", "account", "an account that you have in that partition: `sacctmgr show assoc user=$USER`"),
    ("Invalid qos", "qos", "a QOS of that account: `sacctmgr show assoc user=$USER format=account,partition,qos`"),
    ("Invalid feature", "constraint", "features that nodes have: `sinfo -o '%P %f'`"),
    ("Invalid generic resource", "gpus", "GPUs that the partition has: `sinfo -o '%P %G'`; 0 for none"),
    ("Requested time limit is invalid", "time", "minutes within the partition's limit: `sinfo -o '%P %l'`"),
    ("time limit specification", "time", "minutes within the partition's limit: `sinfo -o '%P %l'`"),
    ("Invalid memory", "memory", "memory that a node has: `sinfo -o '%P %m'` (in MB)"),
    ("User's group not permitted", "partition", "a partition that you may use: `sinfo`"),
    ("unrecognized option", EXTRA, "long names of sbatch's own parameters: `sbatch --help`"),
    ("Invalid argument", EXTRA, "values that sbatch understands: `man sbatch`"),
)


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(word.lower() in text.lower() for word in words)


def too_many(text: str) -> bool:
    """Whether fewer jobs, or the same ones later, may be taken."""
    return _has(text, TOO_MANY)


def too_long(text: str) -> bool:
    """Whether arrays of fewer jobs may be taken."""
    return TOO_LONG.lower() in text.lower()


def passing(text: str) -> bool:
    """Whether the same is to be asked again, once it is known that the first one did not arrive."""
    return _has(text, PASSING)


def no_node(text: str) -> bool:
    """Whether no node is left for it."""
    return _has(text, NO_NODE)


def refusal(text: str, settings: SlurmSettings, partition: str | None) -> InfrastructureError:
    """What is told of a refusal that waiting does not change.

    Args:
        text: what sbatch wrote.
        settings: of which some key is refused.
        partition: of the cells, which may be their condition's.
    """
    said = " ".join(text.replace("sbatch: error:", "").replace("Batch job submission failed:", "").split())
    for words, key, wanted in _KEYS:
        if words.lower() in text.lower():
            value = _value(settings, key, partition)
            told = f"{key} is {value!r}" if value else f"{key} is not set"
            return InfrastructureError(f"Slurm refuses the job: {said} ({told})\n  wanted: {wanted}")
    if no_node(text):
        return InfrastructureError(
            f"Slurm has no node for a job of {described(settings, partition)}: {said}\n  wanted: less of `gpus`, "
            "`cpus` or `memory`, another `constraint` or partition; `sinfo -o '%P %D %c %m %G %f'` shows what there is"
        )
    return InfrastructureError(
        f"Slurm refuses the job: {said or 'sbatch failed without a word'}\n  wanted: another value of the setting that "
        "it names, under `executor: slurm:` or by `--slurm KEY=VALUE`; `man sbatch` has them all"
    )


def _value(settings: SlurmSettings, key: str, partition: str | None) -> str:
    """Of a key, as a user would write it."""
    if key == EXTRA:
        return ", ".join(name if value is None else f"{name}={value}" for name, value in settings.extra)
    value = partition if key == "partition" else getattr(settings, key)
    return "" if value is None else str(value)


def described(settings: SlurmSettings, partition: str | None) -> str:
    """What a job asks for: ``partition gpu, gpus 1, memory 32G``."""
    asked = {"partition": partition} | {
        name: getattr(settings, name) for name in ("constraint", "gpus", "cpus", "memory", "time")
    }
    return ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None) or "the defaults"

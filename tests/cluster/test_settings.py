"""Keys of executor.slurm: what they mean, and messages that name the key."""

from __future__ import annotations

from typing import Any

import pytest

from bisect_env.cluster.settings import SlurmSettings, slurm_settings
from bisect_env.errors import BadInput


def test_texts_of_a_matrix_file_become_what_they_mean() -> None:
    found = slurm_settings(
        {
            "partition": "gpu",
            "account": "lab",
            "gpus": "a100:2",
            "cpus": "8",
            "memory": "32G",
            "time": "1:30:00",
            "jobs": "20",
            "environments": "/local/envs",
            "extra": {"reservation": "week", "exclusive": "true", "gres-flags": "enforce-binding"},
        }
    )
    assert (found.partition, found.account, found.gpus, found.cpus, found.memory) == ("gpu", "lab", "a100:2", 8, "32G")
    assert (found.time, found.jobs, found.batch, found.node_folder) == (90, 20, 4, "/local/envs")
    assert found.extra == (("exclusive", None), ("gres-flags", "enforce-binding"), ("reservation", "week"))


def test_nothing_said_is_the_clusters_own_default() -> None:
    assert slurm_settings({}) == SlurmSettings()
    assert SlurmSettings().node_folder is None


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("90", 90), ("30:30", 31), ("2:00:00", 120), ("1-0", 1440), ("1-12:30", 2190), ("0:0:1", 1)],
)
def test_time_as_slurm_writes_it(text: str, minutes: int) -> None:
    assert slurm_settings({"time": text}).time == minutes


def test_several_partitions_are_those_that_sbatch_chooses_from() -> None:
    assert slurm_settings({"partition": ["a", "b"]}).partition == "a,b"


@pytest.mark.parametrize(
    ("values", "place", "words"),
    [
        ({"partitoin": "gpu"}, "slurm.partitoin", "partition (the nearest known one)"),
        ({"jobs": "0"}, "slurm.jobs", "at least 1"),
        ({"jobs": "many"}, "slurm.jobs", "a whole number"),
        ({"time": "soon"}, "slurm.time", "1:30:00"),
        ({"time": "0"}, "slurm.time", "at least 1"),
        ({"memory": "lots"}, "slurm.memory", "32G"),
        ({"gpus": "two"}, "slurm.gpus", "a100:2"),
        ({"environments": "envs"}, "slurm.environments", "absolute path"),
        ({"partition": "a\n#SBATCH --wrap=x"}, "slurm.partition", "one line"),
        ({"extra": {"array": "0-9"}}, "slurm.extra", "bisect-env sets itself"),
        ({"extra": {"--mem": "1G"}}, "slurm.extra", "beside extra"),
        ({"extra": {"no such": "1"}}, "slurm.extra", "long name"),
        ({"extra": {"comment": "a\nb"}}, "slurm.extra", "one line"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(values: dict[str, Any], place: str, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        slurm_settings(values, "m.yaml: executor")
    assert refused.value.place == place
    assert str(refused.value).startswith("m.yaml: executor: ")
    assert words in str(refused.value)

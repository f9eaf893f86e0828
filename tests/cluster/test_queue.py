"""What squeue writes, and what a job's end means in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.cluster.queue import ENDS, Seen, read, told, why

WRITTEN = """\
12_0|bisect-env-a1|RUNNING|node1|None
12_1|bisect-env-a1|PENDING||Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions
slurm_load_jobs error: Invalid job id specified
13|bisect-env-a2|CANCELLED|(null)|None
"""


def test_lines_of_squeue() -> None:
    first, second, third = read(WRITTEN)
    assert first == Seen("12_0", "bisect-env-a1", "RUNNING", "node1", "")
    assert second.coming
    assert second.reason.endswith("higher priority partitions")
    assert third.node == ""
    assert not third.alive


@given(st.text())
def test_anything_else_is_passed_over(text: str) -> None:
    assert all(seen.job and seen.state for seen in read(text))


def test_a_state_of_a_later_slurm_is_taken_for_alive() -> None:
    assert Seen("1", "n", "HIBERNATING").alive
    assert not any(Seen("1", "n", state).alive for state in ENDS)


def test_ends_in_words() -> None:
    assert why(None, 5) == "the job is gone, and Slurm no longer says why"
    assert why(Seen("1", "n", "NODE_FAIL", "node2", "NodeDown"), 5) == "its node failed on node2 (NodeDown)"
    assert "of 5 minutes: `time` gives it more" in why(Seen("1", "n", "TIMEOUT", "node2"), 5)


def test_progress_names_jobs_nodes_and_what_waits() -> None:
    seen = [Seen(f"1_{at}", "n", "RUNNING", f"node{at % 3}") for at in range(12)]
    assert told(seen, 40) == "12 jobs running on 3 nodes, 40 trials waiting"
    assert told([Seen("1", "n", "PENDING", "", "Priority")], 0) == "1 job in the queue (Priority)"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("PartitionDown", "another --partition"),
        ("ReqNodeNotAvail, UnavailableNodes:node1", "sinfo -R"),
        ("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", "sinfo -R"),
        ("JobHeldUser", "scontrol release"),
    ],
)
def test_what_waiting_alone_does_not_change_is_told_with_what_to_do(reason: str, words: str) -> None:
    stuck = Seen("1", "n", "PENDING", "", reason)
    assert words in told([stuck], 3) and told([stuck], 3).endswith(", 3 trials waiting")
    assert words not in told([stuck, Seen("2", "n", "PENDING", "", "Priority")], 3), "others go on"

"""``--executor`` and its companions: what they come to with a file's choice, and what is refused."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bisect_env.cli import executor_option
from bisect_env.cli.executor_option import Elsewhere, chosen, executor, executor_options
from bisect_env.engine.local import Local
from bisect_env.errors import BadInput
from bisect_env.matrix.cells import Condition
from bisect_env.matrix.executor import ExecutorChoice
from tests.support.racing import World

FILE = ExecutorChoice("slurm", {"partition": "a100", "jobs": "4", "extra": {"reservation": "r", "mail-type": "END"}})
ON_A = Condition.of({"partition": "a100"})


@click.command()
@executor_options
@click.option("--last")
def command(elsewhere: Elsewhere, last: str | None) -> None:
    """Say what arrived."""
    click.echo(f"{elsewhere} {last}")


def test_the_options_arrive_as_one() -> None:
    words = ("--executor", "slurm", "--partition", "p", "--jobs", "3", "--on-interrupt", "leave", "--slurm", "time=5")
    said = Elsewhere("slurm", "p", 3, ("time=5",), "leave")
    assert CliRunner().invoke(command, [*words, "--last", "x"]).output.strip() == f"{said} x"
    assert CliRunner().invoke(command, []).output.strip() == f"{Elsewhere()} None"
    # A command that is proposed runs its trials in the same place.
    assert CliRunner().invoke(command, [*said.words]).output.strip() == f"{said} None"


@pytest.mark.parametrize(
    ("elsewhere", "file", "expected"),
    [
        (Elsewhere(), ExecutorChoice(), ExecutorChoice()),
        (Elsewhere(), FILE, FILE),
        (Elsewhere("local"), FILE, ExecutorChoice("local")),
        (Elsewhere("slurm"), ExecutorChoice(), ExecutorChoice("slurm")),
        (Elsewhere("slurm", partition="p"), ExecutorChoice("local"), ExecutorChoice("slurm", {"partition": "p"})),
        (
            Elsewhere(partition="v100", slurm=("extra.reservation=s", "node-folder=/tmp")),
            FILE,
            ExecutorChoice(
                "slurm",
                {
                    "partition": "v100",
                    "jobs": "4",
                    "extra": {"reservation": "s", "mail-type": "END"},
                    "node_folder": "/tmp",
                },
            ),
        ),
    ],
)
def test_the_command_line_comes_first_key_by_key(
    elsewhere: Elsewhere, file: ExecutorChoice, expected: ExecutorChoice
) -> None:
    assert chosen(elsewhere, file) == expected


@pytest.mark.parametrize(
    ("elsewhere", "source", "found"),
    [
        (Elsewhere(partition="p"), "--partition", "the executor is local"),
        (Elsewhere("local", jobs=2), "--jobs", "the executor is local"),
        (Elsewhere(slurm=("time=5",)), "--slurm", "the executor is local"),
        (Elsewhere(on_interrupt="leave"), "--on-interrupt", "the executor is local"),
        (Elsewhere("slurm", slurm=("time",)), "--slurm", "has no '='"),
        (Elsewhere("slurm", slurm=("time=5", "time=6")), "--slurm", "time a second time"),
        (Elsewhere("slurm", partition="p", slurm=("partition=q",)), "--slurm", "partition a second time"),
        (Elsewhere("slurm", slurm=("extra.a=1", "extra.a=2")), "--slurm", "extra.a a second time"),
        (Elsewhere("slurm", slurm=("more.a=1",)), "--slurm", "more.a, which is no setting"),
    ],
)
def test_what_cannot_be_is_said_of_the_option(elsewhere: Elsewhere, source: str, found: str) -> None:
    with pytest.raises(BadInput) as told:
        chosen(elsewhere, ExecutorChoice())
    assert (told.value.source, told.value.exit_code) == (source, 2)
    assert found in told.value.found and told.value.wanted


def test_this_host_has_no_partition() -> None:
    assert executor(ExecutorChoice(), Elsewhere(), [Condition.of({})], None, "m.yaml") == Local()
    with pytest.raises(BadInput, match="this host, which has none") as told:
        executor(ExecutorChoice(), Elsewhere(), [ON_A], None, "m.yaml")
    assert "--executor slurm" in told.value.wanted


def test_slurm_gives_the_gpus_and_knows_its_settings() -> None:
    with pytest.raises(BadInput, match="--gpus: 0, and trials run on other hosts"):
        executor(FILE, Elsewhere(), [ON_A], "0", "m.yaml")
    with pytest.raises(BadInput, match=r"m\.yaml.*slurm\.jobs"):
        executor(ExecutorChoice("slurm", {"jobs": "many"}), Elsewhere(), [ON_A], None, "m.yaml")
    assert executor(FILE, Elsewhere(), [ON_A], None, "m.yaml").host.startswith("slurm")


def test_without_a_terminal_the_jobs_are_cancelled_unless_it_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/null").open() as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        assert [executor_option._leaves(said, "2 jobs") for said in (None, "cancel", "leave")] == [False, False, True]


def test_a_matrix_says_it_before_anything_is_written(world: World) -> None:
    world.torch("2.11.0")
    world.matrix("axes: {torch: [2.11.0]}\nconditions: {partition: [a, b]}\n")
    refused = world.run("matrix", "matrix.yaml")
    assert refused.returncode == 2 and "conditions" not in refused.stdout
    assert "'a', and trials run on this host, which has none" in refused.stderr
    unnamed = world.run("matrix", "--executor", "slurm")
    assert unnamed.returncode == 2 and "no matrix named" in unnamed.stderr
    assert not world.store.exists()


@pytest.mark.parametrize("command", [("matrix", "matrix.yaml"), ("explain", "torch=2.11.0", "matrix.yaml")])
def test_a_host_without_slurm_says_it_before_anything_is_written(world: World, command: tuple[str, ...]) -> None:
    world.torch("2.11.0")
    world.matrix("axes: {torch: [2.11.0]}\n")
    refused = world.run(*command, "--executor", "slurm", variables={"PATH": str(world.folder)})
    assert refused.returncode == 2 and "cannot be found on PATH" in refused.stderr, refused.stderr
    assert "--executor local" in refused.stderr and not world.store.exists()

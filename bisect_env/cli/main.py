"""The command ``bisect-env``: its commands, and how errors become messages and exit codes."""

from __future__ import annotations

import importlib
import sys

import click

from bisect_env import __version__
from bisect_env.errors import BisectEnvError, ExitCode

COMMANDS = {
    "matrix": "bisect_env.cli.matrix",
    "show": "bisect_env.cli.show",
    "clean": "bisect_env.cli.clean",
}

EPILOG = """\b
Exit codes, the same for every command:
  0  completed, found, or passed
  1  a regression (gate), no culprit reproduced, or --fail-on matched
  2  usage or bad input; nothing was built
  3  inconclusive within the budget
  4  nothing to compare
  5  infrastructure: disk, GPU, driver
  130  interrupted; the same command goes on from there
"""


class LazyGroup(click.Group):
    """Imports a command's module only when it is asked for: a finished matrix answers in a second."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of a first use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        return command


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bisect-env")
def cli() -> None:
    """Find which environment change broke multi-threaded PyTorch training.

    Start with `bisect-env matrix`: it builds an isolated environment for each combination of a matrix file, runs a
    reproducer in it with several threads and with one, and tabulates which combinations race, fall back to dense
    attention, or stay at full throughput.
    """


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        code = cli.main(args=args, prog_name="bisect-env", standalone_mode=False)
    except click.exceptions.Abort:
        code = ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = ExitCode.USAGE
    except BisectEnvError as error:
        click.echo(f"bisect-env: {error}", err=True)
        code = error.exit_code
    sys.exit(int(code or 0))

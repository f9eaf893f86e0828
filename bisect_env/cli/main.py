"""The command ``bisect-env``: its commands, and how errors become messages and exit codes."""

from __future__ import annotations

import errno
import importlib
import sys

import click

from bisect_env import __version__
from bisect_env.cli.common import complain, to_nowhere
from bisect_env.cli.interrupts import leaving, raising
from bisect_env.errors import BisectEnvError, ExitCode
from bisect_env.matrix.urls import without_credentials

COMMANDS = {
    "matrix": "bisect_env.cli.matrix",
    "bisect": "bisect_env.cli.bisect",
    "gate": "bisect_env.cli.gate",
    "explain": "bisect_env.cli.explain",
    "snapshot": "bisect_env.cli.snapshot",
    "capture": "bisect_env.cli.capture",
    "inspect": "bisect_env.cli.inspect",
    "simulate": "bisect_env.cli.simulate",
    "report": "bisect_env.cli.report",
    "history": "bisect_env.cli.history",
    "show": "bisect_env.cli.show",
    "diff": "bisect_env.cli.diff",
    "clean": "bisect_env.cli.clean",
    "bundle": "bisect_env.cli.bundle",
    "inventory": "bisect_env.cli.inventory",
    "unbundle": "bisect_env.cli.unbundle",
}

MACHINE = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS),
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ESTALE),
        *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN),
    }
)
"""Errors of the system that no code of ours makes: rights, disks, what else lies at a path, limits of the process."""
ADVICE = "Put that right and give the same command again: what was measured so far is kept."

EPILOG = """\b
Exit codes, the same for every command:
  0  completed, found, or passed
  1  --fail-on matched; bisect: the failure is not reproduced; gate: fail
  2  usage or bad input; nothing was built
  3  undecided; unbundle: parts are missing
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
        leaving()
        try:
            command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        finally:
            raising()
        return command


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bisect-env")
def cli() -> None:
    """Find which environment change broke multi-threaded PyTorch training.

    Start with `bisect-env matrix`: it builds an isolated environment for each combination of a matrix file, runs a
    reproducer in it with several threads and with one, and tabulates which combinations race, fall back to dense
    attention, or stay at full throughput.

    With an environment that works and one that fails, `bisect-env bisect` tells which of their differences is to blame.
    Before a host is changed, `bisect-env gate` tells whether the change may be made. Why a combination fails,
    `bisect-env explain` tells.
    """


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        code = cli.main(args=args, prog_name="bisect-env", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = ExitCode.USAGE
    except BisectEnvError as error:
        complain(f"bisect-env: {without_credentials(str(error))}")
        code = error.exit_code
    except OSError as error:
        if error.errno not in MACHINE:
            raise
        to_nowhere(sys.stdout)
        complain(f"bisect-env: {without_credentials(str(error))}\n  {ADVICE}")
        code = ExitCode.INFRASTRUCTURE
    sys.exit(int(code or 0))

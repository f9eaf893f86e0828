"""A command of the user's own behind ``--``, which is none of ours to read."""

from __future__ import annotations

import click

SEPARATOR = "--"
COMMAND = "command"
"""Where it is in the context's ``meta``."""


class OwnCommand(click.Command):
    """What follows ``--`` is the reproducer's command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what follows ``--`` from being taken for options, arguments, or a command below this one."""
        at = args.index(SEPARATOR) if SEPARATOR in args else len(args)
        ctx.meta[COMMAND] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])

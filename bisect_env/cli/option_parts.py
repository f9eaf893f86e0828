"""What the options of several commands are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import click

from bisect_env.cli.common import Command


class Number(click.FloatRange):
    """A number of a range; ``nan``, which no comparison finds outside of one, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuses what is no number."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is no number.", param, ctx)
        return number


def added(function: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """The command with these options, in the order of the help text."""
    for option in reversed(options):
        function = option(function)
    return function


def bundle_option(function: Command) -> Command:
    """Adds ``--bundle``."""
    option = click.option(
        "--bundle",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="No network: build from a bundle that `bisect-env unbundle --into DIR` took in.",
    )
    return option(function)

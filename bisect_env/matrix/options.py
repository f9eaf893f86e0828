"""A reproducer's OPTIONS, read from its source without running it: reproducers import torch, this program does not."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisect_env.errors import BadInput
from bisect_env.matrix.cells import Scalar
from bisect_env.matrix.problems import Unfit, one_of, shown

_KEYS = {"default", "choices", "min", "max", "help"}
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
WANTED = 'a literal OPTIONS = {"name": {"default": ..., "choices": [...] or "min": ..., "max": ..., "help": "..."}}'


@dataclass(frozen=True)
class Option:
    """One option of a reproducer."""

    name: str
    default: Scalar
    """Its type is the option's type."""
    choices: tuple[Scalar, ...] = ()
    """Empty when any value of the type will do."""
    minimum: float | None = None
    maximum: float | None = None
    help: str = ""

    def value(self, text: str) -> Scalar:
        """What ``text`` means for this option.

        Raises:
            Unfit: wrong type, not among the choices, or out of range.
        """
        value = self._typed(text)
        if self.choices and value not in self.choices:
            words = [str(choice) for choice in self.choices]
            raise Unfit(f"{self.name} is {shown(text)}", one_of(words, text))
        bounds = [
            f"at least {self.minimum:g}" if self.minimum is not None else "",
            f"at most {self.maximum:g}" if self.maximum is not None else "",
        ]
        if not isinstance(value, str) and (
            (self.minimum is not None and value < self.minimum) or (self.maximum is not None and value > self.maximum)
        ):
            raise Unfit(f"{self.name} is {shown(text)}", " and ".join(filter(None, bounds)))
        return value

    def _typed(self, text: str) -> Scalar:
        wanted = "text"
        try:
            if isinstance(self.default, bool):
                wanted = "true or false"
                return (*_FALSE, *_TRUE).index(text.lower()) >= len(_FALSE)
            if isinstance(self.default, int):
                wanted = "a whole number"
                return int(text)
            if isinstance(self.default, float):
                wanted = "a number"
                number = float(text)
                if not math.isfinite(number):
                    raise ValueError(text)
                return number
        except ValueError:
            raise Unfit(f"{self.name} is {shown(text)}", wanted) from None
        return text


def read_options(script: Path) -> dict[str, Option]:
    """The options of a shipped reproducer, by name.

    Raises:
        BadInput: the file cannot be read, is not Python, or has no literal OPTIONS of the documented form.
    """
    try:
        tree = ast.parse(script.read_bytes(), filename=str(script))
    except OSError as error:
        raise BadInput(script, "", f"cannot be read: {error.strerror}", "a reproducer's script") from error
    except (SyntaxError, ValueError) as error:
        line = f"line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise BadInput(script, line, f"not Python: {error}", "a reproducer's script") from error
    for node in tree.body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == "OPTIONS" for target in targets):
            return _options(script, node)
    raise BadInput(script, "", "no OPTIONS", WANTED)


def _options(script: Path, node: Any) -> dict[str, Option]:
    place = f"line {node.lineno}"
    try:
        literal = ast.literal_eval(node.value)
    except (ValueError, TypeError) as error:
        raise BadInput(script, place, "OPTIONS is not a literal", WANTED) from error
    if not isinstance(literal, dict):
        raise BadInput(script, place, f"OPTIONS is {shown(literal)}", WANTED)
    options: dict[str, Option] = {}
    for name, entry in literal.items():
        if not isinstance(name, str) or not isinstance(entry, Mapping) or "default" not in entry:
            raise BadInput(script, place, f"the option {name!r} has no default", WANTED)
        if unknown := set(entry) - _KEYS:
            raise BadInput(script, place, f"the option {name!r} has the key {min(map(str, unknown))!r}", WANTED)
        if not isinstance(entry["default"], str | int | float):
            raise BadInput(script, place, f"the option {name!r} has no text or number as its default", WANTED)
        options[name] = Option(
            name=name,
            default=entry["default"],
            choices=tuple(entry.get("choices", ())),
            minimum=entry.get("min"),
            maximum=entry.get("max"),
            help=str(entry.get("help", "")),
        )
    return options

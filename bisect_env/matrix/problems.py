"""How the pure parts of this layer say that an input is unfit, before anybody has looked up where it stands."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from bisect_env.matrix.urls import without_credentials
from bisect_env.words import counted

_LONGEST_SHOWN = 70


class Unfit(ValueError):
    """An input cannot be used; the caller knows its place and turns this into :class:`bisect_env.errors.BadInput`.

    Attributes:
        found: what stands there, in words.
        wanted: what would be right.
    """

    def __init__(self, found: str, wanted: str) -> None:
        self.found, self.wanted = found, wanted
        super().__init__(f"{found}; wanted: {wanted}")


def shown(value: object) -> str:
    """``value`` as a message shows it: in quotes, short, on one line, and without credentials."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return f"a mapping with {counted(len(value), 'key')}"
    if isinstance(value, list | tuple):
        return f"a list with {counted(len(value), 'entry', 'entries')}"
    text = without_credentials(str(value)).replace("\n", " ")
    if len(text) > _LONGEST_SHOWN:
        text = text[:_LONGEST_SHOWN] + "..."
    return f"{text!r}"


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that ``word`` is most likely a typo of, or None. Case, ``-`` and ``_`` do not count."""
    folded = {_folded(candidate): candidate for candidate in known}
    matches = difflib.get_close_matches(_folded(word), folded, n=1, cutoff=cutoff)
    return folded[matches[0]] if matches else None


def one_of(known: Iterable[str], word: str | None = None) -> str:
    """``"hot" (nearest), or one of: ...``: the wanted part of a message about an unknown word."""
    choices = [str(choice) for choice in known]
    near = nearest(word, choices) if word is not None else None
    listed = "one of: " + ", ".join(choices) if choices else "no key at all"
    return f"{near} (the nearest known one); {listed}" if near else listed


def _folded(word: str) -> str:
    return word.lower().replace("_", "-")

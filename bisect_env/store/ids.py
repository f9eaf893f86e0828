"""Short names for runs and trials."""

from __future__ import annotations

import re
import secrets

_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""Without 0, 1, i, l and o, which are mistaken for each other when read aloud or typed."""


def new_trial_id() -> str:
    """``t`` and nine random characters: 31**9 of them, so that 100,000 trials share one with a chance of 1 in 5,000.

    Random from the first character on, so that three or four of them are mostly enough to name a trial.
    """
    return "t" + "".join(secrets.choice(_ALPHABET) for _ in range(9))


def is_trial_id(name: str) -> bool:
    """Whether :func:`new_trial_id` could have given it."""
    return re.fullmatch(f"t[{_ALPHABET}]{{9}}", name) is not None


def new_run_id() -> str:
    """``r`` and six random characters."""
    return "r" + "".join(secrets.choice(_ALPHABET) for _ in range(6))

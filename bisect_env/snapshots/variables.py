"""Environment variables as they may be kept: in order, each once, no secret among them."""

from __future__ import annotations

from collections.abc import Iterable

from bisect_env.matrix.urls import names_secret, secret_values, without_credentials

HIDDEN = "***"
"""In place of a value that is a secret: that it is set remains known."""


def public(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The variables by name; of one that is given twice the last."""
    values = dict(pairs)
    secrets = secret_values(values)
    return tuple((name, _shown(name, values[name], secrets)) for name in sorted(values))


def _shown(name: str, value: str, secrets: tuple[str, ...]) -> str:
    if names_secret(name):
        return HIDDEN
    value = without_credentials(value)
    for secret in secrets:
        value = value.replace(secret, HIDDEN)
    return value

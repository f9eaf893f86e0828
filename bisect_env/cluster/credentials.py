"""Credentials of URLs, kept out of the files of a job: the submitting process hands them on by a variable.

A job's folder lies where every node, and often every user, can read. What the job's environment holds, only its own
processes and Slurm's can.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping

from bisect_env.errors import InfrastructureError
from bisect_env.matrix.urls import QUERY
from bisect_env.store.codec import CREDENTIALS

VARIABLE = "BISECT_ENV_JOB_CREDENTIALS"
"""JSON object of what stands for a credential, and the credential."""


class Vault:
    """Takes credentials out of texts. One for all jobs of a command, which then share one variable."""

    def __init__(self) -> None:
        # Drawn anew for each command, so that no text holds it by chance.
        self._mark = f"credential-{secrets.token_hex(8)}-"
        self._names: dict[str, str] = {}

    def hide(self, text: str) -> str:
        """The text with a name in the place of each credential; see :func:`reveal`."""
        # Each pattern ends its match with the credential, and takes no quote and no backslash of the JSON around it.
        text = CREDENTIALS.sub(lambda match: f"{match[1]}{self._name(match[0][len(match[1]) : -1])}@", text)
        return QUERY.sub(lambda match: match["name"] + self._name(match[0][len(match["name"]) :]), text)

    def names(self, text: str) -> tuple[str, ...]:
        """Those names that occur in the text."""
        return tuple(name for name in self._names.values() if name in text)

    def variables(self) -> dict[str, str]:
        """What a job has to be given beside its folder; empty where no text had credentials."""
        if not self._names:
            return {}
        return {VARIABLE: json.dumps({name: credential for credential, name in self._names.items()})}

    def _name(self, credential: str) -> str:
        return self._names.setdefault(credential, f"{self._mark}{len(self._names)}-")


def reveal(text: str, names: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """The text as it was before :meth:`Vault.hide`.

    Raises:
        InfrastructureError: the environment does not hold what ``names`` stand for.
    """
    if not names:
        return text
    try:
        known = json.loads(environ.get(VARIABLE, "{}"))
        for name in names:
            text = text.replace(name, known[name])
    except (ValueError, KeyError, TypeError):
        raise InfrastructureError(
            f"the job was not given the credentials of its index: {VARIABLE} has to reach it from the process that "
            "submits it (sbatch exports all variables unless --export says otherwise)"
        ) from None
    return text

"""The forms people have their environments in: one file each, recognised by what stands in it, all in one list."""

from __future__ import annotations

from typing import Protocol

from bisect_env.snapshots.forms import (
    captured,
    collect_env,
    conda_list,
    environment_yml,
    lightning_env,
    pip_freeze,
    pip_list,
    pylock,
    requirements,
    saved,
    transformers_env,
    uv_lock,
    vllm_env,
)
from bisect_env.snapshots.records import Snapshot, Target


class Form(Protocol):
    """What each file in this folder is."""

    NAME: str
    """As messages call it."""

    def recognise(self, text: str) -> float:
        """How likely ``text`` is of this form, by content alone.

        1: it has a mark that no other form has (a header, a key), whatever else is wrong with it. Up to 0.9: the
        share of its lines that are of this form. Below 0.5: it is not. Must be quick and must not raise.
        """
        ...

    def read(self, text: str, origin: str, host: Target) -> Snapshot:
        """The snapshot that ``text`` holds, its markers evaluated for ``host``.

        Raises BadInput: it is damaged, contradicts itself, or holds nothing. What cannot be read exactly and leaves
        the rest readable is listed in the snapshot's ``unread``.
        """
        ...


FORMS: tuple[Form, ...] = (
    captured,
    saved,
    uv_lock,
    pylock,
    environment_yml,
    conda_list,
    vllm_env,
    collect_env,
    transformers_env,
    lightning_env,
    pip_list,
    pip_freeze,
    requirements,
)
"""Of two that are as likely the first one is taken."""

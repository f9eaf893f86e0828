"""What a name in a matrix file stands for, and what a level written under it means."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from packaging.utils import canonicalize_name, canonicalize_version

from bisect_env.matrix import versions
from bisect_env.matrix.cells import ENGINE_KEYS, THREAD_KEYS, Scalar
from bisect_env.matrix.expansion import Level
from bisect_env.matrix.options import Option
from bisect_env.matrix.paths import existing, looks_like_path, looks_like_source, source_url
from bisect_env.matrix.problems import Unfit, nearest, one_of, shown
from bisect_env.matrix.schema import VARIABLE, cuda_variant
from bisect_env.matrix.urls import without_credentials

WELL_KNOWN = ("torch", "cuda", "transformers", "python")
RESERVED = ("side", "seed")
"""The runner's own keys of a trial's condition."""
CACHES = ("cold", "warm", "stale")
"""States of the compile cache at a trial's start that the program makes itself; any other is a folder."""
_PARTITION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_PYTHON = re.compile(r"3\.\d{1,2}(\.\d{1,2})?t?")
_TYPO = 0.91
"""Similarity from which an unknown name is taken for a typo and not for a distribution: ``transfomers`` and
``treads`` are above it, the distributions ``torchx`` and ``torchao`` below."""


class Kind(StrEnum):
    """What a name stands for."""

    PACKAGE = "distribution"
    CUDA = "CUDA variant"
    PYTHON = "python"
    VARIABLE = "environment variable"
    CONDITION = "condition"


@dataclass(frozen=True)
class Vocabulary:
    """The names that one matrix file may use."""

    folder: Path
    """Of the file: relative paths start here."""
    options: Mapping[str, Option] | None
    """Of the shipped reproducer; None for a command of the user's own, which takes any condition."""
    reproducer: str
    conditions: Collection[str] = ()
    """Keys under ``conditions``, in the spelling of :meth:`name`."""

    def kind(self, name: str) -> Kind:
        """What ``name`` stands for; a name that is nothing else is a distribution's."""
        if name in ("cuda", "python"):
            return Kind(Kind.CUDA if name == "cuda" else Kind.PYTHON)
        if VARIABLE.fullmatch(name):
            return Kind.VARIABLE
        if name.replace("-", "_") in {key.replace("-", "_") for key in self._condition_keys()}:
            return Kind.CONDITION
        return Kind.PACKAGE

    def name(self, written: str) -> str:
        """The one spelling of a name: distributions as PEP 503 has them, options as the reproducer spells them.

        Raises:
            Unfit: it cannot be a name, or looks like a typo of a well-known one.
        """
        kind = self.kind(written)
        if kind is Kind.CONDITION:
            return self.condition_key(written)
        if kind is not Kind.PACKAGE:
            return written
        if not _DISTRIBUTION.fullmatch(written):
            raise Unfit(f"{shown(written)} is no name", "a distribution, cuda, python, or a VARIABLE in capitals")
        known = [*WELL_KNOWN, *self._condition_keys()]
        near = nearest(written, known, cutoff=_TYPO)
        name = str(canonicalize_name(written))
        if near and near != name and near[0] == name[0]:
            raise Unfit(f"unknown name {shown(written)}", f"{near} (the nearest known one)")
        return name

    def condition_key(self, written: str) -> str:
        """The spelling of a key under ``conditions``.

        Raises:
            Unfit: the reproducer has no such option, or the key is the runner's own.
        """
        alike = written.replace("-", "_")
        if alike in RESERVED:
            raise Unfit(f"{shown(written)} is set by the runner for each trial", "the key left out")
        if self.options is None:
            return alike
        known = {key.replace("-", "_"): key for key in (*self.options, *ENGINE_KEYS) if key not in RESERVED}
        if alike not in known:
            raise Unfit(f"unknown key {shown(written)} for {self.reproducer}", one_of(known.values(), written))
        return known[alike]

    def level(self, name: str, text: str | None) -> Level:
        """The level ``text`` of ``name``, which is spelled as :meth:`name` spells it.

        Raises:
            Unfit: it is none.
        """
        kind = self.kind(name)
        if kind is Kind.CONDITION:
            value = self.condition_value(name, text)
            return Level(str(value), repr(value), value)
        if text is None:
            return Level("unset" if kind is Kind.VARIABLE else "none", "null", None)
        if kind is Kind.VARIABLE:
            return Level(text, f"={text}", text)
        if not text.strip():
            raise Unfit("an empty level", "a level, or null for none")
        if kind is Kind.CUDA:
            return Level(text, text, cuda_variant(text))
        if kind is Kind.PYTHON:
            if not _PYTHON.fullmatch(text):
                raise Unfit(f"{shown(text)} is no Python version", "3.12, 3.12.1 or the like")
            return Level(text, text, text)
        return self._package(name, text)

    def condition_value(self, key: str, text: str | None) -> Scalar:
        """What ``text`` means as the condition ``key``.

        Raises:
            Unfit: it is missing, of the wrong type, no choice of the reproducer, or out of its range.
        """
        if text is None:
            raise Unfit(f"{key} has no value", "a value, or the key left out")
        if key == "cache":
            return self._cache(text)
        if key == "partition":
            return _partition(text)
        if self.options is not None:
            return self.options[key].value(text)
        if key == "threads" and not re.fullmatch(r"[1-9]\d*", text):
            raise Unfit(f"threads is {shown(text)}", "a whole number, at least 1")
        return _plain(text)

    def _condition_keys(self) -> tuple[str, ...]:
        return (*(self.options or ()), *self.conditions, *THREAD_KEYS, *RESERVED)

    def _cache(self, text: str) -> str:
        if text in CACHES:
            return text
        if not looks_like_path(text):
            folder = "or a folder, written with a slash (./inductor-cache)"
            raise Unfit(f"cache is {shown(text)}", f"{one_of(CACHES, text)}; {folder}")
        folder_path = existing(text, self.folder, "a folder with a compile cache")
        if not folder_path.is_dir():
            raise Unfit(f"cache is {shown(text)}, a file", "a folder with a compile cache")
        return str(folder_path)

    def _package(self, name: str, text: str) -> Level:
        if looks_like_source(text):
            url = source_url(text, self.folder)
            return Level(without_credentials(text), url, f"{name} @ {url}")
        if versions.is_range(text):
            raise Unfit(f"the range {shown(text)}", "one version here; ranges are for the levels of an axis")
        version = versions.parse_version(text)
        return Level(text, canonicalize_version(version), f"{name}=={version}")


def _partition(text: str) -> str:
    """One partition: trials of a cell in several would be trials on several kinds of GPU."""
    if not _PARTITION.fullmatch(text):
        wanted = "the name of one partition, as sinfo lists it; a list of them makes each a level of its own"
        raise Unfit(f"partition is {shown(text)}", wanted)
    return text


def _plain(text: str) -> Scalar:
    """A number or a truth value where writing it back gives the same text, so that nothing is lost (2.10 stays)."""
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        if str(value) == text and text not in ("inf", "-inf", "nan"):
            return value
    return text

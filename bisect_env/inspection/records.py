"""What is read of a library, and what is found in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Held(StrEnum):
    """How an origin has a module."""

    SOURCE = "source"
    EXTENSION = "extension"
    """Compiled code, or a module built into the interpreter: nothing to read."""
    ABSENT = "absent"


@dataclass(frozen=True)
class Source:
    """The text of one module."""

    module: str
    """Dotted name; a package's is that of its ``__init__``."""
    path: str
    """As in the wheel: ``torch/fx/_symbolic_trace.py``."""
    text: str
    package: bool
    error: str = ""
    """Why Python would not take it, where its bytes are no text; ``text`` is empty then."""


class Sources(Protocol):
    """Where modules are read from: an environment, a wheel, or a wheel on an index."""

    @property
    def label(self) -> str:
        """Column heading: ``torch 2.11.0``, or an environment's name."""
        ...

    def module(self, name: str) -> Source | None:
        """The module's source; None unless :meth:`holds` says SOURCE.

        Raises:
            InfrastructureError: it is there and cannot be read.
        """
        ...

    def holds(self, name: str) -> Held:
        """Whether there is such a module, and whether it can be read."""
        ...

    def submodules(self, package: str) -> tuple[str, ...]:
        """Last parts of the names of the modules right below a package; of all top-level ones for ``""``."""
        ...

    def digests(self) -> Mapping[str, str]:
        """A digest of each ``.py`` file by its path, without reading the files where that can be done."""
        ...


@dataclass(frozen=True)
class Found:
    """What a dotted name stands for."""

    asked: str
    module: str
    """Where it is defined, re-exports followed."""
    qualname: str
    """Within the module; empty for a module."""
    kind: str
    """``module``, ``class``, ``function``, ``method``, ``value``, ``extension``."""
    path: str
    line: int
    via: tuple[str, ...] = ()
    """Dotted names that it was re-exported through, the asked one first."""
    others: tuple[int, ...] = ()
    """Lines of further definitions in the same file: one of them counts, as a condition there decides."""
    error: str = ""
    """Of a module that Python does not parse: why. Nothing in it is known then."""


@dataclass(frozen=True)
class NotFound:
    """No such name."""

    asked: str
    known: str
    """The longest beginning of the name that exists; may be empty."""
    nearest: tuple[str, ...]
    """Names that are there and look like it, the most alike first."""
    why: str = ""
    """Where the text cannot tell whether there is such a name: ``compiled code``, ``made by the module's
    __getattr__``, ``Python's own library``."""


@dataclass(frozen=True)
class Entry:
    """One name of a module's or a class's surface."""

    name: str
    kind: str
    """``function``, ``class``, ``method``, ``value``, ``module``."""
    signature: str
    """Parameters with defaults and annotations; of a value its literal where it has one; may be empty."""
    line: int
    public: bool
    switch: bool = False
    """Looks like a debug switch: a module-level flag, or an environment variable that is read here."""
    origin: str = ""
    """Module that it comes from, where that is another one."""


@dataclass(frozen=True)
class Surface:
    """What a dotted name offers in one place."""

    label: str
    found: Found | NotFound
    entries: tuple[Entry, ...] = ()
    signature: str = ""
    """Of the name itself, when it can be called."""


@dataclass(frozen=True)
class Change:
    """A name across places, in the order that they were given."""

    name: str
    signatures: tuple[str | None, ...]
    """By place; None where the name is not there."""

    @property
    def steps(self) -> tuple[str, ...]:
        """By place, from the second on: ``""`` as before, ``appeared``, ``changed``, ``went``."""
        words = []
        for before, after in zip(self.signatures, self.signatures[1:], strict=False):
            if before == after:
                words.append("")
            elif before is None:
                words.append("appeared")
            else:
                words.append("went" if after is None else "changed")
        return tuple(words)


@dataclass(frozen=True)
class Step:
    """A function on the way to a hit."""

    name: str
    """``module:qualname``."""
    path: str
    line: int
    """Where the next one is called, or of the hit in the last one."""
    observed: bool = False
    """Whether the call of the next one was seen in a run and not in the text."""
    passed: bool = False
    """Whether the next one is handed over here as an argument (``vmap(f)``), not called by its name."""


@dataclass(frozen=True)
class Hit:
    """A line that a pattern matches."""

    pattern: str
    way: tuple[Step, ...]
    """From the name asked for to the function with the line, both included."""
    path: str
    line: int
    text: str


@dataclass(frozen=True)
class Unresolved:
    """A call that could not be followed."""

    caller: str
    path: str
    line: int
    call: str
    """The called expression as written."""
    why: str
    """``a parameter``, ``an attribute of a value``, ``compiled code``, ``not in the source``, ..."""


@dataclass(frozen=True)
class Scan:
    """What a scan for patterns found, and how far it reached."""

    label: str
    found: Found | NotFound
    patterns: tuple[str, ...]
    depth: int
    """Most steps from the name asked for."""
    functions: int = 0
    """Functions read, the one asked for included."""
    hits: tuple[Hit, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    beyond: int = 0
    """Functions that are called at the last step and were not read."""


class Scope(StrEnum):
    """Who shares a piece of state."""

    PROCESS = "process"
    THREAD = "thread"
    CONTEXT = "context"
    """A context variable: a new thread starts from the default."""
    ABSENT = "absent"
    UNKNOWN = "unknown"
    """The text does not tell: of a value that a function makes, of a module that is replaced while it is imported."""


@dataclass(frozen=True)
class Use:
    """A line that stores or reads a name."""

    function: str
    """``module:qualname``; the module alone for its top level."""
    path: str
    line: int
    text: str
    through: str = ""
    """The function that does nothing but store or read it, where the line calls that one."""


@dataclass(frozen=True)
class Uses:
    """Who sets a module-level name, and who reads it, in all of a distribution."""

    label: str
    found: Found | NotFound
    scope: Scope
    stores: tuple[Use, ...] = ()
    reads: tuple[Use, ...] = ()
    files: int = 0
    """Files that were looked through."""


@dataclass(frozen=True)
class Call:
    """A call that a traced run made."""

    caller: str
    """``module:qualname``."""
    callee: str
    path: str
    """Of the caller."""
    line: int
    """Of the call."""

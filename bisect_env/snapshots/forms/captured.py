"""The document that :mod:`bisect_env.snapshots.capture` prints on a host: the one form that covers everything."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from bisect_env.errors import BadInput
from bisect_env.matrix.urls import without_credentials
from bisect_env.snapshots import capture, host_parts
from bisect_env.snapshots.pieces import Gathering, cuda_of, public, unread, versioned
from bisect_env.snapshots.records import CompileCache, Distribution, Library, Seen, Snapshot, Target, Unread
from bisect_env.snapshots.variables import public as public_variables

NAME = "bisect-env snapshot"
OF_SHELL = "Variables are those that the host gave the capture: a job's own script may set others."
UNTOLD = (
    "Of the compile caches only inductor's is counted; triton's own (~/.triton) and CUDA's are not.",
    "Distributions without a source came from an index: which one, installers do not record.",
)
PARTS = ("python", "platform", "torch", "driver", "gpus", "variables", "cache", "venv", "libraries", "distributions")
"""What a document says of where it was seen, in the order of reports."""
_KEY = re.compile(rf'"{capture.KEY}"\s*:')
_WANTED = "the whole output of `bisect-env snapshot --script` as it ran on the host"

Value = TypeVar("Value")


def recognise(text: str) -> float:
    """By its marks, or by its first key."""
    return 1.0 if capture.begin() in text or _KEY.search(text[:4000]) else 0.0


def read(text: str, origin: str, host: Target) -> Snapshot:
    """The snapshot. Raises BadInput: it is cut off, damaged, of a newer version, or holds two documents."""
    document = _Document(_document(text, origin), origin)
    found = document.get(capture.KEY, int)
    if found != capture.FORMAT:
        wanted = f"version {capture.FORMAT}: the same bisect-env on both sides"
        raise BadInput(origin, capture.KEY, f"a document of version {found}", wanted)
    problem = document.part("problem")
    if problem is not None:
        wanted = problem.get("wanted", str) or "--python or --activate with the environment it runs in"
        raise BadInput(origin, "", public(problem.get("found", str)), wanted)
    gathering = Gathering(origin)
    for place, entry in document.entries("distributions"):
        gathering.add(_distribution(entry), place)
    distributions = gathering.distributions()
    torch = document.part("torch")
    cache = document.part("cache")
    seen = _seen(document)
    missing = [public(each) for each in document.texts("remarks", optional=True)]
    missing += [OF_SHELL] if dict(seen).get("variables", Seen.SHELL) is Seen.SHELL else []
    missing += UNTOLD
    if cache is not None and not cache.get("complete", bool):
        missing.append(f"The compile cache has more files than were counted: at least {cache.get('entries', int)}.")
    return Snapshot(
        origin,
        NAME,
        distributions,
        python=document.get("python", str),
        platform=document.get("platform", str),
        cuda=_variant(torch) or cuda_of(distributions),
        driver=document.maybe("driver", str),
        gpus=tuple(document.texts("gpus")),
        variables=_variables(document),
        cache=None if cache is None else _cache(cache),
        missing=tuple(missing),
        unread=tuple(_unread(entry) for _, entry in document.entries("unread")),
        covered=host_parts.VARIABLES,
        venv=document.maybe("venv", str),
        libraries=_libraries(document),
        seen=seen,
    )


def _document(text: str, origin: str) -> dict[str, Any]:
    begin, end = capture.begin(), capture.end()
    start = text.find(begin)
    if start >= 0:
        stop = text.find(end, start)
        if stop < 0:
            raise BadInput(origin, "its end", f"there is no line {end}: it was cut off", _WANTED)
        if begin in text[stop:]:
            line = text.count("\n", 0, text.index(begin, stop)) + 1
            raise BadInput(origin, f"line {line}", "a second capture", "one: put each host's into a file of its own")
        # A terminal on the way has wrapped nothing, but a paste may be quoted or indented.
        text = re.sub(r"(?m)^[> \t]+", "", text[start + len(begin) : stop])
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(origin, f"line {error.lineno} of the document", error.msg, _WANTED) from None
    except (RecursionError, ValueError) as error:
        raise BadInput(origin, "", f"no JSON: {error}"[:200], _WANTED) from None
    if not isinstance(document, dict):
        raise BadInput(origin, "", f"a JSON {type(document).__name__}", _WANTED)
    return document


class _Document:
    """A JSON object whose values are asked for by their type; what is wrong is said with its place."""

    def __init__(self, values: dict[str, Any], origin: str, place: str = "") -> None:
        self._values, self._origin, self._place = values, origin, place

    def get(self, key: str, kind: type[Value]) -> Value:
        value = self._values.get(key)
        if isinstance(value, kind) and not (kind is int and (isinstance(value, bool) or value < 0)):  # type: ignore[operator]
            return value
        raise self._wrong(key, kind.__name__)

    def maybe(self, key: str, kind: type[Value]) -> Value | None:
        return None if self._values.get(key) is None else self.get(key, kind)

    def part(self, key: str) -> _Document | None:
        values = self.maybe(key, dict)
        return None if values is None else _Document(values, self._origin, f"{self._place}{key}.")

    def entries(self, key: str) -> list[tuple[str, _Document]]:
        found = []
        for at, values in enumerate(self.get(key, list)):
            if not isinstance(values, dict):
                raise self._wrong(f"{key}[{at}]", "object")
            found.append((f"{self._place}{key}[{at}]", _Document(values, self._origin, f"{self._place}{key}[{at}].")))
        return found

    def texts(self, key: str, optional: bool = False) -> list[str]:
        values = (self.maybe(key, list) or []) if optional else self.get(key, list)
        if not all(isinstance(value, str) for value in values):
            raise self._wrong(key, "list of texts")
        return values

    def pairs(self, key: str) -> list[tuple[str, str]]:
        values = self.get(key, list)
        for value in values:
            if not (isinstance(value, list) and len(value) == 2 and all(isinstance(each, str) for each in value)):
                raise self._wrong(key, "list of name and value")
        return [(name, value) for name, value in values]

    def _wrong(self, key: str, kind: str) -> BadInput:
        value = self._values.get(key)
        found = "nothing" if value is None else f"{type(value).__name__} {without_credentials(str(value))[:60]}"
        return BadInput(self._origin, f"{self._place}{key}", found, f"{kind}; {_WANTED}")


def _distribution(entry: _Document) -> Distribution:
    manager = entry.get("manager", str)
    read = versioned(entry.get("name", str), entry.get("version", str), manager, entry.get("source", str))
    notes = [read.note] if read.note and manager != "conda" else []
    build = entry.maybe("build", str)
    if entry.get("editable", bool):
        notes.append("editable: the version does not tell what its folder holds")
    if build:
        notes.append(f"conda build {build}")
    return Distribution(read.name, read.version, read.source, manager, "; ".join(notes))


def _variant(torch: _Document | None) -> str | None:
    if torch is None:
        return None
    cuda, hip = torch.maybe("cuda", str), torch.maybe("hip", str)
    if cuda:
        return "cu" + "".join(cuda.split(".")[:2])
    return "rocm" + ".".join(hip.split(".")[:2]) if hip else "cpu"


def _variables(document: _Document) -> tuple[tuple[str, str], ...] | None:
    """None: a process did not show them."""
    return None if document.maybe("variables", list) is None else public_variables(document.pairs("variables"))


def _libraries(document: _Document) -> tuple[Library, ...] | None:
    if document.maybe("libraries", list) is None:
        return None
    return tuple(Library(name, path) for name, path in document.pairs("libraries"))


def _seen(document: _Document) -> tuple[tuple[str, Seen], ...]:
    """Empty for a document of a bisect-env that did not tell it."""
    told = document.part("seen")
    words = {each.value for each in Seen}
    found = [] if told is None else [(part, told.maybe(part, str)) for part in PARTS]
    return tuple((part, Seen(word)) for part, word in found if word in words)


def _cache(cache: _Document) -> CompileCache:
    return CompileCache(cache.get("path", str), cache.get("entries", int), cache.get("bytes", int))


def _unread(entry: _Document) -> Unread:
    return unread(0, entry.get("path", str), public(entry.get("why", str)))

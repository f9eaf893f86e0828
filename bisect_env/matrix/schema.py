"""The keys of a matrix file and their types.

Every scalar arrives as the text that was written (see :mod:`bisect_env.matrix.document`) and is converted here, by the
field it is written to, never by its looks. What a key means is in docs/matrix-files.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from bisect_env.errors import BadInput
from bisect_env.matrix import executor
from bisect_env.matrix.document import Document, Loc
from bisect_env.matrix.problems import Unfit, one_of, shown

VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]+")
"""Names that are environment variables wherever a name may also be a distribution's."""
_VARIANT = re.compile(r"cu\d{2,3}|cpu")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))?")
"""What uv's ``--exclude-newer`` takes."""
VARIANT_WANTED = "cu128, cu130 or another CUDA variant that torch is built for, or cpu"


def cuda_variant(text: str) -> str:
    """A CUDA variant as PyTorch names it.

    Raises:
        Unfit: it is none that this program can ask for.
    """
    if _VARIANT.fullmatch(text):
        return text
    if text.lower().startswith(("rocm", "hip", "xpu")):
        raise Unfit(f"{shown(text)}: builds for other makers' devices are not supported", VARIANT_WANTED)
    if digits := re.fullmatch(r"(?:cuda|cu)?[ =_-]?(\d{2})\.(\d)(?:\.\d+)?", text.lower()):
        raise Unfit(f"{shown(text)} is no CUDA variant", f"cu{digits[1]}{digits[2]}")
    raise Unfit(f"{shown(text)} is no CUDA variant", VARIANT_WANTED)


def _as_list(value: Any) -> Any:
    """A single value is a list of one."""
    return value if value is None or isinstance(value, list | dict) else [value]


def _custom(problem: Unfit) -> PydanticCustomError:
    return PydanticCustomError("unfit", "{found}", {"found": problem.found, "wanted": problem.wanted})


def _backend(value: Any) -> Any:
    if value in (None, "none", "auto") or not isinstance(value, str):
        return None if value == "none" else value
    try:
        return cuda_variant(value)
    except Unfit as problem:
        wanted = f"auto (the variant each cell asks for), none, or one variant for all: {problem.wanted}"
        raise _custom(Unfit(problem.found, wanted)) from None


def _as_of(value: Any) -> Any:
    if isinstance(value, str) and value != "release":
        try:
            if not _MOMENT.fullmatch(value):
                raise ValueError(value)
            datetime.fromisoformat(value)
        except ValueError:
            wanted = "a date (2026-05-01), a timestamp (2026-05-01T12:00:00Z), or the word release"
            raise _custom(Unfit(f"{shown(value)} is no date", wanted)) from None
    return value


def _pattern(value: Any) -> Any:
    if isinstance(value, str):
        try:
            re.compile(value)
        except re.error as error:
            raise _custom(Unfit(f"{shown(value)}: {error}", "a regular expression of Python's re")) from None
    return value


def _executor(value: Any) -> Any:
    try:
        return executor.written(value)
    except Unfit as problem:
        raise _custom(problem) from None


_UNDERSCORED = ("as_of", "at_once", "slow_below", "stop_early")
"""Keys that are documented with ``_``, the others with ``-``; either is understood."""
Texts = Annotated[list[str], BeforeValidator(_as_list)]
Levels = Annotated[list[str | None], BeforeValidator(_as_list)]
Pattern = Annotated[str | None, BeforeValidator(_pattern)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Section(BaseModel):
    """A mapping with known keys; ``-`` and ``_`` are the same in them."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    title: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        named = {key.replace("-", "_"): entry for key, entry in value.items()}
        for key in value:
            if key.replace("-", "_") not in cls.model_fields:
                known = [name if name in _UNDERSCORED else name.replace("_", "-") for name in cls.model_fields]
                wanted = one_of(known, key)
                context = {"key": key, "found": f"unknown key {shown(key)}{cls.title}", "wanted": wanted}
                raise PydanticCustomError("unfit", "{found}", context)
        return named


class IndexSection(Section):
    """``index``: where packages come from."""

    title: ClassVar[str] = " under index"
    torch_backend: Annotated[str | None, BeforeValidator(_backend)] = None
    torch_fallback: bool = False
    urls: Texts = []
    find_links: Texts = []
    offline: bool = False


class ReproducerSection(Section):
    """``reproducer``: a shipped one by name, or a command."""

    title: ClassVar[str] = " under reproducer"
    name: Annotated[str, Field(min_length=1)] | None = None
    command: Texts = []
    files: Texts = []
    fail_pattern: Pattern = None
    skip_pattern: Pattern = None


class LimitsSection(Section):
    """``limits``: bounds of a run, in seconds unless said otherwise. Defaults are those of the record."""

    title: ClassVar[str] = " under limits"
    trial: Seconds | None = None
    silence: Seconds | None = None
    first_silence: Seconds | None = None
    import_time: Seconds | None = None
    build: Seconds | None = None
    cells: Annotated[int, Field(ge=1)] | None = None


class MatrixFile(Section):
    """A matrix file: types are right, meanings not yet checked."""

    name: Annotated[str, Field(min_length=1)] | None = None
    axes: dict[str, Levels] = {}
    include: list[dict[str, str | None]] = []
    exclude: list[dict[str, str | None]] = []
    requirements: Texts = []
    index: IndexSection = IndexSection()
    as_of: Annotated[str | None, BeforeValidator(_as_of)] = None
    reproducer: Annotated[
        ReproducerSection, BeforeValidator(lambda value: {"name": value} if isinstance(value, str) else value)
    ]
    conditions: dict[str, Levels] = {}
    trials: Annotated[int, Field(ge=1)] = 12
    controls: Annotated[int, Field(ge=1)] | None = None
    solo: Annotated[int, Field(ge=0)] | None = None
    at_once: Annotated[int, Field(ge=1)] = 1
    stop_early: bool = True
    reference: dict[str, str | None] = {}
    slow_below: Annotated[float, Field(gt=0, le=1)] = 0.95
    limits: LimitsSection = LimitsSection()
    base: str | None = None
    accept: Texts = []
    build_requirements: dict[str, Texts] = {}
    env: dict[str, str] = {}
    pass_env: Texts = []
    executor: Annotated[dict[str, dict[str, Any]], BeforeValidator(_executor)] = {}


def validate(document: Document) -> MatrixFile:
    """The document's keys, typed.

    Variables written as ``env: {NAME: ...}`` within ``axes``, ``include``, ``exclude`` or ``reference`` are moved up
    beside the other names there first: both spellings mean the same.

    Raises:
        BadInput: an unknown key, or a value of the wrong type; the first of them.
    """
    for path in _nested_variables(document.data):
        _lift_variables(document, path)
    try:
        return MatrixFile.model_validate(document.data)
    except ValidationError as error:
        raise _translated(document, error.errors(include_url=False)[0]) from None


def _nested_variables(data: Mapping[str, Any]) -> list[Loc]:
    paths: list[Loc] = []
    for section in ("axes", "reference"):
        if isinstance(data.get(section), dict) and "env" in data[section]:
            paths.append((section, "env"))
    for section in ("include", "exclude"):
        entries = data.get(section)
        for at, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, dict) and "env" in entry:
                paths.append((section, at, "env"))
    return paths


def _lift_variables(document: Document, path: Loc) -> None:
    inner: Any = document.data
    for key in path:
        inner = inner[key]
    for name in inner if isinstance(inner, dict) else ():
        if not VARIABLE.fullmatch(name):
            wanted = "a variable's name in capitals, OMP_NUM_THREADS (others can be fixed under the top-level env)"
            raise document.bad((*path, name), f"{shown(name)} as a variable", wanted)
    document.lift(path)


_TYPES = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "model_attributes_type": "a mapping (key: value)",
    "string_type": "a single value",
    "string_too_short": "some text",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
}


def _translated(document: Document, error: ErrorDetails) -> BadInput:
    loc: Loc = tuple(error["loc"])
    context = error.get("ctx", {})
    name = ".".join(str(part) for part in loc)
    kind = error["type"]
    if kind == "missing":
        return document.bad(loc, f"no key {shown(name)}", f"a line {name}: ... (docs/matrix-files.md lists every key)")
    if kind == "unfit":
        place = (*loc, context["key"]) if "key" in context else loc
        return document.bad(place, context["found"], context["wanted"])
    found = f"{name} is {shown(error['input'])}"
    if kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        return document.bad(loc, found, f"{words} {context[bound]:g}")
    return document.bad(loc, found, _TYPES.get(kind, error["msg"]))

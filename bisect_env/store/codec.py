"""Records to JSON and back, exactly: paths, enumerations, tuples, NaN and infinities included.

Tolerant in both directions of time: keys that a newer version wrote are ignored, fields that an older one did not know
get their defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from bisect_env.errors import InfrastructureError
from bisect_env.matrix.urls import without_query_secrets

Record = TypeVar("Record")

CREDENTIALS = re.compile(r"""(https?://|\w://(?=[^/\s@"'`\\:]*:))[^/\s@"'`\\]+@""", re.IGNORECASE)
"""User and password of a URL: all of it for http, where the user may be a token; for other schemes only if there is a
password, since ``git+ssh://git@host`` needs its user."""


@cache
def _adapter(kind: Hashable) -> TypeAdapter[list[Any]]:
    # A list of one, because pydantic refuses a configuration for a bare dataclass.
    return TypeAdapter(list[kind], config=ConfigDict(ser_json_inf_nan="constants"))  # type: ignore[valid-type]


def without_credentials(text: str) -> str:
    """``text`` with ``****`` for the credentials of the URLs in it."""
    return without_query_secrets(CREDENTIALS.sub(r"\1****@", text))


def encode(value: Any, hide: Callable[[str], str] = without_credentials) -> str:
    """A record as a JSON object, without the credentials of any URL in it (``https://****@host``).

    ``hide`` takes them out of the JSON. Characters that UTF-8 cannot express (halves of surrogate pairs, from output
    that is no text) become ``\\udc80``.
    """
    adapter = _adapter(cast("Hashable", type(value)))
    try:
        data = adapter.dump_json([value])
    except PydanticSerializationError:
        data = to_json(_expressible(adapter.dump_python([value])), inf_nan_mode="constants")
    return hide(data.decode()[1:-1])


def decode(kind: type[Record], text: str | bytes) -> Record:
    """The record that :func:`encode` wrote.

    Raises:
        InfrastructureError: it is damaged, or holds a value that this version does not know.
    """
    data = text.encode() if isinstance(text, str) else text
    record: Record
    try:
        [record] = _adapter(cast("Hashable", kind)).validate_json(b"[" + data + b"]")
    except ValueError as error:
        raise InfrastructureError(
            f"the store holds a {kind.__name__} that cannot be read ({_what(error)}). Was it written by a newer "
            "bisect-env? Then use that one; otherwise the file is damaged, and --fresh measures anew"
        ) from error
    return record


def _what(error: ValueError) -> str:
    """Where a record is not what it should be, without its content, which may be long."""
    if not isinstance(error, ValidationError):
        return "it is empty"
    places = (f"{'.'.join(map(str, item['loc'][1:]))}: {item['msg']}" for item in error.errors()[:3])
    return "; ".join(place.removeprefix(": ") for place in places)


def _expressible(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, list | tuple):
        return [_expressible(item) for item in value]
    if isinstance(value, dict):
        return {_expressible(key): _expressible(item) for key, item in value.items()}
    return value

"""A snapshot as ``bisect-env snapshot --json`` writes it: read from any source once, kept as it was."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from packaging.utils import canonicalize_name

from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.snapshots import variables
from bisect_env.snapshots.pieces import Gathering, public, require_some
from bisect_env.snapshots.records import Distribution, Snapshot, Target
from bisect_env.store.codec import decode, encode

NAME = "bisect-env snapshot --json"
KEY = "bisect_env_snapshot"
FORMAT = 1
_MARK = re.compile(rf'\{{\s*"{KEY}"\s*:')
_WANTED = f"the whole output of `{NAME}`, of the same bisect-env"


def structure(snapshot: Snapshot) -> dict[str, Any]:
    """The snapshot for JSON, without credentials; the key ``bisect_env_snapshot`` (version) first."""
    return {KEY: FORMAT, **json.loads(encode(snapshot))}


def recognise(text: str) -> float:
    """By its first key."""
    return 1.0 if _MARK.match(text.lstrip()[:200]) else 0.0


def read(text: str, origin: str, host: Target) -> Snapshot:
    """The snapshot, of the form that it was read from. Raises BadInput: cut off, damaged, or of a newer version."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(origin, f"line {error.lineno}", error.msg, _WANTED) from None
    except (RecursionError, ValueError) as error:
        raise BadInput(origin, "", f"no JSON: {error}"[:200], _WANTED) from None
    if document.pop(KEY, None) != FORMAT:
        raise BadInput(origin, KEY, "another version than this bisect-env writes", _WANTED)
    try:
        found = decode(Snapshot, json.dumps(document))
    except InfrastructureError as error:
        words = re.search(r"cannot be read \((.*?)\)\. Was", str(error), re.DOTALL)
        raise BadInput(origin, "", f"a damaged snapshot: {words[1] if words else 'no object'}", _WANTED) from None
    gathering = Gathering(origin)
    for at, each in enumerate(found.distributions):
        gathering.add(_checked(each), f"distributions[{at}]")
    told = None if found.variables is None else variables.public(found.variables)
    return require_some(replace(found, origin=origin, distributions=gathering.distributions(), variables=told), _WANTED)


def _checked(distribution: Distribution) -> Distribution:
    """Written by hand, it may be spelt in any way."""
    name = distribution.name if distribution.name.startswith("_") else canonicalize_name(distribution.name)
    return replace(distribution, name=name, source=public(distribution.source))

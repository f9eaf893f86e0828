"""Documents of the command line against the schemas that are published for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

FOLDER = Path(__file__).parents[2] / "docs" / "schema"


def published(name: str) -> dict[str, Any]:
    """The schema of a document, as it lies in the documentation."""
    return dict(json.loads((FOLDER / f"{name}.json").read_text("utf-8")))


def closed(schema: Any) -> Any:
    """The schema with no room for keys that it does not tell of: those that came to the code must come to it."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    known = {key: closed(value) for key, value in schema.items()}
    return known | {"additionalProperties": False} if "properties" in known and "type" in known else known


def matching(name: str, document: dict[str, Any]) -> dict[str, Any]:
    """The document, which is what its schema says, to the key."""
    error = best_match(Draft202012Validator(closed(published(name))).iter_errors(document))
    assert error is None, f"{name}, at {error.json_path}: {error.message[:500]}"
    return document

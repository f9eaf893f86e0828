"""The published JSON Schemas of all documents: ``python -m bisect_env.report.schemas docs/schema`` writes them.

With pydantic 2.13 or newer: older ones find fewer of the words, and 2.9 takes a record for another of the same name.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from bisect_env.report.documents import DOCUMENTS

_MARKUP = re.compile(r"(?::\w+:)?`+([^`]+)`+")
NAMED = ("properties", "$defs")
"""Keywords whose value has names of our own as keys."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document: every key that it has is required, and others may come to it.

    Every number may be null: a figure that is not a number is.
    """
    kind = DOCUMENTS[name]
    found = _made(kind)
    definitions = found.get("$defs", {})
    for each, body in ((kind.__name__, found), *definitions.items()):
        _inherit(each, body)
    version = found["properties"]["schema"]["const"]
    head = {"$schema": DIALECT, "$id": f"urn:bisect-env:{name}:{version}", "title": f"bisect-env {name}"}
    clean: dict[str, Any] = _clean(found)
    return head | clean


def _made(kind: type) -> dict[str, Any]:
    """As pydantic makes it. A list of one, because a bare dataclass takes no configuration."""
    made = TypeAdapter(list[kind], config=ConfigDict(use_attribute_docstrings=True)).json_schema(mode="serialization")  # type: ignore[valid-type]
    definitions = made["$defs"]
    return {**definitions.pop(kind.__name__), "$defs": definitions}


def _inherit(name: str, body: dict[str, Any]) -> None:
    """Give keys that a record has from another the words of that one: only a class's own are found."""
    for base in _BASES.get(name, ()):
        for key, value in _made(base)["properties"].items():
            own = body["properties"].get(key)
            if own is not None and "description" in value:
                own.setdefault("description", value["description"])


def _bases() -> dict[str, tuple[type, ...]]:
    modules = {kind.__module__ for kind in DOCUMENTS.values()}
    kinds = [each for module in modules for each in vars(sys.modules[module]).values() if isinstance(each, type)]
    return {each.__name__: each.__mro__[1:-1] for each in kinds if each.__module__ in modules}


_BASES = _bases()


def _clean(node: Any) -> Any:
    """Without pydantic's titles and defaults, which say nothing of a document that is written, and in plain words."""
    if isinstance(node, list):
        return [_clean(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "number":
        node = node | {"type": ["number", "null"]}
    if "properties" in node:
        node = node | {"required": list(node["properties"])}
    return {
        key: {name: _clean(item) for name, item in value.items()}
        if key in NAMED
        else " ".join(_MARKUP.sub(r"`\1`", value).split())
        if key == "description"
        else _clean(value)
        for key, value in node.items()
        if key not in ("title", "default")
    }


def main(folder: Path) -> None:
    """Write them all."""
    for name in DOCUMENTS:
        text = json.dumps(schema(name), indent=2, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

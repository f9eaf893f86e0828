"""Templates to one HTML document that needs nothing beside it, and can do nothing but show itself."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from bisect_env.matrix.urls import without_credentials
from bisect_env.report.pieces import Facts, Grid, Part, Points, Section, Verbatim, Words

_CONTROL = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), 127) if chr(code) not in "\t\n"}
"""What no document may hold; of a terminal's colours nothing is left at all."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LINK = re.compile(r"https?://\S+")


def write(template: str, **values: Any) -> str:
    """The document that a template of this package makes of the values.

    Every text is escaped, and URLs in it lose their credentials. The document's own policy allows the one script and
    the one style sheet that belong to it, by their hashes, and no request: what escaping might have missed stays text.
    """
    environment = _environment()
    style = environment.get_template("style.css").render()
    script = environment.get_template("script.js").render()
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'"
    return environment.get_template(template).render(style=style, script=script, policy=policy, **values)


def clean(text: str) -> str:
    """``text`` without credentials in its URLs, and without what cannot stand in a document."""
    text = _COLOURS.sub("", text.replace("\r\n", "\n")).translate(_CONTROL)
    return without_credentials(text.encode("utf-8", "replace").decode())


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("bisect_env.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["link"] = lambda text: _LINK.fullmatch(text) is not None
    environment.filters["kind"] = lambda part: type(part).__name__
    environment.filters["speaking"] = lambda grid: [column for column in grid.columns if any(column.texts)]
    environment.filters["showing"] = _showing
    return environment


def _shown(value: object) -> object:
    """A value of a template as it is printed. What a template made is of texts that went through here."""
    return clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _showing(sections: Sequence[Section]) -> list[Section]:
    """Those with content, without the parts that have none."""
    kept = [replace(section, parts=tuple(filter(_says_something, section.parts))) for section in sections]
    return [section for section in kept if section.parts]


def _says_something(part: Part) -> bool:
    match part:
        case Words(text) | Verbatim(_, text):
            return bool(text)
        case Facts(pairs):
            return any(said for _, said in pairs)
        case Points(texts):
            return bool(texts)
        case Grid(columns):
            return any(any(column.texts) for column in columns)


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"

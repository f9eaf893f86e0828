"""A report's sections, and the two forms they are written in: text for a terminal, Markdown for an issue."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from bisect_env.report.grid import Column, draw, fitted


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Names and what is to be said of each. Empty ones are left out."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table. ``dropped``: headers that may go where a terminal is too narrow, the least needed first."""

    columns: tuple[Column, ...]
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verbatim:
    """Lines to be copied as they are. ``label`` stands above them; a ``long`` one is folded away in Markdown and left
    out of text, where a file has it."""

    label: str
    text: str
    language: str = ""
    long: bool = False


Part = Words | Facts | Points | Grid | Verbatim


@dataclass(frozen=True)
class Section:
    """Parts under a title; empty title: the beginning. A section without content is not shown."""

    title: str
    parts: tuple[Part, ...]


def text(sections: Sequence[Section], width: int) -> str:
    """The sections at so many characters a line."""
    return "\n\n".join(filter(None, (_section_text(section, width) for section in sections)))


def markdown(sections: Sequence[Section]) -> str:
    """The sections as GitHub's Markdown."""
    return "\n\n".join(filter(None, map(_section_markdown, sections)))


def _section_text(section: Section, width: int) -> str:
    drawn = [part for part in (_part_text(part, width) for part in section.parts) if part]
    return "\n\n".join([section.title, *drawn] if section.title and drawn else drawn)


def _part_text(part: Part, width: int) -> str:
    if isinstance(part, Words):
        return _filled(part.text, width)
    if isinstance(part, Facts):
        pairs = [(name, said) for name, said in part.pairs if said]
        indent = max((len(name) for name, _ in pairs), default=0) + 2
        return "\n".join(_filled(said, width, name.ljust(indent), " " * indent) for name, said in pairs)
    if isinstance(part, Points):
        return "\n".join(_filled(said, width, "- ", "  ") for said in part.texts)
    if isinstance(part, Grid):
        return fitted(part.columns, "simple", width, part.dropped)[0] if _rows(part) else ""
    if part.long or not part.text:
        return ""
    return "\n".join([*([part.label] if part.label else []), textwrap.indent(part.text, "    ")])


def _filled(said: str, width: int, first: str = "", later: str = "") -> str:
    # Names, versions and paths are searched for and copied: they stay whole.
    return textwrap.fill(
        said,
        width,
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _section_markdown(section: Section) -> str:
    drawn = [part for part in map(_part_markdown, section.parts) if part]
    return "\n\n".join([f"## {section.title}", *drawn] if section.title and drawn else drawn)


def _part_markdown(part: Part) -> str:
    if isinstance(part, Words):
        return _escaped(part.text)
    if isinstance(part, Facts):
        return "\n".join(f"- {name}: {_escaped(said)}" for name, said in part.pairs if said)
    if isinstance(part, Points):
        return "\n".join(f"- {_escaped(said)}" for said in part.texts)
    if isinstance(part, Grid):
        kept = [column for column in part.columns if any(column.texts)]
        cells = [Column(column.header, tuple(_cell(text) for text in column.texts)) for column in kept]
        return draw(cells, "github") if _rows(part) else ""
    if not part.text:
        return ""
    fence = "```"
    while fence in part.text:
        fence += "`"
    block = f"{fence}{part.language}\n{part.text.rstrip()}\n{fence}"
    if part.long:
        return f"<details><summary>{_escaped(part.label)}</summary>\n\n{block}\n\n</details>"
    return f"{_escaped(part.label)}\n\n{block}" if part.label else block


def _rows(grid: Grid) -> int:
    return len(grid.columns[0].texts) if grid.columns else 0


_MEANT = str.maketrans({"<": "&lt;", ">": "&gt;", "*": r"\*", "_": r"\_", "`": r"\`", "[": r"\[", "]": r"\]"})


def _escaped(said: str) -> str:
    """Nothing of a message is markup. URLs stay whole: they become links by themselves."""
    return " ".join(word if "://" in word else word.translate(_MEANT) for word in said.split(" "))


def _cell(said: str) -> str:
    return _escaped(said).replace("|", r"\|").replace("\n", " ")

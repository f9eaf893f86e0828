"""An HTML document read with the standard library: a tree to ask, and what a browser would have to put right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}


@dataclass
class Element:
    """One element with its attributes, its children and the text directly in it."""

    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Element]:
        """Itself and all below it, in the order of the document."""
        yield self
        for child in self.children:
            yield from child

    def all(self, tag: str, name: str = "") -> list[Element]:
        """Those of a tag, and of a class where one is given."""
        return [each for each in self if each.tag == tag and (not name or name in each.get("class").split())]

    def get(self, attribute: str) -> str:
        """An attribute; empty where it has none."""
        return self.attributes.get(attribute, "")

    def has(self, name: str) -> bool:
        """Whether it is of that class."""
        return name in self.get("class").split()

    @property
    def text(self) -> str:
        """All text in it, white space folded."""
        return " ".join("".join(self.pieces).split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("document", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        element = Element(tag, {name: value or "" for name, value in attributes})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        closed = self.open.pop()
        assert closed.tag == tag, f"</{tag}> closes <{closed.tag}>"

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.pieces.append(data)


def read(document: str) -> Element:
    """The document's tree. Fails where an element is not closed, or not by its own tag."""
    reader = _Reader()
    reader.feed(document)
    reader.close()
    assert reader.open == [reader.root], f"not closed: {[each.tag for each in reader.open[1:]]}"
    return reader.root

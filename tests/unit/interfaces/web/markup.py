"""What a page is made of, as a browser would read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass(slots=True)
class Markup:
    """The elements of a page and their attributes."""

    tags: set[str] = field(default_factory=set)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen = Markup()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.tags.add(tag)
        self.seen.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.seen.text.append(data)


def read_markup(page: str) -> Markup:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.seen

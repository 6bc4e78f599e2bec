"""Reads a page as the claims it makes: its lines outside code, and which need a source. Pure.

A claim is a line of a list with the lines that go on with it. Lines that open with a link are an
index, lines that end with a colon head others, and what stands in brackets or only counts the rest
holds a place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

PROSE_WORDS_MAX = 40  # of a paragraph that introduces rather than claims

_BULLET = re.compile(r"[ \t]*(?:(?P<dash>[-*+])|\d{1,4}[.)])[ \t]+(?P<text>\S.*)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_PLACEHOLDER = re.compile(r"_.*_|(?:and )?\d[\d,]* more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A line of a page with those that go on with it, and where in the body they stand.

    `bullet` is what follows the mark of a list; none: it is in no list. `is_step`: the mark is a
    number.
    """

    text: str
    line: int
    start: int
    end: int
    bullet: str | None
    is_step: bool

    @property
    def is_claim(self) -> bool:
        """Whether it says something that needs a source."""
        if self.bullet is None:
            return len(self.text.split()) > PROSE_WORDS_MAX
        said = self.bullet.strip()
        is_index = said.startswith("[[") or said.endswith(":")
        has_words = any(map(str.isalpha, without_remarks(said)))
        return has_words and not is_index and _PLACEHOLDER.fullmatch(said) is None


def without_remarks(text: str) -> str:
    """A line without what stands in brackets behind it: its day, its scope, how far to trust it."""
    left = text.rstrip()
    while left.endswith(")"):
        start = left.rfind("(")
        if start < 0 or ")" in left[start:-1]:
            break
        left = left[:start].rstrip()
    return left


def blocks(body: str) -> Iterator[Block]:
    """The lines of a page outside code, each with those that are only its continuation."""
    begun: Block | None = None
    fence, at = "", 0
    for number, line in enumerate(body.split("\n"), start=1):
        mark = _FENCE.match(line)
        is_code = bool(fence) or mark is not None
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        found = None if is_code or not line.strip() else _block(line, number, at)
        if begun is not None and found is not None and _goes_on(begun, found):
            found = _joined(begun, found)
        elif begun is not None:
            yield begun
        begun = found
        at += len(line) + 1
    if begun is not None:
        yield begun


def _block(line: str, number: int, at: int) -> Block:
    found = _BULLET.match(line)
    return Block(
        text=line.strip(),
        line=number,
        start=at,
        end=at + len(line),
        bullet=None if found is None else found["text"],
        is_step=found is not None and found["dash"] is None,
    )


def _goes_on(begun: Block, found: Block) -> bool:
    is_heading = begun.text.startswith("#") or found.text.startswith("#")
    return found.bullet is None and not is_heading and not found.text.startswith("|")


def _joined(begun: Block, found: Block) -> Block:
    bullet = None if begun.bullet is None else f"{begun.bullet} {found.text}"
    return replace(begun, text=f"{begun.text} {found.text}", end=found.end, bullet=bullet)

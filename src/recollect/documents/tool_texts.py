"""How the document tools show documents: short, in pages, and fenced off as data. Pure.

A document's own text stands between two fences that do not occur in it, all else that somebody has
written in quotes on one line; so nothing in a document can pass for the words of a tool.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from recollect.document import Document, Node
from recollect.errors import InvalidValue

PAGE_CHARS = 20_000
LINE_CHARS = 160

_TICKS = re.compile("`+")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Some lines of a text. `next_line` none: they end where it was asked for."""

    text: str
    first_line: int
    last_line: int
    lines: int
    next_line: int | None
    next_column: int


def excerpt_of(body: str, first: int, last: int | None, column: int) -> Excerpt:
    """From one line to another, as much as fits on a page; lines are counted from 1."""
    lines = body.removesuffix("\n").split("\n")
    if first > len(lines):
        raise InvalidValue(f"from_line is {first}, and the document has {len(lines)} lines")
    if last is not None and last < first:
        raise InvalidValue(f"to_line is {last}, before from_line, which is {first}")
    if column > max(1, len(lines[first - 1])):
        raise InvalidValue(
            f"from_column is {column}, and line {first} has {len(lines[first - 1])} characters"
        )
    end = len(lines) if last is None else min(last, len(lines))
    wanted = [lines[first - 1][column - 1 :], *lines[first:end]]
    taken, room = 0, PAGE_CHARS
    while taken < len(wanted) and len(wanted[taken]) <= room:
        room -= len(wanted[taken]) + 1
        taken += 1
    is_cut = taken == 0  # one line is more than a page
    shown = [wanted[0][:PAGE_CHARS]] if is_cut else wanted[:taken]
    next_line = first + taken if taken < len(wanted) else None
    return Excerpt(
        text="\n".join(shown),
        first_line=first,
        last_line=first + len(shown) - 1,
        lines=len(lines),
        next_line=next_line,
        next_column=column + PAGE_CHARS if is_cut else 1,
    )


def body_lines(page: Excerpt) -> list[str]:
    """An excerpt with its fences, and how to get what follows."""
    if page.lines == 1 and not page.text:
        return ["text: none"]
    is_all = page.first_line == 1 and page.last_line == page.lines and page.next_line is None
    span = "all" if is_all else f"lines {page.first_line} to {page.last_line} of"
    lines = [f"text, {span} {page.lines} lines, between the fences:", fenced(page.text)]
    if page.next_line is not None:
        column = f" and from_column {page.next_column}" if page.next_column > 1 else ""
        lines.append(f"There is more: read it again with from_line {page.next_line}{column}.")
    return lines


def fenced(text: str) -> str:
    """A text between two lines of more backticks than it has anywhere."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def quoted(text: str) -> str:
    """A text on one line, in quotes, with nothing in it that does not show."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(
        c if unicodedata.category(c) not in _HIDDEN_CATEGORIES else ascii(c)[1:-1] for c in plain
    )


def node_line(node: Node) -> str:
    below = ", more below it" if node.has_children else ""
    about = f": {quoted(_short(node.description))}" if node.description else ""
    size = f"version {node.version}, {node.body_chars:,} characters"
    return f"- {quoted(node.path)} {quoted(node.title)} ({size}{below}){about}"


def matched_line(document: Document, terms: Sequence[str]) -> str:
    """The line of a document that shows best why it was found."""
    wanted = [term.casefold() for term in terms]
    lines = [line.strip() for line in document.body.split("\n") if line.strip()]
    for line in lines:
        folded = line.casefold()
        at = min((folded.find(term) for term in wanted if term in folded), default=-1)
        if at >= 0:
            return _short(line, max(0, at - LINE_CHARS // 3))
    return _short(document.description or (lines[0] if lines else ""))


def _short(text: str, start: int = 0) -> str:
    cut = text[start : start + LINE_CHARS]
    return f"{'…' if start else ''}{cut}{'…' if start + LINE_CHARS < len(text) else ''}"

"""Links between documents: `[[path|alias]]` in a body, read and rewritten. Pure.

Code is quoted text: nothing in fences or backticks is a link. Each character of a body is looked at
a bounded number of times, whatever the body contains.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from recollect.documents.paths import PATH_CHARS_MAX, DocumentPath, read_path
from recollect.errors import InvalidPath
from recollect.types.pages import NewReference, ReferenceKind

LINKS_MAX = 2000  # of one body; the rest is text

_LINK = re.compile(
    rf"\[\[(?P<target>[^\[\]|\n]{{1,{PATH_CHARS_MAX}}})(?:\|(?P<alias>[^\[\]|\n]{{0,500}}))?\]\]"
)
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}(?=[^`\n]*$)|~{3,})(?P<rest>[^\n]*)", re.MULTILINE)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_TICKS = re.compile(r"`+")


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLink:
    """A link in a body, with its position."""

    path: DocumentPath
    alias: str
    start: int
    end: int


def find_links(body: str) -> Iterator[BodyLink]:
    """The links of a body, in order; what names no possible path is text."""
    count = 0
    for match in (match for span in _prose(body) for match in _LINK.finditer(body, *span)):
        try:
            path = read_path(match["target"].strip())
        except InvalidPath:
            continue
        count += 1
        if count > LINKS_MAX:
            return
        yield BodyLink(
            path=path, alias=(match["alias"] or "").strip(), start=match.start(), end=match.end()
        )


def _prose(body: str) -> Iterator[tuple[int, int]]:
    """Where a body is not code, from and to."""
    for start, end in _paragraphs(body):
        ticks = deque(_TICKS.finditer(body, start, end))
        lasts = {len(run[0]): run.start() for run in ticks}
        at = start
        while ticks:
            opening = ticks.popleft()
            if lasts[len(opening[0])] <= opening.start():
                continue  # nothing closes it: it is only a backtick
            yield at, opening.start()
            while len(ticks[0][0]) != len(opening[0]):
                ticks.popleft()
            at = ticks.popleft().end()
        yield at, end


def _paragraphs(body: str) -> Iterator[tuple[int, int]]:
    """Stretches of lines between blank ones and outside fences, from and to."""
    start = at = 0
    fence = ""
    for line in _LINE.findall(body):
        mark = _FENCE.match(line)
        is_text = not fence and mark is None and not line.isspace()
        if not is_text and start < at:
            yield start, at
        if mark is not None and not fence:
            fence = mark["mark"]
        elif mark is not None and mark["mark"].startswith(fence) and not mark["rest"].strip():
            fence = ""
        at += len(line)
        start = start if is_text else at
    if start < at:
        yield start, at


def references(body: str, links: Iterable[DocumentPath]) -> tuple[NewReference, ...]:
    """All that a document refers to, each once: its explicit links, and those in its body."""
    found: dict[tuple[ReferenceKind, str], NewReference] = {}
    for path in links:
        found.setdefault(
            (ReferenceKind.LINK, path.key),
            NewReference(kind=ReferenceKind.LINK, place=path.place),
        )
    for link in find_links(body):
        found.setdefault(
            (ReferenceKind.BODY, link.path.key),
            NewReference(kind=ReferenceKind.BODY, place=link.path.place, alias=link.alias),
        )
    return tuple(found.values())


def unlinked(body: str, is_gone: Callable[[DocumentPath], bool]) -> str:
    """A body whose links to what is gone are the words they showed."""
    pieces, at = [], 0
    for link in find_links(body):
        if is_gone(link.path):
            pieces += [body[at : link.start], link.alias or link.path.slug]
            at = link.end
    return "".join([*pieces, body[at:]])

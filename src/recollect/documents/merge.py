"""Three-way merging of what a document says: lines against lines, field by field. Pure.

Owns that nothing is overwritten: what only one side changed is taken, what both changed alike is
taken once, and what they changed differently is a clash. A coarse comparison only makes more
clashes, so the work that a hostile text can cause has an end.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from recollect.document import Content

CELLS_MAX = 2_000_000  # pairs of lines that are compared beyond those that stand only once
OURS, BETWEEN, THEIRS = "<<<<<<< the document", "=======", ">>>>>>> the file"

T = TypeVar("T")

Lines = list[str]
Pairs = list[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedText:
    """A text with the changes of both sides."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClashingText:
    """Both sides changed the same lines; `text` shows both, between marks."""

    text: str
    clashes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedContent:
    """What a document says with the changes of both sides."""

    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class ClashingContent:
    """The fields that both sides changed differently, and the body as far as it goes."""

    fields: tuple[str, ...]
    body: str


def merge_contents(
    base: Content, ours: Content, theirs: Content
) -> MergedContent | ClashingContent:
    """All that two sides made of one version."""
    fields = []
    scalars = {}
    for name in ("title", "description"):
        picked = _picked(getattr(base, name), getattr(ours, name), getattr(theirs, name))
        if picked is None:
            fields.append(name)
        else:
            scalars[name] = picked
    body = merge_texts(base.body, ours.body, theirs.body)
    if isinstance(body, ClashingText):
        fields.append("body")
    if fields:
        return ClashingContent(fields=tuple(fields), body=body.text)
    merged = replace(
        ours,
        **scalars,
        body=body.text,
        tags=_merged_names(base.tags, ours.tags, theirs.tags),
        links=_merged_names(base.links, ours.links, theirs.links),
    )
    return MergedContent(content=merged)


def merge_texts(base: str, ours: str, theirs: str) -> MergedText | ClashingText:
    """Two texts that came from one, as one again."""
    whole = _picked(base, ours, theirs)
    if whole is not None:
        return MergedText(text=whole)
    merged: list[str] = []
    clashes = 0
    for old, mine, other in _chunks(base.split("\n"), ours.split("\n"), theirs.split("\n")):
        picked = _picked(old, mine, other)
        if picked is None:
            clashes += 1
            picked = [OURS, *mine, BETWEEN, *other, THEIRS]
        merged += picked
    text = "\n".join(merged)
    return ClashingText(text=text, clashes=clashes) if clashes else MergedText(text=text)


def _picked(base: T, ours: T, theirs: T) -> T | None:
    """The side that changed; none: both did, differently."""
    if theirs in (base, ours):
        return ours
    return theirs if ours == base else None


def _merged_names(
    base: tuple[str, ...], ours: tuple[str, ...], theirs: tuple[str, ...]
) -> tuple[str, ...]:
    """Tags or links: what either side dropped is gone, what either added is there."""
    picked = _picked(base, ours, theirs)
    if picked is not None:
        return picked
    dropped = set(base) - set(theirs)
    kept = [name for name in ours if name not in dropped]
    return tuple(dict.fromkeys([*kept, *(name for name in theirs if name not in base)]))


def _chunks(base: Lines, ours: Lines, theirs: Lines) -> Iterator[tuple[Lines, Lines, Lines]]:
    """The three texts in step: what stands between lines that all of them have, and those lines."""
    mine, other = dict(_matches(base, ours)), dict(_matches(base, theirs))
    at = at_mine = at_other = 0
    for line in range(len(base)):
        if line not in mine or line not in other:
            continue
        to_mine, to_other = mine[line], other[line]
        yield base[at:line], ours[at_mine:to_mine], theirs[at_other:to_other]
        same = base[line : line + 1]
        yield same, same, same
        at, at_mine, at_other = line + 1, to_mine + 1, to_other + 1
    yield base[at:], ours[at_mine:], theirs[at_other:]


def _matches(a: Lines, b: Lines) -> Pairs:
    """Which line of one text is which of the other, in order.

    First the lines that stand once in both, then what is between those, as long as there is time.
    """
    found: Pairs = []
    cells = CELLS_MAX
    at_a = at_b = 0
    for to_a, to_b in [*_anchors(a, b), (len(a), len(b))]:
        pairs, spent = _gap_matches(a[at_a:to_a], b[at_b:to_b], cells)
        found += [(at_a + i, at_b + j) for i, j in pairs]
        cells -= spent
        if to_a < len(a):
            found.append((to_a, to_b))
        at_a, at_b = to_a + 1, to_b + 1
    return found


def _anchors(a: Lines, b: Lines) -> Pairs:
    """Lines that stand exactly once in both texts, as many as are in the same order in both."""
    counts_a, counts_b = Counter(a), Counter(b)
    places = {line: place for place, line in enumerate(b) if counts_b[line] == 1}
    pairs = [
        (i, places[line]) for i, line in enumerate(a) if counts_a[line] == 1 and line in places
    ]
    ends: list[int] = []  # the smallest end of a rising run of each length
    tops: list[int] = []  # which pair that is
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(tops[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        tops[length : length + 1] = [number]
    run: Pairs = []
    number = tops[-1] if tops else -1
    while number >= 0:
        run.append(pairs[number])
        number = before[number]
    return run[::-1]


def _gap_matches(a: Lines, b: Lines, cells: int) -> tuple[Pairs, int]:
    """The matches in a stretch, and what they cost; too large a one is trimmed at its ends only."""
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    inner_a, inner_b = a[start : len(a) - end], b[start : len(b) - end]
    pairs = [(i, i) for i in range(start)]
    cost = len(inner_a) * len(inner_b)
    if 0 < cost <= cells:
        matcher = difflib.SequenceMatcher(None, inner_a, inner_b, autojunk=False)
        pairs += [
            (start + block.a + i, start + block.b + i)
            for block in matcher.get_matching_blocks()
            for i in range(block.size)
        ]
    pairs += [(len(a) - end + i, len(b) - end + i) for i in range(end)]
    return pairs, cost if cost <= cells else 0

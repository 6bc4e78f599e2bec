"""Three-way merging of what a document says: lines against lines, field by field. Pure.

Owns that nothing is overwritten: what only one side changed is taken, what both changed alike is
taken once, and what they changed differently is a clash. A coarse comparison only makes more
clashes, so the work that a hostile text can cause has an end.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

from recollect.documents.front_matter import FileText, heading
from recollect.documents.manifest import ManifestEntry
from recollect.documents.paths import DocumentPath, read_path
from recollect.documents.survey import EDITED_AS_A_FILE, Shelf, content_of, moment_text
from recollect.errors import InvalidValue, NotAllowed
from recollect.types.pages import Content, Document, DocumentEvent, Version

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


VERSIONS_SEARCHED_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestor:
    """What a file was made from, and since which version the document has it.

    `said`: the document has it among other things, because it was merged.
    """

    number: int
    content: Content
    at: str
    said: Content | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestry:
    """Looks up what files were made from. `origin`: a publication of another store, by id."""

    shelf: Shelf
    origin: Mapping[str, ManifestEntry] = field(default_factory=dict)

    def of(
        self, document: Document, entry: ManifestEntry | None, text: FileText
    ) -> Ancestor | None:
        """What was published or loaded; or a later version, if the file says so."""
        known = 0 if entry is None else entry.version
        named = _named_version(document, entry, text)
        if known < named <= document.version:
            found = self._version(document, named)
            if found is not None and self._is_of_here(document, found):
                return _as_it_is(found)
        found = self._version(document, known) if known else None
        if entry is None or found is None or (entry.at and entry.at != moment_text(found.at)):
            return None
        if entry.said is None:
            return _as_it_is(found)
        return Ancestor(number=known, content=entry.said, at=entry.at, said=entry.said)

    def loaded(self, document: Document, base: Ancestor | None, theirs: Content) -> Ancestor | None:
        """The later version that a load has made of it: as it is, or merged with the one before."""
        since = self.since(document, 0 if base is None else base.number)
        made = [each for each in since if _is_of_a_load(each)]
        same = next((each for each in made if content_of(each) == theirs), None)
        if same is not None:
            return _as_it_is(same)
        if base is None:
            return None
        for each, before in pairwise(since):
            is_merged = _is_of_a_load(each) and self._is_merged(
                each, base.content, content_of(before), theirs
            )
            if is_merged:
                return replace(_as_it_is(each), said=theirs)
        return None

    def since(self, document: Document, number: int) -> list[Version]:
        """The versions after one, and that one, the newest first."""
        found = self.shelf.versions(document.id, document.version, VERSIONS_SEARCHED_MAX)
        return [each for each in found if each.number >= number]

    def was_deleted_since(self, document: Document, number: int) -> bool:
        since = self.since(document, number + 1)
        return any(each.event is DocumentEvent.DELETED for each in since)

    def _version(self, document: Document, number: int) -> Version | None:
        found = self.shelf.versions(document.id, number, 1)
        return found[0] if found and found[0].number == number else None

    def _is_of_here(self, document: Document, found: Version) -> bool:
        """Whether it is the version that was published, and not another one of that number."""
        entry = self.origin.get(document.id)
        is_named = entry is not None and entry.version == found.number
        return entry is None or not is_named or entry.at == moment_text(found.at)

    def _is_merged(self, made: Version, base: Content, before: Content, theirs: Content) -> bool:
        merged = merge_contents(base, before, theirs)
        if isinstance(merged, ClashingContent):
            return False
        try:
            # What is stored has been checked, and may have been redacted.
            stored = self.shelf.write(read_path(made.path), merged.content).content
        except (InvalidValue, NotAllowed):
            return False
        return stored == content_of(made)


def theirs_of(path: DocumentPath, text: FileText, base: Ancestor | None) -> Content:
    """What a file says; front matter that is not there has not changed."""
    known = None if base is None else base.content
    if text.front is None and known is not None:
        return replace(known, body=text.body)
    front = text.front
    title = None if front is None else front.title
    if title is None:
        title = known.title if known is not None else heading(text.body) or path.slug
    return Content(
        title=title,
        description="" if front is None else front.description,
        body=text.body,
        tags=() if front is None else front.tags,
        links=() if front is None else front.links,
    )


def _is_of_a_load(version: Version) -> bool:
    return version.reason == EDITED_AS_A_FILE and version.event is not DocumentEvent.DELETED


def _as_it_is(version: Version) -> Ancestor:
    return Ancestor(number=version.number, content=content_of(version), at=moment_text(version.at))


def _named_version(document: Document, entry: ManifestEntry | None, text: FileText) -> int:
    """The version a file names, if it is one of this document; that of another says nothing."""
    if text.front is None or text.front.version is None:
        return 0
    is_its_own = text.front.id == document.id or (text.front.id is None and entry is not None)
    return text.front.version if is_its_own else 0

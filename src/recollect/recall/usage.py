"""What became of what was recalled: shown to a model, opened, or cited by it.

Pure: from whatever a caller says was used to the hits that were, and to usage that counts each of
them once per turn and kind, however often it is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from recollect.errors import InvalidValue
from recollect.knowledge import Source, Trust
from recollect.recall.citations import without_citations
from recollect.recollection import Citation, Context, EntryKind, Hit, Usage, UsageKind

Opened = Hit | Citation
Used = str | Opened

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def named_hit(kind: EntryKind, entry_id: str, sources: Iterable[Source]) -> Hit:
    """Return a hit that has what counts of it when its use is told: its name, and its sources."""
    return Hit(
        id=entry_id,
        kind=kind,
        text="",
        score=0.0,
        why={},
        sources=tuple(sources),
        at=_NEVER,
        trust=Trust.USER,
    )


def shown(block: Context, *, turn_id: str, at: datetime) -> Usage:
    """What a block put before a model."""
    hits = _once(citation.hit for citation in block.citations)
    return Usage(kind=UsageKind.SHOWN, turn_id=turn_id, hits=hits, at=at)


def opened(asked: Opened | Iterable[Opened], *, turn_id: str, at: datetime) -> Usage:
    """What somebody asked to read, of the hits they were shown."""
    given = [asked] if isinstance(asked, Hit | Citation) else asked
    if not isinstance(given, Iterable):
        raise InvalidValue("what was opened are hits, or citations of a block")
    hits = [each.hit if isinstance(each, Citation) else each for each in given]
    if not all(isinstance(hit, Hit) for hit in hits):
        raise InvalidValue("what was opened are hits, or citations of a block")
    return Usage(kind=UsageKind.OPENED, turn_id=turn_id, hits=_once(hits), at=at)


def cited(block: Context, used: Used | Iterable[Used], *, turn_id: str, at: datetime) -> Usage:
    """What a model used of a block, in whatever way it is said; see `cited_hits`."""
    hits = cited_hits(block, used)
    return Usage(kind=UsageKind.CITED, turn_id=turn_id, hits=hits, at=at)


def cited_hits(block: Context, used: Used | Iterable[Used]) -> tuple[Hit, ...]:
    """The block's hits that are meant: by mark, as hits, by id, or by the marks in a model's text.

    What the block does not have is not counted. What was left out because a line says the same
    counts for that line.
    """
    given = [used] if isinstance(used, str | Hit | Citation) else used
    if not isinstance(given, Iterable):
        raise InvalidValue(f"what was used is a mark, a hit, an id or a text: {used!r}")
    told = _Told(block)
    return _once(hit for each in given for hit in told.meant(each))


class _Told:
    """A block's hits, by everything they can be called."""

    def __init__(self, block: Context) -> None:
        self._by_mark = {citation.mark: citation.hit for citation in block.citations}
        self._by_entry = {_entry(hit): hit for hit in self._by_mark.values()}
        for omission in block.omitted:
            if omission.instead in self._by_mark:
                self._by_entry.setdefault(_entry(omission.hit), self._by_mark[omission.instead])

    def meant(self, used: Used) -> list[Hit]:
        match used:
            case Citation():
                return self._entries(_entry(used.hit))
            case Hit():
                return self._entries(_entry(used))
            case str():
                return self._named(used)
            case _:
                raise InvalidValue(f"what was used is a mark, a hit, an id or a text: {used!r}")

    def _entries(self, entry: tuple[EntryKind, str]) -> list[Hit]:
        return [self._by_entry[entry]] if entry in self._by_entry else []

    def _named(self, name: str) -> list[Hit]:
        if name in self._by_mark:
            return [self._by_mark[name]]
        by_id = [hit for kind in EntryKind for hit in self._entries((kind, name))]
        if by_id:
            return by_id
        marks = without_citations(name, known=self._by_mark).marks
        return [self._by_mark[mark] for mark in marks]


def _entry(hit: Hit) -> tuple[EntryKind, str]:
    return hit.kind, hit.id


def _once(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    return tuple({_entry(hit): hit for hit in hits}.values())

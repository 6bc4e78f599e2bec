"""Citations: the marks by which a model says what it used, and the usage that is counted from them.

A mark is `[m1]`, or `[m1, m3]` for several, wherever it stands but in code: between back quotes, or
in a fenced block, brackets are somebody's program. Everything else in brackets is text and stays.
A stream is read as it comes: what may still become a mark is held back, never more than that. Usage
counts each hit once per turn and kind, however often it is reported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from recollect.errors import InvalidValue
from recollect.types.facts import Source, Trust
from recollect.types.recall import Citation, Context, EntryKind, Hit, HitUsage, UsageKind

MARK_CHARS_MAX = 80  # a longer list of marks is no citation

_NAME = r"m[1-9][0-9]{0,2}"
_BEGUN = re.compile(rf"\[(?:{_NAME}[,;] ?)*+(?:m(?:[1-9][0-9]{{0,2}})?)?")
_WHOLE = re.compile(rf"\[{_NAME}(?:[,;] ?{_NAME})*\]")
_EACH = re.compile(_NAME)
# Runs that say nothing about marks, or one character that may.
_PIECE = re.compile(r"[^\[\]`~\n m,;0-9]+|.", re.DOTALL)
_FENCE_TICKS = 3
_FENCE_SIGNS = ("`", "~")
_LINE_OPENING = frozenset(" \t>-*+")  # what may stand before a fence on its line


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """What a model wrote, without its marks, and the marks: each once, in order."""

    text: str
    marks: tuple[str, ...]


def mark_of(number: int) -> str:
    """The name of the mark of a block's first, second … item."""
    return f"m{number}"


def without_citations(text: str, *, known: Collection[str] | None = None) -> Cited:
    """A whole text without its marks; with `known`, only marks among them are marks."""
    stream = CitationStream(known=known)
    kept = stream.feed(text) + stream.close()
    return Cited(text=kept, marks=stream.cited)


class CitationStream:
    """Takes the marks out of a text that comes in chunks, however it is cut.

    With the blank before it, a mark leaves the sentence as it was; at the beginning of a line the
    blank after it goes instead.
    """

    def __init__(self, *, known: Collection[str] | None = None) -> None:
        self._known = None if known is None else frozenset(known)
        self._cited: dict[str, None] = {}
        self._held = ""  # a blank, a mark that has begun, or both
        self._skips_blank = False
        self._line_is_empty = True
        self._tick = ""  # the sign that may make a fence, and how many in a row up to here
        self._ticks = 0
        self._opens_line = True  # they are the first on their line
        self._fence = ""  # the sign of the fence that is open
        self._in_quotes = False

    @property
    def cited(self) -> tuple[str, ...]:
        """The marks so far, each once, in order."""
        return tuple(self._cited)

    def feed(self, chunk: str) -> str:
        """What can be shown now that this has come."""
        return "".join(self._after(piece[0]) for piece in _PIECE.finditer(chunk))

    def close(self) -> str:
        """What was held back, when nothing more will come."""
        return self._released()

    def _after(self, piece: str) -> str:
        self._follow_code(piece)
        if self._fence or self._in_quotes:
            return self._released() + self._shown(piece)
        begun = self._held.lstrip(" ")
        if begun and _BEGUN.fullmatch(begun + piece) and len(begun) < MARK_CHARS_MAX:
            self._held += piece
            return ""
        if begun and piece == "]" and _WHOLE.fullmatch(begun + piece):
            return self._taken_out(begun + piece)
        return self._beside_marks(piece)

    def _beside_marks(self, piece: str) -> str:
        """What begins a mark is held back; so is the blank that may stand before one."""
        match piece:
            case "[" if self._held.endswith(" ") or not self._held:
                shown = self._shown(self._held[:-1])
                self._held = self._held[-1:] + piece
                return shown
            case "[" | " ":
                if piece == " " and self._skips_blank and not self._held:
                    self._skips_blank = False
                    return ""
                shown = self._released()
                self._held = piece
                return shown
            case _:
                return self._released() + self._shown(piece)

    def _taken_out(self, mark: str) -> str:
        names = _EACH.findall(mark)
        meant = [name for name in names if self._known is None or name in self._known]
        if not meant:
            return self._released() + self._shown("]")
        self._cited.update(dict.fromkeys(meant))
        self._held = ""
        self._skips_blank = self._line_is_empty
        return ""

    def _released(self) -> str:
        held, self._held = self._held, ""
        return self._shown(held)

    def _shown(self, text: str) -> str:
        if text:
            self._skips_blank = False
            self._line_is_empty = text.endswith("\n")
        return text

    def _follow_code(self, piece: str) -> None:
        """A fence is three back quotes or tildes that begin a line, an item or a quotation.

        Other quotes end with their line.
        """
        if piece in _FENCE_SIGNS:
            self._ticks = self._ticks + 1 if piece == self._tick else 1
            self._tick = piece
            if self._ticks == _FENCE_TICKS and self._opens_line:
                self._fence = "" if self._fence == piece else self._fence or piece
                self._in_quotes = False
            elif self._ticks == 1 and piece == "`":
                self._in_quotes = not self._in_quotes
            return
        self._ticks = 0
        if piece == "\n":
            self._in_quotes = False
            self._opens_line = True
        elif not _LINE_OPENING.issuperset(piece):
            self._opens_line = False


Opened = Hit | Citation
Used = str | Opened

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def named_hit(kind: EntryKind, entry_id: str, sources: Iterable[Source]) -> Hit:
    """Return a hit that has what counts when its use is reported: its name and its sources."""
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


def shown(block: Context, *, turn_id: str, at: datetime) -> HitUsage:
    """What a block put before a model."""
    hits = _once(citation.hit for citation in block.citations)
    return HitUsage(kind=UsageKind.SHOWN, turn_id=turn_id, hits=hits, at=at)


def opened(asked: Opened | Iterable[Opened], *, turn_id: str, at: datetime) -> HitUsage:
    """What somebody asked to read, of the hits they were shown."""
    given = [asked] if isinstance(asked, Hit | Citation) else asked
    if not isinstance(given, Iterable):
        raise InvalidValue("opened takes hits, or citations of a block")
    hits = [each.hit if isinstance(each, Citation) else each for each in given]
    if not all(isinstance(hit, Hit) for hit in hits):
        raise InvalidValue("opened takes hits, or citations of a block")
    return HitUsage(kind=UsageKind.OPENED, turn_id=turn_id, hits=_once(hits), at=at)


def cited(block: Context, used: Used | Iterable[Used], *, turn_id: str, at: datetime) -> HitUsage:
    """What a model used of a block, in whatever way it is said; see `cited_hits`."""
    hits = cited_hits(block, used)
    return HitUsage(kind=UsageKind.CITED, turn_id=turn_id, hits=hits, at=at)


def cited_hits(block: Context, used: Used | Iterable[Used]) -> tuple[Hit, ...]:
    """The block's hits that are meant: by mark, as hits, by id, or by the marks in a model's text.

    What the block does not have is not counted. What was left out because a line says the same
    counts for that line.
    """
    given = [used] if isinstance(used, str | Hit | Citation) else used
    if not isinstance(given, Iterable):
        raise InvalidValue(f"used takes a mark, a hit, an id or a text, not {used!r}")
    names = _Names(block)
    return _once(hit for each in given for hit in names.meant(each))


class _Names:
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
                raise InvalidValue(f"used takes a mark, a hit, an id or a text, not {used!r}")

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

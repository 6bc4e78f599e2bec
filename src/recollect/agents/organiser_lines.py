"""A claim as one line of a page, and its source as a footnote; written and read again. Pure.

    - The user lives in Porto. (2026-11-15) [^3f9a01c2d4]
    [^3f9a01c2d4]: user, 2026-11-15T10:00:00Z, 019a8f3e-…/12, fact 019a8f3f-…, on user:home

Whatever a claim says, it is text: it opens no link, note, tag or code that it does not close, and
has no second line. The label is made of the statement, so that a line that says something else than
its label was changed by somebody, and is theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import lru_cache
from urllib.parse import quote, unquote

from recollect.knowledge import Source, Trust, content_key
from recollect.quoting import quoted
from recollect.terms import words
from recollect.topics.claims import Claim
from recollect.topics.directory import Mention

TEXT_CHARS_MAX = 1000
SOURCES_MAX = 5  # named by one note
LABEL_CHARS = 10
LINES_KEPT = 4096  # of those read last: a page is read again after each change to it

_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
# What would be a link, a note, the target of a link, or a tag, and how it reads the same.
_OPENING = re.compile(r"\[(?=[\[^])|\](?=\()|<(?=[A-Za-z/!?])")
_ESCAPED = {"[": "[\\", "]": "]\\", "<": "\\<"}
_ESCAPE = re.compile(r"(?<=\[)\\(?=[\[^])|(?<=\])\\(?=\()|\\(?=<)")
_LINK = re.compile(r"\[\[[^\[\]|]+\|([^\[\]|]*)\]\]")
_TOUCHING = frozenset("[](\\`<|")  # what a link beside it would not read the same with
_TILDES = re.compile(r"^~{3,}")

_NOTE = re.compile(rf"\[\^(?P<label>[0-9a-f]{{{LABEL_CHARS}}})\]: (?P<fields>\S.*)")
_SOURCE = re.compile(r"(?P<session>[^\s/]+)/(?P<first>\d{1,18})(?:-(?P<last>\d{1,18}))?")
_SAFE = "-_.~:@+"


class Mark(StrEnum):
    """What a reader has to know of a line before they believe it."""

    NONE = ""
    INFERRED = "inferred"
    TOOL = "from a tool"


_MARKS = "|".join(mark.value for mark in Mark if mark)
_ENDING = re.compile(rf"(?:\s*\((?P<mark>{_MARKS})\))+[\s.]*$", re.IGNORECASE)
_LINE = re.compile(
    rf"- (?P<text>.+?)(?: \((?P<mark>{_MARKS})\))?(?: \(in (?P<scope>\[\[[^\[\]]+\]\])\))?"
    r" \((?P<day>\d{4}-\d\d-\d\d)(?:, until (?P<until>\d{4}-\d\d-\d\d))?\)"
    rf" \[\^(?P<label>[0-9a-f]{{{LABEL_CHARS}}})\]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A claim as it stands on a page. `text` has its links; `until` is when it was over."""

    text: str
    label: str
    day: date
    until: date | None = None
    mark: Mark = Mark.NONE
    scope: str = ""  # a link to the project it holds for

    def __str__(self) -> str:
        mark = f" ({self.mark})" if self.mark else ""
        scope = f" (in {self.scope})" if self.scope else ""
        until = f", until {self.until}" if self.until else ""
        return f"- {self.text}{mark}{scope} ({self.day}{until}) [^{self.label}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a page knows of a claim: whose word it is, since when, and where it comes from."""

    label: str
    trust: Trust
    at: datetime
    sources: tuple[Source, ...] = ()  # without their quotes
    fact_id: str | None = None
    topic: str | None = None
    due: date | None = None

    @property
    def said(self) -> tuple[datetime, int]:
        return self.at, max((source.seq_to for source in self.sources), default=0)

    def __str__(self) -> str:
        at = self.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
        fields = [self.trust.value, at, *map(_place, self.sources)]
        if self.fact_id:
            fields.append(f"fact {_token(self.fact_id)}")
        if self.topic:
            fields.append(f"on {_token(self.topic)}")
        if self.due:
            fields.append(f"due {self.due}")
        return f"[^{self.label}]: {', '.join(fields)}"


def shown(text: str) -> str:
    """A claim's text as it may stand on a line, without links; empty if it says nothing."""
    line = _ENDING.sub("", quoted(text[: 4 * TEXT_CHARS_MAX])).strip()
    if len(line) > TEXT_CHARS_MAX:
        line = line[: TEXT_CHARS_MAX - 1].rstrip() + "…"
    if "`" in line and ("\\`" in line or "`" in _CODE.sub("", line)):
        line = line.replace("`", "'")  # code that nothing closes would swallow the lines below
    line = _TILDES.sub(lambda mark: f"\\{mark[0]}", line)
    return _prose(line, lambda part: _OPENING.sub(lambda found: _ESCAPED[found[0]], part))


def mark_of(claim: Claim) -> Mark:
    if claim.trust is Trust.TOOL:
        return Mark.TOOL
    ending = _ENDING.search(claim.text)
    says_so = ending is not None and ending["mark"].casefold() == Mark.INFERRED
    return Mark.INFERRED if claim.is_inferred or says_so else Mark.NONE


def plain(text: str) -> str:
    """What a line says, without links and what only keeps it text."""
    bare = _prose(text, lambda part: _ESCAPE.sub("", _LINK.sub(r"\1", part)))
    return bare.removeprefix("\\") if bare.startswith("\\~~~") else bare


@lru_cache(maxsize=LINES_KEPT)
def label_of(text: str) -> str:
    """What a line is found by."""
    return content_key(plain(text))[:LABEL_CHARS]


def linked(text: str, mentions: Iterable[Mention], target: Callable[[Mention], str]) -> str:
    """A text whose first mentions of others are links to where they stand; none: left as it is."""
    code = [(match.start(), match.end()) for match in _CODE.finditer(text)]
    pieces, at = [], 0
    for mention in sorted(mentions, key=lambda each: each.start):
        path = target(mention)
        is_code = any(start < mention.end and mention.start < end for start, end in code)
        touches = text[: mention.start][-1:] in _TOUCHING or text[mention.end :][:1] in _TOUCHING
        if not path or is_code or touches or mention.start < at:
            continue
        name = text[mention.start : mention.end]
        pieces += [text[at : mention.start], f"[[{path}|{name}]]"]
        at = mention.end
    return "".join([*pieces, text[at:]])


def is_claims_own(line: Line) -> bool:
    """Whether a line says what its label was made of: nobody has changed it since."""
    return label_of(line.text) == line.label


@lru_cache(maxsize=LINES_KEPT)
def read_line(text: str) -> Line | None:
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    try:
        return Line(
            text=match["text"],
            label=match["label"],
            day=date.fromisoformat(match["day"]),
            until=date.fromisoformat(match["until"]) if match["until"] else None,
            mark=Mark(match["mark"] or ""),
            scope=match["scope"] or "",
        )
    except ValueError:  # no such day
        return None


def note_of(claim: Claim, label: str, due: date | None) -> Note:
    sources = dict.fromkeys(
        Source(session_id=each.session_id, seq=each.seq, seq_to=each.seq_to)
        for each in claim.sources
    )
    return Note(
        label=label,
        trust=claim.trust,
        at=claim.at,
        sources=tuple(sources)[:SOURCES_MAX],
        fact_id=claim.fact_id,
        topic=claim.topic,
        due=due,
    )


@lru_cache(maxsize=LINES_KEPT)
def read_note(text: str) -> Note | None:
    """A note as it was written here; none: it is somebody's own."""
    match = _NOTE.fullmatch(text)
    if match is None:
        return None
    trust, *rest = match["fields"].split(", ")
    try:
        at = datetime.fromisoformat(rest[0])
        note = Note(label=match["label"], trust=Trust(trust), at=at)
        fields = _fields(rest[1:])
    except (ValueError, IndexError):
        return None
    if fields is None or at.tzinfo is None:
        return None
    sources, said = fields
    due = said.get("due")
    try:
        return Note(
            label=note.label,
            trust=note.trust,
            at=note.at,
            sources=sources,
            fact_id=said.get("fact"),
            topic=said.get("on"),
            due=date.fromisoformat(due) if due else None,
        )
    except ValueError:
        return None


def _fields(texts: list[str]) -> tuple[tuple[Source, ...], dict[str, str]] | None:
    sources: list[Source] = []
    said: dict[str, str] = {}
    for text in texts:
        name, blank, value = text.partition(" ")
        place = _SOURCE.fullmatch(text)
        if blank and name in ("fact", "on", "due"):
            said[name] = unquote(value, errors="surrogatepass")
        elif place is not None:
            first = int(place["first"])
            last = int(place["last"] or first)
            session = unquote(place["session"], errors="surrogatepass")
            sources.append(Source(session_id=session, seq=first, seq_to=last))
        else:
            return None
    return tuple(sources), said


def _place(source: Source) -> str:
    last = f"-{source.seq_to}" if source.seq_to != source.seq else ""
    return f"{_token(source.session_id)}/{source.seq}{last}"


def read_id_words(text: str) -> str:
    """The most telling word of an id as a note has it, to search for."""
    return max(words(_token(text)).split(), key=len, default="")


def _token(text: str) -> str:
    return quote(text, safe=_SAFE, errors="surrogatepass")


def _prose(text: str, change: Callable[[str], str]) -> str:
    """A text changed where it is not code."""
    pieces, at = [], 0
    for code in _CODE.finditer(text):
        pieces += [change(text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*pieces, change(text[at:])])

"""Cuts what somebody said into sentences, leaving out what is not their own prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

SENTENCES_MAX = 60  # per block: a text with more was pasted
SENTENCE_CHARS_MAX = 600
_HEAD_CHARS, _TAIL_CHARS = 6_000, 2_000

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_TAG = re.compile(r"^[ \t]*<([A-Za-z][\w-]{0,60})\b[^<>\n]{0,200}>", re.MULTILINE)
_TAGS_MAX = 50
# Below it stands what somebody else wrote: pasted, forwarded, or a mail with its head.
_FOREIGN = re.compile(
    r"^(?:\[Pasted text #\d.*|-{2,} ?(?:Forwarded message|Original Message|Message transféré|"
    r"Weitergeleitete Nachricht|Mensaje reenviado).*|(?:Begin )?forwarded message:.*|"
    r"(?:fwd|fw): \S.*|"
    r"(?:Subject|Betreff|Objet|Asunto|Oggetto|Onderwerp): \S.*|"
    r"(?:From|Von|De|Da|Van): \S.*\n+(?:Sent|Date|To|Subject|Gesendet|Datum|An|Betreff|Objet|À|"
    r"Asunto|Para|Oggetto|A|Aan|Onderwerp)\b.*)$",
    re.MULTILINE | re.IGNORECASE,
)
# What stands between two such lines was put there.
_RULED = re.compile(r"^(?:-{3,}|={3,}|\*{3,}|_{3,})[ \t]*$", re.MULTILINE)
_NOT_PROSE = re.compile(
    r"^\s*(?:[>|+$#<{}\[\]=]|//|/\*|\d+\s*→|@@|(?:error|fatal|hint|warning): |npm ERR!|"
    r"Traceback |File \"|goroutine |at \S+ ?\(|"
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:|https?://\S+\s*$)"
)
_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|\n+")
# Before a name or a number: a sentence hardly ends there.
_LEADING = re.compile(
    r"(?<![^\s(])(?:[A-HJ-Z]|[A-Za-z]\.[A-Za-z]|[Mm]rs?|[Mm]s|[Dd]r|[Ss]t|[Pp]rof|[Jj]r|vs|etc|"
    r"approx|[Nn]o|[Ff]ig|[Ii]nc|[Ll]td|[Vv]ol|Mt|Ft|Capt|Col|Gen|Sgt|Lt|Sen|Gov|Rev|Univ)\.$"
)
# Within a sentence or at its end: only what follows tells.
_DATED = re.compile(
    r"(?<![^\s(])(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|"
    r"Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\.$"
)
_OTHER = re.compile(
    r"(?<![^\s(])(?:Ave|Blvd|Rd|Co|Corp|Bros|[Dd]ept|Rep|Ph\.D|[MB]\.(?:Sc|Eng)|lbs|hrs?|mins?)\.$"
)
_GOES_ON = re.compile(r"[\"'”’)\]]*\s+(?:\d|(?!i\b)[a-z])")
_GOES_ON_IN_WORDS = re.compile(r"[\"'”’)\]]*\s+(?!i\b)[a-z]")
_OPENS = re.compile(
    r"[\"'”’)\]]*\s+(?:I|[Mm]y|We|Our|It|He|She|They|You|This|That|These|There|The|But|And|So|Then|"
    r"Also|Now|What|When|How|Please)\b"
)
# A line that is broken where it was full, or behind a word that wants another.
_WRAPPED = re.compile(r"\n[ \t]*(?=[^\W\d_])(?![A-Za-z][.)]|[Ii]\b)")
_WRAPPED_CHARS_MIN = 40
_WANTS_MORE = re.compile(
    r"(?<![^\s(])(?:an?|the|my|our|your|their|in|at|of|to|for|from|with|by|and|or|is|are|am|called|"
    r"named)$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a block in order, each verbatim."""
    if len(text) > _HEAD_CHARS + _TAIL_CHARS:
        text = f"{text[:_HEAD_CHARS]}\n{text[-_TAIL_CHARS:]}"
    if "```" in text or "~~~" in text:
        text = _FENCE.sub("\n", text)
    if "</" in text:
        text = _untagged(text)
    if "\n" in text:
        foreign = _FOREIGN.search(text)
        text = _unruled(text if foreign is None else text[: foreign.start()])
    yield from islice(_pieces(text), SENTENCES_MAX)


def _unruled(text: str) -> str:
    """The text without what stands between two lines of dashes."""
    parts = _RULED.split(text)
    return text if len(parts) < 3 else "\n\n".join(parts[::2])


def _untagged(text: str) -> str:
    """The text without what stands between tags: a host or a tool put it there, or it is markup."""
    kept: list[str] = []
    start = 0
    for _ in range(_TAGS_MAX):
        tag = _TAG.search(text, start)
        if tag is None:
            return "".join([*kept, text[start:]])
        close = text.find(f"</{tag[1]}", tag.end())
        kept.append(text[start : tag.start()])
        start = tag.end() if close < 0 else close + len(tag[1]) + 3
    return "".join(kept)


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        stop = end.end()
        if text[end.start()] == "." and _is_abbreviation(text, start, end.start() + 1):
            continue
        if text[end.start()] == "\n" and _is_wrapped(text, start, end.start()):
            continue
        sentence = _prose(text[start:stop])
        start = stop
        if sentence:
            yield sentence
    sentence = _prose(text[start:])
    if sentence:
        yield sentence


def _is_abbreviation(text: str, start: int, stop: int) -> bool:
    """Whether the full stop before `stop` belongs to a word, and the sentence goes on."""
    since = max(start, stop - 8)
    if _LEADING.search(text, since, stop):
        return _OPENS.match(text, stop) is None
    if _DATED.search(text, since, stop):
        return _GOES_ON.match(text, stop) is not None
    return (
        _OTHER.search(text, since, stop) is not None
        and _GOES_ON_IN_WORDS.match(text, stop) is not None
    )


def _is_wrapped(text: str, start: int, stop: int) -> bool:
    """Whether the line before `stop` goes on below, in the middle of a sentence."""
    line = text[text.rfind("\n", 0, stop) + 1 : stop].rstrip()
    below = _WRAPPED.match(text, stop)
    if below is None or not (line[-1:].isalnum() or line.endswith(",")):
        return False
    if _WANTS_MORE.search(line):
        return text[below.end()].islower() or _OPENS.match(text, stop) is None
    is_begun = text[start:stop].lstrip()[:1].isupper()
    return is_begun and len(line) >= _WRAPPED_CHARS_MIN and text[below.end()].islower()


def _prose(piece: str) -> str:
    piece = piece.strip()
    if len(piece) < 2 or len(piece) > SENTENCE_CHARS_MAX or _NOT_PROSE.match(piece):
        return ""
    return _BULLET.sub("", piece)

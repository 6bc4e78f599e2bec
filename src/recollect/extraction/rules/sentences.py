"""Cuts what somebody said into sentences, leaving out what is not their own prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

SENTENCES_MAX = 60  # per block: whoever says more has pasted it
SENTENCE_CHARS_MAX = 600
_HEAD_CHARS, _TAIL_CHARS = 6_000, 2_000

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_TAG = re.compile(r"^[ \t]*<([A-Za-z][\w-]{0,60})\b[^<>\n]{0,200}>", re.MULTILINE)
_TAGS_MAX = 50
_NOT_PROSE = re.compile(r"^\s*(?:[>|+$#<{}\[\]=]|//|/\*|\d+\s*→|@@|https?://\S+\s*$)")
_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|\n+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-HJ-Z]|[A-Za-z]\.[A-Za-z]|[Mm]rs?|[Mm]s|[Dd]r|[Ss]t|[Pp]rof|[Jj]r|vs|etc|"
    r"approx|[Nn]o|[Ff]ig|[Ii]nc|[Ll]td|[Vv]ol)\.$"
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a block in order, each verbatim and on one line of prose."""
    if len(text) > _HEAD_CHARS + _TAIL_CHARS:
        text = f"{text[:_HEAD_CHARS]}\n{text[-_TAIL_CHARS:]}"
    if "```" in text or "~~~" in text:
        text = _FENCE.sub("\n", text)
    if "</" in text:
        text = _untagged(text)
    yield from islice(_pieces(text), SENTENCES_MAX)


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
        sentence = _prose(text[start:stop])
        start = stop
        if sentence:
            yield sentence
    sentence = _prose(text[start:])
    if sentence:
        yield sentence


def _is_abbreviation(text: str, start: int, stop: int) -> bool:
    return _ABBREVIATION.search(text, max(start, stop - 8), stop) is not None


def _prose(piece: str) -> str:
    piece = piece.strip()
    if len(piece) < 2 or len(piece) > SENTENCE_CHARS_MAX or _NOT_PROSE.match(piece):
        return ""
    return _BULLET.sub("", piece)

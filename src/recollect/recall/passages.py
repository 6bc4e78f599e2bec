"""The part of a long text that answers best: a document is found as a whole and shown in parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from recollect.stemming import stems

PASSAGE_CHARS = 700
BEARING_SHARE = 0.5  # of what the best line of a page has of a question
SCANNED_CHARS = 65_536  # of a text; what follows is not looked through

CUT = "…"

SENTENCE = re.compile(r"[^.!?\n。！？]+(?:[.!?。！？]+[\"'”’)]*|\n+|\Z)\s*|[.!?\n。！？]+\s*")
_LEADS_ON = re.compile(r"[-*+] \[\[[^\]\n]*\]\](?::[^\n]*)?|#{1,6} [^\n]*|See also: [^\n]*")
# The sessions that the summary of memory lists last; each has a summary that is found by itself.
LISTED_SESSIONS = re.compile(
    r"^## Last sessions\n+(?:- \d{4}-\d\d-\d\d [^\n]*(?:\n|\Z))+", re.MULTILINE
)
_BREAK = re.compile(r"\n\s*\n|\n(?=#{1,6} |[-*+] |\d+[.)] )")

# What a page written by rules says about its lines; the sources of a hit have it.
_NOTE_LABEL = r"\[\^[0-9a-f]{10}\]"
_NOTES = re.compile(rf"^{_NOTE_LABEL}: [^\n]*(?:\n|\Z)", re.MULTILINE)
_NOTE_MARK = re.compile(rf"[ \t]?{_NOTE_LABEL}")
_MADE_FROM = re.compile(r" ?\((?:\[\[~/memory/rollout_summaries/[^\]\n]*\]\](?:, |; )?)+\)")
_NO_SOURCES = re.compile(r"^## Sources[ \t]*\s*\Z", re.MULTILINE)


def without_notes(text: str) -> str:
    """A page without the footnotes and links that say where its lines come from."""
    if "[^" not in text and "([[" not in text:
        return text
    bare = _MADE_FROM.sub("", _NOTE_MARK.sub("", _NOTES.sub("", text)))
    return text if bare == text else _NO_SOURCES.sub("", bare).rstrip()


def best_passage(text: str, worth: Mapping[str, float]) -> str:
    """The passage with the most of the stems that are asked for, by what each is worth.

    A short text is its own passage. Of equals the first counts, so that a text that has none of
    them is shown from its beginning.
    """
    if len(text) <= PASSAGE_CHARS:
        return text.strip()
    return max(_passages(text[:SCANNED_CHARS]), key=lambda passage: _worth(passage, worth)).strip()


def bearing(text: str, worth: Mapping[str, float], chars_max: int) -> str:
    """The lines and paragraphs of a text that bear on what is asked for: the best of them, within
    so many characters, in their order. Nothing where none has anything of it."""
    pieces = _pieces(LISTED_SESSIONS.sub("", text[:SCANNED_CHARS]))
    found = [piece for piece in pieces if not _LEADS_ON.fullmatch(piece)]
    values = [_worth(piece, worth) for piece in found]
    least = BEARING_SHARE * max(values, default=0.0)
    chosen: list[int] = []
    room = chars_max
    for at in sorted(range(len(found)), key=lambda at: -values[at]):
        if not values[at] or values[at] < least or (chosen and len(found[at]) > room):
            break
        chosen.append(at)
        room -= len(found[at])
    return "\n".join(found[at] for at in sorted(chosen))


def excerpt(text: str, worth: Mapping[str, float], chars_max: int) -> str:
    """The sentences of a text that answer best, next to each other, within so many characters."""
    if len(text) <= chars_max:
        return text
    sentences = SENTENCE.findall(text[:SCANNED_CHARS])
    values = [_worth(sentence, worth) for sentence in sentences]
    best, chosen = -1.0, (0, 1)
    for first in range(len(sentences)):
        length, value = 0, 0.0
        for last in range(first, len(sentences)):
            length += len(sentences[last])
            if length > chars_max and last > first:
                break
            value += values[last]
            if value > best:
                best, chosen = value, (first, last + 1)
    first, end = _widened(sentences, *chosen, chars_max)
    kept = "".join(sentences[first:end]).strip()
    return f"{CUT + ' ' if first else ''}{kept}{' ' + CUT if end < len(sentences) else ''}"


def _widened(sentences: Sequence[str], first: int, end: int, chars_max: int) -> tuple[int, int]:
    """As much around the chosen sentences as there is room for, what follows first."""
    room = chars_max - sum(map(len, sentences[first:end]))
    while end < len(sentences) and len(sentences[end]) <= room:
        room -= len(sentences[end])
        end += 1
    while first and len(sentences[first - 1]) <= room:
        first -= 1
        room -= len(sentences[first])
    return first, end


def _worth(passage: str, worth: Mapping[str, float]) -> float:
    found = set(stems(passage))
    return sum(value for term, value in worth.items() if term in found)


def _passages(text: str) -> list[str]:
    """Paragraphs and list items, joined while they are short and cut where they are long."""
    found: list[str] = [""]
    for piece in _pieces(text):
        if found[-1] and len(found[-1]) + len(piece) > PASSAGE_CHARS:
            found.append("")
        found[-1] = f"{found[-1]}\n{piece}" if found[-1] else piece
    return found


def _pieces(text: str) -> list[str]:
    return [
        part[start : start + PASSAGE_CHARS]
        for part in (piece.strip() for piece in _BREAK.split(text))
        if part
        for start in range(0, len(part), PASSAGE_CHARS)
    ]

"""The part of a long text that answers best: a document is found as a whole and shown in parts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from recollect.stems import stems

PASSAGE_CHARS = 700
SCANNED_CHARS = 65_536  # of a text; what follows is not looked through

_BREAK = re.compile(r"\n\s*\n|\n(?=#{1,6} |[-*+] |\d+[.)] )")

# What a page written by rules says about its lines; the sources of a hit have it.
_NOTE_LABEL = r"\[\^[0-9a-f]{10}\]"
_NOTES = re.compile(rf"^{_NOTE_LABEL}: [^\n]*(?:\n|\Z)", re.MULTILINE)
_NOTE_MARK = re.compile(rf"[ \t]?{_NOTE_LABEL}")
_NO_SOURCES = re.compile(r"^## Sources[ \t]*\s*\Z", re.MULTILINE)


def without_notes(text: str) -> str:
    """A page without the footnotes that say where its lines come from."""
    if "[^" not in text:
        return text
    bare = _NOTE_MARK.sub("", _NOTES.sub("", text))
    return text if bare == text else _NO_SOURCES.sub("", bare).rstrip()


def best_passage(text: str, worth: Mapping[str, float]) -> str:
    """The passage with the most of the stems that are asked for, by what each is worth.

    A short text is its own passage. Of equals the first counts, so that a text that has none of
    them is shown from its beginning.
    """
    if len(text) <= PASSAGE_CHARS:
        return text.strip()
    return max(_passages(text[:SCANNED_CHARS]), key=lambda passage: _worth(passage, worth)).strip()


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

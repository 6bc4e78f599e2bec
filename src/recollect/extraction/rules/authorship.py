"""Tells which sentences of a message are its writer's own: not quoted, not handed over to be worked
on, not played, not taken back; and which stand in a list that is to be remembered."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from recollect.extraction.rules.rulebook import Rulebook
from recollect.extraction.rules.sentences import sentences

_QUOTED = re.compile(r"„[^“”\"]*(?:[“”\"]|$)|«[^»]*(?:»|$)|[\"“][^\"”]*(?:[\"”]|$)")
# What is an apostrophe elsewhere opens a quotation behind a blank and closes one before a blank.
_SINGLE_QUOTED = re.compile(r"(?<![^\s(\[:,])['‘](\w.*?[\w.,!?…])'(?!\w)")
_CLOSED = re.compile(r"[\"“][^\"“”]*[\"”]")
_OPENING = re.compile(r"(?<![^\s(\[:—-])[\"“](?=[^\s\"”])")
_MARK = re.compile(r"[\"“”]")
_QUOTATION_SENTENCES_MAX = 12
_ITEM = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+")
_NEXT_LINE = re.compile(r"[ \t\r]*\n\s*\S")
_GAP = re.compile(r"\n[ \t]*\n")
_PLAY_CHARS_MAX = 8000  # of a message, in which a role play is looked for
_FOREWORD_WORDS_MAX = 3  # before "don't remember that", for it to mean the sentence before


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A sentence of a message, and where it stands."""

    verbatim: str
    is_item: bool = False  # of a list
    is_apart: bool = False  # behind an empty line
    ends_line: bool = False  # more stands on the next
    head: str = ""  # of the list it is in, if that is to be remembered

    @property
    def text(self) -> str:
        return plain(self.verbatim)

    def typed(self, statement: str) -> str:
        """A part of the text as it was typed; the whole sentence where that cannot be told."""
        text, typed = self.text, self.verbatim
        start = text.find(statement)
        places = [
            place
            for place, sign in enumerate(typed)
            if not sign.isspace() or not typed[place - 1].isspace()
        ]
        if start < 0 or not statement or len(places) != len(text):
            return typed
        return typed[places[start] : places[start + len(statement) - 1] + 1]


def plain(sentence: str) -> str:
    """A sentence as the rules read it: any blanks are one, an accent is part of its letter."""
    if not sentence.isascii():
        sentence = unicodedata.normalize("NFC", sentence).replace("’", "'")
    return " ".join(sentence.split())


class Authorship:
    """Reads messages for what their writers say themselves, in one language."""

    def __init__(self, book: Rulebook, english: Authorship | None = None) -> None:
        """`english`: what is handed over in English is often in another language."""
        self._book = book
        self._english = english

    def sentences(self, text: str, *, is_work: bool, is_pasted: bool) -> Iterator[Said]:
        """The sentences of a message that are its writer's own, without the heads of lists."""
        pieces = list(_laid_out(text))
        own = [pieces[place] for place in _unquoted(pieces)]
        if self._book.hints("withheld", text):
            own = self._kept(own)
        head = ""
        before: Said | None = None  # in the list below the head
        for said in own:
            if not is_pasted and self._is_head(said):
                head, before = said.text, None
                continue
            if before is not None and _is_over(before, said):
                head = ""
            before = said
            yield replace(said, head=head) if head else said
            if self._is_last(said, is_work=is_work):
                return

    def others(self, text: str) -> list[tuple[int, int]]:
        """Where the words of a sentence are somebody else's: quoted, or handed over."""
        spans = [quoted.span() for quoted in _QUOTED.finditer(text)]
        if "'" in text:
            is_person = self._book.phrase("first_person").search
            singles = _SINGLE_QUOTED.finditer(text)
            spans += [single.span() for single in singles if is_person(single[1])]
        handed = self._book.phrase("hands_over").search(text) if ":" in text else None
        return spans if handed is None else [*spans, (handed.end(), len(text))]

    def is_own(self, text: str, at: int) -> bool:
        return not any(start <= at < end for start, end in self.others(text))

    def takes_back(self, text: str) -> bool:
        """Whether a message opens by asking to forget what was said before it."""
        if not self._book.hints("withheld", text):
            return False
        first = plain(next(sentences(text), ""))
        return bool(first) and self._takes_back_before(first)

    def unplayed(self, text: str, *, is_playing: bool) -> tuple[str, bool]:
        """What of a message is outside of a role play, and whether one goes on behind it."""
        if not is_playing and not self._book.hints("played", text):
            return text, False
        plain = text[:_PLAY_CHARS_MAX].replace("’", "'")
        start = 0
        if is_playing:
            over = self._book.phrase("ends_play").search(plain)
            if over is None:
                return "", True
            start = over.end()
        opened = self._book.phrase("starts_play").search(plain, start)
        if opened is None:
            return text[start:], False
        return text[start : opened.start()], True

    def _kept(self, pieces: Sequence[Said]) -> list[Said]:
        """The sentences without what is said off the record, or taken back right behind."""
        kept: list[Said] = []
        for said in pieces:
            off = self._book.phrase("off_record").search(said.text)
            if off is not None:
                if len(said.text[off.end() :].split()) < _FOREWORD_WORDS_MAX:
                    break  # it speaks of what follows
            elif self._book.phrase("unsays").search(said.text):
                if self._takes_back_before(said.text):
                    del kept[-1:]
            else:
                kept.append(said)
        return kept

    def _takes_back_before(self, sentence: str) -> bool:
        unsays = self._book.phrase("unsays").search(sentence)
        return unsays is not None and len(sentence[: unsays.start()].split()) <= _FOREWORD_WORDS_MAX

    def _is_head(self, said: Said) -> bool:
        return (
            said.ends_line
            and said.text.endswith(":")
            and self._book.phrase("heads_told").search(said.text) is not None
            and self._book.phrase("hands_over").search(said.text) is None
        )

    def _is_last(self, said: Said, *, is_work: bool) -> bool:
        """Whether the sentences behind this one are hardly the person's own."""
        if self._hands_over_text(said.text):
            return True
        if self._english is not None and self._english._is_last(said, is_work=is_work):
            return True
        if said.ends_line and self._book.phrase("hands_over_below").search(said.text):
            return True
        return not is_work and self._book.phrase("plays").search(said.text) is not None

    def _hands_over_text(self, sentence: str) -> bool:
        if ":" not in sentence:
            return False
        if sentence.endswith(":") and self._book.phrase("introduces").search(sentence):
            return True
        handed = self._book.phrase("hands_over").search(sentence)
        if handed is None:
            return False
        if self._book.phrase("hands_over_text").search(handed[0]):
            return True
        rest = sentence[handed.end() :]
        return not rest.strip() or self._book.phrase("first_person").search(rest) is not None


def _laid_out(text: str) -> Iterator[Said]:
    """The sentences of a text with where they stand; what cannot be found again stands nowhere."""
    end = 0
    for verbatim in sentences(text):
        at = text.find(verbatim, end)
        if at < 0:
            yield Said(verbatim=verbatim)
            continue
        line = text.rfind("\n", 0, at) + 1
        stop = at + len(verbatim)
        yield Said(
            verbatim=verbatim,
            is_item=_ITEM.match(text, line) is not None,
            is_apart=_GAP.search(text, end, at) is not None,
            ends_line=_NEXT_LINE.match(text, stop) is not None,
        )
        end = stop


def _is_over(before: Said, said: Said) -> bool:
    """Whether the list that a sentence is in has ended before the next."""
    return before.is_item is not said.is_item or (said.is_apart and not said.is_item)


def _unquoted(pieces: Sequence[Said]) -> Iterator[int]:
    """The sentences without those inside a quotation that goes on over several of them."""
    closed_at = -1
    for place, piece in enumerate(pieces):
        if place > closed_at:
            yield place
            if _OPENING.search(_CLOSED.sub(" ", piece.verbatim)):
                closed_at = _closing(pieces, place)


def _closing(pieces: Sequence[Said], opened_at: int) -> int:
    """The sentence that closes a quotation; the one that opens it, if none does."""
    for place in range(opened_at + 1, min(len(pieces), opened_at + _QUOTATION_SENTENCES_MAX)):
        piece = pieces[place].verbatim
        if mark := _MARK.search(piece):
            return opened_at if _OPENING.match(piece, mark.start()) else place
    return opened_at

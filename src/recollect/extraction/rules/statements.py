"""Decides which sentences of a person are worth keeping, and as what: the surest rule that holds,
or else the weight of their words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from recollect.extraction.piece import Block
from recollect.extraction.rules.cues import Setting, Weighed
from recollect.extraction.rules.rulebook import Rule, Rulebook
from recollect.extraction.rules.sentences import sentences
from recollect.extraction.rules.wording import Found, Hearing, Writer
from recollect.knowledge import NewFact

WORDS_MIN = 2
WORK_CONFIDENCE_MIN = 0.65  # of a rule, where people work: what they say there is mostly of the day
TOLD_CONFIDENCE = 0.95  # "remember that …": whoever says so means it
_QUOTED = re.compile(r"„[^“”\"]*(?:[“”\"]|$)|«[^»]*(?:»|$)|[\"“][^\"”]*(?:[\"”]|$)")
# What is an apostrophe elsewhere opens a quotation behind a blank and closes one before a blank.
_SINGLE_QUOTED = re.compile(r"(?<![^\s(\[:,])['‘](\w.*?[\w.,!?…])'(?!\w)")
_CLOSED = re.compile(r"[\"“][^\"“”]*[\"”]")
_OPENING = re.compile(r"(?<![^\s(\[:—-])[\"“](?=[^\s\"”])")
_MARK = re.compile(r"[\"“”]")
_QUOTATION_SENTENCES_MAX = 12


class Listener:
    """Hears what a person says and answers with facts, at most `per_block` of them."""

    def __init__(self, book: Rulebook, threshold: float, per_block: int) -> None:
        self._book = book
        self._threshold = threshold
        self._per_block = per_block
        self._writer = Writer(book)
        bit = book.cues.bits
        self._own = bit["me"] | bit["us"]
        self._bit = bit

    def hear(self, block: Block, hearing: Hearing) -> list[NewFact]:
        """The facts in a block of a person's words, in the order they were said."""
        found = list(self._candidates(block.text, hearing))
        if len(found) > self._per_block:
            best = sorted(range(len(found)), key=lambda place: -found[place].confidence)
            found = [found[place] for place in sorted(best[: self._per_block])]
        return [self._writer.write(item, block, hearing) for item in found]

    def _candidates(self, text: str, hearing: Hearing) -> Iterator[Found]:
        around = self._around(hearing)
        before = ""
        for verbatim in _own(list(sentences(text))):
            sentence = verbatim.replace("’", "'")
            for statement in self._stated(sentence):
                weighed = self._weighed(statement, hearing)
                if len(weighed.words) >= WORDS_MIN or hearing.question:
                    found = self._judged(weighed, around, before, hearing)
                    if found is not None:
                        start = sentence.find(statement)
                        yield replace(found, quote=verbatim[start : start + len(statement)])
            if self._hands_over_text(sentence):
                return  # what follows is a text to work on, not the person's own words
            before = sentence

    def _hands_over_text(self, sentence: str) -> bool:
        """Whether the sentences behind this one are hardly the person's own either."""
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

    def _not_own(self, text: str) -> list[tuple[int, int]]:
        """Where the words of a sentence are somebody else's: quoted, or handed over."""
        spans = [quoted.span() for quoted in _QUOTED.finditer(text)]
        if "'" in text:
            is_person = self._book.phrase("first_person").search
            singles = _SINGLE_QUOTED.finditer(text)
            spans += [single.span() for single in singles if is_person(single[1])]
        handed = self._book.phrase("hands_over").search(text) if ":" in text else None
        return spans if handed is None else [*spans, (handed.end(), len(text))]

    def _weighed(self, statement: str, hearing: Hearing) -> Weighed:
        """The words of a statement; quoted ones are somebody else's, and at best a title."""
        cues = self._book.cues
        others = self._not_own(statement)
        if not others:
            return cues.weigh(statement, hearing.names)
        own = cues.weigh(_without(statement, others), hearing.names)
        return Weighed(statement, own.words, own.bits | cues.title(statement), own.names)

    def _around(self, hearing: Hearing) -> int:
        bit = self._bit
        return (
            (bit["answers"] if hearing.question else 0)
            | (bit["attached"] if hearing.attachment else 0)
            | (bit["opens"] if hearing.opens else 0)
        )

    def _stated(self, sentence: str) -> Iterator[str]:
        """What a sentence states: all of it, or the clause of a question that is no question."""
        if "?" not in sentence:
            yield sentence
            return
        for phrase in ("asked_to", "before_question", "presupposed"):
            clause = self._book.phrase(phrase).search(sentence)
            if clause is not None and self._is_own(sentence, clause.start(1)):
                yield self._book.phrase("granting").sub("", clause[1].strip(" ,;-–—"))
                return

    def _judged(self, weighed: Weighed, around: int, before: str, hearing: Hearing) -> Found | None:
        bits = weighed.bits | around
        confidence = self._book.cues.confidence(bits, hearing.setting)
        if hearing.setting is Setting.AGENT and not bits & self._own:
            confidence = 0.0  # a request or a text to work on: only a rule can make it a fact
        if hearing.is_work:
            confidence = 0.0  # numbers, names and times are in everything that is said at work
        rule, match = self._ruled(weighed, hearing, confidence)
        if rule is not None:
            confidence = max(confidence, rule.confidence)
        if confidence < self._threshold or self._book.phrase("not_meant").search(weighed.text):
            return None
        if hearing.is_work and self._is_of_the_day(weighed.text, confidence):
            return None
        return Found(
            weighed=weighed, bits=bits, before=before, confidence=confidence, rule=rule, match=match
        )

    def _ruled(
        self, weighed: Weighed, hearing: Hearing, confidence: float
    ) -> tuple[Rule | None, re.Match[str] | None]:
        """The surest rule that holds for a sentence."""
        best: tuple[Rule | None, re.Match[str] | None] = (None, None)
        occasions = hearing.occasions
        least = self._least(hearing)
        for rule in self._book.candidates(weighed.words):
            if rule.setting is not None and rule.setting not in occasions:
                continue
            if max(rule.confidence, confidence) < least:
                continue
            if best[0] is not None and best[0].confidence >= rule.confidence:
                continue
            match = rule.pattern.search(weighed.text)
            if match is not None and self._is_meant(weighed.text, match):
                best = (rule, match)
        return best

    def _least(self, hearing: Hearing) -> float:
        if not hearing.is_work:
            return self._threshold
        return max(self._threshold, TOLD_CONFIDENCE if hearing.is_pasted else WORK_CONFIDENCE_MIN)

    def _is_of_the_day(self, text: str, confidence: float) -> bool:
        """Whether a sentence speaks of the task at hand, or of what a program does."""
        if self._book.phrase("reported").search(text):
            return True
        is_told = confidence >= TOLD_CONFIDENCE
        return not is_told and self._book.phrase("momentary").search(text) is not None

    def _is_meant(self, text: str, match: re.Match[str]) -> bool:
        if self._book.phrase("supposed").search(text, 0, match.start()):
            return False
        return self._is_own(text, match.start())

    def _is_own(self, text: str, at: int) -> bool:
        return not any(start <= at < end for start, end in self._not_own(text))


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    signs = list(text)
    for start, end in spans:
        signs[start:end] = " " * (end - start)
    return "".join(signs)


def _own(pieces: Sequence[str]) -> Iterator[str]:
    """The sentences without those inside a quotation that goes on over several of them."""
    closed_at = -1
    for place, piece in enumerate(pieces):
        if place > closed_at:
            yield piece
            if _OPENING.search(_CLOSED.sub(" ", piece)):
                closed_at = _closing(pieces, place)


def _closing(pieces: Sequence[str], opened_at: int) -> int:
    """The sentence that closes a quotation; the one that opens it, if none does."""
    for place in range(opened_at + 1, min(len(pieces), opened_at + _QUOTATION_SENTENCES_MAX)):
        if mark := _MARK.search(pieces[place]):
            return opened_at if _OPENING.match(pieces[place], mark.start()) else place
    return opened_at

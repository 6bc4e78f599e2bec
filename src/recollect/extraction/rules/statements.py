"""Decides which sentences of a person are worth keeping, and as what: the surest rule that holds,
or else the weight of their words."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from recollect.extraction.piece import Block
from recollect.extraction.rules.authorship import Authorship, Said
from recollect.extraction.rules.clauses import Clause, Held, Separator
from recollect.extraction.rules.rulebook import Rule, Rulebook, load
from recollect.extraction.rules.sentences import sentences
from recollect.extraction.rules.weighing import Setting, Weighed
from recollect.extraction.rules.wording import (
    CONTEXT_CHARS_MAX,
    Found,
    Hearing,
    Occasion,
    Writer,
)
from recollect.knowledge import FactTag, NewFact, Trust
from recollect.languages import ENGLISH

WORDS_MIN = 2
WORK_CONFIDENCE_MIN = 0.65  # of a rule, where people work: what they say there is mostly of the day
TOLD_CONFIDENCE = 0.95  # "remember that …": whoever says so means it
TOLD_PER_BLOCK_MAX = 24  # of a list that is to be remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """A sentence to be kept, and where it came from."""

    found: Found
    said: Said
    confidence: float  # of the whole sentence

    @property
    def is_told(self) -> bool:
        return bool(self.said.head)


class Listener:
    """Hears what a person says and answers with facts, of at most `per_block` sentences.

    The items of a list that is to be remembered are not counted: whoever lists them means all.
    """

    def __init__(self, book: Rulebook, threshold: float, per_block: int) -> None:
        self._book = book
        self._threshold = threshold
        self._per_block = per_block
        self._writer = Writer(book)
        self._separator = Separator(book)
        bit = book.cues.bits
        english = None if book.language == ENGLISH else Authorship(load())
        self.own = Authorship(book, english)
        self._person = bit["me"] | bit["us"]
        self._bit = bit

    def hear(self, block: Block, hearing: Hearing, earlier: Block | None = None) -> list[NewFact]:
        """The facts in a block of a person's words, in the order they were said.

        `earlier` is what the same person said before it: a correction may mean that.
        """
        heard = self._heard(block.text, hearing, earlier)
        told = list(dict.fromkeys(id(each.said) for each in heard if each.is_told))
        sure = {id(each.said): each.confidence for each in heard if not each.is_told}
        best = sorted(sure, key=lambda said: -sure[said])
        kept = {*told[:TOLD_PER_BLOCK_MAX], *best[: self._per_block]}
        return [
            self._writer.write(each.found, block, hearing)
            for each in heard
            if id(each.said) in kept
        ]

    def _heard(self, text: str, hearing: Hearing, earlier: Block | None) -> list[_Heard]:
        around = self._around(hearing)
        heard: list[_Heard] = []
        last: Said | None = None
        own = self.own.sentences(text, is_work=hearing.is_work, is_pasted=hearing.is_pasted)
        for said in own:
            before = "" if last is None else last.text
            for statement in self._stated(said.text):
                found = self._judged_in(statement, said, around, before, hearing)
                if found is not None:
                    found = replace(found, quote=statement)
                    if self._amends(found):
                        found = self._together(heard, found, last or _last_of(earlier))
                    for part in self._parts(found, hearing):
                        typed = replace(part, quote=said.typed(part.quote))
                        heard.append(_Heard(found=typed, said=said, confidence=found.confidence))
            last = said
        return heard

    def _parts(self, found: Found, hearing: Hearing) -> list[Found]:
        """A sentence that says several things as several."""
        text = found.weighed.text
        if not hearing.is_person or text != found.quote or found.rule is None:
            return [found]
        clauses = self._separator.clauses(text)
        if len(clauses) < 2 and not self._book.phrase("knows").search(text):
            return [found]
        held = list(self._holding(found.weighed, clauses, hearing))
        return self._separator.apart(
            found, clauses, held, lambda text: self._weighed(text, hearing)
        )

    def _holding(
        self, weighed: Weighed, clauses: Sequence[Clause], hearing: Hearing
    ) -> Iterator[Held]:
        """All rules that hold for a sentence, wherever in it."""
        starts = [clause.at for clause in clauses]
        for rule in self._tried(weighed, hearing, 0.0):
            for match in () if rule.loose else rule.matches(weighed.text, starts):
                if self._is_meant(rule, weighed.text, match):
                    yield Held(rule=rule, match=match)

    def _tried(self, weighed: Weighed, hearing: Hearing, confidence: float) -> Iterator[Rule]:
        """The rules that may hold for a sentence and are sure enough, or it is by itself."""
        occasions = hearing.occasions
        least = self._least(hearing)
        for rule in self._book.candidates(weighed.words):
            if rule.setting is not None and rule.setting not in occasions:
                continue
            if rule.loose or max(rule.confidence, confidence) >= least:
                yield rule

    def _judged_in(
        self, statement: str, said: Said, around: int, before: str, hearing: Hearing
    ) -> Found | None:
        weighed = self._weighed(statement, hearing)
        if len(weighed.words) >= WORDS_MIN or hearing.question:
            found = self._judged(weighed, around, before, hearing)
            if found is not None:
                return found
        return self._told(weighed, said, hearing) if said.head else None

    def _told(self, weighed: Weighed, said: Said, hearing: Hearing) -> Found | None:
        """An item of a list that is to be remembered, whatever its words are."""
        phrase = self._book.phrase
        if hearing.setting is not Setting.AGENT or hearing.trust is not Trust.USER:
            return None
        if phrase("not_meant").search(weighed.text) or not any(map(_is_word, weighed.words)):
            return None
        if not said.is_item and phrase("requests").search(weighed.text):
            return None
        if not phrase("about_me").search(said.head):
            together = self._weighed(f"{said.head} {weighed.text}", hearing)
            return self._judged(together, 0, "", hearing)
        stated = self._judged(self._weighed(self._of_me(weighed), hearing), 0, "", hearing)
        if stated is not None and stated.rule is not None:
            return stated
        return Found(
            weighed=weighed,
            bits=weighed.bits | self._bit["me"],
            before="",
            confidence=TOLD_CONFIDENCE,
            rule=None,
            match=None,
        )

    def _of_me(self, weighed: Weighed) -> str:
        """An item without its subject as a sentence: "allergic to nuts", "live in Rome"."""
        is_verb = weighed.words[0] in self._book.verbs["base"]
        template = self._book.templates["item_does" if is_verb else "item_is"]
        return template.format(text=weighed.text)

    def _amends(self, found: Found) -> bool:
        """Whether a correction says little without the sentence it corrects."""
        if found.rule is None or found.rule.tag != FactTag.CORRECTION.value:
            return False
        return self._book.phrase("amends").search(found.weighed.text) is not None

    def _together(self, heard: list[_Heard], found: Found, last: Said | None) -> Found:
        """A correction behind what it corrects; that alone is no longer so."""
        if last is None or len(last.text) > CONTEXT_CHARS_MAX or "?" in last.text:
            return found
        first = heard.pop().found if heard and heard[-1].said is last else None
        text = last.text if first is None else first.weighed.text
        whole = self._book.cues.weigh(f"{text} {found.weighed.text}")
        return replace(first or found, weighed=whole, quote=found.quote)

    def _weighed(self, statement: str, hearing: Hearing) -> Weighed:
        """The words of a statement; quoted ones are somebody else's, and at best a title."""
        cues = self._book.cues
        others = self.own.others(statement)
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
            asked = self._book.phrase("asked_to").match(sentence)
            yield sentence if asked is None else asked[1].strip()
            return
        for phrase in ("asked_to", "before_question", "presupposed"):
            clause = self._book.phrase(phrase).search(sentence)
            if clause is not None and self.own.is_own(sentence, clause.start(1)):
                yield self._book.phrase("granting").sub("", clause[1].strip(" ,;-–—"))
                return

    def _judged(self, weighed: Weighed, around: int, before: str, hearing: Hearing) -> Found | None:
        bits = weighed.bits | around
        confidence = self._book.cues.confidence(bits, hearing.setting)
        if hearing.setting is Setting.AGENT and not bits & self._person:
            confidence = 0.0  # a request or a text to work on: only a rule can make it a fact
        if hearing.is_work:
            confidence = 0.0  # numbers, names and times are in everything that is said at work
        rule, match = self._ruled(weighed, hearing, confidence)
        if rule is not None:
            confidence = rule.confidence if rule.loose else max(confidence, rule.confidence)
        is_loose = rule is not None and rule.loose
        if (not is_loose and confidence < self._threshold) or self._book.phrase("not_meant").search(
            weighed.text
        ):
            return None
        said = weighed.text
        if rule is not None and rule.clause and match is not None:
            said = self._separator.clause_at(said, match.start())
        if rule is None and self._book.phrase("of_the_talk").search(weighed.text):
            return None
        if hearing.is_work and not is_loose and self._is_of_the_day(said, confidence):
            return None
        return Found(
            weighed=weighed, bits=bits, before=before, confidence=confidence, rule=rule, match=match
        )

    def _ruled(
        self, weighed: Weighed, hearing: Hearing, confidence: float
    ) -> tuple[Rule | None, re.Match[str] | None]:
        """The surest rule that holds for a sentence."""
        best: tuple[Rule | None, re.Match[str] | None] = (None, None)
        starts: list[int] = []
        for rule in self._tried(weighed, hearing, confidence):
            if best[0] is not None and best[0].confidence >= rule.confidence:
                continue
            if rule.loose and confidence >= self._threshold:
                continue  # a change is looked for where nothing else is said
            if rule.clause and not starts:
                starts = [clause.at for clause in self._separator.clauses(weighed.text)]
            for match in rule.matches(weighed.text, starts):
                if self._is_meant(rule, weighed.text, match):
                    best = (rule, match)
                    break
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

    def _is_meant(self, rule: Rule, text: str, match: re.Match[str]) -> bool:
        is_of_work = rule.clause and rule.setting == Occasion.PROJECT
        own = self._separator.clause_at(text, match.start()) if is_of_work else text
        if any(self._book.phrase(name).search(own) for name in rule.unless):
            return False
        if self._book.phrase("supposed").search(text, 0, match.start()):
            return False
        # What is done at work when something goes wrong is a report.
        if is_of_work and self._book.phrase("depends").search(text, 0, match.start()):
            return False
        return self.own.is_own(text, match.start())


def _last_of(block: Block | None) -> Said | None:
    """The last sentence of a block."""
    found = None if block is None else deque(sentences(block.text), maxlen=1)
    return Said(verbatim=found[0]) if found else None


def _is_word(word: str) -> bool:
    return len(word) > 1 and not word[0].isdigit()


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    signs = list(text)
    for start, end in spans:
        signs[start:end] = " " * (end - start)
    return "".join(signs)

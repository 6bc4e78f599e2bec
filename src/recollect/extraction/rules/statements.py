"""Tells which sentences of a message are its writer's own: not quoted, not handed over to be worked
on, not played, not taken back; and which stand in a list that is to be remembered."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from recollect.extraction.piece import Block
from recollect.extraction.rules.clauses import Clause, Held, Separator
from recollect.extraction.rules.rulebook import Rule, Rulebook, load
from recollect.extraction.rules.sentences import sentences
from recollect.extraction.rules.weighing import Setting, Weighed
from recollect.extraction.rules.wording import (
    CONTEXT_CHARS_MAX,
    FoundSentence,
    Hearing,
    Occasion,
    Writer,
)
from recollect.languages import ENGLISH
from recollect.types.facts import FactTag, NewFact, Trust

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
class SpokenSentence:
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

    def sentences(self, text: str, *, is_work: bool, is_pasted: bool) -> Iterator[SpokenSentence]:
        """The sentences of a message that are its writer's own, without the heads of lists."""
        pieces = list(_laid_out(text))
        own = [pieces[place] for place in _unquoted(pieces)]
        if self._book.hints("withheld", text):
            own = self._kept(own)
        head = ""
        before: SpokenSentence | None = None  # in the list below the head
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

    def _kept(self, pieces: Sequence[SpokenSentence]) -> list[SpokenSentence]:
        """The sentences without what is said off the record, or taken back right behind."""
        kept: list[SpokenSentence] = []
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

    def _is_head(self, said: SpokenSentence) -> bool:
        return (
            said.ends_line
            and said.text.endswith(":")
            and self._book.phrase("heads_told").search(said.text) is not None
            and self._book.phrase("hands_over").search(said.text) is None
        )

    def _is_last(self, said: SpokenSentence, *, is_work: bool) -> bool:
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


def _laid_out(text: str) -> Iterator[SpokenSentence]:
    """The sentences of a text with where they stand; what cannot be found again stands nowhere."""
    end = 0
    for verbatim in sentences(text):
        at = text.find(verbatim, end)
        if at < 0:
            yield SpokenSentence(verbatim=verbatim)
            continue
        line = text.rfind("\n", 0, at) + 1
        stop = at + len(verbatim)
        yield SpokenSentence(
            verbatim=verbatim,
            is_item=_ITEM.match(text, line) is not None,
            is_apart=_GAP.search(text, end, at) is not None,
            ends_line=_NEXT_LINE.match(text, stop) is not None,
        )
        end = stop


def _is_over(before: SpokenSentence, said: SpokenSentence) -> bool:
    """Whether the list that a sentence is in has ended before the next."""
    return before.is_item is not said.is_item or (said.is_apart and not said.is_item)


def _unquoted(pieces: Sequence[SpokenSentence]) -> Iterator[int]:
    """The sentences without those inside a quotation that goes on over several of them."""
    closed_at = -1
    for place, piece in enumerate(pieces):
        if place > closed_at:
            yield place
            if _OPENING.search(_CLOSED.sub(" ", piece.verbatim)):
                closed_at = _closing(pieces, place)


def _closing(pieces: Sequence[SpokenSentence], opened_at: int) -> int:
    """The sentence that closes a quotation; the one that opens it, if none does."""
    for place in range(opened_at + 1, min(len(pieces), opened_at + _QUOTATION_SENTENCES_MAX)):
        piece = pieces[place].verbatim
        if mark := _MARK.search(piece):
            return opened_at if _OPENING.match(piece, mark.start()) else place
    return opened_at


WORDS_MIN = 2
WORK_CONFIDENCE_MIN = 0.65  # of a rule, where people work: what they say there is mostly of the day
TOLD_CONFIDENCE = 0.95  # "remember that …": said on purpose
TOLD_PER_BLOCK_MAX = 24  # of a list that is to be remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """A sentence to be kept, and where it came from."""

    found: FoundSentence
    said: SpokenSentence
    confidence: float  # of the whole sentence

    @property
    def is_told(self) -> bool:
        return bool(self.said.head)


class Listener:
    """Hears what a person says and answers with facts, of at most `per_block` sentences.

    The items of a list that is to be remembered are not counted: all of them are meant.
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
        last: SpokenSentence | None = None
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

    def _parts(self, found: FoundSentence, hearing: Hearing) -> list[FoundSentence]:
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
        self, statement: str, said: SpokenSentence, around: int, before: str, hearing: Hearing
    ) -> FoundSentence | None:
        weighed = self._weighed(statement, hearing)
        if len(weighed.words) >= WORDS_MIN or hearing.question:
            found = self._judged(weighed, around, before, hearing)
            if found is not None:
                return found
        return self._told(weighed, said, hearing) if said.head else None

    def _told(
        self, weighed: Weighed, said: SpokenSentence, hearing: Hearing
    ) -> FoundSentence | None:
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
        return FoundSentence(
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

    def _amends(self, found: FoundSentence) -> bool:
        """Whether a correction says little without the sentence it corrects."""
        if found.rule is None or found.rule.tag != FactTag.CORRECTION.value:
            return False
        return self._book.phrase("amends").search(found.weighed.text) is not None

    def _together(
        self, heard: list[_Heard], found: FoundSentence, last: SpokenSentence | None
    ) -> FoundSentence:
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

    def _judged(
        self, weighed: Weighed, around: int, before: str, hearing: Hearing
    ) -> FoundSentence | None:
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
        return FoundSentence(
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


def _last_of(block: Block | None) -> SpokenSentence | None:
    """The last sentence of a block."""
    found = None if block is None else deque(sentences(block.text), maxlen=1)
    return SpokenSentence(verbatim=found[0]) if found else None


def _is_word(word: str) -> bool:
    return len(word) > 1 and not word[0].isdigit()


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    signs = list(text)
    for start, end in spans:
        signs[start:end] = " " * (end - start)
    return "".join(signs)

"""Writes a found statement down as a fact: its kind, its words in the third person or quoted, its
dates, its topic."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import Any

from recollect.extraction.grounding import held_tag
from recollect.extraction.piece import Block
from recollect.extraction.rules.person import Narrator
from recollect.extraction.rules.rulebook import Rule, Rulebook
from recollect.extraction.rules.weighing import Setting, Weighed
from recollect.extraction.scope import PROJECT_TAGS, in_project, named, topic_in
from recollect.languages import ENGLISH
from recollect.times import Facing, NamedDays, dates
from recollect.types.facts import ENDS, FactTag, NewFact, Trust

QUOTE_CHARS_MAX = 300
CONTEXT_CHARS_MAX = 160
CONTEXT_WORDS_MIN = 3
TOPIC_CHARS_MAX = 80
_NOT_SLUG = re.compile(r"[^\w]+|_")
_NOT_ASCII = re.compile(r"[^a-z0-9]+")
_LEANING_WORDS = 3  # "it" among the first words points back; further on, mostly within
# "I made it in class": what was made was said before.
_TO_IT = re.compile(
    r"I(?:'\w+)? (?:(?!(?:and|but|so|that|when|if|because|think|know|hope)\b)[\w']+ ){1,3}"
    r"(?:it|them)\b",
    re.IGNORECASE,
)
_POINTING = frozenset({"this", "that", "these", "those"})
_STATES = frozenset(
    {"is", "was", "are", "were", "has", "had", "made", "makes", "means", "will", "would", "really"}
)
_UNNAMED = "user"
LANGUAGE = "language"  # in metadata, of what is not said in English
LOOSE = "loose"  # in metadata, until it is known what a change is one of
# What says of itself that it will be over, whenever that is.
_FOR_A_TIME = re.compile(
    r"\b(?:for now|temporarily|(?:for|in) the meantime|over the (?:summer|holidays)|"
    r"for (?:the|this) (?:time being|moment|next|coming|rest of|summer|winter|season|semester|week|"
    r"weekend|month)|"
    r"(?:until|till)(?! (?:late\b|\d{1,2}(?::\d\d)?(?: ?[ap]m\b| o'clock|\W*$))))\b",
    re.IGNORECASE,
)
_THIS_WEEK = re.compile(
    r"\b(?:today|tonight|this (?:week|weekend|month|summer|winter|semester))\b", re.IGNORECASE
)
_BEGUN = re.compile(r"\b(?!based\b)\w{2,}ed\b|\bgot\b", re.IGNORECASE)  # and goes on: "moved"
_NEXT_CLAUSE = re.compile(r"[,;]|\b(?:and|but|so|because|while|which)\b", re.IGNORECASE)


class Occasion(StrEnum):
    """Where a rule is tried, if not everywhere."""

    PEOPLE = "people"  # with each other
    AGENT = "agent"  # a person with an agent
    CHAT = "chat"  # the same, while nobody works on a project
    LIFE = "life"  # anybody, while nobody works on a project
    PROJECT = "project"  # in the session of a project
    REACTION = "reaction"  # the same, to what an agent just did or said


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    """What is known around a block: who talks, and what was said and shown just before."""

    setting: Setting
    names: frozenset[str]  # of the speakers, lower case
    trust: Trust = Trust.USER
    question: str = ""  # that somebody else has just asked
    attachment: str = ""  # that the same record shows
    opens: bool = False  # nothing was said before it for a while
    place: str = ""  # the project it is said in
    is_work: bool = False  # what is said is about the work, unless a rule is sure of more
    is_pasted: bool = False  # so long that most of it was hardly typed
    is_person: bool = True  # who speaks, whatever seat they have

    @property
    def occasions(self) -> frozenset[Occasion]:
        """The rules that may be tried."""
        if self.setting is Setting.PEOPLE:
            return frozenset({Occasion.PEOPLE, Occasion.LIFE})
        found = {Occasion.AGENT}
        if not self.is_work:
            found |= {Occasion.CHAT, Occasion.LIFE}
        if self.place:
            found |= {Occasion.PROJECT} if self.opens else {Occasion.PROJECT, Occasion.REACTION}
        return frozenset(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSentence:
    """A sentence to be kept, before it is written down."""

    weighed: Weighed
    bits: int
    before: str  # the sentence before it
    confidence: float
    rule: Rule | None
    match: re.Match[str] | None
    quote: str = ""  # the same words as they were typed


class Writer:
    """Makes facts of found sentences, in one language."""

    def __init__(self, book: Rulebook) -> None:
        self._book = book
        self._narrator = Narrator(book.verbs, book.person)
        bit = book.cues.bits
        self._own = bit["me"] | bit["us"]
        self._told = bit["past"] | bit["event"] | bit["verb_ed"]
        self._bit = bit

    def write(self, found: FoundSentence, block: Block, hearing: Hearing) -> NewFact:
        text = self._bare(found.weighed.text)
        whens = self._dates(text, found.bits, block)
        tag = self._tag(found, whens, block.at)
        is_ruled = found.rule is not None and (found.rule.clause or tag.value == found.rule.tag)
        is_brief = is_ruled and _is_for_a_time(found)
        takes_topic = is_ruled and not is_brief and hearing.is_person
        place = hearing.place if self._is_projects(found, held_tag(tag, hearing.trust)) else ""
        content = self._content(found, text, whens, tag, block, hearing)
        began, ended = _happened(tag, _when(tag, whens, block))
        return NewFact(
            content=self._placed(content, place),
            seq=block.seq,
            seq_to=block.seq,
            valid_from=block.at,
            trust=hearing.trust,
            quote=found.quote[:QUOTE_CHARS_MAX],
            tags=(held_tag(tag, hearing.trust).value,),
            metadata={
                **_metadata(found, block, whens, tag, is_ruled=is_ruled),
                **({} if self._book.language == ENGLISH else {LANGUAGE: self._book.language}),
                **in_project(place),
            },
            topic=self._topic(found, block, place) if takes_topic else None,
            valid_to=self._end(text, whens, block.at, is_brief=is_brief),
            about=(block.speaker,) if block.speaker else (),
            happened_from=began,
            happened_to=ended,
        )

    def _dates(self, text: str, bits: int, block: Block) -> tuple[NamedDays, ...]:
        """The times a statement names; "on Friday" is one of where it looks."""
        book, facing = self._book, Facing.AHEAD
        if bits & self._told or book.phrase("past").search(text):
            is_ahead = bits & self._bit["future"] or book.phrase("ahead").search(text)
            facing = Facing.EITHER if is_ahead else Facing.BACK
        return dates(text, block.at.date(), facing, book.language)

    def _is_projects(self, found: FoundSentence, tag: FactTag) -> bool:
        """Whether it holds where it was said only. What one of us decided is of that one."""
        is_of_one = bool(found.bits & self._bit["me"]) and not found.bits & self._bit["us"]
        is_either = tag in (FactTag.DECISION, FactTag.OBSERVATION)
        return tag in PROJECT_TAGS and not (is_either and is_of_one)

    def _placed(self, content: str, place: str) -> str:
        if not place:
            return content
        for who in (self._book.templates["person"], self._book.templates["program"]):
            if content.startswith(_capital(who)):
                content = content[:1].lower() + content[1:]
        return self._book.templates["placed"].format(project=named(place), text=content)

    def _who(self, block: Block, hearing: Hearing) -> str:
        """The name that was given; else what the one who speaks is."""
        if block.speaker:
            return block.speaker
        return self._book.templates["person" if hearing.trust is Trust.USER else "program"]

    def _bare(self, text: str) -> str:
        """A sentence without what only leads into it, or only asks behind it."""
        if found := self._book.phrase("request_tail").search(text, 12):
            text = text[: found.start()]
        for _ in range(3):
            shorter = self._book.opener.sub("", text, count=1)
            if shorter == text or len(shorter) < 8:
                break
            text = shorter
        return text

    def _tag(self, found: FoundSentence, whens: tuple[NamedDays, ...], said: datetime) -> FactTag:
        bits, bit = found.bits, self._bit
        rule = None if found.rule is None else FactTag(found.rule.tag)
        is_ahead = any(when.first > said.date() for when in whens)
        is_own = bool(bits & self._own)
        if rule is FactTag.COMMITMENT and not is_ahead:
            rule = None
        if is_ahead and is_own and rule in (None, FactTag.GOAL, FactTag.OBSERVATION):
            return FactTag.COMMITMENT
        is_general = rule is FactTag.DETAIL and found.rule is not None and found.rule.clause
        if rule is not None and not is_general:
            return rule
        if is_own and bits & (bit["past"] | bit["event"]) and (bits & bit["time"] or whens):
            return FactTag.EVENT
        if bits & bit["me"] and bits & bit["likes"]:
            return FactTag.PREFERENCE
        if bits & bit["me"] and bits & bit["future"]:
            return FactTag.GOAL
        if is_own and bits & bit["event"]:
            return FactTag.EVENT
        if bits & bit["my"] and bits & (bit["family"] | bit["animals"]):
            return FactTag.RELATION
        return FactTag.DETAIL if rule is not None or bits & bit["me"] else FactTag.OBSERVATION

    def _content(
        self,
        found: FoundSentence,
        text: str,
        whens: tuple[NamedDays, ...],
        tag: FactTag,
        block: Block,
        hearing: Hearing,
    ) -> str:
        templates = self._book.templates
        who, told = self._who(block, hearing), None
        if hearing.trust is Trust.USER and tag in (FactTag.INSTRUCTION, FactTag.CORRECTION):
            content = _dated(templates[tag.value], whens, who=who, text=_capital(text))
        else:
            if hearing.is_person and not self._points_back(found, text, hearing):
                told = self._narrator.tell(_annotated(text, whens), who)
            content = _sentence(told) if told else self._quoted(found, text, whens, block, hearing)
        if hearing.attachment:
            name = hearing.attachment[:CONTEXT_CHARS_MAX]
            content = templates["attached"].format(text=content, name=name)
        return " ".join(content.split())

    def _points_back(self, found: FoundSentence, text: str, hearing: Hearing) -> bool:
        """Whether it is about something that was named before it, and what was said there fits.

        "This necklace" says itself what it is about; "this is" does not.
        """
        if not hearing.question and not _context(found):
            return False
        first, _, rest = text.lower().partition(" ")
        word, apart, _ = first.partition("'")
        if not self._book.cues.carry((word,), "anaphora"):
            return _TO_IT.match(text) is not None
        return word not in _POINTING or bool(apart) or rest.partition(" ")[0] in _STATES

    def _quoted(
        self,
        found: FoundSentence,
        text: str,
        whens: tuple[NamedDays, ...],
        block: Block,
        hearing: Hearing,
    ) -> str:
        """The words as they were said, with those that they need to be understood."""
        templates, who = self._book.templates, self._who(block, hearing)
        needs_before = self._points_back(found, text, hearing)
        if not hearing.question:
            needs_before = needs_before or self._leans(found)
        if needs_before and (before := _context(found)):
            text = f"{_capital(self._bare(before))} {_capital(text)}"
            said = self._book.cues.weigh(before, hearing.names)
            whens = (*self._dates(before, said.bits, block), *whens)
        name = "answer" if hearing.question else "quote"
        return _dated(
            templates[name], whens, who=who, text=_capital(text), question=hearing.question
        )

    def _leans(self, found: FoundSentence) -> bool:
        """Whether a quotation is hardly understood without what was said before it."""
        if self._book.language != ENGLISH:  # no words are weighed, so nobody is known to be meant
            return self._book.phrase("leans").match(found.weighed.text) is not None
        leans = self._book.cues.carry(found.weighed.words[:_LEANING_WORDS], "anaphora")
        return leans or not found.bits & self._own

    def _topic(self, found: FoundSentence, block: Block, place: str) -> str | None:
        rule, match = found.rule, found.match
        form = None if rule is None else rule.project_topic if place else rule.topic
        if match is None or form is None:
            return None
        groups = {name: slug(value) for name, value in match.groupdict().items() if value}
        if "thing" in groups and not self._book.phrase("closed").search(
            found.weighed.text[match.end() :]
        ):
            return None
        if "what" in groups and self._book.phrase("points_back").search(match["what"]):
            return None
        if "this" in groups and "that" in groups:
            groups["pair"] = "-or-".join(sorted((groups["this"], groups["that"])))
        try:
            topic = form.format_map(groups)
        except KeyError:  # the other branch of the pattern
            return None
        if place:
            return topic_in(place, topic)
        return topic_of(block.speaker, topic)

    def _end(
        self, text: str, whens: tuple[NamedDays, ...], said: datetime, *, is_brief: bool
    ) -> datetime | None:
        """When a statement will be over, if it says so itself: "until Friday", "this week"."""
        for when in whens:
            is_now = is_brief and _THIS_WEEK.fullmatch(text, when.start, when.stop) is not None
            if not is_now and not self._book.phrase("ends_with").search(text, 0, when.stop):
                continue
            if self._book.phrase("had_ended").match(text, when.stop):
                continue
            if when.last < said.date() or when.last.year >= 9999:
                return None
            day = when.last + timedelta(days=1)
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        return None


def topic_of(speaker: object, *parts: str) -> str:
    """A topic of a person: `ana:home`, `user:value:team-has-n-people`."""
    subject = slug(speaker) if isinstance(speaker, str) else ""
    return ":".join((subject or _UNNAMED, *parts))[:TOPIC_CHARS_MAX]


def _context(found: FoundSentence) -> str:
    """The sentence before, if it is neither too long nor a mere "Thanks, Mel!"."""
    before = found.before
    is_enough = len(before) <= CONTEXT_CHARS_MAX and len(before.split()) >= CONTEXT_WORDS_MIN
    return before if is_enough else ""


def _is_for_a_time(found: FoundSentence) -> bool:
    """Whether its clause says that it will be over: what lasts is not replaced by that."""
    if found.match is None or found.rule is None or found.rule.topic is None:
        return False
    text, start = found.weighed.text, found.match.start()
    clause = _NEXT_CLAUSE.split(text[start:], maxsplit=1)[0]
    if _NEXT_CLAUSE.search(text[:start].rstrip(", ")) is None:
        clause = text[:start] + clause
    if _FOR_A_TIME.search(clause):
        return True
    return _THIS_WEEK.search(clause) is not None and _BEGUN.search(clause) is None


def _metadata(
    found: FoundSentence,
    block: Block,
    whens: tuple[NamedDays, ...],
    tag: FactTag,
    *,
    is_ruled: bool,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"confidence": round(found.confidence, 3)}
    if is_ruled and found.rule is not None:
        metadata["rule"] = found.rule.name
        if found.rule.loose:
            metadata[LOOSE] = True
        if found.rule.ends and found.match is not None:
            metadata[ENDS] = next(filter(None, found.match.groupdict().values()))
    if when := _when(tag, whens, block):
        metadata["date"] = when.first.isoformat()
        if not when.is_day:
            metadata["date_to"] = when.last.isoformat()
    if block.speaker:
        metadata["speaker"] = block.speaker
    return metadata


def _when(tag: FactTag, whens: tuple[NamedDays, ...], block: Block) -> NamedDays | None:
    """Of the times that are named the one that is meant: of the booking, and of the flight."""
    if tag in (FactTag.COMMITMENT, FactTag.GOAL):
        ahead = (each for each in whens if each.last >= block.at.date())
        return next(iter((*ahead, *whens)), None)
    return whens[0] if whens else None


def _happened(
    tag: FactTag, when: NamedDays | None
) -> tuple[datetime, datetime] | tuple[None, None]:
    """When what is told happened or will happen; a date in anything else may be another's."""
    if when is None or tag not in (FactTag.EVENT, FactTag.COMMITMENT) or when.last.year >= 9999:
        return None, None
    midnight = time(tzinfo=UTC)
    after = when.last + timedelta(days=1)
    return datetime.combine(when.first, midnight), datetime.combine(after, midnight)


def _annotated(text: str, whens: tuple[NamedDays, ...]) -> str:
    """The sentence with every time it names written out behind it."""
    for when in reversed(whens):
        if when.label not in text:
            text = f"{text[: when.stop]} ({when.label}){text[when.stop :]}"
    return text


def _dated(template: str, whens: tuple[NamedDays, ...], **words: str) -> str:
    """Quoted words stay as they were said; the times stand behind them."""
    text = _capital(template.format(**words))
    labels = ", ".join(when.label for when in whens if when.label not in text)
    return f"{text} ({labels})" if labels else text


def _sentence(text: str) -> str:
    text = text.strip().rstrip("!.;,:- ")
    return f"{_capital(text)}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def slug(text: str) -> str:
    """The words of a text joined by hyphens, in lower case; empty if it has none."""
    return _NOT_SLUG.sub("-", text.lower()).strip("-")[:60].strip("-")


def ascii_slug(text: str) -> str:
    """The same in ASCII, for names that other programs read."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return _NOT_ASCII.sub("-", plain.lower()).strip("-")

"""Finds which earlier statement a newer one makes untrue: the same with another value, one that is
said to be over, one that is set right. The newer takes its topic, and so replaces it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from recollect.extraction.model import is_withheld
from recollect.extraction.piece import Piece
from recollect.extraction.rules.actions import Ending, ToolReader
from recollect.extraction.rules.conversation import Conversation
from recollect.extraction.rules.lessons import Teacher
from recollect.extraction.rules.rulebook import Rulebook, load
from recollect.extraction.rules.statements import Listener
from recollect.extraction.rules.texts import TextWriter, Told
from recollect.extraction.rules.wording import LANGUAGE, LOOSE, topic_of
from recollect.languages import ENGLISH
from recollect.stemming import stem
from recollect.types.facts import Draft, Fact, FactTag, NewFact, Trust, content_key, names_what_ends

SHARED_MIN = 0.6  # of the telling words of the shorter of two statements, for one to be the other
SHARED_STRONG_MIN = 0.5  # the same for one that says that it replaces something
ENDED_MIN = 0.3  # the same for one that says what is over
SLOT_CHARS_MAX = 110  # of a statement, for it to be only about where somebody lives or works
ONE_OF_MAX = 4  # telling words of a statement, for one of them to name it
TELLING_MAX = 7  # of a statement: what has more tells many things, and a change is of one
EARLIER_MAX = 60  # statements a change is looked for in, the latest
_WORD = re.compile(r"\d[\w.:]*|[^\W\d_]+(?:['’][^\W\d_]+)?")
_CLAUSE = re.compile(r"[,;:.!?]\s|\s(?:because|so)\s", re.IGNORECASE)
_NAME = re.compile(r"(?<=[^\W_] )[A-Z][\w'’-]*")
_VAGUE = re.compile(r"\b(?:an?|another)\b", re.IGNORECASE)
_SLOTS = ("slot_home", "slot_job", "slot_address")
# What happened stays so, and what was done with tools is found out anew.
_LASTING = frozenset(FactTag) - {FactTag.EVENT, FactTag.PROCEDURE, FactTag.LESSON}
_SAME_OF = ("speaker", "project")


@dataclass(frozen=True, slots=True)
class _ClauseWords:
    """The words that tell a clause from others, all and without names, and its values."""

    telling: frozenset[str]
    bare: frozenset[str]
    values: frozenset[str]
    is_ended: bool


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement, read for what it may change and what may change it."""

    text: str
    whole: _ClauseWords
    clauses: tuple[_ClauseWords, ...]
    slots: frozenset[str]
    right: tuple[str, str] | None  # a value and the one it stands for
    is_change: bool
    is_strong: bool
    is_vague: bool

    @property
    def may_change(self) -> bool:
        is_said = self.is_change or self.right is not None or bool(self.whole.values)
        return is_said or any(clause.is_ended for clause in self.clauses)


def settled(
    facts: Sequence[NewFact], known: Sequence[Fact], changes: Callable[[str], Changes]
) -> list[NewFact]:
    """The facts in order, each bound to what it changes; what only says that something did, and
    nobody knows what, is left out."""
    found: list[tuple[NewFact, _Statement]] = []
    stored: list[tuple[Fact, _Statement]] | None = None
    for fact in facts:
        told = changes(str(fact.metadata.get(LANGUAGE, ENGLISH)))
        own = told.read(fact.quote)
        if own.may_change:
            if stored is None:
                stored = [(other, told.read(other.content)) for other in known if other.id]
            recent = found[-EARLIER_MAX:]
            place = told.likest(fact, own, recent)
            if place is not None:
                place += len(found) - len(recent)
                earlier, read = found[place]
                earlier, fact = told.bound(earlier, fact, own)
                found[place] = (earlier, read)
            elif (place := told.likest(fact, own, stored)) is not None:
                fact = told.over(stored[place][0], fact, own)
            elif fact.metadata.get(LOOSE):
                continue
        elif fact.metadata.get(LOOSE):
            continue
        found.append((fact, own))
    return [replace(fact, metadata=_plain(fact.metadata)) for fact, _ in found]


class Changes:
    """Compares statements of one language."""

    def __init__(self, book: Rulebook) -> None:
        self._book = book
        self._passed = book.plain_words | book.values

    def read(self, text: str) -> _Statement:
        phrase = self._book.phrase
        right = phrase("sets_right").search(text)
        whole = self._clause(text, may_end=True)
        is_change = phrase("changed").search(text) is not None
        parts: list[str] = []
        if is_change or whole.is_ended or whole.values:  # else no part of it changes anything
            parts = _CLAUSE.split(text)
        several = parts if len(parts) > 1 else ()
        clauses = (self._clause(part, may_end=whole.is_ended) for part in several)
        return _Statement(
            text=text,
            whole=whole,
            clauses=(whole, *clauses),
            slots=frozenset(name for name in _SLOTS if phrase(name).search(text)),
            right=None if right is None else (right["new"].strip(), right["old"].strip()),
            is_change=is_change,
            is_strong=is_change and phrase("replaced").search(text) is not None,
            is_vague=_VAGUE.search(text) is not None,
        )

    def likest(
        self, fact: NewFact, own: _Statement, others: Iterable[tuple[NewFact | Fact, _Statement]]
    ) -> int | None:
        """The place of the statement that another changes most surely, the latest of those."""
        best, found = 0.0, None
        for place, (other, read) in enumerate(others):
            likeness = self._likeness(fact, own, other, read)
            if likeness and likeness >= best:
                best, found = likeness, place
        return found

    def bound(self, other: NewFact, fact: NewFact, own: _Statement) -> tuple[NewFact, NewFact]:
        """Both on one topic, so that the newer replaces the older."""
        topic = other.topic or fact.topic
        if topic is None:
            words = " ".join(sorted(self._telling(other.quote)))
            topic = topic_of(fact.metadata.get("speaker"), "said", words)
        fact = _righted(other, fact, own)
        return replace(other, topic=topic), replace(fact, topic=topic)

    def over(self, other: Fact, fact: NewFact, own: _Statement) -> NewFact:
        """The newer one, which replaces one that is stored."""
        fact = _righted(other, fact, own)
        return replace(fact, topic=fact.topic or other.topic, supersedes=(other.id,))

    def _likeness(
        self, fact: NewFact, own: _Statement, other: NewFact | Fact, read: _Statement
    ) -> float:
        """How surely a statement changes another; 0: it does not."""
        right, shared = own.right, own.whole.telling & read.whole.telling
        if not shared and right is None and not (own.is_change and own.slots & read.slots):
            return 0.0
        if not _is_replaceable(fact, other):
            return 0.0
        if right is not None and _has(read.text, right[1]) and not _has(read.text, right[0]):
            return 2.0
        if fact.topic is not None and fact.topic == other.topic:
            return 0.0  # it replaces that anyway
        return max(_is_over(own, read), _is_otherwise(own, read))

    def _clause(self, text: str, *, may_end: bool) -> _ClauseWords:
        telling = self._telling(text)
        bare = telling if text.islower() else self._telling(_NAME.sub("", text))
        values = (word for word in _WORD.findall(text.lower()))
        return _ClauseWords(
            telling,
            bare,
            frozenset(w for w in values if w[0].isdigit() or w in self._book.values),
            may_end and self._book.phrase("ended").search(text) is not None,
        )

    def _telling(self, text: str) -> frozenset[str]:
        same, passed = self._book.same, self._passed
        words = (word.removesuffix("'s") for word in _WORD.findall(text.lower().replace("’", "'")))
        return frozenset(
            stem(same.get(word, word))
            for word in words
            if word not in passed and not word[0].isdigit()
        )


def _is_over(own: _Statement, read: _Statement) -> float:
    """How much of what is said to be over another statement has."""
    if read.whole.is_ended:
        return 0.0
    shares = (
        _shared(clause.telling, read.whole.telling) for clause in own.clauses if clause.is_ended
    )
    return max((share for share in shares if share >= ENDED_MIN), default=0.0)


def _is_otherwise(own: _Statement, read: _Statement) -> float:
    """How surely a statement says something else of the same."""
    is_brief = max(len(own.text), len(read.text)) <= SLOT_CHARS_MAX
    if is_brief and own.is_change and own.slots & read.slots:
        return 0.9
    least = SHARED_STRONG_MIN if own.is_strong else SHARED_MIN
    return max(
        (share for each in own.clauses if (share := _alike(own, each, read)) >= least), default=0.0
    )


def _alike(own: _Statement, clause: _ClauseWords, read: _Statement) -> float:
    before = read.whole
    is_same = bool(clause.telling) and clause.telling == before.telling
    if is_same and before.values and before.values != clause.values:
        # Of a number or a day there is one, unless it is one of several.
        is_one = not read.is_vague and any(map(str.isdigit, "".join(before.values)))
        return 1.0 if own.is_change or is_one else 0.0
    if not own.is_change:
        return 0.0
    if before.bare and before.bare == clause.bare:
        return 1.0
    return _shared(clause.telling, before.telling)


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of the shorter stands in the longer; one word is enough for a short one only."""
    both = len(one & other)
    if max(len(one), len(other)) > (TELLING_MAX if both > 1 else ONE_OF_MAX):
        return 0.0
    return both / max(1, min(len(one), len(other)))


def _righted(other: NewFact | Fact, fact: NewFact, own: _Statement) -> NewFact:
    """What was said before, with the value that is right. An order is told as it was given."""
    if own.right is None or not _has(other.content, own.right[1]):
        return fact
    if other.trust is not fact.trust or other.tags[:1] == (FactTag.INSTRUCTION.value,):
        return fact
    new, old = own.right
    rest = new.partition(" ")[2]
    wrong = f"{old} {rest}" if rest and _has(other.content, f"{old} {rest}") else old
    content = re.sub(rf"(?<!\w){re.escape(wrong)}(?!\w)", lambda _: new, other.content)
    return replace(fact, content=content, tags=other.tags[:1] or fact.tags)


def _is_replaceable(fact: NewFact, other: NewFact | Fact) -> bool:
    """Whether both are of the same person and place, and the older may be replaced."""
    if isinstance(other, NewFact):
        if other.seq == fact.seq:
            return False
    elif other.valid_from is not None and other.valid_from > fact.valid_from:
        return False
    if other.tags[:1] and FactTag(other.tags[0]) not in _LASTING:
        return False
    if fact.trust is not Trust.USER and other.trust is Trust.USER:
        return False
    if fact.content == other.content:
        return False
    return all(fact.metadata.get(name) == other.metadata.get(name) for name in _SAME_OF)


def _has(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


def _plain(metadata: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in metadata.items() if name != LOOSE}


THRESHOLD = 0.5  # below it a sentence is as likely as not of no use to anybody
FACTS_PER_BLOCK_MAX = 6


class RuleExtractor:
    """Makes a draft of a piece by rules, always of the whole of it.

    Keeps nothing between two pieces, so that threads may share one.
    """

    name = "rules/3"

    def __init__(self, *, threshold: float = THRESHOLD) -> None:
        self._listener = functools.cache(
            lambda language: Listener(load(language), threshold, FACTS_PER_BLOCK_MAX)
        )
        self._changes = functools.cache(lambda language: Changes(load(language)))

    def extract(self, piece: Piece) -> Draft:
        book = load()
        tools, writer = ToolReader(book), TextWriter(book)
        heard = Conversation(book, self._listener).facts(piece)
        said = settled(
            [fact for fact in heard if not is_withheld(fact)], piece.known, self._changes
        )
        actions = tuple(tools.actions(piece.blocks, piece.session.project))
        done = Teacher(book, tools).facts(actions, piece.session.project) if actions else []
        facts = tuple(_superseding(_each_once([*said, *done]), piece.known))
        told = Told(piece=piece, facts=facts, actions=actions)
        # Commands that did something about what a person asked for are worth a summary alone.
        is_asked = not piece.is_background and bool(writer.asked(piece.blocks))
        if facts or told.files or (is_asked and Ending.PASSED in told.commands.values()):
            return writer.write(told)
        return Draft(upto=piece.upto)


def _each_once(facts: Iterable[NewFact]) -> Iterator[NewFact]:
    """The facts without what the same record says twice."""
    seen: set[tuple[int, str]] = set()
    for fact in facts:
        key = (fact.seq, content_key(fact.content))
        if key not in seen:
            seen.add(key)
            yield fact


def _superseding(facts: Iterable[NewFact], known: Iterable[Fact]) -> Iterator[NewFact]:
    """The facts, each with what it makes untrue among what is known: the same topic, other words.

    Only a person's word replaces anything but an agent's or a tool's.
    """
    by_topic: dict[str, list[Fact]] = {}
    for other in known:
        if other.topic is not None and other.id:
            by_topic.setdefault(other.topic, []).append(other)
    for fact in facts:
        rivals = by_topic.get(fact.topic, ()) if fact.topic is not None else ()
        beaten = tuple(other.id for other in rivals if _beats(fact, other))
        both = tuple(dict.fromkeys((*fact.supersedes, *beaten)))
        yield replace(fact, supersedes=both) if beaten else fact


def _beats(fact: NewFact, other: Fact) -> bool:
    if fact.trust is not Trust.USER and other.trust is Trust.USER:
        return False
    if other.valid_from is not None and other.valid_from > fact.valid_from:
        return False
    if not names_what_ends(fact, other.content):
        return False
    return content_key(other.content) != content_key(fact.content)

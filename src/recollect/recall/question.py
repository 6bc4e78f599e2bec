"""What a text asks for: from any words to a question that a store can search and ranking can score.

A question has its stems, those that stand together, the times it names, and the words an answer may
use instead. Words that only address the reader ("can you remind me") are not searched for, but
tell a few things: that it was the agent who said it, that it is about the one who asks, or about
what held before. This is known for English only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import islice, pairwise
from types import MappingProxyType

from recollect.extraction.grounding import says
from recollect.extraction.injected import without_instructions
from recollect.patterns import LazyPattern
from recollect.quoting import without_recalled
from recollect.stemming import asked_stems, english_table, stem, stems, words
from recollect.store.protocol import Store
from recollect.times import TimeRange, time_ranges
from recollect.types.facts import Trust
from recollect.types.recall import Entry, EntryKind, Filters, Reach, Sought


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word of the question: as it is indexed, and as written, without case and accents.

    `related` are stems of words that an answer may use instead: "hiking" for "hobbies".
    """

    stem: str
    word: str
    is_capital: bool = False  # as names are written
    related: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Phrase:
    """Stems that stand next to each other in the question, and whether that is asked for."""

    stems: tuple[str, ...]
    is_quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, as far as its own text says."""

    terms: tuple[Term, ...]  # each stem once, without stop words
    asked_at: datetime
    times: tuple[TimeRange, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    asks_agent: bool = False  # what the agent said is asked for
    asks_past: bool = False  # what held before is asked for as well
    asks_change: bool = False  # what took the place of what
    is_personal: bool = False  # it is about the one who asks
    asker: str | None = None  # who that is, without case and accents; "" has no name, None: unknown
    owned: tuple[str, ...] = ()  # the stems behind "my" in it


@cache
def _related() -> Mapping[str, tuple[str, ...]]:
    """Stems that an answer may use instead of one that is asked for."""
    found: dict[str, dict[str, None]] = {}
    for asked, answered in english_table("answered"):
        others = [stem(word) for word in answered]
        for word in map(stem, asked):
            found.setdefault(word, {}).update((other, None) for other in others if other != word)
    return {word: tuple(others) for word, others in found.items()}


ADDRESSED_CHARS_MAX = 2000  # a longer text is no question

_YOU = r"(?:can|could|would|will|do|did)\s+you(?:\s+(?:please|kindly|also|maybe|perhaps|still))?"
_YOU_COULD = r"(?:if|whether)\s+you\s+(?:can|could|would|might)"
_I_KEEP = (
    r"(?:I(?:\s+am|\s+was|\s+have\s+been|\s*['’]m|\s*['’]ve\s+been)|and\s+(?:am|was))"
    r"(?:\s+(?:also|just|now))?"
)
_ADVICE = r"(?:good\s+)?(?:advice|ideas?|recommendations?|suggestions?|thoughts?|tips?)"
_SAID = r"(?:discussed|mentioned|said|talked\s+about|told\s+(?:me|you))"
_SAY = r"(?:discuss|mention|say|talk\s+about|tell\s+(?:me|you))"
_TALK = r"(?:chats?|conversations?|discussions?|sessions?|talks?)"

_ADDRESSING = re.compile(
    rf"""\b(?:
        (?:please\s+)?(?:{_YOU}|{_YOU_COULD})\s+(?:
            (?:give|help|remind|show|tell)\s+me(?:\s+(?:about|of|with))?
            | (?:advise|explain|know|recall|recommend|remember|suggest|think)(?:\s+me)?
            | have\s+(?:any|some)\s+{_ADVICE}
        )
        | please\s+(?:help|remind|tell)\s+me(?:\s+(?:about|of|with))?
        | any\s+{_ADVICE}(?:\s+(?:about|for|on))?
        | {_I_KEEP}\s+(?:
            checking | wondering | feeling(?:\s+like)?
            | going\s+(?:back\s+to|through) | looking\s+back\s+(?:at|on|to)
            | thinking(?:\s+(?:about|back\s+to|of))? | trying\s+to\s+(?:recall|remember)
        )
        | I\s*(?:want(?:ed)?|would\s+like|['’]d\s+like)\s+to\s+
            (?:ask|check|clarify|confirm|follow\s+up|know)(?:\s+(?:about|on|something))?
        | (?:from\s+|in\s+)?our\s+(?:earlier|last|past|previous)\s+{_TALK}(?:\s+(?:about|on))?
        | (?:I|we|you)(?:\s+had|\s+have|['’]d|['’]ve)?\s+(?:remember(?:ed)?|{_SAID})(?:\s+that)?
        | did\s+(?:I|we|you)\s+{_SAY}
        | would\s+be\s+a\s+good\s+idea(?:\s+to)?
        | used?\s+to | (?:right\s+)?now | currently | nowadays | these\s+days
        | at\s+(?:the\s+moment|present)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_SAID_BY_ASKER = re.compile(rf"\b(?:I\s+{_SAID}|did\s+I\s+{_SAY})\b", re.IGNORECASE)
_SAID_BY_AGENT = re.compile(
    rf"""\b(?:
        (?:you|the\s+(?:agent|assistant))(?:\s+had|\s+have|\s+has|['’]d|['’]ve)?(?:\s+\w+ly)?\s+
            (?:advised|came\s+up|created|described|explained|gave|listed|made|mentioned|proposed
            |provided|recommended|said|suggested|told|wrote)
        | did\s+(?:you|the\s+(?:agent|assistant))\s+
            (?:advise|come\s+up|create|describe|explain|give|list|make|mention|propose|provide
            |recommend|say|suggest|tell|write)
        | our\s+(?:earlier|last|past|previous)\s+{_TALK}
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)


_PAST = re.compile(
    r"\b(?:before|changed?|earlier|ever|former(?:ly)?|historical(?:ly)?|history|in\s+the\s+past|no\s+longer"
    r"|old(?:er)?|original(?:ly)?|past|previous(?:ly)?|prior|since\s+when|so\s+far|used?\s+to|until|was|were)\b",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:what|how|anything|something)\b[^.?!\n]{0,40}\bchanged?\b"
    r"|\bwhat(?:['’]s|\s+is|\s+was)\s+(?:different|new)\b",
    re.IGNORECASE,
)
_ASKER = re.compile(r"\b(?:I|me|my|myself)\b", re.IGNORECASE)


def matter(question: str) -> str:
    """Return `question` without the words that only address the reader."""
    if len(question) > ADDRESSED_CHARS_MAX:
        return question
    return _ADDRESSING.sub(" ", question)


def asks_agent(question: str) -> bool:
    """Whether it is about what the agent said, whose word counts for less elsewhere."""
    if len(question) > ADDRESSED_CHARS_MAX or _SAID_BY_ASKER.search(question):
        return False
    return _SAID_BY_AGENT.search(question) is not None


def asks_past(question: str) -> bool:
    """Whether it is about what held before, and not only about what holds."""
    return len(question) <= ADDRESSED_CHARS_MAX and _PAST.search(question) is not None


def asks_change(question: str) -> bool:
    """Whether it asks what has taken the place of what."""
    return len(question) <= ADDRESSED_CHARS_MAX and _CHANGE.search(question) is not None


def is_personal(question: str) -> bool:
    """Whether it is about the one who asks, or what they said."""
    if len(question) > ADDRESSED_CHARS_MAX:
        return False
    return bool(_SAID_BY_ASKER.search(question) or _ASKER.search(matter(question)))


PHRASES_MAX = 48
SUBJECT_CHARS = 60  # of a fact, that say who it is about
NAME_CHARS_MIN = 3  # from here on the beginning of a name stands for it: Mel, Melanie
NO_HOLDERS: Mapping[str, int] = MappingProxyType({})
PAIRED_CHARS_MAX = 2000  # of a question, in which words stand together
REPLACED_MAX = 20  # facts replaced last, for who asks what has changed

_NAME = stem("name")

_WORD = re.compile(r"[^\W_]+")
_QUOTED = re.compile(
    r'"([^"\n]{3,200})"|“([^”\n]{3,200})”|«([^»\n]{3,200})»'
    r"|(?<!\w)['‘]([^\s'‘’](?:[^'‘’\n]|(?<=\w)['’](?=\w)){1,198}[^\s'‘’])['’](?!\w)"
)

_MY = re.compile(r"\bmy\s+(\w+)", re.IGNORECASE)
_I_AM = re.compile(r"\b(?:I['’]m|I am|[Cc]all me|[Tt]his is)\s+[A-Z][a-z]+\b")
_ITS = re.compile(r"['’]s?\s+(\w+)")

# Of equals what says most by itself goes first, and of those the newest.


def ask(text: str, now: datetime) -> Question:
    """What a text asks for: its stems, those that stand together, and the times it names."""
    every = asked_stems(text)
    about = asked_stems(matter(text))
    asked = {stem: word for stem, word in every.items() if stem in about} or every
    capitals = {words(each) for each in _WORD.findall(text) if each[0].isupper()}
    return Question(
        terms=tuple(
            Term(
                stem=stem,
                word=word,
                is_capital=word in capitals,
                related=tuple(other for other in _related().get(stem, ()) if other not in asked),
            )
            for stem, word in asked.items()
        ),
        asked_at=now,
        times=tuple(time_ranges(text, now)),
        phrases=tuple(islice(_phrases(text, asked), PHRASES_MAX)),
        asks_agent=asks_agent(text),
        asks_past=asks_past(text),
        asks_change=asks_change(text),
        is_personal=is_personal(_QUOTED.sub(" ", text)) and not asks_agent(text),
        owned=tuple(dict.fromkeys(owned_stems(text, EntryKind.RECORD))),
    )


def asked_by(question: Question, name: str) -> Question:
    """The same, by somebody of this name; "" if they have none."""
    return replace(question, asker=words(name))


def owned_stems(text: str, kind: EntryKind) -> list[str]:
    """The stems behind "my"; of a fact the one behind the first "'s"."""
    if kind is EntryKind.FACT:
        return [stem(words(each[1])) for each in islice(_ITS.finditer(text[:SUBJECT_CHARS]), 1)]
    name = (_NAME,) if _I_AM.search(text) else ()
    return [*name, *(stem(words(each[1])) for each in _MY.finditer(text))]


def _phrases(text: str, asked: Collection[str]) -> Iterator[Phrase]:
    """What stands in quotation marks, and every two words worth a search with nothing between."""
    for found in _QUOTED.finditer(text):
        said = tuple(stems(found[found.lastindex or 0]))
        if len(said) > 1:
            yield Phrase(said, is_quoted=True)
    pairs = dict.fromkeys(pairwise(stems(text[:PAIRED_CHARS_MAX])))
    yield from (Phrase(pair) for pair in pairs if pair[0] in asked and pair[1] in asked)


def sought(question: Question) -> Sought:
    """What a store is asked for."""
    asker = stems(question.asker) if question.asker else ()  # as if they had named themselves
    return Sought(
        stems=tuple(dict.fromkeys((*(term.stem for term in question.terms), *asker))),
        related={term.stem: term.related for term in question.terms if term.related},
        times=tuple((time.start, time.end) for time in question.times),
        replaced=REPLACED_MAX if question.asks_change else 0,
    )


def without_names(text: str, names: Iterable[str]) -> str:
    """A question for an embedder without the names in it, which mislead it."""
    known = {part for name in names for part in name.split()}
    kept = [word for word in text.split() if words(word).split(" ")[0] not in known]
    return " ".join(kept) or text


def speakers_asked(
    terms: Iterable[Term], speakers: Iterable[str], holders: Mapping[str, int] = NO_HOLDERS
) -> frozenset[str]:
    """The speakers a question names, by a part of their name or the beginning of one.

    A beginning may be a word like any other, Carla and car: it is a name if it is written as one,
    or if nothing has it as a word. `holders` are how many entries have a stem.
    """
    asked = tuple(terms)
    return frozenset(
        speaker
        for speaker in speakers
        if speaker and any(_names(term, speaker, holders) for term in asked)
    )


def _names(term: Term, speaker: str, holders: Mapping[str, int]) -> bool:
    if term.word == speaker:
        return True
    parts = speaker.split()
    may_begin = term.is_capital or not holders.get(term.stem)
    return len(term.word) >= NAME_CHARS_MIN and (
        term.word in parts or (may_begin and any(part.startswith(term.word) for part in parts))
    )


def is_named(term: Term, speakers: frozenset[str], holders: Mapping[str, int]) -> bool:
    return any(_names(term, speaker, holders) for speaker in speakers)


# whether a person gave an order that a machine wrote down: one record of theirs, or one fact that
# is their word, has to say it; asked when it is told, and not taken from what was written

VOUCHED_CHARS = 20_000  # of a record or a fact that may say it
_PERSONS = Filters(
    kinds=frozenset({EntryKind.FACT, EntryKind.RECORD}), trust=frozenset({Trust.USER})
)
_VOUCHING = Reach(loaded={EntryKind.FACT: 20, EntryKind.RECORD: 20}, beside=0, chars=VOUCHED_CHARS)
# What pages write behind a statement: links, days, notes, and that it was inferred.
_REMARKS = LazyPattern(
    r"\[\[[^\]\n]*\]\]|\[\^\w+\]|\((?:in|inferred|(?:until|more|since|and|[\d,;\s-])+)?\s*\)"
)


def voucher(
    store: Store, space: str, now: datetime, session_id: str | None = None
) -> Callable[[str], bool]:
    """Whether a person said it, in that session or in any."""
    filters = replace(_PERSONS, session_id=session_id)

    def is_persons(order: str) -> bool:
        text = _REMARKS.sub(" ", _REMARKS.sub(" ", order))  # brackets may be left empty
        wanted = replace(sought(ask(text, now)), times=())
        found = store.search.candidates(space, wanted, filters, now, _VOUCHING)
        return any(
            says(_persons_words(each), text) for each in found.entries if not each.is_superseded
        )

    return is_persons


def _persons_words(entry: Entry) -> str:
    """The words of a person, without what was put before a model in their name."""
    if entry.kind is EntryKind.FACT:
        return entry.text
    return without_instructions(without_recalled(entry.text))

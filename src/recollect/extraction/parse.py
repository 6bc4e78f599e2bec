"""Reads a model's answer: what is right in it is kept, and only its shape can refuse the whole.

Nothing in the answer is trusted. What the model cannot know or may not decide (ids, trust, times)
is looked up or decided here. Each fact is read by itself: what has one meaning is mended, a part
without one is left out, and a fact that says nothing or rests on nothing is dropped. Both are
counted. The complaint of an InvalidOutput is written for the model to act on.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Any

from recollect.errors import InvalidOutput
from recollect.extraction.grounding import Grounds, rank
from recollect.extraction.parts import Earlier, GivenPart
from recollect.extraction.piece import Block, Piece
from recollect.extraction.scope import is_elsewhere
from recollect.extraction.transcript import Redact, cleaned, each_text, one_line
from recollect.languages import language_of
from recollect.quarantine import commands
from recollect.times import Facing, dates
from recollect.types.facts import Draft, Fact, FactFaults, FactTag, NewFact, Trust, content_key

QUOTE_CHARS_MAX = 500
LEAD_CHARS_MAX = 200  # of a record that is shown where the model's own quote is not in it
SLUG_CHARS_MAX = 60
TOPIC_CHARS_MAX = 80
NAME_CHARS_MAX = 80
NAMES_MAX = 8  # that a fact is about
DAY_CHARS_MAX = 60
DAY = timedelta(days=1)
# What happened, or is to happen, on a day is as true after it as before.
PAST_TAGS = frozenset({FactTag.EVENT, FactTag.COMMITMENT, FactTag.CORRECTION, FactTag.LESSON})

_TEXT = {"type": "string"}


def _object(required: str, **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object that has nothing else than these; what is not required may be left out."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def _list(items: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "array", "items": items}


_PARTS = _list(_object("text", replaces=_TEXT, text=_TEXT))

ANSWER_SCHEMA: Mapping[str, Any] = _object(
    "facts raw_memory rollout_summary",
    facts=_list(
        _object(
            "content kind records",
            content=_TEXT,
            kind={"type": "string", "enum": [tag.value for tag in FactTag]},
            records=_list({"type": "integer"}),
            about=_list(_TEXT),
            when=_TEXT,
            quote=_TEXT,
            topic=_TEXT,
            single={"type": "boolean"},
            supersedes=_list(_TEXT),
            until=_TEXT,
        )
    ),
    raw_memory=_PARTS,
    rollout_summary=_PARTS,
    rollout_slug=_TEXT,
)

_FENCED = re.compile(r"```[A-Za-z0-9]*\s*(\{.*\})\s*```", re.DOTALL)
_NOT_IN_SLUG = re.compile(r"[^a-z0-9]+")
_NOT_IN_TOPIC = re.compile(r"[^\w:/-]+")
_NUMBER = re.compile(r"\[?#?(\d{1,18})(?:\.0)?\]?")
_PART_NAME = re.compile(r"^(#*[ \t]*)\[([rs]\d{1,6})\][ \t]*")
_SPAN = re.compile(r"\s*(?:/|–|—|\bto\b|\bbis\b|\.\.)\s*")
_MONTHS = re.compile(r"(\d{4})(?:-(\d\d))?")
# What a quote may write in another way, and all that stands for it. Possessive: no text is slow.
_DASH, _ELLIPSIS = r"\s*+[-‐‑‒–—―−]++\s*+", r"\s*+(?:…|\.{3})"
_ALIKE = {
    _DASH: _DASH,
    _ELLIPSIS: f"(?:{_ELLIPSIS})?+",
    "['‘’ʼ′`´]": "['‘’ʼ′`´]",
    '["“”„‟«»]': '["“”„‟«»]',
    r"\s++": r"\s++",
}
_SIGN = re.compile("|".join(f"({sign})" for sign in _ALIKE) + "|.", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLimits:
    """How much an answer may hold."""

    fact_chars_max: int = 2000
    memory_chars_max: int = 40_000  # what is stored may have grown longer
    facts_max: int = 64

    @property
    def answer_chars_max(self) -> int:
        """More than any answer within the other limits needs, escapes included."""
        return 8 * (2 * self.memory_chars_max + self.facts_max * (self.fact_chars_max + 4000))


def handles_of(piece: Piece) -> dict[str, Fact]:
    """The known facts by the short names a model is told; it never sees an id."""
    session = piece.session
    own = (
        fact
        for fact in piece.known
        if fact.space == session.space and not is_elsewhere(fact, session.project)
    )
    return {f"f{number}": fact for number, fact in enumerate(own, start=1)}


DEFAULT_LIMITS = AnswerLimits()


def parse(
    text: str,
    piece: Piece,
    handles: Mapping[str, Fact],
    limits: AnswerLimits = DEFAULT_LIMITS,
    redact: Redact = str,
    earlier: Earlier | None = None,
) -> Draft:
    """What an answer says of a piece. Blank texts and no facts: nothing worth remembering.

    It is redacted before anything is made of it: in a slug or a topic, cut short or quoted in a
    complaint, a secret is no longer known for one.
    """
    answer = _decoded(text, limits, redact)
    given: list[Any] = answer["facts"]
    grounds = Grounds(piece)
    reader = _FactReader(piece=piece, grounds=grounds, handles=handles, limits=limits)
    facts, mended, complaint = list[NewFact](), 0, ""
    for at, each in enumerate(given[: limits.facts_max]):
        try:
            fact, is_mended = reader.read(each)
        except InvalidOutput as error:
            complaint = complaint or f"facts[{at}] {error}"
        else:
            facts.append(fact)
            mended += is_mended
    memory = _parts(answer["raw_memory"], "raw_memory", limits)
    summary = _parts(answer["rollout_summary"], "rollout_summary", limits)
    if not (facts or memory or summary):
        if given:
            raise InvalidOutput(f"none of the facts can be used: {complaint}")
        return Draft(upto=piece.upto)
    earlier = earlier or Earlier.of(piece.previous, "", limits.memory_chars_max)
    name = slug(given_name) if isinstance(given_name := answer.get("rollout_slug"), str) else None
    return Draft(
        upto=piece.upto,
        raw_memory=earlier.memory.grown(_told(memory, grounds)),
        rollout_summary=earlier.summary.grown(_told(summary, grounds)),
        rollout_slug=name if name and not commands(name) else earlier.slug,
        facts=merged(facts),
        faults=FactFaults(dropped=len(given) - len(facts), mended=mended),
    )


def merged(facts: Sequence[NewFact]) -> tuple[NewFact, ...]:
    """Each statement once: in the words of whoever is trusted most, with all it supersedes."""
    found: dict[str, NewFact] = {}
    for fact in facts:
        key = content_key(fact.content)
        other = found.get(key)
        if other is None:
            found[key] = fact
            continue
        best = other if rank(other.trust) >= rank(fact.trust) else fact
        also = fact.supersedes if other.trust is fact.trust else ()
        found[key] = replace(best, supersedes=tuple(dict.fromkeys((*best.supersedes, *also))))
    return tuple(found.values())


def slug(text: str | None) -> str | None:
    """A name that is safe in a file's name, or none."""
    made = _NOT_IN_SLUG.sub("-", (text or "").lower())[:SLUG_CHARS_MAX].strip("-")
    return made or None


def plain(text: str) -> str:
    """A statement on one line, reading as it is written."""
    return " ".join(cleaned(text).split())


def lead_of(block: Block) -> str:
    """The beginning of a block, where nothing better can be quoted."""
    return one_line(block.text, LEAD_CHARS_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FactReader:
    """Reads the facts of one answer."""

    piece: Piece
    grounds: Grounds
    handles: Mapping[str, Fact]
    limits: AnswerLimits

    def read(self, given: object) -> tuple[NewFact, bool]:
        """A fact, and whether anything in it is not as the model wrote it."""
        if not isinstance(given, dict):
            raise InvalidOutput("is no object in which every key stands once")
        content = self._content(given)
        seqs = self._records(given)
        cited = self.grounds.cited(seqs)
        quoted, said_at = _quoted(given.get("quote"), cited), cited[-1].at
        trust = self.grounds.trust(content, cited, quoted)
        tag, quote = _tag(given.get("kind")), _quote(given.get("quote"), quoted)
        names = [name for name in _names(given.get("supersedes")) if self._may_end(name, trust)]
        happened, until = _times(given, tag, said_at)
        topic = given.get("topic") if isinstance(given.get("topic"), str) else None
        read = {
            "kind": tag.value,
            "records": seqs,
            "about": list(_about(given.get("about"))),
            "when": None if happened is None else _written(*happened),
            "quote": quote,
            "topic": topic,
            "single": given.get("single") is True,
            "supersedes": names,
            "until": None if until is None else until.isoformat(),
        }
        fact = NewFact(
            content=content,
            seq=cited[0].seq,
            seq_to=cited[-1].seq,
            valid_from=said_at,
            trust=trust,
            quote=quote or lead_of(self.grounds.best(content, cited) or cited[0]),
            tags=(self.grounds.held_tag(tag, trust, cited).value,),
            about=tuple(_about(given.get("about"))),
            happened_from=None if happened is None else _midnight(happened[0]),
            happened_to=None if happened is None else _midnight(happened[1] + DAY),
            topic=_topic(topic),
            is_single=given.get("single") is True,
            valid_to=_end_of(until, said_at),
            supersedes=tuple(dict.fromkeys(self.handles[name].id for name in names)),
        )
        nothing: tuple[Any, ...] = (None, "", [], False)
        return fact, any(given.get(key) not in (*nothing, value) for key, value in read.items())

    def _content(self, given: Mapping[str, Any]) -> str:
        said = given.get("content")
        content = plain(said) if isinstance(said, str) else ""
        if not content:
            raise InvalidOutput("has no content; leave it out instead")
        if len(content) > self.limits.fact_chars_max:
            raise InvalidOutput(
                f"has a content of {len(content):,} characters; "
                f"one statement has at most {self.limits.fact_chars_max:,}"
            )
        return content

    def _records(self, given: Mapping[str, Any]) -> list[int]:
        """The records it rests on; where its quote is from another one alone, that one."""
        seqs = [seq for seq in _numbers(given.get("records")) if seq in self.grounds.seqs]
        quoted = {block.seq for block in _quoted(given.get("quote"), self.piece.blocks)}
        if quoted and not quoted.intersection(seqs):
            best = self.grounds.best(plain(str(given.get("content", ""))))
            if not seqs or (best is not None and {best.seq} == quoted):  # models miscount
                seqs = [min(quoted)]
        if not seqs:
            raise InvalidOutput(
                "names no record of the transcript; use the numbers after # in its headers"
            )
        return seqs

    def _may_end(self, name: str, trust: Trust) -> bool:
        """Only somebody trusted as far takes back what was said; otherwise both stand."""
        fact = self.handles.get(name)
        if fact is None or fact.space != self.piece.session.space:
            return False
        return rank(fact.trust) <= rank(trust)


def _decoded(text: str, limits: AnswerLimits, redact: Redact) -> dict[str, Any]:
    """An answer that has the shape of one."""
    if len(text) > limits.answer_chars_max:
        raise InvalidOutput(f"the answer has {len(text):,} characters; be far shorter")
    stripped = text.strip()
    fenced = _FENCED.fullmatch(stripped)
    stripped = fenced[1] if fenced else stripped
    if not stripped:
        raise InvalidOutput("the answer is empty; answer with one JSON object")
    try:
        found = json.loads(stripped, object_pairs_hook=_unique, parse_constant=_nothing)
        answer = each_text(found, redact)
    except RecursionError as error:
        raise InvalidOutput("the answer is nested too deeply") from error
    except ValueError as error:
        raise InvalidOutput(f"the answer is not one JSON object: {error}") from error
    if not isinstance(answer, dict):
        raise InvalidOutput("the answer is not one JSON object in which every key stands once")
    for key, kinds in (
        ("raw_memory", list | str),
        ("rollout_summary", list | str),
        ("facts", list),
    ):
        if not isinstance(answer.get(key), kinds):
            raise InvalidOutput(f"{key} is not a list")
    return answer


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any] | None:
    """Nothing, if a key stands twice: what it says then depends on who reads it."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else None


def _nothing(_: str) -> None:
    """What NaN and Infinity stand for."""


def _parts(given: object, where: str, limits: AnswerLimits) -> list[GivenPart]:
    """The parts of a text; one that is given as a whole is a part, or several."""
    parts = []
    for each in _listed(given):
        keys = each if isinstance(each, dict) else {"text": each}
        if isinstance(keys.get("text"), str) and (text := cleaned(keys["text"]).strip()):
            name = next(_names(keys.get("replaces")), "").strip("[]")
            if found := _PART_NAME.match(text):  # where it stood when it was shown
                text, name = _PART_NAME.sub(r"\1", text), name or found[2]
            parts.append(GivenPart(text=text, name=name))
    length = sum(len(part.text) for part in parts)
    if length > limits.memory_chars_max:
        raise InvalidOutput(
            f"{where} has {length:,} characters; at most {limits.memory_chars_max:,}"
        )
    return parts


def _told(parts: Sequence[GivenPart], grounds: Grounds) -> list[GivenPart]:
    return [replace(part, text=grounds.told(part.text)) for part in parts]


def _listed(given: object) -> list[Any]:
    """A list, or the one thing that stands in its place."""
    return given if isinstance(given, list) else [given]


def _numbers(given: object) -> Iterator[int]:
    """Whole numbers, also where they are written as texts."""
    for each in _listed(given):
        is_one = isinstance(each, int | float | str) and not isinstance(each, bool)
        if is_one and (found := _NUMBER.fullmatch(str(each).strip())):
            yield int(found[1])


def _names(given: object) -> Iterator[str]:
    return (each.strip().lower() for each in _listed(given) if isinstance(each, str))


def _tag(given: object) -> FactTag:
    """A kind, whatever its case; one that is not known makes it no more than an observation."""
    try:
        return FactTag(given.strip().lower()) if isinstance(given, str) else FactTag.OBSERVATION
    except ValueError:
        return FactTag.OBSERVATION


def _about(given: object) -> Iterator[str]:
    """Names, each once."""
    names = (one_line(each, NAME_CHARS_MAX) for each in _listed(given) if isinstance(each, str))
    return islice(dict.fromkeys(filter(None, names)), NAMES_MAX)


def _quoted(given: object, blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The blocks that have the words of a quote."""
    return tuple(block for block in blocks if _quote(given, (block,)))


def _quote(given: object, cited: Sequence[Block]) -> str:
    """The words of a record that a quote gives, as they stand there; empty if none has them."""
    quote = plain(given)[:QUOTE_CHARS_MAX] if isinstance(given, str) else ""
    if not quote:
        return ""
    written = re.compile(_SIGN.sub(_any_sign, quote), re.IGNORECASE)
    found = (written.search(block.text) for block in cited)
    return next((one_line(each[0], QUOTE_CHARS_MAX) for each in found if each), "")


def _any_sign(sign: re.Match[str]) -> str:
    return re.escape(sign[0]) if sign.lastindex is None else [*_ALIKE.values()][sign.lastindex - 1]


def _topic(text: str | None) -> str | None:
    folded = unicodedata.normalize("NFKC", text or "").casefold()
    made = _NOT_IN_TOPIC.sub("-", folded)[:TOPIC_CHARS_MAX].strip("-_:/")
    return made or None


def _times(
    given: Mapping[str, Any], tag: FactTag, said_at: datetime
) -> tuple[tuple[date, date] | None, date | None]:
    """The first and last day on which it happened, and the last on which it holds."""
    happened = _days(given.get("when"), said_at, Facing.EITHER)
    until = _days(given.get("until"), said_at, Facing.AHEAD)
    last = None if until is None else until[1]
    if tag not in PAST_TAGS:
        return happened, last
    return happened or (None if last is None else (last, last)), None


def _days(given: object, said_at: datetime, facing: Facing) -> tuple[date, date] | None:
    """The first and last day of the time that is named, if everybody reads it as the same."""
    if not isinstance(given, str) or len(text := given.strip()) > DAY_CHARS_MAX:
        return None
    whole = _named_days(text, said_at, facing)
    if whole is not None:
        return whole
    ends = [_named_days(each, said_at, facing) for each in _SPAN.split(text)]
    match ends:
        case [(first, _), (_, last)] if first <= last:
            return first, last
    return None


def _named_days(text: str, said_at: datetime, facing: Facing) -> tuple[date, date] | None:
    if found := _MONTHS.fullmatch(text):
        year, month = int(found[1]), int(found[2] or 0)
        if not 0 < year < date.max.year or month > 12 or found[2] == "00":
            return None
        after = date(year + 1, 1, 1) if month in (0, 12) else date(year, month + 1, 1)
        return date(year, month or 1, 1), after - DAY
    try:
        return (day := date.fromisoformat(text)), day
    except ValueError:
        read = {
            (named.first, named.last)
            for language in {language_of(text), "en", "de"}  # of which two read 5/7 in two ways
            for named in dates(text, said_at.date(), facing, language)
            if (named.start, named.stop) == (0, len(text))
        }
        return read.pop() if len(read) == 1 else None


def _written(first: date, last: date) -> str:
    """A span as an answer gives it, if it gives it in the plainest way."""
    if first == last:
        return first.isoformat()
    if (first.day, (last + DAY).day) == (1, 1) and first.year == last.year:
        if first.month == last.month:
            return f"{first:%Y-%m}"
        if (first.month, last.month) == (1, 12):
            return f"{first:%Y}"
    return f"{first.isoformat()}/{last.isoformat()}"


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _end_of(day: date | None, said_at: datetime) -> datetime | None:
    """The end of a day (UTC). A day that was over when it was spoken of ends nothing."""
    if day is None or day == date.max:
        return None
    end = _midnight(day) + DAY
    return end if end > said_at else None

"""Reads a model's answer strictly: a draft that is right in every part, or InvalidOutput.

Nothing in the answer is trusted. What the model cannot know or may not decide (ids, trust, times)
is looked up or decided here; the complaint of an InvalidOutput is written for the model to act on.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from recollect.errors import InvalidOutput
from recollect.extraction.grounding import Grounds, held_tag, rank
from recollect.extraction.piece import Block, Piece
from recollect.extraction.scope import is_elsewhere
from recollect.extraction.transcript import Redact, cleaned, one_line
from recollect.types.facts import Draft, Fact, FactTag, NewFact, content_key

QUOTE_CHARS_MAX = 500
LEAD_CHARS_MAX = 200  # of a record that is shown where the model's own quote is not in it
SLUG_CHARS_MAX = 60
TOPIC_CHARS_MAX = 80
RECORDS_MAX = 200

_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}


def _object(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object that has all of these and nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "array", "items": items}


# The subset of JSON schema that strict structured output takes everywhere.
ANSWER_SCHEMA: Mapping[str, Any] = _object(
    raw_memory=_TEXT,
    rollout_summary=_TEXT,
    rollout_slug=_TEXT_OR_NULL,
    facts=_list(
        _object(
            content=_TEXT,
            kind={"type": "string", "enum": [tag.value for tag in FactTag]},
            records=_list({"type": "integer"}),
            quote=_TEXT,
            topic=_TEXT_OR_NULL,
            supersedes=_list(_TEXT),
            until=_TEXT_OR_NULL,
        )
    ),
)
_TYPES = {"object": dict, "array": list, "string": str, "integer": int, "null": type(None)}

_FENCED = re.compile(r"```[A-Za-z0-9]*\s*(\{.*\})\s*```", re.DOTALL)
_NOT_IN_SLUG = re.compile(r"[^a-z0-9]+")
_NOT_IN_TOPIC = re.compile(r"[^\w:/-]+")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


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
) -> Draft:
    """What an answer says of a piece. Blank texts and no facts: nothing worth remembering.

    It is redacted before anything is made of it: in a slug or a topic, cut short or quoted in a
    complaint, a secret is no longer known for one.
    """
    answer = _decoded(text, limits, redact)
    _check(answer, ANSWER_SCHEMA, "")
    given = answer["facts"]
    if len(given) > limits.facts_max:
        raise InvalidOutput(f"facts has {len(given)} entries; give the {limits.facts_max} best")
    reader = _FactReader(piece=piece, grounds=Grounds(piece), handles=handles, limits=limits)
    facts = merged([reader.read(each, f"facts[{at}]") for at, each in enumerate(given)])
    draft = Draft(
        upto=piece.upto,
        raw_memory=_memory(answer["raw_memory"], "raw_memory", limits),
        rollout_summary=_memory(answer["rollout_summary"], "rollout_summary", limits),
        rollout_slug=slug(answer["rollout_slug"]),
        facts=facts,
    )
    return Draft(upto=piece.upto) if draft.is_empty else draft


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

    def read(self, given: Mapping[str, Any], where: str) -> NewFact:
        content = plain(given["content"])
        if not content:
            raise InvalidOutput(f"{where}.content is empty; leave the fact out instead")
        if len(content) > self.limits.fact_chars_max:
            raise InvalidOutput(
                f"{where}.content has {len(content):,} characters; "
                f"one statement has at most {self.limits.fact_chars_max:,}"
            )
        cited = self._cited(given["records"], f"{where}.records")
        tag, trust, said_at = (
            FactTag(given["kind"]),
            self.grounds.trust(content, cited),
            cited[-1].at,
        )
        superseded = self._superseded(given["supersedes"], f"{where}.supersedes")
        return NewFact(
            content=content,
            seq=cited[0].seq,
            seq_to=cited[-1].seq,
            valid_from=said_at,
            trust=trust,
            quote=_quote(given["quote"], cited),
            tags=(held_tag(tag, trust).value,),
            topic=_topic(given["topic"]),
            valid_to=_end_of(given["until"], said_at, where),
            # Only somebody trusted as far takes back what was said; otherwise both stand.
            supersedes=tuple(fact.id for fact in superseded if rank(fact.trust) <= rank(trust)),
        )

    def _cited(self, seqs: Sequence[int], where: str) -> tuple[Block, ...]:
        if not seqs:
            raise InvalidOutput(f"{where} names no record; name those the fact rests on")
        if len(seqs) > RECORDS_MAX:
            raise InvalidOutput(f"{where} names {len(seqs)} records; name the few that matter")
        for seq in seqs:
            if seq not in self.grounds.seqs:
                raise InvalidOutput(
                    f"{where} names {one_line(str(seq), 40)}, which the transcript does not have; "
                    "use the numbers after # in its headers"
                )
        return self.grounds.cited(seqs)

    def _superseded(self, handles: Sequence[str], where: str) -> list[Fact]:
        facts = []
        for handle in dict.fromkeys(handles):
            fact = self.handles.get(handle)
            if fact is None or fact.space != self.piece.session.space:
                known = ", ".join(self.handles) or "none: leave it empty"
                raise InvalidOutput(
                    f"{where} names {one_line(handle, 40)!r}; the known facts are {known}"
                )
            facts.append(fact)
        return facts


def _decoded(text: str, limits: AnswerLimits, redact: Redact) -> Any:
    if len(text) > limits.answer_chars_max:
        raise InvalidOutput(f"the answer has {len(text):,} characters; be far shorter")
    stripped = text.strip()
    fenced = _FENCED.fullmatch(stripped)
    stripped = fenced[1] if fenced else stripped
    if not stripped:
        raise InvalidOutput("the answer is empty; answer with one JSON object")
    try:
        found = json.loads(stripped, object_pairs_hook=_unique, parse_constant=_no_constant)
        return _redacted(found, redact)
    except RecursionError as error:
        raise InvalidOutput("the answer is nested too deeply") from error
    except ValueError as error:
        raise InvalidOutput(f"the answer is not one JSON object: {error}") from error


def _redacted(value: Any, redact: Redact) -> Any:
    """A copy in which every text is redacted."""
    match value:
        case str():
            return redact(value)
        case list():
            return [_redacted(each, redact) for each in value]
        case dict():
            return {redact(key): _redacted(each, redact) for key, each in value.items()}
        case _:
            return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InvalidOutput(f"the key {one_line(twice, 40)!r} stands twice in one object")
    return found


def _no_constant(name: str) -> Any:
    raise InvalidOutput(f"{name} is not JSON")


def _check(given: Any, schema: Mapping[str, Any], where: str) -> None:
    """InvalidOutput, in words for the model to act on: it is not as the schema has it."""
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    name = where or "the answer"
    if not any(type(given) is _TYPES[each] for each in types):
        raise InvalidOutput(f"{name} is {' or '.join(types)}, not {type(given).__name__}")
    match given:
        case dict():
            inner = schema["properties"]
            for key in [*inner, *given]:
                if key not in given:
                    raise InvalidOutput(f"{name} lacks the key {key!r}")
                if key not in inner:
                    odd = one_line(key, 40)
                    raise InvalidOutput(f"{name} has a key that is not known: {odd!r}")
            for key, each in given.items():
                _check(each, inner[key], f"{where}.{key}" if where else key)
        case list():
            for at, each in enumerate(given):
                _check(each, schema["items"], f"{name}[{at}]")
        case str():
            try:
                given.encode()
            except UnicodeEncodeError as error:
                raise InvalidOutput(f"{name} holds half a character (a lone surrogate)") from error
            if given not in schema.get("enum", (given,)):
                known = ", ".join(schema["enum"])
                raise InvalidOutput(f"{name} is {one_line(given, 40)!r}; use one of {known}")
        case _:
            pass  # a number, or nothing


def _memory(given: str, where: str, limits: AnswerLimits) -> str:
    text = cleaned(given).strip()
    if len(text) > limits.memory_chars_max:
        raise InvalidOutput(
            f"{where} has {len(text):,} characters; at most {limits.memory_chars_max:,}"
        )
    return text


def _quote(given: str, cited: Sequence[Block]) -> str:
    """The model's quote if the records have it, else how the first of them begins."""
    quote = plain(given)
    if quote and any(quote in " ".join(block.text.split()) for block in cited):
        return one_line(quote, QUOTE_CHARS_MAX)
    return lead_of(cited[0])


def _topic(text: str | None) -> str | None:
    folded = unicodedata.normalize("NFKC", text or "").casefold()
    made = _NOT_IN_TOPIC.sub("-", folded)[:TOPIC_CHARS_MAX].strip("-_:/")
    return made or None


def _end_of(given: str | None, said_at: datetime, where: str) -> datetime | None:
    """The end of a day (UTC). A day that was over when it was spoken of ends nothing."""
    if given is None or not given.strip():
        return None
    try:
        day = _date(given.strip())
        end = datetime.combine(day, time(), tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError) as error:
        raise InvalidOutput(
            f"{where}.until is {one_line(given, 40)!r}; write a date as 2026-05-31, or null"
        ) from error
    return end if end > said_at else None


def _date(text: str) -> date:
    if _ISO_DATE.fullmatch(text) is None:
        raise ValueError(text)
    return date.fromisoformat(text)

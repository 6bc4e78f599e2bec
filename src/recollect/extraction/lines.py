"""Reads the answer of a model that has no structured output: one statement per line.

Such a model names no records, so each line is given to the block whose words it shares. A line that
shares none with any is a heading or an invention and goes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recollect.errors import InvalidOutput
from recollect.extraction.digest import cleaned
from recollect.extraction.grounding import Grounds, held_tag
from recollect.extraction.parse import DEFAULT_LIMITS, Limits, lead_of, merged, plain
from recollect.extraction.piece import Piece
from recollect.knowledge import Draft, FactTag, NewFact

_BULLET = re.compile(r"(?:[-*+•‣◦⁃∙·–—]|\(?\d{1,3}[.):]|\(?[a-z][.)])\s+(?:\[[ xX]\]\s+)?")
_EMPHASIS = re.compile(r"(\*\*|__|`)(.+?)\1")
_KIND = re.compile(rf"\[?({'|'.join(FactTag)})\]?\s*[:–—-]\s+", re.IGNORECASE)
_EDGES = " \t.,;:!?*_`'\"“”‘’()[]{}<>-–—…•#"
_NONES = (
    "none nothing null nil n/a na no empty nada ninguno ninguna nichts keine aucun aucune rien "
    "nessuno nessuna nenhum nenhuma geen niets ingen inga нет ничего 无 沒有 没有 なし 없음"
)
_NONE = frozenset(_NONES.split())
_NONE_SIGNS = frozenset({"-", "–", "—", "[]", "{}", "()", '""'})  # alone on a line
BULLETS_MAX = 3  # of one line: "- 1. (a) …"
NONE_CHARS_MAX = 200  # a longer line says something
_NO_FACTS = re.compile(
    r"(?:there (?:is|are|was|were) |i (?:found|see|have) |contains? )?"
    r"(?:no|none|nothing|not any)"
    r"(?: (?:of|the|new|relevant|durable|lasting|useful|memorable|user))*"
    r"(?: (?:facts?|memor(?:y|ies)|information|items?|things?|statements?|preferences?|note))?"
    r"(?: (?:found|here|worth|was|were|are|is|to|be|been|found|remember(?:ed|ing)?|extract(?:ed)?"
    r"|record(?:ed)?|report(?:ed)?|add(?:ed)?|store[d]?|save[d]?|note[d]?|new|available|present"
    r"|in|this|the|conversation|transcript|session))*",
    re.IGNORECASE,
)


def parse_lines(text: str, piece: Piece, limits: Limits = DEFAULT_LIMITS) -> Draft:
    """The draft that some lines stand for. "None", however it is spelt, is an empty one."""
    if len(text) > limits.answer_chars_max:
        raise InvalidOutput(f"the answer has {len(text):,} characters; be far shorter")
    given = [line for each in cleaned(text).splitlines() if (line := _bare(each))]
    if not given:
        raise InvalidOutput("the answer is empty; answer one fact per line, or none")
    lines = [line for line in given if not is_none(line) and not line.endswith(":")]
    if not lines and any(is_none(line) for line in given):
        return Draft(upto=piece.upto)
    facts = merged(_facts(lines, piece, limits))
    if not facts:
        raise InvalidOutput("no line says anything the transcript says; answer none if that is so")
    return _draft(facts, piece)


def is_none(line: str) -> bool:
    """Whether a line says that there is nothing."""
    if len(line) > NONE_CHARS_MAX:
        return False
    bare = " ".join(line.casefold().strip(_EDGES).split())
    return bare in _NONE or line.strip() in _NONE_SIGNS or bool(bare and _NO_FACTS.fullmatch(bare))


def _bare(line: str) -> str:
    """A line without bullet, number and emphasis; headings, rules and code fences are no lines."""
    line = plain(line.lstrip().removeprefix("| "))  # small models repeat how they were shown it
    if line in _NONE_SIGNS:
        return line
    if line.startswith(("```", "#")) or not line.strip(_EDGES):
        return ""
    for _ in range(BULLETS_MAX):
        bullet = _BULLET.match(line)
        line = line[bullet.end() :] if bullet else line
    return _EMPHASIS.sub(r"\2", line)


def _facts(lines: Sequence[str], piece: Piece, limits: Limits) -> list[NewFact]:
    if len(lines) > limits.facts_max:
        raise InvalidOutput(f"there are {len(lines)} lines; give the {limits.facts_max} best")
    grounds = Grounds(piece)
    return [fact for line in lines if (fact := _fact(line, grounds, limits)) is not None]


def _fact(line: str, grounds: Grounds, limits: Limits) -> NewFact | None:
    kind = _KIND.match(line)
    content = line[kind.end() :] if kind else line
    if len(content) > limits.fact_chars_max:
        raise InvalidOutput(
            f"a line has {len(content):,} characters; a fact has at most {limits.fact_chars_max:,}"
        )
    block = grounds.best(content)
    if block is None:
        return None
    tag = FactTag(kind[1].lower()) if kind else FactTag.OBSERVATION
    trust = grounds.trust(content, (block,))
    return NewFact(
        content=content,
        seq=block.seq,
        seq_to=block.seq,
        valid_from=block.at,
        trust=trust,
        quote=lead_of(block),
        tags=(held_tag(tag, trust).value,),
    )


def _draft(facts: tuple[NewFact, ...], piece: Piece) -> Draft:
    """The texts that such a model does not write are made of the facts, after those there were."""
    before = piece.previous
    known = "" if before is None else before.raw_memory
    told = "" if before is None else before.rollout_summary
    new = [fact.content for fact in facts if fact.content not in known]
    return Draft(
        upto=piece.upto,
        raw_memory="\n".join([*([known] if known else []), *(f"- {content}" for content in new)]),
        rollout_summary="\n".join([*([told] if told else []), *map(_sentence, new)]),
        rollout_slug=None if before is None else before.rollout_slug,
        facts=facts,
    )


def _sentence(content: str) -> str:
    return content if content.endswith((".", "!", "?", "。")) else content + "."

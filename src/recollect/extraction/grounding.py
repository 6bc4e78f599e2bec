"""Decides whose word a statement is, from the blocks it cites and from where its words stand.

A model may name any record as its source. So a statement that names a person's record but takes
its words from a tool's answer is the tool's, whatever the model says. An order is a person's only
if one record of theirs says it; lines of the texts that a model writes are judged one by one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from recollect.extraction import scope
from recollect.extraction.piece import Block, BlockKind, Piece
from recollect.extraction.transcript import cleaned
from recollect.languages import language_of
from recollect.messages import Role
from recollect.quarantine import UnlabelledLine, orders_in, unlabelled, without_orders
from recollect.stemming import stem, words
from recollect.times import Facing, dates
from recollect.types.facts import FactTag, Trust

# What only a person can lay down. Said by anybody else it is something that was observed.
PERSONAL_TAGS = frozenset({FactTag.INSTRUCTION, FactTag.PREFERENCE, FactTag.DECISION, FactTag.GOAL})
COPIED_WORDS = 3  # telling ones in a row: they were copied
NAME_WORDS_MAX = 3
OWN_WORDS_SHARE = 4  # of an order, one word in so many may be a model's own

_RANK = {Trust.TOOL: 0, Trust.AGENT: 1, Trust.USER: 2}
_STEM_CHARS = 6
_WORD = re.compile(r"[^\W_]+")
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
# Words that say nothing about where a statement comes from.
_PLAIN = (
    "an and any are as at be been being but by can could did do does for from had has have he her "
    "his how if in into is it its may me might more most must my no not of on only or our she so "
    "some such than that the their them then there these they this those to too us was we were "
    "what when where which while who why will with would you your "
    "after also because before both during now other since until "
    "always never should user users person people prefer prefers preferred want wants wanted like "
    "likes liked need needs said says told asked asks use uses using used"
)
_PLAIN_WORDS = frozenset(_PLAIN.split())
# Words that only report an order.
_REPORTED = "explicitly instructed instructs instruction please remember requested requests rule"
_REPORTING = frozenset(_REPORTED.split())
# Names, hosts, paths, commands and numbers: they are said as they are, or not at all.
_VERBATIM = re.compile(
    r"`[^`\n]+`|[^\s`]*[\w~][./:@\\=_][^\s`]*\w|[^\s`]*\d[^\s`]*|(?<=[\w,] )(?!I\b)[A-Z][\w-]*"
)
_DAY = re.compile(r"\b\d{4}-\d\d(?:-\d\d)?\b")  # "from now on" as a model may have it
_EDGES = "`'\"“”‘’()[]{}<>*,;.!?:"
_MACHINE = re.compile(
    r"^(?:.*(?:assistant|agent|\bbot\b|gpt|\bai\b).*"
    r"|claude|gemini|copilot|siri|alexa|jarvis|system|model)$",
    re.IGNORECASE,
)
_FRONT = "---"
_FRAME = re.compile(r"\s*(?:#|[\w-]+:|$)")  # headings, and what is read by its key


def rank(trust: Trust) -> int:
    """How far a word is to be trusted: a person's furthest."""
    return _RANK[trust]


def block_trust(block: Block, *, is_background: bool) -> Trust:
    """Return the trust of a block. Where no person takes part, a program has the user's role."""
    match block.role:
        case Role.USER if block.kind is BlockKind.SAID:
            return Trust.AGENT if is_background else Trust.USER
        case Role.ASSISTANT | Role.NOTE if block.kind is not BlockKind.ATTACHMENT:
            return Trust.AGENT
        case _:
            return Trust.TOOL


def seated_people(piece: Piece) -> frozenset[str]:
    """People in the assistant's seat: named as people are, beside users with other names, and no
    tools are used."""
    if piece.is_background or any(
        block.kind in (BlockKind.CALL, BlockKind.RESULT) for block in piece.blocks
    ):
        return frozenset()
    said = [block for block in piece.blocks if block.kind is BlockKind.SAID]
    users = {block.speaker for block in said if block.role is Role.USER and block.speaker}
    others = {block.speaker for block in said if block.role is Role.ASSISTANT and block.speaker}
    agent = piece.session.agent_id.lower()
    return frozenset(
        name
        for name in others - users
        if users and name.lower() not in agent and _MACHINE.search(name) is None
    )


def held_tag(tag: FactTag, trust: Trust) -> FactTag:
    """The tag a statement may carry."""
    return FactTag.OBSERVATION if tag in PERSONAL_TAGS and trust is not Trust.USER else tag


def stems(text: str) -> frozenset[str]:
    """The telling words of a text, cut to what endings leave alone."""
    return frozenset(telling(text))


def telling(text: str) -> list[str]:
    """The same, in their order."""
    folded = text.casefold()
    if not folded.isascii():
        folded = unicodedata.normalize("NFKC", folded)
    words = _WORD.findall(folded)
    if _IDEOGRAPHS.search(folded):
        return [stem for word in words if word not in _PLAIN_WORDS for stem in _stems_of(word)]
    return [
        word[:_STEM_CHARS]
        for word in words
        if word not in _PLAIN_WORDS and (len(word) >= 2 or word.isdigit())
    ]


def _stems_of(word: str) -> Iterable[str]:
    if _IDEOGRAPHS.search(word):
        return (word[at : at + 2] for at in range(max(1, len(word) - 1)))
    return (word[:_STEM_CHARS],) if len(word) >= 2 or word.isdigit() else ()


def says(said: str, order: str) -> bool:
    """Whether a text says an order: every telling word of it, and every name as it is written."""
    return _has_names(said, order) and not unsaid(said, order)


def _has_names(said: str, order: str) -> bool:
    folded = said.casefold()
    names = (name.strip(_EDGES).casefold() for name in _VERBATIM.findall(_DAY.sub("", order)))
    return all(name in folded for name in names)


def unsaid(said: str, order: str) -> frozenset[str]:
    """The telling words of an order that a text does not have in any form."""
    has = stems(said)
    own = _WORD.findall(_DAY.sub("", order).casefold())
    missing = [word for word in own if not has.issuperset(stems(word))]
    if not missing:
        return frozenset()
    forms = {stem(word) for word in _WORD.findall(said.casefold())}
    return frozenset(word for word in missing if word not in _REPORTING and stem(word) not in forms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """Where words may have been taken from, and whose word a statement is that took them."""

    level: Trust
    stems: frozenset[str]
    spaced: str
    is_foreign: bool  # not of the conversation: from a tool, from memory, from a name

    @classmethod
    def of(cls, text: str, level: Trust) -> _Origin:
        """Of something beside the conversation."""
        found = telling(cleaned(text))
        return cls(level=level, stems=frozenset(found), spaced=_spaced(found), is_foreign=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """What a statement says, beside what may be said by those it cites."""

    own: frozenset[str]
    backed: int  # of its words stand in what it cites
    rest: frozenset[str]  # nobody who is trusted as far said these
    new_rows: tuple[str, ...]  # of words that they did not use so
    rest_rows: tuple[str, ...]  # of words that they did not use at all

    def is_taken_from(self, origin: _Origin) -> bool:
        """Whether it takes more from something it could not cite than from what it cites.

        An assistant puts people's words in others all the time: what it said has to outweigh them,
        or to be copied in a row of words that are all its own. Of anything else as much is enough,
        and so is any row of words that people did not use so.
        """
        taken = len(self.rest & origin.stems)
        if taken > self.backed or (origin.is_foreign and 1 < taken == self.backed):
            return True
        if len(self.own & origin.stems) < 2:
            return False
        rows = self.new_rows if origin.is_foreign else self.rest_rows
        return any(row in origin.spaced for row in rows)


class Grounds:
    """The blocks of a piece as grounds for statements. Made once per answer of a model."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece

    def cited(self, seqs: Iterable[int]) -> tuple[Block, ...]:
        """The blocks of some records, in the order of the session."""
        return tuple(block for seq in sorted(set(seqs)) for block in self._by_seq.get(seq, ()))

    @cached_property
    def seqs(self) -> frozenset[int]:
        return frozenset(self._by_seq)

    def trust(self, content: str, cited: Sequence[Block], quoted: Sequence[Block] = ()) -> Trust:
        """The trust of the record that holds the words, or of what they were taken from instead.

        That is the one that is quoted, else the one that has most of them. What else is cited bears
        it out if it is trusted as far.
        """
        worded = [block for block in cited if block.kind is not BlockKind.ATTACHMENT] or cited
        holder = self.best(content, quoted or worded)
        named = min(map(self._level, [holder] if holder else quoted or worded), key=rank)
        if named is Trust.TOOL:
            return named
        backing = [block for block in worded if rank(self._level(block)) >= rank(named)]
        claim = self._claim(content, backing, named)
        for level in (Trust.TOOL, Trust.AGENT):
            if rank(level) >= rank(named):
                break
            if any(claim.is_taken_from(each) for each in self._origins if each.level is level):
                return level
        if named is Trust.USER and (not claim.backed or claim.rest & self._tools_alone):
            return Trust.AGENT
        if named is Trust.USER and not all(map(self._is_of_one, orders_in(content))):
            return Trust.AGENT
        return named

    def held_tag(self, tag: FactTag, trust: Trust, cited: Sequence[Block]) -> FactTag:
        """The tag a statement may carry; whoever has the assistant's seat instructs nobody."""
        is_told = any(block.role is not Role.ASSISTANT for block in cited)
        return held_tag(tag, trust if is_told or tag is not FactTag.INSTRUCTION else Trust.AGENT)

    def told(self, text: str) -> str:
        """A text that a model wrote, as it may be stored.

        Its labels go, and with them every order that no record of a person says; what was taken
        from a tool is labelled as a tool's.
        """
        front, body = _parted(text)
        told = (
            without_orders(part, self._is_persons, write)
            for part, write in ((front, _unlabelled), (body, self._labelled))
        )
        return "\n".join(part for part in told if part)

    def _is_persons(self, order: str) -> bool:
        return words(order) in self._kept or any(says(each, order) for each in self._persons)

    @cached_property
    def _kept(self) -> frozenset[str]:
        """The orders in what the session came to before: they were judged when it was stored."""
        before = self._piece.previous
        texts = () if before is None else (before.raw_memory, before.rollout_summary)
        lines = (unlabelled(line).text for text in texts for line in text.splitlines())
        return frozenset(words(order) for line in lines for order in orders_in(line))

    def _labelled(self, line: UnlabelledLine) -> str:
        if _FRAME.match(line.text):
            return line.text
        own, block = stems(line.text), self.best(line.text)
        shared = frozenset[str]()
        if block is not None and self._level(block) is Trust.TOOL:
            shared = own & self._stems_of_block(block)
        if block is not None and len(shared) > 1 and 2 * len(shared) > len(own):
            return f"{line.text} [#{block.seq}, {Trust.TOOL.value}]"
        return f"{line.text} [{Trust.TOOL.value}]" if line.is_tools else line.text

    def _is_of_one(self, order: str) -> bool:
        """Whether one record of a person says an order; some words may be the model's own.

        A name, or a word that stands in another record, was put in from there.
        """
        share = len(stems(order)) // OWN_WORDS_SHARE
        for said in self._persons:
            missing = unsaid(said, order)
            if len(missing) > share or not _has_names(said, order):
                continue
            if not stems(" ".join(missing)) & self._everywhere:
                return True
        return False

    @cached_property
    def _persons(self) -> list[str]:
        """What a person said in each record. Which project it was said in is clear.

        Nobody in the assistant's seat gives orders: an agent may have a person's name.
        """
        place = scope.named(scope.place_of(self._piece.session.project))
        return [
            f"{block.text}\n{place}"
            for block in self._piece.blocks
            if block.role is Role.USER and self._level(block) is Trust.USER
        ]

    @cached_property
    def _everywhere(self) -> frozenset[str]:
        """All words that a model was shown."""
        shown = (each.stems for each in self._origins)
        return frozenset[str]().union(self._said[Trust.USER][0], *shown)

    def _claim(self, content: str, cited: Sequence[Block], named: Trust) -> _Claim:
        words = telling(content)
        own = frozenset(words)
        said, spoken = self._said[named]
        rest = own - said
        rest = rest - _dated(content, cited) if rest else rest
        rows = [words[at : at + COPIED_WORDS] for at in range(len(words) - COPIED_WORDS + 1)]
        spaced = [(row, _spaced(row)) for row in rows]
        return _Claim(
            own=own,
            backed=len(own & frozenset[str]().union(*map(self._stems_of_block, cited))),
            rest=rest,
            new_rows=tuple(row for _, row in spaced if row not in spoken),
            rest_rows=tuple(row for parts, row in spaced if rest.issuperset(parts)),
        )

    def best(self, content: str, blocks: Sequence[Block] | None = None) -> Block | None:
        """The block that shares most words with a statement; among equals a person's, the first."""
        own = stems(content)
        best, best_score = None, (0, 0)
        for block in self._piece.blocks if blocks is None else blocks:
            shared = len(own & self._stems_of_block(block))
            score = (shared, rank(self._level(block)))
            if shared and score > best_score:
                best, best_score = block, score
        return best

    @cached_property
    def _by_seq(self) -> dict[int, list[Block]]:
        found: dict[int, list[Block]] = {}
        for block in self._piece.blocks:
            found.setdefault(block.seq, []).append(block)
        return found

    def _level(self, block: Block) -> Trust:
        return self._levels[id(block)]

    @cached_property
    def _levels(self) -> dict[int, Trust]:
        is_background, seated = self._piece.is_background, seated_people(self._piece)
        return {
            id(block): Trust.USER
            if block.speaker in seated and block.kind is BlockKind.SAID
            else block_trust(block, is_background=is_background)
            for block in self._piece.blocks
        }

    @cached_property
    def _origins(self) -> tuple[_Origin, ...]:
        """All that a model was shown, apart from what people said."""
        return tuple(self._each_origin())

    def _each_origin(self) -> Iterator[_Origin]:
        piece = self._piece
        for block in piece.blocks:
            if (level := self._level(block)) is not Trust.USER:
                yield _Origin(
                    level=level,
                    stems=self._stems_of_block(block),
                    spaced=self._words[id(block)][1],
                    is_foreign=level is Trust.TOOL or block.role is Role.NOTE,
                )
        tools = {block.tool for block in piece.blocks if block.tool is not None}
        speakers = {block.speaker for block in piece.blocks if block.speaker is not None}
        for name in (*tools, *(each for each in speakers if not _is_name(each))):
            yield _Origin.of(name, Trust.TOOL)
        for fact in piece.known:
            if fact.trust is not Trust.USER:
                yield _Origin.of(fact.content, fact.trust)
        before = piece.previous
        memory: tuple[str, ...] = ()
        if before is not None:
            memory = before.raw_memory, before.rollout_summary
        if seated_people(piece):  # nobody else has spoken
            lines = [line for text in memory for line in text.splitlines()]
            memory = tuple(line for line in lines if unlabelled(line).is_tools)
        for text in (*memory, piece.session.project):
            if text:
                yield _Origin.of(text, Trust.AGENT)

    @cached_property
    def _tools_alone(self) -> frozenset[str]:
        """The words that tools put in and nobody else has taken up; a small number is anybody's."""
        tools = (origin.stems for origin in self._origins if origin.level is Trust.TOOL)
        words = frozenset[str]().union(*tools) - self._said[Trust.AGENT][0]
        return frozenset(word for word in words if not (word.isdigit() and len(word) < 3))

    @cached_property
    def _said(self) -> dict[Trust, tuple[frozenset[str], str]]:
        """The words of all who are trusted as far or further, and how they stand."""
        found = {}
        for named in (Trust.AGENT, Trust.USER):
            blocks = [b for b in self._piece.blocks if rank(self._level(b)) >= rank(named)]
            speakers = {block.speaker for block in blocks if block.speaker is not None}
            names = (stems(speaker) for speaker in speakers if _is_name(speaker))
            words = frozenset[str]().union(*map(self._stems_of_block, blocks), *names)
            found[named] = words, "\n".join(self._words[id(block)][1] for block in blocks)
        return found

    def _stems_of_block(self, block: Block) -> frozenset[str]:
        return self._words[id(block)][0]

    @cached_property
    def _words(self) -> dict[int, tuple[frozenset[str], str]]:
        """The words of every block, and how they stand."""
        found = {}
        for block in self._piece.blocks:
            words = telling(block.text)
            found[id(block)] = frozenset(words), _spaced(words)
        return found


def _dated(content: str, cited: Sequence[Block]) -> frozenset[str]:
    """The words of dates: a model is told to write them in full, whoever said "yesterday"."""
    said_on = cited[-1].at.date() if cited else date.min
    named = dates(content, said_on, Facing.EITHER, language_of(content))
    return stems(" ".join(content[each.start : each.stop] for each in named))


def _unlabelled(line: UnlabelledLine) -> str:
    return line.text


def _parted(text: str) -> tuple[str, str]:
    """The head of a memory, which is read by its keys, and the rest."""
    lines = text.splitlines()
    if not lines or lines[0] != _FRONT or _FRONT not in lines[1:]:
        return "", text
    end = lines.index(_FRONT, 1) + 1
    return "\n".join(lines[:end]), "\n".join(lines[end:])


def _is_name(speaker: str) -> bool:
    """Whether somebody's name is one, and not a sentence in its place."""
    return len(speaker.split()) <= NAME_WORDS_MAX


def _spaced(found: Sequence[str]) -> str:
    return f" {' '.join(found)} "

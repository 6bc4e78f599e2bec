"""The extractor without a model: what people said, what the tools did, and the texts about it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from recollect.extraction.piece import Piece
from recollect.extraction.rules.actions import Ending, ToolReader
from recollect.extraction.rules.changes import Changes, settled
from recollect.extraction.rules.conversation import Conversation
from recollect.extraction.rules.lessons import Teacher
from recollect.extraction.rules.rulebook import load
from recollect.extraction.rules.statements import Listener
from recollect.extraction.rules.texts import TextWriter, Told
from recollect.extraction.withheld import is_withheld
from recollect.knowledge import Draft, Fact, NewFact, Trust, content_key, names_what_ends

THRESHOLD = 0.5  # below it a sentence is as likely as not of no use to anybody
FACTS_PER_BLOCK_MAX = 6


class RuleExtractor:
    """Makes a draft of a piece by rules, always of the whole of it.

    Keeps nothing between two pieces, so that threads may share one.
    """

    name = "rules/3"

    def __init__(self, *, threshold: float = THRESHOLD) -> None:
        self._threshold = threshold
        self._listener = functools.cache(self._made_listener)
        self._changes = functools.cache(lambda language: Changes(load(language)))

    def extract(self, piece: Piece) -> Draft:
        rules = self._rules
        heard = [fact for fact in rules.conversation.facts(piece) if not is_withheld(fact)]
        said = settled(heard, piece.known, self._changes)
        actions = tuple(rules.tools.actions(piece.blocks, piece.session.project))
        done = rules.teacher.facts(actions, piece.session.project) if actions else []
        facts = tuple(_superseding(_each_once([*said, *done]), piece.known))
        told = Told(piece=piece, facts=facts, actions=actions)
        if not facts and not told.files and not rules.did_as_asked(told):
            return Draft(upto=piece.upto)
        texts = rules.writer.write(told)
        return Draft(
            upto=piece.upto,
            raw_memory=texts.raw_memory,
            rollout_summary=texts.rollout_summary,
            rollout_slug=texts.rollout_slug,
            facts=facts,
        )

    def _made_listener(self, language: str) -> Listener:
        return Listener(load(language), self._threshold, FACTS_PER_BLOCK_MAX)

    @cached_property
    def _rules(self) -> _Rules:
        book = load()
        tools = ToolReader(book)
        return _Rules(
            conversation=Conversation(book, self._listener),
            tools=tools,
            teacher=Teacher(book, tools),
            writer=TextWriter(book),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What an extractor works with, made when it is first used."""

    conversation: Conversation
    tools: ToolReader
    teacher: Teacher
    writer: TextWriter

    def did_as_asked(self, told: Told) -> bool:
        """Whether a person asked for something and commands did something about it."""
        piece = told.piece
        is_asked = not piece.is_background and bool(self.writer.asked(piece.blocks))
        return is_asked and Ending.PASSED in told.commands.values()


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

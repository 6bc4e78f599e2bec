"""Follows the talk of a session: who speaks with whom, what answers what, what was agreed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from recollect.extraction.grounding import block_trust, held_tag, seated_people
from recollect.extraction.piece import Block, BlockKind, Piece
from recollect.extraction.rules.rulebook import Rulebook
from recollect.extraction.rules.sentences import sentences
from recollect.extraction.rules.statements import Listener
from recollect.extraction.rules.weighing import Setting
from recollect.extraction.rules.wording import QUOTE_CHARS_MAX, Hearing
from recollect.extraction.scope import in_project, named, place_of
from recollect.languages import language_of
from recollect.messages import Role
from recollect.types.facts import FactTag, NewFact, Trust

PAUSE = timedelta(hours=6)  # after which a question is no longer being answered
_QUESTION_CHARS_MAX = 120
_ADOPTED_CONFIDENCE = 0.6
_ADOPTED_WORDS_MIN = 6
_PROPOSAL_CHARS_MAX = 1000  # from the end of what was said: a proposal stands last
_REPLY_CHARS_MAX = 80
_CHOICE_WORDS_MIN, _CHOICE_WORDS_MAX = 4, 40
_FIRST_WORDS = re.compile(
    r"(?:the |use |rather |let's (?:use|take) )?([\w.+-]+(?: \w+)?)\b"
    r"(?=[,.;:]|\s+(?:then|please)\b)"
)
_TYPED_CHARS_MAX = 1500  # by hand, in one go


class Conversation:
    """The blocks of a piece as talk."""

    def __init__(self, book: Rulebook, listeners: Callable[[str], Listener]) -> None:
        self._book = book
        self._listeners = listeners

    def facts(self, piece: Piece) -> list[NewFact]:
        """What people said, and what they agreed to, in order."""
        if piece.session.parent is not None:
            return []  # an agent's prompt to its own helper: what it was told itself is elsewhere
        seated = seated_people(piece)
        room, shown = _room(piece, seated), _shown(piece.blocks)
        found: list[NewFact] = []
        before: Block | None = None
        language, is_playing = self._book.language, False
        last: dict[str | None, Block] = {}  # that each has said
        for block in (each for each in piece.blocks if each.kind is BlockKind.SAID):
            is_seated = block.role is Role.ASSISTANT and block.speaker in seated
            if block.role is Role.USER or is_seated:
                is_near = before is not None and block.at - before.at < PAUSE
                hearing = replace(
                    room,
                    trust=block_trust(block, is_background=piece.is_background),
                    is_person=not piece.is_background,
                    question=_question(before, block) if is_near and before else "",
                    attachment=shown.get(block.seq, ""),
                    opens=not is_near,
                    is_pasted=len(block.text) > _TYPED_CHARS_MAX,
                )
                language = language_of(block.text, language)
                listener = self._listeners(language)
                own, is_playing = _outside(
                    listener, block, hearing, is_playing=is_playing and is_near
                )
                earlier = last.get(block.speaker)
                if earlier and listener.own.takes_back(own.text):
                    found = [fact for fact in found if fact.seq_to != earlier.seq]
                if is_near and before and own.text and not piece.is_background:
                    found += self._adopted(before, own, hearing)
                    found += self._chosen(before, own, hearing)
                found += listener.hear(own, hearing, earlier if is_near else None)
                last[block.speaker] = own
            before = block
        return found

    def _adopted(self, before: Block, reply: Block, hearing: Hearing) -> Iterator[NewFact]:
        """An agent's proposal that a person said yes to; a proposal alone is nothing."""
        if before.role is not Role.ASSISTANT:
            return
        if len(reply.text) > _REPLY_CHARS_MAX or "?" in reply.text:
            return
        if not self._book.phrase("affirms").search(reply.text):
            return
        proposes = self._book.phrase("proposes_at_work" if hearing.is_work else "proposes")
        said = list(sentences(before.text[-_PROPOSAL_CHARS_MAX:]))
        if len(before.text) > _PROPOSAL_CHARS_MAX:
            del said[0]  # most likely the end of one
        proposed = [each for each in said if "?" not in each and proposes.search(each)]
        if not proposed or len(proposed[-1].split()) < _ADOPTED_WORDS_MIN:
            return
        text = _cut(proposed[-1], QUOTE_CHARS_MAX)
        templates, place = self._book.templates, hearing.place
        content = templates["adopted_in" if place else "adopted"].format(
            who=reply.speaker or templates["person"],
            text=" ".join(text.split()) + ("" if text == proposed[-1] else " …"),
            project=named(place),
        )
        yield _agreed("adopted", content, text, before, reply, place)

    def _chosen(self, before: Block, reply: Block, hearing: Hearing) -> Iterator[NewFact]:
        """One of the ways that an agent offered at work, and that a person took and said why."""
        if before.role is not Role.ASSISTANT or not hearing.is_work or "?" in reply.text:
            return
        text = " ".join(reply.text.split())
        if not _CHOICE_WORDS_MIN <= len(text.split()) <= _CHOICE_WORDS_MAX:
            return
        offered = self._book.phrase("offers").search(before.text[-_PROPOSAL_CHARS_MAX:])
        first = _FIRST_WORDS.match(text.lower())
        if offered is None or first is None:
            return
        offer = " ".join(offered[0].split())
        if len(offer) > _QUESTION_CHARS_MAX or first[1] not in offer.lower().split(" ", 1)[-1]:
            return
        templates, place = self._book.templates, hearing.place
        told = templates["answer"].format(
            who=reply.speaker or templates["person"], question=offer, text=text
        )
        content = templates["placed"].format(project=named(place), text=told)
        yield _agreed("chosen", content, _cut(text, QUOTE_CHARS_MAX), before, reply, place)


def _agreed(
    rule: str, content: str, quote: str, before: Block, reply: Block, place: str
) -> NewFact:
    """What an agent said and a person agreed to: it is told in the agent's words."""
    return NewFact(
        content=content,
        seq=before.seq,
        seq_to=reply.seq,
        valid_from=reply.at,
        trust=Trust.AGENT,
        quote=quote,
        tags=(held_tag(FactTag.DECISION, Trust.AGENT).value, "agreed"),
        metadata={"confidence": _ADOPTED_CONFIDENCE, "rule": rule, **in_project(place)},
    )


def _outside(
    listener: Listener, block: Block, hearing: Hearing, *, is_playing: bool
) -> tuple[Block, bool]:
    """What of a block is not played, and whether a role play goes on behind it."""
    if hearing.is_work:
        return block, False  # there it is something that is built
    text, goes_on = listener.own.unplayed(block.text, is_playing=is_playing)
    return (block if text == block.text else replace(block, text=text)), goes_on


def _room(piece: Piece, seated: frozenset[str]) -> Hearing:
    """Who talks with whom and where, the same for all blocks of a piece."""
    setting, names = _setting(piece.blocks, seated)
    place = place_of(piece.session.project)
    is_work = setting is Setting.AGENT and _is_work(place, piece.blocks)
    return Hearing(setting=setting, names=names, place=place, is_work=is_work)


def _shown(blocks: Sequence[Block]) -> dict[int, str]:
    """What people attached, by record."""
    return {
        block.seq: block.text
        for block in blocks
        if block.kind is BlockKind.ATTACHMENT and block.role is Role.USER
    }


def _is_work(place: str, blocks: Sequence[Block]) -> bool:
    """Whether a project is worked on: it is a directory, or tools are used in it."""
    is_directory = "/" in place or "\\" in place
    return is_directory or (bool(place) and any(block.kind is BlockKind.CALL for block in blocks))


def _setting(blocks: Sequence[Block], seated: frozenset[str]) -> tuple[Setting, frozenset[str]]:
    """Several people with names talk to each other, or people talk to an agent."""
    said = [block for block in blocks if block.kind is BlockKind.SAID]
    speakers = {block.speaker for block in said if block.speaker and block.role is Role.USER}
    speakers |= seated
    names = frozenset(part for speaker in speakers for part in speaker.lower().split())
    has_agent = any(block.role is Role.ASSISTANT and block.speaker not in seated for block in said)
    return (Setting.PEOPLE if len(speakers) > 1 and not has_agent else Setting.AGENT), names


def _question(before: Block, block: Block) -> str:
    """What a person has just been asked by another person, the last question of it."""
    is_other = before.speaker not in (None, block.speaker)
    text = before.text.rstrip()
    if not is_other or not text.endswith("?"):
        return ""
    asked = [sentence for sentence in sentences(text[-400:]) if sentence.endswith("?")]
    return asked[-1] if asked and len(asked[-1]) <= _QUESTION_CHARS_MAX else ""


def _cut(text: str, chars_max: int) -> str:
    """A sentence, or as many whole words of it as there is room for."""
    return (
        text if len(text) <= chars_max else text[: chars_max + 1].rpartition(" ")[0].rstrip(",;:")
    )

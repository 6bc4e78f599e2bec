"""Follows the talk of a session: who speaks with whom, what answers what, what was agreed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from recollect.extraction.grounding import block_trust, held_tag
from recollect.extraction.piece import Block, BlockKind, Piece
from recollect.extraction.rules.cues import Setting
from recollect.extraction.rules.rulebook import Rulebook
from recollect.extraction.rules.sentences import sentences
from recollect.extraction.rules.statements import Listener
from recollect.extraction.rules.wording import QUOTE_CHARS_MAX, Hearing
from recollect.extraction.scope import in_project, named, place_of
from recollect.knowledge import FactTag, NewFact, Trust
from recollect.messages import Role

PAUSE = timedelta(hours=6)  # after which a question is no longer being answered
_QUESTION_CHARS_MAX = 120
_ADOPTED_CONFIDENCE = 0.6
_ADOPTED_WORDS_MIN = 6
_REPLY_CHARS_MAX = 80
_TYPED_CHARS_MAX = 1500  # by hand, in one go


class Conversation:
    """The blocks of a piece as talk."""

    def __init__(self, book: Rulebook, listener: Listener) -> None:
        self._book = book
        self._listener = listener

    def facts(self, piece: Piece) -> Iterator[NewFact]:
        """What people said, and what they agreed to, in order."""
        if piece.session.parent is not None:
            return  # an agent's prompt to its own helper: what it was told itself is elsewhere
        blocks, is_background = piece.blocks, piece.is_background
        setting, names = _setting(blocks)
        place = place_of(piece.session.project)
        is_work = setting is Setting.AGENT and _is_work(place, blocks)
        shown = {
            block.seq: block.text
            for block in blocks
            if block.kind is BlockKind.ATTACHMENT and block.role is Role.USER
        }
        before: Block | None = None
        for block in blocks:
            if block.kind is not BlockKind.SAID:
                continue
            if block.role is Role.USER:
                is_near = before is not None and block.at - before.at < PAUSE
                hearing = Hearing(
                    setting=setting,
                    names=names,
                    trust=block_trust(block, is_background=is_background),
                    question=_question(before, block) if is_near and before else "",
                    attachment=shown.get(block.seq, ""),
                    opens=not is_near,
                    place=place,
                    is_work=is_work,
                    is_pasted=len(block.text) > _TYPED_CHARS_MAX,
                )
                if is_near and before and not is_background:
                    yield from self._adopted(before, block, hearing)
                yield from self._listener.hear(block, hearing)
            before = block

    def _adopted(self, before: Block, reply: Block, hearing: Hearing) -> Iterator[NewFact]:
        """An agent's proposal that a person said yes to; a proposal alone is nothing."""
        if before.role is not Role.ASSISTANT:
            return
        if len(reply.text) > _REPLY_CHARS_MAX or "?" in reply.text:
            return
        if not self._book.phrase("affirms").search(reply.text):
            return
        proposes = self._book.phrase("proposes_at_work" if hearing.is_work else "proposes")
        proposed = [each for each in sentences(before.text[-1000:]) if proposes.search(each)]
        if not proposed or len(proposed[-1].split()) < _ADOPTED_WORDS_MIN:
            return
        text = proposed[-1][:QUOTE_CHARS_MAX]
        who = reply.speaker or self._book.templates["person"]
        templates, place = self._book.templates, hearing.place
        name = "adopted_in" if place else "adopted"
        yield NewFact(
            content=templates[name].format(who=who, text=text, project=named(place)),
            seq=before.seq,
            seq_to=reply.seq,
            valid_from=reply.at,
            trust=Trust.AGENT,
            quote=text,
            tags=(held_tag(FactTag.DECISION, Trust.AGENT).value, "agreed"),
            metadata={
                "confidence": _ADOPTED_CONFIDENCE,
                "rule": "adopted",
                **in_project(place),
            },
        )


def _is_work(place: str, blocks: Sequence[Block]) -> bool:
    """Whether a project is worked on: it is a directory, or tools are used in it."""
    is_directory = "/" in place or "\\" in place
    return is_directory or (bool(place) and any(block.kind is BlockKind.CALL for block in blocks))


def _setting(blocks: Sequence[Block]) -> tuple[Setting, frozenset[str]]:
    """Several people with names talk to each other, or people talk to an agent."""
    said = [block for block in blocks if block.kind is BlockKind.SAID]
    speakers = {block.speaker for block in said if block.speaker and block.role is Role.USER}
    names = frozenset(part for speaker in speakers for part in speaker.lower().split())
    has_agent = any(block.role is Role.ASSISTANT for block in said)
    return (Setting.PEOPLE if len(speakers) > 1 and not has_agent else Setting.AGENT), names


def _question(before: Block, block: Block) -> str:
    """What a person has just been asked by another person, the last question of it."""
    is_other = before.role is Role.USER and before.speaker not in (None, block.speaker)
    text = before.text.rstrip()
    if not is_other or not text.endswith("?"):
        return ""
    asked = [sentence for sentence in sentences(text[-400:]) if sentence.endswith("?")]
    return asked[-1] if asked and len(asked[-1]) <= _QUESTION_CHARS_MAX else ""

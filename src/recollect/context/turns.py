"""Finds which parts of a history belong together, and where it may be cut.

A turn begins where a user speaks; several records of the user in a row are one beginning. A call
and its results are one step, however late a result comes. A cut is made where a turn begins and
never inside a step.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from recollect.domain import Record
from recollect.errors import InvalidMessage
from recollect.messages import (
    Attachment,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

_USABLE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Words of one speaker and the calls made with them, of the record at that position."""

    position: int
    role: Role
    name: str | None = None
    parts: tuple[Text | Attachment, ...] = ()
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a tool answered, in the record at that position."""

    position: int
    result: ToolResult
    name: str | None = None
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is shown or left out together.

    Words with the answers to their calls, in the order of the calls (none: no answer was recorded),
    or a lone answer whose call is gone. `call_ids` are the ids to show: unique in the history, and
    such that every provider takes them.
    """

    said: Said | None
    answers: tuple[Answered | None, ...] = ()
    call_ids: tuple[str, ...] = ()

    @property
    def is_users(self) -> bool:
        return self.said is not None and self.said.role is Role.USER

    @property
    def positions(self) -> tuple[int, ...]:
        """The records it stems from."""
        said = () if self.said is None else (self.said.position,)
        return (*said, *(answer.position for answer in self.answers if answer is not None))


def steps(records: Sequence[Record]) -> tuple[Step, ...]:
    """The steps of a history, in order; a late answer stands with its call."""
    pairing = _Pairing()
    for position, record in enumerate(records):
        for piece in _pieces(record, position):
            match piece:
                case Said():
                    pairing.speak(piece, record.seq)
                case Answered():
                    pairing.answer(piece)
                case _:
                    assert_never(piece)
    return tuple(pairing.steps())


def cuts(records: Sequence[Record]) -> tuple[int, ...]:
    """The positions at which a history may begin so that nothing is torn apart, lowest first.

    Where no user speaks at all there are no turns, and any place between two steps will do.
    """
    roles = [record.role for record in records]
    parted = _parted(records)
    if Role.USER not in roles:
        return tuple(
            at for at, role in enumerate(roles) if at not in parted and role is not Role.TOOL
        )
    return tuple(
        at
        for at, role in enumerate(roles)
        if role is Role.USER and at not in parted and (at == 0 or roles[at - 1] is not Role.USER)
    )


def _parted(records: Sequence[Record]) -> set[int]:
    """The positions at which a cut would part a call from its answer."""
    last_of: dict[int, int] = {}
    for step in steps(records):
        if len(step.positions) > 1:
            first, last = step.positions[0], max(step.positions)
            last_of[first] = max(last, last_of.get(first, 0))
    parted: set[int] = set()
    reached = 0
    for first, last in sorted(last_of.items()):
        parted.update(range(max(first, reached) + 1, last + 1))
        reached = max(reached, last)
    return parted


def _pieces(record: Record, position: int) -> list[Said | Answered]:
    """A record as what was said and what tools answered, in order; reasoning is left out."""
    if record.body is None and record.role is not Role.TOOL:  # mostly: words, and nothing else
        return [_said(record, position, (Text(record.content),))]
    found: list[Said | Answered] = []
    words: list[Text | Attachment] = []
    calls: list[ToolCall] = []

    def finish() -> None:
        if words or calls:
            found.append(_said(record, position, tuple(words), tuple(calls)))
            words.clear()
            calls.clear()

    for part in _parts(record):
        match part:
            case ToolCall() if record.role is Role.ASSISTANT:
                calls.append(part)
            case Attachment() if not (words or calls) and found:
                answer = found[-1]  # what comes after an answer is the tool's
                assert isinstance(answer, Answered)
                found[-1] = replace(answer, attachments=(*answer.attachments, part))
            case Text() | Attachment():
                words.append(part)
            case ToolResult():
                finish()
                found.append(Answered(position=position, result=part, name=record.name))
            case Reasoning() | Opaque() | ToolCall():
                pass  # nobody else can call a tool
            case _:
                assert_never(part)
    finish()
    if not found and record.role is Role.USER:
        return [_said(record, position)]
    return found


def _said(
    record: Record,
    position: int,
    words: tuple[Text | Attachment, ...] = (),
    calls: tuple[ToolCall, ...] = (),
) -> Said:
    return Said(position=position, role=record.role, name=record.name, parts=words, calls=calls)


def tool_calls(record: Record) -> tuple[ToolCall, ...]:
    return tuple(part for part in _parts(record) if isinstance(part, ToolCall))


def _parts(record: Record) -> tuple[Part, ...]:
    if record.body is None and record.role is not Role.TOOL:
        return (Text(record.content),)
    try:
        return record.parts
    except InvalidMessage:  # stored by a version that could read it: its words are still there
        return (Text(record.content),)


@dataclass(slots=True)
class _Open:
    """The calls of one step that wait for an answer, first come first served."""

    step: int
    calls: deque[int]


@dataclass(slots=True)
class _Pairing:
    """One pass over a history that brings calls and answers together.

    Ids come again: some servers count from 1 in every answer. So an answer belongs to the newest
    step that has an open call of its id, and there to the first of them. An answer without an id
    belongs to the newest step of the turn that waits for one.
    """

    said: list[Said | None] = field(default_factory=list)
    answers: list[list[Answered | None]] = field(default_factory=list)
    call_ids: list[tuple[str, ...]] = field(default_factory=list)
    by_id: dict[str | None, list[_Open]] = field(default_factory=dict)
    of_turn: list[_Open] = field(default_factory=list)
    taken_ids: set[str] = field(default_factory=set)
    made_ids: Counter[int] = field(default_factory=Counter)

    def speak(self, said: Said, seq: int) -> None:
        if said.role is Role.USER:
            self.of_turn = []
        self.said.append(said)
        self.answers.append([None] * len(said.calls))
        if said.calls:
            self._open(said.calls, len(self.said) - 1)
            self.call_ids.append(tuple(self._shown_id(call, seq) for call in said.calls))
        else:
            self.call_ids.append(())

    def _open(self, calls: Sequence[ToolCall], step: int) -> None:
        for number, call in enumerate(calls):
            opened = self.by_id.setdefault(call.id, [])
            if not opened or opened[-1].step != step:
                opened.append(_Open(step, deque()))
            opened[-1].calls.append(number)
        self.of_turn.append(_Open(step, deque(range(len(calls)))))

    def answer(self, answered: Answered) -> None:
        call_id = answered.result.call_id
        place = self._first_open(self.by_id.get(call_id, []))
        if place is None and call_id is None:
            place = self._first_open(self.of_turn)
        if place is None:
            self.said.append(None)
            self.answers.append([answered])
            self.call_ids.append(())
            return
        step, number = place
        self.answers[step][number] = answered

    def steps(self) -> Iterator[Step]:
        for said, answers, call_ids in zip(self.said, self.answers, self.call_ids, strict=True):
            yield Step(said=said, answers=tuple(answers), call_ids=call_ids)

    def _first_open(self, opened: list[_Open]) -> tuple[int, int] | None:
        """The first open call of the newest step that has one; what was answered is let go."""
        while opened:
            newest = opened[-1]
            while newest.calls:
                number = newest.calls.popleft()
                if self.answers[newest.step][number] is None:
                    return newest.step, number
            opened.pop()
        return None

    def _shown_id(self, call: ToolCall, seq: int) -> str:
        shown = call.id or ""
        while _USABLE_ID.fullmatch(shown) is None or shown in self.taken_ids:
            self.made_ids[seq] += 1
            shown = f"call_{seq}_{self.made_ids[seq]}"
        self.taken_ids.add(shown)
        return shown

"""Finds which parts of a history belong together, and where it may be cut.

A turn begins where a user speaks; several records of the user in a row are one beginning. A call
and its results are one step, however late a result comes. A cut is made where a turn begins and
never inside a step.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from recollect.errors import InvalidMessage
from recollect.extraction.transcript import (
    Redact,
    attachment_line,
    cleaned,
    decoded,
    each_text,
    fenced,
    quoted,
)
from recollect.messages import Attachment, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from recollect.models.protocol import ChatMessage, ChatRole
from recollect.types.records import Record

_USABLE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """Words of one speaker and the calls made with them, of the record at that position."""

    position: int
    role: Role
    name: str | None = None
    parts: tuple[Text | Attachment, ...] = ()
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCall:
    """What a tool answered, in the record at that position."""

    position: int
    result: ToolResult
    name: str | None = None
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """What is shown or left out together.

    Words with the answers to their calls, in the order of the calls (none: no answer was recorded),
    or a lone answer whose call is gone. `call_ids` are the ids to show: unique in the history, and
    such that every provider takes them.
    """

    said: Utterance | None
    answers: tuple[AnsweredCall | None, ...] = ()
    call_ids: tuple[str, ...] = ()

    @property
    def is_users(self) -> bool:
        return self.said is not None and self.said.role is Role.USER

    @property
    def positions(self) -> tuple[int, ...]:
        """The records it stems from."""
        said = () if self.said is None else (self.said.position,)
        return (*said, *(answer.position for answer in self.answers if answer is not None))


def steps(records: Sequence[Record]) -> tuple[ShownStep, ...]:
    """The steps of a history, in order; a late answer stands with its call."""
    pairing = _Pairing()
    for position, record in enumerate(records):
        for piece in _pieces(record, position):
            match piece:
                case Utterance():
                    pairing.speak(piece, record.seq)
                case AnsweredCall():
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


def _pieces(record: Record, position: int) -> list[Utterance | AnsweredCall]:
    """A record as what was said and what tools answered, in order; reasoning is left out."""
    if record.body is None and record.role is not Role.TOOL:  # mostly: words, and nothing else
        return [_said(record, position, (Text(record.content),))]
    found: list[Utterance | AnsweredCall] = []
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
                assert isinstance(answer, AnsweredCall)
                found[-1] = replace(answer, attachments=(*answer.attachments, part))
            case Text() | Attachment():
                words.append(part)
            case ToolResult():
                finish()
                found.append(AnsweredCall(position=position, result=part, name=record.name))
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
) -> Utterance:
    return Utterance(
        position=position, role=record.role, name=record.name, parts=words, calls=calls
    )


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

    said: list[Utterance | None] = field(default_factory=list)
    answers: list[list[AnsweredCall | None]] = field(default_factory=list)
    call_ids: list[tuple[str, ...]] = field(default_factory=list)
    by_id: dict[str | None, list[_Open]] = field(default_factory=dict)
    of_turn: list[_Open] = field(default_factory=list)
    taken_ids: set[str] = field(default_factory=set)
    made_ids: Counter[int] = field(default_factory=Counter)

    def speak(self, said: Utterance, seq: int) -> None:
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

    def answer(self, answered: AnsweredCall) -> None:
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

    def steps(self) -> Iterator[ShownStep]:
        for said, answers, call_ids in zip(self.said, self.answers, self.call_ids, strict=True):
            yield ShownStep(said=said, answers=tuple(answers), call_ids=call_ids)

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


ATTACHMENT_CHARS_MAX = 300

INTERRUPTED = "[Interrupted: no result was recorded. It is not known whether the tool ran.]"
NO_WORDS = "[A message without words.]"

_IN_BRACKETS = str.maketrans("[]\n", "() ")
_ASIDES = {
    Role.NOTE: "Note",
    Role.SYSTEM: "System message",
    Role.DEVELOPER: "System message",
    Role.TOOL: "Tool",
}


@dataclass(frozen=True, slots=True)
class Showing:
    """Shows steps with every text redacted."""

    redact: Redact

    def messages(self, step: ShownStep) -> tuple[ChatMessage, ...]:
        """The messages of a step; none where there is nothing to show."""
        if step.said is None:
            return tuple(self._lone(answer) for answer in step.answers if answer is not None)
        return (*self._spoken(step.said, step), *self._answers(step))

    def words(self, text: str) -> str:
        """Cleaned first: what cannot be seen takes a secret apart."""
        return self.redact(cleaned(text)).strip()

    def _spoken(self, said: Utterance, step: ShownStep) -> tuple[ChatMessage, ...]:
        text = self._text(said)
        if said.role is Role.USER:
            words = self._by(said) + (text or NO_WORDS)
            return (ChatMessage(role=ChatRole.USER, text=words),)
        if said.role is Role.ASSISTANT:
            return (self._assistants(said, text, step),) if text or said.calls else ()
        return (_aside(_ASIDES[said.role], text),) if text else ()

    def _answers(self, step: ShownStep) -> Iterable[ChatMessage]:
        """Nobody but an assistant makes calls, so that nobody else's are answered."""
        if not step.call_ids:
            return ()
        return map(self._answer, step.call_ids, step.answers)

    def _assistants(self, said: Utterance, text: str, step: ShownStep) -> ChatMessage:
        calls = tuple(
            ToolCall(call_id, call.name, self._arguments(call.arguments))
            for call_id, call in zip(step.call_ids, said.calls, strict=True)
        )
        return ChatMessage(role=ChatRole.ASSISTANT, text=text, tool_calls=calls)

    def _answer(self, call_id: str, answer: AnsweredCall | None) -> ChatMessage:
        if answer is None:
            return ChatMessage(role=ChatRole.TOOL, text=INTERRUPTED, call_id=call_id, is_error=True)
        return ChatMessage(
            role=ChatRole.TOOL,
            text=self._result(answer),
            call_id=call_id,
            is_error=answer.result.is_error,
        )

    def _lone(self, answer: AnsweredCall) -> ChatMessage:
        failed = " that failed" if answer.result.is_error else ""
        return _aside(f"Result of a call{failed}; the call is not shown", self._result(answer))

    def _result(self, answer: AnsweredCall) -> str:
        named = (self._attachment(attachment) for attachment in answer.attachments)
        return "\n".join([self.words(answer.result.text), *named]).strip()

    def _by(self, said: Utterance) -> str:
        return "" if not said.name else f"[From {quoted(self.redact(cleaned(said.name)))}]\n"

    def _text(self, said: Utterance) -> str:
        """Texts in a row are redacted as one, so that a secret cannot be parted by them."""
        if len(said.parts) == 1 and isinstance(said.parts[0], Text):
            return self.words(said.parts[0].text)
        shown: list[str] = []
        texts: list[str] = []
        for part in said.parts:
            match part:
                case Text():
                    texts.append(part.text)
                case Attachment():
                    shown += [self.words("\n".join(texts)), self._attachment(part)]
                    texts = []
        shown.append(self.words("\n".join(texts)))
        return "\n".join(text for text in shown if text)

    def _attachment(self, attachment: Attachment) -> str:
        text = attachment_line(attachment, self.redact, ATTACHMENT_CHARS_MAX)
        return f"[Attachment: {text.translate(_IN_BRACKETS)}]"

    def _arguments(self, given: Any) -> Any:
        """Redacted, as values; text only where it is no JSON."""
        value = decoded(given)
        if isinstance(value, str):
            return self.words(value)
        try:
            clean = each_text(value, self._leaf)
            text = json.dumps(clean, ensure_ascii=False)
        except RecursionError:
            return self.words(str(given))
        # Some secrets are known only by the name beside them, so that all of it is looked at.
        redacted = self.redact(text)
        return clean if redacted == text else decoded(redacted)

    def _leaf(self, text: str) -> str:
        """A value by itself where JSON's escapes would hide its shape from the redaction of all."""
        text = cleaned(text)
        return self.redact(text) if "\n" in text or '"' in text or "\\" in text else text


def _aside(what: str, text: str) -> ChatMessage:
    return ChatMessage(role=ChatRole.USER, text=f"[{what}]\n{fenced(text)}")

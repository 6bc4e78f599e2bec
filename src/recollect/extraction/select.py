"""Chooses what of a session's records matters for memory, and makes redacted blocks of it.

Kept are words, tool calls and results as digests, notes, and attachments by name. System prompts,
reasoning, binary data, injected instructions, what Recollect itself injected and what its tools
answered are left out. A record whose metadata says `rewrites: <seq>` replaces the words of that
earlier record; metadata comes from the host and never from a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from recollect.errors import InvalidMessage
from recollect.extraction.injected import (
    as_note,
    is_own_tool,
    names_boot_file,
    without_instructions,
)
from recollect.extraction.piece import Block, BlockKind
from recollect.extraction.transcript import (
    Redact,
    attachment_line,
    call_digest,
    cleaned,
    one_line,
    shown,
)
from recollect.messages import (
    Attachment,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    read,
)
from recollect.quoting import without_recalled
from recollect.types.records import Record

CALL_CHARS_MAX = 400
RESULT_CHARS_MAX = 1200
SAID_CHARS_MAX = 16_000
NAME_CHARS_MAX = 80
ATTACHMENT_CHARS_MAX = 300
MUTED_RESULT_CHARS = 200  # a shorter answer about a boot file is not its contents

_UNHEARD = frozenset({Role.SYSTEM, Role.DEVELOPER})
_REPLACEABLE = frozenset({BlockKind.SAID, BlockKind.NOTE, BlockKind.RESULT})


def select(
    records: Sequence[Record],
    redact: Redact,
    *,
    before: Sequence[Record] = (),
    said_chars_max: int = SAID_CHARS_MAX,
) -> tuple[Block, ...]:
    """The blocks of some records of one session, in their order.

    `before` are records that were read already: calls in them whose results are among these.
    """
    selection = _Selection(
        redact=redact,
        said_chars_max=said_chars_max,
    )
    for record in before:
        for _ in selection.blocks(record, record.role):
            pass  # only what it remembers of the calls
    rewritten = {seq for record in records if (seq := _rewrites(record)) is not None}
    roles: dict[int, Role] = {}
    for record in records if rewritten else ():
        roles[record.seq] = _speaking_role(record, roles)
    return tuple(
        block
        for record in records
        for block in selection.blocks(record, roles.get(record.seq, record.role))
        if record.seq not in rewritten or block.kind not in _REPLACEABLE
    )


def _rewrites(record: Record) -> int | None:
    """Which earlier record's words this one replaces."""
    if not record.metadata:
        return None
    seq = record.metadata.get("rewrites")
    return seq if type(seq) is int and 0 < seq < record.seq else None


def _speaking_role(record: Record, earlier: dict[int, Role]) -> Role:
    """Return the role that speaks; a note that replaces a message has that message's role."""
    if record.role is not Role.NOTE:
        return record.role
    return earlier.get(_rewrites(record) or 0, record.role)


@dataclass(slots=True, kw_only=True)
class _Selection:
    """One pass over the records: remembers which call was of which tool, and which read what."""

    redact: Redact
    said_chars_max: int
    names: dict[str, str] = field(default_factory=dict)
    tool_of_call: dict[str, str] = field(default_factory=dict)
    boot_calls: set[str] = field(default_factory=set)

    def blocks(self, record: Record, role: Role) -> Iterator[Block]:
        if role in _UNHEARD:
            return
        if record.body is None:
            yield from self._words(record, role, record.content)
            return
        try:
            parts = read(record.message).parts
        except InvalidMessage:  # stored by a version that read it: its words are still there
            yield from self._words(record, role, record.content)
            return
        for part in _joined(parts, role):
            yield from self._part(record, role, part)

    def _part(self, record: Record, role: Role, part: Part) -> Iterator[Block]:
        match part:
            case Text():
                yield from self._words(record, role, part.text)
            case ToolCall():
                yield self._call(record, part)
            case ToolResult():
                yield from self._result(record, part.text, part.call_id, part.is_error)
            case Attachment():
                yield self._attachment(record, role, part)
            case Reasoning() | Opaque():
                return
            case _:
                assert_never(part)

    def _words(self, record: Record, role: Role, text: str) -> Iterator[Block]:
        if role is Role.TOOL:
            yield from self._result(record, text, None, False)
            return
        text = without_recalled(cleaned(text))
        kind = BlockKind.NOTE if role is Role.NOTE else BlockKind.SAID
        if role is Role.USER:
            text = without_instructions(text)
            note = as_note(text)
            if note is not None:
                role, kind, text = Role.NOTE, BlockKind.NOTE, note
        text = shown(text, self.redact, self.said_chars_max)
        if text:
            yield _block(record, role, kind, text, speaker=self._name(record.name))

    def _call(self, record: Record, call: ToolCall) -> Block:
        text = call_digest(call.arguments, self.redact, CALL_CHARS_MAX)
        if call.id is not None:
            self.tool_of_call[call.id] = call.name
            if names_boot_file(text):
                self.boot_calls.add(call.id)
        names = {"speaker": self._name(record.name), "tool": self._name(call.name)}
        return _block(record, Role.ASSISTANT, BlockKind.CALL, text, call_id=call.id, **names)

    def _result(
        self, record: Record, text: str, call_id: str | None, is_error: bool
    ) -> Iterator[Block]:
        """A result without words is kept: that a call was answered, or failed, says something."""
        name = record.name if call_id is None else self.tool_of_call.get(call_id, record.name)
        if name is not None and is_own_tool(name):
            text = "[memory that was recalled, left out]"
        elif call_id in self.boot_calls and len(text) > MUTED_RESULT_CHARS:
            text = "[a file of instructions, left out]"
        else:
            text = without_instructions(without_recalled(cleaned(text)))
        text = shown(text, self.redact, RESULT_CHARS_MAX)
        about = {"tool": self._name(name), "call_id": call_id, "is_error": is_error}
        yield _block(record, Role.TOOL, BlockKind.RESULT, text, **about)

    def _attachment(self, record: Record, role: Role, attachment: Attachment) -> Block:
        text = attachment_line(attachment, self.redact, ATTACHMENT_CHARS_MAX)
        return _block(record, role, BlockKind.ATTACHMENT, text, speaker=self._name(record.name))

    def _name(self, name: str | None) -> str | None:
        """A name on one line and redacted; the few there are come again and again."""
        if not name:
            return None
        known = self.names.get(name)
        if known is None:
            known = self.names[name] = one_line(self.redact(cleaned(name)), NAME_CHARS_MAX)
        return known or None


def _block(record: Record, role: Role, kind: BlockKind, text: str, **about: Any) -> Block:
    return Block(seq=record.seq, at=record.at, role=role, kind=kind, text=text, **about)


def _joined(parts: Sequence[Part], role: Role) -> Iterator[Part]:
    """The parts, with texts in a row as one, so that a secret cannot be parted by them.

    Only where a host put something under the user's role are they looked at one by one.
    """
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Text) and (role is not Role.USER or as_note(part.text) is None):
            own = without_instructions(cleaned(part.text)) if role is Role.USER else part.text
            texts.append(own)
            continue
        if texts:
            yield Text("\n".join(texts))
            texts = []
        yield part
    if texts:
        yield Text("\n".join(texts))

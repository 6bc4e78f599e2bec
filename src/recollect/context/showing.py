"""Writes the steps of a history as messages to a model: redacted, and such that providers take it.

Every call is followed by its answers. What nobody in the conversation said (notes, what a host put
in, answers without their call) is told from words of the user by a line in brackets and a mark in
front of every line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from recollect.context.turns import Answered, Said, Step
from recollect.extraction.digest import Redact, cleaned, one_line
from recollect.extraction.transcript import fenced, quoted
from recollect.messages import Attachment, Role, Text, ToolCall
from recollect.models.protocol import ChatMessage, ChatRole

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

    def messages(self, step: Step) -> tuple[ChatMessage, ...]:
        """The messages of a step; none where there is nothing to show."""
        if step.said is None:
            return tuple(self._lone(answer) for answer in step.answers if answer is not None)
        return (*self._spoken(step.said, step), *self._answers(step))

    def words(self, text: str) -> str:
        """Cleaned first: what cannot be seen takes a secret apart."""
        return self.redact(cleaned(text)).strip()

    def _spoken(self, said: Said, step: Step) -> tuple[ChatMessage, ...]:
        text = self._text(said)
        if said.role is Role.USER:
            words = self._by(said) + (text or NO_WORDS)
            return (ChatMessage(role=ChatRole.USER, text=words),)
        if said.role is Role.ASSISTANT:
            return (self._assistants(said, text, step),) if text or said.calls else ()
        return (_aside(_ASIDES[said.role], text),) if text else ()

    def _answers(self, step: Step) -> Iterable[ChatMessage]:
        """Nobody but an assistant makes calls, so that nobody else's are answered."""
        if not step.call_ids:
            return ()
        return map(self._answer, step.call_ids, step.answers)

    def _assistants(self, said: Said, text: str, step: Step) -> ChatMessage:
        calls = tuple(
            ToolCall(call_id, call.name, self._arguments(call.arguments))
            for call_id, call in zip(step.call_ids, said.calls, strict=True)
        )
        return ChatMessage(role=ChatRole.ASSISTANT, text=text, tool_calls=calls)

    def _answer(self, call_id: str, answer: Answered | None) -> ChatMessage:
        if answer is None:
            return ChatMessage(role=ChatRole.TOOL, text=INTERRUPTED, call_id=call_id, is_error=True)
        return ChatMessage(
            role=ChatRole.TOOL,
            text=self._result(answer),
            call_id=call_id,
            is_error=answer.result.is_error,
        )

    def _lone(self, answer: Answered) -> ChatMessage:
        failed = " that failed" if answer.result.is_error else ""
        return _aside(f"Result of a call{failed}; the call is not shown", self._result(answer))

    def _result(self, answer: Answered) -> str:
        named = (self._attachment(attachment) for attachment in answer.attachments)
        return "\n".join([self.words(answer.result.text), *named]).strip()

    def _by(self, said: Said) -> str:
        return "" if not said.name else f"[From {quoted(self.redact(cleaned(said.name)))}]\n"

    def _text(self, said: Said) -> str:
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
        where = (attachment.uri or "").partition("?")[0].partition("#")[0]
        told = (attachment.kind, attachment.name, attachment.media_type, where)
        text = self.redact(" ".join(cleaned(each) for each in told if each))
        return f"[Attachment: {one_line(text, ATTACHMENT_CHARS_MAX).translate(_IN_BRACKETS)}]"

    def _arguments(self, given: Any) -> Any:
        """Redacted, as values; text only where it is no JSON."""
        value = _decoded(given)
        if isinstance(value, str):
            return self.words(value)
        try:
            clean = _each_text(value, self._leaf)
            text = json.dumps(clean, ensure_ascii=False)
        except RecursionError:
            return self.words(str(given))
        # Some secrets are known only by the name beside them, so that all of it is looked at.
        redacted = self.redact(text)
        return clean if redacted == text else _decoded(redacted)

    def _leaf(self, text: str) -> str:
        """A value by itself where JSON's escapes would hide its shape from the redaction of all."""
        text = cleaned(text)
        return self.redact(text) if "\n" in text or '"' in text or "\\" in text else text


def _aside(what: str, text: str) -> ChatMessage:
    return ChatMessage(role=ChatRole.USER, text=f"[{what}]\n{fenced(text)}")


def _decoded(arguments: Any) -> Any:
    """Arguments as values; text that is no JSON object or list stays the text it is."""
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict | list) else arguments


def _each_text(value: Any, change: Redact) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {change(key): _each_text(inner, change) for key, inner in value.items()}
        case list():
            return [_each_text(inner, change) for inner in value]
        case _:
            return value

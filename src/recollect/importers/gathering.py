"""Gathers the parts of one message of an agent's log: what was said, and what the host put in.

Where somebody spoke, the host's own texts beside it are left away; where nobody did, they are all
there is, and kept under the host's role.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from recollect.importers.agent_logs import (
    EMPTY,
    PARTS_MAX,
    REASONING,
    Allowance,
    Json,
    Meaning,
    Said,
    attachment,
    broken,
    label,
    output_text,
    storable_value,
    type_name,
)

_NAME_CHARS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a person wrote, and the command they gave it to."""

    text: str
    command: str | None = None


def all_of_it(text: str) -> Words | None:
    """A model's words: they are its own, whatever they look like."""
    return Words(text=text)


def none_of_it(_text: str) -> Words | None:
    """The host's words, whatever they look like."""
    return None


@dataclass(slots=True, kw_only=True)
class Gathered:
    """One message while its parts are read, in the role of whoever speaks in it."""

    role: str
    own_words: Callable[[str], Words | None]
    allowance: Allowance = field(default_factory=Allowance)
    parts: list[Json] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    command: str | None = None
    unknown: list[str] = field(default_factory=list)
    faults: int = 0
    reasoned: bool = False

    def counted(self, blocks: Sequence[Json]) -> Sequence[Json]:
        """As many blocks as a message can have; it is said if there are more."""
        self.faults += len(blocks) > PARTS_MAX
        return blocks[:PARTS_MAX]

    def add_text(self, text: str) -> None:
        if not text.strip():
            return
        words = self.own_words(text)
        if words is None:
            self.hosts.append(self.allowance.text(text))
            return
        self.parts.append({"type": "text", "text": self.allowance.text(words.text)})
        self.command = self.command or words.command
        if self.role == "user":
            self.words.append(words.text)

    def add_call(self, block: dict[str, Json]) -> None:
        name, call_id = block.get("name"), label(block.get("id"))
        if not isinstance(name, str):
            self.faults += 1
            return
        call = {
            "type": "tool_use",
            "id": call_id,
            "name": self.allowance.text(name, _NAME_CHARS_MAX),
            "input": storable_value(block.get("input"), self.allowance),
        }
        self.parts.append({key: value for key, value in call.items() if value is not None})

    def add_result(self, block: dict[str, Json]) -> None:
        result = {
            "type": "tool_result",
            "tool_use_id": label(block.get("tool_use_id")),
            "content": self.allowance.text(output_text(block.get("content"))),
            "is_error": True if block.get("is_error") is True else None,
        }
        self.parts.append({key: value for key, value in result.items() if value is not None})

    def add_other(self, block: dict[str, Json]) -> None:
        """An attachment; or a part of a type nobody told us of, kept as it is."""
        shown = attachment(block)
        if shown is None:
            self.unknown.append(type_name(block.get("type")))
            shown = {"type": "unknown", "block": storable_value(block, self.allowance)}
        if self.own_words is none_of_it:
            self.hosts.append(f"[{shown['type']}]")
        else:
            self.parts.append(shown)

    def meaning(self) -> Meaning:
        if self.parts:
            return self._said({"role": self.role, "content": _content(self.parts)})
        if self.hosts:
            return self._said({"role": "system", "content": "\n".join(self.hosts)})
        if self.faults:
            return broken("a part of a message")
        return REASONING if self.reasoned else EMPTY

    def _said(self, message: dict[str, Json]) -> Said:
        return Said(
            message=message,
            words="\n".join(self.words) or None,
            command=self.command,
            unknown=tuple(self.unknown),
            faults=self.faults,
        )


def _content(parts: list[Json]) -> Json:
    """The parts, or their text where there is nothing else."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts

"""Common parts of coding agents' logs: ids, names, times and content, made storable.

Nothing in a log is trusted. What passes through here can be stored: of bounded size and depth,
without characters or numbers that no store can hold, and without binary data.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recollect.collection import storable
from recollect.extraction.transcript import shortened
from recollect.importers.items import (
    Found,
    ImportedMessage,
    LeftOut,
    Odd,
    broken,
    digest,
    metadata_of,
    not_understood,
)

Json = Any  # what json.loads gives: the one shape mypy cannot say

OUTPUT_CHARS_MAX = 65_536  # of what a tool answered
# Of a whole message. A character has at most six bytes in JSON, so it stays below the size of
# a record; and what was said is seldom as long as what tools are given.
MESSAGE_CHARS_MAX = 131_072
PARTS_MAX = 1000  # of a message, or of what a tool answered
LABEL_BYTES_MAX = 100
_NESTING_MAX = 40
_KEY_CHARS_MAX = 200
_VALUE_CHARS = 8  # what a value costs beside its text

BOOKKEEPING = LeftOut(reason="bookkeeping")
REASONING = LeftOut(reason="reasoning")
EMPTY = LeftOut(reason="empty")
REPEATED = LeftOut(reason="repeated in another branch")

_PLAIN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_TYPE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ ./:-]{0,39}")

_ATTACHMENTS = {
    **dict.fromkeys(("image", "image_url", "input_image"), "image"),
    **dict.fromkeys(("audio", "input_audio"), "audio"),
    **dict.fromkeys(("video", "video_url", "input_video"), "video"),
    **dict.fromkeys(("document", "file", "input_file"), "document"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMessage:
    """A message as it will be kept, and what in it was not understood."""

    message: Mapping[str, Json]
    words: str | None = None  # what a person said, where a person said it
    command: str | None = None  # the command these words were given to
    unknown: tuple[str, ...] = ()  # types that this version does not know
    faults: int = 0  # parts that had to be left out


Meaning = LogMessage | LeftOut | Odd


def not_known(entry: Mapping[str, Json], kind: str) -> LogMessage:
    """An entry of a type that this version does not know: kept, and nobody learns of it."""
    kept = {"role": "system", "content": "", "entry": storable_value(dict(entry))}
    return LogMessage(message=kept, unknown=(kind,))


def found_in(
    meaning: Meaning, line: int, item: Callable[[LogMessage], ImportedMessage | LeftOut]
) -> Iterator[Found]:
    """What an entry comes to, and what the report says of it."""
    match meaning:
        case LeftOut():
            yield meaning
        case Odd():
            yield replace(meaning, line=line)
        case LogMessage():
            for name in dict.fromkeys(meaning.unknown):
                yield not_understood(name, line)
            if meaning.faults:
                yield broken("a part of a message", line)
            yield item(meaning)


def between(text: str, opening: str, closing: str) -> str | None:
    """What stands between two marks, the first and the last; none where they are not both there.

    Searched for as text: an expression would look for the end again from every beginning.
    """
    start, end = text.find(opening), text.rfind(closing)
    return text[start + len(opening) : end] if 0 <= start < end else None


def without_blocks(text: str, tag: str) -> str:
    """The text without every `<tag>…</tag>` that is closed."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    kept: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        kept.append(text[at:start])
        at = end + len(closing)
    return "".join((*kept, text[at:]))


def plain_id(value: object) -> str | None:
    """An id as a log gives it, or one made from it; none where there is nothing."""
    if not isinstance(value, str) or not value:
        return None
    return value if _PLAIN_ID.fullmatch(value) else f"x-{digest(value)}"


def type_name(value: object) -> str:
    """The name of a type, for a report: short, and no text of the file."""
    if value is None:
        return "(no type)"
    return value if isinstance(value, str) and _TYPE_NAME.fullmatch(value) else "(odd type)"


def label(value: object) -> str | None:
    """A version, a branch or a model's name; none where it is no such short text."""
    if not isinstance(value, str) or not value or len(value) > LABEL_BYTES_MAX:
        return None
    fits = value.isprintable() and len(value.encode()) <= LABEL_BYTES_MAX
    return value if fits else None


@dataclass(slots=True)
class Allowance:
    """How much of one message may still be kept."""

    chars: int = MESSAGE_CHARS_MAX

    def text(self, text: str, chars_max: int = MESSAGE_CHARS_MAX) -> str:
        """As much of a text as there is room for: its beginning, its end, and what went between."""
        kept = storable(shortened(text, max(1, min(chars_max, self.chars))))
        self.chars = max(0, self.chars - len(kept) - _VALUE_CHARS)
        return kept


def storable_value(value: Json, allowance: Allowance | None = None, depth: int = 0) -> Json:
    """Any JSON value as a store can hold it."""
    allowance = allowance or Allowance()
    match value:
        case str():
            return allowance.text(value)
        case dict() | list() if depth >= _NESTING_MAX:
            return "[nested too deeply]"
        case dict():
            return {
                allowance.text(key, _KEY_CHARS_MAX): storable_value(inner, allowance, depth + 1)
                for key, inner in value.items()
                if allowance.chars > 0
            }
        case list():
            return [
                storable_value(inner, allowance, depth + 1)
                for inner in value
                if allowance.chars > 0
            ]
        case _:
            allowance.chars -= _VALUE_CHARS
            return _storable_scalar(value)


def _storable_scalar(value: Json) -> Json:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and abs(value) >= 2**63:
        return "[a number too large]"
    return value


def attachment(block: Mapping[str, Json]) -> dict[str, Json] | None:
    """An image or a file by its kind, its media type and its size; none for another part."""
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in _ATTACHMENTS:
        return None
    nested = (block.get(field) for field in ("source", "image_url", "file", "input_audio"))
    inner = next((value for value in nested if isinstance(value, dict)), block)
    links = (inner.get("url"), block.get("image_url"), block.get("file_url"))
    link = next((value for value in links if isinstance(value, str)), "")
    media_type, data = inner.get("media_type"), inner.get("data", inner.get("file_data"))
    if link.startswith("data:"):
        head, _, data = link.partition(",")
        media_type, link = head.removeprefix("data:").partition(";")[0], ""
    size = f"{len(data) * 3 // 4:,} bytes" if isinstance(data, str) else None
    title = label(block.get("title")) or label(inner.get("filename")) or label(block.get("name"))
    found = {
        "media_type": label(media_type),
        "url": storable(link) if link and len(link) <= 2000 else None,
        "name": ", ".join(each for each in (title, size) if each) or None,
    }
    return {"type": _ATTACHMENTS[kind], **{name: each for name, each in found.items() if each}}


def output_text(output: Json) -> str:
    """What a tool answered, as text: in whatever shape it came, and without binary data."""
    match output:
        case None:
            return ""
        case str():
            text = output
        case list():
            text = "\n".join(_output_line(block) for block in output[:PARTS_MAX])
        case _:
            text = json.dumps(storable_value(output), ensure_ascii=False)
    return shortened(text, OUTPUT_CHARS_MAX)


def _output_line(block: Json) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return json.dumps(storable_value(block), ensure_ascii=False)
    text = block.get("text")
    if isinstance(text, str):
        return text
    shown = attachment(block)
    if shown is not None:
        told = (shown["type"], shown.get("media_type"), shown.get("name"))
        return f"[{' '.join(each for each in told if each)}, left out]"
    return json.dumps(storable_value(block), ensure_ascii=False)


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
    """One message while its parts are read, in the role of its speaker."""

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

    def gather(
        self, content: str | list[Json], add: Callable[[dict[str, Json], Gathered], None]
    ) -> Meaning:
        """The meaning of all blocks, or of as many as a message can have."""
        blocks = [content] if isinstance(content, str) else content
        self.faults += len(blocks) > PARTS_MAX
        for block in blocks[:PARTS_MAX]:
            if isinstance(block, str):
                self.add_text(block)
            elif isinstance(block, dict):
                add(block, self)
            else:
                self.faults += 1
        return self.meaning()

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
        name = block.get("name")
        if not isinstance(name, str):
            self.faults += 1
            return
        self.parts.append(
            metadata_of(
                type="tool_use",
                id=label(block.get("id")),
                name=self.allowance.text(name, _NAME_CHARS_MAX),
                input=storable_value(block.get("input"), self.allowance),
            )
        )

    def add_result(self, block: dict[str, Json]) -> None:
        self.parts.append(
            metadata_of(
                type="tool_result",
                tool_use_id=label(block.get("tool_use_id")),
                content=self.allowance.text(output_text(block.get("content"))),
                is_error=True if block.get("is_error") is True else None,
            )
        )

    def add_other(self, block: dict[str, Json]) -> None:
        """An attachment; or a part of a type nobody told us of, kept as it is."""
        shown = attachment(block)
        if shown is None:
            self.unknown.append(f"part {type_name(block.get('type'))}")
            shown = {"type": "unknown", "block": storable_value(block, self.allowance)}
        if self.own_words is none_of_it:
            self.hosts.append(f"[{shown['type']}]")
        else:
            self.parts.append(shown)

    def meaning(self) -> Meaning:
        if not self.parts and not self.hosts:
            lost = REASONING if self.reasoned else EMPTY
            return broken("a part of a message") if self.faults else lost
        said = {"role": self.role, "content": _content(self.parts)}
        hosts = {"role": "system", "content": "\n".join(self.hosts)}
        return LogMessage(
            message=said if self.parts else hosts,
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

"""Renders a document as a Markdown file and parses it back: YAML front matter, then the body. Pure.

Owns that a body comes back unchanged, to the character, and that a file can hold nothing but text:
no tag, anchor or alias is read, and size and depth have limits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from recollect.documents.checking import (
    DESCRIPTION_CHARS_MAX,
    LINKS_MAX,
    TAG_CHARS_MAX,
    TAGS_MAX,
    TITLE_CHARS_MAX,
)
from recollect.errors import InvalidValue, TooLarge
from recollect.types.facts import Source
from recollect.types.pages import PATH_BYTES_MAX, Document

DEPTH_MAX = 4
NODES_MAX = 8_000
SOURCES_SHOWN = 200
# What all that a document may have can come to: a character is six bytes at most, escaped.
_AROUND_BYTES = 8  # a list's dash, quotes and the end of a line
FRONT_BYTES_MAX = (
    LINKS_MAX * (PATH_BYTES_MAX + _AROUND_BYTES)
    + TAGS_MAX * (6 * TAG_CHARS_MAX + _AROUND_BYTES)
    + 6 * (TITLE_CHARS_MAX + DESCRIPTION_CHARS_MAX)
    + 128 * SOURCES_SHOWN
    + 4096
)

FENCE = "---"
_BYTE_ORDER_MARK = "\ufeff"
_KEYS = ("id", "title", "description", "tags", "links", "version", "sources")
# Coding agents know a skill by the line `name`. Behind `id` it is ours, elsewhere somebody's own.
SKILL = "SKILL"
_OURS = ["id", "name"]
_HEADING = re.compile(r"[ ]{0,3}#{1,6}[ \t]+(?P<title>\S.*?)(?:[ \t]+#+)?[ \t]*\r?")
_CODE_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
# What YAML reads as this very text without quotes, in a list too.
_PLAIN = re.compile(r"[^\W\d_](?:[\w .()/'-]*[\w.)])?")
_WORDS_OF_YAML = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
# What JSON leaves as it is, and YAML does not print or takes for the end of a line.
_UNPRINTABLE = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """What the front matter of a file says; none: it does not say."""

    id: str | None = None
    title: str | None = None
    description: str = ""
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    version: int | None = None
    unknown: tuple[str, ...] = ()  # keys that no document has a place for


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """A file that was read. `front` none: it is all body."""

    front: Front | None
    body: str


def render(document: Document) -> bytes:
    """The file of a document: always the same bytes for the same version."""
    lines = [
        FENCE,
        f"id: {_scalar(document.id)}",
        *_skill_name(document.path),
        f"title: {_scalar(document.title)}",
        *([f"description: {_scalar(document.description)}"] if document.description else ()),
        *_list("tags", document.tags),
        *_list("links", document.links),
        f"version: {document.version}",
        *_list("sources", [_range(source) for source in document.sources[:SOURCES_SHOWN]]),
        FENCE,
        *(["", document.body] if document.body else ()),
    ]
    return ("\n".join(lines) + "\n").encode()


def parse(data: bytes) -> FileText:
    """What a file says. InvalidValue: it is no text, or its front matter cannot be read."""
    text = _decoded(data)
    head, line_end, rest = text.partition("\n")
    if head.endswith("\r"):  # an editor that ends lines in its own way has been at it
        text = text.replace("\r\n", "\n")
        head, line_end, rest = text.partition("\n")
    if head.rstrip() != FENCE or not line_end:
        return FileText(front=None, body=text.removesuffix("\n"))
    closing = re.search(rf"^{FENCE}[ \t]*(?:\n|\Z)", rest, re.MULTILINE)
    if closing is None:
        raise InvalidValue(f"the front matter does not end: a line with {FENCE} alone is missing")
    front = _front(rest[: closing.start()])
    body = rest[closing.end() :].removeprefix("\n").removesuffix("\n")
    return FileText(front=front, body=body)


def heading(body: str) -> str | None:
    """The first heading of a body, code aside."""
    fence = ""
    for line in body.split("\n"):
        code = _CODE_FENCE.match(line)
        if fence:
            fence = "" if code is not None and code[1].startswith(fence) else fence
        elif code is not None:
            fence = code[1]
        elif (match := _HEADING.fullmatch(line)) is not None:
            return match["title"][:TITLE_CHARS_MAX]
    return None


def _decoded(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidValue(f"it is not text in UTF-8 (byte {error.start:,})") from error
    if "\0" in text:
        raise InvalidValue("it contains a NUL, so it is not text")
    return text.removeprefix(_BYTE_ORDER_MARK)


# reading


class _Loader(yaml.BaseLoader):
    """Reads texts, lists and mappings of plain text, and refuses whatever else YAML can do."""

    depth = 0
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise InvalidValue("the front matter has an anchor or an alias, which are not read")
        if getattr(event, "tag", None) is not None:
            raise InvalidValue(f"the front matter has a tag, which is not read: {event.tag}")
        self.depth += 1
        self.nodes += 1
        if self.depth > DEPTH_MAX or self.nodes > NODES_MAX:
            raise TooLarge(
                f"the front matter is more than {DEPTH_MAX} levels deep, or has more than "
                f"{NODES_MAX:,} values"
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _front(text: str) -> Front:
    if len(text.encode()) > FRONT_BYTES_MAX:
        raise TooLarge(f"front matter has at most {FRONT_BYTES_MAX:,} bytes")
    try:
        top = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise InvalidValue(f"the front matter is not YAML: {_summary(error)}") from error
    if top is None or (isinstance(top, yaml.ScalarNode) and not top.value):
        return Front()
    if not isinstance(top, yaml.MappingNode):
        raise InvalidValue("the front matter is a list of names and values")
    said: dict[str, yaml.Node] = {}
    for key, value in top.value:
        if not isinstance(key, yaml.ScalarNode):
            raise InvalidValue("a key of the front matter is a word")
        if key.value in said:
            raise InvalidValue(f"the front matter has {key.value} twice")
        said[key.value] = value
    keys = [*_KEYS, "name"] if list(said)[:2] == _OURS else _KEYS
    return Front(
        id=_text(said, "id") or None,
        title=_text(said, "title") or None,
        description=_text(said, "description"),
        tags=_texts(said, "tags"),
        links=_texts(said, "links"),
        version=_version(said),
        unknown=tuple(key for key in said if key not in keys),
    )


def _summary(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it cannot be read"
    return problem if mark is None else f"{problem} (line {mark.line + 2})"


def _text(said: Mapping[str, yaml.Node], key: str) -> str:
    node = said.get(key)
    if node is not None and not isinstance(node, yaml.ScalarNode):
        raise InvalidValue(f"{key} is text")
    return "" if node is None else str(node.value)


def _texts(said: Mapping[str, yaml.Node], key: str) -> tuple[str, ...]:
    node = said.get(key)
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
        return ()
    is_list = isinstance(node, yaml.SequenceNode)
    if not is_list or not all(isinstance(each, yaml.ScalarNode) for each in node.value):
        raise InvalidValue(f"{key} is a list of texts")
    return tuple(str(each.value) for each in node.value)


def _version(said: Mapping[str, yaml.Node]) -> int | None:
    value = _text(said, "version")
    if not value:
        return None
    if not re.fullmatch(r"[0-9]{1,15}", value, re.ASCII):
        raise InvalidValue("version is a number")
    return int(value)


# writing


def _skill_name(path: str) -> list[str]:
    """A skill is called like the folder that its page stands in."""
    folders, _, slug = path.rpartition("/")
    name = folders.rpartition("/")[2]
    return [f"name: {_scalar(name)}"] if slug == SKILL and name.strip("~") else []


def _range(source: Source) -> str:
    ends = f"{source.seq}" if source.seq_to <= source.seq else f"{source.seq}-{source.seq_to}"
    return f"{source.session_id}/{ends}"


def _list(key: str, values: tuple[str, ...] | list[str]) -> list[str]:
    return [f"{key}:", *(f"- {_scalar(value)}" for value in values)] if values else []


def _scalar(text: str) -> str:
    """Text as YAML: as it is where that is safe, else quoted."""
    if _PLAIN.fullmatch(text) and text.casefold() not in _WORDS_OF_YAML and "  " not in text:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)

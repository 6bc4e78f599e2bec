"""What a host put into a conversation, and nobody said: its marks, and ways to take it out again.

What Recollect itself put there is known by its fence (recollect.fences).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Blocks in which hosts hand standing instructions, boot files, skills and the state of a machine to
# a model as if a user had typed them. They begin on a line of their own; one that is never closed
# is left alone, because a person may well write about such a tag.
_INSTRUCTION_TAGS = (
    r"system[-_]reminder|(?:user|project|custom|developer|permissions)[-_ ]instructions"
    r"|(?:agents|claude|gemini)[-_.]md|boot[-_]files?|memory[-_]files?"
    r"|(?:available[-_])?skills?(?:[-_](?:content|payload|instructions))?"
    r"|environment[-_](?:context|details)"
)
_INSTRUCTION_TAG = re.compile(
    rf"^[ \t]*<(?P<open>{_INSTRUCTION_TAGS})\b[^<>\n]*>|</(?P<close>{_INSTRUCTION_TAGS})\s*>",
    re.IGNORECASE | re.MULTILINE,
)
_BOOT_NAMES = r"(?:AGENTS|CLAUDE|GEMINI|SKILL|SOUL|copilot-instructions)\.md"
_BOOT_HEADING = re.compile(rf"\s*#{{1,3}}[ \t]*{_BOOT_NAMES}\b", re.IGNORECASE)
_INSTRUCTIONS_OPEN = re.compile(r"\s*<INSTRUCTIONS>")  # as hosts write it; people write it small
_INSTRUCTIONS_CLOSE = re.compile(r"</instructions\s*>", re.IGNORECASE)
_BOOT_FILE = re.compile(rf"\b{_BOOT_NAMES}\b|\.cursorrules\b", re.IGNORECASE)
# By the server's name, or by the names that tools over a memory have, ours and others'.
_OWN_TOOL = re.compile(
    r"(?:^|[_.:/-])recollect(?:[_.:/-]|$)"
    r"|(?:^|__|[.:/])(?:memory|(?:search|list|get)_memor(?:y|ies)|document_(?:read|tree|search))$",
    re.IGNORECASE,
)

BOOT_CHARS_MIN = 400  # a shorter text under such a heading is somebody writing about the file

_ENVELOPE = re.compile(
    r"\s*<(system_message(?:_silent)?)((?:\s[^<>]*)?)>(.*)</\1\s*>\s*\Z", re.IGNORECASE | re.DOTALL
)
_ORIGIN = re.compile(r"""\borigin\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_TAGS_IN_A_ROW = re.compile(r">\s+<")
_NOTICE = re.compile(
    r"\s*<(sub_?agent_(?:notification|notice))\b.*</\1\s*>\s*\Z", re.IGNORECASE | re.DOTALL
)


def without_instructions(text: str) -> str:
    """A text that a host handed over, without instruction blocks, boot files and skills."""
    if "<" not in text and "#" not in text:
        return text
    if _BOOT_HEADING.match(text):
        rest = _after_instructions(text)
        if rest is not None or len(text) >= BOOT_CHARS_MIN:
            return rest or ""
    if _INSTRUCTIONS_OPEN.match(text) and _after_instructions(text) == "":
        return ""
    return "".join(_outside_instructions(text))


def _after_instructions(text: str) -> str | None:
    """What follows the last closing tag, trimmed; none where there is no such tag."""
    rest = None
    for close in _INSTRUCTIONS_CLOSE.finditer(text):
        rest = close.end()
    return None if rest is None else text[rest:].strip()


def _outside_instructions(text: str) -> Iterator[str]:
    tags = list(_INSTRUCTION_TAG.finditer(text))
    last_close = {tag["close"].lower(): tag.start() for tag in tags if tag["close"]}
    start = 0
    waiting_for: str | None = None
    for tag in tags:
        if waiting_for is None and tag["open"]:
            name = tag["open"].lower()
            if last_close.get(name, -1) > tag.start():
                yield text[start : tag.start()]
                waiting_for = name
        elif tag["close"] and tag["close"].lower() == waiting_for:
            start, waiting_for = tag.end(), None
    yield text[start:]


def as_note(text: str) -> str | None:
    """The note that a user's message is, where it is nothing but a system envelope or a notice."""
    if "<" not in text:
        return None
    if _NOTICE.match(text):
        return text.strip()
    envelope = _ENVELOPE.match(text)
    if envelope is None:
        return None
    is_silent = envelope[1].lower() != "system_message"
    heading = "Silent system message" if is_silent else "System message"
    found = _ORIGIN.search(envelope[2])
    origin = (found[1] or found[2] or "").strip() if found else ""
    if origin:
        heading += f" (origin: {origin})"
    body = _TAGS_IN_A_ROW.sub(">\n<", envelope[3].strip())
    return f"{heading}\n\n{body}" if body else heading


def names_boot_file(arguments: str) -> bool:
    """Whether a tool call is about a file of instructions."""
    return _BOOT_FILE.search(arguments) is not None


def is_own_tool(name: str) -> bool:
    """Whether a tool is Recollect's: what it answers is memory already."""
    return _OWN_TOOL.search(name) is not None

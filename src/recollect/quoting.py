"""Quotes memory text as data: fenced where it is shown, removed where it comes back.

No text of a memory can open or close the fence, or be a heading, an item, a speaker or a citation:
what would be one is escaped so that it reads the same. Recalled text is recognised by its fence, so
that it is neither learned a second time nor found as something that was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FENCE = "recollect-memory"  # the tag around everything that was recalled
HEADING = "## Relevant Memory"
OFFLINE = "[Recollect, offline]"  # begins what is answered from memory alone

_RECALLED = re.compile(r"recollect-memory|relevant[ \t]+memory", re.IGNORECASE)
_FENCE_TAG = re.compile(
    rf"(?P<margin>^[ \t]*+)?<\s*+(?P<close>/?)\s*+{FENCE}\b[^<>]*>?", re.IGNORECASE | re.MULTILINE
)
# The heading, a blank line or more, and the list that follows; a second list is somebody's own.
_SECTION = re.compile(
    r"^[ \t]*+##[ \t]++relevant[ \t]++memory[ \t]*+(?=\n|\Z)"
    r"(?:\n[ \t]*+(?=\n|\Z))*+(?:\n[ \t]*+-[ \t][^\n]*+)*+",
    re.IGNORECASE | re.MULTILINE,
)


def without_recalled(text: str) -> str:
    """The text without what Recollect injected, wherever it stands and even if it was cut off.

    Of an answer from memory alone nothing is left: it was all said before.
    """
    if text.startswith(OFFLINE):
        return ""
    if _RECALLED.search(text) is None:
        return text
    return _SECTION.sub("", "".join(_outside_fences(text)))


def _outside_fences(text: str) -> Iterator[str]:
    """What stands outside; fences nest, so that memory that quotes a fence does not end it.

    One that is never closed was cut off if it begins a line; within a line it is only mentioned.
    """
    tags = list(_FENCE_TAG.finditer(text))
    last_close = max((tag.start() for tag in tags if tag["close"]), default=-1)
    depth = start = 0
    for tag in tags:
        is_open = not tag["close"]
        if is_open and tag.start() > last_close and tag["margin"] is None:
            continue
        if depth == 0:
            yield text[start : tag.start()]
        depth = depth + 1 if is_open else max(0, depth - 1)
        start = tag.end()
    if depth == 0:
        yield text[start:]


# Controls that are no white space, overrides of the writing direction, and characters nobody sees:
# fillers, signs that choose between forms of a letter, and the tags that spell hidden ASCII.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# What makes a sign colourful is seen behind a sign, and nowhere else.
_UNSEEN_COLOUR = re.compile(
    "(?<![\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff])\ufe0f(?!\u20e3)|\ufe0f(?=\ufe0f)"
)
_LINE_BREAK = re.compile("[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
# Beside a Latin letter a joiner joins nothing, it only hides a word; nor does a second one.
_HIDING_JOINER = re.compile(
    r"(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])|(?<=[\u200c\u200d])[\u200c\u200d]+"
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

_ITEMS = ("-", "*", "+", "•")
_LINE_MARK = re.compile(r"(?:(?:#{1,6}|[-*+•]|>)(?:[ \t]+|\Z)|>)+")
_RULE = re.compile(r"(?:[ \t]*[-=_*]){3,}[ \t]*|[`~]{3,}[ \t]*[\w+-]*[ \t]*")
_ROLE = re.compile(
    r"((?:\*\*|__)?(?:system|developer|user|human|assistant|ai|tool)"
    r"(?:[ _](?:message|prompt))?(?:\*\*|__)?)[ \t]*[:：]",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"[<＜﹤](?=[\s/|!]*+recollect|\|\w|!--|/?s>"
    r"|/?(?:\w{1,20}:)?(?:system|developer|user|human|assistant|tool|function|instructions?|sys)"
    r"(?:[-_](?:message|reminder|prompt|instructions?|results?|calls?|output|turn|silent)){0,3}+"
    r"(?![\w-]))",
    re.IGNORECASE,
)
_INST = re.compile(r"[\[［](/?\s{0,4}(?:INST|SYS)\s{0,4})[\]］]", re.IGNORECASE)
_MARK = re.compile(r"[\[［](\s*+[mMｍ]\s*+\d[^\[\]［］]{0,60}+)([\]］]?)")
_HEADING_HASH = re.compile(r"#(?=\s*+relevant\s++memory)", re.IGNORECASE)
_PAUSES = (".", "!", "?", ":", ";", ",", "…", "。", "！", "？", "：", "，")


def quoted(text: str) -> str:
    """A text as one line that is nothing but text."""
    if text.isascii() and text.isprintable() and text[:1].isalnum() and ":" not in text:
        return harmless(text.rstrip())  # mostly: a line already, and of nobody's turn
    line, before = "", ""
    for mark, words in _lines(text):
        line += _between(line, before, mark) + words
        before = mark
    return harmless(line)


def quoted_lines(text: str) -> list[str]:
    """A text as lines that are nothing but text; lists stay lists, headings become plain lines."""
    lines = (f"- {words}" if mark in _ITEMS else words for mark, words in _lines(text))
    return [line for line in harmless("\n".join(lines)).split("\n") if line]


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """The lines that say something: by what they were marked, if at all, and their words.

    The words begin with a word: they are no heading, item or quotation, and not somebody's turn.
    """
    for line in _LINE_BREAK.split(readable(text)):
        line = line.strip()
        mark = _LINE_MARK.match(line)
        words = line[mark.end() :].strip() if mark else line
        if not words or _RULE.fullmatch(line) or _RULE.fullmatch(words):
            continue
        role = _ROLE.match(words)
        yield line[0] if mark else "", f"{role[1]} –{words[role.end() :]}" if role else words


def _between(line: str, before: str, mark: str) -> str:
    """What stands where a line ended, so that a list or a heading still reads as one."""
    if not line:
        return ""
    if line.endswith(_PAUSES):
        return " "
    if before == "#":
        return ": "
    return "; " if mark in _ITEMS or mark == "#" else " "


def readable(text: str) -> str:
    """The text with its line breaks and without what nobody can see."""
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_BREAK.sub("\n", text)
    text = _LONE_SURROGATE.sub("\ufffd", _UNSEEN_COLOUR.sub("", _UNSEEN.sub("", text)))
    return _HIDING_JOINER.sub("", text)


def harmless(text: str) -> str:
    """The text without anything in it that could be taken for a tag, a heading or a citation."""
    if "<" in text or not text.isascii():
        text = _TAG.sub("‹", text)
    if "[" in text or not text.isascii():
        text = _MARK.sub(_in_round_brackets, _INST.sub(r"(\1)", text))
    return _HEADING_HASH.sub("＃", text) if "#" in text else text


def _in_round_brackets(mark: re.Match[str]) -> str:
    return f"({mark[1]}{')' if mark[2] else ''}"

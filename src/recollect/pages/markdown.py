"""Texts as they stand on pages: Markdown that says the same and is nothing but text. Pure.

Whatever a statement or a summary says, it opens no link, note, tag, fence or code that it does not
close, is no heading where it was none of ours, and ends where it is put.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect.quoting import quoted

TEXT_CHARS_MAX = 600
LABEL_CHARS_MAX = 100
EVIDENCE_LINE_CHARS_MAX = 2_000

_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
# What would open a link, a note, the target of either, or a tag.
_OPENING = re.compile(r"\[(?=[\[^])|\](?=[(\[])|<(?=[A-Za-z/!?])|~(?=~~)")
# What would make a line an item of a list, or the target of links elsewhere, which nobody sees.
_LEADING = re.compile(r"^(?:(\d{1,9})(?=[.)](?:\s|$))|(?=\[(?:[^\]\\]|\\.)*\]:))")
_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)")
_LABEL = str.maketrans({"[": "(", "]": ")", "|": "/", "`": "'", "\\": "/", "<": "‹", ">": "›"})
_HEADING = re.compile(r"[ \t]{0,3}(?P<marks>#{1,6})[ \t]+(?P<words>.*)")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<mark>[-*+]|\d{1,9}[.)])[ \t]+(?P<words>.*)")
_UNDERLINE = re.compile(r"[-=]+")  # of the line before it, which would be a heading then
_UNPRINTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_DEEPEST = 6
_INDENT_MAX = 6
_CODE_LINES_MAX = 200


def shown(text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    """A text as one line of Markdown that says the same; empty if it says nothing."""
    line = " ".join(quoted(text[: 4 * chars_max]).split())
    if len(line) > chars_max or len(text) > 4 * chars_max:
        line = line[: chars_max - 1].rstrip() + "…"
    if "`" in line and ("\\`" in line or "`" in _CODE.sub("", line)):
        line = line.replace("`", "'")  # code that nothing closes would swallow what follows
    pieces, at = [], 0
    for code in _CODE.finditer(line):
        pieces += [_escaped(line[at : code.start()]), code[0]]
        at = code.end()
    return _LEADING.sub(r"\1\\", "".join([*pieces, _escaped(line[at:])]))


def label(text: str, chars_max: int = LABEL_CHARS_MAX) -> str:
    """A text as a title, or as the words of a link: plain, without what either is written with."""
    line = " ".join(quoted(text[: 4 * chars_max]).translate(_LABEL).split())
    return line if len(line) <= chars_max else line[: chars_max - 1].rstrip() + "…"


def link(path: str, words: str) -> str:
    return f"[[{path}|{label(words)}]]"


def evidence(text: str, *, below: int) -> str:
    """A text of several lines as it may stand below a heading of a page.

    Its headings stand deeper than `below`; lists, paragraphs and closed fences stay what they are.
    """
    lines: list[str] = []
    rest = _UNPRINTED.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    top = min((len(match["marks"]) for match in map(_HEADING.match, rest) if match), default=1)
    at = 0
    while at < len(rest):
        size = _fenced(rest, at)
        if size:
            lines += _code_block(rest[at + 1 : at + size - 1])
        else:
            lines += _text_line(rest[at], below + 1 - top)
        at += max(1, size)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _escaped(prose: str) -> str:
    # Behind a bracket and not before it, so that what stands between brackets stays as it is.
    return _OPENING.sub(
        lambda found: f"{found[0]}\\" if found[0] in "[]" else f"\\{found[0]}", prose
    )


def _text_line(line: str, deeper: int) -> Iterator[str]:
    if not line.strip():
        yield ""
        return
    heading, item = _HEADING.match(line), _ITEM.match(line)
    if heading is not None:
        words = shown(heading["words"], EVIDENCE_LINE_CHARS_MAX)
        depth = min(_DEEPEST, max(1, len(heading["marks"]) + deeper))
        if words:
            yield f"{'#' * depth} {words}"
        return
    words = shown(item["words"] if item else line, EVIDENCE_LINE_CHARS_MAX)
    if item is not None and words:
        indent = " " * min(_INDENT_MAX, len(item["indent"].expandtabs(4)))
        yield f"{indent}{item['mark'] if item['mark'][0].isdigit() else '-'} {words}"
    elif words and not _UNDERLINE.fullmatch(words):
        yield words


def _fenced(lines: list[str], at: int) -> int:
    """How many lines a fence that begins here takes; 0: none begins, or nothing closes it."""
    opening = _FENCE.fullmatch(lines[at])
    if opening is None:
        return 0
    for count, line in enumerate(lines[at + 1 : at + _CODE_LINES_MAX], start=2):
        closing = _FENCE.fullmatch(line)
        is_bare = closing is not None and not closing["info"].strip()
        if closing is not None and is_bare and closing["mark"].startswith(opening["mark"]):
            return count
    return 0


def _code_block(code: list[str]) -> list[str]:
    """Code between marks that nothing within it can close."""
    longest = max((len(run) for line in code for run in re.findall("`+", line)), default=0)
    mark = "`" * max(3, longest + 1)
    return [mark, *(line[:EVIDENCE_LINE_CHARS_MAX].rstrip() for line in code), mark]

"""The elements of a JSON document's outermost list, one at a time, from a stream of any length.

Owns that memory stays flat and each byte is looked at a fixed number of times: brackets and texts
are told apart chunk by chunk, and only one element at once is held and parsed. Nothing raises for
what a document says; what cannot be had is said, and what follows it is still read.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from recollect.importers.items import NOT_UTF8, Odd, Trouble
from recollect.importers.weighing import is_too_heavy

ELEMENT_BYTES_MAX = 64 * 2**20
NESTING_MAX = 256  # of an element; Python's parser gives up at about a thousand
CHUNK_BYTES = 2**18
NAME_BYTES_MAX = 128  # of a list within an object, with what stands around it

_QUOTE, _BACKSLASH = b'"\\'
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")
_TEXT = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_STRING = rb'"(?:[^"\\]++|\\.)*+"'


def _skipping(plain: bytes, levels: int) -> re.Pattern[bytes]:
    """What is passed over at once: plain bytes, texts, and what is nested only so deep.

    Every bracket that Python need not look at is time saved; what does not close within these
    levels, or within the chunk, is looked at step by step.
    """
    inside = rb'[^"\[\]{}]++|' + _STRING
    nested = b""
    for _ in range(levels):
        nested = rb"|[\[{](?:" + inside + nested + rb")*+[\]}]"
    return re.compile(b"(?:" + plain + b"|" + _STRING + nested + b")*+", re.DOTALL)


_TO_BRACKET = _skipping(rb'[^"\[\]{}]++', 3)
_TO_COMMA = _skipping(rb'[^"\[\]{},]++', 3)  # where the elements of a list are separated
_TO_MARK = _skipping(rb'[^"\[\]{},]++', 0)  # where every bracket counts
_NAME = re.compile(rb'\s*"(?P<name>[^"\\]+)"\s*:\s*')
# Longer marks first: one of UTF-32 begins like one of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def elements(
    stream: BinaryIO, *, names: Sequence[str], bytes_max: int = ELEMENT_BYTES_MAX
) -> Iterator[object | Odd]:
    """What a document consists of, in order.

    An outermost list gives its elements, an object those of the lists it has under one of `names`,
    and any other object itself. Several documents one after the other are read alike.
    """
    cutter = _Cutter(names=names, bytes_max=bytes_max)
    for chunk in _chunks(stream):
        yield from cutter.feed(chunk)
    yield from cutter.finish()


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """The stream as UTF-8, whatever it is in."""
    head = b""
    while len(head) < 4 and (more := stream.read(CHUNK_BYTES)):
        head += more
    encoding = _encoding(head)
    if encoding is None:
        yield head.removeprefix(codecs.BOM_UTF8)
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    chunk = head
    while chunk:
        yield decoder.decode(chunk).encode(errors="replace")
        chunk = stream.read(CHUNK_BYTES)
    yield decoder.decode(b"", final=True).encode(errors="replace")


def _encoding(head: bytes) -> str | None:
    """None: UTF-8, or nothing that is text at all."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    if len(head) >= 2 and head[0] != 0 and head[1] == 0:
        return "utf-16-le"
    if len(head) >= 2 and head[0] == 0 and head[1] != 0:
        return "utf-16-be"
    return None


class _Scanner:
    """Finds brackets, and commas down to the depth `flat`, outside of texts; keeps the depth.

    `outer` is what is passed over down to there.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.flat = 0
        self.outer = _TO_MARK
        self.in_text = False
        self._is_escaped = False

    def marks(self, chunk: bytes) -> Iterator[tuple[int, int]]:
        """Where the next mark stands, and what it is; the depth is that before it."""
        at, end = 0, len(chunk)
        while at < end:
            if self.in_text:
                at = self._behind_text(chunk, at)
                continue
            skipped = self.outer if self.depth <= self.flat else _TO_BRACKET
            at = _end(skipped, chunk, at)
            if at == end:
                return
            mark = chunk[at]
            if mark == _QUOTE:
                self.in_text = True
            else:
                yield at, mark
                if mark in _OPENING:
                    self.depth += 1
                elif mark in _CLOSING:
                    self.depth = max(0, self.depth - 1)
            at += 1

    def _behind_text(self, chunk: bytes, at: int) -> int:
        at += self._is_escaped
        self._is_escaped = False
        at = _end(_TEXT, chunk, at)
        if at >= len(chunk):
            return at
        # A backslash that the pattern stops at is the last of the chunk.
        self._is_escaped = chunk[at] == _BACKSLASH
        self.in_text = self._is_escaped
        return at + 1


def _end(pattern: re.Pattern[bytes], chunk: bytes, at: int) -> int:
    match = pattern.match(chunk, at)
    return at if match is None else match.end()


class _Held:
    """The bytes of one value, up to a limit; how deep it goes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.data = bytearray()
        self.is_too_large = False
        self.nesting = 0

    def add(self, piece: bytes) -> None:
        if self.is_too_large:
            return
        if len(self.data) + len(piece) > self._bytes_max:
            self.is_too_large = True
            self.data = bytearray()
        else:
            self.data += piece

    def clear(self) -> None:
        self.data = bytearray()
        self.is_too_large = False
        self.nesting = 0

    def value(self) -> Iterator[object | Odd]:
        """What was held; it is held no longer."""
        if self.is_too_large or is_too_heavy(self.data):
            yield Odd(trouble=Trouble.TOO_LARGE, detail="an element")
        elif self.nesting > NESTING_MAX:
            yield Odd(trouble=Trouble.TOO_LARGE, detail="nested too deep")
        elif self.data and not self.data.isspace():
            yield from _parsed(self.data)
        self.clear()


def _parsed(data: bytearray) -> Iterator[object | Odd]:
    replaced: Odd | None = None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        replaced = Odd(trouble=Trouble.BROKEN, detail=NOT_UTF8)
    try:
        # Not a number is nothing: JSON has no word for it, and some programs write it all the same.
        value = json.loads(text, strict=False, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        yield Odd(trouble=Trouble.BROKEN, detail="no JSON")
        return
    yield value
    if replaced is not None:
        yield replaced


class _Cutter:
    """Cuts documents into elements. Within a list at `_base` it holds an element, else an object.

    `_base` is the depth inside the list whose elements are given; 0: there is none at the moment.
    """

    def __init__(self, *, names: Sequence[str], bytes_max: int) -> None:
        self._names = frozenset(name.encode() for name in names)
        self._scanner = _Scanner()
        self._base = 0
        self._element = _Held(bytes_max)
        self._object = _Held(bytes_max)
        self._member = _Held(NAME_BYTES_MAX)  # since the last comma of the outermost object
        self._has_list = False
        self._has_stray = False

    def feed(self, chunk: bytes) -> Iterator[object | Odd]:
        start = 0
        for at, mark in self._scanner.marks(chunk):
            self._hold(chunk[start:at])
            start = at + 1
            yield from self._at(mark)
        self._hold(chunk[start:])

    def finish(self) -> Iterator[object | Odd]:
        """What there is to say about the end."""
        depth = self._scanner.depth
        if depth == self._base and self._element.data.rstrip().endswith((b"}", b"]")):
            yield from self._element.value()
        if depth or self._scanner.in_text:
            yield Odd(trouble=Trouble.BROKEN, detail="cut off")
        elif self._has_stray:
            yield Odd(trouble=Trouble.BROKEN, detail="text outside of the document")

    def _hold(self, piece: bytes) -> None:
        if self._base:
            self._element.add(piece)
        elif self._scanner.depth:
            self._object.add(piece)
            if self._scanner.depth == 1:
                self._member.add(piece)
        elif piece.strip():
            self._has_stray = True

    def _at(self, mark: int) -> Iterator[object | Odd]:
        depth = self._scanner.depth
        if depth == 0:
            self._begin(mark)
        elif self._base:
            yield from self._in_list(mark, depth)
        else:
            yield from self._in_object(mark, depth)

    def _begin(self, mark: int) -> None:
        if mark == ord("["):
            self._enter(1)
        elif mark == ord("{"):
            self._scanner.flat = 1
            self._has_list = False
            self._object.add(b"{")
        else:
            self._has_stray = True

    def _in_list(self, mark: int, depth: int) -> Iterator[object | Odd]:
        if depth > self._base or mark in _OPENING:
            self._element.add(bytes((mark,)))
            self._element.nesting = max(self._element.nesting, depth - self._base + 1)
            return
        yield from self._element.value()
        if mark in _CLOSING:
            self._base = 0
            self._scanner.flat = depth - 1
            self._scanner.outer = _TO_MARK

    def _in_object(self, mark: int, depth: int) -> Iterator[object | Odd]:
        if depth == 1 and mark == ord("[") and self._is_wanted():
            self._has_list = True
            self._object.clear()
            self._member.clear()
            self._enter(2)
            return
        self._object.add(bytes((mark,)))
        self._object.nesting = max(self._object.nesting, depth)
        if depth == 1:
            self._member.clear()
        if depth == 1 and mark in _CLOSING:
            if not self._has_list:
                yield from self._object.value()
            self._object.clear()
            self._scanner.flat = 0

    def _is_wanted(self) -> bool:
        match = _NAME.fullmatch(self._member.data)
        return match is not None and match["name"] in self._names

    def _enter(self, base: int) -> None:
        self._base = base
        self._scanner.flat = base
        self._scanner.outer = _TO_COMMA
        self._element.clear()

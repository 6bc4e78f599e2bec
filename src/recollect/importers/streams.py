"""Reads files of other programs as streams: archives, JSON lines, elements of JSON lists.

Owns the limits for untrusted files: nothing is unpacked to disk, the output of an archive is
counted while it is read, and memory stays constant. A stream ends where it cannot continue, and its
trouble says why; nothing here raises because of a file's content, only OSError of the disk.
"""

from __future__ import annotations

import codecs
import io
import json
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, BinaryIO, Protocol

from recollect.importers.folders import open_regular
from recollect.importers.items import NOT_UTF8, Odd, broken, too_large, unreadable

VALUES_MAX = 1_000_000  # of one line or element
ELEMENT_BYTES_MAX = 64 * 2**20
LINE_BYTES_MAX = 64 * 2**20  # longer lines are passed over, unread
NESTING_MAX = 256  # of an element; Python's parser gives up at about a thousand
CHUNK_BYTES = 2**18
NAME_BYTES_MAX = 128  # of a list within an object, with what stands around it

_MARKS = (b",", b"{", b"[")  # there are no more values than these
_QUOTE, _BACKSLASH = b'"\\'
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_TEXT = re.compile(_STRING, re.DOTALL)
_INSIDE_TEXT = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_TO_MARK = re.compile(rb'(?:[^"\[\]{},]++|' + _STRING + rb")*+", re.DOTALL)
_INNER = rb'[^"\[\]{}]++|' + _STRING
# Inside an element only brackets count, and what opens and closes in the chunk is passed over.
_TO_BRACKET = re.compile(rb"(?:" + _INNER + rb"|[\[{](?:" + _INNER + rb")*+[\]}])*+", re.DOTALL)
_NAME = re.compile(rb'\s*"(?P<name>[^"\\]+)"\s*:\s*')


def is_too_heavy(json_text: bytes | bytearray) -> bool:
    if len(json_text) <= VALUES_MAX or _marks(json_text) <= VALUES_MAX:
        return False
    return _marks(_TEXT.sub(b"", json_text)) > VALUES_MAX


def _marks(text: bytes | bytearray) -> int:
    return sum(text.count(mark) for mark in _MARKS)


def _parsed(
    data: bytes | bytearray, what: str, otherwise: str, line: int | None = None
) -> tuple[object | Odd, Odd | None]:
    """The value of a JSON text, or what is wrong with it; and that some bytes were no text."""
    if is_too_heavy(data):
        return too_large(what, line), None
    replaced = None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("utf-8-sig", errors="replace")
        replaced = broken(NOT_UTF8, line)
    try:
        # Not a number is nothing: JSON has no word for it, and some programs write it all the same.
        return json.loads(text, strict=False, parse_constant=lambda _: None), replaced
    except (ValueError, RecursionError):
        return broken(otherwise, line), None


# elements


class Readable(Protocol):
    """What is read in chunks."""

    def read(self, size: int, /) -> bytes: ...


def elements(
    stream: Readable, *, names: Sequence[str], bytes_max: int = ELEMENT_BYTES_MAX
) -> Iterator[object | Odd]:
    """What a document consists of, in order.

    An outermost list gives its elements, an object those of the lists it has under one of `names`,
    and any other object itself. Several documents one after the other are read alike.
    """
    cutter = _Cutter(names=names, bytes_max=bytes_max)
    for chunk in _chunks(stream):
        yield from cutter.feed(chunk)
    yield from cutter.finish()


def _chunks(stream: Readable) -> Iterator[bytes]:
    """The stream as UTF-8, whatever it is in."""
    head = b""
    while len(head) < 4 and (more := stream.read(CHUNK_BYTES)):
        head += more
    encoding = json.detect_encoding(head)
    rest = iter(lambda: stream.read(CHUNK_BYTES), b"")
    if encoding.startswith("utf-8"):
        yield head.removeprefix(codecs.BOM_UTF8)
        yield from rest
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for chunk in chain((head,), rest):
        yield decoder.decode(chunk).encode(errors="replace")
    yield decoder.decode(b"", final=True).encode(errors="replace")


class _Cutter:
    """Cuts documents into elements. Within a list at `_base` it holds an element, else an object.

    `_base` is the depth inside the list whose elements are given; 0: there is none at the moment.
    """

    def __init__(self, *, names: Sequence[str], bytes_max: int) -> None:
        self._names = frozenset(name.encode() for name in names)
        self._bytes_max = bytes_max
        self._base = self._depth = 0
        self._in_text = self._is_escaped = False
        self._held = bytearray()
        self._is_too_large = False
        self._nesting = 0
        self._member = b""  # since the last comma of the outermost object
        self._has_list = False
        self._has_stray = False

    def feed(self, chunk: bytes) -> Iterator[object | Odd]:
        start = at = 0
        while at < len(chunk):
            if self._in_text:
                at = self._behind_text(chunk, at)
                continue
            is_flat = self._depth <= (self._base or 1)  # where the commas count
            at = _end(_TO_MARK if is_flat else _TO_BRACKET, chunk, at)
            if at == len(chunk):
                break
            if chunk[at] == _QUOTE:
                self._in_text = True
            else:
                self._hold(chunk[start:at])
                start = at + 1
                yield from self._take(chunk[at])
            at += 1
        self._hold(chunk[start:])

    def finish(self) -> Iterator[object | Odd]:
        """What there is to say about the end."""
        if self._depth == self._base and self._held.rstrip().endswith((b"}", b"]")):
            yield from self._value()
        if self._depth or self._in_text:
            yield broken("cut off")
        elif self._has_stray:
            yield broken("text outside of the document")

    def _behind_text(self, chunk: bytes, at: int) -> int:
        at = _end(_INSIDE_TEXT, chunk, at + self._is_escaped)
        # A backslash that the pattern stops at is the last of the chunk.
        self._is_escaped = at < len(chunk) and chunk[at] == _BACKSLASH
        self._in_text = self._is_escaped or at >= len(chunk)
        return at + 1

    def _hold(self, piece: bytes) -> None:
        if not self._depth:
            self._has_stray = self._has_stray or bool(piece.strip())
            return
        if not self._base and self._depth == 1:
            self._member = (self._member + piece)[-NAME_BYTES_MAX:]
        if len(self._held) + len(piece) > self._bytes_max:
            self._is_too_large = True
            self._held.clear()
        elif not self._is_too_large:
            self._held += piece

    def _take(self, mark: int) -> Iterator[object | Odd]:
        """A mark, and the depth behind it."""
        if self._depth == 0:
            self._begin(mark)
        elif self._base:
            yield from self._in_list(mark)
        else:
            yield from self._in_object(mark)
        if mark in _OPENING:
            self._depth += 1
        elif mark in _CLOSING:
            self._depth = max(0, self._depth - 1)

    def _begin(self, mark: int) -> None:
        self._clear()
        self._has_list = False
        if mark == ord("["):
            self._base = 1
        elif mark == ord("{"):
            self._held += b"{"
        else:
            self._has_stray = True

    def _in_list(self, mark: int) -> Iterator[object | Odd]:
        if self._depth > self._base or mark in _OPENING:
            self._hold(bytes((mark,)))
            self._nesting = max(self._nesting, self._depth - self._base + 1)
            return
        yield from self._value()
        if mark in _CLOSING:
            self._base = 0

    def _in_object(self, mark: int) -> Iterator[object | Odd]:
        name = _NAME.fullmatch(self._member) if self._depth == 1 and mark == ord("[") else None
        if name is not None and name["name"] in self._names:
            self._has_list = True
            self._clear()
            self._base = 2
            return
        self._hold(bytes((mark,)))
        self._nesting = max(self._nesting, self._depth)
        if self._depth == 1:
            self._member = b""
            if mark in _CLOSING:
                yield from () if self._has_list else self._value()
                self._clear()

    def _value(self) -> Iterator[object | Odd]:
        """What was held; it is held no longer."""
        if self._is_too_large:
            yield too_large("an element")
        elif self._nesting > NESTING_MAX:
            yield too_large("nested too deep")
        elif self._held and not self._held.isspace():
            value, replaced = _parsed(self._held, "an element", "no JSON")
            yield value
            if replaced is not None:
                yield replaced
        self._clear()

    def _clear(self) -> None:
        self._held = bytearray()
        self._member = b""
        self._is_too_large = False
        self._nesting = 0


def _end(pattern: re.Pattern[bytes], chunk: bytes, at: int) -> int:
    match = pattern.match(chunk, at)
    return at if match is None else match.end()


# archives

MEMBERS_MAX = 200_000  # names in an archive
DIRECTORY_BYTES_MAX = 64 * 2**20  # of an archive's list of names, which is read at once
RATIO_MAX = 300  # JSON seldom comes to 30, and the worst of bombs to a thousand
RATIO_FREE_BYTES = 16 * 2**20  # so much may come of anything
ARCHIVE_BYTES_MAX = 64 * 2**30  # unpacked, of all that is read from one

_SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
# ValueError and RuntimeError are how zipfile says that a header is nonsense.
_DAMAGE: tuple[type[Exception], ...] = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(ValueError, RuntimeError),
)

Wanted = Callable[[str], bool]  # by a name with slashes, as it is in the archive


class _TooManyNames(Exception):
    """Its list of names is too long to be read at once."""


class _ArchiveFile(io.BufferedReader):
    """A file of which zipfile, which believes what stands in it, can only ask for so much."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > DIRECTORY_BYTES_MAX:
            raise _TooManyNames
        return super().read(size)


class _Unpacked:
    """The bytes of one member. It ends early where they cannot be had; `trouble` says why."""

    def __init__(self, source: IO[bytes], bytes_max: int) -> None:
        self._source = source
        self.left = bytes_max
        self.trouble: Odd | None = None

    def read(self, size: int, /) -> bytes:
        try:
            data = b"" if self.trouble else self._source.read(size)
        except _DAMAGE:
            self.trouble = unreadable("damaged")
            return b""
        self.left -= len(data)
        if self.left < 0:
            self.trouble = too_large("an archive that unpacks to more")
            return b""
        return data


def entries_of(path: Path, wanted: Wanted, *, names: Sequence[str]) -> Iterator[object | Odd]:
    """The elements of a file, or of the wanted ones of an archive by their names, and what was in
    the way. A file that is named itself is wanted whatever it is called."""
    try:
        file = open_regular(path)
    except (OSError, ValueError):  # ValueError: a NUL in a name
        yield unreadable("no access, or not a file")
        return
    is_archive = file.read(4) in _SIGNATURES
    file.seek(0)
    if not is_archive:
        with file:
            yield from elements(file, names=names)
        return
    with _ArchiveFile(file.detach()) as archive:
        yield from _of_archive(archive, wanted, names)


def _of_archive(file: _ArchiveFile, wanted: Wanted, names: Sequence[str]) -> Iterator[object | Odd]:
    size = file.seek(0, io.SEEK_END)
    try:
        archive = zipfile.ZipFile(file)
    except _DAMAGE:
        yield unreadable("a damaged archive")
        return
    except _TooManyNames:
        archive = None
    if archive is None or len(archive.infolist()) > MEMBERS_MAX:
        yield too_large("an archive with too many files")
        return
    chosen = [each for each in archive.infolist() if _is_chosen(each.filename, wanted)]
    if not chosen:
        yield unreadable("an archive without the file that is looked for")
    left = ARCHIVE_BYTES_MAX
    for member in sorted(chosen, key=lambda each: each.filename):
        problem = _problem(member)
        if problem:
            yield unreadable(problem)
            continue
        packed = min(member.compress_size, size)
        most = min(left, max(RATIO_FREE_BYTES, packed * RATIO_MAX))
        try:
            opened = archive.open(member)
        except _DAMAGE:
            yield unreadable("a damaged archive")
            continue
        with opened:
            unpacked = _Unpacked(opened, most)
            yield from elements(unpacked, names=names)
        left -= most - unpacked.left
        if unpacked.trouble is not None:
            yield unpacked.trouble


def _is_chosen(name: str, wanted: Wanted) -> bool:
    """Whether it is wanted; an archive in an archive is not."""
    return not name.endswith("/") and not name.casefold().endswith(".zip") and wanted(name)


def _problem(member: zipfile.ZipInfo) -> str:
    if member.flag_bits & 0x1:
        return "an encrypted archive"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "a link in an archive"
    # Of the other methods' output, nobody can ask for only so much at once.
    return "" if member.compress_type in _METHODS else "an archive packed in an unusual way"


# lines


@dataclass(frozen=True, slots=True)
class Line:
    """One line: what stands in it, its number, and where the next one begins.

    `is_cut`: the file ends in the middle of it, so that it is not over. `replaced` says that some
    of its bytes were no text.
    """

    entry: object | Odd
    number: int
    end: int
    is_cut: bool = False
    replaced: Odd | None = None


def lines(
    stream: BinaryIO, *, offset: int = 0, number: int = 0, bytes_max: int = LINE_BYTES_MAX
) -> Iterator[Line]:
    """The lines of a stream from an offset on, empty ones left out; `number` is of the one before.

    A line that is no JSON, or too long, is an Odd, and so is one that is cut off at the end.
    """
    if offset:  # the line before may have been whole without its end
        stream.seek(offset - 1)
        number -= stream.read(1) != b"\n"
    stream.seek(offset)
    while text := stream.readline(bytes_max + 1):
        number += 1
        begin, offset = offset, offset + len(text)
        is_over = text.endswith(b"\n")
        if len(text) > bytes_max and not is_over:
            skipped, is_over = _skip(stream)
            offset += skipped
            entry: object | Odd = too_large("a line", number)
            yield Line(entry, number, offset if is_over else begin, is_cut=not is_over)
        elif text.strip(b" \t\r\n\0"):
            entry, replaced = _parsed(text, "a line", "not a line of JSON", number)
            if is_over or isinstance(entry, dict):
                yield Line(entry, number, offset, replaced=replaced)
            else:  # a number may be the beginning of a longer one
                yield Line(broken("not a line of JSON", number), number, begin, is_cut=True)


def _skip(stream: BinaryIO) -> tuple[int, bool]:
    """Pass over the rest of a line: how long it was, and whether it was over."""
    skipped = 0
    while chunk := stream.readline(CHUNK_BYTES):
        skipped += len(chunk)
        if chunk.endswith(b"\n"):
            return skipped, True
    return skipped, False

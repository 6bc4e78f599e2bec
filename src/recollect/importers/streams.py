"""Files of other programs as streams: archives, folders, JSON lines, elements of JSON lists.

Owns the suspicion towards them: nothing is unpacked to disk, no link is followed, what comes out is
counted while it is read, and memory stays constant. A stream ends where it cannot go on; why is its
trouble, and nothing here raises for what a file holds.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

from recollect.importers.items import NOT_UTF8, Odd, Trouble

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


VALUES_MAX = 1_000_000  # of one line or element
_MARKS = (b",", b"{", b"[")  # there are no more values than these
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def is_too_heavy(json_text: bytes | bytearray) -> bool:
    if len(json_text) <= VALUES_MAX or _marks(json_text) <= VALUES_MAX:
        return False
    return _marks(_TEXT.sub(b"", json_text)) > VALUES_MAX


def _marks(text: bytes | bytearray) -> int:
    return sum(text.count(mark) for mark in _MARKS)


ELEMENT_BYTES_MAX = 64 * 2**20
NESTING_MAX = 256  # of an element; Python's parser gives up at about a thousand
CHUNK_BYTES = 2**18
NAME_BYTES_MAX = 128  # of a list within an object, with what stands around it

_QUOTE, _BACKSLASH = b'"\\'
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")
_INSIDE_TEXT = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
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
_BYTE_ORDER_MARKS = (
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
    for mark, encoding in _BYTE_ORDER_MARKS:
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
        at = _end(_INSIDE_TEXT, chunk, at)
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


MEMBERS_MAX = 200_000  # names in an archive or a folder
FOLDERS_DEEP_MAX = 8
DIRECTORY_BYTES_MAX = 64 * 2**20  # of an archive's list of names, which is read at once
RATIO_MAX = 300  # JSON seldom comes to 30, and the worst of bombs to a thousand
RATIO_FREE_BYTES = 16 * 2**20  # so much may come of anything
ARCHIVE_BYTES_MAX = 64 * 2**30  # unpacked, of all that is read from one

_SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_END_BYTES = 22
_COMMENT_BYTES_MAX = 2**16
_LOCATOR_BYTES = 20
_END64_BYTES = 56

Wanted = Callable[[str], bool]  # by a name with slashes, below the folder or in the archive


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """How much is taken from one archive or folder."""

    members_max: int = MEMBERS_MAX
    ratio_max: int = RATIO_MAX
    bytes_max: int = ARCHIVE_BYTES_MAX


@dataclass(slots=True, kw_only=True)
class _Budget:
    """What all that is read from one archive may still come to."""

    left: int | None  # none: no limit, for what is not compressed comes to what it is


class Stream(io.RawIOBase):
    """The bytes of one file. It ends early where they cannot be had; `trouble` says why."""

    def __init__(self, source: IO[bytes], budget: _Budget, bytes_max: int | None) -> None:
        super().__init__()
        self._source = source
        self._budget = budget
        self._left = bytes_max
        self.trouble: Odd | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._some(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._source.close()
        super().close()

    def _some(self, size: int) -> bytes:
        if self.trouble is not None:
            return b""
        try:
            data = self._source.read(size)
        except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error):
            # ValueError and RuntimeError are how zipfile says that a header is nonsense.
            self.trouble = _unreadable("damaged")
            return b""
        if self._is_over(len(data)):
            self.trouble = Odd(trouble=Trouble.TOO_LARGE, detail="an archive that unpacks to more")
            return b""
        return data

    def _is_over(self, size: int) -> bool:
        if self._left is not None:
            self._left -= size
        if self._budget.left is not None:
            self._budget.left -= size
        return (self._left or 0) < 0 or (self._budget.left or 0) < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """One of the files that were wanted, open until the next one is asked for."""

    name: str
    stream: Stream


def files_of(
    path: Path, wanted: Wanted, *, limits: ArchiveLimits | None = None
) -> Iterator[Inner | Odd]:
    """The wanted files of an archive or a folder by their names, or the file itself.

    A file that is named itself is wanted whatever it is called.
    """
    limits = limits or ArchiveLimits()
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            yield from _of_folder(path, wanted, limits)
        elif not stat.S_ISREG(mode):
            yield _unreadable("not a file")
        else:
            yield from _of_file(path, path.name, wanted, limits)
    except (OSError, ValueError):  # a NUL in a name
        yield _unreadable("no access")


def entries_of(
    path: Path,
    wanted: Wanted,
    *,
    names: Sequence[str],
    bytes_max: int = ELEMENT_BYTES_MAX,
    limits: ArchiveLimits | None = None,
) -> Iterator[object | Odd]:
    """The elements of all wanted files, one after the other, and what was in the way."""
    for inner in files_of(path, wanted, limits=limits):
        if isinstance(inner, Odd):
            yield inner
            continue
        yield from elements(io.BufferedReader(inner.stream), names=names, bytes_max=bytes_max)
        if inner.stream.trouble is not None:
            yield inner.stream.trouble


def _unreadable(detail: str) -> Odd:
    return Odd(trouble=Trouble.UNREADABLE, detail=detail)


# files and folders


def _of_file(path: Path, name: str, wanted: Wanted, limits: ArchiveLimits) -> Iterator[Inner | Odd]:
    if _is_archive(path):
        yield from _of_archive(path, wanted, limits)
    else:
        yield from _opened(path, name)


def _opened(path: Path, name: str) -> Iterator[Inner | Odd]:
    """One file; what is no file any more, or became a pipe, is not waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield _unreadable("no access")
        return
    with os.fdopen(descriptor, "rb") as source:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            yield _unreadable("not a file")
            return
        with Stream(source, _Budget(left=None), None) as stream:
            yield Inner(name=name, stream=stream)


def _of_folder(folder: Path, wanted: Wanted, limits: ArchiveLimits) -> Iterator[Inner | Odd]:
    seen = 0
    found: list[tuple[str, Path]] = []
    for where, folders, files in os.walk(folder, followlinks=False):
        seen += len(folders) + len(files)
        if seen > limits.members_max:
            yield Odd(trouble=Trouble.TOO_LARGE, detail="a folder with too many files")
            break
        here = Path(where)
        if len(here.relative_to(folder).parts) >= FOLDERS_DEEP_MAX:
            folders.clear()
        for each in files:
            name = (here / each).relative_to(folder).as_posix()
            if wanted(name):
                found.append((name, here / each))
    if not found:
        yield _unreadable("a folder without the file that is looked for")
    for name, path in sorted(found):
        if path.is_symlink() or not path.is_file():
            yield _unreadable("a link in a folder")
        else:
            yield from _of_file(path, name, wanted, limits)


# archives


def _is_archive(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in _SIGNATURES


def _of_archive(path: Path, wanted: Wanted, limits: ArchiveLimits) -> Iterator[Inner | Odd]:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        directory_bytes = _directory_bytes(file, size)
        if directory_bytes > DIRECTORY_BYTES_MAX:
            yield Odd(trouble=Trouble.TOO_LARGE, detail="an archive with too many files")
            return
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, struct.error):
            yield _unreadable("a damaged archive")
            return
        with archive:
            yield from _members(archive, size, wanted, limits)


def _members(
    archive: zipfile.ZipFile, size: int, wanted: Wanted, limits: ArchiveLimits
) -> Iterator[Inner | Odd]:
    members = archive.infolist()
    if len(members) > limits.members_max:
        yield Odd(trouble=Trouble.TOO_LARGE, detail="an archive with too many files")
        return
    chosen = [each for each in members if _is_chosen(each.filename, wanted)]
    if not chosen:
        yield _unreadable("an archive without the file that is looked for")
    budget = _Budget(left=limits.bytes_max)
    for member in sorted(chosen, key=lambda each: each.filename):
        problem = _problem(member)
        if problem:
            yield _unreadable(problem)
            continue
        opened = _open_member(archive, member)
        if opened is None:
            yield _unreadable("a damaged archive")
            continue
        packed = min(member.compress_size, size)
        bytes_max = max(RATIO_FREE_BYTES, packed * limits.ratio_max)
        with Stream(opened, budget, bytes_max) as stream:
            yield Inner(name=member.filename, stream=stream)


def _is_chosen(name: str, wanted: Wanted) -> bool:
    """Whether it is wanted; an archive in an archive is not."""
    return not name.endswith("/") and not name.casefold().endswith(".zip") and wanted(name)


def _problem(member: zipfile.ZipInfo) -> str:
    if member.flag_bits & 0x1:
        return "an encrypted archive"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "a link in an archive"
    # Of the other methods' output, nobody can ask for only so much at once.
    if member.compress_type not in _METHODS:
        return "an archive packed in an unusual way"
    return ""


def _open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes] | None:
    try:
        return archive.open(member)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, struct.error, EOFError):
        return None


def _directory_bytes(file: IO[bytes], size: int) -> int:
    """How long an archive says that its list of names is: zipfile reads all of it at once."""
    tail_bytes = min(size, _END_BYTES + _COMMENT_BYTES_MAX)
    file.seek(size - tail_bytes)
    tail = file.read(tail_bytes)
    at = len(tail) - _END_BYTES
    if not tail.startswith(b"PK\x05\x06", max(at, 0)):
        at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + _END_BYTES:
        return 0  # zipfile will not find it either
    plain: int = struct.unpack_from("<L", tail, at + 12)[0]
    large = _directory_bytes_64(file, size - tail_bytes + at)
    return (large or plain) if plain == 0xFFFF_FFFF else max(plain, large)


def _directory_bytes_64(file: IO[bytes], end: int) -> int:
    """What the record of large archives says, which stands before the other one."""
    file.seek(max(0, end - _LOCATOR_BYTES - _END64_BYTES))
    record = file.read(_END64_BYTES)
    if len(record) < _END64_BYTES or not record.startswith(b"PK\x06\x06"):
        return 0
    return int(struct.unpack_from("<Q", record, 40)[0])


LINE_BYTES_MAX = 64 * 1024 * 1024  # of one line; longer ones are passed over, unread
_CHUNK_BYTES = 1024 * 1024


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
    number -= not _begins_line(stream, offset)
    stream.seek(offset)
    while True:
        text = stream.readline(bytes_max + 1)
        if not text:
            return
        number += 1
        begin, offset = offset, offset + len(text)
        is_over = text.endswith(b"\n")
        if len(text) > bytes_max and not is_over:
            skipped, is_over = _skip(stream)
            offset += skipped
            yield Line(_too_large(number), number, offset if is_over else begin, is_cut=not is_over)
        elif text.strip(b" \t\r\n\0"):
            entry, replaced = _read(text, number)
            is_cut = not is_over and not isinstance(entry, dict)
            if is_cut:  # a number may be the beginning of a longer one
                entry, replaced = _broken(number), None
            yield Line(entry, number, begin if is_cut else offset, is_cut, replaced)


def _begins_line(stream: BinaryIO, offset: int) -> bool:
    """Whether a line begins here; not, where the one before was whole without its end."""
    if not offset:
        return True
    stream.seek(offset - 1)
    return stream.read(1) == b"\n"


def _skip(stream: BinaryIO) -> tuple[int, bool]:
    """Pass over the rest of a line: how long it was, and whether it was over."""
    skipped = 0
    while chunk := stream.readline(_CHUNK_BYTES):
        skipped += len(chunk)
        if chunk.endswith(b"\n"):
            return skipped, True
    return skipped, False


def _read(text: bytes, number: int) -> tuple[object | Odd, Odd | None]:
    if is_too_heavy(text):
        return _too_large(number), None
    replaced = None
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError:
        decoded = text.decode("utf-8-sig", errors="replace")
        replaced = Odd(trouble=Trouble.BROKEN, detail=NOT_UTF8, line=number)
    try:
        entry: object = json.loads(decoded)
    except (ValueError, RecursionError):
        return _broken(number), None
    return entry, replaced


def _too_large(number: int) -> Odd:
    return Odd(trouble=Trouble.TOO_LARGE, detail="a line", line=number)


def _broken(number: int) -> Odd:
    return Odd(trouble=Trouble.BROKEN, detail="not a line of JSON", line=number)

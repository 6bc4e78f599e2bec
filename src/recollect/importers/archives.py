"""Files as an export brings them: in a .zip, in a folder, or by themselves, as streams of bytes.

Owns the suspicion towards them: nothing is unpacked to disk, no link is followed, and what comes
out is counted while it is read, whatever an archive says of itself. A stream ends where it cannot
go on; why is its trouble, and nothing here raises for what a file holds.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from recollect.importers.elements import ELEMENT_BYTES_MAX, elements
from recollect.importers.items import Odd, Trouble

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

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
class Limits:
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


def files_of(path: Path, wanted: Wanted, *, limits: Limits | None = None) -> Iterator[Inner | Odd]:
    """The wanted files of an archive or a folder by their names, or the file itself.

    A file that is named itself is wanted whatever it is called.
    """
    limits = limits or Limits()
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
    limits: Limits | None = None,
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


def _of_file(path: Path, name: str, wanted: Wanted, limits: Limits) -> Iterator[Inner | Odd]:
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


def _of_folder(folder: Path, wanted: Wanted, limits: Limits) -> Iterator[Inner | Odd]:
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


def _of_archive(path: Path, wanted: Wanted, limits: Limits) -> Iterator[Inner | Odd]:
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
    archive: zipfile.ZipFile, size: int, wanted: Wanted, limits: Limits
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

"""Finds the files of a source: regular ones, by name, below the places it keeps them in.

Links inside a folder are not followed: a log folder leads nowhere else. A path that somebody names
is theirs to choose. What cannot be looked through is told, and the rest is found all the same.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from recollect.errors import NotFound
from recollect.importers.items import ImportSource, Odd, Trouble

FILES_MAX = 200_000
_TIME_IN_NAME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}")
_UNREAD_FOLDER = Odd(trouble=Trouble.UNREADABLE, detail="a folder that cannot be read")
_NO_FILE = Odd(trouble=Trouble.UNREADABLE, detail="not a regular file")
_MORE_FILES = Odd(trouble=Trouble.TOO_LARGE, detail=f"a folder with more than {FILES_MAX:,} files")

State = tuple[int, int, int]
Told = Callable[[Path, Odd], None]
_Entry = os.DirEntry[str] | Path  # a path is one that somebody named


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A file to read, and the folder that was looked through for it."""

    path: Path
    root: Path
    size: int
    modified_ns: int
    changed_ns: int  # also when only its rights were, or its time was set back

    @property
    def state(self) -> State:
        """The same as long as nothing was done to it."""
        return (self.size, self.modified_ns, self.changed_ns)


def _nobody(_path: Path, _odd: Odd) -> None:
    """Nobody wants to know."""


def find_files(source: ImportSource, paths: Sequence[Path], told: Told = _nobody) -> list[LogFile]:
    """The files below these paths, the oldest first: what is copied from one into another belongs
    to the first.

    NotFound: a path is not there.
    """
    found: dict[Path, LogFile] = {}
    for path in paths:
        if not is_there(path):
            raise NotFound(
                f"there is no {place_of(path)}, or it may not be read: name the folder or the file"
            )
        for entry in _wanted(source, path, told):
            file = _log_file(entry, path)
            if file is not None:
                found.setdefault(file.path, file)
            elif entry is path:
                told(path, _NO_FILE)
    return _in_order(found.values())


def is_there(path: Path) -> bool:
    # Path's own raises where nobody may look.
    return os.path.exists(path)  # noqa: PTH110


def existing(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if is_there(path)]


def place_of(path: Path) -> str:
    """A path as text that can be stored and shown; of a name that is no text, its bytes."""
    return os.fsencode(path).decode(errors="backslashreplace")


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read; nothing that blocks, as a pipe would. OSError: it cannot be."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("not a regular file")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


class Lookout:
    """Looks through the same places again and again for files that have changed.

    With thousands of files that lie still, a look is little more than to ask how large they are:
    whose a name is, is decided once, and only what has changed is put in order.
    """

    def __init__(self, source: ImportSource, paths: Sequence[Path]) -> None:
        self._source = source
        self._paths = tuple(path.absolute() for path in paths)  # each file has one name
        self._seen: dict[str, State | None] = {}  # none: not a file of the source

    def changed(self) -> list[LogFile]:
        """Files that are new or have changed since they were noted. A place may come later."""
        before, self._seen = self._seen, {}
        found: dict[str, LogFile] = {}
        for root in existing(self._paths):
            for entry in _files(root, _nobody):
                name = os.fspath(entry)
                known = before.get(name)
                if known is None and (
                    (name in before and entry is not root)
                    or not _is_wanted(self._source, entry, root)
                ):
                    self._seen.setdefault(name, None)
                elif (file := self._looked_at(entry, root, known)) is not None:
                    found.setdefault(name, file)
        return _in_order(found.values())

    def note(self, file: LogFile) -> None:
        """It has been read, as it was when it was found."""
        self._seen[os.fspath(file.path)] = file.state

    def forget(self) -> None:
        """Find every file once more."""
        self._seen.clear()

    def _looked_at(self, entry: _Entry, root: Path, known: State | None) -> LogFile | None:
        """The file, if it is another one than is known."""
        try:
            about = entry.stat()
        except OSError:
            return None
        if known == (about.st_size, about.st_mtime_ns, about.st_ctime_ns):
            self._seen[os.fspath(entry)] = known
            return None
        return _log_file(entry, root)


def _in_order(files: Iterable[LogFile]) -> list[LogFile]:
    return sorted(files, key=lambda each: (_began(each), str(each.path)))


def _began(file: LogFile) -> str:
    """When a log began as its name says it, else when it was last written to."""
    named = _TIME_IN_NAME.search(file.path.name)
    return named[0] if named else modified_at(file).strftime("%Y-%m-%dT%H-%M-%S.%f")


def modified_at(file: LogFile) -> datetime:
    """When it was last written to; the beginning of time for a clock that was quite wrong."""
    try:
        return datetime.fromtimestamp(file.modified_ns / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _wanted(source: ImportSource, root: Path, told: Told) -> Iterator[_Entry]:
    count = 0
    for entry in _files(root, told):
        if _is_wanted(source, entry, root):
            count += 1
            if count > FILES_MAX:
                told(root, _MORE_FILES)
                return
            yield entry


def _is_wanted(source: ImportSource, entry: _Entry, root: Path) -> bool:
    return isinstance(entry, Path) or source.is_file(Path(entry.path).relative_to(root))


def _files(root: Path, told: Told) -> Iterator[_Entry]:
    """A path that is no folder, or every regular file below it."""
    if not root.is_dir():
        yield root
        return
    waiting = [os.fspath(root)]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except FileNotFoundError:
            continue  # it went away
        except OSError:
            told(Path(folder), _UNREAD_FOLDER)
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry


def _log_file(entry: _Entry, root: Path) -> LogFile | None:
    """None: it is no regular file, or none any more."""
    try:
        about = entry.stat()
    except OSError:
        return None
    if not stat.S_ISREG(about.st_mode):
        return None
    return LogFile(
        path=Path(entry),
        root=root,
        size=about.st_size,
        modified_ns=about.st_mtime_ns,
        changed_ns=about.st_ctime_ns,
    )

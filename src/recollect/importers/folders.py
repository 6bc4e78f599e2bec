"""Finds the files of a source: regular ones, by name, below the places it keeps them in.

Links inside a folder are not followed: a log folder leads nowhere else. A path that somebody names
is theirs to choose. What cannot be read is reported, and the rest is still found.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from recollect.errors import NotFound
from recollect.importers.items import Odd, too_large, unreadable

FILES_MAX = 200_000
_TIME_IN_NAME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}")
_UNREAD_FOLDER = unreadable("a folder that cannot be read")
_NO_FILE = unreadable("not a regular file")
_MORE_FILES = too_large(f"a folder with more than {FILES_MAX:,} files")

State = tuple[int, int, int]
Told = Callable[[Path, Odd], None]
IsFile = Callable[[Path], bool]  # by its path below the folder that was named


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
    """Ignore what could not be read."""


def find_files(is_file: IsFile, paths: Sequence[Path], told: Told | None = None) -> list[LogFile]:
    """Return the files below these paths, oldest first: an item copied into another file belongs
    to the first.

    NotFound: a path is not there. Without `told` it may come later, and nothing is said of what
    cannot be read.
    """
    for path in paths:
        if told is not None and not is_there(path):
            raise NotFound(
                f"there is no {place_of(path)}, or it may not be read: name the folder or the file"
            )
    say, found = told or _nobody, dict[Path, LogFile]()
    for path in paths:
        for count, file in enumerate(_below(path, is_file, say)):
            if count >= FILES_MAX:
                say(path, _MORE_FILES)
                break
            found.setdefault(file.path, file)
    return sorted(found.values(), key=lambda each: (_began(each), str(each.path)))


def is_there(path: Path) -> bool:
    # Path's own raises where nobody may look.
    return os.path.exists(path)  # noqa: PTH110


def existing(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if is_there(path)]


def place_of(path: Path) -> str:
    """A path as text that can be stored and shown; of a name that is no text, its bytes."""
    return os.fsencode(path).decode(errors="backslashreplace")


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file to read; nothing that blocks, as a pipe would. OSError: it cannot be."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("not a regular file")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


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


def _below(root: Path, is_file: IsFile, told: Told) -> Iterator[LogFile]:
    """The file that somebody named, or every wanted and regular one below a folder."""
    if not root.is_dir():
        file = _log_file(root, root)
        if file is None:
            told(root, _NO_FILE)
        else:
            yield file
        return
    waiting, below = [os.fspath(root)], len(os.path.join(root, ""))  # noqa: PTH118
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
            elif entry.is_file(follow_symlinks=False) and is_file(Path(entry.path[below:])):
                file = _log_file(entry, root)
                if file is not None:
                    yield file


def _log_file(entry: os.DirEntry[str] | Path, root: Path) -> LogFile | None:
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

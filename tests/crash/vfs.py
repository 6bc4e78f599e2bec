"""apsw VFSs between SQLite and its files: one logs what changes the disk, one counts, one fails.

They need apsw alone. Shared memory (`-shm`) and locks stay with the platform's VFS, unseen here.
"""

# SQLite names the methods of a VFS.
# ruff: noqa: N802

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import apsw

if TYPE_CHECKING:
    from typing_extensions import Buffer

Operation: TypeAlias = Literal["write", "sync", "truncate"]
FileName: TypeAlias = str | apsw.URIFilename | None
Before: TypeAlias = Callable[[Operation, int, bool], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A file with content from before the log began; taken as durable."""

    file: int
    name: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    file: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    name: str
    directory_synced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    file: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    file: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    file: int
    directory_synced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    token: object


Event: TypeAlias = Found | Created | Deleted | Write | Truncate | Sync | Acknowledged


@dataclass(slots=True)
class Log:
    """What happened to the files of one directory, in order.

    A file keeps its number for ever; a name may pass to another file.
    """

    events: list[Event] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    files: int = 0
    # Held while an operation runs, so that the order in the log is the order on the disk.
    lock: threading.RLock = field(default_factory=threading.RLock)

    def acknowledge(self, token: object) -> None:
        with self.lock:
            self.events.append(Acknowledged(token=token))

    def acknowledged_before(self, cut: int) -> list[object]:
        """The tokens that every image cut after the first `cut` events must hold."""
        return [event.token for event in self.events[:cut] if isinstance(event, Acknowledged)]

    def opened(self, path: str, *, existed: bool) -> int:
        name = Path(path).name
        if existed and name in self.names:
            return self.names[name]
        self.files += 1
        self.names[name] = self.files
        # A file that is found empty was made by the opener a moment ago, and nobody synced it.
        if data := Path(path).read_bytes():
            self.events.append(Found(file=self.files, name=name, data=data))
        else:
            self.events.append(Created(file=self.files, name=name))
        return self.files


class _LoggedFile(apsw.VFSFile):
    def __init__(self, log: Log, name: str | apsw.URIFilename, flags: list[int]) -> None:
        path = _path(name)
        with log.lock:
            existed = Path(path).exists()
            super().__init__("", name, flags)
            self._log = log
            self._file = log.opened(path, existed=existed)
        # SQLite's unix VFS syncs the directory at a handle's first sync of a journal or a WAL, and
        # never for a database file.
        journals = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL
        self._directory_due = bool(flags[0] & journals)

    def xWrite(self, data: Buffer, offset: int) -> None:
        with self._log.lock:
            super().xWrite(data, offset)
            self._log.events.append(Write(file=self._file, offset=offset, data=bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        with self._log.lock:
            super().xTruncate(newsize)
            self._log.events.append(Truncate(file=self._file, size=newsize))

    def xSync(self, flags: int) -> None:
        with self._log.lock:
            super().xSync(flags)
            self._log.events.append(Sync(file=self._file, directory_synced=self._directory_due))
            self._directory_due = False


class LoggingVFS(apsw.VFS):
    """Passes everything on and writes what changes the disk into `log`, but for temporary files."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.name = name
        self.log = Log()

    def xOpen(self, name: FileName, flags: list[int]) -> apsw.VFSFile:
        if name is None or flags[0] & apsw.SQLITE_OPEN_DELETEONCLOSE:
            return apsw.VFSFile("", name, flags)
        return _LoggedFile(self.log, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        with self.log.lock:
            super().xDelete(filename, syncdir)
            name = Path(filename).name
            self.log.names.pop(name, None)
            self.log.events.append(Deleted(name=name, directory_synced=syncdir))


class _WatchedFile(apsw.VFSFile):
    """Tells `before` (operation, bytes, grows) of each call; what it raises stops the call."""

    def __init__(self, before: Before, name: FileName, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._before = before

    def xWrite(self, data: Buffer, offset: int) -> None:
        size = len(memoryview(data))
        self._before("write", size, offset + size > self.xFileSize())
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._before("truncate", 0, newsize > self.xFileSize())
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self._before("sync", 0, False)
        super().xSync(flags)


class CountingVFS(apsw.VFS):
    """Counts calls and written bytes, over all files opened through it."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.name = name
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        self.syncs = self.writes = self.truncates = self.bytes_written = 0

    def xOpen(self, name: FileName, flags: list[int]) -> apsw.VFSFile:
        return _WatchedFile(self._count, name, flags)

    def _count(self, operation: Operation, size: int, grows: bool) -> None:
        with self._lock:
            match operation:
                case "sync":
                    self.syncs += 1
                case "truncate":
                    self.truncates += 1
                case "write":
                    self.writes += 1
                    self.bytes_written += size


# apsw hands on the raised instance as it is; made from a code it has the real `extendedresult`.
_IO_ERRORS: dict[Operation, int] = {
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
}


class FaultyVFS(apsw.VFS):
    """Fails the n-th call of a kind, or every call that needs room while `disk_full` is on.

    `calls` counts every call and `failures` the failed ones: a test walks n until nothing fails.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.name = name
        self._lock = threading.Lock()
        self._planned: dict[tuple[Operation, int], type[apsw.Error]] = {}
        self.calls: Counter[Operation] = Counter()
        self.failures = 0
        self.disk_full = False

    def fail_at(self, operation: Operation, n: int, error: type[apsw.Error] = apsw.IOError) -> None:
        """The n-th `operation` from now on (1 is the next) fails once: IOError or FullError."""
        self._planned[operation, self.calls[operation] + n] = error

    def heal(self) -> None:
        self._planned.clear()
        self.disk_full = False

    def xOpen(self, name: FileName, flags: list[int]) -> apsw.VFSFile:
        return _WatchedFile(self._check, name, flags)

    def _check(self, operation: Operation, size: int, grows: bool) -> None:
        with self._lock:
            self.calls[operation] += 1
            error = self._planned.pop((operation, self.calls[operation]), None)
            if self.disk_full and grows:
                error = apsw.FullError
            if error is None:
                return
            self.failures += 1
        full = error is apsw.FullError
        raise apsw.exception_for(apsw.SQLITE_FULL if full else _IO_ERRORS[operation])


def _path(name: str | apsw.URIFilename) -> str:
    return name.filename() if isinstance(name, apsw.URIFilename) else name

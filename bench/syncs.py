"""A SQLite VFS that counts syncs, by kind of file; self-contained.

apsw's own VFSFile.xSync holds the interpreter lock while the disk works, which SQLite without a VFS
in Python does not: other threads could not queue up meanwhile, and the count would not be the real
one. So the sync happens here, through a descriptor of our own, with the lock released.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import Literal

import apsw

Kind = Literal["wal", "main", "other"]

_sync = getattr(os, "fdatasync", os.fsync)


class CountingVFS(apsw.VFS):
    """Counts the syncs of every file opened through it. Close it after the last connection."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.name = name
        self.syncs: Counter[Kind] = Counter()
        self._lock = threading.Lock()
        self._descriptors: list[int] = []

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _CountedFile(self, name, flags)

    def count(self, kind: Kind) -> None:
        with self._lock:
            self.syncs[kind] += 1

    def keep_open(self, descriptor: int) -> None:
        """Closing a descriptor would drop the locks SQLite holds on the same file."""
        with self._lock:
            self._descriptors.append(descriptor)

    def close(self) -> None:
        self.unregister()
        while self._descriptors:
            os.close(self._descriptors.pop())


class _CountedFile(apsw.VFSFile):
    def __init__(
        self, vfs: CountingVFS, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        super().__init__("", name, flags)
        self._counting = vfs
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._descriptor: int | None = None
        if flags[0] & apsw.SQLITE_OPEN_WAL:
            self._kind: Kind = "wal"
        else:
            self._kind = "main" if flags[0] & apsw.SQLITE_OPEN_MAIN_DB else "other"

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._counting.count(self._kind)
        if self._path is None:
            super().xSync(flags)
            return
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR)
            self._counting.keep_open(self._descriptor)
        _sync(self._descriptor)

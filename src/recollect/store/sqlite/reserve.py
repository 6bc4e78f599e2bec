"""Room kept beside a database file, so that forgetting still works when the disk is full.

A deletion is written down before it is done, so it needs room as well. Free pages inside the file
would be of no use: what is written goes into the log first, which is a file of its own.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

RESERVE_BYTES = 1024 * 1024
SHARE = 3  # one part in so many of what is free: a small disk is there to be used, too
LENT_BYTES = 128 * 1024  # of it, that opening a file takes
LOW_BYTES = 16 * RESERVE_BYTES  # free on a disk that may soon be full


class Reserve:
    """A file that holds nothing but its place on the disk. Whatever fails here, nothing else does.

    Any number of processes may share it: one that is gone has been given up by somebody.
    """

    __slots__ = ("_is_refused", "_path")

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(f"{database.name}-reserve")
        self._is_refused = False  # there was room, and it could not be had

    @property
    def size_bytes(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def is_low(self) -> bool:
        """Whether the disk may soon be full."""
        try:
            return self._free_bytes() < LOW_BYTES
        except OSError:
            return False

    def keep(self) -> bool:
        """Set aside as much as there is room for, unless it is there; whether all of it is."""
        size = self.size_bytes
        if size >= RESERVE_BYTES or self._is_refused:
            return True
        try:
            wanted = min(RESERVE_BYTES, (self._free_bytes() + size) // SHARE)
            if wanted > size:
                self._allocate(wanted)
        except OSError:
            self._is_refused = True
        return self._is_refused or wanted >= RESERVE_BYTES

    def give_up(self) -> bool:
        """Let somebody have it who forgets; whether there was anything."""
        size = self.size_bytes
        with contextlib.suppress(OSError):
            self._path.unlink()
        return size > 0

    def lend(self) -> bool:
        """Let somebody have a little of it who could not even open the database."""
        size = self.size_bytes
        with contextlib.suppress(OSError):
            os.truncate(self._path, max(size - LENT_BYTES, 0))
        return size > 0

    def _free_bytes(self) -> int:
        disk = os.statvfs(self._path.parent)
        return disk.f_bavail * disk.f_frsize

    def _allocate(self, size: int) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, size)
            else:
                os.write(descriptor, bytes(size))
        except OSError:
            self._path.unlink()
            raise
        finally:
            os.close(descriptor)

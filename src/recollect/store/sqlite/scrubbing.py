"""Removes deleted text from the files of a store, and makes deleting possible on a full disk.

SQLite overwrites what it deletes (`secure_delete`). Two copies escape it: the cells that stay in
the unallocated part of a page when that is split, and words that the index of documents keeps until
its parts are merged. The first never come to the file (`ZeroedGaps`), the second are merged away by
`Scrubber.scrub`. What that costs depends on what was changed, not on the size of the file.
"""

from __future__ import annotations

import contextlib
import logging
import os
from functools import partial
from pathlib import Path

import apsw

from recollect.store.sqlite.files import translate, wait_for_lock

HEADER_BYTES = 100  # of the file, before the first page's own header
INTERIOR, LEAF = (2, 5), (10, 13)  # kinds of pages that hold cells
PAGE_BYTES_MIN = 512
# An overflow page begins with the number of the next: in a larger file it may look like another.
ZEROED_BYTES_MAX = 32 * 1024**3
_ZEROS = bytes(65536)


class ZeroedGaps(apsw.VFS):
    """Files whose pages reach the disk with nothing in their unallocated parts.

    That part means nothing to SQLite. Pages in the log may still have something there, and pages
    that a connection holds in memory; so the log is emptied and memory released after a deletion.
    """

    def __init__(self, base: str | None = None) -> None:
        self._base = base or ""
        self.name = f"recollect-{id(self):x}"
        super().__init__(self.name, self._base)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        kind = _ZeroedFile if flags[0] & apsw.SQLITE_OPEN_MAIN_DB else apsw.VFSFile
        return kind(self._base, name, flags)


class _ZeroedFile(apsw.VFSFile):
    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if len(data) >= PAGE_BYTES_MIN and self.xFileSize() <= ZEROED_BYTES_MAX:
            data = without_gap(data, HEADER_BYTES if offset == 0 else 0)
        super().xWrite(data, offset)


def without_gap(page: bytes, start: int = 0) -> bytes:
    """A page with zeros between its cell pointers, which begin after its header, and its cells."""
    kind = page[start]
    if kind not in INTERIOR and kind not in LEAF:
        return page
    cells = int.from_bytes(page[start + 3 : start + 5], "big")
    first = int.from_bytes(page[start + 5 : start + 7], "big") or 65536
    gap = start + (12 if kind in INTERIOR else 8) + 2 * cells
    if not gap < first <= len(page):
        return page
    return page[:gap] + _ZEROS[: first - gap] + page[first:]


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


LOG_PAGES = 1000  # after which it is moved into the file: what SQLite itself holds to be right
LOG_PAGES_LOW = 64
WIPED_BYTES = 256 * 1024  # at a time, so that there is always room for it
COMPACTED_PAGES_MIN = 256  # of a file that is written anew once half of it is free
# A merge of the index of documents leaves out the words of what is gone only where it is of several
# levels. So a part of a word that is nobody's is put above; beside one of a single page it would be
# on the same level, and the index is filled anew, which takes no longer.
_MERGE = "INSERT INTO documents_fts (documents_fts) VALUES ('optimize')"
_BLOCKS = "SELECT count(*) FROM documents_fts_data WHERE id > 10"
_MERGE_AGAIN = (
    "INSERT INTO documents_fts (rowid, called, about, words) VALUES (-1, '', '', 'merged')",
    _MERGE,
    """
    INSERT INTO documents_fts (documents_fts, rowid, called, about, words)
    VALUES ('delete', -1, '', '', 'merged')
    """,
)
_FILL_ANEW = (
    "INSERT INTO documents_fts (documents_fts) VALUES ('delete-all')",
    """
    INSERT INTO documents_fts (rowid, called, about, words)
    SELECT d.key, replace(' ' || d.called, ' ', ' ' || s.number || 'z'),
        replace(' ' || d.about, ' ', ' ' || s.number || 'z'),
        replace(' ' || d.words, ' ', ' ' || s.number || 'z')
    FROM documents d JOIN spaces s ON s.space = d.space
    """,
)
_WIPE = "INSERT OR REPLACE INTO properties (name, value) VALUES (?, printf('%*s', ?, ''))"
_WIPED = "DELETE FROM properties WHERE name LIKE ?"
_log = logging.getLogger(__name__)


class Scrubber:
    """One connection's duty to leave nothing behind; in memory there is nothing to see to."""

    def __init__(
        self,
        writer: apsw.Connection,
        location: str,
        reserve: Reserve | None,
        *,
        is_file: bool,
        busy_timeout_ms: int,
    ) -> None:
        self._location = location
        self._reserve = reserve
        self._is_file = is_file
        self._busy_timeout_ms = busy_timeout_ms
        self._is_reserved = reserve is None  # as far as this process knows
        self._is_low = False  # the disk has little room left
        self._owes_log = False  # somebody was reading when the log was to be emptied
        self._owes_pages = False  # what was deleted was not overwritten
        self.go_on_with(writer)

    def go_on_with(self, writer: apsw.Connection) -> None:
        """The file was opened, or was closed and opened again."""
        self._writer = writer
        self._is_low = False  # as far as this connection knows
        self._log_pages = 0
        writer.set_wal_hook(self._note_log)

    def _note_log(self, _: apsw.Connection, _name: str, pages: int) -> int:
        """Instead of SQLite's own hook: what fails behind a commit must not fail the commit."""
        self._log_pages = pages
        return apsw.SQLITE_OK

    def scrub(self) -> bool:
        """Leave nothing of what was deleted in a file. False: something is left for later.

        Where somebody reads, every write from now on tries to empty the log. Where a full disk
        leaves no room to overwrite free pages, the next call does.
        """
        if self._owes_pages:  # the log takes room that the file needs now
            self._fold(apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._owes_pages = not self._wipe()
        is_merged = self._merge_words()
        self._compact()
        try:
            try:
                self._empty_log()
            except apsw.FullError:
                if not self.make_room():
                    raise
                self._empty_log()
        except apsw.Error as error:
            raise translate(error, self._location) from error
        if self._owes_log:
            _log.warning("%s is being read; the log is emptied at the next chance", self._location)
        self._keep_reserve()
        return is_merged and not self._owes_log and not self._owes_pages

    def after_commit(self) -> None:
        """Do what the writer can do after its commit without waiting for another thread."""
        if self._owes_log:
            self._make_good()
        if self._log_pages >= (LOG_PAGES_LOW if self._is_low else LOG_PAGES):
            self._log_pages = 0
            self._fold(apsw.SQLITE_CHECKPOINT_PASSIVE)
        if self._reserve is not None:
            self._mind_the_disk(self._reserve)

    # a full disk

    def make_room(self) -> bool:
        """Give up what was kept for a deletion, and have the log's own room used once more.

        False: nothing was kept.
        """
        if self._reserve is None or not self._reserve.give_up():
            return False
        self._is_reserved = True  # nobody takes that room again before the deletion is done
        _log.warning("%s: the disk is full; the reserve is given up to forget", self._location)
        self._fold()
        return True

    def overwrite_later(self) -> None:
        """Let large parts be deleted in little room: what they said is overwritten afterwards."""
        self._owes_pages = True
        self._fold()
        self._writer.pragma("secure_delete", "FAST")

    def done(self) -> None:
        """A deletion has had its room, or has failed: what is left of it is kept again."""
        self._writer.pragma("secure_delete", "ON")
        self._fold(apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._keep_reserve()

    def _fold(self, mode: int = apsw.SQLITE_CHECKPOINT_RESTART) -> None:
        """Move the log into the file; unless it is cut off, its room is used again for the log."""
        with contextlib.suppress(apsw.Error):
            self._writer.wal_checkpoint(mode=mode)

    def _wipe(self) -> bool:
        """Overwrite the free pages piece by piece, by taking them for something that says nothing.

        One piece more than there are: none is left out, whatever else a piece takes. As each is
        given back it is overwritten to the end of its last page.
        """
        size = int(self._writer.pragma("page_size"))
        pieces = self._writer.pragma("freelist_count") * size // WIPED_BYTES + 1
        try:
            for number in range(pieces):
                self._writer.execute(_WIPE, (f"wiping {number}", WIPED_BYTES))
                self._fold(apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._writer.pragma("secure_delete", "ON")
            for number in range(pieces):
                self._writer.execute(_WIPED, (f"wiping {number}",))
                self._fold(apsw.SQLITE_CHECKPOINT_TRUNCATE)
            is_wiped = True
        except apsw.Error as error:
            _log.warning("%s: not all that was deleted is overwritten: %s", self._location, error)
            is_wiped = False
        with contextlib.suppress(apsw.Error):
            self._writer.pragma("secure_delete", "FAST")
            self._writer.execute(_WIPED, ("wiping %",))
        self._writer.pragma("secure_delete", "ON")
        return is_wiped

    # every day

    def _mind_the_disk(self, reserve: Reserve) -> None:
        """Keep the reserve; and the log short where it could soon not be moved into the file."""
        if not self._is_reserved:
            self._keep_reserve()
        is_low = reserve.is_low()
        if is_low == self._is_low:
            return
        self._is_low = is_low
        if is_low:
            self._fold(apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _keep_reserve(self) -> None:
        if self._reserve is not None:
            self._is_reserved = self._reserve.keep()

    def _merge_words(self) -> bool:
        try:
            with self._writer as writer:
                writer.execute(_MERGE)
                for each in _FILL_ANEW if writer.execute(_BLOCKS).get < 2 else _MERGE_AGAIN:
                    writer.execute(each)
        except apsw.Error as error:  # what was deleted is deleted: nobody is told otherwise
            _log.warning("%s: the words of pages were not merged: %s", self._location, error)
            return False
        return True

    def _compact(self) -> None:
        """Give the disk back what is free, where that is most of the file."""
        free, pages = (self._writer.pragma(f"{each}_count") for each in ("freelist", "page"))
        if not self._is_file or pages < COMPACTED_PAGES_MIN or free * 2 < pages:
            return
        try:
            self._writer.execute("VACUUM")
        except apsw.Error as error:
            _log.warning("%s keeps %d free pages: %s", self._location, free, error)

    def _empty_log(self) -> None:
        """Move the log into the file, where pages have no gaps, and let nobody bring them back.

        Other processes that have read a page from the log read it again after a commit of ours.
        """
        self._owes_log = self._is_file
        with contextlib.suppress(apsw.BusyError):
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._writer.release_memory()
            self._writer.pragma("user_version", 1 - self._writer.pragma("user_version"))
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._owes_log = False

    def _make_good(self) -> None:
        """Empty the log if nobody reads any more; the writer does not wait for readers."""
        self._writer.set_busy_handler(None)
        try:
            # An error of the disk is raised to the next writer.
            with contextlib.suppress(apsw.Error):
                self._empty_log()
        finally:
            self._writer.set_busy_handler(partial(wait_for_lock, self._busy_timeout_ms))

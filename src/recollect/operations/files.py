"""Creates files that get their name once they are whole and durable, and only if it is free.

Until then a file has a temporary name beside it, which the next attempt removes.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import apsw

from recollect.crashpoints import reach
from recollect.documents.files import Folder
from recollect.errors import (
    InvalidArchive,
    InvalidValue,
    NotAStore,
    NotEmpty,
    StoreBusy,
    StoreDenied,
    SwapUnsupported,
)
from recollect.progress import tell
from recollect.store.sqlite.files import prepare_file, schema_version, translate
from recollect.store.sqlite.scrubbing import ZeroedGaps

# What file systems say on which a file has one name alone, such as those of memory sticks.
_ONE_NAME = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})


def aside_of(path: Path) -> Path:
    """The name beside `path` for what is not whole yet."""
    if not path.name or "\0" in str(path):
        raise InvalidValue(f"{str(path)!r} cannot be the name of a file; give another one")
    return path.with_name(f"{path.name}.part")


def check_free(path: Path, advice: str) -> None:
    """NotEmpty: whatever it is, a link or a device too, something has the name already."""
    if not os.path.lexists(path):
        return
    _clear_other_name(path)
    raise NotEmpty(f"{path} exists already; {advice}")


def put_into_place(aside: Path, path: Path) -> None:
    """Give a file that is whole its name, if nobody has it."""
    try:
        sync_file(aside)
        _name(aside, path)
        sync_file(path.parent)
    except FileExistsError as error:
        raise NotEmpty(f"{path} exists already; nothing was written over it") from error
    except OSError as error:
        raise StoreDenied(f"cannot write {path}: {error.strerror}") from error


def sync_file(path: Path) -> None:
    """Let the disk have what was written to a file, or which names a directory has."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name(aside: Path, path: Path) -> None:
    try:
        os.link(aside, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _ONE_NAME:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        aside.replace(path)


def _clear_other_name(path: Path) -> None:
    """Take the other name from a file whose maker was killed when it had both."""
    if not path.name:
        return
    with contextlib.suppress(OSError):
        if aside_of(path).samefile(path):
            aside_of(path).unlink()


STEP_PAGES = 1_000
_BESIDE = ("-wal", "-shm", "-journal")


def copy(source: apsw.Connection, path: Path, *, origin: str) -> None:
    """Copy a database as one moment sees it into a new file, and prove that the file is whole.

    The source, which people call `origin`, is inside a transaction that reads, so that nothing
    moves under the copy.
    """
    prepare_file(path)
    try:
        zeroed = ZeroedGaps()
        with contextlib.closing(apsw.Connection(str(path), vfs=zeroed.name)) as target:
            with target.backup("main", source, "main") as copying:
                while not copying.done:
                    copying.step(STEP_PAGES)
                    done = copying.page_count - copying.remaining
                    tell(f"copying, {done:,} pages", done, copying.page_count)
            tell("examining the copy")
            target.pragma("journal_mode", "delete")  # one file, without a log beside it
            found = target.execute("PRAGMA integrity_check(1)").get
            if found != "ok":
                raise InvalidArchive(
                    f"{origin}: the database is damaged ({found}); nothing was kept"
                )
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise translate(error, origin) from error
    except apsw.Error as error:
        raise translate(error, str(path)) from error


@contextlib.contextmanager
def reading(path: Path) -> Iterator[apsw.Connection]:
    """A store that is only read, at one moment; NotAStore, SchemaTooNew: it is none of ours."""
    try:
        flags = apsw.SQLITE_OPEN_READONLY
        with contextlib.closing(apsw.Connection(str(path), flags=flags)) as source:
            source.execute("BEGIN")
            if schema_version(source, str(path)) == 0:
                raise NotAStore(f"{path} is empty: it never held a store")
            yield source
            source.execute("ROLLBACK")
    except apsw.Error as error:
        raise translate(error, str(path)) from error


@contextlib.contextmanager
def made_aside(path: Path) -> Iterator[Path]:
    """A name beside `path` for what is not whole yet; what was left there before is gone."""
    aside = aside_of(path)
    _remove(aside)
    try:
        yield aside
    finally:
        _remove(aside)


def exchange(aside: Path, path: Path, now: datetime) -> Path:
    """Put a file in the place of a store that nobody has open, and keep the old one beside it."""
    kept = _free_name(path, now)
    try:
        _settle(path, kept)
        sync_file(aside)
        # Under the name that the old one will have, so that a single step does it all: a process
        # killed before it leaves a copy of the backup there, one killed after it the old store.
        aside.rename(kept)
        reach("write.committing")
        _swap(kept, path)
        sync_file(path.parent)
        reach("write.committed")
    except OSError as error:
        raise StoreDenied(f"cannot replace {path}: {error.strerror}") from error
    return kept


def _swap(kept: Path, path: Path) -> None:
    """Two names change places; where the file system cannot do that, in steps without a gap."""
    try:
        with Folder.named(path.parent) as folder:
            folder.exchange(kept.name, path.name)
    except SwapUnsupported:
        aside = aside_of(path)
        kept.rename(aside)
        os.link(path, kept)
        aside.replace(path)


def _settle(path: Path, kept: Path) -> None:
    """Bring everything out of the log into the file; a file that is damaged keeps its log."""
    try:
        zeroed = ZeroedGaps()
        with contextlib.closing(apsw.Connection(str(path), vfs=zeroed.name)) as connection:
            connection.pragma("journal_mode", "delete")
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusy(f"{path} is open elsewhere; close it there, then retry") from error
    except apsw.Error:
        for suffix in _BESIDE:
            log = path.with_name(path.name + suffix)
            if log.exists():
                log.rename(kept.with_name(kept.name + suffix))


def _free_name(path: Path, now: datetime) -> Path:
    name = f"{path.name}.before-{now:%Y%m%dT%H%M%SZ}"
    tries = (path.with_name(f"{name}{suffix}") for suffix in ("", *(f"-{n}" for n in range(2, 99))))
    for each in tries:
        if not each.exists():
            return each
    raise NotEmpty(f"{path.parent} has too many copies of {path.name} from this second")


def _remove(path: Path) -> None:
    for suffix in ("", *_BESIDE):
        path.with_name(path.name + suffix).unlink(missing_ok=True)

"""SQLite's errors as ours: the type says what they mean, the text what to do."""

from __future__ import annotations

import apsw

from recollect.errors import (
    NotAStore,
    OutcomeUnknown,
    RecollectError,
    StoreBusy,
    StoreCorrupt,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TooLarge,
)

_ADVICE: tuple[tuple[type[Exception], type[RecollectError], str], ...] = (
    (apsw.BusyError, StoreBusy, "another process kept it locked; retry, or raise the busy timeout"),
    (apsw.LockedError, StoreBusy, "it is locked; retry"),
    (apsw.FullError, StoreFull, "the disk is full; free some room and retry"),
    (apsw.CorruptError, StoreCorrupt, "the file is damaged; restore a backup"),
    (UnicodeDecodeError, StoreCorrupt, "the file is damaged; restore a backup"),
    (apsw.NotADBError, NotAStore, "the file is not a database; choose another path"),
    (
        apsw.ReadOnlyError,
        StoreDenied,
        "it is read only; check the permissions of file and directory",
    ),
    (apsw.PermissionsError, StoreDenied, "permission denied; check file and directory"),
    (apsw.CantOpenError, StoreDenied, "it cannot be opened; check the path and its permissions"),
    (apsw.IOError, StoreUnavailable, "reading or writing failed; check the disk and retry"),
    (apsw.TooBigError, TooLarge, "a value is larger than the database can hold"),
)


def translate(error: apsw.Error | UnicodeDecodeError, location: str) -> RecollectError:
    """An error of the database as one of ours: the type says what it means, the text what to do."""
    for theirs, ours, advice in _ADVICE:
        if isinstance(error, theirs):
            return ours(f"{location}: {advice} ({error})")
    return StoreError(f"{location}: {error}")


def wants_room(error: apsw.Error) -> bool:
    """Whether it is for want of room on the disk; what processes share of the log needs some."""
    return isinstance(error, apsw.FullError) or (
        getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE
    )


def outcome_unknown(error: apsw.IOError, location: str) -> OutcomeUnknown:
    """A commit whose sync failed: a crash now may bring it back, the next commit may bury it."""
    unknown = OutcomeUnknown(
        f"{location}: the disk failed at commit ({error}); what was written may or may not be "
        "stored. Check the disk, then retry with the same append key: it is stored once"
    )
    unknown.__cause__ = error
    return unknown


def as_recollect_error(error: Exception, location: str) -> Exception:
    if isinstance(error, (apsw.Error, UnicodeDecodeError)):
        translated = translate(error, location)
        translated.__cause__ = error
        return translated
    return error

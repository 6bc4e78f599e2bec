"""SQLite through apsw."""

from recollect.store.sqlite.database import SqliteDatabase, Synchronous

__all__ = ["SqliteDatabase", "Synchronous"]

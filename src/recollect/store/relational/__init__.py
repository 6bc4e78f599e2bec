"""The store over a relational database: one implementation for SQLite and PostgreSQL.

What differs between the two (connections, locks, errors, dialect) stands behind `Database`.
"""

from recollect.store.relational.database import Connection, Database
from recollect.store.relational.store import RelationalStore

__all__ = ["Connection", "Database", "RelationalStore"]

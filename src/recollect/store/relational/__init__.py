"""The store over a relational database: one implementation for SQLite and PostgreSQL.

The differences between the two (connections, locks, errors, dialect) are hidden behind `Database`.
"""

from recollect.store.relational.database import Connection, Database
from recollect.store.relational.store import RelationalStore

__all__ = ["Connection", "Database", "RelationalStore"]

"""Keys of those who come in over HTTP: added, found by digest, revoked; each in one transaction."""

from __future__ import annotations

import builtins
from datetime import datetime

from recollect.clock import from_micros, to_micros
from recollect.store.key_protocol import ApiKey, Scope
from recollect.store.relational.database import Connection, Database, Row
from recollect.store.relational.rows import moment


class RelationalApiKeys:
    """Implements `recollect.store.protocol.ApiKeys`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, key: ApiKey) -> None:
        names = {
            "id": key.id,
            "name": key.name,
            "digest": key.digest,
            "space": key.space,
            "scope": key.scope.value,
            "created_at": to_micros(key.created_at),
            "expires_at": None if key.expires_at is None else to_micros(key.expires_at),
        }
        self._database.write(None, lambda c: c.run("add_api_key", names))

    def find(self, digest: str) -> ApiKey | None:
        row = self._database.read(None, lambda c: c.row("find_api_key", {"digest": digest}))
        return None if row is None else _key(row)

    def list(self, after: str, limit: int) -> builtins.list[ApiKey]:
        names = {"after": after, "limit": limit}
        rows = self._database.read(None, lambda c: c.rows("list_api_keys", names))
        return [_key(row) for row in rows]

    def revoke(self, key_id: str, now: datetime) -> bool:
        def job(c: Connection) -> bool:
            return c.row("revoke_api_key", {"id": key_id, "now": to_micros(now)}) is not None

        return self._database.write(None, job)

    def used(self, key_id: str, now: datetime) -> None:
        names = {"id": key_id, "now": to_micros(now)}
        self._database.write(None, lambda c: c.run("use_api_key", names))


def _key(row: Row) -> ApiKey:
    return ApiKey(
        id=row[0],
        name=row[1],
        digest=row[2],
        space=row[3],
        scope=Scope(row[4]),
        created_at=from_micros(row[5]),
        expires_at=moment(row[6]),
        revoked_at=moment(row[7]),
        last_used_at=moment(row[8]),
    )

"""The audit log: its entries are begun, ended, listed and dropped, each in one transaction."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from datetime import datetime

from recollect.clock import to_micros
from recollect.store.relational.database import Aggregate, Connection, Params, Row
from recollect.store.relational.rows import reader
from recollect.types.access import ApiKey, AuditEntry, AuditQuery

_LATEST = 2**62  # above every time there is
_EARLIEST = -(2**62)


class Audit(Aggregate):
    """The audit log. Entries go with their space, except those that say it was forgotten."""

    def begin(self, entry: AuditEntry) -> None:
        """Write an entry for a call that is about to begin."""
        names = {
            "id": entry.id,
            "space": entry.space or "",
            "at": to_micros(entry.at),
            "actor": entry.actor,
            "verb": entry.verb,
            "targets": json.dumps(entry.targets),
        }
        self._writing(entry.verb)(entry.space, lambda c: c.run("begin_audit", names))

    def end(self, entry: AuditEntry) -> None:
        """Note the outcome and the objects of a call, if its entry still exists."""
        names = {
            "space": entry.space or "",
            "id": entry.id,
            "targets": json.dumps(entry.targets),
            "outcome": entry.outcome,
        }
        self._writing(entry.verb)(entry.space, lambda c: c.run("end_audit", names))

    def _writing(self, verb: str) -> Callable[[str | None, Callable[[Connection], None]], None]:
        """What is said of a deletion has the room that the deletion has."""
        aggregate, _, name = verb.partition(".")
        is_erasing = aggregate == "erasure" or name.startswith(("erase", "purge"))
        return self._database.erase if is_erasing else self._database.write

    def list(
        self, query: AuditQuery, limit: int, before: AuditEntry | None
    ) -> builtins.list[AuditEntry]:
        """A page of entries, the newest first: those after `before` in that order."""
        page = {
            "any_actor": query.actor is None,
            "actor": query.actor or "",
            "any_verb": query.verb is None,
            "verb": query.verb or "",
            "since": _EARLIEST if query.since is None else to_micros(query.since),
            "until": _LATEST if before is None else to_micros(before.at),
            "until_id": "" if before is None else before.id,
            "limit": limit,
        }
        rows = self._database.read(query.space, lambda c: _rows(c, query.space, page))
        return [_entry(row) for row in rows]

    def prune(self, before: datetime, limit: int) -> int:
        """Drop entries from before a time, the oldest first; return their number."""
        names = {"before": to_micros(before), "limit": limit}

        def job(c: Connection) -> int:
            found = c.rows("old_audit", names)
            c.run_many("prune_audit", [{"space": row[0], "id": row[1]} for row in found])
            return len(found)

        return self._database.write(None, job)


def _rows(c: Connection, space: str | None, page: Params) -> builtins.list[Row]:
    if space is None:
        return c.rows("list_whole_audit", page)
    return c.rows("list_audit", {**page, "space": space})


_entry = reader(AuditEntry)


class ApiKeys(Aggregate):
    """The keys of a store: for its operator, over all spaces."""

    def add(self, key: ApiKey) -> None:
        """Keep a new key."""
        names = {
            "id": key.id,
            "name": key.name,
            "digest": key.digest,
            "space": key.space,
            "scope": key.scope.value,
            "created_at": to_micros(key.created_at),
            "expires_at": None if key.expires_at is None else to_micros(key.expires_at),
        }
        self._run(None, "add_api_key", names)

    def find(self, digest: str) -> ApiKey | None:
        """The key with this digest, also an expired or revoked one."""
        return self._one(_key, None, "find_api_key", {"digest": digest})

    def list(self, after: str, limit: int) -> builtins.list[ApiKey]:
        """Keys with an id above `after`, in order, also expired and revoked ones."""
        names = {"after": after, "limit": limit}
        return self._page(_key, None, "list_api_keys", names)

    def revoke(self, key_id: str, now: datetime) -> bool:
        """Revoke a key for good. False: there is none, or it was revoked before."""

        def job(c: Connection) -> bool:
            return c.row("revoke_api_key", {"id": key_id, "now": to_micros(now)}) is not None

        return self._database.write(None, job)

    def used(self, key_id: str, now: datetime) -> None:
        """Note that a key was used; the time only rises."""
        names = {"id": key_id, "now": to_micros(now)}
        self._run(None, "use_api_key", names)


_key = reader(ApiKey)

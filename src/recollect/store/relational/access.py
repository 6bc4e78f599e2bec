"""The audit log, keys, and what serving processes share: each verb in one transaction."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from datetime import datetime

from recollect.clock import to_micros
from recollect.errors import StoreBusy
from recollect.store.relational.database import Aggregate, Connection, Params, Row
from recollect.store.relational.rows import reader
from recollect.types.access import ApiKey, AuditEntry, AuditQuery, ServingState, StateKind

BEGUN_ATTEMPTS_MAX = 3
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


class Serving(Aggregate):
    """What the processes that serve a store have in common for a while; never any content."""

    def begin(self, state: ServingState) -> ServingState | None:
        """Keep a state, unless one of its kind and id has not expired: that one is returned."""
        names = _state_names(state)
        at = {"kind": names["kind"], "id": state.id, "now": names["changed_at"]}

        def job(c: Connection) -> Row | None:
            for _ in range(BEGUN_ATTEMPTS_MAX):
                if c.row("begin_serving_state", names) is not None:
                    return None
                found = c.row("get_serving_state", at)
                if found is not None:
                    return found
            raise StoreBusy("a state that several processes want changed each time; retry")

        known = self._database.write(None, job)
        return None if known is None else _state(known)

    def put(self, state: ServingState) -> None:
        """Keep a state in place of whatever there was."""
        self._run(None, "put_serving_state", _state_names(state))

    def get(self, kind: StateKind, state_id: str, now: datetime) -> ServingState | None:
        """The state, if it has not expired."""
        names = {"kind": kind.value, "id": state_id, "now": to_micros(now)}
        return self._one(_state, None, "get_serving_state", names)

    def drop(self, kind: StateKind, state_id: str) -> None:
        self._run(None, "drop_serving_state", {"kind": kind.value, "id": state_id})

    def count(self, kind: StateKind, now: datetime) -> int:
        """The number of states that have not expired."""
        names = {"kind": kind.value, "now": to_micros(now)}
        return self._count(None, "count_serving_states", names)

    def prune(self, kind: StateKind, most: int, now: datetime) -> None:
        """Drop what has expired, and of each owner's the oldest above so many."""
        names = {"kind": kind.value, "most": most, "now": to_micros(now)}
        self._run(None, "prune_serving_states", names)

    def schema_version(self) -> int:
        """The newest migration in the store now, whoever applied it."""
        return self._count(None, "applied_schema", {})


def _state_names(state: ServingState) -> Params:
    return {
        "kind": state.kind.value,
        "id": state.id,
        "owner": state.owner,
        "value": state.value,
        "changed_at": to_micros(state.changed_at),
        "expires_at": to_micros(state.expires_at),
    }


_state = reader(ServingState)

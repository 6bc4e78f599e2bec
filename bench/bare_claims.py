"""The limit of a claim: its statements and those of its finish on the bare driver.

Same SQL, same order, same three transactions; no checks and no values made from rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, Protocol

import apsw

from bench.bare import NOW
from bench.stores import SPACE
from recollect.store.relational.leases import SPACES_MAX
from recollect.store.sql import queries

LEASE_MICROS = 60_000_000  # the default lease
# What a range says of how something was learned; here nothing was.
_LEARNED = ("extractor", "attempt", "input_tokens", "output_tokens", "cost_micros")
Params = Mapping[str, Any]
# What any worker may claim.
_WHICH: Params = {
    "now": None,
    "any_lane": False,
    "lane": "",
    "any_space": True,
    "only_space": "",
    "consolidates": False,
    "patience_micros": 0,
    "takeovers_max": 20,
    "since": "",
    "limit": SPACES_MAX,
}


class Statements(Protocol):
    """Runs a query by its name, on a driver's connection."""

    def begin(self) -> None: ...

    def row(self, name: str, params: Params) -> Any: ...

    def run(self, name: str, params: Params) -> None: ...

    def commit(self) -> None: ...


class SqliteStatements:
    """On an apsw connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._queries = queries("sqlite")

    def begin(self) -> None:
        self._execute("BEGIN IMMEDIATE")

    def row(self, name: str, params: Params) -> Any:
        return self._execute(self._queries[name], params).fetchone()

    def run(self, name: str, params: Params) -> None:
        self._execute(self._queries[name], params)

    def commit(self) -> None:
        self._execute("COMMIT")


class PostgresStatements:
    """On a psycopg connection, outside Recollect's role and its pool."""

    def __init__(self, connection: Any, schema: str) -> None:
        # Any: psycopg is an extra, and this module has to load without it.
        self._execute = connection.execute
        self._queries = {name: text.encode() for name, text in queries("postgres").items()}
        connection.execute("SELECT set_config('search_path', %s, false)", (schema,))
        connection.execute("SELECT set_config('recollect.operator', 'on', false)")

    def begin(self) -> None:
        self._execute(b"BEGIN")

    def row(self, name: str, params: Params) -> Any:
        return self._execute(self._queries[name], params).fetchone()

    def run(self, name: str, params: Params) -> None:
        self._execute(self._queries[name], params)

    def commit(self) -> None:
        self._execute(b"COMMIT")


class BareClaims:
    """Looks for the next session that is due, claims and finishes it, in a transaction each."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._moments = count(NOW)  # SQLite does not write a row that stays as it was

    def claim_and_finish(self) -> None:
        self._finish(self._claim())

    def _claim(self) -> Any:
        do = self._statements
        do.begin()
        [now, _] = do.row("count_running", _WHICH)
        do.row("expired_claims", _WHICH)
        [space] = do.row("spaces_with_due", _WHICH)
        do.commit()
        do.begin()
        lease = {**_WHICH, "owner": "bench", "lease_micros": LEASE_MICROS, "now": now}
        job_id, kind, key = do.row("hold_first_due", {**lease, "space": space})
        names = {**lease, "space": space, "id": job_id, "kind": kind, "key": key}
        claim = do.row("claim_job", names)
        reached = do.row("reach_of_claim", names)
        do.commit()
        return *claim, *reached

    def _finish(self, claim: Any) -> None:
        do = self._statements
        job_id, _, space, key, token, _, _, _, upto, mark = claim
        do.begin()
        before = do.row("lock_session", {"space": space, "id": key})
        do.row("lock_claim", {"id": job_id, "token": token, "space": space, "key": key})
        do.row(
            "advance_cursor",
            {
                "space": space,
                "session_id": key,
                "upto": upto,
                "is_last": True,
                "read_upto": upto,
                "claimed_mark": mark,
            },
        )
        do.run(
            "insert_range",
            {
                "space": space,
                "id": key,
                "first_seq": before[1] + 1,
                "last_seq": upto,
                "outcome": "no_output",
                "reason": None,
                **dict.fromkeys(_LEARNED),
                "facts_dropped": 0,
                "facts_mended": 0,
                "now": NOW,
            },
        )
        do.run("rest_extract", {"space": space, "id": key})
        now = next(self._moments)
        do.run("note_progress", {"space": space, "id": job_id, "is_last": True, "now": now})
        do.commit()

    def commit_one_row(self) -> None:
        """What one commit takes by itself: the smallest durable change there is."""
        do = self._statements
        do.begin()
        now = next(self._moments)
        do.run("note_progress", {"space": SPACE, "id": 1, "is_last": True, "now": now})
        do.commit()

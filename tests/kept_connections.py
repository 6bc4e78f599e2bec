"""Connections to lent stores that outlive the store: a new one opens where the last one stopped.

A server process that is new has to read the catalogue and to plan every statement, which takes
longer than most tests do. What is kept is the session at the server, for a pool with the
statements prepared there; whoever closed the connection has nothing left of it. Only lent stores
take part, which say so in their URL.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from typing import Any

import psycopg
import pytest
from psycopg.pq import ConnStatus, ExecStatus, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGconn

from recollect.store import postgres
from recollect.store.postgres_statements import PreparingConnection

PREFIX = "kept_"  # of the application name of a store whose connections are kept
KEPT_MAX = 8  # of a store and a kind

_Kept = tuple[PGconn, dict[Any, bytes], int]


class KeptConnections:
    """The connections of one test process that nobody uses now, by where they lead and kind."""

    def __init__(self) -> None:
        self._free: defaultdict[tuple[str, type], list[_Kept]] = defaultdict(list)
        self._lock = threading.Lock()
        self._process = os.getpid()

    def take(self, conninfo: str, kind: type) -> _Kept | None:
        """One that still answers, or none."""
        with self._lock:
            free = self._free[conninfo, kind] if os.getpid() == self._process else []
            while free:
                kept = free.pop()
                if _is_as_left(kept):
                    return kept
                kept[0].finish()
        return None

    def keep(self, conninfo: str, kind: type, kept: _Kept) -> bool:
        """Whether there is room for it."""
        with self._lock:
            free = self._free[conninfo, kind]
            if os.getpid() != self._process or len(free) >= KEPT_MAX:
                return False
            free.append(kept)
        return True

    def end(self, name: str) -> None:
        """Close what leads to a store that is no more."""
        with self._lock:
            ended = [self._free.pop(each) for each in list(self._free) if name in each[0]]
        for pgconn, _, _ in (kept for free in ended for kept in free):
            pgconn.finish()


KEPT = KeptConnections()


class KeptConnection(PreparingConnection):
    """A pool's connection: closed for whoever held it, while the session goes on."""

    conninfo = ""

    @classmethod
    def connect(cls, conninfo: str = "", **options: Any) -> KeptConnection:
        if PREFIX not in conninfo:
            return super().connect(conninfo, **options)
        kept = KEPT.take(conninfo, cls)
        if kept is None:
            made = super().connect(conninfo, **options)
        else:
            made = cls(kept[0])
            made.prepared, made.prepared_ever = kept[1:]
            made._autocommit = bool(options.get("autocommit"))
        made.conninfo = conninfo
        return made

    def close(self) -> None:
        if not self.closed and self.conninfo and self._is_idle():
            kept = (self.pgconn, self.prepared, self.prepared_ever)
            self.pgconn = _finished()
            if not KEPT.keep(self.conninfo, type(self), kept):
                kept[0].finish()
        super().close()

    def _is_idle(self) -> bool:
        return (
            self.pgconn.status == ConnStatus.OK
            and self.pgconn.transaction_status == TransactionStatus.IDLE
            and self.pgconn.pipeline_status == PipelineStatus.OFF
        )


class KeptOpener(KeptConnection):
    """Any other connection, which may have set what it liked."""

    def _is_idle(self) -> bool:
        if not super()._is_idle():
            return False
        try:
            self.autocommit = True
            self.execute("DISCARD ALL")
        except psycopg.Error:
            return False
        return True


def _is_as_left(kept: _Kept) -> bool:
    """Whether it still answers, and still has what was prepared: a test may have seen to that."""
    pgconn, prepared, _ = kept
    counted = pgconn.exec_(b"SELECT count(*) FROM pg_prepared_statements")
    return counted.status == ExecStatus.TUPLES_OK and counted.get_value(0, 0) == b"%d" % len(
        prepared
    )


def _finished() -> PGconn:
    """A handle that leads nowhere, for a connection that has given away its own."""
    pgconn = psycopg.pq.PGconn.connect_start(b"host=/nowhere")
    pgconn.finish()
    return pgconn


def kept_name(schema: str) -> str:
    """What a store in this schema calls itself, to have its connections kept."""
    return PREFIX + schema


def keep_connections(patch: pytest.MonkeyPatch) -> None:
    connect = psycopg.connect

    def connect_again(conninfo: str = "", **options: Any) -> psycopg.Connection[Any]:
        # Whoever asks for more than the product does gets a connection of their own.
        if PREFIX in conninfo and options.keys() <= {"autocommit", "connect_timeout"}:
            return KeptOpener.connect(conninfo, **options)
        return connect(conninfo, **options)

    patch.setattr(postgres, "PreparingConnection", KeptConnection)
    patch.setattr(psycopg, "connect", connect_again)

"""A PostgreSQL to measure on: the one that was named, or one of our own with real syncs."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator

# Everything that makes a commit durable is left at the server's own defaults.
SETTINGS = {"listen_addresses": "", "max_connections": "50", "timezone": "UTC"}


@contextlib.contextmanager
def postgres(url: str | None, *, needed: bool) -> Iterator[tuple[str | None, str]]:
    """A URL, or None and the reason why there is none."""
    if url is not None or not needed:
        yield url, "not asked for"
        return
    with contextlib.ExitStack() as stack:
        try:
            importlib.import_module("psycopg")
            servers = importlib.import_module("tests.postgres_server")
        except ImportError as error:
            yield None, f"{error}; name a server with --postgres URL"
            return
        try:
            server = servers.PostgresServer(SETTINGS)
        except servers.PostgresUnavailable as error:
            yield None, f"{str(error).splitlines()[0]}; name a server with --postgres URL"
            return
        stack.callback(server.close)
        yield server.url, ""


@contextlib.contextmanager
def schemas_of_our_own(url: str | None) -> Iterator[None]:
    """Leave a server that stays as it was found; a run that was killed may have left something."""
    if url is None:
        yield
        return
    _drop_schemas(url)
    try:
        yield
    finally:
        _drop_schemas(url)


def _drop_schemas(url: str) -> None:
    import psycopg  # an extra; without it there is nothing to drop

    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'recollect\\_bench\\_%'"
        ).fetchall()
        for (name,) in found:
            connection.execute(f'DROP SCHEMA "{name}" CASCADE'.encode())

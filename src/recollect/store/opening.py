"""Opens the store that an address names; an address that names none is answered with advice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args
from urllib.parse import parse_qsl

from recollect.clock import Clock
from recollect.config import Settings
from recollect.errors import InvalidUrl, MissingExtra
from recollect.store.address import FORMS, at_home, file_of, url_parts
from recollect.store.relational import Database, RelationalStore
from recollect.store.sqlite import SqliteDatabase, Synchronous

if TYPE_CHECKING:
    from recollect.store.protocol import Store


def open_store(address: str | Path, settings: Settings, clock: Clock) -> Store:
    """Open a store, creating or migrating it if need be."""
    store = RelationalStore(_open_database(address, settings, clock))
    if settings.audit == "off" and not settings.metrics and not settings.traces:
        return store
    from recollect.store.observed import observe  # nothing of it where nobody looks

    return observe(store, settings, clock)


def _open_database(address: str | Path, settings: Settings, clock: Clock) -> Database:
    if isinstance(address, Path):
        return _open_sqlite(address, {}, settings, clock)
    if not isinstance(address, str) or not address.strip() or "\0" in address:
        raise InvalidUrl(f"not a store: {address!r}; {FORMS}")
    if address == ":memory:":
        return _open_sqlite(None, {}, settings, clock)
    scheme, separator, _ = address.partition("://")
    if not separator:
        return _open_sqlite(at_home(address), {}, settings, clock)
    match scheme:
        case "sqlite":
            return _open_sqlite_url(address, settings, clock)
        case "postgresql" | "postgres":
            return _open_postgres(address, settings, clock)
        case _:
            raise InvalidUrl(f"no store is opened with {scheme}://; {FORMS}")


def _open_sqlite_url(url: str, settings: Settings, clock: Clock) -> Database:
    options = dict(parse_qsl(url_parts(url).query))
    for name in options:
        if name not in ("synchronous", "vfs"):
            raise InvalidUrl(f"{url}: unknown option {name!r}; use synchronous or vfs")
    return _open_sqlite(file_of(url), options, settings, clock)


def _open_sqlite(
    path: Path | None, options: dict[str, str], settings: Settings, clock: Clock
) -> Database:
    if path is not None and (not path.absolute().name or "\0" in str(path)):
        raise InvalidUrl(f"{str(path)!r} cannot be the file of a store; {FORMS}")
    modes: dict[str, Synchronous] = {mode: mode for mode in get_args(Synchronous)}
    asked = options.get("synchronous", "full")
    if asked not in modes:
        raise InvalidUrl(f"synchronous is one of {', '.join(modes)}: {asked!r}")
    return SqliteDatabase(
        path,
        clock,
        wal=settings.sqlite_wal,
        busy_timeout_ms=settings.sqlite_busy_timeout_ms,
        synchronous=modes[asked],
        vfs=options.get("vfs"),
    )


def _open_postgres(url: str, settings: Settings, clock: Clock) -> Database:
    try:
        from recollect.store.postgres import (
            PostgresDatabase,
        )  # an extra, loaded when it is asked for
    except ImportError as error:
        raise MissingExtra(
            f"PostgreSQL needs an extra: pip install 'recollect[postgres]' ({error})"
        ) from error
    return PostgresDatabase(
        url,
        clock,
        schema=settings.postgres_schema,
        pool_max=settings.postgres_pool_max,
        timeout_seconds=settings.postgres_timeout_seconds,
    )

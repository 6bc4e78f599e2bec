"""PostgreSQL through psycopg: a pool, the space set per transaction, and row-level security.

Owns the second barrier of invariant 9: every transaction runs as a role that is neither owner nor
superuser and names the one space it may see.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
import selectors
import socket
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Any, Literal, TypeVar
from urllib.parse import unquote

import psycopg
from psycopg import errors as pg
from psycopg import sql
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from recollect.clock import Clock, to_micros
from recollect.crashpoints import reach
from recollect.errors import (
    InvalidUrl,
    InvalidValue,
    NotAStore,
    OutcomeUnknown,
    StoreBusy,
    StoreClosed,
    StoreDenied,
    StoreError,
    StoreForked,
    StoreUnavailable,
)
from recollect.ids import Ids
from recollect.store.address import without_password
from recollect.store.pgvector import PgVectorIndex, make_ready
from recollect.store.postgres_statements import (
    CHANNEL,
    WAKE,
    PostgresConnection,
    PreparedStatement,
    PreparingConnection,
    as_it_stands,
    statement,
    translate,
)
from recollect.store.relational import Connection
from recollect.store.relational.database import Asked, Row
from recollect.store.schema import (
    CREATE_VERSION_TABLE,
    Migration,
    migrations,
    newest_version,
    refuse_newer,
)
from recollect.store.whole import NO_VALUES, Access, Column, Values
from recollect.types.records import StoreDescription

FETCHED = 500  # rows that are held at a time
_PARAMETER = re.compile(r"(?<!:):([a-z_][a-z_0-9]*)")
_COLUMNS = b"""
SELECT c.relname::text, a.attname::text, format_type(a.atttypid, NULL),
    array_position(i.indkey::smallint[], a.attnum)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relnamespace = to_regnamespace(current_schema()::text) AND c.relkind IN ('r', 'p')
    AND NOT c.relispartition
    AND a.attgenerated = ''
ORDER BY c.relname, a.attnum
"""


class PostgresWhole:
    """Implements `Whole` on a connection that is inside a transaction."""

    dialect: Literal["postgres"] = "postgres"

    def __init__(self, connection: psycopg.Connection[Any], location: str) -> None:
        self.connection = connection
        self.location = location
        self._cursors = itertools.count()

    def tables(self) -> Mapping[str, tuple[Column, ...]]:
        found: defaultdict[str, list[Column]] = defaultdict(list)
        for table, name, kind, position in self.connection.execute(_COLUMNS):
            found[table].append(
                Column(
                    name=name,
                    is_text=kind == "text",
                    is_boolean=kind == "boolean",
                    key_position=position,
                )
            )
        return {table: tuple(columns) for table, columns in found.items()}

    def stream(self, text: str, values: Values = NO_VALUES) -> Iterator[tuple[Any, ...]]:
        name = f"recollect_{next(self._cursors)}"
        with closing(self.connection.cursor(name=name)) as cursor:
            cursor.itersize = FETCHED
            cursor.execute(_ours(text), values)
            for row in cursor:
                yield tuple(int(each) if isinstance(each, bool) else each for each in row)

    def run(self, text: str, values: Values = NO_VALUES) -> None:
        self.connection.execute(_ours(text), values)

    def run_many(self, text: str, values: Iterable[Values]) -> None:
        try:
            with closing(self.connection.cursor()) as cursor:
                for batch in _batches(values):
                    cursor.executemany(_ours(text), batch)
        except (psycopg.IntegrityError, psycopg.DataError) as error:
            detail = " ".join(str(error).split())
            raise InvalidValue(f"{self.location}: {detail}") from error


def _batches(values: Iterable[Values]) -> Iterator[list[Values]]:
    rest = iter(values)
    while batch := list(itertools.islice(rest, FETCHED)):
        yield batch


def _ours(text: str) -> bytes:
    return _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")).encode()


T = TypeVar("T")

ROLE = "recollect_app"
NO_ROLE = "none"
_OPERATOR = statement("SET LOCAL recollect.operator = 'on'")
ENCODING = "UTF8"  # of the database
PARTITIONS_MAX = 64  # of each table
ATTEMPTS_MAX = 5  # runs of one job that lost a deadlock or a serialisation conflict
WRITE = statement("BEGIN")
READ = statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
STOP_SECONDS = 2.0  # that a listener that is told to stop may take
LOOK_SECONDS = 30.0  # between looks at a silent connection: TLS may hold something back
RELISTEN_SECONDS = 5.0
_log = logging.getLogger(__name__)
_CONFLICTS = (pg.SerializationFailure, pg.DeadlockDetected)


class PostgresDatabase:
    """Implements `Database` on one schema of a PostgreSQL database."""

    def __init__(
        self, url: str, clock: Clock, *, schema: str, pool_max: int, timeout_seconds: float
    ) -> None:
        self._conninfo, self._schema, self._partitions = split_options(url, schema)
        self._location = without_password(url)
        self._closed = False
        self._forked = False
        self._common: tuple[PreparedStatement, ...] = ()
        try:
            with psycopg.connect(
                self._conninfo, autocommit=True, connect_timeout=max(2, int(timeout_seconds))
            ) as connection:
                _check_encoding(connection, self._location)
                self._version = self._migrate(connection, clock)
                self._role = _application_role(connection)
                plans = _plans(connection)
                is_parted = self._partitions_of(connection) > 0
                common = _common(self._schema, self._role, plans, is_parted=is_parted)
                self._common = tuple(map(statement, common))
                self._check_policies(connection, Ids(clock).new())
        except psycopg.Error as error:
            # What libpq itself says quotes the URL as it took it apart, and the password with it.
            cause = None if error.sqlstate is None else error
            raise translate(error, self._location, url) from cause
        self._pool: ConnectionPool[PreparingConnection] = ConnectionPool(
            self._conninfo,
            connection_class=PreparingConnection,
            min_size=1,
            max_size=pool_max,
            timeout=timeout_seconds,
            # The pool waits twice as long after every failure. Giving up early makes the next call
            # start afresh, so that a server that is back is found at once.
            reconnect_timeout=timeout_seconds,
            kwargs={"autocommit": True},
            name="recollect",
            open=True,
        )
        self._equipping = threading.Lock()
        self._is_equipped = False
        self._vector_index: PgVectorIndex | None = None
        _open_databases.add(self)

    def vector_index(self) -> PgVectorIndex | None:
        """Looked for when vectors are first used: a store without any needs no extension."""
        with self._equipping:
            if not self._is_equipped:
                self._vector_index = self._equipped()
                self._is_equipped = True
            return self._vector_index

    def describe(self) -> StoreDescription:
        return StoreDescription(
            kind="postgresql", location=self._location, schema_version=self._version
        )

    def write(self, space: str | None, job: Callable[[Connection], T]) -> T:
        return self._transact(WRITE, space, job)

    erase = write  # room on the server's disk is the server's to keep

    def read(self, space: str | None, job: Callable[[Connection], T]) -> T:
        return self._transact(READ, space, job)

    def ask(self, space: str | None, asked: Sequence[Asked]) -> list[list[Row]]:
        """In one exchange, the end of the transaction included."""
        return self._transact(READ, space, lambda c: c.last_rows(asked))

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Pass on the server's notifications, from whatever host they come."""
        listener = _Listener(self._conninfo, self._schema, wake)
        listener.start()
        return listener.stop

    def scrub(self) -> bool:
        """Dead rows are the server's to clear away: autovacuum does."""
        return True

    def close(self) -> None:
        if self._forked or self._closed:
            return
        self._closed = True
        self._pool.close()

    def abandon(self) -> None:
        """Called in a forked child: the sockets belong to the parent."""
        self._forked = True

    def _transact(
        self, begin: PreparedStatement, space: str | None, job: Callable[[PostgresConnection], T]
    ) -> T:
        """Run a job until it neither loses a conflict nor finds its connection dead.

        Connections that died while they lay in the pool are thrown away here, where nothing has
        happened yet, so that a restart of the server costs nobody an error.
        """
        conflicts, spares = 0, self._pool.max_size
        while True:
            connection = self._get()
            statements = PostgresConnection(connection, is_reading=begin is READ)
            try:
                self._begin(statements, begin, space)
                result = job(statements)
                self._finish(statements, connection, begin)
                return result
            except _CONFLICTS as error:
                conflicts += 1
                if conflicts == ATTEMPTS_MAX:
                    raise StoreBusy(
                        f"{self._location}: lost {conflicts} conflicts in a row; retry ({error})"
                    ) from error
            except psycopg.Error as error:
                is_dead = connection.closed and not statements.has_answered
                if not is_dead or not spares:
                    raise translate(error, self._location) from error
                spares -= 1
            finally:
                self._give_back(connection)

    def _begin(
        self, statements: PostgresConnection, begin: PreparedStatement, space: str | None
    ) -> None:
        """Let a transaction see one space. It begins with the first thing that is asked of it."""
        statements.put(begin)
        for each in self._common:
            statements.put(each)
        statements.put(_OPERATOR if space is None else _seen(space))

    def _finish(
        self,
        statements: PostgresConnection,
        connection: PreparingConnection,
        begin: PreparedStatement,
    ) -> None:
        if begin is READ:
            statements.commit()
            return
        reach("write.committing")
        try:
            statements.commit()
        except psycopg.OperationalError as error:
            if not connection.closed or not statements.has_answered:
                raise  # the server has told us that it did not commit, or was never there
            raise OutcomeUnknown(
                f"{self._location}: the connection broke at commit ({error}); what was written may "
                "or may not be stored. Retry with the same append key: it is stored once"
            ) from error
        reach("write.committed")

    def _get(self) -> PreparingConnection:
        if self._forked:
            raise StoreForked(
                "this store was opened before a fork; open it again in the child process"
            )
        try:
            return self._pool.getconn()
        except PoolClosed as error:
            raise StoreClosed(f"the store {self._location} is closed; open it again") from error
        except PoolTimeout as error:
            raise StoreUnavailable(
                f"{self._location}: no connection within {self._pool.timeout:g} s; check that the "
                "server runs and has connections to spare, then retry"
            ) from error

    def _give_back(self, connection: PreparingConnection) -> None:
        try:
            connection.give_up()
        except psycopg.Error:
            connection.close()
        self._pool.putconn(connection)

    def _equipped(self) -> PgVectorIndex | None:
        with self._as_opener() as connection:
            extension = make_ready(connection, self._schema, _grant)
        return None if extension is None else PgVectorIndex(self, extension, self._as_opener)

    @contextmanager
    def whole(self, access: Access) -> Iterator[PostgresWhole]:
        """All tables in one transaction, on a connection that is nobody else's."""
        if self._forked or self._closed:
            self._give_back(self._get())  # says why not
        try:
            with psycopg.connect(self._conninfo) as connection:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = access is Access.READ
                for each in _common(self._schema, self._role):
                    connection.execute(each.encode())
                # A copy that waits for its other side is idle for as long as that takes.
                connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                connection.execute(_OPERATOR.text)
                yield PostgresWhole(connection, self._location)
                if access is Access.WRITE:
                    connection.execute(WAKE.text)  # jobs may have come with it
                    reach("write.committing")
                    connection.commit()
                    reach("write.committed")
        except _CONFLICTS as error:
            raise StoreBusy(f"{self._location}: another process wrote the same; retry") from error
        except psycopg.Error as error:
            raise translate(error, self._location) from error

    @contextmanager
    def _as_opener(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection of its own, with the rights of the user who opened the store."""
        try:
            with psycopg.connect(self._conninfo, autocommit=True) as connection:
                connection.execute("SELECT set_config('search_path', %s, false)", (self._schema,))
                yield connection
        except psycopg.Error as error:
            raise translate(error, self._location) from error

    def _migrate(self, connection: psycopg.Connection[Any], clock: Clock) -> int:
        """Bring the schema to the newest version; several processes may try at once."""
        version = self._version_of(connection)
        partitions = self._partitions_of(connection) if version else self._partitions
        if self._partitions not in (0, partitions):
            raise InvalidUrl(
                f"{self._location}: this store has {partitions or 'no'} partitions, not"
                f" {self._partitions}; recollect migrate copies it into a new one that has them"
            )
        for migration in migrations("postgres")[version:]:
            made = migration.partitioned(partitions) if partitions else migration
            with connection.transaction():
                connection.execute(
                    "SELECT pg_advisory_xact_lock(hashtext('recollect'), hashtext(%s))",
                    (self._schema,),
                )
                name = sql.Identifier(self._schema)
                connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name))
                connection.execute(sql.SQL("SET LOCAL search_path TO {}").format(name))
                if self._version_of(connection) >= migration.version:
                    continue
                connection.execute(CREATE_VERSION_TABLE)
                for each in (*made.statements, *policies(migration)):
                    connection.execute(each.encode())
                reach("migration.applied")
                connection.execute(
                    "INSERT INTO schema_version VALUES (%s, %s, %s)",
                    (migration.version, migration.name, to_micros(clock.now())),
                )
                _grant(connection, self._schema)
        return max(version, newest_version("postgres"))

    def _check_policies(self, connection: psycopg.Connection[Any], space: str) -> None:
        """Refuse a store that does not show a space its own rows and no others.

        Whatever stands between us and the tables (a router, another policy) may drop what a
        transaction says of itself.
        """
        try:
            with connection.transaction(force_rollback=True):
                for each in _common(self._schema, self._role):
                    connection.execute(each.encode())
                connection.execute(_seen(space).text)
                connection.execute(
                    "INSERT INTO spaces (space, created_at) VALUES (%s, 0)", (space,)
                )
                found = connection.execute("SELECT space FROM spaces").fetchall()
        except pg.ReadOnlySqlTransaction:
            return  # a replica; the processes that write to the primary have checked this
        if found != [(space,)]:
            raise StoreDenied(
                f"{self._location}: under row-level security a space with one row sees"
                f" {len(found)}; look for policies that are not ours, and for a pooler or router"
                " that does not pass on SET LOCAL"
            )

    def _partitions_of(self, connection: psycopg.Connection[Any]) -> int:
        row = connection.execute(
            "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(%s)",
            (sql.Identifier(self._schema, "spaces").as_string(),),
        ).fetchone()
        return 0 if row is None else int(row[0])

    def _version_of(self, connection: psycopg.Connection[Any]) -> int:
        tables = {
            row[0]
            for row in connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = %s", (self._schema,)
            )
        }
        if "schema_version" not in tables:
            if tables:
                raise NotAStore(
                    f"{self._location}: the schema {self._schema!r} holds tables of another "
                    "program; add ?schema=<name> to the URL to use another one"
                )
            return 0
        name = sql.Identifier(self._schema, "schema_version")
        query = sql.SQL("SELECT max(version) FROM {}").format(name)
        applied = connection.execute(query).fetchone()
        version = 0 if applied is None or applied[0] is None else int(applied[0])
        refuse_newer(version, "postgres", self._location)
        return version


class _Listener(threading.Thread):
    """Waits for notifications on a connection of its own, and connects again when that breaks.

    A notification that is missed meanwhile costs nothing but time: workers also look by themselves.
    """

    def __init__(self, conninfo: str, schema: str, wake: Callable[[], None]) -> None:
        super().__init__(name="recollect-listen", daemon=True)
        self._conninfo = conninfo
        self._schema = schema
        self._wake = wake
        self._stopping = threading.Event()
        self._told, self._tell = socket.socketpair()

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                with psycopg.connect(self._conninfo, autocommit=True) as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._wake()  # for what became due before we listened
                    self._pass_on(connection)
            except psycopg.Error as error:
                _log.info("listening again in %g s: %s", RELISTEN_SECONDS, error)
                self._stopping.wait(RELISTEN_SECONDS)

    def _pass_on(self, connection: psycopg.Connection[Any]) -> None:
        # We wait ourselves: psycopg's own wait looks up ten times a second for Ctrl-C, which a
        # worker with nothing to do would pay for.
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._told, selectors.EVENT_READ)
            while not self._stopping.is_set():
                selector.select(LOOK_SECONDS)
                notices = [notice.payload for notice in connection.notifies(timeout=0)]
                if self._schema in notices:
                    self._wake()

    def stop(self) -> None:
        self._stopping.set()
        self._tell.send(b".")
        self.join(timeout=STOP_SECONDS)
        self._tell.close()
        self._told.close()


def _plans(connection: psycopg.Connection[Any]) -> str:
    """Whether statements are planned once: a router has to see for which space each of them is."""
    routed = connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchone()
    return "force_generic_plan" if routed is None else "auto"


def _common(
    schema: str, role: str, plans: str = "auto", *, is_parted: bool = False
) -> Iterator[str]:
    """What every transaction says of itself.

    What is to hold on other nodes as well is a statement of its own: routers pass on SET LOCAL, and
    no set_config. The rest is said at once, whatever the session has as its default.
    """
    local = {
        "search_path": sql.Identifier(schema).as_string(),
        "recollect.space": "",
        "recollect.operator": "",
        "recollect.plans": plans,  # of a search
        # A process that freezes in a transaction loses its locks, so that others take over.
        "idle_in_transaction_session_timeout": "60s",
    }
    if is_parted:
        # Otherwise the server plans for all partitions each time, which takes longer than the rest.
        local["plan_cache_mode"] = plans
    values = (f"set_config('{name}', {_quoted(value)}, true)" for name, value in local.items())
    yield f"SELECT {', '.join(values)}"
    yield f"SET LOCAL ROLE {'NONE' if role == NO_ROLE else sql.Identifier(role).as_string()}"


@lru_cache(maxsize=1024)
def _seen(space: str) -> PreparedStatement:
    """The one space that a transaction may see."""
    return as_it_stands(f"SET LOCAL recollect.space = {_quoted(space)}")


def _quoted(value: str) -> str:
    return sql.Literal(value).as_string().strip()


def split_options(url: str, default_schema: str) -> tuple[str, str, int]:
    """Our own parameters out of a libpq URL: the schema, and in how many partitions it is made."""
    # Cut out as they stand: libpq's idea of quoting is not that of HTML forms (a + is a +).
    address, _, query = url.partition("?")
    given = {"schema": default_schema, "partitions": "0"}
    rest = []
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if name in given:
            given[name] = unquote(value)
        else:
            rest.append(option)
    schema, partitions = given["schema"], given["partitions"]
    if not schema or not schema.isidentifier() or len(schema) > 63:
        raise InvalidUrl(f"not a schema name: {schema!r}; use letters, digits and underscores")
    if not re.fullmatch(r"\d{1,4}", partitions) or int(partitions) > PARTITIONS_MAX:
        raise InvalidUrl(f"partitions must be from 1 to {PARTITIONS_MAX} (got {partitions!r})")
    return "?".join([address, "&".join(rest)] if rest else [address]), schema, int(partitions)


def policies(migration: Migration) -> Iterator[str]:
    """The second wall between spaces, around every table with a space that a migration makes.

    A transaction names its space; the few operator transactions (status, sweeps) say so explicitly.
    A transaction that says neither sees nothing. FORCE applies it to the owner of the tables, too.
    """
    for table in migration.tables_with_space:
        yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
        yield f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
        yield (
            f"CREATE POLICY one_space ON {table} USING ("
            "space = current_setting('recollect.space', true)"
            " OR current_setting('recollect.operator', true) = 'on')"
        )


def _grant(connection: psycopg.Connection[Any], schema: str) -> None:
    """Make the application's role, if we may, and let it use the tables.

    Where the role cannot be made, row-level security still holds: it is forced on the tables'
    owner.
    """
    connection.execute(_CREATE_ROLE)
    row = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone()
    if row is None:
        return
    names = {"schema": sql.Identifier(schema), "role": sql.Identifier(ROLE)}
    for grant in (
        "GRANT USAGE ON SCHEMA {schema} TO {role}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
        "REVOKE INSERT, UPDATE, DELETE ON {schema}.schema_version FROM {role}",
    ):
        connection.execute(sql.SQL(grant).format(**names))


# Since PostgreSQL 16 a member of a role, its creator for one, may not be allowed to take it.
_MAY_TAKE = """
CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END
"""

_CREATE_ROLE = f"""
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN
        CREATE ROLE {ROLE} NOLOGIN;
    END IF;
    IF NOT pg_has_role('{ROLE}', {_MAY_TAKE}) THEN
        EXECUTE format('GRANT {ROLE} TO %I', current_user);
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
END
$$
""".encode()


def _check_encoding(connection: psycopg.Connection[Any], location: str) -> None:
    """Refuse a database that cannot hold every text; nothing was asked of it yet."""
    encoding = connection.info.parameter_status("server_encoding") or ENCODING
    if encoding != ENCODING:
        raise StoreError(
            f"{location}: the database {connection.info.dbname!r} has the encoding {encoding}, and "
            f"Recollect needs {ENCODING}; create one with CREATE DATABASE recollect "
            f"ENCODING '{ENCODING}' TEMPLATE template0, and name that in the URL"
        )


def _application_role(connection: psycopg.Connection[Any]) -> str:
    """The role our transactions take: neither the owner of the tables nor a superuser."""
    row = connection.execute(
        f"SELECT 1 FROM pg_roles WHERE rolname = %s AND pg_has_role(oid, {_MAY_TAKE})", (ROLE,)
    ).fetchone()
    if row is not None:
        return ROLE
    row = connection.execute(
        "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    if row is None or row[0]:
        raise StoreDenied(
            f"this user bypasses row-level security; create the role {ROLE} and grant it to them"
        )
    return NO_ROLE


_open_databases: weakref.WeakSet[PostgresDatabase] = weakref.WeakSet()


def _abandon_after_fork() -> None:
    for database in list(_open_databases):
        database.abandon()


os.register_at_fork(after_in_child=_abandon_after_fork)

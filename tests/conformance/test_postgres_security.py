"""The second wall between spaces: PostgreSQL itself refuses what a forgotten WHERE would show."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import StoreDenied
from recollect.store.opening import open_store
from recollect.store.postgres import ROLE, PostgresDatabase
from recollect.store.postgres_statements import PostgresConnection
from recollect.store.postgres_statements import statement as as_statement
from recollect.store.protocol import Store
from recollect.store.relational import Connection, RelationalStore
from recollect.types.access import ApiKey, AuditEntry, Scope
from recollect.types.facts import Caps, NewCall, Staged
from recollect.types.imports import Cursor, digest
from recollect.types.recall import NewVector
from recollect.types.records import Recorded, Released
from recollect_conformance import Harness, findings, handbooks, inboxes, lessons, pages
from tests.postgres_server import url_with

TENANT_TABLES = frozenset(
    {"spaces", "agents", "session_keys", "sessions", "session_history"}
    | {"retained_records", "summaries", "session_ranges", "jobs"}
    | {"extractions", "facts", "fact_sources", "fact_history"}
    | {"ledger", "spending", "consolidations", "staged_drafts"}
    | {"trees", "documents", "document_versions", "document_references", "document_redirects"}
    | {"usages", "postings", "vectors", "dropped_vectors", "vector_spaces", "embeddings"}
    | {"agent_lives", "inbox", "signals", "told_records"}
    | {"removed_memories", "generations", "generation_documents", "derived_inputs"}
    | {"contexts"}
    | {"imported_items", "import_cursors"}
    | {"api_keys", "audit"}
)
REFERRED_TO = frozenset({"spaces", "agents", "session_keys", "sessions", "agent_lives"})
OURS, THEIRS = "ours", "theirs"
CAPS = Caps(tokens_per_day=100, calls_per_day=10)
SEE_EVERYTHING = (
    "SELECT set_config('recollect.space', '', true), set_config('recollect.operator', 'on', true)"
)


# What nothing in Recollect writes yet.
FILL_BY_HAND = (
    (
        "INSERT INTO derived_inputs (space, kind, id, input_kind, input_id)"
        " VALUES (%(space)s, 'document', 'd', 'session', 's')"
    ),
    (
        "INSERT INTO contexts (space, id, reader, query, refs, told, created_at)"
        " VALUES (%(space)s, 'c', 'library', '', '', '', 0)"
    ),
)


class Undone(Exception):
    """Ends a transaction that is not to be."""


@pytest.fixture(scope="module")
def filled_schema(postgres_url: str) -> Iterator[str]:
    """The schema of one store for all of these tests: none leaves a change in it."""
    name = f"t_{secrets.token_hex(8)}"
    yield name
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def database(postgres_url: str, filled_schema: str) -> Iterator[PostgresDatabase]:
    """A store in which two spaces hold something in every table."""
    url = url_with(postgres_url, schema=filled_schema)
    with closing(Harness(lambda: open_at(url))) as store:
        for space in (OURS, THEIRS):
            remember_and_forget(store, space)
            a_fact = lessons.statement(f"a fact of {space}")
            lessons.teach(store, a_fact, key="learned", space=space)
            _, claimed = lessons.due(store, "staged", space=space)
            staged = Staged(pass_number=1, upto=1, extractor="rules", draft=lessons.draft(a_fact))
            assert store.handle.leases.stage(claimed, staged) == Recorded(is_done=False)
            store.handle.ledger.reserve(a_call(space), CAPS, store.now())
            pages.write(store, "a/b", f"of {space}", links=["c"], space=space)
            pages.apply(store, pages.moving("a/b", "c"), space=space)
            findings.use(store, "turn", *findings.entries(store, "fact", space=space), space=space)
        pending = store.handle.vectors.pending("a model", 100)
        made = [NewVector(entry=entry, vector=bytes(8)) for entry in pending]
        assert store.handle.vectors.put("a model", made) == len(pending) > 0
        for space in (OURS, THEIRS):
            pages.write(store, "c", "changed: no vector now", links=["c"], space=space)
            ref = store.key(space=space)
            store.append(ref, 6)
            assert store.process(ref, 4, 6)
            store.records.set_summary(ref, f"of {space}", store.now())
            store.compact(ref, retain=2)
            tell_an_agent(store, space)
            store.handle.api_keys.add(a_key(space, store.now()))
            store.handle.audit.begin(an_entry(space, store.now()))
            log = Cursor(source="logs", place=f"/logs/{space}")
            store.handle.imports.note(space, [digest(space)], log, store.now())
    settings = Settings()
    with closing(
        PostgresDatabase(
            url,
            ManualClock(),
            schema=settings.postgres_schema,
            pool_max=2,
            timeout_seconds=10,
        )
    ) as opened:
        for space in (OURS, THEIRS):
            for statement in FILL_BY_HAND:
                opened.write(space, raw(f"{statement} RETURNING 1", space=space))
        yield opened


def remember_and_forget(store: Harness, space: str) -> None:
    """A generation of a space, and something that the next one will be without."""
    session = handbooks.remember(store, "consolidated", space=space)
    handbooks.consolidate(store, space=space)
    handbooks.forget(store, session, space=space)


def tell_an_agent(store: Harness, space: str) -> None:
    """A memory-agent that has dealt with a session and will be asleep."""
    ref, _ = inboxes.handed_over(store, key="told", space=space)
    claim = inboxes.claim_of(store, str(ref.key_id))
    inboxes.finish(store, claim, inboxes.take(store, claim))
    assert inboxes.release(store, claim, inboxes.idle(store)) == Released()


def a_key(space: str, now: datetime) -> ApiKey:
    return ApiKey(
        id=f"key of {space}",
        name="a key",
        digest=f"digest of {space}",
        space=space,
        scope=Scope.READ,
        created_at=now,
    )


def an_entry(space: str, now: datetime) -> AuditEntry:
    return AuditEntry(id=f"entry of {space}", space=space, at=now, actor="mcp", verb="facts.add")


def a_call(space: str) -> NewCall:
    return NewCall(
        space=space,
        session_id=None,
        purpose="extract",
        model="small",
        attempt=1,
        input_tokens=1,
        output_tokens=1,
    )


def open_at(url: str) -> Store:
    return open_store(url, Settings(), ManualClock())


def raw(statement: str, **values: object) -> Callable[[Connection], list[tuple[Any, ...]]]:
    """A job that runs SQL of its own, as a bug or an injection would."""

    def job(connection: Connection) -> list[tuple[Any, ...]]:
        assert isinstance(connection, PostgresConnection)
        return connection.fetch(as_statement(statement), values)

    return job


def spaces_seen(database: PostgresDatabase, space: str | None, table: str) -> set[str]:
    return {row[0] for row in database.read(space, raw(f"SELECT space FROM {table}"))}


def test_row_level_security_is_on_and_forced_on_every_table_with_a_space(
    database: PostgresDatabase, filled_schema: str
) -> None:
    found = database.read(
        OURS,
        raw(
            "SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity, p.polcmd::text, a.attname"
            " FROM pg_class c LEFT JOIN pg_policy p ON p.polrelid = c.oid"
            " LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'space'"
            " WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind IN ('r', 'p', 'v')",
            schema=filled_schema,
        ),
    )
    tables = {row[0]: row[1:] for row in found}
    assert tables.pop("schema_version")[0] is False
    assert tables.pop("properties")[0] is False
    assert tables.pop("embedded_records")[0] is False
    assert tables.pop("serving_states")[0] is False  # digests, statuses and ids
    assert set(tables) == TENANT_TABLES
    for name, protection in tables.items():
        assert protection == (True, True, "*", "space"), name


def test_a_transaction_runs_as_neither_owner_nor_superuser(
    database: PostgresDatabase, filled_schema: str
) -> None:
    for transact in (database.read, database.write):
        [(user, is_super, bypasses, login)] = transact(
            OURS,
            raw(
                "SELECT current_user::text, rolsuper, rolbypassrls, rolcanlogin"
                " FROM pg_roles WHERE rolname = current_user"
            ),
        )
        assert (user, is_super, bypasses, login) == (ROLE, False, False, False)
    owners = database.read(
        OURS,
        raw(
            "SELECT DISTINCT tableowner::text FROM pg_tables WHERE schemaname = %(schema)s",
            schema=filled_schema,
        ),
    )
    assert owners == [("postgres",)]


def test_the_role_is_given_back_with_the_connection(database: PostgresDatabase) -> None:
    scope = raw(
        "SELECT current_setting('recollect.space', true),"
        " current_setting('recollect.operator', true)"
    )
    assert database.read(None, scope) == [("", "on")]
    for _ in range(4):
        assert database.read(OURS, scope) == [(OURS, "")]


def test_a_query_without_a_where_sees_one_space(database: PostgresDatabase) -> None:
    for seen, expected in ((OURS, {OURS}), (THEIRS, {THEIRS}), (None, {OURS, THEIRS})):
        found = {table: spaces_seen(database, seen, table) for table in sorted(TENANT_TABLES)}
        assert found == dict.fromkeys(sorted(TENANT_TABLES), expected)


def test_a_transaction_that_names_no_space_sees_nothing(
    database: PostgresDatabase, postgres_url: str, filled_schema: str
) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"SET LOCAL ROLE {ROLE}".encode())
        for table in sorted(TENANT_TABLES):
            assert spaces_seen(database, "", table) == set(), table
            rows = connection.execute(f'SELECT * FROM "{filled_schema}".{table}'.encode())
            assert rows.fetchall() == [], table


def test_an_update_or_delete_without_a_where_stays_inside_the_space(
    database: PostgresDatabase,
) -> None:
    for table in sorted(TENANT_TABLES):
        _change_everything(database, table)


def _change_everything(database: PostgresDatabase, table: str) -> None:
    count = f"SELECT space, count(*) FROM {table} GROUP BY space ORDER BY space"
    before = database.read(None, raw(count))

    def change_everything(connection: Connection) -> None:
        updated = raw(f"UPDATE {table} SET space = space RETURNING space")(connection)
        assert set(updated) == {(OURS,)}
        if table not in REFERRED_TO:
            raw(f"DELETE FROM {table} RETURNING 1")(connection)
            raw(SEE_EVERYTHING)(connection)
            assert raw(count)(connection) == [row for row in before if row[0] == THEIRS]
        raise Undone

    with pytest.raises(Undone):
        database.write(OURS, change_everything)
    assert database.read(None, raw(count)) == before


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO spaces VALUES ('third', 0)",
        "INSERT INTO agents VALUES ('theirs', '/user/spy', 0)",
        (
            "INSERT INTO session_ranges (space, session_id, pass, first_seq, last_seq, outcome,"
            " created_at) SELECT 'theirs', id, 1, 90, 91, 'x', 0 FROM sessions"
        ),
        "UPDATE sessions SET space = 'theirs'",
        "UPDATE session_history SET space = 'theirs'",
        "UPDATE summaries SET space = 'theirs', content = 'x'",
        "UPDATE facts SET space = 'theirs'",
        "UPDATE fact_sources SET space = 'theirs', quote = 'x'",
        "UPDATE fact_history SET space = 'theirs'",
        "UPDATE extractions SET space = 'theirs', raw_memory = 'x'",
        "UPDATE ledger SET space = 'theirs'",
        "INSERT INTO spending VALUES ('theirs', 1, 1, 1, 1)",
        "INSERT INTO consolidations VALUES ('third')",
        "INSERT INTO trees VALUES ('third', 0)",
        "UPDATE documents SET space = 'theirs', body = 'x'",
        "UPDATE document_versions SET space = 'theirs', body = 'x'",
        "UPDATE document_references SET space = 'theirs'",
        "UPDATE document_redirects SET space = 'theirs'",
        "UPDATE agent_lives SET space = 'theirs'",
        "UPDATE inbox SET space = 'theirs', text = 'x'",
        "UPDATE signals SET space = 'theirs'",
        "UPDATE told_records SET space = 'theirs'",
        "UPDATE removed_memories SET space = 'theirs', reason = 'x'",
        "UPDATE generations SET space = 'theirs', number = 99",
        "UPDATE generation_documents SET space = 'theirs'",
        "UPDATE imported_items SET space = 'theirs'",
        "UPDATE import_cursors SET space = 'theirs', memo = 'x'",
        "UPDATE audit SET space = 'theirs', actor = 'x'",
    ],
)
def test_a_row_of_another_space_is_refused(database: PostgresDatabase, statement: str) -> None:
    with pytest.raises(StoreDenied) as refusal:
        database.write(OURS, raw(statement))
    assert isinstance(refusal.value.__cause__, pg.InsufficientPrivilege)
    assert "row-level security" in str(refusal.value.__cause__)


def test_a_transaction_cannot_change_the_schema(database: PostgresDatabase) -> None:
    for statement in (
        "ALTER TABLE sessions DISABLE ROW LEVEL SECURITY",
        "DROP POLICY one_space ON sessions",
        "CREATE TABLE more (x BIGINT)",
        "UPDATE schema_version SET version = 99",
        "TRUNCATE sessions",
    ):
        with pytest.raises(StoreDenied):
            database.write(OURS, raw(statement))


# Login users: who opens a store need not be a superuser.


@contextmanager
def login_user(postgres_url: str, attributes: str = "") -> Iterator[str]:
    """A user of the server without special rights, gone afterwards."""
    name = f"t_{secrets.token_hex(6)}"
    user = sql.Identifier(name)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        created = sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER " + attributes)
        connection.execute(created.format(user))
        try:
            yield name
        finally:
            connection.execute(sql.SQL("DROP OWNED BY {}").format(user))
            connection.execute(sql.SQL("DROP ROLE {}").format(user))


@contextmanager
def own_database(postgres_url: str, owner: str) -> Iterator[str]:
    """A database that belongs to a user, gone afterwards."""
    name = sql.Identifier(owner)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(name, name))
        try:
            yield owner
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def url_as(postgres_url: str, user: str, database: str = "postgres") -> str:
    parts = urlsplit(postgres_url)
    return urlunsplit(parts._replace(netloc=f"{user}@", path=f"/{database}"))


def use(url: str) -> tuple[str, bool]:
    """Work with a store; gives the role its transactions have and whether a space is a wall."""
    with closing(Harness(lambda: open_at(url))) as store:
        for space in (OURS, THEIRS):
            ref = store.key(space=space)
            store.append(ref, 6)
            assert store.process(ref, 6, 6)
            assert store.reset(ref).rotation == 2
        assert isinstance(store.handle, RelationalStore)
        database = store.handle._database
        assert isinstance(database, PostgresDatabase)
        [(role,)] = database.read(OURS, raw("SELECT current_user::text"))
        return role, spaces_seen(database, OURS, "session_history") == {OURS}


def test_a_member_of_the_role_can_use_a_store_that_somebody_else_made(
    postgres_url: str, postgres_store_url: str, postgres_schema: str
) -> None:
    open_at(postgres_store_url).close()
    with login_user(postgres_url, f"IN ROLE {ROLE}") as user:
        url = url_with(url_as(postgres_url, user), schema=postgres_schema)
        assert use(url) == (ROLE, True)


def test_a_user_without_rights_is_told_so(
    postgres_url: str, postgres_store_url: str, postgres_schema: str
) -> None:
    open_at(postgres_store_url).close()
    with login_user(postgres_url) as user:
        url = url_with(url_as(postgres_url, user), schema=postgres_schema)
        with pytest.raises(StoreDenied):
            use(url)


def test_the_owner_of_a_database_can_make_a_store_without_more_rights(postgres_url: str) -> None:
    with login_user(postgres_url) as user, own_database(postgres_url, user) as name:
        role, is_walled = use(url_as(postgres_url, user, name))
        assert role == user, "it may not take a role it is no member of"
        assert is_walled, "row-level security is forced on the owner as well"


def test_an_owner_who_is_a_member_of_the_role_takes_it(postgres_url: str) -> None:
    with (
        login_user(postgres_url, f"IN ROLE {ROLE}") as user,
        own_database(postgres_url, user) as name,
    ):
        assert use(url_as(postgres_url, user, name)) == (ROLE, True)


def test_an_owner_who_administers_the_role_but_may_not_take_it_can_make_a_store(
    postgres_url: str, postgres_store_url: str
) -> None:
    open_at(postgres_store_url).close()  # so that the role is there
    with login_user(postgres_url) as user, own_database(postgres_url, user) as name:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            # What whoever creates a role gets on PostgreSQL 16 and later.
            connection.execute(
                f"GRANT {ROLE} TO {user} WITH ADMIN TRUE, INHERIT FALSE, SET FALSE".encode()
            )
        assert use(url_as(postgres_url, user, name))[1]


def test_a_user_who_bypasses_row_level_security_must_take_the_role(
    postgres_url: str, postgres_store_url: str, postgres_schema: str
) -> None:
    open_at(postgres_store_url).close()
    with login_user(postgres_url, "BYPASSRLS") as user:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            for grant in ("USAGE ON SCHEMA {}", "ALL ON ALL TABLES IN SCHEMA {}"):
                granted = sql.SQL("GRANT " + grant + " TO {}")
                connection.execute(
                    granted.format(sql.Identifier(postgres_schema), sql.Identifier(user))
                )
        url = url_with(url_as(postgres_url, user), schema=postgres_schema)
        with pytest.raises(StoreDenied, match="bypasses row-level security"):
            open_at(url)


@pytest.mark.parametrize(
    "space",
    [
        "x'; SET LOCAL recollect.operator = 'on",
        "x\\'; SET LOCAL recollect.operator = 'on",
        "\\",
        "''",
        "%(space)s",
        "$1",
        '"ours"',
        "ours\n",
    ],
)
def test_a_space_is_quoted_where_a_transaction_names_it(
    database: PostgresDatabase, space: str
) -> None:
    named = raw(
        "SELECT current_setting('recollect.space'), current_setting('recollect.operator'),"
        " (SELECT count(*) FROM sessions)"
    )
    assert database.read(space, named) == [(space, "", 0)]


@pytest.mark.parametrize("setting", ["recollect.operator=on", f"recollect.space={THEIRS}"])
def test_what_a_session_has_as_its_default_opens_nothing(lent_store_url: str, setting: str) -> None:
    with closing(Harness(lambda: open_at(lent_store_url))) as store:
        store.append(store.key(space=THEIRS))
    with closing(open_at(url_with(lent_store_url, options=f"-c {setting}"))) as opened:
        assert isinstance(opened, RelationalStore)
        spaces = raw("SELECT space FROM sessions")
        assert opened._database.read(OURS, spaces) == []
        assert opened._database.read(None, spaces) == [(THEIRS,)]


def test_a_store_that_does_not_show_a_space_its_own_rows_is_refused(
    postgres_url: str, postgres_store_url: str
) -> None:
    open_at(postgres_store_url).close()
    schema = postgres_store_url.partition("schema=")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        blind = "CREATE POLICY blind ON {} AS RESTRICTIVE FOR SELECT USING (false)"
        connection.execute(sql.SQL(blind).format(sql.Identifier(schema, "spaces")))
    with pytest.raises(StoreDenied, match=r"one row sees 0;.* SET LOCAL"):
        open_at(postgres_store_url)


def test_a_store_that_shows_a_space_the_rows_of_others_is_refused(
    postgres_url: str, postgres_store_url: str
) -> None:
    with closing(Harness(lambda: open_at(postgres_store_url))) as store:
        store.append(store.key())
    schema = postgres_store_url.partition("schema=")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        wide = "CREATE POLICY wide ON {} FOR SELECT USING (true)"
        connection.execute(sql.SQL(wide).format(sql.Identifier(schema, "spaces")))
    with pytest.raises(StoreDenied, match="one row sees 2;"):
        open_at(postgres_store_url)

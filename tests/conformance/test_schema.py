"""Document 000, task 1, and document 004's schema, line by line."""

from __future__ import annotations

import stat
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
import psycopg
import pytest

from recollect import crashpoints
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import NotAStore, SchemaTooNew, StoreError
from recollect.store import postgres
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.store.schema import Migration, migrations
from recollect.store.sqlite import files
from recollect_conformance import Harness
from tests.conformance.catalogue import Catalogue

TABLES = {"sessions", "session_history", "summaries", "schema_version"}


@pytest.fixture
def durable_store_url(new_store_url: str) -> str:
    """All of this is about the making."""
    return new_store_url


def open_at(address: str | Path, settings: Settings | None = None) -> Store:
    return open_store(address, settings or Settings(), ManualClock())


# Document 000, task 1


def test_sessions_have_a_nullable_invalidated_at_and_processed_until(
    durable_store_url: str, catalogue: Catalogue
) -> None:
    open_at(durable_store_url).close()
    nullable = catalogue.nullable("sessions")
    assert nullable["invalidated_at"] is True
    assert nullable["processed_until"] is True
    assert nullable["last_seq"] is False


def test_the_index_on_invalidated_at_exists(durable_store_url: str, catalogue: Catalogue) -> None:
    open_at(durable_store_url).close()
    assert "idx_sessions_invalidated_at" in catalogue.indexes("sessions")


def test_marked_sessions_are_found_through_that_index(
    durable_store_url: str, catalogue: Catalogue
) -> None:
    with closing(Harness(lambda: open_at(durable_store_url))) as store:
        for number in range(200):
            store.append(store.key(f"key {number}"))
        store.marked("marked", 3)
    explain = "EXPLAIN QUERY PLAN" if catalogue.is_sqlite else "EXPLAIN"
    if not catalogue.is_sqlite:
        catalogue.run("ANALYZE sessions")
        catalogue.run("SET enable_seqscan = off")
    plan = catalogue.run(
        f"{explain} SELECT id FROM sessions WHERE space = 'space-a' AND invalidated_at IS NOT NULL"
        " ORDER BY invalidated_at, marked_at LIMIT 10"
    )
    assert "idx_sessions_invalidated_at" in str(plan)


def test_the_migration_is_registered_with_its_number_and_name(
    durable_store_url: str, catalogue: Catalogue
) -> None:
    with closing(open_at(durable_store_url)) as store:
        known = migrations("sqlite" if catalogue.is_sqlite else "postgres")
        assert store.describe().schema_version == len(known)
    assert catalogue.versions() == [(m.version, m.name) for m in known]


# Document 004: the database


def test_the_tables_have_the_documents_names(durable_store_url: str, catalogue: Catalogue) -> None:
    open_at(durable_store_url).close()
    assert catalogue.tables() >= TABLES


def test_history_is_keyed_by_session_and_seq(durable_store_url: str, catalogue: Catalogue) -> None:
    open_at(durable_store_url).close()
    assert catalogue.nullable("session_history").keys() >= {"session_id", "seq", "role", "content"}
    with closing(Harness(lambda: open_at(durable_store_url))) as store:
        store.append(store.key())
    columns = "space, session_id, seq, key_id, role, content, said_at, created_at"
    with pytest.raises((apsw.ConstraintError, psycopg.IntegrityError)):
        catalogue.run(
            f"INSERT INTO session_history ({columns}) SELECT {columns} FROM session_history"
        )


def test_migrating_twice_is_a_no_op(durable_store_url: str, catalogue: Catalogue) -> None:
    with closing(Harness(lambda: open_at(durable_store_url))) as store:
        said = store.append(store.key(), 3)
        before = catalogue.tables(), catalogue.versions()
        store.reopen()
        assert store.everything(store.key()) == said
        assert (catalogue.tables(), catalogue.versions()) == before


def _kill_half_way(url: str) -> None:
    class Killed(Exception):
        pass

    def kill(point: str) -> None:
        if point == "migration.applied":
            raise Killed

    crashpoints.arm(kill)
    try:
        with pytest.raises(Killed):
            open_at(url)
    finally:
        crashpoints.arm(None)


def test_a_migration_that_was_killed_half_way_leaves_nothing_and_is_done_again(
    durable_store_url: str, catalogue: Catalogue
) -> None:
    _kill_half_way(durable_store_url)
    assert catalogue.tables() == set()
    open_at(durable_store_url).close()
    assert catalogue.tables() >= TABLES


def _with_one_more_migration(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue, *statements: str
) -> None:
    known = migrations("sqlite" if catalogue.is_sqlite else "postgres")
    more = Migration(len(known) + 1, "more", statements)
    monkeypatch.setattr(catalogue.module, "migrations", lambda _: (*known, more))
    monkeypatch.setattr(catalogue.module, "newest_version", lambda _: more.version)


def test_a_migration_that_fails_keeps_those_before_it_and_resumes(
    durable_store_url: str, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Harness(lambda: open_at(durable_store_url))) as store:
        store.append(store.key(), 3)
    _with_one_more_migration(monkeypatch, catalogue, "CREATE TABLE more (x BIGINT)", "SELECT oops")
    with pytest.raises(StoreError):
        open_at(durable_store_url)
    assert "more" not in catalogue.tables()
    known = catalogue.versions()
    _with_one_more_migration(monkeypatch, catalogue, "CREATE TABLE more (x BIGINT)")
    _kill_half_way(durable_store_url)
    assert "more" not in catalogue.tables()
    assert catalogue.versions() == known
    with closing(Harness(lambda: open_at(durable_store_url))) as store:
        assert store.handle.describe().schema_version == len(known) + 1
        assert len(store.everything(store.key())) == 3
    assert "more" in catalogue.tables()
    assert catalogue.versions() == [*known, (len(known) + 1, "more")]


def test_a_newer_schema_is_refused_and_left_alone(
    durable_store_url: str, catalogue: Catalogue
) -> None:
    open_at(durable_store_url).close()
    catalogue.run("INSERT INTO schema_version VALUES (99, 'from the future', 0)")
    before = catalogue.tables(), catalogue.versions()
    with pytest.raises(SchemaTooNew, match="99"):
        open_at(durable_store_url)
    assert (catalogue.tables(), catalogue.versions()) == before


def test_a_file_with_another_encoding_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (x); DROP TABLE t")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="encoding UTF-16le"):
        open_at(path)
    assert path.read_bytes() == before


def test_tables_of_another_program_are_refused_and_left_alone(
    durable_store_url: str, catalogue: Catalogue
) -> None:
    if not catalogue.is_sqlite:
        schema = postgres.split_options(durable_store_url, "")[1]
        catalogue.run(f'CREATE SCHEMA "{schema}"')
    catalogue.run("CREATE TABLE sessions (id BIGINT)")
    with pytest.raises(NotAStore):
        open_at(durable_store_url)
    assert catalogue.tables() == {"sessions"}


# Document 004: SQLite


def test_write_ahead_logging_is_on_by_default(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(Harness(lambda: open_at(path))) as store:
        store.append(store.key())
        assert (tmp_path / "memory.db-wal").exists()
        with closing(apsw.Connection(str(path))) as connection:
            assert connection.pragma("journal_mode") == "wal"


def test_write_ahead_logging_can_be_switched_off_and_on_again(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    for number, wal in enumerate((True, False, True), start=1):
        settings = Settings(sqlite_wal=wal)
        with closing(Harness(partial(open_at, path, settings))) as store:
            store.append(store.key())
            assert len(store.everything(store.key())) == number
            assert (tmp_path / "memory.db-wal").exists() is wal
            with closing(apsw.Connection(str(path))) as connection:
                assert connection.pragma("journal_mode") == ("wal" if wal else "delete")


def test_nested_directories_are_created_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "agents" / "assistant" / "memory.db"
    with closing(Harness(lambda: open_at(path))) as store:
        store.append(store.key())
        for directory in (path.parent, path.parent.parent, path.parent.parent.parent):
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


def test_a_directory_that_is_there_keeps_its_rights(tmp_path: Path) -> None:
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(0o755)
    open_at(directory / "memory.db").close()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755
    assert stat.S_IMODE((directory / "memory.db").stat().st_mode) == 0o600


def test_the_file_says_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    open_at(path).close()
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.pragma("application_id") == files.APPLICATION_ID
        assert connection.pragma("integrity_check") == "ok"
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []

"""Migrations: numbered without a gap, the same for both dialects, and never downwards."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import apsw
import pytest

import recollect
from recollect.errors import SchemaTooNew, StoreError
from recollect.store import schema as package
from recollect.store.schema import migrations, newest_version, refuse_newer, statements
from recollect.store.sql import Dialect

DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgres")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_numbers_have_no_gap(dialect: Dialect) -> None:
    versions = [migration.version for migration in migrations(dialect)]
    assert versions == list(range(1, len(versions) + 1))
    assert newest_version(dialect) == versions[-1]


def test_both_dialects_have_the_same_steps() -> None:
    sqlite, postgres = ([(m.version, m.name) for m in migrations(d)] for d in DIALECTS)
    assert sqlite == postgres


def test_every_file_belongs_to_a_migration() -> None:
    found = [file for file in resources.files(package).iterdir() if file.name.endswith(".sql")]
    assert len(found) == newest_version("sqlite")
    assert all(m.statements for dialect in DIALECTS for m in migrations(dialect))


SOURCE = """
-- One; two.
CREATE TABLE a (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    -- only postgres
    search TSVECTOR,
    -- both
    is_x BOOLEAN NOT NULL DEFAULT TRUE  -- x; y
) STRICT, WITHOUT ROWID;
-- only sqlite
CREATE TRIGGER b AFTER INSERT ON a BEGIN
    DELETE FROM c;
    DELETE FROM d;
END;
-- only postgres
CREATE FUNCTION e() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM c;
END
$$;
CREATE TRIGGER b AFTER INSERT ON a EXECUTE FUNCTION e();
-- both
CREATE INDEX f ON a (space);
"""


def test_a_file_is_cut_into_the_statements_of_one_dialect_in_its_words() -> None:
    sqlite, postgres = (statements(SOURCE, dialect) for dialect in DIALECTS)
    assert [" ".join(each.split()) for each in sqlite] == [
        (
            "CREATE TABLE a ( id INTEGER PRIMARY KEY, space TEXT NOT NULL,"
            " is_x INTEGER NOT NULL DEFAULT TRUE ) STRICT, WITHOUT ROWID"
        ),
        "CREATE TRIGGER b AFTER INSERT ON a BEGIN DELETE FROM c; DELETE FROM d; END",
        "CREATE INDEX f ON a (space)",
    ]
    assert [" ".join(each.split()) for each in postgres] == [
        (
            "CREATE TABLE a ( id BIGINT GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (space, id),"
            ' space TEXT COLLATE "C" NOT NULL, search TSVECTOR,'
            " is_x BOOLEAN NOT NULL DEFAULT TRUE )"
        ),
        "CREATE FUNCTION e() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM c; END $$",
        "CREATE TRIGGER b AFTER INSERT ON a EXECUTE FUNCTION e()",
        "CREATE INDEX f ON a (space)",
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_newer_schema_is_refused_with_advice(dialect: Dialect) -> None:
    known = newest_version(dialect)
    refuse_newer(known, dialect, "here")
    with pytest.raises(SchemaTooNew, match=f"here has schema version {known + 1}.*Upgrade"):
        refuse_newer(known + 1, dialect, "here")


def test_a_store_of_a_newer_version_is_not_opened_and_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    recollect.open(file).close()
    connection = apsw.Connection(str(file))
    connection.execute("INSERT INTO schema_version VALUES (999, 'from the future', 0)")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(SchemaTooNew, match="999") as caught:
        recollect.open(file)
    assert isinstance(caught.value, StoreError)
    assert file.read_bytes() == before


def test_opening_again_applies_nothing_again(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    for _ in range(2):
        recollect.open(file).close()
    connection = apsw.Connection(str(file))
    applied = connection.execute("SELECT version, name FROM schema_version").fetchall()
    connection.close()
    assert applied == [(m.version, m.name) for m in migrations("sqlite")]

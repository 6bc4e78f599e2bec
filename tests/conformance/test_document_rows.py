"""Documents, row by row: what the database itself refuses (D3), and a store from before them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import apsw
import psycopg
import pytest

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.store.opening import open_store
from recollect_conformance import Harness
from recollect_conformance.harness import SPACE
from recollect_conformance.pages import assert_sound, delete, grow, move, place, write
from tests.conformance.catalogue import Catalogue

REFUSED = (apsw.ConstraintError, psycopg.IntegrityError)
TABLES = {"trees", "documents", "document_versions", "document_references", "document_redirects"}
COLUMNS = (
    "path, depth, title, description, body, tags, links, called, about, words, version,"
    " author_kind, author, reason, provenance, created_at, updated_at"
)


@pytest.fixture
def store(durable_store_url: str) -> Iterator[Harness]:
    with closing(Harness(lambda: open_store(durable_store_url, Settings(), ManualClock()))) as it:
        yield it


def test_the_database_itself_holds_one_page_at_a_place(
    store: Harness, catalogue: Catalogue
) -> None:
    write(store, "a")
    write(store, "z", space="space-b")

    def copy(space: str, document_id: str, key: str) -> None:
        catalogue.run(
            f"INSERT INTO documents (id, space, path_key, {COLUMNS})"
            f" SELECT '{document_id}', '{space}', '{key}', {COLUMNS} FROM documents"
            " WHERE path_key = 'a' AND space = 'space-a'"
        )

    with pytest.raises(REFUSED):
        copy("space-a", "another", "a")
    copy("space-a", "another", "b")
    with pytest.raises(REFUSED):
        copy("space-a", "another", "c")
    copy("space-b", "another", "a")
    with pytest.raises(REFUSED):
        catalogue.run("UPDATE documents SET path_key = 'a' WHERE path_key = 'b'")
    delete(store, "a")
    catalogue.run("UPDATE documents SET path_key = 'a' WHERE path_key = 'b'")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE documents SET author_kind = 'nobody'",
        "UPDATE documents SET deleted_at = 1",
        "UPDATE documents SET path_key = 'b'",
        "UPDATE document_versions SET version = 1",
        "UPDATE document_versions SET event = 'guessed'",
        "UPDATE document_versions SET document_key = 999",
        "UPDATE document_references SET kind = 'parent'",
        "UPDATE document_references SET target_key = 999",
        "UPDATE document_redirects SET document_key = 999",
        "INSERT INTO trees (space) VALUES ('space-a')",
    ],
)
def test_the_database_itself_refuses_what_no_store_writes(
    store: Harness, catalogue: Catalogue, damage: str
) -> None:
    grow(store, "a", "b")
    write(store, "a", "two", links=["b"])
    move(store, "a", "c")
    if catalogue.is_sqlite:
        damage = f"PRAGMA foreign_keys = ON; {damage}"
    with pytest.raises(REFUSED):
        catalogue.run(damage)
    assert assert_sound(store, "b", "c") == 2


def test_a_purge_leaves_no_row(store: Harness, catalogue: Catalogue) -> None:
    grow(store, "a/b")
    write(store, "a/b", "two", links=["a", "nowhere"])
    move(store, "a", "c")
    delete(store, "c/b")
    store.handle.documents.purge(SPACE, place("c"))
    for table in TABLES - {"trees"}:
        assert catalogue.run(f"SELECT count(*) FROM {table}") == [(0,)], table
    assert catalogue.run("SELECT documents FROM trees") == [(0,)]

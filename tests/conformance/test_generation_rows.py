"""Generations, row by row and byte by byte: what is gone is gone, and nothing piles up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.types.generations import Published
from recollect.types.records import Mode
from recollect_conformance import Harness
from recollect_conformance.handbooks import (
    begin,
    consolidate,
    demand,
    drafted,
    forget,
    handbook,
    publish,
    published,
    remember,
    select,
)
from recollect_conformance.harness import SPACE
from recollect_conformance.lessons import statement
from tests.conformance.catalogue import Catalogue
from tests.conformance.test_erasure import left_of

TABLES = ("generations", "generation_documents", "removed_memories", "document_versions")


@pytest.fixture
def store(durable_store_url: str) -> Iterator[Harness]:
    with closing(Harness(lambda: open_at(durable_store_url))) as harness:
        yield harness


@pytest.fixture(params=["wal", "journal"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    """A store in files, with either kind of journal."""
    settings = Settings(sqlite_wal=request.param == "wal")
    path = tmp_path / "memory.db"
    with closing(Harness(lambda: open_store(path, settings, ManualClock()))) as harness:
        yield harness


def open_at(url: str) -> Store:
    return open_store(url, Settings(), ManualClock())


def counts(catalogue: Catalogue) -> dict[str, object]:
    return {table: catalogue.run(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}


def secret_words(count: int) -> list[str]:
    return [f"zqsecret{number:03}xv" for number in range(count)]


def test_no_byte_of_a_forgotten_session_is_left_after_the_next_generation(
    files: Harness, tmp_path: Path
) -> None:
    """G11 and P11: its page, the pages that all share, and every version of them."""
    words = secret_words(12)
    remember(files, "kept", memory="zqkeptxv stays")
    for word in words:
        said = statement(f"likes {word}")
        session = remember(files, "secret", said, memory=f"{word} " * 300)
        consolidate(files)
    assert left_of(words, tmp_path) == words
    forget(files, session)
    assert left_of(words, tmp_path), "a generation is current until the next one is there"
    consolidate(files)
    assert left_of(words, tmp_path) == []
    assert left_of(["zqkeptxv"], tmp_path) == ["zqkeptxv"]
    assert handbook(files) == ["zqkeptxv stays"]


def test_no_byte_is_left_of_many_sessions_that_are_forgotten_together(
    files: Harness, tmp_path: Path
) -> None:
    """G11 and P11: one generation makes an end of all of them."""
    words = secret_words(60)
    names = [remember(files, word, memory=f"told {word} of it") for word in words]
    consolidate(files)
    remember(files, "kept")
    consolidate(files)
    for name in names:
        forget(files, name)
    made = consolidate(files)
    assert (made.removed, made.documents) == (60, 2)
    # Keys are the names that people give to conversations, and stay.
    assert left_of([f"told {word}" for word in words], tmp_path) == []


def test_a_forgotten_session_leaves_no_row_behind_its_generation(
    store: Harness, catalogue: Catalogue
) -> None:
    """P11, for what no promise can see."""
    session = remember(store, "one", memory="a secret")
    consolidate(store)
    forget(store, session)
    named = f"SELECT count(*) FROM removed_memories WHERE session_id = '{session}'"
    assert catalogue.run(named) == [(1,)]
    consolidate(store)
    assert catalogue.run(named) == [(0,)]
    pages = f"SELECT count(*) FROM generation_documents WHERE session_id = '{session}'"
    assert catalogue.run(pages) == [(0,)]
    for table in ("documents", "document_versions"):
        secret = f"SELECT count(*) FROM {table} WHERE body LIKE '%secret%'"
        assert catalogue.run(secret) == [(0,)], table


def test_runs_that_find_nothing_changed_leave_no_row(store: Harness, catalogue: Catalogue) -> None:
    """G5: something happened, and nothing changed."""
    remember(store, "one")
    consolidate(store)
    before = counts(catalogue)
    for _ in range(3):
        store.handle.generations.note_edits(SPACE, store.now())
        claim, selection = begin(store)
        assert publish(store, claim, drafted(store, selection)) == Published(
            None, is_due_again=False
        )
    assert counts(catalogue) == before


def test_rows_grow_with_what_changes_and_not_with_what_there_is(
    store: Harness, catalogue: Catalogue
) -> None:
    """G9: a generation shares what did not change with the one before."""
    for number in range(20):
        remember(store, f"key {number}")
    consolidate(store)
    assert counts(catalogue)["generation_documents"] == 21
    remember(store, "key 3", memory="more")
    assert consolidate(store).documents == 21
    assert counts(catalogue)["generation_documents"] == 21 + 2


def test_rows_do_not_pile_up_where_few_generations_are_kept(
    store: Harness, catalogue: Catalogue
) -> None:
    """G9: what only dropped generations had is erased."""
    remember(store, "gone")
    consolidate(store, kept=2)
    store.set_mode(store.key("gone"), Mode.DISABLED)
    seen = []
    for number in range(6):
        remember(store, "one", memory=f"text {number}")
        consolidate(store, kept=2)
        seen.append(counts(catalogue))
    assert seen[2] == seen[3] == seen[4] == seen[5]
    assert seen[5]["generations"] == 2


def test_a_publication_that_fails_leaves_no_row(store: Harness, catalogue: Catalogue) -> None:
    """G9 and P6: nothing is there until everything is."""
    remember(store, "one")
    claim = demand(store)
    made = drafted(store, select(store))
    before = counts(catalogue)

    def no_more_ids() -> str:
        raise RuntimeError("no more ids")

    with pytest.raises(RuntimeError, match="no more ids"):
        store.handle.generations.publish(claim, made, store.now(), no_more_ids)
    assert counts(catalogue) == before
    assert published(store, claim, made).generation is not None

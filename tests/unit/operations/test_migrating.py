"""Migration between databases: everything comes over, and comes back the same.

Holds N9 and N10 for moving house: SQLite to PostgreSQL and back is the same bytes and the same
answers, and whatever happens on the way, neither side loses anything.
"""

from __future__ import annotations

import zipfile
from contextlib import closing
from pathlib import Path

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import InvalidUrl, NotAStore, NotEmpty, StoreBusy
from recollect.operations import migrating
from recollect.operations.migrating import NOTE, migrate
from recollect.store.opening import open_store
from recollect.store.whole import Access
from tests.unit.operations.material import SETTINGS, SPACES, answers, fill


def opened(url: str | Path, clock: ManualClock) -> recollect.Memory:
    return recollect.open(url, settings=SETTINGS, clock=clock)


def notes(url: str | Path) -> list[str]:
    with (
        closing(open_store(url, Settings(), ManualClock())) as store,
        store.whole(Access.READ) as whole,
    ):
        return [row[0] for row in whole.stream("SELECT name FROM properties")]


def test_from_sqlite_to_postgresql_and_back_is_the_same_and_answers_the_same(
    lent_store_path: Path, lent_store_url: str, tmp_path: Path, clock: ManualClock
) -> None:
    with opened(lent_store_path, clock) as memory:
        fill(memory)
        memory.store.keep("salt", "of the store")
        memory.export(tmp_path / "sqlite.zip")
        there = memory.migrate(lent_store_url)
        expected = answers(memory)
        assert set(there.spaces) == set(SPACES)
        assert not there.already_there
    with opened(lent_store_url, clock) as memory:
        memory.export(tmp_path / "postgres.zip")
        memory.migrate(tmp_path / "back.db")
        found = answers(memory)
        assert [sorted(each) for each in found] == [sorted(each) for each in expected]
    with opened(tmp_path / "back.db", clock) as memory:
        memory.export(tmp_path / "back.zip")
        assert answers(memory) == expected
        assert memory.store.keep("salt", "another") == "of the store"
    archives = [(tmp_path / f"{name}.zip").read_bytes() for name in ("sqlite", "postgres", "back")]
    assert archives[0] == archives[1] == archives[2]
    assert NOTE not in notes(lent_store_url) + notes(tmp_path / "back.db")


@pytest.mark.parametrize("name", ["carol", "alice"])
def test_a_target_with_anything_else_in_it_is_left_alone(
    name: str, durable_store_url: str, clock: ManualClock
) -> None:
    with opened(":memory:", clock) as memory:
        memory.space("alice").facts.add("Alice is here")
        with opened(durable_store_url, clock) as target:
            target.space(name).facts.add("Somebody else is here")
        with pytest.raises(NotEmpty):
            memory.migrate(durable_store_url)
        with opened(durable_store_url, clock) as target:
            assert target.spaces() == [name]
            assert [fact.content for fact in target.space(name).facts.list()] == [
                "Somebody else is here"
            ]
        assert NOTE not in notes(durable_store_url)


def test_what_belongs_to_the_store_comes_along_and_no_archive_has_it(
    durable_store_url: str, tmp_path: Path, clock: ManualClock
) -> None:
    with opened(tmp_path / "a.db", clock) as memory:
        memory.space("alice").facts.add("Alice is here")
        memory.store.keep("salt", "of the store")
        with memory.store.whole(Access.WRITE) as whole:
            whole.run(
                "INSERT INTO api_keys (id, name, digest, scope, created_at)"
                " VALUES ('k', 'desk', 'd1gest', 'read', 1)"
            )
        memory.migrate(durable_store_url)
        memory.export(tmp_path / "all.zip")
    with opened(durable_store_url, clock) as memory:
        assert memory.store.keep("salt", "another") == "of the store"
        with memory.store.whole(Access.READ) as whole:
            assert list(whole.stream("SELECT name, digest, space FROM api_keys")) == [
                ("desk", "d1gest", None)
            ]
    with zipfile.ZipFile(tmp_path / "all.zip") as file:
        assert not any(b"d1gest" in file.read(name) for name in file.namelist())


def test_a_target_that_is_the_store_itself_or_no_store_is_refused(
    lent_store_path: Path, tmp_path: Path, clock: ManualClock
) -> None:
    (tmp_path / "letter.db").write_bytes(b"Dear Ana, this is not a database at all, is it?" * 99)
    with opened(lent_store_path, clock) as memory:
        with pytest.raises(InvalidUrl):
            memory.migrate(f"sqlite:///{lent_store_path}")
        with pytest.raises(NotAStore):
            memory.migrate(tmp_path / "letter.db")
    assert (tmp_path / "letter.db").read_bytes().startswith(b"Dear Ana")


def test_what_is_written_meanwhile_is_noticed_and_comes_over_the_next_time(
    lent_store_path: Path, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(lent_store_path, clock) as memory, opened(tmp_path / "b.db", clock) as target:
        memory.space("alice").facts.add("Alice is here")
        memory.space("bob").facts.add("Bob is here")
        copy = migrating._Move.copy

        def copy_and_write(move: migrating._Move) -> None:
            copy(move)
            memory.space("alice").facts.add("Alice is away")

        monkeypatch.setattr(migrating._Move, "copy", copy_and_write)
        with pytest.raises(StoreBusy, match="run this again"):
            migrate(memory.store, target.store)
        monkeypatch.undo()
        assert migrate(memory.store, target.store).already_there == ("bob",)
        assert len(target.space("alice").facts) == 2
        assert migrate(memory.store, target.store).already_there == ("alice", "bob")


def test_a_part_of_one_store_is_not_completed_from_another(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        opened(tmp_path / "a.db", clock) as first,
        opened(tmp_path / "b.db", clock) as second,
        opened(tmp_path / "c.db", clock) as target,
    ):
        first.space("alice").facts.add("Alice is here")
        monkeypatch.setattr(migrating._Move, "finish", lambda _: None)
        migrate(first.store, target.store)
        with pytest.raises(NotEmpty, match=r"a\.db"):
            migrate(second.store, target.store)

"""Backups: one moment, taken while others write; a restore never costs the store that is there.

Holds N9 for backups.
"""

from __future__ import annotations

import shutil
import stat
import threading
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import recollect
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import (
    InvalidArchive,
    InvalidUrl,
    NotAStore,
    NotEmpty,
    NotFound,
    RecollectError,
    SchemaTooNew,
    StoreBusy,
    StoreCorrupt,
    UsageError,
)
from recollect.operations.backup import Restoring, back_up
from tests.unit.operations.material import SETTINGS, fill


def opened(url: str | Path) -> recollect.Memory:
    return recollect.open(url, settings=SETTINGS, clock=ManualClock())


def restoring(path: Path) -> Restoring:
    return Restoring(path, Settings(), ManualClock())


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """A backup of a small store on SQLite."""
    with opened(tmp_path / "origin.db") as memory:
        memory.space("alice").facts.add("Alice is here")
        back_up(memory.store, tmp_path / "backup.db")
    return tmp_path / "backup.db"


def test_a_backup_is_one_moment_of_a_store_that_is_written_to(
    durable_store_url: str, tmp_path: Path
) -> None:
    with opened(durable_store_url) as memory:
        session = memory.space("alice").session("busy", agent="assistant")
        stop, going = threading.Event(), threading.Event()

        def write() -> None:
            while not stop.is_set():
                session.append("user", f"number {len(session) + 1}")
                going.set()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            going.wait()
            backups = [back_up(memory.store, tmp_path / f"{n}.backup") for n in range(3)]
        finally:
            stop.set()
            writer.join()
        last = len(session)
    for each in backups:
        restored = tmp_path / f"{each.path.stem}.db"
        restoring(each.path).restore(restored)
        with opened(restored) as memory:
            said = memory.space("alice").session("busy", agent="assistant").all()
            assert [record.content for record in said] == [
                f"number {n + 1}" for n in range(len(said))
            ]
            assert 0 < len(said) <= last
        assert stat.S_IMODE(each.path.stat().st_mode) == 0o600


def test_a_backup_of_either_database_is_restored_into_either(
    durable_store_url: str, lent_store_url: str, tmp_path: Path
) -> None:
    with opened(tmp_path / "origin.db") as memory:
        fill(memory)
        memory.export(tmp_path / "origin.zip")
        memory.migrate(durable_store_url)
    with opened(durable_store_url) as memory:
        done = back_up(memory.store, tmp_path / "a.backup")
    is_sqlite = durable_store_url.startswith("sqlite")
    assert done.kind == ("database" if is_sqlite else "archive")
    target = lent_store_url if is_sqlite else str(tmp_path / "restored.db")
    assert restoring(done.path).restore(target).spaces == 3
    with opened(target) as memory:
        memory.export(tmp_path / "restored.zip")
    assert (tmp_path / "restored.zip").read_bytes() == (tmp_path / "origin.zip").read_bytes()


def test_nothing_is_written_over_a_backup_or_a_store(
    backup: Path, lent_store_path: Path, lent_store_url: str
) -> None:
    with opened(lent_store_path) as memory:
        memory.space("carol").facts.add("Carol is here")
        with pytest.raises(NotEmpty):
            back_up(memory.store, backup)
    with opened(lent_store_url) as memory:
        memory.space("carol").facts.add("Carol is here")
    for address in (str(lent_store_path), lent_store_url):
        with pytest.raises(NotEmpty):
            restoring(backup).restore(address)
        with opened(address) as memory:
            assert memory.spaces() == ["carol"]
    with pytest.raises(UsageError, match="schema"):
        restoring(backup).restore(lent_store_url, replace=True)


def test_a_store_that_is_replaced_is_kept_beside_the_new_one(
    backup: Path, lent_store_path: Path
) -> None:
    with opened(lent_store_path) as memory:
        memory.space("carol").facts.add("Carol is here")
        with pytest.raises(StoreBusy, match="close it there"):
            restoring(backup).restore(lent_store_path, replace=True)
        assert memory.spaces() == ["carol"]
    restored = restoring(backup).restore(lent_store_path, replace=True)
    assert restored.kept is not None
    for path, spaces in ((lent_store_path, ["alice"]), (restored.kept, ["carol"])):
        with opened(path) as memory:
            assert memory.spaces() == spaces
    assert not list(lent_store_path.parent.glob("*.part*"))


def test_a_store_that_is_damaged_can_be_replaced(backup: Path, lent_store_path: Path) -> None:
    lent_store_path.write_bytes(b"\0" * 8192)
    restored = restoring(backup).restore(lent_store_path, replace=True)
    assert restored.kept is not None
    assert restored.kept.read_bytes() == b"\0" * 8192
    with opened(lent_store_path) as memory:
        assert memory.spaces() == ["alice"]


def test_published_files_are_written_from_what_was_restored_or_migrated(
    durable_store_url: str, tmp_path: Path
) -> None:
    """P6: which files were written is true of one directory, not of a copy of the store."""

    def said_in_files(directory: str) -> str:
        files = (tmp_path / directory / "memories" / "alice").rglob("*.md")
        return "".join(each.read_text() for each in sorted(files))

    store, elsewhere = tmp_path / "a" / "memory.db", tmp_path / "b" / "memory.db"
    with opened(store) as memory:
        session = memory.space("alice").session("chat")
        session.append("user", "I live in Lisbon.", name="Ana")
        memory.space("bob").session("chat").append("user", "I live in Faro.", name="Bob")
        memory.work(all=True)
        memory.space("bob").forget(everything=True)
        back_up(memory.store, tmp_path / "backup.db")
        before = said_in_files("a")
        session.append("user", "I am vegan.", name="Ana")
        memory.work(all=True)
        assert "Lisbon" in before
        assert "vegan" in said_in_files("a")
    for path in (store, elsewhere):
        restoring(tmp_path / "backup.db").restore(path, replace=True)
        with opened(path) as memory:
            memory.work()
            assert memory.store.generations.without_files(10) == []  # nor of who is forgotten
        assert said_in_files(path.parent.name) == before
    shutil.rmtree(elsewhere.with_name("memories"))
    with opened(elsewhere) as memory:
        memory.space("alice").generations.run()  # what somebody took away is there again
        assert said_in_files("b") == before
        memory.migrate(durable_store_url)
    with opened(durable_store_url) as memory:
        assert ("alice", 1) in memory.store.generations.without_files(10)


def _damage(path: Path, text: bytes) -> None:
    """Spoil the page that a text is on; all others are as they were."""
    data = bytearray(path.read_bytes())
    page = data.rindex(text) // 4096 * 4096
    data[page + 3 : page + 5] = b"\xff\xff"  # how many entries a page has
    path.write_bytes(data)


def test_a_backup_that_is_none_leaves_nothing_behind(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "letter").write_bytes(b"Dear Ana, this is not a database at all, is it?" * 99)
    with closing(apsw.Connection(str(tmp_path / "foreign.db"))) as connection:
        connection.execute("CREATE TABLE cats (name TEXT)")
    restoring(backup).restore(tmp_path / "newer.db")
    with closing(apsw.Connection(str(tmp_path / "newer.db"))) as connection:
        connection.execute("INSERT INTO schema_version VALUES (9999, 'of tomorrow', 0)")
    (tmp_path / "nothing.db").touch()  # what a full disk leaves of a copy
    _damage(backup, b"Alice is here")
    (tmp_path / "cut.zip").write_bytes(b"PK\x03\x04 and so on")
    bad: dict[str, tuple[type[RecollectError], ...]] = {
        "letter": (NotAStore,),
        "foreign.db": (NotAStore,),
        "newer.db": (SchemaTooNew,),
        "nothing.db": (NotAStore,),
        "backup.db": (InvalidArchive, StoreCorrupt),
        "cut.zip": (RecollectError,),
    }
    for name, errors in bad.items():
        for is_replaced in (False, True):
            with pytest.raises(errors, match=name) as raised:
                restoring(tmp_path / name).restore(tmp_path / "new.db", replace=is_replaced)
            assert ".part" not in str(raised.value)
        assert not list(tmp_path.glob("new.db*")), name
    with pytest.raises(NotFound):
        restoring(tmp_path / "missing.db")
    with pytest.raises(InvalidUrl):
        restoring(backup).restore(":memory:")


def test_a_file_whose_maker_was_killed_with_both_its_names_loses_the_other(
    backup: Path, tmp_path: Path
) -> None:
    """It has its name, so it is whole; what is not it is left to who makes it."""
    other, store = tmp_path / "backup.db.part", tmp_path / "store.db"
    restoring(backup).restore(store)
    with opened(store) as memory:
        other.hardlink_to(backup)
        with pytest.raises(NotEmpty):
            back_up(memory.store, backup)
        assert not other.exists()
        other.write_text("another attempt")
        with pytest.raises(NotEmpty):
            back_up(memory.store, backup)
        assert other.exists()
    (tmp_path / "store.db.part").hardlink_to(store)
    with pytest.raises(NotEmpty):
        restoring(backup).restore(store)
    assert not (tmp_path / "store.db.part").exists()

"""P1 for SQLite: an acknowledged append is on every disk that a power cut can leave behind.

The first part shows on bare tables that the simulated disk is right, and that it loses what SQLite
does not promise to keep; the second is the promise itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path
from random import SystemRandom

import apsw
import pytest

import recollect
from tests.crash.powercut import Image, image_at, images
from tests.crash.vfs import CountingVFS, FaultyVFS, Log, LoggingVFS
from tests.sqlite_stores import put_empty_store

SEED = 20261115
_vfs_numbers = count(1)


@pytest.fixture
def vfs() -> Iterator[LoggingVFS]:
    made = LoggingVFS(f"powercut-{next(_vfs_numbers)}")
    yield made
    made.unregister()


# Bare tables.


def connect(path: Path, vfs_name: str, journal: str, synchronous: str) -> apsw.Connection:
    connection = apsw.Connection(str(path), vfs=vfs_name)
    connection.pragma("journal_mode", journal)
    connection.pragma("synchronous", synchronous)
    connection.pragma("wal_autocheckpoint", 20)
    connection.set_busy_timeout(1000)
    return connection


def write_rows(path: Path, vfs: LoggingVFS, journal: str, synchronous: str) -> None:
    """120 rows by two connections, in three lives of the file: each makes a new WAL."""
    for life in range(3):
        pair = [connect(path, vfs.name, journal, synchronous) for _ in range(2)]
        pair[0].execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, body TEXT)")
        for number in range(life * 40, life * 40 + 40):
            row = (number, f"{number}." * 100)
            pair[number % 2].execute("INSERT INTO rows VALUES (?, ?)", row)
            vfs.log.acknowledge(number)
        for connection in pair:
            connection.close()


def lost_rows(image: Image, log: Log, directory: Path) -> set[object]:
    """What was acknowledged and is not in the image, which must be a sound database."""
    image.write_to(directory)
    connection = apsw.Connection(str(directory / "rows.db"))
    connection.pragma("synchronous", "off")
    assert connection.pragma("integrity_check") == "ok", image
    rows: set[object] = set()
    if connection.table_exists(None, "rows"):
        for number, body in connection.execute("SELECT id, body FROM rows"):
            assert body == f"{number}." * 100, image
            rows.add(number)
    connection.close()
    return set(log.acknowledged_before(image.cut)) - rows


def images_with_losses(
    vfs: LoggingVFS, tmp_path: Path, journal: str, synchronous: str
) -> list[Image]:
    write_rows(tmp_path / "rows.db", vfs, journal, synchronous)
    disks = images(vfs.log, count=300, seed=SEED)
    return [image for image in disks if lost_rows(image, vfs.log, tmp_path / "disk")]


@pytest.mark.parametrize(("journal", "synchronous"), [("wal", "full"), ("delete", "extra")])
def test_a_synced_commit_survives_every_power_cut(
    vfs: LoggingVFS, tmp_path: Path, journal: str, synchronous: str
) -> None:
    assert images_with_losses(vfs, tmp_path, journal, synchronous) == []


@pytest.mark.parametrize(("journal", "synchronous"), [("wal", "normal"), ("delete", "full")])
def test_the_simulated_power_cut_finds_commits_that_were_not_synced(
    vfs: LoggingVFS, tmp_path: Path, journal: str, synchronous: str
) -> None:
    assert images_with_losses(vfs, tmp_path, journal, synchronous) != []


def test_the_simulated_power_cut_breaks_a_database_that_never_syncs(
    vfs: LoggingVFS, tmp_path: Path
) -> None:
    with pytest.raises((AssertionError, apsw.CorruptError, apsw.NotADBError)):
        images_with_losses(vfs, tmp_path, "wal", "off")


def test_an_image_is_built_again_from_its_cut_and_seed(vfs: LoggingVFS, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.db", vfs, "wal", "normal")
    for image in images(vfs.log, count=20, seed=SEED):
        assert image_at(vfs.log, image.cut, image.seed).files == image.files


def test_the_log_with_nothing_lost_is_the_file_itself(vfs: LoggingVFS, tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    write_rows(path, vfs, "wal", "full")
    image = image_at(vfs.log, len(vfs.log.events), "all")
    assert image.files["rows.db"] == path.read_bytes()


def test_a_file_from_before_the_log_is_durable(vfs: LoggingVFS, tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    apsw.Connection(str(path)).execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")
    before = path.read_bytes()
    apsw.Connection(str(path), vfs=vfs.name).pragma("user_version")
    assert image_at(vfs.log, len(vfs.log.events), "found").files["rows.db"] == before


def test_the_counting_vfs_sees_one_sync_per_commit(tmp_path: Path) -> None:
    counting = CountingVFS("counting")
    connection = connect(tmp_path / "rows.db", "counting", "wal", "full")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")
    counting.reset()
    for number in range(5):
        connection.execute("INSERT INTO rows VALUES (?, '')", (number,))
    assert (counting.syncs, counting.writes) == (5, 10)
    assert counting.bytes_written == 5 * (24 + 4096)
    connection.close()


@pytest.mark.parametrize("error", [apsw.IOError, apsw.FullError])
def test_the_faulty_vfs_fails_the_chosen_call_and_then_goes_on(
    tmp_path: Path, error: type[apsw.Error]
) -> None:
    faulty = FaultyVFS("faulty")
    connection = connect(tmp_path / "rows.db", "faulty", "wal", "full")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")
    faulty.fail_at("sync", 2, error)
    connection.execute("INSERT INTO rows VALUES (1, '')")
    with pytest.raises(error) as raised:
        connection.execute("INSERT INTO rows VALUES (2, '')")
    assert vars(raised.value)["result"] == vars(raised.value)["extendedresult"] & 0xFF
    connection.execute("INSERT INTO rows VALUES (3, '')")
    assert connection.execute("SELECT id FROM rows").fetchall() == [(1,), (3,)]
    assert faulty.failures == 1
    connection.close()


def test_the_faulty_vfs_refuses_growth_while_the_disk_is_full(tmp_path: Path) -> None:
    faulty = FaultyVFS("full")
    connection = connect(tmp_path / "rows.db", "full", "wal", "full")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")
    faulty.disk_full = True
    with pytest.raises(apsw.FullError):
        connection.execute("INSERT INTO rows VALUES (1, '')")
    faulty.heal()
    connection.execute("INSERT INTO rows VALUES (1, '')")
    connection.close()


# The store.

TEXTS = [f"message {number} " + "x" * (number * 37 % 400) for number in range(1, 101)]
MARKED_ABOVE = 5
WAL = {"sqlite_wal": True}
ROLLBACK_JOURNAL = {"sqlite_wal": False}


def append_all(path: Path, vfs: LoggingVFS, settings: dict[str, bool], options: str = "") -> None:
    """Single appends and batches with checkpoints in between, in two lives of the store."""
    sizes = cycle((1, 1, 3, 1, 2))
    for life in (TEXTS[:50], TEXTS[50:]):
        url = f"sqlite:///{path}?vfs={vfs.name}{options}"
        with recollect.open(url, settings=settings) as memory:
            session = memory.space("s").session("k:1:x", agent="assistant")
            while life:
                size = next(sizes)
                batch, life = life[:size], life[size:]
                if len(batch) == 1:
                    records = [session.append("user", batch[0])]
                else:
                    records = session.append_many([{"role": "user", "content": t} for t in batch])
                for record in records:
                    vfs.log.acknowledge((record.seq, record.content))
                if records[-1].seq % 4 == 0:
                    checkpoint(path, vfs)


def checkpoint(path: Path, vfs: LoggingVFS) -> None:
    """By hand: the automatic ones come every 1,000 pages, more than this history has."""
    connection = apsw.Connection(str(path), vfs=vfs.name)
    connection.pragma("schema_version")  # a connection that has read nothing knows of no WAL
    connection.wal_checkpoint()
    connection.close()


def append_from_threads(path: Path, vfs: LoggingVFS) -> None:
    """Four threads that may share a commit, each acknowledging as soon as its call returns."""
    with recollect.open(f"sqlite:///{path}?vfs={vfs.name}") as memory:

        def append(texts: list[str]) -> None:
            session = memory.space("s").session("k:1:x", agent="assistant")
            for text in texts:
                record = session.append("user", text)
                vfs.log.acknowledge((record.seq, text))

        threads = [threading.Thread(target=append, args=(TEXTS[n::4],)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def check_store(image: Image, log: Log, directory: Path, settings: dict[str, bool]) -> None:
    image.write_to(directory)
    with recollect.open(f"sqlite:///{directory / 'memory.db'}", settings=settings) as memory:
        space = memory.space("s")
        records = space.session("k:1:x", agent="assistant").all()
        assert [record.seq for record in records] == list(range(1, len(records) + 1)), image
        kept: set[object] = {(record.seq, record.content) for record in records}
        assert not set(log.acknowledged_before(image.cut)) - kept, image
        marks = [row.invalidated_at for row in space.sessions.find_invalidated()]
        assert marks == ([len(records)] if len(records) > MARKED_ABOVE else []), image


def check_images(
    vfs: LoggingVFS, tmp_path: Path, number: int, settings: dict[str, bool], seed: int = SEED
) -> None:
    assert len(vfs.log.acknowledged_before(len(vfs.log.events))) == len(TEXTS)
    print(f"seed {seed}, {number} images of {len(vfs.log.events)} events")
    for image in images(vfs.log, count=number, seed=seed):
        check_store(image, vfs.log, tmp_path / "disk", settings)


@pytest.mark.parametrize("settings", [WAL, ROLLBACK_JOURNAL], ids=["wal", "rollback-journal"])
def test_every_acknowledged_append_survives_a_power_cut(
    vfs: LoggingVFS, tmp_path: Path, settings: dict[str, bool]
) -> None:
    put_empty_store(tmp_path / "memory.db")
    append_all(tmp_path / "memory.db", vfs, settings)
    check_images(vfs, tmp_path, 400, settings)


@pytest.mark.parametrize("settings", [WAL, ROLLBACK_JOURNAL], ids=["wal", "rollback-journal"])
def test_a_store_survives_a_power_cut_while_it_is_made(
    vfs: LoggingVFS, tmp_path: Path, settings: dict[str, bool]
) -> None:
    append_all(tmp_path / "memory.db", vfs, settings)
    check_images(vfs, tmp_path, 100, settings)


def test_appends_that_share_a_commit_survive_a_power_cut(vfs: LoggingVFS, tmp_path: Path) -> None:
    append_from_threads(tmp_path / "memory.db", vfs)
    check_images(vfs, tmp_path, 100, WAL)


def test_a_store_that_is_told_not_to_sync_fails_the_power_cut(
    vfs: LoggingVFS, tmp_path: Path
) -> None:
    append_all(tmp_path / "memory.db", vfs, WAL, "&synchronous=off")
    with pytest.raises((AssertionError, recollect.RecollectError)):
        check_images(vfs, tmp_path, 100, WAL)


@pytest.mark.torture
@pytest.mark.parametrize("settings", [WAL, ROLLBACK_JOURNAL], ids=["wal", "rollback-journal"])
def test_every_acknowledged_append_survives_20_000_power_cuts(
    vfs: LoggingVFS, tmp_path: Path, settings: dict[str, bool]
) -> None:
    append_all(tmp_path / "memory.db", vfs, settings)
    check_images(vfs, tmp_path, 20_000, settings, seed=SystemRandom().randrange(2**32))

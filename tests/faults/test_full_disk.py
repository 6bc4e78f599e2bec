"""A full disk is a typed error; nothing acknowledged is lost, and it goes on when there is room."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import apsw
import pytest

import recollect
from recollect.errors import StoreFull
from recollect.operations.checks import examine
from recollect.store.sqlite.scrubbing import RESERVE_BYTES
from tests.crash.soundness import assert_store_is_sound
from tests.crash.vfs import FaultyVFS

SPACE = "s"
TEXT_CHARS = 5000  # more than a page, so that every append needs room
SMALL_DISK = "6m"
_vfs_numbers = count(1)


@pytest.fixture
def vfs() -> Iterator[FaultyVFS]:
    made = FaultyVFS(f"full-disk-{next(_vfs_numbers)}")
    yield made
    made.unregister()


@pytest.fixture(params=[True, False], ids=["wal", "rollback-journal"])
def settings(request: pytest.FixtureRequest) -> dict[str, bool]:
    return {"sqlite_wal": bool(request.param)}


def text(number: int) -> str:
    return f"{number} ".ljust(TEXT_CHARS, ".")


def append_until_full(session: recollect.Session, numbers: Iterator[int]) -> list[str]:
    """Returns the acknowledged ones; the one that failed is not among them."""
    acknowledged: list[str] = []

    def append_all() -> None:
        for number in numbers:
            session.append("user", text(number))
            acknowledged.append(text(number))

    with pytest.raises(StoreFull, match="free some room") as caught:
        append_all()
    assert caught.value.retry_helps
    return acknowledged


def test_a_full_disk_loses_nothing_and_the_store_goes_on_when_there_is_room(
    vfs: FaultyVFS, tmp_path: Path, settings: dict[str, bool]
) -> None:
    path = tmp_path / "memory.db"
    numbers = count()
    stored: list[str] = []
    with recollect.open(f"sqlite:///{path}?vfs={vfs.name}", settings=settings) as memory:
        session = memory.space(SPACE).session("k", agent="a")
        for _ in range(5):
            vfs.disk_full = False
            for _ in range(10):
                content = text(next(numbers))
                session.append("user", content)
                stored.append(content)
            vfs.disk_full = True
            stored += append_until_full(session, numbers)
            # Reading needs no room; this very object goes on when there is some.
            assert [record.content for record in session.all()] == stored
        vfs.disk_full = False
        session.append("user", "at last")
        stored.append("at last")
    assert vfs.failures >= 5
    with recollect.open(path, settings=settings) as memory:
        assert assert_store_is_sound(memory, SPACE, stored=stored) == len(stored)


def test_threads_that_meet_a_full_disk_each_learn_what_became_of_theirs(
    vfs: FaultyVFS, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    stored: list[str] = []
    refused: list[str] = []
    surprises: list[BaseException] = []

    def append_all(session: recollect.Session, thread: int) -> None:
        for number in range(40):
            content = text(thread * 100 + number)
            try:
                session.append("user", content)
                stored.append(content)
            except StoreFull:
                refused.append(content)
            if thread == 0:
                vfs.disk_full = number % 4 < 2

    with recollect.open(f"sqlite:///{path}?vfs={vfs.name}") as memory:
        sessions = [memory.space(SPACE).session(f"k:{n}", agent="a") for n in range(4)]
        jobs: list[Callable[[], None]] = [
            partial(append_all, session, n) for n, session in enumerate(sessions)
        ]
        run_together(jobs, surprises)
        vfs.heal()
        assert not surprises
        assert len(stored) + len(refused) == 160
        assert assert_store_is_sound(memory, SPACE, stored=stored, absent=refused) == len(stored)
    assert refused, "the disk never was full"
    with recollect.open(path) as memory:
        assert_store_is_sound(memory, SPACE, stored=stored, absent=refused)


def run_together(jobs: list[Callable[[], None]], surprises: list[BaseException]) -> None:
    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            surprises.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_file_at_its_page_limit_is_full(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with recollect.open(path) as memory:
        session = memory.space(SPACE).session("k", agent="a")
        session.append("user", "before")
        limit_pages(memory, 1)  # SQLite raises it to what is used already
        stored = append_until_full(session, count())
        limit_pages(memory, 1_000_000)
        session.append("user", "after")
        assert_store_is_sound(memory, SPACE, stored=["before", *stored, "after"])


def limit_pages(memory: recollect.Memory, pages: int) -> None:
    """The limit belongs to a connection, so the store's own writer has to set it."""
    connections = [c for c in apsw.connections() if not c.readonly("main")]
    for connection in connections:
        if not connection.pragma("query_only"):
            connection.pragma("max_page_count", pages)


def test_a_full_disk_at_the_first_opening_leaves_nothing_in_the_way(
    vfs: FaultyVFS, tmp_path: Path, settings: dict[str, bool]
) -> None:
    path = tmp_path / "memory.db"
    vfs.disk_full = True
    with pytest.raises(StoreFull):
        recollect.open(f"sqlite:///{path}?vfs={vfs.name}", settings=settings)
    vfs.disk_full = False
    with recollect.open(f"sqlite:///{path}?vfs={vfs.name}", settings=settings) as memory:
        memory.space(SPACE).session("k", agent="a").append("user", "one")
        assert assert_store_is_sound(memory, SPACE, stored=["one"]) == 1


# forgetting: room is kept for it


class LowDisk(FaultyVFS):
    """A disk that is full from some moment on, until the reserve of that moment is given up."""

    reserve: Path | None = None
    _inode = 0

    def fill(self, reserve: Path) -> None:
        self.reserve, self._inode = reserve, reserve.stat().st_ino
        # While it has another name, a file that is made after it is not the same.
        reserve.with_name(f"held-{next(_vfs_numbers)}").hardlink_to(reserve)

    def has_room(self) -> bool:
        reserve = self.reserve
        return reserve is None or not reserve.exists() or reserve.stat().st_ino != self._inode

    @property
    def disk_full(self) -> bool:
        return not self.has_room()

    @disk_full.setter
    def disk_full(self, value: bool) -> None:
        assert not value


@pytest.mark.parametrize("audit", ["off", "writes"])
def test_on_a_full_disk_one_can_forget_and_nothing_else(
    tmp_path: Path, settings: dict[str, bool], audit: str
) -> None:
    """P11: the reserve is for deletions alone, and is kept again afterwards."""
    path, vfs = tmp_path / "memory.db", LowDisk(f"low-disk-{next(_vfs_numbers)}")
    reserve = tmp_path / "memory.db-reserve"
    given = {**settings, "audit": audit}
    with recollect.open(f"sqlite:///{path}?vfs={vfs.name}", settings=given) as memory:
        space = memory.space(SPACE)
        kept, gone, purged = (space.session(name, agent="a") for name in ("kept", "gone", "purged"))
        for session in (kept, gone, purged):
            session.append("user", text(1))
        assert (reserve.stat().st_mode & 0o777, reserve.stat().st_size) == (0o600, RESERVE_BYTES)
        assert reserve.stat().st_blocks * 512 >= RESERVE_BYTES
        for forget in (lambda: space.forget(session=gone.id), purged.purge):
            vfs.fill(reserve)
            append_until_full(kept, iter(range(100)))
            assert not vfs.has_room()
            forget()
            assert vfs.has_room()
            assert reserve.stat().st_size == RESERVE_BYTES
        assert (len(gone.all()), len(purged.all())) == (0, 0)
        assert kept.all()
    vfs.unregister()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own. Mounting one needs root."""
    place = tmp_path / "disk"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(mounting, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("this user may not mount a file system")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill_up(place: Path) -> None:
    """Take every byte that is left, as somebody else on the same disk would."""
    with (place / "ballast").open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(bytes(4096))


def test_half_of_a_store_that_fills_its_disk_can_be_forgotten_to_the_last_byte(
    small_disk: Path,
) -> None:
    """P11: a deletion that takes many times the reserve is done in little room, and wiped."""
    path = small_disk / "memory.db"
    with recollect.open(path) as memory:
        space = memory.space(SPACE)
        kept, gone = space.session("kept", agent="a"), space.session("gone", agent="a")
        stored: list[str] = []

        def append_both() -> None:
            for number in count():
                gone.append_many([{"role": "user", "content": "zirconium " + text(number)}] * 20)
                kept.append_many([{"role": "user", "content": text(number)}] * 20)
                stored.extend([text(number)] * 20)

        with pytest.raises(StoreFull):
            append_both()
        receipt = space.forget(session=gone.id)
        assert receipt.is_complete
        assert receipt.records * TEXT_CHARS > RESERVE_BYTES
        assert [record.content for record in kept.all()] == stored
        kept.append("user", "there is room again")
        assert examine(memory.store, memory.clock.now()).findings == ()
    left = [file.name for file in small_disk.iterdir() if b"zirconium" in file.read_bytes()]
    assert left == []
    assert (small_disk / "memory.db-reserve").exists()


def test_a_store_on_a_full_disk_can_be_opened_in_order_to_forget(small_disk: Path) -> None:
    path = small_disk / "memory.db"
    with recollect.open(path) as memory:
        memory.space(SPACE).session("k", agent="a").append("user", "zirconium")
    fill_up(small_disk)
    with recollect.open(path) as memory:
        session = memory.space(SPACE).session("k", agent="a")
        with pytest.raises(StoreFull):
            session.append("user", text(1) * 40)
        assert memory.space(SPACE).forget(session=session.id).is_complete
    assert b"zirconium" not in path.read_bytes()

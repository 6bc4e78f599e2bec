"""SQLite's locks: the busy timeout is kept, and nothing in this process drops a lock."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

import recollect
from recollect.errors import StoreBusy
from tests.crash.soundness import assert_store_is_sound

SPACE = "s"
ROLLBACK_JOURNAL = {"sqlite_wal": False}


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another connection that writes and does not come to an end."""
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def test_a_lock_that_is_held_too_long_is_busy_and_nothing_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with recollect.open(path, settings={"sqlite_busy_timeout_ms": 200}) as memory:
        session = memory.space(SPACE).session("k", agent="a")
        with held(path):
            started = time.monotonic()
            with pytest.raises(StoreBusy, match="raise the busy timeout") as caught:
                session.append("user", "too late")
            waited = time.monotonic() - started
            assert session.all() == []  # readers do not wait for writers
        assert caught.value.retry_helps
        assert 0.15 < waited < 3
        session.append("user", "one")
        assert assert_store_is_sound(memory, SPACE, stored=["one"], absent=["too late"]) == 1


def test_a_busy_timeout_of_zero_does_not_wait(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with recollect.open(path, settings={"sqlite_busy_timeout_ms": 0}) as memory:
        session = memory.space(SPACE).session("k", agent="a")
        with held(path):
            started = time.monotonic()
            with pytest.raises(StoreBusy):
                session.append("user", "too late")
            assert time.monotonic() - started < 1
        session.append("user", "one")


def test_a_store_without_a_write_ahead_log_works_and_leaves_no_log(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    texts = [f"{n}" for n in range(20)]
    with recollect.open(path, settings=ROLLBACK_JOURNAL) as memory:
        session = memory.space(SPACE).session("k", agent="a")
        for text in texts:
            session.append("user", text)
        session.compact("what was said", retain=2)
        assert_store_is_sound(memory, SPACE, stored=texts)
        assert not [file for file in tmp_path.iterdir() if file.name.endswith(("-wal", "-journal"))]
        writer = writer_of(memory)
        assert writer.pragma("journal_mode") == "delete"
        assert writer.pragma("synchronous") == 3, "EXTRA: the directory is synced too"
    with recollect.open(path) as memory:
        assert writer_of(memory).pragma("journal_mode") == "wal"
        assert assert_store_is_sound(memory, SPACE, stored=texts) == 20


def writer_of(memory: recollect.Memory) -> Any:
    return memory.store._database._writer  # type: ignore[attr-defined]


TRY_TO_WRITE = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
try:
    connection.execute("BEGIN IMMEDIATE")
except apsw.BusyError:
    print("busy")
else:
    print("got in")
"""


@pytest.mark.parametrize("wal", [True, False], ids=["wal", "rollback-journal"])
def test_opening_a_store_twice_in_one_process_drops_no_lock(tmp_path: Path, wal: bool) -> None:
    """POSIX drops a process's locks on a file when it closes any descriptor of that file."""
    path = tmp_path / "memory.db"
    settings = {"sqlite_wal": wal}

    def job(_: object) -> str:
        recollect.open(path, settings=settings).close()
        command = [sys.executable, "-c", TRY_TO_WRITE, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with recollect.open(path, settings=settings) as memory:
        said = memory.store._database.write(SPACE, job)  # type: ignore[attr-defined]
    assert said == "busy\n"


def test_two_memories_on_one_file_in_one_process_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with recollect.open(path) as one, recollect.open(path) as other:
        for number in range(10):
            one.space(SPACE).session("k", agent="a").append("user", f"one {number}")
            other.space(SPACE).session("k", agent="a").append("user", f"other {number}")
        assert assert_store_is_sound(one, SPACE) == 20
        assert assert_store_is_sound(other, SPACE) == 20

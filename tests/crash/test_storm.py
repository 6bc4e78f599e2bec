"""Sixteen processes at once, writing or opening and migrating: no busy error reaches a caller."""

from __future__ import annotations

from pathlib import Path

import pytest

import recollect
from tests.crash.appender import SPACE
from tests.crash.soundness import assert_store_is_sound
from tests.crash.writers import Nursery, Writers

PROCESSES = 16
ROLLBACK_JOURNAL = {"sqlite_wal": False}


def storm(url: str, directory: Path, seconds: float) -> None:
    with Nursery() as nursery, Writers(nursery, directory, url) as writers:
        recollect.open(url).close()
        started = [writers.start("storm", seconds=seconds) for _ in range(PROCESSES)]
        nursery.open_gate()
        codes = [writers.wait(writer.pid) for writer in started]
        assert not writers.failures()
        assert codes == [0] * PROCESSES
        acknowledged = writers.acknowledged()
        slowest = max(entry.get("slowest", 0) for w in started for entry in w.entries())
    print(f"{len(acknowledged)} appends in {seconds} s, the slowest took {slowest * 1000:.0f} ms")
    assert all(writer.acknowledged() for writer in started), "somebody never got a turn"
    with recollect.open(url) as memory:
        records = assert_store_is_sound(memory, SPACE, stored=acknowledged)
    assert records == len(acknowledged)


def test_no_busy_error_reaches_one_of_sixteen_writers(new_store_url: str, tmp_path: Path) -> None:
    storm(new_store_url, tmp_path, 3)


@pytest.mark.torture
def test_no_busy_error_reaches_one_of_sixteen_writers_in_ten_minutes(
    new_store_url: str, tmp_path: Path
) -> None:
    storm(new_store_url, tmp_path, 600)


def open_together(url: str, directory: Path, settings: dict[str, bool]) -> None:
    with Nursery() as nursery, Writers(nursery, directory, url, settings) as writers:
        started = [writers.start("open") for _ in range(PROCESSES)]
        nursery.open_gate()
        codes = [writers.wait(writer.pid) for writer in started]
        assert not writers.failures()
        assert codes == [0] * PROCESSES
        names = writers.acknowledged()
        versions = {entry.get("version") for w in started for entry in w.entries()} - {None}
    assert len(versions) == 1
    with recollect.open(url, settings=settings) as memory:
        assert memory.status().store.schema_version in versions
        assert assert_store_is_sound(memory, SPACE, stored=names) == PROCESSES


def test_sixteen_processes_open_and_migrate_a_fresh_store_at_once(
    new_store_url: str, tmp_path: Path
) -> None:
    open_together(new_store_url, tmp_path, {})


def test_sixteen_processes_open_a_fresh_file_without_a_write_ahead_log(tmp_path: Path) -> None:
    open_together(str(tmp_path / "memory.db"), tmp_path, ROLLBACK_JOURNAL)

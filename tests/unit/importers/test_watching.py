"""The watcher: keeps up with files that grow, waits for what is not there, and stops when told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect.errors import StoreDenied, StoreUnavailable
from recollect.importers import running
from recollect.importers.generic import GenericJsonl
from recollect.importers.items import ImportReport
from recollect.importers.running import Watching


@pytest.fixture
def memory(store_url: str) -> Iterator[recollect.Memory]:
    with recollect.open(store_url, settings={"consolidation": "off"}) as opened:
        yield opened


def line(session: str, number: int) -> str:
    entry = {"session": session, "id": f"{session}-{number}", "role": "user"}
    return json.dumps(entry | {"content": f"word {number}"}) + "\n"


def write(path: Path, *written: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(written))
    return path


def words(memory: recollect.Memory, session: str) -> list[str]:
    found = memory.space().find_session(("jsonl", session))
    return [] if found is None else [record.content for record in found.all()]


def watching(memory: recollect.Memory, *places: Path) -> Watching:
    return Watching(memory, "default", GenericJsonl(), places)


def test_two_watchers_keep_up_with_a_growing_file_and_store_each_line_once(
    memory: recollect.Memory, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    watchers = [watching(memory, folder) for _ in range(2)]
    assert watchers[0].look().files == 0  # not there yet
    log = write(folder / "a.jsonl", line("s", 0))
    came = 0
    for number in range(1, 6):
        half = line("s", number)
        with log.open("a") as file:
            file.write(half[:20])
        came += sum(watcher.look().records for watcher in watchers)
        with log.open("a") as file:
            file.write(half[20:])
        came += watchers[number % 2].look().records
    came += sum(watcher.look().records for watcher in watchers)
    assert came == 6
    assert words(memory, "s") == [f"word {number}" for number in range(6)]
    assert watchers[0].look().files == 0  # nothing changed: nothing is even opened


def test_only_what_changed_is_opened_and_what_went_away_may_come_back(
    memory: recollect.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.jsonl", "deep/er/b.jsonl", "c.txt"):
        write(tmp_path / "logs" / name, line(name, 0))
    watcher = watching(memory, Path("logs"), tmp_path / "logs" / "deep" / "er" / "b.jsonl")
    assert [watcher.look().files for _ in range(2)] == [2, 0]
    (tmp_path / "logs" / "a.jsonl").rename(tmp_path / "a.jsonl")
    assert watcher.look().files == 0
    (tmp_path / "a.jsonl").rename(tmp_path / "logs" / "a.jsonl")
    assert watcher.look().files == 1
    os.utime(tmp_path / "logs" / "c.txt", (1, 1))
    assert watcher.look().files == 0


def test_half_a_line_is_waited_for_without_a_word(memory: recollect.Memory, tmp_path: Path) -> None:
    watcher, whole = watching(memory, tmp_path), line("s", 1)
    log = write(tmp_path / "a.jsonl", line("s", 0), whole[:9])
    assert (watcher.look().odd, words(memory, "s")) == ({}, ["word 0"])
    write(log, line("s", 0), whole)
    assert (watcher.look().odd, words(memory, "s")) == ({}, ["word 0", "word 1"])


def test_a_watcher_that_is_told_to_stop_stops_between_two_batches_and_the_next_goes_on(
    memory: recollect.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "BATCH_ITEMS", 2)
    write(tmp_path / "a.jsonl", *(line("s", number) for number in range(10)))
    waits: list[float] = []
    reports: list[ImportReport] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) == 2

    watching(memory, tmp_path).run(wait, reports.append, 60)
    assert waits == [0, 0]  # nobody has waited for anything
    assert [report.records for report in reports] == [4]
    assert watching(memory, tmp_path).look().records == 6
    assert words(memory, "s") == [f"word {number}" for number in range(10)]


def test_a_store_that_is_away_is_tried_again_and_one_that_refuses_is_not(
    memory: recollect.Memory, tmp_path: Path
) -> None:
    write(tmp_path / "a.jsonl", line("s", 0))
    watcher = watching(memory, tmp_path)
    faults: list[Exception] = [StoreUnavailable("gone"), StoreUnavailable("still gone")]
    came: list[int] = []

    def told(report: ImportReport) -> None:
        if faults:
            raise faults.pop()
        came.append(report.records + report.files_unchanged)

    watcher.run(lambda seconds: bool(seconds and came), told, 1)
    assert came == [1]  # found once more, and known
    faults.append(StoreDenied("read only"))
    with pytest.raises(StoreDenied):
        watcher.run(lambda _seconds: False, told, 1)

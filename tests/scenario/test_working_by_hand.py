"""Where no worker ever runs, `memory.work()` from a schedule is all there is. Rows M8, M14 and G5.

It does what a worker's sweeps would: for all spaces or, where one is named, for that one alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recollect.clock import ManualClock
from recollect.consolidation.pages import MEMORY
from recollect.processing import WorkReport
from tests.consolidated_spaces import DAY, SPACE, Here, opening

OTHER = "bob"
HOME = "I live in Lisbon."
DRINK = "I prefer tea over coffee."


@pytest.fixture
def here(store_url: str, tmp_path: Path) -> Iterator[Here]:
    with opening(store_url, tmp_path / "published") as opened:
        yield opened(extraction_retention_days=40, scan_age_days_max=60)


def told(here: Here, space: str, key: str, text: str) -> None:
    """Something was said, and whoever heard it died without a word."""
    here.memory.space(space).session(key).append("user", text, name="Ana")


def note(here: Here, space: str, line: str) -> None:
    """A person adds a line to the handbook."""
    page = here.root / space / "MEMORY.md"
    page.write_text(f"{page.read_text().rstrip()}\n- {line}\n")


def handbook(here: Here, space: str = SPACE) -> str:
    return here.memory.space(space).documents.read(MEMORY).body


def test_work_from_a_schedule_does_all_that_a_worker_would(here: Here) -> None:
    first = here.told("first", HOME)
    assert here.memory.work() == WorkReport(processed=1, records=1, generations=1)
    told(here, SPACE, "killed", DRINK)
    here.clock.advance(DAY)
    assert here.memory.work() == WorkReport(processed=1, records=1, generations=1)
    note(here, SPACE, "Ana is tall.")
    assert here.memory.work() == WorkReport(generations=1)
    assert all(each in handbook(here) for each in ("Lisbon", "tea over coffee", "Ana is tall."))

    for _ in range(3):
        here.clock.advance(16 * DAY)
        here.memory.work()
    assert "Lisbon" not in handbook(here), "nobody has used it for long"
    assert "Ana is tall." in handbook(here), "a person said so"
    number = here.space.generations.get().number
    assert here.memory.work() == WorkReport(), "nothing is due"
    assert here.space.generations.get().number == number
    assert here.memory.status().jobs == ()

    assert here.space.sessions.extraction(first.id) is not None
    here.told("later", DRINK)
    here.memory.work()
    assert here.space.sessions.extraction(first.id) is None, "it was kept for 40 days"


def test_work_for_a_space_sweeps_that_one_alone(here: Here) -> None:
    for space in (SPACE, OTHER):
        told(here, space, "first", HOME)
    here.memory.work(all=True)
    for space in (SPACE, OTHER):
        told(here, space, "killed", DRINK)
        note(here, space, "Ana is tall.")
    here.clock.advance(DAY)
    before = here.memory.status(SPACE).consolidations
    assert here.memory.work(space=OTHER).processed == 1
    assert all(each in handbook(here, OTHER) for each in ("tea over coffee", "Ana is tall."))
    assert not any(each in handbook(here) for each in ("tea", "tall"))
    here.clock.advance(31 * DAY)
    here.memory.work(space=OTHER)
    assert "Lisbon" not in handbook(here, OTHER)
    assert "Lisbon" in handbook(here)
    after = here.memory.status(SPACE)
    assert (after.marked_count, after.jobs, after.consolidations) == (0, (), before)
    here.memory.work()
    assert "tea over coffee" in handbook(here)
    assert "Ana is tall." in handbook(here)
    assert "Lisbon" not in handbook(here)


def test_any_number_may_work_at_once_and_each_session_is_learned_from_once(
    durable_store_url: str, tmp_path: Path
) -> None:
    spaces, keys = ("a", "b", "c"), range(6)
    with opening(durable_store_url, tmp_path / "published") as opened:
        clock = ManualClock()
        given = {"worker_batch": 10, "scan_age_days_max": 60}
        here, *others = [opened(clock=clock, **given) for _ in range(4)]
        for space in spaces:
            told(here, space, "first", HOME)
        here.memory.work(all=True)
        for space in spaces:
            note(here, space, "Ana is tall.")
            for key in keys:
                told(here, space, str(key), f"My aunt number {key} is called Rosa{key}.")
        clock.advance(31 * DAY)
        with ThreadPoolExecutor(4) as pool:
            reports = list(pool.map(lambda each: each.memory.work(), (here, *others)))
        assert sum(report.processed for report in reports) == len(spaces) * len(keys)
        assert not any(report.failed for report in reports)
        here.memory.work()
        for space in spaces:
            assert "Ana is tall." in handbook(here, space)
            assert "Lisbon" not in handbook(here, space)


def test_work_delivers_what_was_to_come_later(here: Here) -> None:
    """M14: an agent that nobody hosts now finds it when somebody does."""
    agents = here.memory.agents()
    for space in (SPACE, OTHER):
        agents.signal("helper", "alarm", 60, "wake up", space=space)

    def queued() -> dict[str, int]:
        return {each.ref.space: each.queued for each in here.memory.status().agents}

    here.clock.advance(59)
    here.memory.work()
    assert queued() == {SPACE: 0, OTHER: 0}
    here.clock.advance(1)
    here.memory.work(space=OTHER)
    assert queued() == {SPACE: 0, OTHER: 1}
    for _ in range(2):
        here.memory.work()
    assert queued() == {SPACE: 1, OTHER: 1}

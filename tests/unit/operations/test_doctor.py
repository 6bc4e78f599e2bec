"""Examination: a store in use is sound, each thing that can be wrong is found, and what is safe to
put right is put right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.operations.checks import CHECKS, Diagnosis, Gravity, Mending, examine, repair
from recollect.store.whole import Access
from tests.unit.operations.material import SETTINGS, SPACES, fill

# What is done to a store behind its back, by what is found then.
HARM: Mapping[str, str] = {
    "unfinished-migration": "INSERT INTO properties (name, value) VALUES ('migrating-from', 'x')",
    "unfinished-load": "INSERT INTO properties (name, value) VALUES ('loading-from', 'x')",
    "mark-without-job": "DELETE FROM jobs WHERE kind = 'extract' AND state = 'due'",
    "job-without-mark": "UPDATE jobs SET state = 'due' WHERE kind = 'extract' AND state = 'idle'",
    "parked-job": "UPDATE jobs SET state = 'parked' WHERE kind = 'extract' AND state = 'due'",
    "abandoned-job": "UPDATE jobs SET state = 'claimed', owner = 'x', lease_expires_at = 1"
    " WHERE kind = 'extract' AND state = 'due'",
    "waiting-job": "UPDATE jobs SET first_due_at = 1 WHERE kind = 'extract' AND state = 'due'",
    "unnumbered-records": "UPDATE sessions SET last_seq = 0 WHERE ephemeral = :yes",
    "uncovered-records": "DELETE FROM session_ranges",
    "key-without-session": "UPDATE session_keys SET session_id = 'x'",
    "miscounted-tree": "UPDATE trees SET documents = documents + 1",
    "unbound-link": "UPDATE document_references SET target_key = NULL"
    " WHERE target_path LIKE '%lisbon'",
}
WORDS = ("facts", "documents", "extractions", "session_history")


@pytest.fixture
def memory(store_url: str) -> Iterator[recollect.Memory]:
    with recollect.open(store_url, settings=SETTINGS, clock=ManualClock()) as opened:
        fill(opened)
        yield opened


def harm(memory: recollect.Memory, text: str) -> None:
    with memory.store.whole(Access.WRITE) as whole:
        whole.run(text, {"yes": whole.dialect == "postgres" or 1} if ":yes" in text else {})


def looked_at(memory: recollect.Memory) -> Diagnosis:
    return examine(memory.store, memory.clock.now())


def wrong(diagnosis: Diagnosis) -> list[str]:
    return [each.check for each in diagnosis.findings if each.gravity is Gravity.WRONG]


def test_a_store_in_use_is_sound_and_every_harm_to_it_is_found(memory: recollect.Memory) -> None:
    assert looked_at(memory).is_sound, looked_at(memory).findings
    assert {each.check for each in looked_at(memory).findings} <= {"broken-link"}
    for name in ("waiting-job", "mark-without-job"):
        harm(memory, HARM[name])
        found = {each.check: each for each in looked_at(memory).findings}[name]
        assert found.count == len(SPACES)
        assert found.examples
        assert found.advice


@pytest.mark.parametrize("name", sorted(HARM))
def test_what_is_wrong_is_found_and_repaired_where_that_is_safe(
    name: str, tmp_path: Path, memory_of_sqlite: recollect.Memory
) -> None:
    memory = memory_of_sqlite
    harm(memory, HARM[name])
    found = {each.check: each for each in looked_at(memory).findings}
    assert name in found
    diagnosis = repair(memory.store, memory.clock.now())
    if found[name].mending is Mending.NONE:
        assert name in {each.check for each in diagnosis.findings}
        assert not diagnosis.repaired
    else:
        assert diagnosis.is_sound, diagnosis.findings
        assert name in {each.check for each in diagnosis.repaired}
        assert not memory.work().failed


@pytest.fixture
def memory_of_sqlite() -> Iterator[recollect.Memory]:
    with recollect.open(":memory:", settings=SETTINGS, clock=ManualClock()) as opened:
        fill(opened)
        yield opened


def test_repairs_are_understood_by_both_databases(memory: recollect.Memory) -> None:
    """All at once, so that one store shows it."""
    for name in ("mark-without-job", "job-without-mark", "miscounted-tree", "unbound-link"):
        harm(memory, HARM[name])
    diagnosis = repair(memory.store, memory.clock.now())
    assert diagnosis.is_sound, diagnosis.findings
    assert {each.check for each in diagnosis.repaired} >= {"mark-without-job", "miscounted-tree"}


def test_an_index_of_words_that_lost_or_kept_too_much_is_made_anew(
    memory: recollect.Memory,
) -> None:
    expected = [hit.id for hit in memory.space("alice").recall("green tea")]
    assert expected
    if memory.store.describe().kind == "sqlite":
        for index in ("facts_fts", "documents_fts", "extractions_fts"):
            harm(memory, f"INSERT INTO {index} ({index}) VALUES ('delete-all')")
        harm(memory, "UPDATE indexed_records SET upto = (SELECT max(id) FROM session_history)")
    else:
        harm(memory, "DELETE FROM postings WHERE key % 2 = 0")
        harm(memory, "UPDATE postings SET word = word || 'x' WHERE key % 2 = 1")
    assert not [hit.id for hit in memory.space("alice").recall("green tea")]
    found = [each for each in looked_at(memory).findings if each.check == "unfit-word-index"]
    assert [table for table in WORDS if any(table in each.says for each in found)] == list(WORDS)
    assert repair(memory.store, memory.clock.now()).is_sound
    assert [hit.id for hit in memory.space("alice").recall("green tea")] == expected


def test_a_damaged_file_is_told_and_not_repaired(lent_store_path: Path) -> None:
    with recollect.open(lent_store_path, settings=SETTINGS, clock=ManualClock()) as memory:
        fill(memory)
    data = bytearray(lent_store_path.read_bytes())
    page = data.rindex(b"I moved to Lisbon") // 4096 * 4096
    data[page + 3 : page + 5] = b"\xff\xff"  # how many entries a page has
    lent_store_path.write_bytes(data)
    with recollect.open(lent_store_path, clock=ManualClock()) as memory:
        found = repair(memory.store, memory.clock.now())
        assert "damaged-file" in wrong(found)
        assert not found.is_sound


def test_every_question_has_its_harm() -> None:
    cannot_be_done = {"cursor-beyond-end"}  # the tables themselves refuse it
    expected = {check.name for check in CHECKS} - cannot_be_done - {"broken-link"}
    assert set(HARM) == expected


def test_a_file_without_room_kept_for_forgetting_is_worth_a_note(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "memory.db", clock=ManualClock()) as memory:
        memory.space().session("k").append("user", "hello")
        assert looked_at(memory).findings == ()
        (tmp_path / "memory.db-reserve").unlink()
        assert [each.check for each in looked_at(memory).findings] == ["no-reserve"]
        assert looked_at(memory).is_sound

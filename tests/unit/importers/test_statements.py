"""Facts of another memory follow it: new, changed there, and never over what was done here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.importers.items import ImportReport
from recollect.importers.mem0 import Mem0
from recollect.importers.running import CHANGED_HERE, Importing
from recollect.types.facts import Fact

SAID = datetime(2024, 5, 1, 10, tzinfo=UTC)
BEFORE = datetime(2024, 4, 30, tzinfo=UTC)
LATER = datetime(2025, 1, 1, tzinfo=UTC)
UPDATED = "2025-05-01T10:00:00Z"

Import = Callable[..., ImportReport]


@pytest.fixture
def memory(store_url: str) -> Iterator[recollect.Memory]:
    with recollect.open(store_url, clock=ManualClock()) as opened:
        yield opened


@pytest.fixture
def brought(memory: recollect.Memory, tmp_path: Path) -> Import:
    def bring(*memories: dict[str, Any], instead: recollect.Memory | None = None) -> ImportReport:
        file = tmp_path / "mem0.json"
        file.write_text(json.dumps({"results": memories}))
        return Importing(memory, "default", Mem0(), instead=instead).run([file])

    return bring


def said(text: str, **others: Any) -> dict[str, Any]:
    return {"id": "a1", "memory": text, "user_id": "ana", "created_at": SAID.isoformat(), **others}


def facts(memory: recollect.Memory) -> list[Fact]:
    return memory.space().facts.list(10)


def contents(memory: recollect.Memory) -> list[str]:
    return sorted(fact.content for fact in facts(memory))


def test_a_memory_holds_from_when_it_was_said(memory: recollect.Memory, brought: Import) -> None:
    brought(said("Lives in Oslo"), said("Likes tea", id="a2", updated_at=UPDATED))
    held = memory.space().facts
    assert [fact.content for fact in held.list(as_of=LATER)] == ["Lives in Oslo"]
    assert [fact.content for fact in held.search("Oslo", as_of=LATER)] == ["Lives in Oslo"]
    assert held.list(as_of=BEFORE) == []
    assert len(held.list(as_of=UPDATED)) == 2, "what it said before it was updated nobody knows"
    assert [hit.text for hit in memory.space().recall("Oslo", as_of=LATER)] == ["Lives in Oslo"]


def test_a_time_that_is_yet_to_come_makes_nothing_hold_later(
    memory: recollect.Memory, brought: Import
) -> None:
    brought(said("Lives in Oslo", updated_at="2099-01-01T00:00:00Z"))
    assert contents(memory) == ["Lives in Oslo"]


def test_what_was_updated_there_is_updated_here_once(
    memory: recollect.Memory, brought: Import
) -> None:
    brought(said("Lives in Oslo"), said("Likes tea", id="a2"))
    moved = said("Lives in Bergen", updated_at=UPDATED)
    again = brought(moved, said("Likes tea", id="a2"))
    assert (again.facts, again.facts_changed, again.known) == (0, 1, 1)
    assert contents(memory) == ["Likes tea", "Lives in Bergen"]
    held = memory.space().facts
    [bergen] = held.search("Bergen")
    assert bergen.metadata["updated_at"] == "2025-05-01T10:00:00+00:00"
    assert [fact.content for fact in held.search("Oslo", as_of=LATER)] == ["Lives in Oslo"]
    unchanged = brought(moved, said("Likes tea", id="a2"), said("Has a dog", id="a3"))
    assert (unchanged.facts, unchanged.facts_changed, unchanged.known) == (1, 0, 2)
    assert len(held.history(bergen.id)) == 2


def test_other_tags_and_metadata_are_taken_over_too(
    memory: recollect.Memory, brought: Import
) -> None:
    brought(said("Likes tea", metadata={"mood": "calm"}))
    assert brought(said("Likes tea", categories=["food"])).facts_changed == 1
    [fact] = facts(memory)
    assert (fact.tags, fact.metadata) == (("food",), {"user_id": "ana"})
    assert fact.valid_from == SAID


def test_what_was_done_here_stays(memory: recollect.Memory, brought: Import) -> None:
    ids = ("edited", "ended", "deleted")
    brought(*(said(f"Likes {each}", id=each) for each in ids))
    held = memory.space().facts
    by_text = {fact.content: fact.id for fact in held.list()}
    held.update(by_text["Likes edited"], "Likes coffee")
    held.update(by_text["Likes ended"], valid_to=memory.clock.now())
    held.delete(by_text["Likes deleted"])
    updated = [said("Likes rain", id=each, updated_at=UPDATED) for each in ids]
    report = brought(*updated)
    assert (report.facts, report.facts_changed, report.known) == (0, 0, 1)
    assert report.left_out == {CHANGED_HERE: 2}
    assert contents(memory) == ["Likes coffee"]
    again = brought(*updated, said("Has a dog", id="dog"))
    assert (again.facts, again.known, again.left_out) == (1, 3, {}), "it is said once"
    assert contents(memory) == ["Has a dog", "Likes coffee"]


def test_an_update_whose_import_died_before_it_was_noted_is_followed_later(
    memory: recollect.Memory, brought: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P2: the fact was stored, and what is known of it was not; a secret in it is redacted."""
    secret = "sk-proj-" + "A1b2C3d4" * 5
    brought(said("Lives in Oslo"))
    with monkeypatch.context() as patch:
        patch.setattr(memory.store.imports, "note", _die)
        with pytest.raises(RuntimeError):
            brought(said(f"Lives in Bergen, key {secret}"))
    again = brought(said(f"Lives in Bergen, key {secret}"))
    assert (again.facts_changed, again.known, again.left_out) == (0, 1, {})
    assert brought(said("Lives in Turku")).facts_changed == 1
    assert contents(memory) == ["Lives in Turku"]


def _die(*_: Any) -> None:
    raise RuntimeError("the process dies here")


def test_a_dry_run_tells_what_would_change_and_changes_nothing(
    memory: recollect.Memory, brought: Import
) -> None:
    brought(said("Lives in Oslo"), said("Likes tea", id="a2"))
    with recollect.open(":memory:") as instead:
        report = brought(
            said("Lives in Bergen"),
            said("Likes tea", id="a2"),
            said("New", id="n"),
            instead=instead,
        )
    assert (report.facts, report.facts_changed, report.known) == (1, 1, 1)
    assert contents(memory) == ["Likes tea", "Lives in Oslo"]

"""Stores with something of everything in them, for tests that move whole stores about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import recollect
from recollect.clock import ManualClock
from recollect.types.facts import Fact

MET = datetime(2026, 5, 4, tzinfo=UTC)
SPACES = ("alice", "bob/..", "Zoë · 3")
QUESTIONS = ("where does she live?", "what colour does she like?", "the quarter in Lisbon")
SETTINGS = {"consolidation_cooldown_seconds": 0}


def fill(memory: recollect.Memory) -> None:
    """Sessions, marks, facts with a history, documents that were moved and deleted, generations."""
    clock = memory.clock
    assert isinstance(clock, ManualClock)
    for name in SPACES:
        space = memory.space(name)
        session = space.session(("telegram", "42"), agent="assistant", project="flat")
        for number in range(3):
            clock.advance(60)
            text = f"I moved to Lisbon in May. My favourite colour is teal. This is {number}."
            session.append("user", text, key=f"k{number}", metadata={"n": number})
        session.compact()
        met = Fact(
            f"{name} met the tea",
            tags=("event",),
            about=(name, "tea"),
            happened_from=MET,
            happened_to=MET + timedelta(days=1),
        )
        space.facts.add(met)
        fact = space.facts.add(f"{name} likes tea")
        space.facts.update(fact.id, content=f"{name} likes green tea")
        _write_documents(space)
        block = space.context("where does she live?")
        space.cite(block, used=[citation.hit for citation in block.citations[:1]])
    memory.work(all=True)
    for name in SPACES:
        clock.advance(60)
        session = memory.space(name).session(("telegram", "42"), agent="assistant")
        session.append("user", "I have a dog called Pixel.")
        session.sleep()
        memory.space(name).session("left", agent="helper", ephemeral=True).append("user", "Hm.")
    memory.store.imports.note("alice", ["an-item"], _cursor(), clock.now())


def _write_documents(space: recollect.Space) -> None:
    documents = space.documents
    documents.write("/people/ana", "Ana lives in [[/places/lisbon]].", title="Ana", description="x")
    documents.write("/places/lisbon", "A city.", title="Lisbon", description="where")
    documents.write("/places/lisbon/alfama", "A quarter.", title="Alfama", description="where")
    documents.move("/people/ana", "/folks/ana")
    documents.write("/old", "Old.", title="Old", description="old")
    documents.write("/old/older", "Older, see [[/nowhere]].", title="Older", description="older")
    documents.delete("/old", below=True, references="leave")


def _cursor() -> recollect.types.imports.Cursor:
    return recollect.types.imports.Cursor(
        source="jsonl", place="log.jsonl", offset=7, line=1, head="h", head_bytes=1, memo="{}"
    )


def answers(memory: recollect.Memory) -> list[list[tuple[str, str]]]:
    return [
        [(str(hit.kind), hit.text) for hit in memory.space(name).recall(question)]
        for name in SPACES
        for question in QUESTIONS
    ]

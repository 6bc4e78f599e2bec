"""The offline responder: what memory says, where it comes from, and that no model was asked."""

from __future__ import annotations

import pytest

import recollect
from recollect import Fact
from recollect.agents.reply import ANSWER_CHARS_MAX, ANSWERS_MAX, NOTHING, respond
from recollect.quoting import OFFLINE, without_recalled
from recollect.types.recall import Context


@pytest.fixture
def space(memory: recollect.Memory) -> recollect.Space:
    return memory.space("alice")


def test_with_nothing_to_say_it_says_so() -> None:
    assert respond(Context(text="")) == NOTHING
    assert NOTHING.startswith(OFFLINE)
    assert "No model is set" in NOTHING


def test_it_says_what_memory_says_and_where_from(space: recollect.Space) -> None:
    session = space.session("k")
    session.append("user", "I like teal.")
    source = recollect.Source(session_id=session.id, seq=1, seq_to=1)
    space.facts.add(Fact("Alice likes teal", sources=(source,)))
    lines = respond(space.context("teal")).splitlines()
    assert lines[0].startswith(OFFLINE)
    assert lines[1] == f"- Alice likes teal (session {session.id}, record 1, 2026-01-01)"
    assert len(lines) == 2, "what was said says the same at greater length"


def test_records_are_told_where_there_is_no_fact(space: recollect.Space) -> None:
    space.session("k").append("user", "The lantern is by the door.")
    assert "The lantern is by the door." in respond(space.context("lantern"))


def test_it_is_short(space: recollect.Space) -> None:
    for number in range(10):
        space.facts.add(f"Lantern {number} " + "is long and bright " * 40)
    lines = respond(space.context("lantern", 10_000)).splitlines()
    assert len(lines) == 1 + ANSWERS_MAX
    assert all(len(line) < ANSWER_CHARS_MAX + 100 for line in lines)
    assert all("…" in line for line in lines[1:])


def test_each_line_stays_a_line(space: recollect.Space) -> None:
    space.facts.add("lantern\n- forged line\n\n# Heading")
    assert len(respond(space.context("lantern")).splitlines()) == 2


def test_what_it_said_is_never_learned_or_recalled(space: recollect.Space) -> None:
    space.facts.add("Alice likes teal")
    answer = respond(space.context("teal"))
    assert without_recalled(answer) == ""
    space.session("k").append("assistant", answer)
    assert [hit.text for hit in space.recall("teal")] == ["Alice likes teal"]

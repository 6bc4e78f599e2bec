"""What is forgotten goes from the pages that memory-agents filed by rules; nothing else goes."""

from __future__ import annotations

import pytest

import recollect
from recollect.agents.withdrawing import REASON, withdraw
from recollect.clock import ManualClock

TEAL = "My favourite colour is teal."
ANA = "My sister Ana works at the port."


@pytest.fixture
def space(memory: recollect.Memory) -> recollect.Space:
    return memory.space("alice")


def told(memory: recollect.Memory, text: str, key: str, space: str = "alice") -> recollect.Session:
    session = memory.space(space).session(key)
    session.append("user", text, name="Alice")
    session.sleep()
    memory.work()
    return session


def said(space: recollect.Space) -> str:
    documents = space.documents
    return "\n".join(documents.read(node.path).body for node in documents.tree("~/memory"))


def test_forgetting_a_session_takes_its_lines_off_the_pages(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    session = told(memory, TEAL, "a")
    told(memory, ANA, "b")
    assert "teal" in said(space)
    space.forget(session=session)
    assert "teal" not in said(space)
    assert "Ana" in said(space)
    assert session.id not in said(space)


def test_what_another_session_says_as_well_stays(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    first = told(memory, TEAL, "a")
    second = told(memory, TEAL, "b")
    space.forget(session=first)
    assert "teal" in said(space)
    assert first.id not in said(space)
    space.forget(session=second)
    assert "teal" not in said(space)


def test_what_people_wrote_stays(memory: recollect.Memory, space: recollect.Space) -> None:
    session = told(memory, TEAL, "a")
    space.documents.write("~/memory/by-hand", f"Teal, says session {session.id}.")
    space.forget(session=session)
    assert "Teal, says session" in said(space)


def test_where_nothing_was_filed_nothing_is_written(
    memory: recollect.Memory, space: recollect.Space, clock: ManualClock
) -> None:
    told(memory, TEAL, "a")
    before = said(space)
    assert withdraw(space.documents, ["another"], now=clock.now()) == ()
    assert said(space) == before


def test_a_second_time_does_nothing(
    memory: recollect.Memory, space: recollect.Space, clock: ManualClock
) -> None:
    session = told(memory, TEAL, "a")
    written = withdraw(space.documents, [session.id], now=clock.now())
    assert written
    assert withdraw(space.documents, [session.id], now=clock.now()) == ()


def test_it_says_why(memory: recollect.Memory, space: recollect.Space, clock: ManualClock) -> None:
    session = told(memory, TEAL, "a")
    told(memory, ANA, "b")
    for path in withdraw(space.documents, [session.id], now=clock.now()):
        if space.documents.find(path) is not None:
            assert space.documents.history(path)[0].reason == REASON


def test_other_spaces_are_left_alone(memory: recollect.Memory, space: recollect.Space) -> None:
    mine = told(memory, TEAL, "a")
    told(memory, TEAL, "a", space="bob")
    space.forget(session=mine)
    assert "teal" in said(memory.space("bob"))


def test_no_version_and_no_deleted_page_says_what_was_forgotten(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    """P11. A page that others share loses the versions that say it; one of its own is purged."""
    session = told(memory, f"{TEAL} {ANA}", "a")
    told(memory, "My favourite colour is amber, and I prefer tea.", "b")
    documents = space.documents
    paths = [node.path for node in documents.tree("~/memory")]
    space.forget(session=session)
    kept = [
        version.body
        for path in paths
        if documents.find(path) is not None
        for version in documents.history(path)
    ]
    assert any("tea" in body for body in kept)
    assert not any("teal" in body or "Ana" in body for body in kept)
    for gone in documents.deleted("~/memory"):
        bodies = [version.body for version in documents.history(gone.path)]
        assert not any("teal" in body or "Ana" in body for body in bodies)

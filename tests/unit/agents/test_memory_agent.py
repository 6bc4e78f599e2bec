"""The memory-agent's doer: what it reads, what it may call, what it files and what it leaves."""

from __future__ import annotations

import pytest

import recollect
from recollect.agents.memory_agent import ALLOWED, NOTHING_TO_DO
from recollect.clock import ManualClock
from recollect.documents.paths import read_path
from recollect.documents.scope import is_of_consolidation
from recollect.documents.tools import tool_definitions
from recollect.messages import Role
from recollect.types.agents import ItemKind, NewItem
from recollect.types.pages import Document
from recollect.types.records import JobKind

TEAL = "My favourite colour is teal."
AGENT = {"type": "memory-agent", "id": "assistant"}


@pytest.fixture
def space(memory: recollect.Memory) -> recollect.Space:
    return memory.space("alice")


def told(space: recollect.Space, *texts: str, key: str = "k", **birth: object) -> recollect.Session:
    session = space.session(key, **birth)  # type: ignore[arg-type]
    for text in texts or (TEAL,):
        session.append("user", text, name="Alice")
    session.sleep()
    return session


def reports(space: recollect.Space) -> list[str]:
    session = space.find_session("memory", AGENT)
    if session is None:
        return []
    records = session.all(rotations=True)
    return [record.content for record in records if record.role is Role.ASSISTANT]


def topic_pages(space: recollect.Space) -> list[Document]:
    """The pages of memory but for those of consolidation."""
    found = [space.documents.read(node.path) for node in space.documents.tree("~/memory")]
    return [page for page in found if not is_of_consolidation(read_path(page.path))]


def pages(space: recollect.Space) -> dict[str, str]:
    return {page.path: page.body for page in topic_pages(space)}


def test_its_tools_are_those_that_read_and_write_and_none_that_deletes_or_moves() -> None:
    """A7: an allowlist; a tool that is added is not its own by itself."""
    assert set(ALLOWED) <= {each["name"] for each in tool_definitions("anthropic")}
    assert not [name for name in ALLOWED if "delete" in name or "move" in name or "purge" in name]


def test_by_rules_it_files_facts_on_pages_with_their_sources(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    session = told(space)
    memory.work()
    (page,) = [page for page in topic_pages(space) if "teal" in page.body]
    assert {source.session_id for source in page.sources} == {session.id}
    assert page.facts == (space.facts.list()[0].id,)
    assert len(reports(space)) == 1


def test_the_same_again_writes_nothing(memory: recollect.Memory, space: recollect.Space) -> None:
    told(space)
    memory.work()
    before = {node.path: node.version for node in space.documents.tree("~/memory")}
    item = NewItem(id="again", kind=ItemKind.SYSTEM_MESSAGE, text="again")
    session = space.session("memory", AGENT)
    now = memory.space("alice")._runtime.now()
    memory.store.agents.post(session.ref, item, JobKind.MEMORY_AGENT, now)
    memory.work()
    assert {node.path: node.version for node in space.documents.tree("~/memory")} == before
    assert reports(space)[-1] == NOTHING_TO_DO


def test_what_is_not_to_be_remembered_any_more_is_not_filed(clock: ManualClock) -> None:
    """Its mode changed after it was handed over and before it was read."""
    with recollect.open(
        ":memory:", settings={"worker_batch": 1, "consolidation": "off"}, clock=clock
    ) as memory:
        space = memory.space("alice")
        session = told(space)
        memory.worker().tick()
        assert session.state.processed_until == 1, "handed over"
        session.set_mode("disabled")
        memory.work()
        assert "teal" not in " ".join(pages(space).values())
        assert set(reports(space)) == {NOTHING_TO_DO}, "of what was handed over, and of its mode"


def test_facts_that_are_over_are_not_filed(
    memory: recollect.Memory, space: recollect.Space, clock: ManualClock
) -> None:
    told(space, "My favourite colour is teal.")
    memory.work()
    clock.advance(60)
    told(space, "My favourite colour is red now, not teal.", key="later")
    memory.work()
    assert "red" in " ".join(pages(space).values())


def test_a_background_source_is_filed_too(memory: recollect.Memory, space: recollect.Space) -> None:
    session = space.session("n", {"type": "cron", "id": "nightly"})
    session.append("user", "The backup of the port database is called harbour.")
    session.append("assistant", "Noted.")
    session.sleep()
    memory.work()
    assert session.state.processed_until == 2


def test_spaces_do_not_mix(memory: recollect.Memory, space: recollect.Space) -> None:
    told(space)
    told(memory.space("bob"), "I like jazz.")
    memory.work()
    assert "jazz" not in " ".join(pages(space).values())
    assert "teal" not in " ".join(pages(memory.space("bob")).values())


def test_two_sessions_that_say_the_same_are_one_line_with_two_sources(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    first, second = told(space, key="a"), told(space, key="b")
    memory.work()
    lines = [line for body in pages(space).values() for line in body.splitlines()]
    assert len([line for line in lines if "teal" in line.lower()]) == 1
    (page,) = [page for page in topic_pages(space) if "teal" in page.body]
    assert {source.session_id for source in page.sources} == {first.id, second.id}

"""A session whose mode forbids it leaves all of memory, and comes back. G11, G12, A5, M13."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.types.records import Mode
from tests.hosted_agents import hosted

LOVED = "I love zebrafinches."
FORBIDDEN = pytest.mark.parametrize("mode", [Mode.DISABLED, Mode.POLLUTED])


@pytest.fixture
def memory(durable_store_url: str) -> Iterator[recollect.Memory]:
    with recollect.open(durable_store_url) as memory:
        yield memory


def learned(memory: recollect.Memory, *texts: str, key: str = "k") -> recollect.Session:
    session = memory.space("alice").session(key)
    for text in texts or (LOVED,):
        session.append("user", text, name="Alice")
    session.sleep()
    memory.work()
    return session


def saying(space: recollect.Space, word: str = "zebrafinches") -> set[str]:
    """The pages that have a word."""
    bodies = {node.path: space.documents.read(node.path).body for node in space.documents.tree()}
    return {path for path, body in bodies.items() if word in body}


def told(space: recollect.Space, word: str = "zebrafinches") -> set[str]:
    """By which ways a word is told."""
    ways = {str(hit.kind) for hit in space.recall(word, 50)}
    ways |= {"context"} if word in space.context(word).text else set()
    ways |= {"list"} if any(word in fact.content for fact in space.facts.list()) else set()
    return ways | ({"search"} if space.facts.search(word) else set())


@FORBIDDEN
def test_what_one_session_said_leaves_memory_at_once_and_comes_back(
    memory: recollect.Memory, mode: Mode
) -> None:
    """G11, G12: facts, pages of the memory-agent, and with the next work the handbook."""
    space, session = memory.space("alice"), learned(memory)
    before, pages = told(space), saying(space)
    assert {"fact", "context", "list", "search"} <= before, "pages say no more than the fact"
    assert len(pages) > 3
    [fact] = space.facts.list()
    session.set_mode(mode)
    assert told(space) == set()
    assert space.facts.get(fact.id) == fact, "it is not erased"
    memory.work()
    assert saying(space) == set()
    session.set_mode(Mode.ENABLED)
    assert {"fact", "list", "search"} <= told(space)
    memory.work()
    assert (told(space), saying(space)) == (before, pages)


def test_what_others_say_as_well_or_somebody_vouches_for_stays(memory: recollect.Memory) -> None:
    """G11, G12."""
    session = learned(memory, LOVED, "I live in Lisbon.", "My favourite colour is teal.")
    learned(memory, LOVED, key="other")
    space = memory.space("alice")
    [home] = space.facts.search("Lisbon")
    space.facts.update(home.id, "Alice lives in Porto.")
    session.set_mode(Mode.DISABLED)
    memory.work()
    assert sorted(fact.content for fact in space.facts.list()) == [
        "Alice lives in Porto.",
        "Alice loves zebrafinches.",
    ]
    assert saying(space, "teal") == set()
    assert {"~/memory/MEMORY", "~/memory/people/alice"} <= saying(space)
    named = {"~/memory/MEMORY", "~/memory/memory_summary", "~/memory/people/alice"}
    assert saying(space, "Porto") == named
    space.forget(session=session)
    assert saying(space, "Porto") == set(), "it rests on the session all the same"


def test_the_pages_follow_also_where_a_process_was_stopped_before_it_came_to_them(
    memory: recollect.Memory,
) -> None:
    """G12, A5: the memory-agent is told in the same transaction."""
    space, session = memory.space("alice"), learned(memory)
    memory.store.sessions.set_mode(session.ref, Mode.POLLUTED, space._runtime.now())
    assert "~/memory/people/alice" not in saying(space), "in the transaction that changed it"
    memory.work()
    assert saying(space) == set()


def test_what_was_left_out_is_gone_for_good_once_it_is_forgotten(memory: recollect.Memory) -> None:
    """G11, P11: nothing is left in any version of a page."""
    space, session = memory.space("alice"), learned(memory)
    session.set_mode(Mode.DISABLED)
    memory.work()
    space.forget(session=session.id)
    paths = [node.path for node in space.documents.tree()]
    paths += [each.path for each in space.documents.deleted()]
    bodies = [each.body for path in paths for each in space.documents.history(path)]
    assert not any("zebrafinches" in body for body in bodies)


def test_what_was_said_while_it_was_left_out_is_not_filed_when_it_is_back(
    durable_store_url: str,
) -> None:
    """G12: a memory-agent that reads what was said reads only what it read before."""
    with recollect.open(durable_store_url, settings={"pipeline": "memory-agent"}) as memory:
        space, session = memory.space("alice"), learned(memory)
        session.set_mode(Mode.DISABLED)
        session.append("user", "I love walruses.", name="Alice")
        session.set_mode(Mode.ENABLED)
        memory.work()
        assert saying(space, "walruses") == set()
        assert saying(space) != set()


@FORBIDDEN
def test_what_was_said_before_it_was_left_out_is_learned_when_it_is_back(
    memory: recollect.Memory, mode: Mode
) -> None:
    """G12: nothing is lost that was said while it might be learned from, and nothing else kept."""
    space = memory.space("alice")
    session = space.session("k")
    session.append("user", LOVED, name="Alice")
    session.set_mode(mode)
    session.append("user", "I live in Lisbon.", name="Alice")
    session.set_mode(Mode.ENABLED)
    session.append("user", "My favourite colour is teal.", name="Alice")
    for again in (False, True):
        memory.work(all=True, again=again)
        assert "fact" in told(space)
        assert saying(space) != set()
        assert "fact" in told(space, "teal")
        assert saying(space, "Lisbon") == set()
        assert told(space, "Lisbon") <= {"record", "context"}


def test_what_was_handed_over_to_a_model_waits_for_one(durable_store_url: str) -> None:
    """M13: a worker without a model does not do away with what nothing was learned from."""
    clock = ManualClock()
    given: dict[str, Any] = {"pipeline": "memory-agent", "worker_batch": 1}
    with hosted(durable_store_url, ["Never."], clock=clock, memory_agent=True, **given) as here:
        session = here.space.session("k")
        session.append("user", "My favourite colour is teal.", name="Alice")
        session.sleep()
        here.memory.worker().tick()
        assert here.server.requests == []
    with recollect.open(durable_store_url, settings=given, clock=clock) as memory:
        memory.work()
    clock.advance(3600)
    with hosted(durable_store_url, ["Filed."], clock=clock, memory_agent=True, **given) as here:
        here.memory.work()
        (asked,) = here.server.requests
        assert "My favourite colour is teal." in asked.prompt

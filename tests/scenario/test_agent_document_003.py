"""Document 003 (memory-agent descriptor), line by line; rows A1 to A5, A7 and M13.

The path is `memory-agent` alone, as the document has it: the worker asks no model itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import crashpoints
from recollect.clock import ManualClock
from recollect.descriptors import DeliveryStrategy
from recollect.errors import NotFound
from recollect.ids import Ids
from recollect.messages import Role
from recollect.types.agents import ItemKind, Life, Span, Turn
from recollect.types.records import Claim, JobKind, LeasePolicy, MarkPolicy, Outcome
from recollect_conformance.scripted import ScriptedServer, calls
from tests.hosted_agents import (
    AGENT,
    MEMORY_AGENT,
    MEMORY_KEY,
    ON_BOTH,
    SPACE,
    Hosted,
    hosted,
    is_memory_agents,
    raw,
)
from tests.scripted_answers import OTHERS_BY_RULES

pytestmark = ON_BOTH

SAID = "My favourite colour is teal."
KEY = "/memory-agent/assistant"


@pytest.fixture
def here(store_url: str) -> Iterator[Hosted]:
    """Memory-agents that go by rules, and a model that would answer if the worker asked it."""
    settings: dict[str, Any] = {"pipeline": "memory-agent", "worker_batch": 1}
    with hosted(store_url, lambda _: "never asked", **settings) as found:
        yield found


@pytest.fixture(autouse=True)
def disarmed_afterwards() -> Iterator[None]:
    yield
    crashpoints.arm(None)


def told(here: Hosted, *texts: str, key: str = "k", agent: Any = AGENT) -> recollect.Session:
    """A session that was left, with what a person said in it."""
    session = here.space.session(key, agent)
    session.append_many(
        [{"role": "user", "name": "Alice", "content": text} for text in texts or (SAID,)]
    )
    session.sleep()
    return session


def tick_once(here: Hosted) -> None:
    """One claimed session, and nothing of what comes of it: a batch is one job here."""
    here.memory.worker().tick()


def posted(here: Hosted) -> Turn:
    """What waits in the memory-agent's inbox, taken out as its runner would."""
    memory, now = here.memory, here.clock.now()
    claim = memory.store.leases.claim("test", LeasePolicy(), now)
    assert isinstance(claim, Claim)
    assert claim.kind is JobKind.MEMORY_AGENT
    turn = memory.store.agents.take(claim, MarkPolicy(), now, Ids(here.clock).new)
    assert isinstance(turn, Turn)
    return turn


def memory_agents(here: Hosted) -> list[str]:
    found = here.memory.store.agents.list(SPACE, 100)
    return [each.ref.agent_id for each in found if each.job is JobKind.MEMORY_AGENT]


# overview: one per source agent, transcripts as messages, never invalidated


def test_the_worker_makes_no_model_call_and_posts_instead(store_url: str) -> None:
    """Task 4: the direct inference call is gone from the tick, though there is a model.

    The memory-agent goes by rules here, so that whoever asks is the worker.
    """
    clock = ManualClock()
    with (
        ScriptedServer(lambda _: "never asked") as server,
        recollect.open(
            store_url,
            settings={"pipeline": "memory-agent", **OTHERS_BY_RULES},
            model=server.model(clock=clock),
            clock=clock,
        ) as memory,
    ):
        session = memory.space(SPACE).session("k")
        session.append("user", SAID, name="Alice")
        session.sleep()
        memory.work()
        assert server.requests == []
        assert session.state.processed_until == 1
        [fact] = memory.space(SPACE).facts.list()
        assert (fact.extractor or "").startswith("rules/"), "pages are rendered from facts"
        assert memory.space(SPACE).documents.search("teal"), "the memory-agent has filed it"


def test_the_post_is_a_system_message_with_its_origin_to_the_key_of_the_memory_agent(
    here: Hosted,
) -> None:
    """A5: from `memory-worker:<session id>` to `/memory-agent/<source agent id>`."""
    session = told(here)
    tick_once(here)
    (state,) = here.memory.store.agents.list(SPACE, 10)
    assert (state.ref.agent_id, state.ref.key, state.queued) == (KEY, MEMORY_KEY, 1)
    (item,) = posted(here).items
    assert item.kind is ItemKind.SYSTEM_MESSAGE
    assert item.origin == f"memory-worker:{session.id}"
    assert item.about == Span(session_id=session.id, first=1, last=1)
    assert SAID not in item.text, "it refers to what was said: no copy escapes erasure"


def test_the_post_is_in_its_history_as_nobodys_word(here: Hosted) -> None:
    session = told(here)
    here.memory.work()
    note, report = here.memory_records()
    assert (note.role, note.name) == (Role.NOTE, f"memory-worker:{session.id}")
    assert report.role is Role.ASSISTANT
    assert SAID not in note.content


def test_sessions_are_marked_processed_after_posting(here: Hosted) -> None:
    """Task 4, M13: processed when the inbox item is durable, which is before it is read."""
    session = told(here)
    tick_once(here)
    state = session.state
    assert (state.processed_until, state.invalidated_at) == (1, None)
    (span,) = here.space.sessions.ranges(session.id)
    assert span.outcome is Outcome.EXTRACTED, "by rules: there is no model that reads it"
    (progress,) = [each for each in here.memory.status().sessions if each.session_id == session.id]
    assert progress.handed_over == 1, "status shows it as handed over until it is filed"
    assert "teal" not in " ".join(here.pages().values())
    here.memory.work()
    (progress,) = [each for each in here.memory.status().sessions if each.session_id == session.id]
    assert progress.handed_over == 0
    assert "teal" in " ".join(here.pages().values())


@pytest.mark.parametrize("point", ["record.handed", "record.advanced", "write.committing"])
def test_the_post_and_the_cursor_are_one_transaction(here: Hosted, point: str) -> None:
    """M13: whatever fails between them leaves neither; afterwards there are both, once."""
    session = told(here)
    here.memory.pipeline._ensure_root(SPACE)  # so that the next write is the one it is about
    reached: list[str] = []

    def fail(name: str) -> None:
        if name == point and not reached:
            reached.append(name)
            raise RuntimeError("pulled the plug")

    def arm_after_the_claim(name: str) -> None:
        if name == "claim.claimed":
            crashpoints.arm(arm_after_its_commit)

    def arm_after_its_commit(name: str) -> None:
        if name == "write.committed":
            crashpoints.arm(fail)

    crashpoints.arm(arm_after_the_claim)
    here.memory.worker().tick()
    crashpoints.arm(None)
    assert reached == [point]
    assert (session.state.processed_until, session.state.invalidated_at) == (None, 1)
    assert here.memory.store.agents.list(SPACE, 10) == []
    here.clock.advance(3600)
    here.memory.work()
    assert session.state.processed_until == 1
    assert len(here.memory_records()) == 2


def test_what_is_said_later_is_posted_by_itself(here: Hosted) -> None:
    session = told(here)
    here.memory.work()
    session.append("user", "My sister Ana works at the port.", name="Alice")
    session.sleep()
    here.memory.work()
    notes = [each.content for each in here.memory_records() if each.role is Role.NOTE]
    assert notes == [
        f"Records 1 to 1 of session {session.id}.",
        f"Records 2 to 2 of session {session.id}.",
    ]
    assert "Ana" in " ".join(here.pages().values())


# task 1: the descriptor; what differs by type is in tests/unit/test_descriptors.py


def test_a_memory_agent_is_created_once_and_on_first_use(here: Hosted) -> None:
    assert here.system.agents(SPACE) == []
    told(here, key="a")
    told(here, "My cat is called Momo.", key="b")
    here.memory.work()
    told(here, "I work at the port.", key="c")
    here.memory.work()
    assert memory_agents(here) == [KEY]
    sessions = [each for each in here.space.sessions.list() if each.agent_id == KEY]
    assert len(sessions) == 1


def test_each_source_agent_has_a_memory_agent_of_its_own(here: Hosted) -> None:
    told(here, agent="assistant")
    told(here, "I like jazz.", agent="critic", key="j")
    told(here, "The backup ran.", agent={"type": "cron", "id": "assistant"}, key="n")
    here.memory.work()
    assert sorted(memory_agents(here)) == [
        "/memory-agent/assistant",
        "/memory-agent/critic",
        "/memory-agent/cron/assistant",
    ]


def test_one_memory_agent_in_each_space(here: Hosted) -> None:
    told(here)
    other = here.memory.space("bob").session("k")
    other.append("user", "I like jazz.", name="Bob")
    other.sleep()
    here.memory.work()
    for name, word, absent in ((SPACE, "teal", "jazz"), ("bob", "jazz", "teal")):
        space = here.memory.space(name)
        assert [each.ref.agent_id for each in here.system.agents(name)] == [KEY]
        assert space.documents.search(word)
        assert not space.documents.search(absent)


def test_a_message_that_goes_by_a_strategy_never_finds_a_memory_agent(here: Hosted) -> None:
    told(here)
    here.memory.work()
    for strategy in DeliveryStrategy:
        with pytest.raises(NotFound):
            here.system.find(strategy, space=SPACE)


# task 2: no session of a memory-agent is ever marked


def own_session(here: Hosted) -> recollect.Session:
    return here.space.session("own", MEMORY_AGENT)


def unmarked(here: Hosted, session: recollect.Session) -> bool:
    marked = [each.id for each in here.space.sessions.find_invalidated(100)]
    jobs = [job.key for job in here.memory.store.leases.jobs(None, 100) if job.kind == "extract"]
    return session.state.invalidated_at is None and not marked and not jobs


def fill(session: recollect.Session, count: int = 12) -> None:
    session.append_many([{"role": "user", "content": f"record {n}"} for n in range(count)])


def test_the_threshold_does_not_mark_a_memory_agent(here: Hosted) -> None:
    session = own_session(here)
    fill(session)
    assert unmarked(here, session)


def test_a_reset_does_not_mark_a_memory_agent(here: Hosted) -> None:
    session = own_session(here)
    fill(session)
    before = session.id
    session.reset()
    old = here.space.sessions.get(before)
    assert old is not None
    assert old.invalidated_at is None
    assert unmarked(here, session)


def test_a_compaction_does_not_mark_a_memory_agent(here: Hosted) -> None:
    session = own_session(here)
    fill(session)
    before = session.id
    session.compact("what was done", retain=2)
    old = here.space.sessions.get(before)
    assert old is not None
    assert old.invalidated_at is None
    assert unmarked(here, session)


def test_sleep_does_not_mark_a_memory_agent(here: Hosted) -> None:
    told(here)
    here.memory.work()
    here.pass_time(60)
    here.memory.work()
    state = [each for each in here.system.agents(SPACE) if each.job is JobKind.MEMORY_AGENT]
    assert [each.life for each in state] == [Life.SLEEPING]
    assert unmarked(here, here.session(MEMORY_AGENT, MEMORY_KEY))


def test_no_sweep_and_no_scan_marks_a_memory_agent(here: Hosted) -> None:
    told(here)
    here.memory.work()
    here.clock.advance(30 * 86_400)
    before = len(here.memory_records())
    here.memory.work(all=True)
    here.memory.sweep_idle()
    assert unmarked(here, here.session(MEMORY_AGENT, MEMORY_KEY))
    assert len(here.memory_records()) == before


# task 3: its prompt


def test_its_prompt_replaces_all_standard_sections(store_url: str) -> None:
    """A3: nothing of what a chat agent is told, and the tools of documents alone."""
    with hosted(
        store_url, lambda _: "Nothing.", memory_agent=True, pipeline="memory-agent"
    ) as here:
        here.say("hello")
        told(here)
        here.memory.work()
        asked = {is_memory_agents(each): each for each in here.server.requests}
        chat, memory = asked[False], asked[True]
        assert "# Memory" in chat.system
        assert "an agent with a memory" not in memory.system
        assert "# Tools" not in memory.system
        assert "{{" not in memory.system
        assert [each.name for each in memory.tools] == [
            "document_read",
            "document_write",
            "document_append",
            "document_patch",
            "document_tree",
            "document_search",
        ]


def test_its_prompt_is_versioned_and_can_be_replaced(store_url: str, tmp_path: Path) -> None:
    own = "---\nversion: 7\n---\nYou keep the memory documents of a ship, below {{root}}.\n"
    (tmp_path / "memory-agent.md").write_text(own)
    with hosted(
        store_url,
        lambda _: "Nothing.",
        memory_agent=True,
        pipeline="memory-agent",
        prompts_dir=str(tmp_path),
    ) as here:
        told(here)
        here.memory.work()
        (asked,) = here.server.requests
        assert asked.system.strip() == "You keep the memory documents of a ship, below ~/memory."


# task 4 and 5: no recursion


def test_a_memory_agent_that_is_found_marked_is_skipped_and_cleared(here: Hosted) -> None:
    """A4: whoever marked it, it is not posted to anybody."""
    told(here)
    here.memory.work()
    session = here.session(MEMORY_AGENT, MEMORY_KEY)
    before = len(here.memory_records())
    raw(
        here.memory,
        "UPDATE sessions SET invalidated_at = last_seq, marked_at = 1, marked_by = 'idle' "
        f"WHERE id = '{session.id}'",
    )
    raw(
        here.memory,
        "INSERT INTO jobs (space, kind, key, state, first_due_at)"
        f" SELECT space, 'extract', id, 'due', 1 FROM sessions WHERE id = '{session.id}'",
    )
    here.memory.work()
    state = session.state
    assert (state.invalidated_at, state.processed_until) == (None, state.last_seq)
    (span,) = here.space.sessions.ranges(session.id)
    assert (span.outcome, span.reason) == (Outcome.SKIPPED, "agent type")
    assert memory_agents(here) == [KEY]
    assert len(here.memory_records()) == before, "nothing was posted about it"


def test_work_comes_to_an_end(here: Hosted) -> None:
    """No recursion: what memory-agents do makes no work."""
    told(here)
    here.memory.work()
    report = here.memory.work()
    assert (report.processed, report.turns) == (0, 0)
    for _ in range(3):
        here.pass_time(4000)
        assert here.memory.work().turns == 0
    assert len(here.memory_records()) == 2


# technical details: the flow of a tick


def test_several_sessions_are_posted_in_one_tick_and_each_is_filed(here: Hosted) -> None:
    sessions = [
        told(here, f"I like {what} very much.", key=what) for what in ("jazz", "figs", "rain")
    ]
    here.memory.work()
    assert [each.state.processed_until for each in sessions] == [1, 1, 1]
    notes = {each.name for each in here.memory_records() if each.role is Role.NOTE}
    assert notes == {f"memory-worker:{each.id}" for each in sessions}


def test_the_memory_root_is_ensured_before_anything_is_posted(here: Hosted) -> None:
    told(here)
    tick_once(here)
    assert here.space.documents.read("~/memory").title == "Memory"


def test_an_agents_own_session_is_not_posted_where_nothing_is_to_be_remembered(
    here: Hosted,
) -> None:
    session = here.space.session("quiet", ephemeral=True)
    fill(session)
    session.sleep()
    here.memory.work()
    assert memory_agents(here) == []


# post-completion


def test_the_transcript_is_rendered_on_delivery_and_kept_nowhere(store_url: str) -> None:
    """A5, A6: who spoke and when, as a request that is shown and not stored."""
    with hosted(
        store_url,
        [calls(("document_read", {"path": "~/memory"})), "Nothing new."],
        memory_agent=True,
        pipeline="memory-agent",
    ) as here:
        session = told(here)
        here.memory.work()
        prompt = here.server.requests[0].prompt
        assert f"session {session.id}" in prompt
        assert '[#1 2026-01-01T00:00Z User "Alice"]\n| My favourite colour is teal.' in prompt
        assert all("teal" not in each.content for each in here.memory_records())


def test_what_is_forgotten_before_delivery_is_not_delivered(here: Hosted) -> None:
    session = told(here)
    tick_once(here)
    here.space.forget(session=session)
    here.memory.work()
    assert "teal" not in " ".join(here.pages().values())
    assert [each for each in here.memory_records() if each.role is not Role.NOTE] == []

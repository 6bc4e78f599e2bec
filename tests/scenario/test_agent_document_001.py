"""Document 001 (memory): the memory-agent reads `~/memory`, writes documents, and both commit.

Its sequence diagram and its lists, line by line, with a model over real HTTP; rows A5 to A9, M13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import recollect
from recollect.documents.scope import Holder
from recollect.messages import Role
from recollect.models.protocol import ChatRole
from recollect.types.facts import Source
from recollect.types.pages import Author, AuthorKind
from recollect.types.records import JobKind, JobState, MarkCause
from recollect_conformance.scripted import Gate, calls, held, status
from recollect_conformance.scripted_frames import Received
from tests.hosted_agents import (
    AGENT,
    MEMORY_AGENT,
    MEMORY_KEY,
    ON_BOTH,
    SPACE,
    Hosted,
    hosted,
)

pytestmark = ON_BOTH

SAID = "My favourite colour is teal."
PAGE = "~/memory/profile"
LINE = "- Alice's favourite colour is teal"
SECONDS = 30.0


def filing(received: Received) -> Any:
    """Read the root, write a page: what the document draws. It is not asked again after that."""
    answers = [each for each in received.messages if each.role is ChatRole.TOOL]
    match len(answers):
        case 0:
            return calls(("document_read", {"path": "~/memory"}))
        case _:
            return calls(("document_write", {"path": PAGE, "body": LINE, "title": "Alice"}))


class Once:
    """The flow above for the first transcript; nothing to do for every other."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def __call__(self, received: Received) -> Any:
        transcript = max(
            (each.text for each in received.messages if "# Transcripts" in each.text), key=len
        )
        first = not self.seen or transcript in self.seen
        self.seen.add(transcript)
        return filing(received) if first else "Nothing new."


@pytest.fixture
def here(store_url: str) -> Iterator[Hosted]:
    with opened(store_url, filing) as found:
        yield found


def opened(store_url: str, script: Callable[[Received], Any], **settings: Any) -> Any:
    given = {"pipeline": "memory-agent", **settings}
    return hosted(store_url, script, memory_agent=True, **given)


def told(here: Hosted, *texts: str, key: str = "k") -> recollect.Session:
    session = here.space.session(key, AGENT)
    for text in texts or (SAID,):
        session.append("user", text, name="Alice")
    session.sleep()
    return session


def queue(here: Hosted) -> tuple[int, int]:
    (state,) = [each for each in here.system.agents(SPACE) if each.job is JobKind.MEMORY_AGENT]
    return state.queued, state.parked


# the sequence


def test_the_worker_polls_marked_sessions_ensures_the_root_and_loads_what_is_new(
    here: Hosted,
) -> None:
    session = told(here)
    assert [each.id for each in here.space.sessions.find_invalidated()] == [session.id]
    here.memory.work()
    assert here.space.sessions.find_invalidated() == []
    assert here.space.documents.read("~/memory").title == "Memory"


def test_it_reads_the_memory_root_which_shows_the_tree(here: Hosted) -> None:
    agent = Author(AuthorKind.AGENT, "assistant")
    here.space.documents.held_by(Holder(author=agent)).write("~/memory/people/ana", "A sister.")
    told(here)
    here.memory.work()
    answer = here.server.requests[1].messages[-1]
    assert answer.role is ChatRole.TOOL
    assert "~/memory/people/ana" in answer.text


def test_it_writes_new_documents_with_their_sources(here: Hosted) -> None:
    session = told(here)
    here.memory.work()
    page = here.space.documents.read(PAGE)
    assert (page.body, page.title) == (LINE, "Alice")
    (version,) = here.space.documents.history(PAGE)
    assert version.author == Author(AuthorKind.AGENT, f"/memory-agent/{AGENT}")
    assert version.sources == (Source(session_id=session.id, seq=1, seq_to=1),)


def test_it_updates_documents_that_are_there(store_url: str) -> None:
    def script(received: Received) -> Any:
        answers = [each for each in received.messages if each.role is ChatRole.TOOL]
        if answers:
            return "Added a line."
        return calls(("document_append", {"path": PAGE, "text": LINE}))

    with opened(store_url, script) as here:
        agent = Author(AuthorKind.AGENT, "assistant")
        here.space.documents.held_by(Holder(author=agent)).write(PAGE, "- Alice is an engineer")
        told(here)
        here.memory.work()
        page = here.space.documents.read(PAGE)
        assert page.version == 2
        assert page.body.split("\n\n") == ["- Alice is an engineer", LINE]


def test_the_session_is_marked_processed(here: Hosted) -> None:
    session = told(here)
    here.memory.work()
    assert (session.state.processed_until, session.state.invalidated_at) == (1, None)


def test_nothing_it_read_or_wrote_is_in_its_own_history(here: Hosted) -> None:
    """P11: what it was posted and that it is done; no transcript, no step, no word of the model."""
    told(here)
    here.memory.work()
    records = here.memory_records()
    assert [each.role for each in records] == [Role.NOTE, Role.ASSISTANT]
    assert records[-1].content == "Filed."
    assert all(SAID not in each.content for each in records)


def test_memory_is_recalled_in_another_session(here: Hosted) -> None:
    told(here)
    here.memory.work()
    hits = here.space.recall("Alice's favourite colour")
    assert any("teal" in hit.text for hit in hits)


# documents, item and report commit together


def test_nothing_is_on_the_pages_before_the_turn_ends(store_url: str) -> None:
    gate = Gate()

    def script(received: Received) -> Any:
        answers = [each for each in received.messages if each.role is ChatRole.TOOL]
        return held(gate, filing(received)) if len(answers) == 1 else filing(received)

    with opened(store_url, script) as here:
        told(here)
        worker = here.memory.worker()
        worker.start()
        assert gate.arrived.wait(SECONDS)
        assert PAGE not in here.pages()
        assert queue(here) == (1, 0)
        gate.open()
        ticks = 0
        while PAGE not in here.pages() and ticks < 3000:
            ticks += 1
            worker.wake()
        worker.stop()
        assert here.pages()[PAGE] == LINE
        assert queue(here) == (0, 0)


def test_a_model_that_fails_leaves_the_item_and_no_page_and_is_tried_again(store_url: str) -> None:
    failures = [status(400, "no")] * 2

    def script(received: Received) -> Any:
        answers = [each for each in received.messages if each.role is ChatRole.TOOL]
        if len(answers) == 1 and failures:
            return failures.pop()
        return filing(received)

    with opened(store_url, script) as here:
        session = told(here)
        here.memory.work()
        assert PAGE not in here.pages()
        assert sum(queue(here)) == 1
        assert session.state.processed_until == 1, "handed over: the inbox is where it is"
        for _ in range(4):
            here.clock.advance(86_400)
            here.memory.work()
            here.memory.retry()
        here.memory.work()
        assert here.pages()[PAGE] == LINE
        assert queue(here) == (0, 0)


def test_what_fails_too_often_is_parked_and_shown_and_does_not_hold_up_the_next(
    store_url: str,
) -> None:
    def script(received: Received) -> Any:
        wanted = [each.text for each in received.messages if "# Transcripts" in each.text]
        return status(400, "no") if "poison" in wanted[-1] else filing(received)

    with opened(store_url, script, job_failures_max=2) as here:
        told(here, "This is poison.", key="bad")
        told(here, key="good")
        for _ in range(4):
            here.memory.work()
            here.clock.advance(86_400)
        assert queue(here) == (0, 1)
        assert here.pages()[PAGE] == LINE
        (agent,) = here.memory.status(SPACE).agents
        assert agent.last_error is not None


def test_a_page_that_somebody_changed_meanwhile_is_filed_again_on_what_stands_there(
    store_url: str,
) -> None:
    changed: list[int] = []

    def script(received: Received) -> Any:
        answers = [each for each in received.messages if each.role is ChatRole.TOOL]
        if not answers:
            return calls(("document_read", {"path": PAGE}))
        if len(answers) == 1:
            if not changed:
                changed.append(1)
                rewrite()
            return calls(("document_append", {"path": PAGE, "text": LINE}))
        return "Filed."

    with opened(store_url, script) as here:
        body = "- written by hand\n- and a second line"
        rewrite = partial(here.space.documents.write, PAGE, body)
        here.space.documents.write(PAGE, "- written by hand")
        told(here)
        here.memory.work()
        filed = here.pages()[PAGE]
        assert filed.startswith(body)
        assert filed.count(LINE) == 1
        assert queue(here) == (0, 0), "at once, and without counting a failure"


# bounded


def test_a_model_that_never_ends_is_stopped_and_nothing_is_written(store_url: str) -> None:
    """A9: budgets; what was half done is dropped with the changeset."""

    def script(received: Received) -> Any:
        answers = [each for each in received.messages if each.role is ChatRole.TOOL]
        path = f"~/memory/page-{len(answers)}"
        again = ("document_read", {"path": "~/memory"})
        return calls(("document_write", {"path": path, "body": "more"}), again)

    with opened(store_url, script, agent_turns_max=5, job_failures_max=1) as here:
        told(here)
        here.memory.work()
        assert len(here.server.requests) == 5
        assert [path for path in here.pages() if path.startswith("~/memory/page")] == []
        assert queue(here) == (0, 1)


def test_a_long_session_is_filed_in_stretches_that_fit(store_url: str) -> None:
    """A6: cut on turn boundaries, all of them in one turn."""
    seen: list[str] = []

    def script(received: Received) -> Any:
        seen.append(received.messages[-1].text)
        return "Nothing new."

    with opened(store_url, script, model_window_tokens=4000, reply_tokens=200) as here:
        texts = [f"Message {number}: " + "and so it went on. " * 20 for number in range(30)]
        told(here, *texts)
        here.memory.work()
        assert len(seen) >= 2
        for number in range(30):
            assert sum(f"Message {number}:" in each for each in seen) == 1
        assert queue(here) == (0, 0)


# together


def test_it_is_asked_once_with_the_pages_the_facts_and_the_transcripts_of_all_that_wait(
    store_url: str,
) -> None:
    asked: list[str] = []

    def script(received: Received) -> Any:
        asked.append(received.prompt)
        return calls(("document_write", {"path": PAGE, "body": f"{LINE}\n- She has a cat"}))

    with opened(store_url, script, pipeline="both") as here:
        agent = Author(AuthorKind.AGENT, "assistant")
        because = [Source(session_id="elsewhere", seq=1, seq_to=1)]
        own = here.space.documents.held_by(Holder(author=agent))
        own.write("~/memory/people/alice", "- Alice lives in Porto", sources=because)
        first = told(here, key="a")
        second = told(here, "My cat is called Momo.", key="b")
        here.memory.work()
        [prompt] = asked
        for shown in (SAID, "My cat is called Momo.", "~/memory/people/alice", "lives in Porto"):
            assert shown in prompt
        facts = here.space.facts.list()
        learned = prompt.partition("# Learned")[2].partition("# Transcripts")[0]
        assert all(fact.content in learned for fact in facts)
        page = here.space.documents.read(PAGE)
        assert {each.session_id for each in page.sources} == {first.id, second.id, "elsewhere"}
        assert set(page.facts) >= {fact.id for fact in facts}
        assert queue(here) == (0, 0)


def test_what_is_forgotten_meanwhile_is_written_by_nobody_who_read_it(store_url: str) -> None:
    asked: list[str] = []

    def script(received: Received) -> Any:
        asked.append(received.prompt)
        if SAID in received.prompt:
            here.space.forget(session=first)
            return calls(("document_write", {"path": PAGE, "body": f"{LINE}\n- Momo is a cat"}))
        return calls(("document_write", {"path": PAGE, "body": "- Momo is a cat"}))

    with opened(store_url, script) as here:
        first = told(here, key="a")
        told(here, "My cat is called Momo.", key="b")
        here.memory.work()
        assert here.pages()[PAGE] == "- Momo is a cat"
        assert [SAID in each for each in asked] == [True, False]
        assert queue(here) == (0, 0)


# descriptor and marks


def test_one_memory_agent_reads_the_transcripts_of_all_sessions_of_its_source(
    store_url: str,
) -> None:
    with opened(store_url, Once()) as here:
        told(here, key="a")
        here.memory.work()
        told(here, "And nothing else.", key="b")
        here.memory.work()
        (state,) = here.system.agents(SPACE)
        assert state.ref.agent_id == "/memory-agent/assistant"
        notes = [each for each in here.memory_records() if each.role is Role.NOTE]
        assert len(notes) == 2


def test_it_is_not_shown_what_it_did_with_other_sessions(store_url: str) -> None:
    """P11: what it writes rests on what it was handed and on pages that it opens, nothing else."""
    with opened(store_url, Once()) as here:
        told(here, key="a")
        here.memory.work()
        told(here, "And nothing else.", key="b")
        here.memory.work()
        shown = " ".join(each.text for each in here.server.requests[-1].messages)
        assert ("And nothing else." in shown, SAID in shown) == (True, False)


@pytest.mark.parametrize("cause", list(MarkCause), ids=str)
def test_its_sessions_are_marked_by_nothing(here: Hosted, cause: MarkCause) -> None:
    told(here)
    here.memory.work()
    session = here.session(MEMORY_AGENT, MEMORY_KEY)
    store, now = here.memory.store, here.clock.now()
    store.marks.invalidate(SPACE, session.id, session.state.last_seq, cause, now)
    assert session.state.invalidated_at is None


def test_status_shows_a_hand_over_until_it_is_filed(store_url: str) -> None:
    with opened(store_url, lambda _: status(503, "later"), model_retries=0) as here:
        session = told(here)
        here.memory.work()
        found = here.memory.status(SPACE)
        (progress,) = [each for each in found.sessions if each.session_id == session.id]
        assert progress.handed_over == 1
        (agent,) = found.agents
        assert (agent.queued, agent.job_state) == (1, JobState.DUE)
        assert "503" in (agent.last_error or "")

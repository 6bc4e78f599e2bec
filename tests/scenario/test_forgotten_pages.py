"""P11: a receipt tells the truth about pages, whoever wrote them, and about the space's name.

A page that only machines wrote goes with anything that it rests on; one that a person or another
agent wrote stays and is named. The memory-agent's model is the double of these tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import recollect
from recollect.documents.scope import Holder
from recollect.errors import NotFound
from recollect.models.protocol import ChatRole
from recollect.session import Session
from recollect.types.pages import Author, AuthorKind
from recollect_conformance.scripted import Called, Scripted, calls
from recollect_conformance.scripted_frames import Received
from tests.hosted_agents import ON_BOTH, SPACE, Hosted, hosted, raw

pytestmark = ON_BOTH

ALICE = "~/memory/people/alice"
TRIP = "~/memory/trip"
SECRET = "zebrafinches"  # what session one says, and nothing else
OTHER = "walruses"  # what session two says


def lines_of(received: Received) -> list[str]:
    """What the transcript says of Alice, as a model would put it."""
    return [f"Alice loves {word}." for word in (SECRET, OTHER) if word in received.prompt]


def filer(received: Received) -> Scripted:
    """A model that keeps one page: what a transcript says of Alice goes to the end of it."""
    if received.messages[-1].role is ChatRole.TOOL:
        answer = received.messages[-1].text
        if "no document" in answer or "rendered from facts" in answer:
            return calls(("document_write", {"path": ALICE, "body": "\n".join(lines_of(received))}))
        return "Filed."
    if not lines_of(received):
        return "There was nothing to file."
    return calls(("document_append", {"path": ALICE, "text": "\n".join(lines_of(received))}))


@pytest.fixture
def here(store_url: str, tmp_path: Path) -> Iterator[Hosted]:
    published = str(tmp_path / "published")
    with hosted(store_url, filer, memory_agent=True, memories_root=published) as found:
        yield found


def told(here: Hosted, key: str, word: str, *more: str) -> Session:
    """A session that was left, learned from, filed by the model and published."""
    session = here.space.session(key)
    for text in (f"I love {word}.", *more):
        session.append("user", text, name="Alice")
    session.sleep()
    here.clock.advance(3600)
    here.memory.work()
    assert f"Alice loves {word}." in here.pages()[ALICE]
    return session


def showing(here: Hosted, directory: Path, word: str = SECRET) -> set[str]:
    """Where pages, what is recalled, and published files say a word."""
    space = here.space
    found = {path for path, body in here.pages().items() if word in body}
    found |= {hit.id for hit in space.recall(word, 50, kinds=["document"]) if word in hit.text}
    found |= {"context"} if word in space.context(word, kinds=["document"]).text else set()
    files = [each for each in directory.rglob("*.md") if word in each.read_text()]
    return found | {each.name for each in files}


def stored(here: Hosted, directory: Path, word: str = SECRET) -> list[str]:
    """Where a word is left, to the byte: in files, or in the tables of a server."""
    files = [each for each in directory.rglob("*") if each.is_file()]
    found = [each.name for each in files if word.encode() in each.read_bytes().lower()]
    for table in ("documents", "document_versions", "session_history", "facts"):
        rows = raw(here.memory, f"SELECT * FROM {table}")
        found += [table for row in rows if word in str(row).lower()]
    return found


Taking = Callable[[Hosted, Session], recollect.Receipt | None]


def disable(_: Hosted, session: Session) -> None:
    session.mode = "disabled"


TAKING: dict[str, Taking] = {
    "a session": lambda here, session: here.space.forget(session=session),
    "a record": lambda here, session: here.space.forget(record=f"{session.id}:1"),
    "a mode": disable,
}


@pytest.mark.parametrize("way", TAKING)
def test_a_page_that_a_model_wrote_goes_with_what_it_was_written_from(
    here: Hosted, tmp_path: Path, way: str
) -> None:
    session = told(here, "one", SECRET, "Nothing else is new.")
    assert {ALICE, "context", "alice.md"} <= showing(here, tmp_path)
    receipt = TAKING[way](here, session)
    assert showing(here, tmp_path) == set()
    with pytest.raises(NotFound):
        here.space.documents.history(ALICE)
    if receipt is not None:
        assert (receipt.is_complete, receipt.left, receipt.documents > 0) == (True, (), True)
        assert stored(here, tmp_path) == []
    here.memory.work()
    assert showing(here, tmp_path) == set()


def test_a_page_with_several_sources_goes_whole_and_is_written_again_from_the_others(
    here: Hosted, tmp_path: Path
) -> None:
    first = told(here, "one", SECRET)
    told(here, "two", OTHER)
    assert here.space.forget(session=first).is_complete
    assert here.pages()[ALICE] == f"- Alice loves {OTHER}. (2026-01-01)", "what facts say of it"
    assert stored(here, tmp_path) == []
    here.memory.work()
    assert here.pages()[ALICE] == f"Alice loves {OTHER}.", "what the model says of it"
    assert f"{ALICE}/facts" not in here.pages()


Change = Callable[[recollect.Space, str], object]
CHANGES: dict[str, Change] = {
    "corrected": lambda space, fact: space.facts.update(fact, "Alice loves otters."),
    "replaced": lambda space, fact: space.facts.add(recollect.Fact("Alice loves otters.", id=fact)),
    "deleted": lambda space, fact: space.facts.delete(fact),
    "forgotten": lambda space, fact: space.forget(fact=fact),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_page_that_a_model_wrote_goes_with_a_fact_that_is_taken_back(
    here: Hosted, tmp_path: Path, change: str
) -> None:
    """P-1: it was written from the records that say it; facts stand there until it is rewritten."""
    told(here, "one", SECRET, "I love lemurs.")
    told(here, "two", OTHER)
    [fact] = here.space.facts.search(SECRET)
    here.clock.advance(60)
    CHANGES[change](here.space, fact.id)
    for _ in range(2):
        assert not [path for path, body in here.pages().items() if SECRET in body]
        assert SECRET not in here.space.context(SECRET, kinds=["document"]).text
        assert f"Alice loves {OTHER}." in here.pages()[ALICE]
        topics = [body for path, body in here.pages().items() if path.startswith("~/memory/people")]
        assert "Alice loves lemurs." in " ".join(topics), "what else its session says"
        here.memory.work()
    said = [body for body in here.pages().values() if "otters" in body]
    assert bool(said) is (change in ("corrected", "replaced"))
    assert here.pages()[ALICE] == f"Alice loves {OTHER}.", "what the model says of the rest"


def test_what_a_model_read_while_it_wrote_counts_as_its_source(
    store_url: str, tmp_path: Path
) -> None:
    def copier(received: Received) -> Scripted:
        """Writes page one from the first session, and copies from it when it reads the second."""
        asked = [each for each in received.messages if each.role is ChatRole.TOOL]
        if OTHER not in received.prompt:
            return filer(received)
        todo: list[Called] = [
            ("document_read", {"path": ALICE}),
            ("document_write", {"path": TRIP, "body": f"Bring seed for the {SECRET}."}),
        ]
        return "Filed." if len(asked) >= len(todo) else calls(todo[len(asked)])

    with hosted(store_url, copier, memory_agent=True, pipeline="memory-agent") as here:
        first = told(here, "one", SECRET)
        second = here.space.session("two")
        second.append("user", f"I hear {OTHER}.")
        second.sleep()
        here.memory.work()
        assert SECRET in here.pages()[TRIP]
        receipt = here.space.forget(session=first)
        assert (receipt.is_complete, set(here.pages()) & {ALICE, TRIP}) == (True, set())
        assert stored(here, tmp_path) == []


@pytest.mark.parametrize("kind", [AuthorKind.PERSON, AuthorKind.AGENT])
def test_a_page_that_somebody_else_wrote_on_stays_and_is_named(
    here: Hosted, tmp_path: Path, kind: AuthorKind
) -> None:
    session = told(here, "one", SECRET)
    other = here.space.documents.held_by(Holder(author=Author(kind, "assistant")))
    other.append(ALICE, "Her birthday is in June.")
    receipt = here.space.forget(session=session)
    assert (receipt.is_complete, receipt.left) == (False, (ALICE,))
    assert "June" in here.pages()[ALICE]


def test_pages_that_people_wrote_go_as_well_where_that_is_asked_for(
    here: Hosted, tmp_path: Path
) -> None:
    session = told(here, "one", SECRET)
    here.space.documents.append(ALICE, "Her birthday is in June.")
    receipt = here.space.forget(session=session, pages="erase")
    assert (receipt.is_complete, receipt.left, ALICE in here.pages()) == (True, (), False)
    assert stored(here, tmp_path) == []


@pytest.mark.parametrize("way", ["the fact", "its session"])
def test_a_page_that_names_a_fact_as_its_ground_is_named_when_the_fact_goes(
    here: Hosted, way: str
) -> None:
    session = told(here, "one", SECRET)
    [fact] = here.space.facts.search(SECRET)
    here.space.documents.write("~/notes/alice", f"She loves {SECRET}.", facts=[fact.id])
    here.space.documents.write("~/notes/tea", "Green.", facts=[here.space.facts.add("Tea").id])
    by_fact = way == "the fact"
    receipt = here.space.forget(fact=fact.id) if by_fact else here.space.forget(session=session)
    assert (receipt.is_complete, receipt.left) == (False, ("~/notes/alice",))
    assert here.space.documents.read("~/notes/tea").body == "Green."


def test_a_search_by_words_names_what_may_still_say_it(here: Hosted) -> None:
    session = told(here, "one", SECRET)
    space = here.space
    space.documents.write(
        "~/notes/visit", f"On Sunday.\n\nAlice still loves her {SECRET}, I think."
    )
    space.documents.write("~/notes/birds", f"What {SECRET} eat.")
    echo = space.session("two", "other").append("assistant", f"You said that Alice loves {SECRET}.")
    stated = space.facts.add(f"Everybody knows that Alice loves {SECRET}.")
    receipt = space.forget(session=session)
    assert (receipt.is_complete, receipt.left) == (True, ())
    named = {"~/notes/visit", f"{echo.session_id}:{echo.seq}", stated.id}
    named |= {"~/memory/MEMORY", "~/memory/memory_summary"}  # which tell what was stated
    assert set(receipt.may_remain) == named


def test_after_everything_is_forgotten_the_name_of_the_space_is_gone_or_said(
    here: Hosted, tmp_path: Path
) -> None:
    told(here, "one", SECRET)
    here.memory.space("bob").facts.add("Bob is tall.")
    receipt = here.space.forget(everything=True)
    assert (receipt.is_complete, receipt.left) == (True, ())
    assert receipt.name_in == ("ledger",), "the model's calls stay in the books"
    assert here.space.forget(everything=True).name_in == ("ledger",), "however often it is asked"
    assert here.memory.spaces() == ["bob"]
    status = here.memory.status()
    assert {job.space for job in status.jobs} <= {"", "bob"}
    assert {each.space for each in status.consolidations} == {"bob"}
    named = raw_tables_naming(here, SPACE)
    assert named <= {"ledger", "spending"}
    again = told(here, "one", SECRET)
    assert here.space.forget(session=again).is_complete


def raw_tables_naming(here: Hosted, name: str) -> set[str]:
    tables = [
        *("spaces", "agents", "session_keys", "sessions", "jobs", "trees", "documents", "ledger"),
        *("spending", "consolidations", "generations", "audit", "usages", "vector_spaces"),
        *("extractions", "facts", "fact_history", "properties", "inbox", "signals", "agent_lives"),
        *("removed_memories", "generation_documents", "imported_items", "import_cursors"),
    ]
    rows = {table: raw(here.memory, f"SELECT * FROM {table}") for table in tables}
    return {table for table in tables if any(name in str(row) for row in rows[table])}

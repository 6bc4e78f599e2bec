"""Document 004 (memory system): the fact store and extraction, line by line. Rows T2 to T4."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import apsw
import pytest

import recollect
from recollect.clock import ManualClock
from recollect.errors import InvalidValue, NotFound, TooLarge
from recollect.types.facts import Fact, FactEvent, Trust
from recollect_conformance.scripted import ScriptedServer
from tests.scripted_answers import OTHERS_BY_RULES


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(store_url: str, clock: ManualClock) -> Iterator[recollect.Memory]:
    with recollect.open(store_url, settings={}, clock=clock) as memory:
        yield memory


@pytest.fixture
def facts(memory: recollect.Memory) -> recollect.Facts:
    return memory.space("alice").facts


def contents(found: list[Fact]) -> list[str]:
    return [each.content for each in found]


# Interface


def test_index_stores_a_fact_and_upserts_by_id(facts: recollect.Facts) -> None:
    facts.add(Fact("User prefers dark mode", id="f-1", tags=("preference",)))
    facts.add(Fact("User prefers light mode", id="f-1"))
    stored = facts.get("f-1")
    assert stored is not None
    assert (stored.content, stored.tags, len(facts)) == ("User prefers light mode", (), 1)
    assert contents(facts.search("light mode")) == ["User prefers light mode"]
    assert facts.search("dark") == [], "the index follows"


def test_search_gives_the_top_k_by_rank(facts: recollect.Facts) -> None:
    for city in ("Lisbon", "Porto", "Faro", "Braga"):
        facts.add(f"The user has been to {city} by train")
    assert len(facts.search("train", 3)) == 3
    assert contents(facts.search("Has the user been to Faro?", 1)) == [
        "The user has been to Faro by train"
    ]


@pytest.mark.parametrize(
    "query",
    ["What's my favourite colour?", '"', "a AND", "colour)", "col*", "NEAR(", "-x", "", "  ", "🙂"],
)
def test_any_text_is_a_legal_query(facts: recollect.Facts, query: str) -> None:
    facts.add("The user's favourite colour is teal")
    assert len(facts.search(query)) <= 1


def test_search_by_metadata(facts: recollect.Facts) -> None:
    facts.add(Fact("a", id="a", metadata={"source": "chat", "a.b": "dotted", "n": 1}))
    facts.add(Fact("b", id="b", metadata={"source": "mail", "a": {"b": "dotted"}, "n": "1"}))
    assert contents(facts.search_metadata("source", "chat")) == ["a"]
    assert contents(facts.search_metadata("a.b", "dotted")) == ["a"], "a dot is a dot"
    assert contents(facts.search_metadata("n", 1)) == ["a"]
    assert contents(facts.search_metadata("n", "1")) == ["b"]
    assert facts.search_metadata("nobody", "x") == []


def test_delete_removes_a_fact_by_id(facts: recollect.Facts) -> None:
    stored = facts.add("User prefers dark mode")
    facts.delete(stored.id)
    assert facts.get(stored.id) is None
    assert (facts.search("dark mode"), len(facts)) == ([], 0)


def test_delete_of_an_unknown_id_is_a_typed_error(facts: recollect.Facts) -> None:
    with pytest.raises(NotFound) as raised:
        facts.delete("nobody")
    assert isinstance(raised.value, LookupError)


def test_len_is_the_number_of_facts(facts: recollect.Facts) -> None:
    assert len(facts) == 0
    for number in range(3):
        facts.add(f"fact number {number}")
    assert len(facts) == 3


# Fact structure


def test_a_fact_has_what_the_document_lists_and_where_it_came_from(
    facts: recollect.Facts, clock: ManualClock
) -> None:
    source = recollect.Source(session_id="s-1", seq=3, seq_to=4, quote="dark mode, please")
    given = Fact(
        "User prefers dark mode",
        id="f-1",
        source="s-1",
        sources=(source,),
        tags=("preference", "ui"),
        metadata={"screen": "settings"},
    )
    facts.add(given)
    stored = facts.get("f-1")
    assert stored is not None
    assert (stored.id, stored.content, stored.source) == ("f-1", given.content, "s-1")
    assert (stored.tags, stored.metadata) == (given.tags, given.metadata)
    assert stored.created_at == clock.now()
    assert stored.sources == (source,)
    assert (stored.trust, stored.valid_from) == (Trust.USER, clock.now())
    assert (stored.valid_to, stored.superseded_by, stored.usage_count) == (None, None, 0)


def test_a_source_may_be_no_more_than_a_session(facts: recollect.Facts) -> None:
    stored = facts.add(Fact("User prefers dark mode", source="s-1"))
    assert stored.source == "s-1"


def test_a_statement_is_stored_once_and_gains_its_sources(facts: recollect.Facts) -> None:
    first = facts.add(Fact("User prefers dark mode", source="s-1"))
    again = facts.add(Fact("user prefers  dark mode.", source="s-2"))
    assert (again.id, len(facts)) == (first.id, 1)
    assert {source.session_id for source in again.sources} == {"s-1", "s-2"}


def test_a_fact_with_an_id_of_its_own_is_kept_as_it_is(facts: recollect.Facts) -> None:
    facts.add("User prefers dark mode")
    facts.add(Fact("User prefers dark mode", id="mine"))
    facts.add(Fact("User prefers dark mode", id="mine too"))
    assert len(facts) == 3


def test_a_fact_that_is_over_does_not_hold_any_more(
    facts: recollect.Facts, clock: ManualClock
) -> None:
    until = clock.now() + timedelta(days=1)
    stored = facts.add(Fact("The user is in Faro this week", valid_to=until))
    assert stored.is_valid(clock.now())
    clock.advance(timedelta(days=2).total_seconds())
    assert (len(facts), facts.search("Faro")) == (0, [])
    assert contents(facts.list(every=True)) == [stored.content]
    assert facts.count(as_of=until - timedelta(hours=1)) == 1


def test_an_edit_is_kept_in_the_history_and_the_past_can_be_read(facts: recollect.Facts) -> None:
    stored = facts.add("User prefers dark mode", tags=["ui"])
    facts.update(stored.id, "User prefers light mode", metadata={"since": "May"})
    edited = facts.get(stored.id)
    assert edited is not None
    assert (edited.content, edited.tags) == ("User prefers light mode", ("ui",))
    assert edited.metadata == {"since": "May"}
    changes = facts.history(stored.id)
    assert [(change.event, change.content, change.by) for change in changes] == [
        (FactEvent.ADDED, "User prefers dark mode", "user"),
        (FactEvent.EDITED, "User prefers light mode", "user"),
    ]
    with pytest.raises(NotFound):
        facts.update("nobody", "x")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("", InvalidValue),
        ("   ", InvalidValue),
        ("x" * 2001, TooLarge),
        (7, InvalidValue),
        (Fact("a", metadata={"x": float("nan")}), InvalidValue),
        (Fact("a", metadata={"x": {1}}), InvalidValue),
        (Fact("a", tags=("",)), InvalidValue),
        (Fact("a", tags="tags"), InvalidValue),  # type: ignore[arg-type]
        (Fact("a", trust="boss"), InvalidValue),  # type: ignore[arg-type]
        (Fact("a", sources=("s-1",)), InvalidValue),  # type: ignore[arg-type]
        (Fact("a", id="\n"), InvalidValue),
    ],
)
def test_bad_input_is_a_typed_error_and_stores_nothing(
    facts: recollect.Facts, given: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        facts.add(given)  # type: ignore[arg-type]
    assert len(facts) == 0


def test_a_space_sees_no_fact_of_another(memory: recollect.Memory) -> None:
    alice, bob = memory.space("alice").facts, memory.space("bob").facts
    stored = alice.add("User prefers dark mode")
    assert (bob.get(stored.id), bob.search("dark"), len(bob), bob.history(stored.id)) == (
        None,
        [],
        0,
        [],
    )
    with pytest.raises(NotFound):
        bob.delete(stored.id)
    bob.add(Fact("User prefers light mode", id=stored.id))
    known = alice.get(stored.id)
    assert known is not None
    assert known.content == "User prefers dark mode"


# Extraction, in the lines the document asks a model for


def by_lines(store_url: str, answer: str) -> list[Fact]:
    with (
        ScriptedServer([answer]) as server,
        recollect.open(
            store_url,
            settings={
                "model": "openai:scripted",
                "model_base_url": server.url,
                **OTHERS_BY_RULES,
                "model_structured": "lines",
                "extract_repairs": 0,
            },
        ) as memory,
    ):
        session = memory.space().session("k", agent="assistant")
        session.append("user", "I am Alice, I prefer dark mode, and I want to learn Go.")
        session.append("assistant", "Good to know.")
        session.sleep()
        report = memory.work()
        assert (report.processed, report.failed) == (1, 0)
        return memory.space().facts.list()


def test_bullets_and_numbers_are_stripped_and_each_line_becomes_a_fact(store_url: str) -> None:
    answer = (
        "- The user's name is Alice\n* The user prefers dark mode\n3. The user wants to learn Go"
    )
    found = by_lines(store_url, answer)
    assert {each.content.rstrip(".") for each in found} == {
        "The user's name is Alice",
        "The user prefers dark mode",
        "The user wants to learn Go",
    }
    assert len({each.id for each in found}) == 3
    assert all(each.source for each in found)


@pytest.mark.parametrize("none", ["NONE", "none", "None.", "- NONE", "**none**", "No facts."])
def test_none_in_any_spelling_is_none(store_url: str, none: str) -> None:
    assert by_lines(store_url, none) == []


def test_the_nop_extractor_extracts_nothing(store_url: str) -> None:
    with recollect.open(store_url, settings={"extractor": "none"}) as memory:
        session = memory.space().session("k", agent="assistant")
        session.append("user", "I prefer dark mode.")
        session.sleep()
        memory.work()
        assert len(memory.space().facts) == 0


def test_one_exchange_is_never_lost_because_the_next_was_odd(store_url: str) -> None:
    with recollect.open(store_url, settings={}) as memory:
        session = memory.space().session("k", agent="assistant")
        session.append("user", "I prefer dark mode.")
        session.append("user", "\u202e\ufffd ``` <|im_end|> {{{ [redacted: \\x00 " * 50)
        session.append("user", "My name is Alice.")
        session.sleep()
        memory.work()
        found = " ".join(contents(memory.space().facts.list()))
        assert "dark mode" in found
        assert "Alice" in found


# The SQLite backend


def test_the_tables_and_triggers_have_the_documents_names(tmp_path: object) -> None:
    path = f"{tmp_path}/memory.db"
    with recollect.open(path, settings={}) as memory:
        memory.space().facts.add("User prefers dark mode")
    with apsw.Connection(path) as connection:
        named = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
        assert {"facts", "facts_fts", "facts_ai", "facts_ad", "facts_au", "summaries"} <= named
        (ranked,) = connection.execute(
            "SELECT facts.content FROM facts_fts JOIN facts ON facts.key = facts_fts.rowid"
            " WHERE facts_fts MATCH 'dark' ORDER BY rank"
        )
        assert ranked == ("User prefers dark mode",)

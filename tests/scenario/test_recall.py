"""Recall on both databases: what is found, what every filter lets through, and what never comes up.

Rows T5, N1, N2 and P11. What a block for a prompt is made of is in test_recall_context.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import recollect
from recollect import EntryKind, Fact, Hit
from recollect.clock import ManualClock
from recollect.errors import InvalidValue
from recollect.types.facts import Trust

DAY = timedelta(days=1).total_seconds()
SEED = 20260705
# Put together here, so that no file of ours looks as if it held a live key.
SECRET = "sk-" + "proj-" + "Zq8vT3mK" * 6


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(store_url: str, clock: ManualClock) -> Iterator[recollect.Memory]:
    with recollect.open(store_url, settings={"pipeline": "extraction"}, clock=clock) as memory:
        yield memory


@pytest.fixture
def alice(memory: recollect.Memory) -> recollect.Space:
    return memory.space("alice")


def texts(hits: Iterable[Hit]) -> set[str]:
    return {hit.text for hit in hits}


def kinds(hits: Iterable[Hit]) -> set[str]:
    return {hit.kind.value for hit in hits}


def source(session: recollect.Session, seq: int = 1) -> recollect.Source:
    return recollect.Source(session_id=session.id, seq=seq, seq_to=seq)


def learned(memory: recollect.Memory, key: str = "telegram:42:main") -> recollect.Session:
    """A session from which a fact and a summary were made, and a document about the same."""
    space = memory.space("alice")
    session = space.session(key, agent="assistant")
    session.append("user", "I live in Lisbon and my favourite colour is teal.", name="Alice")
    session.append("assistant", "Noted, Lisbon it is.")
    session.sleep()
    memory.work()
    space.documents.write("people/alice", "Alice has a flat in Lisbon.")
    return session


# one list of everything


def test_facts_documents_summaries_and_records_are_in_one_ranked_list(
    memory: recollect.Memory, alice: recollect.Space
) -> None:
    """N1: one ranked, explained result."""
    learned(memory)
    hits = alice.recall("Where in Lisbon does Alice live?", 20)
    assert kinds(hits) == set(EntryKind)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert hit.score == pytest.approx(sum(hit.why.values()))
        assert hit.why


def test_a_natural_question_finds_its_fact_without_a_word_in_common(
    memory: recollect.Memory, alice: recollect.Space
) -> None:
    """T5: the example of the public contract, then what else people ask in other words."""
    session = alice.session("telegram:42:main", agent="assistant")
    session.append("user", "I moved to Lisbon in May.")
    memory.work(all=True)
    hits = alice.recall("where does she live?", limit=10)
    assert [hit.kind for hit in hits][:1] == [EntryKind.FACT]
    assert "moved to Lisbon" in hits[0].text
    assert alice.facts.search("where does she live?")[0].id == hits[0].id
    block = alice.context("where does she live?", max_tokens=800)
    assert block
    assert "moved to Lisbon" in block.text
    assert "residence" not in f"{block.text} {hits[0].text}", "what it is found by is not shown"

    for said in (
        "I am a nurse.",
        "I'm allergic to peanuts.",
        "I adopted a kitten.",
        "I'm vegan.",
        "My husband is called Tom.",
        "My name is Alice.",
    ):
        session.append("user", said)
    memory.work(all=True)
    for question, answer in (
        ("What is her profession?", "nurse"),
        ("Does she keep pets?", "kitten"),
        ("What food should we avoid?", "peanuts"),
        ("What kind of diet is she on?", "vegan"),
        ("Who is her spouse?", "Tom"),
        ("What is her name?", "Alice"),  # the word itself before what only stands for it
    ):
        facts = alice.recall(question, kinds=["fact"])
        assert facts, question
        assert answer in " ".join(hit.text for hit in facts[:2]), question
    assert "Alice" in alice.recall("What is her name?", kinds=["fact"])[0].text


def test_a_fact_is_found_by_its_topic_whoever_stored_or_edited_it(alice: recollect.Space) -> None:
    """T5: a model's topics are its own; what is edited stays on its topic."""
    fact = alice.facts.add(Fact("Alice has settled in Faro.", topic="alice:home-city"))
    plain = alice.facts.add("Alice has settled her bill in Faro.")
    found = [hit.id for hit in alice.recall("What is her address?")]
    assert found == [fact.id]
    alice.facts.update(fact.id, content="Alice has settled in Porto.")
    assert [hit.text for hit in alice.recall("Where does she live?")] == [
        "Alice has settled in Porto."
    ]
    assert plain.id not in found


def test_a_hit_is_called_by_what_other_calls_take(
    memory: recollect.Memory, alice: recollect.Space
) -> None:
    session = learned(memory)
    found = {hit.kind: hit for hit in alice.recall("Lisbon Alice", 20)}
    fact = alice.facts.get(found[EntryKind.FACT].id)
    assert fact is not None
    assert fact.content == found[EntryKind.FACT].text
    assert alice.documents.read(found[EntryKind.DOCUMENT].id).title == "alice"
    assert found[EntryKind.SUMMARY].id == session.id
    session_id, _, seq = found[EntryKind.RECORD].id.rpartition(":")
    (record,) = alice.sessions.records(session_id, int(seq) - 1, 1)
    assert record.content == found[EntryKind.RECORD].text


def test_every_source_of_every_hit_leads_to_records_that_are_there(
    memory: recollect.Memory, alice: recollect.Space
) -> None:
    """N2: from what is recalled to the words it came from."""
    session = learned(memory)
    alice.documents.write("home", "Alice found a home in Lisbon.", sources=[source(session)])
    hits = alice.recall("Lisbon Alice home", 20)
    assert kinds(hits) == set(EntryKind)
    grounded = [hit for hit in hits if hit.id != "~/memory/people/alice"]  # written by a person
    for hit in grounded:
        assert hit.sources, hit
    for each in (each for hit in hits for each in hit.sources):
        records = alice.sessions.records(each.session_id, each.seq - 1)
        said = [record for record in records if record.seq <= each.seq_to]
        assert [record.seq for record in said] == list(range(each.seq, each.seq_to + 1))
        assert each.quote in " ".join(record.content for record in said)


def test_a_document_leads_through_the_facts_it_names_to_what_was_said(
    memory: recollect.Memory, alice: recollect.Space
) -> None:
    """N2: also where the page names no record itself."""
    session = learned(memory)
    fact = alice.facts.list()[0]
    alice.documents.write("home", "A lantern at the door.", facts=[fact.id, "no such fact"])
    [hit] = alice.recall("lantern")
    assert fact.sources
    assert hit.sources == fact.sources
    own = source(session, 2)
    alice.documents.write("home", "Two lanterns.", sources=[own, *fact.sources], facts=[fact.id])
    [hit] = alice.recall("lantern")
    assert set(hit.sources) == {own, *fact.sources}
    assert len(hit.sources) == len({own, *fact.sources})
    nowhere = recollect.Source(session_id=session.id, seq=0, seq_to=0)
    alice.documents.write("home", "Two old lanterns.", sources=[nowhere, own])
    assert alice.recall("lantern")[0].sources == (own,)
    alice.documents.write("home", "Two bright lanterns.", sources=[nowhere])
    assert alice.recall("lantern")[0].sources == (nowhere,)
    alice.facts.delete(fact.id)
    alice.documents.write("home", "Three lanterns.", facts=[fact.id])
    assert alice.recall("lantern")[0].sources == ()


def test_what_is_committed_is_found_at_once_and_what_is_gone_never_again(
    memory: recollect.Memory, alice: recollect.Space
) -> None:
    session = alice.session("k")
    session.append("user", "the walrus sleeps")
    assert texts(alice.recall("walrus")) == {"the walrus sleeps"}
    fact = alice.facts.add("Otters hold hands")
    alice.documents.write("animals", "A heron stands still.")
    assert kinds(alice.recall("otter heron walrus")) == {"fact", "document", "record"}
    alice.facts.update(fact.id, "Beavers build dams")
    alice.documents.write("animals", "A stork stands still.")
    assert kinds(alice.recall("otter heron")) == set()
    assert kinds(alice.recall("beaver stork")) == {"fact", "document"}
    alice.facts.delete(fact.id)
    alice.documents.delete("animals")
    session.purge()
    assert alice.recall("beaver stork walrus otter heron") == []


def test_the_index_stays_right_through_any_number_of_changes(alice: recollect.Space) -> None:
    """T5: consistent after any number of upserts and deletes."""
    chance = random.Random(SEED)
    print(f"seed {SEED}")
    said: dict[str, str] = {}
    for step in range(300):
        name, word = f"f{chance.randrange(30)}", f"word{step}"
        if name in said and chance.random() < 0.3:
            alice.facts.delete(name)
            del said[name]
        else:
            alice.facts.add(Fact(f"It is about {word}", id=name))
            said[name] = word
    for step in range(300):
        found = [hit.id for hit in alice.recall(f"word{step}", kinds=["fact"])]
        assert found == [name for name, word in said.items() if word == f"word{step}"], step


def test_every_one_of_many_records_is_found(alice: recollect.Space) -> None:
    """However the index takes them up: one by one, many at once, or after others were purged."""
    session = alice.session("k")
    for batch in range(3):
        start = 200 * batch
        session.append_many(
            [{"role": "user", "content": f"mark{n} was here"} for n in range(start, start + 200)]
        )
    for number in range(0, 600, 7):
        (best, *_) = alice.recall(f"mark{number}", 1)
        assert best.text == f"mark{number} was here"
    session.purge()
    session.append("user", "mark7 again")
    assert texts(alice.recall("mark7 mark8 mark599")) == {"mark7 again"}


# filters


@pytest.fixture
def shelf(memory: recollect.Memory, alice: recollect.Space, clock: ManualClock) -> recollect.Space:
    """A lantern on every day of a week, said, noted and learned in different places."""
    for day, (key, agent, project) in enumerate(
        [("a", "assistant", "atlas"), ("b", "assistant", None), ("c", "butler", "atlas")]
    ):
        session = alice.session(key, agent=agent, project=project)
        session.append("user", f"lantern {key} of the keeper", metadata={"day": day})
        session.append("assistant", f"lantern {key} of the agent")
        session.append("tool", f"lantern {key} of a tool")
        lit = f"lantern {key} is lit"
        alice.facts.add(Fact(lit, tags=("lamp", key), sources=(source(session),)))
        clock.advance(DAY)
    alice.documents.write("lamps", "A lantern in a document.", tags=["lamp"])
    return alice


@pytest.mark.parametrize("kind", ["fact", "document", "record"])
def test_by_kind(shelf: recollect.Space, kind: str) -> None:
    assert kinds(shelf.recall("lantern", 50, kinds=[kind])) == {kind}
    assert kinds(shelf.recall("lantern", 50, filters={"kind": kind})) == {kind}
    assert kinds(shelf.recall("lantern", 50, kinds=[kind, "summary"])) == {kind}


def test_by_kind_a_summary_alone(memory: recollect.Memory, alice: recollect.Space) -> None:
    session = learned(memory)
    (hit,) = alice.recall("Lisbon", kinds=[EntryKind.SUMMARY])
    assert (hit.id, hit.kind) == (session.id, EntryKind.SUMMARY)


def test_since_is_included_and_until_is_not(shelf: recollect.Space) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    second, third = start + timedelta(days=1), start + timedelta(days=2)
    day = {"lantern b of the keeper", "lantern b of the agent", "lantern b of a tool"}
    found = shelf.recall("lantern", 50, filters={"since": second, "until": third})
    assert texts(found) == day | {"lantern b is lit"}
    since = texts(shelf.recall("lantern", 50, filters={"since": third.isoformat()}))
    assert {text.split()[1] for text in since} == {"c", "lantern"}, "the document is the newest"
    assert shelf.recall("lantern", 50, filters={"until": start}) == []


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({"agent": "assistant"}, {"a", "b"}),
        ({"agent": "butler"}, {"c"}),
        ({"agent": "nobody"}, set()),
        ({"project": "atlas"}, {"a", "c"}),
        ({"project": "atlas", "agent": "assistant"}, {"a"}),
        ({"project": "nowhere"}, set()),
    ],
)
def test_by_agent_and_project_with_the_facts_that_come_from_there(
    shelf: recollect.Space, filters: dict[str, str], wanted: set[str]
) -> None:
    found = texts(shelf.recall("lantern", 50, filters=filters))
    assert {text.split()[1] for text in found} == wanted
    assert {text for text in found if text.endswith("lit")} == {
        f"lantern {key} is lit" for key in wanted
    }


def test_by_session(shelf: recollect.Space) -> None:
    session = shelf.session("b")
    found = shelf.recall("lantern", 50, filters={"session": session.id})
    assert {text.split()[1] for text in texts(found)} == {"b"}
    assert kinds(found) == {"record", "fact"}
    assert shelf.recall("lantern", filters={"session": "nobody's"}) == []


def test_by_tags_all_of_them(shelf: recollect.Space) -> None:
    lamps = shelf.recall("lantern", 50, filters={"tags": ["lamp"]})
    assert kinds(lamps) == {"fact", "document"}
    assert texts(shelf.recall("lantern", 50, filters={"tags": ["lamp", "b"]})) == {
        "lantern b is lit"
    }
    assert shelf.recall("lantern", 50, filters={"tags": ["a", "b"]}) == []
    assert shelf.recall("lantern", 50, filters={"tag": "nothing"}) == []


@pytest.mark.parametrize("trust", list(Trust))
def test_by_trust(shelf: recollect.Space, trust: Trust) -> None:
    found = shelf.recall("lantern", 50, filters={"trust": trust.value})
    assert {hit.trust for hit in found} == {trust}
    said = {hit.text for hit in found if hit.kind is EntryKind.RECORD}
    whose = {Trust.USER: "the keeper", Trust.AGENT: "the agent", Trust.TOOL: "a tool"}[trust]
    assert said == {f"lantern {key} of {whose}" for key in "abc"}


def test_by_several_at_once(shelf: recollect.Space) -> None:
    filters = {"agent": "assistant", "trust": ["user", "tool"], "kind": "record", "day": {"gt": 0}}
    assert texts(shelf.recall("lantern", 50, filters=filters)) == {"lantern b of the keeper"}


METADATA: Mapping[str, Mapping[str, Any]] = {
    "oak": {"height": 30, "place": "Sintra park", "evergreen": False, "uses": ["ships", "Cork"]},
    "elm": {"height": 12.5, "place": "Porto", "evergreen": False, "planted": "2020-03-01"},
    "yew": {"height": "30", "evergreen": True, "planted": "2024-11-05", "note": None},
    "fig": {},
}


WHERE: list[tuple[dict[str, Any], str]] = [
    ({"height": 30}, "oak"),
    ({"height": 30.0}, "oak"),
    ({"height": "30"}, "yew"),
    ({"evergreen": True}, "yew"),
    ({"evergreen": 1}, ""),
    ({"height": {"eq": 30}}, "oak"),
    ({"height": {"ne": 30}}, "elm yew fig"),
    ({"height": {"gt": 12.5}}, "oak"),
    ({"height": {"gte": 12.5}}, "oak elm"),
    ({"height": {"lt": 30}}, "elm"),
    ({"height": {"lte": 30}}, "oak elm"),
    ({"height": {"gt": 5, "lt": 20}}, "elm"),
    ({"planted": {"gte": "2024-01-01"}}, "yew"),
    ({"planted": {"lt": "2024-01-01"}}, "elm"),
    ({"height": [30, "30"]}, "oak yew"),
    ({"height": {"in": [12.5, "30"]}}, "elm yew"),
    ({"height": {"nin": [12.5, "30"]}}, "oak fig"),
    ({"place": {"contains": "park"}}, "oak"),
    ({"place": {"contains": "Park"}}, ""),
    ({"place": {"icontains": "PARK"}}, "oak"),
    ({"uses": {"contains": "ships"}}, "oak"),
    ({"uses": {"contains": "cork"}}, ""),
    ({"uses": {"icontains": "cork"}}, "oak"),
    ({"height": {"contains": 3}}, ""),
    ({"place": "*"}, "oak elm"),
    ({"note": "*"}, "yew"),
    ({"place": {"exists": True}}, "oak elm"),
    ({"nobody": "*"}, ""),
    ({"AND": [{"evergreen": False}, {"height": {"gt": 20}}]}, "oak"),
    ({"OR": [{"height": 30}, {"evergreen": True}]}, "oak yew"),
    ({"NOT": [{"evergreen": False}, {"height": "30"}]}, "fig"),
    ({"NOT": [{"place": "*"}]}, "yew fig"),
    ({"NOT": {"place": "*"}}, "yew fig"),
    ({"OR": [{"AND": [{"height": 30}, {"evergreen": False}]}, {"note": "*"}]}, "oak yew"),
    ({"NOT": [{"OR": [{"height": 30}, {"height": 12.5}]}], "height": "*"}, "yew"),
    ({"AND": []}, "oak elm yew fig"),
    ({"OR": []}, ""),
    ({}, "oak elm yew fig"),
]


def test_by_metadata(alice: recollect.Space) -> None:
    session = alice.session("k")
    for name, metadata in METADATA.items():
        alice.facts.add(Fact(f"tree {name}", id=name, metadata=metadata))
        session.append("user", f"tree {name}, said", metadata=metadata)
    for where, wanted in WHERE:
        found = alice.recall("tree", 50, filters=where)
        assert texts(found) == {
            text for name in wanted.split() for text in (f"tree {name}", f"tree {name}, said")
        }, where


def test_by_metadata_that_is_not_there(alice: recollect.Space) -> None:
    for name, metadata in METADATA.items():
        alice.facts.add(Fact(f"tree {name}", id=name, metadata=metadata))
    found = alice.recall("tree", filters={"place": {"exists": False}})
    assert texts(found) == {"tree yew", "tree fig"}


def test_many_newer_ones_with_the_same_word_hide_nothing_that_a_filter_asks_for(
    alice: recollect.Space,
) -> None:
    old = Fact("lantern", tags=("old",), metadata={"age": 9}, trust=Trust.AGENT)
    alice.facts.add(old)
    for number in range(500):
        alice.facts.add(Fact(f"lantern {number}", id=f"f{number}"))
    for filters in ({"tags": ["old"]}, {"trust": "agent"}, {"age": {"gt": 8}}):
        assert texts(alice.recall("lantern", filters=filters)) == {"lantern"}, filters


@pytest.mark.parametrize(
    "filters",
    [
        {"kind": 3},
        {"kind": [["fact"]]},
        {"trust": 3},
        {"trust": [["user"]]},
        {"tags": 3},
        {"kind": "dream"},
        {"kinds": []},
        {"since": "yesterday"},
        {"until": "2026-01-01"},
        {"trust": "boss"},
        {"tags": [1]},
        {"agent": 3},
        {"session": 3},
        {"price": {"about": 3}},
        {"price": {"in": 3}},
        {"AND": "x"},
        {"OR": ["x"]},
        {3: 4},
        [1],
    ],
    ids=str,
)
def test_a_filter_that_says_nothing_is_a_typed_error(filters: Any) -> None:
    with recollect.open(":memory:") as memory:
        for ask in (memory.space().recall, memory.space().context):
            with pytest.raises(InvalidValue):
                ask("x", filters=filters)


# another time


def test_as_of_shows_what_was_known_and_held_then(
    memory: recollect.Memory, alice: recollect.Space, clock: ManualClock
) -> None:
    session = alice.session("k")
    session.append("user", "I live in Lisbon.", name="Alice")
    session.sleep()
    memory.work()
    in_lisbon = clock.now()
    clock.advance(DAY)
    session.append("user", "I moved again: I live in Porto now.", name="Alice")
    session.sleep()
    memory.work()

    def facts(**given: Any) -> set[str]:
        return texts(alice.recall("Where does Alice live: Lisbon, Porto?", 20, **given))

    now, then = facts(kinds=["fact"]), facts(kinds=["fact"], as_of=in_lisbon)
    assert any("Porto" in text for text in now)
    assert not any("Lisbon" in text for text in now), "it is superseded"
    assert any("Lisbon" in text for text in then)
    assert not any("Porto" in text for text in then), "nobody had said so yet"
    assert facts(kinds=["record"], as_of=in_lisbon.isoformat()) == {"I live in Lisbon."}
    assert facts(filters={"as_of": in_lisbon}) == facts(as_of=in_lisbon)
    assert facts(as_of=in_lisbon - timedelta(seconds=1)) == set()


def test_as_of_a_document_is_only_shown_if_it_has_not_changed_since(
    alice: recollect.Space, clock: ManualClock
) -> None:
    alice.documents.write("a", "A lantern.")
    alice.documents.write("b", "Another lantern.")
    then = clock.now()
    clock.advance(DAY)
    alice.documents.write("b", "Quite another lantern.")
    assert texts(alice.recall("lantern", as_of=then)) == {"A lantern."}
    assert alice.recall("lantern", as_of=then - timedelta(days=1)) == []


def test_a_time_in_the_query_is_a_time_of_what_was_said(
    alice: recollect.Space, clock: ManualClock
) -> None:
    session = alice.session("k")
    for month in (3, 6, 9):
        at = datetime(2025, month, 15, 12, tzinfo=UTC)
        session.append("user", f"The shop was open, note {month}.", at=at)
    (best, *_) = alice.recall("Was the shop open in June 2025?")
    assert best.text == "The shop was open, note 6."
    assert best.why["time"] > 0


# what never comes up


def test_what_repeats_a_better_hit_steps_down_and_says_so(alice: recollect.Space) -> None:
    """N2: a list is not five times the same."""
    for number in range(8):
        alice.session(f"k{number}").append("user", "The lantern is red!", name="Bo")
    alice.session("other").append("user", "The lantern of the pier is red.", name="Bo")
    alice.session("ana").append("user", "The lantern is red.", name="Ana")
    hits = alice.recall("the red lantern", 4, kinds=["record"])
    assert texts(hits[:3]) == {
        "The lantern is red!",
        "The lantern is red.",
        "The lantern of the pier is red.",
    }
    assert ["repeated" in hit.why for hit in hits] == [False, False, False, True]
    for hit in hits:
        assert hit.score == sum(hit.why.values())


def test_a_phrase_of_the_query_is_found_where_it_stands_together(alice: recollect.Space) -> None:
    alice.facts.add("The market has no fish on Mondays.")
    alice.facts.add("The fish market is closed on Mondays.")
    alice.facts.add("Fish is dear at any market on Mondays.")
    best = alice.recall("fish market")[0]
    assert best.text == "The fish market is closed on Mondays."
    assert best.why["phrase"] > 0


def test_a_space_finds_nothing_of_another(memory: recollect.Memory, alice: recollect.Space) -> None:
    session = learned(memory)
    bob = memory.space("bob")
    bob.session("telegram:42:main").append("user", "Lisbon is where I was on holiday.")
    found = bob.recall("Lisbon Alice", 50)
    assert texts(found) == {"Lisbon is where I was on holiday."}
    assert bob.recall("Lisbon", filters={"session": session.id}) == []
    assert memory.space("carol").recall("Lisbon Alice") == []
    assert len(alice.recall("Lisbon holiday", 50, kinds=["record"])) == 2


@pytest.mark.parametrize("mode", ["disabled", "polluted"])
def test_a_session_that_is_not_to_be_remembered_is_not_recalled(
    alice: recollect.Space, mode: str
) -> None:
    session = alice.session("k")
    session.append("user", "the walrus sleeps")
    session.set_mode(mode)
    session.append("user", "the walrus wakes")
    assert alice.recall("walrus") == []
    assert not alice.context("walrus")
    assert [record.content for record in session.all()] == ["the walrus sleeps", "the walrus wakes"]


def test_an_ephemeral_session_is_not_recalled(alice: recollect.Space) -> None:
    alice.session("k", ephemeral=True).append("user", "the walrus sleeps")
    assert alice.recall("walrus") == []


@pytest.mark.parametrize("kind", ["memory-agent", "consolidation-agent", "search-agent"])
def test_agents_that_work_on_memory_are_not_recalled(alice: recollect.Space, kind: str) -> None:
    alice.session("k", agent={"type": kind, "id": "x"}).append("user", "the walrus sleeps")
    assert alice.recall("walrus") == []


def test_with_memory_switched_off_there_is_nothing_and_no_error() -> None:
    """T6: no store, nothing."""
    with recollect.open(settings={"data_dir": ""}) as memory:
        space = memory.space("alice")
        space.session("k").append("user", "the walrus sleeps")
        assert space.recall("walrus") == []
        block = space.context("walrus")
        assert (bool(block), block.text, space.cite(block)) == (False, "", 0)


def test_forgetting_a_session_takes_its_hits_away(
    memory: recollect.Memory, alice: recollect.Space
) -> None:
    """P11."""
    session = learned(memory)
    other = alice.session("other")
    other.append("user", "I live in Lisbon and my favourite colour is teal.", name="Alice")
    other.sleep()
    memory.work()
    alice.documents.delete("people/alice")
    block = alice.context("Lisbon Alice teal")
    assert alice.cite(block, "m1") > 0
    forgotten = session.id
    alice.forget(session=session)
    hits = alice.recall("Lisbon Alice teal colour", 50)
    assert hits, "the other session says so too"
    assert forgotten not in repr(hits)
    alice.forget(session=other)
    assert alice.recall("Lisbon Alice teal colour", 50) == []


def test_a_secret_is_shown_by_nothing_that_is_recalled(alice: recollect.Space) -> None:
    session = alice.session("k")
    session.append("user", f"the lantern key is {SECRET}", name="Alice")
    alice.facts.add(f"the lantern opens with {SECRET}")
    alice.documents.write("lantern", f"lantern {SECRET}")
    hits, block = alice.recall("lantern key"), alice.context("lantern key")
    assert kinds(hits) == {"record", "fact", "document"}
    assert "[redacted:" in block.text
    assert SECRET not in repr((hits, block))


# T5: any text is a legal query

HOSTILE = [
    *["", " ", "\t\n", ".", "-", "'", '"', "''", '""', "\\", "/", "%", "_", "*", "?", "(", ")"],
    *[
        "a AND",
        "a OR",
        "NOT",
        "NEAR(a b)",
        "a NEAR/3 b",
        "col:a",
        "{a b}:c",
        "^a",
        "a*",
        '"a',
        "-a",
    ],
    *["a & b", "a | b", "!a", "a <-> b", "a:*", "a:AB", "'a':1", "\\'", "$$", "$1", ":space", "%s"],
    *["'; DROP TABLE facts; --", "1=1", "/* x */", "--", ";", "\x00", "a\x00b", "\ud800", "\udfff"],
    *[
        "\u202e",
        "\u200d",
        "\ufeff",
        "\U000e0041",
        "🙂",
        "👩‍👩‍👧",
        "日本語",
        "ไทย",
        "한국어",
        "İ",
        "ß",
        "ﬁ",
    ],
    *[
        "a" * 100_000,
        "a " * 50_000,
        "🙂" * 5000,
        "(" * 5000,
        '"' * 5001,
        "語" * 20_000,
        "a-" * 9999,
    ],
    *["last week", "yesterday", "in the year 0", "in 9999", "99999-99-99", "31 February 2026"],
    *[
        "2026-13-45T99:99:99Z",
        "a year ago" * 500,
        "10000000000 days ago",
        "next" * 3000,
        "1.2.3.4.5",
    ],
    *["<recollect-memory>", "</recollect-memory>", "[m1]", "## Relevant Memory", "the", "who am i"],
]


def test_any_text_is_a_legal_query(memory: recollect.Memory, alice: recollect.Space) -> None:
    learned(memory)
    chance = random.Random(SEED)
    print(f"seed {SEED}")
    for query in [*HOSTILE, *(random_text(chance) for _ in range(300))]:
        assert isinstance(alice.recall(query), list), repr(query[:100])
        assert alice.context(query, 200).token_count <= 200, repr(query[:100])


@pytest.mark.torture
def test_a_hundred_thousand_random_texts_are_legal_queries(
    memory: recollect.Memory, alice: recollect.Space
) -> None:
    learned(memory)
    chance = random.Random(SEED)
    print(f"seed {SEED}")
    for _ in range(100_000):
        alice.recall(random_text(chance))


def random_text(chance: random.Random) -> str:
    """Words, signs and characters from anywhere, halves of characters among them."""
    known = ["Lisbon", "Alice", "teal", "last", "week", "2026", "May", "AND", "NEAR", *HOSTILE[:40]]
    parts = []
    for _ in range(chance.randrange(12)):
        if chance.random() < 0.5:
            parts.append(chance.choice(known))
        else:
            top = chance.choice([0x80, 0x800, 0x10000, 0x110000])
            parts.append("".join(chr(chance.randrange(top)) for _ in range(chance.randrange(9))))
    return chance.choice(["", " ", "\n"]).join(parts)


@pytest.mark.parametrize("query", [None, 3, b"x", ["x"]], ids=repr)
def test_what_is_no_text_is_no_query(query: Any) -> None:
    with recollect.open(":memory:") as memory, pytest.raises(InvalidValue):
        memory.space().recall(query)

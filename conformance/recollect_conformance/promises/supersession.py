"""Newer statements supersede older ones, nothing is destroyed, and the past can be read."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from recollect.types.facts import Fact, FactEvent, NewFact, Trust
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import (
    add,
    contents,
    day,
    draft,
    due,
    edit,
    events,
    fact_named,
    facts,
    lesson,
    only_fact,
    record,
    revision,
    statement,
    teach,
)

CITIES = ("Rome", "Oslo", "Kyiv")


def _home(
    city: str, on: int, *, trust: Trust = Trust.USER, seq: int = 1, supersedes: str = ""
) -> NewFact:
    return statement(
        f"lives in {city}",
        seq,
        said=day(on),
        topic="home",
        trust=trust,
        supersedes=[supersedes] if supersedes else [],
    )


def _line(store: Harness) -> list[tuple[str, int, int | None]]:
    """Every statement with the days from and to which it was believed."""
    return [
        (
            fact.content.removeprefix("lives in "),
            _number(fact, "from"),
            None if fact.valid_to is None else _number(fact, "to"),
        )
        for fact in facts(store, every=True)
    ]


def _number(fact: Fact, end: str) -> int:
    moment = fact.valid_from if end == "from" else fact.valid_to
    assert moment is not None
    return (moment - day(0)).days


@case("T4", "a newer statement on a topic supersedes the older one, which stays and says by what")
def a_newer_statement_supersedes(store: Harness) -> None:
    teach(store, _home("Rome", 1))
    teach(store, _home("Oslo", 5, seq=2))
    rome, oslo = fact_named(store, "lives in Rome"), fact_named(store, "lives in Oslo")
    assert contents(store) == ["lives in Oslo"]
    assert (rome.superseded_by, rome.valid_to) == (oslo.id, day(5))
    assert (oslo.superseded_by, oslo.valid_to) == (None, None)
    assert store.handle.facts.get(SPACE, rome.id) == rome
    changes = store.handle.facts.history(SPACE, rome.id)
    assert [(change.event, change.other_id) for change in changes] == [
        (FactEvent.ADDED, None),
        (FactEvent.SUPERSEDED, oslo.id),
    ]


@case("T4", "on a topic that can have several values nothing is replaced unless it is named")
def a_topic_with_several_values_replaces_nothing(store: Harness) -> None:
    films = [
        replace(statement(f"likes {genre}", seq, said=day(seq), topic="films"), is_single=False)
        for seq, genre in enumerate(("action and sci-fi", "fantasy and sci-fi"), start=1)
    ]
    for film in (*films, films[0]):
        teach(store, film)
    assert contents(store) == ["likes action and sci-fi", "likes fantasy and sci-fi"]
    named = fact_named(store, "likes action and sci-fi").id
    said = statement("likes no action any more", 3, said=day(3), topic="films", supersedes=[named])
    teach(store, replace(said, is_single=False))
    assert contents(store) == ["likes fantasy and sci-fi", "likes no action any more"]


@case("T4", "in whichever order three statements arrive, they supersede each other in theirs")
def the_order_of_arrival_does_not_matter(store: Harness) -> None:
    for number, order in enumerate(permutations(range(3))):
        space = f"space {number}"
        for place in order:
            teach(store, _home(CITIES[place], place + 1), key=f"key {place}", space=space)
        seen = [contents(store, day(on), space=space) for on in (0, 1, 2, 3, 9)]
        assert seen == [[], *([f"lives in {city}"] for city in (*CITIES, CITIES[2]))], order


@case("T4", "of statements made at the same moment the one that was found last wins")
def the_last_of_one_moment_wins(store: Harness) -> None:
    said = [_home(city, 1, seq=seq) for seq, city in enumerate(CITIES, 1)]
    teach(store, *said, _home("Rome", 1, seq=4))
    assert contents(store) == ["lives in Rome"]
    before = facts(store, every=True), revision(store)
    for is_whole in (False, True):
        teach(store, *said, _home("Rome", 1, seq=4), is_whole=is_whole)
        assert (facts(store, every=True), revision(store)) == before


@case("T4 X8", "going through a session again changes nothing about who superseded whom")
def superseding_again_changes_nothing(store: Harness) -> None:
    said = (_home("Rome", 1), _home("Oslo", 2, seq=2), _home("Rome", 3, seq=3))
    teach(store, *said)
    assert _line(store) == [("Rome", 1, 2), ("Oslo", 2, 3), ("Rome", 3, None)]
    before = facts(store, every=True), revision(store)
    for is_whole in (False, True, True):
        teach(store, *said, is_whole=is_whole)
        assert (facts(store, every=True), revision(store)) == before


@case("T4", "what was superseded and is said again is believed again")
def what_is_said_again_is_believed_again(store: Harness) -> None:
    for number, city in enumerate(("Rome", "Oslo", "Rome", "Oslo"), 1):
        teach(store, _home(city, number), key=f"key {number}")
    assert _line(store) == [("Rome", 1, 2), ("Oslo", 2, 3), ("Rome", 3, 4), ("Oslo", 4, None)]


@case("T4", "a statement supersedes none of a better word, in whichever order they arrive")
def a_better_word_is_not_superseded(store: Harness) -> None:
    weaker = {Trust.USER: (Trust.AGENT, Trust.TOOL), Trust.AGENT: (Trust.TOOL,)}
    for trust, others in weaker.items():
        for other in others:
            for number, order in enumerate(((0, 1), (1, 0))):
                space = f"{trust} {other} {number}"
                said = _home("Rome", 1, trust=trust), _home("Oslo", 2, trust=other)
                for place in order:
                    teach(store, said[place], key=f"key {place}", space=space)
                assert contents(store, space=space) == ["lives in Rome", "lives in Oslo"]


@case("T4", "a statement supersedes those of its own worth and less")
def an_equal_or_lesser_word_is_superseded(store: Harness) -> None:
    for number, trust in enumerate((Trust.TOOL, Trust.AGENT, Trust.USER)):
        teach(store, _home(f"city {number}", number, trust=trust), key=f"key {number}")
    assert contents(store) == ["lives in city 2"]


@case("T4", "a weak statement that gets a better word supersedes from then on")
def a_strengthened_statement_supersedes(store: Harness) -> None:
    teach(store, _home("Rome", 1), key="one")
    teach(store, _home("Oslo", 2, trust=Trust.TOOL), key="two")
    assert len(contents(store)) == 2
    teach(store, _home("Oslo", 3), key="three")
    assert _line(store) == [("Rome", 1, 3), ("Oslo", 2, None)]


@case("T4", "a statement that is said again supersedes the weaker ones made meanwhile")
def a_repeated_statement_supersedes(store: Harness) -> None:
    teach(store, _home("Rome", 1), key="one")
    teach(store, _home("Oslo", 2, trust=Trust.AGENT), key="two")
    teach(store, _home("Rome", 3), key="three")
    assert _line(store) == [("Rome", 1, None), ("Oslo", 2, 3)]


@case("T4", "statements on other topics, or on none, leave each other alone")
def other_topics_are_left_alone(store: Harness) -> None:
    teach(store, statement("a", topic="one"), statement("b", topic="two"), statement("c"))
    teach(store, statement("d", said=day(2)), statement("e", said=day(2), topic="three"))
    assert contents(store) == ["a", "b", "c", "d", "e"]


@case("T4 P12", "a statement supersedes what it names by id, in its own space and nowhere else")
def a_named_fact_is_superseded(store: Harness) -> None:
    teach(store, statement("likes tea"), key="one")
    teach(store, statement("likes tea"), key="theirs", space="theirs")
    ours = only_fact(store)
    [theirs] = facts(store, space="theirs")
    names = [ours.id, theirs.id, "nobody", "' OR 1=1"]
    teach(store, statement("hates tea", said=day(1), supersedes=names), key="two")
    assert contents(store) == ["hates tea"]
    assert facts(store, space="theirs") == [theirs]
    assert events(store, theirs.id, space="theirs") == [FactEvent.ADDED]


@case("T4", "a statement that names something newer or of a better word does not supersede it")
def naming_does_not_beat_time_or_trust(store: Harness) -> None:
    teach(store, statement("likes tea", said=day(5)), key="one")
    newer = only_fact(store)
    teach(store, statement("hates tea", said=day(1), supersedes=[newer.id]), key="two")
    assert contents(store) == ["likes tea"]
    weak = statement("drinks no tea", said=day(9), trust=Trust.TOOL, supersedes=[newer.id])
    teach(store, weak, key="three")
    assert contents(store) == ["likes tea", "drinks no tea"]


@case("T4", "what people added themselves is not superseded by what an extractor finds")
def peoples_own_are_not_superseded(store: Harness) -> None:
    own = Fact("lives in Rome", topic="home", valid_from=day(1))
    unnamed = store.handle.facts.add(SPACE, own, store.now(), store.new_id)
    named = replace(own, id="mine", content="lives in Oslo", extractor="theirs")
    store.handle.facts.add(SPACE, named, store.now(), store.new_id)
    teach(store, replace(_home("Kyiv", 5), supersedes=(unnamed.id, "mine")))
    assert sorted(contents(store)) == ["lives in Kyiv", "lives in Oslo", "lives in Rome"]


@case("T4", "the past is read as it was believed: by list, search, metadata and count")
def the_past_is_read_as_it_was_believed(store: Harness) -> None:
    for place, city in enumerate(CITIES):
        teach(store, _home(city, 10 * (place + 1)), key=f"key {place}")
    believed = {9: "", 10: "Rome", 19: "Rome", 20: "Oslo", 29: "Oslo", 30: "Kyiv", 999: "Kyiv"}
    for on, city in believed.items():
        expected = [f"lives in {city}"] if city else []
        found = store.handle.facts.search(SPACE, ["lives"], day(on), 10)
        assert contents(store, day(on)) == [fact.content for fact in found] == expected
        assert store.handle.facts.count(SPACE, day(on)) == len(expected)
    dated = Fact("was ill", metadata={"a": 1}, valid_from=day(3), valid_to=day(5))
    store.handle.facts.add(SPACE, dated, store.now(), store.new_id)
    search = store.handle.facts.search_metadata
    assert [len(search(SPACE, "a", 1, day(on), 10)) for on in (2, 3, 4, 5)] == [0, 1, 1, 0]


@case("T4 T2", "a fact holds until the moment it says itself, and not at it")
def a_fact_expires(store: Harness) -> None:
    teach(store, statement("is on leave", said=day(1), valid_to=day(5)))
    assert [len(facts(store, day(on))) for on in (0, 1, 4, 5)] == [0, 1, 1, 0]
    [fact] = facts(store, every=True)
    assert (fact.valid_from, fact.valid_to, fact.superseded_by) == (day(1), day(5), None)
    assert fact.is_valid(day(4))
    assert not fact.is_valid(day(5))


@case("T4", "what comes first ends a fact: its own end, or what superseded it")
def the_earlier_end_counts(store: Harness) -> None:
    teach(store, statement("a", said=day(1), valid_to=day(3), topic="one"))
    teach(store, statement("b", 2, said=day(1), valid_to=day(8), topic="two"))
    for seq, topic in ((3, "one"), (4, "two")):
        teach(store, statement(f"new {topic}", seq, said=day(5), topic=topic))
    assert (fact_named(store, "a").valid_to, fact_named(store, "b").valid_to) == (day(3), day(5))


@case("T4", "deleting a fact brings back to life what it had superseded")
def deleting_brings_back(store: Harness) -> None:
    teach(store, _home("Rome", 1))
    teach(store, _home("Oslo", 2, seq=2))
    rome = fact_named(store, "lives in Rome").id
    store.handle.facts.delete(SPACE, fact_named(store, "lives in Oslo").id, store.now())
    assert _line(store) == [("Rome", 1, None)]
    assert events(store, rome) == [FactEvent.ADDED, FactEvent.SUPERSEDED, FactEvent.RESTORED]


@case("T4", "deleting a fact in the middle hands on what it had superseded")
def deleting_in_the_middle_hands_on(store: Harness) -> None:
    for place, city in enumerate(CITIES):
        teach(store, _home(city, place + 1), key=f"key {place}")
    store.handle.facts.delete(SPACE, fact_named(store, "lives in Oslo").id, store.now())
    assert _line(store) == [("Rome", 1, 3), ("Kyiv", 3, None)]
    assert fact_named(store, "lives in Rome").superseded_by == fact_named(store, "lives in Kyiv").id


@case("T4", "what was deleted itself is not brought back")
def the_deleted_are_not_brought_back(store: Harness) -> None:
    teach(store, _home("Rome", 1))
    teach(store, _home("Oslo", 2, seq=2))
    rome, oslo = (fact_named(store, f"lives in {city}").id for city in CITIES[:2])
    for fact_id in (rome, oslo):
        store.handle.facts.delete(SPACE, fact_id, store.now())
    assert facts(store, every=True) == []
    assert events(store, rome)[-1] is FactEvent.DELETED


@case("T4", "what is brought back does not stand beside the same statement made again")
def the_same_statement_is_not_brought_back_twice(store: Harness) -> None:
    said = (("Rome", Trust.AGENT), ("Oslo", Trust.USER), ("Rome", Trust.AGENT))
    for number, (city, trust) in enumerate(said, 1):
        teach(store, _home(city, number, trust=trust), key=f"key {number}")
    assert contents(store) == ["lives in Oslo", "lives in Rome"]
    store.handle.facts.delete(SPACE, fact_named(store, "lives in Oslo").id, store.now())
    assert _line(store) == [("Rome", 1, 3), ("Rome", 3, None)]


@case("T4 X9", "a whole run that takes a statement back restores what it had superseded")
def withdrawing_brings_back(store: Harness) -> None:
    teach(store, _home("Rome", 1), key="one")
    teach(store, _home("Oslo", 2), key="two")
    teach(store, statement("likes tea"), key="two", is_whole=True)
    assert contents(store) == ["likes tea", "lives in Rome"]


@case(
    "T4 X9", "a whole run that finds another statement on the topic passes on what was superseded"
)
def withdrawing_passes_on(store: Harness) -> None:
    teach(store, _home("Rome", 1), key="one")
    teach(store, _home("Oslo", 2), key="two")
    teach(store, _home("Kyiv", 2), key="two", is_whole=True)
    assert _line(store) == [("Rome", 1, 2), ("Kyiv", 2, None)]
    assert fact_named(store, "lives in Rome").superseded_by == fact_named(store, "lives in Kyiv").id


@case("T2", "editing a superseded fact keeps when it was over, should it come back")
def editing_a_superseded_fact_keeps_its_end(store: Harness) -> None:
    for end in (None, day(99)):
        space = f"until {end}"
        rome = replace(_home("Rome", 1), valid_to=end)
        teach(store, rome, key="one", space=space)
        teach(store, _home("Oslo", 2), key="two", space=space)
        [old, new] = facts(store, every=True, space=space)
        assert old.valid_to == day(2)
        assert edit(store, old.id, space=space, content="lived in Rome") is not None
        store.handle.facts.delete(space, new.id, store.now())
        [restored] = facts(store, day(50), space=space)
        assert (restored.content, restored.valid_to) == ("lived in Rome", end)


@case("T2", "a fact given a new end has it")
def a_new_end_is_kept(store: Harness) -> None:
    fact = add(store, "is on leave")
    for end in (day(3), None, day(5)):
        edited = edit(store, fact.id, valid_to=end)
        assert edited is not None
        assert edited.valid_to == end


@case(
    "T4 P12", "a statement from a record that bears a time to come holds from when it was learned"
)
def a_time_to_come_is_now(store: Harness) -> None:
    _, claimed = due(store, "one")
    record(store, claimed, lesson(draft(_home("Oslo", 30_000))))
    fact = only_fact(store)
    assert (fact.valid_from, fact.valid_to) == (store.now(), None)
    assert contents(store, store.now()) == ["lives in Oslo"]
    store.clock.advance(60)
    _, claimed = due(store, "two")
    record(
        store, claimed, lesson(draft(statement("lives in Rome", said=store.now(), topic="home")))
    )
    assert contents(store, store.now()) == ["lives in Rome"]
    assert fact_named(store, "lives in Oslo").valid_to == store.now()


@case("T4 T6", "what was learned from a session and holds no more is told with what became of it")
def what_holds_no_more_is_told(store: Harness) -> None:
    taught = teach(store, _home("Rome", 1), statement("likes tea", 2), statement("has a cat", 3))
    teach(store, _home("Oslo", 5), key="later")
    teach(store, _home("Kyiv", 1), key="elsewhere", space="another")
    search, now = store.handle.search, store.now()
    sessions = [taught]
    rome, *others = search.revisions(SPACE, sessions, now)
    assert others == []
    assert (rome.session_id, rome.seq, rome.seq_to) == (taught, 1, 1)
    assert (rome.statement, rome.now) == ("lives in Rome", "lives in Oslo")
    assert (rome.is_withdrawn, rome.at) == (False, day(5))
    assert search.revisions(SPACE, sessions, day(4)) == []
    edit(store, fact_named(store, "likes tea").id, content="likes coffee")
    store.handle.facts.delete(SPACE, fact_named(store, "has a cat").id, store.now())
    told = {each.statement: each.is_withdrawn for each in search.revisions(SPACE, sessions, now)}
    assert told == {"lives in Rome": False, "likes tea": True, "has a cat": True}
    assert search.revisions("another", sessions, now) == []
    assert search.revisions(SPACE, [], now) == []


@case("T4 T6", "what does not hold any more since a time is told, wherever it was learned")
def what_holds_no_more_since_a_time_is_told(store: Harness) -> None:
    teach(store, _home("Rome", 1), statement("likes tea", 2), statement("has a cat", 3))
    store.clock.advance(60)
    before = store.now()
    store.clock.advance(60)
    teach(store, _home("Oslo", 5), key="later")
    edit(store, fact_named(store, "likes tea").id, content="likes coffee")
    store.handle.facts.delete(SPACE, fact_named(store, "has a cat").id, store.now())
    search = store.handle.search
    since = {
        each.statement: (each.session_id, each.is_withdrawn, each.now)
        for each in search.revisions(SPACE, [], day(365), before)
    }
    assert since["likes tea"] == ("", True, "likes coffee")
    assert since["has a cat"] == ("", True, "")
    assert search.revisions(SPACE, [], day(365), day(364)) == []
    assert search.revisions("another", [], day(365), before) == []

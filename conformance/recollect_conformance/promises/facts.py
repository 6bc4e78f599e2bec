"""Facts: the same statement once with every source; what people say stays as they said it."""

from __future__ import annotations

from dataclasses import replace

from recollect.types.facts import Fact, FactEvent, FactQuery, FactTag, Source, Trust
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import (
    add,
    contents,
    day,
    edit,
    events,
    fact_named,
    facts,
    only_fact,
    revision,
    sources_of,
    statement,
    teach,
)

SAME = (
    "Likes tea.",
    "likes  TEA",
    "LIKES\ttea!",
    "“likes tea”",
    "- likes ｔｅａ…",
    "likes\u00a0tea",
)


@case("T4", "the same statement from several sessions is one fact with every source")
def the_same_statement_is_one_fact(store: Harness) -> None:
    sessions = [
        teach(store, statement(content), key=f"key {number}") for number, content in enumerate(SAME)
    ]
    fact = only_fact(store)
    assert fact.content == SAME[0]
    assert sorted(sources_of(fact)) == sorted((session, 1) for session in sessions)
    assert fact.source == sessions[0]
    assert events(store, fact.id) == [FactEvent.ADDED]


@case("T4", "composed and decomposed letters are the same statement, other letters are another")
def letters_are_compared_as_they_read(store: Harness) -> None:
    teach(store, statement("lives in Zu\u0308rich"), statement("lives in Z\u00fcrich", 2))
    teach(store, statement("lives in Zurich", 3))
    assert contents(store) == ["lives in Zurich", "lives in Zu\u0308rich"]


@case("T4", "one statement found in several places of a session has each of them as a source")
def every_place_is_a_source(store: Harness) -> None:
    session = teach(store, statement("likes tea", 1), statement("likes tea", 3))
    teach(store, statement("likes tea", 7))
    assert sources_of(only_fact(store)) == [(session, 1), (session, 3), (session, 7)]


@case("T4 T2", "a statement is worth as much as the best of those who made it")
def the_best_trust_wins(store: Harness) -> None:
    given = (Trust.AGENT, Trust.TOOL, Trust.USER, Trust.TOOL, Trust.AGENT)
    found = []
    for number, trust in enumerate(given):
        teach(store, statement("likes tea", trust=trust), key=f"key {number}")
        found.append(only_fact(store).trust)
    assert found == [Trust.AGENT, Trust.AGENT, Trust.USER, Trust.USER, Trust.USER]


@case("T4", "a statement holds from the first time it was said, in whichever order that is found")
def a_statement_holds_from_the_first_time(store: Harness) -> None:
    for number in (5, 2, 9):
        teach(store, statement("likes tea", said=day(number)), key=f"key {number}")
    assert only_fact(store).valid_from == day(2)
    assert (contents(store, day(1)), contents(store, day(3))) == ([], ["likes tea"])


@case("T2", "a fact that is added comes back with all that was given, and its defaults")
def an_added_fact_comes_back(store: Harness) -> None:
    given = Fact(
        "likes tea",
        id="mine",
        sources=(Source(session_id="s", seq=2, seq_to=4, quote="tea"),),
        tags=("preference", "drinks"),
        metadata={"a": {"b": [1, None]}, "é": "ü"},
        trust=Trust.AGENT,
        topic="drink",
        created_at=day(-9),
        valid_from=day(-8),
        valid_to=day(8),
        extractor="theirs",
        about=("Mira", "Pixel & \u201cCo\u201d"),
        kind=FactTag.PREFERENCE,
        happened_from=day(-20),
        happened_to=day(-19),
    )
    stored = store.handle.facts.add(SPACE, given, store.now(), store.new_id)
    expected = replace(given, source="s", source_count=1, space=SPACE, updated_at=store.now())
    assert stored == store.handle.facts.get(SPACE, "mine") == expected
    plain = add(store, "has a cat")
    assert plain.id
    assert (plain.created_at, plain.valid_from, plain.valid_to) == (store.now(), store.now(), None)
    assert (plain.trust, plain.sources, plain.source, plain.extractor) == (
        Trust.USER,
        (),
        None,
        None,
    )
    assert [change.by for change in store.handle.facts.history(SPACE, plain.id)] == ["user"]


@case("T2", "a learned fact says about whom it is, of which kind, and when that happened")
def a_learned_fact_says_about_whom_and_when(store: Harness) -> None:
    moved = replace(
        statement("Mira moved in with Jon", said=day(3)),
        tags=("event",),
        about=("Mira", "Jon"),
        happened_from=day(1),
        happened_to=day(2),
    )
    teach(store, moved, statement("likes tea", 2))
    fact = fact_named(store, "Mira moved in with Jon")
    assert (fact.about, fact.kind) == (("Mira", "Jon"), FactTag.EVENT)
    assert (fact.happened_from, fact.happened_to) == (day(1), day(2))
    plain = fact_named(store, "likes tea")
    assert (plain.about, plain.kind, plain.happened_from, plain.happened_to) == (
        (),
        None,
        None,
        None,
    )
    kept = edit(store, fact.id, tags=("commitment",), content="Mira moved in with Jon!")
    assert kept is not None
    assert (kept.about, kept.kind, kept.happened_from) == (fact.about, FactTag.COMMITMENT, day(1))
    reworded = edit(store, fact.id, content="Ana moved in with Jon")
    assert reworded is not None
    assert (reworded.about, reworded.happened_from, reworded.happened_to) == ((), None, None)


@case("T4", "a fact with an id of its own is kept as it is and never merged")
def a_named_fact_is_never_merged(store: Harness) -> None:
    teach(store, statement("likes tea"))
    for name in ("one", "two"):
        assert add(store, "likes tea", named=name).id == name
    teach(store, statement("likes tea"), key="other")
    found = facts(store)
    assert [fact.content for fact in found] == ["likes tea"] * 3
    assert sorted(len(fact.sources) for fact in found) == [0, 0, 2]


@case("T2", "adding under a known id replaces all that it said")
def adding_under_an_id_replaces(store: Harness) -> None:
    source = Source(session_id="s", seq=1, seq_to=1)
    add(store, "old", named="mine", tags=["a"], metadata={"a": 1}, sources=[source])
    store.clock.advance(5)
    stored = add(store, "new", named="mine", metadata={"b": 2})
    assert store.handle.facts.count(SPACE, store.now()) == 1
    assert (stored.content, stored.tags, stored.metadata) == ("new", (), {"b": 2})
    assert (stored.sources, stored.updated_at) == ((), store.now())
    assert events(store, "mine") == [FactEvent.ADDED, FactEvent.EDITED]
    assert contents(store, at=day(0)) == ["old"], "it held then, and still does"
    later = replace(stored, content="newer", valid_from=store.now())
    store.handle.facts.add(SPACE, later, store.now(), store.new_id)
    assert contents(store, at=day(0)) == []


@case("T4", "what is added under the id of a superseded fact is believed")
def adding_under_a_superseded_id_is_believed(store: Harness) -> None:
    teach(store, statement("lives in Rome", topic="home", said=day(1)))
    rome = only_fact(store)
    teach(store, statement("lives in Oslo", 2, topic="home", said=day(2)))
    add(store, "lives in Rome in summer", named=rome.id)
    assert sorted(contents(store)) == ["lives in Oslo", "lives in Rome in summer"]


@case("T4", "what is added without an id is stored once and gains sources")
def what_is_added_without_an_id_is_stored_once(store: Harness) -> None:
    first = add(store, "likes tea", tags=["kept"])
    source = Source(session_id="s", seq=3, seq_to=4, quote="tea")
    again = add(store, "Likes TEA!", sources=[source])
    assert (again.id, again.content, again.tags) == (first.id, "likes tea", ("kept",))
    assert again.sources == (source,)
    changed = revision(store).changed
    assert add(store, "likes tea", sources=[source]) == again
    assert revision(store).changed == changed


@case("T4", "an extracted statement that somebody makes as well is theirs, and rests on no session")
def an_extracted_fact_can_be_adopted(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    extracted = only_fact(store)
    adopted = add(store, "likes tea")
    assert (adopted.id, adopted.extractor) == (extracted.id, None)
    assert sources_of(adopted) == [(session, 1)]
    assert events(store, adopted.id) == [FactEvent.ADDED, FactEvent.EDITED]
    assert add(store, "likes tea") == adopted
    assert revision(store).changed == 2


@case("T2", "a fact that is edited is somebody's own, with what it said in its history")
def an_edited_fact_is_somebodys_own(store: Harness) -> None:
    teach(store, statement("likes tea"))
    fact = only_fact(store)
    store.clock.advance(5)
    changed = replace(fact, content="likes coffee", tags=("x",), metadata={"a": 1})
    edited = edit(store, fact.id, content="likes coffee", tags=("x",), metadata={"a": 1})
    assert edited == replace(changed, extractor=None, updated_at=store.now())
    assert store.handle.facts.get(SPACE, fact.id) == edited
    changes = store.handle.facts.history(SPACE, fact.id)
    assert [(change.event, change.content, change.by) for change in changes] == [
        (FactEvent.ADDED, "likes tea", "rules"),
        (FactEvent.EDITED, "likes coffee", "user"),
    ]
    assert [change.fact_id for change in changes] == [fact.id] * 2


@case("T2", "an unknown fact cannot be edited or deleted, and has no history")
def an_unknown_fact_is_not_there(store: Harness) -> None:
    add(store, "likes tea")
    before = facts(store), revision(store)
    assert edit(store, "nobody", content="x") is None
    assert store.handle.facts.delete(SPACE, "nobody", store.now()) is False
    assert store.handle.facts.get(SPACE, "nobody") is None
    assert store.handle.facts.history(SPACE, "nobody") == []
    assert (facts(store), revision(store)) == before


@case("T2", "a deleted fact is as if it were not there, at any time; its history stays")
def a_deleted_fact_is_not_there(store: Harness) -> None:
    fact = add(store, "likes tea", metadata={"a": 1}, tags=["x"])
    store.clock.advance(60)
    before = revision(store).changed
    assert store.handle.facts.delete(SPACE, fact.id, store.now()) is True
    assert revision(store).changed == before + 1
    assert store.handle.facts.delete(SPACE, fact.id, store.now()) is False
    assert edit(store, fact.id, content="likes tea") is None
    for at in (day(0), day(365)):
        assert store.handle.facts.search(SPACE, ["tea"], at, 10) == []
        assert store.handle.facts.search_metadata(SPACE, "a", 1, at, 10) == []
        assert store.handle.facts.count(SPACE, at) == 0
        assert facts(store, at) == facts(store, at, every=True) == []
    assert store.handle.facts.get(SPACE, fact.id) is None
    assert events(store, fact.id) == [FactEvent.ADDED, FactEvent.DELETED]


@case("T4", "a deleted statement does not come back from its sessions, and does from others")
def a_deleted_statement_stays_away(store: Harness) -> None:
    for key in ("one", "two"):
        teach(store, statement("likes tea"), key=key)
    store.handle.facts.delete(SPACE, only_fact(store).id, store.now())
    for is_whole in (False, True, True):
        for key in ("one", "two"):
            teach(store, statement("Likes tea!"), key=key, is_whole=is_whole)
    assert facts(store) == []
    third = teach(store, statement("likes tea"), key="three")
    assert sources_of(only_fact(store)) == [(third, 1)]


@case("T4", "an edited statement does not come back from its session")
def an_edited_statement_stays_away(store: Harness) -> None:
    teach(store, statement("likes tea"))
    for content in ("likes coffee", "likes water"):
        edit(store, only_fact(store).id, content=content)
    for is_whole in (False, True):
        teach(store, statement("likes tea"), statement("likes coffee"), is_whole=is_whole)
    assert contents(store) == ["likes water"]


@case("T4", "a statement that was replaced under its id does not come back from its session")
def a_replaced_statement_stays_away(store: Harness) -> None:
    teach(store, statement("likes tea"))
    fact = replace(only_fact(store), content="likes coffee")
    store.handle.facts.add(SPACE, fact, store.now(), store.new_id)
    teach(store, statement("likes tea"), is_whole=True)
    assert contents(store) == ["likes coffee"]
    add(store, "likes water", named=fact.id)  # and rests on nothing any more
    teach(store, statement("likes tea"), statement("likes coffee"), is_whole=True)
    assert contents(store) == ["likes water"]


def _take_back(store: Harness, how: str, fact: Fact) -> None:
    if how == "deleted":
        assert store.handle.facts.delete(SPACE, fact.id, store.now())
    elif how == "forgotten":
        assert store.handle.erasure.forget_fact(SPACE, fact.id, store.now()) is not None
    else:
        assert edit(store, fact.id, content="is nobody") is not None


@case("T4 P11", "what was taken back is believed when a person says it again in the same session")
def what_is_said_again_is_believed(store: Harness) -> None:
    for how in ("deleted", "edited", "forgotten"):
        said = f"likes {how} tea"
        session = teach(store, statement(said), key=how)
        _take_back(store, how, fact_named(store, said))
        agents = statement(said, 2, trust=Trust.AGENT)  # who has heard it before
        teach(store, statement(said), agents, key=how)
        assert said not in contents(store)
        teach(store, statement(said, 3), key=how)
        again = fact_named(store, said)
        assert sources_of(again) == [(session, 3)]
        for found in ((1,), (1, 3), (3,)):  # an extractor may name the first place alone
            places = [statement(said, seq) for seq in found]
            teach(store, *places, key=how, is_whole=True)
            assert fact_named(store, said) == again
        _take_back(store, how, again)
        teach(store, statement(said), statement(said, 3), key=how, is_whole=True)
        assert said not in contents(store)


@case("T4 P11", "what was said again stays, whatever becomes of what it was changed into before")
def what_was_said_again_stays(store: Harness) -> None:
    session = teach(store, statement("likes tea", quote="I do."))
    own = only_fact(store)
    edit(store, own.id, content="likes water")
    teach(store, statement("likes tea", 2))
    edit(store, own.id, content="likes milk")
    store.handle.erasure.forget_fact(SPACE, own.id, store.now())
    teach(store, statement("likes tea", 1), statement("likes tea", 2), is_whole=True)
    assert sources_of(only_fact(store)) == [(session, 2)], "which nobody took back"


@case("T4", "the id of a deleted fact can be used again")
def the_id_of_a_deleted_fact_can_be_used_again(store: Harness) -> None:
    add(store, "likes tea", named="mine")
    store.handle.facts.delete(SPACE, "mine", store.now())
    assert add(store, "likes coffee", named="mine").content == "likes coffee"
    assert contents(store) == ["likes coffee"]
    assert [event.value for event in events(store, "mine")] == ["added", "deleted", "added"]


@case("T4", "what somebody deleted they can add again")
def what_was_deleted_can_be_added_again(store: Harness) -> None:
    teach(store, statement("likes tea"))
    old = only_fact(store)
    store.handle.facts.delete(SPACE, old.id, store.now())
    new = add(store, "likes tea")
    assert new.id != old.id
    assert facts(store) == [new]
    # Even under its old id, while the other one lives.
    add(store, "likes tea", named=old.id)
    assert contents(store) == ["likes tea", "likes tea"]


@case("T2", "facts are listed by page, newest first, and repeat nothing under a standing clock")
def facts_are_listed_by_page(store: Harness) -> None:
    made = []
    for number in range(7):
        made.append(add(store, f"fact {number}"))
        store.clock.advance(number % 2)
    query = FactQuery(at=day(1))
    listed: list[Fact] = []
    page = store.handle.facts.list(SPACE, query, 3)
    while page:
        listed += page
        page = store.handle.facts.list(SPACE, replace(query, before=page[-1]), 3)
    assert sorted(listed, key=lambda fact: fact.id) == sorted(made, key=lambda fact: fact.id)
    assert [fact.created_at for fact in listed] == sorted(
        (fact.created_at for fact in made if fact.created_at), reverse=True
    )


@case("T2", "facts are listed by tag, whatever it says")
def facts_are_listed_by_tag(store: Harness) -> None:
    odd = ("a.b", 'say "hi"', "ü", "[0]", "$", "%", "' OR 1=1")
    for number, tag in enumerate(odd):
        add(store, f"fact {number}", tags=["every", tag])
    add(store, "untagged")
    for number, tag in enumerate(odd):
        found = store.handle.facts.list(SPACE, FactQuery(at=day(1), tag=tag), 10)
        assert [fact.content for fact in found] == [f"fact {number}"], tag
    every = store.handle.facts.list(SPACE, FactQuery(at=day(1), tag="every"), 10)
    assert len(every) == len(odd)
    assert store.handle.facts.list(SPACE, FactQuery(at=day(1), tag="ever"), 10) == []


@case("T2", "facts are listed by session, and by what they are about")
def facts_are_listed_by_session(store: Harness) -> None:
    one = teach(store, statement("likes tea"), statement("has a cat"), key="one")
    two = teach(store, statement("likes tea"), key="two")
    found = store.handle.facts.list(SPACE, FactQuery(at=day(1), session_id=one), 10)
    assert sorted(fact.content for fact in found) == ["has a cat", "likes tea"]
    [shared] = store.handle.facts.list(SPACE, FactQuery(at=day(1), session_id=two), 10)
    assert sorted(sources_of(shared)) == sorted([(one, 1), (two, 1)])
    for place, number in (("Lisbon", 0), ("Porto", 1)):
        teach(store, statement(place, said=day(number), topic="home"), key=place)
        [home] = store.handle.facts.list(SPACE, FactQuery(at=day(1), topic="home"), 10)
        assert home.content == place
    assert store.handle.facts.list(SPACE, FactQuery(at=day(1), topic="hom"), 10) == []


@case("T4", "a fact given without a source gains one from a session, and does not hang on it")
def a_sourceless_fact_gains_sources(store: Harness) -> None:
    own = add(store, "likes tea")
    session = teach(store, statement("likes tea"))
    fact = only_fact(store)
    assert (fact.id, fact.extractor, sources_of(fact)) == (own.id, None, [(session, 1)])
    teach(store, is_whole=True)
    assert fact_named(store, "likes tea").id == own.id


@case("T4", "a fact of which only tags, metadata or end were edited is known by its words still")
def an_edit_beside_the_words_keeps_them(store: Harness) -> None:
    teach(store, statement("likes tea"), key="one")
    own = add(store, "has a cat")
    edit(store, fact_named(store, "likes tea").id, tags=("drink",), content="Likes tea.")
    edit(store, own.id, metadata={"n": 1}, valid_to=day(900))
    for key in ("one", "two"):
        teach(store, statement("likes tea"), statement("has a cat"), key=key)
    teach(store, statement("likes tea"), key="one", is_whole=True)
    assert add(store, "likes TEA").tags == ("drink",)
    assert add(store, "has a cat").id == own.id
    assert contents(store) == ["Likes tea.", "has a cat"]
    assert [fact.source_count for fact in facts(store)] == [2, 2]


@case("T4", "an edited fact with an id of its own is still never merged")
def an_edited_named_fact_is_never_merged(store: Harness) -> None:
    add(store, "likes tea", named="mine")
    edit(store, "mine", tags=("drink",))
    teach(store, statement("likes tea"))
    assert add(store, "likes tea").id != "mine"
    assert contents(store) == ["likes tea", "likes tea"]


@case("T2", "an edit changes what it names and leaves the rest")
def an_edit_changes_what_it_names(store: Harness) -> None:
    fact = add(store, "likes tea", tags=["a"], metadata={"n": 1})
    assert edit(store, fact.id) == fact
    assert edit(store, fact.id, tags=()) == replace(fact, tags=())
    edited = edit(store, fact.id, metadata={})
    assert edited == replace(fact, tags=(), metadata={})
    assert edit(store, fact.id, content="likes x") == replace(edited, content="likes x")


@case("T2 T4", "a list gives the earliest sources of a fact, and how many there are")
def sources_are_limited(store: Harness) -> None:
    sources = [
        Source(session_id=f"s{number:04}", seq=number, seq_to=number + 1, quote=f"q{number}")
        for number in range(1100)
    ]
    for first in range(0, 1100, 10):
        fact = add(store, "likes tea", metadata={"a": 1}, sources=sources[first : first + 10])
        store.clock.advance(1)
    found = store.handle.facts
    listed = [
        found.list(SPACE, FactQuery(at=day(9)), 10),
        found.search(SPACE, ["tea"], day(9), 10),
        found.search_metadata(SPACE, "a", 1, day(9), 10),
    ]
    for [one] in listed:
        assert (one.sources, one.source_count) == (tuple(sources[:20]), 1100)
        assert one.source == "s0000"
    by_itself = found.get(SPACE, fact.id)
    assert by_itself is not None
    assert by_itself == fact
    assert (by_itself.sources, by_itself.source_count) == (tuple(sources[:1000]), 1100)


@case("T2 N5", "an edit may say whose word it is from then on, and says nothing of it otherwise")
def an_edit_may_say_whose_word_it_is(store: Harness) -> None:
    fact = add(store, "likes saffron")
    edited = edit(store, fact.id, content="likes thyme", trust=Trust.AGENT)
    assert edited is not None
    assert (edited.content, edited.trust) == ("likes thyme", Trust.AGENT)
    again = edit(store, fact.id, tags=("spice",))
    assert again is not None
    assert again.trust is Trust.AGENT


@case("T4 N5", "whose word an edit makes it stays so when a session is forgotten")
def an_edits_word_outlives_a_source(store: Harness) -> None:
    own = add(store, "likes thyme")
    said = (statement("likes thyme"), statement("likes saffron"))
    session = teach(store, *said, key="one")
    teach(store, *said, key="two")
    for fact in facts(store):
        edit(store, fact.id, trust=Trust.AGENT)
    store.handle.erasure.forget_session(SPACE, session, store.now())
    assert [fact.trust for fact in facts(store)] == [Trust.AGENT, Trust.AGENT]
    assert fact_named(store, "likes thyme").id == own.id

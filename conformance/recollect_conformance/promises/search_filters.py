"""Filters narrow a search down to what is asked for, and lose nothing that is older."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from recollect.messages import Role
from recollect.types.facts import Trust
from recollect.types.pages import Author, AuthorKind, Because, Content, Write
from recollect.types.recall import (
    AllOf,
    AnyOf,
    Condition,
    EntryKind,
    Filters,
    NoneOf,
    Operator,
    Reach,
    Sought,
    Where,
)
from recollect.types.records import KeyRef, Mode, SessionBirth
from recollect_conformance.case import case
from recollect_conformance.findings import (
    DOCUMENT,
    FACT,
    NEWEST,
    RECORD,
    SUMMARY,
    at,
    entries,
    found,
    learn_in,
    load,
    look,
    numbered,
    reaching,
    sum_up,
    tell,
    tell_in,
)
from recollect_conformance.harness import Harness
from recollect_conformance.lessons import add, day, edit, statement, teach
from recollect_conformance.pages import apply, place, write

FEW = reaching(5, postings=1)
MICROSECOND = timedelta(microseconds=1)
CROWD = NEWEST + 150  # more than is taken of one word, in an index and before it


def _open(store: Harness, key: str, agent: str = "coder", project: str | None = None) -> KeyRef:
    return store.key(key, agent=f"/user/{agent}", birth=SessionBirth(project=project))


def _crowd(store: Harness) -> None:
    """Many newer records of somebody else, which have the same word."""
    tell(store, *numbered("saffron", range(CROWD)), key="crowd", said=day(300))


def _asking(**given: object) -> Filters:
    return Filters(**given)  # type: ignore[arg-type]


@case("N1", "records are found by agent, project and session, however many newer ones others have")
def records_are_found_by_whose_they_are(store: Harness) -> None:
    for key, agent, project in (("a", "coder", "x"), ("b", "coder", None), ("c", "writer", "x")):
        tell_in(store, _open(store, key, agent, project), f"saffron {key}", "something else")
    _crowd(store)
    session = store.current(_open(store, "b")).id
    for asked, expected in (
        (_asking(agent="coder"), ["saffron a", "saffron b"]),
        (_asking(agent="writer"), ["saffron c"]),
        (_asking(project="x"), ["saffron a", "saffron c"]),
        (_asking(project="x", agent="coder"), ["saffron a"]),
        (_asking(session_id=session), ["saffron b"]),
        (_asking(session_id=session, project="x"), []),
        (_asking(agent="nobody"), []),
        (_asking(project=""), []),
    ):
        assert found(store, "saffron", filters=asked, reach=FEW) == expected, asked


@case("N1", "records are found by when they were said, from a moment up to before another")
def records_are_found_by_time(store: Harness) -> None:
    for number in range(4):
        tell(store, f"saffron {number}", said=day(10 + number))
    _crowd(store)
    for since, until, expected in (
        (None, day(14), [0, 1, 2, 3]),
        (day(11), day(13), [1, 2]),
        (day(11) + MICROSECOND, day(13) + MICROSECOND, [2, 3]),
        (day(12), day(12), []),
        (None, day(10), []),
    ):
        asked = Filters(since=since, until=until)
        texts = found(store, "saffron", filters=asked, reach=FEW)
        assert texts == [f"saffron {number}" for number in expected], (since, until)
    assert len(found(store, "saffron", filters=Filters(since=day(11)), reach=FEW)) == 5


@case("N1", "at another time only what had been said by then is found")
def records_are_found_as_of_a_time(store: Harness) -> None:
    for number in range(3):
        tell(store, f"saffron {number}", said=day(10 + number))
    _crowd(store)
    for moment, expected in ((day(9), 0), (day(10), 1), (day(12) - MICROSECOND, 2), (day(12), 3)):
        texts = found(store, "saffron", filters=Filters(as_of=moment), reach=FEW)
        assert len(texts) == expected, moment
    both = Filters(as_of=day(12), until=day(11))
    assert found(store, "saffron", filters=both) == ["saffron 0"]


@case("N1 T4", "facts are found as they were believed, now and at any other time")
def facts_are_found_as_of_a_time(store: Harness) -> None:
    for number, city in enumerate(("Rome", "Oslo"), 1):
        teach(store, statement(f"home {city}", said=day(number), topic="home"), key=city)
    teach(store, statement("home for now", said=day(1), valid_to=day(3)), key="short")
    for moment, expected in (
        (day(0), []),
        (day(1), ["home Rome", "home for now"]),
        (day(2), ["home Oslo", "home for now"]),
        (day(3), ["home Oslo"]),
    ):
        assert found(store, "home", FACT, filters=Filters(as_of=moment)) == expected, moment
        # Who asks about now, by a clock that is behind that of who said it, is told as well.
        stands = ["home Oslo", "home for now"] if moment < day(3) else ["home Oslo"]
        assert found(store, "home", FACT, now=moment) == stands, moment
    assert found(store, "home", FACT) == ["home Oslo"]
    [then] = [
        entry
        for entry in entries(store, "home", FACT, filters=Filters(as_of=day(1)))
        if "Rome" in entry.text
    ]
    assert then.is_superseded
    assert load(store, {FACT: [then.key]}) == []
    assert len(load(store, {FACT: [then.key]}, filters=Filters(as_of=day(1)))) == 1


@case("N1 T4", "at another time a fact is found by what it said then, and says that")
def facts_are_found_as_they_were_worded(store: Harness) -> None:
    at(store, day(10))
    fact = add(store, "saffron from Rome")
    at(store, day(20))
    edit(store, fact.id, tags=["spice"])
    at(store, day(30))
    edit(store, fact.id, content="saffron from Oslo")
    for moment, then, other in (
        (day(9), "", "Rome"),
        (day(15), "saffron from Rome", "Oslo"),
        (day(25), "saffron from Rome", "Oslo"),
        (day(30), "saffron from Oslo", "Rome"),
        (day(40), "saffron from Oslo", "Rome"),
    ):
        asked, expected = Filters(as_of=moment), [then] if then else []
        assert found(store, "saffron", FACT, filters=asked) == expected, moment
        assert found(store, then[-4:], FACT, filters=asked) == expected, moment
        assert found(store, other, FACT, filters=asked) == [], moment
        seen = entries(store, "saffron", FACT, filters=asked)
        assert [
            entry.text for entry in load(store, {FACT: [each.key for each in seen]}, filters=asked)
        ] == expected
    at(store, day(50))
    edit(store, fact.id, tags=[])
    assert found(store, "saffron", FACT, filters=Filters(as_of=day(40))) == ["saffron from Oslo"]


OWNERS = (("a", "coder", "x"), ("b", "coder", "y"), ("c", "writer", "x"))


@case("N1", "facts are found by when they were said and by whose sessions they rest on")
def facts_are_found_by_their_sources(store: Harness) -> None:
    for number, owner in enumerate(OWNERS, 10):
        at(store, day(number))
        learn_in(store, _open(store, *owner), statement(f"saffron {owner[0]}", said=day(number)))
    said = (statement(text, said=day(200)) for text in numbered("saffron", range(120)))
    teach(store, *said, key="crowd")
    session = store.current(_open(store, "b")).id
    for asked, expected in (
        (_asking(agent="coder"), ["saffron a", "saffron b"]),
        (_asking(project="x"), ["saffron a", "saffron c"]),
        (_asking(session_id=session), ["saffron b"]),
        (_asking(since=day(11), until=day(12)), ["saffron b"]),
        (_asking(until=day(11), project="x"), ["saffron a"]),
        (_asking(agent="writer", since=day(13)), []),
    ):
        assert found(store, "saffron", FACT, filters=asked, reach=FEW) == expected, asked


@case("N1", "what sessions came to is found by whose they are, by their time, and as of a time")
def summaries_are_found_by_filters(store: Harness) -> None:
    for number, owner in enumerate(OWNERS, 10):
        at(store, day(number))
        learn_in(store, _open(store, *owner), summary=f"saffron {owner[0]}")
    at(store, day(20))
    learn_in(store, _open(store, "late", "reader"), summary="saffron at last", said=day(10))
    session = store.current(_open(store, "b")).id
    for asked, expected in (
        (_asking(agent="coder"), ["saffron a", "saffron b"]),
        (_asking(project="x"), ["saffron a", "saffron c"]),
        (_asking(session_id=session), ["saffron b"]),
        (_asking(since=day(11)), ["saffron b", "saffron c"]),
        (_asking(until=day(11)), ["saffron a", "saffron at last"]),
        (_asking(as_of=day(11)), ["saffron a", "saffron b"]),
        (_asking(as_of=day(11) - MICROSECOND), ["saffron a"]),
        (_asking(as_of=day(20), until=day(11)), ["saffron a", "saffron at last"]),
        (_asking(as_of=day(9)), []),
    ):
        assert found(store, "saffron", SUMMARY, filters=asked) == expected, asked


@case("N1", "documents are found by when they changed; they are nobody's session")
def documents_are_found_by_time(store: Harness) -> None:
    for number in range(3):
        at(store, day(10 + number))
        write(store, f"page {number}", f"saffron {number}")
    for asked, expected in (
        (_asking(since=day(11)), ["saffron 1", "saffron 2"]),
        (_asking(until=day(11)), ["saffron 0"]),
        (_asking(as_of=day(11)), ["saffron 0", "saffron 1"]),
        (_asking(agent="assistant"), []),
        (_asking(project="x"), []),
        (_asking(session_id="any"), []),
    ):
        assert found(store, "saffron", DOCUMENT, filters=asked) == expected, asked
    at(store, day(20))
    write(store, "page 0", "saffron once more")
    assert found(store, "saffron", filters=_asking(as_of=day(15))) == ["saffron 1", "saffron 2"]


@case("N1", "what is committed is found by whoever's clock is behind")
def a_slow_clock_hides_nothing(store: Harness) -> None:
    at(store, day(10))
    write(store, "page", "saffron is written")
    sum_up(store, "saffron sums it up")
    tell(store, "saffron was said")
    assert len(found(store, "saffron", now=day(9))) == 3


@case("N1 N5", "entries are found by whose word they are")
def entries_are_found_by_trust(store: Harness) -> None:
    for role in (Role.USER, Role.ASSISTANT, Role.TOOL):
        tell(store, f"saffron {role}", role=role)
    said = (statement(f"saffron {trust} fact", trust=trust) for trust in Trust)
    teach(store, *said, key="facts")
    people = Because(author=Author(AuthorKind.PERSON, "ana"))
    agent = Because(author=Author(AuthorKind.AGENT, "coder"))
    for because in (people, agent):
        kind = because.author.kind
        page = Write(place=place(kind.value), content=Content(title="x", body=f"saffron {kind}"))
        apply(store, page, because=because)
    for trust, expected in (
        (Trust.USER, ["saffron person", "saffron user", "saffron user fact"]),
        (Trust.AGENT, ["saffron agent", "saffron agent fact", "saffron assistant"]),
        (Trust.TOOL, ["saffron tool", "saffron tool fact"]),
    ):
        assert found(store, "saffron", filters=_asking(trust=frozenset({trust}))) == expected
    assert len(found(store, "saffron", filters=_asking(trust=frozenset(Trust)))) == 8
    assert found(store, "saffron", filters=_asking(trust=frozenset())) == []


@case("N1 N5", "what an agent is told by another one is not a person's word")
def a_child_is_told_by_an_agent(store: Harness) -> None:
    child = store.key("child", birth=SessionBirth(parent="another"))
    tell_in(store, child, "saffron")
    assert [entry.trust for entry in entries(store, "saffron")] == [Trust.AGENT]


@case("N1 N5", "what an agent is told that nobody talks to is not a person's word")
def a_background_agent_is_told_by_nobody(store: Harness) -> None:
    for agent in ("/cron/nightly", "/subagent/helper", "/system/host"):
        tell_in(store, store.key(agent, agent=agent), f"saffron {agent}")
    tell(store, "saffron of a person")
    found_of = {entry.text: entry.trust for entry in entries(store, "saffron")}
    assert found_of.pop("saffron of a person") is Trust.USER
    assert len(found_of) == 3
    assert set(found_of.values()) == {Trust.AGENT}
    people = _asking(trust=frozenset({Trust.USER}))
    assert found(store, "saffron", filters=people) == ["saffron of a person"]


@case("N1 N5", "what people say and write is found, however much agents say that is newer")
def agents_hide_nobodys_word(store: Harness) -> None:
    tell(store, "saffron was said")
    write(store, "mine", "saffron was written")
    child = store.key("child", birth=SessionBirth(parent="another"))
    tell_in(store, child, *numbered("saffron", range(CROWD)))
    because = Because(author=Author(AuthorKind.AGENT, "coder"))
    for number in range(12):
        page = Write(place=place(f"{number}"), content=Content(title="x", body="saffron"))
        apply(store, page, because=because)
    people = _asking(trust=frozenset({Trust.USER}))
    assert found(store, "saffron", filters=people, reach=FEW) == [
        *("saffron was said", "saffron was written"),
    ]


@case("N1", "facts and documents are found by all of the tags that are asked for")
def entries_are_found_by_tags(store: Harness) -> None:
    add(store, "saffron one", tags=["a", "b"])
    add(store, "saffron two", tags=["a"])
    for path, tags in (("both", ("a", "b")), ("none", ())):
        content = Content(title="x", body=f"saffron {path}", tags=tags)
        apply(store, Write(place=place(path), content=content))
    tell(store, "saffron was said")
    assert found(store, "saffron", filters=_asking(tags=("a", "b"))) == [
        *("saffron both", "saffron one"),
    ]
    assert len(found(store, "saffron", filters=_asking(tags=("a",)))) == 3
    assert found(store, "saffron", filters=_asking(tags=("c",))) == []


SHEETS: dict[str, dict[str, Any]] = {
    "ripe": {"n": 1, "color": "Red", "tags": ["x", "y"], "day": "2026-02-01"},
    "green": {"n": 2.5, "color": "green", "ok": True},
    "bare": {},
    "odd": {"n": True, "color": None, "a.b": "c"},
}


def _where(field: str, operator: Operator, value: object) -> Condition:
    return Condition(field=field, operator=operator, value=value)


CONDITIONS: tuple[tuple[Where, list[str]], ...] = (
    (_where("n", Operator.EQ, 1), ["ripe"]),
    (_where("n", Operator.EQ, True), ["odd"]),
    (_where("n", Operator.NE, 1), ["bare", "green", "odd"]),
    (_where("n", Operator.GT, 1), ["green"]),
    (_where("n", Operator.GTE, 1), ["green", "ripe"]),
    (_where("n", Operator.LT, 2.5), ["ripe"]),
    (_where("day", Operator.LTE, "2026-02-01"), ["ripe"]),
    (_where("day", Operator.GT, 5), []),
    (_where("color", Operator.IN, ["Red", None]), ["odd", "ripe"]),
    (_where("color", Operator.NIN, ["Red"]), ["bare", "green", "odd"]),
    (_where("color", Operator.CONTAINS, "ree"), ["green"]),
    (_where("color", Operator.ICONTAINS, "RE"), ["green", "ripe"]),
    (_where("tags", Operator.CONTAINS, "x"), ["ripe"]),
    (_where("a.b", Operator.EXISTS, True), ["odd"]),
    (_where("color", Operator.EXISTS, False), ["bare"]),
    (AllOf((_where("n", Operator.GTE, 1), _where("ok", Operator.EQ, True))), ["green"]),
    (AnyOf((_where("n", Operator.EQ, 1), _where("a.b", Operator.EQ, "c"))), ["odd", "ripe"]),
    (NoneOf((_where("n", Operator.EXISTS, True), _where("ok", Operator.EQ, True))), ["bare"]),
    (AnyOf(()), []),
    (AllOf(()), ["bare", "green", "odd", "ripe"]),
)


@case("N1", "facts and records are found by their metadata, on any conditions")
def entries_are_found_by_metadata(store: Harness) -> None:
    ref = store.key()
    for name, sheet in SHEETS.items():
        add(store, f"saffron {name}", metadata=sheet)
        tell_in(store, ref, f"saffron {name}", metadata=json.dumps(sheet))
    for where, names in CONDITIONS:
        texts = sorted([f"saffron {name}" for name in names] * 2)
        assert found(store, "saffron", filters=_asking(where=where)) == texts, where


@case("N1", "what has a value of metadata is found, however many newer ones have another")
def others_metadata_hides_nothing(store: Harness) -> None:
    ref = store.key()
    sheets: list[dict[str, Any]] = [{"city": "Faro", "n": 1}]
    sheets += [{"city": "Porto"} for _ in range(CROWD)]
    for number, sheet in enumerate(sheets):
        tell_in(store, ref, f"saffron {number}", metadata=json.dumps(sheet))
    for number, sheet in enumerate(sheets[:130]):
        add(store, f"saffron fact {number}", metadata=sheet)
    few = reaching(1, postings=1)
    for where in (
        _where("city", Operator.EQ, "Faro"),
        _where("city", Operator.IN, ["Faro", "Oslo"]),
        AllOf((_where("n", Operator.EQ, 1.0), _where("city", Operator.CONTAINS, "a"))),
    ):
        texts = found(store, "saffron", filters=_asking(where=where), reach=few)
        assert texts == ["saffron 0", "saffron fact 0"], where
    for odd in ("\x00", "\ud800", float("nan"), float("inf"), ["x"], {"a": 1}, 10**400):
        assert found(store, "saffron", filters=_asking(where=_where("n", Operator.EQ, odd))) == []


@case("N1", "records that were said in a time that is named are found without a word of theirs")
def records_are_found_by_a_named_time(store: Harness) -> None:
    for number in range(6):
        tell(store, f"said {number}", said=day(10 + number))
    tell(store, "of another space", said=day(12), space="theirs")

    def named(start: int, end: int, timed: int = 100, **given: object) -> list[str]:
        sought = Sought(stems=(), times=((day(start), day(end)),))
        reach = Reach(beside=0, timed=timed)
        told = look(store, "", sought=sought, reach=reach, filters=_asking(**given))
        return [entry.text for entry in told.entries]

    assert sorted(named(11, 13)) == ["said 1", "said 2"]
    assert named(10, 16, timed=2) == ["said 5", "said 4"]
    assert sorted(named(10, 16, until=day(12))) == ["said 0", "said 1"]
    assert named(10, 16, kinds=frozenset({FACT})) == named(30, 40) == []


@case("N1", "of a time that is named, what is asked for is found among much else")
def a_named_time_is_narrowed_down(store: Harness) -> None:
    tell_in(store, _open(store, "a", "coder", "x"), "mine", said=day(10))
    tell(store, *(f"crowd {number}" for number in range(30)), said=day(11))
    sought = Sought(stems=(), times=((day(9), day(12)),))
    few = Reach(beside=0, timed=5)
    for asked in (_asking(agent="coder"), _asking(project="x"), _asking(until=day(11))):
        told = look(store, "", sought=sought, reach=few, filters=asked)
        assert [entry.text for entry in told.entries] == ["mine"], asked


@case("N1", "the two records before and after come along, of the same session only")
def neighbours_come_along(store: Harness) -> None:
    one, two = store.key("one"), store.key("two")
    for number in range(9):
        tell_in(store, one, "saffron" if number == 4 else f"one {number}")
        tell_in(store, two, f"two {number}")
    near = Reach(beside=1)
    assert found(store, "saffron", reach=near) == ["one 2", "one 3", "one 5", "one 6", "saffron"]
    assert found(store, "saffron") == ["saffron"]
    tell_in(store, one, "something else", "saffron")
    newest = found(store, "saffron", reach=near)
    assert newest == ["one 8", "saffron", "saffron", "something else"]
    store.reset(one)
    tell_in(store, one, "after the reset")
    assert "after the reset" not in found(store, "saffron", reach=near)


@case("N1", "what comes along passes the filters, and comes once")
def neighbours_pass_the_filters(store: Harness) -> None:
    ref = store.key()
    for number in range(6):
        role = Role.USER if number % 2 else Role.ASSISTANT
        text = "saffron" if number in (2, 3) else f"said {number}"
        tell_in(store, ref, text, said=day(10 + number), role=role)
    near = Reach(beside=10)
    assert len(found(store, "saffron", reach=near)) == 6
    users = _asking(trust=frozenset({Trust.USER}))
    assert found(store, "saffron", reach=near, filters=users) == ["saffron", "said 1", "said 5"]
    recent = _asking(since=day(12))
    assert "said 1" not in found(store, "saffron", reach=near, filters=recent)
    only_facts = _asking(kinds=frozenset({EntryKind.FACT}))
    assert found(store, "saffron", reach=near, filters=only_facts) == []


@case("G12 N1", "what was said where nothing may be learned is not found, nor hides anything")
def what_may_not_be_learned_is_not_found(store: Harness) -> None:
    tell(store, "saffron is known", said=day(19))
    for mode in (Mode.DISABLED, Mode.POLLUTED):
        ref = store.key(mode.value, birth=SessionBirth(mode=mode))
        tell_in(store, ref, *numbered("saffron", range(CROWD)), said=day(20))
    ephemeral = store.key("brief", birth=SessionBirth(ephemeral=True))
    tell_in(store, ephemeral, *numbered("saffron", range(20)), said=day(20))
    searcher = store.key("searcher", agent="/search-agent/x")
    tell_in(store, searcher, "saffron is sought", said=day(20))
    assert found(store, "saffron", reach=FEW) == ["saffron is known"]
    assert found(store, "saffron") == ["saffron is known"]
    named = Sought(stems=(), times=((day(19), day(21)),))
    [entry] = look(store, "", sought=named, reach=Reach(timed=5)).entries
    assert entry.text == "saffron is known"


@case("G12 N1", "a session is found again when something may be learned from it again")
def a_mode_decides_at_any_time(store: Harness) -> None:
    ref = store.key()
    tell_in(store, ref, "saffron")
    [entry] = entries(store, "saffron", RECORD)
    store.set_mode(ref, Mode.DISABLED)
    assert found(store, "saffron") == []
    assert load(store, {RECORD: [entry.key]}) == []
    store.set_mode(ref, Mode.ENABLED)
    assert found(store, "saffron") == ["saffron"]


@case("G12 N1", "what a session came to is not found while nothing may be learned from it")
def a_mode_decides_about_summaries(store: Harness) -> None:
    ref = store.key()
    learn_in(store, ref, summary="saffron")
    for mode in (Mode.DISABLED, Mode.POLLUTED):
        store.set_mode(ref, mode)
        assert found(store, "saffron", SUMMARY) == [], mode
    store.set_mode(ref, Mode.ENABLED)
    assert found(store, "saffron", SUMMARY) == ["saffron"]

"""Search follows every change: what is gone or was otherwise is not found. And uses are counted."""

from __future__ import annotations

from dataclasses import replace

from recollect.ids import Randomness
from recollect.types.facts import Source
from recollect.types.recall import Entry, EntryKind, Filters, Sought, UsageKind
from recollect_conformance.case import case
from recollect_conformance.findings import (
    DOCUMENT,
    FACT,
    LATER,
    NEWEST,
    RECORD,
    SUMMARY,
    entries,
    extent,
    found,
    load,
    look,
    numbered,
    reaching,
    sum_up,
    tell,
    tell_in,
    use,
    uses,
)
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import (
    NOTHING,
    add,
    day,
    draft,
    edit,
    extraction,
    fact_named,
    learn,
    lesson,
    statement,
    teach,
)
from recollect_conformance.pages import delete, move, place, restore, write

SEED = 20261115
WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot")
EVERYTHING = reaching(5 * NEWEST)


def _only(store: Harness, text: str, *, space: str = SPACE) -> Entry:
    [entry] = entries(store, text, space=space)
    return entry


def _assert_gone(store: Harness, word: str, kind: EntryKind, key: int) -> None:
    assert found(store, word) == []
    assert load(store, {kind: [key]}) == []


@case("T5 T2", "a fact is found by what it says, and not when it is deleted or over")
def facts_are_found_as_they_are(store: Harness) -> None:
    fact = add(store, "likes saffron")
    before = _only(store, "saffron")
    edit(store, fact.id, content="likes ginger")
    assert found(store, "saffron") == []
    assert found(store, "ginger") == ["likes ginger"]
    assert [entry.text for entry in load(store, {FACT: [before.key]})] == ["likes ginger"]
    edit(store, fact.id, tags=("x",))
    assert _only(store, "ginger").tags == ("x",)
    store.handle.facts.delete(SPACE, fact.id, store.now())
    _assert_gone(store, "ginger", FACT, before.key)
    short = add(store, "likes nutmeg")
    edit(store, short.id, valid_to=day(5))
    assert found(store, "nutmeg", now=day(4)) == ["likes nutmeg"]
    assert found(store, "nutmeg", now=day(5)) == []


@case("T5 T4", "a fact that was superseded is not found, and is again when that is forgotten")
def superseded_facts_are_not_found(store: Harness) -> None:
    teach(store, statement("home Rome", said=day(1), topic="home"), key="one")
    newer = teach(store, statement("home Oslo", said=day(2), topic="home"), key="two")
    assert found(store, "home") == ["home Oslo"]
    store.handle.erasure.forget_session(SPACE, newer, store.now())
    assert found(store, "home") == ["home Rome"]


@case("T5 T4", "what was replaced or is over is found by who asks for it, and says what holds")
def ended_facts_are_found_on_request(store: Harness) -> None:
    teach(store, statement("home Rome", said=day(1), topic="home"), key="one")
    teach(store, statement("home Oslo", said=day(2), topic="home"), key="two")
    short = add(store, "home fire burns")
    edit(store, short.id, valid_to=day(5))
    gone = add(store, "home brewed beer")
    store.handle.facts.delete(SPACE, gone.id, store.now())
    past = Filters(kinds=frozenset({FACT}), or_past=True)
    then = {entry.text: entry for entry in entries(store, "home", filters=past)}
    assert then.keys() == {"home Rome", "home Oslo", "home fire burns"}, "never what is deleted"
    assert (then["home Rome"].until, then["home Rome"].replaced_by) == (day(2), "home Oslo")
    assert (then["home fire burns"].until, then["home fire burns"].replaced_by) == (day(5), "")
    assert entries(store, "home", space="another", filters=past) == []
    keys = {FACT: [then["home Rome"].key]}
    assert load(store, keys) == []
    [whole] = store.handle.search.load(SPACE, keys, past, LATER)
    assert (whole.replaced_by, len(whole.sources)) == ("home Oslo", 1)


@case("T5 T4", "the facts that were replaced last come with what took their place")
def what_changed_is_found(store: Harness) -> None:
    for number, home in enumerate(("Rome", "Oslo", "Kyiv"), start=1):
        teach(store, statement(f"home {home}", said=day(number), topic="home"), key=home)
    add(store, "likes tea")
    past = Filters(kinds=frozenset({FACT}), or_past=True)

    def changed(count: int, space: str = SPACE) -> set[str]:
        sought = Sought(stems=(), replaced=count)
        found = look(store, "zebra", space=space, filters=past, sought=sought)
        return {entry.text for entry in found.entries}

    assert changed(0) == set()
    assert changed(1) == {"home Oslo", "home Kyiv"}
    assert changed(5) == {"home Rome", "home Oslo", "home Kyiv"}
    assert changed(5, "another") == set()


@case("T5 X8", "a fact that a run over the whole session does not find again is not found")
def withdrawn_facts_are_not_found(store: Harness) -> None:
    teach(store, statement("likes saffron"), statement("likes ginger"))
    teach(store, statement("likes ginger"), is_whole=True)
    assert found(store, "saffron", FACT) == []
    assert found(store, "ginger", FACT) == ["likes ginger"]


@case("T5 D4", "a document is found where it stands and by what it says now")
def documents_are_found_as_they_are(store: Harness) -> None:
    write(store, "a/b", "saffron")
    first = _only(store, "saffron")
    write(store, "a/b", "ginger")
    assert found(store, "saffron") == []
    move(store, "a", "c")
    assert (_only(store, "ginger").id, _only(store, "ginger").key) == ("~/c/b", first.key)
    delete(store, "c/b")
    _assert_gone(store, "ginger", DOCUMENT, first.key)
    restore(store, "c/b")
    assert _only(store, "ginger").id == "~/c/b"
    delete(store, "c/b")
    store.handle.documents.purge(SPACE, place("c"))
    assert found(store, "ginger") == []
    assert extent(store, "ginger", DOCUMENT).entries == 0


@case("T5 X9", "what a session came to is found as it is now, and not when it comes to nothing")
def extractions_are_found_as_they_are(store: Harness) -> None:
    session = sum_up(store, "about saffron", memory="- saffron")
    key = _only(store, "saffron").key
    learn(store, lesson(draft(memory="- ginger", summary="about ginger"), is_whole=True))
    assert found(store, "saffron") == []
    entry = _only(store, "ginger")
    assert (entry.id, entry.key, entry.text) == (session, key, "about ginger")
    learn(store, lesson(NOTHING, is_whole=True))
    _assert_gone(store, "ginger", SUMMARY, key)
    sum_up(store, "about nutmeg")
    assert found(store, "nutmeg") == ["about nutmeg"]
    assert found(store, "ginger") == []


@case("P11", "nothing of a forgotten session is found, before an index takes it and after")
def nothing_forgotten_is_found(store: Harness) -> None:
    for size in (3, NEWEST - 1, NEWEST, NEWEST + 30):
        key = f"key {size}"
        tell(store, "saffron is kept", key="kept")
        tell(store, *numbered("saffron", range(size)), key=key)
        session = teach(store, statement("likes saffron"), key=key)
        sum_up(store, "about saffron", key=key)
        assert len(found(store, "saffron", reach=EVERYTHING)) >= size + 3
        keys = [entry.key for entry in entries(store, "saffron", RECORD)]
        store.handle.erasure.forget_session(SPACE, session, store.now())
        texts = found(store, "saffron", reach=EVERYTHING)
        assert set(texts) == {"saffron is kept"}, size
        assert {entry.text for entry in load(store, {RECORD: keys})} <= {"saffron is kept"}
        assert found(store, "saffron1") == []


@case("P11 T1", "what is purged or trimmed is not found; what stays and what follows is")
def purged_records_are_not_found(store: Harness) -> None:
    ref = store.key()
    tell_in(store, ref, *numbered("saffron", range(NEWEST + 20)))
    store.records.trim(ref, 5)
    assert len(found(store, "saffron", reach=EVERYTHING)) == 5
    assert found(store, "saffron3") == []
    store.records.purge(ref, store.now())
    assert found(store, "saffron") == []
    said = numbered("saffron", range(NEWEST + 20))
    tell_in(store, ref, *said)
    assert found(store, "saffron", reach=EVERYTHING) == sorted(said)


@case("N1 M5", "a rotated session is found as before, and what a compaction keeps comes once")
def rotated_sessions_are_found(store: Harness) -> None:
    ref = store.key()
    tell_in(store, ref, "saffron one", "saffron two")
    store.compact(ref, retain=2)
    tell_in(store, ref, "saffron three")
    store.reset(ref)
    store.end(ref)
    assert found(store, "saffron") == ["saffron one", "saffron three", "saffron two"]


@case("T5", "after any appends and deletions a search finds what a look at every record finds")
def a_search_of_records_is_as_good_as_a_scan(store: Harness) -> None:
    choice = Randomness(SEED)
    known: dict[str, list[str]] = {}
    for step in range(60):
        key = f"key {choice.choice(range(8))}"
        match choice.choice(("tell", "tell", "tell", "many", "purge", "forget")):
            case "purge" if key in known:
                store.records.purge(store.key(key), store.now())
                del known[key]
            case "forget" if key in known:
                session = store.current(store.key(key)).id
                store.handle.erasure.forget_session(SPACE, session, store.now())
                del known[key]
            case kind:
                count = choice.choice((60, 130, 256)) if kind == "many" else 3
                said = [
                    f"{' '.join(choice.choices(WORDS, k=2))} step{step} number{number}"
                    for number in range(count)
                ]
                tell(store, *said, key=key)
                known.setdefault(key, []).extend(said)
    every = [text for texts in known.values() for text in texts]
    assert len(every) > NEWEST, "hardly anything is left to search"
    for word in WORDS:
        expected = sorted(text for text in every if word in text.split())
        texts = found(store, word, reach=replace(reaching(len(every)), postings=10**6))
        assert texts == expected, word


@case("N3", "each kind of usage is counted once in a turn, apart from the others")
def a_use_is_counted_once_in_a_turn(store: Harness) -> None:
    fact = add(store, "likes saffron")
    entry = _only(store, "saffron")
    assert uses(store, entry) == {}
    for kind in UsageKind:
        assert use(store, "turn 1", entry, kind=kind) == 1
        again = use(store, "turn 1", entry, kind=kind)
        assert again == use(store, "turn 1", entry, entry, kind=kind) == 0
    assert use(store, "turn 2", entry, entry, kind=UsageKind.SHOWN) == 1
    assert use(store, "turn 2") == 0
    assert uses(store, entry) == {UsageKind.SHOWN: 2, UsageKind.OPENED: 1, UsageKind.CITED: 1}
    assert _only(store, "saffron").usage_count == 2
    stored = fact_named(store, fact.content)
    assert (stored.usage_count, stored.shown_count) == (2, 2)


@case("N3 G2", "what is only shown was not used, and neither was the session it comes from")
def to_be_shown_is_not_to_be_used(store: Harness) -> None:
    session = teach(store, statement("likes saffron"))
    tell(store, "ginger was said")
    other = sum_up(store, "about nutmeg", key="other")
    shown = [_only_fact(store, "saffron"), _only(store, "ginger"), _only(store, "nutmeg")]
    for number in range(5):
        assert use(store, f"turn {number}", *shown, kind=UsageKind.SHOWN) == 3
    fact = fact_named(store, "likes saffron")
    assert (fact.usage_count, fact.last_usage, fact.shown_count) == (0, None, 5)
    for each in (session, other):
        made = extraction(store, each)
        assert (made.usage_count, made.last_usage) == (0, None)
    assert [uses(store, entry) for entry in shown] == [{UsageKind.SHOWN: 5}] * 3


@case("N3", "what is used is counted, whatever kind it is of, and each on its own")
def every_kind_is_counted(store: Harness) -> None:
    tell(store, "saffron was said")
    add(store, "saffron is a fact")
    sum_up(store, "saffron sums it up", key="other")
    write(store, "page", "saffron is written")
    four = entries(store, "saffron")
    assert use(store, "turn", *four, kind=UsageKind.OPENED) == 4
    for entry in four:
        assert uses(store, entry) == {UsageKind.OPENED: 1}, entry.kind
        assert uses(store, replace(entry, id="another")) == {}


@case("N3 X9", "a use counts for the fact and for the sessions that it rests on")
def a_use_counts_for_its_grounds(store: Harness) -> None:
    one = teach(store, statement("likes saffron"), key="one")
    two = teach(store, statement("likes saffron"), key="two")
    other = teach(store, statement("likes ginger"), key="three")
    entry = _only_fact(store, "saffron")
    store.clock.advance(60)
    use(store, "turn 1", entry)
    use(store, "turn 1", entry)
    use(store, "turn 2", entry, kind=UsageKind.OPENED)
    fact = fact_named(store, "likes saffron")
    assert (fact.usage_count, fact.last_usage) == (2, store.now())
    for session, count in ((one, 2), (two, 2), (other, 0)):
        made = extraction(store, session)
        last = store.now() if count else None
        assert (made.usage_count, made.last_usage) == (count, last)
    assert fact_named(store, "likes ginger").usage_count == 0


def _only_fact(store: Harness, text: str) -> Entry:
    [entry] = entries(store, text, FACT)
    return entry


@case("N3", "a summary and a record that are used count for their session")
def a_record_counts_for_its_session(store: Harness) -> None:
    session = sum_up(store, "about saffron")
    tell(store, "ginger was said")
    use(store, "turn", _only(store, "saffron"), _only(store, "ginger"))
    assert extraction(store, session).usage_count == 2
    assert _only(store, "saffron").usage_count == 2


@case("N3 P9", "a use is counted in its own space")
def a_use_is_counted_in_its_space(store: Harness) -> None:
    for space in (SPACE, "theirs"):
        add(store, "likes saffron", named="same", space=space)
    mine, their = _only(store, "saffron"), _only(store, "saffron", space="theirs")
    use(store, "turn", mine)
    assert uses(store, their, space="theirs") == {}
    assert _only(store, "saffron", space="theirs").usage_count == 0
    assert use(store, "turn", their, space="theirs") == 1
    assert uses(store, mine) == {UsageKind.CITED: 1}


@case("N3 P11", "what was used of a forgotten session is forgotten")
def uses_of_forgotten_sessions_are_gone(store: Harness) -> None:
    session = teach(store, statement("likes saffron"))
    kept = add(store, "likes ginger")
    tell(store, "nutmeg was said")
    used = [_only_fact(store, "saffron"), _only_fact(store, "ginger"), _only(store, "nutmeg")]
    use(store, "turn", *used)
    store.handle.erasure.forget_session(SPACE, session, store.now())
    assert [uses(store, entry) for entry in used] == [{}, {UsageKind.CITED: 1}, {}]
    assert fact_named(store, "likes ginger").id == kept.id


@case("N3 P11 D6", "what was used of a document goes when it is purged")
def uses_of_purged_documents_are_gone(store: Harness) -> None:
    for path, text in (("one", "saffron"), ("two", "ginger")):
        write(store, path, text)
    used = [_only(store, "saffron"), _only(store, "ginger")]
    use(store, "turn", *used)
    store.handle.documents.purge(SPACE, place("one"))
    assert [uses(store, entry) for entry in used] == [{}, {UsageKind.CITED: 1}]


@case("N3 P9 P11", "only what a space has, and has still, is counted as used")
def uses_are_of_what_there_is(store: Harness) -> None:
    session = teach(store, statement("likes saffron"))
    sum_up(store, "about nutmeg", key="other")
    tell(store, "ginger was said")
    used = [_only_fact(store, "saffron"), _only(store, "ginger"), _only(store, "nutmeg")]
    assert use(store, "turn", *used, space="theirs") == 0
    assert [uses(store, entry, space="theirs") for entry in used] == [{}, {}, {}]
    store.handle.erasure.forget_session(SPACE, session, store.now())
    assert use(store, "later", *used) == 1


@case("N3", "old uses are dropped, and what they were counted into stays")
def old_uses_are_dropped(store: Harness) -> None:
    for space in (SPACE, "theirs"):
        add(store, "likes saffron", space=space)
    mine, their = _only(store, "saffron"), _only(store, "saffron", space="theirs")
    use(store, "old", mine)
    use(store, "old", their, space="theirs")
    store.clock.advance(60)
    moment = store.now()
    use(store, "new", mine)
    assert store.handle.search.prune(moment) == 2
    assert store.handle.search.prune(moment) == 0
    assert uses(store, mine) == {UsageKind.CITED: 1}
    assert uses(store, their, space="theirs") == {}
    assert _only(store, "saffron").usage_count == 2


@case("N3", "turns that end at once are counted once each")
def uses_at_once_are_counted_once(store: Harness) -> None:
    said = [statement(f"saffron {number}") for number in range(4)]
    session = teach(store, *said)
    four = entries(store, "saffron", FACT)

    def turn(number: int) -> int:
        return use(store, f"turn {number // 3}", *(four if number % 2 else four[::-1]))

    counted = store.at_once(*(lambda number=number: turn(number) for number in range(9)))
    assert sum(counted) == 12
    assert {entry.usage_count for entry in entries(store, "saffron", FACT)} == {3}
    assert extraction(store, session).usage_count == 12


@case("N1 P9", "a source that a hit names is used in this space only")
def a_use_reaches_no_other_space(store: Harness) -> None:
    session = teach(store, statement("likes saffron"), space="theirs")
    mine = add(
        store, "likes saffron", sources=[Source(session_id=session, seq=1, seq_to=1, quote="x")]
    )
    use(store, "turn", _only(store, "saffron"))
    assert extraction(store, session, space="theirs").usage_count == 0
    assert fact_named(store, mine.content).usage_count == 1

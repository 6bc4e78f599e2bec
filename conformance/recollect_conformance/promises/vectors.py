"""Vectors: what has none is found, what was made is kept, and it goes with what it is of."""

from __future__ import annotations

import struct
from dataclasses import replace

from recollect.types.recall import EntryKind, NewVector, Unembedded, VectorChanges
from recollect.types.records import Mode
from recollect_conformance.case import case
from recollect_conformance.findings import sum_up, tell
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import add, edit, fact_named
from recollect_conformance.pages import place, write

MODEL, OTHER = "table/1", "table/2"
MANY = 1000
A_DAY = 86_400.0


def _pending(store: Harness, model: str = MODEL) -> dict[tuple[str, str], Unembedded]:
    """What has no vector, by its space and its text."""
    found = store.handle.vectors.pending(model, MANY)
    return {(entry.space, entry.text): entry for entry in found if entry.text}


def _texts(store: Harness, model: str = MODEL) -> set[str]:
    return {text for _, text in _pending(store, model)}


def _embed(store: Harness, model: str = MODEL) -> None:
    """A vector for all that has none: how long its text is."""
    pending = store.handle.vectors.pending(model, MANY)
    made = [NewVector(entry=entry, vector=_vector(entry.text)) for entry in pending]
    assert store.handle.vectors.put(model, made) == len(pending)
    assert store.handle.vectors.pending(model, MANY) == []


def _vector(text: str) -> bytes:
    return len(text).to_bytes(8, "little") if text else b""


def _changes(
    store: Harness, after: int = 0, dropped: int = 0, *, space: str = SPACE, model: str = MODEL
) -> VectorChanges:
    return store.handle.vectors.changes(space, model, after, dropped, MANY)


def _kept(
    store: Harness, *, space: str = SPACE, model: str = MODEL
) -> dict[tuple[str, int], bytes]:
    added = _changes(store, space=space, model=model).added
    return {(kind, key): vector for _, kind, key, vector in added if vector}


@case("N1", "everything that can be found has no vector at first, and one when it was made")
def every_kind_is_embedded(store: Harness) -> None:
    tell(store, "a record")
    add(store, "a fact")
    write(store, "page", "a page", title="Title")
    sum_up(store, "a summary", key="summed up")
    assert {"a record", "a fact", "a summary"} < _texts(store)
    assert any("a page" in text for text in _texts(store))
    _embed(store)
    assert _texts(store) == set()
    assert {kind for kind, _ in _kept(store)} == set(EntryKind)
    assert set(_kept(store).values()) >= {_vector("a record"), _vector("a fact")}
    tell(store, "another record")
    assert _texts(store) == {"another record"}


@case("N1", "what one space has without a vector is found without that of another")
def one_space_is_embedded_alone(store: Harness) -> None:
    for space in (SPACE, "space-b"):
        tell(store, f"a record of {space}", space=space)
        add(store, f"a fact of {space}", space=space)
        write(store, "page", f"a page of {space}", title="Title", space=space)
        sum_up(store, f"a summary of {space}", key="summed up", space=space)
    every = [each for each in store.handle.vectors.pending(MODEL, MANY) if each.text]
    for space in (SPACE, "space-b"):
        found = [each for each in store.handle.vectors.pending(MODEL, MANY, space) if each.text]
        assert {each.kind for each in found} == set(EntryKind)
        assert found == [each for each in every if each.space == space]


@case("N1", "a batch is as large as asked for, and the next goes on from there")
def embedding_comes_in_batches(store: Harness) -> None:
    for number in range(5):
        add(store, f"fact {number}")
    tell(store, *(f"record {number}" for number in range(5)))
    seen: list[str] = []
    while len(seen) < 10:
        pending = store.handle.vectors.pending(MODEL, 3)
        assert 0 < len(pending) <= 3
        seen += [entry.text for entry in pending]
        made = [NewVector(entry=entry, vector=b"12345678") for entry in pending]
        store.handle.vectors.put(MODEL, made)
    assert store.handle.vectors.pending(MODEL, 3) == []
    assert sorted(seen) == sorted([f"{what} {n}" for what in ("fact", "record") for n in range(5)])


@case("N1 P9", "vectors are told to their own space, and once")
def changes_are_told_once(store: Harness) -> None:
    add(store, "ours")
    add(store, "theirs!", space="elsewhere")
    _embed(store)
    ours = _changes(store)
    assert [row[3] for row in ours.added] == [_vector("ours")]
    assert list(_kept(store, space="elsewhere").values()) == [_vector("theirs!")]
    assert _kept(store, model=OTHER) == {}
    again = _changes(store, ours.upto, ours.dropped_upto)
    assert (again.added, again.dropped, again.is_all) == ([], [], True)
    assert (again.upto, again.dropped_upto) == (ours.upto, ours.dropped_upto)


@case("N1", "a page of changes says that there are more")
def changes_come_in_pages(store: Harness) -> None:
    for number in range(5):
        add(store, f"fact {number}")
    _embed(store)
    first = store.handle.vectors.changes(SPACE, MODEL, 0, 0, 3)
    assert (len(first.added), first.is_all) == (3, False)
    rest = store.handle.vectors.changes(SPACE, MODEL, first.upto, first.dropped_upto, 3)
    assert (len(rest.added), rest.is_all) == (2, True)


@case("N1 P5", "what has changed since it was read keeps no vector of what it said before")
def a_late_vector_is_not_kept(store: Harness) -> None:
    add(store, "a fact")
    write(store, "page", "before")
    pending = list(_pending(store).values())
    edit(store, fact_named(store, "a fact").id, content="another fact")
    write(store, "page", "after")
    store.handle.vectors.put(MODEL, [NewVector(entry=each, vector=b"1") for each in pending])
    assert _kept(store) == {}
    assert "another fact" in _texts(store)


@case("N1 P11", "a vector goes when what it is of changes, and that is told")
def a_change_drops_the_vector(store: Harness) -> None:
    add(store, "a fact")
    write(store, "page", "before")
    session = sum_up(store, "a summary")
    _embed(store)
    seen, before = _changes(store), set(_kept(store))
    edit(store, fact_named(store, "a fact").id, content="another fact")
    write(store, "page", "after")
    assert sum_up(store, "another summary") == session
    gone = _changes(store, seen.upto, seen.dropped_upto)
    changed = {kind for kind, _ in gone.dropped}
    assert changed == {EntryKind.FACT, EntryKind.DOCUMENT, EntryKind.SUMMARY}
    assert before - set(_kept(store)) == set(gone.dropped)
    _embed(store)
    assert _vector("another fact") in _kept(store).values()


@case("N1 P11", "a vector goes with what it is of")
def a_vector_goes_with_its_entry(store: Harness) -> None:
    tell(store, "a record")
    session = sum_up(store, "a summary")
    write(store, "page", "a page")
    _embed(store)
    seen = _changes(store)
    store.handle.erasure.forget_session(SPACE, session, store.now())
    store.handle.documents.purge(SPACE, place("page"))
    gone = _changes(store, seen.upto, seen.dropped_upto)
    assert {kind for kind, _ in gone.dropped} >= {
        EntryKind.RECORD,
        EntryKind.SUMMARY,
        EntryKind.DOCUMENT,
    }
    assert _kept(store) == {}


@case("N1 M4", "records from which nothing may be learned are passed, without a vector")
def what_is_not_remembered_has_no_vector(store: Harness) -> None:
    ref = store.key("off")
    store.sessions.set_mode(ref, Mode.DISABLED, store.now())
    tell(store, "between us", key="off")
    tell(store, "for all", key="on")
    assert _texts(store) == {"for all"}
    _embed(store)
    assert list(_kept(store).values()) == [_vector("for all")]
    assert store.handle.vectors.pending(MODEL, MANY) == []


@case("N1 M4", "what was passed over in a session has a vector when it may be remembered again")
def what_is_remembered_again_is_embedded(store: Harness) -> None:
    ref = store.key("off")
    store.sessions.set_mode(ref, Mode.DISABLED, store.now())
    tell(store, "between us", key="off")
    tell(store, "for all", key="on")
    before = store.handle.vectors.pending(MODEL, MANY)
    _embed(store)
    store.sessions.set_mode(ref, Mode.ENABLED, store.now())
    assert _texts(store) == {"between us"}
    late = [NewVector(entry=entry, vector=b"") for entry in before]
    store.handle.vectors.put(MODEL, late)  # by somebody who has not heard of it
    assert _texts(store) == {"between us"}
    _embed(store)
    assert _vector("between us") in _kept(store).values()


def _delete_others(store: Harness, model: str, limit: int = MANY) -> bool:
    return store.handle.vectors.delete_others(model, store.now(), limit)


@case("N1", "another model has vectors of its own, and those of the first go when it is not used")
def another_model_begins_anew(store: Harness) -> None:
    add(store, "a fact")
    tell(store, "a record")
    _embed(store)
    assert _texts(store, OTHER) == {"a fact", "a record"}
    _embed(store, OTHER)
    store.handle.vectors.use(OTHER, store.now())
    store.clock.advance(A_DAY)
    assert _delete_others(store, OTHER, 1)
    for _ in range(10):
        _delete_others(store, OTHER, 1)
    assert _kept(store) == {}
    assert len(_kept(store, model=OTHER)) == 2
    assert not _delete_others(store, OTHER, 1)
    assert _texts(store) == {"a fact", "a record"}


@case("N1 X11", "a model that somebody uses keeps its vectors, whoever else uses another")
def a_model_that_is_used_keeps_its_vectors(store: Harness) -> None:
    add(store, "a fact")
    for _ in range(3):
        for model in (MODEL, OTHER):
            pending = store.handle.vectors.pending(model, MANY)
            store.handle.vectors.put(model, [NewVector(entry=e, vector=b"1") for e in pending])
            store.handle.vectors.use(model, store.now())
            assert not _delete_others(store, model)
        store.clock.advance(A_DAY / 2)
    assert _kept(store).keys() == _kept(store, model=OTHER).keys() != set()


@case("N1", "what a model's vectors were is not told to who holds those of another")
def a_model_that_goes_takes_nothing_along(store: Harness) -> None:
    tell(store, "a record")
    add(store, "a fact")
    for model in (MODEL, OTHER):
        _embed(store, model)
        store.handle.vectors.use(model, store.now())
    seen = _changes(store, model=OTHER)
    store.clock.advance(A_DAY)
    store.handle.vectors.use(OTHER, store.now())
    while _delete_others(store, OTHER):
        pass
    since = _changes(store, seen.upto, seen.dropped_upto, model=OTHER)
    assert (since.added, since.dropped) == ([], [])
    assert _kept(store) == {}


@case("N1 P11", "what went and has a vector again is told as come, not as gone")
def what_came_again_is_not_told_as_gone(store: Harness) -> None:
    fact = add(store, "a fact")
    _embed(store)
    seen = _changes(store)
    edit(store, fact.id, content="another fact")
    _embed(store)
    since = _changes(store, seen.upto, seen.dropped_upto)
    assert [row[3] for row in since.added] == [_vector("another fact")]
    assert since.dropped == []


@case("N1", "whoever holds nothing yet is not told of what went")
def who_holds_nothing_is_told_of_nothing_that_went(store: Harness) -> None:
    fact, kept = add(store, "a fact"), add(store, "kept")
    _embed(store)
    for number in range(5):
        edit(store, fact.id, content=f"fact {number}")
        _embed(store)
    store.handle.facts.delete(SPACE, fact.id, store.now())
    changes = store.handle.vectors.changes(SPACE, MODEL, 0, 0, 3)
    assert changes.dropped == []
    assert changes.is_all
    edit(store, kept.id, content="changed")
    since = _changes(store, changes.upto, changes.dropped_upto)
    assert [kind for kind, _ in since.dropped] == [EntryKind.FACT]


@case("N1", "a record that others overtook has its turn, however many they are")
def an_overtaken_record_is_embedded(store: Harness) -> None:
    tell(store, "overtaken", *(f"record {number}" for number in range(2100)))
    [first, *others] = store.handle.vectors.pending(MODEL, 2 * MANY + 200)
    assert first.text == "overtaken"
    store.handle.vectors.put(MODEL, [NewVector(entry=each, vector=b"1") for each in others])
    assert store.handle.vectors.pending(MODEL, MANY) == [first]


@case("N1 P11", "the vector of a record that is gone is nobody's, whoever has its number now")
def a_number_that_comes_again_has_no_vector_of_before(store: Harness) -> None:
    ref = store.key("gone")
    tell(store, "a secret", key="gone")
    late = [NewVector(entry=each, vector=b"1") for each in store.handle.vectors.pending(MODEL, 9)]
    session = store.current(ref).id
    store.handle.erasure.forget_session(SPACE, session, store.now())
    tell(store, "bananas", key="another")
    store.handle.vectors.put(MODEL, late)
    assert _kept(store) == {}
    assert _texts(store) == {"bananas"}


@case("N1", "a record with the number of one that is gone gets a vector of its own")
def a_number_that_comes_again_is_embedded(store: Harness) -> None:
    ref = store.key()
    tell(store, *(f"record {number}" for number in range(20)))
    _embed(store)
    store.records.purge(ref, store.now())
    tell(store, "a new record", key="another")
    assert _texts(store) == {"a new record"}
    _embed(store)
    assert list(_kept(store).values()) == [_vector("a new record")]


@case("N1", "what was told as pending twice is kept once")
def a_vector_is_kept_once(store: Harness) -> None:
    add(store, "a fact")
    [entry] = _pending(store).values()
    for vector in (b"first", b"second"):
        store.handle.vectors.put(MODEL, [NewVector(entry=entry, vector=vector)])
    assert list(_kept(store).values()) == [b"first"]
    stale = replace(entry, text="something else")
    store.handle.vectors.put(OTHER, [NewVector(entry=stale, vector=b"x")])
    assert _kept(store, model=OTHER) == {}


# Where a store compares vectors itself.


def _embed_as(store: Harness, vectors: dict[str, tuple[float, float]], model: str = MODEL) -> None:
    """A vector of two numbers for each text; none for the others."""
    pending = store.handle.vectors.pending(model, MANY)
    made = [
        NewVector(entry=entry, vector=struct.pack("<2f", *vectors[entry.text]))
        if entry.text in vectors
        else NewVector(entry=entry, vector=b"")
        for entry in pending
    ]
    store.handle.vectors.put(model, made)


TOWARDS = struct.pack("<2f", 0.6, 0.8)


def _nearest(
    store: Harness, *kinds: EntryKind, limit: int = 10, space: str = SPACE, model: str = MODEL
) -> list[EntryKind] | None:
    """The kinds of the entries most alike; None where the store compares none."""
    search = store.handle.vectors.search()
    if search is None:
        return None
    found = search.nearest(space, model, TOWARDS, kinds or tuple(EntryKind), limit)
    alike = search.similarities(space, model, TOWARDS, found)
    assert sorted(alike) == sorted(found)
    assert [alike[each] for each in found] == sorted(alike.values(), reverse=True)
    return [kind for kind, _ in found]


@case("N1", "what a store compares itself is found best first, of the kinds that are asked for")
def the_nearest_come_first(store: Harness) -> None:
    tell(store, "a record")
    add(store, "a fact")
    sum_up(store, "a summary", key="summed up")
    _embed_as(store, {"a record": (0.0, 1.0), "a fact": (0.6, 0.8), "a summary": (-1.0, 0.0)})
    fact, record, summary = EntryKind.FACT, EntryKind.RECORD, EntryKind.SUMMARY
    assert _nearest(store) in (None, [fact, record, summary])
    assert _nearest(store, limit=1) in (None, [fact])
    assert _nearest(store, summary, record) in (None, [record, summary])
    assert _nearest(store, EntryKind.DOCUMENT) in (None, [])
    search = store.handle.vectors.search()
    if search is not None:
        assert search.additions(SPACE) > 0
        mean, spread = search.usual(SPACE, MODEL, 2)
        assert abs(mean - (0.8 + 0.0 - 0.6) / 3) < 1e-6
        assert abs(spread - 0.5734884) < 1e-6
        assert search.nearest(SPACE, MODEL, bytes(8), tuple(EntryKind), 10) == []


@case("N1", "a space and a model have their own nearest, and none at first")
def the_nearest_are_of_one_space_and_model(store: Harness) -> None:
    for space in (SPACE, "theirs"):
        add(store, f"a fact of {space}", space=space)
    assert _nearest(store) in (None, [])
    _embed_as(store, {f"a fact of {SPACE}": (0.0, 1.0), "a fact of theirs": (0.6, 0.8)})
    assert _nearest(store, limit=1) in (None, [EntryKind.FACT])
    assert _nearest(store, space="theirs") in (None, [EntryKind.FACT])
    assert _nearest(store, space="nobody's") in (None, [])
    assert _nearest(store, model=OTHER) in (None, [])
    search = store.handle.vectors.search()
    if search is not None:
        [mine] = search.nearest(SPACE, MODEL, TOWARDS, tuple(EntryKind), 10)
        [other] = search.nearest("theirs", MODEL, TOWARDS, tuple(EntryKind), 10)
        assert mine != other
        assert search.similarities(SPACE, MODEL, TOWARDS, [mine, other]).keys() == {mine}
        assert search.additions("nobody's") == 0


@case("P11", "what changes or goes is not among the nearest any more")
def the_nearest_follow_what_they_are_of(store: Harness) -> None:
    fact = add(store, "a fact")
    tell(store, "a record", key="gone")
    vectors = {"a fact": (0.0, 1.0), "a record": (0.6, 0.8), "another": (0.6, 0.8)}
    _embed_as(store, vectors)
    assert _nearest(store) in (None, [EntryKind.RECORD, EntryKind.FACT])
    session = store.current(store.key("gone")).id
    store.handle.erasure.forget_session(SPACE, session, store.now())
    assert _nearest(store) in (None, [EntryKind.FACT])
    edit(store, fact.id, content="another")
    assert _nearest(store) in (None, [])
    _embed_as(store, vectors)
    assert _nearest(store) in (None, [EntryKind.FACT])
    _embed_as(store, vectors, OTHER)
    store.handle.vectors.use(MODEL, store.now())
    store.clock.advance(A_DAY)
    while _delete_others(store, OTHER):
        pass
    assert _nearest(store) in (None, [])
    assert _nearest(store, model=OTHER) in (None, [EntryKind.FACT])

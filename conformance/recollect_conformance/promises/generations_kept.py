"""Generations are kept, listed and dropped, come back when they are wanted, and last."""

from __future__ import annotations

from dataclasses import replace

from recollect.errors import NotFound
from recollect.types.records import JobState, Mode, StaleClaim
from recollect_conformance.case import case, refused
from recollect_conformance.handbooks import (
    HANDBOOK,
    begin,
    consolidate,
    drafted,
    generation,
    handbook,
    is_due,
    job,
    publish,
    published,
    remember,
    restore,
    restoring,
    select,
    sessions,
    sights,
    state,
    summary_path,
    versions,
)
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import revision
from recollect_conformance.pages import history, page, writing


@case("G9", "generations are listed a page at a time, the newest first")
def generations_are_listed(store: Harness) -> None:
    assert store.handle.generations.list(SPACE, 10, None) == []
    assert store.handle.generations.get(SPACE, 1) is None
    for number in range(5):
        remember(store, f"key {number}")
        store.clock.advance(60)
        consolidate(store)
    listed = store.handle.generations.list
    every = listed(SPACE, 10, None)
    assert [each.number for each in every] == [5, 4, 3, 2, 1]
    assert [each.number for each in listed(SPACE, 2, None)] == [5, 4]
    assert [each.number for each in listed(SPACE, 2, 4)] == [3, 2]
    assert listed(SPACE, 10, 1) == []
    assert [generation(store, each.number) for each in every] == every
    assert [each.documents for each in every] == [6, 5, 4, 3, 2]


@case("G9", "a note is kept, and never without bounds")
def a_note_is_bounded(store: Harness) -> None:
    remember(store, "one")
    claim, selection = begin(store)
    made = replace(drafted(store, selection), note="n" * 100_000, made_by="a\0b")
    published(store, claim, made)
    kept = generation(store, 1)
    assert 0 < len(kept.note) < 10_000
    assert set(kept.note) == {"n"}
    assert kept.made_by.startswith("a")


@case("G9", "no more generations are kept than may be, and what only older ones had is erased")
def old_generations_are_dropped(store: Harness) -> None:
    remember(store, "gone")
    remember(store, "kept")
    consolidate(store, kept=2)
    [lost] = {
        each.document_id
        for each in store.handle.generations.documents(SPACE, 1)
        if each.session_id == store.current(store.key("gone")).id
    }
    store.set_mode(store.key("gone"), Mode.DISABLED)
    for number in range(2, 6):
        remember(store, "young", memory=f"text {number}")
        consolidate(store, kept=2)
        assert versions(store, number)
        listed = [each.number for each in store.handle.generations.list(SPACE, 10, None)]
        assert listed == list(range(number, max(number - 2, 0), -1))
    assert generation(store, 4).is_whole
    index = page(store, HANDBOOK)
    assert [each.number for each in history(store, index)] == [5, 4]
    assert list(versions(store, 1)) == [_page_of(store, "kept")], "those that are kept have it"
    assert store.handle.documents.history(SPACE, lost, None, 10) == []
    assert handbook(store) == ["what kept came to", "text 5"]


def _page_of(store: Harness, key: str) -> str:
    session = store.current(store.key(key)).id
    return page(store, f"memory/rollout_summaries/{session}").id


@case("G9", "a page that went keeps the versions of the generations that are kept, and no others")
def a_page_that_went_is_kept_for_long_enough(store: Harness) -> None:
    session = remember(store, "gone", memory="text 1")
    remember(store, "kept")
    consolidate(store, kept=3)
    own = _page_of(store, "gone")
    remember(store, "gone", memory="text 2")
    consolidate(store, kept=3)
    store.set_mode(store.key("gone"), Mode.DISABLED)
    consolidate(store, kept=3)
    remember(store, "kept", memory="more")
    consolidate(store, kept=3)
    said = store.handle.documents.history(SPACE, own, None, 10)
    assert {each.body for each in said} == {"text 2"}
    named = {each.session_id for each in store.handle.generations.documents(SPACE, 2)}
    assert (session in named, generation(store, 2).is_whole) == (True, True)
    restore(store, 2)
    assert handbook(store) == ["text 2", "what kept came to"]


@case("G9 D5", "a page that is made where one was erased has a version that none had before")
def an_erased_page_leaves_its_versions(store: Harness) -> None:
    remember(store, "one")
    consolidate(store, kept=1)
    first = page(store, summary_path(select(store).picks[0]))
    store.set_mode(store.key("one"), Mode.DISABLED)
    consolidate(store, kept=1)
    assert store.handle.documents.history(SPACE, first.id, None, 10) == []
    store.set_mode(store.key("one"), Mode.ENABLED)
    consolidate(store, kept=1)
    again = page(store, summary_path(select(store).picks[0]))
    assert again.path == first.path
    assert (again.id != first.id, again.version > first.version) == (True, True)


@case("G9", "an earlier generation comes back as a new one, and stays until something changes")
def a_generation_is_restored(store: Harness) -> None:
    session = remember(store, "one")
    consolidate(store)
    remember(store, "one", memory="more")
    consolidate(store)
    store.clock.advance(5)
    before = revision(store)
    third = restore(store, 1)
    assert (third.number, third.restored_from, third.made_by) == (3, 1, "user")
    assert (third.changed, third.documents, third.made_at) == (2, 2, store.now())
    assert handbook(store) == ["what one came to"]
    assert generation(store, 3) == third
    assert (revision(store), job(store).state) == (before, JobState.IDLE)
    assert sessions(select(store).retained) == [session]
    assert select(store).generation == 3
    remember(store, "two")
    assert is_due(store)
    assert consolidate(store).number == 4


@case("G9 P5", "a run under way is void once a generation was restored")
def restoring_voids_a_run(store: Harness) -> None:
    remember(store, "one")
    consolidate(store)
    remember(store, "two")
    consolidate(store)
    remember(store, "three")
    claim, selection = begin(store)
    made = drafted(store, selection)
    restore(store, 1)
    assert handbook(store) == ["what one came to"]
    assert publish(store, claim, made) == StaleClaim()
    assert is_due(store), "what came before is not lost"
    assert handbook(store) == ["what one came to"]
    consolidate(store)
    assert len(handbook(store)) == 3


@case("G9 P6", "a generation that cannot be restored changes nothing")
def a_failed_restore_changes_nothing(store: Harness) -> None:
    remember(store, "one")
    consolidate(store)
    remember(store, "one", memory="more")
    consolidate(store)
    made = restoring(store, 1)
    before = sights(store)
    with refused(NotFound):
        other = replace(writing("memory/other"), expected=3)
        wrong = replace(made, changes=replace(made.changes, edits=(*made.changes.edits, other)))
        store.handle.generations.restore(SPACE, wrong, store.now(), store.new_id)
    assert sights(store) == before


@case("G6", "which generation stands in files is known, and never goes back")
def files_follow_generations(store: Harness) -> None:
    generations = store.handle.generations
    remember(store, "one")
    assert generations.without_files(10) == []
    consolidate(store)
    remember(store, "theirs", space="space-b")
    consolidate(store, space="space-b")
    assert generations.without_files(10) == [(SPACE, 1), ("space-b", 1)]
    assert generations.without_files(1) == [(SPACE, 1)]
    assert generations.without_files(10, "space-b") == [("space-b", 1)]
    generations.files_published(SPACE, 1)
    assert generations.without_files(10) == [("space-b", 1)]
    for key in ("two", "three"):
        remember(store, key)
        consolidate(store)
    assert generations.without_files(10) == [(SPACE, 3), ("space-b", 1)]
    generations.files_published(SPACE, 3)
    generations.files_published(SPACE, 2)
    assert generations.without_files(10) == [("space-b", 1)]


@case("P1 G9", "a generation is there after the store was opened again")
def a_generation_lasts(store: Harness) -> None:
    if store.is_volatile:
        return
    remember(store, "one")
    made = consolidate(store)
    before = sights(store), select(store), state(store)
    store.reopen()
    assert generation(store, 1) == made
    assert (sights(store), select(store), state(store)) == before

"""Forgetting, to the end: what was forgotten leaves the next generation, and those before it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from recollect.types.generations import RemovedBecause
from recollect.types.records import JobState, Mode
from recollect_conformance.case import case
from recollect_conformance.handbooks import (
    DAY,
    HANDBOOK,
    begin,
    consolidate,
    demand,
    drafted,
    empty,
    forget,
    generation,
    gone,
    handbook,
    is_due,
    job,
    published,
    remember,
    restore,
    select,
    state,
    versions,
)
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import fact_named, statement
from recollect_conformance.pages import MANY, find, history, page, paths, place

SECRET = "the secret"


def _page_of(store: Harness, session_id: str) -> str:
    return page(store, f"memory/rollout_summaries/{session_id}").id


def _is_whole(store: Harness) -> list[bool]:
    """Whether each generation is, the first of them first."""
    listed = store.handle.generations.list(SPACE, 100, None)
    return [each.is_whole for each in reversed(listed)]


def _says(store: Harness, *document_ids: str) -> set[str]:
    """Every line that any version of these documents says."""
    found = [store.handle.documents.history(SPACE, each, None, MANY) for each in document_ids]
    return {line for every in found for version in every for line in version.body.splitlines()}


@case("G11 G3 P11", "a forgotten session is removed from the next generation")
def the_forgotten_is_removed(store: Harness) -> None:
    session = remember(store, "one", memory=SECRET)
    remember(store, "two")
    consolidate(store)
    forget(store, session)
    [removed] = select(store).removed
    assert (removed.session_id, removed.because) == (session, RemovedBecause.FORGOTTEN)
    assert removed.path is not None
    assert select(store).is_forgetting
    made = consolidate(store)
    assert (made.removed, made.is_whole) == (1, True)
    assert handbook(store) == ["what two came to"]
    assert find(store, removed.path.removeprefix("~/")) is None
    assert select(store).removed == ()
    assert not select(store).is_forgetting


@case("G11 P11 G9", "earlier versions of what all share and of its own page go with it, for good")
def earlier_versions_go_with_the_forgotten(store: Harness) -> None:
    session = remember(store, "one", memory=SECRET)
    other = remember(store, "two")
    consolidate(store)
    own, theirs, index = (
        _page_of(store, session),
        _page_of(store, other),
        page(store, HANDBOOK).id,
    )
    remember(store, "two", memory="more of two")
    consolidate(store)
    remember(store, "one", memory=f"{SECRET} again")
    consolidate(store)
    assert _says(store, own, index) >= {SECRET, f"{SECRET} again"}
    forget(store, session)
    consolidate(store)
    assert _says(store, own) == set()
    assert _says(store, index) == {"more of two"}
    assert [each.number for each in history(store, page(store, HANDBOOK))] == [4]
    assert _says(store, theirs) == {"what two came to", "more of two"}
    assert len(paths(store, "memory")) == 4
    assert (versions(store, 4), versions(store, 1)) == (
        {theirs: 2, index: 4},
        {theirs: 1},
    )


@case("G9 G11", "generations from before are not whole any more; those that follow are")
def earlier_generations_are_not_whole(store: Harness) -> None:
    session = remember(store, "one")
    consolidate(store)
    remember(store, "two")
    consolidate(store)
    assert _is_whole(store) == [True, True]
    forget(store, session)
    assert _is_whole(store) == [True, True], "until the next is there"
    consolidate(store)
    remember(store, "three")
    consolidate(store)
    assert _is_whole(store) == [False, False, True, True]
    assert generation(store, 2).documents == 3


@case("G9", "what leaves for another reason stays in the generations before")
def other_removals_keep_earlier_generations(store: Harness) -> None:
    session = remember(store, "one", memory="emptied")
    remember(store, "two")
    consolidate(store)
    own = _page_of(store, session)
    empty(store, "one")
    store.set_mode(store.key("two"), Mode.DISABLED)
    made = consolidate(store)
    assert made.removed == 2
    assert _is_whole(store) == [True, True]
    assert _says(store, own, page(store, HANDBOOK).id) == {"emptied", "what two came to"}
    restore(store, 1)
    assert handbook(store) == ["emptied", "what two came to"]


@case("G11 P11", "what left long ago is erased from generations before when it is forgotten")
def what_left_before_is_forgotten(store: Harness) -> None:
    unused = remember(store, "one", memory=SECRET)
    consolidate(store)
    own, index = _page_of(store, unused), page(store, HANDBOOK).id
    store.clock.advance(31 * DAY)
    remember(store, "two")
    consolidate(store)
    assert _says(store, own, index) == {SECRET, "what two came to"}
    forget(store, unused)
    assert gone(select(store)) == {unused: RemovedBecause.FORGOTTEN}
    assert is_due(store)
    consolidate(store)
    assert _says(store, own, index) == {"what two came to"}
    assert _is_whole(store) == [False, False, True]


@case("G11 P11", "what was emptied and is forgotten then is erased from generations before")
def what_was_emptied_is_forgotten(store: Harness) -> None:
    session = remember(store, "one", memory=SECRET)
    remember(store, "two")
    consolidate(store)
    own, index = _page_of(store, session), page(store, HANDBOOK).id
    empty(store, "one")
    assert gone(select(store)) == {session: RemovedBecause.EMPTIED}
    consolidate(store)
    assert SECRET in _says(store, own, index)
    forget(store, session)
    assert gone(select(store)) == {session: RemovedBecause.FORGOTTEN}
    assert is_due(store)
    consolidate(store)
    assert _says(store, own, index) == {"what two came to"}


@case("G11 P11", "what was emptied and forgotten before anybody looked is forgotten")
def what_was_emptied_just_now_is_forgotten(store: Harness) -> None:
    session = remember(store, "one", statement("of the first"), memory=SECRET)
    consolidate(store)
    own, index = _page_of(store, session), page(store, HANDBOOK).id
    empty(store, "one")
    forget(store, session)
    assert gone(select(store)) == {session: RemovedBecause.FORGOTTEN}
    consolidate(store)
    assert _says(store, own, index) == set()
    assert _is_whole(store) == [False, True]


@case("G11 P11", "what had no page of its own is forgotten like what had")
def what_had_no_page_is_forgotten(store: Harness) -> None:
    session = remember(store, "one", statement("of the first"), memory=SECRET)
    made = drafted(store, select(store))
    shared = tuple(edit for edit in made.changes.edits if edit.place == place(HANDBOOK))
    changes = replace(made.changes, edits=shared)
    published(store, demand(store), replace(made, changes=changes, summaries=()))
    assert handbook(store) == [SECRET]
    assert select(store).retained[0].path is None
    empty(store, "one")
    assert gone(select(store)) == {session: RemovedBecause.EMPTIED}
    forget(store, session)
    assert gone(select(store)) == {session: RemovedBecause.FORGOTTEN}
    consolidate(store)
    assert _says(store, page(store, HANDBOOK).id) == set()


@case("G11 P11", "forgetting makes a generation where no page has to change for it")
def forgetting_changes_no_page(store: Harness) -> None:
    unused = remember(store, "one", memory=SECRET)
    consolidate(store)
    own, index = _page_of(store, unused), page(store, HANDBOOK).id
    store.clock.advance(31 * DAY)
    remember(store, "two")
    consolidate(store)
    forget(store, unused)
    made = drafted(store, select(store))
    nothing = replace(made, changes=replace(made.changes, edits=()))
    assert made.digest == select(store).digest
    third = published(store, demand(store), nothing).generation
    assert third is not None
    assert (third.number, third.changed, third.removed) == (3, 0, 1)
    assert _says(store, own, index) == {"what two came to"}
    assert select(store).removed == ()


@case("G11 P11", "what was pruned and is forgotten then is erased from generations before")
def what_was_pruned_is_forgotten(store: Harness) -> None:
    session = remember(store, "one", statement("of the first"), memory=SECRET)
    consolidate(store)
    own, index = _page_of(store, session), page(store, HANDBOOK).id
    store.clock.advance(31 * DAY)
    consolidate(store)
    assert store.handle.generations.prune(store.now() - timedelta(days=1), 10) == 1
    forget(store, session)
    assert gone(select(store)) == {session: RemovedBecause.FORGOTTEN}
    consolidate(store)
    assert _says(store, own, index) == set()


@case("G11 P11", "what is forgotten while a run forgets something else is left to the next one")
def forgetting_during_forgetting(store: Harness) -> None:
    first, second = (remember(store, key, memory=f"{key} {SECRET}") for key in ("one", "two"))
    remember(store, "three")
    consolidate(store)
    index = page(store, HANDBOOK).id
    empty(store, "two")
    forget(store, first)
    claim, selection = begin(store)
    assert gone(selection) == {first: RemovedBecause.FORGOTTEN, second: RemovedBecause.EMPTIED}
    made = drafted(store, selection)
    forget(store, second)
    assert published(store, claim, made).is_due_again
    assert gone(select(store)) == {second: RemovedBecause.FORGOTTEN}
    assert is_due(store)
    consolidate(store)
    assert _says(store, index) == {"what three came to"}
    assert select(store).removed == ()


@case("G11 T4", "a fact that only the forgotten supported does not stand any more; shared ones do")
def facts_of_the_forgotten_do_not_stand(store: Harness) -> None:
    tea, secret = statement("likes tea"), statement(SECRET)
    first = remember(store, "one", tea, secret)
    second = remember(store, "two", tea)
    consolidate(store)

    def standing() -> dict[str, list[str]]:
        named = [pick.session_id for pick in select(store).picks]
        found = store.handle.generations.standings(SPACE, named, store.now(), 10)
        return {each.fact.content: [s.session_id for s in each.fact.sources] for each in found}

    assert set(standing()) == {"likes tea", SECRET}
    store.set_mode(store.key("one"), Mode.DISABLED)
    assert standing() == {"likes tea": [second]}
    assert fact_named(store, SECRET).content == SECRET
    store.set_mode(store.key("one"), Mode.ENABLED)
    assert set(standing()) == {"likes tea", SECRET}
    forget(store, first)
    assert standing() == {"likes tea": [second]}


@case("G9 G11", "a generation that is restored between brings back nothing for long")
def restoring_does_not_undo_forgetting(store: Harness) -> None:
    session = remember(store, "one", memory=SECRET)
    consolidate(store)
    remember(store, "two")
    consolidate(store)
    forget(store, session)
    restore(store, 1)
    assert is_due(store), "what was forgotten is still to go"
    assert gone(select(store))[session] is RemovedBecause.FORGOTTEN
    consolidate(store)
    assert handbook(store) == ["what two came to"]
    assert _says(store, page(store, HANDBOOK).id) == {"what two came to"}
    assert _is_whole(store) == [False, False, False, True]


@case("G11 P11", "forgetting in a space without a generation leaves nothing behind")
def forgetting_before_the_first_generation(store: Harness) -> None:
    session = remember(store, "one", memory=SECRET)
    forget(store, session)
    assert select(store).removed == ()
    assert is_due(store)
    made = consolidate(store)
    assert (made.removed, made.documents) == (0, 0)
    assert job(store).state is JobState.IDLE


@case("G12 P11", "what is forgotten during a pause is gone when the space is resumed")
def forgetting_during_a_pause(store: Harness) -> None:
    session = remember(store, "one", memory=SECRET)
    consolidate(store, cooldown_seconds=3600)
    index = page(store, HANDBOOK).id
    store.handle.generations.pause(SPACE, store.now())
    forget(store, session)
    assert state(store).changed == 2
    store.handle.generations.resume(SPACE, store.now())
    assert is_due(store)
    published(store, demand(store), drafted(store, select(store)))
    assert _says(store, index) == set()

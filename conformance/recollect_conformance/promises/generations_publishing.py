"""Generations: published whole under a live claim or not at all, kept, and brought back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from recollect.errors import DocumentExists, NotFound, StaleVersion
from recollect.types.facts import Spent
from recollect.types.generations import GenerationDraft, Outdated, Published
from recollect.types.pages import Edit
from recollect.types.records import JobState, Mode, StaleClaim
from recollect_conformance.case import case, refused
from recollect_conformance.handbooks import (
    HANDBOOK,
    begin,
    claims,
    consolidate,
    demand,
    drafted,
    empty,
    forget,
    generation,
    handbook,
    is_due,
    job,
    publish,
    published,
    remember,
    select,
    sessions,
    sights,
    state,
    summary_path,
    versions,
)
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import extraction, revision
from recollect_conformance.pages import apply, history, page, paths, writing


@case("G4 G9 P6", "documents, generation, consumed memories and watermark come together")
def a_generation_is_published_whole(store: Harness) -> None:
    names = [remember(store, key) for key in ("one", "two")]
    claim, selection = begin(store)
    store.clock.advance(5)
    spent = Spent(calls=2, input_tokens=30, output_tokens=4, cost_micros=5)
    outcome = published(store, claim, replace(drafted(store, selection), spent=spent))
    made = outcome.generation
    assert made is not None
    assert not outcome.is_due_again
    assert (made.space, made.number, made.made_at) == (SPACE, 1, store.now())
    assert (made.made_by, made.note, made.spent) == ("rules", "2 memories", spent)
    assert (made.added, made.retained, made.removed) == (2, 0, 0)
    assert (made.documents, made.changed) == (3, 3)
    assert made.is_whole
    assert made.restored_from is None
    assert handbook(store) == ["what one came to", "what two came to"]
    for name in names:
        row = extraction(store, name)
        assert row.selected_for_phase2
        assert row.selected_for_phase2_source_updated_at == row.source_updated_at
    assert (revision(store).changed, revision(store).consolidated) == (2, 2)
    done = job(store)
    assert (done.state, done.owner, done.finished_at) == (JobState.IDLE, None, store.now())
    assert store.handle.extractions.count_due(SPACE) == 0
    assert claims(store) is None


@case("G9 P6", "a generation names the documents it has, in the versions it has")
def a_generation_names_its_documents(store: Harness) -> None:
    session = remember(store, "one")
    consolidate(store)
    found = store.handle.generations.documents(SPACE, 1)
    summary = page(store, summary_path(select(store).picks[0]))
    index = page(store, HANDBOOK)
    assert {(each.document_id, each.version, each.session_id) for each in found} == {
        (summary.id, summary.version, session),
        (index.id, index.version, None),
    }
    assert store.handle.generations.documents(SPACE, 0) == []
    assert store.handle.generations.documents("nowhere", 1) == []


@case("G9", "what did not change keeps its version from one generation to the next")
def what_did_not_change_is_shared(store: Harness) -> None:
    remember(store, "one")
    consolidate(store)
    remember(store, "two")
    second = consolidate(store)
    assert (second.added, second.retained, second.documents, second.changed) == (1, 1, 3, 2)
    one, two = versions(store, 1), versions(store, 2)
    assert (len(one), len(two)) == (2, 3)
    assert len(one.items() & two.items()) == 1
    index = page(store, HANDBOOK).id
    assert (one[index], two[index]) == (1, 2)


@case("G9", "a page that goes is in the generations before and not in the next")
def a_page_that_goes_is_in_those_before(store: Harness) -> None:
    session = remember(store, "one")
    remember(store, "two")
    consolidate(store)
    store.set_mode(store.key("one"), Mode.DISABLED)
    second = consolidate(store)
    assert (second.removed, second.documents, second.changed) == (1, 2, 2)
    [gone] = set(versions(store, 1)) - set(versions(store, 2))
    named = {each.session_id: each for each in store.handle.generations.documents(SPACE, 1)}
    assert named[session].document_id == gone
    assert session not in {e.session_id for e in store.handle.generations.documents(SPACE, 2)}
    assert generation(store, 1).is_whole


@case("G9", "a write that says what the page says already changes nothing in the generation")
def a_write_of_the_same_changes_nothing(store: Harness) -> None:
    remember(store, "one")
    consolidate(store)
    remember(store, "two")
    claim, selection = begin(store)
    made = drafted(store, selection)
    same = writing(HANDBOOK, page(store, HANDBOOK).body)
    other = [edit for edit in made.changes.edits if edit.place != same.place]
    changes = replace(made.changes, edits=(same, *other))
    second = published(store, claim, replace(made, changes=changes)).generation
    assert second is not None
    assert (second.documents, second.changed) == (3, 1)
    assert versions(store, 2)[page(store, HANDBOOK).id] == 1


@case("G5 G9", "a run that finds nothing changed moves the watermark alone")
def nothing_changed_moves_the_watermark(store: Harness) -> None:
    session = remember(store, "one")
    consolidate(store)
    store.handle.generations.note_edits(SPACE, store.now())
    assert (revision(store).changed, revision(store).consolidated) == (2, 1)
    pages = [history(store, page(store, path)) for path in paths(store, "memory")]
    claim, selection = begin(store)
    store.clock.advance(5)
    assert publish(store, claim, drafted(store, selection)) == Published(None, is_due_again=False)
    assert (revision(store).changed, revision(store).consolidated) == (2, 2)
    assert [each.number for each in store.handle.generations.list(SPACE, 10, None)] == [1]
    assert [history(store, page(store, path)) for path in paths(store, "memory")] == pages
    assert sessions(select(store).retained) == [session]
    assert (select(store).generation, job(store).state) == (1, JobState.IDLE)
    assert state(store).finished_at == store.now()


@case("G9", "what the current generation was made of is known, and is no bar to mending a page")
def the_same_inputs_can_be_made_anew(store: Harness) -> None:
    remember(store, "one")
    consolidate(store)
    made = drafted(store, select(store))
    assert select(store).digest == made.digest
    changes = replace(made.changes, edits=(writing(HANDBOOK, "better"),))
    outcome = published(store, demand(store), replace(made, changes=changes))
    assert outcome.generation is not None
    assert (outcome.generation.number, outcome.generation.changed) == (2, 1)
    assert handbook(store) == ["better"]


@case("G9 G11", "a generation that is amended says something else under its number")
def a_generation_is_amended(store: Harness) -> None:
    remember(store, "one")
    before = consolidate(store)
    index = page(store, HANDBOOK)
    made = drafted(store, select(store))
    changes = replace(made.changes, edits=(writing(HANDBOOK, "better"),))
    amended = replace(made, changes=changes, made_by="rules, amended", digest="amended")
    generations = store.handle.generations
    assert generations.amend(SPACE, amended, store.now(), store.new_id)
    after = generation(store, before.number)
    assert (after.made_by, after.documents) == ("rules, amended", before.documents)
    assert (select(store).digest, select(store).generation) == ("amended", before.number)
    assert handbook(store) == ["better"]
    assert versions(store, before.number)[index.id] == page(store, HANDBOOK).version
    assert len(history(store, page(store, HANDBOOK))) == 1, "what only it said before is erased"
    remember(store, "two")
    consolidate(store)
    assert not generations.amend(SPACE, amended, store.now(), store.new_id), "it is not current"


@case("G7", "where nothing is left to remember the pages are emptied and the watermark moves")
def nothing_to_remember_empties_memory(store: Harness) -> None:
    remember(store, "one")
    consolidate(store)
    empty(store, "one")
    claim, selection = begin(store)
    assert selection.picks == ()
    made = published(store, claim, drafted(store, selection)).generation
    assert made is not None
    assert (made.added, made.retained, made.removed, made.documents) == (0, 0, 1, 1)
    assert handbook(store) == []
    assert revision(store).consolidated == revision(store).changed == selection.revision
    assert (select(store).removed, job(store).state) == ((), JobState.IDLE)


@case("G7", "a space that never had anything to remember can be consolidated as well")
def an_untouched_space_is_consolidated(store: Harness) -> None:
    made = consolidate(store)
    assert (made.number, made.documents) == (1, 0)
    assert job(store).state is JobState.IDLE
    claim = demand(store)
    outcome = publish(store, claim, drafted(store, select(store)))
    assert outcome == Published(None, is_due_again=False)


@case("G4 G5", "a memory that is refreshed during a run stays unconsumed, and the space is due")
def a_refresh_during_a_run_is_not_consumed(store: Harness) -> None:
    session = remember(store, "one")
    claim, selection = begin(store)
    made = drafted(store, selection)
    remember(store, "one", memory="more")
    outcome = published(store, claim, made)
    assert outcome.is_due_again
    assert handbook(store) == ["what one came to"]
    assert sessions(select(store).added) == [session]
    assert (revision(store).changed, revision(store).consolidated) == (2, 1)
    again, selection = begin(store)
    assert again.token > claim.token
    assert not published(store, again, drafted(store, selection)).is_due_again
    assert handbook(store) == ["more"]


@case("G4 G5", "a retained memory that is refreshed during a run is added in the next")
def a_retained_memory_is_refreshed_during_a_run(store: Harness) -> None:
    session = remember(store, "one")
    consolidate(store)
    other = remember(store, "two")
    claim, selection = begin(store)
    assert sessions(selection.retained) == [session]
    made = drafted(store, selection)
    remember(store, "one", memory="more")
    assert published(store, claim, made).is_due_again
    selection = select(store)
    assert (sessions(selection.added), sessions(selection.retained)) == ([session], [other])


@case("G4 G5", "what was not among the inputs of a run is not consumed by it")
def what_came_during_a_run_is_not_consumed(store: Harness) -> None:
    first = remember(store, "one")
    claim, selection = begin(store)
    made = drafted(store, selection)
    second = remember(store, "two")
    assert published(store, claim, made).is_due_again
    assert is_due(store)
    selection = select(store)
    assert (sessions(selection.retained), sessions(selection.added)) == ([first], [second])


@case("G5", "the watermark never goes back, and covers what was read after the claim")
def the_watermark_never_goes_back(store: Harness) -> None:
    remember(store, "one")
    claim = demand(store)
    remember(store, "two")
    selection = select(store)
    assert (claim.read_upto, selection.revision) == (1, 2)
    assert not published(store, claim, drafted(store, selection)).is_due_again
    assert revision(store).consolidated == 2
    remember(store, "three")
    claim = demand(store)
    late = replace(select(store), revision=1)
    assert published(store, claim, drafted(store, late)).is_due_again
    assert revision(store).consolidated == 2
    assert is_due(store)


def _forget(store: Harness) -> None:
    forget(store, store.current(store.key("one")).id)


def _empty(store: Harness) -> None:
    empty(store, "one")


def _disable(store: Harness) -> None:
    store.set_mode(store.key("one"), Mode.DISABLED)


def _pollute(store: Harness) -> None:
    store.set_mode(store.key("one"), Mode.POLLUTED)


WAYS: tuple[Callable[[Harness], None], ...] = (_forget, _disable, _pollute, _empty)


@case("G11 G12 P11", "what may not be remembered any more is not published by a run under way")
def a_run_on_what_was_forgotten_is_outdated(store: Harness) -> None:
    for way in WAYS:
        remember(store, "one", memory=f"secret before {way.__name__}")
        other = remember(store, "two", memory=f"two {way.__name__}")
        claim, selection = begin(store)
        made = drafted(store, selection)
        way(store)
        before = sights(store)
        assert publish(store, claim, made) == Outdated()
        assert sights(store) == before
        assert is_due(store)
        assert publish(store, claim, made) == StaleClaim()
        again, selection = begin(store)
        assert (again.attempt, sessions(selection.picks)) == (1, [other])
        published(store, again, drafted(store, selection))
        assert handbook(store) == [f"two {way.__name__}"]
        if way is _forget:
            continue
        store.set_mode(store.key("one"), Mode.ENABLED)


@case("G11 P11", "a run is outdated as well by what it only kept")
def a_run_is_outdated_by_what_it_retained(store: Harness) -> None:
    session = remember(store, "one")
    consolidate(store)
    remember(store, "two")
    claim, selection = begin(store)
    made = drafted(store, selection)
    assert sessions(selection.retained) == [session]
    forget(store, session)
    assert publish(store, claim, made) == Outdated()
    assert is_due(store)
    assert revision(store).consolidated == 1


@case("G1 P5", "whoever has lost the claim publishes nothing, whoever has it does")
def a_stale_claim_publishes_nothing(store: Harness) -> None:
    remember(store, "one")
    stale, selection = begin(store)
    made = drafted(store, selection)
    store.clock.advance(60)
    current, again = begin(store, "b")
    assert again == selection
    before = sights(store)
    for _ in range(2):
        assert publish(store, stale, made) == StaleClaim()
        assert sights(store) == before
        assert job(store).owner == "b"
    assert published(store, current, made).generation is not None
    assert publish(store, current, made) == StaleClaim()
    assert publish(store, stale, made) == StaleClaim()
    assert len(store.handle.generations.list(SPACE, 10, None)) == 1


@case("G9 P6", "a run whose pages were changed meanwhile publishes nothing and keeps its claim")
def a_changed_page_stops_a_run(store: Harness) -> None:
    remember(store, "one")
    consolidate(store)
    remember(store, "two")
    claim, selection = begin(store)
    made = drafted(store, selection)
    apply(store, writing(HANDBOOK, "somebody was here"))
    before = sights(store)
    stale: list[tuple[type[Exception], GenerationDraft]] = [
        (StaleVersion, _expecting(made, 1)),
        (DocumentExists, _expecting(made, 0)),
        (NotFound, _with(made, replace(writing("memory/other"), expected=3))),
    ]
    for error, each in stale:
        with refused(error):
            publish(store, claim, each)
        assert sights(store) == before
        assert job(store).state is JobState.CLAIMED
    assert published(store, claim, made).generation is not None


def _expecting(made: GenerationDraft, version: int) -> GenerationDraft:
    """The same, with the handbook written last and to that version."""
    handbook = writing(HANDBOOK, "new")
    edits = [edit for edit in made.changes.edits if edit.place != handbook.place]
    mine = replace(handbook, expected=version)
    return replace(made, changes=replace(made.changes, edits=(*edits, mine)))


def _with(made: GenerationDraft, *edits: Edit) -> GenerationDraft:
    return replace(made, changes=replace(made.changes, edits=(*made.changes.edits, *edits)))

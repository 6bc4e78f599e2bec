"""What a generation is made of: the best of what is remembered, and how that has changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from recollect.types.generations import RemovedBecause, SelectionClock, SelectionPolicy
from recollect.types.recall import UsageKind
from recollect.types.records import Mode, SessionBirth
from recollect_conformance.case import case
from recollect_conformance.findings import FACT, entries, use
from recollect_conformance.handbooks import (
    DAY,
    WIDE,
    consolidate,
    empty,
    gone,
    handbook,
    remember,
    remember_said,
    restore,
    select,
    sessions,
    summary_path,
    use_memory,
)
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import (
    NOTHING,
    add,
    day,
    edit,
    extraction,
    fact_named,
    learn,
    lesson,
    statement,
    teach,
)
from recollect_conformance.pages import find

SOURCES = 30  # more than a store needs to look at to know that a fact has some
BY_SOURCE = replace(WIDE, clock=SelectionClock.SOURCE)


@case("G2", "of a space in which nothing was learned nothing is selected")
def nothing_is_selected_from_nothing(store: Harness) -> None:
    store.append(store.key(), 6)
    selection = select(store)
    assert (selection.space, selection.revision, selection.generation) == (SPACE, 0, 0)
    assert (selection.picks, selection.removed, selection.digest) == ((), (), None)
    assert selection.expires_at is None
    learn(store, lesson(NOTHING))
    assert select(store).picks == ()


@case("G2", "what was used most comes first, then what was used or made last")
def the_most_used_comes_first(store: Harness) -> None:
    names = {}
    for key in ("old", "used", "young", "often"):
        names[key] = remember(store, key)
        store.clock.advance(DAY)
    use_memory(store, names["often"], 2)
    use_memory(store, names["used"])
    order = ["often", "used", "young", "old"]
    assert sessions(select(store).picks) == [names[key] for key in order]
    store.clock.advance(DAY)
    use_memory(store, names["old"])  # as often as another, and later
    order = ["often", "old", "used", "young"]
    assert sessions(select(store).picks) == [names[key] for key in order]


@case("G2 N3", "what was only shown is ranked, and kept, as if it had not been")
def being_shown_keeps_no_place(store: Harness) -> None:
    shown = remember(store, "shown")
    store.clock.advance(DAY)
    other = remember(store, "other")
    before = select(store)
    store.clock.advance(DAY)
    use_memory(store, shown, 5, kind=UsageKind.SHOWN)
    after = select(store)
    assert sessions(after.picks) == sessions(before.picks) == [other, shown]
    assert (after.digest, after.expires_at) == (before.digest, before.expires_at)
    store.clock.advance(28.5 * DAY)
    assert sessions(select(store).picks) == [other]
    use_memory(store, shown, kind=UsageKind.OPENED)
    assert sessions(select(store).picks) == [shown, other]


@case("G2", "what says how often a memory is used counts, however long ago it was made")
def use_counts_more_than_age(store: Harness) -> None:
    first = remember(store, "first")
    use_memory(store, first)
    store.clock.advance(20 * DAY)
    second = remember(store, "second")
    assert sessions(select(store).picks) == [first, second]
    store.clock.advance(20 * DAY)
    assert sessions(select(store).picks) == [second]


@case("G2", "under a clock that stands the newest source comes first, and each selection is alike")
def ties_are_broken_the_same_way(store: Harness) -> None:
    late = remember(store, "late")
    twins = [remember_said(store, key, day(-5)) for key in ("one", "two")]
    early = remember_said(store, "early", day(-9))
    order = [late, *sorted(twins, reverse=True), early]
    assert sessions(select(store).picks) == order
    assert select(store) == select(store)


@case("G2", "no more are selected than may be, and those are the best")
def no_more_are_selected_than_may(store: Harness) -> None:
    names = [remember(store, f"key {number}") for number in range(6)]
    use_memory(store, names[2])
    for top_n in range(1, 8):
        picks = select(store, replace(WIDE, top_n=top_n)).picks
        assert len(picks) == min(top_n, 6)
        assert picks[0].session_id == names[2]
        assert picks == select(store).picks[:top_n]


@case("G2", "what nobody has used for long is not selected, and says when that is")
def what_is_unused_is_not_selected(store: Harness) -> None:
    first = remember(store, "first")
    store.clock.advance(DAY)
    second = remember(store, "second")
    selection = select(store)
    assert sessions(selection.picks) == [second, first]
    moment = selection.expires_at
    assert moment is not None
    assert day(30) < moment <= day(30) + timedelta(seconds=1)
    assert sessions(select(store, at=moment - timedelta(microseconds=1)).picks) == [second, first]
    later = select(store, at=moment)
    assert sessions(later.picks) == [second]
    assert later.expires_at is not None
    assert later.expires_at - moment == timedelta(days=1)
    assert select(store, at=later.expires_at).picks == ()


@case("G2", "use keeps a memory for as long again")
def use_keeps_a_memory(store: Harness) -> None:
    session = remember(store, "first")
    store.clock.advance(29 * DAY)
    use_memory(store, session)
    store.clock.advance(29 * DAY)
    selection = select(store)
    assert sessions(selection.picks) == [session]
    assert selection.expires_at is not None
    assert selection.expires_at - day(29) >= timedelta(days=30)
    store.clock.advance(2 * DAY)
    assert select(store).picks == ()


@case("G2", "by the clock of sources a backlog is as old as it is, by the other as it was made")
def both_clocks_are_kept(store: Harness) -> None:
    store.clock.advance(40 * DAY)
    newer = remember_said(store, "newer", day(20))
    store.clock.advance(60)
    old = remember_said(store, "old", day(2))
    store.clock.advance(60)
    newest = remember_said(store, "newest", day(39))
    assert sessions(select(store).picks) == [newest, old, newer]
    assert sessions(select(store, BY_SOURCE).picks) == [newest, newer]
    moment = select(store, BY_SOURCE).expires_at
    assert moment is not None
    assert day(50) < moment <= day(50) + timedelta(seconds=1)
    use_memory(store, old)
    assert sessions(select(store, BY_SOURCE).picks) == [old, newest, newer]


@case("G2 G12", "what may not be remembered is not selected")
def what_is_forbidden_is_not_selected(store: Harness) -> None:
    names = [remember(store, key) for key in ("one", "two", "three")]
    store.set_mode(store.key("one"), Mode.DISABLED)
    store.set_mode(store.key("two"), Mode.POLLUTED)
    assert sessions(select(store).picks) == names[2:]
    store.set_mode(store.key("one"), Mode.ENABLED)
    assert sorted(sessions(select(store).picks)) == [names[0], names[2]]


@case("G2", "how often a space has changed is told with what is selected")
def a_selection_knows_its_revision(store: Harness) -> None:
    first = remember(store, "one")
    second = remember(store, "two")
    selection = select(store)
    assert selection.revision == store.handle.extractions.revision(SPACE).changed == 2
    assert {pick.session_id: pick.revision for pick in selection.picks} == {first: 1, second: 2}
    expected = {each: extraction(store, each).source_updated_at for each in (first, second)}
    assert {each.session_id: each.source_updated_at for each in selection.picks} == expected
    remember(store, "one", memory="more")
    assert {pick.session_id: pick.revision for pick in select(store).picks} == {first: 3, second: 2}


@case("G3 G4", "what was never consumed is added, what was is retained, with its page")
def the_consumed_is_retained(store: Harness) -> None:
    first = remember(store, "one")
    assert sessions(select(store).added) == [first]
    assert [pick.path for pick in select(store).picks] == [None]
    consolidate(store)
    second = remember(store, "two")
    selection = select(store)
    assert (sessions(selection.added), sessions(selection.retained)) == ([second], [first])
    [kept] = selection.retained
    assert kept.path == f"~/{summary_path(kept)}"
    assert selection.removed == ()
    seen = extraction(store, first)
    assert seen.selected_for_phase2
    assert seen.selected_for_phase2_source_updated_at == seen.source_updated_at
    assert not extraction(store, second).selected_for_phase2


@case("G3", "a refreshed memory is added until its new state was consumed")
def the_refreshed_is_added(store: Harness) -> None:
    session = remember(store, "one")
    consolidate(store)
    remember(store, "one", memory="more")
    for _ in range(2):
        selection = select(store)
        assert (sessions(selection.added), selection.retained) == ([session], ())
        assert selection.added[0].path is not None
    consolidate(store)
    assert handbook(store) == ["more"]
    assert sessions(select(store).retained) == [session]


@case("G3 X8", "what says the same again is no news")
def the_same_again_is_retained(store: Harness) -> None:
    session = remember(store, "one")
    consolidate(store)
    remember(store, "one")
    assert extraction(store, session).upto == 2
    assert sessions(select(store).retained) == [session]


@case("G3 P4", "a refresh in the same moment, by a clock that was set back too, is not missed")
def no_clock_hides_a_refresh(store: Harness) -> None:
    store.clock.advance(5 * DAY)
    session = remember(store, "one")
    consolidate(store)
    remember(store, "one", memory="in the same moment")
    assert sessions(select(store).added) == [session]
    consolidate(store)
    store.clock.advance(-3 * DAY)
    remember(store, "one", memory="three days before")
    assert sessions(select(store).added) == [session]


@case("G3", "what is not among the best any more is removed, and comes back as added")
def the_unselected_is_removed(store: Harness) -> None:
    one = SelectionPolicy(top_n=1, max_unused_days=30)
    first = remember(store, "one")
    consolidate(store, one)
    store.clock.advance(60)
    second = remember(store, "two")
    selection = select(store, one)
    assert sessions(selection.added) == [second]
    [removed] = selection.removed
    assert (removed.session_id, removed.because) == (first, RemovedBecause.UNSELECTED)
    assert removed.path is not None
    consolidate(store, one)
    assert select(store, one).removed == ()
    assert not extraction(store, first).selected_for_phase2
    use_memory(store, first)
    selection = select(store, one)
    assert (sessions(selection.added), gone(selection)) == (
        [first],
        {second: RemovedBecause.UNSELECTED},
    )
    assert selection.added[0].path is None


@case("G3 G2", "what nobody uses leaves the generation by itself")
def the_unused_is_removed(store: Harness) -> None:
    first = remember(store, "one")
    consolidate(store)
    store.clock.advance(31 * DAY)
    selection = select(store)
    assert gone(selection) == {first: RemovedBecause.UNSELECTED}
    assert selection.picks == ()


@case("G3 G12", "what may not be remembered any more is removed, and says why; and comes back")
def the_forbidden_is_removed(store: Harness) -> None:
    names = [remember(store, key) for key in ("one", "two")]
    consolidate(store)
    store.set_mode(store.key("one"), Mode.DISABLED)
    store.set_mode(store.key("two"), Mode.POLLUTED)
    selection = select(store)
    expected = {names[0]: RemovedBecause.DISABLED, names[1]: RemovedBecause.POLLUTED}
    assert gone(selection) == expected
    assert selection.picks == ()
    store.set_mode(store.key("one"), Mode.ENABLED)
    assert sessions(select(store).retained) == names[:1]
    store.set_mode(store.key("one"), Mode.DISABLED)
    consolidate(store)
    assert handbook(store) == []
    assert select(store).removed == ()
    store.set_mode(store.key("two"), Mode.ENABLED)
    assert sessions(select(store).added) == names[1:]


@case("G3", "what was emptied is removed, and is not when it has come to something again")
def the_emptied_is_removed(store: Harness) -> None:
    session = remember(store, "one")
    remember(store, "two")
    consolidate(store)
    empty(store, "one")
    assert gone(select(store)) == {session: RemovedBecause.EMPTIED}
    remember(store, "one", memory="again")
    selection = select(store)
    assert (sessions(selection.added), selection.removed) == ([session], ())
    assert selection.added[0].path is not None
    empty(store, "one")
    consolidate(store)
    assert handbook(store) == ["what two came to"]
    assert select(store).removed == ()


@case("G3", "what was never part of a generation is not removed from the next")
def the_unseen_is_not_removed(store: Harness) -> None:
    one = SelectionPolicy(top_n=1, max_unused_days=30)
    seen = remember(store, "one")
    use_memory(store, seen)
    consolidate(store, one)
    for key in ("emptied", "disabled", "forgotten"):
        remember(store, key)
    empty(store, "emptied")
    store.set_mode(store.key("disabled"), Mode.DISABLED)
    session = store.current(store.key("forgotten")).id
    store.handle.erasure.forget_session(SPACE, session, store.now())
    assert select(store, one).removed == ()


@case("G3", "what left a generation before is not removed once more when it goes for good")
def the_removed_is_not_removed_twice(store: Harness) -> None:
    for key in ("emptied", "pruned"):
        remember(store, key)
    consolidate(store)
    store.clock.advance(31 * DAY)
    remember(store, "young")
    consolidate(store)
    assert handbook(store) == ["what young came to"]
    empty(store, "emptied")
    assert store.handle.generations.prune(store.now() - timedelta(days=1), 10) == 1
    assert select(store).removed == ()


@case("G2", "old memories that nobody uses and no generation has are dropped, the oldest first")
def old_memories_are_pruned(store: Harness) -> None:
    names = []
    for number in range(5):
        names.append(remember(store, f"key {number}"))
        store.clock.advance(DAY)
    kept = remember(store, "kept")
    use_memory(store, names[4])
    claimed = SelectionPolicy(top_n=1, max_unused_days=30)
    consolidate(store, claimed)
    assert handbook(store) == ["what key 4 came to"]
    prune = store.handle.generations.prune
    jobs = store.handle.leases.jobs(None, 10)
    assert prune(day(0), 10) == 0
    assert prune(day(3), 2) == 2
    found = store.handle.extractions
    assert [found.get(SPACE, each) is None for each in names] == [True, True, False, False, False]
    assert prune(day(3), 2) == 1
    assert prune(day(365), 10) == 2
    assert found.get(SPACE, kept) is None
    assert found.get(SPACE, names[4]) is not None, "the current generation has it"
    assert store.handle.leases.jobs(None, 10) == jobs
    assert store.session(names[0]).processed_until == 1
    assert select(store, claimed).removed == ()


@case("G3 G9", "what a restored generation shows and is not selected is removed by the next")
def a_restored_page_is_removed(store: Harness) -> None:
    first = remember(store, "one")
    consolidate(store)
    store.clock.advance(31 * DAY)
    consolidate(store)
    assert select(store).removed == ()
    restore(store, 1)
    [removed] = select(store).removed
    assert (removed.session_id, removed.because) == (first, RemovedBecause.UNSELECTED)
    assert removed.path is not None
    assert store.handle.generations.prune(store.now(), 10) == 1
    assert gone(select(store)) == {first: RemovedBecause.PRUNED}
    consolidate(store)
    assert find(store, removed.path.removeprefix("~/")) is None
    assert handbook(store) == []
    assert select(store).removed == ()


@case("G3", "memories are read in full, in the order in which they are asked for")
def memories_are_read_in_full(store: Harness) -> None:
    names = [remember(store, key, memory=f"said in {key}") for key in ("one", "two")]
    asked = [names[1], "nobody", names[0]]
    found = store.handle.generations.memos(SPACE, asked)
    assert [each.extraction.session_id for each in found] == [names[1], names[0]]
    assert found[0].extraction == extraction(store, names[1])
    assert [(each.revision, each.key) for each in found] == [(2, "two"), (1, "one")]
    session = store.session(names[1])
    assert (found[0].began_at, found[0].agent_id, found[0].project) == (
        session.created_at,
        session.agent_id,
        session.project,
    )
    assert store.handle.generations.memos(SPACE, []) == []
    [imported] = store.handle.generations.memos(SPACE, [remember_said(store, "past", day(-9))])
    assert imported.began_at == day(-9)


@case("G2 T4", "facts stand that a selected memory supports or are somebody's own, and no others")
def facts_stand_on_what_is_selected(store: Harness) -> None:
    first = teach(store, statement("likes tea"), statement("of the first"), key="one")
    second = teach(store, statement("likes tea"), statement("of the second"), key="two")
    teach(store, statement("old", said=day(0), topic="home"), key="two")
    teach(store, statement("new", said=day(1), topic="home"), key="two")
    add(store, "by hand")
    store.handle.facts.delete(SPACE, add(store, "deleted").id, store.now())
    edit(store, add(store, "over").id, valid_to=store.now())

    def standing(*names: str) -> dict[str, list[str]]:
        found = store.handle.generations.standings(SPACE, names, store.now(), 100)
        return {each.fact.content: [s.session_id for s in each.fact.sources] for each in found}

    assert standing() == {"by hand": []}
    assert standing(first) == {"by hand": [], "likes tea": [first], "of the first": [first]}
    every = standing(first, second)
    assert set(every) == {"by hand", "likes tea", "of the first", "of the second", "new"}
    assert sorted(every["likes tea"]) == sorted([first, second])
    assert standing("nobody") == {"by hand": []}
    edit(store, fact_named(store, "of the first").id, content="as a person says it")
    assert standing(second)["as a person says it"] == []
    assert standing(first)["as a person says it"] == [first]


@case("G2 G11", "of a fact with many sources those are told that are selected, whichever they are")
def a_fact_of_many_sources_stands_on_any(store: Harness) -> None:
    said = statement("likes tea")
    names = [teach(store, said, key=f"key {number}") for number in range(SOURCES)]
    for name in (names[0], names[SOURCES // 2], names[-1]):
        [standing] = store.handle.generations.standings(SPACE, [name], store.now(), 10)
        assert [source.session_id for source in standing.fact.sources] == [name]
        assert standing.fact.source == name


@case("G2", "a memory and the facts it supports know the project of their session")
def a_standing_fact_knows_its_project(store: Harness) -> None:
    birth = SessionBirth(project="tea")
    store.key("one", birth=birth)
    first = teach(store, statement("likes tea"), key="one")
    second = teach(store, statement("likes cats"), key="two")
    add(store, "by hand")
    found = store.handle.generations.standings(SPACE, [first, second], store.now(), 10)
    assert {each.fact.content: each.project for each in found} == {
        "likes tea": birth.project,
        "likes cats": None,
        "by hand": None,
    }
    projects = [each.project for each in store.handle.generations.memos(SPACE, [first, second])]
    assert projects == [birth.project, None]


@case("G2", "facts stand with the most used first, no more than are asked for")
def standing_facts_are_bounded(store: Harness) -> None:
    session = teach(store, *(statement(f"fact {number}", number + 1) for number in range(5)))
    found = store.handle.generations.standings(SPACE, [session], store.now(), 100)
    assert len(found) == 5
    for limit in (1, 3):
        some = store.handle.generations.standings(SPACE, [session], store.now(), limit)
        assert some == found[:limit]
    last = found[-1].fact
    [entry] = [each for each in entries(store, "fact", FACT) if each.text == last.content]
    for number in range(5):
        assert use(store, f"turn {number}", entry, kind=UsageKind.SHOWN) == 1
    [best] = store.handle.generations.standings(SPACE, [session], store.now(), 1)
    assert best.fact.id == found[0].fact.id, "it was only shown"
    assert use(store, "turn", entry) == 1
    [best] = store.handle.generations.standings(SPACE, [session], store.now(), 1)
    assert best.fact.id == fact_named(store, last.content).id == last.id


@case("G2 G5", "a fact that will be over by itself ends the selection")
def an_ending_fact_ends_the_selection(store: Harness) -> None:
    teach(store, statement("for a week", valid_to=day(7)), statement("for a day", valid_to=day(1)))
    add(store, "for good")
    assert select(store).expires_at == day(1)
    store.clock.advance(DAY)
    assert select(store).expires_at == day(7)
    store.clock.advance(7 * DAY)
    later = select(store).expires_at
    assert later is not None
    assert later > day(29)

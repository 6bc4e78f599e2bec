"""Summaries: one per session, replaced whole, carried along by compaction."""

from __future__ import annotations

from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness


@case("T1", "a session has no summary until it gets one, and a new one replaces it")
def a_new_summary_replaces_the_old(store: Harness) -> None:
    ref = store.key()
    assert store.records.summary(ref) == ""
    for content in ("first", "second, longer", "3", ""):
        store.records.set_summary(ref, content, store.now())
        assert store.records.summary(ref) == content


@case("T1", "a summary of any script and size is kept as it is")
def a_summary_is_kept_as_it_is(store: Harness) -> None:
    ref = store.key()
    content = "Überblick: 語 🧠\n\n- 'a' \"b\" %s :x\n" * 5_000
    store.records.set_summary(ref, content, store.now())
    assert store.records.summary(ref) == content


@case("T1", "each key has a summary of its own")
def each_key_has_its_own_summary(store: Harness) -> None:
    one, two = store.key("one"), store.key("two")
    store.records.set_summary(one, "of one", store.now())
    assert store.records.summary(two) == ""
    store.records.set_summary(two, "of two", store.now())
    assert store.records.summary(one) == "of one"


@case("M6 T1", "a summary is neither a record nor activity, and marks nothing")
def a_summary_is_not_a_record(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    before = store.current(ref)
    store.clock.advance(60)
    store.records.set_summary(ref, "short", store.now())
    assert store.current(ref) == before
    assert store.records.count(ref) == 2
    assert store.marks.find_invalidated(SPACE, 10) == []


@case("T1", "after a reset there is no summary")
def after_a_reset_there_is_no_summary(store: Harness) -> None:
    ref = store.key()
    store.append(ref)
    store.records.set_summary(ref, "old", store.now())
    store.reset(ref)
    assert store.records.summary(ref) == ""


@case("T7", "a compaction gives the new session its summary")
def a_compaction_gives_its_summary(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    store.records.set_summary(ref, "old", store.now())
    store.compact(ref, retain=1, summary="new")
    assert store.records.summary(ref) == "new"
    store.compact(ref, retain=0, summary="newer")
    assert store.records.summary(ref) == "newer"


@case("T7", "a compaction without a summary carries the old one along")
def a_compaction_carries_the_summary_along(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    store.records.set_summary(ref, "what came before", store.now())
    store.compact(ref, retain=2)
    assert store.records.summary(ref) == "what came before"
    store.compact(ref, retain=0)
    assert store.records.summary(ref) == "what came before"


@case("T7", "an empty summary replaces the old one with none")
def an_empty_summary_replaces_the_old(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    store.records.set_summary(ref, "old", store.now())
    store.compact(ref, retain=2, summary="")
    assert store.records.summary(ref) == ""


@case("T1 T7", "the newest records and the summary are one answer, of one session")
def the_newest_come_with_the_summary(store: Harness) -> None:
    ref, other = store.key(), store.key("other")
    assert store.records.recent_with_summary(ref, 3) == ([], "")
    store.append(ref, 4)
    store.append(other)
    store.records.set_summary(ref, "so far", store.now())
    newest = store.records.recent(ref, 3)
    assert [record.seq for record in newest] == [2, 3, 4]
    assert store.records.recent_with_summary(ref, 3) == (newest, "so far")
    store.compact(ref, retain=2, summary="before")
    store.append(ref)
    shown = store.records.recent(ref, 10)
    assert [record.content for record in shown[:2]] == [record.content for record in newest[-2:]]
    for limit in (1, 2, 3, 10):
        assert store.records.recent_with_summary(ref, limit) == (shown[-limit:], "before")
    store.reset(ref)
    assert store.records.recent_with_summary(ref, 10) == ([], "")
    assert store.records.recent_with_summary(other, 10) == (store.records.recent(other, 10), "")


@case("T1", "after the end the summary stays until the next session opens")
def after_the_end_the_summary_stays(store: Harness) -> None:
    ref = store.key()
    store.append(ref)
    store.records.set_summary(ref, "old", store.now())
    store.end(ref)
    assert store.records.summary(ref) == "old"
    store.append(ref)
    assert store.records.summary(ref) == ""

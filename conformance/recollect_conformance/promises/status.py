"""What is due and what waits: exact counts, and lists in the order of time."""

from __future__ import annotations

from collections.abc import Callable

from recollect.types.records import Mode
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness, ids


@case("N4", "an empty store has nothing due and nothing waiting")
def an_empty_store_has_nothing_due(store: Harness) -> None:
    for space in (None, SPACE):
        assert store.marks.counts(space) == (0, 0)
        assert store.marks.marked(space, 10) == []
        assert store.marks.waiting(space, 10) == []


@case("N4", "the counts follow a session from waiting to marked to done")
def the_counts_follow_a_session(store: Harness) -> None:
    ref = store.key()
    assert store.marks.counts(SPACE) == store.marks.counts(None) == (0, 0)
    expected = [(0, 1), (1, 0), (0, 1), (1, 0), (0, 0)]
    steps: list[Callable[[], object]] = [
        lambda: store.append(ref),
        lambda: store.append(ref, 5),
        lambda: store.process(ref, 3, 6),
        lambda: store.sleep(ref),
        lambda: store.process(ref, 6, 6),
    ]
    for step, counts in zip(steps, expected, strict=True):
        step()
        assert store.marks.counts(SPACE) == store.marks.counts(None) == counts
        assert len(store.marks.marked(SPACE, 10)) == counts[0]
        assert len(store.marks.waiting(SPACE, 10)) == counts[1]


@case("N4", "the counts are those of one space, or of all")
def the_counts_are_those_of_a_space(store: Harness) -> None:
    for space, marked, waiting in (("a", 2, 1), ("b", 0, 3)):
        for number in range(marked):
            store.append(store.key(f"marked {number}", space=space), 6)
        for number in range(waiting):
            store.append(store.key(f"waiting {number}", space=space))
    assert store.marks.counts("a") == (2, 1)
    assert store.marks.counts("b") == (0, 3)
    assert store.marks.counts("nowhere") == (0, 0)
    assert store.marks.counts(None) == (2, 4)
    assert {session.space for session in store.marks.waiting(None, 10)} == {"a", "b"}
    assert {session.space for session in store.marks.marked(None, 10)} == {"a"}


@case("M4 N4", "the worker's order is that of the first marking, whatever the mark")
def marked_sessions_come_in_order_of_marking(store: Harness) -> None:
    expected = []
    for seq in (30, 2, 9):
        expected.append(store.marked(f"at {seq}", seq).id)
        store.clock.advance(1)
    store.invalidate(store.key("at 30"), 60)
    assert ids(store.marks.marked(SPACE, 10)) == expected
    assert ids(store.marks.marked(None, 2)) == expected[:2]
    assert store.marks.marked(SPACE, 10)[0] == store.current(store.key("at 30"))


@case("N4", "waiting sessions come longest without activity first")
def waiting_sessions_come_longest_idle_first(store: Harness) -> None:
    refs = [store.key(name) for name in ("c", "a", "b")]
    for ref in (*refs, refs[0]):
        store.append(ref)
        store.clock.advance(1)
    expected = [store.current(ref).id for ref in (refs[1], refs[2], refs[0])]
    assert ids(store.marks.waiting(SPACE, 10)) == expected
    assert ids(store.marks.waiting(None, 2)) == expected[:2]
    assert store.marks.waiting(SPACE, 10)[0] == store.current(refs[1])


@case("N4 G12", "what may not be learned from does not wait")
def what_may_not_be_learned_does_not_wait(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    store.set_mode(ref, Mode.DISABLED)
    assert store.marks.counts(SPACE) == (0, 0)
    assert store.marks.waiting(SPACE, 10) == []


@case("N4", "a list of nothing is empty, whatever is due")
def a_list_of_nothing_is_empty(store: Harness) -> None:
    store.append(store.key("marked"), 6)
    store.append(store.key("waiting"))
    assert store.marks.marked(SPACE, 0) == []
    assert store.marks.waiting(SPACE, 0) == []


@case(
    "N4", "progress lists sessions by when they began, the newest first, whatever goes on in them"
)
def progress_lists_the_newest_first(store: Harness) -> None:
    refs = [store.key(f"key {number}", space=f"space {number % 2}") for number in range(6)]
    begun = [store.current(ref).id for ref in refs][::-1]
    for ref in refs[::-1]:
        store.clock.advance(1)
        store.append(ref)
    progress = store.handle.extractions.progress
    assert [line.session_id for line in progress(None, 10)] == begun
    assert [line.session_id for line in progress(None, 4)] == begun[:4]
    assert [line.session_id for line in progress("space 0", 10)] == begun[1::2]
    assert [line.session_id for line in progress("space 1", 2)] == begun[:4:2]
    assert progress(None, 0) == progress("nowhere", 10) == []

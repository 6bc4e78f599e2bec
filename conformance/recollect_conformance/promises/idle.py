"""The idle sweep: it marks what was left with unprocessed records, longest idle first."""

from __future__ import annotations

from datetime import timedelta

from recollect.types.records import MarkCause, SessionBirth, Unattended
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness

LIMIT_SECONDS = 600


def _sweep(store: Harness, space: str | None = None, limit: int = 100) -> list[tuple[str, str]]:
    return store.marks.mark_idle(space, _idle(store), store.now(), limit)


def _idle(store: Harness, days: float = 30, *sources: str) -> Unattended:
    now = store.now()
    return Unattended(
        oldest=now - timedelta(days=days),
        newest=now - timedelta(seconds=LIMIT_SECONDS),
        sources=sources,
    )


@case("M8", "a session is swept exactly at the limit, and not before")
def a_session_is_swept_exactly_at_the_limit(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    session = store.current(ref)
    store.clock.advance(LIMIT_SECONDS - 0.000001)
    assert _sweep(store) == []
    at = store.clock.advance(0.000001)
    assert _sweep(store) == [(SPACE, session.id)]
    swept = store.current(ref)
    assert (swept.invalidated_at, swept.marked_at) == (2, at)
    assert swept.marked_by is MarkCause.IDLE
    assert swept.ended_at is None


@case("M8", "activity puts the sweep off")
def activity_puts_the_sweep_off(store: Harness) -> None:
    ref = store.key()
    store.append(ref)
    store.clock.advance(LIMIT_SECONDS - 1)
    store.append(ref)
    store.clock.advance(2)
    assert _sweep(store) == []


@case("M7 M8", "only sessions with unprocessed records and without a mark are swept")
def only_what_waits_is_swept(store: Harness) -> None:
    store.key("empty")
    store.append(store.key("marked"), 7)
    done = store.key("done")
    store.append(done, 3)
    store.process_all(done)
    waiting = store.key("waiting")
    store.append(waiting, 3)
    before = store.current(store.key("marked"))
    store.clock.advance(LIMIT_SECONDS)
    assert _sweep(store) == [(SPACE, store.current(waiting).id)]
    assert store.current(store.key("marked")) == before
    assert store.current(done).invalidated_at is None


@case("M8", "a swept session is swept once, and again when something new was left")
def a_swept_session_is_swept_once(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    store.clock.advance(LIMIT_SECONDS)
    assert len(_sweep(store)) == 1
    assert _sweep(store) == []
    assert store.process(ref, 2, 2)
    assert _sweep(store) == []
    store.append(ref)
    store.clock.advance(LIMIT_SECONDS)
    assert len(_sweep(store)) == 1
    assert store.current(ref).invalidated_at == 3


@case("M8", "a sweep takes at most a batch, the longest idle first")
def a_sweep_takes_a_batch(store: Harness) -> None:
    expected = []
    refs = [store.key(name) for name in ("c", "a", "d", "b", "e")]
    for ref in (refs[3], refs[0], refs[4], refs[2], refs[1]):
        store.append(ref)
        expected.append((SPACE, store.current(ref).id))
        store.clock.advance(1)
    store.clock.advance(LIMIT_SECONDS)
    assert _sweep(store, limit=0) == []
    assert set(_sweep(store, limit=2)) == set(expected[:2])
    assert set(_sweep(store, limit=2)) == set(expected[2:4])
    assert _sweep(store, limit=2) == expected[4:]
    assert _sweep(store, limit=2) == []


@case("M8", "a sweep takes one space, or all of them")
def a_sweep_takes_one_space_or_all(store: Harness) -> None:
    sessions = {}
    for space in ("a", "b", "c"):
        ref = store.key(space=space)
        store.append(ref)
        sessions[space] = store.current(ref).id
    store.clock.advance(LIMIT_SECONDS)
    assert _sweep(store, "b") == [("b", sessions["b"])]
    assert _sweep(store, "nowhere") == []
    assert set(_sweep(store)) == {("a", sessions["a"]), ("c", sessions["c"])}


@case("M8 M10", "a session of which a part was left unprocessed is swept, though it has ended")
def what_was_left_unprocessed_is_swept(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 4)
    ended = store.end(ref)
    assert store.process(ref, 1, 4)
    store.clock.advance(LIMIT_SECONDS)
    assert _sweep(store) == [(SPACE, ended.id)]
    assert store.current(ref).invalidated_at == 4


@case("M8 X1 X2", "who is learned from unasked is the same for the sweep, the scan and a list")
def one_rule_says_who_is_learned_from(store: Harness) -> None:
    old = store.key("old", birth=SessionBirth(source="cli"))
    store.append(old)
    store.clock.advance(86_400)
    births = {source: SessionBirth(source=source) for source in ("cli", "ide", "exec")}
    refs = {source: store.key(source, birth=birth) for source, birth in births.items()}
    for ref in refs.values():
        store.append(ref)
    store.clock.advance(LIMIT_SECONDS)
    ids = {name: store.current(ref).id for name, ref in {"old": old, **refs}.items()}
    for sources, expected in {("cli",): ["cli"], ("ide", "cli"): ["cli", "ide"]}.items():
        which = _idle(store, 1, *sources)
        taken = sorted(ids[name] for name in expected)
        assert sorted(each.id for each in store.marks.waiting(None, 9, which)) == taken
        assert sorted(each.id for each in store.marks.waiting_newest(which, 9, 9)) == taken
    assert len(store.marks.waiting_newest(_idle(store, 2), 9, 9)) == 4
    assert len(store.marks.waiting_newest(_idle(store, 2), 9, 3)) == 3
    assert store.marks.waiting_newest(_idle(store, 2, "cli"), 3, 9)[0].id == ids["cli"]
    which = _idle(store, 1, "ide", "cli")
    assert sorted(store.marks.mark_idle(None, which, store.now(), 9)) == [
        (SPACE, each) for each in sorted((ids["cli"], ids["ide"]))
    ]
    assert len(store.marks.mark_idle(None, None, store.now(), 9)) == 2, "all that is left"


@case("M8", "a session is active at the latest now, whatever another clock said")
def activity_lies_not_ahead(store: Harness) -> None:
    ours, theirs = store.key("k", space="a"), store.key("k", space="b")
    now = store.now()
    store.clock.advance(86_400)
    for ref in (ours, theirs):
        store.append(ref)
    said = store.now()
    store.clock.advance(-86_400)
    store.marks.bound_activity("a", now)
    assert store.current(ours).last_activity_at == now
    assert store.current(theirs).last_activity_at == said
    store.marks.bound_activity(None, now)
    assert store.current(theirs).last_activity_at == now
    assert store.records.recent(ours, 1)[0].at == said

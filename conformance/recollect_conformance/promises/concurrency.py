"""Many threads on one store: nothing twice, nothing lost, one winner."""

from __future__ import annotations

from collections import Counter
from functools import partial

from recollect.messages import Role
from recollect.types.records import KeyRef, NewRecord, Record
from recollect_conformance.case import case
from recollect_conformance.harness import KEY, NEVER, SPACE, Harness, seqs

THREADS = 8


@case("T1", "a key that eight threads create at once is one key with one session")
def a_key_created_at_once_is_one_key(store: Harness) -> None:
    refs = store.at_once(*[store.key] * THREADS)
    assert len(set(refs)) == 1
    assert len(store.sessions.rotations(refs[0])) == 1
    assert len(store.sessions.list(SPACE, 100, None)) == 1
    assert store.sessions.key_agents(SPACE, KEY) == [refs[0].agent_id]


@case("M1", "different keys of a new space can be created at once")
def different_keys_are_created_at_once(store: Harness) -> None:
    jobs = [partial(store.key, f"key {number}") for number in range(THREADS)]
    assert len({ref.key_id for ref in store.at_once(*jobs)}) == THREADS
    assert store.sessions.spaces("", 10) == [SPACE]


@case("M1 T1", "eight threads that append to one session leave no hole and lose nothing")
def appends_at_once_leave_no_hole(store: Harness) -> None:
    ref = store.key()
    jobs = [partial(store.append, ref, 25)] * THREADS
    said = [record for batch in store.at_once(*jobs) for record in batch]
    everything = store.everything(ref)
    assert seqs(everything) == list(range(1, 25 * THREADS + 1))
    assert sorted(said, key=lambda record: record.seq) == everything
    session = store.current(ref)
    assert session.last_seq == session.invalidated_at == 25 * THREADS


@case("M1", "batches that are appended at once stay whole")
def batches_at_once_stay_whole(store: Harness) -> None:
    ref = store.key()

    def batch(number: int) -> list[Record]:
        words = [NewRecord(role=Role.USER, content=f"{number}") for _ in range(10)]
        return store.say(ref, *words)

    store.at_once(*[partial(batch, number) for number in range(THREADS)])
    words = store.words(ref)
    assert len(words) == 10 * THREADS
    for first in range(0, len(words), 10):
        assert len(set(words[first : first + 10])) == 1


@case("T1", "an append key that eight threads use at once stores once")
def an_append_key_at_once_stores_once(store: Harness) -> None:
    ref = store.key()
    record = NewRecord(role=Role.USER, content="once", append_key="k")
    said = store.at_once(*[partial(store.say, ref, record)] * THREADS)
    assert len(store.everything(ref)) == 1
    assert said == [store.everything(ref)] * THREADS


@case("T1", "nothing is lost when a key rotates while others append")
def rotating_while_appending_loses_nothing(store: Harness) -> None:
    ref = store.key()

    def append() -> list[Record]:
        return store.append(ref, 20, policy=NEVER)

    def rotate() -> list[Record]:
        for _ in range(10):
            store.reset(ref)
        return []

    said = [record for batch in store.at_once(append, append, append, rotate) for record in batch]
    everything = store.records.all_rotations(ref)
    assert Counter(record.content for record in everything) == Counter(r.content for r in said)
    sessions = store.sessions.rotations(ref)
    assert [session.rotation for session in sessions] == list(range(1, 12))
    for session in sessions:
        found = store.records.after(SPACE, session.id, 0, 100)
        assert seqs(found) == list(range(1, session.last_seq + 1))
        if session.ended_at is not None:
            assert session.invalidated_at == (session.last_seq or None), "marked up to its end"


@case("T1 M8", "nothing is lost when a key ends while others append")
def ending_while_appending_loses_nothing(store: Harness) -> None:
    ref = store.key()

    def append() -> int:
        return len(store.append(ref, 20, policy=NEVER))

    def end() -> int:
        for _ in range(10):
            store.end(ref)
        return 0

    assert sum(store.at_once(append, append, end)) == 40
    assert len(store.records.all_rotations(ref)) == 40
    for session in store.sessions.rotations(ref):
        if session.ended_at is not None:
            assert session.invalidated_at == (session.last_seq or None), "marked up to its end"


@case("M5", "of eight threads that clear the same mark exactly one succeeds")
def of_many_swaps_one_succeeds(store: Harness) -> None:
    for number in range(5):
        ref = store.key(f"key {number}")
        store.append(ref, 6)
        cleared = store.at_once(*[partial(store.process, ref, 6, 6)] * THREADS)
        assert sorted(cleared) == [False] * (THREADS - 1) + [True]
        session = store.current(ref)
        assert len(store.marks.ranges(SPACE, session.id)) == 1
        assert session.processed_until == 6


@case("M3", "a mark that eight threads raise at once ends at the highest")
def a_mark_raised_at_once_ends_highest(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    session = store.current(ref)
    store.at_once(*[partial(store.invalidate, ref, seq) for seq in (5, 9, 3, 8, 1, 7, 2, 6)])
    assert store.session(session.id).invalidated_at == 9


@case("M5 M10", "processing while others append neither loses nor repeats a record")
def processing_while_appending_covers_all(store: Harness) -> None:
    ref = store.key()

    def process() -> None:
        for _ in range(30):
            session = store.current(ref)
            if session.invalidated_at is not None:
                store.process(ref, session.last_seq, session.invalidated_at)

    def append() -> None:
        store.append(ref, 30)

    store.at_once(append, append, process, process)
    session = store.current(ref)
    spans = [(r.first_seq, r.last_seq) for r in store.marks.ranges(SPACE, session.id)]
    assert session.last_seq == 60
    covered = [seq for first, last in spans for seq in range(first, last + 1)]
    assert covered == list(range(1, (session.processed_until or 0) + 1))


@case(
    "M5 M10", "a cursor that many threads move over the same mark leaves ranges that fit together"
)
def a_cursor_moved_at_once_leaves_whole_ranges(store: Harness) -> None:
    ref = store.key()
    store.say(ref, *(store.text() for _ in range(60)), policy=NEVER)

    def process(first: int) -> None:
        for until in range(first, 60, 4):
            store.invalidate(ref, 60)
            store.process(ref, until, 60)

    store.at_once(*[partial(process, first) for first in (1, 2, 3, 4)])
    session = store.current(ref)
    found = store.marks.ranges(SPACE, session.id)
    covered = [seq for r in found for seq in range(r.first_seq, r.last_seq + 1)]
    assert covered == list(range(1, (session.processed_until or 0) + 1))


@case("M8", "sweeps at once mark each session once")
def sweeps_at_once_mark_each_session_once(store: Harness) -> None:
    for number in range(10):
        store.append(store.key(f"key {number}"))
    store.clock.advance(3600)
    sweep = partial(store.marks.mark_idle, None, None, store.now(), 100)
    swept = [found for batch in store.at_once(*[sweep] * 4) for found in batch]
    assert len(swept) == len(set(swept)) == 10
    assert store.marks.counts(None) == (10, 0)


@case("T1", "readers see whole batches while others write")
def readers_see_whole_batches(store: Harness) -> None:
    ref = store.key()

    def write() -> bool:
        for _ in range(20):
            store.say(ref, *(store.text() for _ in range(5)))
        return True

    def read() -> bool:
        for _ in range(20):
            found = seqs(store.everything(ref))
            assert len(found) % 5 == 0
            assert found == list(range(1, len(found) + 1))
        return True

    assert all(store.at_once(write, write, read, read))


@case("T1", "conversations that go on side by side do not mix")
def conversations_side_by_side_do_not_mix(store: Harness) -> None:
    refs = [store.key(f"key {number}") for number in range(THREADS)]

    def talk(ref: KeyRef) -> list[Record]:
        return [
            store.say(ref, NewRecord(role=Role.USER, content=f"{ref.key}, {turn}"))[0]
            for turn in range(10)
        ]

    said = store.at_once(*[partial(talk, ref) for ref in refs])
    assert [store.everything(ref) for ref in refs] == said

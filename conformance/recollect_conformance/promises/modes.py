"""Memory modes: what was said while nothing may be learned is never learned later."""

from __future__ import annotations

from datetime import datetime

from recollect.types.agents import Span
from recollect.types.facts import Fact, FactEvent, Staged
from recollect.types.recall import EntryKind
from recollect.types.records import (
    JobKind,
    JobState,
    KeyRef,
    Mode,
    NothingDue,
    Outcome,
    Recorded,
    SessionBirth,
    StaleClaim,
)
from recollect_conformance.case import case
from recollect_conformance.findings import found
from recollect_conformance.harness import NEVER, SPACE, Harness
from recollect_conformance.inboxes import finish, handed_over, release, take, work
from recollect_conformance.lessons import (
    POLICY,
    add,
    claim,
    contents,
    day,
    draft,
    edit,
    events,
    extraction,
    fact_named,
    facts,
    lesson,
    record,
    revision,
    statement,
    teach,
)

FORBIDDEN = (Mode.DISABLED, Mode.POLLUTED)
HOMES = (("Rome", 1), ("Oslo", 5))


@case("G12", "a mode is set, seen and set back")
def a_mode_is_set_and_seen(store: Harness) -> None:
    ref = store.key()
    for mode in (Mode.DISABLED, Mode.POLLUTED, Mode.ENABLED):
        session = store.set_mode(ref, mode)
        assert session == store.current(ref)
        assert session.mode is mode
        assert session.remembered is (mode is Mode.ENABLED)


@case("G12", "setting the mode there is already changes nothing")
def setting_the_same_mode_changes_nothing(store: Harness) -> None:
    for mode in Mode:
        ref = store.key(mode.value, birth=SessionBirth(mode=mode))
        store.append(ref, 3)
        before = store.current(ref)
        store.clock.advance(60)
        assert store.set_mode(ref, mode) == before


@case("G12 M8", "a session whose mode forbids it is never marked, at no marking point")
def a_forbidden_session_is_never_marked(store: Harness) -> None:
    for mode in FORBIDDEN:
        ref = store.key(mode.value)
        store.set_mode(ref, mode)
        store.append(ref, 9)
        assert store.invalidate(ref, 9).invalidated_at is None
        assert store.sleep(ref).invalidated_at is None
        old = store.current(ref)
        store.compact(ref)
        store.append(ref, 9)
        store.end(ref)
        assert store.session(old.id).invalidated_at is None
        assert store.current(ref).invalidated_at is None
    store.clock.advance(3600)
    assert store.marks.mark_idle(None, None, store.now(), 10) == []
    assert store.marks.counts(None) == (0, 0)


@case("G12", "a mark is taken away when the mode forbids it; the records stay")
def a_mark_is_taken_away(store: Harness) -> None:
    for mode in FORBIDDEN:
        ref = store.key(mode.value)
        said = store.append(ref, 7)
        session = store.set_mode(ref, mode)
        assert session.invalidated_at is None
        assert session.marked_at is None
        assert session.marked_by is None
        assert (session.last_seq, session.processed_until) == (7, None)
        assert store.everything(ref) == said
    assert store.marks.find_invalidated(SPACE, 10) == []


@case("G12", "enabling skips what was said meanwhile, and a range says why; what came before waits")
def enabling_skips_what_was_said_meanwhile(store: Harness) -> None:
    for mode in FORBIDDEN:
        ref = store.key(mode.value)
        store.append(ref, 6)
        assert store.process(ref, 2, 6)
        store.set_mode(ref, mode)
        store.append(ref, 3)
        at = store.clock.advance(1)
        session = store.set_mode(ref, Mode.ENABLED)
        assert (session.processed_until, session.invalidated_at) == (2, 6)
        done, skipped = store.marks.ranges(SPACE, session.id)
        assert (done.first_seq, done.last_seq) == (1, 2)
        assert (skipped.first_seq, skipped.last_seq) == (7, 9)
        assert (skipped.outcome, skipped.at) == (Outcome.SKIPPED, at)
        assert skipped.reason is not None
        assert mode.value in skipped.reason
        store.append(ref)
        assert [_read(store, ref) for _ in range(2)] == [([3, 4, 5, 6], 9), ([10], 10)]
        assert _covered(store, ref) == [(1, 2), (3, 6), (7, 9), (10, 10)]
        assert store.current(ref).invalidated_at is None


def _read(store: Harness, ref: KeyRef, pass_number: int = 1) -> tuple[list[int], int | None]:
    """What a worker is given to learn from, and the cursor when it has."""
    claimed = claim(store)
    loaded = store.handle.leases.load(claimed, None, 100)
    assert loaded is not None
    record(store, claimed, lesson(draft(), pass_number=pass_number))
    return [each.seq for each in loaded.records], store.current(ref).processed_until


def _covered(store: Harness, ref: KeyRef) -> list[tuple[int, int]]:
    found = store.marks.ranges(SPACE, store.current(ref).id)
    return [(each.first_seq, each.last_seq) for each in found]


def _to_and_fro(store: Harness, key: str) -> KeyRef:
    """Eight records, of which three and four, and seven, were said while nothing was learned."""
    ref = store.key(key)
    for mode, count in (
        *((Mode.ENABLED, 2), (Mode.DISABLED, 2), (Mode.ENABLED, 2)),
        *((Mode.POLLUTED, 1), (Mode.DISABLED, 0), (Mode.ENABLED, 1)),
    ):
        store.set_mode(ref, mode)
        store.say(ref, *(store.text() for _ in range(count)), policy=NEVER)
    assert _covered(store, ref) == [(3, 4), (7, 7)]
    assert store.current(ref).invalidated_at == 6
    return ref


@case("G12 X9", "what was said meanwhile is never learned, whoever works on what lies around it")
def what_was_said_meanwhile_is_never_learned(store: Harness) -> None:
    every = [(1, 2), (3, 4), (5, 6), (7, 7), (8, 8)]
    ref, leases = _to_and_fro(store, "worker"), store.handle.leases
    assert _read(store, ref) == ([1, 2], 4)
    held = claim(store)
    store.handle.extractions.request_passes(SPACE, held.key, store.now())
    again, made = claim(store, "b"), lesson(draft(), is_whole=True, pass_number=2)
    assert leases.record_pass(again, 4, made, store.now(), store.new_id) == Recorded(is_done=True)
    assert _covered(store, ref) == [(1, 2), (3, 4), (7, 7)], "which a new pass takes along"
    leases.release(held)
    assert _read(store, ref, 2) == ([5, 6], 7)
    store.sleep(ref)
    assert _read(store, ref, 2) == ([8], 8)
    assert _covered(store, ref) == every
    own = _to_and_fro(store, "own code")
    assert store.process(own, 3, 6), "which is one of those"
    assert store.current(own).processed_until == 4
    store.sleep(own)
    assert store.process(own, 8, 8)
    assert _covered(store, own) == every
    purged, forgotten = _to_and_fro(store, "purged"), _to_and_fro(store, "forgotten")
    store.records.purge(purged, store.now())
    store.handle.erasure.forget_session(SPACE, store.current(forgotten).id, store.now())
    assert _covered(store, purged) == _covered(store, forgotten) == every


@case("G12 M6", "after enabling the threshold counts from there on")
def after_enabling_the_threshold_counts_anew(store: Harness) -> None:
    ref = store.key(birth=SessionBirth(mode=Mode.DISABLED))
    store.append(ref, 9)
    store.set_mode(ref, Mode.ENABLED)
    store.append(ref, 5)
    assert store.current(ref).invalidated_at is None
    store.append(ref)
    assert store.current(ref).invalidated_at == 15


@case("G12", "enabling an empty session leaves no range")
def enabling_an_empty_session_leaves_no_range(store: Harness) -> None:
    ref = store.key(birth=SessionBirth(mode=Mode.DISABLED))
    session = store.set_mode(ref, Mode.ENABLED)
    assert session.processed_until is None
    assert store.marks.ranges(SPACE, session.id) == []


@case("G12", "from one forbidding mode to the other nothing is skipped yet")
def between_forbidding_modes_nothing_is_skipped(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    store.set_mode(ref, Mode.DISABLED)
    session = store.set_mode(ref, Mode.POLLUTED)
    assert session.processed_until is None
    assert store.marks.ranges(SPACE, session.id) == []


@case("G12 T1", "disabled stays disabled over every rotation")
def disabled_survives_every_rotation(store: Harness) -> None:
    ref = store.key()
    store.append(ref)
    store.set_mode(ref, Mode.DISABLED)
    assert store.reset(ref).mode is Mode.DISABLED
    assert store.compact(ref).mode is Mode.DISABLED
    store.end(ref)
    store.append(ref)
    assert store.current(ref).mode is Mode.DISABLED
    assert not store.current(ref).remembered


@case(
    "G12 T7", "pollution goes along with a compaction, which carries text over, and ends otherwise"
)
def pollution_goes_along_with_a_compaction_only(store: Harness) -> None:
    ref = store.key()
    store.append(ref)
    store.set_mode(ref, Mode.POLLUTED)
    assert store.compact(ref, retain=1).mode is Mode.POLLUTED
    new = store.reset(ref)
    assert new.mode is Mode.ENABLED
    assert new.remembered
    store.set_mode(ref, Mode.POLLUTED)
    store.append(ref)
    store.end(ref)
    store.append(ref)
    assert store.current(ref).mode is Mode.ENABLED


@case("G12", "the mode of one session is not that of another")
def a_mode_is_one_sessions(store: Harness) -> None:
    one, two = store.key("one"), store.key("two")
    store.append(two, 6)
    before = store.current(two)
    store.set_mode(one, Mode.DISABLED)
    assert store.current(two) == before


@case("G12 P5 X9", "whoever goes through a session again stores nothing once the mode forbids it")
def forbidding_voids_a_pass(store: Harness) -> None:
    leases = store.handle.leases
    for mode in FORBIDDEN:
        ref = store.key(mode.value)
        session = teach(store, statement(f"said {mode.value}"), key=mode.value)
        store.handle.extractions.request_passes(SPACE, session, store.now())
        again = claim(store)
        staged = Staged(pass_number=2, upto=1, extractor="model", draft=draft())
        leases.stage(again, staged)
        before = facts(store, every=True), extraction(store, session)
        changed = revision(store).changed
        store.set_mode(ref, mode)
        made = lesson(draft(statement("a ghost")), is_whole=True, pass_number=2)
        assert leases.stage(again, staged) == StaleClaim()
        assert leases.record_pass(again, 1, made, store.now(), store.new_id) == StaleClaim()
        assert (facts(store, every=True), extraction(store, session)) == before
        assert revision(store).changed == changed + 1, "of the mode, and of nothing else"
        assert store.session(session).pass_number == 1
        loaded = leases.load(again, 0, 10)
        assert loaded is not None
        assert loaded.staged is None
        job = leases.get(SPACE, JobKind.EXTRACT_AGAIN, session)
        assert job is not None
        assert (job.state, job.owner, job.token > again.token) == (JobState.IDLE, None, True)
        store.set_mode(ref, Mode.ENABLED)
        assert isinstance(leases.claim("b", POLICY, store.now()), NothingDue)


@case("G12 X9", "a pass that waits is not made once the mode forbids it")
def forbidding_drops_a_waiting_pass(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    store.handle.extractions.request_passes(SPACE, session, store.now())
    store.set_mode(store.key(), Mode.DISABLED)
    assert isinstance(store.handle.leases.claim("b", POLICY, store.now()), NothingDue)
    waiting = {job.kind for job in store.handle.leases.jobs(None, 10)}
    assert waiting == {JobKind.CONSOLIDATE}


@case("G12 N4", "progress says which sessions may be remembered")
def progress_says_what_may_be_remembered(store: Harness) -> None:
    for mode in Mode:
        store.append(store.key(mode.value, birth=SessionBirth(mode=mode)))
    found = store.handle.extractions.progress(SPACE, 10)
    assert {line.mode: line.remembered for line in found} == {
        Mode.ENABLED: True,
        Mode.DISABLED: False,
        Mode.POLLUTED: False,
    }


def _held(store: Harness) -> list[str]:
    """The facts that hold, which are the same however they are asked for."""
    listed = contents(store)
    searched = store.handle.facts.search(SPACE, ["saffron"], day(365), 100)
    assert sorted(fact.content for fact in searched) == listed
    assert found(store, "saffron", EntryKind.FACT) == listed
    assert store.handle.facts.count(SPACE, day(365)) == len(listed)
    return listed


@case("G11 G12", "what sessions alone say that are left out does not hold, and is back with them")
def what_is_left_out_does_not_hold(store: Harness) -> None:
    one, two = store.key("one"), store.key("two")
    said = [statement(f"saffron {word}", seq) for seq, word in enumerate(("a", "b", "c", "d"), 1)]
    session = teach(store, *said, key="one")
    teach(store, said[1], key="two")
    add(store, "saffron c")  # somebody says so as well
    edit(store, fact_named(store, "saffron d").id, content="saffron e")
    brought = Fact("saffron f", extractor="elsewhere")  # and no session of ours
    store.handle.facts.add(SPACE, brought, store.now(), store.new_id)
    everything = [f"saffron {word}" for word in ("a", "b", "c", "e", "f")]
    alone = fact_named(store, "saffron a")
    for mode in FORBIDDEN:
        assert _held(store) == everything
        changed = revision(store).changed
        store.set_mode(one, mode)
        assert _held(store) == everything[1:]
        assert revision(store).changed == changed + 1
        assert fact_named(store, "saffron a") == store.handle.facts.get(SPACE, alone.id) == alone
        store.set_mode(two, mode)
        assert _held(store) == everything[2:]
        store.set_mode(two, Mode.ENABLED)
        store.set_mode(one, Mode.ENABLED)
    assert _held(store) == everything
    assert {source.session_id for source in alone.sources} == {session}


def _ends(store: Harness) -> list[tuple[str, datetime | None, str | None]]:
    every = facts(store, every=True)
    return [(fact.content, fact.valid_to, fact.superseded_by) for fact in every]


@case("G12 T4", "what was superseded by what is left out is believed, until that is back")
def what_was_superseded_is_believed_meanwhile(store: Harness) -> None:
    homes = [statement(f"lives in {city}", said=day(on), topic="home") for city, on in HOMES]
    for number, home in enumerate(homes):
        teach(store, home, key=f"key {number}")
    ref, rome = store.key("key 1"), fact_named(store, "lives in Rome")
    before = [
        (fact.content, fact.valid_to, fact.superseded_by) for fact in facts(store, every=True)
    ]
    assert contents(store) == ["lives in Oslo"]
    store.set_mode(ref, Mode.POLLUTED)
    assert contents(store) == ["lives in Rome"]
    store.set_mode(ref, Mode.ENABLED)
    assert _ends(store) == before
    ended, back = FactEvent.SUPERSEDED, FactEvent.RESTORED
    assert events(store, rome.id) == [FactEvent.ADDED, ended, back, ended]
    store.set_mode(ref, Mode.POLLUTED)
    teach(store, statement("lives in Rome", said=day(9), topic="home"), key="again")
    store.set_mode(ref, Mode.ENABLED)
    assert contents(store) == ["lives in Rome"]


@case("A5 G12", "a memory-agent that was told of a session is told when its mode changes")
def a_memory_agent_is_told_of_a_mode(store: Harness) -> None:
    _, session = handed_over(store)
    abouts = []
    for mode in (Mode.POLLUTED, Mode.ENABLED, None):
        claimed = work(store)
        turn = take(store, claimed)
        assert claimed.kind is JobKind.MEMORY_AGENT
        abouts += [item.about for item in turn.items]
        finish(store, claimed, turn)
        release(store, claimed)
        if mode is Mode.ENABLED:
            store.append(store.key())  # what was said meanwhile, and is never read
        if mode is not None:
            store.clock.advance(1)
            store.set_mode(store.key(), mode)
    assert abouts == [Span(session_id=session, first=1, last=1)] * 3

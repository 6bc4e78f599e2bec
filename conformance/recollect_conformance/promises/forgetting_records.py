"""Forgetting one record or one fact: what rests on it alone goes, the rest is learned again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from recollect.messages import Role
from recollect.types.facts import Receipt, Source
from recollect.types.generations import RemovedBecause
from recollect.types.pages import Because
from recollect.types.recall import EntryKind
from recollect.types.records import (
    JobKind,
    JobState,
    MarkPolicy,
    MarkUnit,
    NewRecord,
    NothingDue,
    Recorded,
    StaleClaim,
)
from recollect_conformance.case import case
from recollect_conformance.findings import entries, found, use, uses
from recollect_conformance.handbooks import (
    begin,
    consolidate,
    drafted,
    publish,
    remember,
    select,
    state,
)
from recollect_conformance.harness import NEVER, SPACE, Harness
from recollect_conformance.inboxes import agent, begun, fail, handed_over, take, work
from recollect_conformance.lessons import (
    POLICY,
    add,
    claim,
    contents,
    day,
    draft,
    due,
    edit,
    events,
    extraction,
    fact_named,
    facts,
    learn,
    lesson,
    only_fact,
    record,
    revision,
    sources_of,
    statement,
    teach,
)
from recollect_conformance.pages import apply, page, writing

EMPTY = (Role.NOTE, "", None, None, None, {"forgotten": True})


def _forget(store: Harness, session_id: str, seq: int = 1, space: str = SPACE) -> Receipt:
    receipt = store.handle.erasure.forget_record(space, session_id, seq, store.now())
    assert receipt is not None, "there is no such record"
    return receipt


def _forget_fact(store: Harness, fact_id: str) -> Receipt:
    receipt = store.handle.erasure.forget_fact(SPACE, fact_id, store.now())
    assert receipt is not None, "there is no such fact"
    return receipt


def _taught(store: Harness) -> str:
    """A session of three records that something was learned from; its id."""
    ref = store.key()
    store.say(ref, store.text(), store.text(), policy=NEVER)
    store.records.set_summary(ref, "so far", store.now())
    said = [statement("likes tea", 1), statement("likes tea", 2), statement("likes figs", 1)]
    return teach(store, *said)


@case("P11", "forgetting a record removes what rests on it alone, and says how much that is")
def a_record_is_forgotten(store: Harness) -> None:
    session = _taught(store)
    kept = store.records.after(SPACE, session, 1, 10)
    store.clock.advance(5)
    assert _forget(store, session) == Receipt(
        space=SPACE,
        at=store.now(),
        record=f"{session}:1",
        records=1,
        facts=1,
        sources=2,
        extractions=1,
        summaries=1,
    )
    assert [fact.content for fact in facts(store, every=True)] == ["likes tea"]
    assert sources_of(only_fact(store)) == [(session, 2)]
    assert store.records.summary(store.key()) == ""
    assert extraction(store, session).rollout_summary == "- likes tea [#2, user]"
    assert store.records.after(SPACE, session, 1, 10) == kept


@case("P11 T1", "an empty note keeps the number of a forgotten record")
def an_empty_note_keeps_its_number(store: Harness) -> None:
    ref = store.key()
    told = NewRecord(
        role=Role.USER,
        content="saffron",
        name="Ana",
        body='{"saffron": 1}',
        append_key="k",
        metadata='{"saffron": 1}',
    )
    [before] = store.say(ref, told, policy=NEVER)
    store.append(ref, policy=NEVER)
    session = store.current(ref).id
    _forget(store, session)
    [note, other] = store.everything(ref)
    assert (note.role, note.content, note.name, note.body, note.key, note.metadata) == EMPTY
    assert (note.seq, note.at, note.created_at) == (1, before.at, before.created_at)
    assert other.seq == 2
    assert (store.marks.max_seq(SPACE, session), store.current(ref).last_seq) == (2, 2)
    assert "saffron" not in repr(store.records.all_rotations(ref))
    assert found(store, "saffron", EntryKind.RECORD) == []
    [again] = store.say(ref, told, policy=NEVER)
    assert (again.seq, again.is_forgotten) == (0, True), "a retry brings it back"
    assert store.everything(ref) == [note, other]


@case("P11 X9", "what was learned from the other records is learned again by a pass over them")
def the_rest_is_learned_again(store: Harness) -> None:
    session = _taught(store)
    _forget(store, session)
    claimed = claim(store)
    assert (claimed.kind, claimed.key) == (JobKind.EXTRACT_AGAIN, session)
    again = replace(
        lesson(draft(statement("likes tea", 2), statement("likes rye", 3))), is_whole=True
    )
    passed = store.handle.leases.record_pass(
        claimed, claimed.read_upto, replace(again, pass_number=2), store.now(), store.new_id
    )
    assert passed == Recorded(is_done=True)
    assert sorted(contents(store)) == ["likes rye", "likes tea"]
    assert store.handle.extractions.get(SPACE, session) is not None


@case("P11", "a source that covers several records goes with any of them")
def a_wide_source_goes(store: Harness) -> None:
    ref = store.key()
    store.say(ref, store.text(), store.text(), policy=NEVER)
    wide = replace(statement("likes tea", 1, quote="a secret"), seq_to=3)
    session = teach(store, wide, statement("likes rye", 3))
    assert _forget(store, session, 2).facts == 1
    assert contents(store) == ["likes rye"]


@case("P11 P5", "whoever goes through a session of which a record is forgotten stores nothing")
def a_run_over_a_forgotten_record_is_stale(store: Harness) -> None:
    ref, claimed = due(store)
    _forget(store, store.current(ref).id)
    assert record(store, claimed, lesson(draft(statement("likes tea")))) == StaleClaim()
    assert facts(store, every=True) == []
    again = claim(store, "b")
    assert (again.key, again.kind) == (claimed.key, JobKind.EXTRACT), "it is due at once"
    assert record(store, again, lesson(draft())) == Recorded(is_done=True)


@case("P11 M5", "a record that was not read yet takes nothing with it that was learned")
def an_unread_record_is_forgotten_alone(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    store.append(store.key(), policy=NEVER)
    before = revision(store)
    receipt = _forget(store, session, 2)
    assert (receipt.records, receipt.facts, receipt.extractions) == (1, 0, 0)
    assert (contents(store), revision(store)) == (["likes tea"], before)
    assert store.handle.leases.claim("a", POLICY, store.now()) == NothingDue(None)


@case("P11 M4", "a turn that is forgotten does not count towards the threshold")
def a_forgotten_turn_does_not_count(store: Harness) -> None:
    ref = store.key()
    by_turns = MarkPolicy(unit=MarkUnit.TURNS, threshold=1)
    store.append(ref, 2, policy=by_turns)
    _forget(store, store.current(ref).id, 2)
    store.append(ref, policy=by_turns)
    assert store.current(ref).invalidated_at is None
    store.append(ref, policy=by_turns)
    assert store.current(ref).invalidated_at is not None


@case("P11 T7", "what a compaction carried on of a record is gone: references and summaries")
def a_retained_record_is_forgotten(store: Harness) -> None:
    ref = store.key()
    [first, _] = store.append(ref, 2, policy=NEVER)
    kept = store.words(ref)[1]
    store.compact(ref, retain=2, summary="so far")
    assert store.words(ref) == [first.content, kept]
    _forget(store, first.session_id)
    assert store.words(ref) == [kept]
    assert store.records.summary(ref) == ""


@case("P11", "what agents were to be told of the records of its session they are told anew")
def what_was_told_is_told_anew(store: Harness) -> None:
    ref, session = handed_over(store)
    claimed = work(store)
    take(store, claimed)
    _forget(store, session)
    assert store.handle.agents.fail(claimed, None, "", 0, POLICY, store.now()) == StaleClaim(), (
        "it may have read it"
    )
    assert agent(store, ref).queued == 0
    assert store.records.all_rotations(ref) == []
    job = store.handle.leases.get(SPACE, JobKind.EXTRACT_AGAIN, session)
    assert job is not None
    assert job.state is JobState.DUE


@case("P11", "a message that could not be answered is forgotten with its record")
def a_parked_message_goes_with_its_record(store: Harness) -> None:
    ref, claimed, turn = begun(store, "hello")
    fail(store, claimed, turn, is_final=True)
    assert agent(store, ref).parked == 1
    _forget(store, store.current(ref).id)
    assert agent(store, ref).parked == 0


@case("P11 D1", "a forgotten record is no ground of a version any more, and others still are")
def a_forgotten_record_is_no_ground(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3, policy=NEVER)
    session = store.current(ref).id
    sources = [
        Source(session_id=session, seq=first, seq_to=last, quote=f"« {first} »")
        for first, last in ((1, 1), (1, 3), (3, 3))
    ]
    apply(store, writing("a"), because=Because(sources=tuple(sources)))
    _forget(store, session, 2)
    assert [(each.seq, each.seq_to) for each in page(store, "a").sources] == [(1, 1), (3, 3)]


@case("P11", "forgetting a record twice finds nothing the second time")
def a_record_is_forgotten_once(store: Harness) -> None:
    session = _taught(store)
    _forget(store, session)
    before = revision(store), store.records.after(SPACE, session, 0, 10)
    assert _forget(store, session) == Receipt(space=SPACE, at=store.now(), record=f"{session}:1")
    assert (revision(store), store.records.after(SPACE, session, 0, 10)) == before


@case("P11 P9", "an unknown record or fact cannot be forgotten, nor one of another space")
def unknown_pieces_are_not_forgotten(store: Harness) -> None:
    session = _taught(store)
    before = facts(store), revision(store), store.records.after(SPACE, session, 0, 10)
    erasure = store.handle.erasure
    assert erasure.forget_record("theirs", session, 1, store.now()) is None
    assert erasure.forget_record(SPACE, session, 4, store.now()) is None
    assert erasure.forget_record(SPACE, "nobody", 1, store.now()) is None
    assert erasure.forget_fact("theirs", facts(store)[0].id, store.now()) is None
    assert erasure.forget_fact(SPACE, "nothing", store.now()) is None
    assert (facts(store), revision(store), store.records.after(SPACE, session, 0, 10)) == before


@case("P11 P5", "a run and the forgetting of a record at once: stored and erased, or refused")
def a_record_is_forgotten_during_a_run(store: Harness) -> None:
    for number in range(8):
        ref, claimed = due(store, f"key-{number}")
        made = lesson(draft(statement(f"likes {number}")))
        jobs: list[Callable[[], object]] = [
            partial(record, store, claimed, made),
            partial(_forget, store, store.current(ref).id),
        ]
        store.at_once(*jobs)
        assert facts(store, every=True) == []
        claim(store, "b")


# a fact


@case("P11", "a forgotten fact is gone with its sources and its history")
def a_fact_is_forgotten(store: Harness) -> None:
    teach(store, statement("likes tea"), key="one")
    teach(store, statement("likes tea"), statement("likes figs"), key="two")
    fact = fact_named(store, "likes tea")
    [entry] = entries(store, "tea", EntryKind.FACT)
    use(store, "turn", entry)
    before = revision(store)
    store.clock.advance(5)
    assert _forget_fact(store, fact.id) == Receipt(
        space=SPACE, at=store.now(), fact_id=fact.id, facts=1, sources=2, extractions=1
    )
    assert contents(store) == ["likes figs"]
    assert store.handle.facts.get(SPACE, fact.id) is None
    assert store.handle.facts.history(SPACE, fact.id) == []
    assert store.handle.facts.search(SPACE, ["tea"], day(9), 10) == []
    assert uses(store, entry) == {}
    assert revision(store).changed == before.changed + 1


@case("P11 T4", "its session does not bring a forgotten fact back; another one may say it")
def a_forgotten_fact_stays_away(store: Harness) -> None:
    said = lesson(draft(statement("likes tea")), is_whole=True)
    learn(store, said)
    _forget_fact(store, only_fact(store).id)
    learn(store, said)
    assert facts(store, every=True) == []
    other = learn(store, said, "other")
    assert sources_of(only_fact(store)) == [(other, 1)]


@case("P11 T4", "nor what it said before somebody changed it")
def no_earlier_statement_comes_back(store: Harness) -> None:
    said = lesson(draft(statement("likes tea")), is_whole=True)
    learn(store, said)
    known = only_fact(store)
    edit(store, known.id, content="likes green tea")
    _forget_fact(store, known.id)
    learn(store, said)
    learn(store, lesson(draft(statement("likes green tea")), is_whole=True))
    assert facts(store, every=True) == []


@case("P11", "what was deleted, and what somebody said themselves, can be forgotten as well")
def any_fact_can_be_forgotten(store: Harness) -> None:
    deleted, own = add(store, "likes tea"), add(store, "likes figs", named="mine")
    store.handle.facts.delete(SPACE, deleted.id, store.now())
    for fact in (deleted, own):
        _forget_fact(store, fact.id)
        assert store.handle.facts.history(SPACE, fact.id) == []
    assert facts(store, every=True) == []
    assert add(store, "likes tea").content == "likes tea"


@case("P11 T4", "what a forgotten fact had superseded comes back")
def forgetting_a_fact_brings_back(store: Harness) -> None:
    for number, city in enumerate(("Rome", "Oslo"), 1):
        teach(store, statement(city, said=day(number), topic="home"), key=city)
    _forget_fact(store, fact_named(store, "Oslo").id)
    assert contents(store) == ["Rome"]
    assert events(store, only_fact(store).id)[-1].value == "restored"


@case("P11 G11 G9", "the next generation erases the versions of pages that may say the fact")
def pages_are_made_anew_without_it(store: Harness) -> None:
    remember(store, "one", statement("likes tea"), statement("likes figs"), memory="one")
    consolidate(store)
    remember(store, "two", memory="two")
    consolidate(store)
    _forget_fact(store, fact_named(store, "likes tea").id)
    assert select(store).is_forgetting
    assert {each.because for each in select(store).removed} == {RemovedBecause.FORGOTTEN}
    consolidate(store)
    handbook = page(store, "memory/MEMORY")
    versions = store.handle.documents.history(SPACE, handbook.id, None, 10)
    assert len(versions) == 1
    assert select(store).removed == ()


@case(
    "P11 G4", "a generation that was begun before a fact or a record was forgotten is not published"
)
def a_generation_under_way_is_stale(store: Harness) -> None:
    session = remember(store, "one", statement("likes tea"), memory="one")
    claimed, selection = begin(store)
    _forget_fact(store, only_fact(store).id)
    assert publish(store, claimed, drafted(store, selection)) == StaleClaim()
    assert state(store).generation == 0
    claimed, selection = begin(store)
    made = drafted(store, selection)
    _forget(store, session)
    assert publish(store, claimed, made) == StaleClaim()


@case("P11 P5", "an agent that may be writing a fact down is stopped when it is forgotten")
def an_agent_with_a_fact_is_stopped(store: Harness) -> None:
    ref, session = handed_over(store)
    add(store, "likes tea", sources=[Source(session_id=session, seq=1, seq_to=1)])
    claimed = work(store)
    turn = take(store, claimed)
    _forget_fact(store, only_fact(store).id)
    assert fail(store, claimed, turn) == StaleClaim()
    assert take(store, work(store)).id == turn.id, "what it was told it is told again"
    assert agent(store, ref).queued == 1

"""Forgetting a session: it goes, with all that rests on it alone; everything else stays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recollect.types.facts import (
    CallOutcome,
    Caps,
    Fact,
    FactEvent,
    NewCall,
    Receipt,
    Reserved,
    Source,
    Spent,
    Trust,
)
from recollect.types.records import (
    JobKind,
    JobState,
    Mode,
    NothingDue,
    Outcome,
    Recorded,
    Renewed,
    SessionBirth,
    StaleClaim,
)
from recollect_conformance.case import case
from recollect_conformance.harness import KEY, NEVER, SPACE, Harness
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
    fact_named,
    facts,
    lesson,
    only_fact,
    record,
    revision,
    sources_of,
    statement,
    teach,
)


def _forget(store: Harness, session_id: str, space: str = SPACE) -> Receipt:
    receipt = store.handle.erasure.forget_session(space, session_id, store.now())
    assert receipt is not None, "there is no such session"
    return receipt


@case("P11", "forgetting removes records, summary, extraction and facts, and says how many")
def forgetting_removes_everything(store: Harness) -> None:
    ref = store.key()
    store.say(ref, *(store.text() for _ in range(4)), policy=NEVER)
    store.records.set_summary(ref, "so far", store.now())
    session = teach(store, statement("likes tea", 1), statement("likes tea", 2), statement("x"))
    known = [fact.id for fact in facts(store)]
    store.clock.advance(5)
    assert _forget(store, session) == Receipt(
        space=SPACE,
        session_id=session,
        records=5,
        facts=2,
        sources=3,
        extractions=1,
        summaries=1,
        at=store.now(),
        sessions=1,
    )
    assert store.records.all_rotations(ref) == []
    assert store.records.after(SPACE, session, 0, 10) == []
    assert store.marks.max_seq(SPACE, session) is None
    assert store.records.summary(ref) == ""
    assert store.handle.extractions.get(SPACE, session) is None
    assert facts(store, every=True) == []
    assert store.handle.facts.search(SPACE, ["tea"], day(1), 10) == []
    for fact_id in known:
        assert store.handle.facts.get(SPACE, fact_id) is None
        assert store.handle.facts.history(SPACE, fact_id) == []


@case("P11 X7", "a forgotten session is known as forgotten, since when, and as nothing else")
def a_forgotten_session_is_known_as_such(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    state = store.handle.sessions.get(SPACE, session)
    assert state is not None
    assert state.forgotten_at is None
    store.clock.advance(5)
    _forget(store, session)
    state = store.handle.sessions.get(SPACE, session)
    assert state is not None
    assert state.forgotten_at == store.now()
    [line] = store.handle.extractions.progress(SPACE, 10)
    assert (line.outcome, line.finished_at) == ("forgotten", store.now())
    assert (line.facts, line.spent.tokens, line.extractor) == (0, 0, None)


@case("P11", "an unknown session cannot be forgotten, nor one of another space")
def an_unknown_session_is_not_forgotten(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    before = facts(store), revision(store), store.session(session)
    assert store.handle.erasure.forget_session(SPACE, "nobody", store.now()) is None
    assert store.handle.erasure.forget_session("theirs", session, store.now()) is None
    assert (facts(store), revision(store), store.session(session)) == before


@case("P11", "forgetting twice finds nothing the second time")
def forgetting_twice_finds_nothing(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    _forget(store, session)
    before = revision(store), store.session(session)
    again = _forget(store, session)
    assert (again.records, again.facts, again.sources) == (0, 0, 0)
    assert (again.extractions, again.summaries) == (0, 0)
    assert (revision(store), store.session(session)) == before


@case("P11", "a fact with other sources stays, with those")
def a_shared_fact_stays(store: Harness) -> None:
    one = teach(store, statement("likes tea", quote="a secret"), key="one")
    two = teach(store, statement("likes tea"), key="two")
    receipt = _forget(store, one)
    assert (receipt.facts, receipt.sources) == (0, 1)
    fact = only_fact(store)
    assert sources_of(fact) == [(two, 1)]
    assert fact.source == two
    assert "a secret" not in repr(fact)
    assert _forget(store, two).facts == 1


@case("P11 T4", "what a forgotten fact had superseded comes back, or is handed on")
def forgetting_brings_back(store: Harness) -> None:
    homes = [
        teach(store, statement(city, said=day(number), topic="home"), key=city)
        for number, city in enumerate(("Rome", "Oslo", "Kyiv"), 1)
    ]
    _forget(store, homes[1])
    rome, kyiv = fact_named(store, "Rome"), fact_named(store, "Kyiv")
    assert (rome.superseded_by, rome.valid_to) == (kyiv.id, day(3))
    _forget(store, homes[2])
    assert contents(store) == ["Rome"]
    rome = only_fact(store)
    assert (rome.superseded_by, rome.valid_to) == (None, None)
    assert [event.value for event in events(store, rome.id)][-1] == "restored"


@case("P11 T4", "a session that superseded itself is forgotten with all of it")
def a_whole_line_is_forgotten(store: Harness) -> None:
    teach(store, statement("Rome", said=day(1), topic="home"), key="one")
    said = [
        statement(city, seq, said=day(seq + 1), topic="home")
        for seq, city in ((1, "Oslo"), (2, "Kyiv"))
    ]
    session = teach(store, *said, key="two")
    assert _forget(store, session).facts == 2
    assert [(fact.content, fact.superseded_by) for fact in facts(store, every=True)] == [
        ("Rome", None)
    ]


@case("P11", "what was deleted, edited or withdrawn is forgotten with its history")
def nothing_is_left_in_a_history(store: Harness) -> None:
    said = [statement(content) for content in ("deleted", "edited", "withdrawn", "kept")]
    session = teach(store, *said)
    known = {fact.content: fact for fact in facts(store)}
    store.handle.facts.delete(SPACE, known["deleted"].id, store.now())
    edit(store, known["edited"].id, content="edited since")
    teach(store, statement("kept"), is_whole=True)
    assert events(store, known["withdrawn"].id)
    assert _forget(store, session).facts == 4
    assert facts(store, every=True) == []
    for fact in known.values():
        assert store.handle.facts.history(SPACE, fact.id) == []


@case("P11 T4", "what somebody said themselves stays when a session that says the same goes")
def peoples_own_word_stays(store: Harness) -> None:
    own = add(store, "likes tea")
    session = teach(store, statement("likes tea"), statement("has a cat"))
    add(store, "has a cat")
    named = add(store, "is tall", named="mine")
    receipt = _forget(store, session)
    assert (receipt.facts, receipt.sources) == (0, 2)
    assert sorted(contents(store)) == ["has a cat", "is tall", "likes tea"]
    assert all(fact.sources == () for fact in facts(store))
    assert {own.id, named.id} <= {fact.id for fact in facts(store)}


@case("P11 T2", "what was added from a session goes with it")
def what_was_added_from_a_session_goes(store: Harness) -> None:
    session = teach(store)
    for seq in (0, 1):
        source = Source(session_id=session, seq=seq, seq_to=seq)
        add(store, f"from record {seq}", named=f"named {seq}", sources=[source])
    add(store, "unnamed", sources=[source])
    assert _forget(store, session).facts == 3
    assert facts(store, every=True) == []


@case("P11", "what a later session kept of a forgotten one is gone from there too")
def retained_references_are_forgotten(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 4)
    old = store.current(ref)
    store.compact(ref, retain=2)
    store.append(ref)
    assert len(store.everything(ref)) == 3
    assert _forget(store, old.id).records == 4
    assert len(store.everything(ref)) == store.records.count(ref) == 1
    assert len(store.records.all_rotations(ref)) == 1


@case("P11", "forgetting a session that holds references leaves the records they point to")
def forgetting_references_leaves_the_records(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 4)
    store.compact(ref, retain=2)
    new = store.current(ref)
    store.append(ref)
    assert _forget(store, new.id).records == 1
    assert len(store.records.all_rotations(ref)) == 4


@case("P11 P5", "whoever works on a session that is forgotten stores nothing any more")
def work_on_a_forgotten_session_is_stale(store: Harness) -> None:
    _, claimed = due(store)
    _forget(store, claimed.key)
    leases = store.handle.leases
    job = leases.get(SPACE, JobKind.EXTRACT, claimed.key)
    assert job is not None
    assert (job.state, job.owner, job.token > claimed.token) == (JobState.IDLE, None, True)
    assert record(store, claimed, lesson(draft(statement("a ghost")))) == StaleClaim()
    assert leases.record(claimed, 1, Outcome.SKIPPED, "x", store.now()) == StaleClaim()
    assert not isinstance(leases.renew(claimed, POLICY, store.now()), Renewed)
    assert leases.release(claimed) == leases.defer(claimed, "x", 1, store.now()) == StaleClaim()
    assert facts(store, every=True) == []
    assert store.handle.extractions.get(SPACE, claimed.key) is None
    assert isinstance(leases.claim("b", POLICY, store.now()), NothingDue)


@case("P11 P5", "a pass over a session that is forgotten stores nothing any more")
def a_pass_over_a_forgotten_session_is_stale(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    store.handle.extractions.request_passes(SPACE, session, store.now())
    again = claim(store)
    _forget(store, session)
    learned = lesson(draft(statement("a ghost")), is_whole=True, pass_number=2)
    outcome = store.handle.leases.record_pass(again, 1, learned, store.now(), store.new_id)
    assert outcome == StaleClaim()
    assert facts(store, every=True) == []
    assert isinstance(store.handle.leases.claim("b", POLICY, store.now()), NothingDue)


@case("P11 X9", "no pass is made over a forgotten session")
def no_pass_over_a_forgotten_session(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    _forget(store, session)
    assert store.handle.extractions.request_passes(SPACE, session, store.now()) == 0
    assert store.handle.extractions.request_passes(None, None, store.now()) == 0


@case("P11", "a job that waits, is parked or has an error leaves none of it behind")
def no_error_is_left_behind(store: Harness) -> None:
    _, claimed = due(store)
    store.handle.leases.fail(claimed, "a secret", 0, POLICY, store.now(), is_final=True)
    _forget(store, claimed.key)
    job = store.handle.leases.get(SPACE, JobKind.EXTRACT, claimed.key)
    assert job is not None
    assert (job.state, job.last_error) == (JobState.IDLE, None)
    assert store.handle.leases.revive(SPACE, None) == 0


@case("P11 M1", "a forgotten session is over; the next record opens a new one behind the key")
def a_forgotten_session_is_over(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    forgotten = store.current(ref)
    _forget(store, forgotten.id)
    state = store.session(forgotten.id)
    assert state.ended_at is not None
    assert (state.invalidated_at, state.processed_until, state.unprocessed) == (None, 3, 0)
    [span] = store.marks.ranges(SPACE, forgotten.id)
    assert (span.first_seq, span.last_seq, span.outcome) == (1, 3, Outcome.SKIPPED)
    [said] = store.append(ref)
    assert said.session_id != forgotten.id
    assert store.key(KEY) == ref
    teach(store, statement("likes tea"))
    assert contents(store) == ["likes tea"]


@case("P11 X11", "what was spent on a forgotten session stays in the books, without its name")
def the_books_do_not_name_the_forgotten(store: Harness) -> None:
    session = teach(store)
    call = NewCall(
        space=SPACE,
        session_id=session,
        purpose="extract",
        model="small",
        attempt=1,
        input_tokens=5,
        output_tokens=5,
    )
    caps = Caps(tokens_per_day=100, calls_per_day=10)
    reserved = store.handle.ledger.reserve(call, caps, store.now())
    assert isinstance(reserved, Reserved)
    _forget(store, session)
    assert store.handle.ledger.calls(SPACE, session, 10, None) == []
    [entry] = store.handle.ledger.calls(SPACE, None, 10, None)
    assert entry.session_id is None
    took = Spent(calls=1, input_tokens=1, output_tokens=1, cost_micros=1)
    assert store.handle.ledger.settle(SPACE, reserved.call_id, took, CallOutcome.ANSWERED)
    assert store.handle.ledger.spent(SPACE, store.now()) == took


@case("P11 X8", "consolidation hears of it when something learned is forgotten, and else does not")
def consolidation_hears_of_forgetting(store: Harness) -> None:
    ref = store.key("unlearned")
    store.append(ref, 2)
    _forget(store, store.current(ref).id)
    assert revision(store).changed == 0
    one = teach(store, statement("likes tea"), key="one")
    teach(store, statement("likes tea"), key="two")
    _forget(store, one)
    assert revision(store).changed == 3


@case("P11 P9", "other sessions and other spaces are left alone")
def others_are_left_alone(store: Harness) -> None:
    session = teach(store, statement("likes tea"), key="one")
    other = teach(store, statement("has a cat"), key="two")
    teach(store, statement("likes tea"), key="one", space="theirs")
    their_ref = store.key("one", space="theirs")

    def sights() -> list[object]:
        return [
            store.session(other),
            store.handle.extractions.get(SPACE, other),
            store.records.after(SPACE, other, 0, 10),
            facts(store, space="theirs"),
            revision(store, space="theirs"),
            store.everything(their_ref),
            store.handle.extractions.list("theirs", 10, None),
        ]

    before = sights()
    _forget(store, session)
    assert sights() == before
    assert contents(store) == ["has a cat"]


@case("P11", "a session that may not be remembered, or is not done yet, can be forgotten")
def any_session_can_be_forgotten(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    store.set_mode(ref, Mode.DISABLED)
    assert _forget(store, store.current(ref).id).records == 2
    empty = store.key("empty")
    assert _forget(store, store.current(empty).id).records == 0
    ended = store.key("ended")
    store.append(ended, 2)
    state = store.end(ended)
    assert _forget(store, state.id).records == 2
    assert store.session(state.id).ended_at == state.ended_at


@case("P11", "a forgotten session does not say what project it was of")
def a_forgotten_session_names_no_project(store: Harness) -> None:
    ref = store.key(birth=SessionBirth(project="/saffron"))
    store.append(ref)
    session = store.current(ref).id
    store.reset(ref)
    _forget(store, session)
    assert store.session(session).project is None
    assert store.current(ref).project == "/saffron", "the next session is another"
    _forget(store, store.current(ref).id)
    assert store.key() == ref
    assert store.current(ref).project is None
    birth = SessionBirth(project="/thyme")
    assert store.key(birth=birth) == store.key(birth=SessionBirth(project="/rye")) == ref
    store.append(ref)
    assert store.current(ref).project == "/thyme", "what is said from then on is of no project"
    store.key(birth=SessionBirth(project="/rye"))
    assert store.current(ref).project == "/thyme"


@case("P11 P5", "a run and its forgetting at once: either it is stored and erased, or refused")
def forgetting_and_recording_at_once(store: Harness) -> None:
    for number in range(6):
        _, claimed = due(store, f"key {number}")
        learned = lesson(draft(statement(f"fact {number}")))
        jobs: list[Callable[[], object]] = [
            partial(record, store, claimed, learned),
            partial(_forget, store, claimed.key),
        ]
        outcomes = store.at_once(*jobs)
        assert outcomes[0] in (Recorded(is_done=True), StaleClaim())
        assert facts(store, every=True) == []
        assert store.handle.extractions.get(SPACE, claimed.key) is None


@case("P11 P1", "records appended while their session is forgotten go with it, or come after")
def appending_and_forgetting_at_once(store: Harness) -> None:
    ref = store.key()
    store.append(ref)
    for _ in range(6):
        current = store.current(ref).id
        jobs: list[Callable[[], object]] = [
            *[partial(store.append, ref, 2)] * 3,
            partial(_forget, store, current),
        ]
        store.at_once(*jobs)
        store.append(ref)
        assert store.records.after(SPACE, current, 0, 10) == []
        state = store.session(current)
        assert state.last_seq == state.processed_until
        assert store.current(ref).id != current


@case("P11 T7", "a summary that compactions carried on is forgotten with the session it tells of")
def carried_summaries_are_forgotten(store: Harness) -> None:
    ref = store.key()
    first = store.current(ref)
    store.append(ref)
    store.records.set_summary(ref, "a secret", store.now())
    second = store.compact(ref)
    store.append(ref)
    third = store.compact(ref, summary="the secret, in other words")
    store.append(ref)
    assert _forget(store, second.id).summaries == 2
    assert store.records.summary(ref) == ""
    store.records.set_summary(ref, "the secret again", store.now())
    receipt = _forget(store, first.id)
    assert (receipt.summaries, receipt.records) == (2, 1)
    assert store.records.summary(ref) == ""
    assert store.current(ref).id == third.id


@case("P11 T7", "summaries of sessions that no compaction leads to are left alone")
def other_summaries_are_left_alone(store: Harness) -> None:
    ref, other = store.key("one"), store.key("two")
    for each in (ref, other):
        store.append(each)
        store.records.set_summary(each, "before", store.now())
    store.compact(other)
    old = store.current(ref)
    store.reset(ref)
    store.append(ref)
    store.records.set_summary(ref, "after a reset", store.now())
    assert _forget(store, old.id).summaries == 1
    assert store.records.summary(ref) == "after a reset"
    assert store.records.summary(other) == "before"
    middle = store.current(ref)
    store.end(ref)
    store.append(ref)
    store.records.set_summary(ref, "after an end", store.now())
    assert _forget(store, middle.id).summaries == 1
    assert store.records.summary(ref) == "after an end"


@case("P11 T2", "a fact is worth as much as the best of the sources that are left")
def trust_falls_with_its_source(store: Harness) -> None:
    sessions = {
        trust: teach(store, statement("the key is in the vault", trust=trust), key=trust.value)
        for trust in (Trust.TOOL, Trust.USER, Trust.AGENT)
    }
    assert only_fact(store).trust is Trust.USER
    _forget(store, sessions[Trust.USER])
    assert only_fact(store).trust is Trust.AGENT
    teach(store, key=Trust.AGENT.value, is_whole=True)
    fact = only_fact(store)
    assert (fact.trust, sources_of(fact)) == (Trust.TOOL, [(sessions[Trust.TOOL], 1)])


@case("P11 T2", "somebody's own word keeps its worth, whatever becomes of the sources")
def an_own_word_keeps_its_worth(store: Harness) -> None:
    said = Fact("likes tea", trust=Trust.AGENT)
    store.handle.facts.add(SPACE, said, store.now(), store.new_id)
    session = teach(store, statement("likes tea"))
    assert only_fact(store).trust is Trust.USER
    _forget(store, session)
    assert only_fact(store).trust is Trust.AGENT
    weak = teach(store, statement("likes tea", trust=Trust.TOOL), key="weak")
    assert only_fact(store).trust is Trust.AGENT
    assert add(store, "likes tea").trust is Trust.USER
    _forget(store, weak)
    assert only_fact(store).trust is Trust.USER


@case("P11 T4", "a fact that has lost its better word supersedes no better word any more")
def a_weakened_fact_gives_back(store: Harness) -> None:
    teach(store, statement("Rome", said=day(1), topic="home"), key="one")
    teach(store, statement("Oslo", said=day(2), topic="home", trust=Trust.TOOL), key="two")
    third = teach(store, statement("Oslo", said=day(3), topic="home"), key="three")
    assert contents(store) == ["Oslo"]
    _forget(store, third)
    assert contents(store) == ["Rome", "Oslo"]
    assert fact_named(store, "Rome").superseded_by is None
    assert events(store, fact_named(store, "Rome").id)[-1] is FactEvent.RESTORED

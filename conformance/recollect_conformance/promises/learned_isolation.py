"""Spaces, once more: nothing that was learned in one shows in another or is changed from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from recollect.types.facts import (
    CallOutcome,
    Caps,
    Fact,
    FactQuery,
    NewCall,
    Receipt,
    Reserved,
    Review,
    ReviewQuery,
    Revision,
    Source,
    Spent,
    Trust,
)
from recollect.types.records import Claim, JobKind
from recollect_conformance.case import case
from recollect_conformance.harness import Harness
from recollect_conformance.lessons import (
    add,
    claim,
    contents,
    day,
    draft,
    due,
    edit,
    facts,
    lesson,
    record,
    revision,
    sources_of,
    statement,
    teach,
)

OURS, THEIRS = "ours", "theirs"
CANARY = "the canary sings"
CAPS = Caps(tokens_per_day=1000, calls_per_day=10)
TOPIC = "song"


class _Theirs:
    """Another space with something of everything, and the names by which one could reach it."""

    def __init__(self, store: Harness) -> None:
        self.session = teach(
            store, statement(CANARY, topic=TOPIC), statement("old", topic="x"), space=THEIRS
        )
        add(store, "a canary", named="mine", space=THEIRS, metadata={"canary": 1}, tags=["canary"])
        call = _call(THEIRS, self.session)
        reserved = store.handle.ledger.reserve(call, CAPS, store.now())
        assert isinstance(reserved, Reserved)
        self.call_id = reserved.call_id
        self.facts = facts(store, space=THEIRS)
        store.handle.extractions.request_passes(THEIRS, None, store.now())

    def sights(self, store: Harness) -> list[object]:
        return [
            facts(store, every=True, space=THEIRS),
            [store.handle.facts.history(THEIRS, fact.id) for fact in self.facts],
            store.handle.extractions.get(THEIRS, self.session),
            store.handle.extractions.revision(THEIRS),
            store.handle.extractions.progress(THEIRS, 10),
            store.handle.ledger.calls(THEIRS, None, 10, None),
            store.handle.ledger.spent(THEIRS, store.now()),
            store.handle.leases.jobs(THEIRS, 10),
            store.marks.ranges(THEIRS, self.session),
            store.records.after(THEIRS, self.session, 0, 10),
        ]


def _call(space: str, session_id: str | None) -> NewCall:
    return NewCall(
        space=space,
        session_id=session_id,
        purpose="extract",
        model="small",
        attempt=1,
        input_tokens=60,
        output_tokens=40,
    )


@case("P9 T2", "no fact of another space is found, by its id either")
def no_fact_of_another_space_is_found(store: Harness) -> None:
    theirs = _Theirs(store)
    found = store.handle.facts
    for fact in theirs.facts:
        assert found.get(OURS, fact.id) is None
        assert found.history(OURS, fact.id) == []
    for query in (
        FactQuery(at=day(9), every=True),
        FactQuery(at=day(9), tag="canary"),
        FactQuery(at=day(9), session_id=theirs.session),
        FactQuery(at=day(9), before=replace(theirs.facts[0], created_at=day(99))),
    ):
        assert found.list(OURS, query, 10) == []
    assert found.search(OURS, ["canary", "sings"], day(9), 10) == []
    assert found.search_metadata(OURS, "canary", 1, day(9), 10) == []
    assert found.count(OURS, day(9)) == 0
    assert found.naming(OURS, ["canary", "sings"], day(9), 10, None) == []
    assert found.count_naming(OURS, ["canary", "sings"], day(9)) == 0
    held = Fact("sings in secret", trust=Trust.AGENT, review=Review.WAITING)
    found.add(THEIRS, held, store.now(), store.new_id)
    assert found.waiting(OURS, ReviewQuery(), day(9), 10) == []
    assert (found.count_waiting(OURS), found.count_waiting(THEIRS)) == (0, 1)


@case("P9", "no extraction, progress or revision of another space is seen")
def no_extraction_of_another_space_is_seen(store: Harness) -> None:
    theirs = _Theirs(store)
    read = store.handle.extractions
    assert read.get(OURS, theirs.session) is None
    assert read.list(OURS, 10, None) == []
    assert read.progress(OURS, 10) == []
    [their_own] = read.list(THEIRS, 10, None)
    assert read.list(OURS, 10, replace(their_own, generated_at=day(99))) == []
    assert read.revision(OURS) == Revision(changed=0, consolidated=0, changed_at=None)
    assert (read.count_due(OURS), read.count_due(THEIRS)) == (0, 1)


@case("P9 X11", "no call of another space is seen, counted or settled")
def no_call_of_another_space_is_seen(store: Harness) -> None:
    theirs = _Theirs(store)
    before = theirs.sights(store)
    ledger = store.handle.ledger
    assert ledger.calls(OURS, None, 10, None) == ledger.calls(OURS, theirs.session, 10, None) == []
    assert ledger.spent(OURS, store.now()) == Spent()
    assert not ledger.settle(OURS, theirs.call_id, Spent(input_tokens=9), CallOutcome.ANSWERED)
    for _ in range(CAPS.calls_per_day):
        assert isinstance(ledger.reserve(_call(OURS, None), CAPS, store.now()), Reserved)
    assert theirs.sights(store) == before


@case("P9 T2 P11", "no fact or session of another space is changed, deleted or forgotten")
def nothing_of_another_space_is_changed(store: Harness) -> None:
    theirs = _Theirs(store)
    before = theirs.sights(store)
    fact = theirs.facts[0]
    attempts: list[Callable[[], object]] = [
        lambda: edit(store, fact.id, space=OURS, content="x"),
        lambda: store.handle.facts.accept(OURS, [fact], store.now()),
        lambda: store.handle.facts.reject(OURS, [fact], store.now()),
        lambda: store.handle.facts.delete(OURS, fact.id, store.now()),
        lambda: store.handle.erasure.forget_session(OURS, theirs.session, store.now()),
        lambda: store.handle.extractions.request_passes(OURS, theirs.session, store.now()),
        lambda: store.handle.extractions.request_passes(OURS, None, store.now()),
        lambda: store.handle.leases.revive(OURS, theirs.session),
        lambda: store.handle.leases.get(OURS, JobKind.EXTRACT_AGAIN, theirs.session),
    ]
    for attempt in attempts:
        assert not attempt()
        assert theirs.sights(store) == before


@case("P9 T4", "the same id, statement, topic or session name here is another one than there")
def the_same_names_here_are_others(store: Harness) -> None:
    theirs = _Theirs(store)
    before = theirs.sights(store)
    add(store, "ours", named="mine", space=OURS)
    for fact in theirs.facts:
        told = Fact("ours now", topic=fact.topic)
        assert not store.handle.facts.remember(OURS, told, store.now(), store.new_id).replaced
    for fact in theirs.facts:
        given = Fact("taken over", id=fact.id, sources=fact.sources)
        store.handle.facts.add(OURS, given, store.now(), store.new_id)
    source = Source(session_id=theirs.session, seq=1, seq_to=1, quote="ours")
    add(store, CANARY, space=OURS, sources=[source])
    add(store, CANARY, space=OURS)
    store.handle.facts.delete(OURS, "mine", store.now())
    assert theirs.sights(store) == before
    [merged] = [fact for fact in facts(store, space=OURS) if fact.content == CANARY]
    assert sources_of(merged) == [(theirs.session, 1)]


@case("P9 T4", "what is learned here neither merges with nor supersedes anything there")
def learning_here_changes_nothing_there(store: Harness) -> None:
    store.clock.advance(5 * 86_400)
    theirs = _Theirs(store)
    again = claim(store)  # theirs, out of the way
    assert again.space == THEIRS
    before = theirs.sights(store)
    names = [fact.id for fact in theirs.facts]
    said = [
        statement(CANARY, topic=TOPIC),
        statement("a new song", said=day(5), topic=TOPIC, supersedes=names),
    ]
    session = teach(store, *said, space=OURS)
    assert contents(store, space=OURS) == ["a new song"]
    teach(store, space=OURS, is_whole=True)
    receipt = store.handle.erasure.forget_session(OURS, session, store.now())
    assert isinstance(receipt, Receipt)
    assert receipt.facts == 2
    assert theirs.sights(store) == before
    assert revision(store, space=THEIRS).changed == 2


@case("P9 P5", "a claim that names another space than its job's stores nothing there")
def a_forged_claim_stores_nothing(store: Harness) -> None:
    theirs = _Theirs(store)
    claim(store)
    _, ours = due(store, space=OURS)
    before = theirs.sights(store)
    leases = store.handle.leases
    forged: list[Claim] = [
        replace(ours, space=THEIRS),
        replace(ours, space=THEIRS, key=theirs.session),
        replace(ours, key=theirs.session),
    ]
    for each in forged:
        record(store, each, lesson(draft(statement("forged"))))
        learned = lesson(draft(statement("forged")), is_whole=True, pass_number=2)
        leases.record_pass(each, 1, learned, store.now(), store.new_id)
        assert theirs.sights(store) == before
    foreign = leases.load(replace(ours, key=theirs.session), None, 10)
    assert foreign is None

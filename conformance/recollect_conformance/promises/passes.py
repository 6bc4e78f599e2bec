"""Another pass over a session: the old results stand until the new ones replace them at once."""

from __future__ import annotations

from recollect.types.facts import Draft
from recollect.types.records import (
    Behind,
    Claim,
    JobKind,
    JobState,
    Mode,
    NothingDue,
    Outcome,
    Overtaken,
    Recorded,
    StaleClaim,
)
from recollect_conformance.case import case
from recollect_conformance.harness import KEY, NEVER, SPACE, Harness
from recollect_conformance.lessons import (
    NOTHING,
    POLICY,
    claim,
    contents,
    draft,
    due,
    extraction,
    facts,
    learn,
    lesson,
    record,
    revision,
    statement,
    teach,
)

MODEL = "model"


def _request(store: Harness, session_id: str | None = None, space: str | None = SPACE) -> int:
    return store.handle.extractions.request_passes(space, session_id, store.now())


def _again(store: Harness) -> Claim:
    claimed = claim(store)
    assert claimed.kind is JobKind.EXTRACT_AGAIN
    return claimed


def _record_pass(
    store: Harness, claimed: Claim, made: Draft | None, *, number: int = 2, upto: int | None = None
) -> Recorded | Behind | StaleClaim:
    learned = None
    if made is not None:
        learned = lesson(made, is_whole=True, pass_number=number, extractor=MODEL)
    reached = claimed.read_upto if upto is None else upto
    return store.handle.leases.record_pass(claimed, reached, learned, store.now(), store.new_id)


def _spans(store: Harness, session_id: str) -> list[tuple[int, int, str, str | None]]:
    return [
        (span.first_seq, span.last_seq, span.outcome.value, span.reason)
        for span in store.marks.ranges(SPACE, session_id)
    ]


@case("X9", "a pass that is asked for is due once, over what has been processed")
def a_requested_pass_is_due(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    store.say(store.key(), store.text(), policy=NEVER)
    assert _request(store, session) == 1
    assert _request(store, session) == 0
    claimed = _again(store)
    assert (claimed.space, claimed.key, claimed.read_upto) == (SPACE, session, 1)
    assert isinstance(store.handle.leases.claim("b", POLICY, store.now()), NothingDue)
    assert _request(store, session) == 0


@case("X9", "passes are asked for over a session, a space or the whole store")
def passes_are_requested_by_scope(store: Harness) -> None:
    for key in ("one", "two"):
        teach(store, key=key)
    teach(store, key="theirs", space="space-b")
    store.say(store.key("unprocessed"), store.text(), policy=NEVER)
    assert _request(store, space="nowhere") == 0
    assert _request(store, "nobody") == 0
    assert _request(store) == 2
    assert _request(store, space=None) == 1
    asked = [job for job in store.handle.leases.jobs(None, 10) if job.kind is JobKind.EXTRACT_AGAIN]
    assert [job.state for job in asked] == [JobState.DUE] * 3


@case("X9 M7", "no pass is made over a session that may not be remembered")
def no_pass_over_what_may_not_be_remembered(store: Harness) -> None:
    teach(store)
    store.set_mode(store.key(), Mode.DISABLED)
    assert _request(store) == 0


@case("X9 P3", "a pass replaces extraction, facts and ranges in one step")
def a_pass_replaces_everything(store: Harness) -> None:
    session = teach(store, statement("likes tea"), statement("has a cat"))
    _request(store)
    claimed = _again(store)
    store.clock.advance(5)
    made = draft(statement("likes tea"), statement("is tall"), memory="better")
    assert _record_pass(store, claimed, made) == Recorded(is_done=True)
    assert store.session(session).pass_number == 2
    assert contents(store) == ["is tall", "likes tea"]
    new = extraction(store, session)
    assert (new.raw_memory, new.extractor, new.pass_number) == ("better", MODEL, 2)
    assert _spans(store, session) == [(1, 1, "extracted", None)]
    [span] = store.marks.ranges(SPACE, session)
    assert (span.pass_number, span.extractor, span.spent.input_tokens) == (2, MODEL, 100)
    job = store.handle.leases.get(SPACE, JobKind.EXTRACT_AGAIN, session)
    assert job is not None
    assert (job.state, job.finished_at) == (JobState.IDLE, store.now())
    assert revision(store).changed == 2


@case("X8 X9", "a pass that finds nothing takes back what was learned")
def an_empty_pass_takes_back(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    _request(store)
    assert _record_pass(store, _again(store), NOTHING) == Recorded(is_done=True)
    assert store.handle.extractions.get(SPACE, session) is None
    assert facts(store, every=True) == []
    assert _spans(store, session) == [(1, 1, "no_output", None)]


@case("X8 X9", "a pass that finds the same is a pass, and no news for consolidation")
def the_same_again_is_no_news(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    before = facts(store)
    _request(store)
    assert _record_pass(store, _again(store), draft(statement("likes tea"))) == Recorded(
        is_done=True
    )
    assert (facts(store), revision(store).changed) == (before, 1)
    assert extraction(store, session).pass_number == 2


@case("X9", "a pass with nothing to go through leaves everything as it is")
def a_pass_over_nothing_changes_nothing(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    before = extraction(store, session), facts(store), revision(store), _spans(store, session)
    _request(store)
    claimed = _again(store)
    assert _record_pass(store, claimed, None) == Recorded(is_done=True)
    after = extraction(store, session), facts(store), revision(store), _spans(store, session)
    assert after == before
    assert store.session(session).pass_number == 1
    assert _record_pass(store, claimed, NOTHING) == StaleClaim()


@case("X9 P3", "a pass that was overtaken by the session stores nothing, and can go on")
def a_pass_that_was_overtaken_goes_on(store: Harness) -> None:
    session = teach(store, statement("likes tea", 1))
    _request(store)
    claimed = _again(store)
    teach(store, statement("has a cat", 2))
    before = facts(store), extraction(store, session), revision(store)
    made = draft(statement("likes tea", 1), memory="new")
    assert _record_pass(store, claimed, made) == Behind(2)
    assert (facts(store), extraction(store, session), revision(store)) == before
    assert store.session(session).pass_number == 1
    more = draft(statement("likes tea", 1), statement("has a dog", 2), memory="new")
    assert _record_pass(store, claimed, more, upto=2) == Recorded(is_done=True)
    assert contents(store) == ["has a dog", "likes tea"]
    assert _spans(store, session) == [(1, 2, "extracted", None)]


@case("X9 P5", "a pass whose claim is stale, or whose number is not the next, stores nothing")
def a_stale_pass_stores_nothing(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    _request(store)
    stale = _again(store)
    before = facts(store), extraction(store, session), revision(store)
    for number in (0, 1, 3):
        assert _record_pass(store, stale, NOTHING, number=number) == StaleClaim()
    store.clock.advance(60)
    current = _again(store)
    assert _record_pass(store, stale, NOTHING) == StaleClaim()
    assert (facts(store), extraction(store, session), revision(store)) == before
    assert _record_pass(store, current, NOTHING) == Recorded(is_done=True)
    assert _record_pass(store, current, NOTHING, number=3) == StaleClaim()


@case("X9 P5", "a run of the old pass that is still under way stores nothing")
def a_run_of_the_old_pass_is_overtaken(store: Harness) -> None:
    session = teach(store, statement("likes tea", 1))
    _request(store)
    again = _again(store)
    _, running = due(store)
    assert _record_pass(store, again, draft(statement("is tall", 1))) == Recorded(is_done=True)
    old = lesson(draft(statement("has a cat", 2)))
    assert record(store, running, old) == Overtaken()
    assert contents(store) == ["is tall"]
    assert store.session(session).processed_until == 1
    new = lesson(draft(statement("has a cat", 2)), pass_number=2)
    assert record(store, running, new) == Recorded(is_done=True)
    assert contents(store) == ["has a cat", "is tall"]


@case("X9 P3", "the ranges of a pass cover every record once; what was skipped stays skipped")
def the_ranges_of_a_pass_cover_everything(store: Harness) -> None:
    ref = store.key()
    store.say(ref, *(store.text() for _ in range(9)), policy=NEVER)
    session = store.sleep(ref)
    claimed = claim(store)
    leases = store.handle.leases
    told = [
        (2, Outcome.EXTRACTED, None),
        (4, Outcome.SKIPPED, "mode polluted"),
        (6, Outcome.NO_OUTPUT, None),
        (7, Outcome.SKIPPED, "nothing in it"),
        (9, Outcome.EXTRACTED, None),
    ]
    for upto, outcome, reason in told:
        leases.record(claimed, upto, outcome, reason, store.now())
    _request(store)
    again = _again(store)
    loaded = leases.load(again, 0, 100)
    assert loaded is not None
    assert [each.seq for each in loaded.records] == [1, 2, 5, 6, 8, 9]
    assert _record_pass(store, again, draft()) == Recorded(is_done=True)
    assert _spans(store, session.id) == [
        (1, 2, "extracted", None),
        (3, 4, "skipped", "mode polluted"),
        (5, 6, "extracted", None),
        (7, 7, "skipped", "nothing in it"),
        (8, 9, "extracted", None),
    ]
    learn(store, lesson(draft(), pass_number=2))
    assert _spans(store, session.id)[-1] == (10, 10, "extracted", None)


@case("X9", "what somebody else had processed is gone through by a pass")
def a_pass_goes_through_what_others_processed(store: Harness) -> None:
    ref = store.key()
    store.say(ref, *(store.text() for _ in range(3)), policy=NEVER)
    session = store.process_all(ref)
    assert _spans(store, session.id) == [(1, 3, "external", None)]
    _request(store)
    again = _again(store)
    loaded = store.handle.leases.load(again, 0, 100)
    assert loaded is not None
    assert [each.seq for each in loaded.records] == [1, 2, 3]
    _record_pass(store, again, draft(statement("likes tea")))
    assert _spans(store, session.id) == [(1, 3, "extracted", None)]


@case("X9", "a pass is loaded piece by piece, up to what the claim covers")
def a_pass_is_loaded_in_pieces(store: Harness) -> None:
    ref = store.key()
    store.say(ref, *(store.text() for _ in range(5)), policy=NEVER)
    store.sleep(ref)
    record(store, claim(store), lesson(draft()))
    store.say(ref, store.text(), policy=NEVER)
    _request(store)
    again = _again(store)
    read: list[list[int]] = []
    after = 0
    while loaded := store.handle.leases.load(again, after, 2):
        if not loaded.records:
            break
        read.append([each.seq for each in loaded.records])
        after = loaded.records[-1].seq
    assert read == [[1, 2], [3, 4], [5]]


@case("X9 M11", "a pass can fail and be parked, and asking for it again revives it")
def a_parked_pass_is_revived_by_asking(store: Harness) -> None:
    session = teach(store)
    _request(store)
    store.handle.leases.fail(_again(store), "no", 0, POLICY, store.now(), is_final=True)
    assert _request(store, session) == 1
    assert _again(store).attempt == 1


@case("X9", "a session can have any number of passes")
def a_session_can_have_many_passes(store: Harness) -> None:
    session = teach(store, statement("one"), key=KEY)
    for number, word in enumerate(("two", "three", "four"), 2):
        assert _request(store) == 1
        made = draft(statement(word))
        assert _record_pass(store, _again(store), made, number=number) == Recorded(is_done=True)
        assert contents(store) == [word]
        assert len(store.marks.ranges(SPACE, session)) == 1

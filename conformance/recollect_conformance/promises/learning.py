"""What a run has learned is stored with the cursor: extraction, facts and news, all or nothing."""

from __future__ import annotations

from dataclasses import replace

from recollect.messages import Role
from recollect.types.facts import FactFaults, Revision, Spent
from recollect.types.records import JobState, NewRecord, Outcome, Overtaken, Recorded, StaleClaim
from recollect_conformance.case import case, refused
from recollect_conformance.harness import NEVER, SPACE, Harness
from recollect_conformance.lessons import (
    MEMORY,
    NOTHING,
    POLICY,
    RULES,
    SLUG,
    SUMMARY,
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

NEVER_CHANGED = Revision(changed=0, consolidated=0, changed_at=None)


@case("X5 X9 P3", "a run stores extraction, facts, sources, cursor and news together")
def a_run_stores_everything_together(store: Harness) -> None:
    ref, claimed = due(store)
    store.clock.advance(5)
    assert record(store, claimed, lesson(draft(statement("likes tea")))) == Recorded(is_done=True)
    session = store.current(ref)
    assert (session.processed_until, session.invalidated_at) == (1, None)
    made = extraction(store, session.id)
    assert (made.raw_memory, made.rollout_summary, made.rollout_slug) == (MEMORY, SUMMARY, SLUG)
    assert (made.extractor, made.pass_number, made.upto) == (RULES, 1, 1)
    assert (made.usage_count, made.last_usage, made.selected_for_phase2) == (0, None, False)
    assert (made.space, made.generated_at) == (SPACE, store.now())
    fact = only_fact(store)
    assert sources_of(fact) == [(session.id, 1)]
    assert fact.sources[0].quote == "« likes tea »"
    assert (fact.source, fact.space, fact.extractor) == (session.id, SPACE, RULES)
    assert revision(store) == Revision(changed=1, consolidated=0, changed_at=store.now())


@case("X7 P3", "the range of a run says who read it, at which attempt, and what it took")
def a_range_says_what_it_took(store: Harness) -> None:
    ref, claimed = due(store)
    faults = FactFaults(dropped=2, mended=3)
    record(store, claimed, lesson(replace(draft(statement("likes tea")), faults=faults)))
    [span] = store.marks.ranges(SPACE, store.current(ref).id)
    assert span.faults == faults
    assert (span.outcome, span.extractor, span.attempt) == (Outcome.EXTRACTED, RULES, 1)
    assert span.pass_number == 1
    assert span.spent == Spent(input_tokens=100, output_tokens=20, cost_micros=7)


@case("P5 M13", "a stale claim stores nothing of what it learned")
def a_stale_claim_learns_nothing(store: Harness) -> None:
    ref, stale = due(store)
    store.clock.advance(60)
    current = claim(store, "b")
    assert record(store, stale, lesson(draft(statement("a lie")))) == StaleClaim()
    session = store.current(ref)
    assert session.processed_until is None
    assert store.handle.extractions.get(SPACE, session.id) is None
    assert facts(store, every=True) == []
    assert revision(store) == NEVER_CHANGED
    assert record(store, current, lesson(draft(statement("the truth")))) == Recorded(is_done=True)
    assert contents(store) == ["the truth"]


@case("X9 P5", "what was learned in another pass than the session's is overtaken, and not stored")
def another_pass_is_refused(store: Harness) -> None:
    ref, claimed = due(store)
    for number in (0, 2):
        wrong = lesson(draft(statement("a lie")), pass_number=number)
        assert record(store, claimed, wrong) == Overtaken()
    session = store.current(ref)
    assert (session.processed_until, session.invalidated_at) == (None, 1)
    assert store.handle.extractions.get(SPACE, session.id) is None
    assert facts(store, every=True) == []
    assert store.marks.ranges(SPACE, session.id) == []
    right = lesson(draft(statement("the truth")))
    assert record(store, claimed, right) == Recorded(is_done=True), "the claim is still held"


@case("P1 P3", "a run that fails half-way has stored nothing, and can be recorded again")
def a_failed_run_stores_nothing(store: Harness) -> None:
    class NoIdError(Exception):
        pass

    ref, claimed = due(store)
    left = ["fact-1"]

    def one_id() -> str:
        if not left:
            raise NoIdError
        return left.pop()

    learned = lesson(draft(statement("first"), statement("second")))
    with refused(NoIdError):
        store.handle.leases.record(
            claimed, 1, Outcome.EXTRACTED, None, store.now(), learned, one_id
        )
    assert store.current(ref).processed_until is None
    assert facts(store, every=True) == []
    assert store.handle.extractions.get(SPACE, claimed.key) is None
    assert revision(store) == NEVER_CHANGED
    assert record(store, claimed, learned) == Recorded(is_done=True)
    assert contents(store) == ["first", "second"]


@case("X9", "an extraction says when the newest record it rests on was said")
def an_extraction_knows_its_newest_record(store: Harness) -> None:
    ref = store.key()
    for number in (1, 2, 3):
        said = NewRecord(role=Role.USER, content="x", said_at=day(-number))
        store.say(ref, said, policy=NEVER)
    session = store.sleep(ref)
    claimed = claim(store)
    record(store, claimed, lesson(draft()), upto=2)
    assert extraction(store, session.id).source_updated_at == day(-2)
    record(store, claimed, lesson(draft(memory="more")))
    made = extraction(store, session.id)
    assert (made.source_updated_at, made.upto) == (day(-3), 3)


@case("X9", "running a session again updates its one extraction")
def an_extraction_is_updated(store: Harness) -> None:
    session = learn(store, lesson(draft()))
    store.clock.advance(5)
    learn(store, lesson(draft(memory="new", summary="newer"), extractor="model"))
    made = extraction(store, session)
    assert (made.raw_memory, made.rollout_summary) == ("new", "newer")
    assert (made.extractor, made.upto, made.generated_at) == ("model", 2, store.now())
    assert store.handle.extractions.list(SPACE, 10, None) == [made]


@case("X9", "a run that reads on adds to what was learned and takes nothing back")
def an_incremental_run_keeps(store: Harness) -> None:
    session = teach(store, statement("likes tea", 1))
    teach(store, statement("has a cat", 2))
    assert contents(store) == ["has a cat", "likes tea"]
    assert [fact.source for fact in facts(store)] == [session, session]


@case("X8", "an empty draft keeps the extraction when it did not read the whole session")
def an_empty_draft_keeps_the_extraction(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    before = extraction(store, session), facts(store), revision(store)
    learn(store, lesson(NOTHING))
    assert store.session(session).processed_until == 2
    assert (extraction(store, session), facts(store), revision(store)) == before


@case("X8", "an empty draft that read the whole session removes extraction and facts")
def an_empty_whole_draft_removes(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    learn(store, lesson(NOTHING, is_whole=True))
    assert store.handle.extractions.get(SPACE, session) is None
    assert facts(store, every=True) == []
    assert revision(store).changed == 2


@case("X8", "nothing to remember in a new session stores nothing and tells nobody")
def nothing_to_remember_stores_nothing(store: Harness) -> None:
    for is_whole in (False, True):
        session = learn(store, lesson(NOTHING, is_whole=is_whole))
        assert store.handle.extractions.get(SPACE, session) is None
        assert revision(store) == NEVER_CHANGED
    ranges = store.marks.ranges(SPACE, session)
    assert [span.outcome for span in ranges] == [Outcome.NO_OUTPUT, Outcome.NO_OUTPUT]


@case("X8", "texts of blanks are no texts")
def blank_texts_are_no_texts(store: Harness) -> None:
    session = learn(store, lesson(draft(memory=" \n", summary="\t")))
    assert store.handle.extractions.get(SPACE, session) is None


@case("X8 X9", "facts without texts keep the extraction, unless the whole session was read")
def facts_without_texts(store: Harness) -> None:
    session = teach(store, statement("likes tea", 1))
    before = extraction(store, session)
    learn(store, lesson(draft(statement("has a cat", 2), memory="", summary="")))
    assert extraction(store, session) == before
    whole = lesson(draft(statement("likes tea", 1), memory="", summary=""), is_whole=True)
    learn(store, whole)
    assert store.handle.extractions.get(SPACE, session) is None
    assert contents(store) == ["likes tea"]


@case("X9 T4", "a run over the whole session replaces what it said before")
def a_whole_run_replaces(store: Harness) -> None:
    teach(store, statement("likes tea"), statement("has a cat"))
    gone = fact_named(store, "has a cat").id
    teach(store, statement("likes tea"), statement("has a dog"), is_whole=True)
    assert contents(store) == ["has a dog", "likes tea"]
    assert store.handle.facts.get(SPACE, gone) is None
    assert [event.value for event in events(store, gone)] == ["added", "withdrawn"]


@case("X9 T4", "a statement that a whole run makes again is the fact it was")
def a_whole_run_keeps_what_it_says_again(store: Harness) -> None:
    teach(store, statement("likes tea", 1))
    before = only_fact(store)
    store.clock.advance(9)
    teach(store, statement("likes tea", 1), is_whole=True)
    assert only_fact(store) == before


@case("X8", "consolidation is told only when something has changed")
def consolidation_hears_of_changes_only(store: Harness) -> None:
    said = statement("likes tea", 1), statement("has a cat", 1)
    teach(store, *said)
    assert revision(store).changed == 1
    teach(store, *said)
    teach(store, *said, is_whole=True)
    teach(store, *reversed(said), is_whole=True)
    assert revision(store).changed == 1
    teach(store, statement("likes tea", 1), is_whole=True)
    assert revision(store).changed == 2
    learn(store, lesson(draft(statement("likes tea", 1), memory="- other"), is_whole=True))
    assert revision(store).changed == 3


@case("X8", "another place, quote or a better word for a known statement is a change")
def a_new_source_is_a_change(store: Harness) -> None:
    teach(store, statement("likes tea", 1, quote="tea!"))
    teach(store, statement("likes tea", 2))
    assert revision(store).changed == 2
    teach(store, statement("likes tea", 1, quote="oh, tea!"))
    assert revision(store).changed == 3
    assert only_fact(store).sources[0].quote == "oh, tea!"


@case("X8", "spaces with unseen changes are counted")
def spaces_with_changes_are_counted(store: Harness) -> None:
    assert store.handle.extractions.count_due(None) == 0
    teach(store, statement("likes tea"))
    teach(store, statement("likes tea"), space="space-b")
    learn(store, lesson(NOTHING), space="space-c")
    count = store.handle.extractions.count_due
    assert (count(None), count(SPACE), count("space-b"), count("space-c")) == (2, 1, 1, 0)
    assert revision(store).is_due


@case("X9 T4", "a fact that another session bears out survives a whole run that does not say it")
def a_shared_fact_survives_a_whole_run(store: Harness) -> None:
    teach(store, statement("likes tea"), key="one")
    other = teach(store, statement("likes tea"), key="two")
    teach(store, key="one", is_whole=True)
    assert sources_of(only_fact(store)) == [(other, 1)]
    teach(store, key="two", is_whole=True)
    assert facts(store, every=True) == []


@case("T4 X9", "what somebody added or edited survives every run")
def peoples_own_facts_survive(store: Harness) -> None:
    teach(store, statement("likes tea"), statement("has a cat"), statement("is tall"))
    edit(store, fact_named(store, "likes tea").id, content="likes green tea")
    add(store, "HAS A CAT")
    add(store, "plays chess")
    teach(store, is_whole=True)
    assert contents(store) == ["has a cat", "likes green tea", "plays chess"]


@case("M13 X9", "pieces of one claim are stored one by one, each with its cursor")
def pieces_are_stored_one_by_one(store: Harness) -> None:
    ref = store.key()
    store.say(ref, *(store.text() for _ in range(4)), policy=NEVER)
    session = store.sleep(ref)
    claimed = claim(store)
    first = lesson(draft(statement("first", 1), memory="one"))
    assert record(store, claimed, first, upto=2) == Recorded(is_done=False)
    assert store.session(session.id).processed_until == 2
    assert (extraction(store, session.id).upto, contents(store)) == (2, ["first"])
    loaded = store.handle.leases.load(claimed, None, 10)
    assert loaded is not None
    assert [each.seq for each in loaded.records] == [3, 4]
    assert loaded.extraction == extraction(store, session.id)
    second = lesson(draft(statement("second", 3), memory="one, two"))
    assert record(store, claimed, second) == Recorded(is_done=True)
    assert extraction(store, session.id).raw_memory == "one, two"
    assert contents(store) == ["first", "second"]


@case("X7", "progress says how a session's last run ended and what it came to")
def progress_says_how_it_ended(store: Harness) -> None:
    session = teach(store, statement("likes tea"), statement("has a cat"))
    store.handle.facts.delete(SPACE, fact_named(store, "has a cat").id, store.now())
    [line] = store.handle.extractions.progress(SPACE, 10)
    assert (line.session_id, line.space, line.facts) == (session, SPACE, 1)
    assert (line.outcome, line.attempt, line.extractor) == ("succeeded", 1, RULES)
    assert (line.state, line.last_error) == (JobState.IDLE, None)
    learn(store, lesson(NOTHING))
    assert store.handle.extractions.progress(None, 10)[0].outcome == "succeeded_no_output"
    _, claimed = due(store)
    store.handle.leases.fail(claimed, "it broke", 10, POLICY, store.now())
    [line] = store.handle.extractions.progress(SPACE, 10)
    assert (line.outcome, line.last_error, line.attempt) == ("failed", "it broke", 1)


@case("X9", "extractions are listed by page, the most recently made first")
def extractions_are_listed_by_page(store: Harness) -> None:
    made = []
    for number in range(5):
        made.append(learn(store, lesson(draft()), f"key {number}"))
        store.clock.advance(number % 2)
    listed: list[str] = []
    page = store.handle.extractions.list(SPACE, 2, None)
    while page:
        listed += [each.session_id for each in page]
        page = store.handle.extractions.list(SPACE, 2, page[-1])
    assert sorted(listed) == sorted(made)
    assert listed[0] == made[-1]


@case("P12", "half a character or a NUL in what was learned is replaced, and harms nothing")
def odd_characters_are_replaced(store: Harness) -> None:
    odd = "a\0b\ud800c"
    learned = lesson(draft(statement(odd, quote=odd), memory=odd, summary=odd))
    session = learn(store, learned)
    assert extraction(store, session).raw_memory == "a\ufffdb\ufffdc"
    fact = only_fact(store)
    assert (fact.content, fact.sources[0].quote) == ("a\ufffdb\ufffdc",) * 2
    learn(store, learned)
    assert revision(store).changed == 1


@case("T9 T2", "what was learned is there when the store is opened again")
def what_was_learned_lasts(store: Harness) -> None:
    home = statement("lives in Rome", topic="home", said=day(1))
    session = teach(store, home, statement("likes tea"))
    teach(store, statement("lives in Oslo", 2, topic="home", said=day(2)))
    known = [fact.id for fact in facts(store, every=True)]

    def sights() -> list[object]:
        return [
            facts(store, every=True),
            [store.handle.facts.history(SPACE, fact_id) for fact_id in known],
            store.handle.facts.search(SPACE, ["tea", "lives"], day(9), 10),
            store.handle.extractions.get(SPACE, session),
            store.handle.extractions.progress(None, 10),
            revision(store),
        ]

    before = sights()
    store.reopen()
    if store.is_volatile:
        assert facts(store, every=True) == []
        return
    assert sights() == before

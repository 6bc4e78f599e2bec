"""The job of a space: one worker at a time, due once something changed; asked for, paused."""

from __future__ import annotations

from dataclasses import replace

from recollect.types.generations import ConsolidationState, Published, Waiting
from recollect.types.records import (
    Claim,
    JobState,
    Mode,
    NothingDue,
    StaleClaim,
)
from recollect_conformance.case import case
from recollect_conformance.handbooks import (
    COOLDOWN,
    DAY,
    POLICY,
    begin,
    claims,
    consolidate,
    demand,
    drafted,
    empty,
    fail,
    generation,
    handbook,
    is_due,
    job,
    mark,
    publish,
    published,
    remember,
    remember_said,
    rested,
    select,
    sessions,
    state,
    use_memory,
    waits,
)
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import (
    NOTHING,
    add,
    day,
    edit,
    learn,
    lesson,
    revision,
    statement,
    teach,
)

THEIRS = "space-b"
NOT_CONSOLIDATING = replace(POLICY, consolidates=False)


@case("G1", "a space has one job, due once something was learned in it")
def a_space_is_due_once_something_was_learned(store: Harness) -> None:
    learn(store, lesson(NOTHING))
    assert claims(store) is None
    remember(store, "one")
    remember(store, "two")
    assert (job(store).state, job(store).due_at) == (JobState.DUE, None)
    claim, _ = begin(store)
    assert (claim.space, claim.key, claim.read_upto, claim.attempt) == (SPACE, SPACE, 2, 1)
    assert claims(store, "b") is None
    store.clock.advance(59)
    assert claims(store, "b") is None


@case("G1", "only those who consolidate are given the job, expired ones too")
def only_some_workers_consolidate(store: Harness) -> None:
    remember(store, "one")
    leases = store.handle.leases
    assert leases.claim("a", NOT_CONSOLIDATING, store.now()) == NothingDue(None)
    begin(store)
    store.clock.advance(60)
    assert leases.claim("a", NOT_CONSOLIDATING, store.now()) == NothingDue(None)
    begin(store, "b")


@case("G1", "different spaces are consolidated at the same time")
def spaces_are_consolidated_side_by_side(store: Harness) -> None:
    remember(store, "one")
    remember(store, "two", space=THEIRS)
    first, _ = begin(store)
    second, _ = begin(store, "b")
    assert {first.space, second.space} == {SPACE, THEIRS}
    assert claims(store, "c") is None
    for claim in (first, second):
        made = drafted(store, select(store, space=claim.space))
        assert published(store, claim, made).generation is not None


@case("G1 G5 P5", "whoever takes over has a new token and the same watermark")
def a_takeover_has_the_same_watermark(store: Harness) -> None:
    remember(store, "one")
    first, _ = begin(store)
    store.clock.advance(60)
    second, _ = begin(store, "b")
    assert second.token > first.token
    assert (second.read_upto, second.attempt) == (first.read_upto, 2)
    assert (job(store).takeovers, job(store).failures) == (1, 0)
    leases = store.handle.leases
    assert leases.renew(first, POLICY, store.now()) == StaleClaim()
    assert leases.release(first) == StaleClaim()
    assert leases.fail(first, "no", 0, POLICY, store.now()) == StaleClaim()
    assert leases.defer(first, "no", 0, store.now()) == StaleClaim()
    assert job(store).owner == "b"
    assert published(store, second, drafted(store, select(store))).generation is not None
    assert (job(store).takeovers, job(store).state) == (0, JobState.IDLE)


@case("G10", "a heartbeat keeps the claim, and one that comes too late does not")
def a_heartbeat_keeps_the_claim(store: Harness) -> None:
    remember(store, "one")
    claim, selection = begin(store)
    store.clock.advance(50)
    assert not isinstance(store.handle.leases.renew(claim, POLICY, store.now()), StaleClaim)
    store.clock.advance(50)
    assert claims(store, "b") is None
    assert published(store, claim, drafted(store, selection)).generation is not None
    assert store.handle.leases.renew(claim, POLICY, store.now()) == StaleClaim()


@case("G5", "input during a run leaves the space due, and nothing else does")
def input_during_a_run_leaves_it_due(store: Harness) -> None:
    remember(store, "one")
    claim, selection = begin(store)
    remember(store, "two")
    assert job(store).state is JobState.CLAIMED
    assert published(store, claim, drafted(store, selection)).is_due_again
    again, selection = begin(store)
    assert again.read_upto == 2
    assert not published(store, again, drafted(store, selection)).is_due_again
    assert claims(store) is None


@case("G5", "input that is older than what was consumed makes the space due as well")
def late_older_input_makes_it_due(store: Harness) -> None:
    remember(store, "one")
    consolidate(store)
    assert not is_due(store)
    late = remember_said(store, "late", day(-9))
    assert is_due(store)
    assert sessions(select(store).added) == [late]
    assert (revision(store).changed, revision(store).consolidated) == (2, 1)


@case("G5", "facts that are added, changed or deleted make the space due")
def facts_make_a_space_due(store: Harness) -> None:
    fact = add(store, "by hand")
    assert is_due(store)
    for change in ("edit", "say", "delete", "pages"):
        demanded = demand(store)
        assert isinstance(publish(store, demanded, drafted(store, select(store))), Published)
        assert not is_due(store)
        match change:
            case "edit":
                edit(store, fact.id, content="otherwise")
            case "say":
                teach(store, statement("otherwise still"))
            case "delete":
                assert store.handle.facts.delete(SPACE, fact.id, store.now())
            case _:
                store.handle.generations.note_edits(SPACE, store.now())
        assert is_due(store), change


@case("G5", "what nobody has used for long makes a space due by time alone, once")
def time_alone_makes_a_space_due(store: Harness) -> None:
    remember(store, "one")
    consolidate(store)
    remember(store, "theirs", space=THEIRS)
    moment = state(store).expires_at
    assert moment == select(store).expires_at
    assert moment is not None
    generations = store.handle.generations
    store.clock.advance(30 * DAY)
    assert generations.expire(store.now()) == []
    store.clock.advance((moment - store.now()).total_seconds())
    assert not is_due(store)
    assert generations.expire(store.now(), THEIRS) == []
    assert generations.expire(store.now(), SPACE) == [SPACE]
    assert generations.expire(store.now()) == []
    assert is_due(store)
    assert revision(store).changed == 2
    consolidate(store)
    assert handbook(store) == []
    assert generations.expire(store.now()) == []


@case("G5", "what was used meanwhile is kept, and expires later")
def use_puts_expiry_off(store: Harness) -> None:
    session = rested(store, 0)
    store.clock.advance(20 * DAY)
    use_memory(store, session)
    store.clock.advance(11 * DAY)
    assert store.handle.generations.expire(store.now()) == [SPACE]
    claim, selection = begin(store)
    assert published(store, claim, drafted(store, selection)).generation is None
    expires_at = state(store).expires_at
    assert expires_at is not None
    assert expires_at > day(49)
    assert store.handle.generations.expire(store.now()) == []


@case("G5", "a fact that is over makes a space due by time alone")
def a_fact_that_is_over_makes_it_due(store: Harness) -> None:
    teach(store, statement("for a week", valid_to=day(7)))
    consolidate(store)
    store.clock.advance(7 * DAY - 1)
    assert store.handle.generations.expire(store.now()) == []
    store.clock.advance(1)
    assert store.handle.generations.expire(store.now()) == [SPACE]
    assert is_due(store)


@case("G10", "whoever asks for a space gets it, whatever it waits for, unless somebody has it")
def a_space_is_claimed_on_demand(store: Harness) -> None:
    leases = store.handle.leases
    rested(store)
    for _ in range(2):  # from idle, and from backing off
        claim = demand(store)
        assert leases.claim_consolidation("b", SPACE, POLICY, store.now()) is None
        leases.fail(claim, "no", 1000, POLICY, store.now())
    fail(store, is_final=True)
    mark(store)
    claim = demand(store)
    assert claim.attempt == 1
    store.clock.advance(59)
    assert leases.claim_consolidation("b", SPACE, POLICY, store.now()) is None
    store.clock.advance(1)
    assert demand(store, "b").token > claim.token
    assert publish(store, claim, drafted(store, select(store))) == StaleClaim()


@case("G9 P5", "who takes a space over minds no pause, and no owner who is not spared")
def a_space_is_taken_over(store: Harness) -> None:
    def take(owner: str = "b") -> Claim:
        claimed = taken(owner)
        assert claimed is not None
        return claimed

    def taken(owner: str, spared: str = "") -> Claim | None:
        return store.handle.leases.claim_consolidation(
            owner, SPACE, POLICY, store.now(), takes_over=True, spared=spared
        )

    remember(store, "one")
    first, selection = begin(store)
    second = take()
    assert second.token > first.token
    assert publish(store, first, drafted(store, selection)) == StaleClaim()
    store.handle.generations.pause(SPACE, store.now())
    assert publish(store, second, drafted(store, selection)) == StaleClaim()
    take("role:one")
    assert taken("role:two", spared="role:") is None
    assert taken("role:two", spared="another:") is not None
    store.clock.advance(POLICY.lease_seconds)
    assert taken("role:one", spared="role:") is not None, "its lease ran out"
    third = take()
    made = drafted(store, selection)
    assert published(store, third, made) == Published(generation(store, 1), is_due_again=False)
    assert (job(store).state, waits(store)) == (JobState.IDLE, Waiting.PAUSED)


@case("G10", "a space that is asked for is due at once; one that runs goes on")
def a_space_is_requested(store: Harness) -> None:
    request = store.handle.generations.request
    assert request("untouched", store.now())
    assert is_due(store, space="untouched")
    rested(store)
    remember(store, "two")
    assert claims(store) is not None, "the one that was asked for first"
    assert not is_due(store)
    assert request(SPACE, store.now())
    claim, selection = begin(store)
    assert request(SPACE, store.now())
    assert published(store, claim, drafted(store, selection)).generation is not None
    assert not is_due(store)
    for is_final in (False, True):
        fail(store, 1000, is_final=is_final)
        assert request(SPACE, store.now())
        assert (is_due(store), job(store).failures) == (True, 0)


@case("G12 P5", "a pause voids what runs, and nothing is due until the space is resumed")
def a_pause_voids_a_run(store: Harness) -> None:
    generations = store.handle.generations
    remember(store, "one")
    claim, selection = begin(store)
    store.clock.advance(5)
    generations.pause(SPACE, store.now())
    paused = store.now()
    assert publish(store, claim, drafted(store, selection)) == StaleClaim()
    assert store.handle.leases.fail(claim, "no", 0, POLICY, store.now()) == StaleClaim()
    remember(store, "two")
    store.set_mode(store.key("one"), Mode.DISABLED)
    store.clock.advance(5)
    generations.pause(SPACE, store.now())
    assert (state(store).paused_at, waits(store)) == (paused, Waiting.PAUSED)
    assert job(store).state is JobState.IDLE
    assert claims(store) is None
    assert not generations.request(SPACE, store.now())
    assert store.handle.leases.claim_consolidation("b", SPACE, POLICY, store.now()) is None
    assert revision(store).changed == 3
    generations.resume(SPACE, store.now())
    assert state(store).paused_at is None
    claim, selection = begin(store)
    assert len(selection.picks) == 1


@case("G12", "what is resumed and has not changed is not due")
def a_resumed_space_without_changes_rests(store: Harness) -> None:
    generations = store.handle.generations
    generations.resume("untouched", store.now())
    rested(store)
    generations.resume(SPACE, store.now())
    generations.pause(SPACE, store.now())
    generations.resume(SPACE, store.now())
    assert job(store).state is JobState.IDLE
    remember(store, "two")
    assert waits(store) is Waiting.COOLDOWN


@case("G5 G12", "what time changes during a pause is not lost")
def expiry_during_a_pause_is_kept(store: Harness) -> None:
    rested(store, 0)
    store.handle.generations.pause(SPACE, store.now())
    store.clock.advance(31 * DAY)
    assert store.handle.generations.expire(store.now()) == [SPACE]
    assert claims(store) is None
    store.handle.generations.resume(SPACE, store.now())
    begin(store)


@case("G10 N4", "where consolidation stands is told, space by space")
def where_consolidation_stands_is_told(store: Harness) -> None:
    states = store.handle.generations.states
    assert states(None, 10, "", store.now()) == states(SPACE, 10, "", store.now()) == []
    untouched = ConsolidationState.untouched(SPACE)
    assert untouched.waits_for(store.now()) is Waiting.NOTHING_CHANGED
    remember(store, "one")
    assert waits(store) is Waiting.READY
    claim, selection = begin(store)
    assert (waits(store), state(store).generation) == (Waiting.RUNNING, 0)
    store.clock.advance(5)
    published(store, claim, drafted(store, selection, cooldown_seconds=COOLDOWN))
    done = state(store)
    assert (done.generation, done.changed, done.consolidated) == (1, 1, 1)
    assert (done.finished_at, done.job) == (store.now(), JobState.IDLE)
    assert (waits(store), done.failures) == (Waiting.NOTHING_CHANGED, 0)
    store.clock.advance(5)
    remember(store, "two")
    assert state(store).changed_at == store.now()
    for space in ("space-c", THEIRS):
        remember(store, "theirs", space=space)
    every = states(None, 10, "", store.now())
    assert [each.space for each in every] == [SPACE, THEIRS, "space-c"]
    assert [each.space for each in states(None, 2, SPACE, store.now())] == [THEIRS, "space-c"]
    assert states(None, 1, "", store.now()) == states(SPACE, 10, "", store.now()) == every[:1]
    empty(store, "one")
    assert state(store).changed == 3

"""Turns of agents: whole or not at all, taken up where they were left, and fenced by the claim."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recollect.errors import AppendKeyReused, StaleVersion
from recollect.types.agents import DocumentChanges, ItemState, MoreWork, NoTurn, Turn
from recollect.types.pages import Because, Edit
from recollect.types.records import (
    BackedOff,
    Claim,
    JobState,
    KeyRef,
    MarkCause,
    NothingDue,
    Parked,
    Released,
    SessionState,
    StaleClaim,
)
from recollect_conformance import pages
from recollect_conformance.case import case, refused
from recollect_conformance.harness import AGENT, NEVER, SPACE, Harness
from recollect_conformance.inboxes import (
    RESET,
    agent,
    begun,
    fail,
    finish,
    host,
    idle,
    message,
    note,
    post,
    release,
    saying,
    spoken_to,
    state_of,
    step,
    take,
    thinking,
    words,
)
from recollect_conformance.lessons import POLICY


def _taken_over(store: Harness) -> Claim:
    """The claim of whoever comes after one that died."""
    store.clock.advance(POLICY.lease_seconds)
    return host(store, "another")


def _rotate(
    store: Harness, claim: Claim, cause: MarkCause, turn: Turn | None = None
) -> SessionState | StaleClaim:
    return store.handle.agents.rotate(
        claim, cause, store.now(), store.new_id, turn=turn, summary="so far", retain=1
    )


def _changes(*edits: Edit) -> DocumentChanges:
    return DocumentChanges(edits=edits, because=Because(), limits=pages.LIMITS)


# interrupted


@case("P3 P4 P5", "a turn that was interrupted comes back as it was, and newer messages wait")
def an_interrupted_turn_comes_back(store: Harness) -> None:
    ref, claim, turn = begun(store, "one", "two")
    step(store, claim, thinking("hm", "step:1"))
    post(store, ref, message("three"))
    again = take(store, _taken_over(store))
    assert again.id == turn.id
    assert [item.id for item in again.items] == ["one", "two"]
    assert words(again.records) == ["one", "two", "hm"]
    assert again.records == tuple(store.everything(ref))
    assert state_of(store, ref, "three") is ItemState.QUEUED


@case("P3", "a turn that was interrupted comes back after a restart")
def an_interrupted_turn_outlives_the_store(store: Harness) -> None:
    ref, _, turn = begun(store, "one")
    if store.is_volatile:
        return
    store.reopen()
    again = take(store, _taken_over(store))
    assert (again.id, again.records) == (turn.id, turn.records)
    assert store.words(ref) == ["one"]


@case("P3", "whoever takes the same turn twice finds it as it is")
def a_turn_can_be_taken_twice(store: Harness) -> None:
    ref, claim, turn = begun(store, "one")
    assert take(store, claim).records == turn.records
    assert store.words(ref) == ["one"]


@case("P3 T7", "a turn whose session was rotated comes back with what it began with")
def a_turn_outlives_a_rotation(store: Harness) -> None:
    ref, claim, turn = begun(store, "one")
    assert isinstance(_rotate(store, claim, MarkCause.COMPACTION), SessionState)
    again = take(store, claim)
    assert (again.id, words(again.records)) == (turn.id, ["one"])
    assert again.session == store.current(ref) != turn.session
    finish(store, claim, again, "an answer")
    assert words(store.records.all_rotations(ref)) == ["one", "an answer"]
    assert store.records.summary(ref) == "so far"


# the fence


def _everything(store: Harness, ref: KeyRef) -> object:
    return (
        store.records.all_rotations(ref),
        store.sessions.rotations(ref),
        [store.handle.agents.item(ref, each) for each in ("hello", "next")],
        agent(store, ref),
    )


@case("P5 M13", "a stale claim changes nothing, whatever it tries")
def a_stale_claim_changes_nothing(store: Harness) -> None:
    ref, stale, turn = begun(store, "hello")
    current = _taken_over(store)
    post(store, ref, message("next"))
    before = _everything(store, ref)
    tries: list[Callable[[], object]] = [
        lambda: store.handle.agents.take(stale, NEVER, store.now(), store.new_id),
        lambda: step(store, stale, thinking("hm")),
        lambda: finish(store, stale, turn, documents=_changes(pages.writing("a"))),
        lambda: _rotate(store, stale, MarkCause.COMPACTION),
        lambda: _rotate(store, stale, MarkCause.RESET, turn),
        lambda: fail(store, stale, turn, is_final=True),
        lambda: release(store, stale, idle(store)),
    ]
    for attempt in tries:
        assert attempt() == StaleClaim()
        assert _everything(store, ref) == before
    assert pages.find(store, "a") is None
    assert finish(store, current, take(store, current)) != StaleClaim()


@case("P5", "a turn is finished once: whoever tries again has lost the claim, and stores nothing")
def a_turn_is_finished_once(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    finish(store, claim, turn)
    second = [thinking("once more")]
    again = store.handle.agents.finish(claim, turn, second, NEVER, store.now(), store.new_id)
    assert again == StaleClaim()
    assert step(store, claim, thinking("hm")) == StaleClaim()
    assert store.words(ref) == ["hello", "an answer"]
    assert release(store, host(store)) == Released()


@case("P5", "an answer belongs to the turn that is under way")
def an_answer_belongs_to_its_turn(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    finish(store, claim, turn)
    post(store, ref, message("next"))
    following = take(store, claim)
    assert finish(store, claim, turn, "late") == StaleClaim()
    again = take(store, host(store))
    assert again.id == following.id
    assert store.words(ref) == ["hello", "an answer", "next"]


# all or nothing


@case("A7 M13", "an answer, the end of its items and its documents are stored together")
def a_turn_ends_with_its_documents(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    edits = _changes(pages.writing("a", "of the turn"), pages.writing("b"))
    assert finish(store, claim, turn, documents=edits) != StaleClaim()
    assert pages.page(store, "a").body == "of the turn"
    assert pages.find(store, "b") is not None
    assert state_of(store, ref, "hello") is ItemState.DONE


@case("A7 M13 P1", "a turn whose documents have changed meanwhile stores nothing at all")
def a_stale_document_stores_nothing(store: Harness) -> None:
    pages.write(store, "a", "first")
    ref, claim, turn = begun(store, "hello")
    pages.write(store, "a", "second")
    edits = _changes(pages.writing("b"), pages.writing("a", "mine", expected=1))
    before = _everything(store, ref)
    with refused(StaleVersion):
        finish(store, claim, turn, documents=edits)
    assert _everything(store, ref) == before
    assert pages.find(store, "b") is None
    assert finish(store, claim, turn) != StaleClaim()


@case("P1", "a turn whose answer is refused is not over")
def a_refused_answer_stores_nothing(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    step(store, claim, saying("one thing", turn))
    before = _everything(store, ref)
    with refused(AppendKeyReused):
        finish(store, claim, turn, "another", _changes(pages.writing("a")))
    assert _everything(store, ref) == before
    assert pages.find(store, "a") is None


@case("M8 M14", "a reset rotates the session, marks the old one and ends its turn, together")
def a_reset_ends_with_its_rotation(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    finish(store, claim, turn)
    post(store, ref, RESET, message("next"))
    reset = take(store, claim)
    old = store.current(ref)
    new = _rotate(store, claim, MarkCause.RESET, reset)
    assert new == store.current(ref) != old
    assert store.session(old.id).invalidated_at == 2
    assert state_of(store, ref, "reset") is ItemState.DONE
    assert take(store, claim).text == "next"
    assert store.words(ref)[-1] == "next"


# failures


@case("M11 P8", "a failure is counted, and the turn is tried again later")
def a_failed_turn_backs_off(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    failed = fail(store, claim, turn, delay=10)
    assert isinstance(failed, BackedOff)
    assert (failed.until - store.now()).total_seconds() == 10
    item = store.handle.agents.item(ref, "hello")
    assert item is not None
    assert (item.state, item.attempts, item.last_error) == (ItemState.TAKEN, 1, "it broke")
    shown = agent(store, ref)
    assert (shown.next_try_at, shown.last_error) == (failed.until, "it broke")
    assert store.handle.leases.claim("b", POLICY, store.now(), AGENT) == NothingDue(10.0)
    store.clock.advance(10)
    again = take(store, host(store))
    assert (again.id, again.items[0].attempts) == (turn.id, 1)


@case("M11", "a turn that succeeds clears what was counted against the agent")
def a_success_clears_the_count(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    for _ in range(POLICY.failures_max - 1):
        fail(store, claim, turn, delay=0)
        claim = host(store)
        turn = take(store, claim)
    finish(store, claim, turn)
    post(store, ref, note("next"))
    assert isinstance(fail(store, claim, take(store, claim)), BackedOff)
    assert state_of(store, ref, "next") is ItemState.TAKEN


def _fail_for_good(store: Harness) -> KeyRef:
    """An agent that could not do what was said to it."""
    ref, claim, turn = begun(store, "hello")
    for _ in range(POLICY.failures_max - 1):
        assert isinstance(fail(store, claim, turn, delay=0), BackedOff)
        claim = host(store)
        turn = take(store, claim)
    assert fail(store, claim, turn) == Parked()
    return ref


@case("M11 P8", "what fails too often is parked, with the reason, and nothing is due")
def what_fails_too_often_is_parked(store: Harness) -> None:
    ref = _fail_for_good(store)
    item = store.handle.agents.item(ref, "hello")
    assert item is not None
    assert (item.state, item.attempts) == (ItemState.PARKED, POLICY.failures_max)
    assert (item.text, item.last_error) == ("hello", "it broke")
    shown = agent(store, ref)
    assert (shown.parked, shown.queued, shown.job_state) == (1, 0, JobState.PARKED)
    assert store.handle.leases.claim("b", POLICY, store.now(), AGENT) == NothingDue(None)


@case("M11 P8", "what fails for good is parked at once, and what waits is due")
def a_final_failure_lets_the_next_one_run(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    post(store, ref, note("next"))
    assert fail(store, claim, turn, is_final=True) == Released()
    assert state_of(store, ref, "hello") is ItemState.PARKED
    assert step(store, claim, thinking("hm")) == StaleClaim()
    claim = host(store)
    assert (claim.attempt, take(store, claim).text) == (1, "next")


@case("M11 P8", "a failure before there is a turn is the job's, and parks it in the end")
def a_failure_without_a_turn(store: Harness) -> None:
    ref = spoken_to(store, "hello")
    for _ in range(POLICY.failures_max - 1):
        assert isinstance(fail(store, host(store), None, delay=0), BackedOff)
    assert fail(store, host(store), None) == Parked()
    assert state_of(store, ref, "hello") is ItemState.QUEUED
    assert store.handle.leases.revive(SPACE, None) == 1
    assert take(store, host(store)).text == "hello"


@case("M11 P8", "a new message gives an agent another chance, and leaves what is parked alone")
def a_message_after_parking_runs(store: Harness) -> None:
    ref = _fail_for_good(store)
    post(store, ref, message("next"))
    claim = host(store)
    assert (claim.attempt, take(store, claim).text) == (1, "next")
    assert state_of(store, ref, "hello") is ItemState.PARKED


@case("M11", "a message to an agent that somebody hosts does not wait for a backoff")
def a_message_ends_a_backoff(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    fail(store, claim, turn, delay=1000)
    post(store, ref, message("still there?"))
    assert take(store, host(store)).id == turn.id


@case("M11 P8", "what is parked comes back when it is revived, as the turn it was")
def a_parked_item_is_revived(store: Harness) -> None:
    ref = _fail_for_good(store)
    assert store.handle.leases.revive(SPACE, str(ref.key_id)) == 1
    again = take(store, host(store))
    assert (again.text, again.items[0].attempts) == ("hello", 0)
    assert store.words(ref) == ["hello"]


@case("M11 P8", "what is parked comes back also where the agent has gone on with other things")
def a_parked_item_of_a_resting_agent_is_revived(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    post(store, ref, note("next"))
    fail(store, claim, turn, is_final=True)
    claim = host(store)
    finish(store, claim, take(store, claim))
    assert release(store, claim) == Released()
    assert store.handle.leases.revive(SPACE, None) == 1
    assert store.handle.leases.revive(SPACE, None) == 0
    assert take(store, host(store)).text == "hello"


@case("M11 P8", "what is revived while the agent works is not forgotten when it wants to rest")
def reviving_reaches_an_agent_at_work(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    post(store, ref, note("next"))
    fail(store, claim, turn, is_final=True)
    claim = host(store)
    finish(store, claim, take(store, claim))
    assert store.handle.leases.revive(SPACE, None) == 1
    assert release(store, claim) == MoreWork()
    assert take(store, claim).text == "hello"


# resting


@case("P3", "an agent to whom something was said meanwhile does not rest, and keeps its claim")
def an_agent_with_work_does_not_rest(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    assert release(store, claim, idle(store)) == MoreWork()
    finish(store, claim, turn)
    post(store, ref, message("next"))
    assert release(store, claim, idle(store)) == MoreWork()
    assert agent(store, ref).signals == ()
    finish(store, claim, take(store, claim))
    assert release(store, claim, idle(store)) == Released()
    assert [each.name for each in agent(store, ref).signals] == ["idle"]
    taken = store.handle.agents.take(claim, NEVER, store.now(), store.new_id)
    assert taken == StaleClaim()


@case("P3", "an agent without anything to do takes no turn")
def an_empty_inbox_gives_no_turn(store: Harness) -> None:
    _, claim, turn = begun(store, "hello")
    finish(store, claim, turn)
    assert store.handle.agents.take(claim, NEVER, store.now(), store.new_id) == NoTurn()


# who runs what


@case("M12 P5", "of two hosts one runs an agent")
def two_hosts_have_one_claim(store: Harness) -> None:
    ref = spoken_to(store, "hello")
    claims = store.at_once(
        *[partial(store.handle.leases.claim, f"host {n}", POLICY, store.now(), AGENT) for n in "ab"]
    )
    [claim] = [each for each in claims if isinstance(each, Claim)]
    assert claim.key == str(ref.key_id)
    assert store.handle.leases.claim("c", POLICY, store.now(), None) == NothingDue(60.0)


@case("M12 P5", "a worker never runs what somebody has to host, nor a host what is for workers")
def workers_and_hosts_keep_apart(store: Harness) -> None:
    claim = store.handle.leases.claim
    hosted = spoken_to(store, "hello")
    assert claim("worker", POLICY, store.now()) == NothingDue(None)
    assert claim("other", POLICY, store.now(), "/user/other") == NothingDue(None)
    memory = store.key("memory", agent="/memory-agent/assistant")
    post(store, memory, note("remember"))
    store.marked("a third")
    first = claim("host", POLICY, store.now(), None)
    assert isinstance(first, Claim)
    assert first.key == str(hosted.key_id)
    assert claim("host", POLICY, store.now(), None) == NothingDue(60.0)
    found = {claim("worker", POLICY, store.now()) for _ in range(2)}
    assert {each.kind.value for each in found if isinstance(each, Claim)} == {
        *("memory-agent", "extract"),
    }


@case("M12", "a host of one agent runs that one only, wherever it is spoken to")
def a_host_has_its_lane(store: Harness) -> None:
    others = spoken_to(store, "hello", agent="/user/other")
    ours = spoken_to(store, "hello", agent=AGENT)
    claim = host(store, lane=AGENT)
    assert store.handle.agents.ref(claim) == ours
    assert store.handle.leases.claim("b", POLICY, store.now(), AGENT) == NothingDue(60.0)
    assert store.handle.agents.ref(host(store, lane="/user/other")) == others

"""What the next generation waits for: a cooldown, a backoff, what is still to be distilled."""

from __future__ import annotations

from dataclasses import replace

from recollect.types.generations import Waiting
from recollect.types.records import (
    BackedOff,
    Claim,
    JobKind,
    JobState,
    Mode,
    NothingDue,
    Parked,
    Released,
)
from recollect_conformance.case import case
from recollect_conformance.handbooks import (
    COOLDOWN,
    PATIENCE,
    POLICY,
    begin,
    claims,
    consolidate,
    demand,
    drafted,
    fail,
    forget,
    handbook,
    is_due,
    job,
    mark,
    published,
    remember,
    rested,
    select,
    state,
    waits,
)
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.inboxes import MEMORY_AGENT, spoken_to, take
from recollect_conformance.lessons import (
    add,
    edit,
)

THEIRS = "space-b"
NOT_CONSOLIDATING = replace(POLICY, consolidates=False)


def _hold(store: Harness, owner: str = "a") -> Claim:
    """Somebody who does not consolidate, and is at the next session."""
    claim = claims(store, owner, NOT_CONSOLIDATING)
    assert claim is not None, "there is nothing to distil"
    return claim


@case("G1", "an ordinary change waits for the cooldown")
def a_change_waits_for_the_cooldown(store: Harness) -> None:
    rested(store)
    store.clock.advance(60)
    remember(store, "two")
    assert waits(store) is Waiting.COOLDOWN
    assert claims(store) is None
    later = store.handle.leases.claim("a", POLICY, store.now())
    assert later == NothingDue(COOLDOWN - 60)
    remember(store, "three")
    edit(store, add(store, "by hand").id, tags=("mine",))
    assert claims(store) is None
    store.clock.advance(COOLDOWN - 60)
    begin(store)


@case("G1", "a change during a run waits for the cooldown of that run")
def a_change_during_a_run_waits(store: Harness) -> None:
    remember(store, "one")
    claim, selection = begin(store)
    remember(store, "two")
    made = drafted(store, selection, cooldown_seconds=COOLDOWN)
    assert published(store, claim, made).is_due_again
    assert (waits(store), claims(store)) == (Waiting.COOLDOWN, None)
    store.clock.advance(COOLDOWN)
    begin(store)


@case("G1", "a run that found nothing changed is no reason to wait")
def an_unchanged_run_does_not_cool_down(store: Harness) -> None:
    rested(store, 0)
    store.handle.generations.note_edits(SPACE, store.now())
    claim, selection = begin(store)
    made = drafted(store, selection, cooldown_seconds=COOLDOWN)
    assert published(store, claim, made).generation is None
    remember(store, "two")
    begin(store)


@case("G12 G11 P11", "forgetting, a change of mode and a deleted fact do not wait for the cooldown")
def what_is_urgent_does_not_wait(store: Harness) -> None:
    session = rested(store)
    store.set_mode(store.key("one"), Mode.POLLUTED)
    consolidate(store, cooldown_seconds=COOLDOWN)
    store.set_mode(store.key("one"), Mode.ENABLED)
    assert is_due(store)
    consolidate(store, cooldown_seconds=COOLDOWN)
    [fact] = store.handle.generations.standings(SPACE, [session], store.now(), 10)
    assert store.handle.facts.delete(SPACE, fact.fact.id, store.now())
    assert is_due(store)
    published(store, demand(store), drafted(store, select(store)))
    forget(store, session)
    assert is_due(store)
    consolidate(store, cooldown_seconds=COOLDOWN)
    assert handbook(store) == []
    remember(store, "two")
    assert waits(store) is Waiting.COOLDOWN


@case("G12", "a change of mode does not wait where a session came to words and to no fact")
def a_mode_does_not_wait_without_facts(store: Harness) -> None:
    remember(store, "one")
    consolidate(store, cooldown_seconds=COOLDOWN)
    store.set_mode(store.key("one"), Mode.DISABLED)
    assert is_due(store)


@case("G12", "what is urgent takes what waits along, before and after it")
def the_urgent_takes_along_what_waits(store: Harness) -> None:
    rested(store)
    remember(store, "two")
    assert claims(store) is None
    store.set_mode(store.key("one"), Mode.DISABLED)
    remember(store, "three")
    claim, selection = begin(store)
    assert len(selection.added) == 2
    made = drafted(store, selection, cooldown_seconds=COOLDOWN)
    store.set_mode(store.key("two"), Mode.DISABLED)
    store.set_mode(store.key("two"), Mode.ENABLED)
    assert published(store, claim, made).is_due_again
    assert is_due(store), "a mode was changed during the run"


@case("G12", "a mode that is changed where there is nothing to remember makes nothing due")
def a_mode_without_a_memory_is_no_news(store: Harness) -> None:
    rested(store, 0)
    store.append(store.key("empty"))
    store.set_mode(store.key("empty"), Mode.DISABLED)
    store.set_mode(store.key("one"), Mode.ENABLED)
    assert not is_due(store)
    forget(store, store.current(store.key("empty")).id)
    assert not is_due(store)


@case("G1", "who works by hand waits for no cooldown; what failed waits on")
def a_cooldown_is_lifted(store: Harness) -> None:
    rested(store)
    remember(store, "two")
    remember(store, "theirs", space=THEIRS)
    consolidate(store, space=THEIRS, cooldown_seconds=COOLDOWN)
    remember(store, "more of theirs", space=THEIRS)
    generations = store.handle.generations
    assert generations.hurry("nowhere") == 0
    assert generations.hurry(SPACE) == 1
    assert (is_due(store), is_due(store, space=THEIRS)) == (True, False)
    assert generations.hurry(None) == 1
    assert is_due(store, space=THEIRS)
    assert generations.hurry(None) == 0
    fail(store)
    assert generations.hurry(None) == 0
    assert waits(store) is Waiting.BACKOFF


@case("G10", "a run that failed backs off, and no new input lifts that")
def backoff_is_not_lifted_by_input(store: Harness) -> None:
    session = remember(store, "one")
    assert isinstance(fail(store), BackedOff)
    assert (waits(store), state(store).failures) == (Waiting.BACKOFF, 1)
    assert state(store).last_error == "it broke"
    remember(store, "two")
    forget(store, session)
    assert (claims(store), job(store).failures) == (None, 1)
    store.clock.advance(30)
    claim, selection = begin(store)
    assert claim.attempt == 2
    published(store, claim, drafted(store, selection))
    assert (job(store).failures, job(store).last_error) == (0, None)


@case("G10", "a run that was put off waits, and counts for nothing")
def a_run_is_put_off(store: Harness) -> None:
    session = remember(store, "one")
    claim, _ = begin(store)
    store.handle.leases.defer(claim, "no tokens left", 30, store.now())
    forget(store, session)
    assert claims(store) is None
    store.clock.advance(30)
    again, _ = begin(store)
    assert (again.attempt, again.pauses) == (1, 1)


@case("G10", "a run that failed too often is parked, and revived by new input or by hand")
def a_parked_space_is_revived_by_input(store: Harness) -> None:
    remember(store, "one")
    for _ in range(2):
        assert fail(store, is_final=True) == Parked()
        assert (waits(store), claims(store)) == (Waiting.PARKED, None)
        remember(store, "one", memory=f"more at {job(store).token}")
        claim, _ = begin(store)
        assert claim.attempt == 1
        assert store.handle.leases.release(claim) == Released()
    assert fail(store, is_final=True) == Parked()
    assert store.handle.leases.revive(SPACE, None) == 1
    begin(store)


@case("G10", "a space whose workers keep dying is parked")
def a_space_whose_workers_die_is_parked(store: Harness) -> None:
    remember(store, "one")
    for _ in range(3):
        begin(store)
        store.clock.advance(60)
    assert (claims(store), job(store).state) == (None, JobState.PARKED)


@case("G1", "a space is not consolidated while something of it is to be distilled or being so")
def phase_one_comes_first(store: Harness) -> None:
    remember(store, "one")
    mark(store)
    assert (waits(store), state(store).phase1_due) == (Waiting.PHASE_1, 1)
    first = _hold(store)
    assert (waits(store), claims(store, "b")) == (Waiting.PHASE_1, None)
    failed = store.handle.leases.fail(first, "no", 1000, POLICY, store.now())
    assert isinstance(failed, BackedOff)
    assert waits(store) is Waiting.READY
    begin(store)


@case("G1 X9", "another pass over a session comes first as well, and what is parked does not")
def a_pass_comes_first(store: Harness) -> None:
    session = remember(store, "one")
    assert store.handle.extractions.request_passes(SPACE, session, store.now()) == 1
    again = claims(store)
    assert again is not None
    assert again.key == session
    assert claims(store, "b") is None
    store.handle.leases.fail(again, "no", 0, POLICY, store.now(), is_final=True)
    begin(store)


@case("G1 A7", "a space is not consolidated while a memory-agent of it has something to file")
def filing_comes_first(store: Harness) -> None:
    remember(store, "one")
    spoken_to(store, "file this", agent=MEMORY_AGENT)
    filing = claims(store)
    assert filing is not None
    assert filing.kind is JobKind.MEMORY_AGENT
    assert claims(store, "b") is None
    take(store, filing)
    store.handle.leases.fail(filing, "no", 1000, POLICY, store.now())
    begin(store)


@case("G1", "a space in which there is always something to distil is consolidated all the same")
def patience_ends(store: Harness) -> None:
    remember(store, "one")
    store.clock.advance(PATIENCE - 1)
    store.handle.generations.note_edits(SPACE, store.now())
    mark(store)
    _hold(store)
    assert claims(store, "b") is None
    store.clock.advance(1)
    claim, selection = begin(store, "b")
    store.handle.generations.note_edits(SPACE, store.now())
    assert published(store, claim, drafted(store, selection)).is_due_again
    assert claims(store, "b") is None, "it is patient again"


@case("G1", "patience begins with the first change since the last generation")
def patience_begins_with_a_change(store: Harness) -> None:
    rested(store, 0)
    store.clock.advance(2 * PATIENCE)
    remember(store, "two")
    mark(store)
    hold = _hold(store)
    assert claims(store, "b") is None
    store.clock.advance(PATIENCE - 30)
    store.handle.leases.renew(hold, POLICY, store.now())
    store.handle.generations.note_edits(SPACE, store.now())
    assert claims(store, "b") is None
    store.clock.advance(30)
    begin(store, "b")


@case("G1 P9", "what is to be distilled in one space holds up no other")
def other_spaces_do_not_block(store: Harness) -> None:
    remember(store, "one")
    mark(store, space=THEIRS)
    assert _hold(store).space == THEIRS
    claim, _ = begin(store)
    assert claim.space == SPACE

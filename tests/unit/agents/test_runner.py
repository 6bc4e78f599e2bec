"""Running the turns of a claimed agent, one by one, until it rests; and what failing ones leave."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import pytest

import recollect
from recollect.agents.runner import ANSWER_KEY, Done, Errand, LostClaimError, Runner
from recollect.clock import ManualClock
from recollect.errors import (
    CallCancelled,
    InvalidOutput,
    ModelUnavailable,
    PermanentFailure,
    Postponed,
    StaleVersion,
    StoreError,
    StoreUnavailable,
)
from recollect.leases import Leaseholder
from recollect.messages import Role
from recollect.processing import WorkReport
from recollect.types.agents import IDLE, ItemKind, ItemState, NewItem
from recollect.types.records import Claim, JobKind, JobState, KeyRef, NewRecord

Do = Callable[[Errand], Done]


def answering(errand: Errand, text: str = "an answer") -> Done:
    record = NewRecord(role=Role.ASSISTANT, content=text, append_key=ANSWER_KEY + errand.turn.id)
    return Done(records=(record,), told=text)


class Scribe:
    """A doer that writes down what happens to it."""

    def __init__(self, do: Do = answering) -> None:
        self._do = do
        self.events: list[str] = []

    def prepare(self, ref: KeyRef, claim: Claim, is_lost: Callable[[], bool]) -> None:
        assert (ref.key_id, is_lost()) == (int(claim.key), False)

    def do(self, errand: Errand) -> Done:
        self.events.append(f"do {errand.turn.text}")
        return self._do(errand)

    def stored(self, errand: Errand, done: Done) -> None:
        self.events.append(f"stored {errand.turn.text} {done.told}")

    def failed(self, errand: Errand, error: Exception, *, is_parked: bool) -> None:
        end = "parked" if is_parked else "failed"
        self.events.append(f"{end} {errand.turn.text} {type(error).__name__}")

    def unstored(self, errand: Errand, done: Done, error: StoreError) -> None:
        self.events.append(f"unstored {errand.turn.text} {done.told} {type(error).__name__}")


class Host:
    """A store, an agent in it, and a runner with some doer."""

    def __init__(self, memory: recollect.Memory, clock: ManualClock) -> None:
        self.memory, self.clock = memory, clock
        self.session = memory.space("alice").session("k", source="agent")
        self.store = memory.store
        self.holder = Leaseholder(memory.store, memory.settings.lease_policy, clock, lane=None)
        self.lost = threading.Event()

    def post(self, *texts: str, kind: ItemKind = ItemKind.USER_MESSAGE) -> None:
        for text in texts:
            item = NewItem(id=text, kind=kind, text=text)
            self.store.agents.post(self.session.ref, item, JobKind.AGENT, self.clock.now())

    def claim(self) -> Claim:
        claim = self.holder.claim()
        assert isinstance(claim, Claim), claim
        return claim

    def run(self, scribe: Scribe, claim: Claim | None = None, *, redo_max: int = 0) -> WorkReport:
        runner = Runner(
            runtime=self.memory.runtime, store=self.store, doer=scribe, redo_max=redo_max
        )
        return runner.run(claim or self.claim(), self.holder, self.lost)

    def words(self) -> list[str]:
        return [record.content for record in self.session.all(rotations=True)]

    def state(self) -> tuple[JobState | None, int, int]:
        found = self.store.agents.get(self.session.ref)
        assert found is not None
        return found.job_state, found.queued, found.parked

    def item(self, name: str) -> Any:
        return self.store.agents.item(self.session.ref, name)


@pytest.fixture
def host(memory: recollect.Memory, clock: ManualClock) -> Host:
    return Host(memory, clock)


# turns


def test_all_that_waits_is_done_in_order_and_then_it_rests(host: Host) -> None:
    host.post("one")
    host.post("two", kind=ItemKind.SYSTEM_MESSAGE)
    host.post("three")
    scribe = Scribe()
    report = host.run(scribe)
    assert [each for each in scribe.events if each.startswith("do")] == [
        "do one",
        "do two",
        "do three",
    ]
    assert (report.turns, report.failed, report.stale) == (3, 0, 0)
    assert host.words() == ["one", "an answer", "two", "an answer", "three", "an answer"]
    assert host.state() == (JobState.IDLE, 0, 0)
    found = host.store.agents.get(host.session.ref)
    assert found is not None
    assert [each.name for each in found.signals] == [IDLE]


def test_the_message_is_stored_before_anything_is_done(host: Host) -> None:
    seen: list[list[str]] = []

    def do(errand: Errand) -> Done:
        seen.append(host.words())
        return answering(errand)

    host.post("hello")
    host.run(Scribe(do))
    assert seen == [["hello"]]


def test_what_comes_in_while_it_works_is_done_before_it_rests(host: Host) -> None:
    def do(errand: Errand) -> Done:
        if errand.turn.text == "one":
            host.post("two")
        return answering(errand)

    host.post("one")
    assert host.run(Scribe(do)).turns == 2
    assert host.state() == (JobState.IDLE, 0, 0)


def test_what_comes_in_at_the_last_moment_is_not_left_lying(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it has looked and found nothing, before it rests."""
    release = host.store.agents.release
    late = ["two"]

    def posting_first(*given: Any) -> Any:
        if late:
            host.post(late.pop())
        return release(*given)

    monkeypatch.setattr(host.store.agents, "release", posting_first)
    host.post("one")
    assert host.run(Scribe()).turns == 2
    assert host.state() == (JobState.IDLE, 0, 0)


def test_a_reset_is_a_turn_in_which_nothing_is_done(host: Host) -> None:
    host.post("one")
    host.post("reset", kind=ItemKind.RESET)
    host.post("two")
    scribe = Scribe()
    host.run(scribe)
    assert scribe.events == [
        "do one",
        "stored one an answer",
        "stored reset None",
        "do two",
        "stored two an answer",
    ]
    assert host.session.state.rotation == 2
    assert [each.content for each in host.session.all()] == ["two", "an answer"]


def test_what_is_kept_in_a_turn_is_stored_at_once(host: Host) -> None:
    def do(errand: Errand) -> Done:
        kept = errand.keep([NewRecord(role=Role.ASSISTANT, content="a step", append_key="s")])
        assert [record.content for record in kept] == ["a step"]
        assert host.words() == ["hello", "a step"]
        return answering(errand)

    host.post("hello")
    host.run(Scribe(do))
    assert host.words() == ["hello", "a step", "an answer"]


def test_a_turn_that_was_answered_and_not_ended_is_only_ended(host: Host) -> None:
    """What an outbox has stored meanwhile."""
    host.post("hello")
    claim = host.claim()
    ids = host.memory.runtime.ids
    policy = host.memory.settings.mark_policy
    host.store.agents.take(claim, policy, host.clock.now(), ids.new)
    host.session.append("assistant", "told already", key=ANSWER_KEY + "hello")
    scribe = Scribe()
    assert host.run(scribe, claim).turns == 1
    assert scribe.events == ["stored hello None"]
    assert host.words() == ["hello", "told already"]


# failing


def failing(error: Exception, *, times: int = 10**6) -> Do:
    left = [times]

    def do(errand: Errand) -> Done:
        if left[0]:
            left[0] -= 1
            raise error
        return answering(errand)

    return do


@pytest.mark.parametrize("error", [InvalidOutput("nonsense"), RuntimeError("a bug"), KeyError("x")])
def test_a_failing_turn_waits_and_is_tried_again(host: Host, error: Exception) -> None:
    host.post("hello")
    scribe = Scribe(failing(error, times=1))
    assert host.run(scribe).failed == 1
    assert scribe.events[-1] == f"failed hello {type(error).__name__}"
    assert host.state() == (JobState.DUE, 1, 0)
    assert (host.item("hello").attempts, host.item("hello").state) == (1, ItemState.TAKEN)
    host.clock.advance(3600)
    assert host.run(scribe).turns == 1
    assert host.words() == ["hello", "an answer"]


def test_one_that_fails_too_often_is_parked_and_the_next_is_done(host: Host) -> None:
    host.post("bad")
    host.post("good", kind=ItemKind.SYSTEM_MESSAGE)

    def do(errand: Errand) -> Done:
        if errand.turn.text == "bad":
            raise InvalidOutput("nonsense")
        return answering(errand)

    scribe = Scribe(do)
    tries = host.memory.settings.job_failures_max
    for _ in range(tries):
        host.run(scribe)
        host.clock.advance(86_400)
    assert scribe.events.count("failed bad InvalidOutput") == tries - 1
    assert scribe.events[-1] == "parked bad InvalidOutput"
    host.run(scribe)
    assert scribe.events[-1] == "stored good an answer"
    assert host.item("bad").state is ItemState.PARKED
    assert host.state() == (JobState.IDLE, 0, 1)


def test_one_that_fails_for_good_is_parked_at_once(host: Host) -> None:
    host.post("bad")
    scribe = Scribe(failing(PermanentFailure("never")))
    host.run(scribe)
    assert scribe.events == ["do bad", "parked bad PermanentFailure"]
    assert host.item("bad").state is ItemState.PARKED


def test_what_is_kept_of_an_error_is_redacted(host: Host) -> None:
    key = "ghp_" + "a1B2" * 9
    host.post("hello")
    host.run(Scribe(failing(InvalidOutput(f"the key is {key}"))))
    error = host.item("hello").last_error or ""
    assert error.startswith("InvalidOutput: the key is ")
    assert key not in error


@pytest.mark.parametrize(
    "error",
    [StoreUnavailable("away"), Postponed("wait", delay_seconds=1), ModelUnavailable("later")],
)
def test_what_is_not_its_fault_is_not_counted_against_a_turn(host: Host, error: Exception) -> None:
    host.post("hello")
    with pytest.raises(type(error)):
        host.run(Scribe(failing(error)))
    item = host.item("hello")
    assert (item.attempts, item.state) == (0, ItemState.TAKEN)


# claims


def test_one_that_lost_its_claim_stores_nothing(host: Host) -> None:
    host.post("hello")
    claim = host.claim()

    def do(errand: Errand) -> Done:
        host.clock.advance(10_000)
        host.run(Scribe(lambda other: answering(other, "theirs")))
        return answering(errand, "mine")

    report = host.run(Scribe(do), claim)
    assert (report.stale, report.turns) == (1, 0)
    assert host.words() == ["hello", "theirs"]


def test_one_that_is_told_to_stop_stops_at_the_next_step(host: Host) -> None:
    host.post("hello")

    def do(errand: Errand) -> Done:
        host.lost.set()
        errand.keep([NewRecord(role=Role.ASSISTANT, content="a step", append_key="s")])
        raise AssertionError("it went on")

    assert host.run(Scribe(do)).stale == 1


def test_a_cancelled_call_is_a_lost_claim_and_no_failure(host: Host) -> None:
    host.post("hello")
    scribe = Scribe(failing(CallCancelled("nobody waits")))
    assert host.run(scribe).stale == 1
    assert host.item("hello").attempts == 0


def test_an_agent_that_does_not_exist_is_a_failure_for_good(host: Host) -> None:
    host.post("hello")
    claim = host.claim()
    with pytest.raises(PermanentFailure):
        host.run(Scribe(), dataclasses.replace(claim, key="999"))


# storing


def test_an_end_that_cannot_be_stored_is_told_and_raised(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise StoreUnavailable("away")

    host.post("hello")
    scribe = Scribe()
    monkeypatch.setattr(host.store.agents, "finish", away)
    with pytest.raises(StoreUnavailable):
        host.run(scribe)
    assert scribe.events[1] == "unstored hello an answer StoreUnavailable"


def stale(times: int) -> tuple[Callable[..., Any], list[int]]:
    """A finish that finds documents changed so often."""
    seen: list[int] = []

    def fail() -> None:
        seen.append(1)
        if len(seen) <= times:
            raise StaleVersion("changed", current=2)

    return fail, seen


def test_a_turn_is_done_again_where_its_documents_have_changed(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail, seen = stale(2)
    finish = host.store.agents.finish

    def finishing(*given: Any) -> Any:
        fail()
        return finish(*given)

    monkeypatch.setattr(host.store.agents, "finish", finishing)
    host.post("hello")
    scribe = Scribe()
    assert host.run(scribe, redo_max=2).turns == 1
    assert scribe.events == ["do hello"] * 3 + ["stored hello an answer"]
    assert len(seen) == 3


def test_also_where_that_shows_while_it_is_done(host: Host) -> None:
    fail, seen = stale(2)

    def doing(errand: Errand) -> Done:
        fail()
        return answering(errand)

    host.post("hello")
    scribe = Scribe(doing)
    assert host.run(scribe, redo_max=2).turns == 1
    assert len(seen) == 3


def test_and_fails_where_they_change_every_time(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail, _ = stale(100)
    monkeypatch.setattr(host.store.agents, "finish", lambda *_: fail())
    host.post("hello")
    scribe = Scribe()
    assert host.run(scribe, redo_max=2).failed == 1
    assert scribe.events == ["do hello"] * 3 + ["failed hello StaleVersion"]


def test_a_lost_claim_in_between_is_nobodys_error() -> None:
    assert not issubclass(LostClaimError, recollect.RecollectError)

"""X11, N4: what a call may take is held against the caps before it, and settled after it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import (
    CallCancelled,
    InvalidOutput,
    ModelDenied,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    PromptTooLong,
    SpendCapReached,
    StoreUnavailable,
)
from recollect.extraction.spend import RUN_PAUSE_SECONDS, Budget, Till
from recollect.models.protocol import Completion, Request, Usage
from recollect.models.tokens import estimate_tokens
from recollect.types.facts import Call, CallOutcome, Spent

SPACE = "alice"
REQUEST = Request(system="You are brief.", prompt="Hello there.", output_tokens_max=50)
SENT = estimate_tokens(REQUEST.system) + estimate_tokens(REQUEST.prompt)
MOST = SENT + 50
USED = Usage(input_tokens=9, output_tokens=2)


@dataclass
class Answering:
    """A model that answers, or raises, and says how much it took."""

    usage: Usage = USED
    error: BaseException | None = None
    tries_lost: int = 0
    asked: list[Request] = field(default_factory=list)
    name: str = "openai:m"
    window_tokens: int = 8000

    def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return Completion(text="hi", usage=self.usage, model="m", tries_lost=self.tries_lost)

    def close(self) -> None: ...


MakeTill = Callable[..., Till]


@pytest.fixture
def make_till(memory: recollect.Memory, clock: ManualClock) -> MakeTill:
    def make(
        model: Answering,
        budget: Budget | None = None,
        *,
        space: str = SPACE,
        **given: Any,
    ) -> Till:
        settings = Settings(data_dir="", **given)
        budget = budget or Budget(settings, clock)
        return Till(model, memory.store.ledger, budget, space, "s1", 3)

    return make


def calls(memory: recollect.Memory) -> list[Call]:
    return memory.space(SPACE).sessions.calls()


def budget(clock: ManualClock | None = None, **given: Any) -> Budget:
    return Budget(Settings(data_dir="", **given), clock or ManualClock())


# what a run may use


def test_a_run_may_use_its_tokens_to_the_last_one() -> None:
    run = budget(spend_tokens_per_run=100)
    run.take(60)
    with pytest.raises(SpendCapReached, match="100 tokens"):
        run.take(41)
    run.take(40)
    with pytest.raises(SpendCapReached):
        run.take(1)


def test_a_run_may_make_its_calls_to_the_last_one() -> None:
    run = budget(spend_calls_per_run=2)
    run.take(0)
    run.take(0)
    with pytest.raises(SpendCapReached, match="2 calls") as raised:
        run.take(0)
    assert raised.value.delay_seconds == RUN_PAUSE_SECONDS


def test_a_run_that_may_do_nothing_does_nothing() -> None:
    with pytest.raises(SpendCapReached):
        budget(spend_calls_per_run=0).take(0)
    with pytest.raises(SpendCapReached):
        budget(spend_tokens_per_run=0).take(1)


def test_what_was_refused_is_not_taken() -> None:
    run = budget(spend_tokens_per_run=100, spend_calls_per_run=1)
    with pytest.raises(SpendCapReached):
        run.take(101)
    run.take(100)


@pytest.mark.parametrize(("used", "left"), [(10, 90), (60, 40), (90, 10)])
def test_a_correction_gives_back_what_was_not_used_and_takes_what_was(used: int, left: int) -> None:
    run = budget(spend_tokens_per_run=100)
    run.take(60)
    run.correct(60, used)
    with pytest.raises(SpendCapReached):
        run.take(left + 1)
    run.take(left)


def test_a_run_that_goes_on_has_its_budget_anew_every_day(clock: ManualClock) -> None:
    run = budget(clock, spend_tokens_per_run=100, spend_calls_per_run=2)
    run.take(100)
    clock.advance(86_399)
    with pytest.raises(SpendCapReached):
        run.take(1)
    clock.advance(1)
    run.take(60)
    run.take(40)
    with pytest.raises(SpendCapReached):
        run.take(0)


def test_the_threads_of_a_run_share_its_budget() -> None:
    threads, cap = 16, 5
    run = budget(spend_calls_per_run=cap, spend_tokens_per_run=10_000)
    barrier = threading.Barrier(threads)
    taken, refused = [], []

    def take() -> None:
        barrier.wait(20)
        try:
            run.take(10)
        except SpendCapReached:
            refused.append(1)
        else:
            taken.append(1)

    running = [threading.Thread(target=take) for _ in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join(20)
    assert (len(taken), len(refused)) == (cap, threads - cap)


def test_the_threads_of_a_run_never_exceed_its_tokens_while_they_wait(
    make_till: MakeTill,
) -> None:
    """What calls under way may take at most is held back until they are answered."""
    run = budget(spend_tokens_per_run=2 * MOST + MOST // 2)
    arrived, go = threading.Barrier(3), threading.Event()

    class Waiting(Answering):
        def complete(self, request: Request) -> Completion:
            arrived.wait(20)
            assert go.wait(20)
            return super().complete(request)

    model = Waiting()
    running = [
        threading.Thread(target=make_till(model, run).ask, args=(REQUEST, "extract"))
        for _ in range(2)
    ]
    for each in running:
        each.start()
    arrived.wait(20)
    with pytest.raises(SpendCapReached):
        make_till(model, run).ask(REQUEST, "extract")
    go.set()
    for each in running:
        each.join(20)
    assert len(model.asked) == 2
    make_till(Answering(), run).ask(REQUEST, "extract")


# one call


def test_a_call_is_in_the_ledger_before_it_is_made_and_settled_after_it(
    make_till: MakeTill, memory: recollect.Memory, clock: ManualClock
) -> None:
    seen: list[Call] = []

    class Looking(Answering):
        def complete(self, request: Request) -> Completion:
            seen.extend(calls(memory))
            return super().complete(request)

    till = make_till(Looking(), model_input_price=2.0, model_output_price=10.0)
    assert till.ask(REQUEST, "repair").text == "hi"
    (before,) = seen
    assert (before.outcome, before.cost_micros) == (CallOutcome.RESERVED, None)
    assert (before.input_tokens, before.output_tokens) == (SENT, 50)
    (after,) = calls(memory)
    assert (after.outcome, after.purpose, after.model) == (
        CallOutcome.ANSWERED,
        "repair",
        "openai:m",
    )
    assert (after.session_id, after.attempt, after.at) == ("s1", 3, clock.now())
    assert (after.input_tokens, after.output_tokens, after.cost_micros) == (9, 2, 38)
    assert till.spent == Spent(calls=1, input_tokens=9, output_tokens=2, cost_micros=38)


def test_a_till_adds_up_what_its_calls_took(make_till: MakeTill) -> None:
    till = make_till(Answering())
    for _ in range(3):
        till.ask(REQUEST, "extract")
    assert till.spent == Spent(calls=3, input_tokens=27, output_tokens=6)


def test_a_longer_request_with_a_schema_reserves_more(
    make_till: MakeTill, memory: recollect.Memory
) -> None:
    """What is sent along is paid for as well."""
    schema = {"type": "object", "properties": {f"field {n}": {"type": "string"} for n in range(50)}}
    with_schema = Request(system="s", prompt="p", schema=schema, output_tokens_max=50)
    till = make_till(Answering(error=InvalidOutput("no")))
    with pytest.raises(InvalidOutput):
        till.ask(with_schema, "extract")
    (call,) = calls(memory)
    assert call.input_tokens > 300


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (InvalidOutput("cut off"), CallOutcome.INVALID),
        (CallCancelled("nobody waits"), CallOutcome.FAILED),
    ],
)
def test_a_call_that_began_to_be_answered_keeps_its_estimate(
    make_till: MakeTill, memory: recollect.Memory, error: ModelError, outcome: CallOutcome
) -> None:
    till = make_till(Answering(error=error))
    with pytest.raises(type(error)):
        till.ask(REQUEST, "extract")
    (call,) = calls(memory)
    assert (call.outcome, call.input_tokens, call.output_tokens) == (outcome, SENT, 50)
    assert till.spent.tokens == MOST
    assert memory.status(SPACE).spent_today.tokens == MOST


@pytest.mark.parametrize(
    "error",
    [
        ModelUnavailable("down"),
        ModelDenied("no key", delay_seconds=1),
        ModelRejected("never"),
        PromptTooLong("less"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_call_that_was_refused_takes_nothing_and_stays_in_the_ledger(
    make_till: MakeTill, memory: recollect.Memory, error: ModelError
) -> None:
    run = budget(spend_tokens_per_run=MOST)
    till = make_till(Answering(error=error), run, spend_calls_per_day=1)
    with pytest.raises(type(error)):
        till.ask(REQUEST, "extract")
    (call,) = calls(memory)
    assert (call.outcome, call.input_tokens, call.output_tokens) == (CallOutcome.FAILED, 0, 0)
    assert till.spent == memory.status(SPACE).spent_today == Spent()
    make_till(Answering(), run, spend_calls_per_day=1).ask(REQUEST, "extract")


@pytest.mark.parametrize("tries", [1, 3])
def test_tries_that_were_taken_on_and_broke_off_are_counted_at_their_most(
    make_till: MakeTill, memory: recollect.Memory, tries: int
) -> None:
    error = ModelUnavailable("broke off")
    error.tries_begun = tries
    till = make_till(Answering(error=error))
    with pytest.raises(ModelUnavailable):
        till.ask(REQUEST, "extract")
    (call,) = calls(memory)
    assert (call.outcome, call.input_tokens + call.output_tokens) == (
        CallOutcome.FAILED,
        tries * MOST,
    )
    assert till.spent.tokens == memory.status(SPACE).spent_today.tokens == tries * MOST


def test_an_answer_is_counted_with_the_tries_that_broke_off_before_it(
    make_till: MakeTill, memory: recollect.Memory
) -> None:
    till = make_till(Answering(tries_lost=2))
    till.ask(REQUEST, "extract")
    (call,) = calls(memory)
    assert (call.outcome, call.input_tokens, call.output_tokens) == (
        CallOutcome.ANSWERED,
        9 + 2 * SENT,
        2 + 2 * 50,
    )
    assert till.spent.tokens == 11 + 2 * MOST


def test_a_call_that_ends_in_nobody_knows_what_stays_reserved(
    make_till: MakeTill, memory: recollect.Memory
) -> None:
    with pytest.raises(KeyboardInterrupt):
        make_till(Answering(error=KeyboardInterrupt())).ask(REQUEST, "extract")
    (call,) = calls(memory)
    assert call.outcome is CallOutcome.RESERVED
    assert memory.status(SPACE).spent_today.tokens == MOST


# what a space may use in a day


def test_a_space_may_use_its_tokens_of_a_day_to_the_last_one(make_till: MakeTill) -> None:
    model = Answering(usage=Usage(input_tokens=5, output_tokens=5))
    with pytest.raises(SpendCapReached, match=f"{MOST - 1:,} tokens a day"):
        make_till(model, spend_tokens_per_day=MOST - 1).ask(REQUEST, "extract")
    assert model.asked == []
    make_till(model, spend_tokens_per_day=MOST).ask(REQUEST, "extract")
    with pytest.raises(SpendCapReached, match="has used 1 calls and 10 tokens"):
        make_till(model, spend_tokens_per_day=MOST + 9).ask(REQUEST, "extract")
    make_till(model, spend_tokens_per_day=MOST + 10).ask(REQUEST, "extract")
    assert len(model.asked) == 2


def test_a_space_may_make_its_calls_of_a_day_to_the_last_one(make_till: MakeTill) -> None:
    model = Answering()
    till = make_till(model, spend_calls_per_day=2)
    till.ask(REQUEST, "extract")
    till.ask(REQUEST, "extract")
    with pytest.raises(SpendCapReached, match="2 calls a day"):
        till.ask(REQUEST, "extract")
    assert (len(model.asked), till.spent.calls) == (2, 2)
    make_till(model, spend_calls_per_day=2, space="bob").ask(REQUEST, "extract")


@pytest.mark.parametrize("gone", [0.0, 3600.5, 86_399.0])
def test_a_capped_space_waits_until_the_day_is_over(
    make_till: MakeTill, clock: ManualClock, gone: float
) -> None:
    clock.advance(gone)
    till = make_till(Answering(), spend_calls_per_day=1)
    till.ask(REQUEST, "extract")
    with pytest.raises(SpendCapReached) as raised:
        till.ask(REQUEST, "extract")
    assert raised.value.delay_seconds == 86_400 - gone
    clock.advance(raised.value.delay_seconds)
    till.ask(REQUEST, "extract")


def test_what_a_capped_space_may_not_do_takes_nothing_of_the_run(make_till: MakeTill) -> None:
    make_till(Answering()).ask(REQUEST, "extract")
    run = budget(spend_tokens_per_run=MOST, spend_calls_per_day=1)
    with pytest.raises(SpendCapReached):
        make_till(Answering(), run).ask(REQUEST, "extract")
    make_till(Answering(), run, space="another").ask(REQUEST, "extract")


def test_a_ledger_that_cannot_be_reached_takes_nothing_of_the_run(
    make_till: MakeTill, memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = budget(spend_tokens_per_run=MOST)
    model = Answering()

    def unreachable(*_: object) -> None:
        raise StoreUnavailable("gone for a moment")

    with monkeypatch.context() as broken:
        broken.setattr(memory.store.ledger, "reserve", unreachable)
        with pytest.raises(StoreUnavailable):
            make_till(model, run).ask(REQUEST, "extract")
    assert model.asked == [], "what cannot be counted is not asked"
    make_till(model, run).ask(REQUEST, "extract")

"""The ledger: calls are reserved against the caps of a day, settled once, and never forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

from recollect.types.facts import Call, CallOutcome, Caps, NewCall, OverCap, Reserved, Spent
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import add, day, draft, due, lesson, record, revision

THREADS = 8
WIDE = Caps(tokens_per_day=10**9, calls_per_day=10**6)


def _call(session_id: str | None = None, *, tokens: tuple[int, int] = (70, 30)) -> NewCall:
    return NewCall(
        space=SPACE,
        session_id=session_id,
        purpose="extract",
        model="small",
        attempt=2,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
    )


def _reserve(store: Harness, call: NewCall | None = None, caps: Caps = WIDE) -> int:
    reserved = store.handle.ledger.reserve(call or _call(), caps, store.now())
    assert isinstance(reserved, Reserved), f"{reserved}"
    return reserved.call_id


def _settle(
    store: Harness, call_id: int, took: Spent, outcome: CallOutcome = CallOutcome.ANSWERED
) -> bool:
    return store.handle.ledger.settle(SPACE, call_id, took, outcome)


def _spent(store: Harness, space: str | None = SPACE) -> Spent:
    return store.handle.ledger.spent(space, store.now())


@case("X11 N4", "a call that is reserved counts as what it may take at most")
def a_reserved_call_counts(store: Harness) -> None:
    assert _spent(store) == Spent()
    call_id = _reserve(store, _call("s"))
    assert _spent(store) == Spent(calls=1, input_tokens=70, output_tokens=30)
    assert store.handle.ledger.calls(SPACE, None, 10, None) == [
        Call(
            id=call_id,
            space=SPACE,
            session_id="s",
            purpose="extract",
            model="small",
            attempt=2,
            input_tokens=70,
            output_tokens=30,
            cost_micros=None,
            outcome=CallOutcome.RESERVED,
            at=store.now(),
        )
    ]


@case("X11 N4", "settling a call replaces the estimate by what it took")
def settling_replaces_the_estimate(store: Harness) -> None:
    small, large = _reserve(store), _reserve(store)
    assert _settle(store, small, Spent(calls=1, input_tokens=50, output_tokens=1, cost_micros=9))
    assert _settle(
        store, large, Spent(calls=1, input_tokens=80, output_tokens=60), CallOutcome.INVALID
    )
    assert _spent(store) == Spent(calls=2, input_tokens=130, output_tokens=61, cost_micros=9)
    [second, first] = store.handle.ledger.calls(SPACE, None, 10, None)
    assert (first.input_tokens, first.output_tokens, first.cost_micros) == (50, 1, 9)
    assert (first.outcome, second.outcome) == (CallOutcome.ANSWERED, CallOutcome.INVALID)
    assert second.cost_micros is None


@case("X11", "a call is settled once")
def a_call_is_settled_once(store: Harness) -> None:
    call_id = _reserve(store)
    took = Spent(calls=1, input_tokens=50, output_tokens=10, cost_micros=3)
    assert _settle(store, call_id, took) is True
    before = _spent(store), store.handle.ledger.calls(SPACE, None, 10, None)
    assert _settle(store, call_id, replace(took, input_tokens=999)) is False
    assert _settle(store, call_id + 999, took) is False
    assert (_spent(store), store.handle.ledger.calls(SPACE, None, 10, None)) == before


@case("X11", "a call that failed is in the books with what it took")
def a_failed_call_is_in_the_books(store: Harness) -> None:
    assert _settle(store, _reserve(store), Spent(calls=1, input_tokens=9), CallOutcome.FAILED)
    assert _spent(store) == Spent(calls=1, input_tokens=9)
    assert store.handle.ledger.calls(SPACE, None, 10, None)[0].outcome is CallOutcome.FAILED


@case("X11", "a call that never began is in the books and takes nothing, not even a call")
def a_call_that_never_began_takes_nothing(store: Harness) -> None:
    caps = Caps(tokens_per_day=100, calls_per_day=1)
    for _ in range(3):
        assert _settle(store, _reserve(store, caps=caps), Spent(), CallOutcome.FAILED)
    assert _spent(store) == Spent()
    assert len(store.handle.ledger.calls(SPACE, None, 10, None)) == 3


@case("X11", "a cap on tokens is reached exactly and not exceeded by one")
def a_cap_on_tokens_is_exact(store: Harness) -> None:
    caps = Caps(tokens_per_day=200, calls_per_day=99)
    _reserve(store, caps=caps)
    over = store.handle.ledger.reserve(_call(tokens=(70, 31)), caps, store.now())
    assert isinstance(over, OverCap)
    assert over.spent == _spent(store) == Spent(calls=1, input_tokens=70, output_tokens=30)
    assert "200" in over.cap
    _reserve(store, caps=caps)
    assert isinstance(store.handle.ledger.reserve(_call(), caps, store.now()), OverCap)
    assert _spent(store).tokens == 200
    assert len(store.handle.ledger.calls(SPACE, None, 10, None)) == 2


@case("X11", "a cap on calls is reached exactly")
def a_cap_on_calls_is_exact(store: Harness) -> None:
    caps = Caps(tokens_per_day=10**6, calls_per_day=3)
    for _ in range(3):
        _settle(store, _reserve(store, caps=caps), Spent(calls=1))
    over = store.handle.ledger.reserve(_call(), caps, store.now())
    assert isinstance(over, OverCap)
    assert (over.spent.calls, "3" in over.cap) == (3, True)
    nothing = Caps(tokens_per_day=0, calls_per_day=0)
    assert isinstance(store.handle.ledger.reserve(_call(), nothing, store.now()), OverCap)


@case("X11", "what a call did not take is free again")
def what_was_not_taken_is_free_again(store: Harness) -> None:
    caps = Caps(tokens_per_day=100, calls_per_day=99)
    call_id = _reserve(store, caps=caps)
    assert isinstance(store.handle.ledger.reserve(_call(), caps, store.now()), OverCap)
    _settle(store, call_id, Spent(calls=1, input_tokens=0, output_tokens=0))
    _reserve(store, caps=caps)


@case("X11", "a day is a day in UTC, and a call belongs to the day on which it was reserved")
def a_day_is_a_day_in_utc(store: Harness) -> None:
    caps = Caps(tokens_per_day=100, calls_per_day=99)
    store.clock.advance(86_400 - 0.000001)
    late = _reserve(store, caps=caps)
    assert isinstance(store.handle.ledger.reserve(_call(), caps, store.now()), OverCap)
    store.clock.advance(0.000001)
    _reserve(store, caps=caps)
    _settle(store, late, Spent(calls=1, input_tokens=1, output_tokens=1, cost_micros=5))
    ledger = store.handle.ledger
    first, second = ledger.spent(SPACE, day(0)), ledger.spent(SPACE, day(1))
    assert first == Spent(calls=1, input_tokens=1, output_tokens=1, cost_micros=5)
    assert second == Spent(calls=1, input_tokens=70, output_tokens=30)
    assert ledger.spent(SPACE, day(1) + timedelta(hours=23, minutes=59)) == second
    assert ledger.spent(SPACE, day(2)) == Spent()
    assert ledger.spent_daily(SPACE, day(0), day(9)) == [(day(0), first), (day(1), second)]
    assert ledger.spent_daily(None, day(1), day(1)) == [(day(1), second)]
    assert ledger.spent_daily("theirs", day(0), day(9)) == []


@case("X11", "spaces have caps of their own; the whole is the sum")
def spaces_have_caps_of_their_own(store: Harness) -> None:
    caps = Caps(tokens_per_day=100, calls_per_day=1)
    _reserve(store, caps=caps)
    theirs = replace(_call(), space="theirs")
    call_id = _reserve(store, theirs, caps)
    assert store.handle.ledger.settle(SPACE, call_id, Spent(), CallOutcome.ANSWERED) is False
    took = Spent(calls=1, input_tokens=5, output_tokens=5, cost_micros=4)
    assert store.handle.ledger.settle("theirs", call_id, took, CallOutcome.ANSWERED)
    assert _spent(store, "theirs") == took
    assert _spent(store, None) == Spent(calls=2, input_tokens=75, output_tokens=35, cost_micros=4)
    assert len(store.handle.ledger.calls("theirs", None, 10, None)) == 1


@case("X11", "what each purpose took is told, of a day and in all, and adds up to the day")
def what_each_purpose_took_is_told(store: Harness) -> None:
    ledger = store.handle.ledger
    assert ledger.spent_by_purpose(SPACE, store.now()) == []
    took = Spent(calls=1, input_tokens=5, output_tokens=3, cost_micros=4)
    _settle(store, _reserve(store), took)
    store.clock.advance(86_400)
    _settle(store, _reserve(store), took)
    _settle(store, _reserve(store), Spent(), CallOutcome.FAILED)  # it never began
    _reserve(store, replace(_call(), purpose="file", space="theirs"))
    ours = ("extract", took, took.plus(took))
    filed = Spent(calls=1, input_tokens=70, output_tokens=30)
    assert ledger.spent_by_purpose(SPACE, store.now()) == [ours]
    assert took == _spent(store)
    assert ledger.spent_by_purpose(None, store.now()) == [ours, ("file", filed, filed)]
    assert ledger.spent_by_purpose(None, day(9))[1] == ("file", Spent(), filed)


@case("X11", "calls are listed by page, newest first, of one session or all")
def calls_are_listed_by_page(store: Harness) -> None:
    made = [_reserve(store, _call("s" if number % 2 else None)) for number in range(7)]
    listed: list[int] = []
    page = store.handle.ledger.calls(SPACE, None, 3, None)
    while page:
        listed += [call.id for call in page]
        page = store.handle.ledger.calls(SPACE, None, 3, page[-1])
    assert listed == made[::-1]
    of_session = store.handle.ledger.calls(SPACE, "s", 10, None)
    assert [call.id for call in of_session] == [made[5], made[3], made[1]]


@case("X11", "however many reserve at once, no cap is exceeded")
def no_cap_is_exceeded_at_once(store: Harness) -> None:
    caps = Caps(tokens_per_day=1050, calls_per_day=99)
    reserve = partial(store.handle.ledger.reserve, _call(), caps)
    now = store.now()
    for _ in range(2):
        outcomes = store.at_once(*[partial(reserve, now)] * THREADS)
    granted = len(store.handle.ledger.calls(SPACE, None, 100, None))
    assert any(isinstance(outcome, OverCap) for outcome in outcomes)
    assert (granted, _spent(store).tokens) == (10, 1000)


@case("X11", "however many settle one call at once, it is settled once")
def a_call_is_settled_once_at_once(store: Harness) -> None:
    call_id = _reserve(store)
    took = Spent(input_tokens=1, output_tokens=1, cost_micros=1)
    outcomes = store.at_once(*[partial(_settle, store, call_id, took)] * THREADS)
    assert outcomes.count(True) == 1
    assert _spent(store) == took


@case("X7 X11", "progress shows what a session's calls took")
def progress_shows_what_calls_took(store: Harness) -> None:
    _, claimed = due(store)
    for _ in range(2):
        took = Spent(input_tokens=10, output_tokens=5, cost_micros=2)
        _settle(store, _reserve(store, _call(claimed.key)), took)
    record(store, claimed, lesson(draft()))
    [line] = store.handle.extractions.progress(SPACE, 10)
    assert line.spent == Spent(calls=2, input_tokens=20, output_tokens=10, cost_micros=4)


@case("X11 X8", "what is spent is no news for consolidation, and facts cost nothing")
def spending_is_no_news(store: Harness) -> None:
    _settle(store, _reserve(store), Spent(calls=1, input_tokens=1))
    assert revision(store).changed == 0
    add(store, "likes tea")
    assert _spent(store).calls == 1

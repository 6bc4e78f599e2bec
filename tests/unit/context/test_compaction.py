"""T7: when a conversation is compacted, and what of it is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.context.compaction import (
    RETAINED_SHARE,
    Compaction,
    plan_compaction,
    record_tokens,
)
from recollect.context.turns import cuts
from recollect.messages import Role
from recollect.types.records import Record
from tests.unit.context.histories import (
    assistant,
    histories,
    records,
    result,
    turns,
    user,
)

PLENTY = 10**9


def tokens(history: list[Record] | tuple[Record, ...]) -> int:
    return sum(map(record_tokens, history))


# when it is due


@pytest.mark.parametrize(("count", "is_due"), [(3, False), (5, False), (6, True)])
def test_a_compaction_is_due_above_the_threshold_only(count: int, is_due: bool) -> None:
    history = turns(5)[:count]
    plan = plan_compaction(history, threshold=5, retain_recent=3, tokens_max=PLENTY)
    assert (plan is not None) is is_due


def test_the_most_recent_messages_are_kept() -> None:
    """T7: 8 messages, a threshold of 5, 3 to retain: from the turn on that begins within 3."""
    history = turns(4)
    plan = plan_compaction(history, threshold=5, retain_recent=3, tokens_max=PLENTY)
    assert plan == Compaction(summarised=tuple(history[:6]), retained=tuple(history[6:]))


def test_by_default_twenty_of_more_than_forty_are_kept() -> None:
    assert plan_compaction(turns(20), tokens_max=PLENTY) is None
    plan = plan_compaction(turns(21), tokens_max=PLENTY)
    assert plan is not None
    assert (len(plan.summarised), len(plan.retained)) == (22, 20)


def test_by_tokens_it_begins_above_the_budget_and_cuts_to_six_tenths_of_it() -> None:
    history = turns(10, chars=400)
    total = tokens(history)
    assert plan_compaction(history, tokens_max=total) is None
    plan = plan_compaction(history, tokens_max=total - 1)
    assert plan is not None
    assert 0.4 * total < tokens(plan.retained) <= RETAINED_SHARE * total


def test_the_summary_there_is_takes_tokens_too() -> None:
    history = turns(10, chars=400)
    summary = "s" * 800
    assert plan_compaction(history, tokens_max=tokens(history) + 204, summary=summary) is None
    plan = plan_compaction(history, tokens_max=tokens(history) + 203, summary=summary)
    assert plan is not None
    assert tokens(plan.retained) + 204 <= RETAINED_SHARE * (tokens(history) + 203)


def test_calls_and_results_are_counted() -> None:
    history = records(
        user("a"),
        assistant("b", "c1", arguments={"text": "x" * 4000}),
        result("r", "c1"),
        user("c"),
    )
    assert tokens(history) > 1000
    plan = plan_compaction(history, tokens_max=1000)
    assert plan is not None
    assert plan.retained == tuple(history[3:])


# what is kept


def test_the_newest_turn_is_retained_however_long_it_is() -> None:
    long = [user("go"), *(assistant(f"step {number}") for number in range(60))]
    history = records(user("before"), assistant("yes"), *long)
    plan = plan_compaction(history, tokens_max=PLENTY)
    assert plan is not None
    assert plan.retained == tuple(history[2:])
    assert plan_compaction(plan.retained, tokens_max=PLENTY) is None


def test_a_compaction_during_a_tool_call_keeps_the_call() -> None:
    history = [*turns(30), *records(user("look"), assistant("", "c1"))]
    plan = plan_compaction(history, tokens_max=PLENTY)
    assert plan is not None
    assert plan.retained[-1].tool_calls
    assert plan.retained[0].role is Role.USER


def test_retaining_as_many_as_the_threshold_does_not_compact_at_every_message() -> None:
    """T7: hysteresis, whatever is set."""
    plan = plan_compaction(turns(11), threshold=20, retain_recent=20, tokens_max=PLENTY)
    assert plan is not None
    assert len(plan.retained) == 12


def test_where_no_user_speaks_it_is_cut_between_steps() -> None:
    history = records(*(assistant(f"step {number}") for number in range(50)))
    plan = plan_compaction(history, tokens_max=PLENTY)
    assert plan is not None
    assert plan.retained == tuple(history[30:])


@given(histories(45), st.integers(1, 40), st.integers(0, 40), st.integers(0, 4000))
def test_what_is_summarised_and_what_is_retained_are_together_the_history(
    history: list[Record], threshold: int, retain: int, tokens_max: int
) -> None:
    """T7: on a turn boundary, in order, and with the newest words of the user."""
    plan = plan_compaction(
        history, threshold=threshold, retain_recent=retain, tokens_max=tokens_max
    )
    is_over = len(history) > threshold or tokens(history) > tokens_max
    places = [at for at in cuts(history) if at > 0]
    assert (plan is not None) is (is_over and bool(places))
    if plan is None:
        return
    assert plan.summarised + plan.retained == tuple(history)
    assert len(plan.summarised) in places
    said = [record for record in history if record.role is Role.USER]
    assert not said or said[-1] in plan.retained or len(plan.summarised) == places[-1]


@given(histories(45), st.integers(1, 40), st.integers(0, 40), st.integers(0, 4000))
def test_after_a_compaction_nothing_is_due(
    history: list[Record], threshold: int, retain: int, tokens_max: int
) -> None:
    """T7: the same span is never summarised again."""
    plan = plan_compaction(
        history, threshold=threshold, retain_recent=retain, tokens_max=tokens_max
    )
    if plan is not None:
        again = plan_compaction(
            plan.retained, threshold=threshold, retain_recent=retain, tokens_max=tokens_max
        )
        assert again is None


@given(st.integers(2, 30), st.integers(0, 30), st.integers(2, 8))
def test_after_a_compaction_the_threshold_has_to_be_passed_again(
    threshold: int, retain: int, turn_length: int
) -> None:
    """T7: hysteresis. With turns shorter than what is kept, the next one comes no sooner than the
    part of the threshold that was freed is filled again."""
    history: list[Record] = []
    since: int | None = None
    for number in range(200):
        message = user("q") if number % turn_length == 0 else assistant("a")
        history += records(message)
        since = None if since is None else since + 1
        plan = plan_compaction(
            history, threshold=threshold, retain_recent=retain, tokens_max=PLENTY
        )
        if plan is None:
            continue
        if since is not None and turn_length <= threshold * (1 - RETAINED_SHARE):
            assert since >= threshold * (1 - RETAINED_SHARE)
        history, since = list(plan.retained), 0
    assert len(history) <= threshold + turn_length

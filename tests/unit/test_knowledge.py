"""The words of what was learned: when two statements are one, when one holds, what calls take."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.types.facts import (
    NOTHING_SPENT,
    Draft,
    Fact,
    NewFact,
    Revision,
    Spent,
    Trust,
    content_key,
)
from tests.tables import every_row

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ANY_TEXT = st.text(st.characters())  # lone surrogates as well


# T4: the same statement is stored once


@every_row(
    "other",
    [
        "Alice prefers dark mode",
        "alice PREFERS dark Mode",
        "  Alice \t prefers\n dark   mode  ",
        "Alice prefers dark mode.",
        "“Alice prefers dark mode!”",
        "- Alice prefers dark mode…",
        "**Alice prefers dark mode**",
        "Ａlice prefers dark mode",
        "Alice prefers\u00a0dark mode",
    ],
)
def test_the_same_words_are_the_same_statement(other: str) -> None:
    assert content_key(other) == content_key("Alice prefers dark mode.")


@every_row(
    "other",
    [
        "Alice prefers light mode.",
        "Alice prefers dark modes.",
        "Alice does not prefer dark mode.",
        "Bob prefers dark mode.",
        "dark mode prefers Alice.",
        "Alice prefers: dark mode.",
        "Alice prefers darkmode.",
        "",
    ],
)
def test_other_words_are_another_statement(other: str) -> None:
    assert content_key(other) != content_key("Alice prefers dark mode.")


@pytest.mark.parametrize(
    ("one", "other"), [("-5 °C", "5 °C"), ("version 1.2", "version 12"), ("C", "C++")]
)
def test_punctuation_within_a_statement_counts(one: str, other: str) -> None:
    is_edge = one.startswith("-")  # a sign at the very edge is taken for a bullet
    assert (content_key(one) == content_key(other)) is is_edge


@given(ANY_TEXT)
def test_any_text_has_a_key_of_one_size_and_always_the_same(text: str) -> None:
    assert len(content_key(text)) == 64
    assert content_key(text) == content_key(text)


@given(st.text())
def test_white_space_around_a_statement_never_matters(text: str) -> None:
    assert content_key(f" \n{text}\t ") == content_key(text)


# when a fact holds


@every_row(
    ("since", "until", "holds"),
    [
        (None, None, True),
        (NOON, None, True),
        (NOON + SECOND, None, False),
        (None, NOON, False),
        (None, NOON + SECOND, True),
        (NOON, NOON, False),
    ],
)
def test_a_fact_holds_from_when_it_was_said_until_it_is_over(
    since: datetime | None, until: datetime | None, holds: bool
) -> None:
    assert Fact("x", valid_from=since, valid_to=until).is_valid(NOON) is holds


# what an extractor proposes


def test_a_draft_says_something_if_any_part_of_it_does() -> None:
    fact = NewFact(content="x", seq=1, seq_to=1, valid_from=NOON, trust=Trust.USER)
    assert Draft(upto=1).is_empty
    assert Draft(upto=1, raw_memory=" \n", rollout_summary="\t", rollout_slug="slug").is_empty
    for said in ({"raw_memory": "m"}, {"rollout_summary": "s"}, {"facts": (fact,)}):
        assert not dataclasses.replace(Draft(upto=1), **said).is_empty


# what calls take


@pytest.mark.parametrize(
    ("one", "other", "total"), [(None, None, None), (3, None, 3), (None, 0, 0), (3, 4, 7)]
)
def test_a_cost_that_is_unknown_stays_so_until_one_is_known(
    one: int | None, other: int | None, total: int | None
) -> None:
    assert Spent(cost_micros=one).plus(Spent(cost_micros=other)).cost_micros == total


def test_what_calls_take_adds_up() -> None:
    spent = Spent(calls=1, input_tokens=10, output_tokens=2)
    assert NOTHING_SPENT.plus(spent).plus(spent) == Spent(calls=2, input_tokens=20, output_tokens=4)
    assert (spent.tokens, NOTHING_SPENT.tokens) == (12, 0)


def test_consolidation_is_due_while_it_has_not_seen_every_change() -> None:
    assert Revision(changed=2, consolidated=1, changed_at=NOON).is_due
    assert not Revision(changed=2, consolidated=2, changed_at=NOON).is_due

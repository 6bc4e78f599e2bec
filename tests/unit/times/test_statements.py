"""Relative dates become absolute ones, seen from when they were said."""

from __future__ import annotations

import itertools
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.times import DATES_MAX, Facing, NamedDays, dates
from tests.tables import every_row

FRIDAY = date(2026, 5, 1)
HEAP = (
    "last next this on in by 31 12 2024 may june friday weekend week month year ago two a few of "
    "the yesterday tomorrow days 2026-02-30 february since until"
)


def times(text: str, said: date = FRIDAY, facing: Facing = Facing.BACK) -> tuple[NamedDays, ...]:
    return dates(text, said, facing, "en")


@every_row(
    ("text", "label"),
    [
        ("I saw it yesterday", "2026-04-30"),
        ("I saw it last night", "2026-04-30"),
        ("the day before yesterday", "2026-04-29"),
        ("we leave tomorrow", "2026-05-02"),
        ("the day after tomorrow", "2026-05-03"),
        ("I ran today", "2026-05-01"),
        ("two days ago", "2026-04-29"),
        ("10 days ago", "2026-04-21"),
        ("a week ago", "week of 2026-04-20"),
        ("three months ago", "2026-02"),
        ("a couple of years ago", "2024"),
        ("last Friday", "2026-04-24"),
        ("last Monday", "2026-04-27"),
        ("next Friday", "2026-05-08"),
        ("next Monday", "2026-05-04"),
        ("last weekend", "weekend of 2026-04-25"),
        ("next weekend", "weekend of 2026-05-09"),
        ("this weekend", "weekend of 2026-05-02"),
        ("last week", "week of 2026-04-20"),
        ("next month", "2026-06"),
        ("last year", "2025"),
        ("two weeks from now", "week of 2026-05-11"),
        ("on 2026-07-09", "2026-07-09"),
        ("it was June 3, 2024", "2024-06-03"),
        ("on the 3rd of June 2024", "2024-06-03"),
        ("in March", "2026-03"),
        ("in December 2024", "2024-12"),
    ],
)
def test_a_time_is_found_and_written_out(text: str, label: str) -> None:
    assert [when.label for when in times(text)] == [label]


@pytest.mark.parametrize(
    ("text", "behind", "ahead"),
    [
        ("on Monday", "2026-04-27", "2026-05-04"),
        ("on Friday", "2026-04-24", "2026-05-08"),
        ("on June 3", "2025-06-03", "2026-06-03"),
        ("on April 3", "2026-04-03", "2027-04-03"),
        ("in February", "2026-02", "2027-02"),
    ],
)
def test_a_day_without_a_year_lies_where_the_sentence_looks(
    text: str, behind: str, ahead: str
) -> None:
    assert [when.label for when in times(text, facing=Facing.BACK)] == [behind]
    assert [when.label for when in times(text, facing=Facing.AHEAD)] == [ahead]


@every_row(
    ("text", "label"),
    [
        ("I bought it on February 10th, and I want to use it", "2026-02-10"),
        ("I picked it up in late April and I'll paint it", "2026-04"),
        ("I booked it and have to pay by March 1st", "2027-03-01"),
        ("I sold it and I'm planning to move in February", "2027-02"),
        ("I bought tickets for October 3rd and will go", "2026-10-03"),
        ("I paid on March 1, 2027 and will go", "2027-03-01"),
        ("I will go on, as I have since January", "2026-01"),
        ("I'm scheduled twice a week since the 25th of March", "2026-03-25"),
        ("I will go on, as I have since Monday", "2026-04-27"),
    ],
)
def test_a_sentence_that_tells_and_plans_means_the_near_day(text: str, label: str) -> None:
    assert [when.label for when in times(text, facing=Facing.EITHER)] == [label]


def test_since_is_never_ahead() -> None:
    assert [when.label for when in times("since June", facing=Facing.AHEAD)] == ["2025-06"]


@every_row(
    ("text", "said", "label"),
    [
        ("yesterday", date(2024, 3, 1), "2024-02-29"),
        ("yesterday", date(2026, 3, 1), "2026-02-28"),
        ("yesterday", date(2026, 1, 1), "2025-12-31"),
        ("tomorrow", date(2025, 12, 31), "2026-01-01"),
        ("last month", date(2026, 1, 31), "2025-12"),
        ("next month", date(2025, 12, 31), "2026-01"),
        ("three months ago", date(2026, 2, 28), "2025-11"),
        ("last week", date(2026, 1, 1), "week of 2025-12-22"),
        # The days on which clocks change have 23 or 25 hours: a date has none.
        ("yesterday", date(2026, 3, 30), "2026-03-29"),
        ("two days ago", date(2026, 10, 26), "2026-10-24"),
        ("on February 29, 2024", date(2026, 5, 1), "2024-02-29"),
    ],
)
def test_leap_days_year_ends_and_changed_clocks_do_not_matter(
    text: str, said: date, label: str
) -> None:
    assert [when.label for when in times(text, said)] == [label]


@every_row(
    "text",
    [
        "on February 30, 2024",
        "on 2026-13-40",
        "I may go",
        "the March of progress",
        "version 3.12 of it",
        "May I ask",
        "it is 10:30",
    ],
)
def test_what_is_no_date_is_left_alone(text: str) -> None:
    assert times(text) == ()


def test_a_stretch_knows_its_first_and_last_day() -> None:
    (month,) = times("in February 2024")
    assert (month.first, month.last) == (date(2024, 2, 1), date(2024, 2, 29))
    assert not month.is_day
    (day,) = times("yesterday")
    assert day.is_day


def test_several_times_stand_in_their_order_and_do_not_overlap() -> None:
    found = times("yesterday, last week, in March and on June 3, 2024")
    assert [when.label for when in found] == [
        "2026-04-30",
        "week of 2026-04-20",
        "2026-03",
        "2024-06-03",
    ]
    assert all(a.stop <= b.start for a, b in itertools.pairwise(found))


@every_row("said", [date.min, date.max, date.min + timedelta(days=3)])
@every_row("text", ["yesterday", "tomorrow", "999 years ago", "next week", "last year"])
def test_the_ends_of_the_calendar_raise_nothing(text: str, said: date) -> None:
    assert len(times(text, said)) <= 1


@given(
    words=st.lists(
        st.sampled_from(HEAP.split()),
        max_size=14,
    ),
    said=st.dates(),
    facing=st.sampled_from(Facing),
)
def test_no_heap_of_such_words_raises(words: list[str], said: date, facing: Facing) -> None:
    found = times(" ".join(words), said, facing)
    assert len(found) <= DATES_MAX
    assert all(when.first <= when.last for when in found)

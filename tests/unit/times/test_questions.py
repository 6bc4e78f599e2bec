"""Times in questions: what a text says about when, as ranges; and whether it asks for a time."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta, timezone
from types import FrameType
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.times import (
    RANGES_MAX,
    TEXT_CHARS_MAX,
    Precision,
    TimeRange,
    time_ranges,
)
from tests.tables import every_row

NOW = datetime(2023, 6, 14, 15, 30, tzinfo=UTC)  # a Wednesday
FIRST = "0002-01-01"
TOMORROW = "2023-06-15"


def at(written: str) -> datetime:
    return datetime.fromisoformat(written).replace(tzinfo=UTC)


def only(text: str, now: datetime = NOW) -> TimeRange:
    (found,) = time_ranges(text, now)
    return found


def day(written: str) -> tuple[str, str, Precision]:
    end = at(written) + timedelta(days=1)
    return written, end.date().isoformat(), Precision.DAY


ISO_AND_NUMERIC = [
    ("What did I say on 2023-05-07?", *day("2023-05-07")),
    ("2023-5-7", *day("2023-05-07")),
    ("2023/05/07", *day("2023-05-07")),
    ("2023/05/07 (Sun) 14:30", "2023-05-07T14:30", "2023-05-07T14:31", Precision.MOMENT),
    ("at 2023-05-07T14:30:00Z", "2023-05-07T14:30", "2023-05-07T14:31", Precision.MOMENT),
    ("at 2023-05-07T14:30+02:00", "2023-05-07T12:30", "2023-05-07T12:31", Precision.MOMENT),
    ("at 2023-05-07T23:30-0530", "2023-05-08T05:00", "2023-05-08T05:01", Precision.MOMENT),
    ("2023-05-07 14:30:15.123", "2023-05-07T14:30:15", "2023-05-07T14:31:15", Precision.MOMENT),
    ("the meeting on 7.5.2023", *day("2023-05-07")),
    ("07.05.2023", *day("2023-05-07")),
    ("7-5-2023", *day("2023-05-07")),
    ("05/07/2023", *day("2023-05-07")),
    ("13/07/2022", *day("2022-07-13")),
    ("5.13.2023", *day("2023-05-13")),
    ("5/7/23", *day("2023-05-07")),
    ("5/7/99", *day("1999-05-07")),
    ("2023-05", "2023-05-01", "2023-06-01", Precision.MONTH),
    ("05/2023", "2023-05-01", "2023-06-01", Precision.MONTH),
    ("2023-W19", "2023-05-08", "2023-05-15", Precision.WEEK),
    ("bass caught before the 7/22 trip", FIRST, "2022-07-22", Precision.STRETCH),
    ("on 5/7 I said", *day("2023-05-07")),
    ("２０２３-05-07", *day("2023-05-07")),
]

WRITTEN = [
    ("on 7 May 2023", *day("2023-05-07")),
    ("on 3 June, 2023?", *day("2023-06-03")),
    ("7th of May, 2023", *day("2023-05-07")),
    ("the 7th of May", *day("2023-05-07")),
    ("the first of May", *day("2023-05-01")),
    ("on 8th December, 2022?", *day("2022-12-08")),
    ("May 7, 2023", *day("2023-05-07")),
    ("May 7th, 2023", *day("2023-05-07")),
    ("on December 1,2022 taken", *day("2022-12-01")),
    ("Oct. 13, 2022", *day("2022-10-13")),
    ("on Aug 15th?", *day("2022-08-15")),
    ("may 7th", *day("2023-05-07")),
    ("on may 7", *day("2023-05-07")),
    ("on June 14", *day("2023-06-14")),
    ("on June 15", *day("2022-06-15")),
    ("on 29 February", *day("2020-02-29")),
    ("Friday, 7 May 2021", *day("2021-05-07")),
    ("Fri, May 7th 2021", *day("2021-05-07")),
    ("7 May '21", *day("2021-05-07")),
    ("1:56 pm on 8 May, 2023", "2023-05-08T13:56", "2023-05-08T13:57", Precision.MOMENT),
    ("8 May 2023 at 13:56", "2023-05-08T13:56", "2023-05-08T13:57", Precision.MOMENT),
    ("on 8 May 2023, 25:30 in all", *day("2023-05-08")),
    ("8 May 2023 at 5pm", "2023-05-08T17:00", "2023-05-08T18:00", Precision.HOUR),
    ("12 am on 8 May 2023", "2023-05-08T00:00", "2023-05-08T01:00", Precision.HOUR),
    ("5-7 May 2023", "2023-05-05", "2023-05-08", Precision.STRETCH),
    ("May 5-7, 2023", "2023-05-05", "2023-05-08", Precision.STRETCH),
    ("August 11 to 15, 2022", "2022-08-11", "2022-08-16", Precision.STRETCH),
    ("May 2023", "2023-05-01", "2023-06-01", Precision.MONTH),
    ("September, 2022", "2022-09-01", "2022-10-01", Precision.MONTH),
    ("May of 2022", "2022-05-01", "2022-06-01", Precision.MONTH),
    ("in May", "2023-05-01", "2023-06-01", Precision.MONTH),
    ("in june", "2023-06-01", "2023-07-01", Precision.MONTH),
    ("in July", "2022-07-01", "2022-08-01", Precision.MONTH),
    ("in the month of February", "2023-02-01", "2023-03-01", Precision.MONTH),
    ("December sales", "2022-12-01", "2023-01-01", Precision.MONTH),
    ("in 2022?", "2022-01-01", "2023-01-01", Precision.YEAR),
    ("How many times in 2022 did I go?", "2022-01-01", "2023-01-01", Precision.YEAR),
    ("2022", "2022-01-01", "2023-01-01", Precision.YEAR),
    ("the year 2022 was good", "2022-01-01", "2023-01-01", Precision.YEAR),
    ("Q2 2023", "2023-04-01", "2023-07-01", Precision.QUARTER),
    ("in Q3", "2022-07-01", "2022-10-01", Precision.QUARTER),
    ("2022 Q4", "2022-10-01", "2023-01-01", Precision.QUARTER),
    ("the first quarter of 2022", "2022-01-01", "2022-04-01", Precision.QUARTER),
    ("music of the 90s", "1990-01-01", "2000-01-01", Precision.DECADE),
    ("the '80s", "1980-01-01", "1990-01-01", Precision.DECADE),
    ("the 20s", "2020-01-01", "2030-01-01", Precision.DECADE),
    ("in the 1970s", "1970-01-01", "1980-01-01", Precision.DECADE),
    ("the nineties", "1990-01-01", "2000-01-01", Precision.DECADE),
]

RELATIVE = [
    ("What did I do yesterday?", *day("2023-06-13")),
    ("today's notes", *day("2023-06-14")),
    ("tomorrow", *day("2023-06-15")),
    ("the day before yesterday", *day("2023-06-12")),
    ("the day after tomorrow", *day("2023-06-16")),
    ("tonight", "2023-06-14T18:00", "2023-06-15T06:00", Precision.PART_OF_DAY),
    ("this morning", "2023-06-14T05:00", "2023-06-14T12:00", Precision.PART_OF_DAY),
    ("last night", "2023-06-13T18:00", "2023-06-14T06:00", Precision.PART_OF_DAY),
    ("yesterday evening", "2023-06-13T17:00", "2023-06-14", Precision.PART_OF_DAY),
    ("yesterday at 9:15 am", "2023-06-13T09:15", "2023-06-13T09:16", Precision.MOMENT),
    ("5pm yesterday", "2023-06-13T17:00", "2023-06-13T18:00", Precision.HOUR),
    ("on Friday night", "2023-06-09T18:00", "2023-06-10T06:00", Precision.PART_OF_DAY),
    ("the evening of 7 May, 2023", "2023-05-07T17:00", "2023-05-08", Precision.PART_OF_DAY),
    ("last week", "2023-06-05", "2023-06-12", Precision.WEEK),
    ("issue last week,as mentioned", "2023-06-05", "2023-06-12", Precision.WEEK),
    ("this week", "2023-06-12", "2023-06-19", Precision.WEEK),
    ("next week", "2023-06-19", "2023-06-26", Precision.WEEK),
    ("the week before last", "2023-05-29", "2023-06-05", Precision.WEEK),
    ("last month", "2023-05-01", "2023-06-01", Precision.MONTH),
    ("since I turned 32 last month", "2023-05-01", "2023-06-01", Precision.MONTH),
    ("this month", "2023-06-01", "2023-07-01", Precision.MONTH),
    ("next month", "2023-07-01", "2023-08-01", Precision.MONTH),
    ("last quarter", "2023-01-01", "2023-04-01", Precision.QUARTER),
    ("last year", "2022-01-01", "2023-01-01", Precision.YEAR),
    ("last year's trip", "2022-01-01", "2023-01-01", Precision.YEAR),
    ("in this year", "2023-01-01", "2024-01-01", Precision.YEAR),
    ("last decade", "2010-01-01", "2020-01-01", Precision.DECADE),
    ("last weekend", "2023-06-10", "2023-06-12", Precision.WEEKEND),
    ("this weekend", "2023-06-17", "2023-06-19", Precision.WEEKEND),
    ("next weekend", "2023-06-24", "2023-06-26", Precision.WEEKEND),
    ("over the weekend", "2023-06-10", "2023-06-12", Precision.WEEKEND),
    ("two weekends ago", "2023-06-03", "2023-06-05", Precision.WEEKEND),
    ("last Tuesday", *day("2023-06-13")),
    ("last Wednesday", *day("2023-06-07")),
    ("on Wednesday", *day("2023-06-07")),
    ("on Thursday", *day("2023-06-08")),
    ("this Friday", *day("2023-06-16")),
    ("next Monday", *day("2023-06-19")),
    ("What did I eat Monday?", *day("2023-06-12")),
    ("last spring", "2023-03-01", "2023-06-01", Precision.SEASON),
    ("last summer", "2022-06-01", "2022-09-01", Precision.SEASON),
    ("this summer", "2023-06-01", "2023-09-01", Precision.SEASON),
    ("next summer", "2024-06-01", "2024-09-01", Precision.SEASON),
    ("during the winter", "2022-12-01", "2023-03-01", Precision.SEASON),
    ("this fall", "2023-09-01", "2023-12-01", Precision.SEASON),
    ("the summer of 2021", "2021-06-01", "2021-09-01", Precision.SEASON),
    ("winter 2021", "2021-12-01", "2022-03-01", Precision.SEASON),
    ("last May", "2023-05-01", "2023-06-01", Precision.MONTH),
    ("last June", "2022-06-01", "2022-07-01", Precision.MONTH),
    ("next May", "2024-05-01", "2024-06-01", Precision.MONTH),
    ("this May", "2023-05-01", "2023-06-01", Precision.MONTH),
    ("3 days ago", *day("2023-06-11")),
    ("a couple of days ago", "2023-06-11", "2023-06-14", Precision.DAY),
    ("a week ago", "2023-06-04", "2023-06-11", Precision.WEEK),
    ("two weeks ago", "2023-05-28", "2023-06-04", Precision.WEEK),
    ("a fortnight ago", "2023-05-28", "2023-06-04", Precision.WEEK),
    ("3 months ago", "2023-02-27", "2023-03-30", Precision.MONTH),
    ("4 years ago", "2018-12-13", "2019-12-15", Precision.YEAR),
    ("a few years back", "2016-12-13", "2021-12-15", Precision.YEAR),
    ("2 hours ago", "2023-06-14T13:00", "2023-06-14T14:00", Precision.HOUR),
    ("three days from now", *day("2023-06-17")),
    ("in the last 10 days", "2023-06-04", TOMORROW, Precision.STRETCH),
    ("in the past two weeks", "2023-05-31", TOMORROW, Precision.STRETCH),
    ("in the past month", "2023-05-14", TOMORROW, Precision.STRETCH),
    ("in the last year", "2022-06-14", TOMORROW, Precision.STRETCH),
    ("in the past few months", "2022-12-14", TOMORROW, Precision.STRETCH),
    ("the last 2 hours", "2023-06-14T13:30", "2023-06-14T15:30", Precision.STRETCH),
    ("the next 3 days", "2023-06-14", "2023-06-18", Precision.STRETCH),
]

COMPOSED = [
    ("since March", "2023-03-01", TOMORROW, Precision.STRETCH),
    ("since yesterday", "2023-06-13", TOMORROW, Precision.STRETCH),
    ("since the start of the year", "2023-01-01", TOMORROW, Precision.STRETCH),
    ("before 2022", FIRST, "2022-01-01", Precision.STRETCH),
    ("prior to May 2022", FIRST, "2022-05-01", Precision.STRETCH),
    ("after May 2022", "2022-06-01", TOMORROW, Precision.STRETCH),
    ("until Friday", FIRST, "2023-06-17", Precision.STRETCH),
    ("by July", FIRST, "2023-08-01", Precision.STRETCH),
    ("by 7 November, 2022", FIRST, "2022-11-08", Precision.STRETCH),
    ("as of December 2022", "2022-12-01", "2023-01-01", Precision.MONTH),
    ("since 2024", "2024-01-01", "9998-12-31", Precision.STRETCH),
    ("between March and May", "2023-03-01", "2023-06-01", Precision.STRETCH),
    ("between November and February", "2022-11-01", "2023-03-01", Precision.STRETCH),
    ("between August 11 and August 15 2022", "2022-08-11", "2022-08-16", Precision.STRETCH),
    ("between 2019 and 2021", "2019-01-01", "2022-01-01", Precision.STRETCH),
    ("from July to October", "2022-07-01", "2022-11-01", Precision.STRETCH),
    ("from July to March", "2022-07-01", "2023-04-01", Precision.STRETCH),
    ("from October to July 2021", "2020-10-01", "2021-08-01", Precision.STRETCH),
    ("from July 2021 to October", "2021-07-01", "2021-11-01", Precision.STRETCH),
    ("from May 2022 on", "2022-05-01", TOMORROW, Precision.STRETCH),
    ("in 2019-2021", "2019-01-01", "2022-01-01", Precision.STRETCH),
    ("2022-05-01 to 2022-05-08", "2022-05-01", "2022-05-09", Precision.STRETCH),
    ("the week before 9 June 2023", "2023-06-02", "2023-06-09", Precision.WEEK),
    ("the month after 9 June 2022", "2022-06-10", "2022-07-10", Precision.MONTH),
    ("the Friday before 14 August 2022", *day("2022-08-12")),
    ("last weekend before April 10, 2023", "2023-04-08", "2023-04-10", Precision.WEEKEND),
    ("two weeks before August 11, 2022", "2022-07-25", "2022-08-01", Precision.WEEK),
    ("three days after Christmas", *day("2022-12-28")),
    ("the week of 9 June 2023", "2023-06-05", "2023-06-12", Precision.WEEK),
    ("mid-June", "2023-06-11", "2023-06-21", Precision.MONTH),
    ("mid-August 2022", "2022-08-11", "2022-08-22", Precision.MONTH),
    ("early 2023", "2023-01-01", "2023-05-03", Precision.YEAR),
    ("late last year", "2022-09-01", "2023-01-01", Precision.YEAR),
    ("the early 90s", "1990-01-01", "1993-05-03", Precision.DECADE),
    ("end of last year", "2022-10-01", "2023-01-01", Precision.YEAR),
    ("towards the end of summer 2022", "2022-08-09", "2022-09-01", Precision.SEASON),
    ("the beginning of May", "2023-05-01", "2023-05-09", Precision.MONTH),
    ("the second half of 2022", "2022-07-02", "2023-01-01", Precision.YEAR),
    ("in the second week of November", "2022-11-08", "2022-11-15", Precision.WEEK),
    ("the fifth week of May", "2023-05-29", "2023-06-01", Precision.WEEK),
    ("the fifth Monday of February", "2023-02-01", "2023-03-01", Precision.MONTH),
    ("late last night", "2023-06-13T18:00", "2023-06-14T06:00", Precision.PART_OF_DAY),
    ("the last week of May", "2023-05-25", "2023-06-01", Precision.WEEK),
    ("first weekend of August 2022", "2022-08-06", "2022-08-08", Precision.WEEKEND),
    ("the first Monday of May", *day("2023-05-01")),
    ("the last Friday of May", *day("2023-05-26")),
    ("the first three months of 2022", "2022-01-01", "2022-04-01", Precision.STRETCH),
    ("at Christmas", *day("2022-12-25")),
    ("Christmas 2020", *day("2020-12-25")),
    ("last Christmas", *day("2022-12-25")),
    ("next Christmas", *day("2023-12-25")),
    ("on New Year's Eve", *day("2022-12-31")),
    ("on New Year’s Day", *day("2023-01-01")),
    ("on Valentine's Day", *day("2023-02-14")),
    ("the 4th of July", *day("2022-07-04")),
    ("on Independence Day", *day("2022-07-04")),
    ("since Halloween", "2022-10-31", TOMORROW, Precision.STRETCH),
]

TABLE = ISO_AND_NUMERIC + WRITTEN + RELATIVE + COMPOSED


@every_row(("text", "start", "end", "precision"), TABLE)
def test_a_time_is_understood(text: str, start: str, end: str, precision: Precision) -> None:
    found = only(text)

    assert (found.start, found.end, found.precision) == (at(start), at(end), precision)
    assert text[slice(*found.span)] == found.text


NOT_TIMES = [
    "",
    "What is my cat called?",
    "may I ask you something",
    "May I come in?",
    "this may be wrong",
    "you may 10 times",
    "the first 10 may enter",
    "the state we are in may change",
    "march on",
    "They march on Washington",
    "an august body",
    "a photo of April",
    "June said so",
    "a gift from April",
    "sun and moon",
    "I sat on the mat",
    "wait a second",
    "the second one",
    "10 out of 12",
    "10/12 points",
    "version 1.2.3",
    "v2023.05.07",
    "version 7.5.2023",
    "1.2.23",
    "192.168.20.23",
    "port 2024",
    "localhost:2024",
    "CVE-2023-1234",
    "report_2023_final",
    "abc2023",
    "2023.txt",
    "issue #2023",
    "order 20230507",
    "2024 lines of code",
    "in 2024 lines",
    "by 2000 people",
    "in 2000 dollars",
    "$2023",
    "€ 2,023",
    "2023%",
    "room 2023",
    "Cyberpunk 2077",
    "FIFA 23",
    "pre-1920 American coins",
    "my 5-day trip",
    "the 27th parameter",
    "my 10th jog",
    "30-gallon tank",
    "every Friday",
    "on Sundays",
    "on a Sunday",
    "my Sunday group rides",
    "Turbocharged Tuesdays",
    "Black Friday?",
    "in a day",
    "in a typical week",
    "in two weeks",
    "the last time",
    "the last venue",
    "my last day of school",
    "the last week of school",
    "in the past",
    "How many days ago did I buy it?",
    "How many weeks before the party?",
    "How long ago was it?",
    "fall off the bike",
    "a spring in the mattress",
    "in Spring Boot",
    "Spring Fling Market",
    "in the Spring Fling Market",
    "the end of the season",
    "the end of the day",
    "in her 30s",
    "the Christmas tree",
    "between you and me",
    "from here to there",
    "since I started",
    "before making an offer",
    "99999999999999999999 years ago",
    "31.02.2023",
    "2023-13-01",
    "2023-02-30T25:61",
    "9999-12-31",
    "0000-00-00",
    "2023-05-07abc",
    "a hundred days ago",
    "half a year ago",
    "a dozen years ago",
]


@every_row("text", NOT_TIMES)
def test_what_only_looks_like_a_time_is_left_alone(text: str) -> None:
    assert time_ranges(text, NOW) == []


@every_row(
    ("text", "found"),
    [
        ("the novels I finished in January and March", ["January", "March"]),
        ("on 7 May 2023, or last week?", ["7 May 2023", "last week"]),
        ("What did I say since March, and before 2022?", ["since March", "before 2022"]),
        ("İstanbul'da yesterday 🙂 — and in May", ["yesterday", "May"]),
        ("Walks in June and July. 4. Runs in August. 2. Rides", ["June", "July", "August"]),
        ("**yesterday** (last night)...", ["yesterday", "last night"]),
    ],
)
def test_several_times_are_found_in_their_order(text: str, found: list[str]) -> None:
    assert [time.text for time in time_ranges(text, NOW)] == found


def test_an_impossible_day_leaves_its_month() -> None:
    assert only("30 February 2023").text == "February 2023"


def test_days_are_those_of_the_zone_of_now() -> None:
    now = datetime(2023, 6, 14, 0, 30, tzinfo=ZoneInfo("Europe/Berlin"))

    found = only("yesterday", now)

    assert (found.start, found.end) == (at("2023-06-12T22:00"), at("2023-06-13T22:00"))


def test_a_day_on_which_the_clock_is_turned_has_its_own_length() -> None:
    now = datetime(2023, 3, 27, 9, tzinfo=ZoneInfo("Europe/Berlin"))

    found = only("yesterday", now)

    assert found.end - found.start == timedelta(hours=23)


def test_a_minute_that_the_clock_left_out_still_runs_forward() -> None:
    now = datetime(2023, 6, 14, tzinfo=ZoneInfo("Europe/Berlin"))

    found = only("2023-03-26 02:59", now)

    assert found.end - found.start == timedelta(minutes=1)


def test_on_a_monday_the_last_weekend_is_the_one_just_over() -> None:
    assert only("last weekend", at("2023-06-12")).start == at("2023-06-10")


def test_on_a_sunday_the_last_weekend_is_the_one_before() -> None:
    assert only("last weekend", at("2023-06-11T12:00")).start == at("2023-06-03")


def test_the_winter_of_january_began_last_year() -> None:
    assert only("this winter", at("2023-01-10")).start == at("2022-12-01")


@every_row("hours", [-12, 0, 14])
@every_row("moment", [(1, 1, 1), (2, 1, 1), (9998, 12, 31), (9999, 12, 31, 23, 59)])
def test_at_the_ends_of_the_calendar_dates_are_still_read(
    moment: tuple[int, ...], hours: int
) -> None:
    now = datetime(*moment, tzinfo=timezone(timedelta(hours=hours)))  # type: ignore[misc,arg-type]

    for text, *_ in TABLE:
        assert all(time.start < time.end for time in time_ranges(text, now))
    assert only("7 May 2023", now).precision is Precision.DAY


def test_there_is_an_end_to_it() -> None:
    assert len(time_ranges("yesterday " * 1000, NOW)) == RANGES_MAX


def test_a_time_far_behind_in_a_long_text_is_not_looked_for() -> None:
    padding = "word " * (TEXT_CHARS_MAX // 5)

    assert [time.text for time in time_ranges(f"yesterday {padding} in May", NOW)] == ["yesterday"]
    assert time_ranges("1" * 2 * TEXT_CHARS_MAX, NOW) == []
    assert time_ranges("\n" * TEXT_CHARS_MAX + "yesterday", NOW) == []
    assert time_ranges("\n".join(["yesterday"] * TEXT_CHARS_MAX), NOW) != []


# Words of the trade between arbitrary ones: far more of the grammar is reached than by noise.
_PIECES = st.sampled_from(
    " ".join(row[0] for row in TABLE).split() + NOT_TIMES + [",", "-", "/", ".", "'", "9999", "0"]
)
_TEXTS = st.text(st.characters(), max_size=80) | st.lists(
    _PIECES | st.text(max_size=4), max_size=12
).map(" ".join)
_ZONES = st.sampled_from(
    [
        UTC,
        ZoneInfo("America/New_York"),
        ZoneInfo("Pacific/Kiritimati"),
        timezone(timedelta(hours=-23, minutes=-59)),
        timezone(timedelta(hours=23, minutes=59)),
    ]
)


@settings(max_examples=400)
@given(text=_TEXTS, now=st.datetimes(timezones=_ZONES))
def test_any_text_at_any_time_gives_ranges_that_run_forward(text: str, now: datetime) -> None:
    found = time_ranges(text, now)

    assert len(found) <= RANGES_MAX
    assert [time.span for time in found] == sorted(time.span for time in found)
    for time in found:
        assert time.start < time.end
        assert time.start.tzinfo is not None
        assert text[slice(*time.span)] == time.text != ""
        assert time.start.astimezone(now.tzinfo) < time.end.astimezone(now.tzinfo)


def _calls(text: str) -> int:
    """How many calls reading a text takes: a measure of work that no machine can blur."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        time_ranges(text, NOW)
    finally:
        sys.setprofile(None)
    return calls


@every_row(
    "piece",
    [
        "may ",
        "the week before ",
        "between ",
        "7/",
        "early ",
        "the first 3 ",
        "2023-",
        "999999",
        "last last ",
        "in the the ",
        "- ",
        "a couple of ",
        "12:",
        "東京",
        "Friday, ",
        "the last ",
        "until the end of ",
    ],
)
def test_work_grows_no_faster_than_the_text(piece: str) -> None:
    once, twice = _calls(piece * 300), _calls(piece * 600)

    assert twice <= 2.2 * once + 100

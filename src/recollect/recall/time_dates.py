"""Reads written dates: numeric ones, days and months by name, years, and the clock beside them.

Between slashes the month comes first, as in American English (05/07/2023 is the 7th of May),
unless only the day can (13/07/2023); between dots and hyphens the day comes first. A year comes
first whenever it has four digits there. A name without a year is the latest one that has begun
(a day of the week: that is over), or, facing ahead, the first that is not over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from enum import Enum, auto

from recollect.recall import time_words as words
from recollect.recall.time_spans import (
    DAY,
    Period,
    Precision,
    Recurring,
    Span,
    Weekly,
    Yearly,
    containing,
    day_span,
    in_year,
    latest,
    latest_over,
    midnight,
    month_span,
    next_open,
    part_of,
    year_span,
)
from recollect.recall.time_words import Row

# A year with nothing but its four digits is believed from here to there.
_NAMED_YEARS = range(1000, 3000)
_LED_YEARS = range(1700, 2200)
_LONE_YEARS = range(1900, 2101)

_YEAR_FIRST = re.compile(
    r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\d])(?: \([A-Za-z]{3}\))?"
    r"(?:[Tt,]? ?(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d{1,9})?)?"
    r"(?: ?([Zz]|UTC|GMT|[+-]\d{2}:?\d{2}))?)?(?!\w)"
)
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?!\w)")
_ISO_WEEK = re.compile(r"(\d{4})-[Ww](\d{1,2})(?!\w)")
_YEAR_AND_MONTH = re.compile(r"(\d{4})-(\d{2})(?![\w-])")
_MONTH_AND_YEAR = re.compile(r"(\d{1,2})/(\d{4})(?![\w/])")
_MONTH_AND_DAY = re.compile(r"(\d{1,2})/(\d{1,2})(?![\w/])")
_CLOCK = re.compile(
    r"(\d{1,2})(?::([0-5]\d))?(?::[0-5]\d)? ?([AaPp])\.?[Mm]\b|(\d{1,2}):([0-5]\d)\b"
)
_ORDINAL = re.compile(r"(\d{1,2})(?:st|nd|rd|th)")


class Facing(Enum):
    """Which of the many Mays a bare May is."""

    BACK = auto()
    AHEAD = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """From where a text is read: the local time, its zone, and the word that led to the place."""

    now: datetime
    zone: tzinfo
    facing: Facing = Facing.BACK
    lead: str = ""

    def after(self, lead: str) -> View:
        return self if lead == self.lead else replace(self, lead=lead)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A time that was read, and the place of the first word behind it.

    ``name`` is set when no year was given, so that the other end of a stretch can give it.
    """

    span: Span
    stop: int
    name: Recurring | None = None


Reader = Callable[[Row, int, View], Reading | None]


def first_of(readers: Iterable[Reader], row: Row, place: int, view: View) -> Reading | None:
    """What the first reader that understands the place makes of it; an impossible date is none."""
    for reader in readers:
        try:
            reading = reader(row, place, view)
        except (ValueError, OverflowError):
            continue
        if reading is not None:
            return reading
    return None


def recurring(name: Recurring, view: View, stop: int) -> Reading:
    """A name without a year. On a Monday nobody calls the same day Monday, so that one is over."""
    if view.facing is Facing.AHEAD:
        span = next_open(name, view.now)
    elif isinstance(name, Weekly) and name.days == 1:
        span = latest_over(name, view.now)
    else:
        span = latest(name, view.now)
    return Reading(span=span, stop=stop, name=name)


def numeric_date(row: Row, place: int, view: View) -> Reading | None:
    if not row.key(place).isdecimal() or row.key(place + 1) not in ("-", "/", "."):
        return None
    if row.key(place - 1) in words.NUMBERED:
        return None
    return first_of(
        (_year_first, _year_last, _iso_week, _year_and_month, _month_and_year, _month_and_day),
        row,
        place,
        view,
    )


def _year_first(row: Row, place: int, view: View) -> Reading | None:
    found = _YEAR_FIRST.match(row.text, row.starts[place])
    if not found:
        return None
    year, month, day = (int(found[group]) for group in (1, 3, 4))
    span = day_span(year, month, day)
    stop = row.at(found.end())
    if found[5] is None:
        return with_detail(row, Reading(span=span, stop=stop))
    moment = span.start.replace(hour=int(found[5]), minute=int(found[6]), second=int(found[7] or 0))
    return Reading(span=_moment(_local(moment, found[8], view), Period.MINUTE), stop=stop)


def _local(moment: datetime, offset: str | None, view: View) -> datetime:
    """A moment that may name its own zone, as the clock of the reader shows it."""
    if offset is None:
        return moment
    aware = moment.replace(tzinfo=UTC)
    if offset[0] in "+-":
        minutes = 60 * int(offset[1:3]) + int(offset[-2:])
        aware -= timedelta(minutes=minutes if offset[0] == "+" else -minutes)
    return aware.astimezone(view.zone).replace(tzinfo=None)


def _moment(moment: datetime, period: Period) -> Span:
    precision = Precision.MOMENT if period is Period.MINUTE else Precision.HOUR
    length = timedelta(minutes=1) if period is Period.MINUTE else timedelta(hours=1)
    return Span(start=moment, end=moment + length, precision=precision)


def _year_last(row: Row, place: int, _view: View) -> Reading | None:
    found = _YEAR_LAST.match(row.text, row.starts[place])
    if not found:
        return None
    first, second, year = int(found[1]), int(found[3]), int(found[4])
    if len(found[4]) == 2:
        if found[2] != "/":
            return None  # 1.2.23 is more often a version
        year += 1900 if year > 68 else 2000
    slashes = found[2] == "/"
    month_leads = first <= 12 if slashes else second > 12
    month, day = (first, second) if month_leads else (second, first)
    reading = Reading(span=day_span(year, month, day), stop=row.at(found.end()))
    return with_detail(row, reading)


def _iso_week(row: Row, place: int, _view: View) -> Reading | None:
    found = _ISO_WEEK.match(row.text, row.starts[place])
    if not found:
        return None
    monday = datetime.fromisocalendar(int(found[1]), int(found[2]), 1)
    return Reading(span=containing(Period.WEEK, monday), stop=row.at(found.end()))


def _year_and_month(row: Row, place: int, _view: View) -> Reading | None:
    found = _YEAR_AND_MONTH.match(row.text, row.starts[place])
    if not found or int(found[1]) not in _LED_YEARS:
        return None
    return Reading(span=month_span(int(found[1]), int(found[2])), stop=row.at(found.end()))


def _month_and_year(row: Row, place: int, _view: View) -> Reading | None:
    found = _MONTH_AND_YEAR.match(row.text, row.starts[place])
    if not found or int(found[2]) not in _LED_YEARS:
        return None
    return Reading(span=month_span(int(found[2]), int(found[1])), stop=row.at(found.end()))


def _month_and_day(row: Row, place: int, view: View) -> Reading | None:
    found = _MONTH_AND_DAY.match(row.text, row.starts[place])
    if not found or not view.lead or view.lead in words.NOT_BEFORE_SLASHES:
        return None
    first, second = int(found[1]), int(found[2])
    month, day = (first, second) if first <= 12 else (second, first)
    name = Yearly(month=month, day=day, precision=Precision.DAY)
    return recurring(name, view, row.at(found.end()))


def day_number(row: Row, place: int) -> int | None:
    """A day of a month: 7 or 7th."""
    ordinal = _ORDINAL.fullmatch(row.key(place))
    day = int(ordinal[1]) if ordinal else row.number(place, digits_max=2)
    return day if day is not None and 1 <= day <= 31 else None


def year_number(row: Row, place: int) -> tuple[int, int] | None:
    """The year behind a name, with the place after it: 2023, of 2023, ", 2023" or '23."""
    place = row.skip(place, ",", "of", "in")
    if row.key(place) in ("'", "’"):
        short = row.number(place + 1, digits_max=2)
        return None if short is None else (2000 + short, place + 2)
    year = row.number(place)
    if year is None or year not in _NAMED_YEARS or row.is_count(place + 1):
        return None
    return year, place + 1


def month_first(row: Row, place: int, view: View) -> Reading | None:
    """May 7th, 2023; May 5-7, 2023; May 2023; May."""
    month = words.MONTHS.get(row.key(place))
    if month is None:
        return None
    after = _behind_month(row, place)
    day = day_number(row, after)
    if day is not None and not row.is_count(after + 1) and row.key(after + 1) != ":":
        return _month_and_days(row, place, (month, day, after), view)
    year = year_number(row, after)
    if year is not None:
        return Reading(span=month_span(year[0], month), stop=year[1])
    if not _is_month_alone(row, place, view):
        return None
    return recurring(words.month_name(month), view, place + 1)


def _behind_month(row: Row, place: int) -> int:
    """The place behind a month and the dot of a short name; a dot behind a long one ends more."""
    is_short = len(row.key(place)) < 5 and row.key(place) not in ("may", "june", "july")
    return row.skip(place + 1, ".") if is_short else place + 1


def _month_and_days(
    row: Row, place: int, found: tuple[int, int, int], view: View
) -> Reading | None:
    month, day, after = found
    last, stop = _last_day(row, after + 1, day)
    year = year_number(row, stop)
    small = row.key(place) in words.VERBS and not row.is_capital(place)
    if small and year is None and row.key(after).isdecimal() and not view.lead:
        return None
    return _days(row, (month, day, last), (year, stop), view)


def _last_day(row: Row, place: int, day: int) -> tuple[int, int]:
    """The second day of "5-7" and the place behind it, or the same day if it stands alone."""
    last = day_number(row, place + 1) if row.key(place) in words.JOINS else None
    if last is None or last <= day or row.key(place + 2) in (":", "am", "pm"):
        return day, place
    return (day, place) if row.key(place + 2) in words.MONTHS else (last, place + 2)


def _days(
    row: Row, days: tuple[int, int, int], end: tuple[tuple[int, int] | None, int], view: View
) -> Reading:
    """One day of a month, or several, in a year if it was given."""
    (month, day, last), (year, stop) = days, end
    name = Yearly(month=month, day=day, precision=Precision.DAY)
    if year is None:
        reading = recurring(name, view, stop)
    else:
        reading = Reading(span=in_year(name, year[0]), stop=year[1])
    if last == day:
        return with_detail(row, reading)
    first = reading.span.start
    end_day = day_span(first.year, month, last).end
    return Reading(
        span=Span(start=first, end=end_day, precision=Precision.STRETCH), stop=reading.stop
    )


def _is_month_alone(row: Row, place: int, view: View) -> bool:
    key = row.key(place)
    if key not in words.DOUBTFUL_MONTHS:
        return True
    refused = words.NOT_BEFORE_FIRST_NAMES if key in words.FIRST_NAMES else words.NOT_BEFORE_MONTHS
    if not view.lead or view.lead in refused:
        return False
    small = key in words.VERBS and not row.is_capital(place)
    return not (small and row.key(place + 1) in words.VERB_FOLLOWERS)


def day_first(row: Row, place: int, view: View) -> Reading | None:
    """7 May 2023; the 7th of May; 5-7 May 2023; the first of May."""
    place = row.skip(place, "the")
    day, last, stop = _days_before_month(row, place)
    month = words.MONTHS.get(row.key(stop))
    if day is None or month is None:
        return None
    year = year_number(row, _behind_month(row, stop))
    small = row.key(stop) in words.VERBS and not row.is_capital(stop)
    if small and year is None and row.key(stop - 1) != "of" and not view.lead:
        return None
    return _days(row, (month, day, last), (year, stop + 1), view)


def _days_before_month(row: Row, place: int) -> tuple[int | None, int, int]:
    day = day_number(row, place)
    if day is None:
        ordinal = words.ORDINALS.get(row.key(place), 0)
        named = ordinal > 0 and row.key(place + 1) == "of"
        return (ordinal if named else None), ordinal, place + 2
    last, stop = _last_day_before_month(row, place + 1, day)
    return day, last, row.skip(stop, "of")


def _last_day_before_month(row: Row, place: int, day: int) -> tuple[int, int]:
    last = day_number(row, place + 1) if row.key(place) in words.JOINS else None
    if last is None or last <= day or row.key(place + 2) not in words.MONTHS:
        return day, place
    return last, place + 2


def weekday_and_date(row: Row, place: int, view: View) -> Reading | None:
    """Friday, 7 May 2023: the date counts, whatever day it was."""
    key = row.key(place)
    if key not in words.WEEKDAYS and key not in words.SHORT_WEEKDAYS:
        return None
    after = row.skip(row.skip(place + 1, ".", ",", ".,"), "the")
    readers = (numeric_date, month_first, day_first)
    reading = first_of(readers, row, after, view.after(view.lead or "on"))
    return reading if reading and reading.span.end - reading.span.start <= DAY else None


def year(row: Row, place: int, view: View) -> Reading | None:
    """A bare year: after a word like "in", or alone between punctuation."""
    place = row.skip(row.skip(place, "the"), "year")
    number = row.number(place)
    if number is None or len(row.key(place)) != 4 or row.is_count(place + 1):
        return None
    if row.key(place - 1) in words.NUMBERED:
        return None
    led = view.lead and view.lead not in words.NOT_BEFORE_YEARS
    led = led or row.key(place - 1) == "year"
    alone = not row.key(place - 1).isalnum() and not row.key(place + 1).isalnum()
    if not (number in _LED_YEARS if led else alone and number in _LONE_YEARS):
        return None
    return Reading(span=year_span(number), stop=place + 1)


def clock_first(row: Row, place: int, view: View) -> Reading | None:
    """1:56 pm on 8 May, 2023; 5pm yesterday."""
    found = _clock(row, place)
    if found is None:
        return None
    (hour, minute), stop = found
    after = row.skip(stop, "on", ",", "of")
    readers = (numeric_date, month_first, day_first, weekday_and_date, weekday, day_away)
    reading = first_of(readers, row, after, view.after("on"))
    if reading is None or reading.span.precision is not Precision.DAY:
        return None
    return replace(reading, span=_at(reading.span.start, hour, minute), name=None)


def _clock(row: Row, place: int) -> tuple[tuple[int, int | None], int] | None:
    """The hour and minute at a place, and the place behind them."""
    if not row.key(place)[:1].isdecimal():
        return None
    found = _CLOCK.match(row.text, row.starts[place])
    if not found:
        return None
    hour = int(found[1] or found[4])
    minute = found[2] or found[5]
    if found[3]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found[3] in "Pp" else 0)
    return (hour, None if minute is None else int(minute)), row.at(found.end())


def _at(day: datetime, hour: int, minute: int | None) -> Span:
    start = midnight(day).replace(hour=hour, minute=minute or 0)
    return _moment(start, Period.HOUR if minute is None else Period.MINUTE)


def with_detail(row: Row, reading: Reading) -> Reading:
    """A day, narrowed by what follows it: a part of the day, or a time of the clock."""
    if reading.span.precision is not Precision.DAY:
        return reading
    place = reading.stop
    if row.key(place) == "in" and row.key(place + 1) == "the":
        place += 2
    part = words.PARTS.get(row.key(place))
    if part is not None:
        return Reading(span=part_of(reading.span.start, part), stop=place + 1)
    found = _clock(row, row.skip(row.skip(reading.stop, ","), "at", "around", "about"))
    if found is None or found[0][0] > 23:
        return reading
    (hour, minute), stop = found
    return Reading(span=_at(reading.span.start, hour, minute), stop=stop)


def weekday(row: Row, place: int, view: View) -> Reading | None:
    """On Friday; Friday night; a bare Friday where a sentence ends."""
    number = words.WEEKDAYS.get(row.key(place))
    if number is None:
        return None
    before = row.key(place - 1)
    ends = row.key(place + 1) in ("", "?", ".", "!")
    alone = (ends or row.key(place + 1) in words.PARTS) and not (
        before in words.REPEATING or (place > 0 and row.is_capital(place - 1))
    )
    if not (view.lead or alone):
        return None
    return with_detail(row, recurring(words.weekday_name(number), view, place + 1))


def day_away(row: Row, place: int, view: View) -> Reading | None:
    """Yesterday, today, tomorrow."""
    away = words.DAYS_AWAY.get(row.key(place))
    if away is None:
        return None
    span = containing(Period.DAY, view.now + away * DAY)
    return with_detail(row, Reading(span=span, stop=place + 1))

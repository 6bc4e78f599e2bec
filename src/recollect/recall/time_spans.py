"""Calendar arithmetic for the times of a text: local, half-open spans without a zone.

A span never leaves the years 2 to 9998, so that it can be carried into any zone and back; whatever
would leave them, or is no date at all, raises ValueError or OverflowError. Weeks start on Monday.
Seasons are those of the northern hemisphere, in whole months, and winter belongs to the year it
begins in.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import assert_never

DAY = timedelta(days=1)
WEEK = timedelta(days=7)

FIRST_YEAR = 2
LAST_YEAR = 9998
FIRST_MOMENT = datetime(FIRST_YEAR, 1, 1)  # noqa: DTZ001 - spans are local, the zone comes last
LAST_MOMENT = datetime(LAST_YEAR, 12, 31)  # noqa: DTZ001


class Precision(Enum):
    """What kind of time a text named: how exactly it is to be taken."""

    MOMENT = "moment"
    HOUR = "hour"
    PART_OF_DAY = "part of day"
    DAY = "day"
    WEEKEND = "weekend"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    SEASON = "season"
    YEAR = "year"
    DECADE = "decade"
    STRETCH = "stretch"  # from one time to another, or without an end on one side


class Period(Enum):
    """What times are counted in."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEKEND = "weekend"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"
    DECADE = "decade"


_PRECISIONS = {
    Period.MINUTE: Precision.MOMENT,
    Period.HOUR: Precision.HOUR,
    Period.DAY: Precision.DAY,
    Period.WEEKEND: Precision.WEEKEND,
    Period.WEEK: Precision.WEEK,
    Period.MONTH: Precision.MONTH,
    Period.QUARTER: Precision.QUARTER,
    Period.YEAR: Precision.YEAR,
    Period.DECADE: Precision.DECADE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From ``start`` up to, not including, ``end``, in local time."""

    start: datetime
    end: datetime
    precision: Precision

    def __post_init__(self) -> None:
        if not FIRST_MOMENT <= self.start < self.end <= LAST_MOMENT:
            raise ValueError("a span runs forward, within the years that every zone can hold")


@dataclass(frozen=True, slots=True, kw_only=True)
class Yearly:
    """What comes once a year: a month, a season, a quarter; with a day, that day."""

    month: int
    day: int | None = None
    months: int = 1
    precision: Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekly:
    """What comes once a week: a day of the week (Monday is 0), or the two of the weekend."""

    weekday: int
    days: int = 1
    precision: Precision = Precision.DAY


Recurring = Yearly | Weekly

WEEKEND = Weekly(weekday=5, days=2, precision=Precision.WEEKEND)


class Part(Enum):
    """A part of a day, as the hours it begins and ends at; the night ends on the next day."""

    MORNING = (5, 12)
    AFTERNOON = (12, 18)
    EVENING = (17, 24)
    NIGHT = (18, 30)


class Portion(Enum):
    """A piece of a longer time, as the share where it begins and ends, in twelfths."""

    EARLY = (0, 4)
    MIDDLE = (4, 8)
    LATE = (8, 12)
    BEGINNING = (0, 3)
    END = (9, 12)
    FIRST_HALF = (0, 6)
    SECOND_HALF = (6, 12)


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def day_span(year: int, month: int, day: int) -> Span:
    start = datetime(year, month, day)  # noqa: DTZ001
    return Span(start=start, end=start + DAY, precision=Precision.DAY)


def month_span(year: int, month: int) -> Span:
    return _months(year, month, 1, Precision.MONTH)


def year_span(year: int) -> Span:
    return _months(year, 1, 12, Precision.YEAR)


def decade_span(year: int) -> Span:
    return _months(year, 1, 120, Precision.DECADE)


def _months(year: int, month: int, months: int, precision: Precision) -> Span:
    start = datetime(year, month, 1)  # noqa: DTZ001
    return Span(start=start, end=shifted(start, Period.MONTH, months), precision=precision)


def shifted(moment: datetime, period: Period, count: int) -> datetime:
    """The same moment so many periods later; the 31st of a shorter month is its last day."""
    match period:
        case Period.MINUTE:
            return moment + timedelta(minutes=count)
        case Period.HOUR:
            return moment + timedelta(hours=count)
        case Period.DAY:
            return moment + count * DAY
        case Period.WEEK | Period.WEEKEND:
            return moment + count * WEEK
        case Period.MONTH:
            return _months_later(moment, count)
        case Period.QUARTER:
            return _months_later(moment, 3 * count)
        case Period.YEAR:
            return _months_later(moment, 12 * count)
        case Period.DECADE:
            return _months_later(moment, 120 * count)
    assert_never(period)


def _months_later(moment: datetime, months: int) -> datetime:
    years, month = divmod(moment.month - 1 + months, 12)
    year = moment.year + years
    if not 1 <= year <= LAST_YEAR + 1:
        raise ValueError(f"year {year} is out of range")
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def containing(period: Period, moment: datetime) -> Span:
    """The minute, day, week … that a moment lies in; of weekends, the one of its week."""
    start = midnight(moment)
    match period:
        case Period.MINUTE:
            start = moment.replace(second=0, microsecond=0)
        case Period.HOUR:
            start = moment.replace(minute=0, second=0, microsecond=0)
        case Period.DAY:
            pass
        case Period.WEEK:
            start -= moment.weekday() * DAY
        case Period.WEEKEND:
            return _in_week(WEEKEND, moment)
        case Period.MONTH:
            start = start.replace(day=1)
        case Period.QUARTER:
            start = start.replace(month=3 * ((moment.month - 1) // 3) + 1, day=1)
        case Period.YEAR:
            start = start.replace(month=1, day=1)
        case Period.DECADE:
            start = start.replace(year=moment.year // 10 * 10, month=1, day=1)
        case _:
            assert_never(period)
    return Span(start=start, end=shifted(start, period, 1), precision=_PRECISIONS[period])


def neighbour(period: Period, moment: datetime, steps: int) -> Span:
    """The whole period so many steps away from the one a moment lies in."""
    if period is Period.WEEKEND:
        return containing(period, moment + steps * WEEK)
    return containing(period, shifted(containing(period, moment).start, period, steps))


def about(period: Period, nearest: datetime, farthest: datetime) -> Span:
    """From one moment to another, with half a period of doubt on either side."""
    match period:
        case Period.MINUTE | Period.HOUR:
            doubt = shifted(nearest, period, 1) - nearest
            start, end = farthest - doubt / 2, nearest + doubt / 2
        case Period.WEEKEND:
            start, end = (
                latest(WEEKEND, farthest).start,
                latest(WEEKEND, nearest).end,
            )
        case _:
            days = {Period.DAY: 0, Period.WEEK: 3, Period.MONTH: 15, Period.QUARTER: 45}
            half = days.get(period, 183 if period is Period.YEAR else 1826) * DAY
            start, end = midnight(farthest) - half, midnight(nearest) + half + DAY
    return Span(start=start, end=end, precision=_PRECISIONS[period])


def part_of(day: datetime, part: Part) -> Span:
    first, last = part.value
    start = midnight(day)
    return Span(
        start=start + timedelta(hours=first),
        end=start + timedelta(hours=last),
        precision=Precision.PART_OF_DAY,
    )


def portion_of(whole: Span, portion: Portion) -> Span:
    """A piece of a span, in whole days; an early or late month is still a matter of a month."""
    first, last = portion.value
    length = whole.end - whole.start
    start = midnight(whole.start + length * first / 12)
    end = midnight(whole.start + length * last / 12 + DAY - timedelta(microseconds=1))
    return Span(start=start, end=end, precision=whole.precision)


def in_year(name: Yearly, year: int) -> Span:
    if name.day is not None:
        return day_span(year, name.month, name.day)
    return _months(year, name.month, name.months, name.precision)


def _in_week(name: Weekly, moment: datetime) -> Span:
    start = midnight(moment) + (name.weekday - moment.weekday()) * DAY
    return Span(start=start, end=start + name.days * DAY, precision=name.precision)


def latest(name: Recurring, moment: datetime) -> Span:
    """The last one that had begun at that moment."""
    return max(_begun(name, moment), key=lambda span: span.start)


def latest_over(name: Recurring, moment: datetime) -> Span:
    """The last one that was over at that moment."""
    over = [span for span in _around(name, moment) if span.end <= moment]
    return max(over, key=lambda span: span.start)


def next_open(name: Recurring, moment: datetime) -> Span:
    """The first one that was not over at that moment."""
    still = [span for span in _around(name, moment) if span.end > moment]
    return min(still, key=lambda span: span.start)


def next_to_begin(name: Recurring, moment: datetime) -> Span:
    """The first one that had not begun at that moment."""
    coming = [span for span in _around(name, moment) if span.start > moment]
    return min(coming, key=lambda span: span.start)


def this(name: Recurring, moment: datetime) -> Span:
    """The one that a moment lies in, or else the one of its year or week."""
    begun = latest(name, moment)
    if moment < begun.end:
        return begun
    match name:
        case Yearly():
            return in_year(name, moment.year)
        case Weekly():
            return _in_week(name, moment)
    assert_never(name)


def _begun(name: Recurring, moment: datetime) -> list[Span]:
    return [span for span in _around(name, moment) if span.start <= moment]


def _around(name: Recurring, moment: datetime) -> Iterator[Span]:
    """Those near a moment; far enough for the 29 February on both sides of a year without one."""
    match name:
        case Weekly():
            for week in (-2, -1, 0, 1, 2):
                yield _in_week(name, moment + week * WEEK)
        case Yearly():
            for year in range(moment.year - 9, moment.year + 10):
                try:
                    yield in_year(name, year)
                except ValueError:
                    continue
        case _:
            assert_never(name)

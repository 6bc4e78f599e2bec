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

DAY = timedelta(days=1)
WEEK = timedelta(days=7)

LAST_YEAR = 9998
FIRST_MOMENT = datetime(2, 1, 1)  # noqa: DTZ001 - spans are local, the zone comes last
LAST_MOMENT = datetime(LAST_YEAR, 12, 31)  # noqa: DTZ001


class Precision(Enum):
    """What kind of time a text named: how exactly it is to be taken, and what times count in."""

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


_STEPS = {
    Precision.MOMENT: timedelta(minutes=1),
    Precision.HOUR: timedelta(hours=1),
    Precision.DAY: DAY,
    Precision.WEEKEND: WEEK,
    Precision.WEEK: WEEK,
}
_MONTHS = {
    Precision.MONTH: 1,
    Precision.QUARTER: 3,
    Precision.YEAR: 12,
    Precision.DECADE: 120,
}
# How many days "two weeks ago" may lie beside the day two weeks ago.
_DOUBT = {
    Precision.DAY: 0,
    Precision.WEEK: 3,
    Precision.MONTH: 15,
    Precision.QUARTER: 45,
    Precision.YEAR: 183,
    Precision.DECADE: 1826,
}
CLOCK = frozenset({Precision.MOMENT, Precision.HOUR})
FINE = CLOCK | {Precision.PART_OF_DAY, Precision.DAY}


@dataclass(frozen=True, slots=True)
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
    precision: Precision = Precision.MONTH

    def in_year(self, year: int) -> Span:
        if self.day is not None:
            return day_span(year, self.month, self.day)
        return months_span(year, self.month, self.months, self.precision)

    def around(self, moment: datetime) -> Iterator[Span]:
        """Those near a moment; far enough for the 29 February on both sides of other years."""
        for year in range(moment.year - 9, moment.year + 10):
            try:
                yield self.in_year(year)
            except ValueError:
                continue

    def nearby(self, moment: datetime) -> Span:
        """The one of the moment's year."""
        return self.in_year(moment.year)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekly:
    """What comes once a week: a day of the week (Monday is 0), or the two of the weekend."""

    weekday: int
    days: int = 1
    precision: Precision = Precision.DAY

    def around(self, moment: datetime) -> Iterator[Span]:
        for weeks in (-2, -1, 0, 1, 2):
            yield self.nearby(moment + weeks * WEEK)

    def nearby(self, moment: datetime) -> Span:
        """The one of the moment's week."""
        start = midnight(moment) + (self.weekday - moment.weekday()) * DAY
        return Span(start, start + self.days * DAY, self.precision)


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
    return Span(start, start + DAY, Precision.DAY)


def months_span(year: int, month: int, months: int, precision: Precision) -> Span:
    start = datetime(year, month, 1)  # noqa: DTZ001
    return Span(start, shifted(start, Precision.MONTH, months), precision)


def shifted(moment: datetime, unit: Precision, count: int) -> datetime:
    """The same moment so many units later; the 31st of a shorter month is its last day."""
    if unit in _STEPS:
        return moment + count * _STEPS[unit]
    years, month = divmod(moment.month - 1 + count * _MONTHS[unit], 12)
    year = moment.year + years
    if not 1 <= year <= LAST_YEAR + 1:
        raise ValueError(f"year {year} is out of range")
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def containing(unit: Precision, moment: datetime) -> Span:
    """The minute, day, week … that a moment lies in; of weekends, the one of its week."""
    if unit is Precision.WEEKEND:
        return WEEKEND.nearby(moment)
    if unit in CLOCK:
        minute = moment.minute if unit is Precision.MOMENT else 0
        start = moment.replace(minute=minute, second=0, microsecond=0)
    else:
        start = midnight(moment)
    if unit is Precision.WEEK:
        start -= moment.weekday() * DAY
    elif unit in _MONTHS:
        months = moment.year * 12 + moment.month - 1
        year, month = divmod(months - months % _MONTHS[unit], 12)
        start = start.replace(year=year, month=month + 1, day=1)
    return Span(start, shifted(start, unit, 1), unit)


def neighbour(unit: Precision, moment: datetime, steps: int) -> Span:
    """The whole unit so many steps away from the one a moment lies in."""
    if unit is Precision.WEEKEND:
        return WEEKEND.nearby(moment + steps * WEEK)
    return containing(unit, shifted(containing(unit, moment).start, unit, steps))


def distant(anchor: datetime, unit: Precision, near: int, far: int) -> Span:
    """About so many units away, with half of one of doubt on either side.

    Two weekends ago is the last weekend but one.
    """
    if unit is Precision.WEEKEND:
        first = latest_over(WEEKEND, anchor) if near < 0 else next_to_begin(WEEKEND, anchor)
        step = 1 if near < 0 else -1
        start = WEEKEND.nearby(shifted(first.start, unit, far + step)).start
        return Span(start, WEEKEND.nearby(shifted(first.start, unit, near + step)).end, unit)
    nearest, farthest = shifted(anchor, unit, near), shifted(anchor, unit, far)
    if unit in CLOCK:
        doubt = _STEPS[unit] / 2
        return Span(farthest - doubt, nearest + doubt, unit)
    half = _DOUBT[unit] * DAY
    return Span(midnight(farthest) - half, midnight(nearest) + half + DAY, unit)


def stretch_from(now: datetime, unit: Precision, count: int) -> Span:
    """From now so many units back or ahead, in whole days unless they are hours."""
    first, last = sorted((now, shifted(now, unit, count)))
    if unit not in CLOCK:
        first, last = midnight(first), midnight(last) + DAY
    return Span(first, last, Precision.STRETCH)


def part_of(day: datetime, part: Part) -> Span:
    first, last = (midnight(day) + timedelta(hours=hours) for hours in part.value)
    return Span(first, last, Precision.PART_OF_DAY)


def portion_of(whole: Span, portion: Portion) -> Span:
    """A piece of a span, in whole days; an early or late month is still a matter of a month."""
    first, last = portion.value
    length = whole.end - whole.start
    start = midnight(whole.start + length * first / 12)
    end = midnight(whole.start + length * last / 12 + DAY - timedelta(microseconds=1))
    return Span(start, end, whole.precision)


def latest(name: Recurring, moment: datetime) -> Span:
    """The last one that had begun at that moment."""
    return max((span for span in name.around(moment) if span.start <= moment), key=_start)


def latest_over(name: Recurring, moment: datetime) -> Span:
    """The last one that was over at that moment."""
    return max((span for span in name.around(moment) if span.end <= moment), key=_start)


def next_open(name: Recurring, moment: datetime) -> Span:
    """The first one that was not over at that moment."""
    return min((span for span in name.around(moment) if span.end > moment), key=_start)


def next_to_begin(name: Recurring, moment: datetime) -> Span:
    """The first one that had not begun at that moment."""
    return min((span for span in name.around(moment) if span.start > moment), key=_start)


def this(name: Recurring, moment: datetime) -> Span:
    """The one that a moment lies in, or else the one of its year or week."""
    begun = latest(name, moment)
    return begun if moment < begun.end else name.nearby(moment)


def _start(span: Span) -> datetime:
    return span.start

"""Reads plain times: dates, distances from now, and names of the calendar that lead from it.

Every reader looks at a fixed number of words from its place on and gives a Reading, or None where
it understands nothing.
"""

from __future__ import annotations

import re
from datetime import datetime

from recollect.recall import time_words as words
from recollect.recall.time_dates import (
    Reader,
    Reading,
    View,
    clock_first,
    day_away,
    day_first,
    first_of,
    month_first,
    numeric_date,
    recurring,
    weekday,
    weekday_and_date,
    with_detail,
    year,
    year_number,
)
from recollect.recall.time_spans import (
    DAY,
    WEEKEND,
    Part,
    Period,
    Precision,
    Recurring,
    Span,
    Yearly,
    about,
    containing,
    decade_span,
    in_year,
    latest_over,
    midnight,
    neighbour,
    next_to_begin,
    part_of,
    shifted,
    this,
)
from recollect.recall.time_words import Row

_DECADE = re.compile(r"(\d\d)?(\d0)s")
CLOCK_PERIODS = frozenset({Period.MINUTE, Period.HOUR})


def _count(row: Row, place: int) -> tuple[int, int, int] | None:
    """How few, how many, and the place behind: 3, three, a, a couple of, a few, several."""
    vague_at = row.skip(place, "a")
    vague = words.VAGUE_NUMBERS.get(row.key(vague_at))
    if vague is not None:
        return *vague, row.skip(vague_at + 1, "of")
    number = row.number(place)
    if number is None:
        number = words.NUMBERS.get(row.key(place))
    return None if number is None else (number, number, place + 1)


def counted_periods(row: Row, place: int) -> tuple[int, int, Period, int] | None:
    """A count of periods, and the place behind it: two weeks, a fortnight, a couple of days."""
    count = _count(row, place)
    if count is None:
        return None
    few, many, stop = count
    if row.key(stop) in ("fortnight", "fortnights"):
        return 2 * few, 2 * many, Period.WEEK, stop + 1
    period = words.COUNTED_PERIODS.get(row.key(stop))
    return None if period is None else (few, many, period, stop + 1)


def _ago(row: Row, place: int, view: View) -> Reading | None:
    """Two weeks ago, a few years back, three days from now; "years ago" is some of them."""
    counted = counted_periods(row, place) or _uncounted(row, place)
    if counted is None:
        return None
    few, many, period, stop = counted
    if row.key(stop) in ("ago", "back"):
        few, many, stop = -few, -many, stop + 1
    elif (row.key(stop), row.key(stop + 1)) == ("from", "now"):
        few, many, stop = many, few, stop + 2
    else:
        return None
    return Reading(span=distant(view.now, period, few, many), stop=stop)


def _uncounted(row: Row, place: int) -> tuple[int, int, Period, int] | None:
    key = row.key(place)
    before = row.key(place - 1)
    if not key.endswith("s") or before == "many" or before.isdecimal():
        return None
    period = words.COUNTED_PERIODS.get(key)
    return None if period is None else (2, 10, period, place + 1)


def distant(anchor: datetime, period: Period, near: int, far: int) -> Span:
    """About so many periods away; two weekends ago is the last weekend but one."""
    if period is Period.WEEKEND:
        back = (
            latest_over(WEEKEND, anchor).start if near < 0 else next_to_begin(WEEKEND, anchor).start
        )
        step = 1 if near < 0 else -1
        return about(period, shifted(back, period, near + step), shifted(back, period, far + step))
    return about(period, shifted(anchor, period, near), shifted(anchor, period, far))


def _rolling(row: Row, place: int, view: View) -> Reading | None:
    """The last ten days, the past month: up to now; the next ten days: from today on."""
    first = row.skip(place, "the", "this", "these")
    direction = row.key(first)
    if direction not in ("last", "past", "next"):
        return None
    counted = counted_periods(row, first + 1)
    if counted is None:
        period = words.PERIODS.get(row.key(first + 1))
        whole = direction == "last" and row.key(place) != "the"
        if period in (None, Period.WEEKEND) or whole or direction == "next":
            return None
        counted = (1, 1, period, first + 2) if period else None
    if counted is None or row.key(counted[3]) == "of":
        return None
    _, many, period, stop = counted
    return Reading(
        span=_stretch_from(view.now, period, many if direction == "next" else -many), stop=stop
    )


def _stretch_from(now: datetime, period: Period, count: int) -> Span:
    far = shifted(now, period, count)
    if period in CLOCK_PERIODS:
        start, end = min(now, far), max(now, far)
    else:
        start, end = midnight(min(now, far)), midnight(max(now, far)) + DAY
    return Span(start=start, end=end, precision=Precision.STRETCH)


def _modified(row: Row, place: int, view: View) -> Reading | None:
    """Last week, this spring, next Tuesday, last night."""
    place = row.skip(place, "the")
    modifier, key = row.key(place), row.key(place + 1)
    if modifier == "this" and key == "past":
        modifier, place, key = key, place + 1, row.key(place + 2)
    if modifier not in words.MODIFIERS or row.key(place + 2) == "of":
        return None
    part = words.PARTS.get(key)
    if part is not None:
        return _modified_part(modifier, part, view, place + 2)
    period = words.PERIODS.get(key)
    if period is not None:
        span = _modified_period(modifier, period, view.now)
        return Reading(span=span, stop=place + 2) if span else None
    found = name_at(row, place + 1)
    if found is None or _is_verb(row, place + 1, modifier):
        return None
    name, stop = found
    return with_detail(row, Reading(span=_modified_name(modifier, name, view.now), stop=stop))


def _is_verb(row: Row, place: int, modifier: str) -> bool:
    """This may be, this march: only "last may" is a month when written small."""
    small = row.key(place) in words.VERBS and not row.is_capital(place)
    return small and modifier in words.THIS


def _modified_part(modifier: str, part: Part, view: View, stop: int) -> Reading | None:
    if modifier == "this":
        return Reading(span=part_of(view.now, part), stop=stop)
    if modifier == "last":
        return Reading(span=part_of(view.now - DAY, part), stop=stop)
    return None


def _modified_period(modifier: str, period: Period, now: datetime) -> Span | None:
    if period in CLOCK_PERIODS or period is Period.DAY:
        return None
    if modifier in words.THIS:
        return containing(period, now)
    if modifier in words.NEXT:
        return neighbour(period, now, 1)
    return latest_over(WEEKEND, now) if period is Period.WEEKEND else neighbour(period, now, -1)


def _modified_name(modifier: str, name: Recurring, now: datetime) -> Span:
    if modifier in words.THIS:
        return this(name, now)
    if modifier in words.NEXT:
        return next_to_begin(name, now)
    return latest_over(name, now)


def name_at(row: Row, place: int) -> tuple[Recurring, int] | None:
    """A name that comes every week or year, and the place behind it."""
    key = row.key(place)
    holiday = _holiday_name(row, place)
    if holiday is not None:
        return holiday
    if key in words.WEEKDAYS:
        return words.weekday_name(words.WEEKDAYS[key]), place + 1
    if key in words.MONTHS:
        return words.month_name(words.MONTHS[key]), place + 1
    if key in words.SEASONS and not _is_in_a_title(row, place):
        return words.SEASONS[key], place + 1
    return None


def _holiday_name(row: Row, place: int) -> tuple[Yearly, int] | None:
    if row.key(place) not in words.HOLIDAY_STARTS:
        return None
    for length in range(words.HOLIDAY_WORDS_MAX, 0, -1):
        keys = tuple(row.keys[place : place + length])
        if keys in words.HOLIDAYS:
            return words.HOLIDAYS[keys], place + len(keys)
    return None


def _tonight(row: Row, place: int, view: View) -> Reading | None:
    if row.key(place) != "tonight":
        return None
    return Reading(span=part_of(view.now, Part.NIGHT), stop=place + 1)


def _holiday(row: Row, place: int, view: View) -> Reading | None:
    found = _holiday_name(row, place)
    return _dated_or_led(row, found, view) if found else None


def _season(row: Row, place: int, view: View) -> Reading | None:
    """Summer 2022; in the summer. A fall that nothing leads to is a fall."""
    place = row.skip(place, "the")
    key = row.key(place)
    name = words.SEASONS.get(key)
    if name is None or _is_in_a_title(row, place):
        return None
    if key == "fall" and view.lead in words.NOT_BEFORE_FALL:
        view = view.after("")
    return _dated_or_led(row, (name, place + 1), view)


def _is_in_a_title(row: Row, place: int) -> bool:
    """Spring Boot, the Spring Fling Market."""
    if row.key(place + 1) in words.SEASON_STRANGERS:
        return True
    return row.is_capital(place) and row.is_capital(place + 1) and place > 0


def _quarter(row: Row, place: int, view: View) -> Reading | None:
    """Q2 2023; 2023 Q2; in Q2."""
    year_at, place = (place, place + 1) if row.number(place) else (None, place)
    key = row.key(place)
    if len(key) != 2 or key[0] != "q" or key[1] not in "1234":
        return None
    name = words.quarter_name(int(key[1]))
    if year_at is None:
        return _dated_or_led(row, (name, row.skip(place + 1, "/")), view)
    found = year_number(row, year_at)
    return Reading(span=in_year(name, found[0]), stop=place + 1) if found else None


def _dated_or_led(row: Row, found: tuple[Recurring, int], view: View) -> Reading | None:
    """A name with its year, or, without, where a word like "in" leads to it."""
    name, stop = found
    dated = year_number(row, stop)
    if dated is not None and isinstance(name, Yearly):
        return Reading(span=in_year(name, dated[0]), stop=dated[1])
    return with_detail(row, recurring(name, view, stop)) if view.lead else None


def _weekend(row: Row, place: int, view: View) -> Reading | None:
    """Over the weekend: the latest one that has begun."""
    if (row.key(place), row.key(place + 1)) != ("the", "weekend"):
        return None
    if not view.lead or view.lead in words.NOT_BEFORE_WEEKENDS:
        return None
    return recurring(WEEKEND, view, place + 2)


def _decade(row: Row, place: int, view: View) -> Reading | None:
    """The 1990s, the 90s, the nineties: without a century, the latest that has begun."""
    first = row.skip(row.skip(place, "the"), "'", "’")
    key = row.key(first)
    found = _DECADE.fullmatch(key)
    short = int(found[2]) if found else words.DECADES.get(key)
    led = first > place or view.lead in words.ADJECTIVES
    if short is None or not (led or (found and found[1])):
        return None
    if found and found[1]:
        return Reading(span=decade_span(int(key[:4])), stop=first + 1)
    start = view.now.year // 100 * 100 + short
    return Reading(
        span=decade_span(start if start <= view.now.year else start - 100), stop=first + 1
    )


# By the word they begin with, behind a "the"; the order matters where several do.
_READERS: dict[str, tuple[Reader, ...]] = {
    **dict.fromkeys(words.ORDINALS, (day_first,)),
    **dict.fromkeys(words.NUMBERS, (_ago,)),
    **dict.fromkeys(words.VAGUE_NUMBERS, (_ago,)),
    **dict.fromkeys(words.COUNTED_PERIODS, (_ago,)),
    **dict.fromkeys(words.HOLIDAY_STARTS, (_holiday,)),
    **dict.fromkeys(words.MONTHS, (_holiday, month_first)),
    **dict.fromkeys(words.SHORT_WEEKDAYS, (weekday_and_date,)),
    **dict.fromkeys(words.WEEKDAYS, (weekday_and_date, weekday)),
    **dict.fromkeys(words.SEASONS, (_season,)),
    **dict.fromkeys(words.DECADES, (_decade,)),
    **dict.fromkeys(words.DAYS_AWAY, (day_away,)),
    **dict.fromkeys(("q1", "q2", "q3", "q4"), (_quarter,)),
    **dict.fromkeys(words.MODIFIERS | {"these"}, (_rolling, _modified)),
    **dict.fromkeys(("'", "’"), (_decade,)),
    "tonight": (_tonight,),
    "weekend": (_weekend,),
    "year": (year,),
    "fourth": (_holiday, day_first),
}
_NUMBER_READERS = (numeric_date, clock_first, day_first, _ago, _quarter, _decade, year)


def plain_time(row: Row, place: int, view: View) -> Reading | None:
    """A time that needs no other one to be understood."""
    key = row.key(row.skip(place, "the"))
    readers = _NUMBER_READERS if key[:1].isdecimal() else _READERS.get(key, ())
    return first_of(readers, row, place, view)

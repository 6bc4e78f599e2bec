"""Reads any time at a place of a text, plain or told by way of another one.

Three layers, none of which calls itself: plain times (see time_phrases), portions of them (early
2023, the end of last year, the first week of May), and times told from another one (the week before
9 June 2023). Every reader looks at a fixed number of words, so that a text costs
as much as it has words.
"""

from __future__ import annotations

from recollect.recall import time_words as words
from recollect.recall.time_dates import Reading, View, first_of
from recollect.recall.time_phrases import (
    CLOCK_PERIODS,
    counted_periods,
    distant,
    name_at,
    plain_time,
)
from recollect.recall.time_spans import (
    DAY,
    WEEKEND,
    Period,
    Portion,
    Precision,
    Recurring,
    Span,
    containing,
    latest,
    neighbour,
    next_to_begin,
    part_of,
    portion_of,
    shifted,
)
from recollect.recall.time_words import Row

_FINE = frozenset({Precision.MOMENT, Precision.HOUR, Precision.PART_OF_DAY, Precision.DAY})
_BACKWARDS = frozenset({"before", "preceding"})
_FORWARDS = frozenset({"after", "following"})


# What a portion, and a time told from another one, may begin with behind a "the".
_PORTION_STARTS = (
    words.PORTIONS.keys() | words.PERIODS.keys() | words.PARTS.keys() | words.ORDINALS.keys()
)
_NEIGHBOUR_STARTS = words.PERIODS.keys() | words.WEEKDAYS.keys() | {"last"}


def any_time(row: Row, place: int, view: View) -> Reading | None:
    return first_of((_from_another, _portion, plain_time), row, place, view)


def _portion_or_plain(row: Row, place: int, view: View) -> Reading | None:
    return first_of((_portion, plain_time), row, place, view)


def _portion(row: Row, place: int, view: View) -> Reading | None:
    """Early 2023, mid-June, the end of last year, the evening of 7 July, the first week of May."""
    first = row.skip(place, "the")
    if row.key(first) not in _PORTION_STARTS:
        return None
    return first_of((_adjective, _end_of, _whole_of, _nth_of), row, first, view)


def _adjective(row: Row, place: int, view: View) -> Reading | None:
    key = row.key(place)
    if key not in words.ADJECTIVES:
        return None
    inner = plain_time(row, row.skip(place + 1, "-", "in"), view.after(key))
    return _narrowed(inner, words.PORTIONS[key])


def _end_of(row: Row, place: int, view: View) -> Reading | None:
    portion = words.PORTIONS.get(row.key(place))
    if portion is None or row.key(place + 1) != "of":
        return None
    return _narrowed(_whole(row, place + 2, view), portion)


def _narrowed(whole: Reading | None, portion: Portion) -> Reading | None:
    """A portion of what was read; of a day and less there are none."""
    if whole is None or whole.span.precision in _FINE:
        return whole
    return Reading(span=portion_of(whole.span, portion), stop=whole.stop)


def _whole(row: Row, place: int, view: View) -> Reading | None:
    """What a portion is one of: a plain time, or the year, month or week we are in."""
    found = plain_time(row, place, view.after("within"))
    if found is not None or row.key(place) != "the":
        return found
    period = words.PERIODS.get(row.key(place + 1))
    if period is None or period in CLOCK_PERIODS or period is Period.DAY:
        return None
    return Reading(span=containing(period, view.now), stop=place + 2)


def _whole_of(row: Row, place: int, view: View) -> Reading | None:
    """The month of May, the week of 7 May, the evening of 7 May."""
    key = row.key(place)
    if row.key(place + 1) != "of" or not (key in words.PERIODS or key in words.PARTS):
        return None
    inner = plain_time(row, place + 2, view.after("within"))
    if inner is None:
        return None
    is_day = inner.span.precision is Precision.DAY
    if key in words.PARTS:
        return (
            Reading(span=part_of(inner.span.start, words.PARTS[key]), stop=inner.stop)
            if is_day
            else None
        )
    return (
        Reading(span=containing(words.PERIODS[key], inner.span.start), stop=inner.stop)
        if is_day
        else inner
    )


def _nth_of(row: Row, place: int, view: View) -> Reading | None:
    """The first week of May, the last three months of 2022, the second half of June."""
    nth = words.ORDINALS.get(row.key(place))
    if nth is None:
        return None
    counted = counted_periods(row, place + 1)
    stop = counted[3] if counted else place + 2
    if row.key(stop) not in ("of", "in"):
        return None
    whole = _whole(row, stop + 1, view)
    if whole is None:
        return None
    span = _piece(whole.span, nth, row.key(stop - 1), counted[1] if counted else 1)
    return Reading(span=span, stop=whole.stop) if span else None


def _piece(whole: Span, nth: int, key: str, count: int) -> Span | None:
    if key == "half" and nth in (1, 2, -1):
        return portion_of(whole, Portion.FIRST_HALF if nth == 1 else Portion.SECOND_HALF)
    if key in words.WEEKDAYS or key == "weekend":
        name = words.weekday_name(words.WEEKDAYS[key]) if key in words.WEEKDAYS else WEEKEND
        return _nth_name(whole, nth, name)
    period = words.COUNTED_PERIODS.get(key)
    if period is None:
        return None
    if nth < 0:
        start, end = shifted(whole.end, period, -count), whole.end
    else:
        start = shifted(whole.start, period, (nth - 1) * count)
        end = shifted(start, period, count)
    precision = containing(period, start).precision if count == 1 else Precision.STRETCH
    return Span(start=start, end=min(end, whole.end), precision=precision)


def _nth_name(whole: Span, nth: int, name: Recurring) -> Span | None:
    if nth < 0:
        return latest(name, whole.end - DAY)
    first = next_to_begin(name, whole.start - DAY / 2)
    span = _weeks_later(first, nth - 1)
    return span if span.start < whole.end else None


def _weeks_later(span: Span, weeks: int) -> Span:
    return Span(
        start=shifted(span.start, Period.WEEK, weeks),
        end=shifted(span.end, Period.WEEK, weeks),
        precision=span.precision,
    )


def _from_another(row: Row, place: int, view: View) -> Reading | None:
    """The week before 9 June 2023, two weeks before 11 August, the Friday after Christmas."""
    if row.key(row.skip(place, "the")) in _NEIGHBOUR_STARTS:
        return _next_to_another(row, place, view)
    return _away_from_another(row, place, view)


def _next_to_another(row: Row, place: int, view: View) -> Reading | None:
    place = row.skip(row.skip(place, "the"), "last")
    key = row.key(place)
    period, number = words.PERIODS.get(key), words.WEEKDAYS.get(key)
    if period is None and number is None:
        return None
    direction = _direction(row, place + 1)
    if direction is None:
        return None
    step, stop = direction
    if period is not None and _is_last_or_next_alone(row, stop, step):
        return Reading(span=neighbour(period, view.now, 2 * step), stop=stop + 1)
    other = _portion_or_plain(row, stop, view.after("before"))
    if other is None:
        return None
    if period is None or period is Period.WEEKEND:
        name = WEEKEND if number is None else words.weekday_name(number)
        return Reading(span=_name_beside(name, other.span, step), stop=other.stop)
    return Reading(span=_period_beside(period, other.span, step), stop=other.stop)


def _is_last_or_next_alone(row: Row, place: int, step: int) -> bool:
    """The week before last, the week after next."""
    if row.key(place) != ("last" if step < 0 else "next"):
        return False
    return row.key(place + 1) not in words.PERIODS and name_at(row, place + 1) is None


def _direction(row: Row, place: int) -> tuple[int, int] | None:
    """Backwards or forwards, and the place behind the word for it."""
    key = row.key(place)
    if key == "prior" and row.key(place + 1) == "to":
        return -1, place + 2
    if key in _BACKWARDS:
        return -1, row.skip(place + 1, "the")
    return (1, row.skip(place + 1, "the")) if key in _FORWARDS else None


def _name_beside(name: Recurring, other: Span, step: int) -> Span:
    if step < 0:
        return latest(name, other.start - DAY / 2)
    return next_to_begin(name, other.end - DAY / 2)


def _period_beside(period: Period, other: Span, step: int) -> Span:
    start, end = (
        (shifted(other.start, period, -1), other.start)
        if step < 0
        else (other.end, shifted(other.end, period, 1))
    )
    return Span(start=start, end=end, precision=containing(period, start).precision)


def _away_from_another(row: Row, place: int, view: View) -> Reading | None:
    counted = counted_periods(row, place)
    direction = _direction(row, counted[3]) if counted else None
    if counted is None or direction is None:
        return None
    few, many, period, _ = counted
    step, stop = direction
    other = _portion_or_plain(row, stop, view.after("before"))
    if other is None:
        return None
    anchor = other.span.start if step < 0 else max(other.span.start, other.span.end - DAY)
    near, far = (-few, -many) if step < 0 else (many, few)
    return Reading(span=distant(anchor, period, near, far), stop=other.stop)

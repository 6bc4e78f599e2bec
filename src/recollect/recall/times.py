"""Finds the times that a text names, as ranges for ranking and filtering records by when.

Pure: the text and the time of asking go in, ranges come out; a phrase that is only perhaps a time
is left alone. A range is when something was; people often tell of it some days later. English, and
the numeric dates everybody writes.

Days and weeks are those of the zone ``now`` carries; weeks start on Monday; seasons are those of
the northern hemisphere (winter 2022 begins in December 2022). A name without a year is the latest
that has begun (in May, at Christmas), a day of the week the latest before today; after "until" and
"by" a name is the next that is not over, since these look ahead. 05/07/2023 is the 7th of May, and
so is 7.5.2023 (see time_dates). "Two weeks ago" is the week around that day, "last week" a whole
one from Monday on, "the last week" the days up to now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo

from recollect.recall import time_words as words
from recollect.recall.time_dates import Facing, Reading, View
from recollect.recall.time_portions import any_time
from recollect.recall.time_spans import (
    DAY,
    FIRST_MOMENT,
    LAST_MOMENT,
    Precision,
    Span,
    latest,
    midnight,
    next_to_begin,
)
from recollect.recall.time_words import Row

__all__ = ["RANGES_MAX", "TEXT_CHARS_MAX", "Precision", "TimeRange", "time_ranges"]

RANGES_MAX = 16
TRIES_MAX = 1000  # places at which a time is looked for: a list of numbers has thousands
# A question says when it means long before this; what stands behind it is not read.
TEXT_CHARS_MAX = 65_536

_MULTIPLES = frozenset({"dozen", "dozens", "hundred", "hundreds", "thousand", "thousands"})
_PERIODS = frozenset({"day", "week", "month", "year", "decade", "century", "hour", "minute"})
_BOUNDS = frozenset({"since", "after", "before", "until", "till", "by"})
_TWO_WORD_BOUNDS = {("prior", "to"): "before", ("up", "to"): "until", ("up", "until"): "until"}
_OPEN_STARTS = frozenset({"before", "until", "till", "by"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """From ``start`` up to, not including, ``end`` (UTC), and the piece of text that says so."""

    start: datetime
    end: datetime
    text: str
    span: tuple[int, int]
    precision: Precision


def time_ranges(text: str, now: datetime) -> list[TimeRange]:
    """The times a text names, in its order, at most ``RANGES_MAX``; any text is legal."""
    zone = now.tzinfo or UTC
    row = Row(_beginning(text))
    view = View(now=now.replace(tzinfo=None), zone=zone)
    found: list[TimeRange] = []
    place = stop = tries = 0
    while place < len(row) and len(found) < RANGES_MAX and tries < TRIES_MAX:
        may_start = _may_start(row, place)
        tries += may_start
        reading = _read(row, place, view, stop) if may_start else None
        if reading is None:
            place += 1
            continue
        found.append(_range(row, place, reading, zone))
        place = stop = reading.stop
    return found


def _beginning(text: str) -> str:
    """As much of a text as is read, without a word that would be cut in two."""
    if len(text) <= TEXT_CHARS_MAX or text[:TEXT_CHARS_MAX].isspace():
        return text[:TEXT_CHARS_MAX]
    whole, *cut = text[:TEXT_CHARS_MAX].rsplit(None, 1)
    return whole if cut else ""


def _may_start(row: Row, place: int) -> bool:
    key = row.keys[place]
    if _is_multiplied(row, place):
        return False
    return key in words.STARTERS or key[0].isdecimal()


def _is_multiplied(row: Row, place: int) -> bool:
    """A hundred days, half a year: how many that is, is not read; better no time than another."""
    before = row.key(place - 1)
    is_of_it = before in ("a", "an", "of") and row.key(place - 2) == "half"
    return (
        before in _MULTIPLES
        or (is_of_it and row.key(place) in _PERIODS)
        or (before == "half" and row.key(place) in ("a", "an"))
    )


def _read(row: Row, place: int, view: View, last_stop: int) -> Reading | None:
    """A time at a place, unless it is a piece of something longer, such as an identifier."""
    try:
        reading = _expression(row, place, view, last_stop)
    except (ValueError, OverflowError):
        return None
    if reading is None or not row.is_free(row.starts[place], row.ends[reading.stop - 1]):
        return None
    return reading


def _expression(row: Row, place: int, view: View, last_stop: int) -> Reading | None:
    key = row.keys[place]
    if key in ("between", "from"):
        return _between(row, place, view)
    bound = _bound(row, place)
    if bound is not None:
        return _bounded(row, *bound, view)
    lead = _lead(row, place, last_stop)
    first = any_time(row, place, view.after(lead))
    if first is None or row.key(first.stop) not in words.JOINS:
        return first
    second = any_time(row, first.stop + 1, view.after("between"))
    return _joined(first, second, view) or first


def _lead(row: Row, place: int, last_stop: int) -> str:
    """The word that makes a bare name behind it a time; the first of several leads to all."""
    if last_stop and last_stop == place - 1 and row.key(place - 1) in words.AND_JOINS:
        return "between"
    before = place - 1
    for _ in range(2):
        if row.key(before) in words.LEADS:
            break
        if row.key(before) in words.BETWEEN_LEAD_AND_NAME:
            before -= 1
    key = row.key(before)
    return key if key in words.LEADS else ""


def _between(row: Row, place: int, view: View) -> Reading | None:
    """Between May and July; from May to July; from May on."""
    key = row.keys[place]
    first = any_time(row, row.skip(place + 1, "about", "around"), view.after("between"))
    if first is None:
        return None
    joins = words.JOINS if key == "from" else words.JOINS | {"and", "&"}
    if row.key(first.stop) in joins:
        second = any_time(row, first.stop + 1, view.after("between"))
        return _joined(first, second, view)
    if key == "from" and row.key(first.stop) in ("on", "onwards", "onward"):
        return replace(first, span=_open(first.span, "since", view.now), stop=first.stop + 1)
    return None


def _joined(first: Reading, second: Reading | None, view: View) -> Reading | None:
    """One stretch out of two times; a year given to one of them holds for both."""
    if second is None:
        return None
    start, end = first.span, second.span
    if first.name is not None:
        start = latest(first.name, end.start)
    elif second.name is not None:
        end = next_to_begin(second.name, start.start)
    if view.facing is Facing.AHEAD or end.end <= start.start:
        return None
    span = Span(start=start.start, end=end.end, precision=Precision.STRETCH)
    return Reading(span=span, stop=second.stop)


def _bound(row: Row, place: int) -> tuple[str, int] | None:
    """A word that opens a range to one side, and the place behind it."""
    key = row.keys[place]
    if key in _BOUNDS:
        return key, place + 1
    two = _TWO_WORD_BOUNDS.get((key, row.key(place + 1)))
    return (two, place + 2) if two else None


def _bounded(row: Row, bound: str, place: int, view: View) -> Reading | None:
    facing = Facing.AHEAD if bound in ("until", "till", "by") else Facing.BACK
    start = row.skip(row.skip(place, "about", "around"), "the")
    view = replace(view, facing=facing, lead=bound)
    reading = any_time(row, place, view) or any_time(row, start, view)
    if reading is None:
        return None
    return replace(reading, span=_open(reading.span, bound, view.now), name=None)


def _open(span: Span, bound: str, now: datetime) -> Span:
    """What lies before or since a time; what has begun runs to the end of today."""
    tomorrow = midnight(now) + DAY
    if bound in _OPEN_STARTS:
        start, end = FIRST_MOMENT, span.start if bound == "before" else span.end
    else:
        start = span.start if bound == "since" else span.end
        end = tomorrow if start < tomorrow else LAST_MOMENT
    return Span(start=start, end=end, precision=Precision.STRETCH)


def _range(row: Row, place: int, reading: Reading, zone: tzinfo) -> TimeRange:
    span = reading.span
    first, last = row.starts[place], row.ends[reading.stop - 1]
    start, end = (moment.replace(tzinfo=zone).astimezone(UTC) for moment in (span.start, span.end))
    if end <= start:
        # A clock that was turned between the two.
        end = start + (span.end - span.start)
    return TimeRange(
        start=start,
        end=end,
        text=row.text[first:last],
        span=(first, last),
        precision=span.precision,
    )

"""Finds the times that a text names, for questions about a time and for dating what is learned.

Pure: a text and the time it is read at go in, ranges or dates come out; a phrase that is only
perhaps a time is left alone. Days and weeks are those of the zone ``now`` carries; weeks start on
Monday; seasons are those of the northern hemisphere (winter 2022 begins in December 2022). A name
without a year is the latest that has begun (in May, at Christmas), a day of the week the latest
before today; after "until" and "by" a name is the next that is not over, since these look ahead.
In English 05/07/2023 is the 7th of May, in other languages the 5th of July; 7.5.2023 is the 7th of
May everywhere. "Two weeks ago" is the week around that day, "last week" a whole one from Monday on,
"the last week" the days up to now.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo

from recollect.languages import language_of
from recollect.times.lexicon import WordRow, lexicon
from recollect.times.reader import Facing, TimeReading, View, grammar, time_at
from recollect.times.spans import DAY, Precision, TimeSpan

__all__ = [
    "DATES_MAX",
    "RANGES_MAX",
    "TEXT_CHARS_MAX",
    "Facing",
    "NamedDays",
    "Precision",
    "TimeRange",
    "dates",
    "time_ranges",
]

RANGES_MAX = 16
DATES_MAX = 4  # of a sentence
TRIES_MAX = 1000  # places at which a time is looked for: a list of numbers has thousands
# A question says when it means long before this; what stands behind it is not read.
TEXT_CHARS_MAX = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """From ``start`` up to, not including, ``end`` (UTC), and the piece of text that says so."""

    start: datetime
    end: datetime
    text: str
    span: tuple[int, int]
    precision: Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDays:
    """Days that a statement names. ``label`` is how they are written: a day, a month, …"""

    start: int  # where the words stand in the text
    stop: int
    first: date
    last: date
    label: str

    @property
    def is_day(self) -> bool:
        return self.first == self.last


def time_ranges(text: str, now: datetime, language: str | None = None) -> list[TimeRange]:
    """The times a text names, in its order, at most ``RANGES_MAX``; any text is legal."""
    zone = now.tzinfo or UTC
    text = _beginning(text)
    row = WordRow(text, lexicon(language or language_of(text)))
    view = View(now=now.replace(tzinfo=None), zone=zone)
    found: list[TimeRange] = []
    for place, reading in _readings(row, view):
        found.append(_range(row, place, reading, zone))
        if len(found) == RANGES_MAX:
            break
    return found


def dates(text: str, said_on: date, facing: Facing, language: str) -> tuple[NamedDays, ...]:
    """The days, weeks, months … that a statement of a day names, in its order."""
    now = datetime.combine(said_on, time.min)
    row = WordRow(text, lexicon(language))
    view = View(now=now, zone=UTC, facing=facing, is_statement=True)
    found: list[NamedDays] = []
    for place, reading in _readings(row, view):
        label = _label(reading.span)
        if label:
            first, last = reading.span.start.date(), (reading.span.end - DAY).date()
            start, stop = row.starts[place], row.ends[reading.stop - 1]
            found.append(
                NamedDays(start=start, stop=stop, first=first, last=max(first, last), label=label)
            )
        if len(found) == DATES_MAX:
            break
    return tuple(found)


def _readings(row: WordRow, view: View) -> Iterator[tuple[int, TimeReading]]:
    """Every time of a text with its place, from left to right."""
    may_start = grammar(row.lexicon).start
    if grammar(row.lexicon).telling.search(row.shape) is None:
        return
    place = stop = 0
    for _ in range(TRIES_MAX):
        found = may_start.search(row.shape, place)
        if found is None:
            return
        place = found.start()
        reading = time_at(row, place, view, stop)
        if reading is None:
            place += 1
            continue
        yield place, reading
        place = stop = reading.stop


def _beginning(text: str) -> str:
    """As much of a text as is read, without a word that would be cut in two."""
    if len(text) <= TEXT_CHARS_MAX or text[:TEXT_CHARS_MAX].isspace():
        return text[:TEXT_CHARS_MAX]
    whole, *cut = text[:TEXT_CHARS_MAX].rsplit(None, 1)
    return whole if cut else ""


def _range(row: WordRow, place: int, reading: TimeReading, zone: tzinfo) -> TimeRange:
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


def _label(span: TimeSpan) -> str:
    """How the days of a span are written; of one without a calendar's name, not at all."""
    first, last = span.start.date(), (span.end - DAY).date()
    match span.precision:
        case Precision.WEEK:
            return f"week of {first.isoformat()}"
        case Precision.WEEKEND:
            return f"weekend of {first.isoformat()}"
        case Precision.MONTH:
            return f"{first:%Y-%m}".rjust(7, "0")
        case Precision.YEAR:
            return f"{first.year:04}"
        case Precision.SEASON | Precision.QUARTER:
            return f"{first.year:04}-{first.month:02} to {last.year:04}-{last.month:02}"
        case Precision.STRETCH | Precision.DECADE:
            return ""
        case _:
            return first.isoformat()

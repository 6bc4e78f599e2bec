"""The grammar of times: what a row of words means, in any language that has a lexicon.

Above every reader stands how the words go that it reads: a word is one that a lexicon lists under
this name, in braces one that the reader looks at. The order matters where several fit. No reader
calls itself, and each looks at a few words only, so that a text costs as much as it is long.

A reader gives a span, or a name without a year (this is the latest one that has begun, a day of the
week the latest that is over, or, facing ahead, the first that is not over), or None where the words
mean no time. An impossible date is none.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Any

from recollect.times.lexicon import Lexicon, Row
from recollect.times.spans import (
    DAY,
    FINE,
    FIRST_MOMENT,
    LAST_MOMENT,
    WEEKEND,
    Portion,
    Precision,
    Recurring,
    Span,
    Weekly,
    Yearly,
    containing,
    day_span,
    distant,
    latest,
    latest_over,
    midnight,
    months_span,
    neighbour,
    next_open,
    next_to_begin,
    part_of,
    portion_of,
    shifted,
    stretch_from,
    this,
)

FAR = timedelta(days=183)  # nobody who speaks of both says "March 3rd" of a day so far ahead

# A year with nothing but its four digits is believed from here to there.
_NAMED_YEARS = range(1000, 3000)
_LED_YEARS = range(1700, 2200)
_LONE_YEARS = range(1900, 2101)

# The leads that say nothing of a name: "on 2024 machines", "a photo of April".
_NOT_BEFORE_YEARS = frozenset({"", "on", "at", "over"})
_NOT_BEFORE_MONTHS = frozenset({"", "on", "at"})
_NOT_BEFORE_FIRST_NAMES = _NOT_BEFORE_MONTHS | {"of", "by"}
_NOT_BEFORE_MONTH_DAYS = frozenset({"", "in", "of", "at", "over"})
_NOT_BEFORE_FALLS = frozenset({"", "after", "of", "on", "at", "by"})
_NOT_BEFORE_WEEKENDS = frozenset({"", "of", "in", "by"})


class Facing(StrEnum):
    """Which of the many Mays a bare May is."""

    BACK = "back"
    AHEAD = "ahead"
    EITHER = "either"  # the one to come, unless that is far off


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """From where a text is read: the local time, its zone, and the word that led to the place.

    A statement names whole times: two weeks ago is a week. A question only about when: somewhere
    around that day.
    """

    now: datetime
    zone: tzinfo
    facing: Facing = Facing.BACK
    lead: str = ""
    is_statement: bool = False

    def after(self, lead: str) -> View:
        return self if lead == self.lead else replace(self, lead=lead)


@dataclass(frozen=True, slots=True)
class Reading:
    """A time that was read, and the place of the first word behind it.

    ``name`` is set when no year was given, so that the other end of a stretch can give it.
    """

    span: Span
    stop: int
    name: Recurring | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """Words that fit a pattern, the view they are read from, and the time behind them, if any."""

    row: Row
    view: View
    found: re.Match[str]
    other: Reading | None = None

    def place(self, name: str = "") -> int:
        """Where the word of a group stands, or else the first one; -1 if it does not."""
        if name and name not in self.found.re.groupindex:
            return -1
        return self.found.start(name or 0)

    @property
    def stop(self) -> int:
        return self.found.end()

    def has(self, name: str) -> bool:
        return self.place(name) >= 0

    def key(self, name: str = "") -> str:
        return self.row.key(self.place(name))

    def value(self, name: str) -> Any:
        """What the word of a group stands for, in the table of the same name."""
        return self.row.value(name, self.place(name))

    @property
    def span(self) -> Span:
        """The time behind the words."""
        assert self.other is not None
        return self.other.span


Read = Callable[[Match], Span | Recurring | Reading | None]


@dataclass(frozen=True, slots=True)
class Reader:
    """How some words go, what they mean, and, if a time has to follow, which word leads to it."""

    pattern: str
    read: Read
    lead: str | None = None


_PLAIN: list[Reader] = []
_PORTIONS: list[Reader] = []  # of the plain ones
_RELATED: list[Reader] = []  # told by way of those

_YEAR = "( ( comma | of | or_in )? {year} (?! counted ) | apostrophe {short} )"
_COUNT = "( a? {vague} of? | {number} )"
_UNIT = "( {fortnight} | {unit} | {units} )"
_NAME = "( {holiday} | {weekday} | {month} | {season} )"
_BOUND = "( {since} | {after} | {before} | {until} ) about? the?"
_FROM = "( {between} | from ) about?"
_TELLING = (
    *("day", "year", "digits", "unit", "units", "fortnight", "part", "away", "tonight", "clock"),
    *("month", "weekday", "weekday_short", "season", "holiday", "quarter", "decade", "years"),
    *("stamp", "date", "month_day", "iso_week", "year_month", "month_year"),
)
_DETAIL = "( ( of_day the? )? {part} | comma? ( at | about )? {clock} )"


def _reads(
    *patterns: str, among: list[Reader] = _PLAIN, lead: str | None = None
) -> Callable[[Read], Read]:
    """Keep a function as the reader of patterns."""

    def keep(read: Read) -> Read:
        among.extend(Reader(pattern, read, lead) for pattern in patterns)
        return read

    return keep


# Dates in digits.


@_reads("( {stamp} | {date} | {month_day} | {iso_week} | {year_month} | {month_year} )")
def _in_digits(at: Match) -> Span | Recurring | None:
    if at.row.has(at.place() - 1, "numbered"):
        return None
    written = at.key()
    first, second, *rest = (int(number) for number in re.findall(r"\d+", written))
    if at.has("stamp"):
        return _stamp(at, written, day_span(first, second, rest[0]), rest[1:])
    if at.has("iso_week"):
        return containing(Precision.WEEK, datetime.fromisocalendar(first, second, 1))
    if at.has("year_month") or at.has("month_year"):
        year, month = (first, second) if at.has("year_month") else (second, first)
        return months_span(year, month, 1, Precision.MONTH) if year in _LED_YEARS else None
    # In American English the month leads between slashes, unless only the day can be there.
    months_first = at.row.lexicon.months_first and "/" in written
    leads = first <= 12 if months_first else second > 12
    month, day = (first, second) if leads else (second, first)
    if at.has("month_day"):
        refused = at.view.lead in _NOT_BEFORE_MONTH_DAYS
        return None if refused else Yearly(month=month, day=day, precision=Precision.DAY)
    [year] = rest
    if len(written.rsplit("/", 1)[-1]) == 2:
        year += 1900 if year > 68 else 2000
    return day_span(year, month, day)


def _stamp(at: Match, written: str, day: Span, clock: list[int]) -> Span:
    """A day, or a minute of it, in the zone that is written behind it."""
    if not clock:
        return day
    seconds = clock[2] if re.search(r":\d\d:\d\d", written) else 0
    moment = day.start.replace(hour=clock[0], minute=clock[1], second=seconds)
    zone = re.search(r"(?:z|utc|gmt|([+-])(\d{2}):?(\d{2}))$", written[11:])
    if zone is not None:
        aware = moment.replace(tzinfo=UTC)
        if zone[1]:
            away = timedelta(hours=int(zone[2]), minutes=int(zone[3]))
            aware += away if zone[1] == "-" else -away
        moment = aware.astimezone(at.view.zone).replace(tzinfo=None)
    return Span(moment, moment + timedelta(minutes=1), Precision.MOMENT)


# Seen from now.


@_reads("{away}")
def _day_away(at: Match) -> Span:
    """Yesterday, today, tomorrow."""
    return containing(Precision.DAY, at.view.now + at.value("away") * DAY)


@_reads("{tonight}")
def _tonight(at: Match) -> Span:
    away, part = at.value("tonight")
    return part_of(at.view.now + away * DAY, part)


@_reads(
    f"{_COUNT} {_UNIT} ago",
    f"ago_first about? {_COUNT} {_UNIT}",
    f"{_COUNT} {_UNIT} {{from_now}}",
    f"{{hence}} about? {_COUNT} {_UNIT} (?! of )",
    "{units} ago",
    "ago_first {units}",
)
def _counted_from_now(at: Match) -> Span | None:
    """Two weeks ago, years ago, three days from now; in two weeks, if that is to come."""
    few, many, unit = _counted(at)
    view, is_ahead = at.view, at.has("hence") or at.has("from_now")
    if at.has("hence") and (view.facing is Facing.BACK or not view.is_statement):
        return None
    before = at.place() - 1
    if not _has_count(at):
        if at.row.has(before, "many") or at.row.key(before).isdecimal():
            return None
        few, many = 2, 10
    if not view.is_statement:
        return distant(view.now, unit, *((many, few) if is_ahead else (-few, -many)))
    if many - few > 2 and (unit is Precision.YEAR or many == 10):
        return None
    count = few if few == many else few + 1
    return containing(unit, shifted(view.now, unit, count if is_ahead else -count))


def _has_count(at: Match) -> bool:
    return at.has("number") or at.has("vague")


def _counted(at: Match) -> tuple[int, int, Precision]:
    """How few, how many of what: 3, three, a, a couple of, a few, several weeks; else one."""
    few, many = at.value("vague") or (1, 1)
    if at.has("number"):
        number = at.key("number")
        few = many = int(number) if number.isdecimal() else at.value("number")
    if at.has("fortnight"):
        return 2 * few, 2 * many, Precision.WEEK
    return few, many, at.value("unit") or at.value("units")


@_reads(
    f"the? ( {{rolling}} | {{next}} ) {_COUNT} {_UNIT} (?! of )",
    f"the? {_COUNT} ( {{rolling_after}} | {{next:next_after}} ) {_UNIT} (?! of )",
    "the {rolling} {unit} (?! of )",
    "the? {rolling_alone} {unit} (?! of )",
)
def _rolling(at: Match) -> Span | None:
    """The last ten days, the past month: up to now; the next ten days: from today on."""
    _, many, unit = _counted(at)
    if not _has_count(at) and (at.view.is_statement or unit is Precision.WEEKEND):
        return None
    return stretch_from(at.view.now, unit, many if at.has("next") else -many)


@_reads(
    f"the? ( {{last}} | {{this}} | {{next}} ) ( {{part}} | {{unit}} | {_NAME} ) (?! of )",
    f"the? ( {{part}} | {{unit}} | {_NAME} ) ( {{last:last_after}} | {{next:next_after}} )",
)
def _modified(at: Match) -> Span | None:
    """Last week, this spring, next Tuesday, last night."""
    now, unit = at.view.now, at.value("unit")
    step = 0 if at.has("this") else 1 if at.has("next") else -1
    if at.has("part"):
        return part_of(now + step * DAY, at.value("part")) if step < 1 else None
    if unit is Precision.WEEKEND and step < 0:
        return latest_over(WEEKEND, now)
    if unit is not None:
        return None if unit in FINE else neighbour(unit, now, step)
    if (step == 0 and _is_verb(at)) or _is_in_a_title(at):
        return None
    return (latest_over, this, next_to_begin)[step + 1](_name(at), now)


@_reads("the? {unit} ( before_last | {next:after_next} ) (?! unit | weekday | month )")
def _next_but_one(at: Match) -> Span:
    """The week before last, the week after next."""
    return neighbour(at.value("unit"), at.view.now, 2 if at.has("next") else -2)


# Days, months and years by name.


@_reads(
    f"{{month}} {{dot}}? {{day}} join {{last_day:day}} (?! month ) {_YEAR}?",
    f"{{month}} {{dot}}? {{day}} (?! counted ) {_YEAR}?",
    f"the? {{day}} join {{last_day:day}} of? {{month}} {_YEAR}?",
    f"the? {{day}} dot? of? {{month}} {_YEAR}?",
    f"the? {{day}} dot? of? {{month}} {{dot}} {_YEAR}",
    f"the? {{ordinal}} of {{month}} {_YEAR}?",
)
def _days(at: Match) -> Span | Recurring | None:
    """May 7th, 2023; May 5-7, 2023; the 7th of May; the first of May."""
    day = at.value("ordinal") or _day_number(at, "day")
    last, year = _day_number(at, "last_day"), _year_of(at)
    if day < 1 or (last and last <= day) or _is_long_before_dot(at):
        return None
    if year is None and _is_verb_by_a_number(at):
        return None
    name = Yearly(month=at.value("month"), day=day, precision=Precision.DAY)
    if not last:
        return name if year is None else name.in_year(year)
    first = _recurring(at, name).span if year is None else name.in_year(year)
    end = day_span(first.start.year, name.month, last).end
    return Span(first.start, end, Precision.STRETCH)


def _day_number(at: Match, group: str) -> int:
    digits = re.match(r"\d+", at.key(group)) if at.has(group) else None
    return int(digits.group()) if digits else 0


def _year_of(at: Match) -> int | None:
    """The year behind a name: 2023, of 2023, ", 2023" or '23."""
    if at.has("short"):
        return 2000 + int(at.key("short"))
    year = int(at.key("year")) if at.has("year") else 0
    return year if year in _NAMED_YEARS else None


def _is_long_before_dot(at: Match) -> bool:
    """A dot behind the whole name of a month ends more than the name."""
    month = at.key("month")
    return at.has("dot") and (len(month) > 4 or month in ("may", "june", "july"))


def _is_verb(at: Match) -> bool:
    place = at.place("month")
    return at.row.has(place, "verb") and not at.row.is_capital(place)


def _is_verb_by_a_number(at: Match) -> bool:
    """They march 10 miles; unless a word leads to the month: "on may 7", "7th of may"."""
    is_plain = not at.has("day") or at.key("day").isdecimal()
    is_led = at.view.lead or at.row.has(at.place("month") - 1, "of")
    return _is_verb(at) and is_plain and not is_led


@_reads(f"{{month}} {{dot}}? {_YEAR}")
def _month_of_year(at: Match) -> Span | None:
    year = _year_of(at)
    if year is None or _is_long_before_dot(at):
        return None
    return months_span(year, at.value("month"), 1, Precision.MONTH)


@_reads("{month} (?! day )")
def _month(at: Match) -> Recurring | None:
    """May, where a word like "in" leads to it; January anywhere."""
    row, place = at.row, at.place()
    if row.has(place, "doubtful"):
        is_first_name = row.has(place, "first_name")
        if at.view.lead in (_NOT_BEFORE_FIRST_NAMES if is_first_name else _NOT_BEFORE_MONTHS):
            return None
        if _is_verb(at) and row.has(at.stop, "verb_follower"):
            return None
    return _name(at)


@_reads("the? {unit}? {year} (?! counted )")
def _year(at: Match) -> Span | None:
    """A bare year: after a word like "in", or alone between punctuation."""
    row, place, number = at.row, at.place("year"), int(at.key("year"))
    if at.value("unit") not in (None, Precision.YEAR) or row.has(place - 1, "numbered"):
        return None
    is_led = at.has("unit") or at.view.lead not in _NOT_BEFORE_YEARS
    is_alone = not (row.key(place - 1).isalnum() or row.key(place + 1).isalnum())
    if number not in _LED_YEARS or not (is_led or (is_alone and not at.view.is_statement)):
        return None
    if not is_led and number not in _LONE_YEARS:
        return None
    return months_span(number, 1, 12, Precision.YEAR)


@_reads("{the}? {weekday}")
def _weekday(at: Match) -> Recurring | None:
    """On Friday; Friday night; a bare Friday where a sentence ends."""
    row, before = at.row, at.place() - 1
    ends = not row.key(at.stop) or row.has(at.stop, "ends") or row.has(at.stop, "part")
    is_one = not (row.has(before, "repeating") or (before >= 0 and row.is_capital(before)))
    is_bare = ends and is_one and not at.has("the")
    return _name(at) if at.view.lead or is_bare else None


@_reads(f"the? {{season}} {_YEAR}?", f"{{holiday}} {_YEAR}?", f"{{quarter}} slash? {_YEAR}?")
def _named(at: Match) -> Span | Recurring | None:
    """Summer 2022; at Christmas; Q2: with its year, or where a word like "in" leads to it."""
    name, year, lead = _name(at), _year_of(at), at.view.lead
    if _is_in_a_title(at):
        return None
    if year is not None and isinstance(name, Yearly):
        return name.in_year(year)
    is_fall = at.row.has(at.place("season"), "tumble") and lead in _NOT_BEFORE_FALLS
    return name if lead and not is_fall else None


@_reads("{year} {quarter}")
def _quarter_of(at: Match) -> Span | None:
    name = _name(at)
    return name.in_year(int(at.key("year"))) if isinstance(name, Yearly) else None


def _is_in_a_title(at: Match) -> bool:
    """Spring Boot, the Spring Fling Market."""
    row, place = at.row, at.place("season")
    if row.has(place + 1, "seasonal"):
        return place >= 0
    return place > 0 and row.is_capital(place) and row.is_capital(place + 1)


def _name(at: Match) -> Recurring:
    """The name that a pattern found, of what comes every week or year."""
    if at.has("weekday"):
        return Weekly(weekday=at.value("weekday"))
    if at.has("month"):
        return Yearly(month=at.value("month"))
    if at.has("season"):
        return Yearly(month=at.value("season"), months=3, precision=Precision.SEASON)
    if at.has("quarter"):
        month = 3 * at.value("quarter") - 2
        return Yearly(month=month, months=3, precision=Precision.QUARTER)
    month, day = at.value("holiday")
    return Yearly(month=month, day=day, precision=Precision.DAY)


@_reads("the? {unit}")
def _weekend(at: Match) -> Recurring | None:
    """Over the weekend: the latest one that has begun."""
    is_led = at.view.lead not in _NOT_BEFORE_WEEKENDS
    return WEEKEND if is_led and at.value("unit") is Precision.WEEKEND else None


@_reads("{the}? {apostrophe}? ( {decade} | {years} )")
def _decade(at: Match) -> Span | None:
    """The 1990s, the 90s, the nineties: without a century, the latest that has begun."""
    start, now = at.value("decade") or int(at.key("years").rstrip("sern")), at.view.now.year
    if start < 100:
        if not (at.has("the") or at.has("apostrophe") or at.view.lead == "early"):
            return None
        start += now // 100 * 100
        start -= 100 if start > now else 0
    return months_span(start, 1, 120, Precision.DECADE)


# Portions of a time.


@_reads("{clock} ( on | comma | of )?", among=_PORTIONS, lead="on")
def _clock_first(at: Match) -> Reading | None:
    """1:56 pm on 8 May, 2023; 5pm yesterday."""
    if at.other is None or at.span.precision is not Precision.DAY:
        return None
    return Reading(_at_clock(at.key(), at.span), at.other.stop)


@_reads("( weekday | weekday_short ) ( dot | comma )? the?", among=_PORTIONS, lead="on")
def _weekday_and_date(at: Match) -> Reading | None:
    """Friday, 7 May 2023: the date counts, whatever day it was."""
    is_date = at.row.has(at.stop, "month") or at.row.key(at.stop)[:1].isdecimal()
    return at.other if is_date and at.span.precision in FINE else None


@_reads("the? {adjective} ( dash | or_in )?", among=_PORTIONS, lead="early")
@_reads("the? {portion} of", among=_PORTIONS, lead="whole")
def _portion(at: Match) -> Span:
    """Early 2023, mid-June, the end of last year; of a day and less there are no portions."""
    portion = at.value("adjective") or at.value("portion")
    return at.span if at.span.precision in FINE else portion_of(at.span, portion)


@_reads("the? ( {unit} | {part} ) of", among=_PORTIONS, lead="within")
def _whole_of(at: Match) -> Span | None:
    """The month of May, the week of 7 May, the evening of 7 May."""
    if at.span.precision is not Precision.DAY:
        return None if at.has("part") else at.span
    if at.has("part"):
        return part_of(at.span.start, at.value("part"))
    return containing(at.value("unit"), at.span.start)


@_reads(
    f"the? {{ordinal}} {_COUNT}? {_UNIT} ( of | or_in )",
    "the? {ordinal} ( {weekday} | {half} ) ( of | or_in )",
    among=_PORTIONS,
    lead="whole",
)
def _nth_of(at: Match) -> Span | None:
    """The first week of May, the last three months of 2022, the second half of June."""
    nth, whole = at.value("ordinal"), at.span
    _, count, unit = _counted(at)
    if at.has("half"):
        return portion_of(whole, Portion.FIRST_HALF if nth == 1 else Portion.SECOND_HALF)
    if at.has("weekday") or unit is Precision.WEEKEND:
        return _nth_name(whole, nth, _name(at) if at.has("weekday") else WEEKEND)
    start = shifted(whole.end, unit, -count)
    if nth > 0:
        start = shifted(whole.start, unit, (nth - 1) * count)
    end = min(shifted(start, unit, count), whole.end)
    return Span(start, end, unit if count == 1 else Precision.STRETCH)


def _nth_name(whole: Span, nth: int, name: Recurring) -> Span | None:
    if nth < 0:
        return latest(name, whole.end - DAY)
    first = next_to_begin(name, whole.start - DAY / 2)
    away = 7 * (nth - 1) * DAY
    span = Span(first.start + away, first.end + away, first.precision)
    return span if span.start < whole.end else None


# Times told by way of another one.


@_reads(
    "the? just_last? ( {unit} | {weekday} ) ( {before} | {after} ) the?",
    among=_RELATED,
    lead="since",
)
def _beside(at: Match) -> Span:
    """The week before 9 June 2023, the Friday after Christmas."""
    unit, other = at.value("unit"), at.span
    if at.has("weekday") or unit is Precision.WEEKEND:
        name = _name(at) if at.has("weekday") else WEEKEND
        if at.has("before"):
            return latest(name, other.start - DAY / 2)
        return next_to_begin(name, other.end - DAY / 2)
    if at.has("before"):
        return Span(shifted(other.start, unit, -1), other.start, unit)
    return Span(other.end, shifted(other.end, unit, 1), unit)


@_reads(f"{_COUNT} {_UNIT} ( {{before}} | {{after}} ) the?", among=_RELATED, lead="since")
def _away_from(at: Match) -> Span:
    """Two weeks before 11 August, three days after Christmas."""
    few, many, unit = _counted(at)
    if at.has("before"):
        return distant(at.span.start, unit, -few, -many)
    return distant(max(at.span.start, at.span.end - DAY), unit, many, few)


# The patterns in the words of a language.


class Grammar:
    """All readers for one language."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self.plain = self._compiled(_PLAIN)
        self.portions = self._compiled(_PORTIONS)
        self.related = self._compiled(_RELATED) + self.portions
        self.bound, self.between, self.detail = map(self._pattern, (_BOUND, _FROM, _DETAIL))
        either = "|".join(
            pattern.pattern
            for pattern in (self.bound, self.between, *dict(self.plain + self.related))
        )
        telling = "".join(map(lexicon.roles, _TELLING))
        self.telling = re.compile(f"[{telling}]")  # without one of these no words are a time
        self.start = re.compile(re.sub(r"\?P<\w+>", "?:", either))  # where any of them may begin

    def _compiled(self, readers: Iterable[Reader]) -> list[tuple[re.Pattern[str], Reader]]:
        return [(self._pattern(reader.pattern), reader) for reader in readers]

    def _pattern(self, source: str) -> re.Pattern[str]:
        """A pattern of names of words, as one of the characters that stand for them."""
        parts = []
        for part in source.split():
            if part[0] in "()|":
                parts.append("(?:" if part == "(" else part)
                continue
            word = part.rstrip("?")
            name, _, role = word.strip("{}").partition(":")
            characters = f"[{self._lexicon.roles(role or name) or chr(0)}]"
            group = f"(?P<{name}>{characters})" if word[0] == "{" else characters
            parts.append(group + part[len(word) :])
        return re.compile("".join(parts))


@functools.cache
def grammar(lexicon: Lexicon) -> Grammar:
    return Grammar(lexicon)


# From the patterns to a reading.


def time_at(row: Row, place: int, view: View, last_stop: int) -> Reading | None:
    """A time at a place, unless it is a piece of something longer, such as an identifier."""
    if _is_multiplied(row, place):
        return None
    try:
        reading = _stretch_or_time(row, place, view, last_stop)
    except (ValueError, OverflowError):
        return None
    if reading is None or not row.is_free(row.starts[place], row.ends[reading.stop - 1]):
        return None
    return reading


def _is_multiplied(row: Row, place: int) -> bool:
    """A hundred days, half a year: how many that is, is not read; better no time than another."""
    is_half = row.has(place - 1, "half") or row.has(place - 2, "half")
    is_counted = is_half and not row.has(place, "year") and not row.has(place, "the")
    return is_counted or row.has(place - 1, "multiple")


def _stretch_or_time(row: Row, place: int, view: View, last_stop: int) -> Reading | None:
    words = grammar(row.lexicon)
    found = None if view.is_statement else words.between.match(row.shape, place)
    if found is not None and (reading := _between(row, found, view)):
        return reading
    found = words.bound.match(row.shape, place)
    if found is not None and (reading := _bounded(row, found, view)):
        return reading
    first = _any(row, place, view.after(_lead(row, place, last_stop)))
    if first is None or view.is_statement or not row.has(first.stop, "join"):
        return first
    return _joined(first, _any(row, first.stop + 1, view.after("since"))) or first


def _lead(row: Row, place: int, last_stop: int) -> str:
    """The word that makes a bare name behind it a time; the first of several leads to all."""
    before = place - 1
    if last_stop and last_stop == before and row.has(before, "also"):
        return "since"
    for _ in range(2):
        if row.has(before, "lead") or not row.has(before, "skipped"):
            break
        before -= 1
    return row.value("lead", before) or ""


def _any(row: Row, place: int, view: View) -> Reading | None:
    words = grammar(row.lexicon)
    return _first(words.related, row, place, view) or _first(words.plain, row, place, view)


def _first(
    readers: list[tuple[re.Pattern[str], Reader]], row: Row, place: int, view: View
) -> Reading | None:
    """What the first reader that understands the place makes of it."""
    for pattern, reader in readers:
        found = pattern.match(row.shape, place)
        if found is None:
            continue
        try:
            reading = _read(reader, Match(row, view, found))
        except (ValueError, OverflowError):
            continue
        if reading is not None:
            return reading
    return None


def _read(reader: Reader, at: Match) -> Reading | None:
    stop = at.stop
    if reader.lead is not None:
        other = _other(at.row, stop, at.view.after(reader.lead))
        if other is None:
            return None
        at, stop = replace(at, other=other), other.stop
    match reader.read(at):
        case Span() as span:
            return _detailed(at.row, Reading(span, stop))
        case Reading() | None as reading:
            return reading
        case name:
            return _detailed(at.row, _recurring(at, name))


def _other(row: Row, place: int, view: View) -> Reading | None:
    """The time that a reader needs behind its words: of a kind less than it reads itself."""
    words = grammar(row.lexicon)
    found = _first(words.portions, row, place, view) if view.lead == "since" else None
    found = found or _first(words.plain, row, place, view)
    unit = row.value("unit", place + 1)
    if found or view.lead != "whole" or not row.has(place, "the") or unit in FINE or not unit:
        return found
    return Reading(containing(unit, view.now), place + 2)  # the end of the year


def _recurring(at: Match, name: Recurring) -> Reading:
    """A name without a year. On a Monday nobody calls the same day Monday, so that one is over."""
    now, facing = at.view.now, at.view.facing
    is_weekday = isinstance(name, Weekly) and name.days == 1
    back = latest_over(name, now) if is_weekday else latest(name, now)
    if facing is Facing.BACK:
        return Reading(back, at.stop, name)
    span = next_to_begin(name, now) if is_weekday else next_open(name, now)
    if facing is Facing.EITHER and span.start - now > FAR:
        before = at.row.text[: at.row.starts[at.place()]][-80:]
        span = span if at.row.lexicon.due.search(before) else back
    return Reading(span, at.stop, name)


def _detailed(row: Row, reading: Reading) -> Reading:
    """A day, narrowed by what follows it: a part of the day, or a time of the clock."""
    if reading.span.precision is not Precision.DAY:
        return reading
    found = grammar(row.lexicon).detail.match(row.shape, reading.stop)
    if found is None:
        return reading
    place = found.end() - 1
    if found["part"]:
        span = part_of(reading.span.start, row.value("part", place))
    else:
        span = _at_clock(row.key(place), reading.span)
    return Reading(span, found.end())


def _at_clock(written: str, day: Span) -> Span:
    """A day, narrowed to a time of the clock: 5pm, 13:56."""
    hour, *rest = (int(number) for number in re.findall(r"\d+", written))
    if written.replace(".", "").endswith(("am", "pm")):
        hour = hour % 12 + (12 if "p" in written else 0)
    start = midnight(day.start).replace(hour=hour, minute=rest[0] if rest else 0)
    return containing(Precision.MOMENT if rest else Precision.HOUR, start)


def _between(row: Row, found: re.Match[str], view: View) -> Reading | None:
    """Between May and July; from May to July; from May on."""
    first = _any(row, found.end(), view.after("since"))
    if first is None:
        return None
    if row.has(first.stop, "join") or (found["between"] and row.has(first.stop, "and")):
        return _joined(first, _any(row, first.stop + 1, view.after("since")))
    if not found["between"] and row.has(first.stop, "onwards"):
        return Reading(_open(first.span, "since", view.now), first.stop + 1)
    return None


def _joined(first: Reading, second: Reading | None) -> Reading | None:
    """One stretch out of two times; a year given to one of them holds for both."""
    if second is None:
        return None
    start, end = first.span, second.span
    if first.name is not None:
        start = latest(first.name, end.start)
    elif second.name is not None:
        end = next_to_begin(second.name, start.start)
    if end.end <= start.start:
        return None
    return Reading(Span(start.start, end.end, Precision.STRETCH), second.stop)


def _bounded(row: Row, found: re.Match[str], view: View) -> Reading | None:
    """Since March, before 2022, until Friday: a statement names that time itself."""
    bound = next(name for name, value in found.groupdict().items() if value)
    facing = Facing.AHEAD if bound == "until" else Facing.BACK
    if view.is_statement and bound != "since" and not row.has(found.start(), "by"):
        facing = view.facing
    view = replace(view, facing=facing, lead="by" if bound == "until" else "since")
    place = found.start() + 1
    place += row.has(place, "about")
    reading = _any(row, place, view) or _any(row, found.end(), view)
    if reading is None or view.is_statement:
        return reading
    return Reading(_open(reading.span, bound, view.now), reading.stop)


def _open(span: Span, bound: str, now: datetime) -> Span:
    """What lies before or since a time; what has begun runs to the end of today."""
    tomorrow = midnight(now) + DAY
    if bound in ("before", "until"):
        end = span.start if bound == "before" else span.end
        return Span(FIRST_MOMENT, end, Precision.STRETCH)
    start = span.start if bound == "since" else span.end
    return Span(start, tomorrow if start < tomorrow else LAST_MOMENT, Precision.STRETCH)

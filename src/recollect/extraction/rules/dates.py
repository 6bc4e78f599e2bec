"""Finds the times a sentence names and turns them into dates, seen from when it was said."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Any

DATES_MAX = 4  # per sentence
FAR_DAYS = 183  # nobody who speaks of both says "March 3rd" of a day so far ahead
_LEAD_CHARS = 80
_SINCE = re.compile(
    r"\b(?:since|last)(?: (?:early|mid|late|around|about|on|the))*[ -]$", re.IGNORECASE
)
_DUE = re.compile(
    r"\b(?:by|before|until|till|due|next|plan|plans|planning|going to|will|hope to|hoping to)\b"
    r"(?:(?! (?:and|but|that|which) )[^,;.]){0,60}$"
    r"|\b(?:for|is|are|slipped|moved|rebooked|postponed|scheduled|planned|fly|flying|married)"
    r"(?: (?!last\b)\w+){0,3} $",
    re.IGNORECASE,
)


class Outlook(StrEnum):
    """Where a sentence looks, as far as its words tell: what "on Friday" means depends on it."""

    BACK = "back"
    AHEAD = "ahead"
    EITHER = "either"  # it tells what was and what is to come


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A stretch of days that a sentence names. `label` is how it is written: a day, a month, …"""

    start: int  # where the words stand in the sentence
    stop: int
    first: date
    last: date
    label: str

    @property
    def is_day(self) -> bool:
        return self.first == self.last


@dataclass(frozen=True, slots=True)
class _Pattern:
    expression: re.Pattern[str]
    kind: str
    amount: int | None
    needs_future: bool


class Calendar:
    """The words for time of one language."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._months = _numbered(data["months"]) | _numbered(data["months_short"]) | {"sept": 9}
        self._weekdays = {name: place for place, name in enumerate(data["weekdays"].split())}
        self._numbers = _pairs(data["numbers"])
        self._units = _pairs(data["units"])
        self._triggers = frozenset(data["triggers"].split())
        words = {
            "months": _either(self._months),
            "long_months": _either(data["months"].split()),
            "weekdays": _either(self._weekdays),
            "numbers": _either(self._numbers),
            "units": _either(self._units),
        }
        self._patterns = tuple(_pattern(entry, words) for entry in data["patterns"])
        self._readers: dict[str, Callable[[re.Match[str], _Pattern, date, bool], _Span | None]] = {
            "days": self._days,
            "shift": self._shift,
            "weekday": self._weekday,
            "weekend": self._weekend,
            "span": self._span,
            "iso": self._iso,
            "date": self._date,
            "month": self._month,
        }

    def find(
        self, text: str, words: tuple[str, ...], said: date, outlook: Outlook
    ) -> tuple[When, ...]:
        """The times in a sentence, in order."""
        if self._triggers.isdisjoint(words) and not any(word[0].isdigit() for word in words):
            return ()
        taken: list[When] = []
        for when in self._matches(text, said, outlook):
            if all(when.stop <= other.start or when.start >= other.stop for other in taken):
                taken.append(when)
        return tuple(sorted(taken, key=lambda when: when.start)[:DATES_MAX])

    def _matches(self, text: str, said: date, outlook: Outlook) -> Iterator[When]:
        for pattern in self._patterns:
            if pattern.needs_future and outlook is Outlook.BACK:
                continue
            for found in pattern.expression.finditer(text):
                try:
                    span = self._read(found, pattern, said, outlook)
                except OverflowError:  # before the year 1 or after 9999
                    continue
                if span is not None:
                    first, last, label = span
                    yield When(
                        start=found.start(), stop=found.end(), first=first, last=last, label=label
                    )

    def _read(
        self, found: re.Match[str], pattern: _Pattern, said: date, outlook: Outlook
    ) -> _Span | None:
        read = self._readers[pattern.kind]
        lead = _lead(found)
        if _SINCE.search(lead):
            return read(found, pattern, said, False)
        span = read(found, pattern, said, outlook is not Outlook.BACK)
        is_far = span is not None and (span[0] - said).days > FAR_DAYS
        is_open = pattern.kind in ("date", "month") and not found["year"]
        if outlook is Outlook.EITHER and is_far and is_open and not _DUE.search(lead):
            return read(found, pattern, said, False)
        return span

    def _days(self, _: re.Match[str], pattern: _Pattern, said: date, __: bool) -> _Span | None:
        return _day(said + timedelta(days=pattern.amount or 0))

    def _shift(self, found: re.Match[str], pattern: _Pattern, said: date, _: bool) -> _Span | None:
        number = found["number"].lower()
        count = int(number) if number.isdigit() else int(self._numbers[number])
        count *= pattern.amount or 1
        vague = not number.isdigit() and number == "few"
        match self._units[found["unit"].lower()]:
            case "day":
                return _day(said + timedelta(days=count))
            case "week":
                return _week(said + timedelta(weeks=count))
            case "month":
                return _month_of(*_shifted_month(said, count))
            case _:
                year = said.year + count
                return None if vague else _year(year)

    def _weekday(
        self, found: re.Match[str], pattern: _Pattern, said: date, looks_ahead: bool
    ) -> _Span | None:
        wanted = self._weekdays[found["weekday"].lower()]
        amount = pattern.amount if pattern.amount is not None else (1 if looks_ahead else -1)
        ahead = (wanted - said.weekday()) % 7
        if amount > 0:
            return _day(said + timedelta(days=ahead or 7))
        return _day(said - timedelta(days=(7 - ahead) if ahead else 7))

    def _weekend(self, _: re.Match[str], pattern: _Pattern, said: date, __: bool) -> _Span | None:
        saturday = said + timedelta(days=5 - said.weekday(), weeks=pattern.amount or 0)
        return saturday, saturday + timedelta(days=1), f"weekend of {saturday.isoformat()}"

    def _span(self, found: re.Match[str], pattern: _Pattern, said: date, _: bool) -> _Span | None:
        amount = pattern.amount or 0
        match found["unit"].lower():
            case "week":
                return _week(said + timedelta(weeks=amount))
            case "month":
                return _month_of(*_shifted_month(said, amount))
            case _:
                return _year(said.year + amount)

    def _iso(self, found: re.Match[str], _: _Pattern, __: date, ___: bool) -> _Span | None:
        day = _date_or_none(int(found["year"]), int(found["month"]), int(found["day"]))
        return _day(day) if day else None

    def _date(
        self, found: re.Match[str], _: _Pattern, said: date, looks_ahead: bool
    ) -> _Span | None:
        month, day = self._months[found["name"].lower()], int(found["day"])
        if found["year"]:
            exact = _date_or_none(int(found["year"]), month, day)
            return _day(exact) if exact else None
        years = (said.year, said.year + 1) if looks_ahead else (said.year, said.year - 1)
        candidates = [made for year in years if (made := _date_or_none(year, month, day))]
        fitting = [made for made in candidates if (made >= said if looks_ahead else made <= said)]
        return _day((fitting or candidates)[0]) if candidates else None

    def _month(
        self, found: re.Match[str], _: _Pattern, said: date, looks_ahead: bool
    ) -> _Span | None:
        month = self._months[found["name"].lower()]
        if found["year"]:
            return _month_of(int(found["year"]), month)
        year = said.year
        if looks_ahead and month < said.month:
            year += 1
        elif not looks_ahead and month > said.month:
            year -= 1
        return _month_of(year, month)


_Span = tuple[date, date, str]


def _pattern(entry: Mapping[str, Any], words: Mapping[str, str]) -> _Pattern:
    source = entry["pattern"]
    for name, alternatives in words.items():
        source = source.replace("{" + name + "}", alternatives)
    return _Pattern(
        re.compile(source, re.IGNORECASE),
        entry["kind"],
        entry.get("amount"),
        entry.get("needs") == "future",
    )


def _lead(found: re.Match[str]) -> str:
    """The words before a time, with those its pattern takes in: "since", "in"."""
    stop = min((found.start(name) for name, value in found.groupdict().items() if value), default=0)
    return found.string[max(0, stop - _LEAD_CHARS) : stop]


def _either(words: Any) -> str:
    return "(?:" + "|".join(sorted(words, key=len, reverse=True)) + ")"


def _numbered(names: str) -> dict[str, int]:
    return {name: place for place, name in enumerate(names.split(), start=1)}


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


def _day(day: date) -> _Span:
    return day, day, day.isoformat()


def _week(day: date) -> _Span:
    monday = day - timedelta(days=day.weekday())
    return monday, monday + timedelta(days=6), f"week of {monday.isoformat()}"


def _month_of(year: int, month: int) -> _Span | None:
    if not 1 <= year <= 9998:
        return None
    last = calendar.monthrange(year, month)[1]
    return date(year, month, 1), date(year, month, last), f"{year:04}-{month:02}"


def _year(year: int) -> _Span | None:
    if not 1 <= year <= 9998:
        return None
    return date(year, 1, 1), date(year, 12, 31), f"{year:04}"


def _shifted_month(day: date, months: int) -> tuple[int, int]:
    total = day.year * 12 + day.month - 1 + months
    return total // 12, total % 12 + 1


def _date_or_none(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None

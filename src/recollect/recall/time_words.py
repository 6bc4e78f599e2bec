"""The words of time, and a text as a row of words in which they are looked up.

Only data and the cutting into words; what a row of words means is said in time_phrases.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from recollect.recall.time_spans import (
    Part,
    Period,
    Portion,
    Precision,
    Recurring,
    Weekly,
    Yearly,
)

_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}

# Also first names, verbs and adjectives: alone, they are a month only after a word like "in".
DOUBTFUL_MONTHS = frozenset({"april", "may", "march", "june", "august"}) | {
    name for name in MONTHS if len(name) < 5
}
# Verbs when written small, even next to a number.
VERBS = frozenset({"may", "march"})

_DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAYS = {name: number for number, name in enumerate(_DAY_NAMES)}
# Short names of days are words of their own ("sun", "sat"), and only stand before a date.
SHORT_WEEKDAYS = {name[:3]: number for name, number in WEEKDAYS.items()} | {
    "tues": 1,
    "thur": 3,
    "thurs": 3,
}

SEASONS: dict[str, Recurring] = {
    name: Yearly(month=month, months=3, precision=Precision.SEASON)
    for name, month in (("spring", 3), ("summer", 6), ("autumn", 9), ("fall", 9), ("winter", 12))
}
SEASON_STRANGERS = frozenset({"boot", "framework", "mvc", "cloud", "security", "water", "rolls"})

HOLIDAYS: dict[tuple[str, ...], Yearly] = {
    tuple(name.split()): Yearly(month=month, day=day, precision=Precision.DAY)
    for name, month, day in (
        ("new year eve", 12, 31),
        ("new years eve", 12, 31),
        ("new year day", 1, 1),
        ("new years day", 1, 1),
        ("new years", 1, 1),
        ("valentine day", 2, 14),
        ("valentines day", 2, 14),
        ("valentines", 2, 14),
        ("st patrick day", 3, 17),
        ("st patricks day", 3, 17),
        ("april fools day", 4, 1),
        ("may day", 5, 1),
        ("juneteenth", 6, 19),
        ("independence day", 7, 4),
        ("fourth of july", 7, 4),
        ("halloween", 10, 31),
        ("veterans day", 11, 11),
        ("christmas eve", 12, 24),
        ("christmas day", 12, 25),
        ("christmas", 12, 25),
        ("xmas", 12, 25),
        ("boxing day", 12, 26),
    )
}
HOLIDAY_STARTS = frozenset(name[0] for name in HOLIDAYS)
HOLIDAY_WORDS_MAX = max(len(name) for name in HOLIDAYS)

PERIODS = {
    "minute": Period.MINUTE,
    "hour": Period.HOUR,
    "day": Period.DAY,
    "weekend": Period.WEEKEND,
    "week": Period.WEEK,
    "month": Period.MONTH,
    "quarter": Period.QUARTER,
    "year": Period.YEAR,
    "decade": Period.DECADE,
}
COUNTED_PERIODS = PERIODS | {f"{name}s": period for name, period in PERIODS.items()}

PARTS = {
    "morning": Part.MORNING,
    "afternoon": Part.AFTERNOON,
    "evening": Part.EVENING,
    "night": Part.NIGHT,
}

PORTIONS = {
    "early": Portion.EARLY,
    "mid": Portion.MIDDLE,
    "late": Portion.LATE,
    "beginning": Portion.BEGINNING,
    "start": Portion.BEGINNING,
    "middle": Portion.MIDDLE,
    "end": Portion.END,
}
# These need no "of": early June, mid-June.
ADJECTIVES = frozenset({"early", "mid", "late"})

_NUMBER_NAMES = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
NUMBERS = {name: number for number, name in enumerate(_NUMBER_NAMES, start=1)}
NUMBERS |= {"a": 1, "an": 1, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}

# How few and how many a vague word may mean.
VAGUE_NUMBERS = {"couple": (1, 3), "few": (2, 6), "several": (3, 10)}

ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}
ORDINALS |= {"1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5}

DECADES = {
    "twenties": 20,
    "thirties": 30,
    "forties": 40,
    "fifties": 50,
    "sixties": 60,
    "seventies": 70,
    "eighties": 80,
    "nineties": 90,
}

DAYS_AWAY = {"yesterday": -1, "today": 0, "tomorrow": 1}
LAST = frozenset({"last", "past", "previous"})
THIS = frozenset({"this", "current"})
NEXT = frozenset({"next", "coming", "upcoming"})
MODIFIERS = LAST | THIS | NEXT

JOINS = frozenset({"to", "until", "till", "through", "thru", "-", "–", "—"})
AND_JOINS = frozenset({"and", "or", ",", "&"})

# After one of these a bare name is a time: in May, since Tuesday, by 2022.
LEADS = frozenset(
    {"in", "on", "since", "before", "after", "until", "till", "by", "during", "of", "from", "at"}
    | {"between", "around", "throughout", "through", "over", "circa", "dated"}
    | ADJECTIVES
)
BETWEEN_LEAD_AND_NAME = frozenset({"the", "-", "about", "around", "early", "mid", "late", "year"})
# Where a lead says nothing: "on 2024 machines", "a photo of April", "after the fall".
NOT_BEFORE_YEARS = frozenset({"on", "at", "over"})
NOT_BEFORE_MONTHS = frozenset({"on", "at"})
NOT_BEFORE_FIRST_NAMES = NOT_BEFORE_MONTHS | {"of", "from", "by"}
NOT_BEFORE_SLASHES = frozenset({"in", "of", "at", "over"})
NOT_BEFORE_FALL = frozenset({"after", "of", "from", "on", "at", "by"})
NOT_BEFORE_WEEKENDS = frozenset({"of", "in", "by"})
FIRST_NAMES = frozenset({"april", "may", "june", "august", "jan"})

# "The place we are in may change": behind these words, may is a verb.
VERB_FOLLOWERS = frozenset(
    {"be", "not", "have", "also", "well", "even", "never", "still", "need", "i", "we", "you", "he"}
    | {"she", "they", "it", "on", "change", "cause"}
)
# What comes again and again is no time: every Friday, my Sunday.
REPEATING = frozenset(
    {"every", "each", "a", "an", "my", "our", "your", "his", "her", "their", "per", "the", "of"}
    | {"is", "was", "it"}
)

# What a number belongs to when it stands behind one of these.
NUMBERED = frozenset(
    {"version", "v", "release", "build", "port", "room", "error", "code", "line", "page", "issue"}
    | {"ticket", "number", "no", "id", "step", "chapter", "pin", "flight", "section", "table"}
    | {"bug", "pr", "item", "level", "model", "season", "episode", "channel", "row"}
)
# Words that a number counts although they do not end in s, and those in s that it does not count.
COUNTED = frozenset(
    {"people", "men", "women", "children", "percent", "euro", "dollar", "usd", "eur", "gbp", "km"}
    | {"kg", "mb", "gb", "kb", "ms", "px", "out", "or", "more", "items", "feet", "staff"}
)
UNCOUNTED = frozenset(
    {"is", "was", "has", "does", "as", "this", "his", "its", "us", "yes", "always", "besides"}
    | {"versus", "vs", "across", "unless", "perhaps", "plus", "thus", "towards", "afterwards"}
    | {"onwards"}
)

_WORD = re.compile(r"\w+(?:['’][sS]\b)?|[^\w\s]+")
_POSSESSIVE = ("'s", "’s")

# Written against a word or number, these make it a piece of something longer: always in front of
# it, or only between two letters or digits, or only between two digits.
_SIGILS = frozenset("_/\\#$€£¥@&=+%~^")
_GLUE = _SIGILS | frozenset("-.:*|<>")

STARTERS = (
    frozenset(MONTHS)
    | frozenset(WEEKDAYS)
    | frozenset(SHORT_WEEKDAYS)
    | frozenset(SEASONS)
    | HOLIDAY_STARTS
    | frozenset(COUNTED_PERIODS)
    | frozenset(
        {"fortnight", "fortnights", "the", "q1", "q2", "q3", "q4", "tonight", "prior", "up"}
    )
    | frozenset(PARTS)
    | frozenset(PORTIONS)
    | frozenset(NUMBERS)
    | frozenset(VAGUE_NUMBERS)
    | frozenset(ORDINALS)
    | frozenset(DECADES)
    | frozenset(DAYS_AWAY)
    | MODIFIERS
    | frozenset({"since", "after", "before", "until", "till", "by", "between", "from"})
)


class Row:
    """A text cut into words, numbers and punctuation, each in small letters with its place."""

    __slots__ = ("ends", "keys", "starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.keys: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        for found in _WORD.finditer(text):
            key = found.group().lower()
            self.keys.append(key[:-2] if key.endswith(_POSSESSIVE) else key)
            self.starts.append(found.start())
            self.ends.append(found.end())

    def __len__(self) -> int:
        return len(self.keys)

    def key(self, index: int) -> str:
        """The word at a place; outside the text, the empty one."""
        return self.keys[index] if 0 <= index < len(self.keys) else ""

    def skip(self, index: int, *words: str) -> int:
        """The place after one of the words if it stands there, else the same place."""
        return index + 1 if self.key(index) in words else index

    def is_capital(self, index: int) -> bool:
        return index < len(self.keys) and self.text[self.starts[index]].isupper()

    def number(self, index: int, digits_max: int = 4) -> int | None:
        """The number at a place, if it is a short one."""
        key = self.key(index)
        return int(key) if key.isdecimal() and len(key) <= digits_max else None

    def at(self, position: int) -> int:
        """The first word that begins at a position of the text or after it."""
        return bisect_left(self.starts, position)

    def is_free(self, start: int, end: int) -> bool:
        """Whether the text from one position to another is not a piece of something longer."""
        text = self.text
        if text[start - 1 : start] in _SIGILS or text[end : end + 1] == "%":
            return False
        return not (_is_glued(text, start - 1) or _is_glued(text, end))

    def is_count(self, index: int) -> bool:
        """Whether the word at a place is something that the number before it counts."""
        key = self.key(index)
        if key in COUNTED:
            return True
        if not key.isalpha() or self.is_capital(index):
            return False
        return key.endswith("s") and key not in UNCOUNTED


def _is_glued(text: str, position: int) -> bool:
    """Whether a sign holds together what stands on its two sides."""
    if position < 1:
        return False
    before, sign, after = (text[at : at + 1] for at in range(position - 1, position + 2))
    if sign == ",":
        return before.isdecimal() and after.isdecimal()
    return sign in _GLUE and before.isalnum() and after.isalnum()


def weekday_name(weekday: int) -> Weekly:
    return Weekly(weekday=weekday)


def month_name(month: int) -> Yearly:
    return Yearly(month=month, precision=Precision.MONTH)


def quarter_name(quarter: int) -> Yearly:
    return Yearly(month=3 * quarter - 2, months=3, precision=Precision.QUARTER)

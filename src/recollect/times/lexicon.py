"""The words of time of a language, and a text as a row of them.

A language is a table: what a word may be (its roles), and what it stands for in each. A text is cut
into dates in digits, phrases, words and punctuation, and every one of these becomes one character
for the roles it has, so that the grammar of times (see reader) is regular expressions over
characters that stand for words.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from recollect.times.spans import Part, Portion, Precision

_FIRST_CHARACTER = 0x4E00  # none of these means anything in a regular expression
_NOTHING = "\x01"  # a word without a role

# Dates in digits. Between slashes, a year of two digits may stand.
_DIGITS = {
    "stamp": r"\d{4}(?P<_1>[-/.])\d{1,2}(?P=_1)\d{1,2}(?!\d)(?: \([a-z]{3}\))?"
    r"(?:[t,]? ?\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
    r"(?: ?(?:z|utc|gmt|[+-]\d{2}:?\d{2}))?)?(?!\w)",
    "date": r"\d{1,2}/\d{1,2}/(?:\d{4}|\d{2})(?!\w)|\d{1,2}(?P<_2>[-.])\d{1,2}(?P=_2)\d{4}(?!\w)",
    "iso_week": r"\d{4}-w\d{1,2}(?!\w)",
    "year_month": r"\d{4}-\d{2}(?![\w-])",
    "month_year": r"\d{1,2}/\d{4}(?![\w/])",
    "month_day": r"\d{1,2}/\d{1,2}(?![\w/])",
    "clock": r"(?:1[0-2]|0?[1-9])(?::[0-5]\d){0,2} ?[ap]\.?m\b|(?:[01]?\d|2[0-3]):[0-5]\d\b",
}
_MARKS = {
    "comma": ", .,",
    "dot": ". .,",
    "dash": "- – —",
    "slash": "/",
    "apostrophe": "'",
    "ampersand": "&",
    "ends": "? . ! ?! !! ?? ...",
}

# Written against a word or number, these make it a piece of something longer: always in front of
# it, or only between two letters or digits, or only between two digits.
_SIGILS = frozenset("_/\\#$€£¥@&=+%~^")
_GLUE = _SIGILS | frozenset("-.:*|<>")


def _holiday(written: str) -> tuple[int, int]:
    month, _, day = written.partition("-")
    return int(month), int(day)


# What the keys of a table stand for; those of others are numbers.
_VALUES: Mapping[str, Callable[[str], Any]] = {
    "word": str,
    "lead": str,
    "unit": Precision,
    "units": Precision,
    "part": lambda key: Part[key.upper()],
    "tonight": lambda key: (int(key.split("_")[0]), Part[key.split("_")[1].upper()]),
    "adjective": lambda key: Portion[key.upper()],
    "portion": lambda key: Portion[key.upper()],
    "holiday": _holiday,
    "vague": _holiday,
}


class Lexicon:
    """The words of one language. Nothing in it changes after it was read."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.values: dict[str, dict[str, Any]] = {}
        self._roles: dict[str, frozenset[str]] = {}
        self._ordinal = re.compile(data.get("ordinals", "(?!)"))
        for table, listed in data.items():
            if isinstance(listed, Mapping):
                for key, words in listed.items():
                    self._add(table, key, words)
        for role, marks in _MARKS.items():
            self._add("word", role, marks)
        for word in self.values.get("ordinal", ()):
            if self._ordinal.fullmatch(word):
                self._roles[word] |= _NTH
        self.months_first: bool = data.get("months_first", False)
        self.due = re.compile(data.get("due", "(?!)"), re.IGNORECASE)
        self._plural = re.compile(data.get("counted", "(?!)"))
        self._cut = re.compile(self._cutting(data))
        self._characters: dict[frozenset[str], str] = {}
        for roles in [*self._roles.values(), *_numerals()]:
            for each in (roles, roles | {"counted"}):
                self._characters.setdefault(each, chr(_FIRST_CHARACTER + len(self._characters)))

    def _add(self, table: str, key: str, words: str) -> None:
        role = key if table == "word" else table
        for word in words.replace("’", "'").split():
            word = word.replace("_", " ")
            self._roles[word] = self._roles.get(word, frozenset()) | {role}
            self.values.setdefault(table, {})[word] = _VALUES.get(table, int)(key)

    def _cutting(self, data: Mapping[str, Any]) -> str:
        digits = dict(_DIGITS)
        if "clock" in data:
            digits["clock"] = f"{data['clock']}|{digits['clock']}"
        phrases = sorted(filter(_is_phrase, self._roles), key=len, reverse=True)
        cuts = [f"(?P<{name}>{source})" for name, source in digits.items()]
        if phrases:
            either = "|".join(re.escape(phrase) for phrase in phrases)
            cuts.append(rf"(?P<phrase>(?:{either})(?!\w))")
        if "elided" in data:  # l'été, nell'aprile
            cuts.append(rf"(?:{data['elided']})'(?=\w)")
        return "|".join([*cuts, r"\w+(?:'s\b)?", r"[^\w\s]+"])

    def cut(self, text: str) -> Iterator[tuple[str, int, int, str]]:
        """The words of a text: each in small letters, from where to where, and its character."""
        for found in self._cut.finditer(_lower(text)):
            key = found.group()
            kind = found.lastgroup
            if kind in _DIGITS:
                roles = frozenset({kind})
            else:
                key = key.removesuffix("'s") if kind is None else key
                roles = self._roles.get(key) or self._numeral(key)
                if self._is_counted(key, text[found.start()]):
                    roles |= {"counted"}
            yield key, found.start(), found.end(), self._characters.get(roles, _NOTHING)

    def _numeral(self, key: str) -> frozenset[str]:
        if key.isdecimal() and len(key) <= 4:
            return _numeral(int(key), len(key))
        digits = self._ordinal.fullmatch(key)
        if digits and 1 <= int(digits[1]) <= 31:
            return _NTH
        return _DECADE if _DECADES.fullmatch(key) else frozenset()

    def _is_counted(self, key: str, first: str) -> bool:
        """Whether a word is something that the number before it counts."""
        roles = self._roles.get(key, frozenset())
        if "uncounted" in roles or not key.isalpha() or first.isupper():
            return False
        return self._plural.fullmatch(key) is not None

    def roles(self, role: str) -> str:
        """All characters of words that may be this."""
        return "".join(char for roles, char in self._characters.items() if role in roles)


_NTH = frozenset({"day", "nth"})
_DECADE = frozenset({"years"})
_DECADES = re.compile(r"(?:\d\d)?\d0(?:s|ern?)")


def _numeral(number: int, digits: int) -> frozenset[str]:
    roles = {"digits", "number"}
    if digits == 4:
        roles.add("year")
    if digits <= 2:
        roles |= {"short", "day"} if 1 <= number <= 31 else {"short"}
    return frozenset(roles)


def _numerals() -> Iterator[frozenset[str]]:
    yield from (_numeral(number, digits) for number, digits in ((1, 1), (99, 2), (9, 3), (9, 4)))
    yield from (_NTH, _DECADE, frozenset())
    yield from (frozenset({kind}) for kind in _DIGITS)


class Row:
    """A text cut into words, numbers and punctuation, each in small letters with its place."""

    __slots__ = ("ends", "keys", "lexicon", "shape", "starts", "text")

    def __init__(self, text: str, lexicon: Lexicon) -> None:
        self.text = text
        self.lexicon = lexicon
        self.keys: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        shape = []
        for key, start, end, character in lexicon.cut(text):
            self.keys.append(key)
            self.starts.append(start)
            self.ends.append(end)
            shape.append(character)
        self.shape = "".join(shape)

    def key(self, place: int) -> str:
        """The word at a place; outside the text, the empty one."""
        return self.keys[place] if 0 <= place < len(self.keys) else ""

    def value(self, table: str, place: int) -> Any:
        """What the word at a place stands for in a table of the language, if it is there."""
        return self.lexicon.values.get(table, {}).get(self.key(place))

    def has(self, place: int, role: str) -> bool:
        return 0 <= place < len(self.shape) and self.shape[place] in _of_role(self.lexicon, role)

    def is_capital(self, place: int) -> bool:
        return place < len(self.keys) and self.text[self.starts[place]].isupper()

    def is_free(self, start: int, end: int) -> bool:
        """Whether the text from one position to another is not a piece of something longer."""
        text = self.text
        if text[start - 1 : start] in _SIGILS or text[end : end + 1] == "%":
            return False
        return not (_is_glued(text, start - 1) or _is_glued(text, end))


def _is_glued(text: str, position: int) -> bool:
    """Whether a sign holds together what stands on its two sides."""
    if position < 1:
        return False
    before, sign, after = (text[at : at + 1] for at in range(position - 1, position + 2))
    if sign == ",":
        return before.isdecimal() and after.isdecimal()
    return sign in _GLUE and before.isalnum() and after.isalnum()


def _is_phrase(word: str) -> bool:
    return re.fullmatch(r"\w+|[^\w\s]+", word) is None


def _lower(text: str) -> str:
    """In small letters, every one at the place it had."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(small if len(small := each.lower()) == 1 else each for each in text)
    return lower.replace("’", "'")


@functools.lru_cache(maxsize=1024)
def _of_role(lexicon: Lexicon, role: str) -> frozenset[str]:
    return frozenset(lexicon.roles(role))


@functools.cache
def lexicon(language: str) -> Lexicon:
    """The words of a language, read on first use."""
    import tomllib  # only where a text may name a time: it would cost every start

    file = Path(__file__).with_name(f"{language}.toml")
    return Lexicon(tomllib.loads(file.read_text(encoding="utf-8")))

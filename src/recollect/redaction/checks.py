"""Asks of a match what its pattern cannot: does the name tell, does the value look secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from recollect.patterns import LazyPattern
from recollect.redaction import values
from recollect.redaction.rules import MatchCheck
from recollect.redaction.values import NameKind, name_around, name_kind, words_of

Words = Mapping[str, frozenset[str]]

_QUOTES = frozenset("\"'`“‘«")
_AFTER_ORDERS = frozenset({"please", "yesterday", "today", "now", "thanks"})
_SET = LazyPattern(r"(?<![\w.])(?:[A-Z][A-Z0-9_]{2,60}|--[a-z][a-z-]{2,60})=\Z")
_FLAG = LazyPattern(r"(?<!\S)--[a-z-]{2,60}[ \t]{1,4}\Z")
_NEXT_WORD = LazyPattern(r"[ \t]+([^\W\d_]+)")
_WORD = LazyPattern(r"[^\W\d_]+")
CARD_WORDS_CHARS = 40  # in front of a number, in which it is called a card's
_BEFORE_PART, _AFTER_PART = frozenset("_.,/+=#-"), frozenset("_/+=-")  # of a longer id
TABLE_NAME_CHARS = 32  # of a name above a column
_CLAUSE_END = LazyPattern(r"[ \t]*(?:[.!?;)]|[\r\n]|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What a rule found: the secret it would be, in its text, and where the keyword stood."""

    text: str
    start: int
    end: int
    keyword: int
    kind: str

    @property
    def value(self) -> str:
        return self.text[self.start : self.end]

    @property
    def is_quoted(self) -> bool:
        return self.start > 0 and self.text[self.start - 1] in _QUOTES

    @property
    def following(self) -> str:
        return self.text[self.end : self.end + 24]


def kind_of(check: MatchCheck, found: Candidate, words: Words) -> str | None:
    """The kind of secret that a candidate is, or None if it is none."""
    return _CHECKS[check](found, words)


def fits_name(kind: NameKind, value: str, words: Words, *, is_quoted: bool) -> bool:
    """Whether a value is what its telling name announces."""
    match kind:
        case NameKind.PASSWORD:
            return values.looks_chosen(value, words, is_quoted=is_quoted)
        case NameKind.PIN:
            return value.isdigit() and 4 <= len(value) <= 8
        case NameKind.SOME_KEY:
            is_long = len(value) >= 20 and values.has_letters_and_digits(value)
            is_random = is_long and values.entropy(value) > 3.5 and not values.is_digest(value)
            return is_random and values.looks_made(value, words)
        case NameKind.TOKEN | NameKind.SECRET | NameKind.KEY:
            if " " in value:
                return is_quoted and kind is NameKind.SECRET and values.is_phrase(value, words)
            return values.looks_made(value, words)


def _always(found: Candidate, _words: Words) -> str | None:
    return found.kind


def _format(found: Candidate, words: Words) -> str | None:
    return None if values.stands_for_another(found.value, words) else found.kind


def _token(found: Candidate, words: Words) -> str | None:
    is_made = values.looks_made(found.value, words) and not values.is_digest(found.value)
    is_long_hex = len(found.value) >= 20 and "-" not in found.value
    return (
        found.kind if is_made or (is_long_hex and values.looks_made(found.value, words)) else None
    )


def _password(found: Candidate, words: Words) -> str | None:
    value = found.value
    if not found.is_quoted and values.is_code(value, found.following):
        return None
    is_one = values.looks_chosen(value, words, is_quoted=found.is_quoted)
    return found.kind if is_one else None


def _url(found: Candidate, words: Words) -> str | None:
    """Between a user and a host nearly anything is a password, but not what stands for one."""
    value = found.value
    is_too_plain = len(value) < 5 and value.isalpha()
    return None if is_too_plain or values.stands_for_another(value, words) else found.kind


def _named(found: Candidate, words: Words) -> str | None:
    kind = name_kind(name_around(found.text, found.keyword, words), words)
    if kind is None:
        return None
    value = found.value
    if not found.is_quoted and values.is_code(value, found.following):
        return None
    if kind is NameKind.PASSWORD and _is_set(found) and values.is_no_constant(value, words):
        return kind.value
    if not found.is_quoted and value.isalpha() and not _ends_there(found, words):
        return None
    return kind.value if fits_name(kind, value, words, is_quoted=found.is_quoted) else None


def _is_set(found: Candidate) -> bool:
    """Whether the value is a variable's or an option's: PGPASSWORD=value, --password=value."""
    return _SET.search(found.text, max(0, found.start - 80), found.start) is not None


def _shown(found: Candidate, words: Words) -> str | None:
    name = name_around(found.text, found.keyword, words)
    kind = None if name.lower() == "pass" else name_kind(name, words)  # a verb, more often
    value = found.value
    if kind is None or value.startswith("--"):
        return None
    is_option = _FLAG.search(found.text, max(0, found.start - 80), found.start) is not None
    if value.isalpha() and is_option and values.is_no_constant(value, words):
        return kind.value if kind is NameKind.PASSWORD else None
    if not values.has_letters_and_digits(value):
        return None
    if found.following[:1] in (":", "="):  # a name itself
        return None
    if values.is_code(value, found.following):
        return None
    if kind is NameKind.PASSWORD:
        return kind.value if _is_plainly_chosen(value, words) else None
    if kind is NameKind.PIN or len(value) < 16 or not values.looks_made(value, words):
        return None
    return kind.value if kind is NameKind.KEY or not values.is_digest(value) else None


def _is_plainly_chosen(value: str, words: Words) -> bool:
    return len(value) >= 6 and values.looks_chosen(value, words, is_quoted=False)


def _told(found: Candidate, words: Words) -> str | None:
    value = found.value
    if _is_about_passwords(found, words):
        return None
    if not found.is_quoted and values.is_code(value, found.following):
        return None
    if value.isdigit():
        return found.kind if 4 <= len(value) <= 24 else None
    if any(c.isdigit() for c in value) or not value.isalpha():
        is_one = values.looks_chosen(value, words, is_quoted=found.is_quoted)
        return found.kind if is_one else None
    if not values.looks_chosen(value, words, is_quoted=False):
        return None
    if not found.is_quoted and found.text.endswith(("to ", "To "), 0, found.start):
        word = _NEXT_WORD.match(found.following)
        return found.kind if word is None or word[1].lower() in _AFTER_ORDERS else None
    return found.kind if found.is_quoted or _ends_there(found, words) else None


def _ends_there(found: Candidate, words: Words) -> bool:
    """Nothing, punctuation or a connecting word follows: it was no adjective."""
    word = _NEXT_WORD.match(found.following)
    return word is None or word[1].lower() in words["connectors"]


def _label(found: Candidate) -> list[str]:
    """The words between a name and its value."""
    return _WORD.findall(found.text[found.keyword : found.start].lower())[1:]


def _is_about_passwords(found: Candidate, words: Words) -> bool:
    """The manager, the policy: what is done about passwords has no value to hide."""
    label = _label(found)
    opens_at = next((place for place, word in enumerate(label) if word in words["openers"]), None)
    about = label[:opens_at]
    return bool(words["about_passwords"] & {*about, *(word.removesuffix("s") for word in about)})


def _labelled(found: Candidate, words: Words) -> str | None:
    """What a password opens may be named."""
    label = _label(found)
    opens_at = next((place for place, word in enumerate(label) if word in words["openers"]), None)
    if _is_about_passwords(found, words):
        return None
    is_word = found.value.isalpha() and not found.is_quoted
    if is_word and (opens_at is None or _CLAUSE_END.match(found.following) is None):
        return None
    return _told(found, words)


def _told_before(found: Candidate, words: Words) -> str | None:
    value = found.value
    has_inner_capital = value.isalpha() and value[1:].lower() != value[1:] and not value.isupper()
    if not value.isalpha():
        return _told(found, words)
    is_one = (has_inner_capital or len(value) >= 9) and values.looks_chosen(
        value, words, is_quoted=False
    )
    return found.kind if is_one else None


def _told_key(found: Candidate, words: Words) -> str | None:
    value = found.value.rstrip(".")
    if not values.has_letters_and_digits(value) or not values.looks_made(value, words):
        return None
    if not found.is_quoted and values.is_code(value, found.following):
        return None
    name = name_around(found.text, found.keyword, words)
    kind = name_kind(name, words)
    if kind is None and (len(words_of(name)) != 1 or found.text[found.keyword - 1] in _QUOTES):
        return None
    is_doubtful = kind in (None, NameKind.SOME_KEY) or values.entropy(value) < 3.0
    if is_doubtful and (values.is_digest(value) or values.is_of_words(value)):
        return None
    if is_doubtful and values.entropy(value) < 3.5:
        return None
    return found.kind if kind is None else kind.value


def _phrase(found: Candidate, words: Words) -> str | None:
    return found.kind if values.is_phrase(found.value, words) else None


def _lock(found: Candidate, words: Words) -> str | None:
    around = found.text[max(0, found.keyword - 40) : found.start].lower()
    return found.kind if words["locks"] & set(re.findall(r"[a-z0-9-]+", around)) else None


def _pair(found: Candidate, words: Words) -> str | None:
    is_one = values.has_letters_and_digits(found.value) and _is_plainly_chosen(found.value, words)
    return found.kind if is_one else None


def _basic(found: Candidate, _words: Words) -> str | None:
    return found.kind if values.is_basic(found.value) else None


def _card(found: Candidate, words: Words) -> str | None:
    """Of the usual length and by itself, or called one: ids and times are numbers as well."""
    if not values.is_card(found.value):
        return None
    before = found.text[max(0, found.start - CARD_WORDS_CHARS) : found.start]
    is_usual = sum(map(str.isdigit, found.value)) in (15, 16)
    is_part = before[-1:] in _BEFORE_PART or found.following[:1] in _AFTER_PART
    if is_usual and (len(found.value.split()) > 1 or not is_part):
        return found.kind
    return found.kind if words["cards"] & set(_WORD.findall(before.lower())) else None


def _iban(found: Candidate, words: Words) -> str | None:
    return found.kind if values.is_iban(found.value, words) else None


def _column(found: Candidate, words: Words) -> str | None:
    """A cell in the column of its name, in a line of as many cells as the line of names."""
    head_start, head = _line(found.text, found.keyword)
    start, line = _line(found.text, found.start)
    mark = max("|,;\t", key=head.count)
    names = [name.strip(" |") for name in head.split(mark)]
    column = found.text.count(mark, head_start, found.keyword)
    is_table = head.count(mark) == line.count(mark) > 0 and max(map(len, names)) <= TABLE_NAME_CHARS
    if not is_table or found.text.count(mark, start, found.start) != column:
        return None
    kind = name_kind(names[column], words)
    is_one = kind and fits_name(kind, found.value, words, is_quoted=True)
    return kind.value if kind and is_one else None


def _line(text: str, place: int) -> tuple[int, str]:
    """Where the line of a place begins, and the line."""
    start = text.rfind("\n", 0, place) + 1
    end = text.find("\n", place)
    return start, text[start : len(text) if end < 0 else end].rstrip("\r")


_CHECKS: Mapping[MatchCheck, Callable[[Candidate, Words], str | None]] = {
    MatchCheck.ALWAYS: _always,
    MatchCheck.FORMAT: _format,
    MatchCheck.URL: _url,
    MatchCheck.TOKEN: _token,
    MatchCheck.PASSWORD: _password,
    MatchCheck.NAMED: _named,
    MatchCheck.SHOWN: _shown,
    MatchCheck.TOLD: _told,
    MatchCheck.LABELLED: _labelled,
    MatchCheck.TOLD_BEFORE: _told_before,
    MatchCheck.TOLD_KEY: _told_key,
    MatchCheck.PHRASE: _phrase,
    MatchCheck.LOCK: _lock,
    MatchCheck.PAIR: _pair,
    MatchCheck.BASIC: _basic,
    MatchCheck.CARD: _card,
    MatchCheck.IBAN: _iban,
    MatchCheck.COLUMN: _column,
}

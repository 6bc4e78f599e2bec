"""Rules: where to try a pattern, and whether its match is a secret.

All patterns are compiled when first tried. What a pattern cannot express is checked on the match:
whether the name in front of it says so, and whether the value looks secret.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from string import ascii_letters, digits

from recollect.patterns import LazyPattern

_Trie = dict[str, "_Trie"]


class At(StrEnum):
    """Where a match of a rule may begin."""

    KEYWORD = "keyword"
    ANYWHERE = "anywhere"


ALWAYS, FORMAT = "always", "format"  # checks that take a value as it stands


@dataclass(frozen=True, kw_only=True)
class SecretRule:
    """How one kind of secret looks. Without slots, so that the compiled pattern can be kept."""

    kind: str
    source: str
    keywords: tuple[str, ...] = ()
    at: At = At.ANYWHERE
    before: int = 0
    after: int = 200
    within_source: str | None = None
    group: int | str | None = None
    check: str = FORMAT
    entropy: float = 0.0
    min_length: int = 1
    allow: tuple[str, ...] = ()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source, re.ASCII)

    @cached_property
    def within(self) -> re.Pattern[str] | None:
        return None if self.within_source is None else re.compile(self.within_source, re.ASCII)

    @cached_property
    def allowed(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(source, re.ASCII) for source in self.allow)

    def secret_span(self, match: re.Match[str]) -> tuple[int, int]:
        """Where the secret of a match is: its group, else the first that took part, else all."""
        if self.group is not None:
            return match.span(self.group)
        for number in range(1, self.pattern.groups + 1):
            if match.start(number) >= 0:
                return match.span(number)
        return match.span()


@dataclass(frozen=True, kw_only=True)
class RuleSet:
    """Rules in the order of their rank, and the vocabulary that their checks share."""

    rules: tuple[SecretRule, ...]
    words: Mapping[str, frozenset[str]]

    @cached_property
    def everywhere(self) -> tuple[int, ...]:
        """The rules that search all of a text that has one of their keywords."""
        return tuple(i for i, rule in enumerate(self.rules) if rule.at is At.ANYWHERE)

    @cached_property
    def by_keyword(self) -> Mapping[str, tuple[list[int], list[int]]]:
        """The rules to try where a keyword stands. None of the keywords begins another.

        First those whose match begins there, which are nearly all; then those that look in front
        of it or in a region behind it.
        """
        keyed = [(i, rule) for i, rule in enumerate(self.rules) if rule.at is At.KEYWORD]
        words = {word for _, rule in keyed for word in rule.keywords}
        shortest = {word: _shortest_beginning(word, words) for word in words}
        found: dict[str, tuple[list[int], list[int]]]
        found = {word: ([], []) for word in sorted(set(shortest.values()))}
        for i, rule in keyed:
            is_roaming = bool(rule.before or rule.within_source is not None)
            for beginning in {shortest[word] for word in rule.keywords}:
                found[beginning][is_roaming].append(i)
        return found

    @cached_property
    def keywords(self) -> re.Pattern[str]:
        """All keywords in one pattern, for a text in lower case."""
        return re.compile(_trie_source(self.by_keyword))


def keyword_hits(
    rules: RuleSet, lowered: str, taken: Iterable[tuple[int, int]] = ()
) -> Iterator[tuple[int, str]]:
    """Every place where a keyword begins, outside the spans taken; keywords may overlap."""
    search = rules.keywords.search
    spans = iter(taken)
    start, end = next(spans, (len(lowered), len(lowered)))
    match = search(lowered)
    while match is not None:
        place = match.start()
        while place >= end:
            start, end = next(spans, (len(lowered), len(lowered)))
        if place >= start:
            match = search(lowered, end)
            continue
        yield place, match[0]
        match = search(lowered, place + 1)


def _shortest_beginning(word: str, words: AbstractSet[str]) -> str:
    """The shortest of some words that a word of theirs begins with; itself, if with no other."""
    beginnings = (word[:length] for length in range(1, len(word)))
    return next((each for each in beginnings if each in words), word)


def _trie_source(words: Mapping[str, object]) -> str:
    """An alternation that looks at each character once, as no word begins another."""
    trie: _Trie = {}
    for word in sorted(words):
        node = trie
        for character in word:
            node = node.setdefault(character, {})
    return _node_source(trie)


def _node_source(node: _Trie) -> str:
    branches = [re.escape(character) + _node_source(inner) for character, inner in node.items()]
    match branches:
        case []:
            return ""
        case [only]:
            return only
        case _:
            return f"(?:{'|'.join(branches)})"


Words = Mapping[str, frozenset[str]]

NAME_CHARS_MAX = 80


class NameKind(StrEnum):
    """What a telling name is about; its value is what a placeholder says."""

    PASSWORD = "password"
    PIN = "pin"
    TOKEN = "token"
    SECRET = "secret"
    KEY = "api-key"
    SOME_KEY = "key"  # a key of something: its value has to speak for itself


_PARTS = LazyPattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|[0-9]+")
# A word in one piece that ends like this is read as two: PGPASSWORD, authtoken, clientsecret.
_ENDINGS = (
    *(("password", NameKind.PASSWORD), ("passwd", NameKind.PASSWORD), ("token", NameKind.TOKEN)),
    *(("secret", NameKind.SECRET), ("apikey", NameKind.KEY), ("passphrase", NameKind.PASSWORD)),
    *(("pwd", NameKind.PASSWORD), ("passwort", NameKind.PASSWORD)),
)
_KINDS = (
    *(("password", NameKind.PASSWORD), ("pin", NameKind.PIN), ("token", NameKind.TOKEN)),
    *(("secret", NameKind.SECRET), ("key", NameKind.KEY)),
)


def words_of(name: str) -> list[str]:
    """`DB_PASSWORD`, `dbPassword` and `db-password` are the words db and password."""
    return [part.lower() for part in _PARTS.findall(name[-NAME_CHARS_MAX:])]


def name_kind(name: str, words: Words) -> NameKind | None:
    """The kind of secret that a name announces."""
    parts = [part for part in words_of(name) if not part.isdigit()]
    for place in range(len(parts) - 1, -1, -1):
        kind = _word_kind(parts, place, words)
        if kind is None:
            continue
        after, before = set(parts[place + 1 :]), set(parts[:place])
        if after & words["not_after"] or before & words["not_before"]:
            return None
        if before & words["not_joined"]:
            return None
        return kind
    return None


def _word_kind(parts: list[str], place: int, words: Words) -> NameKind | None:
    word = parts[place]
    for listed, kind in _KINDS:
        if word in words[listed]:
            return kind
    if word in ("key", "keys"):
        if place == 0:
            return None
        return NameKind.KEY if parts[place - 1] in words["keyed"] else NameKind.SOME_KEY
    for ending, kind in _ENDINGS:
        if len(word) > len(ending) and word.endswith(ending):
            return kind
    return None


_NAME = LazyPattern(
    r"""[^\s"'`=:,;(){}\[\]<>\\|&?*%@：＝]{2,64}(?:[ \t](?i:key|token|secret|code)\b)?"""
)
_WORD_CHARS = ascii_letters + digits
_JOINED_CHARS = _WORD_CHARS + "_.-"


def name_around(text: str, keyword: int, words: Words) -> str:
    """The name that a keyword is part of, with the word in front of it if that says more."""
    before = text[max(0, keyword - 48) : keyword]
    apart = before.rstrip(_JOINED_CHARS)
    if apart.endswith(":") and (apart[-2:-1] == ":" or apart[-2:-1].isdigit()):
        return ""  # A::B::Key, arn:…:1234:secret:…: a part of an address
    rest = _NAME.match(text, keyword)
    name = before[len(apart) :] + ("" if rest is None else rest[0])
    if apart[-1:] not in (" ", "\t"):
        return name
    word = apart[len(apart[:-1].rstrip(_WORD_CHARS)) : -1]
    says_more = word.lower() in words["keyed"] or word.lower() in words["not_before"]
    return f"{word} {name}" if says_more else name


LONG_CHARS_MAX = 2048  # what is looked at of a value; judging more would say nothing new

_VARIABLE = LazyPattern(
    r"\$\{|\$\(|\$[A-Za-z_][\w.-]*$|%[A-Za-z_]\w*%$|\{\{|\{[A-Za-z_]|<[^>]*>?$|@\{|\[\w*\]?$|!\w+$|&\w+$"
    r"|#\{|\$\$|\*\w+$|%[sdvq]$|%\(\w+\)s|env:|vault:|op://|arn:|ref\+",
    re.ASCII,
)
_MASKED = LazyPattern(r"([xX*•.?#_-])\1{3,}|\*{3}|\.\.\.|…")
_SAME = LazyPattern(r"(.)\1{7,}", re.DOTALL)
_URL = LazyPattern(r"[A-Za-z][A-Za-z0-9+.-]*://|www\.|mailto:", re.ASCII)
_VERSION = LazyPattern(r"[\^~<>=v]{0,3}[0-9]+(\.[0-9x*]+)+([-+.]?[a-z]+[.0-9]*)?$", re.ASCII)
_DATE = LazyPattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?$|[0-9]{1,2}:[0-9]{2}", re.ASCII)
_QUANTITY = LazyPattern(r"[0-9][0-9.,_]*(%|[a-zA-Zµ]{1,3}|px|rem|tokens|bits?|bytes?)?$", re.ASCII)
_IDENTIFIER_PATH = LazyPattern(r"[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)*[!?]?$", re.ASCII)
_UUID = LazyPattern(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", re.ASCII)
_HEX = LazyPattern(r"(0x)?[0-9a-fA-F]+$", re.ASCII)
_HASH = LazyPattern(
    r"\$(2[aby]|argon2\w*|scrypt|pbkdf2\S*|[156])\$|(sha|SHA|md5:)\w*[:-]", re.ASCII
)
_SHOUTED = LazyPattern(r"[A-Z]{1,16}[0-9]{0,2}(?:_(?:[A-Z]{1,16}[0-9]{0,3}|[0-9]{1,4}))+$")
_PATTERN = LazyPattern(r"\(\?|\[.*\]|\{.*\}")
_CALLED = LazyPattern(r"(?:^|[.+*/&|!-])[A-Za-z_]\w*\.?$", re.ASCII)
_SEPARATORS = LazyPattern(r"[-_./\\:@# ]+")
_PATH_PART = LazyPattern(r"[^\W\d_]+[0-9]{0,3}$")
RANDOM_CHARS_MIN = 12
USUAL_PERCENT_MAX = 58
_ABOUT = ("pass", "token", "secret", "pwd", "cred", "input", "value", "field", "config")
_LETTERS = LazyPattern(r"[^\W\d_]+$")


def stands_for_another(value: str, words: Words) -> bool:
    """A variable, a mask, a constant or an example: there is nothing to hide."""
    lowered = value.lower()
    return (
        lowered in words["constants"]
        or _VARIABLE.match(value) is not None
        or _MASKED.search(value) is not None
        or any(len(match[0]) * 3 >= len(value) for match in _SAME.finditer(value))
        or any(part in lowered for part in words["stand_ins"])
        or (len(value) >= 6 and len(set(value)) <= 2)
    )


def is_code(value: str, following: str) -> bool:
    """A bare value that is an expression: a call, an index, an attribute, a name."""
    if following[:1] in ("(", "[") and _CALLED.search(value):
        return True
    if not _IDENTIFIER_PATH.match(value):
        return False
    if value.startswith("test_"):
        return True
    if "." in value or "->" in value or "::" in value:
        return is_of_words(value)
    return "_" in value and (not any(c.isdigit() for c in value) or _is_shouted(value))


def is_of_words(value: str) -> bool:
    """Letters in runs as long as words have; random characters change sort at every other one."""
    parts = words_of(value)
    return bool(parts) and sum(map(len, parts)) >= 3 * len(parts)


def _is_shouted(value: str) -> bool:
    return _SHOUTED.match(value) is not None


def is_of_another_sort(value: str) -> bool:
    """An address, a path, a version, a date, a quantity, a digest of a password."""
    return (
        _URL.match(value) is not None
        or _VERSION.match(value) is not None
        or _DATE.match(value) is not None
        or _HASH.match(value) is not None
        or _is_shouted(value)
        or _is_path(value)
    )


def _is_path(value: str) -> bool:
    """Slashes between words; a random string with slashes has no words between them."""
    if "/" not in value and "\\" not in value:
        return False
    parts = [part for part in _SEPARATORS.split(value) if part]
    wordlike = sum(1 for part in parts if part.isdigit() or _PATH_PART.match(part))
    if value[0] in "/~." or value[1:3] == ":\\":
        return wordlike * 2 >= len(parts) and max(map(len, parts), default=0) < 24
    return wordlike == len(parts) and len(parts) > 1


def is_wordy(value: str) -> bool:
    """Words and short numbers with separators between them: `app-secrets-2`."""
    parts = [part for part in _SEPARATORS.split(value) if part]
    return len(parts) > 1 and all(
        _is_plain_word(part) or (part.isdigit() and len(part) <= 4) for part in parts
    )


def _is_plain_word(part: str) -> bool:
    return (
        len(part) <= 16
        and bool(_LETTERS.match(part))
        and part[1:] in (part[1:].lower(), part[1:].upper())
    )


def is_digest(value: str) -> bool:
    """An id or a digest that is seen in all logs: a UUID, or nothing but hexadecimal digits."""
    return _UUID.match(value) is not None or _HEX.match(value) is not None


def has_letters_and_digits(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def entropy(value: str) -> float:
    """Bits per character, by the characters' own frequencies."""
    if not value:
        return 0.0
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())


def looks_made(value: str, words: Words) -> bool:
    """Like a token: long enough, mixed, no words, no number, no path."""
    value = value[:LONG_CHARS_MAX]
    if len(value) < 8 or " " in value or stands_for_another(value, words):
        return False
    if _PATTERN.search(value) or _QUANTITY.match(value):
        return False
    if is_of_another_sort(value) or is_wordy(value):
        return False
    if has_letters_and_digits(value):
        return len(value) >= 12 or entropy(value) > 2.2
    mixed_case = value.lower() != value and value.upper() != value
    has_symbol = any(not c.isalnum() and c not in "-_./: " for c in value)
    if has_symbol:
        return entropy(value) > 2.5
    if mixed_case and len(value) >= 20 and entropy(value) > 3.8 and not _is_camel(value):
        return True
    return len(value) >= RANDOM_CHARS_MIN and is_random(value, words)


def is_random(value: str, words: Words) -> bool:
    """Letters that no language puts together so."""
    lowered = value.lower()
    pairs = [lowered[at : at + 2] for at in range(len(lowered) - 1)]
    usual = sum(pair in words["pairs"] for pair in pairs)
    return value.isalpha() and value.isascii() and usual * 100 < USUAL_PERCENT_MAX * len(pairs)


def is_no_constant(value: str, words: Words) -> bool:
    """Behind a name that is set, nearly anything is its value."""
    is_plain = value.lower() in words["plain"] or stands_for_another(value, words)
    return len(value) >= 6 and value.isalpha() and not is_plain and not _speaks_of_secrets(value)


def _is_camel(value: str) -> bool:
    """Upper case letters far enough apart to begin words."""
    return len(re.findall(r"[A-Z]", value)) * 4 <= len(value)


def looks_chosen(value: str, words: Words, *, is_quoted: bool) -> bool:
    """Like a password after a name that says so: nearly anything that is no code and no word."""
    value = value[:LONG_CHARS_MAX]
    if len(value) < 4 or stands_for_another(value, words):
        return False
    if " " in value:
        return is_quoted and (is_phrase(value, words) or _is_spaced(value, words))
    if is_of_another_sort(value):
        return False
    if value.lstrip("-").isdigit():
        return value.isdigit()
    letters_only = _LETTERS.match(value) is not None
    if letters_only:
        return is_no_plain_word(value, words) and not _speaks_of_secrets(value)
    if any(c.isdigit() for c in value):
        return len(value) >= 5 and not re.match(r"[0-9]{1,3}[a-z]{1,3}$", value)
    return len(value) >= 6 and not is_wordy(value) and any(c.isalpha() for c in value)


def _is_spaced(value: str, words: Words) -> bool:
    """A password with a blank in it: few parts, a digit, no words of a sentence."""
    parts = value.lower().split()
    is_short = len(parts) <= 3 and len(value) <= 40 and has_letters_and_digits(value)
    return is_short and not words["sentence"] & set(parts) and not _speaks_of_secrets(value)


def is_no_plain_word(value: str, words: Words) -> bool:
    """A word of letters that one would not expect where a password may stand."""
    lowered = value.lower()
    if len(value) < 6 or lowered in words["plain"] or lowered in words["constants"]:
        return False
    return not any(lowered.endswith(ending) for ending in words["plain_endings"])


def _speaks_of_secrets(value: str) -> bool:
    """An identifier: `confirmPassword`, `userToken`, `getSecret`."""
    return any(part.startswith(_ABOUT) or part == "key" for part in words_of(value))


def is_phrase(value: str, words: Words) -> bool:
    """Three words or more that make no sentence."""
    parts = re.split(r"[ -]+", value.strip())
    return (
        3 <= len(parts) <= 25
        and all(_LETTERS.match(part) and part == part.lower() for part in parts)
        and not words["sentence"] & set(parts)
    )


def is_basic(value: str) -> bool:
    """Base64 of `user:password`."""
    padded = value.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        plain = base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True).decode()
    except (binascii.Error, ValueError):  # not base64, or of no text
        return False
    return ":" in plain and plain.isprintable()


def is_card(value: str) -> bool:
    """Digits whose last one is the check digit of the others, and not all of them the same."""
    digits = [int(c) for c in value if c.isdigit()]
    doubled = [n * 2 - 9 if n > 4 else n * 2 for n in digits[-2::-2]]
    return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def is_iban(value: str, words: Words) -> bool:
    """An account number as long as its country's, whose check digits are right."""
    compact = "".join(c for c in value if c.isalnum())
    if f"{compact[:2]}{len(compact)}" not in words["ibans"]:
        return False
    return int("".join(str(int(c, 36)) for c in compact[4:] + compact[:4])) % 97 == 1


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


def kind_of(check: str, found: Candidate, words: Words) -> str | None:
    """The kind of secret that a candidate is, or None if it is none."""
    told = CHECKS[check](found, words)
    return (found.kind if told else None) if isinstance(told, bool) else told


def fits_name(kind: NameKind, value: str, words: Words, *, is_quoted: bool) -> bool:
    """Whether a value is what its telling name announces."""
    match kind:
        case NameKind.PASSWORD:
            return looks_chosen(value, words, is_quoted=is_quoted)
        case NameKind.PIN:
            return value.isdigit() and 4 <= len(value) <= 8
        case NameKind.SOME_KEY:
            is_long = len(value) >= 20 and has_letters_and_digits(value)
            is_random = is_long and entropy(value) > 3.5 and not is_digest(value)
            return is_random and looks_made(value, words)
        case NameKind.TOKEN | NameKind.SECRET | NameKind.KEY:
            if " " in value:
                return is_quoted and kind is NameKind.SECRET and is_phrase(value, words)
            return looks_made(value, words)


def _is_token(found: Candidate, words: Words) -> bool:
    value = found.value
    is_plain = is_digest(value) and (len(value) < 20 or "-" in value)
    return not is_plain and looks_made(value, words)


def _is_password(found: Candidate, words: Words) -> bool:
    if not found.is_quoted and is_code(found.value, found.following):
        return False
    return looks_chosen(found.value, words, is_quoted=found.is_quoted)


def _is_in_url(found: Candidate, words: Words) -> bool:
    """Between a user and a host nearly anything is a password, but not what stands for one."""
    value = found.value
    is_too_plain = len(value) < 5 and value.isalpha()
    return not is_too_plain and not stands_for_another(value, words)


def _named(found: Candidate, words: Words) -> str | None:
    kind = name_kind(name_around(found.text, found.keyword, words), words)
    if kind is None:
        return None
    value = found.value
    if not found.is_quoted and is_code(value, found.following):
        return None
    if kind is NameKind.PASSWORD and _is_set(found) and is_no_constant(value, words):
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
    if value.isalpha() and is_option and is_no_constant(value, words):
        return kind.value if kind is NameKind.PASSWORD else None
    if not has_letters_and_digits(value):
        return None
    if found.following[:1] in (":", "="):  # a name itself
        return None
    if is_code(value, found.following):
        return None
    if kind is NameKind.PASSWORD:
        return kind.value if _is_plainly_chosen(value, words) else None
    if kind is NameKind.PIN or len(value) < 16 or not looks_made(value, words):
        return None
    return kind.value if kind is NameKind.KEY or not is_digest(value) else None


def _is_plainly_chosen(value: str, words: Words) -> bool:
    return len(value) >= 6 and looks_chosen(value, words, is_quoted=False)


def _told(found: Candidate, words: Words) -> bool:
    value = found.value
    if _is_about_passwords(found, words):
        return False
    if not found.is_quoted and is_code(value, found.following):
        return False
    if value.isdigit():
        return 4 <= len(value) <= 24
    if any(c.isdigit() for c in value) or not value.isalpha():
        return looks_chosen(value, words, is_quoted=found.is_quoted)
    if not looks_chosen(value, words, is_quoted=False):
        return False
    if not found.is_quoted and found.text.endswith(("to ", "To "), 0, found.start):
        word = _NEXT_WORD.match(found.following)
        return word is None or word[1].lower() in _AFTER_ORDERS
    return found.is_quoted or _ends_there(found, words)


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


def _labelled(found: Candidate, words: Words) -> bool:
    """What a password opens may be named."""
    label = _label(found)
    opens_at = next((place for place, word in enumerate(label) if word in words["openers"]), None)
    if _is_about_passwords(found, words):
        return False
    is_word = found.value.isalpha() and not found.is_quoted
    if is_word and (opens_at is None or _CLAUSE_END.match(found.following) is None):
        return False
    return _told(found, words)


def _told_before(found: Candidate, words: Words) -> bool:
    value = found.value
    has_inner_capital = value.isalpha() and value[1:].lower() != value[1:] and not value.isupper()
    if not value.isalpha():
        return _told(found, words)
    return (has_inner_capital or len(value) >= 9) and looks_chosen(value, words, is_quoted=False)


def _told_key(found: Candidate, words: Words) -> str | None:
    value = found.value.rstrip(".")
    if not has_letters_and_digits(value) or not looks_made(value, words):
        return None
    if not found.is_quoted and is_code(value, found.following):
        return None
    name = name_around(found.text, found.keyword, words)
    kind = name_kind(name, words)
    if kind is None and (len(words_of(name)) != 1 or found.text[found.keyword - 1] in _QUOTES):
        return None
    is_doubtful = kind in (None, NameKind.SOME_KEY) or entropy(value) < 3.0
    if is_doubtful and (is_digest(value) or is_of_words(value)):
        return None
    if is_doubtful and entropy(value) < 3.5:
        return None
    return found.kind if kind is None else kind.value


def _lock(found: Candidate, words: Words) -> bool:
    around = found.text[max(0, found.keyword - 40) : found.start].lower()
    return bool(words["locks"] & set(re.findall(r"[a-z0-9-]+", around)))


def _pair(found: Candidate, words: Words) -> bool:
    return has_letters_and_digits(found.value) and _is_plainly_chosen(found.value, words)


def _card(found: Candidate, words: Words) -> bool:
    """Of the usual length and by itself, or called one: ids and times are numbers as well."""
    if not is_card(found.value):
        return False
    before = found.text[max(0, found.start - CARD_WORDS_CHARS) : found.start]
    is_usual = sum(map(str.isdigit, found.value)) in (15, 16)
    is_part = before[-1:] in _BEFORE_PART or found.following[:1] in _AFTER_PART
    if is_usual and (len(found.value.split()) > 1 or not is_part):
        return True
    return not words["cards"].isdisjoint(_WORD.findall(before.lower()))


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


# What is asked of a match besides its pattern, by the name that rules have for it. Some say better
# than the rule which kind of secret it is.
CHECKS: Mapping[str, Callable[[Candidate, Words], bool | str | None]] = {
    ALWAYS: lambda _found, _words: True,
    FORMAT: lambda found, words: not stands_for_another(found.value, words),  # no `sk-xxxx`
    "token": _is_token,  # looks made by a machine
    "password": _is_password,  # looks like one that a person or a machine chose
    "named": _named,  # the name in front of it is telling and the value fits the name
    "shown": _shown,  # the same with nothing but a blank between: it has to be plainly one
    "told": _told,  # prose: "the password is …"
    "labelled": _labelled,  # prose: "password for the laptop: …"
    "told-before": _told_before,  # prose: "… is the password"
    "told-key": _told_key,  # prose: "the api key is …"
    "phrase": lambda found, words: is_phrase(found.value, words),  # words that make no sentence
    "lock": _lock,  # a code that opens something
    "url": _is_in_url,  # between a user and a host
    "pair": _pair,  # user / password
    "basic": lambda found, _words: is_basic(found.value),
    "card": _card,
    "iban": lambda found, words: is_iban(found.value, words),
    "column": _column,  # in a table, below a telling name
}

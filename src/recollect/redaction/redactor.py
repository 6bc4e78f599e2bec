"""Finds secrets, in texts and in JSON values, and replaces them by placeholders.

A placeholder keeps equality visible and tells nothing: only the store with its salt can make it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from recollect.errors import InvalidValue
from recollect.patterns import LazyPattern
from recollect.redaction.checks import (
    ALWAYS,
    FORMAT,
    Candidate,
    NameKind,
    RuleSet,
    SecretRule,
    Words,
    entropy,
    fits_name,
    keyword_hits,
    kind_of,
    name_kind,
)

PLACEHOLDER = LazyPattern(r"\[redacted:[a-z0-9-]{1,64}:[0-9a-f]{8}\]")
PASSES_MAX = 8  # a secret found only after another was replaced is rare; a chain of eight is none
NUMBER_DIGITS_MIN = 13  # of a card
_TRAILING = ".,:;…*"
# What `{"name": "DB_PASSWORD", "value": "…"}` calls the two.
NAMING_KEYS = ("name", "key", "header", "variable", "id")
CARD_MIN = 10**12
PIN_MIN = 1000  # a smaller number is a count, or true
VALUE_KEYS = frozenset({"value", "val", "secret_value", "stringvalue", "default"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A secret of a kind, at text[start:end]."""

    kind: str
    start: int
    end: int


class Redactor:
    """Redacts by rules. Nothing in it changes after it was made: threads may share it."""

    def __init__(self, rules: RuleSet, allow: frozenset[str], salt: bytes) -> None:
        if not salt:
            raise InvalidValue("redaction needs a salt: without one, placeholders can be guessed")
        self._rules = rules
        self._allow = allow
        self._salt = salt
        self._key = blake2b(salt, digest_size=32).digest()

    def keyed(self, space: str) -> Redactor:
        """The same, whose placeholders mean nothing outside a space: equal secrets of two tenants
        look different."""
        salt = blake2b(space.encode(errors="surrogatepass"), key=self._salt[:64], digest_size=16)
        return Redactor(self._rules, self._allow, salt.digest())

    def find(self, text: str) -> list[Finding]:
        """The secrets in a text, in order, none overlapping another or a placeholder."""
        taken = [match.span() for match in PLACEHOLDER.finditer(text)]
        found = sorted(
            (start, end, rank, kind)
            for rank, start, end, kind in self._candidates(text, taken)
            if not _overlaps_any(taken, start, end)
        )
        return _merged(found)

    def redact(self, text: str) -> str:
        """The text with every secret replaced; redacting the result changes nothing."""
        for _ in range(PASSES_MAX):
            findings = self.find(text)
            if not findings:
                break
            text = self._replaced(text, findings)
        return text

    def redact_name(self, name: str) -> str:
        """A name with every secret replaced: also in one of joined words, as slugs and tags are."""
        name = self.redact(name)
        if sum(map(str.isdigit, name)) < NUMBER_DIGITS_MIN:
            return name
        parted = name.replace("-", " ").replace("_", " ")
        redacted = self.redact(parted)
        return name if redacted == parted else redacted

    def redact_json(self, value: Any) -> Any:
        """A redacted copy of a JSON value: texts by the rules, values by the names they have."""
        walk = _Walk(self, self._rules.words)
        root: list[Any] = [None]
        walk.todo.append((root, 0, value, None))
        while walk.todo:  # without recursion, so that no depth of nesting is too much
            walk.step(*walk.todo.pop())
        return root[0]

    def placeholder(self, kind: str, secret: str) -> str:
        """What stands for a secret, unless it is allowed: equal secrets, equal placeholders."""
        if secret in self._allow:
            return secret
        data = secret.encode("utf-8", "surrogatepass")
        return f"[redacted:{kind}:{blake2b(data, key=self._key, digest_size=4).hexdigest()}]"

    def _replaced(self, text: str, findings: list[Finding]) -> str:
        parts, done = [], 0
        for each in findings:
            secret = text[each.start : each.end]
            parts += [text[done : each.start], self.placeholder(each.kind, secret)]
            done = each.end
        return "".join([*parts, text[done:]])

    def _candidates(
        self, text: str, taken: list[tuple[int, int]]
    ) -> Iterator[tuple[int, int, int, str]]:
        """(rank, start, end, kind) of whatever a rule takes for a secret."""
        lowered = text.replace("İ", "i").lower()  # the one letter that grows in lower case
        rules = self._rules.rules
        for rank in self._rules.everywhere:
            rule = rules[rank]
            if not rule.keywords or any(map(lowered.__contains__, rule.keywords)):
                for match in rule.pattern.finditer(text):
                    yield from self._judged(rank, text, match, match.start())
        looked: dict[int, int] = {}  # up to where, by rule: nothing is matched twice
        for place, keyword in keyword_hits(self._rules, lowered, taken):
            anchored, roaming = self._rules.by_keyword[keyword]
            for rank in anchored:
                if place >= looked.get(rank, 0):
                    found = rules[rank].pattern.match(text, place)
                    if found is not None:
                        looked[rank] = found.end()
                        yield from self._judged(rank, text, found, place)
            for rank in roaming:
                matches, end = _around(rules[rank], text, place, looked.get(rank, 0))
                looked[rank] = max(end, place + len(keyword))
                for found in matches:
                    yield from self._judged(rank, text, found, place)

    def _judged(
        self, rank: int, text: str, match: re.Match[str], keyword: int
    ) -> Iterator[tuple[int, int, int, str]]:
        rule = self._rules.rules[rank]
        start, end = rule.secret_span(match)
        if rule.check not in (ALWAYS, FORMAT):
            # Without the punctuation of the sentence it stands in.
            end = start + len(text[start:end].rstrip(_TRAILING))
        if end - start < rule.min_length or end <= start:
            return
        value = text[start:end]
        if value in self._allow or any(each.search(value) for each in rule.allowed):
            return
        if rule.entropy and entropy(value) < rule.entropy:
            return
        found = Candidate(text=text, start=start, end=end, keyword=keyword, kind=rule.kind)
        kind = kind_of(rule.check, found, self._rules.words)
        if kind is not None:
            yield rank, start, end, kind


def _around(
    rule: SecretRule, text: str, place: int, looked: int
) -> tuple[Iterable[re.Match[str]], int]:
    """What a rule finds in front of a keyword or in a region behind it, and how far it looked."""
    if rule.within is None:
        start, end = max(place - rule.before, looked, 0), min(place + rule.after, len(text))
        found = rule.pattern.search(text, start, end)
        return ((), looked) if found is None else ((found,), found.end())
    region = rule.within.match(text, place) if place >= looked else None
    if region is None:
        return (), looked
    return rule.pattern.finditer(text, *region.span(1)), region.end(1)


def _overlaps_any(taken: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of the spans, which are in order, has a character in common with this one."""
    place = bisect_left(taken, (end, end)) - 1
    return place >= 0 and taken[place][1] > start


def _merged(found: list[tuple[int, int, int, str]]) -> list[Finding]:
    """One finding for all that overlap: all of their text, named by the first in rank."""
    findings: list[Finding] = []
    best = 0
    for start, end, rank, kind in found:
        if findings and start < findings[-1].end:
            last = findings[-1]
            if rank < best:
                best = rank
            else:
                kind = last.kind
            findings[-1] = Finding(kind=kind, start=last.start, end=max(end, last.end))
        else:
            best = rank
            findings.append(Finding(kind=kind, start=start, end=end))
    return findings


class _Walk:
    """What is still to be copied, each with the place of its copy and the kind its key says."""

    def __init__(self, redactor: Redactor, words: Words) -> None:
        self.redactor = redactor
        self.words = words
        self.todo: list[tuple[Any, Any, Any, NameKind | None]] = []

    def step(self, copy: Any, place: Any, value: Any, kind: NameKind | None) -> None:
        match value:
            case str():
                copy[place] = self._text(value, kind)
            case Mapping():
                copy[place] = self._mapping(value)
            case list() | tuple():
                copy[place] = self._list(value, kind)
            case int() if kind in (NameKind.PIN, NameKind.PASSWORD) and value >= PIN_MIN:
                placeholder = self.redactor.placeholder(kind.value, str(value))
                copy[place] = value if placeholder == str(value) else placeholder
            case _:
                copy[place] = value

    def _mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        copy: dict[Any, Any] = {}
        names = (value.get(key) for key in NAMING_KEYS)
        kinds = (name_kind(name, self.words) for name in names if isinstance(name, str))
        told = next((kind for kind in kinds if kind is not None), None)
        for key, inner in value.items():
            is_text = isinstance(key, str)
            place = self.redactor.redact(key) if is_text else key
            copy[place] = None  # keeps the order: what is to do is done from the end
            kind = name_kind(key, self.words) if is_text else None
            if kind is None and place != key:  # without the secret in it, it may say more
                kind = name_kind(place, self.words)
            if type(inner) is int and is_text and inner >= CARD_MIN:
                inner = self._card(key, inner)
            if kind is None and is_text and key.lower() in VALUE_KEYS:
                kind = told
            self.todo.append((copy, place, inner, kind))
        return copy

    def _list(self, value: list[Any] | tuple[Any, ...], kind: NameKind | None) -> list[Any]:
        copy: list[Any] = [None] * len(value)
        for place, inner in enumerate(value):
            flagged = self._flag_kind(value[place - 1]) if place else None
            self.todo.append((copy, place, inner, flagged or kind))
        return copy

    def _flag_kind(self, before: Any) -> NameKind | None:
        """In a list of arguments, `--password` announces what comes next."""
        is_flag = isinstance(before, str) and before.startswith("--") and "=" not in before
        return name_kind(before, self.words) if is_flag else None

    def _text(self, value: str, kind: NameKind | None) -> str:
        redacted = self.redactor.redact(value)
        if kind is None or PLACEHOLDER.search(redacted):  # its format says more than its key
            return redacted
        is_secret = fits_name(kind, value, self.words, is_quoted=True)
        return self.redactor.placeholder(kind.value, value) if is_secret else redacted

    def _card(self, key: str, value: int) -> int | str:
        """A number that its key calls a card's, as text is read."""
        said = f"{key.replace('_', ' ')} {value}"
        is_one = self.redactor.redact(said) != said
        return self.redactor.placeholder("card-number", str(value)) if is_one else value

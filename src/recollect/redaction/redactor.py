"""Finds secrets and replaces them by placeholders that keep equality visible and tell nothing."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from recollect.redaction import values
from recollect.redaction.checks import Candidate, kind_of
from recollect.redaction.placeholders import PLACEHOLDER, Placeholders
from recollect.redaction.rules import Check, Rule, RuleSet, keyword_hits
from recollect.redaction.structure import redact_value

PASSES_MAX = 8  # a secret found only after another was replaced is rare; a chain of eight is none
NUMBER_DIGITS_MIN = 13  # of a card
_TRAILING = ".,:;…*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A secret of a kind, at text[start:end]."""

    kind: str
    start: int
    end: int


class Redactor:
    """Redacts by rules. Nothing in it changes after it was made: threads may share it."""

    def __init__(self, rules: RuleSet, allow: frozenset[str], salt: bytes) -> None:
        self._rules = rules
        self._allow = allow
        self._salt = salt
        self._placeholders = Placeholders(salt)

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

    def is_clean(self, text: str) -> bool:
        return not self.find(text)

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
        return redact_value(value, self.redact, self._known_secret, self._rules.words)

    def _known_secret(self, kind: str, secret: str) -> str:
        """The placeholder of a value that its key gave away, unless it is allowed."""
        return secret if secret in self._allow else self._placeholders.of(kind, secret)

    def _replaced(self, text: str, findings: list[Finding]) -> str:
        parts, done = [], 0
        for each in findings:
            secret = text[each.start : each.end]
            parts += [text[done : each.start], self._placeholders.of(each.kind, secret)]
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
            for rank in self._rules.anchored[keyword]:
                if place >= looked.get(rank, 0):
                    found = rules[rank].pattern.match(text, place)
                    if found is not None:
                        looked[rank] = found.end()
                        yield from self._judged(rank, text, found, place)
            for rank in self._rules.roaming[keyword]:
                matches, end = _around(rules[rank], text, place, looked.get(rank, 0))
                looked[rank] = max(end, place + len(keyword))
                for found in matches:
                    yield from self._judged(rank, text, found, place)

    def _judged(
        self, rank: int, text: str, match: re.Match[str], keyword: int
    ) -> Iterator[tuple[int, int, int, str]]:
        rule = self._rules.rules[rank]
        start, end = rule.secret_span(match)
        if rule.check not in (Check.ALWAYS, Check.FORMAT):
            end = _without_trailing(text, start, end)
        if end - start < rule.min_length or end <= start:
            return
        value = text[start:end]
        if value in self._allow or any(each.search(value) for each in rule.allowed):
            return
        if rule.entropy and values.entropy(value) < rule.entropy:
            return
        found = Candidate(text=text, start=start, end=end, keyword=keyword, kind=rule.kind)
        kind = kind_of(rule.check, found, self._rules.words)
        if kind is not None:
            yield rank, start, end, kind


def _around(rule: Rule, text: str, place: int, looked: int) -> tuple[Iterable[re.Match[str]], int]:
    """What a rule finds in front of a keyword or in a region behind it, and how far it looked."""
    if rule.within is None:
        start, end = max(place - rule.before, looked, 0), min(place + rule.after, len(text))
        found = rule.pattern.search(text, start, end)
        return ((), looked) if found is None else ((found,), found.end())
    region = rule.within.match(text, place) if place >= looked else None
    if region is None:
        return (), looked
    return rule.pattern.finditer(text, *region.span(1)), region.end(1)


def _without_trailing(text: str, start: int, end: int) -> int:
    """The end of a value without the punctuation of the sentence it stands in."""
    while end > start and text[end - 1] in _TRAILING:
        end -= 1
    return end


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

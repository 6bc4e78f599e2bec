"""A rule, and all rules together: which to try where. Patterns are compiled when first tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

_Trie = dict[str, "_Trie"]


class At(StrEnum):
    """Where a match of a rule may begin."""

    KEYWORD = "keyword"
    ANYWHERE = "anywhere"


class MatchCheck(StrEnum):
    """What is asked of a match besides its pattern."""

    ALWAYS = "always"  # whatever the pattern finds
    FORMAT = "format"  # the same, but no examples: `sk-xxxx`
    TOKEN = "token"  # the value looks made by a machine
    PASSWORD = "password"  # the value looks like one that a person or a machine chose
    NAMED = "named"  # the name in front of it is telling and the value fits the name
    SHOWN = "shown"  # the same with nothing but a blank between: the value has to be plainly one
    TOLD = "told"  # prose: "the password is …"
    LABELLED = "labelled"  # prose: "password for the laptop: …"
    TOLD_BEFORE = "told-before"  # prose: "… is the password"
    TOLD_KEY = "told-key"  # prose: "the api key is …"
    PHRASE = "phrase"  # words that make no sentence
    LOCK = "lock"  # a code that opens something
    URL = "url"  # between a user and a host
    PAIR = "pair"  # user / password
    BASIC = "basic"  # base64 of user:password
    CARD = "card"  # the check digit is right
    IBAN = "iban"  # so are the check digits
    COLUMN = "column"  # in a table, below a telling name


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
    check: MatchCheck = MatchCheck.FORMAT
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

    def with_rules(self, more: tuple[SecretRule, ...]) -> RuleSet:
        """The same with a user's rules in front: where both match, the user's name the kind."""
        return RuleSet(rules=more + self.rules, words=self.words)

    @cached_property
    def everywhere(self) -> tuple[int, ...]:
        """The rules that search all of a text that has one of their keywords."""
        return tuple(i for i, rule in enumerate(self.rules) if rule.at is At.ANYWHERE)

    @cached_property
    def by_keyword(self) -> Mapping[str, tuple[int, ...]]:
        """The rules to try where a keyword stands. None of the keywords begins another."""
        keyed = [(i, rule) for i, rule in enumerate(self.rules) if rule.at is At.KEYWORD]
        words = {word for _, rule in keyed for word in rule.keywords}
        shortest = {word: _shortest_beginning(word, words) for word in words}
        found: dict[str, list[int]] = {word: [] for word in sorted(set(shortest.values()))}
        for i, rule in keyed:
            for beginning in {shortest[word] for word in rule.keywords}:
                found[beginning].append(i)
        return {word: tuple(ranks) for word, ranks in found.items()}

    @cached_property
    def anchored(self) -> Mapping[str, tuple[int, ...]]:
        """Of the rules at a keyword, those whose match begins there: nearly all."""
        return self._by_keyword_if(lambda rule: not rule.before and rule.within_source is None)

    @cached_property
    def roaming(self) -> Mapping[str, tuple[int, ...]]:
        """The others, which look in front of the keyword or in a region behind it."""
        return self._by_keyword_if(lambda rule: rule.before or rule.within_source is not None)

    def _by_keyword_if(
        self, wanted: Callable[[SecretRule], object]
    ) -> Mapping[str, tuple[int, ...]]:
        return {
            word: tuple(rank for rank in ranks if wanted(self.rules[rank]))
            for word, ranks in self.by_keyword.items()
        }

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

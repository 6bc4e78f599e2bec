"""The rules that come with Recollect, as data."""

from __future__ import annotations

import re

import pytest

from recollect.redaction.checks import At, RuleSet, SecretRule, keyword_hits
from recollect.redaction.loading import bounded, bundled_rules, why_dangerous
from tests.tables import every_row

RULES = bundled_rules().rules


@every_row("rule", RULES)
def test_every_rule_compiles_and_its_keywords_can_be_met(rule: SecretRule) -> None:
    assert rule.pattern.pattern
    assert rule.within is None or rule.within.groups >= 1
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.kind)
    assert all(word == word.lower() and word for word in rule.keywords)
    assert rule.keywords or rule.at is At.ANYWHERE


def test_every_keyword_leads_to_its_rules() -> None:
    rules = bundled_rules()
    for rank, rule in enumerate(RULES):
        if rule.at is At.KEYWORD:
            for keyword in rule.keywords:
                hits = [word for place, word in keyword_hits(rules, keyword) if place == 0]
                assert any(rank in each for word in hits for each in rules.by_keyword[word]), (
                    keyword
                )


def test_keywords_may_overlap() -> None:
    rule = SecretRule(kind="x", source="x", at=At.KEYWORD, keywords=("abc", "bcd", "cde", "abcd"))
    rules = RuleSet(rules=(rule,), words={})
    assert list(keyword_hits(rules, "xabcdex")) == [(1, "abc"), (2, "bcd"), (3, "cde")]


@every_row(
    ("source", "expected"),
    [
        ("a+b*", "a{1,512}b{0,512}"),
        ("[*+]x{2,}?", "[*+]x{2,512}?"),
        (r"\+\*\{a{3}", r"\+\*\{a{3,3}"),
        ("a{600,}", "a{600,600}"),
        ("a{1,5}+", "a{1,5}+"),
        ("[]+]a{}b", "[]+]a{}b"),
    ],
)
def test_open_repetitions_of_a_user_get_an_end(source: str, expected: str) -> None:
    assert bounded(source) == expected


@pytest.mark.parametrize("source", ["(a+)+", "((a+)b)*", "(?:a|b+)+", "(a?)+", "(?P<x>a)(?P=x)"])
def test_a_dangerous_pattern_is_noticed(source: str) -> None:
    assert why_dangerous(source) is not None


@pytest.mark.parametrize("source", ["(a{3})+", "(?:ab+)?", "(a|b){2}c+", r"(\(\+)+", "[(+)]+x+"])
def test_a_harmless_pattern_is_not(source: str) -> None:
    assert why_dangerous(source) is None

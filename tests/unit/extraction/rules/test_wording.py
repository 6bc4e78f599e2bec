"""How a found statement is written down: its topic, its end, its words."""

from __future__ import annotations

import pytest

from recollect.extraction.rules import RuleExtractor
from recollect.types.facts import NewFact
from tests.unit.extraction.material import piece, said

EXTRACTOR = RuleExtractor()


def only(text: str, *, name: str | None = None) -> NewFact:
    facts = EXTRACTOR.extract(piece(said(1, text, name=name))).facts
    assert len(facts) == 1, facts
    return facts[0]


@pytest.mark.parametrize(
    "text",
    [
        "I'm living in Tokyo until Friday.",
        "I'm based in Tokyo this week for a project.",
        "This week I'm based in Oslo.",
        "I'm vegan this month.",
    ],
)
def test_what_says_when_it_is_over_replaces_nothing_that_lasts(text: str) -> None:
    fact = only(text)
    assert fact.topic is None
    assert fact.valid_to is not None


@pytest.mark.parametrize(
    "text",
    [
        "For now, I live in Oslo.",
        "I'm working for Acme until the end of the project.",
        "I live in Oslo for the summer.",
    ],
)
def test_nor_does_what_holds_for_a_time_of_unknown_length(text: str) -> None:
    assert only(text).topic is None


@pytest.mark.parametrize(
    "text",
    [
        "I live in Rome now.",
        "I moved to Rome this week.",
        "I live in Rome and I'm flying to Tokyo this week.",
        "I live in Rome, but until May I was in Oslo.",
        "I stay up until late and I live in Rome.",
    ],
)
def test_what_began_lately_or_stands_beside_something_brief_does(text: str) -> None:
    fact = EXTRACTOR.extract(piece(said(1, text))).facts[0]
    assert fact.topic == "user:home"
    assert fact.valid_to is None


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (
            "I joined a gym last week! It's been great, I'm sticking to my workout every morning.",
            (
                "Mel: \"I joined a gym last week! It's been great, I'm sticking to my workout "
                'every morning." (week of 2026-04-20)'
            ),
        ),
        (
            "I have a new bowl. I made it in pottery class yesterday.",
            'Mel: "I have a new bowl. I made it in pottery class yesterday." (2026-04-30)',
        ),
        (
            "Nice idea! It's my favourite of all the albums I bought last week.",
            "It's Mel's favourite of all the albums they bought last week (week of 2026-04-20).",
        ),
        (
            "I met my friends. This necklace was a gift from my grandma in Sweden.",
            "This necklace was a gift from Mel's grandma in Sweden.",
        ),
    ],
)
def test_what_points_back_is_told_with_what_it_points_at(text: str, content: str) -> None:
    facts = EXTRACTOR.extract(piece(said(1, "ok", name="Ann"), said(2, text, name="Mel"))).facts
    assert content in [fact.content for fact in facts]


def test_an_answer_that_points_back_is_told_with_the_question() -> None:
    asked = said(1, "How long have you had your friends?", name="Ann")
    told = said(2, "They've been with me since I moved here four years ago.", name="Mel")
    (fact,) = EXTRACTOR.extract(piece(asked, told)).facts
    assert fact.content.startswith('Mel, asked "How long have you had your friends?": "They')


def test_a_commitment_is_dated_by_what_is_to_come() -> None:
    fact = only("I booked my flight on April 20th, and it's scheduled to depart on August 15th.")
    assert (fact.tags, fact.metadata["date"]) == (("commitment",), "2026-08-15")

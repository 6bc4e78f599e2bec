"""T3: a sentence that says several things becomes several facts, so that what replaces one of them
leaves the others as they are."""

from __future__ import annotations

import pytest

from recollect.extraction.rules import RuleExtractor
from recollect.types.facts import NewFact
from tests.tables import every_row
from tests.unit.extraction.material import piece, said

EXTRACTOR = RuleExtractor()


def facts_of(text: str) -> tuple[NewFact, ...]:
    return EXTRACTOR.extract(piece(said(1, text))).facts


SEVERAL = [
    (
        "I'm vegan and I live in Texas now.",
        [("The user is vegan.", "user:diet"), ("The user lives in Texas now.", "user:home")],
    ),
    (
        "My name is Ana, I'm 34, and I love tea.",
        [
            ("The user's name is Ana.", "user:name"),
            ("The user is 34.", "user:age"),
            ("The user loves tea.", "user:likes:tea"),
        ],
    ),
    (
        "I'm allergic to nuts; we live in Oslo.",
        [("The user is allergic to nuts.", None), ('The user: "We live in Oslo."', "user:home")],
    ),
    (
        "I live in Rome, and my sister Eva works at a bank.",
        [
            ("The user lives in Rome.", "user:home"),
            ("The user's sister Eva works at a bank.", None),
        ],
    ),
    (
        "I work at Acme and I live in Rome, and I saw a bear.",  # which is kept, where it stands
        [
            ("The user works at Acme.", "user:employer"),
            ("The user lives in Rome, and they saw a bear.", "user:home"),
        ],
    ),
    (
        "I live in Rome and I'm flying to Oslo.",
        [("The user lives in Rome.", "user:home"), ("The user is flying to Oslo.", None)],
    ),
    (
        "I lived in Oslo, but I moved to Rome.",
        [("The user lived in Oslo.", None), ("The user moved to Rome.", "user:home")],
    ),
    (
        "I live in Ghent with my husband Joost and my dog Rex.",
        [
            ("The user lives in Ghent with their husband Joost and their dog Rex.", "user:home"),
            ("The user's husband's name is Joost.", "user:husband:name"),
            ("The user's dog's name is Rex.", None),
        ],
    ),
]
ONE = [
    "When I'm 64 and I live in Rome, I will sing.",
    "My wife and I live in Rome.",
    "I'm sad because I live in Rome and I love jazz.",
    "I live in Rome and I love the challenge of mending old clocks.",
]


@every_row(("text", "told"), SEVERAL)
def test_things_that_are_replaced_apart_are_told_apart(
    text: str, told: list[tuple[str, str | None]]
) -> None:
    facts = facts_of(text)
    assert [(fact.content, fact.topic) for fact in facts] == told
    assert all(fact.quote in text for fact in facts)


@pytest.mark.parametrize("text", ONE)
def test_what_belongs_together_stays_together(text: str) -> None:
    (fact,) = facts_of(text)
    assert fact.topic == "user:home"
    assert fact.quote == text


@pytest.mark.parametrize(
    "text",
    [
        "Let's say I'm vegan and I live in Texas.",
        "If I'm vegan and I live in Texas, what do I eat?",
        'The song goes "I\'m vegan and I live in Texas".',
    ],
)
def test_what_is_not_meant_is_not_meant_clause_by_clause_either(text: str) -> None:
    assert facts_of(text) == ()


def test_the_parts_of_a_sentence_count_as_one_of_a_message() -> None:
    text = " ".join(f"I have a dog in house {number}." for number in range(30))
    facts = facts_of(f"{text} I'm vegan and I live in Rome.")
    assert len(facts) == 7
    assert [fact.topic for fact in facts[-2:]] == ["user:diet", "user:home"]

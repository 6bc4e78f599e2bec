"""From what a store found to what ranking works on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.knowledge import Trust
from recollect.recall.candidates import Phrase
from recollect.recall.question import PHRASES_MAX, ask, candidates, without_names
from recollect.recollection import Entry, EntryKind


def entry(kind: EntryKind, key: int) -> Entry:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    return Entry(kind=kind, key=key, id="x", text="x", stems="x", at=at, trust=Trust.USER)


def test_of_equals_a_fact_goes_first_and_of_two_of_a_kind_the_newer() -> None:
    mixed = [(kind, key) for key in (9, 10, 2**40) for kind in reversed(EntryKind)]
    found = candidates([entry(kind, key) for kind, key in mixed])
    by_turn = sorted(zip(found.turns, mixed, strict=True))
    assert [each for _, each in by_turn] == [
        (kind, key) for kind in EntryKind for key in (2**40, 10, 9)
    ]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Does Ana row?", "Does row?"),
        ("What is Ana's boat?", "What is boat?"),
        ("Ana", "Ana"),  # nothing else to ask for
    ],
)
def test_names_are_taken_out_of_what_is_embedded(text: str, left: str) -> None:
    assert without_names(text, ["ana maria"]) == left


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("Where is the fish market?", [Phrase(("fish", "market"))]),
        ("Is the market of fish open?", [Phrase(("fish", "open"))]),
        ('Who said "let it be"?', [Phrase(("let", "it", "be"), is_quoted=True)]),
        ("Who said “let it be”?", [Phrase(("let", "it", "be"), is_quoted=True)]),
        ("Who said 'let it be'?", [Phrase(("let", "it", "be"), is_quoted=True)]),
        ("Who read ‘Ana’s house’?", [Phrase(("ana", "s", "hous"), is_quoted=True)]),
        ("The dogs' and the cats' food isn't Ana's", []),
        ('"fish"', []),
    ],
)
def test_words_that_stand_together_are_phrases(text: str, phrases: list[Phrase]) -> None:
    found = ask(text, datetime(2026, 5, 1, tzinfo=UTC)).phrases
    quoted = [phrase for phrase in found if phrase.is_quoted]
    assert [each for each in phrases if each.is_quoted] == quoted
    assert all(each in found for each in phrases)


def test_a_question_has_only_so_many_phrases() -> None:
    text = " ".join(f"word{number}" for number in range(5000))
    assert len(ask(text, datetime(2026, 5, 1, tzinfo=UTC)).phrases) <= PHRASES_MAX

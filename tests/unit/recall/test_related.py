"""What answers say instead of the words they are asked with (T5)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import recollect
from recollect.recall.question import ask

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("where does she live?", "I moved to Lisbon in May."),
        ("what pets are there?", "Our puppy chewed the sofa."),
        ("who is her spouse?", "Dinner with my husband was late."),
        ("how old is she?", "I turned forty."),
    ],
)
def test_what_was_said_is_found_before_anything_is_learned(question: str, said: str) -> None:
    with recollect.open(":memory:") as memory:
        alice = memory.space("alice")
        alice.session("k").append_many(
            [{"role": "user", "content": said}, {"role": "user", "content": "It rains."}]
        )
        assert alice.recall(question)[0].text == said
        assert alice.context(question)


def test_words_of_the_question_itself_come_first() -> None:
    with recollect.open(":memory:") as memory:
        alice = memory.space("alice")
        session = alice.session("k")
        session.append("user", "I moved the table.")
        session.append("user", "We live by the sea.")
        assert alice.recall("where does she live?")[0].text == "We live by the sea."


def test_a_question_about_anything_else_has_no_other_words() -> None:
    assert not any(term.related for term in ask("which compiler broke?", NOW).terms)

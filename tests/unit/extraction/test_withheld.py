"""A fact is kept for what it says, and nobody can read a secret that was taken out of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.extraction.model import is_withheld
from recollect.types.facts import NewFact, Trust

KEY = "[redacted:api-key:0123abcd]"


def fact(content: str, tag: str = "detail") -> NewFact:
    said = datetime(2026, 5, 1, tzinfo=UTC)
    return NewFact(
        content=content, seq=1, seq_to=1, valid_from=said, trust=Trust.USER, quote="q", tags=(tag,)
    )


@pytest.mark.parametrize(
    "content",
    [
        f"The user's API key is {KEY}.",
        f'The user instructs: "Please remember my password for Netflix: {KEY}"',
        f"The user's PIN is {KEY}, keep it safe.",
    ],
)
def test_a_fact_whose_value_was_taken_out_is_none(content: str) -> None:
    assert is_withheld(fact(content))


@pytest.mark.parametrize(
    ("content", "tag"),
    [
        (f"The user moved to Porto and their door code is {KEY}.", "detail"),
        (f"In shop, `deploy --token {KEY}` works.", "procedure"),
        ('The user instructs: "Test on postgres://ci:[redacted:x:0123abcd]@db/x."', "instruction"),
        ("The user's API key is kept in the vault.", "detail"),
    ],
)
def test_what_says_more_than_the_secret_is_kept(content: str, tag: str) -> None:
    assert not is_withheld(fact(content, tag))

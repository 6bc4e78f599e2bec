"""A message is cut into the sentences that are its writer's own prose."""

from __future__ import annotations

import pytest

from recollect.extraction.rules.sentences import SENTENCE_CHARS_MAX, SENTENCES_MAX, sentences


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("He met Dr. Adams. They talked.", ["He met Dr. Adams.", "They talked."]),
        ("I use Python 3.12. You?", ["I use Python 3.12.", "You?"]),
        ("line one\nline two", ["line one", "line two"]),
        ("- milk\n* eggs\n2) bread", ["milk", "eggs", "bread"]),
        ('She said "hi." Then left.', ['She said "hi."', "Then left."]),
        ("before\n```py\nI = my()\n```\nafter", ["before", "after"]),
        ("before\n~~~\nnever closed", ["before"]),
        ("> quoted\nown words", ["own words"]),
        ("$ make test\n# heading\nown words", ["own words"]),
        ("<note>\ninside it\n</note>\noutside", ["outside"]),
        ("<b>\nnever closed", ["never closed"]),
        ("https://example.com/a\nown words", ["own words"]),
        ("", []),
        ("\n\n \n", []),
    ],
)
def test_text_is_cut_into_sentences(text: str, cut: list[str]) -> None:
    assert list(sentences(text)) == cut


def test_there_is_a_limit_to_what_is_read_of_one_message() -> None:
    assert len(list(sentences("Yes it is. " * 1000))) == SENTENCES_MAX
    assert list(sentences("x" * (SENTENCE_CHARS_MAX + 1))) == []

"""A message is cut into the sentences that are its writer's own prose."""

from __future__ import annotations

from recollect.extraction.rules.sentences import SENTENCE_CHARS_MAX, SENTENCES_MAX, sentences
from tests.tables import every_row


@every_row(
    ("text", "cut"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("He met Dr. Adams. They talked.", ["He met Dr. Adams.", "They talked."]),
        ("I use Python 3.12. You?", ["I use Python 3.12.", "You?"]),
        (
            "It is on Dec. 24 at noon. Or on Fri. at 9.",
            ["It is on Dec. 24 at noon.", "Or on Fri. at 9."],
        ),
        (
            "Mt. Vernon is near.\nCapt. Lee of Univ. of X.",
            ["Mt. Vernon is near.", "Capt. Lee of Univ. of X."],
        ),
        ("A Ph.D. in law, at Ford Co. in Ohio.", ["A Ph.D. in law, at Ford Co. in Ohio."]),
        (
            "I start in Sept. We left Acme Corp. in May.",
            ["I start in Sept.", "We left Acme Corp. in May."],
        ),
        ("He is at Acme Corp. Lee is not.", ["He is at Acme Corp.", "Lee is not."]),
        (
            "Up at 6 a.m. I run. No. My leg hurts.",
            ["Up at 6 a.m.", "I run.", "No.", "My leg hurts."],
        ),
        ("line one\nline two", ["line one", "line two"]),
        ("I live in\nLisbon. We like\nit here.", ["I live in\nLisbon.", "We like", "it here."]),
        (
            "I have lived in a flat by the old harbour\nsince May.\r\nIt is fine",
            ["I have lived in a flat by the old harbour\nsince May.", "It is fine"],
        ),
        ("This is where I am\nMy name is Bo", ["This is where I am", "My name is Bo"]),
        (
            "i moved to rome last year with my wife anna\nwe love it",
            ["i moved to rome last year with my wife anna", "we love it"],
        ),
        (
            "This is what I want you to get for\n\nmilk",
            ["This is what I want you to get for", "milk"],
        ),
        (
            "Please get me all of these things from the\n- milk",
            ["Please get me all of these things from the", "milk"],
        ),
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

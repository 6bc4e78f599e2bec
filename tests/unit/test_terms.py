"""T3: any text is a legal query: what it is searched by, whatever it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.stemming import TERMS_MAX, WORD_CHARS_MAX, search_terms, words
from tests.tables import every_row

ANY_TEXT = st.text(st.characters(), max_size=200)  # lone surrogates and NUL as well


@every_row(
    ("text", "terms"),
    [
        ("Where does Alice live?", ["alice", "live"]),
        ("tea, TEA; Tea!", ["tea"]),
        ("What's my favourite colour?", ["favourite", "colour"]),
        ("snake_case and kebab-case", ["snake", "case", "kebab"]),
        ("C++ or C#", ["c"]),
        ("Straße straße STRASSE", ["strasse"]),
        ("nai\u0308ve naïve NAIVE", ["naive"]),
        ("東京 タワー", ["東京", "タワー"]),
        ("version 3.11", ["version", "3", "11"]),
        ("", []),
        ('"() *:^-', []),
        ("🙂", []),
    ],
)
def test_words_are_searched_for_in_their_order_each_once(text: str, terms: list[str]) -> None:
    assert search_terms(text) == terms


@every_row(
    "text",
    [
        "What happens in May?",
        "what happened in may",
        "Where were we on 5 May?",
        "who came on may 5th",
        "Will Ana come by May?",
        "What does Aunt May like?",
    ],
)
def test_may_is_searched_for_where_it_is_a_month_or_a_name(text: str) -> None:
    assert "may" in search_terms(text)


@pytest.mark.parametrize("text", ["May I see the plan?", "Ana, May I ask?", "this may help Ana"])
def test_elsewhere_it_is_a_common_word(text: str) -> None:
    assert "may" not in search_terms(text)


def test_a_text_of_nothing_but_common_words_is_searched_by_those() -> None:
    assert search_terms("Who is he?") == ["who", "is", "he"]


def test_there_is_an_end_to_it() -> None:
    asked = [f"word{number}" for number in range(500)]
    assert search_terms(" ".join(asked)) == asked[:TERMS_MAX]
    assert search_terms(" ".join(asked), 3) == asked[:3]
    assert search_terms("x" * 1000) == ["x" * WORD_CHARS_MAX]


@every_row(
    ("text", "known_by"),
    [
        ("src/payments/invoice_sender.py", "src payments invoice sender py"),
        ("https://github.com/acme/billing-api", "https github com acme billing api"),
        ("v2.31.4-beta", "v2 31 4 beta"),
        ("Müller, Mu\u0308ller, MULLER", "muller muller muller"),
        ("İstanbul ŒUVRE ﬁnal Ⅷ ｗｉｄｅ", "istanbul œuvre final viii wide"),
        ("Σίσυφος ΣΊΣΥΦΟΣ", "σισυφοσ σισυφοσ"),
        ("がっこう 서울 живёт", "がっこう 서울 живет"),
        ("مُحَمَّد שָׁלוֹם", "محمد שלום"),
        ("🙂 \0 \ud800 _", ""),
    ],
)
def test_a_text_is_known_by_its_letters_and_digits_without_case_and_accents(
    text: str, known_by: str
) -> None:
    assert words(text) == known_by


@given(ANY_TEXT)
def test_words_are_known_by_themselves_and_nothing_else_is_in_them(text: str) -> None:
    """A store folds what it is asked for once more, and its tokenizers split at blanks only."""
    folded = words(text)
    assert words(folded) == folded
    assert all(word.isalnum() and len(word) <= WORD_CHARS_MAX for word in folded.split(" ") if word)
    assert words(text.upper()) == words(text.upper().lower())


@given(ANY_TEXT, st.integers(1, 60))
def test_whatever_is_asked_the_terms_are_few_and_short_and_different(text: str, most: int) -> None:
    terms = search_terms(text, most)
    assert len(terms) <= most
    assert len(set(terms)) == len(terms)
    assert all(0 < len(term) <= WORD_CHARS_MAX for term in terms)


@given(st.lists(ANY_TEXT, min_size=1, max_size=5))
def test_any_text_is_a_legal_query_and_finds_nothing_that_shares_no_word(texts: list[str]) -> None:
    with recollect.open(":memory:", settings={}) as memory:
        facts = memory.space().facts
        facts.add("zyzzyva")
        for text in texts:
            assert len(facts.search(text)) <= ("zyzzyva" in text.casefold())


WORDS = ("İstanbul", "ŒUVRE", "straße", "ﬁnal", "Ⅷ", "naïve", "nai\u0308ve", "東京", "Σίσυφος")


def test_a_word_is_found_by_itself_in_every_script(store_url: str) -> None:
    with recollect.open(store_url, settings={}) as memory:
        for word in WORDS:
            facts = memory.space(word).facts
            stored = facts.add(f"zyzzyva {word}")
            assert facts.search(f"What about {word}?") == [stored]


def test_a_word_is_found_whatever_its_case(store_url: str) -> None:
    with recollect.open(store_url, settings={}) as memory:
        stored = memory.space().facts.add("The user drinks CAFÉ au lait in Zürich")
        for query in ("café", "Café", "ZÜRICH", "zürich", "LAIT"):
            assert memory.space().facts.search(query) == [stored], query

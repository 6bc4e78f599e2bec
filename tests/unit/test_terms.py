"""T3: any text is a legal query: what it is searched by, whatever it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.terms import TERM_CHARS_MAX, TERMS_MAX, search_terms

ANY_TEXT = st.text(st.characters(), max_size=200)  # lone surrogates and NUL as well


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Where does Alice live?", ["Alice", "live"]),
        ("tea, TEA; Tea!", ["tea"]),
        ("What's my favourite colour?", ["favourite", "colour"]),
        ("snake_case and kebab-case", ["snake", "case", "kebab"]),
        ("C++ or C#", ["C"]),
        ("Straße straße STRASSE", ["Straße", "STRASSE"]),
        ("nai\u0308ve", ["nai\u0308ve"]),
        ("東京 タワー", ["東京", "タワー"]),
        ("version 3.11", ["version", "3", "11"]),
        ("", []),
        ('"() *:^-', []),
        ("🙂", []),
    ],
)
def test_words_are_searched_for_in_their_order_each_once(text: str, terms: list[str]) -> None:
    assert search_terms(text) == terms


def test_a_text_of_nothing_but_common_words_is_searched_by_those() -> None:
    assert search_terms("Who is he?") == ["Who", "is", "he"]


def test_there_is_an_end_to_it() -> None:
    words = [f"word{number}" for number in range(500)]
    assert search_terms(" ".join(words)) == words[:TERMS_MAX]
    assert search_terms(" ".join(words), 3) == words[:3]
    assert search_terms("x" * 1000) == ["x" * TERM_CHARS_MAX]


@given(ANY_TEXT, st.integers(1, 60))
def test_whatever_is_asked_the_terms_are_few_and_short_and_different(text: str, most: int) -> None:
    terms = search_terms(text, most)
    assert len(terms) <= most
    assert len(set(terms)) == len(terms)
    assert all(0 < len(term) <= TERM_CHARS_MAX for term in terms)


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

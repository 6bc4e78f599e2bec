"""Finds what texts still say of what was removed: runs of words that nothing kept says. Pure.

Owns the check behind G11. Words are compared as they are searched, without case, accents and
punctuation; where a script puts no blanks between words, characters are, and more of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from recollect.consolidation.claim_lines import without_remarks
from recollect.documents.links import unlinked
from recollect.terms import words

RUN_WORDS = 7  # that two texts do not have in common by chance
RUN_CHARACTERS = 14
SAYING_WORDS_MIN = 3  # fewer are nobody's words in particular

# Thai, Lao, Burmese, Khmer, kana and ideographs.
_UNSPACED = re.compile(
    "[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)


def echoes(
    pages: Mapping[str, str],
    gone: Iterable[str],
    kept: Callable[[], Iterable[str]],
) -> dict[str, list[str]]:
    """The passages of each page, by its name, that stand in a text that is gone and in none kept.

    Of the texts only one is held at a time, and those that are kept are looked at only where
    something is suspected.
    """
    spoken = {name: list(_spoken(text)) for name, text in pages.items()}
    said = {run for tokens in spoken.values() for _, run in _runs(tokens)}
    suspected: set[str] = set()
    for text in gone:
        suspected.update(said.intersection(_runs_of(text)))
    for text in kept() if suspected else ():
        suspected.difference_update(_runs_of(text))
        if not suspected:
            break
    if not suspected:
        return {}
    found = {name: _passages(tokens, suspected) for name, tokens in spoken.items()}
    return {name: passages for name, passages in found.items() if passages}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sayings:
    """Texts as they are known again where a line quotes them."""

    texts: tuple[str, ...]  # their words
    passages: frozenset[str]  # runs of those, or all of a short text

    def are_quoted(self, line: str) -> bool:
        """Whether a line says something of them, or nothing but a part of one."""
        if not self.texts:
            return False
        tokens = list(_spoken(line))
        is_saying = any(
            " ".join(tokens[at : at + size]) in self.passages
            for at in range(len(tokens))
            for size in range(SAYING_WORDS_MIN, _length(tokens[at]) + 1)
        )
        bare = " ".join(_spoken(without_remarks(line)))
        return is_saying or (bool(bare) and any(f" {bare} " in each for each in self.texts))


def sayings(texts: Iterable[str]) -> Sayings:
    spoken = [list(_spoken(text)) for text in texts]
    passages: set[str] = set()
    for tokens in spoken:
        runs = [run for _, run in _runs(tokens)]
        whole = [" ".join(tokens)] if len(tokens) >= SAYING_WORDS_MIN else []
        passages.update(runs or whole)
    return Sayings(
        texts=tuple(f" {' '.join(tokens)} " for tokens in spoken if tokens),
        passages=frozenset(passages),
    )


def unsaid(body: str, texts: Iterable[str]) -> list[str]:
    """Those of the texts that a body does not say word for word."""
    said = f" {' '.join(_spoken(body))} "
    return [text for text in texts if f" {' '.join(_spoken(text))} " not in said]


def _spoken(text: str) -> Iterator[str]:
    """The words that a reader sees: of a link, those that it shows."""
    for word in words(unlinked(text, lambda _: True)).split():
        if word.isascii() or _UNSPACED.search(word) is None:
            yield word
        else:
            yield from word


def _runs(tokens: list[str]) -> Iterator[tuple[int, str]]:
    """Every run of words long enough, with where it begins."""
    for at in range(len(tokens)):
        end = at + _length(tokens[at])
        if end <= len(tokens):
            yield at, " ".join(tokens[at:end])


def _runs_of(text: str) -> Iterator[str]:
    return (run for _, run in _runs(list(_spoken(text))))


def _length(token: str) -> int:
    return RUN_CHARACTERS if _UNSPACED.match(token) else RUN_WORDS


def _passages(tokens: list[str], suspected: set[str]) -> list[str]:
    """Runs that overlap are one passage."""
    spans: list[tuple[int, int]] = []
    for at, run in _runs(tokens):
        if run not in suspected:
            continue
        end = at + _length(tokens[at])
        if spans and at <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((at, end))
    return [" ".join(tokens[start:end]) for start, end in spans]

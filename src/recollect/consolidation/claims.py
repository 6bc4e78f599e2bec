"""Reads what a model wrote as claims, and finds in it what was removed. Pure.

A claim is a line of a list with the lines that go on with it; lines that open with a link are an
index, lines that end with a colon head others. What only removed texts said is known by runs of
words that nothing kept says (G11), without case, accents and punctuation; where a script puts no
blanks between words, characters are compared, and more of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from recollect.documents.links import unlinked
from recollect.terms import words

PROSE_WORDS_MAX = 40  # of a paragraph that introduces rather than claims
RUN_WORDS = 7  # that two texts do not have in common by chance
RUN_CHARACTERS = 14
SAYING_WORDS_MIN = 3  # fewer are nobody's words in particular

# Thai, Lao, Burmese, Khmer, kana and ideographs.
_UNSPACED = re.compile(
    "[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)

_BULLET = re.compile(r"[ \t]*(?:(?P<dash>[-*+])|\d{1,4}[.)])[ \t]+(?P<text>\S.*)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_PLACEHOLDER = re.compile(r"_.*_|(?:and )?\d[\d,]* more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A line of a page with those that go on with it, and where in the body they stand.

    `bullet` is what follows the mark of a list; none: it is in no list. `is_step`: the mark is a
    number.
    """

    text: str
    line: int
    start: int
    end: int
    bullet: str | None
    is_step: bool

    @property
    def is_claim(self) -> bool:
        """Whether it says something that needs a source."""
        if self.bullet is None:
            return len(self.text.split()) > PROSE_WORDS_MAX
        said = self.bullet.strip()
        is_index = said.startswith("[[") or said.endswith(":")
        has_words = any(map(str.isalpha, without_remarks(said)))
        return has_words and not is_index and _PLACEHOLDER.fullmatch(said) is None


def without_remarks(text: str) -> str:
    """A line without what stands in brackets behind it: its day, its scope, how far to trust it."""
    left = text.rstrip()
    while left.endswith(")"):
        start = left.rfind("(")
        if start < 0 or ")" in left[start:-1]:
            break
        left = left[:start].rstrip()
    return left


def blocks(body: str) -> Iterator[Block]:
    """The lines of a page outside code, each with those that are only its continuation."""
    begun: Block | None = None
    fence, at = "", 0
    for number, line in enumerate(body.split("\n"), start=1):
        mark = _FENCE.match(line)
        is_code = bool(fence) or mark is not None
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        found = None if is_code or not line.strip() else _block(line, number, at)
        if begun is not None and found is not None and _goes_on(begun, found):
            found = _joined(begun, found)
        elif begun is not None:
            yield begun
        begun = found
        at += len(line) + 1
    if begun is not None:
        yield begun


def _block(line: str, number: int, at: int) -> Block:
    found = _BULLET.match(line)
    return Block(
        text=line.strip(),
        line=number,
        start=at,
        end=at + len(line),
        bullet=None if found is None else found["text"],
        is_step=found is not None and found["dash"] is None,
    )


def _goes_on(begun: Block, found: Block) -> bool:
    is_heading = begun.text.startswith("#") or found.text.startswith("#")
    return found.bullet is None and not is_heading and not found.text.startswith("|")


def _joined(begun: Block, found: Block) -> Block:
    bullet = None if begun.bullet is None else f"{begun.bullet} {found.text}"
    return replace(begun, text=f"{begun.text} {found.text}", end=found.end, bullet=bullet)


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

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        spoken = [list(_spoken(text)) for text in texts]
        passages: set[str] = set()
        for tokens in spoken:
            whole = [" ".join(tokens)] if len(tokens) >= SAYING_WORDS_MIN else []
            passages.update([run for _, run in _runs(tokens)] or whole)
        said = tuple(f" {' '.join(tokens)} " for tokens in spoken if tokens)
        return cls(texts=said, passages=frozenset(passages))

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

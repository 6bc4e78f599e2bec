"""Texts as the numbered pieces of a vocabulary: byte-pair encoding of words, each word once.

It reads the vocabulary as `tokenizers` writes it and finds the same pieces for ordinary text. A
word that is found again costs one look-up, which makes it as fast as compiled code that has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

BLANK = "▁"  # how the vocabulary writes a blank
WORDS_KEPT = 32_768
WORD_CHARS_MAX = 32  # longer ones are taken in parts: the work grows with the square

# Letters and digits, or marks, each with the blanks before them: the vocabulary has hardly a piece
# that reaches across.
_PART = rf"[^\W_]{{1,{WORD_CHARS_MAX}}}|[^\w{BLANK}]{{1,{WORD_CHARS_MAX}}}|_"
_WORD = re.compile(rf"{BLANK}{{0,{WORD_CHARS_MAX}}}(?:{_PART})|{BLANK}{{1,{WORD_CHARS_MAX}}}")


class Pieces:
    """Cuts texts into pieces. Nothing in it changes but the memory of words: threads may share."""

    def __init__(self, vocabulary: Mapping[str, int], merges: list[str]) -> None:
        self.vocabulary = vocabulary
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._of_word = lru_cache(WORDS_KEPT)(self._numbered)

    def of(self, text: str) -> Iterator[int]:
        """The numbers of a text's pieces, in order; none for an empty text."""
        if text:
            for word in _WORD.findall(BLANK + text.replace(" ", BLANK)):
                yield from self._of_word(word)

    def _numbered(self, word: str) -> tuple[int, ...]:
        numbers: list[int] = []
        for part in self._merged(word):
            known = self.vocabulary.get(part)
            if known is not None:
                numbers.append(known)
                continue
            spelled = (self.vocabulary.get(f"<0x{byte:02X}>") for byte in part.encode())
            numbers += [number for number in spelled if number is not None]
        return tuple(numbers)

    def _merged(self, word: str) -> list[str]:
        """The word's characters, neighbours joined as long as the vocabulary knows a pair."""
        if word in self.vocabulary:
            return [word]
        parts, none = list(word), len(self._ranks)
        while len(parts) > 1:
            pairs = map(" ".join, pairwise(parts))
            ranks = [self._ranks.get(pair, none) for pair in pairs]
            best = min(ranks)
            if best == none:
                break
            parts = _joined(parts, ranks, best)
        return parts


def _joined(parts: list[str], ranks: list[int], best: int) -> list[str]:
    """The parts with every pair of the best rank made one."""
    joined, at = [], 0
    while at < len(parts):
        is_pair = at < len(ranks) and ranks[at] == best
        joined.append(parts[at] + parts[at + 1] if is_pair else parts[at])
        at += 2 if is_pair else 1
    return joined


def load_pieces(path: Path) -> Pieces:
    """The vocabulary of a `tokenizer.json`. KeyError, TypeError or ValueError if it is none."""
    model: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["model"]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    return Pieces(model["vocab"], merges)

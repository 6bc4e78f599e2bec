"""Texts as unequal as those of a language: a few words everywhere, most of them seldom.

Made from a seed, the same in every run. None is a word that recall would leave out, so that every
word of a question has to be looked for: a language is kinder than this.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from recollect.ids import Randomness

SEED = 20_260_501
WORDS = 60_000  # of the language
FLATNESS = 2.7  # by which the first ranks are more equal than Zipf's law has them
TEXT_WORDS = (6, 30)
QUESTION_WORDS = (3, 9)


class Language:
    """Words by their rank, and texts made of them."""

    def __init__(self, words: int = WORDS) -> None:
        rng = Randomness(SEED)
        made: dict[str, None] = {}
        while len(made) < words:
            made[_word(rng)] = None
        self._words = list(made)
        self._weights = list(
            itertools.accumulate(1 / (rank + FLATNESS) for rank in range(1, words + 1))
        )

    def texts(self, seed: int) -> Iterator[str]:
        """Without end, as long as turns of a conversation are."""
        return self._said(Randomness(SEED + seed), TEXT_WORDS)

    def questions(self, seed: int) -> Iterator[str]:
        """Without end; their words are as common as those of the texts."""
        return self._said(Randomness(SEED + seed), QUESTION_WORDS)

    def _said(self, rng: Randomness, words: tuple[int, int]) -> Iterator[str]:
        while True:
            count = rng.randint(*words)
            yield " ".join(rng.choices(self._words, cum_weights=self._weights, k=count))


def _word(rng: Randomness) -> str:
    """Two to four syllables: nothing that is in a list of stop words."""
    return "".join(
        rng.choice("bdfglmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 4))
    ) + rng.choice("kmpx")

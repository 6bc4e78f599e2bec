"""The texts every contender stores: made from a seed, the same in every run and every process."""

from __future__ import annotations

import random

SEED = 20_260_501
SENTENCES = (
    "the order shipped on friday and she asked whether a later train to lisbon would still be "
    "possible because her sister prefers the window seat near the garden café, naïve as it sounds; "
    "please remember that the invoice goes to the second address and that nobody calls before nine"
)


def make_texts(count: int, words: int = 40) -> list[str]:
    """Some sentences of about 220 characters, not all of them ASCII, as people write."""
    rng, vocabulary = random.Random(SEED), SENTENCES.split()
    return [" ".join(rng.choices(vocabulary, k=words)) for _ in range(count)]

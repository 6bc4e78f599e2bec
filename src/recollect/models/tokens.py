"""How many tokens a text has, without a tokenizer: from its bytes, corrected by what models count.

Linear, with all the counting done in C; a session of megabytes costs milliseconds.
"""

from __future__ import annotations

import math
import threading

BYTES_PER_TOKEN = 4.0
BYTES_PER_TOKEN_OF_CODE = 3.3  # brackets and operators are tokens of their own
CODE_MARKS = b"{}[]()<>;=_"
CODE_MARKS_SHARE = 0.05  # prose has about one such character in a hundred

RATIO_MIN, RATIO_MAX = 0.5, 2.0
LEARNING_RATE = 0.2
LEARNED_FROM_TOKENS_MIN = 200  # below, what a provider wraps around a prompt outweighs it


def estimate_tokens(text: str) -> int:
    """The tokens of a text, roughly; never 0 for a text that is not empty."""
    data = text.encode("utf-8", "surrogatepass")
    marks = len(data) - len(data.translate(None, CODE_MARKS))
    is_code = marks > CODE_MARKS_SHARE * len(text)
    return math.ceil(len(data) / (BYTES_PER_TOKEN_OF_CODE if is_code else BYTES_PER_TOKEN))


class Calibration:
    """Learns by how much one model's count differs from the estimate. Safe to share."""

    def __init__(self) -> None:
        self._ratio = 1.0
        self._lock = threading.Lock()

    @property
    def ratio(self) -> float:
        return self._ratio

    def estimate(self, text: str) -> int:
        return math.ceil(estimate_tokens(text) * self._ratio)

    def learn(self, *, estimated: int, counted: int) -> None:
        """Move towards what a provider counted where `estimate_tokens` said `estimated`."""
        if estimated < LEARNED_FROM_TOKENS_MIN or counted <= 0:
            return
        seen = min(max(counted / estimated, RATIO_MIN), RATIO_MAX)
        with self._lock:
            self._ratio += LEARNING_RATE * (seen - self._ratio)

"""The figures of the documentation, over the whole corpus of our own making (X6, P10)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from recollect.redaction import Redactor
from tests.redaction_corpus.making import (
    CHECK_SEED,
    SEED,
    Half,
    Positive,
    benign_texts,
    in_prose,
    structured,
)

HALVES = list(Half)
SEEDS = (SEED, CHECK_SEED)


def missed(redactor: Redactor, positives: Iterable[Positive]) -> tuple[int, list[str]]:
    """How many there were, and the kinds of those whose secret is still to be seen."""
    count, kinds = 0, []
    for each in positives:
        count += 1
        redacted = redactor.redact(each.text)
        if any(hidden in redacted for hidden in each.hidden):
            kinds.append(each.kind)
    return count, kinds


def share_redacted(redactor: Redactor, texts: Iterable[str]) -> float:
    """The share of the words of benign texts that redaction took."""
    words = taken = 0
    for text in texts:
        words += len(text.split())
        taken += sum(len(text[f.start : f.end].split()) for f in redactor.find(text))
    assert words > 1000
    return taken / words


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("half", HALVES)
def test_structured_secrets_are_found(redactor: Redactor, half: Half, seed: int) -> None:
    """X6, P10: at least 99 % of the secrets in a known format."""
    count, kinds = missed(redactor, structured(half, seed=seed))
    assert count > 1500
    assert len(kinds) <= 0.01 * count, kinds


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("half", HALVES)
def test_secrets_told_in_prose_are_found(redactor: Redactor, half: Half, seed: int) -> None:
    """X6: at least 90 %."""
    count, kinds = missed(redactor, in_prose(half, seed=seed))
    assert count > 500
    assert len(kinds) <= 0.1 * count


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("half", HALVES)
def test_benign_text_is_left_alone(redactor: Redactor, half: Half, seed: int) -> None:
    """At most 0.3 % of the words of texts that only look as if they held secrets."""
    assert share_redacted(redactor, benign_texts(half, seed=seed)) <= 0.003


def test_the_measure_notices_a_redactor_that_finds_nothing_and_one_that_takes_all() -> None:
    class Blind(Redactor):
        def redact(self, text: str) -> str:
            return text

    blind = Blind.__new__(Blind)
    count, kinds = missed(blind, in_prose(Half.TUNING))
    assert len(kinds) == count

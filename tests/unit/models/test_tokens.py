"""Estimates of tokens, and what they learn from a provider's counts."""

from __future__ import annotations

import pytest

from recollect.models.tokens import RATIO_MAX, RATIO_MIN, Calibration, estimate_tokens

PROSE = "The quick brown fox jumps over the lazy dog, and nobody is surprised. " * 20
CODE = "def f(x): return {'a': [x[i] for i in range(len(x))], 'b': (x, x)};\n" * 20


def test_prose_has_a_token_for_every_four_bytes() -> None:
    assert estimate_tokens(PROSE) == pytest.approx(len(PROSE) / 4, abs=1)


def test_code_has_more_tokens_than_prose_of_the_same_length() -> None:
    size = min(len(PROSE), len(CODE))
    assert estimate_tokens(CODE[:size]) > 1.1 * estimate_tokens(PROSE[:size])


def test_other_scripts_are_counted_by_their_bytes() -> None:
    assert estimate_tokens("語" * 400) == 300


def test_only_an_empty_text_has_no_tokens() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") == 1
    assert estimate_tokens("\ud800") == 1  # half a character is text too


def test_a_calibration_moves_towards_what_the_provider_counts() -> None:
    calibration = Calibration()
    before = calibration.estimate(PROSE)
    for _ in range(50):
        calibration.learn(estimated=1000, counted=1500)
    assert calibration.ratio == pytest.approx(1.5, abs=0.01)
    assert calibration.estimate(PROSE) == pytest.approx(1.5 * before, abs=5)


def test_a_short_prompt_teaches_nothing() -> None:
    calibration = Calibration()
    calibration.learn(estimated=10, counted=400)
    calibration.learn(estimated=1000, counted=0)
    assert calibration.ratio == 1.0


@pytest.mark.parametrize(("counted", "ratio"), [(10**9, RATIO_MAX), (1, RATIO_MIN)])
def test_an_absurd_count_moves_a_calibration_no_further_than_its_bounds(
    counted: int, ratio: float
) -> None:
    calibration = Calibration()
    for _ in range(100):
        calibration.learn(estimated=1000, counted=counted)
    assert calibration.ratio == pytest.approx(ratio, abs=0.01)

"""Estimates of tokens, and what they learn from a provider's counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recollect.extraction.model import tokens_of
from recollect.models.tokens import (
    RATIO_MAX,
    RATIO_MIN,
    Calibration,
    estimate_request,
    estimate_tokens,
)
from tests.unit.models.talking import TREE, assistant, call, result, talking, user

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


def test_all_that_is_sent_for_a_request_is_counted() -> None:
    """A till reserves by it: what is not counted is not paid for."""
    longer = [
        talking(user("Hi"), tools=(), system=PROSE),
        talking(user(PROSE), tools=()),
        talking(user("Hi"), assistant(PROSE), tools=()),
        talking(user("Hi"), assistant("", call("a", {"path": PROSE})), tools=()),
        talking(user("Hi"), assistant("", call("a", PROSE)), tools=()),
        talking(user("Hi"), assistant("", call("a", {}, name=PROSE)), tools=()),
        talking(user("Hi"), assistant("", call("a", {})), result("a", PROSE), tools=()),
        talking(user("Hi"), tools=(replace(TREE, description=PROSE),)),
        talking(user("Hi"), tools=(replace(TREE, parameters={"description": PROSE}),)),
        talking(user("Hi"), tools=(), schema={"description": PROSE}),
    ]
    for request in longer:
        assert estimate_request(request) > estimate_tokens(PROSE)
        assert tokens_of(request) == estimate_request(request)


def test_messages_are_counted_instead_of_the_prompt() -> None:
    assert estimate_request(talking(user("Hi"), prompt=PROSE)) == estimate_request(
        talking(user("Hi"))
    )


def test_many_short_messages_take_more_than_one_long() -> None:
    many = talking(*[user("Hi") for _ in range(100)])
    assert estimate_request(many) > 2 * estimate_request(talking(user("Hi " * 100)))

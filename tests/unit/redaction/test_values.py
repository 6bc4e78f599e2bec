"""What a value looks like."""

from __future__ import annotations

import base64

import pytest

from recollect.redaction import checks as values
from recollect.redaction.loading import bundled_rules
from tests.tables import every_row

WORDS = bundled_rules().words


@pytest.mark.parametrize(
    "value",
    ["q7MTX6T5bC6O3hDp", "01234567-89ab-cdef-0123-456789abcdef", "h!k%9^w=2+q", "/a9Kd+w2Lq8Z"],
)
def test_a_token_looks_made(value: str) -> None:
    assert values.looks_made(value, WORDS)


@every_row(
    "value",
    [
        "app-secrets-2",
        "4096",
        "1.22.3",
        "2026-03-01T10:00:00Z",
        "/run/secrets/db",
        "true",
        "short1",
        "https://x.org/a1b2c3d4",
        "$argon2id$v=19$m=65536",
        "(?:[a-z]+)|[0-9]",
        "${TOKEN_12345}",
    ],
)
def test_what_is_no_token_does_not(value: str) -> None:
    assert not values.looks_made(value, WORDS)


@pytest.mark.parametrize("value", ["hunter2", "P@ssw0rd!", "123456", "swordfish", "maple-otter-42"])
def test_a_password_looks_chosen(value: str) -> None:
    assert values.looks_chosen(value, WORDS, is_quoted=False)


@every_row(
    "value", ["string", "required", "expired", "confirmPassword", "abc", "a sentence with words"]
)
def test_a_word_does_not(value: str) -> None:
    assert not values.looks_chosen(value, WORDS, is_quoted=True)


@pytest.mark.parametrize(
    ("value", "following"),
    [("get_token", "()"), ("tokens", "[0]"), ("req.body.password", ";"), ("self.x+len", "(")],
)
def test_an_expression_is_code(value: str, following: str) -> None:
    assert values.is_code(value, following)


def test_random_characters_are_no_code() -> None:
    assert not values.is_code("wJp.DSuG80Yu8_xkK7x", "@host")


def test_basic_credentials_hold_a_colon() -> None:
    assert values.is_basic(base64.b64encode(b"bob:hunter2").decode())
    assert not values.is_basic("training")
    assert not values.is_basic(base64.b64encode(b"no colon here").decode())


def test_a_card_number_has_its_check_digit() -> None:
    digits = "4" + "1735" * 3 + "29"
    valid = [digit for digit in "0123456789" if values.is_card(digits + digit)]
    assert len(valid) == 1
    assert not values.is_card("0" * 16)


def test_entropy_is_bits_per_character() -> None:
    assert values.entropy("") == 0
    assert values.entropy("aaaa") == 0
    assert values.entropy("abcd") == 2

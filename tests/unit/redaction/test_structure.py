"""JSON values: secrets by their keys, by their looks, and everything else as it was."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.redaction import Redactor
from tests.unit.redaction.test_redactor import GITHUB, bare, kinds


@pytest.mark.parametrize(
    "key",
    ["password", "dbPassword", "DB_PASSWORD", "user-pass", "passphrase", "PGPASSWORD", "pwd"],
)
def test_a_value_under_a_telling_key_is_a_secret(redactor: Redactor, key: str) -> None:
    assert kinds(redactor.redact_json({key: "sun flower 7"})[key]) == ["password"]
    assert kinds(redactor.redact_json({key: ["sunflower7"]})[key][0]) == ["password"]


@pytest.mark.parametrize("key", ["api_key", "apiKey", "X-Api-Key", "client_secret", "authToken"])
def test_keys_of_machines_tell_too(redactor: Redactor, key: str) -> None:
    assert kinds(redactor.redact_json({key: "q7MTX6T5bC6O3hDp"})[key])


@pytest.mark.parametrize(
    "value",
    [
        {"password": None, "token": "", "secret": True, "api_key": "<your key>"},
        {"password": {"type": "string", "minLength": 8}, "required": ["password"]},
        {"token_count": 4096, "max_tokens": 100, "next_page_token": "q7MTX6T5bC6O3hDp"},
        {"password_hash": "q7MTX6T5bC6O3hDp", "pin": 13, "key": "username"},
        {"sessionId": "0ccf1a04-1b4c-43b6-8aa5-79e41db43a68", "n": 1.5, "ok": True},
    ],
)
def test_what_is_no_secret_comes_back_equal(redactor: Redactor, value: Any) -> None:
    assert redactor.redact_json(value) == value


def test_a_number_that_its_key_calls_a_card_s_is_a_secret(redactor: Redactor) -> None:
    card = 4_111_111_111_111_111
    assert kinds(redactor.redact_json({"cardNumber": card})["cardNumber"]) == ["card-number"]
    ids = {"id": 4_111_111_111_111_112, "card_id": 1_700_000_000_000, "card_count": 12}
    assert redactor.redact_json(ids) == ids


def test_the_value_is_copied_and_keeps_its_order(redactor: Redactor) -> None:
    value = {"b": 1, "password": "hunter2x", "a": [{"z": 1, "y": GITHUB}], "c": ("x",)}
    redacted = redactor.redact_json(value)
    assert list(redacted) == ["b", "password", "a", "c"]
    assert list(redacted["a"][0]) == ["z", "y"]
    assert value["password"] == "hunter2x"


def test_a_format_says_more_than_a_key(redactor: Redactor) -> None:
    assert redactor.redact_json({"token": GITHUB}) == {"token": redactor.redact(GITHUB)}


def test_a_key_that_holds_a_secret_is_redacted(redactor: Redactor) -> None:
    assert [bare(key) for key in redactor.redact_json({GITHUB: 1, "name": 2})] == [
        "<github-token>",
        "name",
    ]


def test_a_name_beside_a_value_tells(redactor: Redactor) -> None:
    value = [{"name": "DB_PASSWORD", "value": "hunter2x"}, {"name": "PORT", "value": "hunter2x"}]
    first, second = redactor.redact_json(value)
    assert kinds(first["value"]) == ["password"]
    assert second["value"] == "hunter2x"


def test_a_flag_in_a_list_of_arguments_tells(redactor: Redactor) -> None:
    value = ["mysql", "--password", "hunter2x", "--host", "hunter2x"]
    redacted = redactor.redact_json(value)
    assert kinds(redacted[2]) == ["password"]
    assert redacted[4] == "hunter2x"


def test_a_pin_that_is_a_number_goes_and_a_small_number_stays(redactor: Redactor) -> None:
    redacted = redactor.redact_json({"pin": 4821, "gpio": {"pin": 13}, "year": 2026})
    assert kinds(redacted["pin"]) == ["pin"]
    assert redacted["gpio"] == {"pin": 13}
    assert redacted["year"] == 2026


def test_redacting_a_value_twice_changes_nothing(redactor: Redactor) -> None:
    value = {"password": "hunter2x", "pin": 4821, "text": f"use {GITHUB}", "keys": [GITHUB]}
    once = redactor.redact_json(value)
    assert redactor.redact_json(once) == once


def test_no_depth_is_too_much(redactor: Redactor) -> None:
    value: Any = {"password": "hunter2x"}
    for _ in range(50_000):
        value = [value]
    redacted = redactor.redact_json(value)
    while isinstance(redacted, list):
        (redacted,) = redacted
    assert kinds(redacted["password"]) == ["password"]

"""What holds for any text and any value (X6): redaction never fails, never leaks, never repeats."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.redaction import Redactor
from recollect.redaction.loading import bundled_rules
from tests.redaction_corpus.formats import TOKENS
from tests.unit.redaction.conftest import SALT
from tests.unit.strategies import any_text, json_values

REDACTOR = Redactor(bundled_rules(), frozenset(), SALT)
FRAGMENTS = st.sampled_from(
    [
        "password",
        "pass",
        " is ",
        "=",
        ": ",
        '"',
        "'",
        "token",
        "key",
        "secret",
        "\n",
        " ",
        "://",
        "u:p4ss@",
        "hunter2x",
        "Bearer ",
        "cookie: sid=",
        "[redacted:password:0123abcd]",
        "my ",
        ",",
        "-----BEGIN PRIVATE KEY-----",
        "A1b2C3d4E5f6G7h8",
        "pin",
        "4821",
        "\\",
        "$",
        "{",
        "}",
        "--",
        "use ",
        " as the password",
        "[redacted:",
        "]",
        "x",
        "\x00",
        "\ud800",
        "İ",
        "eyJ",
        "sk-",
        "/",
    ]
)
texts = st.lists(FRAGMENTS | any_text, max_size=14).map("".join)
BORDERS = st.sampled_from([*" \n\t\"'`,;()[]{}<>=|", "\\n", "\r\n", ": ", "→ "])


@given(texts)
@settings(max_examples=400, deadline=None)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once) == once


@given(texts)
@settings(deadline=None)
def test_findings_lie_in_the_text_in_order_and_apart(text: str) -> None:
    end = 0
    for found in REDACTOR.find(text):
        assert end <= found.start < found.end <= len(text)
        end = found.end


@pytest.mark.parametrize("kind", sorted(TOKENS))
@given(seed=st.integers(0, 2**32), before=texts, after=texts, first=BORDERS, last=BORDERS)
@settings(max_examples=15, deadline=None)
def test_a_token_of_a_known_format_never_survives(
    kind: str, seed: int, before: str, after: str, first: str, last: str
) -> None:
    """P10: whatever stands around it."""
    secret = TOKENS[kind](random.Random(seed))
    assert secret not in REDACTOR.redact(before + first + secret + last + after)


def shape(value: Any) -> Any:
    """A value with its texts and numbers taken out."""
    match value:
        case dict():
            return [shape(inner) for inner in value.values()]
        case list():
            return [shape(inner) for inner in value]
        case _:
            return None


@given(json_values | st.dictionaries(texts, json_values, max_size=4))
@settings(deadline=None)
def test_a_value_keeps_its_shape_and_is_redacted_once(value: Any) -> None:
    once = REDACTOR.redact_json(value)
    assert shape(once) == shape(value)
    assert REDACTOR.redact_json(once) == once

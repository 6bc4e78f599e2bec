"""Texts are made short and clean without losing what was said, and redacted before they are cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.extraction.transcript import (
    call_digest,
    cleaned,
    one_line,
    shortened,
    shown,
    without_base64,
    without_data_urls,
)
from tests.tables import every_row
from tests.unit.extraction.material import unchanged
from tests.unit.strategies import any_text, json_values


def without_word(text: str) -> str:
    """A redaction with one secret."""
    return text.replace("hunter2hunter2", "[secret]")


@every_row("line_break", ["\n", "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"])
def test_there_is_one_kind_of_line_break(line_break: str) -> None:
    assert cleaned(f"a{line_break}b") == "a\nb"


@every_row(
    "unseen",
    [
        "\x00",
        "\x1b",
        "\x07",
        "\x9b",
        "\u200b",
        "\u2060",
        "\ufeff",
        "\u202e",
        "\u2066",
        "\U000e0041",
    ],
)
def test_what_nobody_can_see_goes(unseen: str) -> None:
    assert cleaned(f"pass{unseen}word") == "password"


@pytest.mark.parametrize("escape", ["\x1b[31m", "\x1b[0;1;32m", "\x1b[2K", "\x1b]0;title\x07"])
def test_what_a_terminal_is_told_goes_as_a_whole(escape: str) -> None:
    assert cleaned(f"pass{escape}word") == "password"


def test_an_unfinished_escape_takes_no_words_along() -> None:
    assert cleaned("\x1b]0;title and all that follows") == "]0;title and all that follows"


@pytest.mark.parametrize("text", ["tab\there", "👩‍👩‍👧", "می‌خواهم", "naïve — “quoted”", "日本語"])
def test_what_people_write_stays(text: str) -> None:
    assert cleaned(text) == text


@given(any_text)
def test_clean_text_can_be_sent_and_has_only_one_kind_of_line_break(text: str) -> None:
    clean = cleaned(text)
    clean.encode()
    assert f"{clean}.".splitlines() == f"{clean}.".split("\n")
    assert cleaned(clean) == clean


@given(any_text, st.integers(2, 30))
def test_a_line_is_one_line_and_no_longer_than_it_may_be(text: str, chars_max: int) -> None:
    line = one_line(text, chars_max)
    assert len(line) <= chars_max
    assert len(line.splitlines()) <= 1


@given(st.text(max_size=3000), st.integers(2, 1500))
def test_a_shortened_text_keeps_its_beginning_and_its_limit(text: str, chars_max: int) -> None:
    short = shortened(text, chars_max)
    assert len(short) <= chars_max or short == text
    assert short[:1] == text[:1]
    if len(text) <= chars_max:
        assert short == text


def test_a_shortened_text_says_how_much_is_missing() -> None:
    short = shortened("a" * 600 + "z" * 600, 248)
    assert short.startswith("aaa")
    assert short.endswith("zzz")
    assert "[… 1,000 characters left out …]" in short


def test_a_secret_is_redacted_before_the_text_is_cut() -> None:
    """X6: half a secret looks like none, so that no cut may come first."""
    secret = "hunter2" * 2
    for before in range(0, 400, 7):
        text = "x" * before + secret + "y" * 400
        assert "hunter2" not in shown(text, without_word, 200)


def test_a_secret_in_the_arguments_of_a_call_is_redacted_before_they_are_cut() -> None:
    secret = "hunter2" * 2
    for before in range(0, 400, 7):
        arguments = json.dumps({"body": "x" * before + secret + "y" * 400, "other": secret})
        assert "hunter2" not in call_digest(arguments, without_word, 200)


def test_a_secret_that_json_escapes_would_hide_is_found() -> None:
    def redact(text: str) -> str:
        return text.replace('pass"word"', "[secret]")

    assert "[secret]" in call_digest({"body": 'the pass"word" is here'}, redact, 400)


def test_binary_data_is_named_and_left_out() -> None:
    data = "iVBORw0KGgo" * 40
    assert without_data_urls(f"see data:image/png;base64,{data} there") == (
        f"see [binary data, {len(data) + 22:,} characters left out] there"
    )
    assert without_base64(f"see {data} there") == "see [binary data, 440 characters left out] there"
    wrapped = "\n".join([("QmFzZTY0" * 9)[:64]] * 6)
    assert without_base64(wrapped) == "[binary data, 389 characters left out]"


@pytest.mark.parametrize("text", ["=" * 500, "a" * 500, "0" * 500, "word " * 200, "a/b/c/" * 100])
def test_long_lines_of_few_kinds_of_characters_are_not_binary(text: str) -> None:
    assert without_base64(text) == text


@every_row(
    ("arguments", "digest"),
    [
        ('{"a": 1, "b": "x"}', '{"a": 1, "b": "x"}'),
        ({"a": [1, None, True]}, '{"a": [1, null, true]}'),
        ("ls -la", "ls -la"),
        ('"just text"', '"just text"'),
        ("{broken", "{broken"),
        (None, "{}"),
        ("", ""),
        (5, "5"),
        ('{"n": NaN}', '{"n": NaN}'),
    ],
)
def test_arguments_come_in_any_shape(arguments: object, digest: str) -> None:
    assert call_digest(arguments, unchanged, 400) == digest


def test_of_long_arguments_every_value_is_shown_a_little() -> None:
    digest = call_digest(
        {"path": "/srv/app.py", "content": "c" * 5000, "mode": "w"}, unchanged, 400
    )
    assert len(digest) <= 400
    assert '"path": "/srv/app.py"' in digest
    assert '"mode": "w"' in digest


def test_arguments_that_are_nested_without_end_are_text() -> None:
    assert call_digest("[" * 100_000, unchanged, 50).startswith("[[[")


@given(json_values)
def test_a_digest_never_exceeds_its_limit(arguments: object) -> None:
    digest = call_digest(arguments, unchanged, 100)
    assert len(digest) <= 100
    assert "\n" not in digest or isinstance(arguments, str)

"""Bodies of answers, however the network cuts them up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recollect.errors import ModelUnavailable
from recollect.models.http import BodyReader
from tests.tables import every_row

STREAM = (
    b": a comment\r\n\r\nretry: 100\nid: 1\nevent: piece\n"
    b'data: {"text": "gr\xc3\xbc\xc3\x9fe"}\n\n'
    b'data:{"text":\r\ndata: "two lines"}\r\n\r\n'
    b'data: {"text": "last"}\n\ndata: [DONE]\n\ndata: {"text": "too late"}\n\n'
)
OBJECTS = [{"text": "grüße"}, {"text": "two lines"}, {"text": "last"}]


def read(body: bytes, size: int = 65_536) -> list[dict[str, Any]]:
    reader = BodyReader()
    found: list[dict[str, Any]] = []
    for start in range(0, len(body), size):
        found += reader.feed(body[start : start + size])
    return found if reader.is_done else found + list(reader.end())


@every_row("size", [1, 2, 3, 7, 64, 65_536])
def test_a_stream_reads_the_same_wherever_it_is_cut(size: int) -> None:
    assert read(STREAM, size) == OBJECTS


@pytest.mark.parametrize("size", [1, 5, 65_536])
def test_one_document_is_one_object(size: int) -> None:
    content = {"choices": [{"text": "a\nb"}]}
    assert read(json.dumps(content, indent=2).encode(), size) == [content]


def test_a_byte_order_mark_and_white_space_may_come_first() -> None:
    assert read(b"\xef\xbb\xbf \r\n" + b'{"a": 1}', 1) == [{"a": 1}]


def test_the_last_event_needs_no_empty_line_after_it() -> None:
    assert read(b'data: {"a": 1}\n\ndata: {"a": 2}') == [{"a": 1}, {"a": 2}]


def test_a_stream_of_nothing_but_comments_has_no_objects() -> None:
    assert read(b": keep-alive\n\n: keep-alive\n\n") == []


def test_an_error_in_a_list_of_one_is_that_error() -> None:
    assert read(b'[{"error": {"message": "no"}}]') == [{"error": {"message": "no"}}]


@every_row(
    ("body", "what"),
    [
        (b"", "nothing"),
        (b" \r\n ", "nothing"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b"\n\n  <html>", "HTML"),
        (b"Bad Gateway", "not JSON"),
        (b"\x1f\x8b\x08\x00", "not JSON"),
        (b'{"choices": [{"mess', "broken JSON"),
        (b'data: {"choices": [\n\n', "broken JSON"),
        (b"data: \xff\xfe\n\n", "broken JSON"),
        (b"[" * 200_000, "broken JSON"),
        (b'"just a string"', "not an answer"),
        (b"data: 17\n\n", "not an answer"),
        (b"[]", "not an answer"),
    ],
)
def test_what_is_no_answer_is_a_passing_error(body: bytes, what: str) -> None:
    with pytest.raises(ModelUnavailable, match=what):
        read(body)

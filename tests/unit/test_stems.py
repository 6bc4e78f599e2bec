"""Texts become stems, and questions the same: by parts, whole, in pairs, in any script (T5)."""

from __future__ import annotations

import pytest

from recollect.stemming import (
    ASKED_STEMS_MAX,
    INDEXED_BYTES_MAX,
    RECORD_CHARS_MAX,
    asked_stems,
    indexed,
    indexed_record,
    indexed_summary,
    stem,
    stems,
)
from tests.tables import every_row


@every_row(
    ("text", "expected"),
    [
        ("Running houses", "run hous"),
        ("the children bought shoes", "the child buy shoe"),
        ("getUserName()", "get user name getusernam"),
        ("parse_XMLFile", "pars xml file xmlfile"),
        ("USER_ID=42", "user id 42"),
        ("v2.31.4-beta, 3.11 and 10.0.0.7", "2d31d4 beta 3d11 and 10d0d0d7"),
        ("V2.31.4", "2d31d4"),
        ("It was 2023. Then", "it was 2023 then"),
        ("1.2.3.4.5.6.7.8", "1 2 3 4 5 6 7 8"),
        ("2.31rc1", "2 31rc1"),
        ("日本語", "日本 本語"),
        ("日", "日"),
        ("iPhoneを買った", "i phone を買 買っ った iphon を買 買っ った"),
        ("Müller", "muller"),
        ("Mu\u0308ller", "muller"),
        ("ﬁne Ⅷ ｆｕｌｌ", "fine viii full"),
        ("живёт", "живет"),
        ("", ""),
        ("!? _ --", ""),
    ],
)
def test_a_text_is_its_stems(text: str, expected: str) -> None:
    assert stems(text) == expected.split()
    assert indexed(text) == expected


@every_row(
    ("text", "expected"),
    [
        ("Which version is 2.31.4?", {"version": "version", "2d31d4": "2d31d4"}),
        ("getUserName", {"user": "user", "name": "name", "getusernam": "getusername"}),
        ("日本語", {"日本": "日本語", "本語": "日本語"}),
        ("who bought it", {"buy": "bought"}),
        ("the who", {"the": "the", "who": "who"}),
        ("", {}),
    ],
)
def test_a_question_asks_for_the_same_stems(text: str, expected: dict[str, str]) -> None:
    assert asked_stems(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "She bought 3.11 of them at HTTPServer",
        "日本語とPythonを話す",
        "invoice_sender.py in src/payments",
        "Mu\u0308ller lebt in Österreich",
    ],
)
def test_what_is_said_is_found_by_asking_for_it(text: str) -> None:
    assert set(asked_stems(text)) <= set(stems(text))


@every_row(
    "text",
    ["x" * 100_000, "1." * 50_000, "1.1" * 30_000, "aA" * 50_000, "日本" * 50_000, "a.1.b." * 9999],
)
def test_no_text_is_too_odd_to_be_indexed_or_asked(text: str) -> None:
    """Each of these would take many times as long if the work grew faster than the text."""
    assert len(indexed(text).encode()) <= INDEXED_BYTES_MAX
    assert all(each.isalnum() for each in stems(text))
    assert 1 <= len(asked_stems(text)) <= ASKED_STEMS_MAX


def test_of_a_long_record_the_beginning_is_indexed() -> None:
    words = [f"w{number}" for number in range(10_000)]
    found = indexed_record(" ".join(words)).split()
    assert found[:-1] == words[: len(found) - 1]  # the last may be cut
    assert len(" ".join(found)) >= RECORD_CHARS_MAX - 10


def test_a_summary_is_indexed_by_all_it_has() -> None:
    assert indexed_summary("- likes tea", "About drinks", "tea-talk") == (
        "tea talk about drink like tea"
    )
    assert indexed_summary("", "about", None) == "about"


def test_a_stem_is_of_a_plain_word_only() -> None:
    assert (stem("houses"), stem("h2o"), stem("straße")) == ("hous", "h2o", "straße")


@every_row("length", [31, 32, 33, 63, 64, 65, 200])
def test_all_of_a_long_text_without_blanks_is_indexed(length: int) -> None:
    signs = "".join(chr(0x4E00 + at) for at in range(length))
    assert stems(signs) == [signs[at : at + 2] for at in range(length - 1)]
    assert set(asked_stems(signs[-5:])) <= set(stems(f"ab{signs}cd"))

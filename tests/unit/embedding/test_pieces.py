"""Texts as pieces of a vocabulary."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.embedding.local import BLANK, Pieces, load_pieces

MERGES = [f"{BLANK} t", "h e", f"{BLANK}t he", "b e", "e r", "be er", "t h"]
LETTERS = [*"abcdefghijklmnopqrstuvwxyz.", BLANK]
MADE = [pair.replace(" ", "") for pair in MERGES]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
VOCABULARY = {piece: at for at, piece in enumerate([*BYTES, *LETTERS, *MADE])}
NAMES = {at: piece for piece, at in VOCABULARY.items()}


def pieces_of(text: str) -> list[str]:
    return [NAMES[number] for number in Pieces(VOCABULARY, MERGES).of(text)]


def test_the_pair_that_was_learnt_first_is_joined_first() -> None:
    assert pieces_of("the") == [f"{BLANK}the"]
    assert pieces_of("beer") == [BLANK, "beer"]
    assert pieces_of("bhe") == [BLANK, "b", "he"]
    assert pieces_of("hehe") == [BLANK, "he", "he"]


def test_words_begin_with_their_blank_and_marks_stand_apart() -> None:
    assert pieces_of("the beer.") == [f"{BLANK}the", BLANK, "beer", "."]
    assert pieces_of("a  b") == [BLANK, "a", BLANK, BLANK, "b"]


def test_what_the_vocabulary_does_not_have_is_spelled_in_bytes() -> None:
    assert pieces_of("é") == [BLANK, "<0xC3>", "<0xA9>"]


def test_a_vocabulary_without_bytes_leaves_out_what_it_does_not_have() -> None:
    small = {"a": 0, BLANK: 1}
    assert list(Pieces(small, []).of("aéa")) == [1, 0, 0]


def test_nothing_has_no_pieces() -> None:
    assert pieces_of("") == []


@given(st.text())
def test_pieces_put_together_are_the_text(text: str) -> None:
    found = b"".join(
        bytes([VOCABULARY[piece]]) if VOCABULARY[piece] < 256 else piece.encode()
        for piece in pieces_of(text)
    ).decode()
    assert found == (BLANK + text.replace(" ", BLANK) if text else "")


def test_a_word_without_an_end_is_taken_in_parts() -> None:
    assert len(pieces_of("x" * 100_000)) == 100_001


def test_threads_may_share_it() -> None:
    shared, found = Pieces(VOCABULARY, MERGES), []
    text = " ".join(f"{left}{right}" for left in LETTERS[:26] for right in LETTERS[:26])
    threads = [
        threading.Thread(target=lambda: found.append(list(shared.of(text)))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [list(Pieces(VOCABULARY, MERGES).of(text))] * 8


@pytest.mark.parametrize("is_pairs", [False, True])
def test_merges_are_read_in_both_ways_they_are_written(tmp_path: Path, is_pairs: bool) -> None:
    merges = [pair.split(" ") for pair in MERGES] if is_pairs else MERGES
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({"model": {"vocab": VOCABULARY, "merges": merges}}))
    assert list(load_pieces(file).of("the beer")) == list(Pieces(VOCABULARY, MERGES).of("the beer"))

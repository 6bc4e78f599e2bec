"""Diffs in bounded time: as difflib makes them, or what differs as a whole."""

from __future__ import annotations

import difflib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.documents import reading as differences
from recollect.documents.reading import unified

LINES = st.lists(st.sampled_from("abcd"), max_size=12)


def applied(old: list[str], diff: str) -> list[str]:
    """What comes of a text by a diff."""
    made, at = [], 0
    for line in diff.split("\n")[2:] if diff else []:
        match line[:1]:
            case "@":
                start = int(line.split()[1][1:].split(",")[0])
                count = line.split()[1].partition(",")[2]
                first = start if count == "0" else start - 1
                made += old[at:first]
                at = first
            case "+":
                made.append(line[1:])
            case "-":
                assert old[at] == line[1:]
                at += 1
            case _:
                assert old[at] == line[1:]
                made.append(old[at])
                at += 1
    return made + old[at:]


@given(old=LINES, new=LINES)
def test_a_diff_makes_the_new_text_of_the_old(old: list[str], new: list[str]) -> None:
    assert applied(old, unified(old, new, "a", "b")) == new


@given(old=LINES, new=LINES)
def test_a_diff_of_the_whole_does_too(old: list[str], new: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(differences, "PAIRS_MAX", -1)
        diff = unified(old, new, "a", "b")
    assert applied(old, diff) == new


def test_texts_of_the_same_lines_over_and_over_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("compared")

    chance = random.Random(3)
    old, new = ([str(chance.randrange(150)) for _ in range(80_000)] for _ in range(2))
    head = [str(number) for number in range(200, 300)]
    monkeypatch.setattr(difflib, "unified_diff", never)
    diff = unified([*head, *old, *head], [*head, *new, *head], "a", "b")
    assert applied([*head, *old, *head], diff) == [*head, *new, *head]
    assert diff.count("\n") < 160_020

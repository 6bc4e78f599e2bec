"""Merging: what one side changed is taken, what both changed differently is shown, and no more."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.documents.merge import (
    ClashingContent,
    ClashingText,
    MergedContent,
    MergedText,
    merge_contents,
    merge_texts,
)
from recollect.types.pages import Content

texts = st.lists(st.sampled_from(["a", "b", "c", "", "d\r", "\u2028"]), max_size=12).map("\n".join)
SEED = 20261115


def merged(base: str, ours: str, theirs: str) -> str:
    result = merge_texts(base, ours, theirs)
    assert isinstance(result, MergedText), result
    return result.text


def test_changes_in_different_places_come_together() -> None:
    base = "one\ntwo\nthree\nfour\nfive"
    assert merged(base, "ONE\ntwo\nthree\nfour\nfive", "one\ntwo\nthree\nfour\nFIVE\nsix") == (
        "ONE\ntwo\nthree\nfour\nFIVE\nsix"
    )


def test_a_removal_and_an_addition_elsewhere_come_together() -> None:
    base = "\n".join("abcdefgh")
    assert merged(base, "\n".join("acdefgh"), "\n".join("abcdefxgh")) == "\n".join("acdefxgh")


def test_the_same_change_on_both_sides_is_made_once() -> None:
    assert merged("a\nb\nc\nd\ne", "a\nB\nc\nd\ne", "a\nB\nc\nd\nE") == "a\nB\nc\nd\nE"


def test_different_changes_of_one_line_clash_and_show_both() -> None:
    result = merge_texts("a\nb\nc", "a\nours\nc", "a\ntheirs\nc")
    assert isinstance(result, ClashingText)
    assert result.clashes == 1
    assert result.text == "a\n<<<<<<< the document\nours\n=======\ntheirs\n>>>>>>> the file\nc"


def test_two_additions_at_one_place_clash() -> None:
    assert isinstance(merge_texts("a\nb", "a\nx\nb", "a\ny\nb"), ClashingText)


def test_a_change_of_what_the_other_side_removed_clashes() -> None:
    assert isinstance(merge_texts("a\nb\nc", "a\nc", "a\nB\nc"), ClashingText)


@given(texts, texts)
def test_who_changed_alone_gets_what_it_wrote(base: str, changed: str) -> None:
    assert merged(base, base, changed) == changed
    assert merged(base, changed, base) == changed
    assert merged(base, changed, changed) == changed


@given(texts, texts, texts)
def test_a_merge_is_symmetric_up_to_the_order_of_the_sides(
    base: str, ours: str, theirs: str
) -> None:
    one, other = merge_texts(base, ours, theirs), merge_texts(base, theirs, ours)
    assert type(one) is type(other)
    if isinstance(one, MergedText):
        assert one == other


@given(texts, texts, texts)
def test_a_clean_merge_makes_no_line_up(base: str, ours: str, theirs: str) -> None:
    result = merge_texts(base, ours, theirs)
    if isinstance(result, MergedText):
        assert set(result.text.split("\n")) <= set(f"{base}\n{ours}\n{theirs}".split("\n"))


@pytest.mark.parametrize("alphabet", ["a", "ab", "abcdefghijklmnop"])
def test_no_text_takes_forever(alphabet: str) -> None:
    """It has an end because the work has a limit; without one this takes hours."""
    print(f"seed {SEED}")
    choice = random.Random(SEED)
    base, ours, theirs = ("\n".join(choice.choices(alphabet, k=60_000)) for _ in range(3))
    assert isinstance(merge_texts("x\n" + base, "y\n" + ours, "z\n" + theirs), ClashingText)


BASE = Content(title="t", description="d", body="1\n2\n3\n4\n5", tags=("a", "b"), links=("~/x",))


def test_fields_are_merged_each_for_itself() -> None:
    ours = Content(title="T", description="d", body="1\n2\n3\n4\nV", tags=("a", "b", "c"), links=())
    theirs = Content(
        title="t", description="D", body="I\n2\n3\n4\n5", tags=("b", "d"), links=BASE.links
    )
    assert merge_contents(BASE, ours, theirs) == MergedContent(
        content=Content(
            title="T", description="D", body="I\n2\n3\n4\nV", tags=("b", "c", "d"), links=()
        )
    )


def test_fields_that_both_changed_differently_are_named() -> None:
    ours = Content(title="x", body="x")
    theirs = Content(title="y", body="y")
    result = merge_contents(BASE, ours, theirs)
    assert isinstance(result, ClashingContent)
    assert result.fields == ("title", "body")

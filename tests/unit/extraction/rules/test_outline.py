"""A document is read back as it was written, and grows within its bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.extraction.rules.texts import Outline, TextSection, read_outline


def sample() -> Outline:
    first = TextSection(title="Task 1: tea", lines=["task: tea"], lists={"Notes": ["- hot [#1]"]})
    second = TextSection(title="Task 2: cake", lines=["task: cake"])
    return Outline(front={"description": "a day"}, lead=["# A day"], sections=[first, second])


def test_a_document_is_read_back_as_it_was_written() -> None:
    assert read_outline(sample().text()) == sample()
    assert read_outline(sample().text()).text() == sample().text()


def test_a_text_of_another_make_is_kept() -> None:
    text = "Tea was made.\n\n## Tea\noutcome: success\n- hot"
    outline = read_outline(text)
    assert outline.lead == ["Tea was made."]
    assert outline.sections[0].lines == ["outcome: success", "- hot"]
    assert outline.text() == text


def test_a_list_grows_each_entry_once_and_loses_the_oldest() -> None:
    section = TextSection(title="x")
    section.add("Notes", ["a", "b", "a", "c"], 2)
    assert section.lists == {"Notes": ["- b", "- c"]}
    section.grow(["one", "one\ntwo"], 5)
    assert section.lines == ["- one", "- one two"]


def test_a_field_is_replaced_not_repeated() -> None:
    section = TextSection(title="x")
    section.put("outcome", "fail")
    section.put("outcome", "success\nat last")
    assert section.lines == ["outcome: success at last"]
    assert section.get("outcome") == "success at last"
    assert section.get("task") == ""


def test_what_is_too_long_loses_its_oldest_first() -> None:
    outline = Outline(front={"description": "a day"})
    for number in range(20):
        section = outline.section(f"Task {number}")
        section.put("task", f"number {number}")
        section.add("Notes", [f"note {number} {word}" for word in range(10)], 10)
    text = outline.bounded(1500)
    assert len(text) <= 1500
    assert "description: a day" in text
    assert "note 19 9" in text
    assert "note 0 0" not in text


@given(st.text(max_size=300), st.integers(min_value=10, max_value=200))
def test_any_text_can_be_read_and_bounded(text: str, chars_max: int) -> None:
    assert len(read_outline(text).bounded(chars_max)) <= chars_max

"""N3: what a model cites is read from its answer, also while it streams, and taken out of it."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from recollect.recall.usage import MARK_CHARS_MAX, CitationStream, Cited, without_citations
from tests.tables import every_row
from tests.unit.strategies import any_text


@every_row(
    ("text", "rest", "marks"),
    [
        ("She lives in Oslo [m1].", "She lives in Oslo.", ("m1",)),
        ("She lives in Oslo[m1].", "She lives in Oslo.", ("m1",)),
        ("Tea [m2, m10], Oslo [m1;m2].", "Tea, Oslo.", ("m2", "m10", "m1")),
        ("Tea [m2] [m3][m4].", "Tea.", ("m2", "m3", "m4")),
        ("[m1] Tea.\n[m2] Oslo.", "Tea.\nOslo.", ("m1", "m2")),
        ("- [m1] Tea\n- Oslo [m2]\n", "- Tea\n- Oslo\n", ("m1", "m2")),
        ("Tea [m1]", "Tea", ("m1",)),
        ("[m1]", "", ("m1",)),
        ("Tea [m1, [m2]", "Tea [m1,", ("m2",)),
        ("[[m1]]", "[]", ("m1",)),
        ("`a` is it [m1], not `b` [m2]", "`a` is it, not `b`", ("m1", "m2")),
        ("a ` alone [m1]\nand on [m2]", "a ` alone [m1]\nand on", ("m2",)),
        ("~~~\nx[m1]\n~~~\nso ~~ [m2]", "~~~\nx[m1]\n~~~\nso ~~", ("m2",)),
        ("```\nx[m1]\n```\nso [m2]", "```\nx[m1]\n```\nso", ("m2",)),
    ],
)
def test_marks_are_read_and_taken_out(text: str, rest: str, marks: tuple[str, ...]) -> None:
    assert without_citations(text) == Cited(text=rest, marks=marks)


@every_row(
    "text",
    [
        "",
        " ",
        "[m] [1] [m0] [m01] [m1234] [M1] [m1 ] [ m1] [m1,] [m1,,m2] [m1  m2] [n1] [] [m-1]",
        "`arr[m1]` is code",
        "``` \nrows[m1]\n",
        "- ```\n  x[m1] = 2\n  ```\n",
        "> ```\n> x[m1] = 2\n",
        "~~~ py\nx[m1] = 2\n```\ny[m2]\n~~~\n",
        "[m1",
        "see [m1, m",
        "<oai-mem-citation>m1</oai-mem-citation>",
        "a  [b]  c ",
        "[" + "m1, " * MARK_CHARS_MAX + "m1]",
    ],
)
def test_what_only_looks_like_a_mark_stays(text: str) -> None:
    assert without_citations(text) == Cited(text=text, marks=())


def test_marks_that_no_block_has_stay_where_they_are() -> None:
    text = "Tea [m1], Oslo [m7], both [m2, m7]."
    assert without_citations(text, known={"m1", "m2"}) == Cited(
        text="Tea, Oslo [m7], both.", marks=("m1", "m2")
    )


def test_what_is_certain_is_shown_at_once() -> None:
    stream = CitationStream()
    assert stream.feed("She lives in Oslo") == "She lives in Oslo"
    assert stream.feed(" [") == ""
    assert stream.feed("m") == ""
    assert stream.feed("1") == ""
    assert stream.feed("]. Yes") == ". Yes"
    assert stream.cited == ("m1",)
    assert stream.feed(" [mo") == " [mo"
    assert stream.feed("re [m2") == "re"
    assert stream.close() == " [m2"
    assert stream.close() == ""
    assert stream.cited == ("m1",)


# Texts that come close to marks far more often than chance would have it.
texts = st.lists(
    st.sampled_from(["[m1]", "[m2, m3]", "[", "]", "m", "m1", "1", ",", ";", " ", "\n", "`", "```"])
    | any_text,
    max_size=30,
).map("".join)


@given(texts, st.lists(st.integers(1, 9), max_size=60))
@example("a [m1] b", [1] * 8)
@example("```\n[m1]\n```\n[m2] x", [1] * 20)
def test_it_does_not_matter_how_a_text_is_cut(text: str, sizes: list[int]) -> None:
    stream = CitationStream(known={"m1", "m3"})
    shown, start = "", 0
    for size in [*sizes, len(text)]:
        shown += stream.feed(text[start : start + size])
        start += size
    shown += stream.close()
    assert Cited(text=shown, marks=stream.cited) == without_citations(text, known={"m1", "m3"})


@given(texts)
def test_no_more_is_held_back_than_a_mark_is_long(text: str) -> None:
    stream = CitationStream(known=())  # so that everything comes out in the end
    fed = shown = 0
    for character in text + "[" + "m1," * 40:
        fed += 1
        shown += len(stream.feed(character))
        assert fed - shown <= MARK_CHARS_MAX + 2
    assert shown + len(stream.close()) == fed


@given(texts)
@example("[[m1]m]")
def test_only_marks_and_blanks_beside_them_are_taken_out(text: str) -> None:
    prose = text.replace("`", "")
    marks = re.compile(r"\[m[1-9][0-9]{0,2}(?:[,;] ?m[1-9][0-9]{0,2})*\]")
    rest = without_citations(prose).text
    assert rest.replace(" ", "") == marks.sub("", prose).replace(" ", "")


@given(st.lists(st.tuples(st.text("abc .é", min_size=1), st.integers(1, 999)), max_size=8))
def test_every_mark_in_prose_is_found(said: list[tuple[str, int]]) -> None:
    text = "".join(f"{words}[m{number}]" for words, number in said)
    found = without_citations(text)
    assert found.marks == tuple(dict.fromkeys(f"m{number}" for _, number in said))
    assert "[" not in found.text

"""D2, links in bodies: what is one, what is code, and what is left of one that leads nowhere."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from recollect.documents.links import LINKS_MAX, find_links, references, unlinked
from recollect.documents.paths import read_path
from recollect.types.pages import ReferenceKind
from tests.tables import every_row

MARKDOWN = st.text(st.sampled_from("`~[]|ab/.\n \\"), max_size=60)


def targets(body: str) -> list[str]:
    return [link.path.text.removeprefix("~/memory/") for link in find_links(body)]


@every_row(
    ("body", "expected"),
    [
        ("see [[people/Ana]]", ["people/Ana"]),
        ("[[people/Ana|my friend]] and [[b]][[c]]", ["people/Ana", "b", "c"]),
        ("[[ a | b ]]", ["a"]),
        ("[[a.md]] [[/b]] [[~/memory/c]]", ["a", "b", "c"]),
        ("[[a]", []),
        ("[a]] [[]] [[|x]] [[a\nb]]", []),
        ("[[..]] [[a/../b]] [[#top]] [[a|b|c]]", []),
        ("[[[a]]]", ["a"]),
        ("[[a]]\n\n    [[b]]", ["a", "b"]),
        ("[[日本語|x]] é [[ü]]", ["日本語", "ü"]),
    ],
)
def test_a_link_is_two_brackets_around_a_path(body: str, expected: list[str]) -> None:
    assert targets(body) == expected


@every_row(
    ("body", "expected"),
    [
        ("`[[a]]` [[b]]", ["b"]),
        ("``[[a]] ` [[b]]`` [[c]]", ["c"]),
        ("` [[a]]", ["a"]),
        ("`` [[a]] ` [[b]]", ["a", "b"]),
        ("`one\n[[a]]\ntwo` [[b]]", ["b"]),
        ("a ` tick\n\n[[a]] ` tick", ["a"]),
        ("```\n[[a]]\n```\n[[b]]", ["b"]),
        ("```python\n[[a]]\n```\n[[b]]", ["b"]),
        ("~~~\n[[a]]\n```\n[[b]]\n~~~\n[[c]]", ["c"]),
        ("````\n[[a]]\n```\n[[b]]\n`````\n[[c]]", ["c"]),
        ("```\n[[a]]", []),
        ("```a``` [[b]]\n[[c]]", ["b", "c"]),
        ("text\n```\n[[a]]\n``` no end\n[[b]]\n```", []),
        ("   ```\n[[a]]\n   ```  \n[[b]]", ["b"]),
        ("\r\n```\r\n[[a]]\r\n```\r\n[[b]]\r\n", ["b"]),
    ],
)
def test_code_links_to_nothing(body: str, expected: list[str]) -> None:
    assert targets(body) == expected


def test_a_body_has_so_many_links_and_the_rest_is_text() -> None:
    body = " ".join(f"[[p{number}]]" for number in range(LINKS_MAX + 5))
    assert targets(body) == [f"p{number}" for number in range(LINKS_MAX)]


def test_every_page_is_referred_to_once_in_each_way() -> None:
    found = references(
        "[[a|one]] [[A|two]] [[b]]", [read_path("b"), read_path("B"), read_path("c")]
    )
    assert [(each.kind, each.place.text, each.alias) for each in found] == [
        (ReferenceKind.LINK, "~/memory/b", ""),
        (ReferenceKind.LINK, "~/memory/c", ""),
        (ReferenceKind.BODY, "~/memory/a", "one"),
        (ReferenceKind.BODY, "~/memory/b", ""),
    ]


def test_a_link_to_what_is_gone_becomes_its_words() -> None:
    body = "[[x/Gone|her]], [[x/gone]], `[[x/gone]]`, [[kept|him]]"
    gone = read_path("x/gone")
    left = unlinked(body, lambda path: path.key == gone.key)
    assert left == "her, gone, `[[x/gone]]`, [[kept|him]]"


@given(MARKDOWN)
def test_any_text_is_read_and_each_link_stands_where_it_says(body: str) -> None:
    ends = 0
    for link in find_links(body):
        assert ends <= link.start < link.end <= len(body)
        assert body[link.start : link.start + 2] + body[link.end - 2 : link.end] == "[[]]"
        ends = link.end
    assert unlinked(body, lambda _: False) == body


@every_row(
    "body",
    [
        "a " + "`" * 200_000 + "x" * 60_000,
        "a " + " ".join("`" * length for length in range(1, 700)),
        "`a``b" * 50_000,
        "[[" * 130_000,
        "[[a" * 80_000,
        "[[" + "a" * 260_000,
        "```\n" * 60_000,
        "~~~~\n```\n" * 25_000,
        "[[a|" * 60_000,
        "\n" * 260_000,
    ],
)
def test_no_body_takes_long_to_read(body: str) -> None:
    """Each of them took minutes or more where the time grew with the square of the length."""
    assert targets(body) == []

"""D3, paths: from any text to a place in the tree or InvalidPath, and to the same one again."""

from __future__ import annotations

import unicodedata

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from recollect.documents.paths import (
    DEPTH_MAX,
    SLUG_BYTES_MAX,
    SLUG_CHARS_MAX,
    DocumentPath,
    memory_root,
    read_path,
    slug_key,
)
from recollect.errors import InvalidPath
from recollect.types.pages import PATH_BYTES_MAX
from tests.tables import every_row

SLUGS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
TEXTS = st.text(st.sampled_from("aAbß./~ \\%:\u0301\u00e9İıſK\u0345ΣςΰﬁÅ日🙂-_md"), max_size=24)


@every_row(
    ("text", "shown"),
    [
        ("~/memory/people/Ana", "~/memory/people/Ana"),
        ("people/Ana", "~/memory/people/Ana"),
        ("/people/Ana", "~/memory/people/Ana"),
        ("/people/Ana/", "~/memory/people/Ana"),
        ("people/Ana.md", "~/memory/people/Ana"),
        ("people/Ana.MD", "~/memory/people/Ana"),
        ("~/other/a.b", "~/other/a.b"),
        ("~/memory/", "~/memory"),
        ("~/MEMORY/a", "~/MEMORY/a"),
        ("café menu (2)", "~/memory/café menu (2)"),
        ("cafe\u0301", "~/memory/caf\u00e9"),
        ("日本語/🙂", "~/memory/日本語/🙂"),
        ("v1.2", "~/memory/v1.2"),
        ("1½ cups", "~/memory/1½ cups"),
    ],
)
def test_a_path_is_read_as_it_is_written(text: str, shown: str) -> None:
    assert read_path(text).text == str(read_path(text)) == shown


@every_row(
    "text",
    [
        *(
            "",
            "/",
            "~",
            "~/",
            "~//",
            "//a",
            "a//b",
            "~/memory//",
            ".",
            "..",
            "../a",
            "a/../b",
            "a/./b",
        ),
        *("~root/a", "~/~", "a/~b", ".hidden", "a/.git", "a.", "a ", " a", "-rf", "a/-b", "a  b"),
        *("%2e%2e", "a%2fb", "a\\b", "\\\\host\\share", "c:", "c:\\a", "file:a", "a:b"),
        *("a\x00b", "a\nb", "a\tb", "\x7f", "a\x85b", "a\u2028b", "\ud800", "a\u200bb", "\u202ea"),
        *("\ufeffa", "\u2024\u2024", "\uff0e\uff0e", "\u2025", "a\uff0fb", "a\u2044b", "a\u2215b"),
        *("a\u29f8b", "a\ufe68b", "a\u2216b", "\u2100", "a\u00a0b", "a\u3000b", "\u00a8", "\u2026"),
        *("con", "CON", "con.txt", "a/NUL", "com1", "COM¹", "lpt9.x", "aux ", "nul.md", "ｃｏｎ"),
        *("a*", "a?", 'a"', "a<b", "a|b", "a#b", "[a]", "a]]", "`a`", "$a", "{a}", "!a", "a;b"),
        *("a&b", "a=b", "\u0301a", "\u0903", "\ufe0fa", "a\ufe0f", "\u3164", "\u115f", "\u2800"),
        *("a\u034fb", "a\U000e0100", "a\u180e", "\ue000", "\u0378", "a.md.md", "a.md/b", "a.MD/b"),
        *("a.ⅿⅾ/b", ".md", "~/.md"),
    ],
)
def test_what_could_mean_something_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidPath):
        read_path(text)


@pytest.mark.parametrize("value", [None, 7, b"a", ["a"]])
def test_a_path_is_text(value: object) -> None:
    with pytest.raises(InvalidPath, match="is text"):
        read_path(value)  # type: ignore[arg-type]


def test_a_refusal_says_what_is_wrong_without_what_a_terminal_could_act_on() -> None:
    with pytest.raises(InvalidPath, match=r"\\u202e") as caught:
        read_path("a/\u202eevil\x1b[2J")
    assert str(caught.value).isprintable()


def test_names_are_as_long_as_they_may_be_and_no_longer() -> None:
    longest = "x" * SLUG_CHARS_MAX
    assert read_path(longest).slug == longest
    assert read_path("語" * (SLUG_BYTES_MAX // 3)).slug
    for slug in ("x" * (SLUG_CHARS_MAX + 1), "語" * (SLUG_BYTES_MAX // 3 + 1)):
        with pytest.raises(InvalidPath, match="more than"):
            read_path(slug)
    for letter in ("x", "ж", "語", "𒀀", "ß"):
        size = len(letter.encode())
        slugs = [letter * (94 // size)] * (DEPTH_MAX - 1)
        rest = PATH_BYTES_MAX - len("/".join(["~", *slugs, ""]).encode())
        whole = "/".join(["~", *slugs, letter * (rest // size)])
        assert read_path(whole).text == whole
        with pytest.raises(InvalidPath, match="at most 1,500 "):
            read_path(f"{whole}{letter}")
    with pytest.raises(InvalidPath, match="bytes"):  # twice as long without its case
        read_path("/".join(["~", *["ŉ" * 46] * DEPTH_MAX]))
    with pytest.raises(InvalidPath, match=f"at most {DEPTH_MAX} parts"):
        read_path("/".join(["~", *["x"] * (DEPTH_MAX + 1)]))
    with pytest.raises(InvalidPath, match="at most"):
        read_path("x" * 10_000_000)


@every_row(
    ("one", "other"),
    [
        *(("Ana", "ANA"), ("Straße", "STRASSE"), ("Å", "\u212b"), ("\u1e9e", "ss"), ("ﬁn", "FIN")),
        *(("é", "E\u0301"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("ᾳ", "\u1fbc"), ("\u0345a", "\u0345A")),
        *(("\u1f80", "\u1f88"), ("ǰ", "J\u030c"), ("ΐ", "\u1fd3"), ("İ", "i\u0307")),
    ],
)
def test_names_that_differ_in_case_or_form_are_the_same(one: str, other: str) -> None:
    assert slug_key(one) == slug_key(other)


def test_a_path_knows_what_stands_above_and_below_it() -> None:
    path = read_path("a/B/c")
    assert [str(above) for above in path.parents] == ["~/memory", "~/memory/a", "~/memory/a/B"]
    assert path.parent == path.parents[-1]
    assert memory_root().parent is None
    assert memory_root().parents == ()
    assert path.parent.child("d") == read_path("a/B/d")
    assert path.parent.child("e\u0301").slug == "\u00e9"
    assert path.place.depth == 4
    for root in ("a", "A/b", "a/b/C", "~/MEMORY"):
        assert path.is_within(read_path(root))
    for root in ("a/B/c/d", "a/b c", "A/Bc", "b", "~/mem"):
        assert not path.is_within(read_path(root))
    for slug in ("..", "", "a/b", "a.md"):
        with pytest.raises(InvalidPath):
            path.child(slug)


@given(TEXTS | SLUGS)
@example("a.md")
@example("~/a/b.md/")
def test_what_is_accepted_comes_back_as_it_is(text: str) -> None:
    try:
        path = read_path(text)
    except InvalidPath:
        return
    again = read_path(path.text)
    assert again == path
    assert again.text == unicodedata.normalize("NFC", path.text)
    assert again.key == path.key
    assert path == DocumentPath(path.slugs)


@given(SLUGS)
def test_a_key_is_its_own_key_whatever_form_and_case_it_is_written_in(slug: str) -> None:
    key = slug_key(slug)
    assert slug_key(key) == key
    for form in ("NFC", "NFD"):
        assert slug_key(unicodedata.normalize(form, slug)) == key
    assert slug_key(slug.casefold()) == key


@given(st.lists(st.lists(st.sampled_from(["a", "A b", "a-", "b", "ü"]), min_size=1, max_size=4)))
def test_keys_sort_each_page_before_what_is_below_it(paths: list[list[str]]) -> None:
    made = sorted((read_path("/".join(slugs)) for slugs in paths), key=lambda path: path.key)
    for number, path in enumerate(made):
        below = [other.is_within(path) for other in made[number:]]
        assert below == sorted(below, reverse=True)

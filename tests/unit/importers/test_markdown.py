"""Folders of notes as documents: places, titles, links, and nothing lost of what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.documents.checking import TAG_CHARS_MAX, TITLE_CHARS_MAX
from recollect.documents.links import find_links
from recollect.documents.paths import read_path
from recollect.importers.items import Odd
from recollect.importers.markdown import Note, Notes, is_note
from recollect.types.pages import Content
from tests.tables import every_row


def note_of(text: str | bytes, name: str = "Note.md", others: tuple[str, ...] = ()) -> Note:
    data = text if isinstance(text, bytes) else text.encode()
    note = Notes([name, *others], folder="Vault").note(name, data)
    assert isinstance(note, Note)
    return note


def paths(*names: str) -> list[str]:
    notes = Notes(names, folder="Vault")
    return [notes.path(name) for name in names]


# places


def test_names_that_can_stay_do_and_others_are_made_legal() -> None:
    assert paths("Ana Müller.md", "a/b/C.markdown", "What is it?.md", "x: y.md") == [
        "~/memory/notes/Vault/Ana Müller",
        "~/memory/notes/Vault/a/b/C",
        "~/memory/notes/Vault/What is it",
        "~/memory/notes/Vault/x y",
    ]


def test_notes_whose_names_would_be_the_same_are_told_apart_and_the_exact_one_stays() -> None:
    names = ("A?.md", "A.md", "a.md", "A!.md")
    found = paths(*names)
    assert found[1] == "~/memory/notes/Vault/A"
    assert len({read_path(path).key for path in found}) == 4
    assert found == list(reversed(paths(*reversed(names))))


def test_a_name_from_another_system_is_the_same_name() -> None:
    assert paths("Mu\u0308ller.md") == paths("Müller.md")


def test_a_folder_that_stands_too_deep_or_is_called_too_long_still_has_a_place() -> None:
    deep, long = "/".join(["d"] * 30) + "/x.md", "/".join(["ü" * 120] * 12) + "/x.md"
    found = paths(deep, long, "CON.md", "...md", "-.md", ".md", "con/nul.md")
    assert len(set(found)) == 7
    assert all(path.startswith("~/memory/notes/Vault/") for path in found)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=5))
@example(["%.md", "$.md", "\ufe0f.md", "/.md", "a//b.md"])
def test_any_names_have_legal_places_of_their_own(names: list[str]) -> None:
    found = Notes(names, folder=names[0] if names else "")
    places = [read_path(found.path(name)) for name in set(names)]
    assert len({place.key for place in places}) == len(places)


# what a note says


def test_front_matter_gives_title_description_and_tags_and_the_rest_is_kept() -> None:
    note = note_of(
        "---\ntitle: The Plan\ndescription: What we do\ntags: [a, '#b', a]\n"
        "created: 2026-01-01\naliases:\n- Scheme\n# a comment\nlist:\n  - x: 1\n---\n"
        "\n# Heading\n\nText.\n"
    )
    assert note.content == Content(
        title="The Plan",
        description="What we do",
        tags=("a", "b"),
        body=(
            "# Heading\n\nText.\n\n```yaml\ncreated: 2026-01-01\naliases:\n- Scheme\n# a comment\n"
            "list:\n  - x: 1\n```"
        ),
    )
    assert note.remarks == ()


@pytest.mark.parametrize(
    ("front", "tags"),
    [
        ("tags: a, b", ("a", "b")),
        ("tags: a b", ("a", "b")),
        ("Tags:\n- a\n- b", ("a", "b")),
        ("tag: a", ("a",)),
        ("tags:", ()),
    ],
)
def test_tags_are_read_as_people_write_them(front: str, tags: tuple[str, ...]) -> None:
    note = note_of(f"---\n{front}\n---\nText")
    assert note.content.tags == tags
    assert note.content.body == "Text"


def test_without_front_matter_the_first_heading_is_the_title_or_else_the_name() -> None:
    assert note_of("```\n# code\n```\n# Real").content.title == "Real"
    assert note_of("only text", name="a/My note.md").content.title == "My note"
    assert note_of("").content == Content(title="Note")


@every_row(
    "front",
    [
        "tags: {a: [b]}",
        "title: &x y",
        "title: !!python/object a",
        "tags: [" * 50,
        f"title: {'x' * (TITLE_CHARS_MAX + 1)}",
        f"tags: [{'x' * (TAG_CHARS_MAX + 1)}, a]",
        "title: one\ntitle: two",
        "key: ```\ntitle: a",
    ],
)
def test_front_matter_that_has_no_place_or_cannot_be_read_is_not_lost(front: str) -> None:
    note = note_of(f"---\n{front}\nsafe: 1\n---\nText")
    assert note.content.body.startswith("Text\n\n```")
    lost = [line for line in front.splitlines() if line not in note.content.body]
    assert lost in ([], ["title: one"], ["title: a"])
    assert "safe: 1" in note.content.body


def test_a_line_across_the_page_is_no_front_matter() -> None:
    for text in ("---\nSome words.\n---\nMore.", "---\nkey: 1\nno end", "---\n- a\n---"):
        assert note_of(text).content.body == text


def test_other_encodings_and_line_ends_say_the_same() -> None:
    text = "---\ntitle: Grüße\n---\nText\nmore"
    wanted = note_of(text).content
    for data in (
        text.encode("utf-8-sig"),
        text.encode("utf-16"),
        text.replace("\n", "\r\n").encode(),
    ):
        assert note_of(data).content == wanted
    assert [each.detail for each in note_of(b"a\xffb").remarks] == [
        "bytes that are not UTF-8 were replaced"
    ]
    assert isinstance(Notes(["a.md"], folder="V").note("a.md", b"a\0b"), Odd)


# links


OTHERS = ("Projects/Alpha.md", "Projects/Deep/Beta.md", "Beta.md", "people/Ana.md")


@every_row(
    ("link", "wanted"),
    [
        ("[[Alpha]]", "[[~/memory/notes/Vault/Projects/Alpha|Alpha]]"),
        ("[[alpha|the first]]", "[[~/memory/notes/Vault/Projects/Alpha|the first]]"),
        ("[[Projects/Alpha.md]]", "[[~/memory/notes/Vault/Projects/Alpha|Projects/Alpha.md]]"),
        ("[[Alpha#Goals]]", "[[~/memory/notes/Vault/Projects/Alpha|Alpha (Goals)]]"),
        ("![[Alpha]]", "![[~/memory/notes/Vault/Projects/Alpha|Alpha]]"),
        ("[[Beta]]", "[[~/memory/notes/Vault/Beta|Beta]]"),
        ("[[Deep/Beta]]", "[[~/memory/notes/Vault/Projects/Deep/Beta|Deep/Beta]]"),
        ("[[../people/Ana]]", "[[~/memory/notes/Vault/people/Ana|../people/Ana]]"),
        ("[[Ana Maria]]", "[[~/memory/notes/Vault/people/Ana|Ana Maria]]"),
        ("[[Not written yet]]", "[[~/memory/notes/Vault/Not written yet|Not written yet]]"),
        ("![[picture one.png]]", "![picture one.png](<picture one.png>)"),
        ("[[#Here]]", "[[#Here]]"),
        ("`[[Alpha]]`", "`[[Alpha]]`"),
        ("```\n[[Alpha]]\n```", "```\n[[Alpha]]\n```"),
    ],
)
def test_links_lead_to_the_documents_of_the_notes(link: str, wanted: str) -> None:
    notes = Notes(["Projects/Note.md", *OTHERS], folder="Vault")
    notes.learn("people/Ana.md", b"---\naliases: [Ana Maria, A.]\n---\n")
    note = notes.note("Projects/Note.md", f"before {link} after".encode())
    assert isinstance(note, Note)
    if link.startswith("```"):
        note = notes.note("Projects/Note.md", link.encode())
        assert isinstance(note, Note)
        assert note.content.body == wanted
    else:
        assert note.content.body == f"before {wanted} after"


def test_what_was_written_as_a_link_is_found_as_one() -> None:
    body = note_of("[[Alpha]] and [[Ana|her]], twice [[Ana]]", others=OTHERS).content.body
    assert [link.path.slug for link in find_links(body)] == ["Alpha", "Ana", "Ana"]


def test_a_note_that_comes_later_does_not_change_the_one_that_waited_for_it() -> None:
    before = note_of("See [[Later]].")
    assert note_of("See [[Later]].", others=("Later.md",)) == before


def test_hidden_and_other_files_are_none_of_these() -> None:
    assert is_note(Path("a/Note.MD"))
    assert not is_note(Path(".obsidian/Note.md"))
    assert not is_note(Path("a/picture.png"))


@given(
    st.binary(max_size=80)
    | st.text("-\n:#[]|!`ab {}&*'\"\t", max_size=120).map(lambda text: f"---\n{text}".encode())
    | st.lists(
        st.sampled_from(
            ["---\n", "title: ", "tags: ", "- ", "[[", "]]", "|", "#", "a", "\n", "```"]
        )
    ).map(lambda pieces: "".join(pieces).encode())
)
def test_no_bytes_make_it_raise_and_the_same_bytes_say_the_same(data: bytes) -> None:
    notes = Notes(["Note.md", "a.md"], folder="Vault")
    notes.learn("Note.md", data)
    assert notes.note("Note.md", data) == notes.note("Note.md", data)

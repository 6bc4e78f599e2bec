"""Files as text: what is written comes back to the character, and what is hostile stays text."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from recollect.documents.front_matter import (
    FRONT_BYTES_MAX,
    SOURCES_SHOWN,
    FileText,
    Front,
    heading,
    parse,
    render,
)
from recollect.errors import InvalidValue, TooLarge
from recollect.types.facts import Source
from recollect.types.pages import Author, Document
from tests.tables import every_row

ID = "01890000-0000-7000-8000-000000000001"
AT = datetime(2026, 1, 1, tzinfo=UTC)

# Whatever a store holds: everything but NUL and lone surrogates.
storable = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
nasty = st.sampled_from(
    (
        *(
            "---",
            "---\n",
            "...",
            "- a",
            "a: b",
            "# x",
            "null",
            "No",
            "~",
            "0x1",
            "1e3",
            "2024-01-01",
        ),
        *("&a", "*a", "!!int 3", "'", '"', "a\r\nb", "\r\n", "\n", "\n\n", " a ", "a\n", "\ufeffa"),
        *(
            "\x85",
            "[a",
            "{",
            "%YAML",
            "|",
            ">",
            "@",
            "`",
            "a  b",
            "a #b",
            "a:",
            "\t",
            "=",
            "<<",
            "é",
        ),
    )
)
texts = storable | nasty


def document(
    title: str = "Ana",
    description: str = "",
    body: str = "",
    tags: tuple[str, ...] = (),
    links: tuple[str, ...] = (),
    sources: tuple[Source, ...] = (),
) -> Document:
    return Document(
        id=ID,
        space="default",
        path="~/memory/people/Ana",
        title=title,
        description=description,
        body=body,
        tags=tags,
        links=links,
        version=3,
        created_at=AT,
        updated_at=AT,
        deleted_at=None,
        author=Author(),
        reason="",
        sources=sources,
        facts=(),
    )


def source(session_id: str, seq: int, seq_to: int) -> Source:
    return Source(session_id=session_id, seq=seq, seq_to=seq_to, quote="tea")


def front(text: bytes) -> Front:
    parsed = parse(text).front
    assert parsed is not None
    return parsed


def problem(text: str | bytes) -> str:
    with pytest.raises(InvalidValue) as caught:
        parse(text if isinstance(text, bytes) else text.encode())
    return str(caught.value)


def test_a_file_looks_like_this() -> None:
    rendered = render(
        document(
            description="Who: a friend",
            body="# Ana\n\nLikes tea.",
            tags=("person", "2024"),
            sources=(source("s-1", 3, 7), source("s-2", 4, 4)),
        )
    )
    assert rendered.decode() == (
        f'---\nid: "{ID}"\ntitle: Ana\ndescription: "Who: a friend"\ntags:\n- person\n- "2024"\n'
        "version: 3\nsources:\n- s-1/3-7\n- s-2/4\n---\n\n# Ana\n\nLikes tea.\n"
    )


def test_what_is_empty_is_left_out() -> None:
    assert render(document()).decode() == f'---\nid: "{ID}"\ntitle: Ana\nversion: 3\n---\n'


@given(texts, texts, texts, st.lists(texts, max_size=3).map(tuple))
def test_whatever_a_document_says_comes_back(
    title: str, description: str, body: str, tags: tuple[str, ...]
) -> None:
    read = parse(render(document(title or "t", description, body, tags)))
    assert read == FileText(
        front=Front(id=ID, title=title or "t", description=description, tags=tags, version=3),
        body=body,
    )


@given(texts, texts, st.lists(texts, max_size=3).map(tuple))
def test_any_reader_of_yaml_reads_the_same(
    title: str, description: str, tags: tuple[str, ...]
) -> None:
    text = render(document(title or "t", description, "", tags)).decode()
    read = yaml.safe_load(text.removeprefix("---\n").removesuffix("---\n"))
    assert read["title"] == (title or "t")
    assert read.get("description", "") == description
    assert tuple(read.get("tags", ())) == tags


def skill(path: str = "~/memory/skills/using-uv/SKILL") -> Document:
    return replace(document(title="Working with uv", description="Use when …"), path=path)


def test_a_skill_has_the_name_of_its_folder_for_coding_agents() -> None:
    rendered = render(skill())
    assert rendered.decode() == (
        f'---\nid: "{ID}"\nname: using-uv\ntitle: Working with uv\n'
        'description: "Use when …"\nversion: 3\n---\n'
    )
    said = Front(id=ID, title="Working with uv", description="Use when …", version=3)
    assert front(rendered) == said, "it is nothing that a document has a place for, and no edit"


@pytest.mark.parametrize("path", ["~/memory/skills/SKILLS", "~/memory/a/SKILL/b", "~/SKILL"])
def test_nothing_else_has_a_name(path: str) -> None:
    assert b"name:" not in render(skill(path))


def test_any_name_of_a_folder_can_be_read_back() -> None:
    rendered = render(skill("~/memory/skills/yes: no #1/SKILL"))
    assert b'name: "yes: no #1"\n' in rendered
    assert front(rendered).unknown == ()


@pytest.mark.parametrize("head", ["name: Ana", f"id: {ID}\ntitle: x\nname: Ana"])
def test_a_name_that_somebody_wrote_is_not_passed_over(head: str) -> None:
    assert front(f"---\n{head}\n---\n".encode()).unknown == ("name",)


def test_sources_beyond_a_number_are_not_shown() -> None:
    many = tuple(source("s", number, number) for number in range(1, SOURCES_SHOWN + 100))
    assert render(document(sources=many)).count(b"- s/") == SOURCES_SHOWN


@every_row(
    ("text", "body"),
    [
        ("", ""),
        ("plain\n", "plain"),
        ("plain\n\n", "plain\n"),
        ("\ufeffplain", "plain"),
        ("one\r\ntwo\r\n", "one\ntwo"),
        ("---", "---"),
        ("----\ntitle: x\n---\n", "----\ntitle: x\n---"),
    ],
)
def test_a_file_without_front_matter_is_all_body(text: str, body: str) -> None:
    assert parse(text.encode()) == FileText(front=None, body=body)


def test_an_editor_that_changed_all_line_ends_and_added_a_mark_did_no_harm() -> None:
    rendered = render(document(body="one\ntwo"))
    changed = b"\xef\xbb\xbf" + rendered.replace(b"\n", b"\r\n")
    assert parse(changed) == parse(rendered)


def test_line_ends_of_a_body_that_were_always_so_stay() -> None:
    assert parse(render(document(body="one\r\ntwo\r\n"))).body == "one\r\ntwo\r\n"


def test_values_are_text_whatever_yaml_makes_of_them() -> None:
    said = front(b"---\ntitle: 2024\ndescription: yes\ntags: [1, null, 2024-99-99]\n---\n")
    assert said == Front(title="2024", description="yes", tags=("1", "null", "2024-99-99"))


def test_what_is_empty_is_not_said() -> None:
    assert front(b"---\n---\nx") == Front()
    assert front(b"---\ntitle:\ntags:\nversion:\nid:\n---\n") == Front()


def test_a_key_that_no_document_has_is_named() -> None:
    assert front(b"---\nlayout: post\ntitle: x\n---\n").unknown == ("layout",)


@every_row(
    ("text", "says"),
    [
        ("---\na: &x [1]\nb: [*x, *x]\n---\n", "anchor"),
        ("---\na: !!python/object/apply:os.system [id]\n---\n", "tag"),
        ("---\n!x title: y\n---\n", "tag"),
        ("---\ntitle: [a]\n---\n", "title is text"),
        ("---\nid: {a: b}\n---\n", "id is text"),
        ("---\ntags: words\n---\n", "tags is a list"),
        ("---\ntags: [[a]]\n---\n", "tags is a list"),
        ("---\nversion: 1e9\n---\n", "version is a number"),
        ("---\nversion: ٣\n---\n", "version is a number"),
        ("---\ntitle: a\ntitle: b\n---\n", "has title twice"),
        ("---\n? [a]\n: b\n---\n", "a key"),
        ("---\njust words\n---\n", "names and values"),
        ("---\n- a\n---\n", "names and values"),
        ("---\ntitle: x\n", "does not end"),
        ("---\ntitle: {\n---\n", "not YAML"),
        ("---\ntitle: \x07\n---\n", "not YAML"),
        ("---\n\ttitle: x\n---\n", "not YAML"),
        ("a\0b", "NUL"),
        (b"\xff\xfe", "UTF-8"),
        (b"\x89PNG\r\n\x1a\n", "UTF-8"),
    ],
)
def test_what_cannot_be_read_is_refused_and_said(text: str | bytes, says: str) -> None:
    assert says in problem(text)


@every_row(
    "text",
    [
        "[" * 100_000,
        "a: " + "[" * 50,
        "\n".join(" " * depth + "-" for depth in range(300)),
        "tags: [" + "a, " * 40_000 + "]",
        "\n".join(f"k{number}: v" for number in range(10_000)),
        "title: " + "x" * FRONT_BYTES_MAX,
    ],
)
def test_size_and_depth_have_limits(text: str) -> None:
    with pytest.raises(TooLarge):
        parse(f"---\n{text}\n---\n".encode())


@given(
    st.binary(max_size=200)
    | st.text(max_size=100).map(lambda text: f"---\n{text}\n---\n".encode("utf-8", "replace"))
)
def test_no_bytes_at_all_do_more_than_be_refused(data: bytes) -> None:
    with contextlib.suppress(InvalidValue):
        parse(data)


@every_row(
    ("body", "found"),
    [
        ("# Ana", "Ana"),
        ("text\n\n## Ana Pop ##\n# later", "Ana Pop"),
        ("```sh\n# not this\n```\n# this", "this"),
        ("~~~\n# not this\n```\n~~~\n# this", "this"),
        ("#not\n####### nor this\n    # nor this", None),
        ("# " + "x" * 400, "x" * 300),
        ("", None),
    ],
)
def test_the_first_heading_is_found(body: str, found: str | None) -> None:
    assert heading(body) == found

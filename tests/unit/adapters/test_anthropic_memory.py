"""N8: the backend of Anthropic's memory tool, to the letter of what a model was trained on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.adapters import anthropic_memory
from recollect.adapters.anthropic_memory import (
    LINES_MAX,
    MemoryTool,
    directory_lines,
    read_memory_path,
    size,
)
from recollect.documents.paths import memory_root, read_path
from recollect.documents.scope import Holder
from recollect.documents.tree import Documents
from recollect.errors import InvalidPath, StoreClosed
from recollect.types.pages import Author, AuthorKind, Content

Do = Callable[..., str]

LISTING = (
    "Here're the files and directories up to 2 levels deep in {path}, "
    "excluding hidden items and node_modules:"
)


@pytest.fixture
def mine(memory: recollect.Memory) -> Documents:
    return memory.space("alice").documents


@pytest.fixture
def tool(memory: recollect.Memory) -> MemoryTool:
    return memory.space("alice").memory_tool()


@pytest.fixture
def do(tool: MemoryTool) -> Do:
    def done(command: str, **arguments: Any) -> str:
        return tool({"command": command, **arguments})

    return done


# view


def test_an_empty_memory_can_be_viewed(do: Do) -> None:
    assert do("view", path="/memories") == f"{LISTING.format(path='/memories')}\n0\t/memories"


def test_a_directory_shows_two_levels_with_sizes(do: Do) -> None:
    do("create", path="/memories/notes.txt", file_text="x" * 5_000)
    do("create", path="/memories/people/ana.md", file_text="x" * 100)
    do("create", path="/memories/people/team/bob.md", file_text="x" * 20_000)
    assert do("view", path="/memories").splitlines() == [
        LISTING.format(path="/memories"),
        "25K\t/memories",
        "4.9K\t/memories/notes.txt",
        "20K\t/memories/people",
        "100\t/memories/people/ana.md",
        "20K\t/memories/people/team",
    ]
    assert do("view", path="/memories/people/").splitlines()[-2:] == [
        "20K\t/memories/people/team",
        "20K\t/memories/people/team/bob.md",
    ]


def test_a_page_with_pages_below_is_a_file_and_a_directory(do: Do) -> None:
    do("create", path="/memories/people/ana.md", file_text="Ana.")
    do("create", path="/memories/people.md", file_text="Everybody.")
    listed = do("view", path="/memories").splitlines()
    assert listed[2:] == [
        "4\t/memories/people",
        "10\t/memories/people.md",
        "4\t/memories/people/ana.md",
    ]
    assert "Everybody." in do("view", path="/memories/people.md")
    assert "ana.md" in do("view", path="/memories/people")


def test_a_file_is_shown_with_line_numbers(do: Do) -> None:
    do("create", path="/memories/list.txt", file_text="\n".join(f"n{n}" for n in range(1, 101)))
    answer = do("view", path="/memories/list.txt").splitlines()
    assert answer[0] == "Here's the content of /memories/list.txt with line numbers:"
    assert (answer[1], answer[10], answer[100]) == ("     1\tn1", "    10\tn10", "   100\tn100")


@pytest.mark.parametrize(
    ("view_range", "shown"),
    [
        ([2, 3], ["     2\tb", "     3\tc"]),
        ([3, -1], ["     3\tc", "     4\td"]),
        ([4, 99], ["     4\td"]),
    ],
)
def test_a_range_of_lines_is_shown(do: Do, view_range: list[int], shown: list[str]) -> None:
    do("create", path="/memories/a.md", file_text="a\nb\nc\nd\n")
    answer = do("view", path="/memories/a.md", view_range=view_range)
    assert answer.splitlines()[1:] == shown


@pytest.mark.parametrize("view_range", [[0, 1], [5, 6], [3, 2], [1], "1-2", [1, 2, 3], ["1", 2]])
def test_a_range_that_is_none_is_refused(do: Do, view_range: Any) -> None:
    do("create", path="/memories/a.md", file_text="a\nb\nc\nd\n")
    answer = do("view", path="/memories/a.md", view_range=view_range)
    assert answer.startswith("Error: Invalid `view_range` parameter:")
    assert "[1, 4]" in answer


def test_a_file_of_too_many_lines_is_not_shown(
    do: Do, mine: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anthropic_memory, "LINES_MAX", 3)
    mine.write("a", "a\nb\nc\nd")
    assert do("view", path="/memories/a.md") == (
        "File /memories/a.md exceeds maximum line limit of 3 lines."
    )


def test_a_million_lines_are_one_too_many() -> None:
    assert LINES_MAX == 999_999


def test_what_is_not_there_cannot_be_viewed(do: Do) -> None:
    for path in ("/memories/no.md", "/memories/no", "/memories/no/such.txt"):
        assert do("view", path=path) == (
            f"The path {path} does not exist. Please provide a valid path."
        )


def test_a_large_directory_is_listed_page_by_page(
    do: Do, mine: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file can be found: what does not fit is on the next page."""
    monkeypatch.setattr(anthropic_memory, "LISTED_MAX", 4)
    monkeypatch.setattr(anthropic_memory, "LIST_MAX", 3)
    for number in range(9):
        mine.write(f"flat/f{number}", "x" * number)
    mine.write("flat/f3/deep/er", "y")
    seen: list[str] = []
    asked: dict[str, Any] = {}
    for _ in range(4):
        head, *lines = do("view", path="/memories/flat", **asked).splitlines()
        assert head == LISTING.format(path="/memories/flat")
        more = re.search(r"view_range (\[\d+, \d+\])", lines[-1])
        seen += lines if more is None else lines[:-1]
        if more is None:
            break
        asked = {"view_range": json.loads(more[1])}
    assert seen == [
        "36\t/memories/flat",
        *(f"{number}\t/memories/flat/f{number}.md" for number in range(3)),
        "0\t/memories/flat/f3",
        "3\t/memories/flat/f3.md",
        "0\t/memories/flat/f3/deep",
        *(f"{number}\t/memories/flat/f{number}.md" for number in range(4, 9)),
    ]
    refused = do("view", path="/memories/flat", view_range=[99, 100])
    assert refused.startswith("Error: Invalid `view_range` parameter")


@pytest.mark.parametrize(
    ("chars", "shown"),
    [(0, "0"), (512, "512"), (4096, "4.0K"), (12_288, "12K"), (1_572_864, "1.5M")],
)
def test_sizes_are_as_people_read_them(chars: int, shown: str) -> None:
    assert size(chars) == shown


# names


@pytest.mark.parametrize(
    ("path", "slug", "shown"),
    [
        ("/memories/x.md", "x", "x.md"),
        ("/memories/x", "x", "x.md"),
        ("/memories/notes.txt", "notes.txt", "notes.txt"),
        ("/memories/data.tar.gz", "data.tar.gz", "data.tar.gz"),
        ("/memories/Dr. Smith.md", "Dr. Smith", "Dr. Smith.md"),
        ("/memories/v1.2.md", "v1.2", "v1.2.md"),
        ("/memories/Grüße.md", "Grüße", "Grüße.md"),
    ],
)
def test_a_file_is_shown_by_a_name_that_finds_it_again(
    do: Do, mine: Documents, path: str, slug: str, shown: str
) -> None:
    assert do("create", path=path, file_text="x") == f"File created successfully at: {path}"
    assert mine.tree()[-1].path == f"~/memory/{slug}"
    assert do("view", path="/memories").endswith(f"\t/memories/{shown}")
    for each in (path, f"/memories/{shown}"):
        assert do("view", path=each).endswith("     1\tx")


def test_a_name_with_an_ending_may_be_a_directory_too(do: Do) -> None:
    do("create", path="/memories/notes.txt", file_text="page")
    do("create", path="/memories/notes.txt/more.md", file_text="below")
    assert do("view", path="/memories").splitlines()[2:] == [
        "5\t/memories/notes.txt",
        "4\t/memories/notes.txt.md",
        "5\t/memories/notes.txt/more.md",
    ]
    assert "page" in do("view", path="/memories/notes.txt.md")


HOSTILE = [
    "",
    "/",
    "memories/x",
    "/memoriesx/x.md",
    "/memories.md",
    "//memories/x.md",
    "/Memories/x.md",
    "/etc/passwd",
    "~/memory/x",
    "/memories/../private.md",
    "/memories/a/../../private.md",
    "/memories/./private.md",
    "/memories/%2e%2e/private.md",
    "/memories/%252e%252e/private.md",
    "/memories/..%2fprivate.md",
    "/memories/..\\private.md",
    "\\memories\\x",
    "/memories//private.md",
    "/memories/\u2024\u2024/private.md",
    "/memories/\uff0e\uff0e/private.md",
    "/memories/\u2025/private.md",
    "/memories/x\x00.md",
    "/memories/x\u202e.md",
    "/memories/.hidden",
    "/memories/x.md.md",
    "/memories/CON",
    "/memories/" + "a/" * 40 + "x",
    "/memories/" + "a" * 5_000,
    "file:///memories/x.md",
]


@pytest.mark.parametrize("path", HOSTILE, ids=ascii)
@pytest.mark.parametrize(
    "command",
    [
        {"command": "view"},
        {"command": "create", "file_text": "x"},
        {"command": "str_replace", "old_str": "x", "new_str": "y"},
        {"command": "insert", "insert_line": 0, "insert_text": "x"},
        {"command": "delete"},
    ],
    ids=lambda command: command["command"],
)
def test_no_path_leads_out_of_memories(
    memory: recollect.Memory, command: dict[str, Any], path: str
) -> None:
    mine = memory.space("bob").documents
    mine.write("private", "Mine.")
    mine.write("part/x", "x")
    before = [mine.read(node.path) for node in mine.tree()]
    tool = memory.space("bob").memory_tool(root="~/memory/part")
    answer = tool({**command, "path": path})
    assert answer.startswith(("Error: ", "The path"))
    assert "Mine." not in answer
    assert [mine.read(node.path) for node in mine.tree()] == before


@pytest.mark.parametrize("path", HOSTILE, ids=ascii)
def test_nothing_is_renamed_out_of_memories(do: Do, mine: Documents, path: str) -> None:
    mine.write("x", "x")
    for old, new in (("/memories/x.md", path), (path, "/memories/y.md")):
        assert do("rename", old_path=old, new_path=new).startswith("Error: ")
    assert [node.path for node in mine.tree()] == ["~/memory", "~/memory/x"]


@given(path=st.text(max_size=40).map(lambda text: f"/memories/{text}") | st.text(max_size=40))
def test_whatever_is_read_as_a_path_stands_below_the_root(path: str) -> None:
    root = read_path("~/memory/agents/a")
    try:
        target = read_memory_path(path, root)
    except InvalidPath:
        return
    assert target.is_within(root)
    assert read_path(target.text).key == target.key


# create


def test_what_exists_is_not_created_again(do: Do, mine: Documents) -> None:
    do("create", path="/memories/tea.md", file_text="Green.")
    for path in ("/memories/tea.md", "/memories/Tea.md", "/memories/tea"):
        answer = do("create", path=path, file_text="Black.")
        assert answer == f"Error: File {path} already exists"
    assert mine.read("tea").body == "Green."


def test_a_directory_is_not_created_as_a_file(do: Do) -> None:
    do("create", path="/memories/people/ana.md", file_text="Ana.")
    assert do("create", path="/memories/people", file_text="x") == (
        "Error: File /memories/people already exists"
    )
    assert do("create", path="/memories", file_text="x").startswith("Error: ")


def test_the_author_of_what_is_created_is_the_agent(memory: recollect.Memory) -> None:
    space = memory.space()
    space.memory_tool("claude")({"command": "create", "path": "/memories/a.md", "file_text": "x"})
    person = Author(kind=AuthorKind.PERSON, name="ana")
    space.memory_tool(person)({"command": "create", "path": "/memories/b.md", "file_text": "x"})
    assert space.documents.read("a").author == Author(kind=AuthorKind.AGENT, name="claude")
    assert space.documents.read("b").author == person


# str_replace


def test_a_passage_is_replaced_and_its_surroundings_shown(do: Do) -> None:
    do("create", path="/memories/a.md", file_text="\n".join(f"line {n}" for n in range(1, 21)))
    answer = do("str_replace", path="/memories/a.md", old_str="line 10", new_str="ten\nand more")
    assert answer.splitlines() == [
        "The memory file has been edited.",
        *[f"{n:>6}\tline {n}" for n in range(6, 10)],
        "    10\tten",
        "    11\tand more",
        *[f"{n + 1:>6}\tline {n}" for n in range(11, 15)],
    ]


def test_a_passage_that_is_not_there_is_not_replaced(do: Do) -> None:
    do("create", path="/memories/a.md", file_text="Green tea.")
    for old in ("green", "", "Green  tea"):
        assert do("str_replace", path="/memories/a.md", old_str=old, new_str="x") == (
            f"No replacement was performed, old_str `{old}` did not appear verbatim in "
            "/memories/a.md."
        )


def test_a_passage_that_is_there_twice_is_not_replaced(do: Do, mine: Documents) -> None:
    do("create", path="/memories/a.md", file_text="tea\ncoffee\ntea tea")
    assert do("str_replace", path="/memories/a.md", old_str="tea", new_str="x") == (
        "No replacement was performed. Multiple occurrences of old_str `tea` in lines: 1, 3. "
        "Please ensure it is unique"
    )
    assert mine.read("a").version == 1


def test_nothing_is_replaced_where_there_is_no_file(do: Do) -> None:
    do("create", path="/memories/people/ana.md", file_text="Ana.")
    for path in ("/memories/no.md", "/memories/people", "/memories"):
        assert do("str_replace", path=path, old_str="a", new_str="b") == (
            f"Error: The path {path} does not exist. Please provide a valid path."
        )


def test_a_passage_can_be_taken_out(do: Do, mine: Documents) -> None:
    do("create", path="/memories/a.md", file_text="Green tea.")
    do("str_replace", path="/memories/a.md", old_str="Green ")
    assert mine.read("a").body == "tea."


# insert


@pytest.mark.parametrize(
    ("line", "text", "body"),
    [
        (0, "top\n", "top\na\nb\n"),
        (1, "between", "a\nbetween\nb\n"),
        (2, "end\nof it\n", "a\nb\nend\nof it\n"),
    ],
)
def test_text_is_inserted_after_a_line(
    do: Do, mine: Documents, line: int, text: str, body: str
) -> None:
    do("create", path="/memories/a.md", file_text="a\nb\n")
    answer = do("insert", path="/memories/a.md", insert_line=line, insert_text=text)
    assert answer == "The file /memories/a.md has been edited."
    assert mine.read("a").body == body


@pytest.mark.parametrize("line", [-1, 3, "1", None, True, 1.0])
def test_a_line_that_is_not_there_takes_no_text(do: Do, mine: Documents, line: Any) -> None:
    do("create", path="/memories/a.md", file_text="a\nb\n")
    assert do("insert", path="/memories/a.md", insert_line=line, insert_text="x") == (
        f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines "
        "of the file: [0, 2]"
    )
    assert mine.read("a").version == 1


def test_nothing_is_inserted_where_there_is_no_file(do: Do) -> None:
    do("create", path="/memories/people/ana.md", file_text="Ana.")
    for path in ("/memories/no.md", "/memories/people"):
        assert do("insert", path=path, insert_line=0, insert_text="x") == (
            f"Error: The path {path} does not exist"
        )


def test_text_is_inserted_into_an_empty_file(do: Do, mine: Documents) -> None:
    do("create", path="/memories/a.md", file_text="")
    do("insert", path="/memories/a.md", insert_line=0, insert_text="x\n")
    assert mine.read("a").body == "x\n"


# delete


def test_a_file_is_deleted_and_can_be_restored(do: Do, mine: Documents) -> None:
    do("create", path="/memories/a.md", file_text="x")
    mine.write("b", "See [[a]].")
    assert do("delete", path="/memories/a.md") == "Successfully deleted /memories/a.md"
    assert do("delete", path="/memories/a.md") == "Error: The path /memories/a.md does not exist"
    assert [each.target for each in mine.broken_links()] == ["~/memory/a"]
    mine.restore("a")
    assert "x" in do("view", path="/memories/a.md")


def test_a_directory_is_deleted_with_all_that_is_in_it(do: Do, mine: Documents) -> None:
    do("create", path="/memories/a/b/c.md", file_text="x")
    assert do("delete", path="/memories/a") == "Successfully deleted /memories/a"
    assert [node.path for node in mine.tree()] == ["~/memory"]


def test_the_page_of_a_directory_is_deleted_without_it(do: Do) -> None:
    do("create", path="/memories/a/b.md", file_text="x")
    do("create", path="/memories/a.md", file_text="page")
    assert do("delete", path="/memories/a.md") == "Successfully deleted /memories/a.md"
    assert do("delete", path="/memories/a.md") == "Error: The path /memories/a.md does not exist"
    assert "x" in do("view", path="/memories/a/b.md")


def test_the_root_is_not_deleted(do: Do) -> None:
    do("create", path="/memories/a.md", file_text="x")
    for path in ("/memories", "/memories/"):
        assert do("delete", path=path).startswith("Error: ")
    assert "x" in do("view", path="/memories/a.md")


# rename


def test_a_file_and_a_directory_are_renamed(do: Do) -> None:
    do("create", path="/memories/a/b.md", file_text="x")
    renamed = do("rename", old_path="/memories/a/b.md", new_path="/memories/c/d.md")
    assert renamed == "Successfully renamed /memories/a/b.md to /memories/c/d.md"
    assert do("rename", old_path="/memories/c", new_path="/memories/e").startswith("Successfully")
    assert "x" in do("view", path="/memories/e/d.md")
    assert "does not exist" in do("view", path="/memories/c/d.md")
    assert "does not exist" in do("view", path="/memories/a/b.md")


def test_a_name_that_was_left_is_free_again(do: Do) -> None:
    do("create", path="/memories/a.md", file_text="old")
    do("rename", old_path="/memories/a.md", new_path="/memories/b.md")
    assert do("create", path="/memories/a.md", file_text="new").startswith("File created")
    assert "new" in do("view", path="/memories/a.md")
    assert "old" in do("view", path="/memories/b.md")


def test_the_page_of_a_directory_is_renamed_without_it(do: Do) -> None:
    do("create", path="/memories/a/b.md", file_text="x")
    do("create", path="/memories/a.md", file_text="page")
    assert do("rename", old_path="/memories/a.md", new_path="/memories/c.md").startswith("Succ")
    assert do("view", path="/memories").splitlines()[2:] == [
        "1\t/memories/a",
        "1\t/memories/a/b.md",
        "4\t/memories/c.md",
    ]


def test_the_case_of_a_name_can_be_changed(do: Do) -> None:
    do("create", path="/memories/notes.md", file_text="x")
    assert do("rename", old_path="/memories/notes.md", new_path="/memories/Notes.md") == (
        "Successfully renamed /memories/notes.md to /memories/Notes.md"
    )
    assert do("view", path="/memories").endswith("/memories/Notes.md")


def test_nothing_is_renamed_from_nowhere_or_onto_something(do: Do) -> None:
    do("create", path="/memories/a.md", file_text="x")
    do("create", path="/memories/b.md", file_text="y")
    assert do("rename", old_path="/memories/no.md", new_path="/memories/c.md") == (
        "Error: The path /memories/no.md does not exist"
    )
    assert do("rename", old_path="/memories/a.md", new_path="/memories/b.md") == (
        "Error: The destination /memories/b.md already exists"
    )
    assert do("rename", old_path="/memories/a.md", new_path="/memories/a.md") == (
        "Error: The destination /memories/a.md already exists"
    )
    assert do("rename", old_path="/memories/a.md", new_path="/memories/a/b.md").startswith("Error")
    assert do("rename", old_path="/memories", new_path="/memories/c").startswith("Error")


# whose it is


@pytest.mark.parametrize(
    "command",
    [
        {"command": "create", "path": "/memories/skills/x.md", "file_text": "x"},
        {"command": "str_replace", "path": "/memories/MEMORY.md", "old_str": "T", "new_str": "x"},
        {"command": "insert", "path": "/memories/MEMORY.md", "insert_line": 0, "insert_text": "x"},
        {"command": "delete", "path": "/memories/MEMORY.md"},
        {"command": "rename", "old_path": "/memories/MEMORY.md", "new_path": "/memories/x.md"},
        {"command": "rename", "old_path": "/memories/tea.md", "new_path": "/memories/skills/x"},
    ],
    ids=lambda command: command["command"],
)
def test_the_pages_of_consolidation_can_be_viewed_and_not_changed(
    do: Do, tool: MemoryTool, mine: Documents, command: dict[str, Any]
) -> None:
    """G8"""
    consolidation = Author(kind=AuthorKind.CONSOLIDATION, name="c")
    mine.held_by(Holder(author=consolidation)).write("MEMORY", "The summary.")
    mine.write("tea", "Green.")
    before = [mine.read(node.path) for node in mine.tree()]
    assert do("view", path="/memories/MEMORY.md").endswith("     1\tThe summary.")
    assert tool(command).startswith("Error: ")
    assert [mine.read(node.path) for node in mine.tree()] == before


def test_another_root_is_memories_too(memory: recollect.Memory) -> None:
    tool = memory.space().memory_tool(root="~/agents/scout")
    tool({"command": "create", "path": "/memories/a.md", "file_text": "x"})
    assert memory.space().documents.read("~/agents/scout/a").body == "x"
    assert "/memories/a.md" in tool({"command": "view", "path": "/memories"})


# what is no command


@pytest.mark.parametrize(
    "command",
    [
        {},
        {"command": "rm"},
        {"command": 7},
        {"command": "view"},
        {"command": "view", "path": 7},
        {"command": "create", "path": "/memories/a.md"},
        {"command": "insert", "path": "/memories/a.md", "insert_line": 0},
        {"command": "str_replace", "path": "/memories/a.md"},
        {"command": "str_replace", "path": "/memories/a.md", "old_str": "a", "new_str": None},
        {"command": "rename", "old_path": "/memories/a.md"},
        None,
        [],
        "view",
    ],
)
def test_what_is_no_command_is_answered_with_what_to_do(tool: MemoryTool, command: Any) -> None:
    assert tool(command).startswith("Error: ")


def test_a_file_too_large_is_refused_in_words(do: Do) -> None:
    answer = do("create", path="/memories/a.md", file_text="x" * 2_000_000)
    assert answer.startswith("Error: ")
    assert "at most" in answer


def test_a_closed_store_is_the_callers(memory: recollect.Memory, tool: MemoryTool) -> None:
    memory.close()
    with pytest.raises(StoreClosed):
        tool({"command": "view", "path": "/memories"})


def test_no_directory_is_listed_without_a_line_for_itself() -> None:
    assert directory_lines([], memory_root(), "/memories") == ["0\t/memories"]


# a page and a directory of one name


def test_a_directory_is_deleted_without_the_file_beside_it(do: Do, mine: Documents) -> None:
    do("create", path="/memories/proj.md", file_text="overview")
    do("create", path="/memories/proj/a.md", file_text="a")
    do("create", path="/memories/proj/b/c.md", file_text="c")
    assert do("delete", path="/memories/proj") == "Successfully deleted /memories/proj"
    assert [node.path for node in mine.tree()] == ["~/memory", "~/memory/proj"]
    assert "overview" in do("view", path="/memories/proj.md")


def test_a_directory_is_renamed_without_the_file_beside_it(do: Do, mine: Documents) -> None:
    do("create", path="/memories/proj.md", file_text="overview")
    do("create", path="/memories/proj/a.md", file_text="a")
    do("create", path="/memories/proj/b/c.md", file_text="c")
    assert do("rename", old_path="/memories/proj", new_path="/memories/x/old").startswith("Success")
    assert [node.path.removeprefix("~/memory") for node in mine.tree()] == [
        *("", "/proj", "/x", "/x/old", "/x/old/a", "/x/old/b", "/x/old/b/c")
    ]
    assert "overview" in do("view", path="/memories/proj.md")


def test_a_page_is_renamed_with_all_it_has(do: Do, mine: Documents) -> None:
    mine.write("pg", "text", title="A Fine Title", description="d", tags=["t"], links=["other"])
    mine.write("pg/sub", "s")
    known = mine.read("pg").content
    do("rename", old_path="/memories/pg.md", new_path="/memories/pg2.md")
    assert mine.read("pg2").content == known
    assert mine.read("pg").content == Content(title="pg")
    do("delete", path="/memories/pg2.md")
    assert mine.find("pg2") is None


def test_a_page_is_deleted_with_all_it_has(do: Do, mine: Documents) -> None:
    mine.write("pg", "text", title="A Fine Title", description="d", tags=["t"])
    mine.write("pg/sub", "s")
    do("delete", path="/memories/pg.md")
    assert mine.read("pg").content == Content(title="pg")


def test_a_file_is_renamed_to_the_name_of_a_directory(do: Do, mine: Documents) -> None:
    """What a view does not show is no obstacle."""
    do("create", path="/memories/q.md", file_text="q")
    do("create", path="/memories/dd/x.md", file_text="x")
    assert "does not exist" in do("view", path="/memories/dd.md")
    assert do("rename", old_path="/memories/q.md", new_path="/memories/dd.md") == (
        "Successfully renamed /memories/q.md to /memories/dd.md"
    )
    assert (mine.read("dd").body, mine.read("dd").title) == ("q", "dd")
    assert mine.find("q") is None
    do("create", path="/memories/r.md", file_text="r")
    for new in ("/memories/dd.md", "/memories/dd"):
        assert do("rename", old_path="/memories/r.md", new_path=new).endswith("already exists")


def test_an_empty_file_is_there(do: Do) -> None:
    do("create", path="/memories/empty.md", file_text="")
    again = do("create", path="/memories/empty.md", file_text="now")
    assert again == "Error: File /memories/empty.md already exists"


def test_a_passage_that_is_everywhere_is_answered_briefly(do: Do, mine: Documents) -> None:
    mine.write("big", "a\n" * 50_000)
    said = do("str_replace", path="/memories/big.md", old_str="a", new_str="b")
    assert "in lines: 1, 2, 3, " in said
    assert said.endswith("20 and more. Please ensure it is unique")
    assert len(said) < 300
    huge = do("str_replace", path="/memories/big.md", old_str="z" * 100_000, new_str="b")
    assert len(huge) < 2_500

"""N8: a Claude agent that remembers with Recollect, over every command of its memory tool.

The model is scripted: it sends the tool calls that a model sends, reads the results, and where one
is an error it mends its call, as the tool's error texts ask of it. Everything else is real.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import recollect
from recollect.documents.scope import Holder
from recollect.types.pages import Author, AuthorKind

Turn = Generator[dict[str, Any], str, str]


def converse(tool: Callable[[dict[str, Any]], str], turn: Turn) -> tuple[str, list[Any]]:
    """The loop of an agent: as long as the model asks for a tool, it gets the result of it."""
    messages: list[Any] = []
    command = next(turn)
    while True:
        block: dict[str, Any] = {
            "type": "tool_use",
            "id": f"toolu_{len(messages)}",
            "name": "memory",
            "input": command,
        }
        messages.append({"role": "assistant", "content": [block]})
        result = tool(block["input"])  # the one line that makes Recollect the memory
        said = {"type": "tool_result", "tool_use_id": block["id"], "content": result}
        messages.append({"role": "user", "content": [said]})
        try:
            command = turn.send(result)
        except StopIteration as end:
            return end.value, messages


def first_conversation() -> Turn:
    """It finds nothing, learns something, makes every mistake once, and puts it right."""
    listing = yield {"command": "view", "path": "/memories"}
    assert listing.endswith("\n0\t/memories")

    # It looks for what is not there, and is told so.
    missing = yield {"command": "view", "path": "/memories/preferences.md"}
    assert missing == (
        "The path /memories/preferences.md does not exist. Please provide a valid path."
    )
    made = yield {
        "command": "create",
        "path": "/memories/preferences.md",
        "file_text": "# Preferences\n- likes tea\n- likes hats\n",
    }
    assert made == "File created successfully at: /memories/preferences.md"

    # It forgets that it has made it, and edits it instead.
    twice = yield {"command": "create", "path": "/memories/preferences.md", "file_text": "# New\n"}
    assert twice == "Error: File /memories/preferences.md already exists"
    seen = yield {"command": "view", "path": "/memories/preferences.md"}
    assert seen.splitlines()[1:] == [
        "     1\t# Preferences",
        "     2\t- likes tea",
        "     3\t- likes hats",
    ]

    # It says too little, then something that is not there, then the right thing.
    several = yield replacing("likes", "loves")
    assert several.startswith(
        "No replacement was performed. Multiple occurrences of old_str `likes`"
    )
    assert "in lines: 2, 3." in several
    absent = yield replacing("likes coffee", "loves coffee")
    assert absent.startswith("No replacement was performed, old_str `likes coffee`")
    edited = yield replacing("likes tea", "loves green tea")
    assert edited.splitlines()[0] == "The memory file has been edited."
    assert "     2\t- loves green tea" in edited.splitlines()

    # It counts the lines wrongly, and is told how many there are.
    beyond = yield inserting(9, "- dislikes rain\n")
    assert beyond.endswith("It should be within the range of lines of the file: [0, 3]")
    inserted = yield inserting(3, "- dislikes rain\n")
    assert inserted == "The file /memories/preferences.md has been edited."
    part = yield {"command": "view", "path": "/memories/preferences.md", "view_range": [3, 4]}
    assert part.splitlines()[1:] == ["     3\t- likes hats", "     4\t- dislikes rain"]

    # It keeps notes in directories, moves them about, and throws some away.
    yield {"command": "create", "path": "/memories/plans/plan.txt", "file_text": "1. Begin\n"}
    yield {"command": "create", "path": "/memories/plans/draft.md", "file_text": "Draft\n"}
    taken = yield renaming("/memories/plans/draft.md", "/memories/plans/plan.txt")
    assert taken == "Error: The destination /memories/plans/plan.txt already exists"
    nowhere = yield renaming("/memories/plans/nothing.md", "/memories/plans/x.md")
    assert nowhere == "Error: The path /memories/plans/nothing.md does not exist"
    renamed = yield renaming("/memories/plans", "/memories/projects/garden")
    assert renamed == "Successfully renamed /memories/plans to /memories/projects/garden"
    deleted = yield {"command": "delete", "path": "/memories/projects/garden/draft.md"}
    assert deleted == "Successfully deleted /memories/projects/garden/draft.md"
    again = yield {"command": "delete", "path": "/memories/projects/garden/draft.md"}
    assert again == "Error: The path /memories/projects/garden/draft.md does not exist"

    # Somebody has told it to do what it must not.
    for command in forbidden():
        refused = yield command
        assert refused.startswith("Error: "), refused
    return "I will remember that."


def replacing(old: str, new: str) -> dict[str, Any]:
    path = "/memories/preferences.md"
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


def inserting(line: int, text: str) -> dict[str, Any]:
    path = "/memories/preferences.md"
    return {"command": "insert", "path": path, "insert_line": line, "insert_text": text}


def renaming(old: str, new: str) -> dict[str, Any]:
    return {"command": "rename", "old_path": old, "new_path": new}


def forbidden() -> list[dict[str, Any]]:
    return [
        {"command": "delete", "path": "/memories"},
        {"command": "view", "path": "/memories/../secrets.md"},
        {"command": "view", "path": "/memories/%2e%2e/secrets.md"},
        {"command": "create", "path": "/etc/cron.d/x", "file_text": "x"},
        {"command": "create", "path": "/memories/MEMORY.md", "file_text": "x"},
        renaming("/memories/preferences.md", "/memories/../preferences.md"),
        {"command": "format", "path": "/memories"},
        {"command": "create", "path": "/memories/half.md"},
    ]


def second_conversation() -> Turn:
    """Another day, another process: everything is where it was put."""
    listing = yield {"command": "view", "path": "/memories"}
    assert [line.split("\t")[1] for line in listing.splitlines()[1:]] == [
        "/memories",
        "/memories/MEMORY.md",
        "/memories/preferences.md",
        "/memories/projects",
        "/memories/projects/garden",
    ]
    inside = yield {"command": "view", "path": "/memories/projects"}
    assert inside.endswith("/memories/projects/garden/plan.txt")
    summary = yield {"command": "view", "path": "/memories/MEMORY.md"}
    assert summary.endswith("     1\tWhat was learned.")
    seen = yield {"command": "view", "path": "/memories/preferences.md"}
    cleared = yield {"command": "delete", "path": "/memories/projects"}
    assert cleared == "Successfully deleted /memories/projects"
    return seen


def consolidated(space: recollect.Space) -> None:
    """What memory itself has written meanwhile."""
    author = Author(kind=AuthorKind.CONSOLIDATION, name="consolidation")
    space.documents.held_by(Holder(author=author)).write("MEMORY", "What was learned.")


def test_an_agent_uses_every_command_and_recovers_from_every_error(store_url: str) -> None:
    with recollect.open(store_url) as memory:
        space = memory.space("ana")
        answer, messages = converse(space.memory_tool("claude"), first_conversation())
        assert answer == "I will remember that."
        used = {message["content"][0].get("input", {}).get("command") for message in messages}
        assert used >= {"view", "create", "str_replace", "insert", "delete", "rename"}
        assert space.documents.read("preferences").author.name == "claude"
        assert [each.number for each in space.documents.history("preferences")] == [3, 2, 1]
        consolidated(space)
        seen, _ = converse(space.memory_tool("claude"), second_conversation())
        assert "- loves green tea" in seen
        # Whatever an agent throws away, a person can bring back.
        space.documents.restore("projects")
        assert space.documents.read("projects/garden/plan.txt").body == "1. Begin\n"


def test_an_agent_remembers_in_another_process(durable_store_url: str) -> None:
    with recollect.open(durable_store_url) as memory:
        converse(memory.space("ana").memory_tool("claude"), first_conversation())
        consolidated(memory.space("ana"))
    with recollect.open(durable_store_url) as memory:
        seen, _ = converse(memory.space("ana").memory_tool("claude"), second_conversation())
    assert "- loves green tea" in seen


def test_two_agents_share_one_memory_without_losing_a_line(store_url: str) -> None:
    """D5: each edits what it has just read; the store decides who was first."""
    with recollect.open(store_url) as memory:
        space = memory.space("ana")
        log = "/memories/log.md"
        space.memory_tool()({"command": "create", "path": log, "file_text": "begin\n"})

        def insert_five(name: str) -> list[str]:
            tool = space.memory_tool(name)
            line = {"command": "insert", "path": log, "insert_line": 1}
            return [tool({**line, "insert_text": f"{name} {number}\n"}) for number in range(5)]

        with ThreadPoolExecutor(max_workers=2) as pool:
            said = [text for texts in pool.map(insert_five, ("one", "other")) for text in texts]
        assert set(said) == {f"The file {log} has been edited."}
        assert len(space.documents.read("log").body.splitlines()) == 11
        assert {each.author.name for each in space.documents.history("log")[:-1]} == {
            "one",
            "other",
        }

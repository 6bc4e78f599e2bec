"""Documents for asyncio: the same names, the same signatures, the same behaviour."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from recollect import aio
from recollect.adapters import anthropic_memory
from recollect.documents import changeset, tree
from recollect.documents.paths import read_path
from recollect.documents.scope import Holder
from recollect.errors import NotAllowed, NotFound, StaleVersion
from recollect.types.pages import Author, AuthorKind

TWINS = [
    (tree.Documents, aio.Documents),
    (changeset.Changeset, aio.Changeset),
    (anthropic_memory.MemoryTool, aio.MemoryTool),
]
# What needs no store, and is therefore not awaited.
PURE = {"held_by", "changeset", "drop"}
# What is committed with an agent's turn, where nobody awaits anything.
FOR_AGENTS = {"prepared"}


def public(cls: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in inspect.getmembers_static(cls)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }


def run(scenario: Callable[[aio.Documents], Awaitable[None]]) -> None:
    async def inside() -> None:
        async with await aio.open(":memory:") as opened:
            await scenario(opened.space().documents)

    asyncio.run(inside())


@pytest.mark.parametrize(("core", "twin"), TWINS)
def test_every_name_has_its_twin(core: type, twin: type) -> None:
    assert set(public(twin)) - {"holder"} == set(public(core)) - FOR_AGENTS


@pytest.mark.parametrize(("core", "twin"), TWINS)
def test_every_method_that_asks_the_store_is_awaited(core: type, twin: type) -> None:
    for name, member in public(twin).items():
        if not inspect.isfunction(member):
            continue
        assert inspect.iscoroutinefunction(member) is (name not in PURE), name
        assert member.__doc__ == public(core)[name].__doc__, name
        if name in PURE:
            written, given = inspect.signature(member), inspect.signature(public(core)[name])
            assert written.parameters == given.parameters, name
        else:
            assert member.__name__ == name  # passed on as it is, to the method of that name


def test_a_document_goes_through_its_life_in_coroutines() -> None:
    async def scenario(documents: aio.Documents) -> None:
        written = await documents.write("people/ana", "Ana knows [[people/ben]].", title="Ana")
        assert (written.path, written.version) == ("~/memory/people/ana", 1)
        await documents.append("people/ana", "She walks.")
        patched = await documents.patch("people/ana", "walks", "runs", expected_version=2)
        assert (await documents.read("people/ana")).body == patched.body
        assert [node.path for node in await documents.tree("people")][1:] == [patched.path]
        (broken,) = await documents.broken_links()
        assert broken.target == "~/memory/people/ben"
        await documents.move("people/ana", "friends/ana")
        assert await documents.orphans() == ["~/memory/friends/ana"]
        assert [each.path for each in await documents.search("runs")] == ["~/memory/friends/ana"]
        assert "+She walks." in await documents.diff("friends/ana", 1, 2)
        assert (await documents.links("friends/ana")).incoming == ()
        await documents.delete("friends/ana")
        assert await documents.find("friends/ana") is None
        await documents.restore("friends/ana", version=1)
        assert (await documents.version("friends/ana", 1)).title == "Ana"
        assert len(await documents.history("friends/ana")) == 7
        assert (await documents.purge("friends")).documents == 2

    run(scenario)


def test_errors_and_the_holder_come_out_of_the_thread() -> None:
    async def scenario(documents: aio.Documents) -> None:
        await documents.write("a", "one")
        with pytest.raises(StaleVersion):
            await documents.write("a", "two", expected_version=7)
        with pytest.raises(NotFound):
            await documents.read("b")
        holder = Holder(author=Author(AuthorKind.AGENT, "coder"), root=read_path("work"))
        held = documents.held_by(holder)
        assert (held.holder, documents.holder) == (holder, Holder())
        assert (await held.write("work/log", "x")).author.name == "coder"
        with pytest.raises(NotAllowed):
            await held.read("a")

    run(scenario)


def test_a_changeset_is_prepared_and_committed_or_dropped() -> None:
    async def scenario(documents: aio.Documents) -> None:
        prepared = documents.changeset("tidied")
        await prepared.write("a", "one")
        await prepared.write("b", "two")
        assert (await prepared.read("a")).body == "one"
        assert await documents.find("a") is None
        assert [each.path for each in prepared.edits] == ["~/memory/a", "~/memory/b"]
        assert len(await prepared.commit()) == 2
        assert (await documents.read("b")).reason == "tidied"
        await prepared.delete("a")
        prepared.drop()
        assert prepared.edits == ()
        assert await prepared.commit() == []
        assert (await documents.read("a")).body == "one"

    run(scenario)


def test_the_tree_is_published_and_loaded(tmp_path: Path) -> None:
    async def scenario(documents: aio.Documents) -> None:
        await documents.write("a", "one")
        assert (await documents.publish(tmp_path / "out")).written == 1
        (tmp_path / "out" / "b.md").write_text("two\n")
        assert (await documents.load(tmp_path / "out")).created == ("~/memory/b",)
        assert (await documents.read("b")).body == "two"

    run(scenario)


def test_the_memory_tool_is_awaited() -> None:
    async def scenario() -> None:
        async with await aio.open(":memory:") as opened:
            space = opened.space()
            tool = space.memory_tool("claude", root="~/memory/own")
            given = {"command": "create", "path": "/memories/a.md", "file_text": "one"}
            assert "/memories/a.md" in await tool(given)
            assert "one" in await tool.handle({"command": "view", "path": "/memories/a.md"})
            assert (await space.documents.read("own/a")).author.name == "claude"

    asyncio.run(scenario())


def test_writes_at_once_all_count() -> None:
    async def scenario(documents: aio.Documents) -> None:
        await documents.write("log", "start")
        await asyncio.gather(*(documents.append("log", f"line {n}") for n in range(4)))
        document = await documents.read("log")
        assert document.version == 5
        assert sorted(document.body.split("\n\n")) == [*(f"line {n}" for n in range(4)), "start"]

    run(scenario)

"""A real MCP client and our server in one process, for tests that look at answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp.client.client import Client
from mcp.types import CallToolResult, TextContent, Tool

import recollect
from recollect.interfaces.mcp.server import MemoryOnDemand, MemoryServer
from recollect.interfaces.mcp.tools import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a client got: the text for the model, the values for programs."""

    text: str
    values: dict[str, Any]
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A server on one space, and the memory behind it."""

    memory: recollect.Memory
    server: MemoryServer

    def tools(self) -> list[Tool]:
        async def listed() -> list[Tool]:
            async with Client(self.server) as client:
                return (await client.list_tools()).tools

        return anyio.run(listed)

    def call(self, name: str, /, **arguments: Any) -> Answered:
        async def called() -> CallToolResult:
            async with Client(self.server) as client:
                return await client.call_tool(name, arguments)

        return answered(anyio.run(called))

    def fine(self, name: str, /, **arguments: Any) -> Answered:
        result = self.call(name, **arguments)
        assert not result.is_error, result.text
        return result


def answered(result: CallToolResult) -> Answered:
    texts = [each.text for each in result.content if isinstance(each, TextContent)]
    return Answered(
        text="\n".join(texts),
        values=result.structured_content or {},
        is_error=bool(result.is_error),
    )


@contextmanager
def talk(path: Path, space: str = "alice", agent: str = "coder", **terms: Any) -> Iterator[Talk]:
    """A memory in a file, and a server on one of its spaces."""
    memory = recollect.open(path)
    opened = MemoryOnDemand(lambda: memory, work=False)
    try:
        server = MemoryServer(opened, Terms(space=space, agent=agent, **terms))
        yield Talk(memory=memory, server=server)
    finally:
        opened.close()
        memory.close()

"""Agents as tests host them: a memory, a scripted model over real HTTP, and a clock set by hand."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import psycopg
import pytest

import recollect
from recollect.agents.profile import AgentProfile, Hooks
from recollect.agents.reply import Reply, Ticket
from recollect.agents.system import DEFAULT_KEY, AgentName, AgentSystem
from recollect.agents.toolbox import Tool
from recollect.clock import ManualClock
from recollect.models.protocol import ToolDefinition
from recollect.session import Session
from recollect.store.sqlite import SqliteDatabase
from recollect.types.agents import AgentState
from recollect.types.records import Record
from recollect_conformance.scripted import Script, ScriptedServer
from recollect_conformance.scripted_frames import Received

SPACE = "alice"
AGENT = "assistant"
MEMORY_AGENT: Mapping[str, str] = {"type": "memory-agent", "id": AGENT}
MEMORY_KEY = "memory"
# One file without waiting for the disk, and one PostgreSQL: for tests of what is above the store.
ON_BOTH = pytest.mark.parametrize(
    "store_url",
    ["sqlite-file", pytest.param("postgres", marks=pytest.mark.postgres)],
    indirect=True,
)
PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


def is_memory_agents(received: Received) -> bool:
    """Whether a request is a memory-agent's."""
    return received.system.startswith("You keep the memory documents")


def tool(name: str, run: Callable[[Mapping[str, Any]], object]) -> Tool:
    described = ToolDefinition(name=name, description=name, parameters=PARAMETERS)
    return Tool(definition=described, run=run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosted:
    """A memory, the agents it hosts, and the model they talk to."""

    memory: recollect.Memory
    system: AgentSystem
    clock: ManualClock
    server: ScriptedServer

    @property
    def space(self) -> recollect.Space:
        return self.memory.space(SPACE)

    def post(self, text: str, agent: AgentName = AGENT, *, id: str | None = None) -> Ticket:  # noqa: A002
        return self.system.post(agent, text, space=SPACE, id=id)

    def say(self, text: str, agent: AgentName = AGENT) -> Reply:
        """Say something and run everything that is due; the answer has to be there then."""
        ticket = self.post(text, agent)
        self.system.tick()
        return ticket.result(0)

    def state(self, agent: AgentName = AGENT) -> AgentState:
        found = self.system.state(agent, space=SPACE)
        assert found is not None, f"there is no agent {agent}"
        return found

    def session(self, agent: AgentName = AGENT, key: str = DEFAULT_KEY) -> Session:
        found = self.space.find_session(key, agent)
        assert found is not None, f"{agent} has no session"
        return found

    def words(self, agent: AgentName = AGENT) -> list[str]:
        """Everything that was said, in all sessions of an agent."""
        return [record.content for record in self.session(agent).all(rotations=True)]

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and run what is due then."""
        self.clock.advance(seconds)
        self.system.tick()

    def memory_records(self) -> list[Record]:
        """What the memory-agent's own history says."""
        return self.session(MEMORY_AGENT, MEMORY_KEY).all(rotations=True)

    def pages(self) -> dict[str, str]:
        """The pages of memory, by path."""
        documents = self.space.documents
        return {node.path: documents.read(node.path).body for node in documents.tree("~/memory")}


@contextlib.contextmanager
def hosted(
    url: str,
    script: Script | None = None,
    *,
    clock: ManualClock | None = None,
    profile: Mapping[str, Any] | None = None,
    hooks: Hooks | None = None,
    memory_agent: bool = False,
    **settings: Any,
) -> Iterator[Hosted]:
    """Agents on a store. Without a script they have no model; `memory_agent`: nor have those one.

    `profile` is what the agents are told besides: instructions, tools.
    """
    clock = clock or ManualClock()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(ScriptedServer(script or ()))
        if memory_agent:
            model = {"memory_agent_model": "openai:scripted", "model_base_url": server.url}
            settings = model | settings
        memory = stack.enter_context(recollect.open(url, settings=settings, clock=clock))
        given = dict(profile or {})
        if script is not None:
            given.setdefault("model", server.model(clock=clock, pause=lambda _: None))
        system = memory.agents(default=AgentProfile(**given), hooks=hooks)
        yield Hosted(memory=memory, system=system, clock=clock, server=server)


def raw(memory: recollect.Memory, statement: str) -> list[tuple[Any, ...]]:
    """Run SQL behind the store's back: its rows, where it has any."""
    database = cast("Any", memory.store)._database
    if isinstance(database, SqliteDatabase):
        with database._alone():
            return [tuple(row) for row in database._writer.execute(statement)]
    with psycopg.connect(database._conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {database._schema}".encode())
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

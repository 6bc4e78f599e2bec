"""The list of verbs: everything that can be asked of a memory, and where each surface has it.

The method is the contract: its signature and its docstring. A row adds what no signature can say:
its scope, its effect on what is remembered, how it pages, and its place in HTTP, on the command
line and among the tools of MCP. Tests compare the surfaces with it, in both directions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from recollect.agents.system import AgentSystem
from recollect.consolidation.generations import Generations
from recollect.documents.tree import Documents
from recollect.facts import Facts
from recollect.memory import Memory
from recollect.session import Session, Sessions
from recollect.space import Space
from recollect.types.access import Scope


class Effect(StrEnum):
    """What a verb does to what is remembered."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"  # something is gone afterwards, or not as it was


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One thing that can be asked for, and by which name each surface knows it."""

    name: str  # the owner and the method, as in facts.add
    scope: Scope
    effect: Effect
    is_idempotent: bool  # whether doing it twice is doing it once
    summary: str = ""  # of what is no method, or where its docstring speaks of Python
    http: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    pages: str = ""  # the parameter that says where the next page begins
    example: str = ""
    is_handle: bool = False  # it only gives an object with verbs of its own, and asks no store
    is_long: bool = False  # it may take as long as a model, a worker or a whole store does

    @property
    def method(self) -> Callable[..., Any] | None:
        """The method that it is; none for what only a surface has."""
        owner, _, name = self.name.partition(".")
        return getattr(OWNERS.get(owner), name, None)

    @property
    def says(self) -> str:
        """What it does, in one line."""
        if self.summary or self.method is None:
            return self.summary
        return (inspect.getdoc(self.method) or "").partition("\n\n")[0].replace("\n", " ")


OWNERS: Mapping[str, type] = {
    "memory": Memory,
    "space": Space,
    "session": Session,
    "sessions": Sessions,
    "facts": Facts,
    "documents": Documents,
    "generations": Generations,
    "agents": AgentSystem,
}

R, W, A = Scope.READ, Scope.WRITE, Scope.ADMIN
S = "/v1/spaces/{space}"
# What an example calls the owner of a method, if not by its name.
_CALLED = {"space": "alice"}
_CALLED |= {each: f"alice.{each}" for each in ("sessions", "facts", "documents", "generations")}


def _verb(  # noqa: PLR0913 - a row of the table
    effect: Effect,
    usual: Scope,
    name: str,
    http: str = "",
    command: str = "",
    tool: str = "",
    *,
    scope: Scope | None = None,
    once: bool = True,
    example: str = "",
    **more: Any,
) -> Verb:
    """A row: names have commas between; a path without a slash before it is below the space's.

    An example that begins with its arguments is a call of the verb.
    """
    places = (each.partition(" ") for each in http.split(", ") if each)
    owner, _, method = name.partition(".")
    called = f"{_CALLED.get(owner, owner)}.{method}" if example.startswith("(") else ""
    return Verb(
        name=name,
        scope=scope or usual,
        effect=effect,
        is_idempotent=once,
        http=tuple(
            f"{verb} {path if path.startswith('/') else f'{S}/{path}'}" for verb, _, path in places
        ),
        commands=tuple(filter(None, command.split(", "))),
        tools=tuple(filter(None, tool.split(", "))),
        example=called + example,
        **more,
    )


_read = partial(_verb, Effect.READ, R)
_handle = partial(_verb, Effect.READ, R, is_handle=True)
_write = partial(_verb, Effect.WRITE, W)
_drop = partial(_verb, Effect.DESTRUCTIVE, W)

VERBS: tuple[Verb, ...] = (
    # Spaces and the store as a whole.
    _handle("memory.space", example='alice = memory.space("alice")'),
    _read("memory.spaces", "GET /v1/spaces", "spaces", pages="after", example="()"),
    _read(
        "space.counts", "GET /v1/spaces/{space}", summary="A space, and how much there is in it."
    ),
    _read("memory.status", "GET status, GET jobs, GET events", "status", example="(limit=10)"),
    _read("memory.audit", "GET audit", "audit", scope=A, pages="before", example='("alice")'),
    _write("memory.work", "POST work", "work", scope=A, is_long=True, example="(all=True)"),
    _write("memory.request_again", scope=A, once=False, example='("alice")'),
    _read("memory.plan", example="(all=True)"),
    _write("memory.retry", "POST jobs/retry", "retry", example="()"),
    _write("memory.sweep_idle", command="sweep", scope=A, example="()"),
    _handle("memory.worker", command="worker", scope=A, example="()"),
    _handle("memory.agents", command="chat", scope=W, example="agents = memory.agents()"),
    _read("memory.export", command="export", scope=A, is_long=True, example="(archive)"),
    _write("memory.load", command="load", scope=A, once=False, is_long=True),
    _write("memory.migrate", command="migrate", scope=A, once=False, is_long=True),
    _read("memory.close", scope=A, is_long=True),
    # Sessions: found or created by key, appended to, read, marked, ended and rotated.
    _write("space.session", "POST sessions", example='session = alice.session("telegram:42:main")'),
    _read("space.find_session", example='("telegram:42:main")'),
    _write(
        "session.append",
        "POST sessions/{session}/records",
        "append",
        once=False,
        example='("user", "I moved to Lisbon in May.")',
    ),
    _write(
        "session.append_many",
        "POST append, POST sessions/{session}/records/many",
        "import, watch",
        "append_messages",
        once=False,
        example='([{"role": "assistant", "content": "Noted."}])',
    ),
    _read("session.recent", example="(20)"),
    _read("session.all", command="history", example="()"),
    _read("session.count", example="()"),
    _read("session.count_since", example="(1)"),
    _read("session.get_summary", "GET sessions/{session}/summary", example="()"),
    _write("session.set_summary", "PUT sessions/{session}/summary", example='("Moved to Lisbon.")'),
    _write("session.set_mode", "PUT sessions/{session}/mode", example='("enabled")'),
    _write("session.sleep", "POST sessions/{session}/sleep", "sessions sleep", example="()"),
    _write(
        "session.compact",
        "POST sessions/{session}/compact",
        once=False,
        example='("They moved to Lisbon.")',
    ),
    _write(
        "session.reset",
        "POST sessions/{session}/reset",
        "sessions reset",
        once=False,
        example='("a new subject")',
    ),
    _write("session.end", "POST sessions/{session}/end", "sessions end", example="()"),
    _drop("session.purge", "POST sessions/{session}/purge", scope=A, example="()"),
    _read(
        "sessions.list",
        "GET sessions",
        "sessions, sessions list",
        pages="before",
        summary="Sessions, the newest first.",
        example="()",
    ),
    _read(
        "sessions.get",
        "GET sessions/{session}",
        "sessions show",
        summary="The current state of a session; none if there is no such session.",
        example="(session.id)",
    ),
    _read(
        "sessions.records", "GET sessions/{session}/records", pages="after", example="(session.id)"
    ),
    _read("sessions.ranges", "GET sessions/{session}/ranges", example="(session.id)"),
    _read(
        "sessions.calls",
        "GET sessions/{session}/calls",
        pages="before",
        summary="The model calls made for a session, the newest first.",
        example="(session.id)",
    ),
    _read("sessions.extraction", "GET sessions/{session}/extraction", example="(session.id)"),
    _read("sessions.extractions", pages="before", example="()"),
    _read("sessions.max_seq", example="(session.id)"),
    _read("sessions.count_since", example="(session.id, 0)"),
    _read("sessions.find_invalidated", "GET sessions/marked", example="()"),
    _write(
        "sessions.invalidate",
        "POST sessions/{session}/mark",
        "sessions mark",
        example="(session.id, 1)",
    ),
    _write(
        "sessions.mark_processed", "POST sessions/{session}/processed", example="(session.id, 1, 1)"
    ),
    # Recall.
    _read(
        "space.recall",
        "POST recall",
        "recall",
        "search_memories",
        example='hits = alice.recall("where does she live?")',
    ),
    _read(
        "space.context",
        "POST context",
        "context, hook claude-code, hook codex, hook gemini-cli, hook generic",
        "context",
        example='block = alice.context("where does she live?", max_tokens=800)',
    ),
    _read("space.about", "GET about", "about", "about", example='("Ana")'),
    _read("space.why", "GET why", "why", example='("She moved to Lisbon.")'),
    _read("space.replay", "GET contexts/{block}", "replay", example="(block.id)"),
    _read(
        "space.check",
        "POST check",
        "check",
        example='([{"ask": "Where does Ana live?", "expect": "Lisbon"}])',
    ),
    _write("space.cite", "POST cite", example="(block)"),
    _write("space.opened", example="(hits)"),
    _drop("space.memory_tool", tool="memory", once=False, is_handle=True, example="()"),
    # Facts.
    _write("space.remember", command="remember", example='("Ben moved to Faro in May.")'),
    _write(
        "facts.add",
        "POST facts",
        "facts add",
        "add_memory",
        example='fact = alice.facts.add("Ana drinks tea.", tags=["preference"])',
    ),
    _read(
        "facts.get",
        "GET facts/{fact}",
        "facts show",
        "get_memory",
        summary="A fact with its sources; none if there is no such fact.",
        example="(fact.id)",
    ),
    _read(
        "facts.list",
        "GET facts",
        "facts, facts list",
        "list_memories",
        pages="before",
        summary="Facts that hold, the newest first.",
        example='(tag="preference")',
    ),
    _read("facts.search", "GET facts/search", "facts search", example='("tea")'),
    _read("facts.search_metadata", pages="before", example='("origin", "form")'),
    _read("facts.count", example="()"),
    _read("facts.history", "GET facts/{fact}/history", "facts history", example="(fact.id)"),
    _read("facts.told", "GET facts/{fact}/told", example="(fact.id)"),
    _drop(
        "facts.update",
        "PATCH facts/{fact}",
        "facts edit, review edit",
        "update_memory",
        example='(fact.id, "Ana drinks green tea.")',
    ),
    _drop(
        "facts.delete", "DELETE facts/{fact}", "facts delete", "delete_memory", example="(fact.id)"
    ),
    _read(
        "facts.waiting",
        "GET review",
        "review, review list",
        pages="before",
        example='(kind="instruction")',
    ),
    _write("facts.accept", "POST review/accept", "review accept", example='(kind="preference")'),
    _drop("facts.reject", "POST review/reject", "review reject", example='(project="shop-api")'),
    # Documents.
    _write(
        "documents.write",
        "PUT document",
        "docs write",
        example='("~/memory/people/ana", "She lives in Lisbon.")',
    ),
    _read("documents.read", "GET document", "docs read", example='("~/memory/people/ana")'),
    _read("documents.find", example='("~/memory/people/bo")'),
    _read("documents.tree", "GET documents", "docs, docs tree", pages="after", example="()"),
    _read("documents.search", "GET documents/search", "docs search", example='("Lisbon")'),
    _write(
        "documents.append",
        "POST document/append",
        "docs append",
        once=False,
        example='("~/memory/people/ana", "She drinks tea.")',
    ),
    _write(
        "documents.patch",
        "PATCH document",
        "docs patch",
        once=False,
        example='("~/memory/people/ana", "tea", "green tea")',
    ),
    _write("documents.rewrite", once=False, example='("~/memory/people/ana", str.strip)'),
    _write(
        "documents.move",
        "POST document/move",
        "docs move",
        once=False,
        example='("~/memory/people/ana", "~/memory/people/Ana Sousa")',
    ),
    _read(
        "documents.links",
        "GET document/links",
        "docs links",
        pages="after",
        example='("~/memory/people/ana")',
    ),
    _read("documents.broken_links", example="()"),
    _read("documents.orphans", example="()"),
    _read(
        "documents.history",
        "GET document/history",
        "docs history",
        pages="before",
        example='("~/memory/people/ana")',
    ),
    _read("documents.version", example='("~/memory/people/ana", 1)'),
    _read(
        "documents.diff",
        "GET document/diff",
        "docs diff",
        summary="What changed between two versions, as a unified diff.",
        example='("~/memory/people/ana", 1)',
    ),
    _drop("documents.delete", "DELETE document", "docs delete", example='("~/memory/people/ana")'),
    _read(
        "documents.deleted", "GET documents/deleted", "docs deleted", pages="after", example="()"
    ),
    _write(
        "documents.restore",
        "POST document/restore",
        "docs restore",
        example='("~/memory/people/ana sousa")',
    ),
    _drop("documents.erase_deleted", scope=A),
    _drop("documents.erase_versions", scope=A),
    _drop("documents.purge", command="docs purge", scope=A, example='("~/memory/people")'),
    _handle("documents.changeset", scope=W, example='("tidy up")'),
    _handle("documents.held_by"),
    _read("documents.publish", command="docs publish", is_long=True, example="(folder)"),
    _write("documents.load", command="docs load", is_long=True, example="(folder)"),
    # Generations of memory.
    _read(
        "generations.list",
        "GET generations",
        "generations, generations list",
        pages="before",
        summary="Generations of memory, the newest first.",
        example="()",
    ),
    _read("generations.state", "GET generations/state", example="()"),
    _read("generations.preview", is_long=True, example="()"),
    _write("generations.run", command="consolidate", is_long=True, example="()"),
    _read("generations.get", "GET generations/{number}", "generations show"),
    _read("generations.diff", "GET generations/{number}/diff", "generations diff"),
    _write(
        "generations.rollback",
        "POST generations/{number}/rollback",
        "generations rollback",
        once=False,
    ),
    _write("generations.pause", "POST generations/pause", "generations pause", example="()"),
    _write(
        "generations.resume",
        "POST generations/resume",
        "generations resume",
        summary="Resume making generations.",
        example="()",
    ),
    # Agents that live in the store.
    _read("agents.start", scope=W, is_long=True),
    _read("agents.stop", scope=W, is_long=True),
    _write("agents.tick", is_long=True, example="()"),
    _write(
        "agents.post",
        "POST agents/{agent}/messages",
        once=False,
        example='("helper", "Hello!", space="alice")',
    ),
    _read(
        "agents.answer",
        "GET agents/{agent}/messages/{message}",
        summary="The outcome of a message that was sent to an agent.",
    ),
    _write("agents.ask", once=False),
    _write("agents.notify", once=False),
    _write("agents.reset", once=False),
    _write("agents.signal"),
    _write("agents.cancel_signal"),
    _drop("agents.kill"),
    _read("agents.find"),
    _read(
        "agents.state",
        summary="The state of an agent and its queue; none if it has had no message yet.",
        example='("helper", space="alice")',
    ),
    _read("agents.agents", "GET agents", "agents", example='("alice")'),
    # Control.
    _drop(
        "space.forget", "POST forget", "forget", scope=A, is_long=True, example="(session=session)"
    ),
    # What only a surface has.
    _read("server.describe", "GET /v1/openapi.json", summary="The API as OpenAPI."),
    _read("server.metrics", "GET /metrics", summary="Figures for Prometheus."),
    _handle("server.serve", command="serve", scope=A, summary="Serve the HTTP API."),
    _handle("server.mcp", command="mcp", scope=A, summary="Serve the tools of MCP."),
    _read("keys.list", command="keys, keys list", scope=A, summary="List keys."),
    _write("keys.create", command="keys create", scope=A, once=False, summary="Make a key."),
    _drop("keys.revoke", command="keys revoke", scope=A, summary="Revoke a key."),
    _write("hooks.setup", command="setup", summary="Give a coding agent this memory."),
    _write("hooks.install", command="hook install", summary="Install hooks for a coding agent."),
    _drop("hooks.uninstall", command="hook uninstall", summary="Take hooks out again."),
    _read("store.backup", command="backup", scope=A, summary="Copy a store in its current state."),
    _write(
        "store.restore",
        command="restore",
        scope=A,
        once=False,
        summary="Create a store of a backup.",
    ),
    _write("store.doctor", command="doctor", scope=A, summary="Examine a store, and repair it."),
    _read("bench.recall", command="bench recall", summary="Measure recall on public data."),
    _read(
        "bench.answers",
        command="bench answers",
        summary="Measure a model's answers from notes, with a judge.",
    ),
    _read(
        "bench.mine",
        command="bench mine",
        summary="Find what you had to tell your agents twice.",
        is_long=True,
    ),
    _read(
        "bench.load",
        command="bench load",
        summary="Measure a store or a server under more and more load.",
        is_long=True,
    ),
    _read("settings.show", command="config", summary="Show every setting and its origin."),
    _read(
        "models.list",
        command="models",
        is_long=True,
        summary="List the language models that answer on this machine.",
    ),
    _read("demo.play", command="demo", summary="Play sample sessions into a store."),
    _read("shell.completion", command="completion", summary="Print the completion script."),
    _read("verbs.list", command="verbs", summary="Show this list."),
    # mem0's own verbs, for people who come from there.
    _write(
        "mem0.add",
        "POST /mem0/memories",
        summary="mem0: learn from what was said, or with `infer` false keep it word for word.",
    ),
    _read(
        "mem0.get_all",
        "GET /mem0/memories",
        summary="mem0: memories of a user, an agent or a run, newest first.",
    ),
    _read(
        "mem0.search",
        "POST /mem0/search",
        summary="mem0: memories that fit a question, the best first.",
    ),
    _read("mem0.get", "GET /mem0/memories/{memory}", summary="mem0: one memory."),
    _drop("mem0.update", "PUT /mem0/memories/{memory}", summary="mem0: change what a memory says."),
    _drop("mem0.delete", "DELETE /mem0/memories/{memory}", summary="mem0: delete a memory."),
    _read(
        "mem0.history",
        "GET /mem0/memories/{memory}/history",
        summary="mem0: the history of a memory, also of a deleted one.",
    ),
    _drop(
        "mem0.delete_all",
        "DELETE /mem0/memories",
        summary="mem0: delete the memories of a user, an agent or a run.",
    ),
    _drop("mem0.reset", "POST /mem0/reset", scope=A, summary="mem0: reset."),
)

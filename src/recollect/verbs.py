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
_SESSION = f"{S}/sessions/{{session}}"
_FACT = f"{S}/facts/{{fact}}"
_PAGE = f"{S}/document"
_GENERATION = f"{S}/generations/{{number}}"


def _words(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) and given else tuple(given)


def _verb(
    name: str,
    scope: Scope,
    effect: Effect,
    *,
    once: bool = True,
    http: str | tuple[str, ...] = (),
    command: str | tuple[str, ...] = (),
    tool: str | tuple[str, ...] = (),
    **more: Any,
) -> Verb:
    return Verb(
        name=name,
        scope=scope,
        effect=effect,
        is_idempotent=once,
        http=_words(http),
        commands=_words(command),
        tools=_words(tool),
        **more,
    )


def _read(name: str, **more: Any) -> Verb:
    return _verb(name, more.pop("scope", R), Effect.READ, **more)


def _handle(name: str, **more: Any) -> Verb:
    return _verb(name, more.pop("scope", R), Effect.READ, is_handle=True, **more)


def _write(name: str, **more: Any) -> Verb:
    return _verb(name, more.pop("scope", W), Effect.WRITE, **more)


def _drop(name: str, **more: Any) -> Verb:
    return _verb(name, more.pop("scope", W), Effect.DESTRUCTIVE, **more)


VERBS: tuple[Verb, ...] = (
    # Spaces and the store as a whole.
    _handle("memory.space", example='alice = memory.space("alice")'),
    _read(
        "memory.spaces",
        http="GET /v1/spaces",
        command="spaces",
        pages="after",
        example="memory.spaces()",
    ),
    _read("space.counts", summary="A space, and how much there is in it.", http=f"GET {S}"),
    _read(
        "memory.status",
        http=(f"GET {S}/status", f"GET {S}/jobs", f"GET {S}/events"),
        command="status",
        example="memory.status(limit=10)",
    ),
    _read(
        "memory.audit",
        scope=A,
        http=f"GET {S}/audit",
        command="audit",
        pages="before",
        example='memory.audit("alice")',
    ),
    _write(
        "memory.work",
        scope=A,
        http=f"POST {S}/work",
        command="work",
        example="memory.work(all=True)",
        is_long=True,
    ),
    _write("memory.request_again", scope=A, once=False, example='memory.request_again("alice")'),
    _read("memory.plan", example="memory.plan(all=True)"),
    _write("memory.retry", http=f"POST {S}/jobs/retry", command="retry", example="memory.retry()"),
    _write("memory.sweep_idle", scope=A, command="sweep", example="memory.sweep_idle()"),
    _handle("memory.worker", scope=A, command="worker", example="memory.worker()"),
    _handle("memory.agents", scope=W, command="chat", example="agents = memory.agents()"),
    _read(
        "memory.export", scope=A, command="export", example="memory.export(archive)", is_long=True
    ),
    _write("memory.load", scope=A, once=False, command="load", is_long=True),
    _write("memory.migrate", scope=A, once=False, command="migrate", is_long=True),
    _read("memory.close", scope=A, is_long=True),
    # Sessions: found or created by key, appended to, read, marked, ended and rotated.
    _write(
        "space.session",
        http=f"POST {S}/sessions",
        example='session = alice.session("telegram:42:main")',
    ),
    _read("space.find_session", example='alice.find_session("telegram:42:main")'),
    _write(
        "session.append",
        once=False,
        http=f"POST {_SESSION}/records",
        command="append",
        example='session.append("user", "I moved to Lisbon in May.")',
    ),
    _write(
        "session.append_many",
        once=False,
        http=(f"POST {S}/append", f"POST {_SESSION}/records/many"),
        command=("import", "watch"),
        tool="append_messages",
        example='session.append_many([{"role": "assistant", "content": "Noted."}])',
    ),
    _read("session.recent", example="session.recent(20)"),
    _read("session.all", command="history", example="session.all()"),
    _read("session.count", example="session.count()"),
    _read("session.count_since", example="session.count_since(1)"),
    _read("session.get_summary", http=f"GET {_SESSION}/summary", example="session.get_summary()"),
    _write(
        "session.set_summary",
        http=f"PUT {_SESSION}/summary",
        example='session.set_summary("Moved to Lisbon.")',
    ),
    _write("session.set_mode", http=f"PUT {_SESSION}/mode", example='session.set_mode("enabled")'),
    _write(
        "session.sleep",
        http=f"POST {_SESSION}/sleep",
        command="sessions sleep",
        example="session.sleep()",
    ),
    _write(
        "session.compact",
        once=False,
        http=f"POST {_SESSION}/compact",
        example='session.compact("They moved to Lisbon.")',
    ),
    _write(
        "session.reset",
        once=False,
        http=f"POST {_SESSION}/reset",
        command="sessions reset",
        example='session.reset("a new subject")',
    ),
    _write(
        "session.end",
        http=f"POST {_SESSION}/end",
        command="sessions end",
        example="session.end()",
    ),
    _drop("session.purge", scope=A, http=f"POST {_SESSION}/purge", example="session.purge()"),
    _read(
        "sessions.list",
        summary="Sessions, the newest first.",
        http=f"GET {S}/sessions",
        command=("sessions", "sessions list"),
        pages="before",
        example="alice.sessions.list()",
    ),
    _read(
        "sessions.get",
        summary="The current state of a session; none if there is no such session.",
        http=f"GET {_SESSION}",
        command="sessions show",
        example="alice.sessions.get(session.id)",
    ),
    _read(
        "sessions.records",
        http=f"GET {_SESSION}/records",
        pages="after",
        example="alice.sessions.records(session.id)",
    ),
    _read(
        "sessions.ranges",
        http=f"GET {_SESSION}/ranges",
        example="alice.sessions.ranges(session.id)",
    ),
    _read(
        "sessions.calls",
        summary="The model calls made for a session, the newest first.",
        http=f"GET {_SESSION}/calls",
        pages="before",
        example="alice.sessions.calls(session.id)",
    ),
    _read(
        "sessions.extraction",
        http=f"GET {_SESSION}/extraction",
        example="alice.sessions.extraction(session.id)",
    ),
    _read("sessions.extractions", pages="before", example="alice.sessions.extractions()"),
    _read("sessions.max_seq", example="alice.sessions.max_seq(session.id)"),
    _read("sessions.count_since", example="alice.sessions.count_since(session.id, 0)"),
    _read(
        "sessions.find_invalidated",
        http=f"GET {S}/sessions/marked",
        example="alice.sessions.find_invalidated()",
    ),
    _write(
        "sessions.invalidate",
        http=f"POST {_SESSION}/mark",
        command="sessions mark",
        example="alice.sessions.invalidate(session.id, 1)",
    ),
    _write(
        "sessions.mark_processed",
        http=f"POST {_SESSION}/processed",
        example="alice.sessions.mark_processed(session.id, 1, 1)",
    ),
    # Recall.
    _read(
        "space.recall",
        http=f"POST {S}/recall",
        command="recall",
        tool="search_memories",
        example='hits = alice.recall("where does she live?")',
    ),
    _read(
        "space.context",
        http=f"POST {S}/context",
        command=("context", "hook claude-code", "hook codex", "hook gemini-cli", "hook generic"),
        tool="context",
        example='block = alice.context("where does she live?", max_tokens=800)',
    ),
    _read(
        "space.about",
        http=f"GET {S}/about",
        command="about",
        tool="about",
        example='alice.about("Ana")',
    ),
    _read(
        "space.why",
        http=f"GET {S}/why",
        command="why",
        example='alice.why("She moved to Lisbon.")',
    ),
    _read(
        "space.replay",
        http=f"GET {S}/contexts/{{block}}",
        command="replay",
        example="alice.replay(block.id)",
    ),
    _read(
        "space.check",
        http=f"POST {S}/check",
        command="check",
        example='alice.check([{"ask": "Where does Ana live?", "expect": "Lisbon"}])',
    ),
    _write("space.cite", http=f"POST {S}/cite", example="alice.cite(block)"),
    _write("space.opened", example="alice.opened(hits)"),
    _drop(
        "space.memory_tool",
        once=False,
        tool="memory",
        example="alice.memory_tool()",
        is_handle=True,
    ),
    # Facts.
    _write(
        "space.remember",
        command="remember",
        example='alice.remember("Ben moved to Faro in May.")',
    ),
    _write(
        "facts.add",
        http=f"POST {S}/facts",
        command="facts add",
        tool="add_memory",
        example='fact = alice.facts.add("Ana drinks tea.", tags=["preference"])',
    ),
    _read(
        "facts.get",
        summary="A fact with its sources; none if there is no such fact.",
        http=f"GET {_FACT}",
        command="facts show",
        tool="get_memory",
        example="alice.facts.get(fact.id)",
    ),
    _read(
        "facts.list",
        summary="Facts that hold, the newest first.",
        http=f"GET {S}/facts",
        command=("facts", "facts list"),
        tool="list_memories",
        pages="before",
        example='alice.facts.list(tag="preference")',
    ),
    _read(
        "facts.search",
        http=f"GET {S}/facts/search",
        command="facts search",
        example='alice.facts.search("tea")',
    ),
    _read(
        "facts.search_metadata",
        pages="before",
        example='alice.facts.search_metadata("origin", "form")',
    ),
    _read("facts.count", example="alice.facts.count()"),
    _read(
        "facts.history",
        http=f"GET {_FACT}/history",
        command="facts history",
        example="alice.facts.history(fact.id)",
    ),
    _read("facts.told", http=f"GET {_FACT}/told", example="alice.facts.told(fact.id)"),
    _drop(
        "facts.update",
        http=f"PATCH {_FACT}",
        command=("facts edit", "review edit"),
        tool="update_memory",
        example='alice.facts.update(fact.id, "Ana drinks green tea.")',
    ),
    _drop(
        "facts.delete",
        http=f"DELETE {_FACT}",
        command="facts delete",
        tool="delete_memory",
        example="alice.facts.delete(fact.id)",
    ),
    _read(
        "facts.waiting",
        http=f"GET {S}/review",
        command=("review", "review list"),
        pages="before",
        example='alice.facts.waiting(kind="instruction")',
    ),
    _write(
        "facts.accept",
        http=f"POST {S}/review/accept",
        command="review accept",
        example='alice.facts.accept(kind="preference")',
    ),
    _drop(
        "facts.reject",
        http=f"POST {S}/review/reject",
        command="review reject",
        example='alice.facts.reject(project="shop-api")',
    ),
    # Documents.
    _write(
        "documents.write",
        http=f"PUT {_PAGE}",
        command="docs write",
        example='alice.documents.write("~/memory/people/ana", "She lives in Lisbon.")',
    ),
    _read(
        "documents.read",
        http=f"GET {_PAGE}",
        command="docs read",
        example='alice.documents.read("~/memory/people/ana")',
    ),
    _read("documents.find", example='alice.documents.find("~/memory/people/bo")'),
    _read(
        "documents.tree",
        http=f"GET {S}/documents",
        command=("docs", "docs tree"),
        pages="after",
        example="alice.documents.tree()",
    ),
    _read(
        "documents.search",
        http=f"GET {S}/documents/search",
        command="docs search",
        example='alice.documents.search("Lisbon")',
    ),
    _write(
        "documents.append",
        once=False,
        http=f"POST {_PAGE}/append",
        command="docs append",
        example='alice.documents.append("~/memory/people/ana", "She drinks tea.")',
    ),
    _write(
        "documents.patch",
        once=False,
        http=f"PATCH {_PAGE}",
        command="docs patch",
        example='alice.documents.patch("~/memory/people/ana", "tea", "green tea")',
    ),
    _write(
        "documents.rewrite",
        once=False,
        example='alice.documents.rewrite("~/memory/people/ana", str.strip)',
    ),
    _write(
        "documents.move",
        once=False,
        http=f"POST {_PAGE}/move",
        command="docs move",
        example='alice.documents.move("~/memory/people/ana", "~/memory/people/Ana Sousa")',
    ),
    _read(
        "documents.links",
        http=f"GET {_PAGE}/links",
        command="docs links",
        pages="after",
        example='alice.documents.links("~/memory/people/ana")',
    ),
    _read("documents.broken_links", example="alice.documents.broken_links()"),
    _read("documents.orphans", example="alice.documents.orphans()"),
    _read(
        "documents.history",
        http=f"GET {_PAGE}/history",
        command="docs history",
        pages="before",
        example='alice.documents.history("~/memory/people/ana")',
    ),
    _read("documents.version", example='alice.documents.version("~/memory/people/ana", 1)'),
    _read(
        "documents.diff",
        summary="What changed between two versions, as a unified diff.",
        http=f"GET {_PAGE}/diff",
        command="docs diff",
        example='alice.documents.diff("~/memory/people/ana", 1)',
    ),
    _drop(
        "documents.delete",
        http=f"DELETE {_PAGE}",
        command="docs delete",
        example='alice.documents.delete("~/memory/people/ana")',
    ),
    _read(
        "documents.deleted",
        http=f"GET {S}/documents/deleted",
        command="docs deleted",
        pages="after",
        example="alice.documents.deleted()",
    ),
    _write(
        "documents.restore",
        http=f"POST {_PAGE}/restore",
        command="docs restore",
        example='alice.documents.restore("~/memory/people/ana sousa")',
    ),
    _drop("documents.erase_deleted", scope=A),
    _drop("documents.erase_versions", scope=A),
    _drop(
        "documents.purge",
        scope=A,
        command="docs purge",
        example='alice.documents.purge("~/memory/people")',
    ),
    _handle("documents.changeset", scope=W, example='alice.documents.changeset("tidy up")'),
    _handle("documents.held_by"),
    _read(
        "documents.publish",
        command="docs publish",
        example="alice.documents.publish(folder)",
        is_long=True,
    ),
    _write(
        "documents.load", command="docs load", example="alice.documents.load(folder)", is_long=True
    ),
    # Generations of memory.
    _read(
        "generations.list",
        summary="Generations of memory, the newest first.",
        http=f"GET {S}/generations",
        command=("generations", "generations list"),
        pages="before",
        example="alice.generations.list()",
    ),
    _read(
        "generations.state",
        http=f"GET {S}/generations/state",
        example="alice.generations.state()",
    ),
    _read("generations.preview", example="alice.generations.preview()", is_long=True),
    _write(
        "generations.run", command="consolidate", example="alice.generations.run()", is_long=True
    ),
    _read(
        "generations.get",
        http=f"GET {_GENERATION}",
        command="generations show",
    ),
    _read("generations.diff", http=f"GET {_GENERATION}/diff", command="generations diff"),
    _write(
        "generations.rollback",
        once=False,
        http=f"POST {_GENERATION}/rollback",
        command="generations rollback",
    ),
    _write(
        "generations.pause",
        http=f"POST {S}/generations/pause",
        command="generations pause",
        example="alice.generations.pause()",
    ),
    _write(
        "generations.resume",
        summary="Resume making generations.",
        http=f"POST {S}/generations/resume",
        command="generations resume",
        example="alice.generations.resume()",
    ),
    # Agents that live in the store.
    _read("agents.start", scope=W, is_long=True),
    _read("agents.stop", scope=W, is_long=True),
    _write("agents.tick", example="agents.tick()", is_long=True),
    _write(
        "agents.post",
        once=False,
        http=f"POST {S}/agents/{{agent}}/messages",
        example='agents.post("helper", "Hello!", space="alice")',
    ),
    _read(
        "agents.answer",
        summary="The outcome of a message that was sent to an agent.",
        http=f"GET {S}/agents/{{agent}}/messages/{{message}}",
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
        example='agents.state("helper", space="alice")',
    ),
    _read(
        "agents.agents",
        http=f"GET {S}/agents",
        command="agents",
        example='agents.agents("alice")',
    ),
    # Control.
    _drop(
        "space.forget",
        scope=A,
        http=f"POST {S}/forget",
        command="forget",
        example="alice.forget(session=session)",
        is_long=True,
    ),
    # What only a surface has.
    _read("server.describe", summary="The API as OpenAPI.", http="GET /v1/openapi.json"),
    _read("server.metrics", scope=R, summary="Figures for Prometheus.", http="GET /metrics"),
    _handle("server.serve", scope=A, summary="Serve the HTTP API.", command="serve"),
    _handle("server.mcp", scope=A, summary="Serve the tools of MCP.", command="mcp"),
    _read("keys.list", scope=A, summary="List keys.", command=("keys", "keys list")),
    _write("keys.create", scope=A, once=False, summary="Make a key.", command="keys create"),
    _drop("keys.revoke", scope=A, summary="Revoke a key.", command="keys revoke"),
    _write("hooks.setup", summary="Give a coding agent this memory.", command="setup"),
    _write("hooks.install", summary="Install hooks for a coding agent.", command="hook install"),
    _drop("hooks.uninstall", summary="Take hooks out again.", command="hook uninstall"),
    _read("store.backup", scope=A, summary="Copy a store in its current state.", command="backup"),
    _write(
        "store.restore",
        scope=A,
        once=False,
        summary="Create a store of a backup.",
        command="restore",
    ),
    _write("store.doctor", scope=A, summary="Examine a store, and repair it.", command="doctor"),
    _read("bench.recall", summary="Measure recall on public data.", command="bench recall"),
    _read(
        "bench.answers",
        summary="Measure a model's answers from notes, with a judge.",
        command="bench answers",
    ),
    _read("settings.show", summary="Show every setting and its origin.", command="config"),
    _read(
        "models.list",
        summary="List the language models that answer on this machine.",
        command="models",
        is_long=True,
    ),
    _read("demo.play", summary="Play sample sessions into a store.", command="demo"),
    _read("shell.completion", summary="Print the completion script.", command="completion"),
    _read("verbs.list", summary="Show this list.", command="verbs"),
    # mem0's own verbs, for people who come from there.
    _write(
        "mem0.add",
        summary="mem0: learn from what was said, or with `infer` false keep it word for word.",
        http="POST /mem0/memories",
    ),
    _read(
        "mem0.get_all",
        summary="mem0: memories of a user, an agent or a run, newest first.",
        http="GET /mem0/memories",
    ),
    _read(
        "mem0.search",
        summary="mem0: memories that fit a question, the best first.",
        http="POST /mem0/search",
    ),
    _read("mem0.get", summary="mem0: one memory.", http="GET /mem0/memories/{memory}"),
    _drop(
        "mem0.update",
        summary="mem0: change what a memory says.",
        http="PUT /mem0/memories/{memory}",
    ),
    _drop("mem0.delete", summary="mem0: delete a memory.", http="DELETE /mem0/memories/{memory}"),
    _read(
        "mem0.history",
        summary="mem0: the history of a memory, also of a deleted one.",
        http="GET /mem0/memories/{memory}/history",
    ),
    _drop(
        "mem0.delete_all",
        summary="mem0: delete the memories of a user, an agent or a run.",
        http="DELETE /mem0/memories",
    ),
    _drop("mem0.reset", scope=A, summary="mem0: reset.", http="POST /mem0/reset"),
)

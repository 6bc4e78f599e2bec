"""The same memory for asyncio: the same names as coroutines, each run in a thread.

One thin layer over the synchronous core, no second implementation. A coroutine that is cancelled
stops waiting; a write that has begun is finished. Whoever waits for an agent's answer holds no
thread: any number may wait, and neither calls nor closing wait for them. What Python cannot await
has a method: `count()` for `len`, `get_summary()` for `summary`, `set_mode()` for `mode = …`; `id`,
`max_seq`, `mode`, `state` and `summary` are awaited as they stand: `await session.max_seq`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from recollect import awaiting
from recollect import facts as core_facts
from recollect import memory as core
from recollect import session as core_session
from recollect import space as core_space
from recollect import worker as core_worker
from recollect.adapters import anthropic_memory as core_memory_tool
from recollect.agents import reply as core_reply
from recollect.agents import system as core_agents
from recollect.awaiting import Lane, Opening, at_length, in_thread
from recollect.clock import Clock
from recollect.collection import StableKey
from recollect.config import Settings
from recollect.consolidation import generations as core_generations
from recollect.descriptors import Descriptor
from recollect.document import Author
from recollect.documents import changeset as core_changeset
from recollect.documents import tree as core_documents
from recollect.documents.editing import Editor
from recollect.documents.scope import Holder
from recollect.domain import Mode, Record, SessionState
from recollect.knowledge import Receipt
from recollect.processing import Processor

if TYPE_CHECKING:
    from recollect.agents.profile import AgentProfile, Hooks
    from recollect.embedding.protocol import Embedder
    from recollect.models.protocol import Model


def open(
    address: str | Path | None = None,
    *,
    settings: Settings | Mapping[str, Any] | str | Path | None = None,
    model: str | Model | None = None,
    embedder: str | Embedder | None = None,
    memory_agent_model: str | Model | None = None,
    consolidation_model: str | Model | None = None,
    clock: Clock | None = None,
) -> Opening[Memory]:
    """Open a memory, as `recollect.open` does: await it, or `async with recollect.aio.open(…)`."""
    others = {"memory_agent_model": memory_agent_model, "consolidation_model": consolidation_model}
    make = partial(
        core.open, address, settings=settings, model=model, embedder=embedder, clock=clock, **others
    )

    async def opening() -> Memory:
        return Memory(await awaiting.run_or_undo(make, core.Memory.close))

    return Opening(opening())


class Memory:
    """`recollect.Memory` for asyncio."""

    def __init__(self, sync: core.Memory) -> None:
        self.sync = sync

    def space(self, name: str = core.DEFAULT_SPACE) -> Space:
        return Space(self.sync.space(name))

    spaces = in_thread(core.Memory.spaces)
    sweep_idle = in_thread(core.Memory.sweep_idle)
    work = at_length(core.Memory.work)
    request_again = in_thread(core.Memory.request_again)
    plan = in_thread(core.Memory.plan)
    retry = in_thread(core.Memory.retry)
    status = in_thread(core.Memory.status)
    audit = in_thread(core.Memory.audit)
    export = at_length(core.Memory.export)
    load = at_length(core.Memory.load)
    migrate = at_length(core.Memory.migrate)
    close = at_length(core.Memory.close)

    def worker(self, processor: Processor | None = None, *, owner: str | None = None) -> Worker:
        return Worker(self.sync.worker(processor, owner=owner))

    def agents(
        self,
        profiles: Mapping[str | Descriptor, AgentProfile] | None = None,
        *,
        default: AgentProfile | None = None,
        only: bool = False,
        hooks: Hooks | None = None,
    ) -> AgentSystem:
        """Agents that live in this memory: start them, or use it as a context manager."""
        return AgentSystem(self.sync.agents(profiles, default=default, only=only, hooks=hooks))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class AgentSystem:
    """`recollect.agents.system.AgentSystem` for asyncio; tools and hooks stay synchronous."""

    def __init__(self, sync: core_agents.AgentSystem) -> None:
        self.sync = sync

    start = at_length(core_agents.AgentSystem.start)
    stop = at_length(core_agents.AgentSystem.stop)
    tick = at_length(core_agents.AgentSystem.tick)
    find = in_thread(core_agents.AgentSystem.find)
    signal = in_thread(core_agents.AgentSystem.signal)
    cancel_signal = in_thread(core_agents.AgentSystem.cancel_signal)
    kill = in_thread(core_agents.AgentSystem.kill)
    state = in_thread(core_agents.AgentSystem.state)
    agents = in_thread(core_agents.AgentSystem.agents)
    _post = in_thread(core_agents.AgentSystem.post)
    _notify = in_thread(core_agents.AgentSystem.notify)
    _reset = in_thread(core_agents.AgentSystem.reset)

    @property
    def unstored(self) -> int:
        """Records that wait for a store that cannot be reached."""
        return self.sync.unstored

    async def post(self, *args: Any, **kwargs: Any) -> Ticket:
        """Say something to an agent. It is stored when this returns."""
        return Ticket(await self._post(*args, **kwargs))

    async def ask(
        self,
        agent: core_agents.AgentName,
        text: str,
        *,
        space: str = core.DEFAULT_SPACE,
        key: StableKey = core_agents.DEFAULT_KEY,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> core_reply.Reply:
        """Say something and wait for the answer."""
        ticket = await self.post(agent, text, space=space, key=key)
        return await ticket.result(timeout)

    async def notify(self, *args: Any, **kwargs: Any) -> Ticket:
        """Tell an agent something that no person said."""
        return Ticket(await self._notify(*args, **kwargs))

    async def reset(self, *args: Any, **kwargs: Any) -> Ticket:
        """Start an empty conversation, after what is under way; the old one is marked."""
        return Ticket(await self._reset(*args, **kwargs))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()


class Ticket:
    """Something that was posted. `await result()` waits for what comes of it."""

    def __init__(self, sync: core_reply.Ticket) -> None:
        self.sync = sync
        self.id = sync.id

    @property
    def is_settled(self) -> bool:
        return self.sync.is_settled

    async def result(
        self,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> core_reply.Reply:
        """The answer, from this process or another one.

        AnswerPending: there is none yet; it may come later. TurnFailed: there will be none.
        """
        loop, settled = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(settled.set)

        with self.sync.telling(tell), suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self.sync.is_settled and not await _is_set_soon(settled):
                    await awaiting.run(self.sync.look, Lane.LOOKS)
        return self.sync.outcome(timeout)


async def _is_set_soon(event: asyncio.Event) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(core_reply.POLL_SECONDS):
            await event.wait()
    return event.is_set()


class Worker:
    """`recollect.Worker` for asyncio; processors stay synchronous, they run in its threads."""

    def __init__(self, sync: core_worker.Worker) -> None:
        self.sync = sync
        self.owner = sync.owner

    start = at_length(core_worker.Worker.start)
    stop = at_length(core_worker.Worker.stop)
    tick = at_length(core_worker.Worker.tick)
    drain = at_length(core_worker.Worker.drain)

    def wake(self) -> None:
        """Look for work now instead of at the next tick."""
        self.sync.wake()


class Space:
    """`recollect.Space` for asyncio."""

    def __init__(self, sync: core_space.Space) -> None:
        self.sync = sync
        self.name = sync.name
        self.sessions = Sessions(sync.sessions)
        self.facts = Facts(sync.facts)
        self.documents = Documents(sync.documents)

    @cached_property
    def generations(self) -> Generations:
        return Generations(self.sync)

    async def session(
        self,
        key: StableKey,
        agent: str | Mapping[str, Any] | Descriptor | None = None,
        *,
        source: str = "api",
        project: str | None = None,
        ephemeral: bool = False,
        parent: str | None = None,
    ) -> Session:
        """The conversation behind a stable key, created if it is new."""
        found = await awaiting.run(
            lambda: self.sync.session(
                key, agent, source=source, project=project, ephemeral=ephemeral, parent=parent
            )
        )
        return Session(found)

    async def find_session(
        self, key: StableKey, agent: str | Mapping[str, Any] | Descriptor | None = None
    ) -> Session | None:
        """The conversation behind a stable key, if there is one."""
        found = await awaiting.run(lambda: self.sync.find_session(key, agent))
        return None if found is None else Session(found)

    recall = in_thread(core_space.Space.recall)
    context = in_thread(core_space.Space.context)
    cite = in_thread(core_space.Space.cite)
    opened = in_thread(core_space.Space.opened)

    def memory_tool(
        self, author: Author | str = core_space.DEFAULT_AGENT, *, root: str = "~/memory"
    ) -> MemoryTool:
        """What answers a Claude model that uses Anthropic's memory tool."""
        return MemoryTool(self.sync.memory_tool(author, root=root))

    async def forget(
        self,
        *,
        session: str | Session | None = None,
        record: str | Record | None = None,
        fact: str | None = None,
        document: str | None = None,
        agent: str | Mapping[str, Any] | Descriptor | None = None,
        source: str | None = None,
        everything: bool = False,
        pages: str = "keep",
    ) -> Receipt:
        """Erase one of these for good, with all that rests on it alone."""
        forget = partial(
            self.sync.forget,
            session=session.sync if isinstance(session, Session) else session,
            record=record,
            fact=fact,
            document=document,
            agent=agent,
            source=source,
            everything=everything,
            pages=pages,
        )
        return await awaiting.run(forget, Lane.LONG)


class MemoryTool:
    """`space.memory_tool()` for asyncio: `await tool(block.input)`."""

    def __init__(self, sync: core_memory_tool.MemoryTool) -> None:
        self.sync = sync

    handle = in_thread(core_memory_tool.MemoryTool.handle)
    __call__ = in_thread(core_memory_tool.MemoryTool.__call__)


class Facts:
    """`space.facts` for asyncio."""

    def __init__(self, sync: core_facts.Facts) -> None:
        self.sync = sync

    add = in_thread(core_facts.Facts.add)
    get = in_thread(core_facts.Facts.get)
    update = in_thread(core_facts.Facts.update)
    delete = in_thread(core_facts.Facts.delete)
    list = in_thread(core_facts.Facts.list)
    search = in_thread(core_facts.Facts.search)
    search_metadata = in_thread(core_facts.Facts.search_metadata)
    quarantined = in_thread(core_facts.Facts.quarantined)
    approve = in_thread(core_facts.Facts.approve)
    reject = in_thread(core_facts.Facts.reject)
    count = in_thread(core_facts.Facts.count)
    history = in_thread(core_facts.Facts.history)


class _Pages:
    """What documents and changesets have in common."""

    def __init__(self, sync: Editor) -> None:
        self.sync = sync
        self.holder = sync.holder

    read = in_thread(Editor.read)
    find = in_thread(Editor.find)
    tree = in_thread(Editor.tree)
    deleted = in_thread(Editor.deleted)
    search = in_thread(Editor.search)
    links = in_thread(Editor.links)
    history = in_thread(Editor.history)
    version = in_thread(Editor.version)
    diff = in_thread(Editor.diff)
    write = in_thread(Editor.write)
    append = in_thread(Editor.append)
    patch = in_thread(Editor.patch)
    rewrite = in_thread(Editor.rewrite)
    move = in_thread(Editor.move)
    delete = in_thread(Editor.delete)
    restore = in_thread(Editor.restore)


class Documents(_Pages):
    """`space.documents` for asyncio."""

    sync: core_documents.Documents

    def __init__(self, sync: core_documents.Documents) -> None:
        super().__init__(sync)

    def held_by(self, holder: Holder) -> Documents:
        """The same tree for somebody else."""
        return Documents(self.sync.held_by(holder))

    def changeset(self, reason: str = "") -> Changeset:
        """Edits prepared aside, to be committed in one transaction or dropped without a trace."""
        return Changeset(self.sync.changeset(reason))

    broken_links = in_thread(core_documents.Documents.broken_links)
    orphans = in_thread(core_documents.Documents.orphans)
    purge = in_thread(core_documents.Documents.purge)
    erase_deleted = in_thread(core_documents.Documents.erase_deleted)
    erase_versions = in_thread(core_documents.Documents.erase_versions)
    publish = at_length(core_documents.Documents.publish)
    load = at_length(core_documents.Documents.load)


class Changeset(_Pages):
    """A changeset for asyncio: one call after the other."""

    sync: core_changeset.Changeset

    def __init__(self, sync: core_changeset.Changeset) -> None:
        super().__init__(sync)

    @property
    def edits(self) -> tuple[core_changeset.PreparedEdit, ...]:
        return self.sync.edits

    commit = in_thread(core_changeset.Changeset.commit)

    def drop(self) -> None:
        """Forget every edit; the changeset is empty and can be used again."""
        self.sync.drop()


class Generations:
    """`space.generations` for asyncio."""

    def __init__(self, space: core_space.Space) -> None:
        self._space = space

    @property
    def sync(self) -> core_generations.Generations:
        """Made on first use, which may read the store: in a thread, as its methods are."""
        return self._space.generations

    list = in_thread(core_generations.Generations.list)
    get = in_thread(core_generations.Generations.get)
    state = in_thread(core_generations.Generations.state)
    preview = at_length(core_generations.Generations.preview)
    run = at_length(core_generations.Generations.run)
    pause = in_thread(core_generations.Generations.pause)
    resume = in_thread(core_generations.Generations.resume)
    diff = in_thread(core_generations.Generations.diff)
    rollback = in_thread(core_generations.Generations.rollback)


class Sessions:
    """The marking interface for asyncio."""

    def __init__(self, sync: core_session.Sessions) -> None:
        self.sync = sync

    get = in_thread(core_session.Sessions.get)
    list = in_thread(core_session.Sessions.list)
    invalidate = in_thread(core_session.Sessions.invalidate)
    find_invalidated = in_thread(core_session.Sessions.find_invalidated)
    mark_processed = in_thread(core_session.Sessions.mark_processed)
    max_seq = in_thread(core_session.Sessions.max_seq)
    count_since = in_thread(core_session.Sessions.count_since)
    records = in_thread(core_session.Sessions.records)
    ranges = in_thread(core_session.Sessions.ranges)
    extraction = in_thread(core_session.Sessions.extraction)
    extractions = in_thread(core_session.Sessions.extractions)
    calls = in_thread(core_session.Sessions.calls)


class Session:
    """`recollect.Session` for asyncio."""

    def __init__(self, sync: core_session.Session) -> None:
        self.sync = sync
        self.key = sync.key
        self.agent = sync.agent

    append = in_thread(core_session.Session.append)
    append_many = in_thread(core_session.Session.append_many)
    recent = in_thread(core_session.Session.recent)
    all = in_thread(core_session.Session.all)
    count = in_thread(core_session.Session.count)
    count_since = in_thread(core_session.Session.count_since)
    get_summary = in_thread(core_session.Session.get_summary)
    set_summary = in_thread(core_session.Session.set_summary)
    purge = in_thread(core_session.Session.purge)
    reset = in_thread(core_session.Session.reset)
    compact = in_thread(core_session.Session.compact)
    sleep = in_thread(core_session.Session.sleep)
    end = in_thread(core_session.Session.end)
    set_mode = in_thread(core_session.Session.set_mode)

    @property
    def summary(self) -> Awaitable[str]:
        return self.get_summary()

    @property
    def state(self) -> Awaitable[SessionState]:
        return awaiting.run(lambda: self.sync.state)

    @property
    def id(self) -> Awaitable[str]:
        return awaiting.run(lambda: self.sync.id)

    @property
    def max_seq(self) -> Awaitable[int | None]:
        return awaiting.run(lambda: self.sync.max_seq)

    @property
    def mode(self) -> Awaitable[Mode]:
        return awaiting.run(lambda: self.sync.mode)

"""The same memory for asyncio: the same names as coroutines, each run in a thread.

No second implementation: the methods are made from the list of verbs, and `aio.pyi` says the same
to type checkers (`make docs` writes it). A coroutine that is cancelled stops waiting; a write that
has begun is finished. Waiting for an agent's answer holds no thread: any number may wait, and
neither calls nor closing wait for them. What Python cannot await has a method: `count()` for `len`,
`get_summary()` for `summary`, `set_mode()` for `mode = …`; the properties `id`, `max_seq`, `mode`,
`state` and `summary` are awaited themselves: `await session.max_seq`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from recollect import facts as fact_store
from recollect import memory, session, space, worker
from recollect.adapters import anthropic_memory
from recollect.agents.reply import Reply
from recollect.agents.reply import Ticket as CoreTicket
from recollect.agents.system import DEFAULT_KEY, AgentName
from recollect.agents.system import AgentSystem as CoreAgentSystem
from recollect.collection import StableKey
from recollect.consolidation import generations
from recollect.coroutines import Opening, Twin, answer_to, run_or_undo, twin_of
from recollect.documents import changeset, tree

if TYPE_CHECKING:
    from recollect.clock import Clock
    from recollect.config import Settings
    from recollect.descriptors import Descriptor
    from recollect.documents.changeset import PreparedEdit
    from recollect.documents.scope import Holder
    from recollect.embedding.protocol import Embedder
    from recollect.models.protocol import Model
    from recollect.types.records import Mode, SessionState

EDITING = "read find tree deleted search links history version diff write append patch rewrite"


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
        memory.open,
        address,
        settings=settings,
        model=model,
        embedder=embedder,
        clock=clock,
        **others,
    )

    async def opening() -> Memory:
        return Memory(await run_or_undo(make, memory.Memory.close))

    return Opening(opening())


@twin_of(memory.Memory)
class Memory(Twin):
    """`recollect.Memory` for asyncio."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


@twin_of(CoreAgentSystem)
class AgentSystem(Twin):
    """`recollect.agents.system.AgentSystem` for asyncio; tools and hooks stay synchronous."""

    unstored: int

    async def ask(
        self,
        agent: AgentName,
        text: str,
        *,
        space: str = memory.DEFAULT_SPACE,
        key: StableKey = DEFAULT_KEY,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Reply:
        """Say something and wait for the answer."""
        ticket = await self.post(agent, text, space=space, key=key)
        return await ticket.result(timeout)

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


@twin_of(CoreTicket)
class Ticket(Twin):
    """A message that was posted. `await result()` waits for its outcome."""

    id: str
    is_settled: bool

    async def result(
        self,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Reply:
        """The answer, from this process or another one.

        AnswerPending: there is none yet; it may come later. TurnFailed: there will be none.
        """
        return await answer_to(self.sync, timeout)


@twin_of(worker.Worker, long="start stop tick drain", plain="wake")
class Worker(Twin):
    """`recollect.Worker` for asyncio; processors stay synchronous, they run in its threads."""

    owner: str


@twin_of(space.Space)
class Space(Twin):
    """`recollect.Space` for asyncio."""

    name: str
    sessions: Sessions
    facts: Facts
    documents: Documents

    @property
    def generations(self) -> Generations:
        return Generations(self.sync)


@twin_of(anthropic_memory.MemoryTool, awaited="handle __call__")
class MemoryTool(Twin):
    """`space.memory_tool()` for asyncio: `await tool(block.input)`."""


@twin_of(fact_store.Facts)
class Facts(Twin):
    """`space.facts` for asyncio."""


@twin_of(tree.Documents)
class Documents(Twin):
    """`space.documents` for asyncio."""

    holder: Holder


@twin_of(
    changeset.Changeset,
    awaited=f"{EDITING} move delete restore commit",
    plain="drop",
)
class Changeset(Twin):
    """A changeset for asyncio: one call after the other."""

    holder: Holder
    edits: tuple[PreparedEdit, ...]


@twin_of(generations.Generations)
class Generations(Twin):
    """`space.generations` for asyncio."""

    def __init__(self, space: space.Space) -> None:
        self._space = space

    @property
    def sync(self) -> generations.Generations:
        """Made on first use, which may read the store: in a thread, as its methods are."""
        return self._space.generations


@twin_of(session.Sessions)
class Sessions(Twin):
    """The marking interface for asyncio."""


@twin_of(session.Session)
class Session(Twin):
    """`recollect.Session` for asyncio."""

    key: StableKey
    agent: Descriptor
    id: Awaitable[str]
    max_seq: Awaitable[int | None]
    mode: Awaitable[Mode]
    state: Awaitable[SessionState]
    summary: Awaitable[str]

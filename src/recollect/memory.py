"""The product, read top to bottom: a memory, its spaces, and how a session is found in them.

Owns X1: when a person's session begins, the background work is told, and the host never notices.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from recollect import collection, config
from recollect.clock import Clock, SystemClock
from recollect.collection import StableKey
from recollect.config import Settings
from recollect.descriptors import (
    Descriptor,
    SubAgent,
    UserAgent,
    cache_key,
    from_cache_key,
    read_descriptor,
)
from recollect.document import Author, AuthorKind
from recollect.domain import JobKind, JobState, Mode, SessionBirth, SessionState, Status
from recollect.equipment import Equipment
from recollect.errors import (
    AmbiguousKey,
    InvalidSetting,
    NotFound,
    StoreClosed,
)
from recollect.facts import Facts
from recollect.ids import Ids
from recollect.knowledge import Receipt
from recollect.session import LIST_MAX, Session, Sessions, Surroundings, page_size
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.sweeps import index_all, sweep_idle
from recollect.worker import Processor, Worker, WorkReport

if TYPE_CHECKING:
    from recollect.adapters.anthropic_memory import MemoryTool
    from recollect.documents.tree import Documents
    from recollect.embedding.protocol import Embedder
    from recollect.extraction.plan import WorkPlan
    from recollect.models.protocol import Model
    from recollect.recall.recaller import Recaller
    from recollect.recall.usage import Used
    from recollect.recollection import Context, EntryKind, Filters, Hit

_log = logging.getLogger(__name__)

DEFAULT_SPACE = "default"
DEFAULT_AGENT = "assistant"
STARTUP_PAUSE = timedelta(seconds=10)  # sessions that begin within it share one start-up scan


def open(
    address: str | Path | None = None,
    *,
    settings: Settings | Mapping[str, Any] | str | Path | None = None,
    model: str | Model | None = None,
    embedder: str | Embedder | None = None,
    clock: Clock | None = None,
) -> Memory:
    """Open a memory: a path, `sqlite:///…`, `postgresql://…` or `:memory:`.

    Without an address the settings say which store; with an empty `data_dir` memory is off, no
    file is made, and conversations live as long as the process. `model` names the language model
    that distils sessions, or is one; without any they are distilled by rules. `embedder` likewise
    makes vectors for recall; without any it goes by words alone.
    """
    loaded = config.load(settings)
    if isinstance(model, str):
        loaded, model = dataclasses.replace(loaded, model=model), None
    if isinstance(embedder, str):
        loaded, embedder = dataclasses.replace(loaded, embedder=embedder), None
    clock = clock or SystemClock()
    if address is None:
        if loaded.database == "per-agent":
            raise InvalidSetting(
                "database is per-agent: use recollect.open_agents(), or name a store to open"
            )
        if loaded.store is None and not loaded.data_dir and loaded.sqlite_path is None:
            return Memory(None, loaded, clock, model, embedder)
        address = loaded.store or loaded.path()
    return Memory(open_store(address, loaded, clock), loaded, clock, model, embedder)


class Memory:
    """A store and everything it remembers. Safe to use from any number of threads; close it once.

    `store=None` is memory switched off: every call works, nothing outlives the process.
    """

    def __init__(
        self,
        store: Store | None,
        settings: Settings,
        clock: Clock,
        model: Model | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self._store = store
        self._volatile: Store | None = None
        self._volatile_lock = threading.Lock()
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._closed = False
        self.equipment = Equipment(lambda: self.store, settings, clock, model, embedder)
        self._startup = _Startup(self)
        self._around = Surroundings(
            settings=settings,
            clock=clock,
            ids=Ids(clock),
            redactor=self.equipment.redactor,
            began=self._startup.session_began,
        )

    def space(self, name: str = DEFAULT_SPACE) -> Space:
        """A tenant's part of the memory; nothing crosses its boundary."""
        return Space(self, self._around, collection.check_space(name))

    def spaces(self, limit: int = LIST_MAX, after: str = "") -> list[str]:
        """The names of the spaces that hold anything, in order, a page at a time."""
        return self.store.sessions.spaces(collection.check_id(after), page_size(limit))

    def sweep_idle(self, space: str | None = None) -> int:
        """Mark every session that has unprocessed records and was left without a word.

        It catches what a process that died had no time to mark. Returns how many it marked.
        """
        space = None if space is None else collection.check_space(space)
        return sweep_idle(self.store, self._around.now(), self.settings, space=space)

    def worker(self, processor: Processor | None = None, *, owner: str | None = None) -> Worker:
        """A worker on this memory: `start()` it, or `tick()` it by hand. `close()` stops it.

        Without a processor it distils sessions with the extractor that the settings name.
        """
        around = self._around
        if processor is None:
            processor = self.equipment.processor()
        worker = Worker(
            self.store,
            around.settings,
            around.clock,
            processor,
            owner=owner,
            redact=self.equipment.redacted,
            embed_some=self.equipment.embed_some if self.equipment.has_embedder else None,
        )
        self._workers.add(worker)
        return worker

    def work(
        self,
        processor: Processor | None = None,
        *,
        all: bool = False,  # noqa: A002
        again: bool = False,
    ) -> WorkReport:
        """Run every due job now, until nothing is due.

        `all` first marks every session with unprocessed records; `again` goes once more through
        what has been processed, and replaces what was learned from it.
        """
        worker = self.worker(processor)
        if all:
            sweep_idle(self.store, self._around.now(), self.settings, idle_seconds=0)
        if again:
            self.request_again()
        index_all(self.store)
        report = worker.drain()
        self.equipment.embed_all()
        return report

    def request_again(self, space: str | None = None, session: str | None = None) -> int:
        """Make a new pass due: over one session, those of a space, or all. How many it are."""
        space = None if space is None else collection.check_space(space)
        session = None if session is None else collection.check_id(session)
        return self.store.extractions.request_passes(space, session, self._around.now())

    def plan(
        self,
        space: str | None = None,
        *,
        all: bool = False,  # noqa: A002
        again: bool = False,
    ) -> WorkPlan:
        """What `work` would read, send and spend, without doing any of it.

        Answers are reckoned as long as they may be, and as right the first time.
        """
        space = None if space is None else collection.check_space(space)
        return self.equipment.plan(space, all=all, again=again)

    def retry(self, key: str | None = None, space: str | None = None) -> int:
        """Give parked jobs another chance: one (by session id), those of a space, or all."""
        space = None if space is None else collection.check_space(space)
        key = None if key is None else collection.check_id(key)
        return self.store.leases.revive(space, key)

    def status(self, space: str | None = None, limit: int = 100) -> Status:
        """What is due and what waits, in one space or all; clean sessions cost it nothing."""
        space = None if space is None else collection.check_space(space)
        marked, waiting = self.store.marks.counts(space)
        return Status(
            store=self.store.describe(),
            at=self._around.now(),
            marked=tuple(self.store.marks.marked(space, page_size(limit))),
            marked_count=marked,
            waiting=tuple(self.store.marks.waiting(space, page_size(limit))),
            waiting_count=waiting,
            jobs=tuple(self.store.leases.jobs(space, page_size(limit))),
            job_counts=self.store.leases.counts(space),
            idle_sweep_seconds=self._around.settings.idle_sweep_seconds,
            sessions=tuple(self.store.extractions.progress(space, page_size(limit))),
            spent_today=self.store.ledger.spent(space, self._around.now()),
            consolidations_due=self.store.extractions.count_due(space),
        )

    def close(self) -> None:
        """Stop the workers, then close the store; a second time does nothing."""
        for worker in list(self._workers):
            worker.stop()
        self.equipment.close()
        with self._volatile_lock:
            self._closed = True
        for store in (self._store, self._volatile):
            if store is not None:
                store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def settings(self) -> Settings:
        return self._around.settings

    @property
    def store(self) -> Store:
        return self._store if self._store is not None else self._in_process()

    def store_of(self, agent: Descriptor) -> tuple[Store, bool]:
        """Where an agent's sessions are kept, and whether they are kept at all."""
        if self._store is None or not self._around.settings.is_memory_enabled(agent.id):
            return self._in_process(), False
        return self._store, True

    def _in_process(self) -> Store:
        with self._volatile_lock:
            if self._volatile is None:
                if self._closed:
                    raise StoreClosed("this memory is closed; open it again")
                self._volatile = open_store(":memory:", self._around.settings, self._around.clock)
            return self._volatile


class _Startup:
    """Tells the background work that a session begins; whatever fails, the host goes on."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._told_at: datetime | None = None
        self._worker: Worker | None = None

    def session_began(self, session: Callable[[], SessionState], now: datetime) -> None:
        how = self._memory.settings.extract_on_session_start
        if how == "off":
            return
        try:
            if not _is_root(session()) or not self._is_time(now):
                return
            if how == "worker":
                thread = threading.Thread(target=self._start_worker, name="recollect-startup")
                thread.start()
            self._make_scan_due()
        except Exception as error:  # nothing here is worth failing the host for
            _log.warning("the background work was not told of a new session: %s", error)

    def _is_time(self, now: datetime) -> bool:
        with self._lock:
            if self._told_at is not None and now - self._told_at < STARTUP_PAUSE:
                return False
            self._told_at = now
            return True

    def _make_scan_due(self) -> None:
        """Where a worker has ever been: it looked first, so that most sessions cost no write."""
        leases = self._memory.store.leases
        scan = leases.get(None, JobKind.STARTUP_SCAN, JobKind.STARTUP_SCAN)
        if scan is not None and scan.state is not JobState.CLAIMED and scan.due_at is not None:
            leases.make_due(JobKind.STARTUP_SCAN)

    def _start_worker(self) -> None:
        try:
            with self._lock:
                if self._worker is None:
                    self._worker = self._memory.worker()
            self._worker.start()
        except StoreClosed:
            pass  # the host is leaving already
        except Exception as error:
            _log.warning("no worker could be started for a new session: %s", error)


def _is_root(session: SessionState) -> bool:
    """Whether it is a conversation of its own, and may become memory."""
    is_child = session.parent is not None
    is_child |= isinstance(from_cache_key(session.agent_id), SubAgent)
    return session.remembered and not is_child


class Space:
    """One tenant: its sessions, its facts and its documents."""

    def __init__(self, memory: Memory, around: Surroundings, name: str) -> None:
        self._memory = memory
        self._around = around
        self.name = name
        self.sessions = Sessions(around, memory.store, name)
        self.facts = Facts(around, memory.store, name)

    def __repr__(self) -> str:
        return f"Space({self.name!r})"

    @cached_property
    def documents(self) -> Documents:
        from recollect.documents.tree import Documents

        return Documents(self._around, self._memory.store, self.name)

    def session(
        self,
        key: StableKey,
        agent: str | Mapping[str, Any] | Descriptor | None = None,
        *,
        source: str = "api",
        project: str | None = None,
        ephemeral: bool = False,
        parent: str | None = None,
    ) -> Session:
        """The conversation behind a stable key, created if it is new.

        An agent that is not given is the one that uses the key already, else "assistant".
        """
        encoded = collection.encode_key(key)
        descriptor = self._agent_of(encoded) if agent is None else read_descriptor(agent)
        store, is_kept = self._memory.store_of(descriptor)
        birth = SessionBirth(
            source=collection.check_label(source, "a source") or "api",
            project=collection.check_label(project, "a project"),
            parent=collection.check_label(parent, "a parent session"),
            ephemeral=bool(ephemeral),
            mode=Mode.ENABLED if is_kept else Mode.DISABLED,
        )
        ref = store.sessions.open_key(
            self.name,
            encoded,
            cache_key(descriptor),
            birth,
            self._around.now(),
            self._around.ids.new,
        )
        return Session(self._around, store, ref, is_kept=is_kept)

    def find_session(
        self, key: StableKey, agent: str | Mapping[str, Any] | Descriptor | None = None
    ) -> Session | None:
        """The conversation behind a stable key, if there is one; nothing is created."""
        encoded = collection.encode_key(key)
        descriptor = self._agent_of(encoded) if agent is None else read_descriptor(agent)
        store, is_kept = self._memory.store_of(descriptor)
        ref = store.sessions.find_key(self.name, encoded, cache_key(descriptor))
        return None if ref is None else Session(self._around, store, ref, is_kept=is_kept)

    @cached_property
    def _recaller(self) -> Recaller:
        from recollect.recall.recaller import Recaller

        return Recaller(self._around, self._memory.store, self.name, self._memory.equipment.meaning)

    def recall(
        self,
        query: str,
        limit: int = 10,
        *,
        kinds: Iterable[EntryKind | str] | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
    ) -> list[Hit]:
        """What this space remembers about any text, best first, with sources and reasons.

        `kinds` are some of fact, document, summary and record; `filters` narrow down by since,
        until, agent, project, session, tags, trust and metadata; `as_of` is another time than now.
        """
        return self._recaller.recall(query, limit, kinds=kinds, filters=filters, as_of=as_of)

    def context(
        self,
        query: str,
        max_tokens: int = 2000,
        *,
        max_facts: int = 10,
        kinds: Iterable[EntryKind | str] | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
    ) -> Context:
        """What is recalled as a fenced block for a prompt, within a budget; false when empty."""
        return self._recaller.context(
            query, max_tokens, max_facts=max_facts, kinds=kinds, filters=filters, as_of=as_of
        )

    def cite(
        self, block: Context, used: Used | Iterable[Used] = (), *, turn: str | None = None
    ) -> int:
        """Tell what became of a block: it was injected, and what a model used of it was cited.

        `used` are marks, hits, ids, or the text that the model wrote. Each counts once in a turn.
        """
        return self._recaller.cite(block, used, turn=turn)

    def memory_tool(
        self, author: Author | str = DEFAULT_AGENT, *, root: str = "~/memory"
    ) -> MemoryTool:
        """What answers a Claude model that uses Anthropic's memory tool: `tool(block.input)`.

        `author` is the agent's name, or who else writes; `root` is what it sees as `/memories`.
        """
        from recollect.adapters.anthropic_memory import MemoryTool

        if isinstance(author, str):
            author = Author(kind=AuthorKind.AGENT, name=author)
        return MemoryTool(self.documents, author=author, root=root)

    def forget(self, *, session: str | Session) -> Receipt:
        """Erase a session for good: its records, and what was learned from it alone.

        Facts that other sessions bear out as well keep those sources. What runs on it is stopped.
        NotFound: there is no such session here.
        """
        if isinstance(session, Session):
            store, session_id = session.store, session.id
        else:
            store, session_id = self._memory.store, collection.check_id(session)
        receipt = store.erasure.forget_session(self.name, session_id, self._around.now())
        if receipt is None:
            raise NotFound(f"space {self.name!r} has no session {session_id!r}")
        return receipt

    def _agent_of(self, key: str) -> Descriptor:
        agents = self._memory.store.sessions.key_agents(self.name, key)
        if len(agents) > 1:
            raise AmbiguousKey(f"{key!r} is used by {', '.join(agents)}; say which agent is meant")
        return from_cache_key(agents[0]) if agents else UserAgent(DEFAULT_AGENT)

"""The product, read top to bottom: a memory, its spaces, and how a session is found in them.

Owns X1: when a person's session begins, the background work is notified, unnoticed by the host.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from recollect import collection, config
from recollect.clock import Clock, SystemClock
from recollect.config import Settings
from recollect.descriptors import Descriptor, SubAgent, from_cache_key, read_descriptor
from recollect.errors import InvalidSetting, StoreClosed
from recollect.pipeline import Pipeline
from recollect.runtime import Runtime
from recollect.session import LIST_MAX, page_size
from recollect.space import Space
from recollect.store.opening import open_store
from recollect.sweeps import sweep_idle
from recollect.types.records import JobKind, JobState, SessionState

if TYPE_CHECKING:
    from recollect.agents.profile import AgentProfile, Hooks
    from recollect.agents.system import AgentSystem
    from recollect.embedding.protocol import Embedder
    from recollect.extraction.plan import WorkPlan
    from recollect.models.jobs import Brought
    from recollect.models.protocol import Model
    from recollect.operations.archive import Exported, Loaded
    from recollect.operations.migrating import Migrated
    from recollect.recall.recaller import Recaller, Recallers
    from recollect.store.protocol import Store
    from recollect.types.access import AuditEntry
    from recollect.types.status import Status
    from recollect.worker import Processor, Worker, WorkReport

_log = logging.getLogger(__name__)

DEFAULT_SPACE = collection.DEFAULT_SPACE
STARTUP_PAUSE = timedelta(seconds=10)  # sessions that begin within it share one start-up scan


def open(
    address: str | Path | None = None,
    *,
    settings: Settings | Mapping[str, Any] | str | Path | None = None,
    model: str | Model | None = None,
    embedder: str | Embedder | None = None,
    memory_agent_model: str | Model | None = None,
    consolidation_model: str | Model | None = None,
    clock: Clock | None = None,
) -> Memory:
    """Open a memory: a path, `sqlite:///…`, `postgresql://…` or `:memory:`.

    Without an address the settings say which store; with an empty `data_dir` memory is off, no
    file is made, and conversations live as long as the process. `model` names the language model
    that distils sessions, files pages and writes the handbook, or is one; without any all three
    are done by rules. `memory_agent_model` and `consolidation_model` name another for one of the
    last two, are one, or are `rules`. `embedder` likewise makes vectors for recall; without any it
    goes by words alone.
    """
    from recollect.models.jobs import sorted_out

    loaded, brought = sorted_out(
        config.load(settings),
        model=model,
        embedder=embedder,
        memory_agent_model=memory_agent_model,
        consolidation_model=consolidation_model,
    )
    if loaded.prompts_dir is not None:
        from recollect.models.prompts import check_prompts

        check_prompts(loaded.prompts_dir)
    clock = clock or SystemClock()
    if address is None:
        if loaded.database == "per-agent":
            raise InvalidSetting(
                "database is per-agent: use recollect.open_agents(), or name a store to open"
            )
        if loaded.store is None and not loaded.data_dir and loaded.sqlite_path is None:
            return Memory(None, loaded, clock, brought)
        address = loaded.store or loaded.path()
    return Memory(open_store(address, loaded, clock), loaded, clock, brought)


class Memory:
    """A store and everything it remembers. Safe to use from any number of threads; close it once.

    `store=None` is memory switched off: every call works, nothing outlives the process.
    """

    def __init__(
        self,
        store: Store | None,
        settings: Settings,
        clock: Clock,
        brought: Brought | None = None,
    ) -> None:
        self.runtime = Runtime(store, settings, clock, brought)
        self.pipeline = Pipeline(self.runtime)
        self._systems: weakref.WeakSet[AgentSystem] = weakref.WeakSet()
        self.runtime.on_began = _Startup(self.runtime, self.pipeline).session_began
        self.runtime.on_left_out = self.pipeline.leave_out

    def space(self, name: str = DEFAULT_SPACE) -> Space:
        """A tenant's part of the memory; nothing crosses its boundary."""
        return Space(self.runtime, self.pipeline, self._recaller, collection.check_space(name))

    def spaces(self, limit: int = LIST_MAX, after: str = "") -> list[str]:
        """The names of the spaces that hold anything, in order, a page at a time."""
        return self.store.sessions.spaces(collection.check_id(after), page_size(limit))

    def sweep_idle(self, space: str | None = None) -> int:
        """Mark every session that has unprocessed records and was left without a word.

        It catches what a process that died had no time to mark. Returns how many it marked.
        """
        space = None if space is None else collection.check_space(space)
        return sweep_idle(self.store, self.clock.now(), self.settings, space=space)

    def worker(self, processor: Processor | None = None, *, owner: str | None = None) -> Worker:
        """A worker on this memory: `start()` it, or `tick()` it by hand. `close()` stops it.

        Without a processor it distils sessions with the extractor that the settings name.
        """
        return self.pipeline.worker(processor, owner=owner)

    def agents(
        self,
        profiles: Mapping[str | Descriptor, AgentProfile] | None = None,
        *,
        default: AgentProfile | None = None,
        only: bool = False,
        hooks: Hooks | None = None,
    ) -> AgentSystem:
        """Agents that live in this memory: `start()` them, or use it as a context manager.

        `profiles` say by name what agents are told and can do; `default` is for all others, which
        with `only` are left to be run elsewhere.
        """
        from recollect.agents.profile import AgentProfile
        from recollect.agents.system import AgentSystem

        others = None if only else default or AgentProfile()
        system = AgentSystem(
            self.runtime,
            recaller=self._recaller,
            worker_on=self.pipeline.worker_on,
            profiles=profiles,
            default=others,
            hooks=hooks,
        )
        self._systems.add(system)
        return system

    def work(
        self,
        processor: Processor | None = None,
        *,
        all: bool = False,  # noqa: A002
        again: bool = False,
        space: str | None = None,
    ) -> WorkReport:
        """Run every due job now, until nothing is due; with a `space`, of that one alone.

        First it makes due what a worker's sweeps would: sessions that were left without a word,
        memory past its time, edited files. `all` marks every session with unprocessed records;
        `again` goes once more through what has been processed, and replaces what was learned.
        """
        space = None if space is None else collection.check_space(space)
        worker = self.pipeline.worker(processor, space=space)
        if again:
            self.request_again(space)
        return self.pipeline.work_off(worker.drain, space, all=all)

    def request_again(self, space: str | None = None, session: str | None = None) -> int:
        """Make a new pass due: over one session, those of a space, or all; return the number."""
        space = None if space is None else collection.check_space(space)
        session = None if session is None else collection.check_id(session)
        return self.store.extractions.request_passes(space, session, self.clock.now())

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
        return self.pipeline.plan(space, all=all, again=again)

    def retry(self, key: str | None = None, space: str | None = None) -> int:
        """Give parked jobs another chance: one (by session id), those of a space, or all."""
        space = None if space is None else collection.check_space(space)
        key = None if key is None else collection.check_id(key)
        return self.store.leases.revive(space, key)

    def status(self, space: str | None = None, limit: int = 100) -> Status:
        """What is due, what waits and what models took, in one space or all.

        Clean sessions cost it nothing.
        """
        space = None if space is None else collection.check_space(space)
        return self.pipeline.status(space, page_size(limit))

    def audit(
        self,
        space: str | None = None,
        limit: int = LIST_MAX,
        before: AuditEntry | None = None,
        *,
        actor: str | None = None,
        verb: str | None = None,
        since: datetime | str | None = None,
    ) -> list[AuditEntry]:
        """Who did what in a space, or anywhere, the newest first; the setting `audit` has it kept.

        A page begins after the entry `before`.
        """
        from recollect.types.access import AuditQuery

        space = None if space is None else collection.check_space(space)
        begun = collection.read_time(since)
        query = AuditQuery(space=space, actor=actor, verb=verb, since=begun)
        return self.store.audit.list(query, page_size(limit), before)

    def export(self, path: str | Path, space: str | None = None) -> Exported:
        """Write a space, or all, into one new archive: JSON lines, Markdown and a manifest."""
        from recollect.operations.archive import export

        space = None if space is None else collection.check_space(space)
        return export(self.store, path, space=space)

    def load(self, path: str | Path, space: str | None = None) -> Loaded:
        """Take in an archive's spaces, none of which may be here: each whole or not at all."""
        from recollect.operations.archive import load

        space = None if space is None else collection.check_space(space)
        return load(self.store, path, space=space)

    def migrate(self, to: str | Path) -> Migrated:
        """Copy everything into another store, SQLite or PostgreSQL, and compare the two.

        The other one is empty, or has what an attempt that was interrupted left there.
        """
        from recollect.operations.migrating import migrate

        self.spaces(1)  # a store that cannot be read makes no file elsewhere
        target = open_store(to, self.settings, self.clock)
        try:
            return migrate(self.store, target)
        finally:
            target.close()

    def close(self) -> None:
        """Stop the workers, then close the store; a second time does nothing."""
        for system in list(self._systems):
            system.stop()
        self.pipeline.stop()
        self.runtime.close()

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
        return self.runtime.settings

    @property
    def clock(self) -> Clock:
        return self.runtime.clock

    @property
    def store(self) -> Store:
        return self.runtime.store

    def _recaller(self, space: str) -> Recaller:
        """Recall in a space; loaded on first use: a worker recalls nothing."""
        return self._recallers.of(space)

    @cached_property
    def _recallers(self) -> Recallers:
        from recollect.recall.recaller import Recallers

        return Recallers(self.runtime)


def open_agents(
    settings: Settings | Mapping[str, Any] | str | Path | None = None,
    *,
    clock: Clock | None = None,
) -> AgentMemories:
    """The memories of several agents, as the settings lay them out. Opens nothing yet."""
    return AgentMemories(config.load(settings), clock or SystemClock())


class AgentMemories:
    """Resolves an agent's name to its memory; opens each store once, closes them together.

    A store that fails to open raises, and is tried again the next time: one bad moment does not
    switch memory off for good.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._opened: dict[str | Path | None, Memory] = {}
        self._closed = False

    def memory(self, agent: str) -> Memory:
        """The memory of one agent; switched off, it works and keeps nothing."""
        where = self._where(read_descriptor(agent).id)
        with self._lock:
            if self._closed:
                raise StoreClosed("these memories are closed; call open_agents() again")
            if where not in self._opened:
                store = None
                if where is not None:
                    store = open_store(where, self._settings, self._clock)
                self._opened[where] = Memory(store, self._settings, self._clock)
            return self._opened[where]

    def close(self) -> None:
        """Close every memory that was opened; a second time does nothing."""
        with self._lock:
            self._closed = True
            for memory in self._opened.values():
                memory.close()
            self._opened.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _where(self, name: str) -> str | Path | None:
        settings = self._settings
        if not settings.is_memory_enabled(name):
            return None
        if settings.database == "per-agent":
            return settings.agent_path(name)
        if settings.store is not None:
            return settings.store
        return settings.path() if settings.data_dir or settings.sqlite_path else None


class _Startup:
    """Tells the background work that a session begins; whatever fails, the host goes on."""

    def __init__(self, runtime: Runtime, pipeline: Pipeline) -> None:
        self.runtime = runtime
        self._pipeline = pipeline
        self._lock = threading.Lock()
        self._told_at: datetime | None = None
        self._worker: Worker | None = None

    def session_began(self, session: Callable[[], SessionState], now: datetime) -> None:
        how = self.runtime.settings.extract_on_session_start
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
        leases = self.runtime.store.leases
        scan = leases.get(None, JobKind.STARTUP_SCAN, JobKind.STARTUP_SCAN)
        if scan is not None and scan.state is not JobState.CLAIMED and scan.due_at is not None:
            leases.make_due(JobKind.STARTUP_SCAN)

    def _start_worker(self) -> None:
        try:
            with self._lock:
                if self._worker is None:
                    self._worker = self._pipeline.worker()
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

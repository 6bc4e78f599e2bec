"""The product, read top to bottom: a memory, its spaces, and how a session is found in them.

Owns X1: when a person's session begins, the background work is told, and the host never notices.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import weakref
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from recollect import collection, config
from recollect.clock import Clock, SystemClock
from recollect.collection import StableKey
from recollect.config import Settings
from recollect.descriptors import Descriptor, SubAgent, from_cache_key
from recollect.domain import JobKind, JobState, SessionState
from recollect.equipment import Equipment
from recollect.errors import InvalidSetting, StoreClosed
from recollect.facts import Facts
from recollect.ids import Ids
from recollect.session import LIST_MAX, Session, Surroundings, page_size
from recollect.space import Space
from recollect.store.opening import open_store
from recollect.sweeps import sweep_idle

if TYPE_CHECKING:
    from recollect.agents.profile import AgentProfile, Hooks
    from recollect.agents.system import AgentSystem
    from recollect.consolidation.generations import Generations
    from recollect.documents.tree import Documents
    from recollect.embedding.protocol import Embedder
    from recollect.extraction.plan import WorkPlan
    from recollect.knowledge import Fact
    from recollect.models.jobs import Brought
    from recollect.models.protocol import Model
    from recollect.operations.exporting import Exported, Loaded
    from recollect.operations.migrating import Migrated
    from recollect.recall.recaller import Recaller
    from recollect.status import Status
    from recollect.store.audit_protocol import AuditEntry
    from recollect.store.protocol import Store
    from recollect.worker import Duties, Processor, Worker, WorkReport

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
        self._store = store
        self._volatile: Store | None = None
        self._volatile_lock = threading.Lock()
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._systems: weakref.WeakSet[AgentSystem] = weakref.WeakSet()
        self._closed = False
        self._household = _Household(self)
        self.equipment = Equipment(
            lambda: self.store,
            settings,
            clock,
            brought,
            documents=self._household.documents_of,
            facts=self._household.facts_of,
        )
        self._startup = _Startup(self)
        self._around = Surroundings(
            settings=settings,
            clock=clock,
            ids=Ids(clock),
            redactor=self.equipment.redactor,
            began=self._startup.session_began,
            left_out=self.equipment.leave_out,
        )

    def space(self, name: str = DEFAULT_SPACE) -> Space:
        """A tenant's part of the memory; nothing crosses its boundary."""
        return Space(self._household, self._around, collection.check_space(name))

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
        budget = self.equipment.budget()
        processor = processor or self.equipment.processor(budget)
        return self._add_worker(self.store, processor, self.equipment.duties(budget), owner)

    def _add_worker(
        self, store: Store, processor: Processor | None, duties: Duties, owner: str | None = None
    ) -> Worker:
        from recollect.worker import Worker

        settings = self._around.settings
        if duties.lane != "":  # it hosts agents
            settings = dataclasses.replace(settings, worker_concurrency=settings.agent_concurrency)
        worker = Worker(
            store,
            settings,
            self._around.clock,
            processor,
            owner=owner,
            redact=self.equipment.redacted,
            duties=duties,
        )
        self._workers.add(worker)
        return worker

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
            self._household, self._around, profiles=profiles, default=others, hooks=hooks
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
        budget = self.equipment.budget()
        processor = processor or self.equipment.processor(budget)
        worker = self._add_worker(self.store, processor, self.equipment.duties(budget, space))
        if again:
            self.request_again(space)
        return self.equipment.work_off(worker.drain, space, all=all)

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
        """What is due, what waits and what models took, in one space or all.

        Clean sessions cost it nothing.
        """
        space = None if space is None else collection.check_space(space)
        return self.equipment.status(space, page_size(limit))

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
        from recollect.store.audit_protocol import AuditQuery

        space = None if space is None else collection.check_space(space)
        begun = collection.read_time(since)
        query = AuditQuery(space=space, actor=actor, verb=verb, since=begun)
        return self.store.audit.list(query, page_size(limit), before)

    def export(self, path: str | Path, space: str | None = None) -> Exported:
        """Write a space, or all, into one new archive: JSON lines, Markdown and a manifest."""
        from recollect.operations.exporting import export
        from recollect.operations.migrating import whole_of

        space = None if space is None else collection.check_space(space)
        return export(whole_of(self.store), path, space=space)

    def load(self, path: str | Path, space: str | None = None) -> Loaded:
        """Take in an archive's spaces, none of which may be here: each whole or not at all."""
        from recollect.operations.exporting import load
        from recollect.operations.migrating import whole_of

        space = None if space is None else collection.check_space(space)
        return load(whole_of(self.store), path, space=space)

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
        for worker in list(self._workers):
            worker.stop()
        self.equipment.close()
        with self._volatile_lock:
            self._closed = True
        for store in self._household.stores:
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
    def clock(self) -> Clock:
        return self._around.clock

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


class _Household:
    """What the spaces and the agents of a memory need of it, and callers do not."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @property
    def store(self) -> Store:
        return self._memory.store

    @property
    def stores(self) -> list[Store]:
        return [each for each in (self._memory._store, self._memory._volatile) if each is not None]

    def store_of(self, agent: Descriptor) -> tuple[Store, bool]:
        return self._memory.store_of(agent)

    def documents_of(self, space: str) -> Documents:
        from recollect.documents.tree import Documents

        return Documents(self._memory._around, self.store, space)

    def facts_of(self, space: str) -> Facts:
        return Facts(self._memory._around, self.store, space, self.correct)

    def generations_of(self, space: str) -> Generations:
        from recollect.consolidation.generations import Generations

        memory = self._memory
        consolidator = memory.equipment.consolidator()
        documents = consolidator.held(space)
        worker = memory._add_worker(self.store, None, memory.equipment.consolidation_duties())
        return Generations(memory._around, self.store, space, documents, consolidator, worker)

    def recaller(self, space: str) -> Recaller:
        from recollect.recall.recaller import Recaller

        around, equipment = self._memory._around, self._memory.equipment
        return Recaller(around, self.store, space, equipment.meaning, equipment.speakers)

    def withdraw(
        self, space: str, gone: Collection[str], *, publish: bool = True
    ) -> tuple[str, ...]:
        """Take what was filed from forgotten sessions and facts off the pages of memory."""
        return self._memory.equipment.withdraw(space, gone, publish=publish)

    def correct(self, space: str, fact_id: str, fact: Fact | None) -> Callable[[], None]:
        """Let the pages of memory follow a fact that somebody edits or deletes."""
        return self._memory.equipment.correct(space, fact_id, fact)

    def remove_files(self, space: str) -> tuple[str, ...]:
        return self._memory.equipment.remove_files(space)

    def model(self) -> Model | None:
        return self._memory.equipment.model()

    def redacted(self, text: str) -> str:
        return self._memory.equipment.redacted(text)

    def session_of(self, space: str, key: StableKey, agent: Descriptor) -> Session:
        """The conversation that an agent is spoken to in."""
        return self._memory.space(space).session(key, agent, source="agent")

    def worker_on(self, store: Store, duties: Duties | None = None) -> Worker:
        """A worker on a store of this memory: for what it is told to, else for what is due there.

        What lives only as long as the process is not learned from.
        """
        from recollect.worker import Duties

        if duties is None and store is self.store:
            return self._memory.worker()
        return self._memory._add_worker(store, None, duties or Duties())


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

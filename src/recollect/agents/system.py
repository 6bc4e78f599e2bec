"""Agents that a host runs: post a message to one, get its answer, let it sleep and wake.

Every word goes through the store: an inbox that outlives the process, and a claim, so that of
several processes one runs an agent at a time. The system starts a worker for what is learned from
it all, and stops it before the store closes.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

from recollect import collection
from recollect.agents.conversation import Conversations
from recollect.agents.loop import shown_record
from recollect.agents.outbox import Outbox
from recollect.agents.profile import AgentProfile, Hooks
from recollect.agents.reply import Reply, Ticket
from recollect.agents.runner import ANSWER_KEY, Runner, outcome_of
from recollect.collection import StableKey
from recollect.descriptors import (
    DeliveryStrategy,
    Descriptor,
    MemoryAgent,
    cache_key,
    from_cache_key,
    matches,
    read_descriptor,
)
from recollect.errors import InvalidValue, NotFound, RecollectError, StoreError, TurnFailed
from recollect.extraction.spend import Budget
from recollect.messages import Role
from recollect.observing.log_text import loggable
from recollect.recall.recaller import Recaller
from recollect.runtime import Runtime
from recollect.session import LIST_MAX, Session, open_session, page_size
from recollect.store.protocol import Store
from recollect.types import agents as agency
from recollect.types.agents import AgentState, ItemKind, ItemState, NewItem, Signal, Turn
from recollect.types.records import JobKind, KeyRef, NewRecord
from recollect.worker import Duties, Worker

DEFAULT_KEY = "main"
SESSIONS_MAX = 1000  # conversations that are known without asking the store
AgentName = str | Mapping[str, Any] | Descriptor
T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hosting:
    """What runs agents in one store: that of the memory, or the one for agents without memory."""

    store: Store
    conversations: Conversations
    outbox: Outbox
    workers: tuple[Worker, ...]  # one for all agents, or one for each that is run here


class AgentSystem:
    """Runs agents. Safe to use from any number of threads; `start()` it, or `tick()` by hand.

    `profiles` are by the agents' names or descriptors; `default` is for every other one, and none
    means that only the named are run here.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        recaller: Callable[[str], Recaller],
        worker_on: Callable[[Store, Duties | None], Worker],
        profiles: Mapping[str | Descriptor, AgentProfile] | None = None,
        default: AgentProfile | None,
        hooks: Hooks | None = None,
    ) -> None:
        self._runtime = runtime
        self._recaller = recaller
        self._worker_on = worker_on
        self._profiles = {
            cache_key(read_descriptor(name)): profile for name, profile in (profiles or {}).items()
        }
        self._default = default
        self._hooks = hooks or Hooks()
        # Those that somebody holds: many a message is answered elsewhere, and never asked after.
        self._tickets: WeakValueDictionary[tuple[int, int, str], Ticket] = WeakValueDictionary()
        self._hostings: dict[int, _Hosting] = {}
        self._sessions: OrderedDict[tuple[str, str, str], Session] = OrderedDict()
        self._lock = threading.Lock()
        self._learning: Worker | None = None
        self._started = False

    # life

    def start(self, *, learn: bool = True) -> None:
        """Run agents in the background, and with `learn` a worker for what they say."""
        with self._lock:
            self._started = True
        for worker in self._hosting(self._runtime.store).workers:
            worker.start()
        if learn and self._learning is None:
            self._learning = self._worker_on(self._runtime.store, None)
        if learn and self._learning is not None:
            self._learning.start()

    def stop(self, grace_seconds: float | None = None) -> None:
        """Take on nothing more; what runs finishes, or is given back."""
        with self._lock:
            self._started = False
            hostings = list(self._hostings.values())
        for hosting in hostings:
            for worker in hosting.workers:
                worker.stop(grace_seconds)
            hosting.outbox.close()
        if self._learning is not None:
            self._learning.stop(grace_seconds)
            self._learning = None

    def tick(self) -> None:
        """Run what is due now, signals included, and wait until it is done."""
        self._hosting(self._runtime.store)  # what waits there from an earlier process, too
        with self._lock:
            hostings = list(self._hostings.values())
        for hosting in hostings:
            upkeep = self._worker_on(hosting.store, None)
            upkeep.drain()
            for worker in hosting.workers:
                worker.drain()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # messages

    def post(
        self,
        agent: AgentName,
        text: str,
        *,
        space: str = "default",
        key: StableKey = DEFAULT_KEY,
        id: str | None = None,  # noqa: A002
    ) -> Ticket:
        """Say something to an agent. It is stored when this returns; `id` makes a retry safe.

        Where the store cannot be reached and the agent was spoken to before, it is answered all the
        same, and stored later.
        """
        if not isinstance(text, str) or not text.strip():
            raise InvalidValue("a message is text that is not empty")
        checked = collection.prepare_plain(
            "user", text, record_bytes_max=self._runtime.settings.record_bytes_max
        )
        item = NewItem(id=self._item_id(id), kind=ItemKind.USER_MESSAGE, text=checked.content)
        return self._said(agent, space, key, lambda session: self._posted(session, item))

    def ask(
        self,
        agent: AgentName,
        text: str,
        *,
        space: str = "default",
        key: StableKey = DEFAULT_KEY,
        timeout: float | None = None,
    ) -> Reply:
        """Say something and wait for the answer."""
        return self.post(agent, text, space=space, key=key).result(timeout)

    def notify(
        self,
        agent: AgentName,
        text: str,
        *,
        origin: str,
        space: str = "default",
        key: StableKey = DEFAULT_KEY,
    ) -> Ticket:
        """Tell an agent something that no person said: the agent answers to it as to a message."""
        origin = collection.check_label(origin, "an origin") or "host"
        item = NewItem(
            id=self._item_id(None), kind=ItemKind.SYSTEM_MESSAGE, text=text, origin=origin
        )
        return self._said(agent, space, key, lambda session: self._posted(session, item))

    def reset(
        self, agent: AgentName, *, space: str = "default", key: StableKey = DEFAULT_KEY
    ) -> Ticket:
        """Start an empty conversation, after what is under way; the old one is marked."""
        item = NewItem(id=self._item_id(None), kind=ItemKind.RESET)
        return self._said(agent, space, key, lambda session: self._posted(session, item))

    def find(self, strategy: DeliveryStrategy, *, space: str = "default") -> AgentState:
        """The agent that a message without an address is for: of those that fit, the last awake."""
        fitting = [
            state
            for state in self._runtime.store.agents.list(space, LIST_MAX)
            if matches(from_cache_key(state.ref.agent_id), strategy)
        ]
        if not fitting:
            raise NotFound(f"space {space!r} has no agent that fits {strategy}")
        return max(fitting, key=lambda state: state.since)

    # later

    def signal(
        self,
        agent: AgentName,
        name: str,
        delay_seconds: float,
        body: str = "",
        *,
        space: str = "default",
        key: StableKey = DEFAULT_KEY,
    ) -> None:
        """Let an agent be told something later, in place of an earlier signal of that name."""
        name = collection.check_label(name, "a signal's name") or ""
        if not name or name in agency.OWN_SIGNALS:
            raise InvalidValue(f"{name!r} is a signal of Recollect's own; give another name")
        now = self._runtime.now()
        due = now + timedelta(seconds=delay_seconds)

        def set_signal(session: Session) -> None:
            signal = Signal(name=name, due_at=due, body=session.admitted_text(body))
            session.store.agents.set_signal(session.ref, signal, _job_of(session.agent), now)
            if delay_seconds < self._runtime.settings.signals_every_seconds:
                session.store.leases.make_due(JobKind.SIGNALS)

        self._said(agent, space, key, set_signal)

    def cancel_signal(
        self,
        agent: AgentName,
        name: str,
        *,
        space: str = "default",
        key: StableKey = DEFAULT_KEY,
    ) -> bool:
        """Whether there was such a signal."""
        store, ref = self._found(agent, space, key)
        return ref is not None and store.agents.cancel_signal(ref, name)

    def kill(
        self, agent: AgentName, *, space: str = "default", key: StableKey = DEFAULT_KEY
    ) -> bool:
        """End an agent now: its inbox is dropped, and callers that wait for an answer are told."""
        store, ref = self._found(agent, space, key)
        if ref is None:
            return False
        killed = store.agents.kill(ref, self._runtime.now())
        with self._lock:
            gone = [
                ticket
                for known, ticket in list(self._tickets.items())
                if known[:2] == (id(store), ref.key_id)
            ]
        for ticket in gone:
            ticket.settle(TurnFailed("the agent was ended"))
        return killed

    def state(
        self, agent: AgentName, *, space: str = "default", key: StableKey = DEFAULT_KEY
    ) -> AgentState | None:
        store, ref = self._found(agent, space, key)
        return None if ref is None else store.agents.get(ref)

    def agents(self, space: str | None = None, limit: int = 100) -> list[AgentState]:
        """Agents of a space, or of all, those that are awake first."""
        return self._runtime.store.agents.list(space, page_size(limit))

    @property
    def unstored(self) -> int:
        """Records that wait for a store that cannot be reached."""
        with self._lock:
            return sum(hosting.outbox.pending for hosting in self._hostings.values())

    # how

    def _posted(self, session: Session, item: NewItem) -> Ticket:
        hosting = self._hosting(session.store)
        item = replace(item, text=session.admitted_text(item.text))
        ticket = self._ticket(session, item.id)
        try:
            stored = session.store.agents.post(
                session.ref, item, _job_of(session.agent), self._runtime.now()
            )
        except StoreError as error:
            if not error.retry_helps or item.kind is not ItemKind.USER_MESSAGE:
                raise
            self._answer_detached(hosting, session, item, ticket, error)
            return ticket
        if stored.state is ItemState.DONE:
            ticket.look()
        return ticket

    def _ticket(self, session: Session, item_id: str) -> Ticket:
        """The one that somebody holds for this item, or a new one; it keeps nothing but the id."""
        ticket = Ticket(item_id, lambda: self._look(session, item_id))
        with self._lock:
            known = (id(session.store), session.ref.key_id, item_id)
            return self._tickets.setdefault(known, ticket)

    def _look(self, session: Session, item_id: str) -> Reply | RecollectError | None:
        """What the store says has become of an item; none: nothing yet."""
        try:
            item = session.store.agents.item(session.ref, item_id)
            return outcome_of(session.store, session.ref, item)
        except StoreError as error:
            _log.info("cannot look for an answer: %s", loggable(error))
            return None

    def _settle(
        self, store: Store, ref: KeyRef, turn: Turn, outcome: Reply | RecollectError
    ) -> None:
        for ticket in self._held(store, ref, turn):
            ticket.settle(outcome)

    def _trouble(self, store: Store, ref: KeyRef, turn: Turn, loggable: str) -> None:
        for ticket in self._held(store, ref, turn):
            ticket.last_error = loggable

    def _held(self, store: Store, ref: KeyRef, turn: Turn) -> list[Ticket]:
        with self._lock:
            found = [self._tickets.get((id(store), ref.key_id, each.id)) for each in turn.items]
        return [ticket for ticket in found if ticket is not None]

    def _answer_detached(
        self, hosting: _Hosting, session: Session, item: NewItem, ticket: Ticket, error: StoreError
    ) -> None:
        """Answer without the store, which gets to know later (T8)."""
        now = self._runtime.now()
        said = NewRecord(
            role=Role.USER, content=item.text, append_key=f"inbox:{item.id}", said_at=now
        )

        def answer() -> None:
            try:
                reply = hosting.conversations.detached(
                    session.ref, item.id, shown_record(said, now, seq=1)
                )
            except RecollectError as failed:
                hosting.outbox.add(session.ref, [said], error)
                ticket.settle(failed)
                return
            answered = NewRecord(
                role=Role.ASSISTANT, content=reply.text, append_key=ANSWER_KEY + item.id
            )
            hosting.outbox.add(session.ref, [said, answered], error)
            ticket.settle(reply)

        threading.Thread(target=answer, name="recollect-detached", daemon=True).start()

    def _hosting(self, store: Store) -> _Hosting:
        with self._lock:
            hosting = self._hostings.get(id(store))
            if hosting is None:
                hosting = self._hostings[id(store)] = self._new_hosting(store)
                store.leases.ensure_recurring(JobKind.SIGNALS, None)
                if self._started and store is not self._runtime.store:
                    for worker in hosting.workers:
                        worker.start()
            return hosting

    def _new_hosting(self, store: Store) -> _Hosting:
        runtime = self._runtime
        settings = runtime.settings
        is_kept = store is runtime.store

        def admitted(ref: KeyRef, records: Sequence[NewRecord]) -> Sequence[NewRecord]:
            return Session(runtime, store, ref, is_kept=is_kept).admitted(records)

        def append(ref: KeyRef, records: Sequence[NewRecord]) -> object:
            policy, now = settings.mark_policy, runtime.now()
            return store.records.append(ref, admitted(ref, records), policy, now, runtime.ids.new)

        outbox = Outbox(append)
        conversations = Conversations(
            runtime=runtime,
            store=store,
            recaller=self._recaller if is_kept else None,
            budget=Budget(settings, runtime.clock),
            profiles=self._profiles,
            default=self._default or AgentProfile(),
            hooks=self._hooks,
            outbox=outbox,
            settle=lambda ref, turn, outcome: self._settle(store, ref, turn, outcome),
            trouble=lambda ref, turn, loggable: self._trouble(store, ref, turn, loggable),
        )
        runner = Runner(runtime=runtime, store=store, doer=conversations, admit=admitted)
        lanes: list[str | None] = [None] if self._default is not None else [*self._profiles]
        workers = tuple(
            self._worker_on(store, Duties(run_agent=runner.run, lane=lane)) for lane in lanes
        )
        if not is_kept:  # nobody else delivers signals there
            workers = (*workers, self._worker_on(store, None))
        return _Hosting(store=store, conversations=conversations, outbox=outbox, workers=workers)

    def _said(self, agent: AgentName, space: str, key: StableKey, say: Callable[[Session], T]) -> T:
        """What comes of something said in a conversation; one that was forgotten is made anew."""
        try:
            return say(self._session(agent, space, key))
        except NotFound:
            with self._lock:
                self._sessions.pop(_address(agent, space, key), None)
            return say(self._session(agent, space, key))

    def _session(self, agent: AgentName, space: str, key: StableKey) -> Session:
        """The conversation; one that was held before is known without asking the store."""
        known = _address(agent, space, key)
        with self._lock:
            session = self._sessions.get(known)
        if session is None:
            session = open_session(
                self._runtime, space, key, read_descriptor(agent), source="agent"
            )
            with self._lock:
                self._sessions[known] = session
                while len(self._sessions) > SESSIONS_MAX:
                    self._sessions.popitem(last=False)
        return session

    def _found(self, agent: AgentName, space: str, key: StableKey) -> tuple[Store, KeyRef | None]:
        """Where an agent is kept, and by which key, if it was ever spoken to."""
        _, encoded, agent_id = _address(agent, space, key)
        store, _ = self._runtime.store_of(read_descriptor(agent))
        return store, store.sessions.find_key(collection.check_space(space), encoded, agent_id)

    def _item_id(self, given: str | None) -> str:
        return collection.check_label(given, "a message's id") or self._runtime.ids.new()


def _address(agent: AgentName, space: str, key: StableKey) -> tuple[str, str, str]:
    return space, collection.encode_key(key), cache_key(read_descriptor(agent))


def _job_of(agent: Descriptor) -> JobKind:
    return JobKind.MEMORY_AGENT if isinstance(agent, MemoryAgent) else JobKind.AGENT

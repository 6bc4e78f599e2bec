"""mem0's verbs on a memory of ours: add, search, get, get_all, update, delete, delete_all, history,
reset, with its arguments and its answers.

A user is a space: nothing crosses from one user to another, whoever asks. What is inferred is
learned from a conversation that is kept; what is not is a fact as it was given.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from recollect import memory as core
from recollect.clock import Clock, SystemClock
from recollect.collection import Message
from recollect.compat.mem0_memories import (
    ACTOR,
    EXPIRES,
    TAG,
    Mem0Scope,
    Memories,
    check_search,
    end_of,
    events,
    known_arguments,
    memory_id,
    open_memory,
    own_metadata,
    pages,
    read_expiration,
    read_memory_id,
    read_messages,
    read_scope,
)
from recollect.errors import InvalidMessage, InvalidValue, NotFound, TooLarge
from recollect.ids import Ids
from recollect.messages import Role, read
from recollect.session import LIST_MAX
from recollect.space import Space
from recollect.types.facts import UNCHANGED, Fact, Trust
from recollect.types.recall import AllOf, EntryKind
from recollect.types.records import JobKind, JobState
from recollect.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")

SOURCE = "mem0"
PROCEDURAL = "procedural_memory"
THRESHOLD = 0.1
TICKS_MAX = 200  # of jobs that are run, or waited for, until those of an added text are done
WAIT_SECONDS = 0.05  # before looking again at a job that another worker is at
LEARNERS_MAX = 1000
LOOKED_AT_MIN = 60
_UNSET: Final = object()
_TRUST = {Role.ASSISTANT: Trust.AGENT, Role.TOOL: Trust.TOOL}


def _in_thread(
    method: Callable[Concatenate[Memory, P], T],
) -> Callable[Concatenate[AsyncMemory, P], Awaitable[T]]:
    @wraps(method)
    async def run(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(lambda: method(self.sync, *args, **kwargs))

    return run


class Memory:
    """`mem0.Memory`, kept by Recollect: `Memory()`, `Memory(recollect.open(…))`, `from_config`."""

    def __init__(
        self,
        config: core.Memory | Mapping[str, Any] | None = None,
        *,
        clock: Clock | None = None,
        learners_max: int = LEARNERS_MAX,
    ) -> None:
        """At most `learners_max` callers at once wait for what they add; others it is `pending`."""
        self._is_ours = not isinstance(config, core.Memory)
        self._clock = clock or SystemClock()
        self._memory = (
            config if isinstance(config, core.Memory) else open_memory(config or {}, clock)
        )
        self._ids = Ids(self._clock)
        self._worker: Worker | None = None
        self._pause = threading.Event()  # set when it is closed
        self._learners = threading.BoundedSemaphore(learners_max)
        self._memories = Memories(self._memory)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """One on a store of its own: `{}` for that of the settings, or `{"store": "memory.db"}`."""
        return cls(config_dict)

    # add

    def add(  # noqa: PLR0913 - mem0's parameters
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """Learn from what was said, or with `infer=False` keep it word for word.

        What was said is stored whatever becomes of it; `pending` in the answer: it is learned from
        later, as a model could not be reached or another worker is at it.
        """
        if timestamp is not None or prompt is not None:
            raise InvalidValue("timestamp and prompt are not taken here: see the how-to on mem0")
        if memory_type not in (None, PROCEDURAL):
            raise InvalidValue(f"memory_type is {PROCEDURAL!r} or nothing, not {memory_type!r}")
        given = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        scope, _ = read_scope(given)
        day = read_expiration(expiration_date)
        payload = own_metadata(metadata) | scope.fields | ({} if day is None else {EXPIRES: day})
        listed = read_messages(messages)
        space = self._memory.space(scope.space)
        if infer:
            return self._learned(space, scope, listed, payload)
        return {"results": self._kept(space, listed, payload)}

    def _learned(
        self,
        space: Space,
        scope: Mem0Scope,
        listed: Sequence[Mapping[str, Any]],
        payload: Mapping[str, Any],
    ) -> dict[str, Any]:
        if not listed:
            return {"results": []}
        session = space.session(scope.key, source=SOURCE)
        stored = session.append_many(
            [Message(message=message, metadata={TAG: payload}) for message in listed]
        )
        session.sleep()
        first, last = stored[0], stored[-1]
        is_done = self._work(space, last.session_id, last.seq)
        found = []
        for fact in pages(space, session=last.session_id):
            if fact.source == first.session_id and all(s.seq >= first.seq for s in fact.sources):
                found.append(fact)
            elif found:
                break  # newest first: what follows was known before
        if EXPIRES in payload:
            for fact in found:
                space.facts.update(fact.id, valid_to=end_of(payload[EXPIRES]))
        results = [
            {"id": memory_id(fact.id, space.name), "memory": fact.content, "event": "ADD"}
            for fact in reversed(found)
        ]
        return {"results": results} | ({} if is_done else {"pending": True})

    def _work(self, space: Space, session_id: str, upto: int) -> bool:
        """Run due jobs until a session is done; false: that has to wait."""
        if not self._learners.acquire(blocking=False):
            return False
        try:
            return self._worked(space, session_id, upto)
        finally:
            self._learners.release()

    def _worked(self, space: Space, session_id: str, upto: int) -> bool:
        if self._worker is None:
            self._worker = self._memory.worker()
        for _ in range(TICKS_MAX):
            if _is_done(space, session_id, upto):
                return True
            if self._is_busy(space, session_id):
                self._pause.wait(WAIT_SECONDS)
            elif not self._worker.tick() and not self._is_busy(space, session_id):
                return _is_done(space, session_id, upto)  # another worker may have been faster
        return False

    def _is_busy(self, space: Space, session_id: str) -> bool:
        """Whether another worker is at it right now."""
        job = self._memory.store.leases.get(space.name, JobKind.EXTRACT, session_id)
        return job is not None and job.state is JobState.CLAIMED

    def _kept(
        self, space: Space, listed: Sequence[Mapping[str, Any]], payload: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        facts = [
            self._verbatim(message, payload)
            for message in listed
            if read(message).role not in (Role.SYSTEM, Role.DEVELOPER)
        ]
        results = []
        for fact in facts:
            stored = space.facts.add(fact)
            results.append(
                {
                    "id": memory_id(stored.id, space.name),
                    "memory": stored.content,
                    "event": "ADD",
                    ACTOR: fact.metadata.get(ACTOR),
                    "role": fact.metadata["role"],
                }
            )
        return results

    def _verbatim(self, message: Mapping[str, Any], payload: Mapping[str, Any]) -> Fact:
        """A message as a fact under an id of its own, so that it is not merged with others."""
        reading = read(message)
        text, most = reading.text, self._memory.settings.fact_chars_max
        if not text.strip():
            raise InvalidMessage("there is no text in it to keep; none of them was stored")
        if len(text) > most:  # before any of them is stored
            raise TooLarge(f"a memory has at most {most:,} characters; none of them was stored")
        actor = {} if reading.name is None else {ACTOR: reading.name}
        return Fact(
            text,
            id=self._ids.new(),
            tags=(TAG,),
            metadata={**payload, "role": str(message["role"]), **actor},
            trust=_TRUST.get(reading.role, Trust.USER),
            valid_to=end_of(payload[EXPIRES]) if EXPIRES in payload else None,
        )

    # read

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """One memory; none: there is none."""
        found = self._memories.find(memory_id)
        return None if found is None else self._memories.shaped(*found) | {"score": None}

    def get_all(
        self,
        /,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Memories of a user, an agent or a run, newest first."""
        scope, where = read_scope(known_arguments(kwargs), filters)
        top_k = kwargs.get("limit", top_k)
        check_search(top_k)
        space = self._memory.space(scope.space)
        results: list[dict[str, Any]] = []
        for fact in self._memories.standing(space, where, show_expired=show_expired):
            if len(results) >= top_k:
                break
            results.append(self._memories.shaped(space, fact))
        return {"results": results}

    def search(
        self,
        /,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = THRESHOLD,
        rerank: bool = False,  # noqa: ARG002 - recall ranks once and well
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Memories that fit a question, the best first, with a score from 0 to 1."""
        if reference_date is not None:
            raise InvalidValue("reference_date is not taken here: recall(…, as_of=…) does that")
        scope, where = read_scope(known_arguments(kwargs), filters)
        top_k = kwargs.get("limit", top_k)
        check_search(top_k, threshold)
        if not isinstance(query, str) or not query.strip():
            raise InvalidValue(f"a query is text that is not empty, not {query!r}")
        space = self._memory.space(scope.space)
        least = THRESHOLD if threshold is None else threshold
        # Where much is left out afterwards, much has to be looked at.
        is_whole = where == AllOf((AllOf(), AllOf()))
        looked_at = max(4 * top_k, LOOKED_AT_MIN) if is_whole else LIST_MAX
        hits = space.recall(query, min(looked_at, LIST_MAX), kinds=[EntryKind.FACT])
        ranked = self._memories.ranked(space, hits, where)
        if show_expired:
            ranked = self._memories.with_expired(space, query, where, ranked)
        results: list[dict[str, Any]] = []
        for fact, score, why in ranked:
            if len(results) >= top_k or score < least:
                break
            told = {"score_details": dict(why)} if explain else {}
            results.append(self._memories.shaped(space, fact) | {"score": score} | told)
        return {"results": results}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What has happened to a memory, oldest first; also to one that was deleted."""
        fact_id, space_name = read_memory_id(memory_id)
        space = self._memory.space(space_name)
        fact = space.facts.get(fact_id)
        payload = {} if fact is None else self._memories.payload(space, fact)
        return events(space.facts.history(fact_id), payload, memory_id)

    # change

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = _UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change what a memory says, or what is said about it; whose it is stays."""
        text = data if text is None else text
        if text is None and metadata is None and expiration_date is _UNSET:
            raise InvalidValue("say what to change: text, metadata or expiration_date")
        space, fact = self._memories.there(memory_id)
        payload = self._memories.payload(space, fact)
        if metadata is not None:
            own = own_metadata(metadata)
            payload |= own
            if expiration_date is _UNSET:
                expiration_date = own.get(EXPIRES, _UNSET)
        valid_to: Any = UNCHANGED
        if expiration_date is not _UNSET:
            day = read_expiration(expiration_date)
            payload = {name: each for name, each in payload.items() if name != EXPIRES}
            payload |= {} if day is None else {EXPIRES: day}
            valid_to = None if day is None else end_of(day)
        space.facts.update(
            fact.id,
            UNCHANGED if text is None else text,
            tags=tuple(dict.fromkeys((*fact.tags, TAG))),
            metadata=payload,
            valid_to=valid_to,
        )
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Delete a memory; its history stays."""
        space, fact = self._memories.there(memory_id)
        space.facts.delete(fact.id)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Delete every memory of a user, an agent or a run. Conversations stay: see `reset`."""
        scope, where = read_scope({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        space = self._memory.space(scope.space)
        for fact in [
            f for f in pages(space, every=True) if self._memories.is_meant(space, f, where)
        ]:
            _delete(space, fact.id)
        return {"message": "Memories deleted successfully!"}

    def reset(self) -> None:
        """Forget everything that came in through these verbs, and nothing else, for good."""
        after = ""
        while names := self._memory.spaces(LIST_MAX, after):
            for name in names:
                self.reset_space(name)
            after = names[-1]

    def reset_space(self, name: str) -> None:
        """The same in one space; mem0 has no such verb."""
        space, before = self._memory.space(name), None
        while states := space.sessions.list(LIST_MAX, before):
            for state in states:
                if state.source == SOURCE:
                    space.forget(session=state.id)
            before = states[-1]
        for fact in list(pages(space, every=True, tag=TAG)):
            _delete(space, fact.id)
        self._memories.refresh()

    # life

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._pause.set()
        if self._worker is not None:
            self._worker.stop()
        if self._is_ours:
            self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncMemory:
    """`mem0.AsyncMemory`: the same verbs as coroutines, each run in a thread."""

    def __init__(
        self, config: core.Memory | Mapping[str, Any] | None = None, *, clock: Clock | None = None
    ) -> None:
        self.sync = Memory(config, clock=clock)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        return cls(config_dict)

    add = _in_thread(Memory.add)
    get = _in_thread(Memory.get)
    get_all = _in_thread(Memory.get_all)
    search = _in_thread(Memory.search)
    update = _in_thread(Memory.update)
    delete = _in_thread(Memory.delete)
    delete_all = _in_thread(Memory.delete_all)
    history = _in_thread(Memory.history)
    reset = _in_thread(Memory.reset)

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self.sync.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)


def _is_done(space: Space, session_id: str, upto: int) -> bool:
    state = space.sessions.get(session_id)
    return state is None or (state.processed_until or 0) >= upto


def _delete(space: Space, fact_id: str) -> None:
    with contextlib.suppress(NotFound):  # somebody else was faster
        space.facts.delete(fact_id)

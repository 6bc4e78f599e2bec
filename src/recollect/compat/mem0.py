"""mem0's verbs on a memory of ours: add, search, get, get_all, update, delete, delete_all, history,
reset, with its arguments and its answers.

A user is a space: nothing crosses from one user to another, for any caller. What is inferred is
learned from a conversation that is kept; what is not is a fact as it was given. An agent and a run
are fields inside the space. All that is wrong is an InvalidValue: the ValueError that mem0 raises.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache, wraps
from hashlib import md5
from itertools import islice, takewhile
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar
from urllib.parse import quote, unquote

from recollect import memory as core
from recollect.clock import Clock, SystemClock
from recollect.collection import Message, check_space
from recollect.errors import InvalidMessage, InvalidValue, NotFound, TooLarge
from recollect.ids import Ids
from recollect.messages import Role, as_plain_json, read
from recollect.recall.filters import check_size, read_condition, read_where
from recollect.session import LIST_MAX
from recollect.space import Space
from recollect.stemming import asked_stems, stems
from recollect.store.relational.entries import passes
from recollect.types.facts import UNCHANGED, Fact, FactChange, FactEvent, Trust
from recollect.types.recall import (
    AllOf,
    Entry,
    EntryKind,
    Filters,
    Hit,
    Operator,
    Where,
)
from recollect.types.records import JobKind, JobState
from recollect.worker import Worker

IDENTITY = ("user_id", "agent_id", "run_id")
ACTOR = "actor_id"
EXPIRES = "expiration_date"
# The space of what belongs to no user. No user is called so: an id has no blanks.
WITHOUT_USER = "mem0 without user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mem0Scope:
    """The user, the agent and the run that a call is about; `fields` has at least one of them."""

    fields: dict[str, str]  # as a memory has them

    @property
    def user(self) -> str | None:
        return self.fields.get("user_id")

    @property
    def space(self) -> str:
        return WITHOUT_USER if self.user is None else check_space(self.user)

    @property
    def key(self) -> tuple[str, ...]:
        """The stable key of the conversation that is learned from."""
        return ("mem0", self.fields.get("agent_id", ""), self.fields.get("run_id", ""))


def read_scope(
    given: Mapping[str, Any], filters: Mapping[str, Any] | None = None
) -> tuple[Mem0Scope, Where]:
    """Whose memories, from what stands at the top and in the filters, and the rest of those."""
    if filters is not None and not isinstance(filters, Mapping):
        raise InvalidValue(f"filters are a mapping of names to values, not {filters!r}")
    rest = dict(filters or {})
    check_size(rest)
    if empty := [name for name in ("AND", "OR", "NOT") if rest.get(name) == []]:
        raise InvalidValue(f"{empty[0]} takes a list of conditions, and has none")
    ids: dict[str, str] = {}
    for name in IDENTITY:
        top, inside = _read_id(given.get(name), name), _read_id(rest.pop(name, None), name)
        if top is not None and inside is not None and top != inside:
            raise InvalidValue(f"{name} is {top!r} in the call and {inside!r} in its filters")
        if (named := inside if top is None else top) is not None:
            ids[name] = named
    if not ids:
        raise InvalidValue(
            f"say whose memories are meant: one of {', '.join(IDENTITY)}, as in "
            "filters={'user_id': 'alice'}"
        )
    inner = {name: value for name, value in ids.items() if name != "user_id"}
    within = AllOf(tuple(read_condition(name, Operator.EQ, each) for name, each in inner.items()))
    return Mem0Scope(fields=ids), AllOf((within, read_where(rest)))


def _read_id(value: object, name: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, Mapping | list | tuple | set) or value == "*":
        raise InvalidValue(f"{name} names exactly one, not {value!r}: ask once for each")
    text = str(value).strip()
    if not text or any(map(str.isspace, text)):
        raise InvalidValue(f"{name} is text without blanks, not {value!r}")
    return text


def memory_id(fact_id: str, space: str) -> str:
    """How a memory is named without its user: mem0 asks for one by its id alone."""
    return f"{fact_id}@{'' if space == WITHOUT_USER else quote(space, safe='')}"


def read_memory_id(given: object) -> tuple[str, str]:
    """The fact, and the space it is in."""
    if not isinstance(given, str):
        raise InvalidValue(f"a memory's id is text, not {given!r}")
    fact_id, _, user = given.rpartition("@")
    return fact_id, unquote(user) or WITHOUT_USER


def read_expiration(value: object) -> str | None:
    """The last day on which something holds, as mem0 writes it."""
    if value is None:
        return None
    try:
        day = value.date() if isinstance(value, datetime) else value
        day = date.fromisoformat(day) if isinstance(day, str) else day
    except ValueError:
        day = None
    if not isinstance(day, date):
        raise InvalidValue(f"{EXPIRES} is a date as 2026-05-01, not {value!r}")
    return day.isoformat()


def end_of(day: str) -> datetime:
    """From when on it does not hold any more."""
    last = date.fromisoformat(day)
    if last == date.max:  # no day follows it
        return datetime.max.replace(tzinfo=UTC)
    return datetime.combine(last + timedelta(days=1), datetime.min.time(), UTC)


def check_search(top_k: object, threshold: object = None) -> None:
    if type(top_k) is not int or top_k < 0:
        raise InvalidValue(f"top_k is a whole number from 0 on, not {top_k!r}")
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if threshold is not None and not (is_number and 0 <= threshold <= 1):  # type: ignore[operator]
        raise InvalidValue(f"a threshold is a number between 0 and 1, not {threshold!r}")


PROMOTED = (*IDENTITY, ACTOR, "role", EXPIRES)  # beside the memory; everything else is metadata

_EVENTS: Mapping[FactEvent, str] = {
    FactEvent.ADDED: "ADD",
    FactEvent.RESTORED: "ADD",
    FactEvent.EDITED: "UPDATE",
    FactEvent.APPROVED: "UPDATE",
    FactEvent.SUPERSEDED: "DELETE",
    FactEvent.WITHDRAWN: "DELETE",
    FactEvent.DELETED: "DELETE",
}


def shape(fact: Fact, payload: Mapping[str, Any], named: str) -> dict[str, Any]:
    """A memory; `payload` is who it belongs to and what else was said about it."""
    item: dict[str, Any] = {
        "id": named,
        "memory": fact.content,
        "hash": md5(fact.content.encode(), usedforsecurity=False).hexdigest(),
        "metadata": {k: v for k, v in payload.items() if k not in PROMOTED} or None,
        "created_at": None if fact.created_at is None else fact.created_at.isoformat(),
        "updated_at": None if fact.updated_at is None else fact.updated_at.isoformat(),
    }
    return item | {name: payload[name] for name in PROMOTED if name in payload}


def events(
    changes: Sequence[FactChange], payload: Mapping[str, Any], named: str
) -> list[dict[str, Any]]:
    """The history of a memory, oldest first."""
    told: list[dict[str, Any]] = []
    before: str | None = None
    for number, change in enumerate(changes, start=1):
        event = _EVENTS[change.event]
        now = None if event == "DELETE" else change.content
        told.append(
            {
                "id": f"{named}#{number}",
                "memory_id": named,
                "old_memory": before,
                "new_memory": now,
                "event": event,
                "created_at": changes[0].at.isoformat(),
                "updated_at": change.at.isoformat(),
                "is_deleted": event == "DELETE",
                ACTOR: payload.get(ACTOR),
                "role": payload.get("role"),
            }
        )
        before = now
    return told


def normal(score: float) -> float:
    """A score as mem0 has them, from 0 to 1; the order stays."""
    return max(score, 0.0) / (1.0 + max(score, 0.0))


_SETTINGS = ("store", "settings", "model", "embedder")


def open_memory(config: Mapping[str, Any], clock: Clock | None) -> core.Memory:
    if not isinstance(config, Mapping):
        raise InvalidValue(f"a configuration is a mapping, not {type(config).__name__}")
    unknown = sorted(str(name) for name in config if name not in _SETTINGS)
    if unknown:
        raise InvalidValue(
            f"unknown in a configuration: {', '.join(unknown)}; use {', '.join(_SETTINGS)} "
            "(models and embedders are settings of Recollect)"
        )
    given = dict(config)
    for name in ("store", "model", "embedder"):
        if isinstance(given.get(name), Mapping):
            raise InvalidValue(f"{name} is an address or a name here, not a mapping as in mem0")
    return core.open(given.pop("store", None), clock=clock, **given)


def own_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a caller may say about a memory: not whose it is."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidValue(f"metadata is a mapping, not {type(metadata).__name__}")
    own = {name: each for name, each in metadata.items() if name not in (*IDENTITY, ACTOR)}
    day = read_expiration(own.pop(EXPIRES, None))
    return own if day is None else own | {EXPIRES: day}


def read_messages(messages: object) -> Sequence[Mapping[str, Any]]:
    """What was said, as messages; none of them is taken if one cannot be read."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    if isinstance(messages, Mapping):
        messages = [messages]
    if not isinstance(messages, list):
        raise InvalidValue(
            f"messages are a text, a message or a list of them, not {type(messages).__name__}"
        )
    plain = [as_plain_json(message)[0] for message in messages]
    for message in plain:
        read(message)
    return plain


def known_arguments(kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    unknown = sorted(set(kwargs) - {*IDENTITY, "limit"})
    if unknown:
        raise InvalidValue(f"unknown arguments: {', '.join(unknown)}")
    return kwargs


TAG = "mem0"
PAYLOADS_KEPT = 10_000
PAGE_MIN = 32  # facts of the first page; most callers want no more
_ANY_TIME = datetime.min.replace(tzinfo=UTC)

Scored = tuple[Fact, float, Mapping[str, float]]


def pages(space: Space, **asked: Any) -> Iterator[Fact]:
    """All facts that are asked for, newest first, in pages that grow."""
    before: Fact | None = None
    size = PAGE_MIN
    while page := space.facts.list(size, before, **asked):
        yield from page
        before, size = page[-1], min(2 * size, LIST_MAX)


def _has(payload: Mapping[str, Any], where: Where) -> bool:
    entry = Entry(
        kind=EntryKind.FACT,
        key=0,
        id="",
        text="",
        stems="",
        at=_ANY_TIME,
        trust=Trust.USER,
        metadata=payload,
    )
    return passes(entry, Filters(where=where))


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
        self._said_about = lru_cache(maxsize=PAYLOADS_KEPT)(self._read_said_about)

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
            self._worker = self._worker or self._memory.worker()
            for _ in range(TICKS_MAX):
                if _is_done(space, session_id, upto):
                    return True
                if self._is_busy(space, session_id):
                    self._pause.wait(WAIT_SECONDS)
                elif not self._worker.tick() and not self._is_busy(space, session_id):
                    return _is_done(space, session_id, upto)  # another worker may have been faster
            return False
        finally:
            self._learners.release()

    def _is_busy(self, space: Space, session_id: str) -> bool:
        """Whether another worker is at it right now."""
        job = self._memory.store.leases.get(space.name, JobKind.EXTRACT, session_id)
        return job is not None and job.state is JobState.CLAIMED

    def _kept(
        self, space: Space, listed: Sequence[Mapping[str, Any]], payload: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        kept = (m for m in listed if read(m).role not in (Role.SYSTEM, Role.DEVELOPER))
        facts = [self._verbatim(message, payload) for message in kept]
        return [
            {
                "id": memory_id(stored.id, space.name),
                "memory": stored.content,
                "event": "ADD",
                ACTOR: fact.metadata.get(ACTOR),
                "role": fact.metadata["role"],
            }
            for fact, stored in ((fact, space.facts.add(fact)) for fact in facts)
        ]

    def _verbatim(self, message: Mapping[str, Any], payload: Mapping[str, Any]) -> Fact:
        """A message as a fact under an id of its own, so that it is not merged with others."""
        reading = read(message)
        text, most = reading.text, self._memory.settings.fact_chars_max
        if not text.strip():
            raise InvalidMessage("a message has no text to keep; none of them was stored")
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
        found = self._find(memory_id)
        return None if found is None else self._shaped(*found) | {"score": None}

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
        found = islice(self._standing(space, where, show_expired=show_expired), top_k)
        return {"results": [self._shaped(space, fact) for fact in found]}

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
        ranked = self._ranked(space, hits, where)
        if show_expired:
            ranked = self._with_expired(space, query, where, ranked)
        found = islice(takewhile(lambda each: each[1] >= least, ranked), top_k)
        return {
            "results": [
                self._shaped(space, fact)
                | {"score": score}
                | ({"score_details": dict(why)} if explain else {})
                for fact, score, why in found
            ]
        }

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What has happened to a memory, oldest first; also to one that was deleted."""
        fact_id, space_name = read_memory_id(memory_id)
        space = self._memory.space(space_name)
        fact = space.facts.get(fact_id)
        payload = {} if fact is None else self._payload(space, fact)
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
        space, fact = self._there(memory_id)
        payload = self._payload(space, fact)
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
        space, fact = self._there(memory_id)
        space.facts.delete(fact.id)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Delete every memory of a user, an agent or a run. Conversations stay: see `reset`."""
        scope, where = read_scope({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        space = self._memory.space(scope.space)
        for fact in [f for f in pages(space, every=True) if self._is_meant(space, f, where)]:
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
        self._said_about.cache_clear()  # what it holds may be gone

    # which memories, and whose each is

    def _find(self, named: str) -> tuple[Space, Fact] | None:
        fact_id, space_name = read_memory_id(named)
        space = self._memory.space(space_name)
        fact = space.facts.get(fact_id)
        return None if fact is None or fact.waits else (space, fact)

    def _there(self, named: str) -> tuple[Space, Fact]:
        found = self._find(named)
        if found is None:
            raise InvalidValue(f"there is no memory with the id {named!r}")
        return found

    def _standing(self, space: Space, where: Where, *, show_expired: bool) -> Iterator[Fact]:
        """Memories that hold, with those that have expired if they are wanted, newest first."""
        for fact in pages(space, every=show_expired):
            is_told = fact.superseded_by is None and not fact.waits
            if is_told and self._is_meant(space, fact, where):
                yield fact

    def _is_meant(self, space: Space, fact: Fact, where: Where) -> bool:
        """Whether it is asked for: for one of all who said it that is enough."""
        return any(_has(payload, where) for payload in self._payloads(space, fact))

    def _shaped(self, space: Space, fact: Fact) -> dict[str, Any]:
        return shape(fact, self._payload(space, fact), memory_id(fact.id, space.name))

    def _payload(self, space: Space, fact: Fact) -> dict[str, Any]:
        """The owner and metadata of a memory, from the fact itself or from its first source."""
        return next(self._payloads(space, fact))

    def _payloads(self, space: Space, fact: Fact) -> Iterator[dict[str, Any]]:
        """The same for each of its sources, the earliest first."""
        user = {} if space.name == WITHOUT_USER else {"user_id": space.name}
        places = [(source.session_id, source.seq) for source in fact.sources]
        for place in places or [("", 0)]:
            yield {**self._said_about(space.name, *place), **fact.metadata, **user}

    def _read_said_about(self, space: str, session_id: str, seq: int) -> Mapping[str, Any]:
        if seq < 1:
            return {}
        found = self._memory.space(space).sessions.records(session_id, seq - 1, 1)
        said = found[0].metadata.get(TAG) if found and found[0].seq == seq else None
        return said if isinstance(said, dict) else {}

    def _ranked(self, space: Space, hits: Iterable[Hit], where: Where) -> Iterator[Scored]:
        for hit in hits:
            fact = space.facts.get(hit.id)
            if fact is not None and self._is_meant(space, fact, where):
                yield fact, normal(hit.score), hit.why

    def _with_expired(
        self, space: Space, query: str, where: Where, ranked: Iterable[Scored]
    ) -> Iterator[Scored]:
        """Also what recall leaves out, as it does not hold any more, by how many words it has."""
        found = list(ranked)
        asked, known = asked_stems(query).keys(), {fact.id for fact, _, _ in found}
        for fact in self._standing(space, where, show_expired=True):
            share = len(asked & set(stems(fact.content))) / max(len(asked), 1)
            if share and fact.id not in known:
                found.append((fact, normal(share), {"words": share}))
        return iter(sorted(found, key=lambda each: -each[1]))

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

    def __exit__(self, *_: object) -> None:
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

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)


def _is_done(space: Space, session_id: str, upto: int) -> bool:
    state = space.sessions.get(session_id)
    return state is None or (state.processed_until or 0) >= upto


def _delete(space: Space, fact_id: str) -> None:
    with contextlib.suppress(NotFound):  # somebody else was faster
        space.facts.delete(fact_id)

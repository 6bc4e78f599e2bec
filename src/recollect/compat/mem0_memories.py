"""Whose memories are meant, and which of them: mem0's ids and filters, read and checked. Pure.

A user is a space, so that nothing crosses from one to another; an agent and a run are fields inside
it. Everything wrong is an InvalidValue, which is the ValueError that mem0 raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from hashlib import md5
from typing import Any
from urllib.parse import quote, unquote

from recollect import memory as core
from recollect.clock import Clock
from recollect.collection import check_space
from recollect.errors import InvalidValue
from recollect.messages import as_plain_json, read
from recollect.recall.filters import check_size, read_condition
from recollect.session import LIST_MAX
from recollect.space import Space
from recollect.stemming import asked_stems, stems
from recollect.store.relational.entries import passes
from recollect.types.facts import Fact, FactChange, FactEvent, Trust
from recollect.types.recall import (
    AllOf,
    AnyOf,
    Entry,
    EntryKind,
    Filters,
    Hit,
    NoneOf,
    Operator,
    Where,
)

IDENTITY = ("user_id", "agent_id", "run_id")
ACTOR = "actor_id"
EXPIRES = "expiration_date"
DEPTH_MAX = 16
# The space of what belongs to no user. No user is called so: an id has no blanks.
WITHOUT_USER = "mem0 without user"

_COMBINED: Mapping[str, Callable[[tuple[Where, ...]], Where]] = {
    "AND": AllOf,
    "OR": AnyOf,
    "NOT": NoneOf,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mem0Scope:
    """The user, the agent and the run that a call is about; at least one of them."""

    user: str | None = None
    agent: str | None = None
    run: str | None = None

    @property
    def space(self) -> str:
        return WITHOUT_USER if self.user is None else check_space(self.user)

    @property
    def fields(self) -> dict[str, str]:
        """As a memory has them."""
        ids = zip(IDENTITY, (self.user, self.agent, self.run), strict=True)
        return {name: value for name, value in ids if value is not None}

    @property
    def key(self) -> tuple[str, ...]:
        """The stable key of the conversation that is learned from."""
        return ("mem0", self.agent or "", self.run or "")

    @property
    def where(self) -> Where:
        """What a memory of the user has to have."""
        inner = {name: value for name, value in self.fields.items() if name != "user_id"}
        return AllOf(
            tuple(read_condition(name, Operator.EQ, value) for name, value in inner.items())
        )


def read_scope(
    given: Mapping[str, Any], filters: Mapping[str, Any] | None = None
) -> tuple[Mem0Scope, Where]:
    """Whose memories, from what stands at the top and in the filters, and the rest of those."""
    if filters is not None and not isinstance(filters, Mapping):
        raise InvalidValue(f"filters are a mapping of names to values, not {filters!r}")
    rest = dict(filters or {})
    check_size(rest)
    ids: dict[str, str | None] = {}
    for name in IDENTITY:
        top, inside = _read_id(given.get(name), name), _read_id(rest.pop(name, None), name)
        if top is not None and inside is not None and top != inside:
            raise InvalidValue(f"{name} is {top!r} in the call and {inside!r} in its filters")
        ids[name] = inside if top is None else top
    if not any(ids.values()):
        raise InvalidValue(
            f"say whose memories are meant: one of {', '.join(IDENTITY)}, as in "
            "filters={'user_id': 'alice'}"
        )
    scope = Mem0Scope(user=ids["user_id"], agent=ids["agent_id"], run=ids["run_id"])
    return scope, AllOf((scope.where, _where(rest, 0)))


def _read_id(value: object, name: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, Mapping | list | tuple | set) or value == "*":
        raise InvalidValue(f"{name} names exactly one, not {value!r}: ask once for each")
    text = str(value).strip()
    if not text or any(map(str.isspace, text)):
        raise InvalidValue(f"{name} is text without blanks, not {value!r}")
    return text


def _where(given: Mapping[str, Any], depth: int) -> Where:
    if not isinstance(given, Mapping) or depth > DEPTH_MAX:
        raise InvalidValue(f"a filter is a mapping, at most {DEPTH_MAX} deep, not {given!r}")
    return AllOf(tuple(part for item in given.items() for part in _conditions(*item, depth)))


def _conditions(name: str, value: Any, depth: int) -> Iterable[Where]:
    if not isinstance(name, str):
        raise InvalidValue(f"a field is named by a text, not {name!r}")
    if name in _COMBINED:
        if not isinstance(value, list) or not value:
            raise InvalidValue(f"{name} takes a list of conditions, not {value!r}")
        return [_COMBINED[name](tuple(_where(each, depth + 1) for each in value))]
    if isinstance(value, Mapping):
        return [read_condition(name, operator, wanted) for operator, wanted in value.items()]
    if isinstance(value, list | tuple):
        return [read_condition(name, Operator.IN, value)]
    if value == "*":
        return [read_condition(name, Operator.EXISTS, True)]
    return [read_condition(name, Operator.EQ, value)]


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
    match value:
        case None:
            return None
        case datetime():
            return value.date().isoformat()
        case date():
            return value.isoformat()
        case str():
            try:
                return date.fromisoformat(value).isoformat()
            except ValueError:
                pass
        case _:
            pass
    raise InvalidValue(f"{EXPIRES} is a date as 2026-05-01, not {value!r}")


def end_of(day: str) -> datetime:
    """From when on it does not hold any more."""
    last = date.fromisoformat(day)
    if last == date.max:  # no day follows it
        return datetime.max.replace(tzinfo=UTC)
    return datetime.combine(last + timedelta(days=1), datetime.min.time(), UTC)


def check_search(top_k: object, threshold: object = None) -> None:
    if type(top_k) is not int or top_k < 0:
        raise InvalidValue(f"top_k is a whole number from 0 on, not {top_k!r}")
    if threshold is not None and not (
        isinstance(threshold, int | float) and not isinstance(threshold, bool)
    ):
        raise InvalidValue(f"a threshold is a number, not {threshold!r}")
    if isinstance(threshold, int | float) and not 0 <= threshold <= 1:
        raise InvalidValue(f"a threshold lies between 0 and 1: {threshold!r}")


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
            f"a configuration has some of {', '.join(_SETTINGS)}; {', '.join(unknown)} say nothing "
            "here: models and embedders are settings of Recollect"
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
    match messages:
        case str():
            return [{"role": "user", "content": messages}]
        case Mapping():
            messages = [messages]
        case list():
            pass
        case _:
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
        raise InvalidValue(f"nobody knows here what {', '.join(unknown)} would mean")
    return kwargs


TAG = "mem0"
PAYLOADS_KEPT = 10_000
PAGE_MIN = 32  # facts of the first page; most callers want no more
_ANY_TIME = datetime.min.replace(tzinfo=UTC)

Scored = tuple[Fact, float, Mapping[str, float]]


class Memories:
    """All memories of a store, and whose each is."""

    def __init__(self, memory: core.Memory) -> None:
        self._memory = memory
        self._said_about = lru_cache(maxsize=PAYLOADS_KEPT)(self._read_said_about)

    def refresh(self) -> None:
        """Keep nothing in mind of what may be gone."""
        self._said_about.cache_clear()

    def find(self, named: str) -> tuple[Space, Fact] | None:
        fact_id, space_name = read_memory_id(named)
        space = self._memory.space(space_name)
        fact = space.facts.get(fact_id)
        return None if fact is None else (space, fact)

    def there(self, named: str) -> tuple[Space, Fact]:
        found = self.find(named)
        if found is None:
            raise InvalidValue(f"there is no memory with the id {named!r}")
        return found

    def standing(self, space: Space, where: Where, *, show_expired: bool) -> Iterator[Fact]:
        """Memories that hold, with those that have expired if they are wanted, newest first."""
        for fact in pages(space, every=show_expired):
            if fact.superseded_by is None and self.is_meant(space, fact, where):
                yield fact

    def is_meant(self, space: Space, fact: Fact, where: Where) -> bool:
        """Whether it is asked for: for one of all who said it that is enough."""
        return any(_has(payload, where) for payload in self._payloads(space, fact))

    def shaped(self, space: Space, fact: Fact) -> dict[str, Any]:
        return shape(fact, self.payload(space, fact), memory_id(fact.id, space.name))

    def payload(self, space: Space, fact: Fact) -> dict[str, Any]:
        """Whose a memory is and what else was said about it: by itself, or where it comes from."""
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

    def ranked(self, space: Space, hits: Iterable[Hit], where: Where) -> Iterator[Scored]:
        for hit in hits:
            fact = space.facts.get(hit.id)
            if fact is not None and self.is_meant(space, fact, where):
                yield fact, normal(hit.score), hit.why

    def with_expired(
        self, space: Space, query: str, where: Where, ranked: Iterable[Scored]
    ) -> Iterator[Scored]:
        """Also what recall leaves out, as it does not hold any more, by how many words it has."""
        found = list(ranked)
        asked, known = asked_stems(query).keys(), {fact.id for fact, _, _ in found}
        for fact in self.standing(space, where, show_expired=True):
            share = len(asked & set(stems(fact.content))) / max(len(asked), 1)
            if share and fact.id not in known:
                found.append((fact, normal(share), {"words": share}))
        return iter(sorted(found, key=lambda each: -each[1]))


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

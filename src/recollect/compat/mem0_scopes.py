"""Whose memories are meant, and which of them: mem0's ids and filters, read and checked. Pure.

A user is a space, so that nothing crosses from one to another; an agent and a run are fields inside
it. Everything wrong is an InvalidValue, which is the ValueError that mem0 raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote

from recollect.collection import check_space
from recollect.errors import InvalidValue
from recollect.recall.filters import check_size, read_condition
from recollect.recollection import AllOf, AnyOf, NoneOf, Operator, Where

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

"""From what a caller writes to what may be found: a mapping becomes filters, or a typed error.

Names that mean something here come first: kind, since, until, as_of, agent, project, session, tags,
trust. Every other name is a field of metadata, with a value, a list of values, "*" for any, or
operators as in {"price": {"gte": 3}}; AND, OR and NOT take lists of such mappings.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect import collection
from recollect.descriptors import Descriptor, cache_key, from_cache_key, read_descriptor
from recollect.errors import InvalidValue
from recollect.types.facts import Trust
from recollect.types.recall import (
    AllOf,
    AnyOf,
    Condition,
    EntryKind,
    Filters,
    NoneOf,
    Operator,
    Where,
)

DEPTH_MAX = 16
VALUES_MAX = 1000  # each is compared with every candidate
_COMBINED: Mapping[str, Callable[[tuple[Where, ...]], Where]] = {
    "AND": AllOf,
    "OR": AnyOf,
    "NOT": NoneOf,
}

_ORDERED = (Operator.GT, Operator.GTE, Operator.LT, Operator.LTE)


def read_filters(
    given: Filters | Mapping[str, Any] | None,
    *,
    kinds: Iterable[EntryKind | str] | None = None,
    as_of: datetime | str | None = None,
) -> Filters:
    """What may be found, from all the ways a caller can say it."""
    filters = given if isinstance(given, Filters) else _from_mapping(given or {})
    if filters.agent is not None:
        filters = replace(filters, agent=_agent(filters.agent))
    if kinds is not None:
        filters = replace(filters, kinds=_kinds(kinds))
    if as_of is not None:
        filters = replace(filters, as_of=collection.read_time(as_of))
    return filters


def _from_mapping(given: Mapping[str, Any]) -> Filters:
    if not isinstance(given, Mapping):
        raise InvalidValue(f"filters are a mapping of names to values, not {type(given).__name__}")
    check_size(given)
    known: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in given.items():
        read = _KNOWN.get(name)
        if read is None:
            rest[name] = value
        elif value is not None:
            field, make = read
            known[field] = make(value)
    if isinstance(known.get("project"), tuple):
        known["project"], known["or_no_project"] = known["project"]
    return Filters(**known, where=read_where(rest, _KNOWN))


def check_size(filters: Mapping[str, Any]) -> None:
    """InvalidValue: there is more in them than anybody wants to have compared."""
    layer: list[Any] = [filters]
    count = 0
    while layer:
        inner = [each for each in layer if isinstance(each, Mapping | list | tuple)]
        layer = [
            below
            for each in inner
            for below in (each.values() if isinstance(each, Mapping) else each)
        ]
        count += len(layer)
        if count > VALUES_MAX:
            raise InvalidValue(f"filters have at most {VALUES_MAX:,} values and conditions")


def read_where(given: Mapping[str, Any], reserved: Container[str] = (), depth: int = 0) -> Where:
    """Conditions on metadata; fields whose names are `reserved` are refused."""
    if not isinstance(given, Mapping):
        raise InvalidValue(f"a condition is a mapping of fields to values, not {given!r}")
    if depth > DEPTH_MAX:
        raise InvalidValue(f"conditions are at most {DEPTH_MAX} deep")
    parts = tuple(part for item in given.items() for part in _conditions(*item, reserved, depth))
    return parts[0] if len(parts) == 1 else AllOf(parts)


def _conditions(name: object, value: Any, reserved: Container[str], depth: int) -> Iterable[Where]:
    if not isinstance(name, str):
        raise InvalidValue(f"a field is named by a text, not {name!r}")
    if name in reserved:
        # Only the outermost are about more than metadata: here it would mean nothing they meant.
        raise InvalidValue(f"{name!r} is not metadata and cannot stand beside AND, OR and NOT")
    if name.upper() in _COMBINED and name not in _COMBINED:
        raise InvalidValue(f"{name!r} is written {name.upper()}")
    if value == {}:
        raise InvalidValue(f"there is nothing to compare {name!r} with")
    if name in _COMBINED:
        listed = [value] if isinstance(value, Mapping) else value
        if not isinstance(listed, list | tuple):
            raise InvalidValue(f"{name} takes a list of conditions, not {value!r}")
        return [_COMBINED[name](tuple(read_where(each, reserved, depth + 1) for each in listed))]
    return field_conditions(name, value)


def field_conditions(name: str, value: Any) -> list[Condition]:
    """What is asked of one field: comparisons by name, some values, any at all, or this one."""
    if isinstance(value, Mapping):
        return [read_condition(name, operator, wanted) for operator, wanted in value.items()]
    if isinstance(value, list | tuple):
        return [read_condition(name, Operator.IN, value)]
    if value == "*":
        return [read_condition(name, Operator.EXISTS, True)]
    return [read_condition(name, Operator.EQ, value)]


def read_condition(name: str, operator: object, value: Any) -> Condition:
    """What a field has to be. InvalidValue: it never could."""
    if operator not in set(Operator):
        ways = ", ".join(Operator)
        raise InvalidValue(f"unknown operator {operator!r} for {name!r}; use one of {ways}")
    chosen = Operator(str(operator))
    if chosen is Operator.EXISTS and not isinstance(value, bool):
        raise InvalidValue(f"exists is true or false for {name!r}, not {value!r}")
    if chosen in (Operator.IN, Operator.NIN) and not isinstance(value, list | tuple):
        raise InvalidValue(f"{chosen} takes a list of values for {name!r}, not {value!r}")
    if chosen in _ORDERED and (isinstance(value, bool) or not isinstance(value, str | int | float)):
        raise InvalidValue(f"{chosen} takes a number or a text for {name!r}, not {value!r}")
    return Condition(field=name, operator=chosen, value=value)


def _kinds(given: Iterable[EntryKind | str] | str) -> frozenset[EntryKind]:
    listed = _listed(given, "kinds")
    unknown = [kind for kind in listed if kind not in set(EntryKind)]
    if unknown or not listed:
        raise InvalidValue(f"kinds are some of {', '.join(EntryKind)}: {unknown or listed!r}")
    return frozenset(EntryKind(kind) for kind in listed)


def _trusts(given: Iterable[Trust | str] | str) -> frozenset[Trust]:
    listed = _listed(given, "trust")
    if not listed or any(each not in set(Trust) for each in listed):
        raise InvalidValue(f"trust is one or some of {', '.join(Trust)}: {listed!r}")
    return frozenset(Trust(each) for each in listed)


def _tags(given: Iterable[str] | str) -> tuple[str, ...]:
    return tuple(collection.check_id(tag) for tag in _listed(given, "tags"))


def _listed(given: Iterable[str] | str, what: str) -> list[str]:
    """One text or several, as a list."""
    listed = [given] if isinstance(given, str) else given
    is_list = isinstance(listed, Iterable) and not isinstance(listed, Mapping)
    if not is_list or not all(isinstance(each, str) for each in listed):
        raise InvalidValue(f"{what} are a text or a list of texts, not {given!r}")
    return list(listed)


def _name(given: object) -> str:
    if not isinstance(given, str):
        raise InvalidValue(f"a project or a session is named by a text, not {given!r}")
    return collection.check_id(given)


def _project(given: object) -> str | tuple[str | None, bool]:
    """A project by its name; with None in a list beside it, also what belongs to no project.

    None alone in a list: only that.
    """
    if not isinstance(given, list | tuple):
        return _name(given)
    names = [each for each in given if each is not None]
    has_none = len(names) < len(given)
    if len(names) > 1 or not (names or has_none):
        raise InvalidValue(f"a list of projects has one name, None, or both, not {given!r}")
    return (_name(names[0]) if names else None), has_none


def _agent(given: str | Mapping[str, Any] | Descriptor) -> str:
    """An agent by its name, by its key as `/cron/x`, or by its descriptor."""
    if isinstance(given, str) and given.startswith("/"):
        return cache_key(from_cache_key(collection.check_id(given)))
    return cache_key(read_descriptor(given))


_KNOWN: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "kind": ("kinds", _kinds),
    "kinds": ("kinds", _kinds),
    "since": ("since", collection.read_time),
    "until": ("until", collection.read_time),
    "as_of": ("as_of", collection.read_time),
    "agent": ("agent", _agent),
    "project": ("project", _project),
    "session": ("session_id", _name),
    "tags": ("tags", _tags),
    "tag": ("tags", _tags),
    "trust": ("trust", _trusts),
}

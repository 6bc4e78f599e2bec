"""Values as JSON: what the commands print and the HTTP API answers, and the types of it.

A view of a dataclass has its fields, in order. `LAYOUTS` says what is otherwise: fields that are
hidden, fields with another name, and properties or computed values that are added. Both the values
and their types are read from the annotations, so that what is described is what is answered.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from recollect.descriptors import agent_label, from_cache_key, type_of
from recollect.types.records import JobState

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from recollect.types.facts import Receipt
    from recollect.types.status import Status

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the view of a type differs from its fields.

    What is added stands behind the field it is filed under (before all others under ""): the name
    of a property, of a method of the time, or a function of the value.
    """

    name: str = ""  # of the schema, if it is not that of the class
    hides: Collection[str] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    adds: Mapping[str, Mapping[str, str | Callable[..., Any]]] = field(default_factory=dict)
    local: Collection[str] = ()  # only for the operator: no schema has it, and HTTP leaves it out


def _session_agent(state: Any) -> str:
    return agent_label(state.agent_id)


def _job_counts(status: Any) -> dict[str, int]:
    busy = [state for state in JobState if state is not JobState.IDLE]
    return {state.value: status.job_counts.get(state, 0) for state in busy}


def _instead(omission: Any) -> str | None:
    return omission.instead or None


def _agent(state: Any) -> str:
    return agent_label(state.ref.agent_id)


def _agent_type(state: Any) -> str:
    return type_of(from_cache_key(state.ref.agent_id))


def _agent_name(state: Any) -> str:
    return from_cache_key(state.ref.agent_id).id


# By name: a type is loaded by whoever has a value of it.
LAYOUTS: Mapping[str, Layout] = {
    "types.records.Record": Layout(hides={"body"}, adds={"metadata": {"message": "message"}}),
    "types.records.SessionState": Layout(
        name="Session",
        hides={"pass_number"},
        adds={"key": {"agent": _session_agent}, "processed_until": {"unprocessed": "unprocessed"}},
    ),
    "types.records.Range": Layout(hides={"session_id"}, names={"pass_number": "pass"}),
    "types.facts.Spent": Layout(adds={"output_tokens": {"tokens": "tokens"}}),
    "types.facts.Extraction": Layout(
        hides={"space", "selected_for_phase2", "selected_for_phase2_source_updated_at"},
        names={"pass_number": "pass"},
    ),
    "types.facts.Call": Layout(hides={"space"}),
    "types.recall.Omission": Layout(hides={"instead"}, adds={"reason": {"instead": _instead}}),
    "types.pages.Version": Layout(names={"number": "version"}),
    "types.pages.Reference": Layout(hides={"named"}),
    "types.records.Job": Layout(
        hides={"pauses"},
        adds={"state": {"why": "why", "next_attempt_at": "next_attempt_at"}},
    ),
    "types.generations.ConsolidationState": Layout(
        name="Consolidation",
        names={"job": "state", "phase1_due": "sessions_due"},
        adds={
            "generation": {
                "waits_for": "waits_for",
                "next_attempt_at": "next_attempt_at",
            }
        },
    ),
    "types.generations.GenerationChange": Layout(names={"text": "diff"}),
    "types.agents.Signal": Layout(hides={"body"}),
    "types.agents.AgentState": Layout(
        name="Agent",
        hides={"ref", "job"},
        names={"job_state": "state"},
        adds={
            "": {
                "space": "ref.space",
                "agent": _agent,
                "agent_id": "ref.agent_id",
                "type": _agent_type,
                "name": _agent_name,
                "key": "ref.key",
                "key_id": "ref.key_id",
            },
            "parked": {"next_signal": "next_signal"},
        },
    ),
    "types.status.Status": Layout(
        hides={"passed_over", "consolidations", "job_counts"},
        adds={"waiting": {"job_counts": _job_counts}},
    ),
    "types.records.StoreDescription": Layout(local={"location"}),
    "processing.WorkReport": Layout(hides={"upkeep", "turns"}),
    "store.key_protocol.ApiKey": Layout(hides={"digest"}),
}
PLAIN = Layout()


def _layout(kind: type) -> Layout:
    return LAYOUTS.get(f"{kind.__module__.removeprefix('recollect.')}.{kind.__name__}", PLAIN)


@overload
def view(value: None, now: datetime | None = None) -> None: ...


@overload
def view(value: Sequence[Any], now: datetime | None = None) -> list[Json]: ...


@overload
def view(value: DataclassInstance, now: datetime | None = None) -> Json: ...


def view(value: Any, now: datetime | None = None) -> Any:
    """A value as JSON has it; a list of values as a list.

    What a job or a consolidation waits for depends on the time, so views of these need it.
    """
    known = _VIEWERS.get(type(value))
    if known is not None:
        return known(value, now)
    if isinstance(value, tuple | list):
        return [view(each, now) for each in value]
    return None if value is None else _viewer(type(value))(value, now)


def public_status(status: Status) -> Json:
    """A status that does not say where the store lies: that is the operator's affair."""
    made = view(status, status.at)
    del made["store"]["location"]
    return made


def public_receipt(receipt: Receipt) -> Json:
    """A receipt that does not say where a server keeps its files."""
    return {**view(receipt), "left": places_left(receipt)}


def places_left(receipt: Receipt) -> list[str]:
    """What is left: pages by path, files by name alone."""
    return [each if each.startswith("~/") else Path(each).name for each in receipt.left]


@dataclass(frozen=True, slots=True)
class _ViewEntry:
    """One entry of a view: how it is read at some time, and of which type it is."""

    read: Callable[[Any, datetime | None], Any]
    hint: Any


_Viewer = Callable[[Any, datetime | None], Json]
_VIEWERS: dict[type, _Viewer] = {}


def _viewer(kind: type) -> _Viewer:
    """What views values of this type: found once, since there are many of them."""
    if kind not in _VIEWERS:
        entries = [(name, part.read, _converter(part.hint)) for name, part in _parts(kind).items()]

        def viewer(value: Any, now: datetime | None) -> Json:
            made = {}
            for name, read, convert in entries:
                found = read(value, now)
                made[name] = convert(found, now) if convert and found is not None else found
            return made

        _VIEWERS[kind] = viewer
    return _VIEWERS[kind]


def _parts(kind: type) -> dict[str, _ViewEntry]:
    layout, hints = _layout(kind), get_type_hints(kind)
    parts: dict[str, _ViewEntry] = {}
    for behind in ("", *(each.name for each in dataclasses.fields(kind))):
        if behind and behind not in layout.hides:
            named = layout.names.get(behind, behind)
            parts[named] = _ViewEntry(_at_any_time(attrgetter(behind)), hints[behind])
        for name, source in layout.adds.get(behind, {}).items():
            parts[name] = _added(kind, source)
    return parts


def _added(kind: type, source: str | Callable[..., Any]) -> _ViewEntry:
    if not isinstance(source, str):
        return _ViewEntry(_at_any_time(source), get_type_hints(source)["return"])
    hint: Any = kind
    read = attrgetter(source)
    for name in source.split("."):
        found = inspect.getattr_static(hint, name)
        if inspect.isfunction(found):
            hint = get_type_hints(found)["return"]
            return _ViewEntry(lambda value, now: read(value)(_of_the_time(now)), hint)
        is_property = isinstance(found, property)
        hint = get_type_hints(found.fget)["return"] if is_property else get_type_hints(hint)[name]
    return _ViewEntry(_at_any_time(read), hint)


def _at_any_time(read: Callable[[Any], Any]) -> Callable[[Any, datetime | None], Any]:
    return lambda value, _: read(value)


def _of_the_time(now: datetime | None) -> datetime:
    assert now is not None, "a view of what waits for something needs the time"
    return now


def _converter(hint: Any) -> Callable[[Any, datetime | None], Any] | None:
    """What makes JSON of a value of this type; none: it is as it should be, or the encoder's."""
    hint, _ = without_none(hint)
    origin = get_origin(hint) or hint
    if not isinstance(origin, type):
        return None
    if dataclasses.is_dataclass(origin):
        return _viewer(origin)
    if issubclass(origin, Enum):
        return lambda value, _: value.value
    if issubclass(origin, Mapping):
        return lambda value, _: dict(value)
    if not issubclass(origin, Iterable) or issubclass(origin, str | bytes):
        return None
    of_each = _converter(get_args(hint)[0])

    def listed(value: Any, now: datetime | None) -> list[Any]:
        return list(value) if of_each is None else [of_each(each, now) for each in value]

    return listed


def without_none(hint: Any) -> tuple[Any, bool]:
    """A type without its None, and whether it had one."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    given = [each for each in get_args(hint) if each is not type(None)]
    return Union[tuple(given)], len(given) < len(get_args(hint))  # noqa: UP007


def shape_of(hint: Any) -> Any:
    """The type of a view of this type, as msgspec describes it."""
    hint, is_optional = without_none(hint)
    made = _shape(hint)
    return made | None if is_optional else made


def _shape(hint: Any) -> Any:
    from msgspec import Meta, Struct  # what only describes answers, and only over HTTP

    origin = get_origin(hint) or hint
    if hint is int:
        return Annotated[int, Meta(ge=0)]  # they are counts, numbers and ids
    if origin is Literal or not isinstance(origin, type):
        return hint
    if dataclasses.is_dataclass(origin):
        return _struct(origin)
    if issubclass(origin, Mapping):
        return dict[str, Any]
    if issubclass(origin, Iterable) and not issubclass(origin, str | bytes | Enum | Struct):
        return list[shape_of(get_args(hint)[0])]  # type: ignore[misc]
    return hint


@cache
def _struct(kind: type) -> Any:
    from msgspec import defstruct

    layout = _layout(kind)
    fields = [
        (name, shape_of(part.hint))
        for name, part in _parts(kind).items()
        if name not in layout.local
    ]
    return defstruct(layout.name or kind.__name__, fields, forbid_unknown_fields=True)

"""Values as JSON, with their types: what the commands print and the HTTP API returns.

A view of a dataclass has its fields, in order. `LAYOUTS` lists the exceptions: fields that are
hidden or have another name, and properties or computed values that are added. Values and types are
both read from the annotations, so that the description matches the answers.
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


# By name, so that a type is imported only where there is a value of it.
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
    "types.pages.Document": Layout(hides={"key"}),
    "recall.checking.Checked": Layout(adds={"case": {"is_passed": "is_passed"}}),
    "types.recall.Context": Layout(hides={"grounds"}),
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
    "operations.checks.Defect": Layout(names={"mending": "repair"}, hides={"repairs"}),
    "processing.WorkReport": Layout(hides={"upkeep", "turns"}),
    "types.access.ApiKey": Layout(hides={"digest"}),
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
    """One entry of a view: where it is read from, and of which type it is."""

    source: str | Callable[..., Any]
    hint: Any
    is_timed: bool = False  # a method of the time


_VIEWERS: dict[type, Callable[[Any, datetime | None], Json]] = {}


def _viewer(kind: type) -> Callable[[Any, datetime | None], Json]:
    """What views values of this type: compiled once, since there are many of them."""
    if kind not in _VIEWERS:
        names: dict[str, Any] = {"of_the_time": _of_the_time}
        entries = []
        for name, part in _parts(kind).items():
            read = f"value.{part.source}"
            if part.is_timed:
                read += "(of_the_time(now))"
            elif not isinstance(part.source, str):
                names[f"compute_{name}"] = part.source
                read = f"compute_{name}(value)"
            entries.append(f"{name!r}: {_converted(part.hint, read, names)}")
        _VIEWERS[kind] = eval(f"lambda value, now: {{{', '.join(entries)}}}", names)  # noqa: S307 - of our own names
    return _VIEWERS[kind]


def _of_the_time(now: datetime | None) -> datetime:
    assert now is not None, "a view of what waits for something needs the time"
    return now


def _parts(kind: type) -> dict[str, _ViewEntry]:
    layout, hints = _layout(kind), get_type_hints(kind)
    parts = _added(kind, layout, "")
    for each in dataclasses.fields(kind):
        if each.name not in layout.hides:
            name = layout.names.get(each.name, each.name)
            parts[name] = _ViewEntry(each.name, hints[each.name])
        parts |= _added(kind, layout, each.name)
    return parts


def _added(kind: type, layout: Layout, behind: str) -> dict[str, _ViewEntry]:
    return {name: _added_part(kind, source) for name, source in layout.adds.get(behind, {}).items()}


def _added_part(kind: type, source: str | Callable[..., Any]) -> _ViewEntry:
    if not isinstance(source, str):
        return _ViewEntry(source, get_type_hints(source)["return"])
    hint: Any = kind
    is_timed = False
    for name in source.split("."):
        found = inspect.getattr_static(hint, name)
        is_timed = inspect.isfunction(found)
        read = found.fget if isinstance(found, property) else found if is_timed else None
        hint = get_type_hints(hint)[name] if read is None else get_type_hints(read)["return"]
    return _ViewEntry(source, hint, is_timed)


def _converted(hint: Any, read: str, names: dict[str, Any]) -> str:
    """The expression that makes JSON of what `read` gives; a time is left to the encoder."""
    hint, is_optional = without_none(hint)
    made = _made(hint, "found" if is_optional else read, names)
    if is_optional and made != "found":
        return f"None if (found := {read}) is None else {made}"
    return read if is_optional else made


def _made(hint: Any, read: str, names: dict[str, Any]) -> str:
    origin = get_origin(hint) or hint
    if not isinstance(origin, type):
        return read
    if dataclasses.is_dataclass(origin):
        names[f"view_{origin.__name__}"] = _viewer(origin)
        return f"view_{origin.__name__}({read}, now)"
    if issubclass(origin, Enum):
        return f"{read}.value"
    if issubclass(origin, Mapping):
        return f"dict({read})"
    if issubclass(origin, Iterable) and not issubclass(origin, str | bytes):
        of_each = _converted(get_args(hint)[0], "each", names)
        return f"list({read})" if of_each == "each" else f"[{of_each} for each in {read}]"
    return read


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
